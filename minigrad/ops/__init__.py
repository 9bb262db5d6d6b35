"""The differentiable operations: `ops.softmax`, `ops.matmul`, …

Of each name in both `composed.py` and `fused.py`, this is the fused one.
"""

from __future__ import annotations

from typing import Any

from minigrad.ops import basic, composed, fused
from minigrad.ops.basic import *  # noqa: F403
from minigrad.ops.fused import *  # noqa: F403
from minigrad.tensor import Tensor

__all__ = ["composed", "fused"]
__all__ += basic.__all__
__all__ += fused.__all__

OPERATORS: dict[str, Any] = {
    "__add__": basic.add,
    "__radd__": lambda x, other: basic.add(other, x),
    "__sub__": basic.sub,
    "__rsub__": lambda x, other: basic.sub(other, x),
    "__mul__": basic.mul,
    "__rmul__": lambda x, other: basic.mul(other, x),
    "__truediv__": basic.div,
    "__rtruediv__": lambda x, other: basic.div(other, x),
    "__pow__": basic.pow,
    "__rpow__": lambda x, other: basic.pow(other, x),
    "__neg__": basic.neg,
    "__abs__": basic.abs,
    "__matmul__": basic.matmul,
    "__rmatmul__": lambda x, other: basic.matmul(other, x),
    "__getitem__": basic.getitem,
}

# What the class Tensor declares is bound here: an operator to the one in the table, a method to the operation
# of its name.
for _name in Tensor.__annotations__:
    setattr(Tensor, _name, OPERATORS.get(_name) or globals()[_name])
