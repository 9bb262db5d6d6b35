"""The seam between NumPy and CuPy: which is used, that both offer the same, and NumPy's inner loops."""

from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys

import fake_cupy
import numpy as np
import pytest

import minigrad
from minigrad import Tensor, backend, ops

IS_STANDIN = hasattr(sys.modules.get("cupy"), "_is_standin")


def host(array):
    return backend.to_numpy(array)


@pytest.fixture
def kernels():
    """The backend that the tests run on."""
    return backend.default()


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
    with pytest.raises(backend.BackendError, match=r"not installed.*pip install 'minigrad\[cuda12x\]'"):
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


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=os.path.dirname(os.path.dirname(minigrad.__file__)),
        capture_output=True,
        text=True,
    )


def test_environment_variable():
    code = "import minigrad; print(minigrad.Tensor([1.0]).backend)"
    assert run_python(code).stdout.strip() == "numpy"
    assert run_python(code, MINIGRAD_BACKEND="numpy").stdout.strip() == "numpy"
    assert run_python(code, MINIGRAD_BACKEND="").stdout.strip() == "numpy"  # as if it were not set
    wrong = run_python(code, MINIGRAD_BACKEND="abacus")
    assert "BackendError: there is no backend 'abacus': expected one of numpy, cupy" in wrong.stderr


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


def own_functions(module) -> dict[str, list[inspect.Parameter]]:
    return {
        name: list(inspect.signature(value).parameters.values())
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
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
    import importlib

    numpy, cupy = (importlib.import_module(f"minigrad.backend.{name}") for name in backend.NAMES)
    assert own_functions(numpy) == own_functions(cupy)
    assert sorted([*own_functions(numpy), "name", "xp"]) == sorted(numpy.__all__)
    assert (numpy.name, cupy.name) == backend.NAMES


def test_stand_in_has_only_what_cupy_has():
    if IS_STANDIN:
        pytest.skip("the stand-in is in CuPy's place")
    cupy = pytest.importorskip("cupy")
    from cupyx.scipy import special

    names = fake_cupy.FUNCTIONS + fake_cupy.HOST_FUNCTIONS + fake_cupy.CONSTANTS + fake_cupy.OWN
    assert [name for name in names if not hasattr(cupy, name)] == []
    methods = fake_cupy.METHODS + fake_cupy.HOST_METHODS + fake_cupy.PROPERTIES + ["T", "base", "get"]
    methods += [f"__{name}__" for name in fake_cupy.UNARY + fake_cupy.COMPARISONS + fake_cupy.OPERATORS]
    methods += [f"__i{name}__" for name in fake_cupy.OPERATORS if name != "matmul"]
    assert [name for name in methods if not hasattr(cupy.ndarray, name)] == []
    assert all(getattr(cupy, name) is getattr(np, name) for name in fake_cupy.CONSTANTS if name != "newaxis")
    assert (cupy.ndarray.__module__, cupy.ndarray.__name__) == ("cupy", "ndarray")
    assert callable(cupy.add.at)
    assert hasattr(cupy.cuda, "get_current_stream")
    letters = {"float16": "e", "float32": "f", "float64": "d"}
    assert special.erf.types == [f"{letters[a]}->{letters[b]}" for a, b in fake_cupy.ERF_TYPES.items()]


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + np.ones(2),
        lambda x: np.ones(2) * x,
        lambda x: x.__iadd__(np.ones(2)),
        lambda x: np.exp(x),
        lambda x: np.sum(x),
        lambda x: np.asarray(x),
        lambda x: np.concatenate([x, x]),
        lambda x: x[np.array([0])],
        lambda x: x.__setitem__(0, np.ones(1)),
        lambda x: backend.default().xp.exp(np.ones(2)),
        lambda x: backend.default().xp.where(x > 0, x, np.ones(2)),
        lambda x: x.sum(out=np.ones(())),
        lambda x: range(3)[x[0]],
    ],
)
@pytest.mark.skipif(not IS_STANDIN, reason="about the stand-in (--standin)")
def test_stand_in_refuses_numpy_arrays(mix):
    x = backend.default().asarray([1.0, 2.0])
    with pytest.raises(TypeError):
        mix(x)


