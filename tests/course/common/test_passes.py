"""Passes over memory are counted as one counts them by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.common.passes import count_passes, passes_of
from minigrad import ops

pytestmark = pytest.mark.numpy_only("NumPy's operators are counted")

x = np.random.default_rng(0).standard_normal((64, 128))


def test_a_stretched_row_counts_as_the_row():
    _, backward = count_passes(lambda a: a * a.sum(axis=0, keepdims=True), x)
    # dy * sum, dy * a and its sum, and their addition, of which one is a row stretched over all
    assert backward == pytest.approx(2 + 3 + 1 + 2, abs=0.1)


def test_a_kernel_that_hands_on_its_input_counts_nothing():
    """Rounding float32 to float32, before a product."""
    w = np.random.default_rng(1).standard_normal((128, 128))
    forward, _ = count_passes(ops.fused.linear, x, w)
    assert forward * x.size == x.size + w.size + x.size  # x, w -> y


def test_the_inputs_stay_as_they_are():
    def careless(a):
        a.data *= 2
        return a.exp()

    before = x.copy()
    count_passes(careless, x)
    np.testing.assert_array_equal(x, before)


def test_a_plain_function_is_counted_in_place_and_out_of_place():
    assert passes_of(lambda a: 0.5 * a * (1 + a), x) == 2 + 2 + 3  # 0.5 a; 1 + a; their product

    def in_place(a):
        a += 1  # reads and writes
        np.multiply(a, 2, out=a)

    assert passes_of(in_place, x) == 4

    def assigned(a):
        a[:] = a + 1  # two passes for the sum, two for the copy

    assert passes_of(assigned, x) == 4


def test_a_plain_function_gets_a_copy():
    before = x.copy()
    passes_of(lambda a: np.negative(a, out=a), x)
    np.testing.assert_array_equal(x, before)
