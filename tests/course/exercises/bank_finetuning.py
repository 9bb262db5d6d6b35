"""Right answers to the exercises of chapter `finetuning`, as learners write them."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}

# --- best_span -------------------------------------------------------------------------------------------


def by_ends(start, end, longest):
    spans = [(i, j) for j in range(len(end)) for i in range(max(0, j - longest + 1), j + 1)]
    return max(spans, key=lambda span: start[span[0]] + end[span[1]])


RIGHT["best_span"] = [by_ends]

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


RIGHT["span_gradients"] = [log_softmax_way]

# --- align_tags ------------------------------------------------------------------------------------------


def with_ends(pieces, tags, room):
    words = [word or [100] for word in pieces]
    fits = np.cumsum([len(word) for word in words]) <= room - 2
    ids, labels = [101], [-100]
    for word, tag, fit in zip(words, tags, fits, strict=True):
        if fit:
            ids = ids + word
            labels = labels + [tag if i == 0 else -100 for i in range(len(word))]
    return ids + [102], labels + [-100]


RIGHT["align_tags"] = [with_ends]

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


RIGHT["name_the_fault"] = [with_sets, in_another_order]

# --- least_hits ------------------------------------------------------------------------------------------


def with_arrays(n, p, level):
    chances = np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    good = np.flatnonzero(np.cumsum(chances[::-1])[::-1] <= level)
    return int(good[0]) if len(good) else n + 1


RIGHT["least_hits"] = [with_arrays]
