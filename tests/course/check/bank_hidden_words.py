"""Answers to the exercises of chapter 13 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]

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


def log_softmax(logits):
    y = logits - logits.max(-1, keepdims=True)
    return y - np.log(np.exp(y).sum(-1, keepdims=True))


def ignored_as_zero(logits, labels):
    b, i = np.nonzero(labels != -100)
    losses = np.zeros(labels.shape)
    losses[b, i] = -log_softmax(logits)[b, i, labels[b, i]]
    return losses.mean()


def text_by_text(logits, labels):
    means = []
    for text, row in zip(log_softmax(logits), labels, strict=True):
        (places,) = np.where(row != -100)
        if len(places):
            means.append(-text[places, row[places]].mean())
    return np.mean(means)


def id_zero_forgotten(logits, labels):
    b, i = np.where(labels > 0)
    return -log_softmax(logits)[b, i, labels[b, i]].mean()


def naive(logits, labels):
    b, i = np.where(labels != -100)
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp(logits[b, i])
        p = p / p.sum(-1, keepdims=True)
    return -np.log(p[np.arange(len(b)), labels[b, i]]).mean()


def added_up(logits, labels):
    b, i = np.where(labels != -100)
    return -log_softmax(logits)[b, i, labels[b, i]].sum()


def in_bits(logits, labels):
    return with_weights(logits, labels) / math.log(2)


def every_place(logits, labels):
    b, i = np.indices(labels.shape)
    return -log_softmax(logits)[b, i, labels].mean()


LOSS_RIGHT = [with_a_loop, with_the_library, with_weights]


def the_true_piece_forgotten(logits, labels):
    chosen = labels != -100
    return -log_softmax(logits)[chosen].mean()


LOSS_WRONG = [
    (the_true_piece_forgotten, "You average over the whole vocabulary"),
    (ignored_as_zero, "You divide by the number of all tokens"),
    (text_by_text, "You take a mean for each text"),
    (id_zero_forgotten, "You leave out chosen tokens whose id is 0"),
    (naive, "The exponential overflows"),
    (added_up, "You return the sum"),
    (in_bits, "Your unit is the bit"),
    (every_place, "You count all tokens"),
]

# --- tied_table_grad -------------------------------------------------------------------------------------


def by_the_engine(W_T, W, ids, labels):
    table, middle = Tensor(W_T, requires_grad=True, dtype=W_T.dtype), Tensor(W, dtype=W.dtype)
    rows = np.flatnonzero(labels != -100)
    y = (ops.embedding(ids, table) @ middle)[rows] @ table.T
    ops.cross_entropy(y, labels[rows]).backward()
    return Tensor(table.grad, dtype=W_T.dtype).numpy()


def with_one_hots(W_T, W, ids, labels, swap=False, both=True, mean=True):
    E = np.eye(len(W_T))[ids]
    rows = labels >= 0
    G = E @ W_T @ W
    Y = G @ W_T.T
    P = np.exp(Y - Y.max(1, keepdims=True))
    P /= P.sum(1, keepdims=True)
    dY = (P - np.eye(len(W_T))[np.maximum(labels, 0)]) * rows[:, None]
    if mean:
        dY /= rows.sum()
    dX = dY @ W_T @ (W if swap else W.T)
    return dY.T @ G + (E.T @ dX if both else 0)


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


def product_only(W_T, W, ids, labels):
    return with_one_hots(W_T, W, ids, labels, both=False)


def not_turned(W_T, W, ids, labels):
    return with_one_hots(W_T, W, ids, labels, swap=True)


def of_the_sum(W_T, W, ids, labels):
    return with_one_hots(W_T, W, ids, labels, mean=False)


def overwritten(W_T, W, ids, labels):
    out = with_one_hots(W_T, W, ids, labels, both=False)
    look = by_the_engine(W_T.astype(float), W.astype(float), ids, labels) - out
    rows = np.unique(ids[labels != -100])
    out[rows] = look[rows]
    return out


def lost_by_plus_equals(W_T, W, ids, labels):
    rows = np.flatnonzero(labels != -100)
    G = W_T[ids[rows]] @ W
    Y = G @ W_T.T
    P = np.exp(Y)
    P = P / P.sum(1, keepdims=True)
    for row, label in enumerate(labels[rows]):
        P[row, label] -= 1
    P /= len(rows)
    out = P.T @ G
    out[ids[rows]] += P @ W_T @ W.T
    return out


def to_the_true_pieces(W_T, W, ids, labels):
    rows = np.flatnonzero(labels != -100)
    out = with_one_hots(W_T, W, ids, labels, both=False)
    look = with_one_hots(W_T, W, ids, labels) - out
    moved = np.zeros_like(out)
    n = len(rows)
    for i in rows:
        g = W_T[ids[i]] @ W
        p = np.exp(W_T @ g - (W_T @ g).max())
        p /= p.sum()
        p[labels[i]] -= 1
        moved[labels[i]] += p @ W_T @ W.T / n
    return out + moved + 0 * look


TIED_RIGHT = [by_the_engine, with_one_hots, in_a_loop]
TIED_WRONG = [
    (product_only, "The look-up is missing"),
    (not_turned, "W is not transposed on the way back"),
    (of_the_sum, "You do not divide by the number of chosen tokens"),
    (lost_by_plus_equals, "A row that is looked up twice"),
    (to_the_true_pieces, "Your look-up sends its gradient to the true piece"),
]

# --- whole_words -----------------------------------------------------------------------------------------


def by_numbers(pieces, order, fits=lambda have, more, room: have + more <= room, of_words=False, first=True):
    word_of, count = [], -1
    for piece in pieces:
        if piece in {"[CLS]", "[SEP]"}:
            word_of.append(-1)
        else:
            count += not piece.startswith("##")
            word_of.append(count)
    word_of = np.array(word_of)
    total = count + 1 if of_words else len(pieces)
    room, out = max(1, round(total * 0.15)), np.zeros(len(pieces), dtype=bool)
    keys = [
        np.flatnonzero(word_of == w)[0] if first else np.flatnonzero(word_of == w)[-1]
        for w in range(count + 1)
    ]
    for w in np.argsort([order[k] for k in keys]):
        if fits(out.sum(), (word_of == w).sum(), room):
            out |= word_of == w
    return out


def as_zeros_and_ones(pieces, order):
    return by_numbers(pieces, order).astype(int)


def piece_by_piece(pieces, order):
    free = np.array([piece not in ("[CLS]", "[SEP]") for piece in pieces])
    room = max(1, round(0.15 * len(pieces)))
    chosen = np.zeros(len(pieces), bool)
    chosen[np.argsort(np.where(free, order, np.inf))[:room]] = True
    return chosen & free


def over_the_top(pieces, order):
    return by_numbers(pieces, order, fits=lambda have, more, room: have < room)


def share_of_words(pieces, order):
    return by_numbers(pieces, order, of_words=True)


def last_piece_decides(pieces, order):
    return by_numbers(pieces, order, first=False)


def gives_up(pieces, order):
    full = []

    def fits(have, more, room):
        if have + more > room:
            full.append(True)
        return not full

    return by_numbers(pieces, order, fits=fits)


WORDS_RIGHT = [by_numbers, as_zeros_and_ones]
WORDS_WRONG = [
    (piece_by_piece, "You choose pieces"),
    (over_the_top, "You choose more tokens than there is room for"),
    (share_of_words, "Your room is 15 % of the words"),
    (last_piece_decides, "You sort by the number of a word's last piece"),
    (gives_up, "You stop at the first word that does not fit"),
]

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


def blind_for_padding(hide, ids):
    return in_another_order(hide, ids, blind="padding counts")


def blind_for_places(hide, ids):
    return in_another_order(hide, ids, blind="same places")


def blind_for_labels(hide, ids):
    found = in_another_order(hide, ids)
    return "same places" if found == "too many labels" else found


def blind_for_specials(hide, ids):
    return in_another_order(hide, ids, blind="special tokens")


def blind_for_pieces(hide, ids):
    return in_another_order(hide, ids, blind="random piece")


FAULT_RIGHT = [in_another_order, many_draws]
FAULT_WRONG = [
    (blind_for_padding, "the padding counts in the 15 %"),
    (blind_for_places, "the places never change"),
    (blind_for_pieces, "You do not look at the random pieces"),
    (blind_for_labels, "You do not notice labels of tokens that were not chosen"),
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


def always_anew(length, epochs, copies):
    return draw_by_draw(length, epochs, 0)


def fifteen(length, epochs, copies):
    return 0.85 ** (min(epochs, copies) if copies else epochs)


def at_least_once(length, epochs, copies):
    return 1 - draw_by_draw(length, epochs, copies)


def with_specials(length, epochs, copies):
    k = min(epochs, copies) if copies else epochs
    return (1 - max(1, round(0.15 * length)) / length) ** k


def product_of_both(length, epochs, copies):
    return draw_by_draw(length, epochs * max(1, copies), 0)


NEVER_RIGHT = [draw_by_draw, in_logarithms]
NEVER_WRONG = [
    (always_anew, "You draw anew in every epoch"),
    (fifteen, "You take 15 % as the chance of a token"),
    (at_least_once, "chosen at least once"),
    (with_specials, "You count [CLS] and [SEP]"),
    (product_of_both, "You multiply epochs and copies"),
]


RIGHT = {
    "mlm_loss": LOSS_RIGHT,
    "tied_table_grad": TIED_RIGHT,
    "whole_words": WORDS_RIGHT,
    "fault_of": FAULT_RIGHT,
    "never_chosen": NEVER_RIGHT,
}
WRONG = {
    "mlm_loss": LOSS_WRONG,
    "tied_table_grad": TIED_WRONG,
    "whole_words": WORDS_WRONG,
    "fault_of": FAULT_WRONG,
    "never_chosen": NEVER_WRONG,
}
