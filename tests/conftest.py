"""What all tests share: on which backend they run, PyTorch as an oracle, and no test that leaves a trace."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import fake_cupy
import numpy as np
import pytest

from browsers import open_browser
from minigrad import Tensor, backend, is_grad_enabled, random, tensor
from minigrad.backend import threads


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
    config.addinivalue_line(
        "markers", "no_arrays: the same on each backend, so on NumPy alone; fails if it asks for the backend"
    )
    config.addinivalue_line(
        "markers", "slow: left to `make everything`, because a quicker test goes red on the same faults"
    )
    config.addinivalue_line("markers", "xdist_group(name): in one process, where pytest-xdist has several")
    _heed_signals()
    os.environ.pop("MINIGRAD_BACKEND", None)
    os.environ.setdefault("CUPY_TF32", "0")  # what results are compared with was computed in full float32
    if config.getoption("--standin"):
        fake_cupy.install()
    try:
        backend.use("cupy" if config.getoption("--standin") else config.getoption("--backend"))
    except backend.BackendError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collection_finish() -> None:
    """Fifteen thousand tests live to the end: no garbage collection need look at them each time."""
    gc.collect()
    gc.freeze()


def _heed_signals() -> None:
    """Heed the signals that nohup, or a script for its background, has told this process and its children to ignore."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)


def pytest_report_header() -> str:
    kernels = backend.default()
    return f"minigrad backend: {kernels.name}{' (stand-in)' if hasattr(kernels.xp, '_is_standin') else ''}"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        made = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009  # it has no public name
        of_the_module = any(one[-1].scope == "module" for one in made)
        if of_the_module and not item.get_closest_marker("xdist_group"):
            # What is made once is not made again in each of pytest-xdist's processes.
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    if "slow" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: make slow"))
    if backend.default().name == "numpy":
        return
    for item in items:
        for marker in item.iter_markers("numpy_only"):
            item.add_marker(pytest.mark.skip(reason=f"NumPy only: {marker.args[0]}"))
        if item.get_closest_marker("no_arrays"):
            item.add_marker(pytest.mark.skip(reason="no arrays in it: NumPy only"))


def refuse() -> None:
    """What a test without arrays gets for the default backend, without which there is no tensor."""
    pytest.fail("this test asks for the backend: without the mark no_arrays it runs on each of them")


@pytest.fixture(autouse=True)
def no_trace(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test starts from seed 0; one that leaves another default backend or grad mode behind fails."""
    default, draws = backend.default(), random.get_state()
    random.manual_seed(0)
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("no_arrays"):
            patch.setattr(backend, "default", refuse)
        yield
    random.set_state(draws)
    left = []
    if backend.default() is not default:
        left.append(f"the default backend {backend.default().name!r}")
        backend._default = default
    if not is_grad_enabled():
        left.append("gradients switched off")
        tensor._no_grad_depth.set(0)
    if backend.matmul_precision() != "float32":
        left.append(f"products in {backend.matmul_precision()}")
        backend._matmul_precision.set("float32")
    if left:
        pytest.fail(f"this test left {' and '.join(left)} behind")


@pytest.fixture(scope="session")
def seven_workers() -> Any:
    """Threads for `cores`, of which those of no test are left behind."""
    return threads._Workers(7)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch, seven_workers: Any) -> Callable[[int], None]:
    """`cores(3)`: from here on the CPU's work is shared over 3 threads (at most 8), however many cores there are."""

    def share_over(count: int) -> None:
        monkeypatch.setattr(threads, "THREADS", count)
        monkeypatch.setattr(threads, "_workers", seven_workers)

    return share_over


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch, cores: Callable[[int], None]) -> None:
    """Blocks and pieces so small that small arrays have several, whatever constants the kernels use: 3 cores, blocks
    of 64 numbers, products shared from 64 multiplications on; on CuPy pieces of 4 rows and of 64 entries."""
    cores(3)
    monkeypatch.setattr(threads, "BLOCK", 64)
    monkeypatch.setattr(backend.get("numpy"), "SMALL_PRODUCT", 64)
    if backend.default().name == "cupy":
        monkeypatch.setattr(backend.default(), "PIECE_ROWS", 4)
        monkeypatch.setattr(backend.default(), "PIECE", 64)


@pytest.fixture
def kernels() -> ModuleType:
    """The backend that the tests run on."""
    return backend.default()


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


@pytest.fixture(scope="session")
def tokenizers() -> Any:
    """Hugging Face's `tokenizers`, the oracle of all that is done with text."""
    return pytest.importorskip("tokenizers")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium, for all tests of this process."""
    yield from open_browser()
