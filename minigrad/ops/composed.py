"""Operations written with the basic ones, the way they are derived.

The formula is the code, and the gradient comes from the graph. `fused.py` has the same names and signatures
with a `backward` written by hand: the model runs those, and they are checked against these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from minigrad.ops import checks, elementwise, shapes
from minigrad.tensor import Array, Tensor

__all__ = [
    "cross_entropy",
    "dropout",
    "gelu",
    "gru",
    "gru_step",
    "layer_norm",
    "linear",
    "log_softmax",
    "lstm",
    "lstm_step",
    "rnn",
    "rnn_step",
    "scaled_dot_product_attention",
    "softmax",
]


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """e^x / Σ e^x along `axis`, with the largest entry subtracted first so that nothing overflows."""
    checks.one_axis("softmax", x, axis)
    largest = x.detach().max(axis=axis, keepdims=True)  # a constant: it cancels in the quotient
    e = (x - largest).exp()
    return e / e.sum(axis=axis, keepdims=True)


@checks.float16_in_float32
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log softmax(x) along `axis`, as x - log Σ e^x; with entries of 1e5 it is as coarse as they are."""
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
    return 0.5 * x * (1 + elementwise.erf(x * math.sqrt(0.5)))


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

    x (…), keep (…) of the same shape. The caller draws `keep` (`random.keep_mask`), so that this function is
    deterministic and can be differentiated. Raises ValueError if the shapes differ or p is not in [0, 1).
    """
    keep = checks.dropout("dropout", x.shape, x, keep, p)
    return elementwise.where(keep, x, 0.0) * (1 / (1 - p))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W + b: x (…, d_in), weight (d_in, d_out), bias (d_out,) -> (…, d_out).

    Raises ValueError if the shapes do not fit.
    """
    checks.linear(x, weight, bias)
    y = x @ weight
    return y if bias is None else y + bias


