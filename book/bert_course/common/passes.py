"""How many passes over memory an operation makes: counted, not timed, and so the same on each machine.

A pass is one reading or one writing of a whole array. `count_passes` runs an operation forward and backward on arrays
that note what each NumPy operator reads and writes. Inside a kernel of the backend, which works block by block in the
cache, an array counts once. `passes_of` counts for a function of plain arrays.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from minigrad import backend
from minigrad.tensor import Tensor


class Counted(np.ndarray):
    """An array whose operators add the entries that they read and write to `entries`, and 1 to `operators`."""

    entries: ClassVar[int] = 0
    operators: ClassVar[int] = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Do what NumPy does, and count inputs and output."""
        out = settings.pop("out", None)
        if out is not None:
            settings["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **settings)
        Counted.operators += 1
        _count(*inputs, result)
        return out[0] if out is not None else _counted(result)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Copy, which reads and writes."""
        plain = self.view(np.ndarray)
        plain[index] = _plain(value)
        _count(plain[index], value)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let functions that make views (reshape, broadcast_to, …) give counted arrays."""
        return _counted(super().__array_function__(function, types, args, kwargs))


def count_passes(op: Callable[..., Tensor], *arrays: np.ndarray) -> tuple[float, float]:
    """How many passes `op` makes over arrays of the size of the first one: forward, and backward.

    arrays: what `op` takes as tensors; all of them get a gradient. What NumPy copies without an operator or an
    assignment (an index, zeros) is not counted. `backward` gets a dy of the output's shape.
    """
    with backend.registered(Counted, _counting_backend()):
        tensors = [Tensor.wrap(_counted(array.copy()), requires_grad=True) for array in arrays]
        Counted.entries = 0
        y = op(*tensors)
        forward = Counted.entries
        y.backward(np.ones(y.shape, y.dtype))
    size = arrays[0].size
    return forward / size, (Counted.entries - forward) / size


def passes_of(function: Callable[..., Any], *arrays: np.ndarray) -> float:
    """How many passes NumPy's operators in `function` make over arrays of the size of the first one.

    arrays: what `function` takes; it gets copies. Counted is what reads or writes one of them, or an array made from
    them by an operator; as in `count_passes`, not what NumPy copies by itself.
    """
    _run_counted(function, arrays)
    return Counted.entries / arrays[0].size


def operators_of(function: Callable[..., Any], *arrays: np.ndarray) -> int:
    """How many of NumPy's operators `function` calls on copies of `arrays`, and on what is made from them."""
    _run_counted(function, arrays)
    return Counted.operators


def _run_counted(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> None:
    counted = [_counted(array.copy()) for array in arrays]
    Counted.entries = Counted.operators = 0
    function(*counted)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _counted(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, tuple):
        return tuple(map(_counted, value))
    return value.view(Counted) if isinstance(value, np.ndarray) else value


def _count(*values: Any) -> None:
    for value in values:
        if isinstance(value, np.ndarray):  # stretched by broadcasting, its entries are the same ones again
            Counted.entries += math.prod(
                n for n, step in zip(value.shape, value.strides, strict=True) if step
            )


READ_AND_WRITTEN = {  # kernels that write over what they read: which of their arguments
    "add_bias": (0,),
    "add_in_place": (0,),
    "gru_step": (0,),
    "gru_step_backward": (0, 1, 2),
    "lstm_step": (0,),
    "lstm_step_backward": (0, 1, 2),
    "multiply_in_place": (0,),
    "rnn_step": (1,),
    "rnn_step_backward": (0,),
}


def _kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that counts the arrays that go in and come out; none if it hands on what it was given."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        plain = [_plain(arg) for arg in args]
        result = function(*plain, **kwargs)
        if any(result is arg for arg in plain):
            return _counted(result)
        _count(
            *args,
            *(args[i] for i in READ_AND_WRITTEN.get(function.__name__, ())),
            *(result if isinstance(result, tuple) else (result,)),
        )
        return _counted(result)

    return kernel


class _Module:
    """NumPy, giving counted arrays."""

    def __getattr__(self, name: str) -> Any:
        thing = getattr(np, name)
        if isinstance(thing, type | np.ufunc) or not callable(thing):
            return thing
        return lambda *args, **kwargs: _counted(thing(*args, **kwargs))


def _counting_backend() -> SimpleNamespace:
    """NumPy's backend, with kernels that count."""
    numpy = backend.get("numpy")
    names = {**vars(numpy)}
    for name in numpy.__all__:
        if inspect.isfunction(names[name]):
            names[name] = _kernel(names[name])
    names["xp"] = _Module()
    names["asarray"] = lambda values, dtype=None: _counted(np.asarray(values, dtype=dtype))
    return SimpleNamespace(**names)
