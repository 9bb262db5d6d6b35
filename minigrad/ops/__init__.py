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


def _matrix_transpose(x: Tensor) -> Tensor:
    """x with its two axes swapped. Raises ValueError for a tensor with more: say which with transpose()."""
    if x.ndim > 2:
        raise ValueError(f"T is for up to two axes, this tensor has shape {x.shape}: use transpose()")
    return basic.permute(x, tuple(reversed(range(x.ndim))))


# Tensor's operators and methods: this is the one place where they are bound.
METHODS: dict[str, Any] = {
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
    "T": property(_matrix_transpose),
    "abs": basic.abs,
    "astype": basic.astype,
    "exp": basic.exp,
    "expand": basic.expand,
    "flip": basic.flip,
    "log": basic.log,
    "log_softmax": fused.log_softmax,
    "logsumexp": basic.logsumexp,
    "masked_fill": basic.masked_fill,
    "max": basic.max,
    "mean": basic.mean,
    "permute": basic.permute,
    "relu": basic.relu,
    "reshape": basic.reshape,
    "sigmoid": basic.sigmoid,
    "softmax": fused.softmax,
    "sqrt": basic.sqrt,
    "squeeze": basic.squeeze,
    "sum": basic.sum,
    "tanh": basic.tanh,
    "transpose": basic.transpose,
    "unsqueeze": basic.unsqueeze,
    "var": basic.var,
}
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
