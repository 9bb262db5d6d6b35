"""The differentiable operations: `ops.softmax`, `ops.matmul`, …

Of each name in both `composed.py` and `fused.py`, this is the fused one.
"""

from __future__ import annotations

from typing import Any

from minigrad.ops import composed, elementwise, fused, indexing, numpy_calls, products, reductions, shapes
from minigrad.ops.elementwise import *  # noqa: F403
from minigrad.ops.fused import *  # noqa: F403
from minigrad.ops.indexing import *  # noqa: F403
from minigrad.ops.products import *  # noqa: F403
from minigrad.ops.reductions import *  # noqa: F403
from minigrad.ops.shapes import *  # noqa: F403
from minigrad.tensor import Tensor

MODULES = (elementwise, reductions, products, shapes, indexing, fused)

__all__ = ["composed", "fused", *(name for module in MODULES for name in module.__all__)]

OPERATORS: dict[str, Any] = {
    "__add__": elementwise.add,
    "__radd__": lambda x, other: elementwise.add(other, x),
    "__sub__": elementwise.sub,
    "__rsub__": lambda x, other: elementwise.sub(other, x),
    "__mul__": elementwise.mul,
    "__rmul__": lambda x, other: elementwise.mul(other, x),
    "__truediv__": elementwise.div,
    "__rtruediv__": lambda x, other: elementwise.div(other, x),
    "__pow__": elementwise.pow,
    "__rpow__": lambda x, other: elementwise.pow(other, x),
    "__neg__": elementwise.neg,
    "__abs__": elementwise.abs,
    "__matmul__": products.matmul,
    "__rmatmul__": lambda x, other: products.matmul(other, x),
    "__getitem__": indexing.getitem,
    "__array_ufunc__": numpy_calls.array_ufunc,
    "__array_function__": numpy_calls.array_function,
}

# What the class Tensor declares is bound here: an operator to the one in the table, a method to the operation
# of its name.
for _name in Tensor.__annotations__:
    setattr(Tensor, _name, OPERATORS.get(_name) or globals()[_name])
