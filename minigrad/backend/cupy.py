"""The GPU backend: CuPy. The same names as in `numpy.py`, each in its plain array form."""

from __future__ import annotations

import math
from typing import Any

import cupy as xp
import cupyx
from cupyx.scipy import special

from minigrad.backend import numpy

name = "cupy"

Array = Any  # cupy.ndarray; CuPy ships no types

# --- Where the backend meets the rest --------------------------------------------------------------------


def unavailable() -> str:
    """Why this backend cannot be used here; empty when it can."""
    return "" if xp.is_available() else "CuPy is installed but finds no CUDA device"


def asarray(values: Any, dtype: Any = None) -> Array:
    """`values` (lists, scalars, NumPy or CuPy arrays) as a CuPy array; from the host this copies."""
    return xp.asarray(values, dtype=dtype)


def to_numpy(array: Array) -> Any:
    """`array` copied to the host; waits for the device."""
    return xp.asnumpy(array)


def synchronize() -> None:
    """Wait until the device has finished what it was asked to do."""
    xp.cuda.get_current_stream().synchronize()


def keep_freed_memory() -> None:
    """Nothing to do: CuPy's memory pool keeps freed memory."""


def row_ids(ids: Any, rows: int) -> Array:
    """`ids` as an integer array; each is checked to be within 0 … rows - 1 if it comes from the host.

    Raises TypeError for other dtypes, IndexError for an id outside.
    """
    if not isinstance(ids, xp.ndarray):
        return xp.asarray(numpy.row_ids(ids, rows))
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    return ids


# --- Random bits -----------------------------------------------------------------------------------------


def keep_mask(shape: tuple[int, ...], p: float, seed: int, draw: int) -> Array:
    """A boolean array in which each entry is False with probability `p`: what dropout keeps.

    A function of (seed, draw) alone, so that a resumed run draws what an uninterrupted one would have: each
    entry's position is put through an integer hash keyed by them ("lowbias32", C. Wellons 2018). `p` is
    rounded to 1/65,536, as on the CPU.
    """
    size = math.prod(shape)
    bits = xp.arange(size, dtype=xp.uint32)
    for key in (seed, draw):
        bits ^= xp.uint32((key * 0x9E3779B9 + 0x7F4A7C15) % 2**32)
        bits ^= bits >> xp.uint32(16)
        bits *= xp.uint32(0x7FEB352D)
        bits ^= bits >> xp.uint32(15)
        bits *= xp.uint32(0x846CA68B)
        bits ^= bits >> xp.uint32(16)
    return ((bits >> xp.uint32(16)) >= xp.uint32(round(p * 65536))).reshape(shape)


def dropout(x: Array, keep: Array, scale: float) -> Array:
    """`x * keep * scale` for a boolean `keep` of the same shape."""
    return x * keep * scale


# --- Elementwise -----------------------------------------------------------------------------------------


def erf(x: Array) -> Array:
    """The error function, in the dtype of `x` (CuPy's own answers float16 in float64)."""
    return special.erf(x).astype(x.dtype, copy=False)


def gelu(x: Array, approximate: str) -> tuple[Array, Array]:
    """GELU and its slope at `x`: two arrays of the shape of `x`.

    `approximate` is "none" for x Φ(x), "tanh" for the tanh form (Hendrycks & Gimpel 2016, section 2).
    """
    if approximate == "tanh":
        c = math.sqrt(2 / math.pi)
        t = xp.tanh(c * (x + 0.044715 * x * x * x))
        inner = c * (1 + 3 * 0.044715 * x * x)
        return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner
    cdf = 0.5 * (1 + erf(x * math.sqrt(0.5)))  # Φ(x)
    density = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))  # φ(x)
    return x * cdf, cdf + x * density


# --- Rows ------------------------------------------------------------------------------------------------


def softmax(x: Array, overwrite: bool = False) -> tuple[Array, Array]:
    """Softmax over the last axis, and the log of its denominator.

    x (..., d) -> weights (..., d) and logsumexp (..., 1). A row of equal entries gives equal weights, however
    large and negative they are. With `overwrite`, a contiguous `x` may be the output.
    """
    largest = x.max(axis=-1, keepdims=True)
    y = xp.exp(x - largest)
    total = y.sum(axis=-1, keepdims=True)
    y /= total
    return y, xp.log(total) + largest


def softmax_backward(dy: Array, y: Array) -> Array:
    """y (dy - Σ dy y): the gradient of softmax over the last axis, from its output."""
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """Layer normalisation over the last axis: y (..., d), the normalised x (n, d), and 1/σ (n, 1)."""
    rows = x.reshape(-1, x.shape[-1])  # (n, d)
    centred = rows - rows.mean(axis=-1, keepdims=True)
    inverse_std = 1 / xp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)
    normalised = centred * inverse_std
    return (normalised * weight + bias).reshape(x.shape), normalised, inverse_std


def layer_norm_backward(
    dy: Array, normalised: Array, inverse_std: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """The gradients of `layer_norm` for x (in the shape of dy), weight (d,) and bias (d,)."""
    rows = dy.reshape(normalised.shape)  # (n, d)
    product = rows * normalised
    g = rows * weight  # the gradient of the normalised x
    inner = (g * normalised).mean(axis=-1, keepdims=True)
    dx = inverse_std * (g - g.mean(axis=-1, keepdims=True) - normalised * inner)
    return dx.reshape(dy.shape), product.sum(axis=0), rows.sum(axis=0)


# --- Scatter ---------------------------------------------------------------------------------------------


def scatter_add(shape: tuple[int, ...], index: tuple[Any, ...], values: Array) -> Array:
    """Zeros of `shape` with `values` added at `index` (a CuPy index; an entry named twice gets both)."""
    out = xp.zeros(shape, values.dtype)
    cupyx.scatter_add(out, index, values)
    return out


def scatter_add_rows(num_rows: int, ids: Array, values: Array) -> Array:
    """Zeros (num_rows, d) with row i of `values` (n, d) added to row ids[i]; ids (n,) are not negative."""
    return scatter_add((num_rows, values.shape[1]), ids, values)


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
    parameter *= 1 - decay
    first *= beta1
    first += (1 - beta1) * gradient
    second *= beta2
    second += (1 - beta2) * gradient * gradient
    parameter -= step_size * first / (xp.sqrt(second) / second_correction + eps)
