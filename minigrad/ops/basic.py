"""The basic operations: elementwise, reductions, shapes, indexing, products.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for
any leading axes.
"""

from __future__ import annotations

import builtins
import itertools
import math
import numbers
from collections.abc import Sequence
from typing import Any

from minigrad import backend
from minigrad.ops import checks
from minigrad.ops.broadcasting import broadcast_shape, sum_entries, unbroadcast
from minigrad.ops.checks import Axis, Operand
from minigrad.tensor import Array, Tensor, float_dtype

__all__ = [
    "abs",
    "add",
    "astype",
    "concat",
    "div",
    "embedding",
    "erf",
    "exp",
    "expand",
    "flip",
    "getitem",
    "log",
    "logsumexp",
    "masked_fill",
    "matmul",
    "max",
    "maximum",
    "mean",
    "mul",
    "neg",
    "pad",
    "permute",
    "pow",
    "relu",
    "reshape",
    "sigmoid",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "tanh",
    "transpose",
    "unsqueeze",
    "var",
    "where",
]

# --- Elementwise, two operands ---------------------------------------------------------------------------


def add(a: Operand, b: Operand) -> Tensor:
    """a + b, with broadcasting."""
    a, b = checks.pair("add", a, b)
    a_shape, b_shape = a.shape, b.shape

    def backward(dy: Array) -> tuple[Array, Array]:
        return unbroadcast(dy, a_shape), unbroadcast(dy, b_shape)

    return Tensor.from_op(a.data + b.data, (a, b), backward)


def sub(a: Operand, b: Operand) -> Tensor:
    """a - b, with broadcasting."""
    a, b = checks.pair("sub", a, b)
    a_shape, b_shape = a.shape, b.shape
    need_b = b.requires_grad

    def backward(dy: Array) -> tuple[Array, Array | None]:
        return unbroadcast(dy, a_shape), unbroadcast(-dy, b_shape) if need_b else None

    return Tensor.from_op(a.data - b.data, (a, b), backward)


def mul(a: Operand, b: Operand) -> Tensor:
    """a · b entry by entry, with broadcasting."""
    a, b = checks.pair("mul", a, b)
    x, y = a.data, b.data
    need_a, need_b = a.requires_grad, b.requires_grad

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        da = unbroadcast(dy * y, x.shape) if need_a else None
        db = unbroadcast(dy * x, y.shape) if need_b else None
        return da, db

    return Tensor.from_op(x * y, (a, b), backward)


def div(a: Operand, b: Operand) -> Tensor:
    """a / b entry by entry, with broadcasting."""
    a, b = checks.pair("div", a, b)
    a_shape, divisor = a.shape, b.data
    quotient = a.data / divisor
    need_a, need_b = a.requires_grad, b.requires_grad

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        da = unbroadcast(dy / divisor, a_shape) if need_a else None
        # not -dy a / b²: the square leaves the range of float32 from 1e19 and 1e-23 on
        db = unbroadcast(-dy * (quotient / divisor), divisor.shape) if need_b else None
        return da, db

    return Tensor.from_op(quotient, (a, b), backward)


def pow(a: Operand, b: Operand) -> Tensor:
    """a to the power of b entry by entry, with broadcasting.

    The gradient of b is y log a: NaN where a < 0; where a = 0 it is 0 for b ≥ 0 and -∞ below. Where b = 0 that of a
    is 0, whatever a is. All as in PyTorch.
    """
    a, b = checks.pair("pow", a, b)
    xp = backend.of(a.data).xp
    base, exponent = a.data, b.data
    y = base**exponent
    need_a, need_b = a.requires_grad, b.requires_grad

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        da = db = None
        zero, one = dy.dtype.type(0), dy.dtype.type(1)
        if need_a:
            constant = exponent == 0
            slope = exponent * base ** xp.where(constant, one, exponent - 1)
            da = unbroadcast(xp.where(constant, zero, dy * slope), base.shape)
        if need_b:
            constant = (base == 0) & (exponent >= 0)
            slope = xp.where(constant, zero, y * xp.log(xp.where(constant, one, base)))
            db = unbroadcast(dy * slope, exponent.shape)
        return da, db

    return Tensor.from_op(y, (a, b), backward)


