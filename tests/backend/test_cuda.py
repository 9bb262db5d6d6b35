"""The backend's inner loops against plain float64 NumPy, at every size where a kernel could go wrong.

On the stand-in (--standin) this runs the CUDA source itself, compiled for the CPU; on a GPU (--backend cupy)
the kernels; and on NumPy its loops. And: the source compiles for real devices, which needs no device.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import re
import sys
from pathlib import Path

import fake_cupy
import numpy as np
import pytest

from minigrad import backend
from minigrad.backend import cupy_kernels

IS_STANDIN = hasattr(sys.modules.get("cupy"), "_is_standin")
on_standin = pytest.mark.skipif(not IS_STANDIN, reason="about the stand-in (--standin)")

ROWS = [0, 1, 3, 257]
LENGTHS = [1, 2, 31, 33, 128, 255, 1025, 5000]
# Few rows where rows are long: a thread is slow on the CPU.
SHAPES = [(n, d) for n in ROWS for d in LENGTHS if n * d <= 70_000]
FORMS = ["contiguous", "transposed", "every second"]

dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
forms = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def kernels():
    """The backend that the tests run on."""
    return backend.default()


def host(array):
    return backend.to_numpy(array)


def as_form(kernels, x, form):
    """`x` on the device: contiguous, or with gaps between its entries, or transposed in memory."""
    if form == "contiguous":
        return kernels.asarray(x.copy())
    if form == "transposed":
        return kernels.asarray(np.ascontiguousarray(x.T)).T
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), 99, x.dtype)
    wide[..., ::2] = x
    return kernels.asarray(wide)[..., ::2]


def close(ours, expected, dtype, scale=1.0):
    """Within a few roundings of the largest number that was added up."""
    assert ours.dtype == dtype
    assert ours.shape == expected.shape
    np.testing.assert_allclose(
        host(ours), expected, rtol=0, atol=scale * {"float32": 2e-6, "float64": 1e-14}[dtype]
    )


def softmax_reference(x):
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - largest)
    total = e.sum(axis=-1, keepdims=True)
    return e / total, largest, np.log(total)


# --- Rows ------------------------------------------------------------------------------------------------


@dtypes
@shapes
def test_softmax_and_its_backward(kernels, shape, dtype, rng):
    x, dy = (3 * rng.standard_normal((2, *shape))).astype(dtype)
    y, largest, log_total = kernels.softmax(kernels.asarray(x))
    expected, expected_largest, expected_log_total = softmax_reference(x.astype("float64"))
    close(y, expected, dtype)
    np.testing.assert_array_equal(host(largest), expected_largest)
    close(log_total, expected_log_total, dtype)

    dx = kernels.softmax_backward(kernels.asarray(dy), kernels.asarray(expected.astype(dtype)))
    along = (dy * expected).sum(axis=-1, keepdims=True)
    close(dx, expected * (dy - along), dtype, scale=10)


@dtypes
@shapes
def test_layer_norm_and_its_backward(kernels, shape, dtype, rng):
    offset = 100 if shape[1] > 2 else 0  # of two equal entries only rounding is left
    x, dy = 3 * rng.standard_normal((2, *shape)).astype(dtype)
    x += offset
    w, b = rng.standard_normal((2, shape[1])).astype(dtype)
    eps = 1e-5
    y, normalised, inverse_std = kernels.layer_norm(*map(kernels.asarray, (x, w, b)), eps)
    wide = x.astype("float64")
    centred = wide - wide.mean(axis=-1, keepdims=True)
    std = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    scale = 200  # the mean, 100, is taken out of entries of about 3
    close(normalised, centred / std, dtype, scale)
    close(y, centred / std * w + b, dtype, 4 * scale)
    if shape[1] > 2:
        close(inverse_std, 1 / std, dtype, scale)
    assert inverse_std.shape == (shape[0], 1)

    n = (centred / std).astype(dtype)
    s = (1 / std).astype(dtype)
    dx, dw, db = kernels.layer_norm_backward(*map(kernels.asarray, (dy, n, s, w)))
    n, g = n.astype("float64"), dy.astype("float64") * w
    inner = (g * n).mean(axis=-1, keepdims=True)
    scale = 1e3 if shape[1] > 2 else 1e6  # of two entries 1/σ can be as large as 1/√ε
    close(dx, s * (g - g.mean(axis=-1, keepdims=True) - n * inner), dtype, scale)
    close(dw, (dy.astype("float64") * n).sum(axis=0), dtype, 1e4)
    close(db, dy.astype("float64").sum(axis=0), dtype, 1e4)


@dtypes
@pytest.mark.parametrize("length", [33, 40_000])
def test_long_rows_and_few(kernels, length, dtype, rng):
    x = rng.standard_normal((2, length)).astype(dtype)
    close(kernels.softmax(kernels.asarray(x))[0], softmax_reference(x.astype("float64"))[0], dtype)


@dtypes
@pytest.mark.parametrize("length", [1, 31, 128, 1025])
def test_softmax_of_huge_negative_rows(kernels, length, dtype, rng):
    """What a mask gives: whole rows of the lowest number, and rows with some of it."""
    lowest = np.finfo(dtype).min
    x = rng.standard_normal((4, length)).astype(dtype)
    x[1] = lowest
    x[2, : length // 2] = lowest
    y, largest, log_total = kernels.softmax(kernels.asarray(x))
    expected, *_ = softmax_reference(x.astype("float64"))
    np.testing.assert_array_equal(host(y)[1], np.full(length, 1 / length, dtype))
    close(y, expected, dtype)
    assert host(largest)[1, 0] == lowest
    np.testing.assert_allclose(host(log_total)[1, 0], np.log(length), rtol=1e-6, atol=1e-6)
    assert (host(y)[2, : length // 2] == 0).all() or length == 1


@dtypes
def test_softmax_of_nan_and_infinity(kernels, dtype):
    x = np.array([[0, np.nan, 1], [0, -np.inf, 0], [np.nan, 0, 0]], dtype)
    y = host(kernels.softmax(kernels.asarray(x))[0])
    np.testing.assert_array_equal(y, [[np.nan] * 3, [0.5, 0, 0.5], [np.nan] * 3])


@dtypes
@forms
def test_any_order_in_memory(kernels, form, dtype, rng):
    x, dy = rng.standard_normal((2, 9, 40)).astype(dtype)
    w, b = rng.standard_normal((2, 40)).astype(dtype)
    plain = [kernels.asarray(a) for a in (x, dy, w, b)]
    other = [as_form(kernels, a, form) for a in (x, dy, w, b)]
    keep = rng.random((9, 40)) > 0.3
    ids = rng.integers(0, 5, 9)

    def everything(x, dy, w, b, keep, ids):
        y, *log_parts = kernels.softmax(x)
        z, normalised, inverse_std = kernels.layer_norm(x, w, b, 1e-5)
        return [
            y, *log_parts, kernels.softmax_backward(dy, y), z, normalised, inverse_std,
            *kernels.layer_norm_backward(dy, normalised, inverse_std, w), *kernels.gelu(x, "none"),
            *kernels.gelu(x, "tanh"), kernels.dropout(x, keep, 2.0), kernels.sum_rows(x),
            kernels.scatter_add_rows(5, ids, x), kernels.global_norm([x, w]),
        ]  # fmt: skip

    expected = everything(*plain, kernels.asarray(keep), kernels.asarray(ids))
    ours = everything(*other, as_form(kernels, keep * 1, form) > 0, as_form(kernels, ids, form))
    for a, e in zip(ours, expected, strict=True):
        np.testing.assert_allclose(host(a), host(e), rtol=1e-5 if dtype == "float32" else 1e-12)


# --- Columns ---------------------------------------------------------------------------------------------


@dtypes
@shapes
def test_sum_rows(kernels, shape, dtype, rng):
    x = rng.standard_normal(shape).astype(dtype)
    close(kernels.sum_rows(kernels.asarray(x)), x.astype("float64").sum(axis=0), dtype, 30)


@dtypes
@pytest.mark.parametrize("rows", [127, 128, 129, 1024, 20_000])
def test_sum_of_many_rows(kernels, rows, dtype, rng):
    x = rng.standard_normal((rows, 3)).astype(dtype)
    close(kernels.sum_rows(kernels.asarray(x)), x.astype("float64").sum(axis=0), dtype, 300)


@dtypes
@pytest.mark.parametrize("width", [1, 31, 33, 70])
@pytest.mark.parametrize("ids", ["few", "all one", "each once", "last first"])
def test_scatter_add_rows(kernels, ids, width, dtype, rng):
    n, rows = 60, 70
    ids = {
        "few": rng.integers(0, 3, n),
        "all one": np.full(n, 69),
        "each once": rng.permutation(n),
        "last first": np.arange(n)[::-1] // 2,
    }[ids]
    values = rng.standard_normal((n, width)).astype(dtype)
    expected = np.zeros((rows, width))
    np.add.at(expected, ids, values)
    for kind in ("int64", "int32"):
        given = kernels.asarray(ids.astype(kind))
        close(kernels.scatter_add_rows(rows, given, kernels.asarray(values)), expected, dtype, 20)


@dtypes
def test_sums_have_the_same_bits_each_time(kernels, dtype, rng):
    x = kernels.asarray(rng.standard_normal((700, 33)).astype(dtype))
    s = kernels.asarray(rng.random((700, 1)).astype(dtype))
    ids = kernels.asarray(rng.integers(0, 9, 700))
    for run in (
        lambda: kernels.sum_rows(x),
        lambda: kernels.scatter_add_rows(9, ids, x),
        lambda: kernels.layer_norm_backward(x, x, s, x[0])[1],
        lambda: kernels.global_norm([x, s, x]),
    ):
        np.testing.assert_array_equal(host(run()), host(run()))


# --- Entries ---------------------------------------------------------------------------------------------

SIZES = [(0,), (1,), (255,), (256,), (257,), (3, 0, 2), (5, 7, 11), ()]


@dtypes
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_gelu(kernels, size, dtype, rng):
    x = (4 * rng.standard_normal(size)).astype(dtype)
    wide = x.astype("float64")
    cdf = 0.5 * np.vectorize(math.erfc, otypes=[float])(-wide / math.sqrt(2))
    density = np.exp(-0.5 * wide**2) / math.sqrt(2 * math.pi)
    y, slope = kernels.gelu(kernels.asarray(x), "none")
    close(y, np.asarray(wide * cdf), dtype, 3)
    close(slope, np.asarray(cdf + wide * density), dtype, 3)

    t = np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * wide**2)
    y, slope = kernels.gelu(kernels.asarray(x), "tanh")
    close(y, np.asarray(0.5 * wide * (1 + t)), dtype, 3)
    close(slope, np.asarray(0.5 * (1 + t) + 0.5 * wide * (1 - t * t) * inner), dtype, 3)


@dtypes
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_dropout(kernels, size, dtype, rng):
    x, keep = np.asarray(rng.standard_normal(size)).astype(dtype), rng.random(size) > 0.4
    y = kernels.dropout(kernels.asarray(x), kernels.asarray(keep), 1 / 0.6)
    close(y, np.asarray(x.astype("float64") * keep / 0.6), dtype, 5)


@pytest.mark.parametrize("shape", [(), (1,), (7, 31), (2, 0), (3, 4096)], ids=str)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_keep_mask_is_numpys(kernels, shape, p):
    for seed, draw in ((0, 1), (2**40 + 3, 7)):
        expected = backend.get("numpy").keep_mask(shape, p, seed, draw)
        ours = kernels.keep_mask(shape, p, seed, draw)
        assert ours.dtype == bool
        np.testing.assert_array_equal(host(ours), expected)


# --- Products --------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize(("n", "k", "m"), [(5, 4, 7), (1, 1, 1), (0, 3, 2), (2, 0, 3), (257, 33, 1)])
def test_matmul(kernels, n, k, m, dtype, rng):
    a, b = rng.standard_normal((n, k)).astype(dtype), rng.standard_normal((k, m)).astype(dtype)
    expected = a.astype("float64") @ b.astype("float64")
    for left in (kernels.asarray(a), as_form(kernels, a, "transposed")):
        for right in (kernels.asarray(b), as_form(kernels, b, "transposed")):
            close(kernels.matmul(left, right), expected, dtype, 20)


def attention_reference(dy, q, k, v, mask, scale, keep, keep_scale):
    weights, *_ = softmax_reference(scale * (q @ k.swapaxes(-1, -2)) + mask)
    kept = keep * keep_scale
    d_weights = (dy @ v.swapaxes(-1, -2)) * kept
    d_scores = scale * weights * (d_weights - (d_weights * weights).sum(axis=-1, keepdims=True))
    return [
        (weights * kept) @ v, weights,
        d_scores @ k, d_scores.swapaxes(-1, -2) @ q, (weights * kept).swapaxes(-1, -2) @ dy,
    ]  # fmt: skip


@dtypes
@pytest.mark.parametrize("masked", [None, "padding", "causal", "both"])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(
    ("lead", "n", "m", "d_k", "d_v"),
    [
        ((2, 3), 5, 7, 4, 6), ((2, 3), 33, 31, 1, 1), ((1, 1), 1, 1, 2, 2), ((2,), 9, 9, 5, 5),
        ((2, 2, 2), 3, 4, 5, 5), ((0, 3), 4, 4, 2, 2), ((1, 2), 3, 1030, 2, 2),
    ],
)  # fmt: skip
def test_attention_and_its_backward(kernels, lead, n, m, d_k, d_v, masked, dropped, dtype, rng):
    sizes = [(n, d_v), (n, d_k), (m, d_k), (m, d_v)]
    # stored as (N, n, …, d): heads are views of one matrix
    dy, q, k, v = (rng.standard_normal((*lead[:1], a, *lead[1:], b)).astype(dtype) for a, b in sizes)
    lowest = np.finfo(dtype).min
    mask = {
        None: np.zeros((1, 1)),
        "padding": np.where(rng.random((lead[0], *[1] * len(lead), m)) < 0.4, lowest, 0),
        "causal": np.where(np.arange(n)[:, None] < np.arange(m), lowest, 0),
        "both": np.where(rng.random((*lead, n, m)) < 0.4, lowest, 0),
    }[masked].astype(dtype)
    keep = rng.random((*lead, n, m)) > 0.3 if dropped else np.ones((*lead, n, m), bool)
    scale, keep_scale = 1 / math.sqrt(d_k), 1 / 0.7 if dropped else 1.0

    heads = [x if len(lead) == 1 else np.moveaxis(x, 1, -2) for x in (dy, q, k, v)]
    expected = attention_reference(*(x.astype("float64") for x in heads), mask, scale, keep, keep_scale)
    dy, q, k, v = (kernels.asarray(x) for x in (dy, q, k, v))
    for axis in range(1, len(lead)):
        dy, q, k, v = (x.swapaxes(axis, axis + 1) for x in (dy, q, k, v))
    mask = None if masked is None else kernels.xp.broadcast_to(kernels.asarray(mask), keep.shape)
    keep = kernels.asarray(keep) if dropped else None
    z, weights = kernels.attention(q, k, v, mask, scale, keep, keep_scale)
    gradients = kernels.attention_backward(dy, q, k, v, weights, scale, keep, keep_scale)
    for ours, reference in zip((z, weights, *gradients), expected, strict=True):
        close(ours, reference, dtype, 20)


@on_standin
@pytest.mark.parametrize("tf32", [False, True])
def test_the_arithmetic_of_products_in_stacks(tf32, kernels, monkeypatch, rng):
    """TF32 for float32 where the device has it, never for float64, nor for operands of 16 bits."""
    monkeypatch.setattr(kernels, "_TF32", tf32)
    names = ("CUBLAS_COMPUTE_32F_FAST_TF32" if tf32 else "CUBLAS_COMPUTE_32F", "CUBLAS_COMPUTE_64F")
    a = rng.standard_normal((2, 3, 4))
    for dtype, precision, name in (
        ("float32", "float32", names[0]),
        ("float64", "float32", names[1]),
        ("float32", "float16", "CUBLAS_COMPUTE_32F"),
        ("float32", "bfloat16", "CUBLAS_COMPUTE_32F"),
    ):
        x = kernels.asarray(a.astype(dtype))
        y = kernels._product(x, x.swapaxes(-1, -2), precision)
        assert fake_cupy.COMPUTED_WITH[-1] == getattr(fake_cupy.CUBLAS, name)
        np.testing.assert_allclose(host(y), a @ a.swapaxes(-1, -2), atol=0.05)


def test_what_works_in_place(kernels, rng):
    y, b = rng.standard_normal((5, 3)), rng.standard_normal(3)
    ours = kernels.asarray(y.copy())
    kernels.add_bias(ours, kernels.asarray(b))
    np.testing.assert_array_equal(host(ours), y + b)
    kernels.multiply_in_place(ours, kernels.asarray(y))
    np.testing.assert_array_equal(host(ours), (y + b) * y)
    kernels.add_in_place(ours, kernels.asarray(y))
    np.testing.assert_array_equal(host(ours), (y + b) * y + y)


# --- Many arrays -----------------------------------------------------------------------------------------

MANY = [(1,), (0,), (3, 5), (256,), (16_384,), (16_385,), (40_000,), (4, 6)]
SETTINGS = {
    "step_size": 0.1, "decay": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "second_correction": 0.03,
}  # fmt: skip


def adamw_reference(p, g, m, v, step_size, decay, beta1, beta2, eps, second_correction):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return p * (1 - decay) - step_size * m / (np.sqrt(v) / second_correction + eps), m, v


@dtypes
def test_adamw_over_many_arrays(kernels, dtype, rng):
    arrays = [[rng.standard_normal(shape).astype(dtype) for shape in MANY] for _ in range(4)]
    arrays[3] = [a * a for a in arrays[3]]
    ours = [[kernels.asarray(a.copy()) for a in some] for some in arrays]
    transposed = kernels.asarray(np.ascontiguousarray(arrays[1][-1].T)).T  # a gradient in another order
    ours[1][-1] = transposed
    kernels.adamw_step(*ours, **SETTINGS)
    for i in range(len(MANY)):
        expected = adamw_reference(*(some[i].astype("float64") for some in arrays), **SETTINGS)
        for mine, reference in zip((ours[0][i], ours[2][i], ours[3][i]), expected, strict=True):
            close(mine, reference, dtype, 10)
        np.testing.assert_array_equal(host(ours[1][i]), arrays[1][i])


def test_adamw_of_mixed_dtypes_and_orders(kernels, rng):
    shapes_of = [("float32", (3, 4)), ("float64", (5,)), ("float32", (4, 3))]
    arrays = [[rng.random(shape).astype(dtype) for dtype, shape in shapes_of] for _ in range(4)]
    ours = [[kernels.asarray(a.copy()) for a in some] for some in arrays]
    for some, mine in zip(arrays, ours, strict=True):
        mine[2] = kernels.asarray(np.ascontiguousarray(some[2].T)).T
    kernels.adamw_step(*ours, **SETTINGS)
    for i, (dtype, _) in enumerate(shapes_of):
        expected = adamw_reference(*(some[i].astype("float64") for some in arrays), **SETTINGS)
        for mine, reference in zip((ours[0][i], ours[2][i], ours[3][i]), expected, strict=True):
            close(mine, reference, dtype, 10)


def test_global_norm_and_scale_in_place(kernels, rng):
    arrays = [rng.standard_normal(shape).astype("float32") for shape in MANY]
    arrays += [rng.standard_normal((7, 3)), rng.standard_normal((5, 9)).astype("float32").T]
    ours = [kernels.asarray(a.copy(order="K")) for a in arrays]
    norm = kernels.global_norm(ours)
    expected = math.sqrt(sum((a.astype("float64") ** 2).sum() for a in arrays))
    assert norm.shape == ()
    assert float(norm) == pytest.approx(expected, rel=1e-6)
    assert float(kernels.global_norm([])) == 0
    for factor in (0.5, kernels.asarray(np.array(0.25)), kernels.asarray(np.array(1.0))):
        before = [host(a).copy() for a in ours]
        kernels.scale_in_place(ours, factor)
        for a, b in zip(ours, before, strict=True):
            np.testing.assert_allclose(host(a), b * float(factor), rtol=1e-6)
    ours[0][0] = np.nan
    assert math.isnan(kernels.global_norm(ours))


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
    np.testing.assert_allclose(host(y), softmax_reference(x.astype("float64"))[0], atol=1e-3)
    state = [kernels.asarray(np.zeros((4, 33), "float16")) for _ in range(2)]
    kernels.adamw_step([given[0]], [given[1]], *([s] for s in state), **SETTINGS)
    assert float(kernels.global_norm([given[1]])) == pytest.approx(np.linalg.norm(dy.astype(float)), rel=1e-3)
    kernels.scale_in_place([given[1]], 2.0)
    np.testing.assert_array_equal(host(given[1]), twice)


# --- The source ------------------------------------------------------------------------------------------


def nvrtc() -> ctypes.CDLL:
    """NVIDIA's run-time compiler, which needs no GPU."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations] if spec else []
    found = [path for folder in folders for path in sorted(folder.glob("*/lib/libnvrtc.so.*[0-9]"))]
    found = [path for path in found if ".alt." not in path.name]
    if not found:
        pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    return ctypes.CDLL(str(found[0]))


