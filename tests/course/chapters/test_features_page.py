"""What chapter `features` shows: tags of stories, the inputs made of layers, what reads them, and what is taken out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters import features
from bert_course.chapters.looking_inside import Texts, read, story_model
from minigrad import Tensor, random
from minigrad.bert.config import IGNORED


@pytest.fixture(scope="module")
def texts() -> Texts:
    return read(40, seed=3)


def words_and_tags(texts: Texts, name: str):
    tokenizer, tags = story_model()[1], features.tagged(texts, name)
    for number in range(len(texts)):
        words = [tokenizer.vocab[i] for i in texts.inputs["input_ids"][number]]
        yield texts.stories[number], list(zip(words, tags[number].tolist(), strict=True))


@pytest.mark.parametrize("name", [*features.TAGS, *features.PHENOMENA])
def test_only_words_have_tags(texts, name):
    tags = features.tagged(texts, name)
    assert (tags[~texts.words] == IGNORED).all()
    assert len(np.unique(tags[tags != IGNORED])) > 1


def test_kind_is_asked_of_pronouns_of_the_thing(texts):
    for story, pairs in words_and_tags(texts, "kind"):
        for word, tag in pairs:
            assert (tag != IGNORED) == (word in ("it", "them", "which"))
            if tag != IGNORED:
                assert features.KINDS[tag] == story.facts.kind


def test_the_holder_is_one_of_two_people_in_each_sentence(texts):
    for story, pairs in words_and_tags(texts, "holder"):
        last = {story.facts.names[story.holders[-1]]: 1, story.facts.names[1 - story.holders[-1]]: 0}
        named = [(word, tag) for word, tag in pairs if word in last and tag != IGNORED]
        if len(story.sentences[-1]) and named and story.holders[-1] == story.holders[1]:
            assert set(named) <= set(last.items())


def test_the_number_stands_at_the_of_the_thing(texts):
    for story, pairs in words_and_tags(texts, "the: one or several"):
        for (word, tag), (after, _) in itertools.pairwise(pairs):
            if tag != IGNORED:
                assert word == "the"
                assert tag == int(story.facts.many)
                assert after in (story.facts.noun, f"{story.facts.noun}s", story.facts.age)


def test_a_layer_is_the_models_own(texts):
    states = features.hidden_states(story_model()[0], texts, batch=15)
    assert states.shape == (5, *texts.words.shape, 128)
    whole = story_model()[0].bert(**texts.inputs).hidden_states
    assert all(np.allclose(one.numpy(), ours, atol=1e-4) for one, ours in zip(whole, states, strict=True))


def test_joining_and_padding():
    random.manual_seed(0)
    layers = np.random.default_rng(0).standard_normal((2, 3, 6, 5)).astype(np.float32)
    lengths = np.array([6, 4, 2])
    for join in ("concat", "sum", "weighted"):
        tagger = features.Tagger(2, 5, join, 3)
        logits = tagger(Tensor(layers), lengths).numpy()
        other = layers.copy()
        other[:, 2, 2:] = 9.0  # beyond its length
        assert logits.shape == (3, 6, 3)
        assert np.allclose(logits, tagger(Tensor(other), lengths).numpy(), atol=1e-6)
    equal = features.Tagger(2, 5, "weighted", 3, "linear")
    mean = equal.output(Tensor(layers.mean(axis=0))).numpy()
    assert np.allclose(equal(Tensor(layers), lengths).numpy(), mean, atol=1e-5)


def test_training_learns_what_is_in_the_layers():
    rng = np.random.default_rng(1)
    layers, lengths = rng.standard_normal((1, 40, 5, 4)).astype(np.float32), rng.integers(2, 6, 40)
    tags = (layers[0, :, :, 0] > 0).astype(int)
    tags[np.arange(5) >= lengths[:, None]] = IGNORED
    for reader in ("lstm", "linear"):
        random.manual_seed(0)
        tagger = features.Tagger(1, 4, "concat", 2, reader)
        features.train(tagger, layers, lengths, tags, 0.03, 60, seed=0)
        assert features.accuracy(features.predict(tagger, layers, lengths), tags) > 0.9


def test_inputs_have_the_layers_of_their_choice():
    whole = features.stories_for(4, 9)[1]
    for what, (layers, join) in features.CHOICES.items():
        found, how = features.inputs_of(what, 4, 9)
        assert how == join
        assert np.array_equal(found, whole[layers])
    assert features.inputs_of("one-hot words", 4, 9)[0].sum(axis=-1).min() == 1
    drawn = features.inputs_of("last, untrained", 4, 9)[0]
    assert drawn.shape == whole[[4]].shape
    assert not np.allclose(drawn, whole[[4]], atol=0.1)
