"""What pictures are drawn with: well-formed SVG in the palette's colours, whatever the words are."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from minigrad.course.furniture.palette import colour
from minigrad.course.furniture.pencil import arrow, box, words

pytestmark = pytest.mark.no_arrays


def test_words_are_text_and_stand_where_they_should():
    drawn = ElementTree.fromstring(words(1.25, 2, 'a < "b"', 12, "query", "end", font_weight="bold"))
    assert (drawn.tag, drawn.text) == ("text", 'a < "b"')
    place = {"x": "1.2", "y": "2.0", "font-size": "12", "text-anchor": "end", "font-weight": "bold"}
    assert drawn.attrib == {**place, "fill": colour("query")}


def test_without_a_tone_the_ink_is_the_pages():
    assert ElementTree.fromstring(words(0, 0, "a")).get("fill") == "currentColor"
    assert ElementTree.fromstring(box(0, 0, 1, 1)).get("stroke") == "currentColor"


def test_a_box_is_filled_as_far_as_it_says():
    empty, filled = (ElementTree.fromstring(box(0, 1, 2, 3, "key", fill, 2.4)).attrib for fill in (0, 0.3))
    assert empty["fill"] == "none"
    assert (filled["fill"], filled["fill-opacity"]) == (colour("key"), "0.3")
    assert [filled[name] for name in ("x", "y", "width", "height", "stroke-width")] == [
        "0.0",
        "1.0",
        "2.0",
        "3.0",
        "2.4",
    ]


def test_an_arrows_tip_is_at_its_end():
    line, tip = ElementTree.fromstring(f"<g>{arrow(10, 30, 5)}</g>")
    assert line.get("d") == "M10.0 5.0H24.0"
    assert tip.get("d", "").startswith("M30.0 5.0")


@pytest.mark.parametrize("draw", [words, box])
def test_a_tone_that_there_is_not_is_refused(draw):
    with pytest.raises(ValueError, match="no colour 'mauve'"):
        draw(0, 0, *(("a",) if draw is words else (1, 1)), tone="mauve")
