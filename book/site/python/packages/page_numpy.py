"""NumPy in WebAssembly counts with 32-bit integers, and refuses 64-bit ones where it counts: here it takes them.

Importing this replaces `numpy.bincount` and `numpy.repeat`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def counted(values: Any) -> Any:
    """Integers as NumPy counts with them. Raises OverflowError if they are too large; what is no integer stays."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or np.can_cast(array.dtype, np.intp):
        return values
    limits = np.iinfo(np.intp)
    if array.size and (array.max() > limits.max or array.min() < limits.min):
        raise OverflowError(f"NumPy counts up to {limits.max:,} here, got {array.max():,}")
    return array.astype(np.intp)


def _taking(function: Callable[..., Any], place: int, name: str = "") -> Callable[..., Any]:
    """The function with the argument at a place, or of a name, as `counted` gives it."""

    @functools.wraps(function)
    def taking(*arguments: Any, **settings: Any) -> Any:
        given = [counted(one) if i == place else one for i, one in enumerate(arguments)]
        if name in settings:
            settings[name] = counted(settings[name])
        return function(*given, **settings)

    return taking


np.bincount = _taking(np.bincount, 0)
np.repeat = _taking(np.repeat, 1, "repeats")
