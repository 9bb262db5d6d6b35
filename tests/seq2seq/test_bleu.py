"""BLEU: the paper's examples, the edges, and sacrebleu."""

from __future__ import annotations

from random import Random

import pytest

from minigrad.seq2seq.bleu import bleu, bleu_parts

pytestmark = pytest.mark.no_arrays


def words(*texts):
    return [text.split() for text in texts]


def test_the_same_text_has_100_and_another_one_0():
    texts = words("john has two old books .", "she reads them now .")
    assert bleu(texts, texts) == pytest.approx(100)
    assert bleu(texts, words("a b c d e f", "g h i j k")) == 0


def test_a_word_counts_no_more_often_than_in_the_reference():
    """Papineni et al. (2002), section 2.1, example 2, with its first reference: 2 of 7."""
    found = bleu_parts(words("the the the the the the the"), words("the cat is on the mat"))
    assert found.precisions == (2 / 7, 0, 0, 0)
    assert (found.score, found.brevity_penalty) == (0, 1)
    assert (found.hypothesis_length, found.reference_length) == (7, 6)


def test_translations_without_words_have_0():
    for found in (bleu_parts([[]], words("a b c d")), bleu_parts([[]], [[]])):
        assert (found.score, found.precisions, found.brevity_penalty) == (0, (0, 0, 0, 0), 0)


def test_what_is_no_corpus_is_refused():
    with pytest.raises(ValueError, match="got 2 references for 1 hypotheses"):
        bleu(words("a"), words("a", "b"))
    with pytest.raises(ValueError, match="one at least, got 0 references for 0"):
        bleu([], [])
    with pytest.raises(TypeError, match="got a text: split it"):
        bleu(["a b c"], words("a b c"))


CASES = {
    "the same": (["a b c d e"], ["a b c d e"]),
    "nothing right": (["a b c d e"], ["f g h i j"]),
    "no four in a row": (["a b c x d e f"], ["a b c d e f"]),
    "one hypothesis of two is empty": (["", "a b c d e"], ["a b", "a b c d f"]),
    "all are empty": ([""], ["a b c d"]),
    "too short for four": (["a b c"], ["a b c"]),
    "one word": (["a"], ["a b c d e"]),
    "short": (["a b c d e"], ["a b c d e f g h"]),
    "long": (["a b c d e f g h"], ["a b c d e"]),
    "again and again": (["a a a a a a b b"], ["a a a a b b b"]),
    "punctuation and capitals": (["A b , c . d ?"], ["A b , c . D ?"]),
}


def drawn_case(seed):
    """Forty sentences of up to thirty words, and copies with words changed, left out and repeated."""
    rng = Random(seed)
    references, hypotheses = [], []
    for _ in range(40):
        reference = [rng.choice("abcdefghij") for _ in range(rng.randint(1, 30))]
        hypothesis = []
        for word in reference:
            hypothesis += rng.choice([[word]] * 12 + [[], [word, word], [rng.choice("abcdefghij")]])
        references.append(" ".join(reference))
        hypotheses.append(" ".join(hypothesis))
    return hypotheses, references


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [*CASES.values(), *map(drawn_case, range(20))],
    ids=[*CASES, *(f"drawn {seed}" for seed in range(20))],
)
def test_the_same_as_sacrebleu(hypotheses, references):
    sacrebleu = pytest.importorskip("sacrebleu")
    expected = sacrebleu.corpus_bleu(
        hypotheses, [references], tokenize="none", smooth_method="none", force=True
    )
    found = bleu_parts(words(*hypotheses), words(*references))
    assert found.score == pytest.approx(expected.score, rel=1e-12, abs=1e-12)
    assert (found.hypothesis_length, found.reference_length) == (expected.sys_len, expected.ref_len)
    if expected.counts[0]:  # sacrebleu computes no parts for nothing right
        assert [100 * p for p in found.precisions] == pytest.approx(expected.precisions)
        assert found.brevity_penalty == pytest.approx(expected.bp)
