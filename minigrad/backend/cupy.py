"""The GPU backend: CuPy. Most functions are one launch of a kernel in `cupy_kernels.py`.

`numpy.py` has the twin of each function and says what it takes and returns; docstrings here say what is different.
Nothing here waits for the device, except what brings values to the host (`to_numpy`, `synchronize`). Arrays
of float16 go through float32 or CuPy's own operators.

Products of float32 matrices run as TF32 on devices that have it (compute capability 8.0, Ampere, or newer):
operands are rounded to 10 bits after the point, sums are float32, and a product is several times faster.
CUPY_TF32=0 in the environment switches it off, for a comparison to the last digits; float64 has no part in it.
CuPy compiles kernels so that a float32 below 1.2e-38 counts as 0, also as a factor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cupy as xp
import numpy as np
from cupyx.scipy import special
from numpy.typing import ArrayLike, DTypeLike

from minigrad.backend import Step, cublas, cupy_graph, float16_as_float32
from minigrad.backend import numpy as cpu
from minigrad.backend.cupy_kernels import NAMES, OPTIONS, SOURCE, TYPES

name = "cupy"

Array = Any  # cupy.ndarray; CuPy ships no types

# --- Where the backend meets the rest --------------------------------------------------------------------


def unavailable() -> str:
    """Why this backend cannot be used here: also where there is CuPy, but no device."""
    return "" if xp.is_available() else "CuPy is installed but finds no CUDA device"


def asarray(values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A CuPy array; values from the host are copied."""
    return xp.asarray(values, dtype=dtype)


def to_numpy(array: Array) -> Any:
    """Copies to the host, and waits for the device."""
    return xp.asnumpy(array)


def synchronize() -> None:
    """Wait until the device has finished: the one function that is there for that."""
    xp.cuda.get_current_stream().synchronize()


def memory() -> int | None:
    """The device's."""
    return int(xp.cuda.Device().mem_info[1])


def keep_freed_memory() -> None:
    """Nothing to do: CuPy's memory pool keeps freed memory."""


def recorded(step: Step, lasting: Callable[[], Sequence[Array]], say: Callable[[str], object]) -> Step:
    """It runs twice as it is; then it is recorded as a CUDA graph, and launched as a whole."""
    return cupy_graph.Recorded(step, lasting, say)


def row_ids(ids: ArrayLike, rows: int) -> Array:
    """Only ids that come from the host are checked: to look at the others would be to wait for them."""
    if not isinstance(ids, xp.ndarray):
        return xp.asarray(cpu.row_ids(ids, rows))
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    return ids


# --- Launches --------------------------------------------------------------------------------------------

_module = xp.RawModule(  # compiled when the first kernel is asked for
    code=SOURCE.encode("ascii", "replace").decode(),  # CuPy may write it to a file in the locale's encoding
    options=OPTIONS,
    name_expressions=NAMES,
)


@functools.cache
def _kernel(kernel: str, dtype: np.dtype | None) -> Any:
    return _module.get_function(f"{kernel}<{TYPES[dtype]}>" if dtype else kernel)


def _launch(
    kernel: str, dtype: np.dtype | None, grid: tuple[int, ...], block: tuple[int, ...], *arguments: object
) -> None:
    """Run the kernel's form for `dtype`, unless there is nothing to do. Arrays have to be contiguous."""
    if 0 not in grid:
        _kernel(kernel, dtype)(grid, block, arguments)


