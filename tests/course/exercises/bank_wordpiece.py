"""Answers to the exercises of `wordpiece`, in the words of others: right ones, and wrong ones with what to tell."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np

RIGHT = {}
WRONG = {}

UNKNOWN = ["[UNK]"]

# --- split_word -------------------------------------------------------------------------------------------


def recursively(word, vocabulary, mark=""):
    if len(word) > 100:
        return ["[UNK]"]
    if not word:
        return []
    for n in range(len(word), 0, -1):
        if mark + word[:n] in vocabulary:
            behind = recursively(word[n:], vocabulary, "##")
            return ["[UNK]"] if behind == ["[UNK]"] else [mark + word[:n], *behind]
    return ["[UNK]"]


def split_with(word, vocabulary, *, shortest=False, keep=True):
    """A longest match with what a learner may have changed in it."""
    if len(word) > 100:
        return UNKNOWN
    pieces, i = [], 0
    while i < len(word):
        mark = "##" if i else ""
        ends = [j for j in range(i + 1, len(word) + 1) if mark + word[i:j] in vocabulary]
        if not ends:
            return UNKNOWN
        j = ends[0] if shortest else ends[-1]
        pieces.append(mark + word[i:j] if keep else word[i:j])
        i = j
    return pieces


RIGHT["split_word"] = [split_with]
WRONG["split_word"] = [
    (lambda w, v: split_with(w, v, shortest=True, keep=False), ("[shortest-piece]", "[no-marks]"))
]

# --- two_rules --------------------------------------------------------------------------------------------


def first(corpus, score):
    pieces, pairs = Counter(), Counter()
    for word, times in corpus.items():
        parts = [word[:1]] + ["##" + x for x in word[1:]]
        pieces.update(dict.fromkeys(parts, 0))
        for part in parts:
            pieces[part] += times
        for two in pairwise(parts):
            pairs[two] += times
    if score:
        pairs = {two: Fraction(n, pieces[two[0]] * pieces[two[1]]) for two, n in pairs.items()}
    top = max(pairs.values())
    best = [two for two in pairs if pairs[two] == top]
    return " ".join(best[0]) if len(best) == 1 else "a tie"


def judged(corpus):
    return first(corpus, False), first(corpus, True)


def free(*used):
    return [x for x in "zyxwvutsrqponmlkjihgfedcba" if x not in "".join(used)]


def longer_words(frequent, likely):
    p, q, r, s, *_ = free(frequent, likely)
    return judged({p + frequent: 6, q + frequent: 7, r + likely: 1, r: 50, s: 3})


def fronts_shared(frequent, likely):
    """The same letters stand in front of both pairs."""
    p, q, r, *_ = free(frequent, likely)
    return judged({p + frequent: 20, q + frequent: 20, r + frequent: 20, p + likely: 1})


RIGHT["two_rules"] = [longer_words, fronts_shared]

# --- mended_merges ----------------------------------------------------------------------------------------


def rebuilt(word_counts, n, *, weigh=True, marks=True):
    """A learner that builds new lists, with what a learner may have left broken."""
    spelled = {w: tuple([w[0]] + ["##" + x for x in w[1:]]) for w in word_counts}
    names = []
    while len(names) < n:
        pairs = Counter()
        for w, parts in spelled.items():
            for two in pairwise(parts):
                pairs[two] += word_counts[w] if weigh else 1
        if not pairs:
            break
        best = min(sorted(pairs), key=lambda two: -pairs[two])
        name = best[0] + (best[1].removeprefix("##") if marks else best[1])
        names.append(name)
        for w, parts in spelled.items():
            out, i = [], 0
            while i < len(parts):
                if parts[i : i + 2] == best:
                    out.append(name)
                    i += 2
                else:
                    out.append(parts[i])
                    i += 1
            spelled[w] = tuple(out)
    return names


RIGHT["mended_merges"] = [rebuilt]
WRONG["mended_merges"] = [
    (lambda c, n: rebuilt(c, n, weigh=False, marks=False), ("[words-once]", "[marks-in-middle]"))
]

# --- fewest_pieces ----------------------------------------------------------------------------------------


def by_matrix(word, vocabulary):
    L = len(word)
    cost = np.full(L + 1, np.inf)
    cost[0] = 0
    for end in range(1, L + 1):
        for start in range(end):
            if ("##" if start else "") + word[start:end] in vocabulary:
                cost[end] = min(cost[end], cost[start] + 1)
    return int(cost[L]) if np.isfinite(cost[L]) else 0


RIGHT["fewest_pieces"] = [by_matrix]

# --- likelihood_gain --------------------------------------------------------------------------------------


def gain_with(n, c_a, c_b, c_ab, *, shrink=True, new=True):
    def power(c):
        return c * math.log(c) if c > 0 else 0

    result = power(c_a - c_ab) + power(c_b - c_ab)
    result += power(c_ab) if new else 0
    return result - power(n - c_ab if shrink else n) - power(c_a) - power(c_b) + power(n)


RIGHT["likelihood_gain"] = [gain_with]
WRONG["likelihood_gain"] = [
    (lambda *x: gain_with(*x, shrink=False, new=False), ("[same-length]", "[no-new-piece]"))
]
