"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


# --- look_at_source ---------------------------------------------------------------------------------------


def raw_scores(score, h, H, W_a, U_a, v):
    if score == "dot":
        return np.array([np.dot(h, state) for state in H])
    if score == "general":
        return np.array([h @ (W_a @ state) for state in H])
    return np.array([v @ np.tanh(W_a @ h + U_a @ state) for state in H])


def words_only(score, h, H, words, W_a, U_a, v):
    """Softmax over the words alone, put back into their places."""
    a = np.zeros(len(H))
    a[words] = softmax(raw_scores(score, h, H[words], W_a, U_a, v))
    return a, a @ H


def lowest_number(score, h, H, words, W_a, U_a, v):
    scores = raw_scores(score, h, H, W_a, U_a, v)
    scores[~words] = np.finfo(scores.dtype).min
    a = softmax(scores)
    return a, (a[:, None] * H).sum(axis=0)


def scaled(score, h, H, words, W_a, U_a, v):
    scores = np.where(words, raw_scores(score, h, H, W_a, U_a, v) / np.sqrt(h.size), -np.inf)
    a = softmax(scores)
    return a, a @ H


# --- general_gradients -----------------------------------------------------------------------------------


def with_keys(h, H, W_a, dc):
    """Through the keys K = H W_a^T."""
    K = H @ W_a.T
    a = softmax(K @ h)
    da = H @ dc
    ds = a * da - a * (a * da).sum()
    dK = np.outer(ds, h)
    return K.T @ ds, np.outer(a, dc) + dK @ W_a, dK.T @ H


# --- attend_to -------------------------------------------------------------------------------------------


def weights(asks, W_a, H):
    return np.round(softmax(asks @ W_a @ H.T), 2)


def in_two_solves(asks, H, wanted):
    scores = np.zeros((len(asks), len(H)))
    scores[np.arange(len(wanted)), wanted] = 500
    turned = np.linalg.lstsq(asks, scores, rcond=None)[0]
    return weights(asks, np.linalg.lstsq(H, turned.T, rcond=None)[0].T, H)


def by_sum(asks, H, wanted):
    """A sum of outer products of dual vectors."""
    left, right = np.linalg.pinv(asks).T, np.linalg.pinv(H).T
    W_a = 60 * sum(np.outer(left[t], right[s]) for t, s in enumerate(wanted))
    return weights(asks, W_a, H)


# --- fault_in_look --------------------------------------------------------------------------------------


def decode(e, h, H, words, W_c, fault):
    scores = (e if fault == "embedding" else h) @ H.T
    if fault != "padding":
        scores = scores + np.where(words, 0, -1e9)
    a = softmax(scores.T).T * words if fault == "axis" else softmax(scores)
    c = a @ H
    if fault == "previous":
        c[1:] = c[:-1].copy()
    return np.tanh(np.hstack([h, c] if fault == "order" else [c, h]) @ W_c)


NAMES = ["axis", "padding", "embedding", "previous", "order", "none"]


def drawn(T=4, S=6, n=3, padded=2):
    rng = np.random.default_rng(7)
    return (
        rng.standard_normal((T, n)),
        rng.standard_normal((T, n)),
        rng.standard_normal((S, n)),
        np.arange(S) < S - padded,
        rng.standard_normal((2 * n, n)),
    )


def nearest(step):
    given = step(*drawn())
    return min(NAMES, key=lambda name: np.abs(given - decode(*drawn(), name)).max())


def first_equal(step):
    found = [
        name for name in NAMES if np.allclose(step(*drawn(5, 4, 5, 1)), decode(*drawn(5, 4, 5, 1), name))
    ]
    return found[0] if found else "none"


# --- least_aligned ---------------------------------------------------------------------------------------


def with_counts(A, words, gold, least):
    right, total = {}, {}
    for t in range(len(words)):
        if len(gold[t]) == 0:
            continue
        total[words[t]] = total.get(words[t], 0) + 1
        right[words[t]] = right.get(words[t], 0) + (np.argmax(A[t]) in gold[t])
    shares = [(right[word] / total[word], word) for word in total if total[word] >= least]
    share, word = min(shares)
    return word, share


def with_arrays(A, words, gold, least):
    there = np.array([len(places) > 0 for places in gold])
    hits = np.array([best in places for best, places in zip(np.argmax(A, 1), gold, strict=True)])
    names = np.array(words)
    best = ("", 2.0)
    for word in dict.fromkeys(words):
        chosen = there & (names == word)
        if chosen.sum() >= least and hits[chosen].mean() < best[1]:
            best = (word, hits[chosen].mean())
    return best


RIGHT = {
    "look_at_source": [words_only, lowest_number],
    "general_gradients": [with_keys],
    "attend_to": [in_two_solves, by_sum],
    "fault_in_look": [nearest, first_equal],
    "least_aligned": [with_counts, with_arrays],
}
WRONG = {"look_at_source": [(scaled, "[scaled]")]}
