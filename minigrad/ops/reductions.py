"""Operations along axes, most of which remove these: sums, means, products, the largest entry.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

import math

from minigrad import backend
from minigrad.graph import as_array
from minigrad.ops import checks
from minigrad.ops.checks import Axis
from minigrad.tensor import Array, Tensor

__all__ = ["argmax", "argmin", "cumsum", "logsumexp", "max", "mean", "min", "prod", "std", "sum", "var"]


def _widen(reduced: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """What a reduction over `axes` gave, with these axes back as length 1."""
    return reduced.reshape([1 if i in axes else n for i, n in enumerate(shape)])


def _leave_out(reduced: Array, axes: tuple[int, ...]) -> Array:
    """What a reduction over `axes` gave with these axes as length 1, without them."""
    return reduced.reshape([n for i, n in enumerate(reduced.shape) if i not in axes])


def _total(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The sum of an array over `axes`."""
    x = as_array(x)
    total = backend.of(x).sum_entries(x, axes)
    return _widen(total, x.shape, axes) if keepdims else total


def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over one, several or (None) all axes."""
    axes = checks.axes("sum", x, axis)
    xp = backend.of(x.data).xp
    shape = x.shape

    def backward(dy: Array) -> tuple[Array]:
        return (xp.broadcast_to(_widen(dy, shape, axes), shape),)

    return Tensor.from_op(_total(x.data, axes, keepdims), (x,), backward)


@checks.float16_in_float32
def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over one, several or (None) all axes. Raises ValueError if there is nothing to average."""
    axes = checks.axes("mean", x, axis)
    count = checks.count("mean", x, axes)
    xp = backend.of(x.data).xp
    shape = x.shape

    def backward(dy: Array) -> tuple[Array]:
        return (xp.broadcast_to(_widen(dy / count, shape, axes), shape),)

    return Tensor.from_op(_total(x.data, axes, keepdims) / count, (x,), backward)


@checks.float16_in_float32
def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest entry over one, several or (None) all axes, NaN if one is; ties share the gradient equally.

    Raises ValueError if there is nothing to compare.
    """
    axes = checks.axes("max", x, axis)
    checks.count("max", x, axes)
    values = x.data
    largest = values.max(axis=axes, keepdims=True)

    def backward(dy: Array) -> tuple[Array]:
        return (_to_the_winners(dy, values, largest, axes),)

    return Tensor.from_op(largest if keepdims else _leave_out(largest, axes), (x,), backward)


@checks.float16_in_float32
def min(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest entry over one, several or (None) all axes, NaN if one is; ties share the gradient equally.

    Raises ValueError if there is nothing to compare.
    """
    axes = checks.axes("min", x, axis)
    checks.count("min", x, axes)
    values = x.data
    smallest = values.min(axis=axes, keepdims=True)

    def backward(dy: Array) -> tuple[Array]:
        return (_to_the_winners(dy, values, smallest, axes),)

    return Tensor.from_op(smallest if keepdims else _leave_out(smallest, axes), (x,), backward)


def _to_the_winners(dy: Array, values: Array, extreme: Array, axes: tuple[int, ...]) -> Array:
    """dy shared equally by the entries that are the extreme one; NaN for all beside a NaN, which equals nothing."""
    xp = backend.of(values).xp
    nan = extreme != extreme
    winners = (values == extreme) | nan
    ties = xp.where(nan, dy.dtype.type(xp.nan), winners.sum(axis=axes, keepdims=True).astype(dy.dtype))
    return xp.where(winners, _widen(dy, values.shape, axes) / ties, dy.dtype.type(0))


def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the largest entry along an axis is, or (None) of all entries in their order: a plain array of integers.

    It is the first of equal entries, and the first NaN if there is one. Raises ValueError if there is nothing
    to compare.
    """
    return _place("argmax", x, axis, keepdims)


def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest entry along an axis is, or (None) of all entries in their order: a plain array of integers.

    It is the first of equal entries, and the first NaN if there is one. Raises ValueError if there is nothing
    to compare.
    """
    return _place("argmin", x, axis, keepdims)


def _place(op: str, x: Tensor, axis: int | None, keepdims: bool) -> Array:
    if axis is not None and not checks.is_integer(axis):
        raise TypeError(f"{op}: axis must be an integer or None, got {axis!r}")
    axes = checks.axes(op, x, axis)
    checks.count(op, x, axes)
    place = as_array(getattr(x.data, op)(axis=axis))
    return _widen(place, x.shape, axes) if keepdims else place


