"""What chapter `nsp` shows: chunks of a document step by step, pairs with a mistake, judges of pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from minigrad.bert.stored import stored
from minigrad.course.chapters.nsp import (
    MISTAKES,
    Questions,
    accuracy,
    chunk_player,
    elsewhere,
    four_kinds,
    given_away,
    judged,
    share_curves,
    shared_pieces,
)
from minigrad.text.corpus import read_corpus

pytestmark = pytest.mark.no_arrays

# Sentence n of document d is the one id 100 d + n.
DOCUMENTS = [[[100 * d + n] for n in range(size)] for d, size in enumerate((30, 8, 12))]


def drawn(mistake: str, number: int = 1, size: int = 2) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [[i for (i,) in elsewhere(DOCUMENTS, number, size, rng, mistake)] for _ in range(400)]  # as ids


def test_elsewhere_is_a_run_of_another_document_and_each_place_is_as_likely():
    found = drawn("none")
    assert all(b == [b[0], b[0] + 1] for b in found)
    first = {b[0] for b in found}
    assert first == {*range(1, 29), *range(201, 211)}
    assert sum(one >= 200 for one in [b[0] for b in found]) / 400 == pytest.approx(10 / 38, abs=0.06)


def test_each_mistake_is_the_one_that_it_says():
    assert {len(b) for b in drawn("B is longer")} == {4}
    assert {b[0] for b in drawn("B opens a document")} == {0, 200}
    assert {b[0] // 100 for b in drawn("B is of A's document")} == {1}
    released = [b[0] for b in drawn("drawn as released")]
    assert set(released) == {*range(29), *range(200, 211)}
    assert sum(one >= 200 for one in released) / 400 == pytest.approx(1 / 2, abs=0.06)
    with pytest.raises(ValueError, match=r"no mistake 'B is red': expected none, B is longer"):
        elsewhere(DOCUMENTS, 0, 2, np.random.default_rng(0), "B is red")


def test_a_judge_that_knows_openings_or_short_documents_gains_half_of_the_difference():
    documents = [[[7] * 5] * size for size in (4, 8, 400)]

    def found(mark: Callable[[list[list[int]], int], bool]) -> list[float]:
        return np.mean([given_away(documents, mark, 32, seed) for seed in range(20)], axis=0).tolist()

    is_next, not_next, right = found(lambda d, n: n == 0)
    assert is_next == 0
    assert not_next == pytest.approx((1 / 4 + 1 / 8) / 2, abs=0.03)  # nearly all A are of the long document
    assert right == pytest.approx(0.5 + not_next / 2, abs=0.01)
    is_next, not_next, right = found(lambda d, n: len(d) < 9)
    assert is_next < 0.05
    assert not_next > 0.95
    assert right == pytest.approx(0.5 + (not_next - is_next) / 2, abs=0.01)


def test_the_four_kinds_have_the_same_a_and_differ_in_b():
    neighbours, swapped, apart, two = four_kinds(DOCUMENTS, np.random.default_rng(0))
    assert len(neighbours) == len(swapped) == len(apart) == len(two) > 8
    for (a, b), (c, d), (e, far), (g, other) in zip(neighbours, swapped, apart, two, strict=True):
        assert a == d == e == g
        assert b == c
        last, place = a[-1][0], far[0][0]
        assert b[0][0] == last + 1
        assert place // 100 == last // 100
        assert place > last + 6 or place + 1 < last - 5  # four sentences or more between the two texts
        assert other[0][0] // 100 != last // 100


def test_a_judge_finds_what_it_sees_and_nothing_else():
    rng = np.random.default_rng(0)

    def pairs(mistake: str) -> list[tuple[list[list[int]], list[list[int]], int, int]]:
        found = []
        for _ in range(300):
            label = int(rng.integers(2))
            b = elsewhere(DOCUMENTS, 0, 2, rng, mistake if label else "none")
            found.append((DOCUMENTS[0][:2], b, label, 0))
        return found

    def length(a: list[list[int]], b: list[list[int]]) -> list[int]:
        return [len(b)]

    assert accuracy(length, pairs("B is longer"), pairs("B is longer")) == 1
    assert accuracy(length, pairs("none"), pairs("none")) == pytest.approx(0.5, abs=0.1)


def test_the_mistakes_are_all_named():
    for mistake in MISTAKES:
        assert drawn(mistake, size=2)


def test_questions_have_their_texts_and_answers():
    asked = Questions(
        {"next": ("It rains.", "We <stay> in.", 0.987), "other": ("It rains.", "Two is even.", 0.04)}
    )
    shown = asked._repr_html_()
    assert all(part in shown for part in (">next<", "It rains.", "We &lt;stay&gt; in.", "0.99", "width: 4%"))
    assert repr(asked).splitlines()[1] == "other: It rains. | Two is even. => 0.04"


def test_the_player_tells_each_pair():
    text = repr(chunk_player([9, 6, 14, 31], [(0, 1, 3, 1), (1, 2, 3, 0), (3, 4, 4, 1)], 15))
    assert "Pair 1, NotNext: 29 tokens (target 15). A is sentence 1, and B is random." in text
    assert "The next chunk starts at sentence 2, which was not used." in text
    assert "Pair 2, IsNext: 20 tokens (target 15). A is sentence 2, and B is sentence 3." in text
    assert "The chunk is sentence 4 only, so nothing is left for B" in text
    assert "because the document ends" in repr(chunk_player([3, 4], [(0, 1, 2, 0)], 15))


def test_the_figures_have_words():
    assert "below one half" in repr(share_curves([1, 2], {3: [0.1, 0.2], 10: [0.2, 0.3], 50: [0.3, 0.4]}))
    hits = [np.array([True, False])] * 2
    assert "by kind of pair" in repr(judged(["one", "two"], {"the model": hits, "the count": hits}))


def test_the_text_is_long_enough_for_chunks_and_places():
    documents = read_corpus(stored("docutils.txt")).documents
    assert len(documents) == 34
    assert min(map(len, documents)) >= 6
    assert len({sentence for document in documents for sentence in document}) == sum(map(len, documents))


def test_shared_pieces_count_more_if_they_are_rare():
    sentences = [[1, 2], [1, 3], [1, 4], [1, 2]]
    score = shared_pieces(sentences)
    assert score([[2, 3]], [[2, 3]]) == pytest.approx(1)
    assert score([[2, 3]], [[2, 4]]) < score([[2, 3]], [[3, 4]])
    assert score([[1, 2]], [[1, 3]]) == 0  # a piece of every sentence says nothing
