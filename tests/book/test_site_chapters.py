"""The list of chapters: the table of contents has it, every chapter has a page, written or planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import ROOT, build, pages, small_book

pytest.importorskip("yaml", reason="PyYAML is not installed (it comes with jupyter-book)")

from book._make import contents
from minigrad.course.contents import APPENDIX, CHAPTERS, NUMBERS

pytestmark = pytest.mark.no_arrays


def test_pages_have_the_numbers_and_the_order_of_the_list():
    """If this fails, the list of chapters has changed, or a link has another number: `make map`."""
    assert contents.renew(ROOT, check=True) == []
    listed = [chapter.page for chapter in CHAPTERS]
    assert [page for page in pages() if page in listed] == listed


def test_each_notebook_is_a_chapter_of_the_list():
    assert {path.stem for path in (ROOT / "book").glob("*.ipynb")} <= {chapter.name for chapter in CHAPTERS}


def test_numbers_are_places():
    assert len(NUMBERS) == len(CHAPTERS), "two chapters have one name"
    assert [NUMBERS[name] for name in ("start", "embeddings", "one_head", "errata")] == ["0", "6", "7", "A"]
    numbers = [chapter.number for chapter in CHAPTERS if chapter.part != APPENDIX]
    assert numbers == [str(place) for place in range(len(numbers))]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_what_a_chapter_promises_reads_on(chapter: Any):
    assert not chapter.build.endswith("."), "it is followed by a full stop"
    for path in chapter.library:
        assert (ROOT / path).is_file(), f"{path} is not there"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_a_planned_chapter_has_a_page_and_a_grey_entry(chapter: Any, site: Path):
    planned = not (ROOT / f"{chapter.page}.ipynb").exists()
    page = (site / f"{chapter.page}.html").read_text(encoding="utf-8")
    assert ("<strong>This chapter is planned.</strong>" in page) is planned
    assert not (ROOT / f"{chapter.page}.md").exists(), "its page is made when the site is built"
    start = (site / "book" / "index.html").read_text(encoding="utf-8")
    classes = f"toctree-l1 course-chapter{' planned' * planned}"
    assert f'<li class="{classes}"><a class="reference internal" href="{chapter.name}.html">' in start


def test_a_notebook_replaces_its_planned_page(tmp_path: Path):
    small_book(tmp_path, {"index": "# Start\n\nSee [chapter 8](many_heads.ipynb).\n", "many_heads": ""})
    done = build(tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "_build" / "html" / "book" / "many_heads.html"
    assert "This chapter is planned." in page.read_text(encoding="utf-8")
    (tmp_path / "book" / "many_heads.md").write_text("# 8. Twelve heads\n\nHere it is.\n", encoding="utf-8")
    done = build(tmp_path, tmp_path)  # into the same folder
    assert done.returncode == 0, done.stderr
    assert "This chapter is planned." not in page.read_text(encoding="utf-8")
    assert "Here it is." in page.read_text(encoding="utf-8")
    start = (tmp_path / "_build" / "html" / "book" / "index.html").read_text(encoding="utf-8")
    assert 'class="toctree-l1 course-chapter planned"' not in start
