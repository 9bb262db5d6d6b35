"""The operations of `composed.py` with a `backward` written by hand: what the model runs.

One node instead of a dozen: fewer passes over memory, and only the arrays that `backward` needs are kept.
composed.py describes what an operation computes, takes and raises; here each docstring gives what it saves
and what its `backward` computes. The innermost loops are in the backend of the array.
"""

from __future__ import annotations

import math

from minigrad import backend
from minigrad.ops import checks, shapes
from minigrad.ops.broadcasting import broadcast_shape, unbroadcast
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
    """`composed.softmax` as one node: saves its output y; dx = y (dy - Σ dy y)."""
    checks.one_axis("softmax", x, axis)
    kernels = backend.of(x.data)
    y, *_ = kernels.softmax(x.data.swapaxes(axis, -1))

    def backward(dy: Array) -> tuple[Array]:
        return (kernels.softmax_backward(dy.swapaxes(axis, -1), y).swapaxes(axis, -1),)

    return Tensor.from_op(y.swapaxes(axis, -1), (x,), backward)


@checks.float16_in_float32
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """`composed.log_softmax` as (x - max x) - log Σ e^(x - max x): a large entry costs no digits.

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
    """`composed.gelu` as one node: saves the slope and not x; dx = dy · slope.

    Slope and output are computed from the same Φ, so `backward` is one multiplication per entry.
    """
    checks.gelu(approximate)
    kernels = backend.of(x.data)
    y, slope = kernels.gelu(x.data, approximate)

    def backward(dy: Array) -> tuple[Array]:
        kernels.multiply_in_place(slope, dy)  # nobody reads the slope after this
        return (slope,)

    return Tensor.from_op(y, (x,), backward)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-12) -> Tensor:
    """`composed.layer_norm` as one node: saves the normalised x̂ and 1/σ.

    With g = dy · weight: dx = (g - mean(g) - x̂ mean(g x̂)) / σ.
    """
    checks.layer_norm(x, weight, bias, eps)
    kernels = backend.of(x.data)
    gain = weight.data
    y, normalised, inverse_std = kernels.layer_norm(x.data, gain, bias.data, eps)

    def backward(dy: Array) -> tuple[Array, Array, Array]:
        return kernels.layer_norm_backward(dy, normalised, inverse_std, gain)

    return Tensor.from_op(y, (x, weight, bias), backward)


def dropout(x: Tensor, keep: Array, p: float) -> Tensor:
    """`composed.dropout` as one node: saves `keep`, a byte per entry; dx = dropout(dy)."""
    keep = checks.dropout("dropout", x.shape, x, keep, p)
    kernels = backend.of(x.data)
    scale = 1 / (1 - p)

    def backward(dy: Array) -> tuple[Array]:
        return (kernels.dropout(dy, keep, scale),)

    return Tensor.from_op(kernels.dropout(x.data, keep, scale), (x,), backward)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`composed.linear` as one node: saves x and W; dx = dy Wᵀ, dW = xᵀ dy, db = Σ dy.

    The products treat all leading axes as one: dW and db are then sums over them. x and W are saved as the
    products take them: rounded, where `backend.default_matmul_precision` asks for it.
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
    has_bias = bias is not None
    rows = rows if weight.requires_grad else None  # saved for the gradients that are asked for
    w = w if x.requires_grad else None

    def backward(dy: Array) -> list[Array | None]:
        dy = dy.reshape(n, dy.shape[-1])  # (n, d_out)
        db = [kernels.sum_rows(dy)] if has_bias else []
        dy = kernels.rounded(dy, precision)
        dx = None if w is None else kernels.matmul(dy, w.T).reshape(x_shape)
        dw = None  # (d_in, d_out), in memory as W is: a tied table's two gradients are then added quickly
        if rows is not None:
            dw = kernels.matmul(rows.T, dy) if in_order else kernels.matmul(dy.T, rows).T
        return [dx, dw, *db]

    parents = (x, weight) if bias is None else (x, weight, bias)
    return Tensor.from_op(y.reshape(*x.shape[:-1], weight.shape[1]), parents, backward)


@checks.float16_in_float32
def cross_entropy(
    logits: Tensor,
    labels: Array,
    *,
    weight: Array | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """`composed.cross_entropy` as one node: saves the probabilities of the rows that count.

    The gradient of these rows is softmax(logits) minus 1 at the label, times dy and the row's share in the
    mean. Label smoothing adds the same for every class, in place of the label.
    """
    rows, classes, share, even = checks.cross_entropy(logits, labels, weight, ignore_index, label_smoothing)
    kernels = backend.of(logits.data)
    matrix = logits.data.reshape(-1, logits.shape[-1])  # (N, C)
    everything = len(rows) == len(matrix)
    counted = matrix if everything else matrix[rows]  # (n, C)
    probabilities, largest, log_total = kernels.softmax(counted)
    shape, matrix_shape = logits.shape, matrix.shape
    picked = kernels.xp.arange(len(rows))
    # Subtracted first: log_total would lose digits beside a large entry.
    below = largest[:, 0] - counted[picked, classes]
    loss = ((below + log_total[:, 0]) * share).sum()
    if even is not None:
        loss = loss + ((largest - counted) @ even + log_total[:, 0] * even.sum()).sum()

    def backward(dy: Array) -> tuple[Array]:
        of_even = None if even is None else dy * (probabilities * even.sum() - even)
        gradient = probabilities  # reused: nobody reads the probabilities after this
        gradient[picked, classes] -= 1
        gradient *= (dy * share)[:, None]
        if of_even is not None:
            gradient += of_even
        if everything:
            return (gradient.reshape(shape),)
        dx = kernels.xp.zeros(matrix_shape, gradient.dtype)
        dx[rows] = gradient
        return (dx.reshape(shape),)

    return Tensor.from_op(loss, (logits,), backward)


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Array | None = None, keep: Array | None = None, p: float = 0.0
) -> Tensor:
    """`composed.scaled_dot_product_attention` as one node: saves q, k, v and the weights A.

    With dA = dropout(dz Vᵀ) and dS = A (dA - Σ dA A): dQ = dS K / √d_k, dK = dSᵀ Q / √d_k, dV = dropout(A)ᵀ dz.
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


