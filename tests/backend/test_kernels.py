"""The backend's inner loops against plain float64 NumPy, at every size where a kernel could go wrong.

On the stand-in (--standin) this runs the CUDA source itself, compiled for the CPU; on a GPU (--backend cupy)
the kernels; and on NumPy its loops.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad import backend

ROWS = [0, 1, 3, 257]
LENGTHS = [1, 2, 31, 33, 128, 255, 1025, 5000]
# Few rows where rows are long: a thread is slow on the CPU.
SHAPES = [(n, d) for n in ROWS for d in LENGTHS if n * d <= 70_000]
FORMS = ["contiguous", "transposed", "every second"]

dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
forms = pytest.mark.parametrize("form", FORMS)

host = backend.to_numpy


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


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (3000, 129)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bias_is_added_in_place(kernels, shape, dtype, rng):
    x, bias = rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape[1]).astype(dtype)
    y = kernels.asarray(x.copy())
    kernels.add_bias(y, kernels.asarray(bias))
    np.testing.assert_array_equal(host(y), x + bias)


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


@pytest.mark.parametrize(
    ("rows", "n", "width"), [(5, 0, 3), (5, 1, 3), (7, 200, 3), (1, 50, 1), (300, 40, 7), (3, 12, 0)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scatter_add_rows_of_any_size(kernels, rows, n, width, dtype, rng):
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


@dtypes
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_dropout(kernels, size, dtype, rng):
    x, keep = np.asarray(rng.standard_normal(size)).astype(dtype), rng.random(size) > 0.4
    y = kernels.dropout(kernels.asarray(x), kernels.asarray(keep), 1 / 0.6)
    close(y, np.asarray(x.astype("float64") * keep / 0.6), dtype, 5)


@dtypes
@pytest.mark.parametrize("shape", [(), (0,), (5, 7), (300, 1000)])
def test_in_place(kernels, shape, dtype, rng):
    a, b = rng.standard_normal((2, *shape)).astype(dtype)
    for operator, expected in ((kernels.multiply_in_place, a * b), (kernels.add_in_place, a + b)):
        result, other = kernels.asarray(np.array(a)), kernels.asarray(np.array(b))
        operator(result, other)
        np.testing.assert_array_equal(host(result), expected)
        np.testing.assert_array_equal(host(other), b)
        turned = kernels.asarray(np.array(a.T)).T  # the same entries in another order in memory
        operator(turned, other)
        np.testing.assert_array_equal(host(turned), expected)


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (7, 31), (7, 1), (33, 5), (2, 0), (3, 4096), (2**17 + 1, 3)], ids=str
)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_keep_mask_is_the_same_on_every_backend(kernels, shape, p):
    for keys in ((0, 0), (2**32 - 3, 7)):
        expected = backend.get("numpy").keep_mask(shape, p, keys)
        ours = kernels.keep_mask(shape, p, keys)
        assert ours.dtype == bool
        assert ours.shape == shape
        np.testing.assert_array_equal(host(ours), expected)


@pytest.mark.parametrize("keys", [(5, 7), (2**32 - 2, 2**32 - 1)])
def test_keep_mask_is_the_hash_of_the_number(kernels, keys):
    """The first words, by the formula in Python's integers."""
    first, second = keys
    expected = []
    for number in range(5):
        x = (number + first) % 2**32
        x = (x ^ (x >> 16)) * 0x7FEB352D % 2**32
        x ^= second
        x = (x ^ (x >> 15)) * 0x846CA68B % 2**32
        x ^= x >> 16
        expected += [x % 2**16 >= 0.3 * 2**16, x >> 16 >= 0.3 * 2**16]
    assert host(kernels.keep_mask((9,), 0.3, keys)).tolist() == expected[:9]


@pytest.mark.parametrize("first", [0, 1, 2, 7, 12_345, 2**18 + 1])
@pytest.mark.parametrize("shape", [(0, 3), (1,), (4, 5), (7, 3), (2**18 + 3,)], ids=str)
def test_keep_mask_of_a_part_is_a_part_of_the_mask(kernels, shape, first):
    """Two entries share a word, so a part may begin in the middle of one."""
    size = int(np.prod(shape))
    whole = host(kernels.keep_mask((first + size + 3,), 0.3, (2**32 - 3, 7)))
    part = host(kernels.keep_mask(shape, 0.3, (2**32 - 3, 7), first))
    assert part.shape == shape
    np.testing.assert_array_equal(part.ravel(), whole[first : first + size])


