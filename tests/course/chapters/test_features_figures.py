"""The pictures of chapter `features` have their names and numbers."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")
from minigrad.course.chapters.features_figures import reader_bars, two_ways


def test_one_way_trains_the_encoder_and_the_other_leaves_it():
    drawn = two_ways().svg
    for name, times in (
        ("encoder, as it is", 1),
        ("encoder", 1),
        ("BiLSTM", 1),
        ("one layer", 1),
        ("text", 2),
    ):
        assert drawn.count(f">{name}<") == times, name


def test_readers_have_a_bar_in_each_task():
    found = {"kind": {"words alone": 0.43, "last": 0.5}, "holder": {"words alone": 0.91, "last": 0.94}}
    drawn = reader_bars(found, {"kind": 0.2, "holder": 0.7}, "bars").svg
    assert all(f">{word}<" in drawn for word in ("kind", "holder", "words alone", "0.43", "0.94"))