@checks.float16_in_float32
def cross_entropy(
    logits: Tensor,
    labels: Array,
    *,
    weight: Array | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The mean of -log softmax(logits)[label] over all rows whose label is not `ignore_index`.

    logits (…, C), labels (…) of integers -> (). weight (C,): a factor for each class; the mean is then
    weighted. label_smoothing ε: the label counts 1 - ε, and all C classes together ε (Szegedy et al. 2016, section
    7), each times its weight, as in PyTorch. Raises ValueError or TypeError if shapes or dtypes do not fit, ValueError
    if no label counts, IndexError for a label outside 0 … C-1. Labels that are on a GPU already are not checked,
    because that would wait for it; without weights and smoothing nobody reads them at all: a row that does not count
    weighs 0 (so its logits must be finite), and if none counts, the loss is NaN.
    """
    rows, classes, share, even = checks.cross_entropy(logits, labels, weight, ignore_index, label_smoothing)
    log_p = log_softmax(logits.reshape(-1, logits.shape[-1]))  # (N, C)
    loss = -(log_p[rows, classes] * Tensor.wrap(share)).sum()
    return loss if even is None else loss - (log_p[rows] * Tensor.wrap(even)).sum()


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Array | None = None, keep: Array | None = None, p: float = 0.0
) -> Tensor:
    """softmax(Q Kᵀ / √d_k + mask) V (Vaswani et al. 2017, section 3.2.1).

    q (…, n, d_k), k (…, m, d_k), v (…, m, d_v) -> (…, n, d_v). mask: floats added to the scores; it
    broadcasts to (…, n, m). keep (…, n, m) of booleans and p: dropout on the weights. Raises ValueError if
    the shapes do not fit, TypeError for a mask that is not floats.
    """
    mask, keep = checks.attention(q, k, v, mask, keep, p)
    scores = q @ k.transpose() * (1 / math.sqrt(q.shape[-1]))  # (…, n, m)
    if mask is not None:
        scores = scores + Tensor.wrap(mask)
    weights = softmax(scores)
    if keep is not None:
        weights = dropout(weights, keep, p)
    return weights @ v  # (…, n, d_v)


# --- Recurrent -------------------------------------------------------------------------------------------
# A step takes what its gates hear from the input, x W_ih + b_ih: one product for all steps, made by the caller. The
# gates lie side by side, in PyTorch's order. n is the number of rows, d the size of the state, L the number of steps.


def rnn_step(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor) -> Tensor:
    """One step of Elman's network (1990): h' = tanh(x_part + h W_hh + b_hh).

    x_part (n, d), h (n, d), weight_hh (d, d), bias_hh (d,) -> (n, d). Raises ValueError if the shapes do not fit.
    """
    checks.recurrent_step("rnn_step", 1, x_part, (h,), weight_hh, bias_hh)
    return (x_part + linear(h, weight_hh, bias_hh)).tanh()


def gru_step(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor) -> Tensor:
    """One step of the gated recurrent unit (Cho et al. 2014, section 2.3): h' = (1 - z) g + z h.

    Reset gate r = σ(x_r + h_r), update gate z = σ(x_z + h_z), candidate g = tanh(x_g + r h_g), as PyTorch has
    it: its r scales the product h W_hh + b_hh, whereas the paper's scales h. x_part (n, 3 d): x_r, x_z and
    x_g; h (n, d), weight_hh (d, 3 d), bias_hh (3 d,) -> (n, d). Raises ValueError if the shapes do not fit.
    """
    checks.recurrent_step("gru_step", 3, x_part, (h,), weight_hh, bias_hh)
    d = h.shape[-1]
    x_r, x_z, x_g = shapes.split(x_part, d, axis=-1)
    h_r, h_z, h_g = shapes.split(linear(h, weight_hh, bias_hh), d, axis=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    candidate = (x_g + r * h_g).tanh()
    return (1 - z) * candidate + z * h


def lstm_step(
    x_part: Tensor, h: Tensor, c: Tensor, weight_hh: Tensor, bias_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of long short-term memory (Gers et al. 2000): c' = f c + i g, h' = o tanh c'.

    Input gate i, forget gate f, candidate g and output gate o are parts of x_part + h W_hh + b_hh, after σ,
    but g after tanh. x_part (n, 4 d), h (n, d), c (n, d), weight_hh (d, 4 d), bias_hh (4 d,) -> h' (n, d), c'
    (n, d). Raises ValueError if the shapes do not fit.
    """
    checks.recurrent_step("lstm_step", 4, x_part, (h, c), weight_hh, bias_hh)
    i, f, g, o = shapes.split(x_part + linear(h, weight_hh, bias_hh), h.shape[-1], axis=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def rnn(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor, live: Array | None = None) -> Tensor:
    """`rnn_step` for each step of x_part in turn: the state after each of them.

    x_part (L, n, d), h (n, d) before the first step, weight_hh (d, d), bias_hh (d,) -> (L, n, d). live (L, n) of
    booleans: where it is false, the row's state stays as it was. Raises ValueError if the shapes do not fit.
    """
    live = checks.recurrent("rnn", 1, x_part, (h,), weight_hh, bias_hh, live)

    def step(x_part: Tensor, h: Tensor) -> tuple[Tensor]:
        return (rnn_step(x_part, h, weight_hh, bias_hh),)

    (states,) = _each_step(step, x_part, (h,), live)
    return states


def gru(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor, live: Array | None = None) -> Tensor:
    """`gru_step` for each step of x_part in turn: the state after each of them.

    x_part (L, n, 3 d), h (n, d) before the first step, weight_hh (d, 3 d), bias_hh (3 d,) -> (L, n, d). live:
    as in `rnn`. Raises ValueError if the shapes do not fit.
    """
    live = checks.recurrent("gru", 3, x_part, (h,), weight_hh, bias_hh, live)

    def step(x_part: Tensor, h: Tensor) -> tuple[Tensor]:
        return (gru_step(x_part, h, weight_hh, bias_hh),)

    (states,) = _each_step(step, x_part, (h,), live)
    return states


def lstm(
    x_part: Tensor, h: Tensor, c: Tensor, weight_hh: Tensor, bias_hh: Tensor, live: Array | None = None
) -> tuple[Tensor, Tensor]:
    """`lstm_step` for each step of x_part in turn: h and c after each of them.

    x_part (L, n, 4 d), h and c (n, d) before the first step, weight_hh (d, 4 d), bias_hh (4 d,) -> h (L, n, d),
    c (L, n, d). live: as in `rnn`. Raises ValueError if the shapes do not fit.
    """
    live = checks.recurrent("lstm", 4, x_part, (h, c), weight_hh, bias_hh, live)

    def step(x_part: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        return lstm_step(x_part, h, c, weight_hh, bias_hh)

    h, c = _each_step(step, x_part, (h, c), live)
    return h, c


def _each_step(
    step: Callable[..., tuple[Tensor, ...]],
    x_part: Tensor,
    state: tuple[Tensor, ...],
    live: Sequence[Array | None],
) -> tuple[Tensor, ...]:
    """step(x_part[t], *state) for each t; each part of the state after every step, (L, n, d)."""
    after = []
    for now, live_now in zip(x_part, live, strict=True):
        new = step(now, *state)
        if live_now is not None:
            new = tuple(elementwise.where(live_now[:, None], *pair) for pair in zip(new, state, strict=True))
        state = new
        after.append(state)
    return tuple(shapes.stack(parts) for parts in zip(*after, strict=True))
