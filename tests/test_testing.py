"""check_grad: it must accept right gradients and reject each kind of wrong one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from minigrad import Tensor, backend, check_grad, no_grad, ops
from minigrad.testing import GradientError


def square(slope):
    """x², with a backward that multiplies dy by `slope(x)`."""

    def square(x: Tensor) -> Tensor:
        def backward(dy):
            return (dy * slope(x.data),)

        return Tensor.from_op(x.data * x.data, (x,), backward)

    return square


def one_entry_off(x):
    g = 2 * x
    g[1, 2] *= 1.001
    return g


def not_a_number(x):
    g = 2 * x
    g[0, 1] = float("nan")
    return g


def test_right_gradients_pass_with_a_small_error(leaf):
    assert check_grad(square(lambda x: 2 * x), leaf(3, 5)) < 1e-8


@pytest.mark.parametrize(
    "slope",
    [
        pytest.param(lambda x: x, id="half"),
        pytest.param(lambda x: -2 * x, id="sign"),
        pytest.param(lambda x: 0 * x, id="zero"),
        pytest.param(lambda x: 2.0001 * x, id="scale"),
        pytest.param(lambda x: 2 * x + 1e-4, id="offset"),
        pytest.param(one_entry_off, id="one entry"),
        pytest.param(not_a_number, id="nan"),
        pytest.param(lambda x: 2 * x + float("inf"), id="inf"),
        pytest.param(lambda x: 2 * x[::-1], id="order"),
    ],
)
def test_wrong_gradients_fail(slope, leaf):
    with pytest.raises(GradientError, match=r"the gradient of input 0 \(shape \(3, 5\)\) is wrong: at \("):
        check_grad(square(slope), leaf(3, 5))


def test_a_softmax_without_gradient_fails(leaf):
    """With an all-ones cotangent it would pass: the rows of softmax sum to 1."""

    def softmax(x: Tensor) -> Tensor:
        def backward(dy):
            return (dy * 0,)

        return Tensor.from_op(ops.softmax(x).data, (x,), backward)

    with pytest.raises(GradientError):
        check_grad(softmax, leaf(3, 5))


def test_the_message_names_the_worst_entry():
    x = Tensor(np.arange(1.0, 7.0).reshape(2, 3), requires_grad=True)
    with pytest.raises(GradientError) as caught:
        check_grad(lambda x: square(one_entry_off)(x).sum(), x, seed=3)
    cotangent = np.random.default_rng(3).standard_normal()
    says, slope = (float(number) for number in re.findall(r"says? (-?[\d.]+)", str(caught.value)))
    assert "input 0 (shape (2, 3)) is wrong: at (1, 2) backward" in str(caught.value)
    assert slope == pytest.approx(12 * cotangent, rel=1e-6)
    assert says == pytest.approx(12 * 1.001 * cotangent, rel=1e-6)


def test_the_wrong_input_of_two_is_named(leaf):
    def product(a: Tensor, b: Tensor) -> Tensor:
        def backward(dy):
            return dy * b.data, dy * b.data

        return Tensor.from_op(a.data * b.data, (a, b), backward)

    with pytest.raises(GradientError, match="the gradient of input 1 "):
        check_grad(product, leaf(3), leaf(3))
    fixed = leaf(3)
    fixed.requires_grad = False
    check_grad(product, leaf(3), fixed)


def test_an_operation_whose_output_is_a_view(leaf):
    """The output shares memory with the entry that is moved: differences must not see themselves."""
    check_grad(lambda x: x.reshape(-1), leaf(2, 3))

    def flip(x: Tensor) -> Tensor:
        def backward(dy):
            return (dy,)  # not reversed

        return Tensor.from_op(x.data[::-1], (x,), backward)

    with pytest.raises(GradientError):
        check_grad(flip, leaf(3))


def test_what_is_checked_stays_as_it_was(leaf):
    x, fixed = leaf(3), Tensor(np.ones(3))
    before, grad = x.numpy().copy(), backend.default().asarray(np.ones(3))
    x.grad = grad
    check_grad(ops.mul, x, fixed)
    np.testing.assert_array_equal(x.numpy(), before)
    assert x.grad is grad
    assert fixed.grad is None


def test_seeds_draw_different_cotangents(leaf):
    """A gradient that is wrong across one direction alone is found by a random one."""
    seen = []

    def watch(x: Tensor) -> Tensor:
        def backward(dy):
            seen.append(backend.to_numpy(dy).copy())
            return (dy,)

        return Tensor.from_op(x.data.copy(), (x,), backward)

    x = leaf(4)
    for seed in (0, 0, 1):
        check_grad(watch, x, seed=seed)
    np.testing.assert_array_equal(seen[0], seen[1])
    assert (seen[0] != seen[2]).all()
    assert len(set(np.abs(seen[0]))) == 4


def test_what_it_refuses(leaf):
    with pytest.raises(ValueError, match="no input has requires_grad=True"):
        check_grad(ops.exp, Tensor(np.ones(3)))
    with pytest.raises(TypeError, match="input 1 is float32; differences need float64"):
        check_grad(ops.add, leaf(3), Tensor([1.0], requires_grad=True))
    with pytest.raises(ValueError, match="no gradient reached input 1"):
        check_grad(lambda a, b: a * 2.0 + b.detach(), leaf(3), leaf(3))


def test_a_function_that_records_nothing(leaf):
    def cut(x):
        with no_grad():
            return x * 2.0

    with pytest.raises((RuntimeError, ValueError)):
        check_grad(cut, leaf(3))


def test_empty_inputs_pass(leaf):
    assert check_grad(ops.exp, leaf(0, 3)) == 0
