"""Shares as bars: names, numbers, and the line to compare them with."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")
from minigrad.course.furniture.level_bars import level_bars


def test_bars_have_names_and_numbers():
    picture = level_bars({"this": 0.79, "shuffled": 0.08}, "share of weight", "two bars", ("uniform", 0.12))
    assert all(
        f">{word}<" in picture.svg
        for word in ("this", "0.79", "shuffled", "0.08", "uniform", "share of weight")
    )


def test_they_need_no_line():
    picture = level_bars({"this": 0.79}, "share of pairs", "a bar")
    assert ">0.79<" in picture.svg
    assert "uniform" not in picture.svg


def test_the_axis_ends_where_it_is_told():
    wide = level_bars({"one": 1.2, "two": 0.3}, "distance", "two bars", most=2.0).svg
    assert ">2.00<" in wide
    assert ">2.00<" not in level_bars({"one": 0.9}, "share", "a bar").svg