def test_keep_mask_corners(kernels):
    assert host(kernels.keep_mask((3, 5), 0.0, (0, 1))).all()
    assert not host(kernels.keep_mask((3, 5), 1.0, (0, 1))).any()


# --- Recurrent steps --------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def device_copies(kernels, dtype, *arrays):
    return [kernels.asarray(array.astype(dtype)) for array in arrays]


STEPS = [(1, 1), (3, 5), (33, 31), (257, 3), (7, 300), (0, 4)]  # rows, size of the state
steps = pytest.mark.parametrize(("n", "d"), STEPS)
ending = pytest.mark.parametrize("ending", [False, True])


def some_live(kernels, n, ending, rng):
    """Which rows are live, on the device (None: all) and as a column on the host."""
    live = rng.random(n) < 0.6 if ending else np.ones(n, bool)
    return kernels.asarray(live) if ending else None, live[:, None]


@dtypes
@steps
@ending
def test_rnn_step_and_its_backward(kernels, n, d, ending, dtype, rng):
    h, total, dh = (x.astype(dtype) for x in rng.standard_normal((3, n, d)))
    live, column = some_live(kernels, n, ending, rng)
    before, new = device_copies(kernels, dtype, h, total)
    kernels.rnn_step(before, new, live)
    expected = np.where(column, np.tanh(total.astype(float)), h)
    close(new, expected, dtype)
    np.testing.assert_array_equal(host(before), h)

    grad, d_sum, saved = device_copies(kernels, dtype, dh, dh * 9, expected)
    kernels.rnn_step_backward(grad, d_sum, saved, live)
    close(d_sum, np.where(column, dh * (1 - expected**2), 0), dtype, 10)
    np.testing.assert_array_equal(host(grad), np.where(column, 0, dh))


@dtypes
@steps
@ending
def test_gru_step_and_its_backward(kernels, n, d, ending, dtype, rng):
    x_part, heard = (3 * rng.standard_normal((2, n, 3 * d))).astype(dtype)
    h, dh = rng.standard_normal((2, n, d)).astype(dtype)
    live, column = some_live(kernels, n, ending, rng)
    gates, of_h, before, new = device_copies(kernels, dtype, x_part, heard, h, 9 * h)
    kernels.gru_step(gates, of_h, before, new, live)
    wide, wide_heard = x_part.astype(float), heard.astype(float)
    h_g = wide_heard[:, 2 * d :]
    r, z = sigmoid(wide[:, :d] + wide_heard[:, :d]), sigmoid((wide + wide_heard)[:, d : 2 * d])
    g = np.tanh(wide[:, 2 * d :] + r * h_g)
    close(gates, np.hstack([r, z, g]), dtype, 4)
    close(new, np.where(column, (1 - z) * g + z * h, h), dtype, 10)
    np.testing.assert_array_equal(host(of_h), heard)

    grad, saved, of_h, before = device_copies(kernels, dtype, dh, np.hstack([r, z, g]), heard, h)
    kernels.gru_step_backward(grad, saved, of_h, before, live)
    d_g = dh * (1 - z) * (1 - g**2)
    both = [d_g * h_g * r * (1 - r), dh * (h - g) * z * (1 - z)]
    close(saved, np.where(column, np.hstack([*both, d_g]), 0), dtype, 20)
    close(of_h, np.where(column, np.hstack([*both, d_g * r]), 0), dtype, 20)
    close(grad, np.where(column, dh * z, dh), dtype, 10)


