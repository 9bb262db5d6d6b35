"""Answers to the exercises of `fast` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import itertools
import math

import numpy as np

RIGHT = {}
WRONG = {}

# --- softmax_gradient_into -------------------------------------------------------------------------------


def halves(dy, y, out):
    middle = len(y) // 2
    for b in (slice(middle), slice(middle, None)):
        part = dy[b] - np.vecdot(dy[b], y[b])[:, None]
        part *= y[b]
        out[b] = part
        del part


def sums_in_double_precision(dy, y, out):
    np.multiply(dy, y, out=out)
    along = out.sum(axis=1, keepdims=True, dtype=np.float64)
    np.subtract(dy, along, out=out)
    np.multiply(out, y, out=out)


def product_first_then_out(dy, y, out):
    product = dy * y
    np.subtract(product, y * product.sum(-1, keepdims=True), out=out)


def dy_used_up(dy, y, out):
    dy -= np.einsum("ij,ij->i", dy, y)[:, None]
    np.multiply(dy, y, out=out)


def name_given_to_another_array(dy, y, out):
    out = y * (dy - np.einsum("ij,ij->i", dy, y)[:, None])  # noqa: F841


def added_to_what_there_was(dy, y, out):
    out *= 0
    for i in range(len(out)):
        out[i] += y[i] * (dy[i] - dy[i] @ y[i])


def no_factor_and_a_temporary(dy, y, out):
    out[:] = dy - np.sum(y * dy, 1, keepdims=True)


RIGHT["softmax_gradient_into"] = [halves, sums_in_double_precision]
WRONG["softmax_gradient_into"] = [
    (product_first_then_out, ("it takes 2 arrays as large as dy", "[too-much-memory]")),
    (dy_used_up, ("it changes `dy`", "Write into `out` alone", "[over-dy]")),
    (name_given_to_another_array, "[out-untouched]"),
    (added_to_what_there_was, ("On an out full of NaN", "[added-to-out]")),
    (no_factor_and_a_temporary, ("[no-factor]", "Besides, on shape (4001, 48)")),
]

# --- scores_without_copies -------------------------------------------------------------------------------


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def numpys_root(q, k, heads):
    scores = heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)
    scores /= np.sqrt(q.shape[2] // heads)  # float64 into float32: cast in buffers
    return scores


def in_double_precision(q, k, heads):
    B, T, H = q.shape
    q, k = q.reshape(B, T, heads, -1), k.reshape(B, T, heads, -1)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k, dtype=np.float64)
    scores /= math.sqrt(H // heads)
    return scores


def k_scaled_where_it_is(q, k, heads):
    k /= math.sqrt(k.shape[-1] // heads)
    return heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)


def scaled_by_the_whole_length_in_a_copy(q, k, heads):
    return heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3) / math.sqrt(q.shape[2])


RIGHT["scores_without_copies"] = [numpys_root, in_double_precision]
WRONG["scores_without_copies"] = [
    (k_scaled_where_it_is, ("it changes `k`", "[over-inputs]")),
    (scaled_by_the_whole_length_in_a_copy, ("[other-scale]", "it takes 2 arrays as large as the result")),
]

# --- add_up ----------------------------------------------------------------------------------------------


def zeros_when_several(contributions):
    if len(contributions) == 1:
        return contributions[0]
    total = np.zeros(contributions[0].shape, contributions[0].dtype)
    for one in contributions:
        total += one
    return total


def popped(contributions):
    if len(contributions) == 1:
        return contributions.pop()
    total = contributions.pop(0) + contributions.pop(0)
    while contributions:
        total += contributions.pop()
    return total


def copied_and_the_last_left_out(contributions):
    total = np.array(contributions[0])
    for i in range(1, len(contributions) - 1):
        total += contributions[i]
    return total


RIGHT["add_up"] = [zeros_when_several]
WRONG["add_up"] = [
    (popped, ("it takes entries out of the list `contributions`", "[list-changed]")),
    (copied_and_the_last_left_out, ("[some-left-out]", "it returns a new array")),
]

# --- row_blocks ------------------------------------------------------------------------------------------


def borders_first(n, m, most):
    rows = most // m or 1
    borders = [*range(0, n, rows), n]
    return list(itertools.pairwise(borders))


RIGHT["row_blocks"] = [borders_first]