@pytest.mark.skipif(not IS_STANDIN, reason="about the stand-in (--standin)")
def test_stand_in_behaves_as_cupy_does_elsewhere():
    xp = backend.default().xp
    x = xp.asarray(np.ones((2, 3), np.float32))
    for reduction in (x.sum(), xp.max(x), x[0, 0], x.mean() + 1, -x.sum()):
        assert type(reduction) is xp.ndarray
        assert reduction.shape == ()
        assert reduction.dtype == np.float32
    assert type(2.0 * x) is type(np.float32(2) * x) is xp.ndarray
    assert x.base is None
    assert x.reshape(3, 2).base is not None
    assert not hasattr(x, "tofile")
    assert not hasattr(xp, "random_raw")
    xp.log(xp.asarray(0.0))  # a device does not warn


# --- The loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "n", "width"), [(5, 0, 3), (5, 1, 3), (7, 200, 3), (1, 50, 1), (300, 40, 7), (3, 12, 0)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scatter_add_rows(kernels, rows, n, width, dtype, rng):
    ids, values = rng.integers(0, rows, n), rng.standard_normal((n, width)).astype(dtype)
    expected = np.zeros((rows, width))
    np.add.at(expected, ids, values)
    out = kernels.scatter_add_rows(rows, kernels.asarray(ids), kernels.asarray(values))
    assert out.dtype == dtype
    np.testing.assert_allclose(host(out), expected, rtol=0, atol=1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((4, 3), (np.array([1, -3, 1]),)),
        ((4, 3), (np.array([[0, 1], [1, -1]]),)),
        ((5,), (np.array([4, 4]),)),
        ((4, 3, 2), (np.array([0, 0]), slice(None), np.array([1, 1]))),
        ((4, 3), (slice(1, None), np.array([2, 2]))),
    ],
)
def test_scatter_add(kernels, shape, index, rng):
    values = rng.standard_normal(np.zeros(shape)[index].shape)
    expected = np.zeros(shape)
    np.add.at(expected, index, values)
    device_index = tuple(i if isinstance(i, slice) else kernels.asarray(i) for i in index)
    np.testing.assert_allclose(
        host(kernels.scatter_add(shape, device_index, kernels.asarray(values))), expected
    )


@pytest.mark.parametrize(
    ("n", "k", "m"),
    [(3, 4, 5), (1, 1, 1), (0, 3, 2), (2, 0, 3), (700, 30, 50), (50, 30, 700), (129, 65, 129)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matmul(kernels, n, k, m, dtype, rng):
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((n, k), (k, m)))
    for transposed in (False, True):
        first, second = kernels.asarray(a), kernels.asarray(b)
        if transposed:  # the same matrices, columns after each other in memory
            first, second = kernels.asarray(a.T.copy()).T, kernels.asarray(b.T.copy()).T
        y = kernels.matmul(first, second)
        assert y.dtype == dtype
        np.testing.assert_allclose(host(y), a @ b, rtol=0, atol=3e-5 if dtype == "float32" else 1e-13)


@pytest.mark.numpy_only("CuPy has no blocks")
@pytest.mark.parametrize(("n", "m"), [(300, 70), (70, 301), (128, 128)])
def test_matmul_in_parts(n, m, cores, rng):
    numpy = backend.get("numpy")
    a, b = rng.standard_normal((n, 65)), rng.standard_normal((65, m))
    cores(3)
    np.testing.assert_allclose(numpy.matmul(a, b), a @ b, rtol=0, atol=1e-12)
    np.testing.assert_allclose(numpy.matmul(b.T, a.T), (a @ b).T, rtol=0, atol=1e-12)


@pytest.mark.numpy_only("CuPy has an error function of its own")
def test_erf_and_gelu_are_as_near_as_they_say():
    numpy = backend.get("numpy")
    x = np.linspace(-9, 9, 100_001, dtype=np.float32)
    exact = np.array([math.erf(value) for value in x])
    assert np.abs(numpy.erf(x) - exact).max() < 2e-7
    y, slope = numpy.gelu(x, "none")
    wide = x.astype(float)
    cdf = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in wide])
    density = np.exp(-0.5 * wide**2) / math.sqrt(2 * math.pi)
    assert np.abs((y - wide * cdf) / np.maximum(1, np.abs(wide))).max() < 2e-7
    assert np.abs(slope - (cdf + wide * density)).max() < 3e-7


