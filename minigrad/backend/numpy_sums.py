"""Sums on the CPU that keep their digits, however many numbers they add.

NumPy adds pairs of pairs along memory, but one row after the other across it, and float32 then loses a digit every
hundredfold rows. `numpy.py` passes these functions on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as xp

from minigrad.backend import float16_as_float32
from minigrad.backend.threads import in_blocks, on_one_blas_thread

__all__ = ["global_norm", "sum_entries", "sum_rows"]

Array = xp.ndarray


@float16_as_float32
def sum_rows(x: Array) -> Array:
    """The sum of the rows: (n, d) -> (d,); its rounding error does not grow with their number."""
    return sum_rows_block(xp.stack(on_one_blas_thread(in_blocks, sum_rows_block, x)))


def sum_rows_block(x):
    # Sums of up to 256 rows, then of up to 256 sums, and so on: row after row, float32 would lose a digit every
    # hundred-fold. A product with ones takes half the time of `x.sum(axis=0)`.
    while len(x) > 1:
        n, d = x.shape
        rows = min(n, 256)
        groups = n // rows
        ones = xp.ones(rows, x.dtype)
        sums = ones @ x[: groups * rows].reshape(groups, rows, d)  # (groups, d)
        if n > groups * rows:
            sums[0] += ones[: n - groups * rows] @ x[groups * rows :]
        x = sums
    return x.sum(axis=0)


@float16_as_float32
def sum_entries(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum over some axes (sorted, none negative), which are left out.

    NumPy adds pairs of pairs along memory, but one row after the other across it: there `sum_rows` does it.
    """
    along = tuple(i for i in axes if set(range(i, x.ndim)) <= set(axes))  # the last ones
    across = [i for i in axes if i not in along]
    if not x.size or math.prod(x.shape[i] for i in axes) <= 128 or (x.flags.c_contiguous and not across):
        return x.sum(axis=axes)
    if along:
        x = xp.ascontiguousarray(x).sum(axis=along)
    if not across:
        return x
    kept = [i for i in range(x.ndim) if i not in across]
    shape = [x.shape[i] for i in kept]
    return sum_rows(x.transpose(*across, *kept).reshape(-1, math.prod(shape))).reshape(shape)


def global_norm(arrays: Sequence[Array]) -> Array:
    """The square root of the sum of all entries' squares, as an array without axes, of float64."""
    # The squares of float16 would be infinite.
    wide = [a.astype(xp.float32) if a.dtype == xp.float16 else a for a in arrays]
    total = sum(float(xp.vdot(a, a)) for a in wide)
    if 1e-30 < total < math.inf:
        return xp.sqrt(xp.asarray(total))
    # 0, NaN, infinite, or only the squares are outside of float32: then the largest entry is taken out first.
    largest = max((float(xp.abs(a).max(initial=0)) for a in wide), default=0.0)
    if not 0 < largest < math.inf:
        return xp.asarray(largest)
    return xp.asarray(
        largest * math.sqrt(sum(float(xp.square(a / largest).sum(dtype=xp.float64)) for a in wide))
    )