def compile_for(architecture: str) -> tuple[str, dict[str, str]]:
    """The kernels' PTX (empty for an sm_ architecture, whose code is binary), and their names in it."""
    compiler, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    architectures = ctypes.c_int()
    assert compiler.nvrtcGetNumSupportedArchs(ctypes.byref(architectures)) == 0
    supported = (ctypes.c_int * architectures.value)()
    assert compiler.nvrtcGetSupportedArchs(supported) == 0
    if int(architecture.partition("_")[2]) not in supported:
        pytest.skip(f"this NVRTC does not compile for {architecture}")
    source = cupy_kernels.SOURCE.encode()
    assert compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None) == 0
    try:
        for name in cupy_kernels.NAMES:
            assert compiler.nvrtcAddNameExpression(program, name.encode()) == 0
        options = [f"-arch={architecture}", "--device-as-default-execution-space", *cupy_kernels.OPTIONS]
        count = len(options)
        status = compiler.nvrtcCompileProgram(
            program, count, (ctypes.c_char_p * count)(*[option.encode() for option in options])
        )
        texts = []
        for what in ("ProgramLog", "PTX", "CUBIN"):
            assert getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
            texts.append(ctypes.create_string_buffer(size.value + 1))
            if size.value:
                assert getattr(compiler, f"nvrtcGet{what}")(program, texts[-1]) == 0
        log, ptx, cubin = texts
        assert status == 0, log.value.decode()
        assert architecture.startswith("compute") or cubin.raw[:4] == b"\x7fELF"
        names = {}
        for name in cupy_kernels.NAMES:
            lowered = ctypes.c_char_p()
            assert compiler.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(lowered)) == 0
            names[lowered.value.decode()] = name
        return ptx.value.decode(), names
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.oracle
@pytest.mark.parametrize("capability", [70, 80, 90])
def test_compiles_for_a_device(capability):
    _, names = compile_for(f"sm_{capability}")
    assert len(names) == len(cupy_kernels.NAMES)


