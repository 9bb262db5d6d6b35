"""Arrays to the backend that the tests run on, and back to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minigrad import backend


def host(array: Any) -> np.ndarray:
    """An array of any backend as a NumPy array."""
    return backend.to_numpy(array)


def on_backend(values: Any, dtype: str = "float32") -> Any:
    """Numbers as an array of the default backend."""
    return backend.default().asarray(np.asarray(values, dtype=dtype))


def needs_two_backends() -> None:
    """Skip a test that moves arrays between NumPy and CuPy, where there is NumPy alone."""
    if backend.default().name == "numpy":
        pytest.skip("needs CuPy or its stand-in besides NumPy (--standin, --backend cupy)")
