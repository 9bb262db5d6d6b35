"""What pictures are drawn with: well-formed SVG in the palette's colours, whatever the words are."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bert_course.common.palette import colour
from bert_course.common.pencil import box, words

pytestmark = pytest.mark.no_arrays


def test_words_are_text_and_stand_where_they_should():
    drawn = ElementTree.fromstring(words(1.25, 2, 'a < "b"', 12, "query", "end", font_weight="bold"))
    assert (drawn.tag, drawn.text) == ("text", 'a < "b"')
    place = {"x": "1.2", "y": "2.0", "font-size": "12", "text-anchor": "end", "font-weight": "bold"}
    assert drawn.attrib == {**place, "fill": colour("query")}


@pytest.mark.parametrize("draw", [words, box])
def test_a_tone_that_there_is_not_is_refused(draw):
    with pytest.raises(ValueError, match="no colour 'mauve'"):
        draw(0, 0, *(("a",) if draw is words else (1, 1)), tone="mauve")
