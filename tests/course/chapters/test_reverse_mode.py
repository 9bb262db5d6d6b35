"""The pictures of chapter `reverse_mode`, what it reads from the library's graph, and the table of every operation."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from minigrad import Tensor, backend, check_grad, ops
from minigrad.course.chapters.reverse_mode import (
    LAYOUT,
    by_trying,
    every_operation,
    forward_picture,
    jacobian,
    nodes_of_bert,
    play_backward,
    regions,
    saved_by,
    spirals,
)

VALUES = {"x": 2.0, "w": -0.5, "b": 1.5, "t": 1.0, "p": -1.0, "s": 0.5, "y": 0.46, "e": -0.54, "loss": 0.29}


def texts(svg: str) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")
    ]


# --- The graph -------------------------------------------------------------------------------------------


class Recorded:
    """A value as the page's engine makes it."""

    numbers = itertools.count()

    def __init__(self, value, inputs=(), slopes=()):
        self.value, self.inputs, self.number = np.asarray(value, float), inputs, next(self.numbers)
        self.rule = (lambda dy: [dy * slope for slope in slopes]) if inputs else None
        self.grad = np.zeros(())


def example() -> dict[str, Recorded]:
    """(tanh(w x + b) - t)² at the page's numbers, as a graph."""
    x, w, b, t = (Recorded(number) for number in (2.0, -0.5, 1.5, 1.0))
    p = Recorded(-1.0, (w, x), (2.0, -0.5))
    s = Recorded(0.5, (p, b), (1.0, 1.0))
    y = Recorded(math.tanh(0.5), (s,), (1 - math.tanh(0.5) ** 2,))
    e = Recorded(y.value - 1.0, (y, t), (1.0, -1.0))
    loss = Recorded(e.value**2, (e, e), (e.value, e.value))
    return {"x": x, "w": w, "b": b, "t": t, "p": p, "s": s, "y": y, "e": e, "loss": loss}


def test_each_value_has_a_box_with_its_number():
    shown = texts(forward_picture(VALUES).svg)
    for name, value in VALUES.items():
        assert shown[shown.index(name) + 2] == f"{value:g}"
    assert "gradient" not in shown


def test_the_walk_is_played_from_the_loss_to_the_leaves():
    frames = play_backward(example())
    assert [frame.title for frame in frames] == [
        "After the forward pass",
        *(f"Visit {name}" for name in ("loss", "e", "y", "s", "p")),
    ]
    first, last = texts(frames[0].svg), texts(frames[-1].svg)
    slopes = ("2", "-0.5", "0.79", "-1", "-0.54")
    assert all(slope in first for slope in slopes)
    for name, gradient in (("w", "-1.69"), ("x", "0.42"), ("b", "-0.85"), ("t", "1.08"), ("loss", "1")):
        place = last.index(name)
        assert last[place + 3] == gradient, name
        assert first[place + 3 :] != last[place + 3 :]
    assert frames[1].text.endswith("The two are added: -1.08.")


def test_what_is_used_twice_has_two_arrows():
    drawing = play_backward(example())[0].svg
    assert drawing.count("<polygon") == 9  # e e counts two
    assert texts(drawing).count("-0.54") == 3  # the value of e, and a slope on each of the arrows


def test_arrows_of_the_visited_value_alone_point_back():
    gradient = "var(--course-gradient"
    heads = play_backward(example())[4].svg.split("<polygon")[1:]  # s: made of two, used once
    assert sum(gradient in head.split("/>")[0] for head in heads) == 2  # to p and b


def test_an_input_without_a_name_is_told():
    values = example()
    del values["t"]
    with pytest.raises(ValueError, match="an input of e has no name: give all of x, w"):
        play_backward(values)


def test_boxes_do_not_overlap():
    places = [(column, row) for _, column, row in LAYOUT.values()]
    for (column, row), (other_column, other_row) in itertools.combinations(places, 2):
        assert column != other_column or abs(row - other_row) >= 1


# --- The spirals -----------------------------------------------------------------------------------------


def test_spirals_have_as_many_points_in_each_arm():
    points, arms = spirals(seed=3, n=7)
    assert points.shape == (21, 2)
    assert np.bincount(arms).tolist() == [7, 7, 7]
    assert np.abs(points).max() <= 1
    again, _ = spirals(seed=3, n=7)
    np.testing.assert_array_equal(points, again)
    assert (spirals(seed=4, n=7)[0] != points).any()


def test_each_place_is_filled_in_the_colour_of_its_guess():
    """The left half is arm 0, the upper right quarter arm 1."""

    def guess(points):
        return np.where(points[:, 0] < 0, 0, np.where(points[:, 1] > 0, 1, 2))

    frame = regions(guess, np.array([[0.0, 1.25]]), np.array([1]), 30, "Words.")
    assert (frame.title, frame.text) == ("Step 30", "Words.")
    paths = [path.get("d") for path in ElementTree.fromstring(frame.svg).iter() if path.tag.endswith("path")]
    left, upper, lower = paths[:3]
    assert left.startswith("M0 0h148")
    assert left.count("M") == 75
    assert upper.startswith("M148 0h152")
    assert upper.count("M") + lower.count("M") == 75
    assert "M150 0l" in paths[5]  # the point in the middle of the upper edge, as the second arm's mark


# --- What the library's graph holds ----------------------------------------------------------------------


def test_what_rules_hold_on_to_is_listed_once():
    u = Tensor(np.ones((4, 8)), requires_grad=True)
    assert [(op, name, array.shape) for op, name, array in saved_by(u.tanh())] == [("tanh", "y", (4, 8))]
    assert saved_by(u + u) == []
    assert len(saved_by(u * u)) == 1  # both factors are one array
    assert [op for op, _, _ in saved_by(u.exp().tanh())] == ["exp", "tanh"]


def test_nodes_grow_by_as_many_with_each_layer():
    one, two, three = (nodes_of_bert(layers) for layers in (1, 2, 3))
    assert three - two == two - one > 10


# --- Slopes by trying ------------------------------------------------------------------------------------


def test_a_jacobian_has_a_row_for_each_output():
    matrix = np.random.default_rng(0).standard_normal((5, 3))
    found = jacobian(lambda x: matrix @ x, np.ones(3))
    np.testing.assert_allclose(found, matrix, atol=1e-8)
    squares = jacobian(lambda x: x**2, np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(squares, np.diag([2.0, 4.0, 6.0, 8.0]), atol=1e-8)


def test_a_slope_by_trying_leaves_the_parameter_as_it_was():
    p = Tensor(np.array([[0.1, 0.7]]), requires_grad=True, dtype=np.float64)
    before = p.numpy().copy()
    assert by_trying(lambda: (p * p).sum(), p, (0, 1)) == pytest.approx(1.4)
    np.testing.assert_array_equal(backend.to_numpy(p.data), before)


# --- Every operation -------------------------------------------------------------------------------------


def test_every_operation_is_there():
    assert set(every_operation(np.random.default_rng(0))) == set(ops.__all__) - {"composed", "fused"}


def test_each_call_passes_the_check():
    for seed in (1, 2):
        for name, (function, inputs) in every_operation(np.random.default_rng(seed)).items():
            assert check_grad(function, *inputs) < 1e-7, name
