"""What the extension puts on the course's own pages, in the files and in a browser without a network."""

from __future__ import annotations

import html
import itertools
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, pages

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
from bert_course.contents import CHAPTERS  # noqa: E402
from book.make import reading_time  # noqa: E402

pytestmark = pytest.mark.no_arrays

WRITTEN = [page for page in pages() if (ROOT / f"{page}.ipynb").exists()]


def read(site: Path, name: str) -> str:
    """A page of the site."""
    return (site / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", pages())
def test_the_head_says_what_the_page_is(site: Path, name: str):
    page = read(site, name)
    (title,) = re.findall(r"<title>(.*?)</title>", page)
    assert title.count("BERT from nothing") == 1
    assert title.endswith("BERT from nothing")
    (description,) = re.findall(r'<meta name="description" content="(.*?)">', page)
    assert 20 < len(description) < 300
    assert "pip install" not in description
    assert '<meta property="og:title"' in page
    assert '<html lang="en"' in page
    assert len(re.findall(r"<h1\b", page)) == 1


def test_no_two_pages_have_one_title(site: Path):
    titles = [re.findall(r"<title>(.*?)</title>", read(site, name))[0] for name in pages()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", ["index", "404"])
def test_the_pages_that_no_source_makes(site: Path, name: str):
    page = read(site, name)
    assert '<html lang="en">' in page
    assert "BERT from nothing</title>" in page
    addresses = re.findall(r'(?:href|src|url)="?=?([^">]*)', page)
    if name == "404":
        assert [address for address in addresses if not address.startswith("/")] == [], (
            "it works at any depth"
        )


@pytest.mark.parametrize("name", [*pages(), "index", "404", "search"])
def test_a_page_says_first_what_it_may_load(site: Path, name: str):
    (policy,) = re.findall(
        r'<head><meta http-equiv="Content-Security-Policy" content="(.*?)">', read(site, name)
    )
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    sources = {source for part in allowed.values() for source in part.split()}
    assert sources <= {"'self'", "'none'", "'unsafe-inline'", "'wasm-unsafe-eval'", "file:", "data:"}, (
        "no other host"
    )
    assert "'unsafe-inline'" not in allowed["default-src"]
    assert "data:" not in allowed["script-src"]


@pytest.mark.parametrize(
    ("load", "refused"),
    [
        ("const script = document.createElement('script')", "script-src-elem"),
        ("fetch('https://example.org/x').catch(() => 0)", "connect-src"),
        ("new Image().src = 'https://example.org/x.png'", "img-src"),
        ("setTimeout('window.done = 1')", "script-src"),
    ],
)  # fmt: skip
def test_the_browser_holds_a_page_to_what_it_says(site: Path, browser: Any, load: str, refused: str):
    page = browser.new_page()
    page.goto((site / f"{pages()[0]}.html").as_uri())
    seen = page.evaluate(
        f"""() => new Promise(resolve => {{
            document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective));
            {load};
            if (typeof script === "object") {{ script.src = "https://example.org/x.js"; document.head.append(script) }}
            setTimeout(() => resolve("nothing"), 3000);
        }})"""
    )
    page.close()
    assert seen == refused


def test_the_preview_has_the_size_that_others_ask_for():
    data = (ROOT / "book" / "site" / "static" / "preview.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1200, 630)
    assert len(data) < 100_000


@pytest.mark.parametrize("name", WRITTEN)
def test_a_chapter_says_how_long_it_takes(site: Path, name: str):
    page = read(site, name)
    notebook = nbformat.read(ROOT / f"{name}.ipynb", as_version=4)
    (facts,) = re.findall(r'<div class="course-facts[^>]*>\s*<p>(.*?)</p>', page, re.DOTALL)
    assert facts.startswith(f"{reading_time.minutes(notebook)} min")
    idea = notebook.metadata.course.idea.replace("'", "’")
    assert f'<p class="course-idea">{idea}</p>' in page
    source = re.search(r'href="([^"]*)" download>Jupyter', facts)
    assert (site / "book" / source[1]).resolve().read_bytes() == (ROOT / f"{name}.ipynb").read_bytes()
    solution = ROOT / "solutions" / Path(name).with_suffix(".ipynb").name
    if solution.exists():
        exercises = reading_time.exercises(nbformat.read(solution, as_version=4))
        (target,) = set(re.findall(r'download="" href="\.\./([^"]*)"', page))
        assert (site / target).read_bytes() == (ROOT / "exercises" / solution.name).read_bytes()
        assert f">{len(exercises)} exercises</a>" in re.sub(r"</?span[^>]*>", "", facts)
        end = page[page.index('id="course-exercises"') :]
        for one in exercises:
            assert f"(difficulty {one.difficulty}, {one.minutes} min)" in end


@pytest.mark.parametrize("path", sorted((ROOT / "solutions").glob("*.ipynb")), ids=lambda path: path.stem)
def test_each_exercise_is_counted(path: Path):
    notebook = nbformat.read(path, as_version=4)
    headings = [
        line
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.split("\n")
        if re.match(r"## \d", line)
    ]
    assert len(reading_time.exercises(notebook)) == len(headings) > 0


def test_a_chapter_names_the_next(site: Path):
    listed = [chapter for chapter in CHAPTERS if chapter.page in pages()]
    assert len(listed) == len(CHAPTERS)
    for chapter, following in itertools.pairwise(listed):
        footer = read(site, chapter.page).partition('class="prev-next-footer')[2]
        title = re.search(
            rf'href="{following.name}\.html"[^>]*>.*?<p class="prev-next-title">(.*?)</p>', footer, re.DOTALL
        )
        assert html.unescape(re.sub("<[^>]*>", "", title[1])) == following.heading.replace("'", "’")


# --- In a browser ------------------------------------------------------------------------------------------


def search(visit: Any, query: str) -> list[tuple[str, str, str]]:
    """The results of a search: address, title, excerpt."""
    found = visit("search", f"?q={query}")
    found.page.wait_for_selector("#search-results .search-summary")
    results = found.page.eval_on_selector_all(
        "#search-results li",
        "e => e.map(l => [l.querySelector('a').getAttribute('href'), l.querySelector('a').textContent,"
        " l.querySelector('p').textContent])",
    )
    assert found.errors == []
    assert found.requests == []
    found.page.close()
    return [tuple(result) for result in results]


def test_the_very_words_of_a_heading_come_first_and_the_appendix_later(visit: Any, site: Path):
    assert "why-divide" in search(visit, "why divide")[0][0]
    places = [address.partition("#")[0].rsplit("/", 1)[-1] for address, *_ in search(visit, "layernorm")]
    assert places[0] == "add_norm.html"
    assert "errata.html" in places


def test_the_search_finds_sections_and_shows_why(visit: Any, site: Path):
    results = search(visit, "broadcasting")
    assert any("#" in address for address, _, _ in results), "sections, not pages alone"
    assert all("broadcast" in (title + excerpt).lower() for _, title, excerpt in results)
    for address, _, _ in results:
        page, _, anchor = address.partition("#")
        assert (site / page).exists()
        assert not anchor or f'id="{anchor}"' in (site / page).read_text(encoding="utf-8")
    assert len({address for address, _, _ in results}) == len(results)


def test_the_magnifying_glass_stands_beside_the_text(visit: Any):
    page = visit("search", "?q=padding").page
    text = page.locator(".bd-main #search-input").evaluate(
        "box => box.getBoundingClientRect().left + parseFloat(getComputedStyle(box).paddingLeft)"
    )
    glass = page.locator(".bd-main .bd-search .fa-magnifying-glass").bounding_box()
    assert glass["x"] + glass["width"] <= text
    page.close()


def test_the_search_knows_formulas_and_the_glossary_once(visit: Any):
    assert any("One attention head" in title for _, title, _ in search(visit, "√d_k"))
    assert sum(title.startswith("Glossary") for _, title, _ in search(visit, "roofline")) == 1
    assert search(visit, "zyzzyva") == []