@pytest.mark.oracle
def test_float32_is_not_computed_in_float64():
    """A number written without T() makes a kernel compute in double, at a 64th of the speed on many GPUs."""
    ptx, names = compile_for("compute_80")
    bodies = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}", ptx, re.DOTALL))
    assert set(bodies) == set(names)
    for lowered, body in bodies.items():
        if "float" in names[lowered]:
            used = set(re.findall(r"\b(?:add|mul|fma|div|sqrt|ex2)\.[a-z.]*f64", body))
            assert not used, f"{names[lowered]}: {used}"
    assert "fma.rn.f64" in ptx


def test_every_kernel_is_named():
    found = re.findall(r"(template <typename T>\n)?__global__ void (\w+)\(", cupy_kernels.SOURCE)
    names = [name for template, name in found if not template]
    names += [
        f"{name}<{kind}>" for template, name in found if template for kind in cupy_kernels.TYPES.values()
    ]
    assert sorted(names) == sorted(cupy_kernels.NAMES)


# --- The stand-in ----------------------------------------------------------------------------------------


def test_cupy_has_what_launches_need():
    if IS_STANDIN:
        pytest.skip("the stand-in is in CuPy's place")
    cupy = pytest.importorskip("cupy")
    assert callable(cupy.RawModule(code="", name_expressions=()).get_function)
    for name in ("Device", "get_cublas_handle", "runtime"):
        assert hasattr(cupy.cuda, name)
    assert isinstance(cupy.cuda.Device.compute_capability, type(cupy.ndarray.data))
    for name, value in vars(fake_cupy.RUNTIME).items():
        assert getattr(cupy.cuda.runtime, name) == value
    try:
        from cupy_backends.cuda.libs import cublas
    except ImportError as error:
        pytest.skip(f"CuPy without cuBLAS: {error}")
    for name, value in vars(fake_cupy.CUBLAS).items():
        assert callable(value) or getattr(cublas, name) == value
    parameters = re.findall(r"\w+ (\w+)[,)]", cublas.gemmStridedBatchedEx.__doc__)
    code = fake_cupy.CUBLAS.gemmStridedBatchedEx.__code__
    assert [name.lower().replace("_", "") for name in parameters] == [
        {"compute": "computetype"}.get(name, name).replace("_", "").replace("batch", "batchcount")
        for name in code.co_varnames[: code.co_argcount]
    ]


