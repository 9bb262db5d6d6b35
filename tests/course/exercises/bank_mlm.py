"""Answers to the exercises of `mlm` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

RIGHT = {}
WRONG = {}

# --- cross_entropy ---------------------------------------------------------------------------------------


def with_one_hot_rows(Y, true):
    hot = np.eye(Y.shape[1], dtype=Y.dtype)[true]
    top = Y.data.max(axis=1)
    log_sum = top + np.log(np.sum(np.exp(Y.data - top[:, None]), axis=1))
    loss = np.mean(log_sum - np.sum(hot * Y.data, axis=1))

    def backward(dy):
        return [dy * (np.exp(Y.data - log_sum[:, None]) - hot) / len(hot)]

    return Tensor.from_op(loss, [Y], backward)


RIGHT["cross_entropy"] = [with_one_hot_rows]
WRONG["cross_entropy"] = [
    (lambda Y, true: -ops.log_softmax(Y)[np.arange(len(true)), true].mean(), "not made of Y in one operation")
]

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


RIGHT["whole_words"] = [by_numbers]
WRONG["whole_words"] = [(as_zeros_and_ones, "it should return True and False, and returned numbers (int64)")]

# --- fault_of --------------------------------------------------------------------------------------------


def in_another_order(hide, ids, blind=""):
    PAD, CLS, SEP, MASK = 0, 2, 3, 4
    seen, sets, counts, others, same = set(), set(), set(), [], 0
    for _ in range(300):
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


def blind_for_specials(hide, ids):
    return in_another_order(hide, ids, blind="special tokens")


RIGHT["fault_of"] = [in_another_order]
WRONG["fault_of"] = [(blind_for_specials, "On a text")]

# --- never_chosen ----------------------------------------------------------------------------------------


def in_logarithms(length, epochs, copies):
    p = max(1, round(3 * length / 20)) / (length - 3)
    k = epochs if not copies else min(copies, epochs)
    return math.exp(k * math.log1p(-p)) if p < 1 else 0.0


RIGHT["never_chosen"] = [in_logarithms]