# --- Recurrent -------------------------------------------------------------------------------------------
# All steps are one node: then the gradients of W_hh and b_hh are one product and one sum over all steps, and that of
# x_part is one array. In each `backward`, dh is the gradient of the state after step t, and then of the one before it.


@checks.float16_in_float32
def rnn(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor, live: Array | None = None) -> Tensor:
    """`composed.rnn` as one node: saves all states; at each step, backwards, da = dh (1 - h'²) and dh = da W_hhᵀ."""
    live = checks.recurrent("rnn", 1, x_part, (h,), weight_hh, bias_hh, live)
    kernels = backend.of(x_part.data)
    xp = kernels.xp
    steps, n, d = x_part.shape
    weight = weight_hh.data
    states = xp.empty((steps + 1, n, d), x_part.dtype)  # before each step, and after the last
    states[0] = h.data
    xp.add(x_part.data, bias_hh.data, out=states[1:])  # what each state will be the tanh of, but for h W
    for t in range(steps):
        kernels.add_in_place(states[t + 1], kernels.matmul(states[t], weight))
        kernels.rnn_step(states[t], states[t + 1], live[t])

    def backward(dy: Array) -> tuple[Array, Array, Array, Array]:
        turned = xp.ascontiguousarray(weight.T)  # once, because every step's product reads it
        d_sums = xp.empty(dy.shape, dy.dtype)  # (L, n, d)
        dh = xp.zeros((n, d), dy.dtype)
        for t in reversed(range(steps)):
            dh += dy[t]
            kernels.rnn_step_backward(dh, d_sums[t], states[t + 1], live[t])
            dh += kernels.matmul(d_sums[t], turned)
        rows = d_sums.reshape(steps * n, d)
        dw = kernels.matmul(states[:-1].reshape(steps * n, d).T, rows)  # (d, d)
        return d_sums, dh, dw, kernels.sum_rows(rows)

    return Tensor.from_op(states[1:], (x_part, h, weight_hh, bias_hh), backward)


