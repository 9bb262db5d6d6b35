"""The CPU backend: NumPy, and the inner loops that are worth writing with care there.

What is said here of each function's arguments and results holds for every backend. A loop is two functions: one that
makes the arrays, and below it one whose name ends in `_block`, the formula for the rows that it is given. `in_blocks`
(`threads.py`) calls the formula for one block after the other, on all of the processor's cores. Matrix products are
shared over the same threads, with the BLAS on one thread in each. Arrays of float16 go through float32, as on a GPU.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as xp
from numpy.typing import ArrayLike, DTypeLike

from minigrad.backend import Step, float16_as_float32, numpy_recurrent, numpy_sums
from minigrad.backend.numpy_recurrent import *  # noqa: F403
from minigrad.backend.numpy_sums import *  # noqa: F403
from minigrad.backend.numpy_sums import sum_rows, sum_rows_block
from minigrad.backend.threads import alone, in_blocks, on_one_blas_thread, share

__all__ = [
    "adamw_step", "add_bias", "add_in_place", "asarray", "attention", "attention_backward", "dropout", "erf", "gelu",
    "keep_freed_memory", "keep_mask", "layer_norm", "layer_norm_backward", "matmul", "memory", "multiply_in_place",
    "name", "recorded", "rounded", "row_ids", "scale_in_place", "scatter_add", "scatter_add_rows", "softmax",
    "softmax_backward", "synchronize", "to_numpy", "unavailable", "xp",
]  # fmt: skip
__all__ += [*numpy_recurrent.__all__, *numpy_sums.__all__]

name = "numpy"

Array = xp.ndarray

# --- Where the backend meets the rest --------------------------------------------------------------------


def unavailable() -> str:
    """Why this backend cannot be used here; empty when it can."""
    return ""


def asarray(values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`values` (lists, scalars, arrays of this backend) as a NumPy array, without a copy where possible."""
    return xp.asarray(values, dtype=dtype)


def to_numpy(array: Array) -> Array:
    """`array` on the host: here, itself."""
    return array


def synchronize() -> None:
    """Wait until the device has finished: the CPU always has."""


def memory() -> int | None:
    """The bytes of memory that this machine has for arrays; None where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def keep_freed_memory() -> None:
    """Tell the C library (glibc) to keep freed memory for the next array instead of returning it.

    By default glibc returns the memory of a large array to the kernel, and the next one is new: the kernel fills
    each of its pages with zeros at the first touch, which an array in kept memory is spared. Long training runs
    and benchmarks call this once; it changes the whole process, so importing minigrad does not. Without glibc it
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


def recorded(step: Step, lasting: Callable[[], Sequence[Array]], say: Callable[[str], object]) -> Step:
    """A step that will be called many times: here, itself; on a GPU, launched as a whole.

    step: from arrays by name to one array; it may use no other number of the host that changes, and may not read what
    it computes. lasting: gives the other arrays that it works on, such as weights; each may be changed in place.
    say: takes a sentence where a step cannot be launched as a whole. What this returns takes arrays of the host.
    """
    return step


def row_ids(ids: ArrayLike, rows: int) -> Array:
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

# Multiplications. Fewer are the BLAS' own, because waking a thread costs time too: on two cores of a Xeon, 2^21 take
# 64 µs when they are shared, and 34 by OpenBLAS' threads.
SMALL_PRODUCT = 2**24


def matmul(a: Array, b: Array) -> Array:
    """The product of two matrices: (n, k) @ (k, m) -> (n, m)."""
    (n, k), m = a.shape, b.shape[1]
    if n * k * m < SMALL_PRODUCT or alone():
        return xp.matmul(a, b)
    y = xp.empty((n, m), a.dtype)

    def run(some: range) -> None:
        part = slice(some.start, some.stop)
        if n >= m:
            xp.matmul(a[part], b, out=y[part])
        else:
            xp.matmul(a, b[:, part], out=y[:, part])

    on_one_blas_thread(share, run, range(max(n, m)))
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
    in_blocks(add_bias_block, y, bias=bias)


