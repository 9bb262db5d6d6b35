"""A graph played forward and backward, and the table of every operation."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np

from minigrad import check_grad, ops
from minigrad.course.chapters.reverse_mode import Step, every_operation, play

STEPS = [Step("a", "", (), (0, 0)), Step("b", "", (), (1, 0)), Step("p", "a b", ("a", "b"), (0.5, 1))]
VALUES = {"a": 2.0, "b": -3.0, "p": -6.0}
BACK = [("p", {"p": 1.0, "a": -3.0, "b": 2.0}, "Each gets the other.")]


def texts(svg: str) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")
    ]


def test_values_appear_one_by_one_and_then_gradients():
    frames = play(STEPS, VALUES, BACK)
    assert [frame.title for frame in frames] == ["Forward, a", "Forward, b", "Forward, p", "Backward, p"]
    assert frames[0].text == "given: 2"
    assert frames[2].text == "p = a b = -6"
    assert frames[3].text == "Each gets the other."
    assert texts(frames[0].svg) == ["a", "2", "b", "p = a b"]
    assert texts(frames[2].svg) == ["a", "2", "b", "-3", "p = a b", "-6"]
    assert texts(frames[3].svg) == ["a", "2", "grad -3", "b", "-3", "grad 2", "p = a b", "-6", "grad 1"]


def test_an_edge_for_each_use():
    (svg,) = (
        frame.svg
        for frame in play([*STEPS[:1], Step("s", "a a", ("a", "a"), (0, 1))], {"a": 1, "s": 1}, [])[1:]
    )
    assert svg.count("<line") == 2


def test_markup_in_a_formula_is_text():
    frame = play([Step("x", "", (), (0, 0)), Step("y", "x < 1 & 2", ("x",), (0, 1))], {"x": 1, "y": 1}, [])[1]
    assert "y = x < 1 & 2" in texts(frame.svg)


def test_every_operation_is_there():
    assert set(every_operation(np.random.default_rng(0))) == set(ops.__all__) - {"composed", "fused"}


def test_each_call_passes_the_check():
    for seed in (1, 2):
        for name, (function, inputs) in every_operation(np.random.default_rng(seed)).items():
            assert check_grad(function, *inputs) < 1e-7, name
