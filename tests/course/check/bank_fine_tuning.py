"""Answers to the exercises of chapter 16 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

__all__ = ["RIGHT", "WRONG"]

# --- best_span -------------------------------------------------------------------------------------------


def with_a_table(start, end, longest):
    total = start[:, None] + end[None, :]
    ahead = np.arange(len(end))[None, :] - np.arange(len(start))[:, None]
    total[(ahead < 0) | (ahead >= longest)] = -np.inf
    return tuple(int(n) for n in np.unravel_index(np.argmax(total), total.shape))


def by_ends(start, end, longest):
    spans = [(i, j) for j in range(len(end)) for i in range(max(0, j - longest + 1), j + 1)]
    return max(spans, key=lambda span: start[span[0]] + end[span[1]])


def two_maxima(start, end, longest):
    return start.argmax(), end.argmax()


def no_limit(start, end, longest):
    return with_a_table(start, end, len(end))


def greedy(start, end, longest):
    i = start.argmax()
    return i, max(range(i, min(len(end), i + longest)), key=lambda j: end[j])


def off_by_one(start, end, longest):
    return with_a_table(start, end, longest + 1)


def open_end(start, end, longest):
    i, j = with_a_table(start, end, longest)
    return i, j + 1


def begins_again(start, end, longest):
    found, i = [], 0
    for j in range(len(end)):
        i = j if j >= i + longest or start[j] > start[i] else i
        found.append((start[i] + end[j], i, j))
    return max(found)[1:]


def product_of_scores(start, end, longest):
    best, found = -np.inf, None
    for i in range(len(start)):
        for j in range(i, min(i + longest, len(end))):
            if start[i] * end[j] > best:
                best, found = start[i] * end[j], (i, j)
    return found


SPAN_RIGHT = [with_a_table, by_ends]
SPAN_WRONG = [
    (two_maxima, "Your span can run backwards"),
    (no_limit, "You do not limit the length"),
    (greedy, "You take the best start first"),
    (off_by_one, "one token too long"),
    (open_end, "not the place after it"),
    (begins_again, "you begin again at the present token"),
    (product_of_scores, "You multiply the scores"),
]

# --- span_gradients --------------------------------------------------------------------------------------


def log_softmax_way(X, u, v, first, last):
    found, dX = [], 0
    for w, place in ((u, first), (v, last)):
        s = X @ w
        log_p = s - s.max() - np.log(np.exp(s - s.max()).sum())
        d = 0.5 * (np.exp(log_p) - (np.arange(len(s)) == place))
        found.append(d @ X)
        dX = dX + d[:, None] * w
    return dX, *found


def row_by_row(X, u, v, first, last):
    p, q = (np.exp(X @ w - (X @ w).max()) for w in (u, v))
    p, q = p / p.sum(), q / q.sum()
    dX, du, dv = np.zeros_like(X), np.zeros_like(u), np.zeros_like(v)
    for i in range(len(X)):
        a, b = (p[i] - (i == first)) / 2, (q[i] - (i == last)) / 2
        dX[i] = a * u + b * v
        du += a * X[i]
        dv += b * X[i]
    return dX, du, dv


def a_sum(X, u, v, first, last):
    return tuple(2 * one for one in row_by_row(X, u, v, first, last))


def turned(X, u, v, first, last):
    return tuple(-one for one in log_softmax_way(X, u, v, first, last))


def of_the_start(X, u, v, first, last):
    _, du, dv = row_by_row(X, u, v, first, last)
    return row_by_row(X, u, 0 * v, first, last)[0], du, dv


def exchanged(X, u, v, first, last):
    dX, du, dv = row_by_row(X, u, v, first, last)
    return dX, dv, du


def half_of_the_half(X, u, v, first, last):
    p, q = (np.exp(X @ w - (X @ w).max()) for w in (u, v))
    p, q = 0.5 * p / p.sum(), 0.5 * q / q.sum()
    p[first] -= 1
    q[last] -= 1
    return p[:, None] * u + q[:, None] * v, p @ X, q @ X


def without_the_label(X, u, v, first, last):
    p, q = (np.exp(X @ w - (X @ w).max()) for w in (u, v))
    p, q = p / p.sum() / 2, q / q.sum() / 2
    return np.outer(p, u) + np.outer(q, v), p @ X, q @ X


GRADIENT_RIGHT = [log_softmax_way, row_by_row]
GRADIENT_WRONG = [
    (a_sum, "The half is missing"),
    (turned, "Your signs are reversed"),
    (exchanged, "Your last two gradients have changed places"),
    (half_of_the_half, "You halve the probabilities, but not the 1"),
    (without_the_label, "The 1 at the right place is missing"),
]

# --- align_tags ------------------------------------------------------------------------------------------


def with_while(pieces, tags, room):
    ids, labels, n = [], [], 0
    while n < len(pieces):
        word = pieces[n] if pieces[n] else [100]
        if len(ids) + len(word) > room - 2:
            break
        ids.extend(word)
        labels.append(tags[n])
        labels.extend([-100 for _ in word[1:]])
        n += 1
    return [101, *ids, 102], [-100, *labels, -100]


def with_ends(pieces, tags, room):
    words = [word or [100] for word in pieces]
    fits = np.cumsum([len(word) for word in words]) <= room - 2
    ids, labels = [101], [-100]
    for word, tag, fit in zip(words, tags, fits, strict=True):
        if fit:
            ids = ids + word
            labels = labels + [tag if i == 0 else -100 for i in range(len(word))]
    return ids + [102], labels + [-100]


def all_pieces(pieces, tags, room):
    ids, _ = with_while(pieces, tags, room)
    out = [-100]
    for word, tag in zip(pieces, tags, strict=True):
        if len(out) + len(word or [100]) + 1 > room:
            break
        out += [tag] * len(word or [100])
    return ids, [*out, -100]


def zeros(pieces, tags, room):
    ids, labels = with_while(pieces, tags, room)
    return ids, [max(label, 0) for label in labels]


def no_room(pieces, tags, room):
    return with_while(pieces, tags, 10**6)


def skips(pieces, tags, room):
    ids, labels = [101], [-100]
    for word, tag in zip(pieces, tags, strict=True):
        word = word if word else [100]
        if len(ids) + len(word) < room:
            ids += word
            labels += [tag] + [-100] * (len(word) - 1)
    return [*ids, 102], [*labels, -100]


def without_unk(pieces, tags, room):
    kept = [(word, tag) for word, tag in zip(pieces, tags, strict=True) if word]
    return with_while([word for word, _ in kept], [tag for _, tag in kept], room)


ALIGN_RIGHT = [with_while, with_ends]
ALIGN_WRONG = [
    (all_pieces, "You give the tag to every piece"),
    (zeros, "You give 0 where nothing should count"),
    (no_room, "You do not look at `room`"),
    (skips, "You go on after a word that does not fit"),
    (without_unk, "A word without a piece vanishes"),
]

# --- name_the_fault --------------------------------------------------------------------------------------


def with_sets(run):
    loaded = all(
        name in run.before and np.allclose(run.before[name], array, rtol=0, atol=1e-12)
        for name, array in run.checkpoint.items()
    )
    still = {name for name in run.before if (run.before[name] == run.after[name]).all()}
    if not loaded:
        return "prefix"
    if still == {"classifier"}:
        return "head"
    if still == set(run.before) - {"classifier"}:
        return "frozen"
    return "none" if (run.logits() == run.logits()).all() else "dropout"


def in_another_order(run):
    first, second = run.logits(), run.logits()
    if np.abs(first - second).max() > 0:
        return "dropout"
    if set(run.checkpoint) - set(run.before):
        return "prefix"
    change = {name: np.abs(run.after[name] - array).max() for name, array in run.before.items()}
    if change.pop("classifier") == 0:
        return "head"
    return "frozen" if max(change.values()) == 0 else "none"


def never_loaded(run):
    answer = with_sets(run)
    return "none" if answer == "prefix" else answer


def one_call(run):
    answer = with_sets(run)
    return "none" if answer == "dropout" else answer


def only_the_checkpoint(run):
    answer = with_sets(run)
    return "none" if answer == "frozen" else answer


def no_word(run):
    answer = with_sets(run)
    return answer if answer != "none" else None


FAULT_RIGHT = [with_sets, in_another_order]
FAULT_WRONG = [
    (never_loaded, "You do not compare `before` with the checkpoint"),
    (one_call, "You do not call logits() twice"),
    (only_the_checkpoint, "You do not ask whether the encoder has moved"),
    (no_word, 'return "none"'),
]

# --- least_hits ------------------------------------------------------------------------------------------


def from_below(n, p, level):
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    for k in range(n + 1):
        if sum(chances[k:]) <= level:
            return k
    return n + 1


def with_arrays(n, p, level):
    chances = np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    good = np.flatnonzero(np.cumsum(chances[::-1])[::-1] <= level)
    return int(good[0]) if len(good) else n + 1


def by_the_normal(n, p, level):
    z = NormalDist().inv_cdf(1 - level)
    k = math.ceil(n * p + z * math.sqrt(n * p * (1 - p)))
    return min(k, n + 1)


def as_a_share(n, p, level):
    k = from_below(n, p, level)
    return k / n


def more_than(n, p, level):
    k = from_below(n, p, level)
    return k + 1


def always_a_coin(n, p, level):
    return from_below(n, 0.5, level)


def all_right(n, p, level):
    k = from_below(n, p, level)
    return min(n, k)


def two_sides(n, p, level):
    return from_below(n, p, level / 2)


HITS_RIGHT = [from_below, with_arrays]
HITS_WRONG = [
    (by_the_normal, "That is the normal approximation"),
    (as_a_share, "not the share"),
    (more_than, "Your k is one too large"),
    (always_a_coin, "You take one half for chance"),
    (all_right, "If even n right answers are not enough"),
    (two_sides, "You test on two sides"),
]

RIGHT = {
    "best_span": SPAN_RIGHT,
    "span_gradients": GRADIENT_RIGHT,
    "align_tags": ALIGN_RIGHT,
    "name_the_fault": FAULT_RIGHT,
    "least_hits": HITS_RIGHT,
}
WRONG = {
    "best_span": SPAN_WRONG,
    "span_gradients": GRADIENT_WRONG,
    "align_tags": ALIGN_WRONG,
    "name_the_fault": FAULT_WRONG,
    "least_hits": HITS_WRONG,
}
