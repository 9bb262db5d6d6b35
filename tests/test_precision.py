"""Products of 16-bit operands: what they round to, and that everything else stays in float32."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, backend, ops

HALVES = ["bfloat16", "float16"]
halves = pytest.mark.parametrize("precision", HALVES)


def numbers(array):
    """What `rounded` gave as float32 on the host: NumPy's are numbers already, CuPy's are bits."""
    array = host(array)
    if array.dtype == np.int16:
        return array.view(np.float16).astype(np.float32)
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def nearest(x, precision):
    """`x` rounded to the nearest number of that precision, ties to even, from the definition: in float64."""
    if precision == "float32":
        return x
    digits, lowest, largest = {"float16": (11, -14, 65504.0), "bfloat16": (8, -126, 2.0**128)}[precision]
    with np.errstate(all="ignore"):
        wide = np.asarray(x, np.float64)
        exponent = np.maximum(np.frexp(wide)[1] - 1, lowest)  # below the lowest, numbers are evenly spaced
        spacing = np.exp2(exponent - (digits - 1.0))
        y = np.where(np.isfinite(wide), np.rint(wide / spacing) * spacing, wide)
        limit = largest if precision == "bfloat16" else largest + 15.99
        return np.where(np.abs(y) >= limit, np.copysign(np.inf, y), y).astype(np.float32)


def every_kind_of_float(rng):
    """Random bits, and the cases that rounding gets wrong: ties, the largest, the smallest, NaN with any bits."""
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    ties = (rng.integers(0, 2**16, 2_000, dtype=np.uint32) << 16) + 0x8000
    special = [
        0,
        1 << 31,
        0x7F800000,
        0xFF800000,
        0x7F7FFFFF,
        0x7FFFFFFF,
        0xFFFFFFFF,
        0x7F800001,
        1,
        0x7F7F7FFF,
    ]
    x = np.concatenate([bits, ties, ties - 1, ties + 1, np.array(special, np.uint32)]).view(np.float32)
    ordinary = rng.standard_normal(20_000) * np.exp2(rng.integers(-30, 20, 20_000).astype(float))
    half_ties = np.float32([1 + 2**-11, 1 + 3 * 2**-11, 65519.99, 65520, 2**-25, 2**-25 * 1.0001, 3 * 2**-25])
    return np.concatenate([x, ordinary.astype(np.float32), half_ties, -half_ties])


# --- Rounding --------------------------------------------------------------------------------------------


@halves
def test_rounded_is_the_nearest(kernels, precision, rng):
    x = every_kind_of_float(rng)
    assert np.isnan(x).sum() > 5
    ours = numbers(kernels.rounded(kernels.asarray(x)[None], precision))[0]
    np.testing.assert_array_equal(ours, nearest(x, precision))
    finite = np.isfinite(ours) & (ours != 0)
    assert np.array_equal(np.signbit(ours[finite]), np.signbit(x[finite]))
    assert (ours != x)[np.isfinite(x)].mean() > 0.5


@pytest.mark.oracle
@halves
def test_rounded_is_pytorchs(kernels, precision, rng):
    torch = pytest.importorskip("torch")
    x = every_kind_of_float(rng)
    theirs = torch.tensor(x).to(getattr(torch, precision)).float().numpy()
    np.testing.assert_array_equal(numbers(kernels.rounded(kernels.asarray(x)[None], precision))[0], theirs)


@halves
@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (7, 1), (2, 3, 4), (0, 3), (1, 1)], ids=str)
def test_rounded_in_any_order_in_memory(kernels, precision, shape, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    wide = np.zeros((*shape[:-1], 2 * shape[-1]), np.float32)
    wide[..., ::2] = x
    turned = kernels.asarray(np.ascontiguousarray(x.swapaxes(-1, -2))).swapaxes(-1, -2)
    for form in (kernels.asarray(x), turned, kernels.asarray(wide)[..., ::2]):
        before = host(form).copy()
        ours = kernels.rounded(form, precision)
        np.testing.assert_array_equal(numbers(ours), nearest(x, precision))
        np.testing.assert_array_equal(host(form), before)
        # A transposed matrix stays one: to turn it in memory would cost more than to round it
        if min(shape[-2:]) > 1:
            assert (ours.strides[-2] < ours.strides[-1]) == (form is turned)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("precision", backend.PRECISIONS)
def test_only_float32_is_rounded(kernels, precision, dtype, rng):
    x = kernels.asarray(rng.standard_normal((3, 2)).astype(dtype))
    assert kernels.rounded(x, precision) is x
    y = kernels.asarray(np.ones((3, 2), np.float32))
    assert (kernels.rounded(y, precision) is y) == (precision == "float32")


# --- Products --------------------------------------------------------------------------------------------


@halves
@pytest.mark.parametrize(
    ("n", "k", "m"), [(5, 4, 7), (1, 1, 1), (0, 3, 2), (2, 0, 3), (257, 33, 1), (64, 65, 66)]
)
def test_products_of_rounded_matrices_are_exact_sums(kernels, precision, n, k, m, rng):
    a, b = rng.standard_normal((n, k)).astype(np.float32), rng.standard_normal((k, m)).astype(np.float32)
    expected = nearest(a, precision).astype(float) @ nearest(b, precision).astype(float)
    turned = [kernels.asarray(np.ascontiguousarray(x.T)).T for x in (a, b)]
    for left in (kernels.asarray(a), turned[0]):
        for right in (kernels.asarray(b), turned[1]):
            y = kernels.matmul(kernels.rounded(left, precision), kernels.rounded(right, precision))
            assert y.dtype == np.float32
            np.testing.assert_allclose(host(y), expected, rtol=0, atol=2e-5)  # rounding is 100 times as much


def attention_reference(dy, q, k, v, keep, precision):
    """Attention and its gradients in float64, with each factor of each product rounded."""

    def product(a, b):
        return nearest(a.astype(np.float32), precision).astype(float) @ nearest(
            b.astype(np.float32), precision
        ).astype(float)

    def t(x):
        return x.swapaxes(-1, -2)

    scale, kept = 1 / math.sqrt(q.shape[-1]), keep / 0.75
    e = np.exp(scale * product(q, t(k)))
    weights = e / e.sum(axis=-1, keepdims=True)
    d_weights = product(dy, t(v)) * kept
    d_scores = scale * weights * (d_weights - (d_weights * weights).sum(axis=-1, keepdims=True))
    return [
        product(weights * kept, v), product(d_scores, k), product(t(d_scores), q), product(t(weights * kept), dy),
    ]  # fmt: skip


@halves
def test_attention_rounds_each_factor(precision, rng):
    dy, q, k, v = rng.standard_normal((4, 2, 3, 7, 6)).astype(np.float32)
    keep = rng.random((2, 3, 7, 7)) > 0.25
    inputs = [Tensor(np.moveaxis(x, 1, 2).copy(), requires_grad=True) for x in (q, k, v)]
    heads = [x.permute(0, 2, 1, 3) for x in inputs]  # as a model has them: views of (B, T, A, d_k)
    with backend.default_matmul_precision(precision):
        z = ops.scaled_dot_product_attention(*heads, None, backend.default().asarray(keep), 0.25)
    z.backward(dy)  # rounds as the forward did, wherever it is called
    ours = [z.numpy(), *(np.moveaxis(host(x.grad), 2, 1) for x in inputs)]
    expected = attention_reference(dy, q, k, v, keep, precision)
    plain = attention_reference(dy, q, k, v, keep, "float32")
    for one, right, unrounded in zip(ours, expected, plain, strict=True):
        # A sum that lies on the border of two numbers may be rounded to the other one: then one term differs.
        error, rounding = np.abs(one - right), np.abs(unrounded - right)
        assert np.median(error) < 1e-6
        assert error.max() < rounding.max()
        assert np.median(rounding) > 20 * np.median(error)


# --- Layers ----------------------------------------------------------------------------------------------


@halves
@pytest.mark.parametrize("tied", [False, True])
def test_linear_rounds_its_factors_and_nothing_else(precision, tied, rng):
    x, w = rng.standard_normal((2, 3, 5)).astype(np.float32), rng.standard_normal((5, 4)).astype(np.float32)
    b, dy = rng.standard_normal(4).astype(np.float32), rng.standard_normal((2, 3, 4)).astype(np.float32)
    leaf = Tensor(w.T.copy() if tied else w, requires_grad=True)
    inputs = [Tensor(x, requires_grad=True), leaf, Tensor(b, requires_grad=True)]
    with backend.default_matmul_precision(precision):
        y = ops.linear(inputs[0], leaf.T if tied else leaf, inputs[2])
    y.backward(dy)
    rx, rw, rdy = (nearest(a, precision).astype(float) for a in (x, w, dy))
    dw = np.einsum("bti,bto->io", rx, rdy)
    for ours, expected in (
        (y.numpy(), rx @ rw + b),
        (host(inputs[0].grad), rdy @ rw.T),
        (host(leaf.grad), dw.T if tied else dw),
        (host(inputs[2].grad), dy.sum(axis=(0, 1))),  # a sum, no product
    ):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=3e-6)
    assert not np.allclose(y.numpy(), x @ w + b, rtol=1e-5, atol=1e-5)


def test_float64_is_left_alone(rng):
    x, w = Tensor(rng.standard_normal((3, 4))), Tensor(rng.standard_normal((4, 2)))
    with backend.default_matmul_precision("bfloat16"):
        y = ops.linear(x, w)
    np.testing.assert_array_equal(y.numpy(), ops.linear(x, w).numpy())


@halves
def test_a_small_gradient_is_lost_in_float16_unless_the_loss_is_scaled(precision):
    x, w = Tensor([[1.0]], requires_grad=True), Tensor([[1.0]])
    gradients = []
    for scale in (1.0, 2.0**16):
        x.grad = None
        with backend.default_matmul_precision(precision):
            (ops.linear(x, w) * (1e-8 * scale)).sum().backward()
        gradients.append(float(host(x.grad)[0, 0]) / scale)
    assert gradients[0] == (0 if precision == "float16" else pytest.approx(1e-8, rel=1 / 256))
    assert gradients[1] == pytest.approx(1e-8, rel=1 / 256)


# --- The setting -----------------------------------------------------------------------------------------


def test_the_context_puts_back_what_was_there():
    assert backend.matmul_precision() == "float32"
    with backend.default_matmul_precision("bfloat16"):
        with contextlib.suppress(ZeroDivisionError), backend.default_matmul_precision("float16"):
            assert backend.matmul_precision() == "float16"
            raise ZeroDivisionError
        assert backend.matmul_precision() == "bfloat16"
    assert backend.matmul_precision() == "float32"


@pytest.mark.parametrize("wrong", ["half", "", None, "float64"])
def test_another_precision(wrong):
    with (
        pytest.raises(
            ValueError, match=f"there is no precision {wrong!r}: expected one of float32, bfloat16"
        ),
        backend.default_matmul_precision(wrong),
    ):
        pass
