"""The course as one PDF: contents with the right pages, bookmarks, links between parts, and nothing cut off."""

from __future__ import annotations

import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from building import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
yaml = pytest.importorskip("yaml")
pypdf = pytest.importorskip("pypdf")
pytest.importorskip("pikepdf")
from book.make.pdf import gather, indexed, listed, make, page_numbers, read_part  # noqa: E402

pytestmark = pytest.mark.no_arrays

PAGE = """<html><body><article><h1 id="one">One<a class="headerlink" href="#one">#</a></h1>
<a href="#one">here</a> <a href="two.html#there">there</a> <a href="../book/two.html">two</a> <a href="ask.html">ask</a>
<a href="https://example.org">web</a><svg><path id="p" clip-path="url(#q)"/><use xlink:href="#p"/></svg>
<div class="course-prediction" data-right="1" hidden><button>yes</button><button>no</button></div>
</article></body></html>"""


@pytest.fixture
def part(tmp_path: Path) -> Any:
    (tmp_path / "one.html").write_text(PAGE, encoding="utf-8")
    return read_part(tmp_path / "one.html", ["one", "two"], "First")


def test_ids_and_links_are_those_of_the_part(part: Any):
    assert part.title == "One"
    assert '<h1 id="one--one">' in part.html
    for text, target in (("here", "#one--one"), ("there", "#two--there"), ("two", "#two--top")):
        assert f'<a href="{target}">{text}</a>' in part.html
    assert "<a>ask</a>" in part.html
    assert '<a href="https://example.org">web</a>' in part.html
    assert 'clip-path="url(#one--q)"' in part.html
    assert 'xlink:href="#one--p"' in part.html


def test_answers_are_at_the_back(part: Any):
    assert part.answers == ("1: b) no",)
    assert re.search(r"<b>1</b> a\) yes\W+b\) no", part.html)
    page = gather([part], "<head></head>", "", {})
    assert page.index("1: b) no") > page.index(part.html)


def test_the_glossary_is_an_index(tmp_path: Path):
    """Its link leads to where the chapter makes the term bold, and the number of that page stands behind it."""
    entry = '<dt id="term-x">Big  x</dt><dd><p>What. <a href="one.html"><span>Chapter 1</span></a>.</p></dd>'
    pages = {
        "one": "<h1>One</h1><p><strong>other</strong> and <strong>big x</strong></p>",
        "glossary": f"<h1>G</h1><dl>{entry}{entry.replace('Big  x', 'unknown').replace('-x', '-y')}</dl>",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(f"<article>{text}</article>", encoding="utf-8")
    parts = indexed([read_part(tmp_path / f"{name}.html", pages) for name in pages])
    assert '<strong id="one--glossary--term-x">big x</strong>' in parts[0].html
    text = gather(parts, "<head></head>", "", {"one--glossary--term-x": 7, "one--top": 5})
    assert re.findall(r'href="#([^"]+)"><span>Chapter 1</span></a>, page (\d)', text) == [
        ("one--glossary--term-x", "7"),
        ("one--top", "5"),
    ]


def test_a_page_without_an_article_is_an_error(tmp_path: Path):
    (tmp_path / "one.html").write_text("<html></html>", encoding="utf-8")
    with pytest.raises(ValueError, match="has no <article>"):
        read_part(tmp_path / "one.html", [])


def test_all_pages_but_the_live_one_are_printed():
    found = listed(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))
    assert next(iter(found)) == "book/index"
    assert {"book/start", "book/errata", "book/glossary"} <= found.keys()
    assert "book/ask" not in found
    assert found["book/arrays"] == "I. The engine"
    assert found["book/modules"] == ""


def test_a_small_book(small_site: Path, browser: Any, tmp_path: Path):
    toc = yaml.safe_load((small_site.parents[1] / "_toc.yml").read_text(encoding="utf-8"))
    make(small_site, toc, tmp_path / "small.pdf", "<p>A title</p>", browser)
    assert not (small_site / "book" / "paper.html").exists()
    pages = [page.extract_text() for page in pypdf.PdfReader(tmp_path / "small.pdf").pages]
    assert "A title" in pages[0]
    numbers = page_numbers(tmp_path / "small.pdf")
    titles = {
        "arrays": "1. Arrays",
        "reverse_mode": "2. Reverse mode",
        "answers": "Answers to the predictions",
    }
    for name, title in titles.items():
        number = numbers[f"{name}--top"]
        assert title in pages[number - 1]
        assert re.search(rf"{re.escape(title)}\s*{number}\b", pages[1])


JAPANESE = re.compile("[\u3000-\u9fff]+")  # not each machine has a font for it


def spelled(text: str) -> str:
    """Without spaces, and each character in one way: fonts have some of them twice."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


@pytest.mark.slow
def test_no_line_of_code_is_cut(site: Path, browser: Any, tmp_path: Path):
    """Each line of each cell that is shown is in the PDF, which is no larger than 15 MB and has its fonts."""
    copy = shutil.copytree(site, tmp_path / "site")
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    make(copy, toc, tmp_path / "course.pdf", "", browser)
    assert (tmp_path / "course.pdf").stat().st_size < 15e6
    reader = pypdf.PdfReader(tmp_path / "course.pdf")
    text = spelled("".join(page.extract_text() for page in reader.pages))
    missing = [
        line
        for page in listed(toc)
        if (path := ROOT / f"{page}.ipynb").exists()
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code"
        and not {"remove-cell", "remove-input", "hide-input", "setup"} & set(cell.metadata.get("tags", ()))
        for line in cell.source.split("\n")
        if not all(part in text for part in JAPANESE.split(spelled(line)))
    ]
    assert missing == []
