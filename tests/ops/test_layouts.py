"""Where numbers lie in memory does not matter: transposed, reversed, with gaps, stretched; and across block borders.

Each call of the table is made on inputs and with a cotangent that lie in a random order, and held against the same
call on plain arrays, a fused operation against its composed twin. Once with the blocks as they are, once with blocks
so small that every call has borders within.
"""

from __future__ import annotations

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, backend, ops
from minigrad.ops import composed, fused
from op_cases import CASES, FUSED, Case

DRAWS = 6  # layouts of each case
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}


def in_some_layout(array, rng):
    """The numbers of `array` on the default backend, in a random order of axes, with gaps, some axes reversed; an axis
    along which all is the same is not there in memory."""
    if not array.ndim:
        return backend.default().asarray(array)
    for axis, n in enumerate(array.shape):
        if n > 1 and (array == array.take([0], axis)).all():
            one = in_some_layout(array.take([0], axis), rng)
            return backend.default().xp.broadcast_to(one, array.shape)
    order = rng.permutation(array.ndim)
    steps = rng.choice([1, 1, 1, -1, 2, -2], array.ndim)
    room = [array.shape[axis] * abs(steps[axis]) for axis in order]
    memory = backend.default().asarray(np.full(room, np.nan, array.dtype))
    view = memory.transpose(*np.argsort(order).tolist())
    view = view[tuple(slice(None, None, int(step)) for step in steps)]
    view[...] = backend.default().asarray(array)
    return view


def stretched(array, rng):
    """`array`, one time in five with an axis along which it is the same slice again and again."""
    if not array.ndim or rng.random() > 0.2:
        return array
    axis = int(rng.integers(array.ndim))
    return np.repeat(array.take([0], axis), array.shape[axis], axis)


def results(case, module, leaves, cotangent):
    """The output and all gradients, on the host."""
    y = case.run(*leaves, module=module)
    y.backward(cotangent)
    return [host(y.data), *(host(leaf.grad) for leaf in leaves)]


def check(case: Case, dtype: str, reference, rng) -> None:
    """The case in a random layout gives what `reference` gives on plain arrays, and changes nothing."""
    plain = [stretched(array, rng) for array in case.arrays(dtype)]
    leaves = [Tensor(in_some_layout(array, rng), requires_grad=True) for array in plain]
    cotangent = rng.standard_normal(case.run(*leaves).shape).astype(dtype)
    dy = in_some_layout(cotangent, rng)
    ours = results(case, ops, leaves, dy)
    expected = results(
        case, reference, [Tensor(array.copy(), requires_grad=True) for array in plain], cotangent
    )
    for got, right in zip(ours, expected, strict=True):
        assert got.shape == right.shape
        assert got.dtype == right.dtype == dtype
        scale = max(1.0, float(np.abs(right).max(initial=0)))
        np.testing.assert_allclose(got, right, rtol=0, atol=TOLERANCE[dtype] * scale)
    for leaf, array in zip(leaves, plain, strict=True):
        np.testing.assert_array_equal(host(leaf.data), array)
    np.testing.assert_array_equal(host(dy), cotangent)


@pytest.fixture(params=["blocks", "small blocks"])
def blocks(request):
    """Runs a test twice, the second time with borders everywhere."""
    if request.param == "small blocks":
        request.getfixturevalue("small_blocks")


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", FUSED, ids=str)
def test_fused_operations_in_any_layout_are_their_composed_twins(case, dtype, rng):
    for _ in range(DRAWS):
        check(case, dtype, composed, rng)


@pytest.mark.parametrize("case", [case for case in CASES if case not in FUSED], ids=str)
def test_basic_operations_in_any_layout(case, rng):
    for _ in range(DRAWS):
        check(case, "float64", ops, rng)


