"""What `looking_inside` shows: gold arcs of stories, shuffled stories, changed heads of a model, pictures of maps."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters import looking_inside as inside
from bert_course.common.varied_stories import SETTING
from minigrad import no_grad, random
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.stories.grammar import Story, tell_story
from minigrad.stories.stories import story_tokenizer


@pytest.fixture(scope="module")
def texts() -> inside.Texts:
    return inside.read(30, seed=0)


@pytest.fixture(scope="module")
def tokenizer():
    return story_tokenizer(SETTING)


@pytest.fixture
def model():
    random.manual_seed(3)
    config = BertConfig(
        vocab_size=len(story_tokenizer(SETTING).vocab),
        hidden_size=24,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=56,
        initializer_range=0.4,
    )
    return BertForPreTraining(config).eval()


def spoken(story: Story) -> list[str]:
    return [word.text for sentence in story.sentences for word in sentence]


def test_the_arcs_of_a_story_are_those_that_a_reader_finds():
    story = next(
        story
        for story in (tell_story(SETTING, n) for n in range(2000))
        if "describes it to" in " ".join(spoken(story))
    )
    words, arcs = spoken(story), inside.arcs_of(story)
    it = words.index("it")
    assert (it, it - 1) in arcs["object → verb"]
    assert (it - 1, it) in arcs["verb → object"]
    ((_, thing),) = [arc for arc in arcs["pronoun → antecedent"] if arc[0] == it]
    assert any(words[thing] in kind.nouns for kind in SETTING.lexicon.kinds.values())
    for the, noun in arcs["the → its noun"]:
        assert words[the] == "the"
        assert the < noun <= the + 2
    for word, before in arcs["word → same before"]:
        assert words[word] == words[before]
        assert before < word
        assert words[word] not in words[before + 1 : word]


def test_texts_say_where_the_words_are(texts, tokenizer):
    ids = texts.inputs["input_ids"]
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
    assert np.array_equal(texts.words, ~np.isin(ids, special))
    assert np.array_equal(texts.slots != "", texts.words)
    for number, story in enumerate(texts.stories):
        assert [tokenizer.vocab[i] for i in ids[number, texts.words[number]]] == spoken(story)
    for arcs in texts.arcs.values():
        assert texts.words[arcs[:, 0], arcs[:, 1]].all()
        assert texts.words[arcs[:, 0], arcs[:, 2]].all()
    roots = texts.words & (texts.heads < 0)
    assert (roots.sum(axis=1) == 4).all()  # the verb of each of four sentences


def test_a_rule_takes_the_last_word_before_that_fits(texts, tokenizer):
    arcs = texts.arcs["word → same before"]
    found = inside.found_by_rule(texts, "word → same before", arcs, tokenizer.vocab)
    assert found.all()
    wrong = arcs.copy()
    wrong[:, 2] -= 1
    assert not inside.found_by_rule(texts, "word → same before", wrong, tokenizer.vocab).any()
    for name in set(inside.RULES) - {"word → same before"}:
        assert inside.found_by_rule(texts, name, texts.arcs[name], tokenizer.vocab).mean() > 0.8, name


def test_a_change_that_changes_nothing_leaves_the_losses(texts, model, monkeypatch, tokenizer):
    monkeypatch.setattr(inside, "story_model", lambda: (model, tokenizer))
    few = inside.read(4, seed=7)
    same = lambda A, V: (A, V)  # noqa: E731
    silent = lambda A, V: (A, 0 * V)  # noqa: E731
    whole, slots, after = inside.losses(model, few, [([1], same), ([2, 4], same), ([3], silent)])
    assert len(whole) == len(slots) == few.words.sum()
    assert np.allclose(after[:2], whole, atol=1e-4)
    assert np.abs(after[2] - whole).max() > 1e-2
    ids = few.inputs["input_ids"].copy()
    order = np.cumsum(few.words, axis=1) - 1
    hidden = few.words & (order % inside.APART == 0)
    ids[hidden] = tokenizer.mask_token_id
    with no_grad():
        logits = model(ids, few.inputs["attention_mask"], few.inputs["token_type_ids"]).prediction_logits
    logits = logits.numpy()[hidden].astype(float)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = -log_p[np.arange(len(log_p)), few.inputs["input_ids"][hidden]]
    assert np.allclose(whole[: len(expected)], expected, atol=1e-4)