def maximum(a: Operand, b: Operand) -> Tensor:
    """The larger of a and b entry by entry, NaN if one is.

    The gradient goes to the larger one; where they tie, each gets half, where one is NaN, each gets all, as in PyTorch.
    """
    a, b = checks.pair("maximum", a, b)
    xp = backend.of(a.data).xp
    x, y = a.data, b.data

    def backward(dy: Array) -> tuple[Array, Array]:
        zero = dy.dtype.type(0)
        halved = xp.where(x == y, dy / 2, dy)
        da, db = xp.where(x < y, zero, halved), xp.where(x > y, zero, halved)
        return unbroadcast(da, x.shape), unbroadcast(db, y.shape)

    return Tensor.from_op(xp.maximum(x, y), (a, b), backward)


def where(condition: Array, a: Operand, b: Operand) -> Tensor:
    """a where `condition` (a boolean array) is true, else b, with broadcasting of all three.

    The branch that is not taken gets the gradient 0, whatever dy is: also an infinite or NaN one, as in PyTorch.
    """
    a, b = checks.pair("where", a, b)
    kernels = backend.of(a.data)
    xp = kernels.xp
    condition = kernels.asarray(condition, dtype=bool)
    try:
        broadcast_shape(condition.shape, a.shape, b.shape)
    except ValueError:
        raise ValueError(
            f"where: the condition of shape {condition.shape} does not broadcast with {a.shape} and {b.shape}"
        ) from None
    a_shape, b_shape = a.shape, b.shape

    def backward(dy: Array) -> tuple[Array, Array]:
        zero = dy.dtype.type(0)  # a product with the condition would make NaN of inf · 0
        da, db = xp.where(condition, dy, zero), xp.where(condition, zero, dy)
        return unbroadcast(da, a_shape), unbroadcast(db, b_shape)

    return Tensor.from_op(xp.where(condition, a.data, b.data), (a, b), backward)


def masked_fill(x: Tensor, mask: Array, value: float) -> Tensor:
    """x with `value` wherever `mask`, a boolean array that broadcasts to the shape of x, is true."""
    mask = backend.of(x.data).asarray(mask, dtype=bool)
    try:
        fits = broadcast_shape(mask.shape, x.shape) == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"masked_fill: the mask has shape {mask.shape}, which does not broadcast to {x.shape}"
        )
    return where(mask, value, x)


# --- Elementwise, one operand ----------------------------------------------------------------------------


def neg(x: Tensor) -> Tensor:
    """-x."""

    def backward(dy: Array) -> tuple[Array]:
        return (-dy,)

    return Tensor.from_op(-x.data, (x,), backward)


def abs(x: Tensor) -> Tensor:
    """|x|; its slope at 0, and at NaN, is 0, as in PyTorch."""
    xp = backend.of(x.data).xp
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (dy * ((values > 0).astype(dy.dtype) - (values < 0).astype(dy.dtype)),)

    return Tensor.from_op(xp.abs(values), (x,), backward)


def exp(x: Tensor) -> Tensor:
    """e to the power of x."""
    y = backend.of(x.data).xp.exp(x.data)

    def backward(dy: Array) -> tuple[Array]:
        return (dy * y,)

    return Tensor.from_op(y, (x,), backward)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (dy / values,)

    return Tensor.from_op(backend.of(values).xp.log(values), (x,), backward)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    y = backend.of(x.data).xp.sqrt(x.data)

    def backward(dy: Array) -> tuple[Array]:
        return (dy / (2 * y),)

    return Tensor.from_op(y, (x,), backward)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    y = backend.of(x.data).xp.tanh(x.data)

    def backward(dy: Array) -> tuple[Array]:
        return (dy * (1 - y * y),)

    return Tensor.from_op(y, (x,), backward)


def erf(x: Tensor) -> Tensor:
    """The error function 2/√π ∫₀ˣ e^{-t²} dt."""
    kernels = backend.of(x.data)
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (dy * (2 / math.sqrt(math.pi) * kernels.xp.exp(-values * values)),)

    return Tensor.from_op(kernels.erf(values), (x,), backward)