@checks.float16_in_float32
def prod(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The product over one, several or (None) all axes; the gradient of an entry is the product of the others."""
    axes = checks.axes("prod", x, axis)
    xp = backend.of(x.data).xp
    shape = x.shape
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    back = [order.index(i) for i in range(x.ndim)]
    count = math.prod(shape[i] for i in axes)
    factors = x.data.transpose(order).reshape(-1, count) if x.size else x.data.reshape(0, 1)  # (N, count)

    def backward(dy: Array) -> tuple[Array]:
        before, after = xp.ones_like(factors), xp.ones_like(factors)  # not y / x, which a 0 spoils
        before[:, 1:] = factors[:, :-1].cumprod(axis=1)
        after[:, :-1] = factors[:, :0:-1].cumprod(axis=1)[:, ::-1]
        dx = before * after * dy.reshape(-1, 1)
        return (dx.reshape([shape[i] for i in order]).transpose(back),)

    return Tensor.from_op(x.data.prod(axis=axes, keepdims=bool(keepdims)), (x,), backward)


@checks.float16_in_float32
def cumsum(x: Tensor, axis: int) -> Tensor:
    """The sums of the first one, two, three … entries along an axis: the shape stays the same."""
    checks.one_axis("cumsum", x, axis)
    xp = backend.of(x.data).xp

    def backward(dy: Array) -> tuple[Array]:
        return (xp.flip(xp.flip(dy, axis).cumsum(axis=axis), axis),)

    return Tensor.from_op(x.data.cumsum(axis=axis), (x,), backward)


@checks.float16_in_float32
def var(x: Tensor, axis: Axis = None, correction: int = 1, keepdims: bool = False) -> Tensor:
    """The variance over one, several or (None) all axes, divided by n - correction.

    PyTorch's default is correction=1; LayerNorm uses 0. Raises ValueError if n - correction is not positive.
    """
    axes = checks.axes("var", x, axis)
    count = checks.count("var", x, axes)
    freedom = count - correction
    if freedom <= 0:
        raise ValueError(f"var: {count} values along axes {axes} and correction={correction}")
    centred = x.data - _total(x.data, axes, keepdims=True) / count

    def backward(dy: Array) -> tuple[Array]:
        return (_widen(dy, centred.shape, axes) * centred * (2 / freedom),)

    return Tensor.from_op(_total(centred * centred, axes, keepdims) / freedom, (x,), backward)


@checks.float16_in_float32
def std(x: Tensor, axis: Axis = None, correction: int = 1, keepdims: bool = False) -> Tensor:
    """The root of `var`; its gradient is 0 where all entries are equal, as in PyTorch."""
    axes = checks.axes("std", x, axis)
    count = checks.count("std", x, axes)
    freedom = count - correction
    if freedom <= 0:
        raise ValueError(f"std: {count} values along axes {axes} and correction={correction}")
    xp = backend.of(x.data).xp
    centred = x.data - _total(x.data, axes, keepdims=True) / count
    y = xp.sqrt(_total(centred * centred, axes, keepdims=True) / freedom)

    def backward(dy: Array) -> tuple[Array]:
        slope = xp.where(
            y == 0, dy.dtype.type(0), centred / (xp.where(y == 0, dy.dtype.type(1), y) * freedom)
        )
        return (_widen(dy, centred.shape, axes) * slope,)

    return Tensor.from_op(y if keepdims else _leave_out(y, axes), (x,), backward)


@checks.float16_in_float32
def logsumexp(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log Σ e^x over one, several or (None) all axes; the largest entry is subtracted first: no overflow."""
    axes = checks.axes("logsumexp", x, axis)
    checks.count("logsumexp", x, axes)
    xp = backend.of(x.data).xp
    values = x.data
    largest = values.max(axis=axes, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, 0).astype(values.dtype)  # -inf - -inf would be NaN
    weights = xp.exp(values - largest)
    total = _total(weights, axes, keepdims=True)
    y = xp.log(total) + largest

    def backward(dy: Array) -> tuple[Array]:
        return (_widen(dy, weights.shape, axes) * (weights / total),)

    return Tensor.from_op(y if keepdims else _leave_out(y, axes), (x,), backward)
