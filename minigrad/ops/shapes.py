"""Operations that move entries and change none: other shapes and orders, parts put together and taken apart.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import Any

from minigrad import backend
from minigrad.ops import checks
from minigrad.ops.broadcasting import unbroadcast
from minigrad.ops.checks import Axis
from minigrad.ops.elementwise import where
from minigrad.ops.indexing import getitem
from minigrad.tensor import Array, Tensor

__all__ = [
    "concat",
    "concatenate",
    "expand",
    "flip",
    "pad",
    "permute",
    "reshape",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "transpose",
    "tril",
    "triu",
    "unsqueeze",
]


def _flat_sizes(sizes: Sequence[Any]) -> tuple[int, ...]:
    """reshape(2, 3) and reshape((2, 3)) alike."""
    return tuple(sizes[0]) if len(sizes) == 1 and hasattr(sizes[0], "__len__") else tuple(sizes)


def reshape(x: Tensor, *shape: int | Sequence[int]) -> Tensor:
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


def permute(x: Tensor, *axes: int | Sequence[int]) -> Tensor:
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


def transpose(x: Tensor, axis0: int = -2, axis1: int = -1, *more: int) -> Tensor:
    """x with two axes swapped: by default the last two, (…, n, m) -> (…, m, n).

    Raises TypeError for an order of all axes, which NumPy's transpose takes: use `permute`.
    """
    if more or not (checks.is_integer(axis0) and checks.is_integer(axis1)):
        asked = axis0 if isinstance(axis0, tuple | list) else (axis0, axis1, *more)
        raise TypeError(
            f"transpose swaps two axes; for an order of all of them write x.permute{tuple(asked)}"
        )
    order = list(range(x.ndim))
    for one in (axis0, axis1):
        if not -x.ndim <= one < x.ndim:
            raise ValueError(f"transpose: there is no axis {one} in shape {x.shape}")
    order[axis0], order[axis1] = order[axis1], order[axis0]
    return permute(x, order)


def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose` by NumPy's name: x with two axes swapped."""
    return transpose(x, axis0, axis1)


def expand(x: Tensor, *shape: int | Sequence[int]) -> Tensor:
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
    """x with a new axis of length 1 at position `axis`."""
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


def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """`concat` by NumPy's name."""
    return concat(tensors, axis)


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
    """x cut along an axis: into equal parts of length `sections`, the last perhaps shorter, or into parts of
    these lengths, as `torch.split` does."""
    (place,) = checks.axes("split", x, axis)
    length = x.shape[place]
    if checks.is_integer(sections):
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


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """x (…, n, m) with zeros above a diagonal: the main one, or `diagonal` places to the right of it."""
    return _triangle("tril", x, diagonal, lower=True)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """x (…, n, m) with zeros below a diagonal: the main one, or `diagonal` places to the right of it."""
    return _triangle("triu", x, diagonal, lower=False)


def _triangle(op: str, x: Tensor, diagonal: int, lower: bool) -> Tensor:
    if x.ndim < 2:
        raise ValueError(f"{op}: expected (…, n, m), got shape {x.shape}")
    if not checks.is_integer(diagonal):
        raise TypeError(f"{op}: diagonal must be an integer, got {diagonal!r}")
    arange = backend.of(x.data).xp.arange
    # How far from the main diagonal
    to_the_right = arange(x.shape[-1]) - arange(x.shape[-2])[:, None]  # (n, m)
    return where(to_the_right <= diagonal if lower else to_the_right >= diagonal, x, 0.0)