def fake_kernel(body, parameters="float* x"):
    code = f"__global__ void f({parameters}) {{ {body} }}"
    return fake_cupy.RawModule(code=code, name_expressions=("f",)).get_function("f")


@on_standin
def test_stand_in_shows_a_missing_barrier():
    """Each thread reads what the next one wrote: without a barrier, before it has."""
    body = (
        "__shared__ float s[64]; s[threadIdx.x] = threadIdx.x; {} x[threadIdx.x] = s[(threadIdx.x + 1) % 64];"
    )
    for barrier in ("__syncthreads();", ""):
        x = backend.default().asarray(np.zeros(64, np.float32))
        fake_kernel(body.format(barrier))((1,), (64,), (x,))
        assert (host(x) == (np.arange(64) + 1) % 64).all() == bool(barrier)


@on_standin
@pytest.mark.parametrize(
    "body", ["if (threadIdx.x < 5) __syncthreads();", "if (threadIdx.x) x[0] = __shfl_xor_sync(-1, 1.f, 1);"]
)
def test_stand_in_shows_a_barrier_that_some_never_reach(body):
    x = backend.default().asarray(np.zeros(64, np.float32))
    with pytest.raises(RuntimeError, match="f: some threads wait at a barrier to which others never come"):
        fake_kernel(body)((1,), (64,), (x,))
    fake_kernel("x[threadIdx.x] = 1;")((1,), (64,), (x,))  # and goes on after that
    assert (host(x) == 1).all()


