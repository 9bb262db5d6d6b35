"""The figures that answer: their HTML holds together, says in words what it shows, and cannot be broken by a text."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from bert_course.common.widgets import Frame, attention_map, bars, player, svg
from html_elements import Page

pytestmark = pytest.mark.no_arrays

NASTY = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '" onmouseover="alert(1)',
    "it's <b>bold</b> & \\ more\n",
    "ALT HELP HEAD ROWS SCRIPT TEXT LABEL FIRST LAST STILL FRAMES",
    r"\1 \g<0>",
    "\u2028",
    "$FIRST ${TEXT}",
]


def tags(page):
    return [tag for tag, _, _ in page.elements]


def frames_in(page):
    """What the script of a player holds, read as JSON."""
    script = page.one("script")[1]
    return json.JSONDecoder().raw_decode(script, script.index("frames = ") + len("frames = "))[0]


def three_frames():
    return [
        Frame(f"d = {d}", svg(10, 10, [f'<rect width="{d}"/>']), f"The bar is {d} wide.") for d in (1, 2, 4)
    ]


# --- Player ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", NASTY)
def test_no_text_breaks_a_player(text):
    plain = Page(player([Frame("a", svg(1, 1, []), "b")] * 2, "c", "d")._repr_html_())
    page = Page(player([Frame(text, svg(1, 1, []), text)] * 2, text, text, first=0)._repr_html_())
    assert tags(page) == tags(plain)
    assert frames_in(page)[1] == {"title": text, "svg": svg(1, 1, []), "text": text}
    frames = page.one("script")[1].partition("frames = ")[2].partition("\n")[0]
    assert not re.search("</|<!|<script", frames)
    assert page.one("div", class_="stage")[0]["aria-label"] == text
    assert page.one("input")[0] | {"aria-label": text} == page.one("input")[0]
    assert page.one("strong")[1] == text
    assert page.one("div", class_="text")[1] == f" {text}"


@pytest.mark.parametrize("first", [-1, 3, 100])
def test_a_player_starts_with_a_frame_that_there_is(first):
    with pytest.raises(ValueError, match=rf"first must be within 0 … 2, got {first}"):
        player(three_frames(), "a", "b", first=first)


def test_a_player_needs_a_frame():
    with pytest.raises(ValueError, match="at least one frame"):
        player([], "a", "b")


# --- Attention map ---------------------------------------------------------------------------------------

TOKENS = ["[CLS]", "a", "bank"]


@pytest.mark.parametrize("text", NASTY)
def test_no_text_breaks_a_map(text):
    plain = Page(attention_map(["a", "b"], np.eye(2), "c")._repr_html_())
    page = Page(attention_map([text, text], np.eye(2), text)._repr_html_())
    assert tags(page) == tags(plain)
    assert page.one("script") == plain.one("script")
    assert page.one("table")[0]["aria-label"] == text
    assert [name for _, name in page.all("th", scope="col")] == [text, text]
    assert page.all("th", scope="row")[0][0]["data-to"] == text
    assert page.all("td", role="gridcell")[0][0]["aria-label"] == f"{text} to {text}: 1.00"


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2), (2, 2), (1, 3, 3), ()])
def test_a_map_needs_a_row_and_a_column_for_each_token(shape):
    with pytest.raises(
        ValueError, match=r"3 tokens need weights of shape \(3, 3\), got \(" + ", ".join(map(str, shape))
    ):
        attention_map(TOKENS, np.zeros(shape), "alt")


# --- Pictures --------------------------------------------------------------------------------------------


def drawn(text):
    """An SVG's elements by tag, without the name space."""
    root = ElementTree.fromstring(text)
    found: dict[str, list[ElementTree.Element]] = {}
    for element in root.iter():
        found.setdefault(element.tag.partition("}")[2], []).append(element)
    return found


def test_bars_name_their_panels_and_axes():
    texts = [
        text.text for text in drawn(bars({"plain": [1], "scaled & <more>": [1]}, 2, ("a<b", "h&w")))["text"]
    ]
    assert texts == ["plain", "0", "1", "2", "scaled & <more>", "0", "1", "2", "a<b; height: h&w"]


@pytest.mark.parametrize(
    ("series", "top"),
    [({}, 1), ({"a": []}, 1), ({"a": [1], "b": []}, 1), ({"a": [1]}, 0), ({"a": [-0.1, 1]}, 1)],
)
def test_bars_that_cannot_be_drawn(series, top):
    with pytest.raises(ValueError, match="bars need"):
        bars(series, top, ("x", "y"))


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], []])
def test_an_order_names_each_bar_once(order):
    with pytest.raises(ValueError, match=r"order must name each of the 3 values of 'a' once, got \["):
        bars({"a": [1, 2, 3]}, 3, ("x", "y"), order=order)
