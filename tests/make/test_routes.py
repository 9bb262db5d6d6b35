"""The ways through the course: what they sum up, and that the pages that show them are of today."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import minigrad
from bert_course.contents import PLACES, ROUTES, Route
from bert_course.parts import PARTS
from book.make import routes
from book.make.reading_time import Exercise

pytestmark = pytest.mark.no_arrays

ROOT = Path(minigrad.__file__).resolve().parent.parent
HOURS = re.compile(r"\d+(?= hours| minutes| of exercises)")


@pytest.mark.parametrize(
    ("chapters", "minutes", "said"),
    [
        (("start",), 60, "60 minutes to read"),
        (("mlm",), 20, "20 minutes to read, 1 of exercises"),
        (("start", "mlm", "published"), 60, "2 hours to read, 1 of exercises"),
    ],
)
def test_hours_are_those_of_the_chapters_that_are_written(chapters, minutes, said):
    took = {"start": routes.Time(60, []), "mlm": routes.Time(minutes, [Exercise("One", "1", 40)])}
    assert routes.hours(Route("x", "X", "it", chapters), took) == said
    assert routes.hours(Route("x", "X", "it", chapters, solved=False), took) == said.partition(",")[0]


def test_a_way_with_exercises_jumps_over_nothing_that_its_chapters_need():
    for route in ROUTES:
        for name in route.chapters if route.solved else ():
            page = json.loads((ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf-8"))
            assert set(page["metadata"]["course"]["needs"]) <= set(route.chapters), (route.title, name)


def test_every_route_is_in_the_courses_order():
    for route in ROUTES:
        assert sorted(route.chapters, key=PLACES.__getitem__) == list(route.chapters)


def test_the_week_has_all_that_a_bert_of_ones_own_is_built_on():
    week = next(route for route in ROUTES if route.name == "week")
    assert {part.chapter for part in PARTS} <= set(week.chapters)


def test_the_first_page_shows_the_routes_of_today():
    """`make map` mends it. Hours may be one out of date; all else may not. The README has its own test."""
    text, shown = routes.renewed(ROOT)[ROOT / routes.INDEX], (ROOT / routes.INDEX).read_text(encoding="utf-8")
    assert HOURS.sub("", shown) == HOURS.sub("", text)
    for said, now in zip(HOURS.findall(shown), HOURS.findall(text), strict=True):
        assert abs(int(said) - int(now)) <= 1


def test_a_page_without_a_place_is_named():
    with pytest.raises(ValueError, match="the README has no place for the routes: <!-- routes -->"):
        routes.put("Before.\n<!-- routes -->\nno end\n", "routes", "", "the README")