def _on_entries(kernel: str, dtype: np.dtype | None, n: int, *arguments: object) -> None:
    _launch(kernel, dtype, (-(-n // 256),), (256,), *arguments)


def _on_rows(kernel: str, x: Array, *arguments: object) -> None:
    n, d = x.shape
    if d > 1024:
        _launch(kernel, x.dtype, (n,), (1024, 1), x, *arguments)
    elif d:
        _launch(kernel, x.dtype, (-(-n // 8),), (32, 8), x, *arguments)


def _on_columns(kernel: str, dtype: np.dtype, pieces: int, d: int, *arguments: object) -> None:
    _launch(kernel, dtype, (pieces, -(-d // 32)), (32, 8), *arguments)


def _rows(x: Array, dtype: DTypeLike | None = None) -> Array:
    """`x` seen as a matrix of rows along its last axis: (..., d) -> (n, d); contiguous."""
    return xp.ascontiguousarray(x, dtype).reshape(math.prod(x.shape[:-1]), x.shape[-1])


# --- Products --------------------------------------------------------------------------------------------


def rounded(x: Array, precision: str) -> Array:
    """In 16 bits, of which only `matmul` and attention know how to read them; float16 can still be infinite."""
    if precision == "float32" or x.dtype != xp.float32:
        return x
    if cublas.is_turned(x):
        return rounded(x.swapaxes(-1, -2), precision).swapaxes(-1, -2)
    if precision == "float16":
        return x.astype(xp.float16, order="C").view(cublas.FLOAT16)
    x, bits = xp.ascontiguousarray(x), xp.empty(x.shape, cublas.BFLOAT16)
    _on_entries("to_bfloat16", None, x.size, x, bits, x.size)
    return bits


def matmul(a: Array, b: Array) -> Array:
    """Of matrices that are both `rounded`, or neither."""
    return xp.matmul(a, b) if a.dtype == xp.float16 else _product(a, b)


def _product(a: Array, b: Array, precision: str = "float32") -> Array:
    """The products of two stacks of matrices: (…, n, k) @ (…, k, m) -> (…, n, m)."""
    return cublas.product(rounded(a, precision), rounded(b, precision))


def add_bias(y: Array, bias: Array) -> None:
    """CuPy's own operator."""
    y += bias


PIECE_ROWS = 128  # so many rows has a block: enough blocks for the device, few sums left to add up


@float16_as_float32
def sum_rows(x: Array) -> Array:
    """A launch for pieces of PIECE_ROWS rows, one for pieces of the pieces, and so on."""
    x = xp.ascontiguousarray(x)
    n, d = x.shape
    while n > PIECE_ROWS:
        pieces = -(-n // PIECE_ROWS)
        partial = xp.empty((pieces, d), x.dtype)
        _on_columns("sum_rows", x.dtype, pieces, d, x, partial, n, d, PIECE_ROWS)
        n, x = pieces, partial
    out = xp.empty(d, x.dtype)
    _on_columns("sum_rows", x.dtype, 1, d, x, out, n, d, n)
    return out


@float16_as_float32
def sum_entries(x: Array, axes: tuple[int, ...]) -> Array:
    """CuPy's own, which adds as a tree."""
    return x.sum(axis=axes)


# --- Random bits -----------------------------------------------------------------------------------------


def keep_mask(shape: tuple[int, ...], p: float, keys: tuple[int, int] | Array, first: int = 0) -> Array:
    """One launch; the bits are those of the CPU. The keys may lie on the device, two of int64."""
    keep = xp.empty(shape, bool)
    kernel, keys = ("keep_mask_of", (keys,)) if isinstance(keys, xp.ndarray) else ("keep_mask", keys)
    _on_entries(kernel, None, keep.size, keep, keep.size, first, *keys, round(p * 65536))
    return keep


@float16_as_float32
def dropout(x: Array, keep: Array, scale: float) -> Array:
    """One launch."""
    y = xp.empty(x.shape, x.dtype)
    x, keep = xp.ascontiguousarray(x), xp.ascontiguousarray(keep, bool)
    _on_entries("dropout", x.dtype, x.size, x, keep, y, x.size, float(scale))
    return y


# --- Elementwise -----------------------------------------------------------------------------------------


def erf(x: Array) -> Array:
    """CuPy's own, which would answer float16 in float64."""
    return special.erf(x).astype(x.dtype, copy=False)


@float16_as_float32
def gelu(x: Array, approximate: str) -> tuple[Array, Array]:
    """One launch makes both."""
    y, slope = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
    x = xp.ascontiguousarray(x)  # which gives an array without axes one
    kernel = "gelu_tanh" if approximate == "tanh" else "gelu_erf"
    _on_entries(kernel, x.dtype, x.size, x, y, slope, x.size)
    return y, slope


def multiply_in_place(a: Array, b: Array) -> None:
    """CuPy's own operator."""
    a *= b


def add_in_place(a: Array, b: Array) -> None:
    """CuPy's own operator."""
    a += b


# --- Rows ------------------------------------------------------------------------------------------------


@float16_as_float32
def softmax(x: Array) -> tuple[Array, Array, Array]:
    """One launch, with a warp or a block of threads for each row."""
    rows = _rows(x)
    y = xp.empty_like(rows)
    largest, log_total = (xp.empty((*x.shape[:-1], 1), x.dtype) for _ in range(2))
    _on_rows("softmax", rows, y, largest, log_total, *rows.shape)
    return y.reshape(x.shape), largest, log_total


@float16_as_float32
def softmax_backward(dy: Array, y: Array) -> Array:
    """One launch, as `softmax`."""
    rows_dy, rows_y = _rows(dy, y.dtype), _rows(y)
    dx = xp.empty_like(rows_y)
    _on_rows("softmax_backward", rows_dy, rows_y, dx, *rows_y.shape)
    return dx.reshape(y.shape)


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """One launch, as `softmax`."""
    if x.dtype not in TYPES:
        x, weight, bias = (a.astype(xp.float32) for a in (x, weight, bias))
        y, normalised, inverse_std = layer_norm(x, weight, bias, eps)
        return y.astype(xp.float16), normalised, inverse_std
    rows = _rows(x)
    y, normalised = xp.empty_like(rows), xp.empty_like(rows)
    inverse_std = xp.empty((len(rows), 1), x.dtype)
    weight, bias = (xp.ascontiguousarray(w, x.dtype) for w in (weight, bias))
    _on_rows("layer_norm", rows, weight, bias, y, normalised, inverse_std, *rows.shape, float(eps))
    return y.reshape(x.shape), normalised, inverse_std


@float16_as_float32
def layer_norm_backward(
    dy: Array, normalised: Array, inverse_std: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """A launch for the rows, one for pieces of the columns, and the sum of these pieces."""
    dtype = normalised.dtype
    rows, weight = _rows(dy, dtype), xp.ascontiguousarray(weight, dtype)
    n, d = rows.shape
    dx = xp.empty_like(rows)
    _on_rows("layer_norm_backward", rows, normalised, inverse_std, weight, dx, n, d)
    pieces = max(1, -(-n // PIECE_ROWS))
    partial = xp.empty((pieces, 2 * d), dtype)
    _on_columns("layer_norm_columns", dtype, pieces, d, rows, normalised, partial, n, d, PIECE_ROWS)
    sums = sum_rows(partial)
    return dx.reshape(dy.shape), sums[:d], sums[d:]


# --- Attention -------------------------------------------------------------------------------------------


@float16_as_float32
def attention(
    q: Array, k: Array, v: Array, mask: Array | None, scale: float,
    keep: Array | None, keep_scale: float, precision: str = "float32",
) -> tuple[Array, Array]:  # fmt: skip
    """Two launches of cuBLAS, and between them one for all that is done to the scores."""
    weights = _product(q, k.swapaxes(-1, -2), precision)  # the scores, at first
    rows = _rows(weights)
    rows_of_mask = 0
    if mask is None:
        mask = rows  # something to point at
    else:
        # one row for all heads and queries, which is broadcast to the others
        if not any(n > 1 and step for n, step in zip(mask.shape[1:-1], mask.strides[1:-1], strict=True)):
            mask = mask[(slice(None), *[0] * (mask.ndim - 2))]
        mask = _rows(mask, q.dtype)
        rows_of_mask = len(rows) // max(1, len(mask))
    dropped = weights if keep is None else xp.empty_like(weights)
    keep = xp.empty(0, bool) if keep is None else xp.ascontiguousarray(keep)
    _on_rows(
        "attention_weights", rows, mask, keep, dropped,
        *rows.shape, rows_of_mask, keep.size > 0, float(scale), float(keep_scale),
    )  # fmt: skip
    return _product(dropped, v, precision), weights


@float16_as_float32
def attention_backward(
    dy: Array, q: Array, k: Array, v: Array, weights: Array, scale: float,
    keep: Array | None, keep_scale: float, precision: str = "float32",
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Four launches of cuBLAS, and one for what lies between the weights and the scores."""
    d_scores = _product(dy, v.swapaxes(-1, -2), precision)  # the gradient of the weights, at first
    dropped = weights if keep is None else xp.empty_like(weights)
    keep = xp.empty(0, bool) if keep is None else xp.ascontiguousarray(keep)
    rows = _rows(d_scores)
    _on_rows(
        "attention_weights_backward", rows, weights, keep, dropped,
        *rows.shape, keep.size > 0, float(scale), float(keep_scale),
    )  # fmt: skip
    dv = _product(dropped.swapaxes(-1, -2), dy, precision)
    dk = _product(d_scores.swapaxes(-1, -2), q, precision)
    return _product(d_scores, k, precision), dk, dv


# --- Recurrent steps -------------------------------------------------------------------------------------
# One launch each. Arrays are the operation's own, of float32 or float64 and contiguous, because they are written to.


def _on_state(kernel: str, state: Array, live: Array | None, *arrays: Array) -> None:
    n, d = state.shape
    some = live is not None
    live = xp.ascontiguousarray(live) if some else xp.empty(0, bool)
    _on_entries(kernel, state.dtype, n * d, *arrays, live, some, n, d)


def rnn_step(h: Array, h_new: Array, live: Array | None) -> None:
    """One launch."""
    _on_state("rnn_step", h, live, h, h_new)


def rnn_step_backward(dh: Array, d_sum: Array, h_new: Array, live: Array | None) -> None:
    """One launch."""
    _on_state("rnn_step_backward", dh, live, dh, d_sum, h_new)


def gru_step(gates: Array, heard: Array, h: Array, h_new: Array, live: Array | None) -> None:
    """One launch."""
    _on_state("gru_step", h, live, gates, heard, h, h_new)


def gru_step_backward(dh: Array, gates: Array, heard: Array, h: Array, live: Array | None) -> None:
    """One launch."""
    _on_state("gru_step_backward", dh, live, dh, gates, heard, h)


def lstm_step(gates: Array, h: Array, c: Array, h_new: Array, c_new: Array, live: Array | None) -> None:
    """One launch."""
    _on_state("lstm_step", h, live, gates, h, c, h_new, c_new)


def lstm_step_backward(
    dh: Array, dc: Array, gates: Array, c: Array, c_new: Array, live: Array | None
) -> None:
    """One launch."""
    _on_state("lstm_step_backward", dh, live, dh, dc, gates, c, c_new)


# --- Scatter ---------------------------------------------------------------------------------------------


def scatter_add(shape: tuple[int, ...], index: tuple[Any, ...], values: Array) -> Array:
    """Rows of a matrix are added up in one order, others in any: their last bits may differ from run to run."""
    if len(index) == 1 and len(shape) == 2:  # rows of a matrix
        ids = index[0].astype(xp.int64, copy=False).reshape(-1) % shape[0]
        return scatter_add_rows(shape[0], ids, values.reshape(-1, shape[1]))
    out = xp.zeros(shape, values.dtype)
    xp.add.at(out, index, values)
    return out


@float16_as_float32
def scatter_add_rows(num_rows: int, ids: Array, values: Array) -> Array:
    """Sorted first, so that rows with the same id are neighbours and one block adds them up in their order."""
    n, d = values.shape
    out = xp.zeros((num_rows, d), values.dtype)
    order = xp.argsort(ids)
    sorted_ids = xp.ascontiguousarray(ids[order], xp.int64)
    values = xp.ascontiguousarray(values)
    _on_columns("scatter_add_rows", values.dtype, n, d, sorted_ids, order, values, out, n, d, num_rows)
    return out


# --- Optimiser -------------------------------------------------------------------------------------------

PIECE = 2**14  # entries: some blocks for each processor of the device, even with a small model


def _pieces(group: Sequence[tuple[Array, ...]]) -> Array:
    """The table of the kernels that take many arrays: for each piece its addresses and its length.

    group: for each parameter its k arrays, contiguous and of one size -> (pieces, k + 1) of int64. Made anew
    each time, because gradients are new arrays each time, unless the step is recorded: then they stay where they are.
    """
    sizes = np.array([arrays[0].size for arrays in group])
    addresses = np.array([[array.data.ptr for array in arrays] for arrays in group])
    counts = -(-sizes // PIECE)
    which = np.repeat(np.arange(len(group)), counts)  # the parameter of each piece
    start = PIECE * (np.arange(len(which)) - np.repeat(counts.cumsum() - counts, counts))
    lengths = np.minimum(sizes[which] - start, PIECE)
    itemsize = group[0][0].itemsize
    return cupy_graph.table(np.column_stack([addresses[which] + start[:, None] * itemsize, lengths]))


def adamw_step(
    parameters: Sequence[Array], gradients: Sequence[Array], firsts: Sequence[Array], seconds: Sequence[Array],
    *, step_size: float | Array, decay: float | Array, second_correction: float | Array,
    beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """One launch for all arrays of a dtype. What changes from step to step may lie on the device, as float64."""
    every = list(zip(parameters, gradients, firsts, seconds, strict=True))
    kinds = [p.dtype if p.dtype in TYPES else np.dtype("float32") for p in parameters]
    contiguous = [  # themselves, or copies
        tuple(xp.ascontiguousarray(a, kind) for a in arrays)
        for kind, arrays in zip(kinds, every, strict=True)
    ]
    settings = [xp.asarray(number, np.float64) for number in (step_size, decay, second_correction)]
    settings += map(float, (beta1, beta2, eps))
    for dtype, group in _by_dtype(contiguous):
        pieces = _pieces(group)
        _launch("adamw", dtype, (len(pieces),), (256,), pieces, *settings)
    for arrays, new in zip(every, contiguous, strict=True):
        for i in (0, 2, 3):
            if new[i] is not arrays[i]:
                arrays[i][...] = new[i]


def global_norm(arrays: Sequence[Array]) -> Array:
    """One launch for all arrays of a dtype; nothing waits for the result. Squares of float64 may become infinite."""
    total = xp.zeros((), xp.float64)
    for dtype, group in _by_dtype([(xp.ascontiguousarray(a),) for a in arrays]):
        if dtype in TYPES:
            pieces = _pieces(group)
            squares = xp.empty(len(pieces), xp.float64)
            _launch("sum_squares", dtype, (len(pieces),), (256,), pieces, squares)
            total += squares.sum()
        else:
            total += sum(xp.square(a, dtype=xp.float32).sum() for (a,) in group)
    return xp.sqrt(total)


def scale_in_place(arrays: Sequence[Array], factor: float | Array) -> None:
    """One launch for all arrays of a dtype that lie in one piece."""
    in_one_launch = []
    for array in arrays:
        if array.dtype in TYPES and (array.flags.c_contiguous or array.flags.f_contiguous):
            in_one_launch.append((array,))
        else:
            array *= xp.asarray(factor, array.dtype)
    for dtype, group in _by_dtype(in_one_launch):
        pieces = _pieces(group)
        _launch("scale", dtype, (len(pieces),), (256,), pieces, xp.asarray(factor, dtype))


def _by_dtype(group: Sequence[tuple[Array, ...]]) -> Iterable[tuple[Any, list[tuple[Array, ...]]]]:
    """The members of `group` that have one dtype, for each dtype."""
    found: dict[Any, list[tuple[Array, ...]]] = {}
    for arrays in group:
        found.setdefault(arrays[0].dtype, []).append(arrays)
    return found.items()
