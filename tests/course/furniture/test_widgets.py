"""The figures that answer: their HTML holds together, says in words what it shows, and cannot be broken by a text."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
from html_elements import Page

from minigrad.course.furniture.palette import STYLE
from minigrad.course.furniture.widgets import BLUE, RED, Frame, attention_map, bars, player, svg

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


def test_a_player_names_its_parts():
    page = Page(player(three_frames(), "width", "A bar that grows", first=1)._repr_html_())
    slider, _ = page.one("input")
    assert slider == {"type": "range", "min": "0", "max": "2", "value": "1", "aria-label": "width"}
    assert [button["aria-label"] for button, _ in page.all("button")] == ["play", "back", "on"]
    assert all(button["type"] == "button" for button, _ in page.all("button"))  # not one that sends a form
    assert page.one("div", class_="stage")[0] == {
        "class": "stage",
        "role": "img",
        "aria-label": "A bar that grows",
        "style": "aspect-ratio: 100 / 100.0; max-width: 24.0rem",
    }
    assert page.one("div", class_="text") == ({"class": "text", "aria-live": "polite"}, " The bar is 2 wide.")
    assert page.one("strong")[1] == "d = 2"


def test_a_player_has_room_for_its_tallest_frame():
    frames = [Frame("a", svg(300, height, []), "b") for height in (10, 100, 50)]
    stage, _ = Page(player(frames, "width", "A bar")._repr_html_()).one("div", class_="stage")
    assert stage["style"] == "aspect-ratio: 100 / 33.4; max-width: 71.9rem"


def test_a_player_rests_on_its_last_frame():
    page = Page(player(three_frames(), "width", "A bar")._repr_html_())
    assert page.one("input")[0]["value"] == "2"
    assert page.one("rect")[0]["width"] == "4"


def test_a_player_has_no_ids_so_that_a_page_can_hold_two():
    for widget in (player(three_frames(), "a", "b"), attention_map(["a"], np.eye(1), "b")):
        assert not [own for _, own, _ in Page(widget._repr_html_()).elements if "id" in own]


def test_a_player_without_its_script_is_a_still_picture():
    page = Page(player(three_frames(), "width", "A bar", first=2)._repr_html_())
    assert "hidden" in page.one("div", class_="controls")[0]
    assert page.one("rect")[0]["width"] == "4"
    assert page.one("strong")[1] == "d = 4"
    assert page.one("div", class_="text")[1] == " The bar is 4 wide."


def test_widgets_bring_the_courses_colours():
    for widget in (player(three_frames(), "a", "b"), attention_map(["a"], np.eye(1), "b")):
        assert STYLE in widget._repr_html_()
        assert "course-colours" in Page(widget._repr_html_()).elements[0][1]["class"].split()


def test_a_players_script_holds_every_frame():
    frames = three_frames()
    page = Page(player(frames, "width", "A bar", first=1)._repr_html_())
    held = [{"title": one.title, "svg": one.svg, "text": one.text} for one in frames]
    held[1]["svg"] = ""  # is there already
    assert frames_in(page) == held
    assert "frames[1].svg = stage.innerHTML;" in page.one("script")[1]
    assert "show(1);" in page.one("script")[1]


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


def test_a_player_as_text():
    assert repr(player(three_frames(), "width", "A bar that grows")).splitlines() == [
        "A bar that grows (width)",
        "d = 1: The bar is 1 wide.",
        "d = 2: The bar is 2 wide.",
        "d = 4: The bar is 4 wide.",
    ]


# --- Attention map ---------------------------------------------------------------------------------------

TOKENS = ["[CLS]", "a", "bank"]
WEIGHTS = np.array([[0.12345, 0.6, 0.27655], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.001, 0.999]])


def test_a_map_is_a_grid_that_can_be_walked_with_the_keys():
    page = Page(attention_map(TOKENS, WEIGHTS, "Who looks at whom")._repr_html_())
    assert page.one("table")[0] == {"role": "grid", "aria-label": "Who looks at whom"}
    assert page.one("div", **{"class": "text"})[0]["aria-live"] == "polite"
    assert [text for _, text in page.all("th", scope="col")] == TOKENS
    assert [text for _, text in page.all("th", scope="row")] == TOKENS
    cells = [own for own, _ in page.all("td", role="gridcell")]
    assert [cell["tabindex"] for cell in cells] == ["0"] + ["-1"] * 8  # one stop for the tab key


def test_a_maps_cells_say_what_they_are():
    page = Page(attention_map(TOKENS, WEIGHTS, "alt")._repr_html_())
    cells = [own for own, _ in page.all("td", role="gridcell")]
    weights = " ".join(cell["data-weight"] for cell in cells)
    assert weights == "0.12 0.60 0.28 0.33 0.33 0.33 0.00 0.00 1.00"
    assert cells[1]["aria-label"] == "[CLS] to a: 0.60"
    assert cells[3]["aria-label"] == "a to [CLS]: 0.33"
    assert cells[1]["style"] == "--share: 60%"
    rows = [own for own, _ in page.all("th", scope="row")]
    assert [(row["data-most"], row["data-to"]) for row in rows] == [
        ("0.60", "a"),
        ("0.33", "[CLS]"),
        ("1.00", "bank"),
    ]


def test_numbers_are_rounded():
    """Stored outputs are compared: the last digits of a float differ between machines."""
    frame = Frame("a", bars({"a": [1 / 3, 2 / 7]}, 1, ("x", "y")), "b")
    for widget in (attention_map(TOKENS, WEIGHTS, "alt"), player([frame], "a", "b")):
        text = widget._repr_html_() + repr(widget) + frame.svg
        assert re.findall(r"\d+\.\d{3,}", text) == []


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


def test_a_map_as_text():
    assert repr(attention_map(TOKENS, WEIGHTS, "Who looks at whom")).splitlines() == [
        "Who looks at whom",
        "[CLS]: 0.12 0.60 0.28",
        "    a: 0.33 0.33 0.33",
        " bank: 0.00 0.00 1.00",
    ]


def test_a_large_map_as_text_is_whole():
    n = 64
    lines = repr(attention_map(["x"] * n, np.full((n, n), 1 / n), "alt")).splitlines()
    assert len(lines) == n + 1
    assert all(line.count("0.02") == n for line in lines[1:])


# --- Pictures --------------------------------------------------------------------------------------------


def drawn(text):
    """An SVG's elements by tag, without the name space."""
    root = ElementTree.fromstring(text)
    found: dict[str, list[ElementTree.Element]] = {}
    for element in root.iter():
        found.setdefault(element.tag.partition("}")[2], []).append(element)
    return found


