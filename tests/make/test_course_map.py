"""The map of the course: a box for each chapter, and the same map wherever a page shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bert_course.contents import CHAPTERS
from book.make.course_map import CourseMap

pytestmark = pytest.mark.no_arrays

BOOK = Path(__file__).resolve().parents[2] / "book"


def test_each_chapter_has_a_box_and_a_notebook():
    listed = {chapter.name for chapter in CHAPTERS}
    assert set(re.findall(r'<a href="(\w+)\.html"', CourseMap()._repr_html_())) == listed
    assert {path.stem for path in BOOK.glob("*.ipynb")} == listed


def test_no_box_overlaps_another():
    for drawing in CourseMap()._repr_html_().split("<svg ")[1:]:
        boxes = [
            tuple(map(float, numbers))
            for numbers in re.findall(
                r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx="5"', drawing
            )
        ]
        for i, (x, y, wide, tall) in enumerate(boxes):
            for x2, y2, wide2, tall2 in boxes[i + 1 :]:
                assert x + wide <= x2 or x2 + wide2 <= x or y + tall <= y2 or y2 + tall2 <= y


def test_the_first_page_shows_the_map_as_it_is_now():
    """If this fails, a chapter is new or the map is: `python -m book.make.pictures map`."""
    minutes = re.compile(r", \d+ minutes|(?<=>)\d+(?=</text>)")  # of the day that it was made
    with_minutes = CourseMap(minutes={path.stem: 5 for path in BOOK.glob("*.ipynb")})._repr_html_() + "\n"
    included = (BOOK / "records" / "map.html").read_text(encoding="utf-8")
    assert minutes.sub("", included) == minutes.sub("", with_minutes)


def test_the_map_is_made_again_where_it_is_another(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("nbformat")
    from book.make import pictures

    (tmp_path / "records").mkdir()
    made = tmp_path / "records" / "map.html"
    assert pictures.renew_map(tmp_path) == made
    assert pictures.renew_map(tmp_path) is None
    made.write_text("older")
    assert pictures.renew_map(tmp_path) == made
    assert made.read_text() == CourseMap()._repr_html_() + "\n"


def test_minutes_stand_in_the_boxes_that_have_them_with_a_tick_to_come():
    drawn = CourseMap(minutes={"one_head": 85})._repr_html_()
    assert drawn.count('class="minutes"') == drawn.count('class="tick"') == 1
    assert 'aria-label="Chapter 7, One head, 85 minutes"' in drawn
    assert 'class="minutes"' not in CourseMap()._repr_html_()
