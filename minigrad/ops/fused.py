"""The operations of `composed.py` with a backward written by hand: what the model runs.

One node instead of a dozen: fewer walks over memory, and only the arrays that the backward needs are kept.
Every function names what it saves. The innermost loops are in the backend of the array.
"""

from __future__ import annotations

import math

from minigrad import backend
from minigrad.ops import checks
from minigrad.ops.broadcasting import broadcast_shape, unbroadcast
from minigrad.tensor import Array, Tensor

__all__ = [
    "cross_entropy",
    "dropout",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "scaled_dot_product_attention",
    "softmax",
]


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """e^x / Σ e^x along `axis`, with the largest entry taken out first so that nothing overflows.

    Saves its output.
    """
    checks.one_axis("softmax", x, axis)
    kernels = backend.of(x.data)
    y, *_ = kernels.softmax(x.data.swapaxes(axis, -1))

    def backward(dy: Array) -> tuple[Array]:
        return (kernels.softmax_backward(dy.swapaxes(axis, -1), y).swapaxes(axis, -1),)

    return Tensor.from_op(y.swapaxes(axis, -1), (x,), backward)


@checks.float16_in_float32
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log softmax(x) along `axis`, as (x - max x) - log Σ e^(x - max x): a large entry costs no digits.

    Saves its output. dx = dy - softmax(x) Σ dy.
    """
    checks.one_axis("log_softmax", x, axis)
    kernels = backend.of(x.data)
    _, largest, log_total = kernels.softmax(x.data.swapaxes(axis, -1))
    y = (x.data - largest.swapaxes(axis, -1)) - log_total.swapaxes(axis, -1)

    def backward(dy: Array) -> tuple[Array]:
        return (dy - kernels.xp.exp(y) * dy.sum(axis=axis, keepdims=True),)

    return Tensor.from_op(y, (x,), backward)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x Φ(x), Φ the normal distribution function; or its tanh form (Hendrycks & Gimpel 2016, section 2).

    approximate: "none" or "tanh"; raises ValueError for anything else. Saves the slope and not x: both are
    made of the same Φ, and the backward is then one multiplication an entry.
    """
    checks.gelu(approximate)
    kernels = backend.of(x.data)
    y, slope = kernels.gelu(x.data, approximate)

    def backward(dy: Array) -> tuple[Array]:
        kernels.multiply_in_place(slope, dy)  # nobody reads the slope after this
        return (slope,)

    return Tensor.from_op(y, (x,), backward)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-12) -> Tensor:
    """(x - μ) / √(σ² + ε) · weight + bias over the last axis (Ba et al. 2016, section 3).

    x (…, d), weight (d,), bias (d,) -> (…, d). Raises ValueError if the lengths differ. Saves the normalised
    x̂ and 1/σ. With g = dy · weight: dx = (g - mean(g) - x̂ mean(g x̂)) / σ.
    """
    checks.layer_norm(x, weight, bias)
    kernels = backend.of(x.data)
    gain = weight.data
    y, normalised, inverse_std = kernels.layer_norm(x.data, gain, bias.data, eps)

    def backward(dy: Array) -> tuple[Array, Array, Array]:
        return kernels.layer_norm_backward(dy, normalised, inverse_std, gain)

    return Tensor.from_op(y, (x, weight, bias), backward)


