"""Infinite, NaN, huge, tiny and signed zeros, in inputs and in cotangents: what comes out is what PyTorch gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, ops
from minigrad.ops import composed

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy says where NaN and inf come from

INF, NAN = np.inf, np.nan


def gradient(function, *values, dy=1.0, dtype="float32"):
    """The gradients of `function` at the values, for a cotangent full of `dy`."""
    leaves = [Tensor(np.array(value, dtype), requires_grad=True) for value in values]
    y = function(*leaves)
    y.backward(np.full(y.shape, dy, dtype))
    return [host(leaf.grad).tolist() for leaf in leaves]


# --- The branch that is not taken -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guard", "x"),
    [
        (lambda x: ops.where(np.array([False, True]), x, 0.0), [2.0, 4.0]),
        (lambda x: ops.where(np.array([True, False]), 0.0, x), [2.0, 4.0]),
        (lambda x: ops.masked_fill(x, np.array([True, False]), 0.0), [2.0, 4.0]),
        (lambda x: ops.maximum(x, 0.0), [-1.0, 4.0]),
        (lambda x: ops.maximum(0.0, x), [-1.0, 4.0]),
        (lambda x: x.relu(), [-1.0, 4.0]),
    ],
    ids=["where", "where else", "masked_fill", "maximum", "maximum of a number", "relu"],
)
def test_a_guard_keeps_infinite_gradients_out(guard, x):
    """The root's slope at 0 is infinite; it must not come back as NaN to the entry that was not used."""
    assert gradient(lambda x: guard(x).sqrt().sum(), x) == [[0.0, 0.25]]


@pytest.mark.parametrize("dy", [INF, -INF, NAN])
def test_a_cotangent_of_any_kind_stays_out_of_the_branch_not_taken(dy):
    mask = np.array([True, False])
    a, b = gradient(lambda a, b: ops.where(mask, a, b), [1.0, 1.0], [2.0, 2.0], dy=dy)
    assert a[1] == b[0] == 0
    np.testing.assert_array_equal([a[0], b[1]], [dy, dy])


# --- Edges -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [ops.max, ops.min])
def test_a_nan_that_wins_sends_nan_back(op):
    (dx,) = gradient(lambda x: op(x, axis=1), [[1.0, NAN, 2.0], [1.0, 3.0, 2.0]])
    np.testing.assert_array_equal(dx, [[NAN] * 3, [0.0, 1.0, 0.0] if op is ops.max else [1.0, 0.0, 0.0]])


