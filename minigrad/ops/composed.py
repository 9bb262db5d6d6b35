"""Operations written with the basic ones, as the chapters derive them.

The formula is the code, and the gradient comes from the graph. `fused.py` has the same names and signatures
with a `backward` written by hand: that is what the model runs, and it is held against these.
"""

from __future__ import annotations

import math

from minigrad.ops import basic, checks
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
    """e^x / Σ e^x along `axis`, with the largest entry taken out first so that nothing overflows."""
    checks.one_axis("softmax", x, axis)
    largest = x.detach().max(axis=axis, keepdims=True)  # a constant: it cancels in the quotient
    e = (x - largest).exp()
    return e / e.sum(axis=axis, keepdims=True)


@checks.float16_in_float32
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log softmax(x) along `axis`, as x - log Σ e^x; beside entries of 1e5 it has only the digits that these have."""
    checks.one_axis("log_softmax", x, axis)
    return x - x.logsumexp(axis=axis, keepdims=True)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x Φ(x), Φ the normal distribution function; or its tanh form (Hendrycks & Gimpel 2016, section 2).

    approximate: "none" or "tanh"; raises ValueError for anything else.
    """
    checks.gelu(approximate)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + inner.tanh())
    return 0.5 * x * (1 + basic.erf(x * math.sqrt(0.5)))


@checks.float16_in_float32
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-12) -> Tensor:
    """(x - μ) / √(σ² + ε) · weight + bias over the last axis (Ba et al. 2016, section 3).

    x (…, d), weight (d,), bias (d,) -> (…, d). Raises ValueError if the lengths differ.
    """
    checks.layer_norm(x, weight, bias, eps)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / (variance + eps).sqrt() * weight + bias


def dropout(x: Tensor, keep: Array, p: float) -> Tensor:
    """x where the boolean array `keep` is true, divided by 1 - p; 0 elsewhere (Srivastava et al. 2014).

    x (…), keep (…) of the same shape. The draw is made by the caller (`random.keep_mask`), so that this
    function is one and can be differentiated. Raises ValueError if the shapes differ or p is not in [0, 1).
    """
    keep = checks.dropout("dropout", x.shape, x, keep, p)
    return basic.where(keep, x, 0.0) * (1 / (1 - p))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W + b: x (…, d_in), weight (d_in, d_out), bias (d_out,) -> (…, d_out).

    Raises ValueError if the shapes do not fit.
    """
    checks.linear(x, weight, bias)
    y = x @ weight
    return y if bias is None else y + bias


@checks.float16_in_float32
def cross_entropy(
    logits: Tensor, labels: Array, *, weight: Array | None = None, ignore_index: int = -100
) -> Tensor:
    """The mean of -log softmax(logits)[label] over all rows whose label is not `ignore_index`.

    logits (…, C), labels (…) of integers -> (). weight (C,): a factor for each class; the mean is then
    weighted. Raises ValueError or TypeError if shapes or dtypes do not fit, ValueError if no label counts,
    IndexError for a label outside 0 … C-1 (labels that are on a GPU already are not checked: that would wait for it).
    """
    rows, classes, share = checks.cross_entropy(logits, labels, weight, ignore_index)
    picked = log_softmax(logits.reshape(-1, logits.shape[-1]))[rows, classes]  # (n,)
    return -(picked * Tensor.wrap(share)).sum()


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
    not fit, TypeError for a mask that is not of floats.
    """
    mask, keep = checks.attention(q, k, v, mask, keep, p)
    scores = q @ k.transpose() * (1 / math.sqrt(q.shape[-1]))  # (…, n, m)
    if mask is not None:
        scores = scores + Tensor.wrap(mask)
    weights = softmax(scores)
    if keep is not None:
        weights = dropout(weights, keep, p)
    return weights @ v  # (…, n, d_v)
