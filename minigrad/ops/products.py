"""Products of matrices.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

import math

from minigrad import backend
from minigrad.graph import as_array
from minigrad.ops import checks
from minigrad.ops.broadcasting import broadcast_shape, unbroadcast
from minigrad.tensor import Array, Tensor

__all__ = ["einsum", "matmul"]


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
    rows_shape, columns_shape = rows.shape, columns.shape
    of_a = columns.swapaxes(-1, -2) if a.requires_grad else None  # saved for the gradients that are asked for
    of_b = rows.swapaxes(-1, -2) if b.requires_grad else None

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        dy = dy.reshape(wide_shape)
        da = None if of_a is None else unbroadcast(dy @ of_a, rows_shape).reshape(a_shape)
        db = None if of_b is None else unbroadcast(of_b @ dy, columns_shape).reshape(b_shape)
        return da, db

    if a.ndim == 1:
        y = y[..., 0, :]
    if b.ndim == 1:
        y = y[..., 0]
    return Tensor.from_op(y, (a, b), backward)


def einsum(equation: str, a: Tensor, b: Tensor) -> Tensor:
    """Einstein's sum of two operands: einsum("bid,bjd->bij", q, k) is q kᵀ for each b.

    equation: a letter for each axis of a, of b and, after "->", of the output; the products are summed over
    letters that the output does not have. "..." stands for leading axes; these, and axes of length 1,
    broadcast. Without "->", the output has the letters that occur once, in alphabetical order. Raises
    ValueError if the equation does not fit the shapes, or names an axis twice in one place.
    """
    checks.same_kind("einsum", a, b)
    of_a, of_b, of_y = checks.einsum(equation, a.shape, b.shape)
    sizes: dict[str, int] = {}
    for letter, n in (*zip(of_a, a.shape, strict=True), *zip(of_b, b.shape, strict=True)):
        sizes[letter] = n if sizes.get(letter, 1) == 1 else sizes[letter]
    a_shape, b_shape = a.shape, b.shape
    for_a = b.data if a.requires_grad else None  # saved for the gradients that are asked for
    for_b = a.data if b.requires_grad else None

    def backward(dy: Array) -> tuple[Array | None, Array | None]:
        da = None if for_a is None else _einsum(of_y, dy, of_b, for_a, of_a, sizes)
        db = None if for_b is None else _einsum(of_y, dy, of_a, for_b, of_b, sizes)
        return (
            None if da is None else unbroadcast(da, a_shape),
            None if db is None else unbroadcast(db, b_shape),
        )

    return Tensor.from_op(_einsum(of_a, a.data, of_b, b.data, of_y, sizes), (a, b), backward)


def _einsum(of_a: str, a: Array, of_b: str, b: Array, of_y: str, sizes: dict[str, int]) -> Array:
    """One product of matrices for each of the letters that all three have; a letter of y alone is broadcast along."""
    kernels = backend.of(a)
    a, b = (
        kernels.xp.broadcast_to(x, [sizes[letter] for letter in of_x]) for x, of_x in ((a, of_a), (b, of_b))
    )
    a, of_a = _without(a, of_a, of_b + of_y)
    b, of_b = _without(b, of_b, of_a + of_y)
    batch = [letter for letter in of_a if letter in of_b and letter in of_y]
    rows = [letter for letter in of_a if letter not in of_b]
    summed = [letter for letter in of_a if letter in of_b and letter not in of_y]
    columns = [letter for letter in of_b if letter not in of_a]
    alone = [letter for letter in of_y if letter not in of_a + of_b]

    def arranged(x: Array, of_x: str, *groups: list[str]) -> Array:  # batch, and two axes
        order = [of_x.index(letter) for group in (batch, *groups) for letter in group]
        lengths = [math.prod(sizes[letter] for letter in group) for group in groups]
        return x.transpose(order).reshape([*(sizes[letter] for letter in batch), *lengths])

    y = arranged(a, of_a, rows, summed) @ arranged(b, of_b, summed, columns)
    found = batch + rows + columns
    y = y.reshape([sizes[letter] for letter in found] + [1] * len(alone))
    y = y.transpose([(found + alone).index(letter) for letter in of_y])
    return kernels.xp.broadcast_to(y, [sizes[letter] for letter in of_y])


def _without(x: Array, of_x: str, others: str) -> tuple[Array, str]:
    """x summed over the axes whose letters nobody else has, and the letters that are left."""
    axes = tuple(i for i, letter in enumerate(of_x) if letter not in others)
    if not axes:
        return x, of_x
    return as_array(backend.of(x).sum_entries(x, axes)), "".join(
        letter for letter in of_x if letter in others
    )