def test_bars_are_as_high_as_their_values():
    parts = drawn(bars({"plain": [0, 1, 2], "scaled & more": [1, 1, 4]}, 2, ("keys", "weight")))
    heights = [float(bar.get("height")) for bar in parts["rect"]]
    assert heights == [0, 65, 130, 65, 65, 130]  # what is above the top is cut
    assert [bar.get("fill") for bar in parts["rect"]] == [BLUE] * 3 + [RED] * 3
    feet = {float(bar.get("y")) + float(bar.get("height")) for bar in parts["rect"][:3]}
    assert len(feet) == 1
    assert feet == {float(line.get("y1")) for line in parts["line"][:1]}  # they stand on the line of 0
    left = [float(bar.get("x")) for bar in parts["rect"]]
    assert left[:3] == left[3:] == sorted(left[:3])


def test_bars_name_their_panels_and_axes():
    texts = [
        text.text for text in drawn(bars({"plain": [1], "scaled & <more>": [1]}, 2, ("a<b", "h&w")))["text"]
    ]
    assert texts == ["plain", "0", "1", "2", "scaled & <more>", "0", "1", "2", "a<b; height: h&w"]


def test_bars_lie_inside_of_the_picture():
    parts = drawn(bars({"a": [1, 2], "b": [2, 1], "c": [0, 0]}, 2, ("x", "y")))
    width, height = map(float, parts["svg"][0].get("viewBox").split()[2:])
    for bar in parts["rect"]:
        assert 0 <= float(bar.get("x")) <= float(bar.get("x")) + float(bar.get("width")) <= width
    for text in parts["text"]:
        assert 0 < float(text.get("y")) < height
    below = [float(line.get("y1")) for line in parts["line"]]
    assert len(set(below)) == 9  # no panel on another


@pytest.mark.parametrize(
    ("series", "top"),
    [({}, 1), ({"a": []}, 1), ({"a": [1], "b": []}, 1), ({"a": [1]}, 0), ({"a": [-0.1, 1]}, 1)],
)
def test_bars_that_cannot_be_drawn(series, top):
    with pytest.raises(ValueError, match="bars need"):
        bars(series, top, ("x", "y"))


def test_bars_keep_an_order_in_which_they_can_be_followed():
    given = drawn(bars({"a": [1, 2, 3], "b": [3, 1, 2]}, 3, ("x", "y"), order=np.array([2, 0, 1])))
    moved = drawn(bars({"a": [3, 1, 2], "b": [2, 3, 1]}, 3, ("x", "y")))
    assert [bar.attrib for bar in given["rect"]] == [bar.attrib for bar in moved["rect"]]


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], []])
def test_an_order_names_each_bar_once(order):
    with pytest.raises(ValueError, match=r"order must name each of the 3 values of 'a' once, got \["):
        bars({"a": [1, 2, 3]}, 3, ("x", "y"), order=order)


@pytest.mark.parametrize("make", [lambda: svg(3, 4, []), lambda: bars({"a": [1]}, 1, ("x", "y"))])
def test_a_picture_scales_with_the_page(make):
    root = drawn(make())["svg"][0]
    assert root.get("viewBox").startswith("0 0 ")
    assert root.get("width") is None


@pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js to read the scripts")
def test_the_scripts_are_javascript(tmp_path):
    for number, widget in enumerate(
        [player(three_frames(), "a", "b"), attention_map(TOKENS, WEIGHTS, "alt")]
    ):
        path = tmp_path / f"{number}.js"
        path.write_text(Page(widget._repr_html_()).one("script")[1])
        done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
