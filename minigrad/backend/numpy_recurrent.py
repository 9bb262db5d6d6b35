"""The CPU's loops of recurrent networks: what a step does between its matrix products, forwards and backwards.

Part of the backend in `numpy.py`, which passes these names on. As there, a loop is a function that says what it does,
and below it the formula for a block of rows. Each loop writes into arrays that the operation has made once for all
steps, because a step is short and each new array costs time.

live (n,) of booleans, or None: where it is false, a row keeps its state, and no gradient reaches the step.
"""

from __future__ import annotations

import functools

import numpy as xp

from minigrad.backend.threads import in_blocks

__all__ = [
    "gru_step",
    "gru_step_backward",
    "lstm_step",
    "lstm_step_backward",
    "rnn_step",
    "rnn_step_backward",
]

Array = xp.ndarray


def _sigmoid(x: Array) -> None:
    """σ(x) = (1 + tanh(x / 2)) / 2, in place: no exponential overflows."""
    x *= 0.5
    xp.tanh(x, out=x)
    x += 1
    x *= 0.5


def _slope_of_sigmoid(gate: Array) -> Array:
    """σ' = σ (1 - σ)."""
    slope = 1 - gate
    slope *= gate
    return slope


def _slope_of_tanh(y: Array) -> Array:
    """tanh' = 1 - tanh²."""
    slope = xp.square(y)
    return xp.subtract(1, slope, out=slope)


def _side_by_side(gates: Array, d: int) -> list[Array]:
    """The gates of (n, G d), as views (n, d)."""
    return [gates[:, start : start + d] for start in range(0, gates.shape[1], d)]


def _ended(live: Array | None) -> Array | bool:
    """Where rows keep their state, (n, 1), for `where=`; False if nowhere."""
    return False if live is None else ~live[:, None]


# --- RNN -------------------------------------------------------------------------------------------------


def rnn_step(h: Array, h_new: Array, live: Array | None) -> None:
    """h_new (n, d): on entry x_part + h W + b, on return its tanh; h (n, d) is the state before."""
    in_blocks(rnn_step_block, h, h_new, live)


def rnn_step_block(h, h_new, live):
    xp.tanh(h_new, out=h_new)
    xp.copyto(h_new, h, where=_ended(live))


def rnn_step_backward(dh: Array, d_sum: Array, h_new: Array, live: Array | None) -> None:
    """From dh (n, d), the gradient of h_new, to d_sum (n, d), that of what tanh was taken of.

    dh: on return what reaches h beside the product, 0 but in rows that have ended.
    """
    in_blocks(rnn_step_backward_block, dh, d_sum, h_new, live)


def rnn_step_backward_block(dh, d_sum, h_new, live):
    ended = _ended(live)
    xp.multiply(dh, _slope_of_tanh(h_new), out=d_sum)
    xp.copyto(d_sum, 0, where=ended)
    xp.copyto(dh, 0, where=~ended if live is not None else True)


# --- GRU -------------------------------------------------------------------------------------------------


def gru_step(gates: Array, heard: Array, h: Array, h_new: Array, live: Array | None) -> None:
    """gates (n, 3 d): on entry x_part, on return r, z and g; heard (n, 3 d): h W + b; h (n, d) -> h_new (n, d)."""
    in_blocks(gru_step_block, gates, heard, h, h_new, live)


def gru_step_block(gates, heard, h, h_new, live):
    d = h.shape[1]
    r, z, g = _side_by_side(gates, d)
    r_and_z = gates[:, : 2 * d]
    r_and_z += heard[:, : 2 * d]
    _sigmoid(r_and_z)
    g += r * heard[:, 2 * d :]
    xp.tanh(g, out=g)
    xp.subtract(h, g, out=h_new)  # (1 - z) g + z h = g + z (h - g)
    h_new *= z
    h_new += g
    xp.copyto(h_new, h, where=_ended(live))


def gru_step_backward(dh: Array, gates: Array, heard: Array, h: Array, live: Array | None) -> None:
    """From dh (n, d), the gradient of h_new, to those of `gru_step`'s inputs, each in the place of what was saved.

    gates: on entry r, z and g, on return the gradient of x_part; heard: that of h W + b. dh: on return what reaches
    h beside the product.
    """
    in_blocks(gru_step_backward_block, dh, gates, heard, h, live)


