"""Answers to the exercises of `mlm` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

RIGHT = {}
WRONG = {}

# --- mlm_loss --------------------------------------------------------------------------------------------


def with_a_loop(logits, labels):
    losses = []
    for text, row in zip(logits.astype(float), labels, strict=True):
        for y, label in zip(text, row, strict=True):
            if label >= 0:
                top = max(y)
                losses.append(top + math.log(sum(math.exp(v - top) for v in y)) - y[label])
    return sum(losses) / len(losses)


def with_the_library(logits, labels):
    flat, wanted = logits.reshape(-1, logits.shape[-1]), labels.ravel()
    rows = np.flatnonzero(wanted != -100)
    return ops.cross_entropy(Tensor(flat[rows], dtype=float), wanted[rows]).item()


def with_weights(logits, labels):
    weights = (labels != -100).astype(float)
    y = logits - np.max(logits, axis=-1, keepdims=True)
    log_p = y - np.log(np.sum(np.exp(y), axis=-1, keepdims=True))
    picked = np.take_along_axis(log_p, np.maximum(labels, 0)[:, :, None], axis=2)[:, :, 0]
    return -np.sum(weights * picked) / np.sum(weights)


def in_bits(logits, labels):
    return with_weights(logits, labels) / math.log(2)


RIGHT["mlm_loss"] = [with_a_loop, with_the_library, with_weights]


WRONG["mlm_loss"] = [
    (in_bits, "[bits]"),
]

# --- tied_table_grad -------------------------------------------------------------------------------------


def by_the_engine(W_T, W, ids, labels):
    table, middle = Tensor(W_T, requires_grad=True, dtype=W_T.dtype), Tensor(W, dtype=W.dtype)
    rows = np.flatnonzero(labels != -100)
    y = (ops.embedding(ids, table) @ middle)[rows] @ table.T
    ops.cross_entropy(y, labels[rows]).backward()
    return Tensor(table.grad, dtype=W_T.dtype).numpy()


def with_one_hots(W_T, W, ids, labels):
    E = np.eye(len(W_T))[ids]
    rows = labels >= 0
    G = E @ W_T @ W
    Y = G @ W_T.T
    P = np.exp(Y - Y.max(1, keepdims=True))
    P /= P.sum(1, keepdims=True)
    dY = (P - np.eye(len(W_T))[np.maximum(labels, 0)]) * rows[:, None]
    dY /= rows.sum()
    return dY.T @ G + E.T @ (dY @ W_T @ W.T)


def in_a_loop(W_T, W, ids, labels):
    dW_T, n = np.zeros(W_T.shape), sum(labels != -100)
    for i, label in zip(ids, labels, strict=True):
        if label == -100:
            continue
        g = W_T[i] @ W
        y = W_T @ g
        p = np.exp(y - y.max())
        p /= p.sum()
        p[label] -= 1
        dW_T += np.outer(p, g) / n
        dW_T[i] += (p @ W_T) @ W.T / n
    return dW_T


RIGHT["tied_table_grad"] = [by_the_engine, with_one_hots, in_a_loop]

# --- whole_words -----------------------------------------------------------------------------------------


def by_numbers(pieces, order):
    word_of, count = [], -1
    for piece in pieces:
        if piece in {"[CLS]", "[SEP]"}:
            word_of.append(-1)
        else:
            count += not piece.startswith("##")
            word_of.append(count)
    word_of = np.array(word_of)
    room, out = max(1, round(len(pieces) * 0.15)), np.zeros(len(pieces), dtype=bool)
    firsts = [np.flatnonzero(word_of == w)[0] for w in range(count + 1)]
    for w in np.argsort([order[k] for k in firsts]):
        if out.sum() + (word_of == w).sum() <= room:
            out |= word_of == w
    return out


def as_zeros_and_ones(pieces, order):
    return by_numbers(pieces, order).astype(int)


RIGHT["whole_words"] = [by_numbers, as_zeros_and_ones]

# --- fault_of --------------------------------------------------------------------------------------------


def in_another_order(hide, ids, draws=300, blind=""):
    PAD, CLS, SEP, MASK = 0, 2, 3, 4
    seen, sets, counts, others, same = set(), set(), set(), [], 0
    for _ in range(draws):
        shown, labels = hide(ids)
        (places,) = np.where(labels != -100)
        seen |= set(ids[places].tolist())
        sets.add(tuple(places))
        counts.add(len(places))
        same += int(np.sum(shown[places] == ids[places]))
        others += [int(shown[i]) for i in places if shown[i] not in (MASK, ids[i])]
    own = int(np.sum((ids != PAD) & (ids != CLS) & (ids != SEP)))
    found = "none"
    if others and max(others) <= 4:
        found = "random piece"
    if not others and not same:
        found = "only [MASK]"
    if max(counts) > max(1, round(0.15 * np.count_nonzero(ids))):
        found = "padding counts"
    if len(sets) == 1:
        found = "same places"
    if counts == {own}:
        found = "too many labels"
    if seen & {PAD, CLS, SEP}:
        found = "special tokens"
    return "none" if found == blind else found


def many_draws(hide, ids):
    return in_another_order(hide, ids, draws=1000)


def blind_for_specials(hide, ids):
    return in_another_order(hide, ids, blind="special tokens")


RIGHT["fault_of"] = [in_another_order, many_draws]
WRONG["fault_of"] = [
    (blind_for_specials, "On a text"),
]

# --- never_chosen ----------------------------------------------------------------------------------------


def draw_by_draw(length, epochs, copies):
    n = max(1, round(0.15 * length))
    share, masks = 1.0, 0
    for _ in range(epochs):
        if copies == 0 or masks < copies:
            masks += 1
            share *= (length - 3 - n) / (length - 3)
    return share


def in_logarithms(length, epochs, copies):
    p = max(1, round(3 * length / 20)) / (length - 3)
    k = epochs if not copies else min(copies, epochs)
    return math.exp(k * math.log1p(-p)) if p < 1 else 0.0


RIGHT["never_chosen"] = [draw_by_draw, in_logarithms]
