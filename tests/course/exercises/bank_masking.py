"""Answers to the exercises of `masking` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import numpy as np

from minigrad import Tensor

RIGHT = {}
WRONG = {}


def soft(x):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


# --- padding_mask ----------------------------------------------------------------------------------------


def one_minus(attention_mask, dtype):
    hidden = (1 - attention_mask).astype(dtype) * np.finfo(dtype).min
    return Tensor(hidden).reshape(len(attention_mask), 1, 1, -1)


def with_expand_dims(attention_mask, dtype):
    low = np.array(np.finfo(dtype).min, dtype)
    return Tensor(np.expand_dims(np.where(attention_mask.astype(bool), low * 0, low), (1, 2)))


def always_float64(attention_mask, dtype):
    return Tensor(np.where(attention_mask == 1, 0.0, float(np.finfo(dtype).min))[:, None, None, :])


def an_array(attention_mask, dtype):
    return one_minus(attention_mask, dtype).numpy()


def a_parameter(attention_mask, dtype):
    return Tensor(an_array(attention_mask, dtype), requires_grad=True)


RIGHT["padding_mask"] = [one_minus, with_expand_dims]
WRONG["padding_mask"] = [
    (always_float64, "float64"),
    (an_array, "should return a Tensor"),
    (a_parameter, "a Tensor that wants a gradient"),
]

# --- masked_gradient -------------------------------------------------------------------------------------


def with_infinity(S, allowed, dA):
    A = np.nan_to_num(soft(np.where(allowed, S, -np.inf)))
    return A * (dA - np.einsum("ij,ij->i", A, dA)[:, None])


RIGHT["masked_gradient"] = [with_infinity]

# --- who_sees --------------------------------------------------------------------------------------------


def pair_by_pair(documents, prefix, window):
    L = len(documents)
    out = np.zeros((L, L), bool)
    for i in range(L):
        for j in range(L):
            if documents[i] != documents[j] or documents[j] == 0:
                continue
            if (j <= i or j < prefix) and abs(i - j) <= window:
                out[i, j] = True
    return out


RIGHT["who_sees"] = [pair_by_pair]

# --- leaks_and_losses ------------------------------------------------------------------------------------


def drawn_anew(head, allowed):
    n, m = allowed.shape
    rng = np.random.default_rng(11)
    Q, K, V = (rng.normal(size=(length, 5)) for length in (n, m, m))
    z, leaks, losses = head(Q, K, V), 0, 0
    for j in range(m):
        K_j, V_j = np.array(K), np.array(V)
        K_j[j], V_j[j] = rng.normal(size=(2, 5))
        moved = np.any(head(Q, K_j, V_j) != z, axis=1)
        for i in range(n):
            leaks += bool(moved[i] and not allowed[i, j])
            losses += bool(allowed[i, j] and not moved[i])
    return leaks, losses


def with_both_in_turn(head, allowed):
    n, m = allowed.shape
    Q, K, V = np.random.default_rng(2).standard_normal((3, max(n, m), 6))
    Q, K, V = Q[:n], K[:m], V[:m]
    seen = np.zeros((n, m), bool)
    unit = np.eye(m)[:, :, None]
    for j in range(m):
        seen[:, j] |= (head(Q, K + unit[j], V) != head(Q, K, V)).any(1)
        seen[:, j] |= (head(Q, K, V + unit[j]) != head(Q, K, V)).any(1)
    return np.sum(seen > allowed), np.sum(seen < allowed)


RIGHT["leaks_and_losses"] = [drawn_anew, with_both_in_turn]

# --- leaked_share ----------------------------------------------------------------------------------------


def summed(variance):
    t = (np.arange(20_000) + 0.5) / 20_000
    return np.mean((1 - t) / (1 - t + t * np.exp(variance / 2)))


RIGHT["leaked_share"] = [summed]