@on_standin
def test_stand_in_shows_shared_memory_that_nobody_wrote():
    x = backend.default().asarray(np.zeros(3, np.float32))
    fake_kernel("__shared__ float s[2]; x[blockIdx.x] = s[0]; s[0] = 0;")((3,), (1,), (x,))
    assert (host(x) > 1e38).all()


@on_standin
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.float32(1),), r"expected arguments \['\*f', 'd'\], got \['f'\]"),
        (("x", 1), r"got \['\*f', 'q'\]"),
        (("x", np.float32(1)), r"got \['\*f', 'f'\]"),
        (("double", 1.0), r"got \['\*d', 'd'\]"),
        (("gaps", 1.0), "an array is not contiguous"),
    ],
)
def test_stand_in_checks_arguments(arguments, message):
    x = backend.default().asarray(np.zeros(8, np.float32))
    given = {"x": x, "double": x.astype("float64"), "gaps": x[::2]}
    kernel = fake_kernel("x[0] = a;", "float* x, double a")
    arguments = tuple(given.get(a, a) if isinstance(a, str) else a for a in arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        kernel((1,), (1,), arguments)


@on_standin
@pytest.mark.parametrize(("grid", "block"), [((1,), (32, 33)), ((1, 65_536), (1,)), ((2**31,), (1,))])
def test_stand_in_refuses_sizes_that_cuda_has_not(grid, block):
    with pytest.raises(RuntimeError, match="CUDA has no grid"):
        fake_kernel("", "long long n")(grid, block, (1,))


@on_standin
def test_no_compiler_skips(monkeypatch):
    monkeypatch.setattr(fake_cupy.shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match=r"running CUDA kernels on the CPU needs g\+\+"):
        fake_kernel("x[0] = 12345;")
