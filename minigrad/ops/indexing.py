"""Operations that pick entries: by index, and rows of a table by their ids.

Each is one function: the forward pass, its `backward(dy)` below it, and the node. In the comments, `…` stands for any
leading axes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from minigrad import backend
from minigrad.ops import checks
from minigrad.tensor import Array, Tensor

__all__ = ["embedding", "getitem"]


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]: integers, slices, None, …, integer arrays and boolean arrays, as in NumPy.

    An entry that is picked twice gets both gradients. Raises IndexError as NumPy does, naming the shape, but
    index arrays on a GPU are not checked, because that would wait for it: there they wrap around.
    """
    kernels = backend.of(x.data)
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, Tensor) for part in parts):
        raise TypeError("getitem: an index is an array of integers or booleans, not a Tensor")
    parts = tuple(int(part) if checks.is_integer(part) else part for part in parts)
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


def _index_array(kernels: ModuleType, part: Array | list) -> Array:
    """An array or a list in an index as an array; an empty list, in which NumPy sees floats, is one of integers."""
    array = kernels.asarray(part)
    return array.astype("int64") if isinstance(part, list) and not array.size else array


def _is_plain(part: object) -> bool:
    """Whether this part of an index picks each entry at most once, without being an array."""
    return part is None or part is Ellipsis or isinstance(part, slice) or type(part) is int


def embedding(ids: Array, table: Tensor) -> Tensor:
    """Row ids[…] of `table` for each id: ids (…) of integers, table (V, d) -> (…, d).

    Raises TypeError if the ids are not integers, IndexError if one is outside 0 … V-1 (ids that are on a GPU
    already are not checked, because that would wait for it).
    """
    kernels = backend.of(table.data)
    if table.ndim != 2:
        raise ValueError(f"embedding: the table must be a matrix (V, d), got shape {table.shape}")
    rows, width = table.shape
    ids = kernels.row_ids(ids, rows)

    def backward(dy: Array) -> tuple[Array]:
        return (kernels.scatter_add_rows(rows, ids.reshape(-1), dy.reshape(ids.size, width)),)

    return Tensor.from_op(table.data[ids], (table,), backward)