def gru_step_backward_block(dh, gates, heard, h, live):
    d = h.shape[1]
    r, z, g = _side_by_side(gates, d)
    of_r, of_z, of_g = _side_by_side(heard, d)
    ended = _ended(live)
    past = xp.where(ended, dh, dh * z)
    d_z = dh * (h - g)
    d_z *= _slope_of_sigmoid(z)
    d_g = 1 - z
    d_g *= dh
    d_g *= _slope_of_tanh(g)
    d_r = d_g * of_g
    d_r *= _slope_of_sigmoid(r)
    xp.multiply(d_g, r, out=of_g)
    r[:], z[:], g[:] = d_r, d_z, d_g
    of_r[:], of_z[:] = d_r, d_z
    xp.copyto(gates, 0, where=ended)
    xp.copyto(heard, 0, where=ended)
    dh[:] = past


# --- LSTM ------------------------------------------------------------------------------------------------


def lstm_step(gates: Array, h: Array, c: Array, h_new: Array, c_new: Array, live: Array | None) -> None:
    """gates (n, 4 d): on entry x_part + h W + b, on return i, f, g and o; h and c (n, d) -> h_new and c_new (n, d)."""
    in_blocks(lstm_step_block, gates, h, c, h_new, c_new, live)


def lstm_step_block(gates, h, c, h_new, c_new, live):
    d = h.shape[1]
    i, f, g, o = _side_by_side(gates, d)
    half, shift = _of_sigmoids(d, gates.dtype)
    gates *= half  # σ(x) = tanh(x / 2) / 2 + 1/2: one tanh for all gates
    xp.tanh(gates, out=gates)
    gates *= half
    gates += shift
    xp.multiply(f, c, out=c_new)
    c_new += i * g
    xp.tanh(c_new, out=h_new)
    h_new *= o
    if live is not None:
        ended = _ended(live)
        xp.copyto(c_new, c, where=ended)
        xp.copyto(h_new, h, where=ended)


@functools.lru_cache
def _of_sigmoids(d: int, dtype: xp.dtype) -> tuple[Array, Array]:
    """What the gates i, f, g and o, (4 d,), are multiplied by around a tanh, and what is added: g stays as it is."""
    half, shift = xp.full((4, d), 0.5, dtype), xp.full((4, d), 0.5, dtype)
    half[2], shift[2] = 1, 0
    return half.reshape(-1), shift.reshape(-1)


def lstm_step_backward(
    dh: Array, dc: Array, gates: Array, c: Array, c_new: Array, live: Array | None
) -> None:
    """From dh and dc (n, d), the gradients of h_new and c_new, to those of `lstm_step`'s inputs, in place.

    gates: on entry i, f, g and o, on return the gradient of x_part + h W + b. dc: on return that of c; dh: what reaches
    h beside the product, 0 but in rows that have ended.
    """
    in_blocks(lstm_step_backward_block, dh, dc, gates, c, c_new, live)


def lstm_step_backward_block(dh, dc, gates, c, c_new, live):
    if live is not None:
        before = dh.copy(), dc.copy()
    d = c.shape[1]
    i, f, g, o = _side_by_side(gates, d)
    slopes = _slope_of_sigmoid(gates)
    slope_of_g = slopes[:, 2 * d : 3 * d]
    xp.square(g, out=slope_of_g)
    xp.subtract(1, slope_of_g, out=slope_of_g)
    tanh_c = xp.tanh(c_new)
    through_h = dh * o
    through_h *= _slope_of_tanh(tanh_c)
    dc += through_h  # the whole gradient of c_new
    outer = xp.empty_like(gates)
    for factor, other, out in zip((dc, dc, dc, dh), (g, c, i, tanh_c), _side_by_side(outer, d), strict=True):
        xp.multiply(factor, other, out=out)
    dc *= f
    dh[:] = 0
    xp.multiply(outer, slopes, out=gates)
    if live is not None:
        ended = _ended(live)
        xp.copyto(gates, 0, where=ended)
        for now, past in zip((dh, dc), before, strict=True):
            xp.copyto(now, past, where=ended)
