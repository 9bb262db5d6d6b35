"""The map of the course: a box for each chapter, and the same map wherever a page shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minigrad.course.contents import CHAPTERS
from minigrad.course.furniture import course_map as module
from minigrad.course.furniture.course_map import course_map

pytestmark = pytest.mark.no_arrays

BOOK = Path(__file__).resolve().parents[3] / "book"
BOX = re.compile(r'<a href="(\w+)\.html"(?: class="(\w+)")?')
SHOWN = {chapter.name for chapter in CHAPTERS}


def boxes(shown) -> dict[str, str]:
    """The state of each box by its chapter: "", "planned" or "here"."""
    return dict(BOX.findall(shown._repr_html_()))


def test_each_chapter_has_a_box():
    assert set(boxes(course_map())) == SHOWN


def test_the_list_says_which_chapters_have_no_notebook():
    written = {path.stem for path in BOOK.glob("*.ipynb")}
    assert {chapter.name for chapter in CHAPTERS if not chapter.planned} == written


def test_what_is_not_written_is_grey_and_what_is_here_is_lit():
    states = boxes(course_map(here="one_head"))
    assert states.pop("one_head") == "here"
    assert {name for name, state in states.items() if state == "planned"} == {
        chapter.name for chapter in CHAPTERS if chapter.planned
    }
    assert "here" not in boxes(course_map()).values()


def test_a_chapter_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="here must be a chapter, such as 'one_head', got '07_one_head'"):
        course_map("07_one_head")


def test_no_box_overlaps_another():
    for drawing in course_map()._repr_html_().split("<svg ")[1:]:
        boxes = [
            tuple(map(float, numbers))
            for numbers in re.findall(
                r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx="5"', drawing
            )
        ]
        for i, (x, y, wide, tall) in enumerate(boxes):
            for x2, y2, wide2, tall2 in boxes[i + 1 :]:
                assert x + wide <= x2 or x2 + wide2 <= x or y + tall <= y2 or y2 + tall2 <= y


def test_the_pages_show_the_map_as_it_is_now():
    """If this fails, a chapter is new or the map is: `python -m book._make.pictures map`."""
    nbformat = pytest.importorskip("nbformat")
    minutes = re.compile(r", \d+ minutes|(?<=>)\d+(?=</text>)")  # of the day that it was made
    with_minutes = course_map(minutes={path.stem: 5 for path in BOOK.glob("*.ipynb")})._repr_html_() + "\n"
    included = (BOOK / "runs" / "map.html").read_text(encoding="utf-8")
    assert minutes.sub("", included) == minutes.sub("", with_minutes)
    page = nbformat.read(BOOK / "start.ipynb", as_version=4)
    shown = [
        o.data["text/html"]
        for c in page.cells
        for o in c.get("outputs", [])
        if "text/html" in o.get("data", {})
    ]
    assert course_map(here="start")._repr_html_() in shown


def test_maps_are_made_again_wherever_they_are_shown(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    v4 = pytest.importorskip("nbformat").v4
    from book._make import pictures

    (tmp_path / "runs").mkdir()

    def cell(shown):
        data = {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
        return v4.new_code_cell("x", outputs=[v4.new_output("display_data", data=data)])

    monkeypatch.setattr(module, "CHAPTERS", [one._replace(planned=one.name != "start") for one in CHAPTERS])
    notebook = v4.new_notebook(
        cells=[cell(course_map(here="start")), cell(course_map()), v4.new_markdown_cell("x")]
    )
    path = tmp_path / "start.ipynb"
    path.write_text(v4.writes(notebook))
    monkeypatch.setattr(module, "CHAPTERS", CHAPTERS)
    assert pictures.renew_maps(tmp_path) == [tmp_path / "runs" / "map.html", path]
    shown = [c.outputs[0].data["text/html"] for c in v4.reads(path.read_text()).cells[:2]]
    assert shown == [course_map(here="start")._repr_html_(), course_map()._repr_html_()]
    assert pictures.renew_maps(tmp_path) == []


def test_minutes_stand_in_the_boxes_that_have_them_with_a_tick_to_come():
    drawn = course_map(minutes={"one_head": 85})._repr_html_()
    assert drawn.count('class="minutes"') == drawn.count('class="tick"') == 1
    assert 'aria-label="Chapter 7, One head, 85 minutes"' in drawn
    assert 'class="minutes"' not in course_map()._repr_html_()
