"""Slides: idea, pictures, players and predictions of a page, in order; keys lead through them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

bs4 = pytest.importorskip("bs4", reason="BeautifulSoup is not installed (it comes with jupyter-book)")
from book.make import slides  # noqa: E402

pytestmark = pytest.mark.no_arrays

CELL = (
    '<div class="cell"><details><summary>code</summary>x</details>{}<div class="cell_output">{}</div></div>'
)
ASKED = (
    '<div class="course-prediction" data-right="1" hidden><button>yes</button><button>a &lt; b</button></div>'
)
PAGE = f"""<html><head><link rel="stylesheet" href="../_static/a.css"><script src="../_static/bundle.js"></script>
</head><body><article><section><h1>9. One<a class="headerlink">#</a></h1>
<p class="course-idea">The <a href="#a">idea</a>. <a href="two.html#b">2</a></p>
<p>Words.</p>
{CELL.format("", "<svg><title>first</title></svg>")}
<section><h2>Two<a class="headerlink">#</a></h2>{CELL.format("", "printed")}
<p><strong>Predict:</strong> which?</p>{CELL.format(ASKED, "<pre>the answer</pre>")}
{CELL.format("", '<div class="course-player">frames</div>')}</section>
<section><h2>What you can now say</h2><ul><li>This.</li></ul></section></section></article></body></html>"""


def shown(page: str = PAGE) -> list[str]:
    """The words of each slide."""
    found = bs4.BeautifulSoup(slides.deck(page, "one.html"), "lxml").select("section.slide")
    return [" ".join(one.get_text(" ").split()) for one in found]


def test_what_is_shown_in_order():
    assert shown() == [
        "9. One The idea . 2",
        "first",
        "Two Predict: which? yes a < b",
        "Two b) a < b the answer",
        "Two frames",
        "What you can now say This.",
    ]


def test_it_has_the_page_s_styles_and_none_of_its_scripts():
    deck = slides.deck(PAGE, "one.html")
    assert '<link href="../_static/a.css"' in deck
    assert "bundle.js" not in deck
    assert 'href="../book/one.html#a"' in deck
    assert 'href="../book/two.html#b"' in deck
    assert "<h2></h2>" not in deck


def test_what_is_no_page_of_the_site_is_an_error():
    with pytest.raises(ValueError, match="has not"):
        slides.deck("<p>words</p>", "one.html")


def test_an_unknown_chapter_is_named(capsys: pytest.CaptureFixture[str]):
    assert slides.main(["site", "one_head", "two_heads"]) == 2
    assert "there is no chapter two_heads" in capsys.readouterr().err


def test_one_deck_more_leaves_the_others_in_the_list(tmp_path: Path):
    (tmp_path / "book").mkdir()
    for name in ("start", "arrays"):
        (tmp_path / "book" / f"{name}.html").write_text(PAGE, encoding="utf-8")
        slides.make(tmp_path, [name])
    index = (tmp_path / "slides" / "index.html").read_text(encoding="utf-8")
    assert index.index('href="start.html"') < index.index('href="arrays.html"')


def test_keys_lead_through_the_slides(browser: Any, small_site: Path, tmp_path: Path):
    (path,) = slides.make(Path(shutil.copytree(small_site, tmp_path / "site")), ["arrays"])
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    page.goto(path.as_uri())
    count = page.locator(".slide").count()
    assert count > 1
    at = "[...document.querySelectorAll('.slide')].findIndex((one) => one.getBoundingClientRect().bottom > 5)"
    assert page.evaluate(at) == 0
    for key, place in (("ArrowRight", 1), ("PageUp", 0), ("ArrowLeft", 0), (" ", 1)):
        page.keyboard.press(key)
        assert page.evaluate(at) == place
    page.close()
