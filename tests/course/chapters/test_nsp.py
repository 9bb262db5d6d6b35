"""What chapter `nsp` shows: chunks of a document step by step, pairs with a mistake, judges of pairs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters.nsp import Questions, accuracy, chunk_player, elsewhere

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
