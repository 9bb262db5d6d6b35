"""Pages in another language: beside the English ones, with their code, their memory and the words of the site."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from building import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("babel", reason="babel is not installed (it comes with jupyter-book)")
from book._make import translation  # noqa: E402

pytestmark = pytest.mark.no_arrays

PAGES = [
    (language, chapter)
    for language in translation.languages(ROOT)
    for chapter in translation.chapters(ROOT, language)
]


def description(page: str) -> str:
    return re.search(r'<meta name="description" content="([^"]+)"', page)[1]


@pytest.mark.parametrize(("language", "chapter"), PAGES)
def test_a_page_and_its_original_lead_to_each_other(language: str, chapter: str, site: Path):
    page = (site / "book" / f"{chapter}_{language}.html").read_text("utf-8")
    assert re.search(rf'<html[^>]* lang="{language}"', page)
    assert re.search(
        rf'course-language.*?href="{chapter}.html"><span class="doc">English</span></a>', page, re.DOTALL
    )
    english = (site / "book" / f"{chapter}.html").read_text("utf-8")
    assert re.search(r'<html[^>]* lang="en"', english)
    assert f'href="{chapter}_{language}.html"' in english
    assert f'href="../_sources/book/{chapter}_{language}.ipynb"' in page
    minutes = re.compile(r'course-facts docutils container">\s*<p>(\d+) min')
    assert minutes.search(page)[1] == minutes.search(english)[1]
    made = nbformat.read(site / "_sources" / "book" / f"{chapter}_{language}.ipynb", as_version=4)
    assert html.unescape(description(page)) == made.metadata["course"]["idea"]


@pytest.mark.parametrize(("language", "chapter"), PAGES)
def test_its_notebook_has_the_english_code(language: str, chapter: str, site: Path):
    made = nbformat.read(site / "_sources" / "book" / f"{chapter}_{language}.ipynb", as_version=4)
    source = nbformat.read(ROOT / "book" / f"{chapter}.ipynb", as_version=4)
    cells = zip(made.cells, source.cells, strict=True)
    assert all(
        one.cell_type == "markdown" or dict(one, metadata=0) == dict(other, metadata=0)
        for one, other in cells
    )
    assert made.cells[0].source != source.cells[0].source


def test_scripts_and_players_speak_german_and_remember_with_the_english_page(visit: Any):
    seen = visit("book/masking_de")
    page = seen.page
    assert page.evaluate("course.page") == "masking"
    assert page.inner_text(".course-language") == "Eine Übersetzung; maßgeblich ist die Seite auf Englisch."
    assert page.locator(".course-facts", has_text="braucht die Kapitel").count() == 1
    assert page.locator("button", has_text="Zeige die Antwort").first.is_visible()
    assert page.locator("text=Summe").count() >= 1
    cell = page.locator("[data-cell]").first
    assert " sieht " in cell.get_attribute("aria-label")
    page.evaluate("""() => {
        const added = document.createElement("p");
        added.innerHTML = "<b title='Search'>Your predictions: 2 of 3 right</b> <code>Search</code>";
        document.querySelector("article").append(added);
    }""")
    added = page.locator("article > p").last
    assert added.inner_text() == "Deine Vorhersagen: 2 von 3 richtig Search"
    assert added.locator("b").get_attribute("title") == "Suchen"
    page.evaluate("document.querySelector('article > p:last-child > b').firstChild.data = 'Search'")
    assert added.inner_text() == "Suchen Search"
    assert seen.errors == []
    page.close()