@pytest.mark.numpy_only("CuPy orders as it likes")
def test_attention_leaves_heads_as_they_lie(kernels, rng):
    """Views (B, A, T, d) of one (B, T, A d) go in; out comes another, which needs no copy to be put together."""
    q, k, v = (rng.standard_normal((3, 7, 2, 4)).swapaxes(1, 2) for _ in range(3))
    z, weights = kernels.attention(q, k, v, None, 0.5, None, 1.0)
    gradients = kernels.attention_backward(z, q, k, v, weights, 0.5, None, 1.0)
    for result in (z, *gradients):
        assert result.swapaxes(1, 2).flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softmax_of_rows_that_lie_far_apart(kernels, dtype, rng):
    """Beside each other: ordinary rows, rows hundreds below them, all masked, one infinite, one not a number."""
    x = rng.standard_normal((7, 5)).astype(dtype)
    x[1] -= 60
    x[2] -= 300
    x[3] = np.finfo(dtype).min
    x[4, 1:] = np.finfo(dtype).min
    with np.errstate(over="ignore"):
        wide = x.astype(np.float64) - x.max(axis=-1, keepdims=True)
    expected = np.exp(wide) / np.exp(wide).sum(axis=-1, keepdims=True)
    y, largest, log_total = (host(array) for array in kernels.softmax(kernels.asarray(x)))
    tolerance = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(y, expected, rtol=0, atol=tolerance)
    assert (y[3] == y[3, 0]).all()
    for row in (0, 1, 2):  # to the last digits relative to the row, wherever it lies
        np.testing.assert_allclose(y[row], expected[row], rtol=10 * tolerance)
    np.testing.assert_array_equal(largest[:, 0], x.max(axis=-1))
    np.testing.assert_allclose(log_total[:3, 0], np.log(np.exp(wide).sum(axis=-1))[:3], rtol=10 * tolerance)
    x[5, 2], x[6, 0] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        spoilt = host(kernels.softmax(kernels.asarray(x))[0])
    np.testing.assert_array_equal(np.isnan(spoilt).any(axis=-1), [False] * 5 + [True] * 2)
    np.testing.assert_allclose(spoilt[:5], y[:5], rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (3000, 129)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bias_and_its_gradient(kernels, shape, dtype, rng):
    x, bias = rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape[1]).astype(dtype)
    y = kernels.asarray(x.copy())
    kernels.add_bias(y, kernels.asarray(bias))
    np.testing.assert_array_equal(host(y), x + bias)
    total = kernels.sum_rows(kernels.asarray(x))
    assert total.dtype == dtype
    assert total.shape == bias.shape
    np.testing.assert_allclose(
        host(total), x.astype(float).sum(axis=0), rtol=0, atol=1e-3 if dtype == "float32" else 1e-11
    )


@pytest.mark.parametrize("shape", [(), (0,), (5, 7), (300, 1000)])
def test_in_place(kernels, shape, rng):
    a, b = rng.standard_normal((2, *shape)).astype(np.float32)
    for operator, expected in ((kernels.multiply_in_place, a * b), (kernels.add_in_place, a + b)):
        result, other = kernels.asarray(np.array(a)), kernels.asarray(np.array(b))
        operator(result, other)
        np.testing.assert_array_equal(host(result), expected)
        np.testing.assert_array_equal(host(other), b)
        turned = kernels.asarray(np.array(a.T)).T  # the same entries in another order in memory
        operator(turned, other)
        np.testing.assert_array_equal(host(turned), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norm_and_scale_of_many_arrays(kernels, dtype, rng):
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in ((), (3,), (4, 5), (0, 2), (2000, 77))]
    on_device = [kernels.asarray(array.copy()) for array in arrays]
    norm = kernels.global_norm(on_device)
    assert norm.shape == ()
    expected = math.sqrt(sum((array.astype(float) ** 2).sum() for array in arrays))
    assert float(norm) == pytest.approx(expected, rel=1e-5)
    kernels.scale_in_place(on_device, 0.5)
    kernels.scale_in_place(on_device, kernels.xp.asarray(0.25))
    for scaled, array in zip(on_device, arrays, strict=True):
        assert scaled.dtype == dtype
        np.testing.assert_allclose(host(scaled), array * 0.125, rtol=1e-6)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_keep_mask_keeps_its_share(kernels, p):
    n = 400_000
    keep = host(kernels.keep_mask((n,), p, seed=3, draw=5))
    assert keep.dtype == bool
    margin = 5 * math.sqrt(p * (1 - p) / n) + 1 / 65536
    assert abs(keep.mean() - (1 - p)) <= margin