def add_bias_block(y, bias):
    y += bias


# --- Random bits -----------------------------------------------------------------------------------------


def keep_mask(shape: tuple[int, ...], p: float, keys: tuple[int, int] | Array, first: int = 0) -> Array:
    """A boolean array in which each entry is False with probability `p`: what dropout keeps.

    A function of the two 32-bit keys alone, the same on every backend: two entries take the halves of one 32-bit
    word, which is the hash of its number ("lowbias32", C. Wellons 2018, with the keys mixed in). `p` is rounded to
    1/65,536. first: the entries are those from this number on, of a larger array that is not made.
    """
    size = math.prod(shape)
    threshold = round(p * 65536)
    if threshold == 65536:
        return xp.zeros(shape, dtype=bool)
    numbers = range(first // 2, -(-(first + size) // 2))  # of the words
    pairs = xp.empty(len(numbers), dtype=xp.uint16)  # two entries each
    in_blocks(keep_mask_block, pairs, numbers, threshold=threshold, keys=keys)
    return pairs.view(bool)[first % 2 : first % 2 + size].reshape(shape)


def keep_mask_block(pairs, numbers, threshold, keys):
    first, second = map(xp.uint32, keys)
    x = xp.arange(numbers.start, numbers.stop, dtype=xp.uint32)
    x += first
    x ^= x >> 16
    x *= xp.uint32(0x7FEB352D)
    x ^= second
    x ^= x >> 15
    x *= xp.uint32(0x846CA68B)
    x ^= x >> 16
    xp.greater_equal(x.view(xp.uint16), threshold, out=pairs.view(bool))


def dropout(x: Array, keep: Array, scale: float) -> Array:
    """`x * keep * scale` for a boolean `keep` of the same shape."""
    y = xp.empty(x.shape, x.dtype)
    in_blocks(dropout_block, _flat(x), _flat(keep), _flat(y), scale=scale)
    return y


def dropout_block(x, keep, y, scale):
    xp.multiply(x, keep, out=y)
    y *= scale


# --- Elementwise -----------------------------------------------------------------------------------------

# erf(x / √2) = tanh(x p(x²)), p a polynomial fitted to artanh(erf(x / √2)) / x for |x| ≤ 6, where float32 has
# reached ±1: lowest power first, error below 2e-7. Its first two coefficients are near those of GELU's tanh
# form, √(2/π) and √(2/π) · 0.044715. book/records/benchmarks/erf_fit.py makes them.
ARTANH_ERF = (
    0.79788494, 0.036333084, -3.2594736e-5, -5.5306321e-5, 3.964774e-6, -1.3226635e-7, 1.7562797e-9,
)  # fmt: skip

_exact_erf = xp.frompyfunc(math.erf, 1, 1)


@float16_as_float32
def erf(x: Array) -> Array:
    """The error function: to the last digits in float64 (slow), within 2e-7 in float32 (fast)."""
    return erf_over_root_2(x * math.sqrt(2))


def erf_over_root_2(x: Array) -> Array:
    """erf(x / √2)."""
    if x.dtype == xp.float64:
        return xp.asarray(_exact_erf(x * math.sqrt(0.5)), dtype=xp.float64)
    with xp.errstate(over="ignore"):  # far out the polynomial is infinite, and its tanh 1
        polynomial = _polynomial(xp.square(x), ARTANH_ERF)
        polynomial *= x
    return xp.tanh(polynomial)


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
    in_blocks(gelu_tanh_block if approximate == "tanh" else gelu_block, _flat(x), _flat(y), _flat(slope))
    return y, slope


def gelu_block(x, y, slope):
    cdf = erf_over_root_2(x)
    cdf += 1
    cdf *= 0.5  # Φ(x)
    xp.multiply(x, cdf, out=y)
    density = xp.square(x, out=slope)
    density *= -0.5 * math.log2(math.e)
    xp.exp2(density, out=density)
    density *= 1 / math.sqrt(2 * math.pi)  # φ(x)
    density *= x
    xp.add(cdf, density, out=slope)


def gelu_tanh_block(x, y, slope):
    c = math.sqrt(2 / math.pi)
    x2 = x * x
    t = xp.tanh((c * x) * (1 + 0.044715 * x2))
    y[:] = 0.5 * x * (1 + t)
    slope[:] = 0.5 * (1 + t) + (0.5 * x) * (1 - t * t) * (c * (1 + 3 * 0.044715 * x2))


def multiply_in_place(a: Array, b: Array) -> None:
    """a *= b, for arrays of one shape."""
    _in_place(xp.multiply, a, b)


def add_in_place(a: Array, b: Array) -> None:
    """a += b, for arrays of one shape."""
    _in_place(xp.add, a, b)


def _in_place(operator: xp.ufunc, a: Array, b: Array) -> None:
    if a.flags.c_contiguous and b.flags.c_contiguous:
        a, b = _flat(a), _flat(b)
        in_blocks(operator, a, b, a)  # an operator's last array is where it writes
    else:
        operator(a, b, out=a)


# --- Rows ------------------------------------------------------------------------------------------------
# NumPy's reductions start anew in every row. The rows of a model are short, so sums are made as dot products.


def _row_dot(a: Array, b: Array) -> Array:
    """Σ a b over each row: (n, d), (n, d) or (d,) -> (n, 1)."""
    return xp.vecdot(a, b)[:, None]


def _row_sum(x: Array) -> Array:
    """Σ x over each row: (n, d) -> (n, 1); as a product with ones, like `_row_dot`."""
    return _row_dot(x, xp.ones(x.shape[1], x.dtype))


@float16_as_float32
def softmax(x: Array) -> tuple[Array, Array, Array]:
    """Softmax over the last axis, and the two parts of its logarithm.

    x (..., d) -> weights (..., d), the largest entries, and log Σ e^(x - largest), both (..., 1). A row of equal
    entries gives equal weights, however large and negative they are.
    """
    y = xp.empty(x.shape, x.dtype)
    of_blocks = in_blocks(softmax_block, _rows(x), _rows(y))
    largest, total = (
        xp.concatenate(parts).reshape(*x.shape[:-1], 1) for parts in zip(*of_blocks, strict=True)
    )
    return y, largest, xp.log(total)


def softmax_block(x, y):
    """The largest entries too, and the sums of the exponentials of what lies below them, both (n, 1)."""
    largest = x.max(axis=-1, keepdims=True)
    with xp.errstate(invalid="ignore"):  # inf - inf: the row is NaN
        xp.subtract(x, largest, out=y)
    xp.exp(y, out=y)
    total = _row_sum(y)
    y *= 1 / total
    return largest, total


@float16_as_float32
def softmax_backward(dy: Array, y: Array) -> Array:
    """y (dy - Σ dy y): the gradient of softmax over the last axis, from its output."""
    dx = xp.empty(y.shape, y.dtype)
    in_blocks(softmax_backward_block, _rows(dy), _rows(y), _rows(dx))
    return dx


def softmax_backward_block(dy, y, dx):
    xp.subtract(dy, _row_dot(dy, y), out=dx)
    dx *= y


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """Layer normalisation over the last axis: y (..., d), the normalised x (n, d), and 1/σ (n, 1).

    For float16 the last two are float32: where a row hardly varies, 1/σ is above 65,504.
    """
    if x.dtype == xp.float16:
        x, weight, bias = (a.astype(xp.float32) for a in (x, weight, bias))
        y, normalised, inverse_std = layer_norm(x, weight, bias, eps)
        return y.astype(xp.float16), normalised, inverse_std
    rows = _rows(x)
    y, normalised = xp.empty_like(rows), xp.empty_like(rows)
    inverse_std = xp.empty((len(rows), 1), rows.dtype)
    in_blocks(layer_norm_block, rows, y, normalised, inverse_std, weight=weight, bias=bias, eps=eps)
    return y.reshape(x.shape), normalised, inverse_std


def layer_norm_block(x, y, normalised, inverse_std, weight, bias, eps):
    d = x.shape[1]
    xp.subtract(x, _row_sum(x) / d, out=normalised)
    inverse_std[:] = 1 / xp.sqrt(_row_dot(normalised, normalised) / d + eps)
    normalised *= inverse_std
    xp.multiply(normalised, weight, out=y)
    y += bias


@float16_as_float32
def layer_norm_backward(
    dy: Array, normalised: Array, inverse_std: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """The gradients of `layer_norm` for x (in the shape of dy), weight (d,) and bias (d,)."""
    rows = _rows(dy)
    dx = xp.empty_like(rows)
    sums = in_blocks(layer_norm_backward_block, rows, normalised, inverse_std, dx, weight=weight)
    # Of the blocks, in their order
    dw, db = (sum_rows_block(xp.stack(parts)) for parts in zip(*sums, strict=True))
    return dx.reshape(dy.shape), dw, db


def layer_norm_backward_block(dy, normalised, inverse_std, dx, weight):
    """The block's part of the gradients for weight and bias."""
    d = len(weight)
    xp.multiply(dy, weight, out=dx)  # the gradient of the normalised x
    along = normalised * (_row_dot(dx, normalised) / d)
    dx -= _row_sum(dx) / d
    dx -= along
    dx *= inverse_std
    return sum_rows_block(xp.multiply(dy, normalised, out=along)), sum_rows_block(dy)


# --- Attention -------------------------------------------------------------------------------------------
# A query has as many scores as there are keys, so scores grow with the square of the length. A block of texts goes
# from Q, K and V to the output before the next one starts: where a text's scores fit into the cache, the softmax and
# the second product find them there (the idea of FlashAttention; Dao et al. 2022, here without tiles).


@float16_as_float32
def attention(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float,
    keep: Array | None, keep_scale: float, precision: str = "float32",
) -> tuple[Array, Array]:  # fmt: skip
    """softmax(scale Q Kᵀ + mask) V, and the weights, with dropout on the weights.

    q (N, …, n, d_k), k (N, …, m, d_k), v (N, …, m, d_v), mask and keep (N, …, n, m) or None ->
    (N, …, n, d_v) and the weights before dropout (N, …, n, m). precision: what products round to (`rounded`).
    """
    weights = xp.empty((*q.shape[:-1], k.shape[-2]), q.dtype)
    z = xp.empty_like(q) if v.shape[-1] == q.shape[-1] else xp.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    on_one_blas_thread(
        in_blocks, attention_block, weights, z, q, k, v, mask, keep,
        scale=scale, keep_scale=keep_scale, precision=precision,
    )  # fmt: skip
    return z, weights


def attention_block(weights, z, q, k, v, mask, keep, scale, keep_scale, precision):
    scores = _product(q, k.swapaxes(-1, -2), precision)  # (N, …, n, m)
    scores *= scale
    if mask is not None:
        scores += mask
    softmax_block(_rows(scores), _rows(weights))
    dropped = weights if keep is None else weights * keep * keep_scale
    _product(dropped, v, precision, out=z)  # (N, …, n, d_v)


@float16_as_float32
def attention_backward(
    dy: Array, q: Array, k: Array, v: Array, weights: Array, scale: float,
    keep: Array | None, keep_scale: float, precision: str = "float32",
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The gradients of `attention` for q, k and v, in their shapes and order in memory."""
    dq, dk, dv = xp.empty_like(q), xp.empty_like(k), xp.empty_like(v)
    on_one_blas_thread(
        in_blocks, attention_backward_block, weights, keep, dy, q, k, v, dq, dk, dv,
        scale=scale, keep_scale=keep_scale, precision=precision,
    )  # fmt: skip
    return dq, dk, dv


def attention_backward_block(weights, keep, dy, q, k, v, dq, dk, dv, scale, keep_scale, precision):
    d_scores = xp.empty(weights.shape, weights.dtype)  # contiguous: its rows below are then no copy
    _product(dy, v.swapaxes(-1, -2), precision, out=d_scores)  # of the weights after dropout, at first
    dropped = weights
    if keep is not None:
        dropped = weights * keep * keep_scale
        dropout_block(d_scores, keep, d_scores, keep_scale)
    _product(dropped.swapaxes(-1, -2), dy, precision, out=dv)
    softmax_backward_block(_rows(d_scores), _rows(weights), _rows(d_scores))
    d_scores *= scale
    _product(d_scores, k, precision, out=dq)
    _product(d_scores.swapaxes(-1, -2), q, precision, out=dk)


def _product(a, b, precision, out=None):
    return xp.matmul(rounded(a, precision), rounded(b, precision), out=out)


# --- Scatter ---------------------------------------------------------------------------------------------


def scatter_add(shape: tuple[int, ...], index: tuple[Any, ...], values: Array) -> Array:
    """Zeros of `shape` with `values` added at `index` (a NumPy index; an entry named twice gets both)."""
    if len(index) == 1 and len(shape) == 2:  # rows of a matrix
        # shape[0] may not fit a small dtype
        ids = index[0].astype(xp.int64, copy=False).reshape(-1) % shape[0]
        return scatter_add_rows(shape[0], ids, values.reshape(-1, shape[1]))
    out = xp.zeros(shape, values.dtype)
    xp.add.at(out, index, values)
    return out


@float16_as_float32
def scatter_add_rows(num_rows: int, ids: Array, values: Array) -> Array:
    """Zeros (num_rows, d) with row i of `values` (n, d) added to row ids[i]; ids (n,) are not negative.

    Sorted, so that rows with the same id are neighbours: first rows are copied all at once, and only ids that
    come more than once need a sum. (`numpy.add.at` would add entry by entry.)
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
        if end - start <= 128:
            xp.add.reduce(values[start:end], axis=0, out=out[sorted_ids[start]])
        else:
            out[sorted_ids[start]] = sum_rows(values[start:end])
    return out


# --- Optimiser -------------------------------------------------------------------------------------------


def adamw_step(
    parameters: Sequence[Array], gradients: Sequence[Array], firsts: Sequence[Array], seconds: Sequence[Array],
    *, step_size: float | Array, decay: float | Array, second_correction: float | Array,
    beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """One AdamW update in place: parameters, their gradients, first and second moments.

    `decay` is lr λ, `step_size` is lr / (1 - β₁ᵗ), `second_correction` is √(1 - β₂ᵗ): numbers, or arrays without axes.
    """
    for arrays in zip(parameters, gradients, firsts, seconds, strict=True):
        flat = [_flat(array) for array in arrays]
        in_blocks(
            adamw_block, *flat, step_size=step_size, decay=decay, beta1=beta1, beta2=beta2, eps=eps,
            second_correction=second_correction,
        )  # fmt: skip
        for i in (0, 2, 3):
            if not arrays[i].flags.c_contiguous:  # then the flat one is a copy
                arrays[i][...] = flat[i].reshape(arrays[i].shape)


def adamw_block(p, g, m, v, step_size, decay, beta1, beta2, eps, second_correction):
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * xp.square(g)
    step = xp.sqrt(v)  # √v / c + ε, with the constant c left to the step size
    step += eps * second_correction
    with xp.errstate(invalid="ignore"):  # inf / inf: the gradients' norm tells of it
        xp.divide(m, step, out=step)
    step *= step_size * second_correction
    p *= 1 - decay
    p -= step


def scale_in_place(arrays: Sequence[Array], factor: float | Array) -> None:
    """Each array times `factor`, a number or an array without axes."""
    if factor == 1:
        return
    for array in arrays:
        array *= xp.asarray(factor, array.dtype)
