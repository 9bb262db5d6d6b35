"""Answers to the exercises of chapter 18 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]


def s(z):
    return 0.5 * (1 + np.tanh(z / 2))


# --- lstm_cell -------------------------------------------------------------------------------------------


def with_slices(x, h, c, W_x, W_h, b):
    H = c.shape[1]
    z = np.concatenate([x, h], axis=1) @ np.concatenate([W_x, W_h]) + b
    new = s(z[:, H : 2 * H]) * c + s(z[:, :H]) * np.tanh(z[:, 2 * H : 3 * H])
    return s(z[:, 3 * H :]) * np.tanh(new), new


def row_by_row(x, h, c, W_x, W_h, b):
    hs, cs = [], []
    for row in range(len(x)):
        i, f, g, o = (x[row] @ W_x + h[row] @ W_h + b).reshape(4, -1)
        cs.append(s(f) * c[row] + s(i) * np.tanh(g))
        hs.append(s(o) * np.tanh(cs[-1]))
    return np.array(hs), np.array(cs)


def by_the_engine(x, h, c, W_x, W_h, b):
    given = [Tensor(a, dtype=a.dtype) for a in (x @ W_x, h, c, W_h, b)]
    return tuple(part.numpy() for part in ops.lstm_step(*given))


def keras_order(x, h, c, W_x, W_h, b):
    z = x @ W_x + h @ W_h + b
    f, i, g, o = np.split(z, 4, 1)
    new = s(f) * c + s(i) * np.tanh(g)
    return s(o) * np.tanh(new), new


def all_gates(x, h, c, W_x, W_h, b):
    i, f, g, o = np.split(s(x @ W_x + h @ W_h + b), 4, -1)
    new = f * c + i * g
    return o * np.tanh(new), new


def of_1997(x, h, c, W_x, W_h, b):
    i, _, g, o = np.split(x @ W_x + h @ W_h + b, 4, -1)
    new = c + s(i) * np.tanh(g)
    return s(o) * np.tanh(new), new


def old_cell_shown(x, h, c, W_x, W_h, b):
    i, f, g, o = np.split(x @ W_x + h @ W_h + b, 4, -1)
    return s(o) * np.tanh(c), s(f) * c + s(i) * np.tanh(g)


def no_second_tanh(x, h, c, W_x, W_h, b):
    i, f, g, o = np.split(x @ W_x + h @ W_h + b, 4, -1)
    new = s(f) * c + s(i) * np.tanh(g)
    return s(o) * new, new


def cell_first(x, h, c, W_x, W_h, b):
    return with_slices(x, h, c, W_x, W_h, b)[::-1]


def coupled(x, h, c, W_x, W_h, b):
    _, f, g, o = np.split(x @ W_x + h @ W_h + b, 4, -1)
    new = s(f) * c + (1 - s(f)) * np.tanh(g)
    return s(o) * np.tanh(new), new


def logistic_shown(x, h, c, W_x, W_h, b):
    _, new = with_slices(x, h, c, W_x, W_h, b)
    return s((x @ W_x + h @ W_h + b)[:, 3 * c.shape[1] :]) * s(new), new


def squashed_cell(x, h, c, W_x, W_h, b):
    shown, new = with_slices(x, h, c, W_x, W_h, b)
    return shown, np.tanh(new)


def interleaved(x, h, c, W_x, W_h, b):
    z = x @ W_x + h @ W_h + b
    new = s(z[:, 1::4]) * c + s(z[:, 0::4]) * np.tanh(z[:, 2::4])
    return s(z[:, 3::4]) * np.tanh(new), new


# --- linear_through_time ---------------------------------------------------------------------------------


def with_powers(X, W, dh):
    T = len(X)
    h = [sum((X[s] @ np.linalg.matrix_power(W, t - s) for s in range(t + 1)), 0 * dh) for t in range(T)]
    dX = np.array([dh @ np.linalg.matrix_power(W.T, T - 1 - t) for t in range(T)])
    return dX, sum((np.outer(h[t - 1], dX[t]) for t in range(1, T)), np.zeros_like(W))


def by_autograd(X, W, dh):
    rows = [Tensor(x[None], requires_grad=True, dtype=x.dtype) for x in X]
    weight = Tensor(W, requires_grad=True, dtype=W.dtype)
    h = rows[0]
    for row in rows[1:]:
        h = row + h @ weight
    h.backward(dh[None])
    dW = np.zeros_like(W) if weight.grad is None else weight.grad
    return np.concatenate([row.grad for row in rows]), dW


def in_one_product(X, W, dh):
    h, states, d = 0 * dh, [], []
    for x in X:
        states.append(h)
        h = x + h @ W
    for _ in X:
        d.insert(0, dh)
        dh = W @ dh
    return np.array(d), np.array(states).T @ np.array(d)


def not_transposed(X, W, dh):
    h, states, d = 0 * dh, [], []
    for x in X:
        states.append(h)
        h = x + h @ W
    for _ in X:
        d.insert(0, dh)
        dh = dh @ W
    return np.array(d), np.array(states).T @ np.array(d)


def outer_transposed(X, W, dh):
    dX, dW = in_one_product(X, W, dh)
    return dX, dW.T


def of_the_inputs(X, W, dh):
    dX, _ = in_one_product(X, W, dh)
    return dX, X.T @ dX


def last_term_only(X, W, dh):
    dX, _ = in_one_product(X, W, dh)
    return dX, 0 * W


def forwards(X, W, dh):
    h, d, dW = 0 * dh, [], 0 * W
    for x in X:
        d.append(dh)
        dW = dW + np.outer(h, dh)
        h, dh = x + h @ W, W @ dh
    return np.array(d), dW


def no_jacobian(X, W, dh):
    h, states = 0 * dh, []
    for x in X:
        states.append(h)
        h = x + h @ W
    d = np.tile(dh, (len(X), 1))
    return d, np.array(states).T @ d


# --- hold_a_bit ------------------------------------------------------------------------------------------


def input_always_open(run):
    return run([-30, -30, -30, 0], 12, [0, 0, 0, 0], 12, [8, -8, 0, 0], 0)


def no_biases(run):
    return run([-9, -9, -9, 9], 0, [9, 9, -9, -9], 0, [5, -5, 0, 0], 0)


def open_at_other_words(run):
    return run(np.array([-15.0, -15, -15, 15]), 0.0, [9, 9, 9, -9], 0, np.array([4.0, -4, 0, 3]), 0)


def adds_up(run):
    return run([0, 0, -20, 0], 10, [20, 20, 0, 0], -10, [10, -10, 0, 0], 0)


def never_emptied(run):
    return run([-20, -20, 0, 0], 10, [20, 20, 0, 0], -10, [10, -10, 0, 0], 0)


def jozefowicz(run):
    return run([-20, -20, -20, 0], 1, [20, 20, 0, 0], -10, [10, -10, 0, 0], 0)


def upside_down(run):
    return run([20, 20, 20, 0], -10, [20, 20, 0, 0], -10, [10, -10, 0, 0], 0)


def five_is_not_enough(run):
    return run([-25, -25, -25, 0], 5, [20, 20, 0, 0], -10, [10, -10, 0, 0], 0)


def many_positive(run):
    return run([-20, -20, -20, 0], 10, [20, 20, 0, 0], -10, [-10, 10, 0, 0], 0)


def ones_and_zeros(run):
    return run([-20, -20, -20, 0], 10, [20, 20, 0, 0], -10, [1, -1, 0, 0], 0)


# --- decoder_fault --------------------------------------------------------------------------------------------


def cell(model, word, h, c):
    i, f, g, o = np.split(model.table[word] @ model.W_x + h @ model.W_h + model.b, 4)
    c = s(f) * c + s(i) * np.tanh(g)
    return s(o) * np.tanh(c), c


def close(one, other):
    return all(np.abs(a - b).max() < 1e-9 for a, b in zip(one, other, strict=True))


def other_words(model):
    zero = np.zeros((2, len(model.W_h)))
    if model.labels([9])[-1] != 3:
        return "no end token"
    if model.fed([9, 3]).tolist() != [2, 9]:
        return "not shifted"
    h = cell(model, 9, *zero)
    if not close(h, model.encode([9], [1])):
        return "gates in another order"
    if not close(h, model.encode([9, 0], [1, 0])):
        return "padding is read"
    return "none" if close(model.step(h, 4)[1], cell(model, 4, *h)) else "state not carried"


def from_the_end(model):
    found = "none"
    state = model.encode([4, 7, 8], np.ones(3))
    if not close(model.step(state, 10)[1], cell(model, 10, *state)):
        found = "state not carried"
    if not close(state, model.encode([4, 7, 8, 0, 0], [1, 1, 1, 0, 0])):
        found = "padding is read"
    own = np.zeros((2, len(model.b) // 4))
    for word in (4, 7, 8):
        own = cell(model, word, *own)
    if not close(own, state):
        found = "gates in another order"
    if list(model.fed([6, 4, 3])) != [2, 6, 4]:
        found = "not shifted"
    if 3 not in model.labels([6, 4]):
        found = "no end token"
    return found


def without_the_end(model):
    found = other_words(model)
    return "none" if found == "no end token" else found


def without_the_shift(model):
    found = other_words(model)
    return "none" if found == "not shifted" else found


def without_the_padding(model):
    found = other_words(model)
    return "none" if found == "padding is read" else found


def without_the_gates(model):
    found = other_words(model)
    return "none" if found == "gates in another order" else found


def moves_at_all(model):
    found = other_words(model)
    if found != "state not carried":
        return found
    state = model.encode([9], [1])
    return found if close(state, model.step(state, 4)[1]) else "none"


def same_as_labels(model):
    found = other_words(model)
    if found == "not shifted" and list(model.fed([9, 3])) != [9, 3]:
        return "none"
    return found


# --- forget_bias -----------------------------------------------------------------------------------------


def by_logarithms(share, distance):
    log_f = math.log(share) / distance
    return log_f - math.log(-math.expm1(log_f))


def by_search(share, distance):
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if s(middle) ** distance < share else (low, middle)
    return low


def with_numpy(share, distance):
    f = np.exp(np.log(share) / distance)
    return float(-np.log(1 / f - 1))


def the_gate(share, distance):
    return share ** (1 / distance)


def negative(share, distance):
    return -with_numpy(share, distance)


def a_share_each_step(share, distance):
    f = 1 - (1 - share) / distance
    return math.log(f) - math.log(1 - f)


def logit_of_the_share(share, distance):
    return math.log(share / (1 - share)) / distance


def log_of_the_gate(share, distance):
    return math.log(share) / distance


def arctanh(share, distance):
    return np.arctanh(share ** (1 / distance))


RIGHT = {
    "lstm_cell": [with_slices, row_by_row, by_the_engine],
    "linear_through_time": [with_powers, by_autograd, in_one_product],
    "hold_a_bit": [input_always_open, no_biases, open_at_other_words],
    "decoder_fault": [other_words, from_the_end],
    "forget_bias": [by_logarithms, by_search, with_numpy],
}
WRONG = {
    "lstm_cell": [
        (keras_order, "Your columns are in another order"),
        (all_gates, "g goes through the logistic function"),
        (of_1997, "There is no forget gate"),
        (old_cell_shown, "The state shows the old cell"),
        (no_second_tanh, "The new state lacks a tanh"),
        (cell_first, "You return the cell first"),
        (logistic_shown, "The new cell goes through the logistic function"),
        (squashed_cell, "You carry the tanh of the cell on"),
        (interleaved, "Your gates take every fourth column"),
        (coupled, "You write with 1 - f"),
    ],
    "linear_through_time": [
        (not_transposed, "You go back through W"),
        (outer_transposed, "Your terms of dW are transposed"),
        (of_the_inputs, "You multiply dh by x_t"),
        (last_term_only, "You keep one step's term"),
        (forwards, "You go forwards in time"),
        (no_jacobian, "Each step back needs its Jacobian"),
    ],
    "hold_a_bit": [
        (adds_up, "A second count is added"),
        (never_emptied, "The full stop does not empty the cell"),
        (jozefowicz, "The cell fades from word to word"),
        (five_is_not_enough, "The cell fades from word to word"),
        (upside_down, "Your forget gate is the other way round"),
        (many_positive, "The cell must be positive after few"),
        (ones_and_zeros, "Your candidate is too small"),
    ],
    "decoder_fault": [
        (without_the_end, "lack the end token"),
        (without_the_shift, "is fed the wrong words"),
        (without_the_padding, "A model that reads padding"),
        (without_the_gates, "gates in another order passes your tests"),
        (moves_at_all, "You only ask whether a step changes the state"),
        (same_as_labels, "You look only at whether what is fed differs"),
    ],
    "forget_bias": [
        (the_gate, "You return the gate"),
        (negative, "The sign of the bias is wrong"),
        (a_share_each_step, "an equal amount at each step"),
        (logit_of_the_share, "the inverse of the logistic function of the share"),
        (log_of_the_gate, "You return the logarithm of the gate"),
        (arctanh, "You take the inverse of tanh"),
    ],
}
