"""Answers to the exercises of chapter 9 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]


def soft(x):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


# --- padding_mask ----------------------------------------------------------------------------------------


def filled(attention_mask, dtype):
    B, L = attention_mask.shape
    mask = np.zeros((B, 1, 1, L), dtype=dtype)
    mask[attention_mask[:, None, None, :] == 0] = np.finfo(dtype).min
    return mask


def one_minus(attention_mask, dtype):
    return ((1 - attention_mask).astype(dtype) * np.finfo(dtype).min).reshape(len(attention_mask), 1, 1, -1)


def with_expand_dims(attention_mask, dtype):
    low = np.array(np.finfo(dtype).min, dtype)
    return np.expand_dims(np.where(attention_mask.astype(bool), low * 0, low), (1, 2))


def loops(attention_mask, dtype):
    out = np.empty((len(attention_mask), 1, 1, len(attention_mask[0])), dtype)
    for text, row in enumerate(attention_mask):
        for place, is_token in enumerate(row):
            out[text, 0, 0, place] = 0 if is_token else np.finfo(dtype).min
    return out


def as_released(attention_mask, dtype):
    return ((1.0 - attention_mask[:, None, None, :]) * -10000.0).astype(dtype)


def minus_infinity(attention_mask, dtype):
    mask = np.zeros(attention_mask.shape, dtype)
    mask[attention_mask == 0] = -math.inf
    return mask[:, None, None]


def for_the_queries(attention_mask, dtype):
    return np.where(attention_mask[:, None, :, None], 0, np.finfo(dtype).min).astype(dtype)


def two_axes(attention_mask, dtype):
    return np.where(attention_mask, 0, np.finfo(dtype).min).astype(dtype)


def shown_and_hidden(attention_mask, dtype):
    return np.where(attention_mask, np.finfo(dtype).min, 0).astype(dtype)[:, np.newaxis, np.newaxis]


def always_float64(attention_mask, dtype):
    return np.where(attention_mask == 1, 0.0, float(np.finfo(dtype).min))[:, None, None, :]


def to_multiply(attention_mask, dtype):
    return attention_mask[:, None, None, :].astype(dtype)


def a_square(attention_mask, dtype):
    B, L = attention_mask.shape
    return np.broadcast_to(filled(attention_mask, dtype), (B, 1, L, L)).copy()


PADDING_RIGHT = [filled, one_minus, with_expand_dims, loops]
PADDING_WRONG = [
    (as_released, "That is not low enough for a row that may see nothing"),
    (minus_infinity, "You add -∞"),
    (for_the_queries, "Your mask lies along the queries"),
    (two_axes, "The shape lacks an axis"),
    (shown_and_hidden, "Your mask hides the tokens and shows the padding"),
    (always_float64, "float64"),
    (to_multiply, "The mask is added to the scores"),
    (a_square, "You repeat the mask for every query"),
]

# --- masked_gradient -------------------------------------------------------------------------------------


def row_by_row(S, allowed, dA):
    dS = np.zeros_like(S)
    for i, may in enumerate(allowed):
        if may.any():
            a = soft(S[i, may])
            dS[i, may] = (np.diag(a) - np.outer(a, a)) @ dA[i, may]
    return dS


def with_infinity(S, allowed, dA):
    A = np.nan_to_num(soft(np.where(allowed, S, -np.inf)))
    return A * (dA - np.einsum("ij,ij->i", A, dA)[:, None])


def by_the_engine(S, allowed, dA):
    low = np.where(allowed, 0, np.finfo(S.dtype).min).astype(S.dtype)
    scores = Tensor(S, requires_grad=True, dtype=S.dtype)
    ops.composed.softmax(scores + Tensor(low, dtype=S.dtype)).backward(dA)
    return scores.grad * allowed.any(axis=1, keepdims=True)


def powers_of_the_visible(S, allowed, dA):
    top = np.max(np.where(allowed, S, S.min()), axis=1, keepdims=True)
    E = np.exp(np.minimum(S - top, 0)) * allowed
    A = E / np.maximum(E.sum(axis=1, keepdims=True), 1e-30)
    return A * dA - A * (A * dA).sum(axis=1, keepdims=True)


def engine_without_a_thought(S, allowed, dA):
    A = soft(S + np.where(allowed, 0, np.finfo(S.dtype).min).astype(S.dtype))
    return A * (dA - (A * dA).sum(axis=1, keepdims=True))


def ten_thousand(S, allowed, dA):
    A = soft(S - (1 - allowed.astype(S.dtype)) * 10_000)
    return A * (dA - (A * dA).sum(axis=1, keepdims=True))


def backward_mask(S, allowed, dA):
    A = soft(S)
    dS = A * (dA - (A * dA).sum(-1, keepdims=True))
    dS[~allowed] = 0
    return dS


def nan_row(S, allowed, dA):
    A = soft(np.where(allowed, S, -np.inf))
    return A * (dA - (A * dA).sum(-1, keepdims=True))


def dropped(S, allowed, dA):
    A = soft(S) * allowed
    return A * (dA - (A * dA).sum(-1, keepdims=True))


def times_zero(S, allowed, dA):
    A = soft(S * allowed)
    return np.where(allowed, A * (dA - np.sum(A * dA, 1)[:, None]), 0.0)


def diagonal(S, allowed, dA):
    A = soft(np.where(allowed, S, -1e30))
    return np.where(allowed, A * (1 - A) * dA, 0)


GRADIENT_RIGHT = [row_by_row, with_infinity, by_the_engine, powers_of_the_visible]
GRADIENT_WRONG = [
    (engine_without_a_thought, "In a row that may see nothing the rule"),
    (ten_thousand, "Your number is not low enough for a row that may see nothing"),
    (backward_mask, "You hide the gradient and not the keys"),
    (nan_row, "comes out as NaN"),
    (dropped, "You set weights to 0 after the softmax"),
    (times_zero, "The hidden scores are set to 0"),
    (diagonal, "That is the backward of a sigmoid"),
]

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


def with_tri(documents, prefix, window):
    L = len(documents)
    order = np.tri(L, dtype=bool)
    order[:, :prefix] = True
    band = np.tri(L, L, window, dtype=bool) & np.tri(L, L, window, dtype=bool).T
    return np.equal.outer(documents, documents) & (documents > 0) & order & band


def in_numbers(documents, prefix, window):
    return pair_by_pair(documents, prefix, window).astype(int)


def documents_forgotten(documents, prefix, window):
    i, j = np.indices((len(documents), len(documents)))
    return ((j <= i) | (j < prefix)) & (abs(i - j) <= window) & (documents[j] != 0)


def padding_forgotten(documents, prefix, window):
    i, j = np.indices((len(documents), len(documents)))
    return ((j <= i) | (j < prefix)) & (abs(i - j) <= window) & (documents[i] == documents[j])


def upper(documents, prefix, window):
    i, j = np.indices((len(documents), len(documents)))
    good = (documents[i] == documents[j]) & (documents[j] > 0)
    return ((i <= j) | (j < prefix)) & (abs(i - j) <= window) & good


def rows_of_the_prefix(documents, prefix, window):
    order = np.tri(len(documents), dtype=bool)
    order[:prefix] = True
    i, j = np.indices(order.shape)
    return order & (abs(i - j) <= window) & (documents[i] == documents[j]) & (documents[j] > 0)


def looks_back_only_so_far(documents, prefix, window):
    i, j = np.indices((len(documents), len(documents)))
    good = (documents[i] == documents[j]) & (documents[j] > 0)
    return ((j <= i) | (j < prefix)) & (i - j <= window) & good


def transposed(documents, prefix, window):
    return pair_by_pair(documents, prefix, window).T


def prefix_of_each_document(documents, prefix, window):
    i, j = np.indices((len(documents), len(documents)))
    first = np.array([np.argmax(documents == d) for d in documents])
    good = (documents[i] == documents[j]) & (documents[j] > 0)
    return ((j <= i) | (j - first[j] < prefix)) & (abs(i - j) <= window) & good


SEES_RIGHT = [pair_by_pair, with_tri, in_numbers]
SEES_WRONG = [
    (documents_forgotten, "Two documents see each other"),
    (padding_forgotten, "Padding sees padding"),
    (upper, "Your mask shows the future and hides the past"),
    (rows_of_the_prefix, "Every token of the prefix sees everything"),
    (looks_back_only_so_far, "Your window is one-sided"),
    (transposed, "The mask is transposed"),
    (prefix_of_each_document, "You count the prefix from the start of each document"),
]

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


def in_a_list(head, allowed):
    return list(drawn_anew(head, allowed))


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


def the_test(head, allowed, keys=1.0, values=1.0, tolerance=0.0):
    n, m = allowed.shape
    rng = np.random.default_rng(5)
    Q, K, V = rng.normal(size=(n, 4)), rng.normal(size=(m, 4)), rng.normal(size=(m, 4))
    seen = np.zeros((n, m), bool)
    for j in range(m):
        at = np.eye(m)[j][:, None]
        seen[:, j] = (abs(head(Q, K + keys * at, V + values * at) - head(Q, K, V)) > tolerance).any(1)
    return int(np.sum(seen & ~allowed)), int(np.sum(allowed & ~seen))


def values_alone(head, allowed):
    return the_test(head, allowed, keys=0)


def keys_alone(head, allowed):
    return the_test(head, allowed, values=0)


def with_a_tolerance(head, allowed):
    return the_test(head, allowed, tolerance=1e-4)


def the_other_order(head, allowed):
    return the_test(head, allowed)[::-1]


def in_the_same_arrays(head, allowed):
    n, m = allowed.shape
    rng = np.random.default_rng(5)
    Q, K, V = rng.normal(size=(n, 4)), rng.normal(size=(m, 4)), rng.normal(size=(m, 4))
    before, seen = head(Q, K, V), np.zeros((n, m), bool)
    for j in range(m):
        K[j] += 1
        V[j] += 1
        seen[:, j] = (head(Q, K, V) != before).any(1)
    return int(np.sum(seen & ~allowed)), int(np.sum(allowed & ~seen))


LEAKS_RIGHT = [drawn_anew, in_a_list, with_both_in_turn]
LEAKS_WRONG = [
    (values_alone, "You change the values alone"),
    (keys_alone, "You change the keys alone"),
    (with_a_tolerance, "You compare with a tolerance"),
    (the_other_order, "the other way round"),
    (in_the_same_arrays, "Your changes add up"),
]

# --- leaked_share ----------------------------------------------------------------------------------------


def summed(variance):
    t = (np.arange(20_000) + 0.5) / 20_000
    return np.mean((1 - t) / (1 - t + t * np.exp(variance / 2)))


def on_a_long_text(variance):
    L = 5000
    total = 0.0
    for i in range(L):
        total += (L - 1 - i) / ((L - 1 - i) + (i + 1) * math.exp(0.5 * variance))
    return total / L


def in_closed_form(variance):
    if variance == 0:
        return 1 / 2
    half = variance / 2
    return (half * math.exp(half) - math.expm1(half)) / math.expm1(half) ** 2


def powers_of_the_mean(variance):
    return summed(0.0)


def without_the_half(variance):
    return summed(2 * variance)


def of_the_deviation(variance):
    return summed(2 * variance**0.5)


def the_past(variance):
    return 1 - summed(variance)


def in_the_middle(variance):
    return 1 / (1 + math.exp(variance / 2))


def no_case_for_zero(variance):
    r = math.exp(variance / 2)
    return (r * math.log(r) - r + 1) / (r - 1) ** 2


SHARE_RIGHT = [summed, on_a_long_text, in_closed_form]
SHARE_WRONG = [
    (powers_of_the_mean, "That is the share without any mask"),
    (without_the_half, "The half is missing"),
    (of_the_deviation, "You take the standard deviation"),
    (the_past, "have changed places"),
    (in_the_middle, "That is the query in the middle"),
    (no_case_for_zero, "r is 1 and the formula is 0 / 0"),
]


RIGHT = {
    "padding_mask": PADDING_RIGHT,
    "masked_gradient": GRADIENT_RIGHT,
    "who_sees": SEES_RIGHT,
    "leaks_and_losses": LEAKS_RIGHT,
    "leaked_share": SHARE_RIGHT,
}
WRONG = {
    "padding_mask": PADDING_WRONG,
    "masked_gradient": GRADIENT_WRONG,
    "who_sees": SEES_WRONG,
    "leaks_and_losses": LEAKS_WRONG,
    "leaked_share": SHARE_WRONG,
}
