"""The map of the course: a box for each chapter, and the same map wherever a page shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minigrad.course.contents import CHAPTERS
from minigrad.course.furniture import course_map as module
from minigrad.course.furniture.course_map import course_map, written

pytestmark = pytest.mark.no_arrays

BOOK = Path(__file__).resolve().parents[3] / "book"
BOX = re.compile(r'<a href="(\w+)\.html"(?: class="(\w+)")?')
SHOWN = {chapter.name for chapter in CHAPTERS if not chapter.second}


def boxes(shown) -> dict[str, str]:
    """The state of each box by its chapter: "", "planned" or "here"."""
    return dict(BOX.findall(shown._repr_html_()))


def test_each_chapter_has_a_box():
    """A second page of a chapter shares the box."""
    assert set(boxes(course_map())) == SHOWN


def test_each_chapter_that_is_written_is_on_the_map():
    assert written() == {path.stem for path in BOOK.glob("*.ipynb")}


def test_what_is_not_written_is_grey_and_what_is_here_is_lit(monkeypatch):
    monkeypatch.setattr(module, "written", lambda: frozenset({"start", "one_head"}))
    states = boxes(course_map(here="one_head"))
    assert states.pop("start") == ""
    assert states.pop("one_head") == "here"
    assert set(states.values()) == {"planned"}
    assert "here" not in boxes(course_map()).values()


def test_a_map_without_the_book_has_nothing_grey(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "__file__", str(tmp_path / "a" / "b" / "course_map.py"))
    assert set(boxes(course_map()).values()) == {""}


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
    assert (BOOK / "runs" / "map.html").read_text(encoding="utf-8") == course_map()._repr_html_() + "\n"
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

    monkeypatch.setattr(module, "written", lambda: frozenset({"start"}))
    notebook = v4.new_notebook(
        cells=[cell(course_map(here="start")), cell(course_map()), v4.new_markdown_cell("x")]
    )
    path = tmp_path / "start.ipynb"
    path.write_text(v4.writes(notebook))
    monkeypatch.setattr(module, "written", lambda: frozenset({"start", "arrays"}))
    assert pictures.renew_maps(tmp_path) == [tmp_path / "runs" / "map.html", path]
    shown = [c.outputs[0].data["text/html"] for c in v4.reads(path.read_text()).cells[:2]]
    assert shown == [course_map(here="start")._repr_html_(), course_map()._repr_html_()]
    assert pictures.renew_maps(tmp_path) == []