@checks.float16_in_float32
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^{-x}), where x < 0 as e^x / (1 + e^x): no exponential overflows, and no digit is lost."""
    xp = backend.of(x.data).xp
    e = xp.exp(-xp.abs(x.data))
    y = xp.where(x.data < 0, e, e.dtype.type(1)) / (1 + e)

    def backward(dy: Array) -> tuple[Array]:
        return (dy * y * (1 - y),)

    return Tensor.from_op(y, (x,), backward)


def relu(x: Tensor) -> Tensor:
    """max(x, 0); its slope at 0 is 0, at NaN 1, as in PyTorch."""
    xp = backend.of(x.data).xp
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (xp.where(values <= 0, dy.dtype.type(0), dy),)

    return Tensor.from_op(xp.maximum(values, 0), (x,), backward)


def astype(x: Tensor, dtype: Any) -> Tensor:
    """x in another float dtype; the gradient comes back in the old one."""

    old_dtype = x.dtype

    def backward(dy: Array) -> tuple[Array]:
        return (dy.astype(old_dtype),)

    return Tensor.from_op(x.data.astype(float_dtype(dtype, x.dtype)), (x,), backward)


# --- Reductions ------------------------------------------------------------------------------------------


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


# --- Products --------------------------------------------------------------------------------------------


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product over the last two axes; leading axes broadcast, 1-D operands as in NumPy.

    a (…, n, k) or (k,), b (…, k, m) or (k,) -> (…, n, m), without n if a is 1-D, without m if b is 1-D.
    Raises ValueError if the inner lengths differ or the leading axes do not broadcast.
    """
    checks.same_kind("matmul", a, b)
    if not a.ndim or not b.ndim:
        raise ValueError(f"matmul: needs at least one axis on both sides, got shapes {a.shape} and {b.shape}")
    rows = a.data if a.ndim > 1 else a.data[None, :]  # (…, n, k)
    columns = b.data if b.ndim > 1 else b.data[:, None]  # (…, k, m)
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(
            f"matmul: the inner lengths differ, {rows.shape[-1]} and {columns.shape[-2]}, "
            f"in shapes {a.shape} @ {b.shape}"
        )
    try:
        broadcast_shape(rows.shape[:-2], columns.shape[:-2])
    except ValueError:
        raise ValueError(f"matmul: the leading axes of {a.shape} and {b.shape} do not broadcast") from None
    y = rows @ columns  # (…, n, m)
    wide_shape, a_shape, b_shape = y.shape, a.shape, b.shape
    need_a, need_b = a.requires_grad, b.requires_grad

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        dy = dy.reshape(wide_shape)
        da = db = None
        if need_a:
            da = unbroadcast(dy @ columns.swapaxes(-1, -2), rows.shape).reshape(a_shape)
        if need_b:
            db = unbroadcast(rows.swapaxes(-1, -2) @ dy, columns.shape).reshape(b_shape)
        return da, db

    if a.ndim == 1:
        y = y[..., 0, :]
    if b.ndim == 1:
        y = y[..., 0]
    return Tensor.from_op(y, (a, b), backward)


# --- Shapes ----------------------------------------------------------------------------------------------


def _flat_sizes(sizes: Sequence[Any]) -> tuple[int, ...]:
    """reshape(2, 3) and reshape((2, 3)) alike."""
    return tuple(sizes[0]) if len(sizes) == 1 and hasattr(sizes[0], "__len__") else tuple(sizes)


