"""The pictures of chapter `arrays` show the numbers that are there, where they are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from minigrad.course.chapters.arrays import ROWS, broadcast_frames, memory_walk, token_to_heads
from minigrad.course.furniture.figures import Picture

pytestmark = pytest.mark.no_arrays


def drawn(picture: str) -> ET.Element:
    """An SVG as a tree, without its name space."""
    return ET.fromstring(re.sub(r' xmlns="[^"]*"', "", picture))


def texts(picture: str) -> list[str]:
    return [text.text or "" for text in drawn(picture).iter("text")]


def test_a_memory_walk_visits_the_places_in_reading_order():
    view = np.arange(6).reshape(2, 3).T
    bars = [bar for bar in drawn(memory_walk(view, 6)).iter("rect") if bar.get("stroke") is None]
    assert np.argsort([float(bar.get("x")) for bar in bars]).tolist() == np.argsort(view.ravel()).tolist()
    down = [float(bar.get("y")) for bar in bars]
    assert down == sorted(set(down))
    assert [ROWS.index(bar.get("fill")) for bar in bars] == [0, 0, 1, 1, 0, 0]


def test_a_memory_walk_has_the_view_as_a_grid():
    view = np.arange(8).reshape(2, 2, 2).transpose(1, 0, 2)
    found = texts(memory_walk(view, 8, ("one", "two & three")))
    assert found[:3] == ["the view", "one", "two & three"]
    assert found[3:11] == list("01234567")
    assert found[11:19] == [str(n) for n in view.ravel()]
    assert found[19:] == ["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]


X = np.array([[1, 2, 0, 4], [3, 5, 1, 0]])
W = np.array([[1, 7, 0, 2], [0, 1, 1, 0], [2, 0, 3, 1], [1, 0, 0, 6]])


def test_token_to_heads_has_the_product_and_its_columns():
    picture = token_to_heads(X, W, 2, ("a", "b"), token=1, column=2)
    assert isinstance(picture, Picture)
    numbers = [int(text) for text in texts(picture.svg) if text.isdigit()]
    Q = X @ W
    assert numbers == [n for part in (X, W, Q, Q[:, :2], Q[:, 2:]) for n in part.ravel()]
    assert f"{Q[1, 2]} of Q, in row b" in picture.alt
    assert sum(box.get("stroke-width") == "3" for box in drawn(picture.svg).iter("rect")) == 4


def test_token_to_heads_needs_heads_that_fit():
    with pytest.raises(ValueError, match="3 heads do not divide 4 columns"):
        token_to_heads(X, W, 3, ("a", "b"), 0, 0)


COLUMN, ROW, DY = np.array([[10], [20]]), np.array([1, 2, 3]), np.array([[1, 0, 2], [4, 3, 0]])


def test_broadcast_frames_go_there_and_back():
    pictures = [frame.svg for frame in broadcast_frames(COLUMN, ROW, DY)]
    numbers = [[int(text) for text in texts(picture) if text.isdigit()] for picture in pictures]
    assert numbers == [
        [10, 20, 1, 2, 3],
        [10, 10, 10, 20, 20, 20, 1, 2, 3, 1, 2, 3],
        [11, 12, 13, 21, 22, 23],
        [1, 0, 2, 4, 3, 0],
        [1, 0, 2, 4, 3, 0, 3, 7, 5, 3, 2],
    ]


def test_broadcast_frames_draw_one_full_box_for_each_memory_cell():
    boxes = list(drawn(broadcast_frames(COLUMN, ROW, DY)[1].svg).iter("rect"))
    assert sum(box.get("fill") != "none" for box in boxes) == COLUMN.size + ROW.size


def test_broadcast_frames_need_shapes_that_fit():
    with pytest.raises(
        ValueError, match=r"dy of shape \(2, 3\) needs \(2, 1\) and \(3,\), got \(2,\) and \(3,\)"
    ):
        broadcast_frames(np.array([10, 20]), ROW, DY)
