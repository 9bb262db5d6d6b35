"""Slides: idea, pictures, players and predictions of a page, in order; keys lead through them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bert_course.common.widgets import Frame, Player

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
<p>More.</p>
<section><h2>Two<a class="headerlink">#</a></h2>{CELL.format("", "printed")}<p>Before.</p>
<p><strong>Predict:</strong> which?</p>{CELL.format(ASKED, "<pre>the answer</pre>")}
<p>Because.</p><div class="math">x = 1</div>
<div class="cell"><div class="cell_input"><div class="highlight"><pre>y = 2</pre></div></div></div>
<div class="cell"><div class="cell_input"><div class="highlight"><pre>def f():\n    return x</pre></div></div></div>
<p>Formula, code.</p>
{CELL.format("", '<div class="course-player">frames</div>')}</section>
<section><h2>What you can now say</h2><ul><li>This.</li></ul></section></section></article></body></html>"""


def parts(selector: str, page: str = PAGE) -> list[str]:
    """The words of what a selector finds in each slide."""
    found = bs4.BeautifulSoup(slides.deck(page, "one.html"), "lxml").select("section.slide")
    return [" ".join(" ".join(part.get_text(" ") for part in one.select(selector)).split()) for one in found]


def test_what_is_shown_in_order():
    assert parts("h1, h2, .shown > :not(h1)") == [
        "9. One The idea . 2",
        "9. One first",
        "Two Predict: which? yes a < b",
        "Two b) a < b the answer",
        "Two x = 1",
        "Two def f(): return x",
        "Two frames",
        "What you can now say This.",
    ]


def test_what_stands_between_two_slides_is_said_with_the_first():
    """And what leads to a section's first slide, with that."""
    assert parts(".notes") == ["", "Words. More.", "Before.", "Because.", "", "Formula, code.", "", ""]


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


AT = "[...document.querySelectorAll('.slide')].findIndex((one) => one.getBoundingClientRect().bottom > 5)"


@pytest.fixture
def shown(browser: Any, small_site: Path, tmp_path: Path) -> Iterator[Any]:
    """The deck of a small chapter, with a player of three frames, on a small screen."""
    site = Path(shutil.copytree(small_site, tmp_path / "site"))
    page = site / "book" / "arrays.html"
    frames = [
        Frame(f"<svg viewBox='0 0 90 20'><text y='9'>frame {i}</text></svg>", f"{i}", "") for i in range(3)
    ]
    cell = CELL.format("", Player(frames, "step", "x")._repr_html_())
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("</h1>", f"</h1>{cell}<p>Said.</p>", 1), encoding="utf-8")
    (path,) = slides.make(site, ["arrays"])
    opened = browser.new_page(viewport={"width": 1280, "height": 720})
    opened.goto(path.as_uri())
    yield opened
    opened.close()


def test_keys_lead_through_slides_and_a_player_s_frames(shown: Any):
    assert shown.locator(".slide").count() > 2
    assert shown.evaluate(AT) == 0
    value = "document.querySelector('.slide .controls input').value"
    steps = [(" ", 1, 0), ("ArrowRight", 1, 1), ("ArrowRight", 1, 2), ("ArrowRight", 2, 2), ("PageUp", 1, 2)]
    for key, place, frame in [*steps, ("ArrowLeft", 1, 1), ("ArrowLeft", 1, 0), ("ArrowLeft", 0, 0)]:
        shown.keyboard.press(key)
        assert (shown.evaluate(AT), int(shown.evaluate(value))) == (place, frame), key


def test_a_picture_fills_its_slide_and_nothing_is_cut(shown: Any):
    for wide, high in ((1280, 720), (1920, 1080), (1024, 768)):
        shown.set_viewport_size({"width": wide, "height": high})
        shown.wait_for_timeout(50)
        box = shown.locator(".slide .stage svg").bounding_box()
        assert box["width"] > 0.9 * wide or box["height"] > 0.6 * high
        over = """[...document.querySelectorAll('.shown')].map((one) =>
            Math.max(one.scrollHeight - one.clientHeight, one.scrollWidth - one.clientWidth))"""
        assert max(shown.evaluate(over)) < 0.02 * high


def test_the_speaker_s_window_follows(shown: Any):
    with shown.expect_popup() as found:
        shown.keyboard.press("s")
    notes = found.value
    shown.keyboard.press("ArrowRight")
    notes.get_by_text("Said.").wait_for()
    notes.keyboard.press("ArrowLeft")  # its keys are the deck's
    assert notes.get_by_text("Said.").count() == 0
    assert shown.evaluate(AT) == 0
    notes.close()
    shown.keyboard.press("ArrowRight")  # without it the deck goes on
    assert shown.evaluate(AT) == 1
