"""What chapter `attention_decoder` shows: changed weights, scores against gold alignments, swapped states, pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from minigrad import no_grad, random
from minigrad.course.chapters import attention_decoder as chapter
from minigrad.seq2seq import RecurrentConfig, RecurrentSeq2Seq, greedy_search
from minigrad.stories.language import NOUNS
from minigrad.stories.translation import translation_tokenizer


@pytest.fixture(scope="module")
def texts() -> list[chapter.Text]:
    return chapter.read(12, seed=4)


@pytest.fixture(scope="module")
def tokenizer():
    return translation_tokenizer(chapter.LONG)


@pytest.fixture
def model(tokenizer):
    random.manual_seed(5)
    config = RecurrentConfig(tokenizer.vocab_size, dropout=0.0, hidden_size=12, attention="general")
    return RecurrentSeq2Seq(config).eval()


def same(weights, seen):
    return weights


def even(weights, seen):
    return np.broadcast_to(seen / seen.sum(axis=-1, keepdims=True), weights.shape)


def test_weights_that_are_not_changed_change_nothing(model, texts, tokenizer):
    batch = chapter.of_texts(texts, tokenizer)
    with no_grad():
        right, kept, flat = (
            one(**batch).logits.numpy()
            for one in (model, chapter.with_weights(model, same), chapter.with_weights(model, even))
        )
    np.testing.assert_array_equal(right, kept)
    assert np.abs(right - flat).max() > 1e-3


def test_forced_is_right_where_greedy_search_is(model, texts, tokenizer):
    """A target that the model writes itself is right at every word; with one word changed it is not."""
    text = texts[0]
    source, _ = chapter.tokens_of(text, tokenizer)
    written = greedy_search(model, np.array([[*source, tokenizer.sep_token_id]]), max_length=6)[0]
    words = [tokenizer.id_to_token(i) for i in written.ids]
    own = replace(text, words=tuple(replace(text.words[0], text=word) for word in words))
    hits = chapter.forced(model, [own], tokenizer)[0]
    assert hits[: len(words)].all()
    other = "mary" if words[0] != "mary" else "john"
    wrong = replace(own, words=(replace(own.words[0], text=other), *own.words[1:]))
    assert not chapter.forced(model, [wrong], tokenizer)[0][0]


def test_alignment_error_rate_by_hand(texts):
    text = next(text for text in texts if text.sentences == 1)
    S = len(text.source)
    gold = np.zeros((len(text.words), S + 1))
    for t, word in enumerate(text.words):
        gold[t, word.aligned[0] if word.aligned else S] = 1
    assert chapter.alignment_error_rate([gold], [text]) == 0
    links = sum(len(word.aligned) for word in text.words)
    nowhere = np.eye(S + 1)[[S] * len(text.words)]
    assert chapter.alignment_error_rate([nowhere], [text]) == 1
    t = next(t for t, word in enumerate(text.words) if word.aligned)
    gold[t] = np.eye(S + 1)[(text.words[t].aligned[0] + 1) % S]
    assert chapter.alignment_error_rate([gold], [text]) == pytest.approx(1 - 2 * (links - 1) / (2 * links))


def test_the_same_story_of_another_thing():
    pairs = list(chapter.other_nouns(chapter.read(60, seed=2)))
    assert len(pairs) > 10
    for text, other in pairs:
        assert len(text.source) == len(other.source)
        assert text.source != other.source
        places = chapter.pronouns(text)
        assert places
        assert all(text.words[t].text != other.words[t].text for t in places)
        old, new = text.story.facts.noun, set(other.source) - set(text.source)
        assert len({word.removesuffix("s") for word in new}) == 1
        noun = new.pop().removesuffix("s")
        assert NOUNS[old][-1] != NOUNS[noun][-1]
        assert chapter.with_noun(text, old) == text


@pytest.mark.parametrize("attention", ["none", "even", "dot", "general, both directions"])
def test_training_a_few_steps(attention, tokenizer):
    fresh = chapter.read(20, seed=9, short=True)
    before, after = (
        np.mean(
            np.concatenate(chapter.forced(chapter.train(attention, 0, 1e-2, steps, 16), fresh, tokenizer))
        )
        for steps in (1, 25)
    )
    assert after > before