@dtypes
@steps
@ending
def test_lstm_step_and_its_backward(kernels, n, d, ending, dtype, rng):
    total = (3 * rng.standard_normal((n, 4 * d))).astype(dtype)
    h, c, dh, dc = rng.standard_normal((4, n, d)).astype(dtype)
    live, column = some_live(kernels, n, ending, rng)
    gates, h_before, c_before, h_new, c_new = device_copies(kernels, dtype, total, h, c, 9 * h, 9 * c)
    kernels.lstm_step(gates, h_before, c_before, h_new, c_new, live)
    wide = total.astype(float)
    i, f, o = (sigmoid(wide[:, k * d : (k + 1) * d]) for k in (0, 1, 3))
    g = np.tanh(wide[:, 2 * d : 3 * d])
    cell = np.where(column, f * c + i * g, c)
    close(gates, np.hstack([i, f, g, o]), dtype, 4)
    close(c_new, cell, dtype, 10)
    close(h_new, np.where(column, o * np.tanh(cell), h), dtype, 10)

    grad_h, grad_c, saved, c_before, c_new = device_copies(
        kernels, dtype, dh, dc, np.hstack([i, f, g, o]), c, cell
    )
    kernels.lstm_step_backward(grad_h, grad_c, saved, c_before, c_new, live)
    squashed = np.tanh(cell)
    d_cell = dc + dh * o * (1 - squashed**2)
    slopes = [d_cell * g * i * (1 - i), d_cell * c * f * (1 - f), d_cell * i * (1 - g**2)]
    expected = np.hstack([*slopes, dh * squashed * o * (1 - o)])
    close(saved, np.where(column, expected, 0), dtype, 20)
    close(grad_c, np.where(column, d_cell * f, dc), dtype, 20)
    np.testing.assert_array_equal(host(grad_h), np.where(column, 0, dh))


@dtypes
def test_gates_of_huge_numbers_are_0_and_1(kernels, dtype):
    total = np.full((2, 12), 1e30)
    total[1] *= -1
    gates, h, c, h_new, c_new = device_copies(kernels, dtype, total, *np.full((4, 2, 3), 0.5))
    kernels.lstm_step(gates, h, c, h_new, c_new, None)
    np.testing.assert_array_equal(host(gates), [[1.0] * 12, [0.0] * 6 + [-1.0] * 3 + [0.0] * 3])
    np.testing.assert_allclose(host(c_new), [[1.5] * 3, [0.0] * 3])


@dtypes
def test_what_a_row_that_has_ended_heard_does_not_matter(kernels, dtype):
    """Not even where it is no number."""
    nothing = np.full((2, 12), np.nan)
    nothing[1] = 0.25
    live = kernels.asarray(np.array([False, True]))
    gates, h, c, h_new, c_new = device_copies(kernels, dtype, nothing, *np.full((4, 2, 3), 0.5))
    kernels.lstm_step(gates, h, c, h_new, c_new, live)
    dh, dc = device_copies(kernels, dtype, *np.full((2, 2, 3), 2.0))
    kernels.lstm_step_backward(dh, dc, gates, c, c_new, live)
    for array in (h_new, c_new, gates, dh, dc):
        assert np.isfinite(host(array)).all()
    gates, heard = device_copies(kernels, dtype, nothing[:, :9], nothing[:, :9])
    kernels.gru_step(gates, heard, h, h_new, live)
    kernels.gru_step_backward(dh, gates, heard, h, live)
    for array in (h_new, gates, heard, dh):
        assert np.isfinite(host(array)).all()


# --- Products --------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize(
    ("n", "k", "m"),
    [
        (5, 4, 7), (1, 1, 1), (0, 3, 2), (2, 0, 3), (257, 33, 1), (700, 30, 50), (50, 30, 700), (129, 65, 129),
    ],
)  # fmt: skip
def test_matmul(kernels, n, k, m, dtype, rng):
    a, b = rng.standard_normal((n, k)).astype(dtype), rng.standard_normal((k, m)).astype(dtype)
    expected = a.astype("float64") @ b.astype("float64")
    for left in (kernels.asarray(a), as_form(kernels, a, "transposed")):
        for right in (kernels.asarray(b), as_form(kernels, b, "transposed")):
            close(kernels.matmul(left, right), expected, dtype, 10)


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


@pytest.mark.numpy_only("CuPy orders as it likes")
def test_attention_leaves_heads_as_they_lie(kernels, rng):
    """Views (B, A, T, d) of one (B, T, A d) go in; out comes another, which needs no copy to be put together."""
    q, k, v = (rng.standard_normal((3, 7, 2, 4)).swapaxes(1, 2) for _ in range(3))
    z, weights = kernels.attention(q, k, v, None, 0.5, None, 1.0)
    gradients = kernels.attention_backward(z, q, k, v, weights, 0.5, None, 1.0)
    for result in (z, *gradients):
        assert result.swapaxes(1, 2).flags.c_contiguous


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
