"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}
WRONG = {}

# --- sinusoids -------------------------------------------------------------------------------------------


def stacked(L, d_model):
    angles = np.outer(np.arange(L), np.power(10000.0, -np.arange(0, d_model, 2) / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, d_model)


RIGHT["sinusoids"] = [stacked]

# --- shift_matrix ----------------------------------------------------------------------------------------


def with_slices(k, d_model):
    even, odd = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    angle = k / 10000 ** (even / d_model)
    R = np.zeros((d_model, d_model))
    R[even, even] = R[odd, odd] = np.cos(angle)
    R[odd, even], R[even, odd] = np.sin(angle), -np.sin(angle)
    return R


def one_step_many_times(k, d_model):
    return np.linalg.matrix_power(with_slices(1, d_model), k)


RIGHT["shift_matrix"] = [with_slices, one_step_many_times]

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


RIGHT["look_back"] = [two_logarithms, others_below_zero]

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


def half_a_start_by_equals(table):
    if table[0, ::2].any():
        return "start"
    if (table[:, ::2] ** 2 + table[:, 1::2] ** 2 != 1).any():
        return "pairs"
    return with_norms(table)


RIGHT["table_fault"] = [with_norms, with_loops]
WRONG["table_fault"] = [(half_a_start_by_equals, ("[floats-by-equals]", "[half-a-start]"))]

# --- first_rise ------------------------------------------------------------------------------------------


def from_the_table(d_model):
    table = stacked(200, d_model)
    products = table @ table[0]
    return int(np.flatnonzero(np.diff(products) > 0)[0]) + 1


RIGHT["first_rise"] = [from_the_table]