# The sizes of a small model: with blocks of 64 numbers, hundreds of borders, in all that is added up over rows.
LARGER = [
    Case("layer_norm", lambda f, x, w, b: f(x, w, b), lambda t: None, ((61, 24), (24,), (24,))),
    Case("layer_norm", lambda f, x, w, b: f(x, w, b), lambda t: None, ((5, 200), (200,), (200,))),
    Case("softmax", lambda f, x: f(x), lambda t: None, ((61, 24),), "wide"),
    Case("log_softmax", lambda f, x: f(x, axis=0), lambda t: None, ((61, 24),), "wide"),
    Case("gelu", lambda f, x: f(x), lambda t: None, ((61, 24),), "wide"),
    Case("linear", lambda f, x, w, b: f(x, w, b), lambda t: None, ((61, 24), (24, 13), (13,))),
    Case("linear", lambda f, x, w, b: f(x, w, b), lambda t: None, ((7, 24), (24, 99), (99,))),
    Case(
        "cross_entropy",
        lambda f, x: f(x, np.where(np.arange(61) % 3, np.arange(61) % 24, -100)),
        lambda t: None,
        ((61, 24),),
    ),
    Case("dropout", lambda f, x: f(x, np.arange(61 * 24).reshape(61, 24) % 5 > 0, 0.2), lambda t: None, ((61, 24),)),
    Case(
        "scaled_dot_product_attention",
        lambda f, q, k, v: f(q, k, v, None, np.arange(4 * 3 * 11 * 13).reshape(4, 3, 11, 13) % 7 > 0, 0.1),
        lambda t: None,
        ((4, 3, 11, 5), (4, 3, 13, 5), (4, 3, 13, 6)),
    ),
]  # fmt: skip


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", LARGER, ids=str)
def test_fused_operations_over_many_blocks_are_their_composed_twins(case, dtype, rng):
    for _ in range(2):
        check(case, dtype, composed, rng)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_in_place_over_many_blocks(dtype, rng):
    """Kernels that no operation's case reaches with borders: sums of gradients, dropout's bits, the optimiser."""
    kernels = backend.default()
    a, b = rng.standard_normal((2, 37, 19)).astype(dtype)
    for name, expected in (("add_in_place", a + b), ("multiply_in_place", a * b)):
        for first in (kernels.asarray(a.copy()), in_some_layout(a, rng)):
            getattr(kernels, name)(first, in_some_layout(b, rng))
            np.testing.assert_array_equal(host(first), expected)
    np.testing.assert_allclose(host(kernels.sum_rows(in_some_layout(a, rng))), a.sum(axis=0), atol=1e-5)
    norm = kernels.global_norm([in_some_layout(a, rng), kernels.asarray(b)])
    np.testing.assert_allclose(float(norm), np.sqrt((a**2).sum() + (b**2).sum()), rtol=1e-6)
    scaled = in_some_layout(a, rng)
    kernels.scale_in_place([scaled], 0.5)
    np.testing.assert_array_equal(host(scaled), a * np.asarray(0.5, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dropouts_bits_do_not_depend_on_blocks(dtype, request):
    kernels = backend.default()
    before = host(kernels.keep_mask((61, 24), 0.3, (5, 7)))
    request.getfixturevalue("small_blocks")
    np.testing.assert_array_equal(host(kernels.keep_mask((61, 24), 0.3, (5, 7))), before)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adamw_in_any_layout(dtype, rng):
    kernels = backend.default()
    settings = {"step_size": 0.1, "decay": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
    p, g, m, v = rng.standard_normal((4, 37, 19)).astype(dtype)
    v = abs(v)
    arrays = [in_some_layout(array, rng) for array in (p, g, m, v)]
    kernels.adamw_step(*([array] for array in arrays), **settings, second_correction=0.5)
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    p = p * 0.99 - 0.1 * m / (np.sqrt(v) / 0.5 + 1e-8)
    for array, expected in zip(arrays, (p, g, m, v), strict=True):
        np.testing.assert_allclose(host(array), expected, rtol=0, atol=5e-6 if dtype == "float32" else 1e-13)


def test_attention_with_the_weights_of_each_head_as_in_the_paper(rng):
    """q, k and v lie heads-first in memory, and so does the gradient of what comes out."""
    x = rng.standard_normal((2, 5, 8))
    weights = [rng.standard_normal((3, 1, 8, 4)) for _ in range(3)]
    w_o = rng.standard_normal((3, 1, 4, 8))
    gradients = []
    for module in (fused, composed):
        leaves = [Tensor(array.copy(), requires_grad=True) for array in (x, *weights, w_o)]
        q, k, v = ((leaves[0] @ w).permute(1, 0, 2, 3) for w in leaves[1:4])  # (N, h, n, d)
        z = module.scaled_dot_product_attention(q, k, v)
        out = (z.permute(1, 0, 2, 3) @ leaves[4]).sum(axis=0)
        out.backward(np.arange(80.0).reshape(2, 5, 8))
        gradients.append([host(leaf.grad) for leaf in leaves])
    for ours, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-10)
