"""What NumPy's own functions do when they are given a Tensor.

An operator between an array or a NumPy scalar and a Tensor is the Tensor's. Everything else would leave the
graph, so it raises a TypeError that names what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from minigrad.tensor import Tensor

REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "power": "__rpow__",
    "matmul": "__rmatmul__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__",
    "equal": "__eq__", "not_equal": "__ne__",
}  # fmt: skip
# The operations here that have another name than NumPy's functions.
NAMES = {
    "absolute": "abs", "amax": "max", "amin": "min", "broadcast_to": "expand", "divide": "div", "dot": "matmul",
    "expand_dims": "unsqueeze", "multiply": "mul", "negative": "neg", "power": "pow", "subtract": "sub",
    "transpose": "permute",
}  # fmt: skip


def array_ufunc(
    tensor: Tensor, ufunc: Callable[..., Any], method: str, *inputs: object, **settings: object
) -> Any:
    """NumPy's protocol for `np.exp(tensor)` and `array + tensor`."""
    if (
        method == "__call__"
        and not settings
        and ufunc.__name__ in REFLECTED
        and not isinstance(inputs[0], Tensor)
    ):
        return getattr(inputs[1], REFLECTED[ufunc.__name__])(inputs[0])
    raise TypeError(_what_to_write(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"))


def array_function(
    tensor: Tensor,
    function: Callable[..., Any],
    types: Iterable[type],
    inputs: Sequence[object],
    settings: Mapping[str, object],
) -> Any:
    """NumPy's protocol for `np.concatenate(tensors)`: applied to the arrays, if that loses no gradient."""
    if any(found.requires_grad for found in _tensors([*inputs, *settings.values()])):
        raise TypeError(_what_to_write(function.__name__))
    return function(*map(_plain, inputs), **{name: _plain(value) for name, value in settings.items()})


def _what_to_write(name: str) -> str:
    from minigrad import ops  # which has this file's functions

    own = NAMES.get(name, name)
    line = (
        f"write minigrad.ops.{own}(…)"
        if own in ops.__all__
        else f"say np.{name}(x.numpy()) to leave the graph"
    )
    return f"np.{name} of a Tensor is not recorded, so its gradient would be lost: {line}"


def _tensors(values: Iterable[object]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _plain(value: object) -> object:
    if isinstance(value, Tensor):
        return value.numpy()
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value
