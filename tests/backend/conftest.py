"""What the backend's tests share."""

from __future__ import annotations

from types import ModuleType

import pytest

from minigrad import backend


@pytest.fixture
def kernels() -> ModuleType:
    """The backend that the tests run on."""
    return backend.default()
