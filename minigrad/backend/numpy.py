"""The CPU backend: NumPy, and the inner loops that are worth writing with care there.

A NumPy expression such as `0.5 * x * (1 + t)` walks over main memory once per operator. The loops below run
their operators block by block instead (`_in_blocks`), so that what one operator writes is still in the cache
when the next one reads it; NumPy lets go of the interpreter lock inside an operator, so blocks are also
shared over the processor's cores. Block borders do not depend on the number of threads, so neither do
results.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as xp

__all__ = [
    "adamw_step",
    "asarray",
    "dropout",
    "erf",
    "gelu",
    "keep_freed_memory",
    "keep_mask",
    "layer_norm",
    "layer_norm_backward",
    "name",
    "row_ids",
    "scatter_add",
    "scatter_add_rows",
    "softmax",
    "softmax_backward",
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


# --- Blocks and threads ----------------------------------------------------------------------------------

_BLOCK = 2**16  # numbers in a block: 256 KiB of float32, a good part of a core's second-level cache
_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
_pool = ThreadPoolExecutor(max(1, _THREADS - 1), thread_name_prefix="minigrad") if _THREADS > 1 else None


def _in_blocks(kernel: Callable[..., None], rows: int, row_size: int) -> None:
    """Call `kernel(slice)` for slices that together cover `range(rows)`, shared over threads.

    `row_size` is how many numbers a row has, so that a block fits the cache.
    """
    step = max(1, _BLOCK // max(1, row_size))
    starts = range(0, rows, step)

    def run(some: range) -> None:
        for start in some:
            kernel(slice(start, min(start + step, rows)))

    if _pool is None or len(starts) < 4:
        run(starts)
        return
    share = -(-len(starts) // _THREADS)
    futures = [_pool.submit(run, starts[i : i + share]) for i in range(share, len(starts), share)]
    run(starts[:share])
    for future in futures:
        future.result()


def _flat(x: Array) -> Array:
    """`x` seen as one row, (…) -> (size,); contiguous."""
    return xp.ascontiguousarray(x).reshape(-1)


def _rows(x: Array) -> Array:
    """`x` seen as a matrix of rows along its last axis: (..., d) -> (n, d); contiguous."""
    return xp.ascontiguousarray(x).reshape(-1, x.shape[-1] if x.ndim else 1)


# --- Random bits -----------------------------------------------------------------------------------------


def keep_mask(shape: tuple[int, ...], p: float, seed: int, draw: int) -> Array:
    """A boolean array in which each entry is False with probability `p`: what dropout keeps.

    A function of (seed, draw) alone, so that a resumed run draws what an uninterrupted one would have. `p`
    is rounded to 1/65,536: two random bytes an entry are three times faster than a random float.
    """
    size = math.prod(shape)
    words = xp.random.SFC64([seed, draw]).random_raw(-(-size // 4))
    bits = words.view(xp.uint16)[:size]
    threshold = round(p * 65536)
    if threshold == 65536:
        return xp.zeros(shape, dtype=bool)
    return (bits >= threshold).reshape(shape)


def dropout(x: Array, keep: Array, scale: float) -> Array:
    """`x * keep * scale` for a boolean `keep` of the same shape."""
    y = xp.empty(x.shape, x.dtype)
    flat_x, flat_keep, flat_y = _flat(x), _flat(keep), y.reshape(-1)

    def block(b: slice) -> None:
        xp.multiply(flat_x[b], flat_keep[b], out=flat_y[b])
        flat_y[b] *= scale

    _in_blocks(block, x.size, 1)
    return y


# --- Elementwise -----------------------------------------------------------------------------------------

# erfc(z) = t (c1 + t (c2 + …)) e^{-z²}, t = 1 / (1 + p z), z ≥ 0, with an error below 1.5e-7:
# Abramowitz & Stegun, Handbook of Mathematical Functions, 7.1.26.
_ERFC_P = 0.3275911
_ERFC_C = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)

_exact_erf = xp.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """The error function: to the last digits in float64 (slow), within 7e-7 in float32 (fast)."""
    if x.dtype == xp.float64:
        return xp.asarray(_exact_erf(x), dtype=xp.float64)
    z = xp.abs(xp.atleast_1d(x))
    tail = _erfc(z, xp.exp(-z * z))
    return xp.copysign(1 - tail, x).reshape(x.shape)


def _erfc(z: Array, exp_minus_z2: Array) -> Array:
    """erfc(z) for z ≥ 0, given e^{-z²}."""
    tail = _erfc_polynomial(z, _ERFC_P, _ERFC_C)
    tail *= exp_minus_z2
    return tail


def _erfc_polynomial(z: Array, p: float, coefficients: tuple[float, ...]) -> Array:
    """t (c1 + t (c2 + …)) with t = 1 / (1 + p z)."""
    t = z * p
    t += 1
    xp.reciprocal(t, out=t)
    value = t * coefficients[-1]
    for c in coefficients[-2::-1]:
        value += c
        value *= t
    return value


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
    _in_blocks(lambda b: form(flat_x[b], flat_y[b], flat_slope[b]), x.size, 1)
    return y, slope


def _gelu_erf(x: Array, y: Array, slope: Array) -> None:
    cdf = 0.5 * (1 + erf(x * math.sqrt(0.5)))  # Φ(x)
    density = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))  # φ(x)
    y[:] = x * cdf
    slope[:] = cdf + x * density


# Φ(-a) = erfc(a / √2) / 2 = φ(a) R(a): the same polynomial with the constants taken in.
_MILLS_P = _ERFC_P * math.sqrt(0.5)
_MILLS_C = tuple(c * math.sqrt(math.pi / 2) for c in _ERFC_C)


def _gelu_float32(x: Array, y: Array, slope: Array) -> None:
    """The same from one exponential, with half the walks over the block.

    With a = |x|: x Φ(x) = max(x, 0) - a Φ(-a), and the slope s(x) = Φ(x) + x φ(x) has s(x) + s(-x) = 1, where
    s(-a) = φ(a) (R(a) - a).
    """
    a = xp.abs(x)
    density = xp.square(x)
    density *= -0.5
    xp.exp(density, out=density)
    density *= 1 / math.sqrt(2 * math.pi)  # φ(a)
    ratio = _erfc_polynomial(a, _MILLS_P, _MILLS_C)  # R(a)

    xp.subtract(ratio, a, out=y)
    y *= density
    xp.subtract(0.5, y, out=y)  # 1/2 - s(-a) ≥ 0
    # its copysign with x: moving the sign's bit is four times faster
    sign = xp.bitwise_and(x.view(xp.uint32), xp.uint32(1 << 31))
    xp.bitwise_xor(y.view(xp.uint32), sign, out=slope.view(xp.uint32))
    slope += 0.5

    ratio *= density  # Φ(-a)
    ratio *= a
    xp.maximum(x, 0, out=y)
    y -= ratio


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


def _row_max(x: Array) -> Array:
    """The largest entry of each row: (n, d) -> (n, 1); halves are compared until rows are short."""
    while 8 < x.shape[1] <= 1024:
        half = x.shape[1] // 2
        rest = x[:, 2 * half :]  # the last column, where d is odd
        x = xp.maximum(x[:, :half], x[:, half : 2 * half])
        if rest.size:
            xp.maximum(x[:, :1], rest, out=x[:, :1])
    return x.max(axis=-1, keepdims=True)


def softmax(x: Array, overwrite: bool = False) -> tuple[Array, Array]:
    """Softmax over the last axis, and the log of its denominator.

    x (..., d) -> weights (..., d) and logsumexp (..., 1). A row of equal entries gives equal weights, however
    large and negative they are. With `overwrite`, a contiguous `x` is the output.
    """
    rows = _rows(x)
    y = rows if overwrite else xp.empty_like(rows)
    log_sum = xp.empty((len(rows), 1), rows.dtype)

    def block(b: slice) -> None:
        largest = _row_max(rows[b])
        xp.subtract(rows[b], largest, out=y[b])
        xp.exp(y[b], out=y[b])
        total = _row_sum(y[b])
        xp.add(xp.log(total), largest, out=log_sum[b])
        y[b] *= 1 / total

    _in_blocks(block, *rows.shape)
    return y.reshape(x.shape), log_sum.reshape(*x.shape[:-1], 1)


def softmax_backward(dy: Array, y: Array) -> Array:
    """y (dy - Σ dy y): the gradient of softmax over the last axis, from its output."""
    rows_dy, rows_y = _rows(dy), _rows(y)
    dx = xp.empty_like(rows_y)

    def block(b: slice) -> None:
        xp.subtract(rows_dy[b], _row_dot(rows_dy[b], rows_y[b]), out=dx[b])
        dx[b] *= rows_y[b]

    _in_blocks(block, *rows_y.shape)
    return dx.reshape(y.shape)


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """Layer normalisation over the last axis: y (..., d), the normalised x (n, d), and 1/σ (n, 1)."""
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

    _in_blocks(block, *rows.shape)
    return y.reshape(x.shape), normalised, inverse_std


def layer_norm_backward(
    dy: Array, normalised: Array, inverse_std: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """The gradients of `layer_norm` for x (in the shape of dy), weight (d,) and bias (d,)."""
    rows = _rows(dy)
    n, d = rows.shape
    dx = xp.empty_like(rows)
    step = max(1, _BLOCK // d)  # as in _in_blocks: one partial sum a block, added up in order
    partial = xp.zeros((2, -(-n // step), d), rows.dtype)

    def block(b: slice) -> None:
        partial[0, b.start // step] = xp.einsum("ij,ij->j", rows[b], normalised[b])
        partial[1, b.start // step] = rows[b].sum(axis=0)
        g = xp.multiply(rows[b], weight, out=dx[b])  # the gradient of the normalised x
        along = normalised[b] * (_row_dot(g, normalised[b]) / d)
        g -= _row_sum(g) / d
        g -= along
        g *= inverse_std[b]

    _in_blocks(block, n, d)
    return dx.reshape(dy.shape), partial[0].sum(axis=0), partial[1].sum(axis=0)


# --- Scatter ---------------------------------------------------------------------------------------------


def scatter_add(shape: tuple[int, ...], index: tuple[Any, ...], values: Array) -> Array:
    """Zeros of `shape` with `values` added at `index` (a NumPy index; an entry named twice gets both)."""
    if len(index) == 1 and index[0].ndim == 1 and len(shape) == 2:
        return scatter_add_rows(shape[0], index[0] % shape[0], values)
    out = xp.zeros(shape, values.dtype)
    xp.add.at(out, index, values)
    return out


def scatter_add_rows(num_rows: int, ids: Array, values: Array) -> Array:
    """Zeros (num_rows, d) with row i of `values` (n, d) added to row ids[i]; ids (n,) are not negative.

    Sorted and summed run by run, which is several times faster than `numpy.add.at`.
    """
    out = xp.zeros((num_rows, values.shape[1]), values.dtype)
    if len(ids):
        order = xp.argsort(ids, kind="stable")
        sorted_ids = ids[order]
        starts = xp.concatenate(([0], xp.flatnonzero(xp.diff(sorted_ids)) + 1))
        out[sorted_ids[starts]] = xp.add.reduceat(values[order], starts, axis=0)
    return out


# --- Optimiser -------------------------------------------------------------------------------------------


def adamw_step(
    parameter: Array,
    gradient: Array,
    first: Array,
    second: Array,
    *,
    step_size: float,
    decay: float,
    beta1: float,
    beta2: float,
    eps: float,
    second_correction: float,
) -> None:
    """One AdamW update in place: parameter, first and second moment, all of one shape.

    `decay` is lr λ, `step_size` is lr / (1 - β₁ᵗ), `second_correction` is √(1 - β₂ᵗ).
    """
    p, g, m, v = (a.reshape(-1) for a in (parameter, gradient, first, second))

    def block(b: slice) -> None:
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
        xp.divide(m[b], scratch, out=scratch)
        scratch *= step_size * second_correction
        p[b] -= scratch

    _in_blocks(block, p.size, 1)
    for array, flat in ((parameter, p), (first, m), (second, v)):
        if not array.flags.c_contiguous:  # then reshape made a copy
            array[...] = flat.reshape(array.shape)
