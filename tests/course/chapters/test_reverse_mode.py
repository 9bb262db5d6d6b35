"""The pictures of chapter `reverse_mode`, what it reads from the library's graph, and the table of every operation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from minigrad import ops
from minigrad.course.chapters.reverse_mode import (
    every_operation,
    play_backward,
)

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


def test_an_input_without_a_name_is_told():
    values = example()
    del values["t"]
    with pytest.raises(ValueError, match="an input of e has no name: give all of x, w"):
        play_backward(values)


# --- The spirals -----------------------------------------------------------------------------------------


# --- What the library's graph holds ----------------------------------------------------------------------


# --- Slopes by trying ------------------------------------------------------------------------------------


# --- Every operation -------------------------------------------------------------------------------------


def test_every_operation_is_there():
    assert set(every_operation(np.random.default_rng(0))) == set(ops.__all__) - {"composed", "fused"}
