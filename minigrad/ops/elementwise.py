"""Elementwise operations: on two operands, with broadcasting, and on one.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

import math
import numbers

from minigrad import backend
from minigrad.ops import checks
from minigrad.ops.broadcasting import broadcast_shape, unbroadcast
from minigrad.ops.checks import Operand
from minigrad.tensor import Array, DTypeLike, Tensor, float_dtype

__all__ = [
    "abs",
    "add",
    "astype",
    "clip",
    "cos",
    "div",
    "erf",
    "exp",
    "log",
    "masked_fill",
    "maximum",
    "mul",
    "neg",
    "pow",
    "relu",
    "sigmoid",
    "sin",
    "sqrt",
    "sub",
    "tanh",
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
    a_shape, b_shape = a.shape, b.shape
    x = a.data if b.requires_grad else None  # saved for the other's gradient, if that is asked for
    y = b.data if a.requires_grad else None

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        da = None if y is None else unbroadcast(dy * y, a_shape)
        db = None if x is None else unbroadcast(dy * x, b_shape)
        return da, db

    return Tensor.from_op(a.data * b.data, (a, b), backward)


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

    The gradient of b is y log a: NaN where a < 0; where a = 0 it is 0 for b ≥ 0 and -∞ for b < 0. Where b = 0
    that of a is 0, whatever a is. All as in PyTorch.
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

    The gradient goes to the larger one; where they tie, each gets half; where one is NaN, each gets all, as
    in PyTorch.
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

    The branch that is not taken gets the gradient 0, whatever dy is, even infinite or NaN, as in PyTorch.
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


def sin(x: Tensor) -> Tensor:
    """The sine, of radians."""
    xp = backend.of(x.data).xp
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (dy * xp.cos(values),)

    return Tensor.from_op(xp.sin(values), (x,), backward)


def cos(x: Tensor) -> Tensor:
    """The cosine, of radians."""
    xp = backend.of(x.data).xp
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (-dy * xp.sin(values),)

    return Tensor.from_op(xp.cos(values), (x,), backward)


def clip(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """x limited to `min` … `max`; the gradient is 0 outside of these, and at NaN, as in PyTorch.

    Raises ValueError if neither number is given, TypeError for what is not a number.
    """
    if min is None and max is None:
        raise ValueError("clip: expected min, max or both")
    for name, bound in (("min", min), ("max", max)):
        if not isinstance(bound, numbers.Real | None):
            raise TypeError(f"clip: {name} must be a number, got {type(bound).__name__}")
    xp = backend.of(x.data).xp
    values = x.data
    low, high = (-math.inf if min is None else float(min)), (math.inf if max is None else float(max))

    def backward(dy: Array) -> tuple[Array]:
        return (xp.where((values >= low) & (values <= high), dy, dy.dtype.type(0)),)

    return Tensor.from_op(xp.minimum(xp.maximum(values, low), high), (x,), backward)


def erf(x: Tensor) -> Tensor:
    """The error function 2/√π ∫₀ˣ e^{-t²} dt."""
    kernels = backend.of(x.data)
    values = x.data

    def backward(dy: Array) -> tuple[Array]:
        return (dy * (2 / math.sqrt(math.pi) * kernels.xp.exp(-values * values)),)

    return Tensor.from_op(kernels.erf(values), (x,), backward)


@checks.float16_in_float32
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^{-x}), computed as e^x / (1 + e^x) where x < 0: nothing overflows, and no digit is lost."""
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


def astype(x: Tensor, dtype: DTypeLike) -> Tensor:
    """x in another float dtype; the gradient comes back in the old one."""

    old_dtype = x.dtype

    def backward(dy: Array) -> tuple[Array]:
        return (dy.astype(old_dtype),)

    return Tensor.from_op(x.data.astype(float_dtype(dtype, x.dtype)), (x,), backward)
