"""The CPU backend: NumPy, and the inner loops that are worth writing with care there.

The loops run block by block, shared over the processor's cores (`threads.py`). Matrix products are shared over the
same threads, with the BLAS on one thread in each. Arrays of float16 go through float32, as on a GPU.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as xp

from minigrad.backend import float16_as_float32
from minigrad.backend.threads import in_blocks, on_one_blas_thread, rows_in_block, share

__all__ = [
    "adamw_step",
    "add_bias",
    "add_in_place",
    "asarray",
    "attention",
    "attention_backward",
    "dropout",
    "erf",
    "gelu",
    "global_norm",
    "keep_freed_memory",
    "keep_mask",
    "layer_norm",
    "layer_norm_backward",
    "mask_keys",
    "matmul",
    "multiply_in_place",
    "name",
    "rounded",
    "row_ids",
    "scale_in_place",
    "scatter_add",
    "scatter_add_rows",
    "softmax",
    "softmax_backward",
    "sum_rows",
    "synchronize",
    "to_numpy",
    "unavailable",
    "xp",
]

name = "numpy"

Array = xp.ndarray

# --- Where the backend meets the rest --------------------------------------------------------------------


def unavailable() -> str:
    """Why this backend cannot be used here; empty when it can."""
    return ""


def asarray(values: Any, dtype: Any = None) -> Array:
    """`values` (lists, scalars, arrays of this backend) as a NumPy array, without a copy where possible."""
    return xp.asarray(values, dtype=dtype)


def to_numpy(array: Array) -> Array:
    """`array` on the host: here, itself."""
    return array


def synchronize() -> None:
    """Wait until the device has finished: the CPU always has."""


def keep_freed_memory() -> None:
    """Tell the C library (glibc) to keep freed memory for the next array instead of returning it.

    By default every large array is fresh from the kernel, which fills it with zeros page by page: a product
    into a fresh array can take twice the time of one into an array used before. Long training runs and
    benchmarks call this once; it changes the whole process, so importing minigrad does not. Without glibc it
    does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    m_mmap_max, m_trim_threshold, m_top_pad = -4, -1, -2  # names and numbers from glibc's malloc.h
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 2**31 - 1)
    mallopt(m_top_pad, 2**26)


def row_ids(ids: Any, rows: int) -> Array:
    """`ids` as an integer array, each within 0 … rows - 1.

    Raises TypeError for other dtypes, IndexError for an id outside.
    """
    ids = xp.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    if ids.size and not (ids.min() >= 0 and ids.max() < rows):
        bad = ids[(ids < 0) | (ids >= rows)].flat[0]
        raise IndexError(f"id {bad} is outside 0 … {rows - 1}")
    return ids


# --- Arrays as rows ---------------------------------------------------------------------------------------


def _flat(x: Array) -> Array:
    """`x` seen as one row, (…) -> (size,); contiguous."""
    return xp.ascontiguousarray(x).reshape(-1)


def _rows(x: Array) -> Array:
    """`x` as a matrix of rows along its last axis: (..., d) -> (n, d); contiguous.

    It shows the memory of x where that is contiguous, and is a copy elsewhere: write only into rows of arrays that
    were made with `xp.empty(shape)`, never of what an operator has returned, which may be ordered as its operands.
    """
    return xp.ascontiguousarray(x).reshape(-1, x.shape[-1] if x.ndim else 1)


# --- Products --------------------------------------------------------------------------------------------

SMALL_PRODUCT = 2**18  # multiplications that take less time than waking a thread


def matmul(a: Array, b: Array) -> Array:
    """The product of two matrices: (n, k) @ (k, m) -> (n, m)."""
    (n, k), m = a.shape, b.shape[1]
    if n * k * m < SMALL_PRODUCT:
        return xp.matmul(a, b)
    y = xp.empty((n, m), a.dtype)

    def run(some: range) -> None:
        part = slice(some.start, some.stop)
        if n >= m:
            xp.matmul(a[part], b, out=y[part])
        else:
            xp.matmul(a, b[:, part], out=y[:, part])

    on_one_blas_thread(lambda: share(run, range(max(n, m))))
    return y