def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same entries in the same order with other axes; one length may be -1."""
    new = _flat_sizes(shape)
    try:
        y = x.data.reshape(new)
    except ValueError:
        raise ValueError(f"reshape: {x.size} entries of shape {x.shape} do not fit shape {new}") from None

    old = x.shape

    def backward(dy: Array) -> tuple[Array]:
        return (dy.reshape(old),)

    return Tensor.from_op(y, (x,), backward)


def permute(x: Tensor, *axes: Any) -> Tensor:
    """The axes of x in another order: axis i of the output is axis axes[i] of x."""
    order = _flat_sizes(axes)
    if sorted(one % x.ndim if -x.ndim <= one < x.ndim else -1 for one in order) != list(range(x.ndim)):
        raise ValueError(f"permute: {order} does not name each axis of shape {x.shape} once")
    inverse = [0] * x.ndim
    for i, one in enumerate(order):
        inverse[one] = i

    def backward(dy: Array) -> tuple[Array]:
        return (dy.transpose(inverse),)

    return Tensor.from_op(x.data.transpose(order), (x,), backward)


def transpose(x: Tensor, axis0: int = -2, axis1: int = -1) -> Tensor:
    """x with two axes swapped: by default the last two, (…, n, m) -> (…, m, n)."""
    order = list(range(x.ndim))
    for one in (axis0, axis1):
        if not -x.ndim <= one < x.ndim:
            raise ValueError(f"transpose: there is no axis {one} in shape {x.shape}")
    order[axis0], order[axis1] = order[axis1], order[axis0]
    return permute(x, order)


def expand(x: Tensor, *shape: Any) -> Tensor:
    """x broadcast to `shape`; a length of -1 keeps that of x."""
    sizes = _flat_sizes(shape)
    xp = backend.of(x.data).xp
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    target = tuple(have if wanted == -1 else wanted for have, wanted in zip(own, sizes, strict=False))
    try:
        y = xp.broadcast_to(x.data, target)
    except ValueError:
        raise ValueError(f"expand: shape {x.shape} does not broadcast to {sizes}") from None

    old = x.shape

    def backward(dy: Array) -> tuple[Array]:
        return (unbroadcast(dy, old),)

    return Tensor.from_op(y, (x,), backward)


def squeeze(x: Tensor, axis: Axis = None) -> Tensor:
    """x without the axes of length 1, or without those named. Raises ValueError if one named is longer."""
    axes = (
        tuple(i for i, n in enumerate(x.shape) if n == 1) if axis is None else checks.axes("squeeze", x, axis)
    )
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: axis {one} of shape {x.shape} has length {x.shape[one]}, not 1")
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in axes))


def unsqueeze(x: Tensor, axis: int) -> Tensor:
    """x with a new axis of length 1 in place `axis`."""
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise ValueError(f"unsqueeze: there is no place {axis} for an axis in shape {x.shape}")
    place = axis % (x.ndim + 1)
    return reshape(x, x.shape[:place] + (1,) + x.shape[place:])


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors put one after the other along an axis that they have; the other lengths must agree."""
    tensors = tuple(tensors)
    if not tensors:
        raise ValueError("concat: needs at least one tensor")
    checks.same_kind("concat", *tensors)
    (place,) = checks.axes("concat", tensors[0], axis)
    for other in tensors[1:]:
        if other.ndim != tensors[0].ndim or any(
            n != m for i, (n, m) in enumerate(zip(tensors[0].shape, other.shape, strict=True)) if i != place
        ):
            raise ValueError(f"concat: {tensors[0].shape} and {other.shape} differ beside axis {axis}")
    xp = backend.of(tensors[0].data).xp
    ends = [0]
    for tensor in tensors:
        ends.append(ends[-1] + tensor.shape[place])

    def backward(dy: Array) -> list[Array]:
        before = (slice(None),) * place
        return [dy[(*before, slice(i, j))] for i, j in itertools.pairwise(ends)]

    return Tensor.from_op(xp.concatenate([t.data for t in tensors], axis=place), tensors, backward)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape put beside each other along a new axis."""
    tensors = tuple(tensors)
    if not tensors:
        raise ValueError("stack: needs at least one tensor")
    checks.same_kind("stack", *tensors)
    for other in tensors[1:]:
        if other.shape != tensors[0].shape:
            raise ValueError(f"stack: the shapes {tensors[0].shape} and {other.shape} differ")
    return concat([unsqueeze(t, axis) for t in tensors], axis)


def split(x: Tensor, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """x cut along an axis: into equal parts of length `sections`, the last maybe shorter, or parts of these
    lengths, as `torch.split` does."""
    (place,) = checks.axes("split", x, axis)
    length = x.shape[place]
    if _is_integer(sections):
        sections = int(sections)  # type: ignore[arg-type]
        if sections < 1:
            raise ValueError(f"split: a part must have length 1 or more, got {sections}")
        parts = [min(sections, length - start) for start in range(0, builtins.max(1, length), sections)]
    else:
        parts = [int(part) for part in sections]  # type: ignore[union-attr]
        if builtins.sum(parts) != length or min(parts, default=0) < 0:
            raise ValueError(f"split: parts of {parts} do not add up to the {length} of axis {axis}")
    pieces, start = [], 0
    for part in parts:
        pieces.append(getitem(x, (slice(None),) * place + (slice(start, start + part),)))
        start += part
    return pieces


def pad(x: Tensor, widths: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """x with `value` around it: widths gives (before, after) for each axis, as in `numpy.pad`."""
    widths = [tuple(map(int, one)) for one in widths]  # type: ignore[misc]
    if len(widths) != x.ndim or any(len(one) != 2 or min(one) < 0 for one in widths):
        raise ValueError(f"pad: expected {x.ndim} pairs of (before, after) for shape {x.shape}, got {widths}")
    inside = tuple(slice(before, before + n) for (before, _), n in zip(widths, x.shape, strict=True))

    def backward(dy: Array) -> tuple[Array]:
        return (dy[inside],)

    xp = backend.of(x.data).xp
    return Tensor.from_op(xp.pad(x.data, widths, constant_values=value), (x,), backward)


def flip(x: Tensor, axis: Axis = None) -> Tensor:
    """x with the order along one, several or (None) all axes reversed."""
    axes = checks.axes("flip", x, axis)
    backwards = tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))

    def backward(dy: Array) -> tuple[Array]:
        return (dy[backwards],)

    return Tensor.from_op(x.data[backwards], (x,), backward)


# --- Indexing --------------------------------------------------------------------------------------------


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]: integers, slices, None, …, integer arrays and boolean arrays, as in NumPy.

    An entry that is picked twice gets both gradients. Raises IndexError as NumPy does, naming the shape; only index
    arrays are not checked on a GPU, where they wrap around, because that would wait for it.
    """
    kernels = backend.of(x.data)
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, Tensor) for part in parts):
        raise TypeError("getitem: an index is an array of integers or booleans, not a Tensor")
    parts = tuple(int(part) if _is_integer(part) else part for part in parts)
    parts = tuple(part if _is_plain(part) else _index_array(kernels, part) for part in parts)
    try:
        y = x.data[parts]
    except IndexError as error:
        raise IndexError(f"getitem: {error}, in shape {x.shape}") from None
    shape = x.shape
    picks_once = all(_is_plain(part) or part.dtype == bool for part in parts)

    def backward(dy: Array) -> tuple[Array]:
        if not picks_once:
            return (kernels.scatter_add(shape, parts, dy),)
        dx = kernels.xp.zeros(shape, dy.dtype)
        dx[parts] = dy
        return (dx,)

    return Tensor.from_op(y, (x,), backward)


