"""The seam between NumPy and CuPy: which backend is used and registered, that both offer the same, and how they take
dtypes that are not theirs."""

from __future__ import annotations

import importlib
import inspect
import sys

import fake_cupy
import numpy as np
import pytest

import minigrad
from minigrad import Tensor, backend
from processes import run_python

host = backend.to_numpy


@pytest.fixture
def keep_default():
    """The default backend is put back after the test."""
    before = backend._default
    yield
    backend._default = before


# --- Which backend ---------------------------------------------------------------------------------------


def test_get_and_of(kernels):
    assert backend.get(kernels.name) is kernels
    array = kernels.asarray([1.0, 2.0])
    assert backend.of(array) is kernels
    assert backend.is_array(array)
    assert backend.of(np.ones(2)) is backend.get("numpy")


@pytest.mark.parametrize("value", [1.0, np.float64(1), [1.0], Tensor([1.0]), "a", None], ids=repr)
def test_what_is_no_array(value):
    assert not backend.is_array(value)
    with pytest.raises(
        TypeError, match=r"expected an array of a backend \(numpy, cupy\), got " + type(value).__name__
    ):
        backend.of(value)


def test_something_else_called_ndarray_is_no_array():
    other = type("ndarray", (), {"__module__": "elsewhere"})()
    assert not backend.is_array(other)


def test_unknown_name():
    with pytest.raises(backend.BackendError, match="there is no backend 'jax': expected one of numpy, cupy"):
        backend.get("jax")


def test_use_leaves_the_default_where_it_is_on_error(kernels):
    with pytest.raises(backend.BackendError):
        minigrad.use("jax")
    assert backend.default() is kernels


@pytest.mark.usefixtures("keep_default")
def test_use_sets_where_new_tensors_are_made():
    minigrad.use("numpy")
    x = Tensor([1.0])
    assert x.backend == "numpy"
    assert type(x.data) is np.ndarray


def test_no_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "minigrad.backend.cupy", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)  # importing it raises ImportError
    with pytest.raises(backend.BackendError, match=r"not installed.*pip install 'cupy-cuda12x\[ctk\]'"):
        backend.get("cupy")


def test_no_device(kernels, monkeypatch):
    monkeypatch.setattr(kernels, "unavailable", lambda: "no device today")
    with pytest.raises(
        backend.BackendError, match=f"the backend '{kernels.name}' cannot be used here: no device today"
    ):
        backend.get(kernels.name)


def test_cupy_without_a_device(kernels, monkeypatch):
    if kernels.name != "cupy":
        pytest.skip("needs CuPy or its stand-in")
    monkeypatch.setattr(kernels.xp, "is_available", lambda: False)
    assert kernels.unavailable() == "CuPy is installed but finds no CUDA device"


class Labelled(np.ndarray):
    """A type of array that no backend knows."""


def test_a_type_of_array_has_the_backend_that_is_registered():
    array, other = np.ones(2).view(Labelled), object()
    for _ in range(2):
        with pytest.raises(TypeError, match=r"expected an array of a backend \(numpy, cupy\), got Labelled"):
            backend.of(array)
        with backend.registered(Labelled, other):
            assert backend.is_array(array)
            assert backend.of(array) is other
            with backend.registered(Labelled, backend.get("numpy")):
                assert backend.of(array) is backend.get("numpy")
            assert backend.of(array) is other


def test_what_is_registered_ends_with_an_error_too():
    kernels, array = backend.get("numpy"), np.ones(2)
    with pytest.raises(ZeroDivisionError), backend.registered(np.ndarray, object()):
        raise ZeroDivisionError
    assert backend.of(array) is kernels


@pytest.mark.no_arrays
def test_environment_variable():
    code = "import minigrad; print(minigrad.Tensor([1.0]).backend)"
    assert run_python(code).stdout.strip() == "numpy"
    assert run_python(code, MINIGRAD_BACKEND="numpy").stdout.strip() == "numpy"
    assert run_python(code, MINIGRAD_BACKEND="").stdout.strip() == "numpy"  # as if it were not set
    wrong = run_python(code, MINIGRAD_BACKEND="abacus")
    assert "BackendError: there is no backend 'abacus': expected one of numpy, cupy" in wrong.stderr


