"""Operations that leave axes out: sums, means, the largest entry.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

from minigrad import backend
from minigrad.ops import checks
from minigrad.ops.broadcasting import sum_entries
from minigrad.ops.checks import Axis
from minigrad.tensor import Array, Tensor

__all__ = ["logsumexp", "max", "mean", "sum", "var"]


def _widen(reduced: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """What a reduction over `axes` gave, with these axes back as length 1."""
    return reduced.reshape([1 if i in axes else n for i, n in enumerate(shape)])


def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over one, several or (None) all axes."""
    axes = checks.axes("sum", x, axis)
    xp = backend.of(x.data).xp
    shape = x.shape

    def backward(dy: Array) -> tuple[Array]:
        return (xp.broadcast_to(_widen(dy, shape, axes), shape),)

    return Tensor.from_op(sum_entries(x.data, axes, bool(keepdims)), (x,), backward)


@checks.float16_in_float32
def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over one, several or (None) all axes. Raises ValueError if there is nothing to average."""
    axes = checks.axes("mean", x, axis)
    count = checks.count("mean", x, axes)
    xp = backend.of(x.data).xp
    shape = x.shape

    def backward(dy: Array) -> tuple[Array]:
        return (xp.broadcast_to(_widen(dy / count, shape, axes), shape),)

    return Tensor.from_op(x.data.mean(axis=axes, keepdims=bool(keepdims)), (x,), backward)


@checks.float16_in_float32
def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest entry over one, several or (None) all axes; ties share the gradient equally.

    Raises ValueError if there is nothing to compare.
    """
    axes = checks.axes("max", x, axis)
    checks.count("max", x, axes)
    xp = backend.of(x.data).xp
    values = x.data
    largest = values.max(axis=axes, keepdims=True)

    def backward(dy: Array) -> tuple[Array]:
        winners = values == largest
        ties = winners.sum(axis=axes, keepdims=True).astype(dy.dtype)
        return (xp.where(winners, _widen(dy, values.shape, axes) / ties, dy.dtype.type(0)),)

    y = largest if keepdims else largest.reshape([n for i, n in enumerate(x.shape) if i not in axes])
    return Tensor.from_op(y, (x,), backward)


@checks.float16_in_float32
def var(x: Tensor, axis: Axis = None, correction: int = 1, keepdims: bool = False) -> Tensor:
    """The variance over one, several or (None) all axes, divided by n - correction.

    PyTorch's default is correction=1; LayerNorm uses 0. Raises ValueError if n - correction is not positive.
    """
    axes = checks.axes("var", x, axis)
    freedom = checks.count("var", x, axes) - correction
    if freedom <= 0:
        raise ValueError(f"var: {freedom + correction} values along axes {axes} and correction={correction}")
    centred = x.data - x.data.mean(axis=axes, keepdims=True)

    def backward(dy: Array) -> tuple[Array]:
        return (_widen(dy, centred.shape, axes) * centred * (2 / freedom),)

    y = (centred * centred).sum(axis=axes, keepdims=bool(keepdims)) / freedom
    return Tensor.from_op(y, (x,), backward)


@checks.float16_in_float32
def logsumexp(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log Σ e^x over one, several or (None) all axes; the largest entry is taken out first: no overflow."""
    axes = checks.axes("logsumexp", x, axis)
    checks.count("logsumexp", x, axes)
    xp = backend.of(x.data).xp
    values = x.data
    largest = values.max(axis=axes, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, 0).astype(values.dtype)  # -inf - -inf would be NaN
    weights = xp.exp(values - largest)
    total = weights.sum(axis=axes, keepdims=True)
    y = xp.log(total) + largest

    def backward(dy: Array) -> tuple[Array]:
        return (_widen(dy, weights.shape, axes) * (weights / total),)

    shape = y.shape if keepdims else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return Tensor.from_op(y.reshape(shape), (x,), backward)
