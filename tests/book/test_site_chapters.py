"""The list of chapters: the table of contents has it, and every chapter has an entry in the sidebar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building import ROOT, pages

pytest.importorskip("yaml", reason="PyYAML is not installed (it comes with jupyter-book)")

from bert_course.contents import APPENDIX, CHAPTERS, NUMBERS
from book.make import contents

pytestmark = pytest.mark.no_arrays


def test_pages_have_the_numbers_and_the_order_of_the_list():
    """If this fails, the list of chapters has changed, or a link has another number: `make map`."""
    assert contents.renew(ROOT, check=True) == []
    listed = [chapter.page for chapter in CHAPTERS]
    assert [page for page in pages() if page in listed] == listed


def test_numbers_are_places():
    assert len(NUMBERS) == len(CHAPTERS), "two chapters have one name"
    assert [NUMBERS[name] for name in ("start", "embeddings", "one_head", "errata")] == ["0", "6", "7", "A"]
    numbers = [chapter.number for chapter in CHAPTERS if chapter.part != APPENDIX]
    assert numbers == [str(place) for place in range(len(numbers))]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_a_chapter_has_its_entry_in_the_sidebar(chapter: Any, site: Path):
    assert not chapter.build.endswith("."), "it is followed by a full stop"
    start = (site / "book" / "index.html").read_text(encoding="utf-8")
    entry = f'<li class="toctree-l1 course-chapter"><a class="reference internal" href="{chapter.name}.html">'
    assert entry in start