def rounded(x: Array, precision: str) -> Array:
    """`x` as products multiply it: itself, or a float32 array rounded to "bfloat16" or "float16", as float32.

    What float16 cannot hold becomes infinite.
    """
    if precision == "float32" or x.dtype != xp.float32:
        return x
    if precision == "float16":
        with xp.errstate(over="ignore"):
            return x.astype(xp.float16).astype(xp.float32)
    # A bfloat16 is the upper half of a float32. Adding just under half of its last place carries what is nearer to
    # the next one upwards; from the middle, the last bit decides: to the even one.
    bits = x.view(xp.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & xp.uint32(0xFFFF0000)
    return xp.where(xp.isnan(x), x, bits.view(xp.float32))


def add_bias(y: Array, bias: Array) -> None:
    """y (n, d) += bias (d,), in place; y is contiguous."""
    n, d = y.shape
    together = math.gcd(n, 32)  # rows seen as one longer row: a short one costs more to start than to add
    long_rows, long_bias = y.reshape(n // together, together * d), xp.tile(bias, together)

    def block(b: slice) -> None:
        long_rows[b] += long_bias

    in_blocks(block, *long_rows.shape)


@float16_as_float32
def sum_rows(x: Array) -> Array:
    """The sum of the rows: (n, d) -> (d,)."""
    n, d = x.shape
    step = rows_in_block(d)
    ones = xp.ones(min(n, step), x.dtype)
    partial = xp.zeros((-(-n // step), d), x.dtype)  # one sum a block, added up in order

    def block(b: slice) -> None:
        xp.matmul(ones[: b.stop - b.start], x[b], out=partial[b.start // step])

    on_one_blas_thread(lambda: in_blocks(block, n, d))
    return partial.sum(axis=0)


# --- Random bits -----------------------------------------------------------------------------------------


def keep_mask(shape: tuple[int, ...], p: float, seed: int, draw: int) -> Array:
    """A boolean array in which each entry is False with probability `p`: what dropout keeps.

    A function of (seed, draw) alone, the same on every backend, so that a resumed run draws what an
    uninterrupted one would have: two entries take the halves of one 32-bit word, which is the hash of its
    number ("lowbias32", C. Wellons 2018, with two keys mixed in). `p` is rounded to 1/65,536.
    """
    size = math.prod(shape)
    threshold = round(p * 65536)
    if threshold == 65536:
        return xp.zeros(shape, dtype=bool)
    first, second = mask_keys(seed, draw)
    words = -(-size // 2)
    keep = xp.empty(2 * words, dtype=bool)
    numbers = xp.arange(min(words, rows_in_block(1)), dtype=xp.uint32)

    def block(b: slice) -> None:
        x = numbers[: b.stop - b.start] + xp.uint32((b.start + first) % 2**32)
        shifted = xp.right_shift(x, xp.uint32(16))
        x ^= shifted
        x *= xp.uint32(0x7FEB352D)
        x ^= xp.uint32(second)
        xp.right_shift(x, xp.uint32(15), out=shifted)
        x ^= shifted
        x *= xp.uint32(0x846CA68B)
        xp.right_shift(x, xp.uint32(16), out=shifted)
        x ^= shifted
        xp.greater_equal(x.view(xp.uint16), threshold, out=keep[2 * b.start : 2 * b.stop])

    in_blocks(block, words, 1)
    return keep[:size].reshape(shape)


def mask_keys(seed: int, draw: int) -> tuple[int, int]:
    """Two 32-bit keys for the draw number `draw` of `seed` (SplitMix64; Steele, Lea & Flood 2014)."""
    z = seed * 0xD1342543DE82EF95 + draw * 0x9E3779B97F4A7C15
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    z ^= z >> 31
    return z >> 32, z % 2**32


def dropout(x: Array, keep: Array, scale: float) -> Array:
    """`x * keep * scale` for a boolean `keep` of the same shape."""
    y = xp.empty(x.shape, x.dtype)
    flat_x, flat_keep, flat_y = _flat(x), _flat(keep), y.reshape(-1)

    in_blocks(lambda b: _dropout(flat_x[b], flat_keep[b], scale, flat_y[b]), x.size, 1)
    return y


def _dropout(x: Array, keep: Array, scale: float, out: Array) -> None:
    xp.multiply(x, keep, out=out)
    out *= scale


# --- Elementwise -----------------------------------------------------------------------------------------

# erf(x / √2) = tanh(x p(x²)), p a polynomial fitted to artanh(erf(x / √2)) / x for |x| ≤ 6, where float32 has
# reached ±1: lowest power first, error below 2e-7. Its first two coefficients are near those of GELU's tanh
# form, √(2/π) and √(2/π) · 0.044715. tests/tools/erf_fit.py makes them.
_ARTANH_ERF = (
    0.79788494,
    0.036333084,
    -3.2594736e-5,
    -5.5306321e-5,
    3.964774e-6,
    -1.3226635e-7,
    1.7562797e-9,
)

_exact_erf = xp.frompyfunc(math.erf, 1, 1)


@float16_as_float32
def erf(x: Array) -> Array:
    """The error function: to the last digits in float64 (slow), within 2e-7 in float32 (fast)."""
    if x.dtype == xp.float64:
        return xp.asarray(_exact_erf(x), dtype=xp.float64)
    with xp.errstate(over="ignore"):  # far out the polynomial is infinite, and its tanh 1
        x = x * math.sqrt(2)
        return xp.tanh(x * _polynomial(x * x, _ARTANH_ERF))


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """c0 + x (c1 + x (c2 + …))."""
    value = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        value += c
        value *= x
    value += coefficients[0]
    return value


@float16_as_float32
def gelu(x: Array, approximate: str) -> tuple[Array, Array]:
    """GELU and its slope at `x`: two arrays of the shape of `x`.

    `approximate` is "none" for x Φ(x), "tanh" for the tanh form (Hendrycks & Gimpel 2016, section 2).
    """
    y, slope = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
    flat_x, flat_y, flat_slope = _flat(x), y.reshape(-1), slope.reshape(-1)
    if approximate == "tanh":
        form = _gelu_tanh
    else:
        form = _gelu_float32 if x.dtype == xp.float32 else _gelu_erf
    in_blocks(lambda b: form(flat_x[b], flat_y[b], flat_slope[b]), x.size, 1)
    return y, slope


def multiply_in_place(a: Array, b: Array) -> None:
    """a *= b, for arrays of one shape."""
    _in_place(xp.multiply, a, b)


def add_in_place(a: Array, b: Array) -> None:
    """a += b, for arrays of one shape."""
    _in_place(xp.add, a, b)


def _in_place(operator: xp.ufunc, a: Array, b: Array) -> None:
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        operator(a, b, out=a)
        return
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    in_blocks(lambda part: operator(flat_a[part], flat_b[part], out=flat_a[part]), a.size, 1)


def _gelu_erf(x: Array, y: Array, slope: Array) -> None:
    cdf = 0.5 * (1 + erf(x * math.sqrt(0.5)))  # Φ(x)
    density = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))  # φ(x)
    y[:] = x * cdf
    slope[:] = cdf + x * density


def _gelu_float32(x: Array, y: Array, slope: Array) -> None:
    """The same with fewer walks over the block, and nothing but +, ·, tanh and 2^x in them."""
    with xp.errstate(over="ignore"):  # far out the polynomial is infinite, and its tanh 1
        square = xp.square(x)
        cdf = _polynomial(square, _ARTANH_ERF)
        cdf *= x
    xp.tanh(cdf, out=cdf)
    cdf *= 0.5
    cdf += 0.5  # Φ(x)
    xp.multiply(x, cdf, out=y)
    square *= -0.5 * math.log2(math.e)
    density = xp.exp2(square, out=square)
    density *= 1 / math.sqrt(2 * math.pi)  # φ(x)
    density *= x
    xp.add(cdf, density, out=slope)


def _gelu_tanh(x: Array, y: Array, slope: Array) -> None:
    c = math.sqrt(2 / math.pi)
    x2 = x * x
    t = xp.tanh((c * x) * (1 + 0.044715 * x2))
    y[:] = 0.5 * x * (1 + t)
    slope[:] = 0.5 * (1 + t) + (0.5 * x) * (1 - t * t) * (c * (1 + 3 * 0.044715 * x2))


# --- Rows ------------------------------------------------------------------------------------------------
# NumPy's reductions start anew in every row, which costs more than the row itself when it is short.


def _row_dot(a: Array, b: Array) -> Array:
    """Σ a b over each row: (n, d), (n, d) or (d,) -> (n, 1)."""
    return xp.vecdot(a, b)[:, None]


def _row_sum(x: Array) -> Array:
    """Σ x over each row: (n, d) -> (n, 1); a product with ones, three times faster than `sum`."""
    return _row_dot(x, xp.ones(x.shape[1], x.dtype))


@float16_as_float32
def softmax(x: Array) -> tuple[Array, Array, Array]:
    """Softmax over the last axis, and the two parts of its logarithm.

    x (..., d) -> weights (..., d), the largest entries, and log Σ e^(x - largest), both (..., 1). A row of equal
    entries gives equal weights, however large and negative they are.
    """
    rows = _rows(x)
    y = xp.empty_like(rows)
    largest, log_total = (xp.empty((len(rows), 1), rows.dtype) for _ in range(2))

    def block(b: slice) -> None:
        largest[b], total = _softmax(rows[b], y[b])
        xp.log(total, out=log_total[b])

    in_blocks(block, *rows.shape)
    shape = (*x.shape[:-1], 1)
    return y.reshape(x.shape), largest.reshape(shape), log_total.reshape(shape)


def _softmax(x: Array, out: Array) -> tuple[Array, Array]:
    """Softmax of each row of x into `out`, another array: the largest entries, and the sums of the exponentials
    of what lies below them, both (n, 1)."""
    largest = x.max(axis=-1, keepdims=True)
    with xp.errstate(invalid="ignore"):  # inf - inf: the row is NaN
        xp.subtract(x, largest, out=out)
    xp.exp(out, out=out)
    total = _row_sum(out)
    out *= 1 / total
    return largest, total


@float16_as_float32
def softmax_backward(dy: Array, y: Array) -> Array:
    """y (dy - Σ dy y): the gradient of softmax over the last axis, from its output."""
    rows_dy, rows_y = _rows(dy), _rows(y)
    dx = xp.empty_like(rows_y)
    in_blocks(lambda b: _softmax_backward(rows_dy[b], rows_y[b], dx[b]), *rows_y.shape)
    return dx.reshape(y.shape)


def _softmax_backward(dy: Array, y: Array, out: Array) -> None:
    xp.subtract(dy, _row_dot(dy, y), out=out)
    out *= y


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """Layer normalisation over the last axis: y (..., d), the normalised x (n, d), and 1/σ (n, 1).

    For float16 the last two are float32: where a row hardly varies, 1/σ is above 65,504.
    """
    if x.dtype == xp.float16:
        x, weight, bias = (a.astype(xp.float32) for a in (x, weight, bias))
        y, normalised, inverse_std = layer_norm(x, weight, bias, eps)
        return y.astype(xp.float16), normalised, inverse_std
    rows = _rows(x)
    d = rows.shape[1]
    y, normalised = xp.empty_like(rows), xp.empty_like(rows)
    inverse_std = xp.empty((len(rows), 1), rows.dtype)

    def block(b: slice) -> None:
        centred = normalised[b]
        xp.subtract(rows[b], _row_sum(rows[b]) / d, out=centred)
        inverse_std[b] = 1 / xp.sqrt(_row_dot(centred, centred) / d + eps)
        centred *= inverse_std[b]
        xp.multiply(centred, weight, out=y[b])
        y[b] += bias

    in_blocks(block, *rows.shape)
    return y.reshape(x.shape), normalised, inverse_std


@float16_as_float32
def layer_norm_backward(
    dy: Array, normalised: Array, inverse_std: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """The gradients of `layer_norm` for x (in the shape of dy), weight (d,) and bias (d,)."""
    rows = _rows(dy)
    n, d = rows.shape
    dx = xp.empty_like(rows)
    step = rows_in_block(d)
    partial = xp.zeros((2, -(-n // step), d), rows.dtype)  # one sum a block, added up in order

    def block(b: slice) -> None:
        partial[0, b.start // step] = xp.einsum("ij,ij->j", rows[b], normalised[b])
        partial[1, b.start // step] = rows[b].sum(axis=0)
        g = xp.multiply(rows[b], weight, out=dx[b])  # the gradient of the normalised x
        along = normalised[b] * (_row_dot(g, normalised[b]) / d)
        g -= _row_sum(g) / d
        g -= along
        g *= inverse_std[b]

    in_blocks(block, n, d)
    return dx.reshape(dy.shape), partial[0].sum(axis=0), partial[1].sum(axis=0)


# --- Attention -------------------------------------------------------------------------------------------
# The scores are by far the largest arrays, so a block goes from Q, K and V to the output before the next one
# starts: its scores do not leave the cache (the idea of FlashAttention; Dao et al. 2022, here without tiles).


@float16_as_float32
def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    scale: float,
    keep: Array | None,
    keep_scale: float,
    precision: str = "float32",
) -> tuple[Array, Array]:
    """softmax(scale Q Kᵀ + mask) V, and the weights, with dropout on the weights.

    q (N, …, n, d_k), k (N, …, m, d_k), v (N, …, m, d_v), mask and keep (N, …, n, m) or None ->
    (N, …, n, d_v) and the weights before dropout (N, …, n, m). precision: what products round to (`rounded`).
    """
    weights = xp.empty((*q.shape[:-1], k.shape[-2]), q.dtype)
    z = xp.empty_like(q) if v.shape[-1] == q.shape[-1] else xp.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    k_t = k.swapaxes(-1, -2)  # (N, …, d_k, m)

    def block(b: slice) -> None:
        scores = _product(q[b], k_t[b], precision)
        scores *= scale
        if mask is not None:
            scores += mask[b]
        _softmax(_rows(scores), _rows(weights[b]))
        _product(_dropped(weights[b], keep, keep_scale, b), v[b], precision, out=z[b])

    on_one_blas_thread(lambda: in_blocks(block, len(q), weights.size // max(1, len(q))))
    return z, weights


@float16_as_float32
def attention_backward(
    dy: Array,
    q: Array,
    k: Array,
    v: Array,
    weights: Array,
    scale: float,
    keep: Array | None,
    keep_scale: float,
    precision: str = "float32",
) -> tuple[Array, Array, Array]:
    """The gradients of `attention` for q, k and v, in their shapes and order in memory."""
    dq, dk, dv = xp.empty_like(q), xp.empty_like(k), xp.empty_like(v)
    v_t = v.swapaxes(-1, -2)

    def block(b: slice) -> None:
        dropped = _dropped(weights[b], keep, keep_scale, b)
        _product(dropped.swapaxes(-1, -2), dy[b], precision, out=dv[b])
        d_scores = xp.empty_like(weights[b])  # contiguous: the rows below are then no copy
        _product(dy[b], v_t[b], precision, out=d_scores)  # of the weights after dropout, at first
        if keep is not None:
            _dropout(d_scores, keep[b], keep_scale, d_scores)
        rows = _rows(d_scores)
        _softmax_backward(rows, _rows(weights[b]), rows)
        d_scores *= scale
        _product(d_scores, k[b], precision, out=dq[b])
        _product(d_scores.swapaxes(-1, -2), q[b], precision, out=dk[b])

    on_one_blas_thread(lambda: in_blocks(block, len(q), weights.size // max(1, len(q))))
    return dq, dk, dv


def _product(a: Array, b: Array, precision: str, out: Array | None = None) -> Array:
    return xp.matmul(rounded(a, precision), rounded(b, precision), out=out)


def _dropped(weights: Array, keep: Array | None, keep_scale: float, b: slice) -> Array:
    if keep is None:
        return weights
    dropped = xp.empty_like(weights)
    _dropout(weights, keep[b], keep_scale, dropped)
    return dropped


# --- Scatter ---------------------------------------------------------------------------------------------


def scatter_add(shape: tuple[int, ...], index: tuple[Any, ...], values: Array) -> Array:
    """Zeros of `shape` with `values` added at `index` (a NumPy index; an entry named twice gets both)."""
    if len(index) == 1 and len(shape) == 2:  # rows of a matrix
        ids = (
            index[0].astype(xp.int64, copy=False).reshape(-1) % shape[0]
        )  # shape[0] may not fit a small dtype
        return scatter_add_rows(shape[0], ids, values.reshape(-1, shape[1]))
    out = xp.zeros(shape, values.dtype)
    xp.add.at(out, index, values)
    return out


@float16_as_float32
def scatter_add_rows(num_rows: int, ids: Array, values: Array) -> Array:
    """Zeros (num_rows, d) with row i of `values` (n, d) added to row ids[i]; ids (n,) are not negative.

    Sorted, so that rows with the same id are neighbours: first rows are copied all at once, and only ids that
    come more than once need a sum. Several times faster than `numpy.add.at`.
    """
    out = xp.zeros((num_rows, values.shape[1]), values.dtype)
    if not len(ids):
        return out
    order = xp.argsort(ids, kind="stable")
    sorted_ids, values = ids[order], values[order]
    starts = xp.concatenate(([0], xp.flatnonzero(xp.diff(sorted_ids)) + 1))
    ends = xp.append(starts[1:], len(ids))
    out[sorted_ids[starts]] = values[starts]
    again = ends - starts > 1
    for start, end in zip(starts[again].tolist(), ends[again].tolist(), strict=True):
        xp.add.reduce(values[start:end], axis=0, out=out[sorted_ids[start]])
    return out


# --- Optimiser -------------------------------------------------------------------------------------------


def adamw_step(
    parameters: Sequence[Array],
    gradients: Sequence[Array],
    firsts: Sequence[Array],
    seconds: Sequence[Array],
    *,
    step_size: float,
    decay: float,
    beta1: float,
    beta2: float,
    eps: float,
    second_correction: float,
) -> None:
    """One AdamW update in place: parameters, their gradients, first and second moments.

    `decay` is lr λ, `step_size` is lr / (1 - β₁ᵗ), `second_correction` is √(1 - β₂ᵗ).
    """
    for arrays in zip(parameters, gradients, firsts, seconds, strict=True):
        p, g, m, v = (a.reshape(-1) for a in arrays)

        def block(b: slice, p: Array = p, g: Array = g, m: Array = m, v: Array = v) -> None:
            if decay:
                p[b] *= 1 - decay
            scratch = g[b] * (1 - beta1)
            m[b] *= beta1
            m[b] += scratch
            xp.square(g[b], out=scratch)
            scratch *= 1 - beta2
            v[b] *= beta2
            v[b] += scratch
            xp.sqrt(v[b], out=scratch)  # √v / c + ε, with the constant c left to the step size
            scratch += eps * second_correction
            with xp.errstate(invalid="ignore"):  # inf / inf: the gradients' norm tells of it
                xp.divide(m[b], scratch, out=scratch)
            scratch *= step_size * second_correction
            p[b] -= scratch

        in_blocks(block, p.size, 1)
        for array, flat in zip(arrays, (p, g, m, v), strict=True):
            if array is not arrays[1] and not array.flags.c_contiguous:  # then reshape made a copy
                array[...] = flat.reshape(array.shape)


def global_norm(arrays: Sequence[Array]) -> Array:
    """The square root of the sum of all entries' squares, as an array without axes."""
    wide = (
        a.astype(xp.float32) if a.dtype == xp.float16 else a for a in arrays
    )  # whose squares would be infinite
    return xp.sqrt(xp.asarray(sum(float(xp.vdot(a, a)) for a in wide)))


def scale_in_place(arrays: Sequence[Array], factor: Any) -> None:
    """Each array times `factor`, a number or an array without axes."""
    if factor == 1:
        return
    for array in arrays:
        array *= xp.asarray(factor, array.dtype)
