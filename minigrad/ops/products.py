"""Products of matrices.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

from minigrad.ops import checks
from minigrad.ops.broadcasting import broadcast_shape, unbroadcast
from minigrad.tensor import Array, Tensor

__all__ = ["matmul"]


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
