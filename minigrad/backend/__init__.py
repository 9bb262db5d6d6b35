"""The only seam between NumPy and CuPy.

Each backend is one file (`numpy.py`, `cupy.py`) with the same names in it: the array module `xp`, moves
between host and device, random bits, and the inner loops that the two do differently. An operation asks for
the backend *of its array* (`backend.of(x)`) and never asks which one it is, so CPU and GPU tensors can live
in one process. `numpy.py` explains the names. Where *new* tensors are made is set by `use("numpy" | "cupy")`,
or beforehand by the environment variable MINIGRAD_BACKEND.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Step = Callable[[dict[str, Any]], Any]  # from arrays by name to an array

NAMES = ("numpy", "cupy")
PRECISIONS = ("float32", "bfloat16", "float16")
_FLOAT16 = np.dtype("float16")

_default: ModuleType | None = None
_of_type: dict[type, ModuleType] = {}  # what `of` has found, and what is `registered`
_matmul_precision = ContextVar("matmul_precision", default="float32")  # each thread has its own


class BackendError(RuntimeError):
    """A backend that does not exist, is not installed, or has no device."""


def get(name: str) -> ModuleType:
    """The backend called `name`, ready to use.

    Raises BackendError if there is no such backend, its package is missing, or it finds no device.
    """
    if name not in NAMES:
        raise BackendError(f"there is no backend {name!r}: expected one of {', '.join(NAMES)}")
    try:
        module = importlib.import_module(f"minigrad.backend.{name}")
    except ImportError as error:
        raise BackendError(
            f"the backend {name!r} needs a package that is not installed ({error}); "
            "install it with: pip install 'cupy-cuda12x[ctk]', or 'cupy-cuda13x[ctk]' for CUDA 13"
        ) from error
    reason = module.unavailable()
    if reason:
        raise BackendError(f"the backend {name!r} cannot be used here: {reason}")
    return module


def use(name: str) -> None:
    """Make new tensors on the backend called `name` from now on.

    Raises BackendError as `get` does; the backend in use then stays as it was.
    """
    global _default
    _default = get(name)


def default() -> ModuleType:
    """The backend on which new tensors are made: `use`'s, else MINIGRAD_BACKEND's, else NumPy's."""
    if _default is None:
        use(os.environ.get("MINIGRAD_BACKEND") or "numpy")
        assert _default is not None
    return _default


def of(array: object) -> ModuleType:
    """The backend whose array this is.

    Raises TypeError if `array` belongs to no backend.
    """
    kind = type(array)
    if kind not in _of_type:
        if not is_array(array):
            raise TypeError(f"expected an array of a backend ({', '.join(NAMES)}), got {kind.__name__}")
        package = kind.__module__.partition(".")[0]
        _of_type[kind] = importlib.import_module(f"minigrad.backend.{package}")
    return _of_type[kind]


@contextmanager
def registered(kind: type, kernels: Any) -> Iterator[None]:
    """Inside this context, arrays of the type `kind` have the backend `kernels`, with the names of `numpy.py` in it."""
    before = _of_type.get(kind)
    _of_type[kind] = kernels
    try:
        yield
    finally:
        if before is None:
            del _of_type[kind]
        else:
            _of_type[kind] = before


def is_array(value: object) -> TypeGuard[Any]:
    """Whether `value` is an array (not a scalar) of a backend."""
    kind = type(value)
    return kind in _of_type or (kind.__name__ == "ndarray" and kind.__module__.partition(".")[0] in NAMES)


def on_host(array: object) -> bool:
    """Whether the values of an array can be looked at without waiting for a device."""
    return of(array).name == "numpy"


def to_numpy(array: object) -> np.ndarray:
    """`array` (of any backend, or anything `numpy.asarray` takes) as a NumPy array on the host."""
    if is_array(array):
        return of(array).to_numpy(array)
    return get("numpy").asarray(array)


def float16_as_float32(kernel: Kernel) -> Kernel:
    """A kernel that computes arrays of float16 in float32, and gives float16: sums and squares need the range."""

    @functools.wraps(kernel)
    def wide(*arguments: Any) -> Any:
        if not any(map(_is_float16, arguments)):
            return kernel(*arguments)
        out = kernel(*(a.astype("float32") if _is_float16(a) else a for a in arguments))
        return tuple(a.astype("float16") for a in out) if isinstance(out, tuple) else out.astype("float16")

    return cast(Kernel, wide)


def _is_float16(value: object) -> bool:
    return getattr(value, "dtype", None) == _FLOAT16


@contextmanager
def default_matmul_precision(precision: str) -> Iterator[None]:
    """Round what the products of `linear` and attention multiply, forward and backward, inside this context.

    "float32" leaves it alone. "bfloat16" (8 bits of precision, the range of float32) and "float16" (11 bits, the
    largest number 65,504, the smallest 6e-8) are what a GPU multiplies several times faster. Sums, and all that is
    not a product, stay in float32, and so do weights (Micikevicius et al. 2018, sections 3.1 and 3.3); float64 is
    never rounded. With float16 small gradients become 0: see `optim.GradScaler`. On the CPU the rounding is
    the same, and nothing is faster. Other threads are not affected. Raises ValueError for another precision.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"there is no precision {precision!r}: expected one of {', '.join(PRECISIONS)}")
    before = _matmul_precision.get()
    _matmul_precision.set(precision)
    try:
        yield
    finally:
        _matmul_precision.set(before)


def matmul_precision() -> str:
    """The precision that `default_matmul_precision` has set; "float32" outside."""
    return _matmul_precision.get()
