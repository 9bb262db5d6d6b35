"""Answers to the exercises of chapter 19 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import numpy as np

__all__ = ["RIGHT", "WRONG"]


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


def word_by_word(score, h, H, words, W_a, U_a, v):
    scores = raw_scores(score, h, H, W_a, U_a, v)
    top = max(s for s, there in zip(scores, words, strict=True) if there)
    parts = [np.exp(s - top) if there else 0.0 for s, there in zip(scores, words, strict=True)]
    a = np.array(parts) / sum(parts)
    return a, sum(weight * state for weight, state in zip(a, H, strict=True))


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


def padding_seen(score, h, H, words, W_a, U_a, v):
    a = softmax(raw_scores(score, h, H, W_a, U_a, v))
    return a, a @ H


def padding_at_zero(score, h, H, words, W_a, U_a, v):
    a = softmax(raw_scores(score, h, H, W_a, U_a, v) * words)
    return a, a @ H


def hidden_late(score, h, H, words, W_a, U_a, v):
    a = softmax(raw_scores(score, h, H, W_a, U_a, v)) * words
    return a, a @ H


def scaled(score, h, H, words, W_a, U_a, v):
    scores = np.where(words, raw_scores(score, h, H, W_a, U_a, v) / np.sqrt(h.size), -np.inf)
    a = softmax(scores)
    return a, a @ H


def transposed_general(score, h, H, words, W_a, U_a, v):
    return words_only(score, h, H, words, W_a.T if score == "general" else W_a, U_a, v)


def no_tanh(score, h, H, words, W_a, U_a, v):
    if score != "additive":
        return words_only(score, h, H, words, W_a, U_a, v)
    scores = np.where(words, (W_a @ h + H @ U_a.T) @ v, -np.inf)
    a = softmax(scores)
    return a, a @ H


def context_only(score, h, H, words, W_a, U_a, v):
    return words_only(score, h, H, words, W_a, U_a, v)[1]


def best_state(score, h, H, words, W_a, U_a, v):
    a, _ = words_only(score, h, H, words, W_a, U_a, v)
    return a, H[np.argmax(a)]


def overflows(score, h, H, words, W_a, U_a, v):
    with np.errstate(all="ignore"):
        e = np.exp(raw_scores(score, h, H, W_a, U_a, v)) * words
        a = e / e.sum()
        return a, a @ H


# --- general_gradients -----------------------------------------------------------------------------------


def with_jacobian(h, H, W_a, dc):
    a = softmax(H @ W_a.T @ h)
    J = np.diag(a) - np.outer(a, a)
    ds = J @ (H @ dc)
    return (
        sum(s * (W_a @ state) for s, state in zip(ds, H, strict=True)),
        a[:, None] * dc + ds[:, None] * (W_a.T @ h),
        sum(s * np.outer(h, state) for s, state in zip(ds, H, strict=True)),
    )


def with_keys(h, H, W_a, dc):
    """Through the keys K = H W_a^T."""
    K = H @ W_a.T
    a = softmax(K @ h)
    da = H @ dc
    ds = a * da - a * (a * da).sum()
    dK = np.outer(ds, h)
    return K.T @ ds, np.outer(a, dc) + dK @ W_a, dK.T @ H


def compared_only(h, H, W_a, dc):
    dh, dH, dW = with_jacobian(h, H, W_a, dc)
    return dh, dH - np.outer(softmax(H @ W_a.T @ h), dc), dW


def mixed_only(h, H, W_a, dc):
    dh, _, dW = with_jacobian(h, H, W_a, dc)
    return dh, np.outer(softmax(H @ W_a.T @ h), dc), dW


def transposed_matrix(h, H, W_a, dc):
    dh, dH, dW = with_jacobian(h, H, W_a, dc)
    return dh, dH, dW.T


def no_mean(h, H, W_a, dc):
    a = softmax(H @ W_a.T @ h)
    ds = a * (H @ dc)
    return W_a @ (H.T @ ds), np.outer(a, dc) + np.outer(ds, W_a.T @ h), np.outer(h, H.T @ ds)


def without_softmax(h, H, W_a, dc):
    a = softmax(H @ W_a.T @ h)
    ds = H @ dc
    return W_a @ (H.T @ ds), np.outer(a, dc) + np.outer(ds, W_a.T @ h), np.outer(h, H.T @ ds)


def diagonal_only(h, H, W_a, dc):
    a = softmax(H @ W_a.T @ h)
    ds = np.diag(np.diag(a) - np.outer(a, a)) * (H @ dc)
    return W_a @ (H.T @ ds), np.outer(a, dc) + np.outer(ds, W_a.T @ h), np.outer(h, H.T @ ds)


def other_order(h, H, W_a, dc):
    dh, dH, dW = with_jacobian(h, H, W_a, dc)
    return dH, dh, dW


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


def too_soft(asks, H, wanted):
    return weights(asks, np.linalg.pinv(asks) @ np.eye(len(H))[wanted] @ np.linalg.pinv(H).T, H)


def turned_over(asks, H, wanted):
    return weights(asks, (100 * np.linalg.pinv(asks) @ np.eye(len(H))[wanted] @ np.linalg.pinv(H).T).T, H)


def as_they_are(asks, H, wanted):
    return weights(asks, np.identity(asks.shape[1]), H)


def nothing_learned(asks, H, wanted):
    return weights(asks, 0 * np.outer(asks[0], H[0]), H)


def the_least(asks, H, wanted):
    return weights(asks, -100 * np.linalg.pinv(asks) @ np.eye(len(H))[wanted] @ np.linalg.pinv(H).T, H)


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


def without_padding(step):
    given = step(*drawn(padded=0))
    return min(NAMES[::-1], key=lambda name: np.abs(given - decode(*drawn(padded=0), name)).max())


def in_one_step(step):
    given = step(*drawn(T=1))
    return min(
        ["none", "axis", "padding", "order", "embedding", "previous"],
        key=lambda name: np.abs(given - decode(*drawn(T=1), name)).max(),
    )


def states_as_embeddings(step):
    _, h, *others = drawn()
    given = step(h, h, *others)
    return min(NAMES[::-1], key=lambda name: np.abs(given - decode(h, h, *others, name)).max())


def order_forgotten(step):
    return "none" if nearest(step) == "order" else nearest(step)


def always_none(step):
    return "none"


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


def marks_too(A, words, gold, least):
    shares = {}
    for word in dict.fromkeys(words):
        at = [t for t, other in enumerate(words) if other == word]
        if len(at) >= least:
            shares[word] = np.mean([np.argmax(A[t]) in gold[t] for t in at])
    word = min(shares, key=shares.get)
    return word, shares[word]


def rare_too(A, words, gold, least):
    return with_counts(A, words, gold, 1)


def more_than_least(A, words, gold, least):
    return with_counts(A, words, gold, least + 1)


def most_aligned(A, words, gold, least):
    shares = {
        w: with_counts(*only(A, words, gold, w), 1)[1] for w in set(words) if frequent(words, gold, w, least)
    }
    word = max(shares, key=shares.get)
    return word, shares[word]


def only(A, words, gold, word):
    at = [t for t, other in enumerate(words) if other == word]
    return A[at], [word] * len(at), [gold[t] for t in at]


def frequent(words, gold, word, least):
    return sum(other == word and len(places) > 0 for other, places in zip(words, gold, strict=True)) >= least


def word_only(A, words, gold, least):
    return with_arrays(A, words, gold, least)[0]


def share_of_misses(A, words, gold, least):
    shares = {
        w: 1 - with_counts(*only(A, words, gold, w), 1)[1]
        for w in dict.fromkeys(words)
        if frequent(words, gold, w, least)
    }
    word = min(shares, key=shares.get)
    return word, shares[word]


RIGHT = {
    "look_at_source": [word_by_word, words_only, lowest_number],
    "general_gradients": [with_jacobian, with_keys],
    "attend_to": [in_two_solves, by_sum],
    "fault_in_look": [nearest, first_equal],
    "least_aligned": [with_counts, with_arrays],
}
WRONG = {
    "look_at_source": [
        (padding_seen, "Padding gets weight"),
        (padding_at_zero, "Padding has a score of 0"),
        (hidden_late, "after softmax"),
        (scaled, "no such factor"),
        (transposed_general, "multiply by the transpose"),
        (no_tanh, "has no tanh"),
        (context_only, "only the context"),
        (best_state, "largest weight"),
        (overflows, "overflow"),
    ],
    "general_gradients": [
        (compared_only, "it is also mixed"),
        (mixed_only, "it is also compared"),
        (transposed_matrix, "dW_a is transposed"),
        (no_mean, "The mean is missing"),
        (without_softmax, "as if it were ds"),
        (diagonal_only, "only the diagonal"),
        (other_order, "The order is"),
    ],
    "attend_to": [
        (too_soft, "spread over several words"),
        (turned_over, "transposed"),
        (as_they_are, "identity"),
        (nothing_learned, "all zeros"),
        (the_least, "least weight"),
    ],
    "fault_in_look": [
        (without_padding, "places with False"),
        (in_one_step, "at least two steps"),
        (states_as_embeddings, "e and h differ"),
        (order_forgotten, 'never say "order"'),
        (always_none, '"none" for every function'),
    ],
    "least_aligned": [
        (marks_too, "without a gold word"),
        (rare_too, "rare words"),
        (more_than_least, "exactly `least` times counts"),
        (most_aligned, "aligned most often"),
        (word_only, "only the word"),
        (share_of_misses, "share of words that are not aligned"),
    ],
}