@checks.float16_in_float32
def gru(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor, live: Array | None = None) -> Tensor:
    """`composed.gru` as one node: saves all states, the gates, and h W_hh + b_hh.

    At each step, backwards, with da the gradient of x_part and dm that of h W_hh + b_hh, which are equal but for the
    candidate's part, dm_g = r da_g: dh = z dh + dm W_hhᵀ.
    """
    live = checks.recurrent("gru", 3, x_part, (h,), weight_hh, bias_hh, live)
    kernels = backend.of(x_part.data)
    xp = kernels.xp
    steps, n, width = x_part.shape
    d = width // 3
    weight = weight_hh.data
    states = xp.empty((steps + 1, n, d), x_part.dtype)  # before each step, and after the last
    states[0] = h.data
    gates = xp.array(x_part.data, order="C")  # (L, n, 3 d): of x, at first
    heard = xp.empty((steps, n, width), x_part.dtype)  # h W_hh + b_hh
    for t in range(steps):
        heard[t] = kernels.matmul(states[t], weight)
        kernels.add_bias(heard[t], bias_hh.data)
        kernels.gru_step(gates[t], heard[t], states[t], states[t + 1], live[t])

    def backward(dy: Array) -> tuple[Array, Array, Array, Array]:
        turned = xp.ascontiguousarray(weight.T)  # (3 d, d)
        dh = xp.zeros((n, d), dy.dtype)
        for t in reversed(range(steps)):  # gates and heard become their gradients
            dh += dy[t]
            kernels.gru_step_backward(dh, gates[t], heard[t], states[t], live[t])
            dh += kernels.matmul(heard[t], turned)
        rows = heard.reshape(steps * n, width)
        dw = kernels.matmul(states[:-1].reshape(steps * n, d).T, rows)  # (d, 3 d)
        return gates, dh, dw, kernels.sum_rows(rows)

    return Tensor.from_op(states[1:], (x_part, h, weight_hh, bias_hh), backward)


@checks.float16_in_float32
def lstm(
    x_part: Tensor, h: Tensor, c: Tensor, weight_hh: Tensor, bias_hh: Tensor, live: Array | None = None
) -> tuple[Tensor, Tensor]:
    """`composed.lstm` as one node, whose halves are h and c: saves all states, and the gates i, f, g and o.

    At each step, backwards: dc += dh o (1 - tanh² c'); da = (dc g σ'_i, dc c σ'_f, dc i (1 - g²), dh tanh(c') σ'_o)
    with σ' = σ (1 - σ); then dc = dc f and dh = da W_hhᵀ.
    """
    live = checks.recurrent("lstm", 4, x_part, (h, c), weight_hh, bias_hh, live)
    kernels = backend.of(x_part.data)
    xp = kernels.xp
    steps, n, width = x_part.shape
    d = width // 4
    weight = weight_hh.data
    states = xp.empty((2, steps + 1, n, d), x_part.dtype)  # h and c before each step, and after the last
    hs, cs = states
    hs[0], cs[0] = h.data, c.data
    gates = xp.empty((steps, n, width), x_part.dtype)
    xp.add(x_part.data, bias_hh.data, out=gates)
    for t in range(steps):
        kernels.add_in_place(gates[t], kernels.matmul(hs[t], weight))
        kernels.lstm_step(gates[t], hs[t], cs[t], hs[t + 1], cs[t + 1], live[t])

    def backward(dy: Array) -> tuple[Array, Array, Array, Array, Array]:
        turned = xp.ascontiguousarray(weight.T)  # (4 d, d)
        dh, dc = xp.zeros((2, n, d), dy.dtype)
        for t in reversed(range(steps)):  # the gates become the gradient of what they are the σ or tanh of
            dh += dy[0, t]
            dc += dy[1, t]
            kernels.lstm_step_backward(dh, dc, gates[t], cs[t], cs[t + 1], live[t])
            dh += kernels.matmul(gates[t], turned)
        rows = gates.reshape(steps * n, width)
        dw = kernels.matmul(hs[:-1].reshape(steps * n, d).T, rows)  # (d, 4 d)
        return gates, dh, dc, dw, kernels.sum_rows(rows)

    both = Tensor.from_op(states[:, 1:], (x_part, h, c, weight_hh, bias_hh), backward)
    return both[0], both[1]


def rnn_step(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor) -> Tensor:
    """`composed.rnn_step` as one node: `rnn` of one step."""
    checks.recurrent_step("rnn_step", 1, x_part, (h,), weight_hh, bias_hh)
    return shapes.squeeze(rnn(shapes.unsqueeze(x_part, 0), h, weight_hh, bias_hh), 0)


def gru_step(x_part: Tensor, h: Tensor, weight_hh: Tensor, bias_hh: Tensor) -> Tensor:
    """`composed.gru_step` as one node: `gru` of one step."""
    checks.recurrent_step("gru_step", 3, x_part, (h,), weight_hh, bias_hh)
    return shapes.squeeze(gru(shapes.unsqueeze(x_part, 0), h, weight_hh, bias_hh), 0)


def lstm_step(
    x_part: Tensor, h: Tensor, c: Tensor, weight_hh: Tensor, bias_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """`composed.lstm_step` as one node: `lstm` of one step."""
    checks.recurrent_step("lstm_step", 4, x_part, (h, c), weight_hh, bias_hh)
    h, c = lstm(shapes.unsqueeze(x_part, 0), h, c, weight_hh, bias_hh)
    return shapes.squeeze(h, 0), shapes.squeeze(c, 0)
