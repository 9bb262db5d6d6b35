"""Rows of dots: which differ from the baseline, and in which order they stand."""

from __future__ import annotations

import re

import pytest

from bert_course.common.dot_rows import dot_rows, overlap
from bert_course.common.palette import COLOURS

pytestmark = pytest.mark.numpy_only("figures are drawn on the CPU")


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [([1, 2], [3, 4], False), ([1, 3], [3, 4], True), ([3, 4], [1, 2], False), ([1, 4], [2, 3], True)],
)
def test_ranges_overlap(one, other, common):
    assert overlap(one, other) is common


@pytest.mark.parametrize("high", [False, True])
def test_the_figure_colours_what_differs_from_the_baseline_and_has_the_best_on_top(monkeypatch, high):
    monkeypatch.setattr("bert_course.common.figures.IN_A_PAGE", True)
    rows = {"BERT": [0.1, 0.2], "better": [0.05, 0.09], "alike": [0.15, 0.3], "worse": [0.21, 0.4, 0.3]}
    drawn = dot_rows(rows, "BERT", "nats", "four rows", high=high).svg
    names = sorted(
        rows, key=lambda name: float(re.search(rf'<text[^>]* y="([\d.]+)"[^>]*>{name}<', drawn)[1])
    )
    assert names == ["better", "BERT", "alike", "worse"][:: -1 if high else 1]
    dots = {
        tone: len(re.findall(rf'<circle[^>]*fill="{light}"', drawn)) for tone, (light, _) in COLOURS.items()
    }
    better, worse = (3, 2) if high else (2, 3)
    assert {tone: count for tone, count in dots.items() if count} == {
        "weight": better,
        "third": 4,
        "second": worse,
    }
