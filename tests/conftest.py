"""What all tests share: on which backend they run, PyTorch as an oracle, and no test that leaves a trace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import fake_cupy
import numpy as np
import pytest

from minigrad import Tensor, backend, is_grad_enabled, random, tensor


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("minigrad")
    group.addoption(
        "--backend", default="numpy", choices=backend.NAMES, help="where tests make their tensors"
    )
    group.addoption(
        "--standin", action="store_true", help="the CuPy backend without a GPU, on a stand-in for CuPy"
    )


def pytest_configure(config: pytest.Config) -> None:
    with contextlib.suppress(ImportError):  # Hypothesis draws the same examples at each run
        from hypothesis import settings

        settings.register_profile("same", max_examples=40, deadline=None, derandomize=True, database=None)
        settings.load_profile("same")
    config.addinivalue_line("markers", "numpy_only(reason): makes sense on the NumPy backend alone")
    os.environ.pop("MINIGRAD_BACKEND", None)
    os.environ.setdefault("CUPY_TF32", "0")  # what results are compared with was computed in full float32
    if config.getoption("--standin"):
        fake_cupy.install()
    try:
        backend.use("cupy" if config.getoption("--standin") else config.getoption("--backend"))
    except backend.BackendError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header() -> str:
    kernels = backend.default()
    return f"minigrad backend: {kernels.name}{' (stand-in)' if hasattr(kernels.xp, '_is_standin') else ''}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if backend.default().name == "numpy":
        return
    for item in items:
        for marker in item.iter_markers("numpy_only"):
            item.add_marker(pytest.mark.skip(reason=f"NumPy only: {marker.args[0]}"))


@pytest.fixture(autouse=True)
def no_trace() -> Iterator[None]:
    """Each test starts from seed 0; one that leaves another default backend or grad mode behind fails."""
    default, draws = backend.default(), random.get_state()
    random.manual_seed(0)
    yield
    random.set_state(draws)
    left = []
    if backend.default() is not default:
        left.append(f"the default backend {backend.default().name!r}")
        backend._default = default
    if not is_grad_enabled():
        left.append("gradients switched off")
        tensor._grad_enabled = True
    if left:
        pytest.fail(f"this test left {' and '.join(left)} behind")


@pytest.fixture
def rng() -> np.random.Generator:
    """A NumPy generator with a fixed seed."""
    return np.random.default_rng(20_260)


@pytest.fixture
def leaf(rng: np.random.Generator) -> Callable[..., Tensor]:
    """`leaf(2, 3)`: a new leaf of this shape with normal draws, float64 unless `dtype` says otherwise."""

    def make(*shape: int, dtype: str = "float64") -> Tensor:
        return Tensor(rng.standard_normal(shape).astype(dtype), requires_grad=True)

    return make


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch; tests that hold something against it ask for it by this name."""
    module = pytest.importorskip("torch")
    module.set_num_threads(1)
    return module
