"""The ways through the course: what they sum up, and that the pages that show them are of today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
from nbformat.v4 import new_markdown_cell, new_notebook

import minigrad
from book._make import reading_time, routes
from book._make.notebooks import read, write
from minigrad.course.contents import PLACES, ROUTES, Route
from minigrad.course.parts import PARTS

pytestmark = pytest.mark.no_arrays

ROOT = Path(minigrad.__file__).resolve().parent.parent
HOURS = re.compile(r"\d+(?= hours?| of exercises)")


@pytest.fixture
def course(tmp_path):
    """Two chapters of an hour each, one with forty minutes of exercises."""
    for folder in ("book", "solutions"):
        (tmp_path / folder).mkdir()
    for name in ("start", "mlm"):
        write(tmp_path / "book" / f"{name}.ipynb", new_notebook(cells=[new_markdown_cell("word " * 9000)]))
    exercises = new_notebook(cells=[new_markdown_cell("## 1. One (difficulty 1, 40 minutes)")])
    write(tmp_path / "solutions" / "mlm.ipynb", exercises)
    return tmp_path


def test_hours_are_those_of_the_chapters_that_are_written(course):
    assert routes.minutes(course, ["start", "mlm"]) == (120, 40)
    assert routes.hours(Route("x", "X", "it", ("start",)), course) == "1 hour to read"
    write(course / "book" / "mlm.ipynb", new_notebook(cells=[new_markdown_cell("word " * 3000)]))
    assert routes.hours(Route("x", "X", "it", ("mlm",)), course) == "20 minutes to read, 1 of exercises"
    write(course / "book" / "mlm.ipynb", new_notebook(cells=[new_markdown_cell("word " * 9000)]))
    assert (
        routes.hours(Route("x", "X", "it", ("start", "mlm", "published")), course)
        == "2 hours to read, 1 of exercises"
    )


def test_every_route_is_in_the_courses_order():
    for route in ROUTES:
        assert sorted(route.chapters, key=PLACES.__getitem__) == list(route.chapters)


def test_a_route_needs_nothing_that_it_leaves_out_but_engine_and_text():
    """The week, which promises a BERT of one's own, has all that its exercises build on."""
    week = next(route for route in ROUTES if route.name == "week")
    assert {part.chapter for part in PARTS} <= set(week.chapters)


def test_the_pages_show_the_routes_of_today():
    """`make map` mends it. Hours may be one out of date; all else may not."""
    for path, text in routes.renewed(ROOT).items():
        shown = path.read_text(encoding="utf-8")
        assert HOURS.sub("", shown) == HOURS.sub("", text), path.name
        for said, now in zip(HOURS.findall(shown), HOURS.findall(text), strict=True):
            assert abs(int(said) - int(now)) <= 1


def test_the_first_page_counts_the_exercises():
    counted = sum(
        len(reading_time.exercises(read(path))) for path in sorted((ROOT / "solutions").glob("*.ipynb"))
    )
    assert f"{counted} exercises" in (ROOT / routes.INDEX).read_text(encoding="utf-8")