def dropout(x: Tensor, keep: Array, p: float) -> Tensor:
    """x where the boolean array `keep` is true, divided by 1 - p; 0 elsewhere (Srivastava et al. 2014).

    x (…), keep (…) of the same shape. The draw is made by the caller (`random.keep_mask`), so that this
    function is one and can be differentiated. Raises ValueError if the shapes differ or p is not in [0, 1).
    Saves `keep`, a byte an entry.
    """
    keep = checks.dropout("dropout", x.shape, x, keep, p)
    kernels = backend.of(x.data)
    scale = 1 / (1 - p)

    def backward(dy: Array) -> tuple[Array]:
        return (kernels.dropout(dy, keep, scale),)

    return Tensor.from_op(kernels.dropout(x.data, keep, scale), (x,), backward)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W + b: x (…, d_in), weight (d_in, d_out), bias (d_out,) -> (…, d_out).

    Raises ValueError if the shapes do not fit. Saves x and W, as the products take them: rounded, where
    `backend.default_matmul_precision` asks for it. All leading axes are one for the products: dW = xᵀ dy is
    then the sum over them.
    """
    checks.linear(x, weight, bias)
    kernels, precision = backend.of(x.data), backend.matmul_precision()
    x_shape, in_order = x.shape, weight.data.flags.c_contiguous
    n = math.prod(x_shape[:-1])
    rows = kernels.rounded(x.data.reshape(n, x_shape[-1]), precision)  # (n, d_in)
    w = kernels.rounded(weight.data, precision)  # (d_in, d_out)
    y = kernels.matmul(rows, w)  # (n, d_out)
    if bias is not None:
        kernels.add_bias(y, bias.data)
    need_x, need_w, has_bias = x.requires_grad, weight.requires_grad, bias is not None

    def backward(dy: Array) -> list[Array | None]:
        dy = dy.reshape(n, dy.shape[-1])  # (n, d_out)
        db = [kernels.sum_rows(dy)] if has_bias else []
        dy = kernels.rounded(dy, precision)
        dx = kernels.matmul(dy, w.T).reshape(x_shape) if need_x else None
        dw = None  # (d_in, d_out), in memory as W is: a tied table's two gradients are then added quickly
        if need_w:
            dw = kernels.matmul(rows.T, dy) if in_order else kernels.matmul(dy.T, rows).T
        return [dx, dw, *db]

    parents = (x, weight) if bias is None else (x, weight, bias)
    return Tensor.from_op(y.reshape(*x.shape[:-1], weight.shape[1]), parents, backward)


@checks.float16_in_float32
def cross_entropy(
    logits: Tensor, labels: Array, *, weight: Array | None = None, ignore_index: int = -100
) -> Tensor:
    """The mean of -log softmax(logits)[label] over all rows whose label is not `ignore_index`.

    logits (…, C), labels (…) of integers -> (). weight (C,): a factor for each class; the mean is then
    weighted. Raises ValueError or TypeError if shapes or dtypes do not fit, IndexError for a label outside
    0 … C-1, ValueError if no label counts. Saves the probabilities of the rows that count; their gradient is
    softmax(logits) minus 1 at the label, times the row's share in the mean.
    """
    rows, classes, share = checks.cross_entropy(logits, labels, weight, ignore_index)
    kernels = backend.of(logits.data)
    matrix = logits.data.reshape(-1, logits.shape[-1])  # (N, C)
    everything = len(rows) == len(matrix)
    counted = matrix if everything else matrix[rows]  # (n, C)
    probabilities, largest, log_total = kernels.softmax(counted)
    shape, matrix_shape = logits.shape, matrix.shape
    picked = kernels.xp.arange(len(rows))
    below = (
        largest[:, 0] - counted[picked, classes]
    )  # first: log_total would lose digits beside a large entry
    loss = ((below + log_total[:, 0]) * share).sum()

    def backward(dy: Array) -> tuple[Array]:
        gradient = probabilities  # reused: nobody reads the probabilities after this
        gradient[picked, classes] -= 1
        gradient *= (dy * share)[:, None]
        if everything:
            return (gradient.reshape(shape),)
        dx = kernels.xp.zeros(matrix_shape, gradient.dtype)
        dx[rows] = gradient
        return (dx.reshape(shape),)

    return Tensor.from_op(loss, (logits,), backward)


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Array | None = None,
    keep: Array | None = None,
    p: float = 0.0,
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + mask) V (Vaswani et al. 2017, section 3.2.1).

    q (…, n, d_k), k (…, m, d_k), v (…, m, d_v) -> (…, n, d_v). mask: floats added to the scores, broadcasts to
    (…, n, m). keep (…, n, m) of booleans and p: dropout on the weights. Raises ValueError if the shapes do
    not fit, TypeError for a mask that is not of floats. Saves q, k, v and the weights A. With
    dA = dropout(dz Vᵀ) and dS = A (dA - Σ dA A): dQ = dS K / √d_k, dK = dSᵀ Q / √d_k, dV = dropout(A)ᵀ dz.
    """
    mask, keep = checks.attention(q, k, v, mask, keep, p)
    kernels = backend.of(q.data)
    precision = backend.matmul_precision() if q.dtype == "float32" else "float32"
    broadcast_to = kernels.xp.broadcast_to
    batch = broadcast_shape(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    lead = batch or (1,)
    shapes = [x.shape for x in (q, k, v)]
    # (N, …, n, d_k), (N, …, m, d_k), (N, …, m, d_v): views, where something is broadcast
    heads = [broadcast_to(x.data, (*lead, *x.shape[-2:])) for x in (q, k, v)]
    full = (*lead, q.shape[-2], k.shape[-2])  # (N, …, n, m)
    mask, keep = (None if x is None else broadcast_to(x, full) for x in (mask, keep))
    scale, keep_scale = 1 / math.sqrt(q.shape[-1]), 1 / (1 - p)
    z, weights = kernels.attention(*heads, mask, scale, keep, keep_scale, precision)

    def backward(dy: Array) -> list[Array]:
        dy = dy if batch else dy[None]
        gradients = kernels.attention_backward(dy, *heads, weights, scale, keep, keep_scale, precision)
        return [unbroadcast(gradient, shape) for gradient, shape in zip(gradients, shapes, strict=True)]

    return Tensor.from_op(z if batch else z[0], (q, k, v), backward)
