"""Broadcasting and reductions over shapes that Hypothesis draws."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

from minigrad import Tensor, backend, check_grad, ops
from minigrad.ops.broadcasting import unbroadcast

pairs = mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0)
triples = mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3)
shapes = array_shapes(min_dims=0, max_dims=4, max_side=4)


def numbers(seed: int, shape: tuple[int, ...], low: float = 0.5) -> Tensor:
    """Positive entries, so that every operation is smooth there."""
    return Tensor(np.random.default_rng(seed).uniform(low, low + 2, shape), requires_grad=True)


@given(pairs)
def test_unbroadcast_is_the_adjoint_of_broadcasting(shapes):
    """⟨broadcast(x), g⟩ = ⟨x, unbroadcast(g)⟩ for every x and g."""
    shape, wide = shapes.input_shapes[0], shapes.result_shape
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(shape), rng.standard_normal(wide)
    back = backend.to_numpy(unbroadcast(backend.default().asarray(g), shape))
    assert back.shape == shape
    np.testing.assert_allclose(np.sum(np.broadcast_to(x, wide) * g), np.sum(x * back), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "pow", "maximum"])
@given(pairs)
@settings(max_examples=15)
def test_elementwise_operations_broadcast(op, shapes):
    a, b = (numbers(i, shape) for i, shape in enumerate(shapes.input_shapes))
    reference = {"sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}.get(
        op
    ) or getattr(np, op)
    y = getattr(ops, op)(a, b)
    assert y.shape == shapes.result_shape
    np.testing.assert_allclose(y.numpy(), reference(a.numpy(), b.numpy()), rtol=1e-12)
    check_grad(getattr(ops, op), a, b)


@given(triples, st.integers(0, 99))
@settings(max_examples=20)
def test_where_broadcasts_all_three(shapes, seed):
    condition, a, b = shapes.input_shapes
    mask = np.random.default_rng(seed).random(condition) > 0.5
    a, b = numbers(1, a), numbers(2, b)
    np.testing.assert_array_equal(ops.where(mask, a, b).numpy(), np.where(mask, a.numpy(), b.numpy()))
    check_grad(lambda a, b: ops.where(mask, a, b), a, b)


@given(pairs, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=20)
def test_matmul_broadcasts_leading_axes(shapes, n, k, m):
    left, right = shapes.input_shapes
    a, b = numbers(1, (*left, n, k)), numbers(2, (*right, k, m))
    np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-12)
    check_grad(ops.matmul, a, b)


@given(
    mutually_broadcastable_shapes(num_shapes=3, max_dims=2, max_side=3), st.integers(1, 3), st.integers(1, 3)
)
@settings(max_examples=20)
def test_attention_broadcasts_leading_axes(shapes, n, m):
    lq, lk, lv = shapes.input_shapes
    inputs = numbers(1, (*lq, n, 3)), numbers(2, (*lk, m, 3)), numbers(3, (*lv, m, 2))
    fused = ops.fused.scaled_dot_product_attention(*inputs)
    np.testing.assert_allclose(
        fused.numpy(), ops.composed.scaled_dot_product_attention(*inputs).numpy(), rtol=1e-12
    )
    check_grad(ops.fused.scaled_dot_product_attention, *inputs)


@st.composite
def shape_and_axes(draw):
    """A shape, and an axis, several axes, or None; negative or not."""
    shape = draw(shapes)
    if not shape or draw(st.booleans()):
        return shape, None
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    axes = [axis - len(shape) * draw(st.integers(0, 1)) for axis in axes]
    return shape, axes[0] if len(axes) == 1 else tuple(axes)


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod", "var", "logsumexp"])
@given(shape_and_axes(), st.booleans())
@settings(max_examples=20)
def test_reductions_over_any_axes(op, shape_and_axes, keepdims):
    shape, axis = shape_and_axes
    x = numbers(3, shape)
    kwargs = {"correction": 0} if op == "var" else {}
    y = getattr(ops, op)(x, axis=axis, keepdims=keepdims, **kwargs)
    reference = {"logsumexp": lambda a, **k: np.log(np.exp(a).sum(**k))}.get(op) or getattr(np, op)
    np.testing.assert_allclose(
        y.numpy(), reference(x.numpy(), axis=axis, keepdims=keepdims), rtol=1e-11, atol=1e-13
    )
    assert y.shape == reference(x.numpy(), axis=axis, keepdims=keepdims).shape
    check_grad(lambda x: getattr(ops, op)(x, axis=axis, keepdims=keepdims, **kwargs), x)


@given(
    mutually_broadcastable_shapes(num_shapes=1, max_dims=4, max_side=3).map(lambda s: s.input_shapes[0]),
    st.data(),
)
@settings(max_examples=20)
def test_expand_and_back(shape, data):
    wide = (*data.draw(array_shapes(min_dims=0, max_dims=2, max_side=3)), *(n if n > 1 else 3 for n in shape))
    x = numbers(4, shape)
    np.testing.assert_array_equal(x.expand(wide).numpy(), np.broadcast_to(x.numpy(), wide))
    check_grad(lambda x: x.expand(wide), x)


@given(st.data())
@settings(max_examples=60)
def test_getitem_with_any_basic_index(data):
    from hypothesis.extra.numpy import basic_indices

    shape = data.draw(shapes)
    index = data.draw(basic_indices(shape, allow_newaxis=True))
    x = numbers(5, shape)
    np.testing.assert_array_equal(x[index].numpy(), x.numpy()[index])
    check_grad(lambda x: x[index], x)


@given(st.data())
@settings(max_examples=40)
def test_getitem_with_any_integer_arrays(data):
    from hypothesis.extra.numpy import integer_array_indices

    shape = data.draw(array_shapes(min_dims=1, max_dims=3, max_side=4))
    index = data.draw(
        integer_array_indices(shape, result_shape=array_shapes(min_dims=0, max_dims=2, max_side=4))
    )
    x = numbers(6, shape)
    np.testing.assert_array_equal(x[index].numpy(), x.numpy()[index])
    check_grad(lambda x: x[index], x)
