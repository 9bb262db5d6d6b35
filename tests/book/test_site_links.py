"""Links from plain text, in a small book: what gets one, what does not, and what fails the build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import bs4
import pytest
from building import build, small_book

pytestmark = [pytest.mark.no_arrays, pytest.mark.xdist_group("links")]

TEXT = r"""# 7. One attention head, chapter 2

As [chapter 2](reverse_mode.ipynb) says, and chapters [2](reverse_mode.ipynb) and
[8](many_heads.ipynb). Not `chapter 2`, nor [chapter 2](https://example.org). Erratum 39, errata 5,
6; erratum 44. See Goodfellow, whose book has a chapter.

Vaswani et al. (2017), section 3.2.1; (Devlin et al. 2019, appendix A.2; Kingma & Ba 2015), Glorot and Bengio (2010),
Ba et al. 2016, chapter 3, Polyak 1964. In 2018 and in May 2018 nothing.

## Reading order in headings

A **view** is another shape. A view, a broadcasting, Broadcasting again, strides, `cache`, $cache$, [CLS], the MLM,
masked language modelling, previews, in view. A pre-LN layer, and a score of 3.

```{raw} html
<div class="course-table"><table><thead><tr><th>where</th></tr></thead><tbody>
<tr><th scope="row">chapters 2 &amp; more</th><td class="number">here, erratum 5</td></tr></tbody></table></div>
```

The formula $x$, and ($y$). Again $z$ here. Equal pieces: a cache, `a`, $a$, `b`, $b$, the end.
"""


def chapter(text: str, **course: list[str]) -> dict[str, Any]:
    """A notebook of one text."""
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text}
    return {"cells": [cell], "metadata": {"course": course}, "nbformat": 4, "nbformat_minor": 5}


PAGES = {
    "index": "# Start\n\nThe cache.\n",
    "reverse_mode": "",
    "one_head": TEXT,
    "many_heads": "",
    "errata": chapter("# 26. The sources' errata\n\n(erratum-5)=\n## The fifth\n\nText.\n"),
    "glossary": "",
    "references": "",
}
# The glossary and the references name chapters that this book lacks.
SHORT = {
    "glossary": "# Glossary\n\n:::{glossary}\n"
    + "\n".join(
        f"{term}\n    Meaning of it. More.\n"
        for term in (
            "view", "broadcasting", "stride", "cache", "[CLS]", "masked language modelling (MLM)",
            "post-LN", "reading order",
        )
    )
    + ":::\n"
}  # fmt: skip


def made(folder: Path, pages: dict[str, str]) -> tuple[Path, str, int]:
    """Build a small book; returns its pages' folder, what the build said, and its exit status."""
    small_book(folder, pages)
    for name, text in SHORT.items():
        (folder / "book" / f"{name}.md").write_text(text, encoding="utf-8")
    done = build(folder, folder)
    return folder / "_build" / "html" / "book", " ".join(done.stderr.split()), done.returncode


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the small book."""
    pages, said, status = made(tmp_path_factory.mktemp("links"), PAGES)
    assert status == 0, said
    return pages


def links(page: Path, kind: str) -> list[tuple[str, str]]:
    """The links of one kind in a page: address, words."""
    found = bs4.BeautifulSoup(page.read_text(encoding="utf-8"), "lxml").select(f"article a.{kind}")
    return [(str(one["href"]), " ".join(one.get_text().split())) for one in found]


def test_chapters_and_errata(folder: Path):
    assert links(folder / "one_head.html", "course-reference") == [
        ("errata.html", "Erratum 39"),
        ("errata.html#erratum-5", "errata 5"),  # the chapter has a target for this one
        ("errata.html", "6"),
        ("errata.html", "erratum 44"),
        ("reverse_mode.html", "chapters 2"),  # in a table of a code cell, which is HTML
        ("errata.html#erratum-5", "erratum 5"),
    ]


def test_links_to_chapters_lead_to_their_pages(folder: Path):
    page = (folder / "one_head.html").read_text(encoding="utf-8")
    for address, words in [("reverse_mode", "chapter 2"), ("reverse_mode", "2"), ("many_heads", "8")]:
        link = rf'<a class="reference internal" href="{address}.html">(?:<[^>]*>)*{words}<'
        assert re.search(link, page), words


def test_citations(folder: Path):
    assert links(folder / "one_head.html", "course-citation") == [
        ("references.html#vaswani2017", "Vaswani et al. (2017)"),
        ("references.html#devlin2019", "Devlin et al. 2019"),
        ("references.html#kingma2015", "Kingma & Ba 2015"),
        ("references.html#glorot2010", "Glorot and Bengio (2010)"),
        ("references.html#ba2016", "Ba et al. 2016"),
        ("references.html#polyak1964", "Polyak 1964"),
    ]
    references = (folder / "references.html").read_text(encoding="utf-8")
    for address in ("vaswani2017", "kingma2015"):
        assert f'id="{address}"' in references


def test_terms(folder: Path):
    assert links(folder / "one_head.html", "course-term") == [
        ("glossary.html#term-broadcasting", "broadcasting"),
        ("glossary.html#term-stride", "strides"),
        ("glossary.html#term-CLS", "[CLS]"),
        ("glossary.html#term-masked-language-modelling-MLM", "MLM"),
        ("glossary.html#term-cache", "cache"),
    ]
    assert 'title="Meaning of it."' in (folder / "one_head.html").read_text(encoding="utf-8")
    assert links(folder / "index.html", "course-term") == []


def test_a_later_chapters_terms_are_linked_where_the_page_mentions_them(other: tuple[Path, str, int]):
    linked = {
        name: [words for _, words in links(other[0] / f"{name}.html", "course-term")]
        for name in ("reverse_mode", "one_head", "many_heads")
    }
    assert linked == {
        "reverse_mode": ["broadcasting", "cache"],  # stride may mean anything here
        "one_head": ["cache"],
        "many_heads": ["stride", "broadcasting", "cache"],
    }


def test_a_formula_and_its_punctuation_stay_together(folder: Path):
    page = (folder / "one_head.html").read_text(encoding="utf-8")
    held = re.findall(r'<span class="course-nowrap">(.*?</span>.*?)</span>', page)
    assert [re.sub(r"<[^>]*>", "", one) for one in held] == [
        r"\(cache\),", r"\(x\),", r"(\(y\)).", r"\(a\),", r"\(b\),"
    ]  # fmt: skip
    text = re.sub(r"<[^>]*>", "", page)
    assert r"Equal pieces: a cache, a, \(a\), b, \(b\), the end." in text, "no comma is lost"


WRONG = {
    "chapter 99": "there is no chapter 99",
    "chapter 8": "write [chapter 8](many_heads.ipynb)",
    "chapters 2 and 57": "there is no chapter 57",
    "chapter 9": "chapter 9 has no line in _toc.yml",
    "erratum 72": "there is no erratum 72",
    "Nobody et al. (2017)": "the bibliography has no such entry",
    "Vaswani et al. 2018": "the bibliography has no such entry",
    "Devlin & Chang 2019": "the bibliography has no such entry",
    "Kingma et al. 2015": "the bibliography has no such entry",
    "Nobody 1999": "the bibliography has no such entry",
}


TERMS = "A stride, a broadcasting, a cache."
OTHERS = {
    **PAGES,
    "index": "# Start\n",
    "reverse_mode": chapter(f"# 2. Two\n\n{TERMS}", mentions=["broadcasting"]),
    "embeddings": "\n\n".join(["# 6. Six", *(f"({one})." for one in WRONG), "See {doc}`nowhere`."]),
    "one_head": chapter(f"# 7. Seven\n\n{TERMS} **stride**", introduces=["stride", "broadcasting"]),
    "many_heads": chapter(f"# 8. Eight\n\n{TERMS}"),
}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """The pages of a book with links that lead nowhere, what its build said, and its status."""
    return made(tmp_path_factory.mktemp("other"), OTHERS)


def test_what_leads_nowhere_fails_the_build(other: tuple[Path, str, int]):
    _, said, status = other
    assert status != 0
    assert "unknown document: 'nowhere'" in said
    for text, complaint in WRONG.items():
        assert f"{text!r}: {complaint}" in said, said
    assert said.count("WARNING") == len(WRONG) + 2  # of "chapters 2 and 57" each, and of the dead reference


def test_a_link_carries_what_it_says(folder: Path):
    """The popover shows it (popover.js): of a citation its title, of an erratum what is written and what is right."""
    page = (folder / "one_head.html").read_text(encoding="utf-8")
    titles = {
        words: title
        for title, words in re.findall(
            r'<a class="[^"]*course-\w+[^"]*"[^>]*title="([^"]*)"[^>]*>([^<]*)</a>', page
        )
    }
    assert titles["Vaswani et al. (2017)"].startswith("Attention Is All You Need")
    assert titles["Erratum 39"].startswith("Erratum 39. As written: ")
    assert " Right: " in titles["Erratum 39"]
    assert titles["broadcasting"] == "Meaning of it."