def test_std_has_no_slope_where_all_entries_are_equal():
    assert gradient(lambda x: x.std(axis=1), [[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]) == [
        [[0.0] * 3, [-0.5, 0.0, 0.5]]
    ]


def test_clip_stops_the_gradient_outside_and_at_nan():
    assert gradient(lambda x: x.clip(-1, 1), [-2.0, -1.0, 0.5, 1.0, INF, NAN]) == [
        [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    ]


def test_a_product_with_zeros_has_the_products_of_the_others():
    assert gradient(ops.prod, [2.0, 0.0, 3.0]) == [[0.0, 6.0, 0.0]]
    assert gradient(ops.prod, [0.0, 0.0, 3.0]) == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("module", "dtype", "offset", "rtol"),
    [
        (ops, "float32", 1e5, 1e-6),
        (ops, "float64", 1e10, 1e-12),
        (ops, "float16", 1e3, 1e-3),
        (composed, "float16", 1e3, 1e-3),
    ],
)
def test_a_large_common_offset_costs_the_logarithm_no_digits(module, dtype, offset, rtol):
    x = np.array([[0, 0, -1]]) + offset
    expected = -np.log(2 + np.exp(-1)) + np.array([[0, 0, -1]])
    np.testing.assert_allclose(module.log_softmax(Tensor(x.astype(dtype))).numpy(), expected, rtol=rtol)
    loss = module.cross_entropy(Tensor(x.astype(dtype)), np.array([0]))
    np.testing.assert_allclose(loss.item(), -expected[0, 0], rtol=rtol)


def test_the_largest_entry_alone_gets_an_infinite_gradient():
    assert gradient(lambda x: x.max().sqrt(), [0.0, -3.0]) == [[INF, 0.0]]


# --- float16 ---------------------------------------------------------------------------------------------

X16 = np.array([-100, -8, -6, -5.6, -4, -1, -0.1, 0, 0.1, 1, 4, 6, 8, 100], "float16")


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_erf_and_gelu_of_float16(form):
    """The nearest float16 to what float64 gives, up to one place."""
    for function in (ops.erf, lambda x: ops.gelu(x, form)):
        y, expected = (function(Tensor(X16.astype(dtype))) for dtype in ("float16", "float64"))
        assert y.dtype == "float16"
        np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-3, atol=2e-6)
        slope, expected = (gradient(function, X16, dtype=dtype)[0] for dtype in ("float16", "float64"))
        np.testing.assert_allclose(slope, expected, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("function", [ops.layer_norm, composed.layer_norm], ids=["fused", "composed"])
def test_layer_norm_of_float16_with_large_rows(function, rng):
    """The sum of squares is above 65,504."""
    x = (300 * rng.standard_normal((2, 1024))).astype("float16")
    weight, bias, dy = (rng.standard_normal(n).astype("float16") for n in (1024, 1024, (2, 1024)))
    results = []
    for dtype in ("float16", "float64"):
        leaves = [Tensor(array.astype(dtype), requires_grad=True) for array in (x, weight, bias)]
        y = function(*leaves)
        y.backward(dy)
        results.append([y.numpy(), *(host(leaf.grad) for leaf in leaves)])
    assert {array.dtype.name for array in results[0]} == {"float16"}
    for ours, expected in zip(*results, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=5e-3, atol=5e-3 * np.abs(expected).max())


def test_sums_of_float16_are_added_up_in_float32(rng):
    """5,000 ones are not 2,048, where float16 stops counting; and the variance of large numbers is not infinite."""
    ones = Tensor(np.ones((5000, 2), "float16"), requires_grad=True)
    assert ops.sum(ones, axis=0).numpy().tolist() == [5000, 5000]
    bias = Tensor(np.zeros(2, "float16"), requires_grad=True)
    (ones.detach() + bias).sum().backward()
    assert host(bias.grad).tolist() == [5000, 5000]
    weight = Tensor(np.ones((3, 2), "float16"), requires_grad=True)
    ops.embedding(np.zeros(5000, int), weight).sum().backward()
    assert host(weight.grad).tolist() == [[5000, 5000], [0, 0], [0, 0]]
    x = (100 * rng.standard_normal(2000)).astype("float16")
    expected = x.astype(np.float64).var(ddof=1)
    np.testing.assert_allclose(ops.var(Tensor(x)).item(), expected, rtol=1e-3)
    assert gradient(ops.var, x, dtype="float16")[0] == pytest.approx(
        gradient(ops.var, x)[0], rel=2e-3, abs=1e-4
    )
    many = Tensor(np.zeros(70_000, "float16"))
    np.testing.assert_allclose(ops.logsumexp(many).item(), np.log(70_000), rtol=1e-3)


def test_long_means_and_ties_of_float16():
    """100,000 is infinite in float16."""
    x = np.zeros(100_000, "float16")
    for function in (ops.mean, ops.max):
        np.testing.assert_allclose(
            gradient(function, x, dtype="float16")[0], np.full(100_000, 1e-5), rtol=5e-3
        )


def test_losses_of_float16_with_large_class_weights():
    logits, weight = np.zeros((4, 3), "float16"), np.full(3, 2e4)
    for module in (ops, composed):
        leaf = Tensor(logits, requires_grad=True)
        loss = module.cross_entropy(leaf, np.zeros(4, int), weight=weight)
        loss.backward()
        np.testing.assert_allclose(loss.item(), np.log(3), rtol=1e-3)
        np.testing.assert_allclose(host(leaf.grad)[0], [-1 / 6, 1 / 12, 1 / 12], rtol=2e-3)


def test_backward_of_log_softmax_of_float16():
    dx = gradient(ops.log_softmax, np.zeros((1, 1000)), dy=100.0, dtype="float16")[0]
    np.testing.assert_allclose(dx, np.zeros((1, 1000)), atol=0.1)


def test_sigmoid_of_float16():
    x = np.array([8.0, 3.0, -3.0, -8.0])
    for ours, expected in zip(
        (ops.sigmoid(Tensor(x.astype("float16"))).numpy(), gradient(ops.sigmoid, x, dtype="float16")[0]),
        (ops.sigmoid(Tensor(x)).numpy(), gradient(ops.sigmoid, x, dtype="float64")[0]),
        strict=True,
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-3)


# --- Everything beside PyTorch ---------------------------------------------------------------------------

VALUES = [INF, -INF, NAN, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e-30, 1e30, -1e30, 1e19, 60.0, -60.0]
COTANGENTS = [1.0, -2.0, 0.0, INF, NAN]

UNARY = {
    "neg": lambda t, x: -x,
    "abs": lambda t, x: t.abs(x),
    "exp": lambda t, x: t.exp(x),
    "log": lambda t, x: t.log(x),
    "sqrt": lambda t, x: t.sqrt(x),
    "tanh": lambda t, x: t.tanh(x),
    "erf": lambda t, x: t.erf(x),
    "sigmoid": lambda t, x: t.sigmoid(x),
    "relu": lambda t, x: t.relu(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
}
BINARY = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "div": lambda t, a, b: a / b,
    "pow": lambda t, a, b: a**b,
    "maximum": lambda t, a, b: t.maximum(a, b),
}
ROWS = {
    "softmax": lambda t, x: t.softmax(x, -1),
    "log_softmax": lambda t, x: t.log_softmax(x, -1),
    "logsumexp": lambda t, x: t.logsumexp(x, -1),
    "mean": lambda t, x: x.mean(-1),
    "sum": lambda t, x: x.sum(-1),
    "var": lambda t, x: x.var(-1),
}


def same_as_torch(torch, ours, theirs, arrays, dtype, atol=0.0):
    for dy in COTANGENTS:
        leaves = [Tensor(array.astype(dtype), requires_grad=True) for array in arrays]
        tensors = [torch.tensor(array.astype(dtype), requires_grad=True) for array in arrays]
        y, right = ours(*leaves), theirs(torch, *tensors)
        y.backward(np.full(y.shape, dy, dtype))
        right.backward(torch.full_like(right, dy))
        pairs = [(y.numpy(), right.detach().numpy())]
        pairs += [
            (host(leaf.grad), tensor.grad.numpy()) for leaf, tensor in zip(leaves, tensors, strict=True)
        ]
        if dy == 1:
            # PyTorch on some processors, and CuPy on a GPU, take what is below `tiny` for 0, also as a factor.
            tiny = np.finfo(dtype).tiny
            told = [(expected == 0) | ~(np.abs(expected) < tiny) for _, expected in pairs]
        for (got, expected), of_these in zip(pairs, told, strict=True):
            np.testing.assert_allclose(
                got[of_these], expected[of_these], rtol=3e-6, atol=atol, err_msg=f"cotangent {dy}"
            )


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", UNARY)
def test_one_operand_beside_pytorch(op, dtype, torch):
    values, atol = np.array(VALUES), 0.0
    if op == "gelu":  # at -inf PyTorch's own forms differ; float32's error is absolute
        values, atol = values[np.isfinite(values)], 3 * np.finfo(dtype).eps
    same_as_torch(torch, getattr(ops, op), UNARY[op], [values], dtype, atol)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", BINARY)
def test_two_operands_beside_pytorch(op, dtype, torch):
    pairs = np.array(list(itertools.product(VALUES, VALUES))).T
    same_as_torch(torch, getattr(ops, op), BINARY[op], list(pairs), dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ROWS)
def test_rows_beside_pytorch(op, dtype, torch, rng):
    rows = rng.choice(VALUES[:12], (300, 3))
    atol = 6 * np.finfo(dtype).eps  # gradients of a row cancel, down to rounding
    same_as_torch(torch, lambda x: getattr(ops, op)(x, axis=-1), ROWS[op], [rows], dtype, atol)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_beside_pytorch(dtype, torch, rng):
    a, b = (rng.choice(VALUES, 100) for _ in range(2))
    mask = rng.random(100) > 0.5
    same_as_torch(
        torch,
        lambda a, b: ops.where(mask, a, b),
        lambda t, a, b: t.where(t.tensor(mask), a, b),
        [a, b],
        dtype,
    )
