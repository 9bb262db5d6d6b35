"""The only seam between NumPy and CuPy.

Each backend is one file (`numpy.py`, `cupy.py`) with the same names in it: the array module `xp`, moves
between host and device, random bits, and the inner loops that the two do differently. An operation asks for
the backend *of its array* (`backend.of(x)`) and never which one it is, so CPU and GPU tensors can live in
one process. Where *new* tensors are made is set by `use("numpy" | "cupy")`, or before the start by the
environment variable MINIGRAD_BACKEND.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any

NAMES = ("numpy", "cupy")

_default: ModuleType | None = None
_of_type: dict[type, ModuleType] = {}  # what `of` has found


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
            f"install it with: pip install 'minigrad[cuda12x]' or 'minigrad[cuda13x]'"
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
        use(os.environ.get("MINIGRAD_BACKEND", "numpy"))
        assert _default is not None
    return _default


def of(array: Any) -> ModuleType:
    """The backend whose array this is.

    Raises TypeError if `array` is no backend's array.
    """
    kind = type(array)
    if kind not in _of_type:
        if not is_array(array):
            raise TypeError(f"expected an array of a backend ({', '.join(NAMES)}), got {kind.__name__}")
        package = kind.__module__.partition(".")[0]
        _of_type[kind] = importlib.import_module(f"minigrad.backend.{package}")
    return _of_type[kind]


def is_array(value: Any) -> bool:
    """Whether `value` is an array (not a scalar) of a backend."""
    kind = type(value)
    return kind in _of_type or (kind.__name__ == "ndarray" and kind.__module__.partition(".")[0] in NAMES)


def to_numpy(array: Any) -> Any:
    """`array` (of any backend, or anything `numpy.asarray` takes) as a NumPy array on the host."""
    if is_array(array):
        return of(array).to_numpy(array)
    return get("numpy").asarray(array)
