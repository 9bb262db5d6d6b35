"""What chapter `attention_decoder` shows: changed weights, scores against gold alignments, swapped states, pictures."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters import attention_decoder as chapter
from bert_course.common.translated_stories import dictionary, glossed, wrong_words
from minigrad import no_grad, random
from minigrad.seq2seq import RecurrentConfig, RecurrentSeq2Seq
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


def test_wrong_words_are_marked_where_they_stand():
    right = ["a", "b", "c", "d", "e"]
    for written, said in (
        ("a b c d e", "a b c d e"),
        ("a x c d e", "a [x] c d e"),
        ("a b d e", "a b […] d e"),
        ("a b x y c d e", "a b [x] [y] c d e"),
        ("", "[…] […] […] […] […]"),
    ):
        words = wrong_words(written.split(), right)
        assert " ".join(f"[{word}]" if wrong else word for word, wrong in words) == said


def test_a_gloss_has_what_a_word_translates_and_what_a_mark_marks():
    texts = chapter.read(100, seed=3)
    meaning = dictionary(texts)
    assert meaning["ga"] == "(subject)"
    assert meaning["dwen"] == "two"
    assert meaning["tum"] == "he/him"
    shown = glossed({"mine": [*texts[0].target[:-1], "skeni"]}, texts[0].target, meaning)
    assert repr(shown).startswith("mine: 1 wrong.")
    assert repr(shown).endswith("[skeni]")
    assert "<b>ga</b><i>(subject)</i>" in shown._repr_html_()
    assert '"word wrong"' in shown._repr_html_()
