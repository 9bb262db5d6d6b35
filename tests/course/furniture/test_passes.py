"""Passes over memory are counted as one counts them by hand."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import ops
from minigrad.course.furniture.passes import count_passes, operators_of, passes_of

pytestmark = pytest.mark.numpy_only("NumPy's operators are counted")

x = np.random.default_rng(0).standard_normal((64, 128))


def test_each_operator_counts_what_it_reads_and_writes():
    assert count_passes(lambda a: a.exp(), x) == (2, 3)  # x -> y; dy, y -> dx
    assert count_passes(lambda a, b: a + b, x, x) == (3, 0)  # a, b -> y; dy is handed on


def test_a_stretched_row_counts_as_the_row():
    _, backward = count_passes(lambda a: a * a.sum(axis=0, keepdims=True), x)
    # dy * sum, dy * a and its sum, and their addition, of which one is a row stretched over all
    assert backward == pytest.approx(2 + 3 + 1 + 2, abs=0.1)


def test_a_reduction_reads_and_hardly_writes():
    forward, backward = count_passes(lambda a: a.sum(), x)
    assert forward == pytest.approx(1, abs=0.01)
    assert backward < 0.01


def test_a_kernel_counts_each_array_once():
    forward, backward = count_passes(ops.fused.softmax, x)
    assert forward == pytest.approx(2, abs=0.05)
    assert backward == pytest.approx(3, abs=0.05)


def test_what_a_kernel_writes_over_counts_twice():
    _, backward = count_passes(ops.fused.gelu, x)
    assert backward == pytest.approx(3, abs=0.05)  # slope, dy -> slope


def test_a_kernel_that_hands_on_its_input_counts_nothing():
    """Rounding float32 to float32, before a product."""
    w = np.random.default_rng(1).standard_normal((128, 128))
    forward, _ = count_passes(ops.fused.linear, x, w)
    assert forward * x.size == x.size + w.size + x.size  # x, w -> y


@pytest.mark.parametrize("name", ["softmax", "gelu", "layer_norm"])
def test_fused_operations_make_fewer_passes(name):
    arrays = (x, np.ones(128), np.zeros(128)) if name == "layer_norm" else (x,)
    composed = sum(count_passes(getattr(ops.composed, name), *arrays))
    assert sum(count_passes(getattr(ops.fused, name), *arrays)) < composed / 3


def test_a_recurrent_step_as_one_node_makes_fewer_passes():
    rng = np.random.default_rng(2)
    x_part, h, c, bias = (rng.standard_normal(shape) for shape in ((128, 512), (128, 128), (128, 128), 512))
    arrays = (x_part, h, c, np.eye(128, 512), bias)
    forward, backward = zip(
        *(
            count_passes(lambda *x, module=module: module.lstm_step(*x)[0], *arrays)
            for module in (ops.composed, ops.fused)
        ),
        strict=True,
    )
    assert forward[1] < forward[0] / 1.5
    assert backward[1] < backward[0] / 1.5


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


def test_operators_are_counted():
    assert operators_of(lambda a: 0.5 * a * (1 + a), x) == 3
    assert operators_of(lambda a: a.sum(), x) == 1