def _is_integer(part: Any) -> bool:
    return isinstance(part, numbers.Integral) and not isinstance(part, bool)


def _index_array(kernels: Any, part: Any) -> Array:
    """An array or a list in an index as an array; an empty list, in which NumPy sees floats, is one of integers."""
    array = kernels.asarray(part)
    return array.astype("int64") if isinstance(part, list) and not array.size else array


def _is_plain(part: Any) -> bool:
    """Whether this part of an index picks each entry at most once, without being an array."""
    return part is None or part is Ellipsis or isinstance(part, slice) or type(part) is int


def embedding(ids: Array, table: Tensor) -> Tensor:
    """Row ids[…] of `table` for each id: ids (…) of integers, table (V, d) -> (…, d).

    Raises TypeError if the ids are not integers, IndexError if one is outside 0 … V-1 (ids that are on a GPU
    already are not checked: that would wait for it).
    """
    kernels = backend.of(table.data)
    if table.ndim != 2:
        raise ValueError(f"embedding: the table must be a matrix (V, d), got shape {table.shape}")
    rows, width = table.shape
    ids = kernels.row_ids(ids, rows)

    def backward(dy: Array) -> tuple[Array]:
        return (kernels.scatter_add_rows(rows, ids.reshape(-1), dy.reshape(ids.size, width)),)

    return Tensor.from_op(table.data[ids], (table,), backward)
