"""Answers to the exercises of chapter 6b as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RIGHT", "WRONG"]

# --- sinusoids -------------------------------------------------------------------------------------------


def entry_by_entry(L, d_model):
    out = np.zeros((L, d_model))
    for pos in range(L):
        for column in range(d_model):
            angle = pos / 10000 ** ((column - column % 2) / d_model)
            out[pos, column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return out


def stacked(L, d_model):
    angles = np.outer(np.arange(L), np.power(10000.0, -np.arange(0, d_model, 2) / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, d_model)


def with_exp(L, d_model):
    factor = np.exp(np.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    pe = np.zeros((L, d_model))
    pe[:, ::2] = np.sin(np.arange(L).reshape(-1, 1) * factor)
    pe[:, 1::2] = np.cos(np.arange(L).reshape(-1, 1) * factor)
    return pe


def by_complex_numbers(L, d_model):
    turn = np.exp(1j * np.arange(L)[:, None] * 10000.0 ** (-np.arange(0, d_model, 2) / d_model))
    out = np.empty((L, d_model))
    out[:, 0::2], out[:, 1::2] = turn.imag, turn.real
    return out


def concatenated(L, d_model):
    angles = np.outer(np.arange(L), 10000.0 ** (-np.arange(0, d_model, 2) / d_model))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def with_the_columns_number(L, d_model):
    out = np.zeros((L, d_model))
    for column in range(d_model):
        angle = np.arange(L) / 10000 ** (column / d_model)
        out[:, column] = np.cos(angle) if column % 2 else np.sin(angle)
    return out


def two_times_the_column(L, d_model):
    out = np.zeros((L, d_model))
    for i in range(0, d_model, 2):
        out[:, i] = np.sin(np.arange(L) / 10000 ** (2 * i / d_model))
        out[:, i + 1] = np.cos(np.arange(L) / 10000 ** (2 * i / d_model))
    return out


def from_one(L, d_model):
    return stacked(L + 1, d_model)[1:]


def swapped_two(L, d_model):
    out = stacked(L, d_model).copy()
    out[:, 0::2], out[:, 1::2] = out[:, 1::2].copy(), out[:, 0::2].copy()
    return out


def growing(L, d_model):
    angles = np.outer(np.arange(L), 10000.0 ** (np.arange(0, d_model, 2) / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, d_model)


def without_brackets(L, d_model):
    angles = np.arange(L)[:, None] / (10000.0 ** np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, d_model)


SINUSOIDS_RIGHT = [entry_by_entry, stacked, with_exp, by_complex_numbers]
SINUSOIDS_WRONG = [
    (concatenated, "All sines stand in the first half"),
    (with_the_columns_number, "The cosine has a frequency of its own"),
    (two_times_the_column, "The exponent is twice what it should be"),
    (from_one, "Your positions begin at 1"),
    (swapped_two, "Sine and cosine have changed places"),
    (growing, "The exponent has the wrong sign"),
    (without_brackets, "Brackets are missing"),
    (lambda L, d_model: stacked(L, d_model).T, "Positions run across"),
    (lambda L, d_model: stacked(L, d_model).astype(int), "everything after the decimal point is cut off"),
]

# --- shift_matrix ----------------------------------------------------------------------------------------


def with_kron(k, d_model):
    R = np.zeros((d_model, d_model))
    for n in range(d_model // 2):
        angle = k * 10000.0 ** (-2 * n / d_model)
        block = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        R += np.kron(np.diag(np.arange(d_model // 2) == n), block)
    return R


def with_slices(k, d_model):
    even, odd = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    angle = k / 10000 ** (even / d_model)
    R = np.zeros((d_model, d_model))
    R[even, even] = R[odd, odd] = np.cos(angle)
    R[odd, even], R[even, odd] = np.sin(angle), -np.sin(angle)
    return R


def one_step_many_times(k, d_model):
    return np.linalg.matrix_power(with_slices(1, d_model), k)


def for_columns(k, d_model):
    return with_slices(k, d_model).T


def of_one_step(k, d_model):
    return with_slices(1, d_model)


def without_minus(k, d_model):
    R = with_slices(k, d_model)
    even, odd = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    R[even, odd] = R[odd, even]
    return R


def diagonal_only(k, d_model):
    return np.diag(np.diag(with_slices(k, d_model)))


def in_halves(k, d_model):
    order = np.r_[0:d_model:2, 1:d_model:2]
    return with_slices(k, d_model)[order][:, order]


SHIFT_RIGHT = [with_kron, with_slices, one_step_many_times]
SHIFT_WRONG = [
    (for_columns, "where the vectors are columns"),
    (of_one_step, "k does not enter"),
    (without_minus, "A minus is missing"),
    (diagonal_only, "The blocks have only their diagonals"),
    (in_halves, "all sines in its first half"),
    (lambda k, d_model: np.eye(d_model, k=k), "Your matrix moves columns"),
    (lambda k, d_model: k * with_slices(1, d_model), "You multiply the matrix of one step by k"),
]

# --- look_back -------------------------------------------------------------------------------------------


def _spread(b, L):
    i = np.arange(L)
    E = np.exp(b[i - i[:, None] + L - 1])
    return E / E.sum(axis=1, keepdims=True)


def two_logarithms(L, share):
    b = np.zeros(2 * L - 1)
    b[L - 2] = math.log(share) - math.log((1 - share) / (L - 1))
    return _spread(b, L)


def others_below_zero(L, share):
    b = np.full(2 * L - 1, -math.log(share * (L - 1) / (1 - share)))
    b[L - 2] = 0
    return _spread(b, L)


def logs_of_the_shares(L, share):
    b = np.log(np.full(2 * L - 1, (1 - share) / (L - 1)))
    b[L - 2] = np.log(share)
    return _spread(b, L)


def odds_alone(L, share):
    b = np.zeros(2 * L - 1)
    b[L - 2] = np.log(share / (1 - share))
    return _spread(b, L)


def to_the_right(L, share):
    return _spread(np.roll(np.eye(1, 2 * L - 1)[0], L) * math.log(share / (1 - share) * (L - 1)), L)


def a_hundred(L, share):
    b = np.zeros(2 * L - 1)
    b[L - 2] = 100
    return _spread(b, L)


def all_in_the_row(L, share):
    b = np.zeros(2 * L - 1)
    b[L - 2] = np.log(share / ((1 - share) / L))
    return _spread(b, L)


def itself(L, share):
    b = np.zeros(2 * L - 1)
    b[L - 1] = np.log(share / ((1 - share) / (L - 1)))
    return _spread(b, L)


def others_shut_out(L, share):
    b = np.full(2 * L - 1, -np.inf)
    b[L - 2] = math.log(share)
    return _spread(b, L)


BACK_RIGHT = [two_logarithms, others_below_zero, logs_of_the_shares]
BACK_WRONG = [
    (odds_alone, "Your number forgets that"),
    (to_the_right, "Your bias looks at the token after"),
    (a_hundred, "A large number gives everything to the token before"),
    (all_in_the_row, "You count L other tokens"),
    (itself, "The distance 0 is the token itself"),
    (others_shut_out, "You shut the other tokens out"),
]

# --- table_fault -----------------------------------------------------------------------------------------


def _angles(L, d_model):
    return np.outer(np.arange(L), 10000.0 ** (-np.arange(0, d_model, 2) / d_model))


def with_norms(table):
    L, d_model = table.shape
    pairs = table.reshape(L, d_model // 2, 2)
    if np.abs(pairs[0] - [0, 1]).max() > 1e-6:
        return "start"
    if np.abs(np.linalg.norm(pairs, axis=-1) - 1).max() > 1e-6:
        return "pairs"
    gram = table @ table.T
    for k in range(L):
        if np.ptp(np.diagonal(gram, k)) > 1e-6:
            return "distance"
    if np.abs(table - stacked(L, d_model)).max() > 1e-6:
        return "frequencies"
    return "none"


def with_loops(table):
    L, d_model = table.shape
    if not np.allclose(table[0, ::2], 0) or not np.allclose(table[0, 1::2], 1):
        return "start"
    for row in table:
        for n in range(0, d_model, 2):
            if not math.isclose(row[n] ** 2 + row[n + 1] ** 2, 1, rel_tol=1e-9):
                return "pairs"
    for k in range(1, L):
        products = [table[i] @ table[i + k] for i in range(L - k)]
        if max(products) - min(products) > 1e-8:
            return "distance"
    angles = _angles(L, d_model)
    off = np.hypot(table[:, ::2] - np.sin(angles), table[:, 1::2] - np.cos(angles))
    return "frequencies" if off.max() > 1e-8 else "none"


def neighbours_alone(table):
    name = with_norms(table)
    if name != "distance":
        return name
    products = (table[:-1] * table[1:]).sum(axis=1)
    return "distance" if np.ptp(products) > 1e-6 else "frequencies"


def exactly(table):
    if (table[0, ::2] != 0).any() or (table[0, 1::2] != 1).any():
        return "start"
    if (table[:, ::2] ** 2 + table[:, 1::2] ** 2 != 1).any():
        return "pairs"
    return with_norms(table)


def start_forgotten(table):
    name = with_norms(table)
    if name != "start":
        return name
    pairs = table[:, ::2] ** 2 + table[:, 1::2] ** 2
    if not np.allclose(pairs, 1):
        return "pairs"
    gram = table @ table.T
    even = all(np.ptp(np.diag(gram, k)) < 1e-8 for k in range(len(gram)))
    return "frequencies" if even else "distance"


def row_one_alone(table):
    name = with_norms(table)
    if name != "frequencies":
        return name
    return "none" if np.allclose(table[1], stacked(2, table.shape[1])[1]) else name


def frequencies_forgotten(table):
    name = with_norms(table)
    return "none" if name == "frequencies" else name


FAULT_RIGHT = [with_norms, with_loops]
FAULT_WRONG = [
    (neighbours_alone, "You test only rows that lie one apart"),
    (exactly, "You compare floats with =="),
    (start_forgotten, "The test of the start is missing"),
    (row_one_alone, "looks at row 1 alone"),
    (frequencies_forgotten, "The test of the frequencies is missing"),
]

# --- first_rise ------------------------------------------------------------------------------------------


def from_the_table(d_model):
    table = stacked(200, d_model)
    products = table @ table[0]
    return int(np.flatnonzero(np.diff(products) > 0)[0]) + 1


def in_a_loop(d_model):
    before, k = d_model / 2, 0
    while True:
        k += 1
        now = sum(math.cos(k * 10000 ** (-2 * n / d_model)) for n in range(d_model // 2))
        if now > before:
            return k
        before = now


def one_too_early(d_model):
    return in_a_loop(d_model) - 1


def least_alike(d_model):
    table = stacked(512, d_model)
    return int((table @ table[0]).argmin())


def always_bert(d_model):
    return 44


def one_too_late(d_model):
    return in_a_loop(d_model) + 1


RISE_RIGHT = [from_the_table, in_a_loop]
RISE_WRONG = [
    (one_too_early, "You return the last distance on the way down"),
    (least_alike, "least alike among the first 512"),
    (always_bert, "The answer depends on d_model"),
    (one_too_late, "You return the distance after the rise"),
]

RIGHT = {
    "sinusoids": SINUSOIDS_RIGHT,
    "shift_matrix": SHIFT_RIGHT,
    "look_back": BACK_RIGHT,
    "table_fault": FAULT_RIGHT,
    "first_rise": RISE_RIGHT,
}
WRONG = {
    "sinusoids": SINUSOIDS_WRONG,
    "shift_matrix": SHIFT_WRONG,
    "look_back": BACK_WRONG,
    "table_fault": FAULT_WRONG,
    "first_rise": RISE_WRONG,
}