@pytest.mark.no_arrays
def test_importing_minigrad_imports_nothing_heavy():
    heavy = {"cupy", "torch", "transformers", "matplotlib"}
    run = run_python(f"import sys, minigrad; print({heavy} & set(sys.modules))")
    assert run.stdout.strip() == "set()"


def test_to_numpy(kernels):
    assert type(backend.to_numpy([1, 2])) is np.ndarray
    assert type(backend.to_numpy(kernels.asarray([1, 2]))) is np.ndarray
    array = np.ones(2)
    assert backend.to_numpy(array) is array
    kernels.synchronize()


def test_keep_freed_memory_runs():
    run = run_python("from minigrad import backend; backend.get('numpy').keep_freed_memory(); print('done')")
    assert run.stdout == "done\n", run.stderr


# --- Both backends offer the same ------------------------------------------------------------------------


# The ends of names that are numpy.py's alone: formulas that chapters show
INSIDE = ("_block", "erf_over_root_2")


def own_functions(module) -> dict[str, list[inspect.Parameter]]:
    return {
        name: list(inspect.signature(value).parameters.values())
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__.startswith(module.__name__)  # numpy_recurrent.py's too
        if not name.startswith("_") and not name.endswith(INSIDE)
    }


def test_both_backends_have_the_same_names_and_signatures(monkeypatch):
    if backend.default().name == "numpy":  # the stand-in, for this test
        for name in (
            "cupy",
            "cupy.cuda",
            "cupyx",
            "cupyx.scipy",
            "cupyx.scipy.special",
            "minigrad.backend.cupy",
        ):
            monkeypatch.setitem(sys.modules, name, None)  # so that it is put back
            del sys.modules[name]
        fake_cupy.install()
        monkeypatch.setattr(backend, "cupy", None, raising=False)
    numpy, cupy = (importlib.import_module(f"minigrad.backend.{name}") for name in backend.NAMES)
    assert own_functions(numpy) == own_functions(cupy)
    assert sorted([*own_functions(numpy), "name", "xp"]) == sorted(numpy.__all__)
    assert (numpy.name, cupy.name) == backend.NAMES


# --- Dtypes ----------------------------------------------------------------------------------------------


def test_row_ids(kernels):
    for ids in ([0, 2], np.array([0, 2], np.uint8), kernels.asarray(np.array([0, 2]))):
        out = kernels.row_ids(ids, 3)
        assert backend.of(out) is kernels
        np.testing.assert_array_equal(host(out), [0, 2])
    assert kernels.row_ids(np.zeros((0, 2), int), 3).shape == (0, 2)


def test_float16_takes_another_way(kernels, rng):
    x, dy = rng.standard_normal((2, 4, 33)).astype("float16")
    w, twice = rng.random(33).astype("float16"), dy * 2
    given = [kernels.asarray(a) for a in (x, dy, w)]
    keep = kernels.asarray(np.ones((4, 33), bool))
    y, *log_parts = kernels.softmax(given[0])
    z, normalised, inverse_std = kernels.layer_norm(given[0], given[2], given[2], 1e-5)
    for ours in (
        y, *log_parts, kernels.softmax_backward(given[1], y), z,
        *kernels.layer_norm_backward(given[1], normalised, inverse_std, given[2]),
        *kernels.gelu(given[0], "none"), kernels.dropout(given[0], keep, 2.0), kernels.sum_rows(given[0]),
        kernels.scatter_add_rows(3, kernels.asarray(np.array([0, 1, 1, 2])), given[0]),
    ):  # fmt: skip
        assert ours.dtype == np.float16
        assert np.isfinite(host(ours)).all()
    assert normalised.dtype == inverse_std.dtype == np.float32  # saved: 1/σ may be above 65,504
    e = np.exp(x.astype(float))
    np.testing.assert_allclose(host(y), e / e.sum(axis=-1, keepdims=True), atol=1e-3)
    state = [kernels.asarray(np.zeros((4, 33), "float16")) for _ in range(2)]
    kernels.adamw_step(
        [given[0]], [given[1]], *([s] for s in state),
        step_size=0.1, decay=0.01, beta1=0.9, beta2=0.999, eps=1e-6, second_correction=0.03,
    )  # fmt: skip
    assert float(kernels.global_norm([given[1]])) == pytest.approx(np.linalg.norm(dy.astype(float)), rel=1e-3)
    kernels.scale_in_place([given[1]], 2.0)
    np.testing.assert_array_equal(host(given[1]), twice)
