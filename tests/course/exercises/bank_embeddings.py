"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor

RIGHT = {}
WRONG = {}

# --- embed -----------------------------------------------------------------------------------------------


def by_one_hot_rows(input_ids, token_type_ids, W_T, W_S, W_P):
    places = np.tile(np.arange(input_ids.shape[1]), (len(input_ids), 1))
    rows = ((input_ids, W_T), (token_type_ids, W_S), (places, W_P))
    X, *others = (Tensor(np.eye(len(W), dtype=W.dtype)[ids]) @ W for ids, W in rows)
    return X + others[0] + others[1]


def by_the_second_segment(input_ids, token_type_ids, W_T, W_S, W_P):
    second = W_S[0] + Tensor(token_type_ids[..., None].astype(W_S.dtype)) * (W_S[1] - W_S[0])
    return W_T[input_ids] + second + W_P[np.arange(input_ids.shape[-1])]


def of_arrays(input_ids, token_type_ids, W_T, W_S, W_P):
    return W_T.data[input_ids] + W_S.data[token_type_ids] + W_P.data[: input_ids.shape[1]]


RIGHT["embed"] = [by_one_hot_rows, by_the_second_segment]
WRONG["embed"] = [
    (lambda i, s, W_T, W_S, W_P: (W_T[i] + W_S[s] + W_P[: i.shape[1]]).astype("float64"), "float64"),
    (of_arrays, "should return a Tensor"),
]

# --- pack ------------------------------------------------------------------------------------------------


def by_a_formula(first, second, length):
    room = length - 3
    if len(first) + len(second) > room:
        short = min(len(first), len(second), room // 2)
        n, m = (room - short, short) if len(first) > len(second) else (short, room - short)
        first, second = first[:n], second[:m]
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    padded = tokens + ["[PAD]"] * (length - len(tokens))
    last = len(tokens)
    return [
        padded,
        [int(len(first) + 2 <= i < last) for i in range(length)],
        [int(i < last) for i in range(length)],
    ]


def by_the_library(first, second, length):
    from minigrad.text.tokenizer import longest_first

    n, m = longest_first(len(first), len(second), length - 3)
    parts = (["[CLS]", *first[:n], "[SEP]"], [*second[:m], "[SEP]"])
    tokens, types = [*parts[0], *parts[1]], [0] * len(parts[0]) + [1] * len(parts[1])
    empty = length - len(tokens)
    return tuple(a + [b] * empty for a, b in ((tokens, "[PAD]"), (types, 0), ([1] * len(tokens), 0)))


def popping_the_arguments(first, second, length):
    while len(first) + len(second) > length - 3:
        (first if len(first) > len(second) else second).pop()
    return by_a_formula(first, second, length)


RIGHT["pack"] = [by_a_formula, by_the_library]
WRONG["pack"] = [(popping_the_arguments, ("it takes entries out of the list `first`", "[odd-place]"))]

# --- look_up ---------------------------------------------------------------------------------------------


def by_masks(W, ids):
    def backward(dX):
        return [np.stack([dX[ids == v].sum(axis=0) for v in range(len(W))])]

    return Tensor.from_op(W.data[ids], [W], backward)


def two_parents(W, ids):
    return Tensor.from_op(W.data[ids], (W, ids), lambda dX: (dX, None))


def rows_of_the_batch(W, ids):
    return Tensor.from_op(W.data[ids], (W,), lambda dX: (dX.reshape(-1, W.shape[1]),))


RIGHT["look_up"] = [by_masks]
WRONG["look_up"] = [
    (two_parents, "The parents of Tensor.from_op are the Tensors that came in"),
    (rows_of_the_batch, "A gradient has the shape of what it belongs to"),
]

# --- packing_fault ---------------------------------------------------------------------------------------


def by_packing_again(tokens, types, mask):
    if len({len(tokens), len(types), len(mask)}) > 1:
        return "lengths"
    n = len(tokens) - tokens.count("[PAD]")
    if tokens[0] != "[CLS]" or "[CLS]" in tokens[1:]:
        return "cls"
    ends = [i for i, token in enumerate(tokens) if token == "[SEP]"]
    if len(ends) != 2 or ends[1] != n - 1:
        return "sep"
    if any(bool(m) != (i < n) for i, m in enumerate(mask)):
        return "mask"
    if any(t != (ends[0] < i <= ends[1]) for i, t in enumerate(types)):
        return "segments"
    return "none"


def with_a_walk(tokens, types, mask):
    if not (len(tokens) == len(types) and len(types) == len(mask)):
        return "lengths"
    if tokens.index("[CLS]") != 0 if "[CLS]" in tokens else True:
        return "cls"
    if tokens.count("[CLS]") > 1:
        return "cls"
    seps, last = 0, ""
    right_types, right_mask = [], []
    for token in tokens:
        padding = token == "[PAD]"
        right_types.append(0 if padding else min(seps, 1))
        right_mask.append(0 if padding else 1)
        seps += token == "[SEP]"
        last = last if padding else token
    if seps != 2 or last != "[SEP]":
        return "sep"
    names = [name for name, bad in (("mask", mask != right_mask), ("segments", types != right_types)) if bad]
    return (names + ["none"])[0]


RIGHT["packing_fault"] = [by_packing_again, with_a_walk]

# --- even_width ------------------------------------------------------------------------------------------


def parameters(V, N, d):
    tables = (V + 512 + 2) * d + 2 * d
    return tables, tables + N * (12 * d * d + 13 * d) + d * d + d


def by_search(V, N):
    d = 1
    while 2 * parameters(V, N, d)[0] > parameters(V, N, d)[1]:
        d += 1
    return d


def by_ceil(V, N):
    return max(math.ceil((V + 516 - 13 * N - 1) / (12 * N + 1)), 1)


RIGHT["even_width"] = [by_search, by_ceil]