@pytest.mark.parametrize("shape", [(1,), (7,), (33, 5), (2**17 + 1, 3)])
def test_keep_mask_is_the_same_on_every_backend(kernels, shape):
    expected = backend.get("numpy").keep_mask(shape, 0.3, seed=4, draw=7)
    np.testing.assert_array_equal(host(kernels.keep_mask(shape, 0.3, seed=4, draw=7)), expected)


def test_keep_mask_is_the_hash_of_the_number():
    """The first words, by the formula in Python's integers."""
    numpy = backend.get("numpy")
    first, second = numpy.mask_keys(3, 5)
    expected = []
    for number in range(5):
        x = (number + first) % 2**32
        x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
        x ^= second
        x = (x ^ (x >> 15)) * 0x846CA68B % 2**32
        x ^= x >> 16
        expected += [x % 2**16 >= 0.3 * 2**16, x >> 16 >= 0.3 * 2**16]
    assert numpy.keep_mask((9,), 0.3, 3, 5).tolist() == expected[:9]


def test_keep_mask_corners(kernels):
    assert host(kernels.keep_mask((3, 5), 0.0, 0, 1)).all()
    assert not host(kernels.keep_mask((3, 5), 1.0, 0, 1)).any()
    assert kernels.keep_mask((), 0.5, 0, 1).shape == ()
    assert kernels.keep_mask((0, 3), 0.5, 0, 1).shape == (0, 3)
    assert kernels.keep_mask((7, 1), 0.5, 0, 1).shape == (7, 1)


def test_keep_mask_is_a_function_of_seed_and_draw(kernels):
    def bits(seed, draw):
        return host(kernels.keep_mask((64, 64), 0.5, seed, draw))

    np.testing.assert_array_equal(bits(1, 2), bits(1, 2))
    masks = [bits(seed, draw).ravel() * 2.0 - 1 for seed, draw in ((1, 2), (2, 1), (1, 3), (0, 2), (2, 2))]
    correlation = np.corrcoef(masks) - np.eye(len(masks))
    assert np.abs(correlation).max() < 5 / 64  # five standard deviations of 4,096 independent bits


def test_keep_mask_entries_are_independent(kernels):
    keep = host(kernels.keep_mask((512, 512), 0.5, 9, 9)) * 2.0 - 1
    for a, b in (
        (keep[:, 1:], keep[:, :-1]),
        (keep[1:], keep[:-1]),
        (keep[:, 4:], keep[:, :-4]),
        (keep[256:], keep[:256]),
    ):
        assert abs((a * b).mean()) < 5 / math.sqrt(a.size)


@pytest.mark.numpy_only("CuPy has no blocks")
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_results_do_not_depend_on_the_number_of_threads(threads, cores, rng):
    """Bit for bit: block borders are the same, and partial sums are added in one order."""
    numpy = backend.get("numpy")
    x = rng.standard_normal((4001, 97)).astype(np.float32)
    w, b = rng.standard_normal((2, 97)).astype(np.float32)
    keep = rng.random(x.shape) > 0.1

    def results():
        leaves = [Tensor(array.copy(), requires_grad=True) for array in (x, w, b)]
        y = ops.softmax(ops.gelu(ops.layer_norm(*leaves)))
        y = ops.dropout(y, keep, 0.1)
        (y * y).sum().backward()
        state = [np.zeros_like(x), np.zeros_like(x)]
        p = x.copy()
        settings = {"step_size": 0.1, "decay": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
        numpy.adamw_step(
            [p], [leaves[0].grad], *([moment] for moment in state), **settings, second_correction=0.5
        )
        total = numpy.sum_rows(x)
        heads = [Tensor(x[:4000].reshape(8, 5, 100, 97)) for _ in range(3)]
        z = ops.scaled_dot_product_attention(
            *heads, keep=keep[:4000, :50].reshape(8, 5, 100, 50).repeat(2, -1), p=0.1
        )
        mask = numpy.keep_mask((4001, 97), 0.3, 1, 2)
        return [y.numpy(), p, *state, total, z.numpy(), mask, *(leaf.grad for leaf in leaves)]

    expected = results()
    cores(threads)
    for ours, reference in zip(results(), expected, strict=True):
        np.testing.assert_array_equal(ours, reference)


def test_row_ids(kernels):
    for ids in ([0, 2], np.array([0, 2], np.uint8), kernels.asarray(np.array([0, 2]))):
        out = kernels.row_ids(ids, 3)
        assert backend.of(out) is kernels
        np.testing.assert_array_equal(host(out), [0, 2])
    assert kernels.row_ids(np.zeros((0, 2), int), 3).shape == (0, 2)
