"""The guards of this test suite: a test that leaves a trace fails, and so does a backend that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_arrays

HERE = Path(__file__).resolve().parent

LEAKS = """
import minigrad
from minigrad import Tensor, backend, manual_seed, random

held = minigrad.no_grad()

def test_clean():
    manual_seed(5)
    assert Tensor([1.0]).backend == "cupy"

def test_default_backend():
    minigrad.use("numpy")

def test_default_backend_is_back():
    assert backend.default().name == "cupy"

def test_gradients():
    held.__enter__()

def test_gradients_are_back():
    assert minigrad.is_grad_enabled()

def test_seed_is_back():
    assert random.get_state() == {"seed": 0, "draws": 0}
"""


WITHOUT_ARRAYS = """
import pytest
from minigrad import Tensor

pytestmark = pytest.mark.no_arrays

def test_text():
    assert "a".isalpha()

def test_tensor():
    Tensor([1.0])
"""


def run_pytest(*arguments: str) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE / "backend", HERE.parent))),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "--tb=line"]
    return subprocess.run([*command, *arguments], env=environment, cwd=HERE, capture_output=True, text=True)


def test_a_test_that_leaves_a_trace_fails(tmp_path):
    path = tmp_path / "test_leaks.py"
    path.write_text(LEAKS)
    run = run_pytest("--standin", "--rootdir", str(tmp_path), str(path))
    assert "6 passed, 2 errors" in run.stdout, run.stdout
    assert "this test left the default backend 'numpy' behind" in run.stdout
    assert "this test left gradients switched off behind" in run.stdout


def test_a_test_without_arrays_runs_on_numpy_alone_and_makes_none(tmp_path):
    path = tmp_path / "test_text.py"
    path.write_text(WITHOUT_ARRAYS)
    run = run_pytest("--rootdir", str(tmp_path), str(path))
    assert "1 failed, 1 passed" in run.stdout, run.stdout
    assert "without the mark no_arrays it runs on each of them" in run.stdout
    run = run_pytest("--standin", "--rootdir", str(tmp_path), str(path))
    assert "2 skipped" in run.stdout, run.stdout


def test_an_absent_backend_is_told_at_once(tmp_path):
    try:
        import cupy
    except ImportError:
        pass
    else:
        if not hasattr(cupy, "_is_standin") and cupy.is_available():
            pytest.skip("CuPy finds a device here")
    run = run_pytest("--backend", "cupy", "--rootdir", str(tmp_path), str(tmp_path))
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: the backend 'cupy' " in run.stderr, run.stderr


@pytest.mark.xdist_group("together")
def test_groups_of_tests_stay_together(request):
    """By their ids, in which pytest-xdist writes the group; without, what a module makes is made in each process."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("one process, or another way to share out the tests")
    assert request.node.nodeid.endswith("@together")
