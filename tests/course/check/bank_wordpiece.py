"""Answers to the exercises of chapter 5, in the words of others: right ones, and wrong ones with what to tell."""

from __future__ import annotations

import functools
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

UNKNOWN = ["[UNK]"]

# --- split_word -------------------------------------------------------------------------------------------


def by_the_rest(word, vocabulary):
    """Eat the word from the left, with `##` as part of what is left."""
    if len(word) > 100:
        return UNKNOWN
    rest, mark, pieces = word, "", []
    while rest:
        fits = [rest[:n] for n in range(1, len(rest) + 1) if mark + rest[:n] in vocabulary]
        if not fits:
            return UNKNOWN
        pieces.append(mark + max(fits, key=len))
        rest, mark = rest[len(max(fits, key=len)) :], "##"
    return pieces


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


def as_google_has_it(token, vocab):
    """With a flag, as in Devlin et al.'s code."""
    chars = list(token)
    if len(chars) > 100:
        return ["[UNK]"]
    is_bad, start, sub_tokens = False, 0, []
    while start < len(chars):
        end, cur_substr = len(chars), None
        while start < end:
            substr = "".join(chars[start:end])
            if start > 0:
                substr = "##" + substr
            if substr in vocab:
                cur_substr = substr
                break
            end -= 1
        if cur_substr is None:
            is_bad = True
            break
        sub_tokens.append(cur_substr)
        start = end
    return ["[UNK]"] if is_bad else sub_tokens


def by_all_pieces(word, vocabulary):
    """Sorts the vocabulary by length and looks which piece the rest begins with."""
    longest_first = sorted(vocabulary, key=lambda piece: -len(piece.removeprefix("##")))
    if len(word) >= 101:
        return UNKNOWN
    out = []
    while word:
        for piece in longest_first:
            if piece.startswith("##") == bool(out) and word.startswith(piece.removeprefix("##")):
                out.append(piece)
                word = word[len(piece.removeprefix("##")) :]
                break
        else:
            return UNKNOWN
    return out


def split_with(word, vocabulary, *, shortest=False, marks=True, keep=True, whole=True, most=100, step=None):
    """A longest match with what a learner may have changed in it."""
    if len(word) > most:
        return UNKNOWN
    pieces, i = [], 0
    while i < len(word):
        mark = "##" if i and marks else ""
        ends = [j for j in range(i + 1, len(word) + 1) if mark + word[i:j] in vocabulary]
        if not ends:
            if whole:
                return UNKNOWN
            return [*pieces, "[UNK]"]
        j = ends[0] if shortest else ends[-1]
        pieces.append(mark + word[i:j] if keep else word[i:j])
        i = step(i, j) if step else j
    return pieces


def letter_unknown(word, vocabulary):
    pieces, i = [], 0
    while i < len(word) <= 100:
        mark = "##" * (i > 0)
        j = next((j for j in range(len(word), i, -1) if mark + word[i:j] in vocabulary), None)
        pieces.append("[UNK]" if j is None else mark + word[i:j])
        i = i + 1 if j is None else j
    return pieces or UNKNOWN


def back_and_forth(word, vocabulary):
    @functools.cache
    def cut(i):
        if i == len(word):
            return ()
        for j in range(len(word), i, -1):
            if ("##" * (i > 0)) + word[i:j] in vocabulary and cut(j) is not None:
                return (("##" * (i > 0)) + word[i:j], *cut(j))
        return None

    found = cut(0) if len(word) <= 100 else None
    return UNKNOWN if found is None else list(found)


def from_behind(word, vocabulary):
    out, j = [], len(word)
    while 0 < j <= 100:
        i = next((i for i in range(j) if ("##" * (i > 0)) + word[i:j] in vocabulary), None)
        if i is None:
            return UNKNOWN
        out.append(("##" * (i > 0)) + word[i:j])
        j = i
    return out[::-1] or UNKNOWN


SPLIT_RIGHT = [by_the_rest, recursively, as_google_has_it, by_all_pieces, split_with]
SPLIT_WRONG = [
    (lambda w, v: split_with(w, v, shortest=True), "You take the shortest piece that fits"),
    (lambda w, v: split_with(w, v, marks=False), "You look up every piece without ##"),
    (lambda w, v: split_with(w, v, keep=False), "return them without their ##"),
    (lambda w, v: split_with(w, v, whole=False), "[UNK] alone stands for the whole word"),
    (lambda w, v: split_with(w, v, most=99), "A word of exactly 100 characters is still cut"),
    (lambda w, v: split_with(w, v, most=1e9), "A word of more than 100 characters"),
    (lambda w, v: split_with(w, v, step=lambda i, j: i + 1), "you go on one letter later"),
    (letter_unknown, "The whole word becomes one [UNK]"),
    (back_and_forth, "you go back and try a shorter piece"),
    (from_behind, "BERT begins at the front"),
    (lambda w, v: [] if split_with(w, v) == UNKNOWN else split_with(w, v), "you return an empty list"),
    (lambda w, v: "[UNK]" if split_with(w, v) == UNKNOWN else split_with(w, v), "The answer is a list"),
    (lambda w, v: " ".join(split_with(w, v)), "it should return 1 value,"),
    (
        lambda w, v: split_with(w, v, shortest=True, keep=False),
        ("You take the shortest piece", "return them without their ##"),
    ),
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


def one_front(frequent, likely):
    p, r, *_ = free(frequent, likely)
    return judged({p + frequent: 25, r + likely: 1, r: 30})


def front_never_alone(frequent, likely):
    p, q, r, *_ = free(frequent, likely)
    return judged({p + frequent: 25, q + frequent: 25, r + likely: 1})


RULES_RIGHT = [longer_words, fronts_shared]
RULES_WRONG = [
    (one_front, "By the count there is a tie"),
    (front_never_alone, "By the score there is a tie"),
    (
        lambda f, s: judged({free(f, s)[0] + f: 5, free(f, s)[1] + s: 1}),
        "By both rules there is a tie",
    ),
    (lambda f, s: longer_words(s, f), "the wrong way round"),
    (lambda f, s: judged({f: 10, s: 1}), "Your pairs are at the front of their words"),
    (lambda f, s: longer_words(f[::-1], s), "in the other order"),
    (lambda f, s: None, "it returned None"),
    (lambda f, s: (longer_words(f, s)[0],) * 2, "The score takes the first pair too"),
    (lambda f, s: (longer_words(f, s)[1],) * 2, "The count takes the second pair too"),
]

# --- mended_merges ----------------------------------------------------------------------------------------


def rebuilt(word_counts, n, *, weigh=True, marks=True, drop=True, every=True, tie=None, more=0, front=True):
    """A learner that builds new lists, with what a learner may have left broken."""
    spelled = {w: tuple([w[0]] + ["##" + x for x in w[1:]]) for w in word_counts}
    names = []
    while len(names) < n + more:
        pairs = Counter()
        for w, parts in spelled.items():
            for two in pairwise(parts):
                pairs[two] += word_counts[w] if weigh else 1
        if not pairs:
            break
        best = min(sorted(pairs) if tie is None else pairs, key=lambda two: -pairs[two])
        behind = best[1].removeprefix("##") if marks else best[1]
        name = (best[0] if front else best[0].removeprefix("##")) + behind
        names.append(name)
        for w, parts in spelled.items():
            out, i, done = [], 0, False
            while i < len(parts):
                if parts[i : i + 2] == best and (every or not done):
                    out.append(name)
                    i, done = i + (2 if drop else 1), True
                else:
                    out.append(parts[i])
                    i += 1
            spelled[w] = tuple(out)
    return names


def with_counts_kept(word_counts, n):
    """Keeps the counts of the pairs, and takes away and adds those of the words that change."""
    spelled = {w: [w[0], *("##" + x for x in w[1:])] for w in word_counts}
    pairs, names = Counter(), []
    for w, parts in spelled.items():
        for two in pairwise(parts):
            pairs[two] += word_counts[w]
    while len(names) < n and (there := {two: k for two, k in pairs.items() if k > 0}):
        best = sorted(there, key=lambda two: (-there[two], two))[0]
        names.append(best[0] + best[1][2:])
        for w, parts in spelled.items():
            for two in pairwise(parts):
                pairs[two] -= word_counts[w]
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [names[-1]]
                i += 1
            for two in pairwise(parts):
                pairs[two] += word_counts[w]
    return names


def from_the_end(word_counts, n):
    """Looks for the pair from the end of each word."""
    spelled = {w: [w[0], *("##" + x for x in w[1:])] for w in word_counts}
    names = []
    for _ in range(n):
        pairs = Counter()
        for w, parts in spelled.items():
            for two in pairwise(parts):
                pairs[two] += word_counts[w]
        if not pairs:
            break
        best = sorted(pairs, key=lambda two: (-pairs[two], two))[0]
        names.append(best[0] + best[1][2:])
        for parts in spelled.values():
            for i in range(len(parts) - 2, -1, -1):
                if (*parts[i : i + 2],) == best:
                    parts[i : i + 2] = [names[-1]]
    return names


def counted_once(word_counts, n):
    pairs = Counter()
    for word, count in word_counts.items():
        for two in pairwise([word[0], *("##" + x for x in word[1:])]):
            pairs[two] += count
    best = sorted(pairs, key=lambda two: (-pairs[two], two))
    return [a + b[2:] for a, b in best[:n]]


MENDED_RIGHT = [rebuilt, with_counts_kept, lambda counts, n: tuple(rebuilt(counts, n))]
MENDED_WRONG = [
    (lambda c, n: rebuilt(c, n, weigh=False), "Yours counts each different word once"),
    (lambda c, n: rebuilt(c, n, marks=False), "keeps a ## in its middle"),
    (lambda c, n: rebuilt(c, n, drop=False), "The second piece of a merged pair is still there"),
    (lambda c, n: rebuilt(c, n, front=False), "has lost its ## in front"),
    (lambda c, n: rebuilt(c, n, every=False), "You merge only the first place in each word"),
    (lambda c, n: rebuilt(c, n, tie="first met"), "the first in alphabetical order"),
    (lambda c, n: rebuilt(c, n, more=1), "You merge once more than asked for"),
    (counted_once, "You count the pairs once, at the start"),
    (from_the_end, "You go through each word from right to left"),
    (
        lambda c, n: rebuilt(c, n, weigh=False, marks=False),
        ("Yours counts each different word once", "keeps a ## in its middle"),
    ),
]

# --- fewest_pieces ----------------------------------------------------------------------------------------


def by_memory(word, vocabulary):
    @functools.cache
    def need(start):
        if start == len(word):
            return 0
        mark = "##" if start else ""
        return min(
            (
                1 + need(end)
                for end in range(start + 1, len(word) + 1)
                if mark + word[start:end] in vocabulary
            ),
            default=math.inf,
        )

    found = need(0)
    return 0 if found == math.inf else found


def level_by_level(word, vocabulary):
    """A breadth-first walk over the places where a cut can be."""
    here, steps, seen = {0}, 0, {0}
    while here:
        if len(word) in here:
            return steps
        there = {
            end
            for start in here
            for end in range(start + 1, len(word) + 1)
            if ("##" * (start > 0)) + word[start:end] in vocabulary
        }
        here, steps, seen = there - seen, steps + 1, seen | there
    return 0


def by_matrix(word, vocabulary):
    L = len(word)
    cost = np.full(L + 1, np.inf)
    cost[0] = 0
    for end in range(1, L + 1):
        for start in range(end):
            if ("##" if start else "") + word[start:end] in vocabulary:
                cost[end] = min(cost[end], cost[start] + 1)
    return int(cost[L]) if np.isfinite(cost[L]) else 0


def all_cuts(word, vocabulary):
    """Every set of places, few places first."""
    for k in range(min(len(word), 7)):
        for places in combinations(range(1, len(word)), k):
            ends = [0, *places, len(word)]
            if all(("##" if i else "") + word[i:j] in vocabulary for i, j in pairwise(ends)):
                return k + 1
    return 0 if by_memory(word, vocabulary) == 0 else by_memory(word, vocabulary)


def greedy(word, vocabulary):
    pieces = split_with(word, vocabulary)
    return 0 if pieces == UNKNOWN else len(pieces)


FEWEST_RIGHT = [by_memory, level_by_level, by_matrix, all_cuts]
FEWEST_WRONG = [
    (greedy, "You count the pieces of the longest match"),
    (lambda w, v: len(split_with(w, v)), "has length 1"),
    (lambda w, v: max(0, by_memory(w, v) - 1), "You count the cuts"),
    (lambda w, v: by_memory(w, v) or len(w), "Where no cut exists, the answer is 0"),
    (lambda w, v: by_memory(w, v) or math.inf, "Where no cut exists, the answer is 0"),
    (
        lambda w, v: by_memory(
            w, {p.removeprefix("##") for p in v if "##" not in p} | {"##" + p for p in v if "##" not in p}
        ),
        "You look up every piece without ##",
    ),
    (lambda w, v: [by_memory(w, v)], "it should return"),
]

# --- likelihood_gain --------------------------------------------------------------------------------------


def by_two_likelihoods(n, c_a, c_b, c_ab):
    """The whole sums, with the pieces that do not change as one."""

    def total(counts, n):
        return sum(c * math.log(c / n) for c in counts if c > 0)

    others = n - c_a - c_b
    # The others' terms change only by the logarithm of n.
    before = total([c_a, c_b], n) - others * math.log(n)
    after = total([c_a - c_ab, c_b - c_ab, c_ab], n - c_ab) - others * math.log(n - c_ab)
    return after - before


def with_arrays(n, c_a, c_b, c_ab):
    def entropy_like(counts):
        counts = np.array([c for c in counts if c], dtype=float)
        return float((counts * np.log(counts)).sum())

    return (
        entropy_like([c_a - c_ab, c_b - c_ab, c_ab])
        + entropy_like([n])
        - entropy_like([c_a, c_b])
        - entropy_like([n - c_ab])
    )


def gain_with(n, c_a, c_b, c_ab, *, shrink=True, less=True, new=True, log=math.log):
    def power(c):
        return c * log(c) if c > 0 else 0

    result = (power(c_a - c_ab) + power(c_b - c_ab)) if less else (power(c_a) + power(c_b))
    result += power(c_ab) if new else 0
    return result - power(n - c_ab if shrink else n) - power(c_a) - power(c_b) + power(n)


def by_terms(n, c_a, c_b, c_ab, after=None):
    """Only the terms of the pair and of the new piece, as if the others stayed as they are."""

    def share(c, n):
        return 0.0 if c == 0 else c * (math.log(c) - math.log(n))

    after = n - c_ab if after is None else after
    new = share(c_a - c_ab, after) + share(c_b - c_ab, after) + share(c_ab, after)
    return new - share(c_a, n) - share(c_b, n)


def zeros_forgotten(n, c_a, c_b, c_ab):
    with np.errstate(all="ignore"):
        c = np.array([c_a - c_ab, c_b - c_ab, c_ab, n], dtype=float)
        d = np.array([c_a, c_b, n - c_ab], dtype=float)
        return float((c * np.log(c)).sum() - (d * np.log(d)).sum())


GAIN_RIGHT = [by_two_likelihoods, with_arrays, gain_with]
GAIN_WRONG = [
    (lambda *x: gain_with(*x, shrink=False), "so n becomes n - c_ab"),
    (lambda *x: gain_with(*x, less=False), "a and b occur less often after the merge"),
    (lambda *x: gain_with(*x, new=False), "The new piece is missing"),
    (lambda *x: gain_with(*x, log=math.log2), "The unit is nats"),
    (lambda *x: -gain_with(*x), "before minus after"),
    (lambda n, a, b, c: c * math.log(n * c / a / b), "It leaves out that a, b and n change"),
    (lambda n, a, b, c: c / a / b, "That is the score"),
    (lambda n, a, b, c: gain_with(n, a, b, c) / n, "for each piece of the text"),
    (zeros_forgotten, "A piece that is gone has c = 0"),
    (by_terms, "All other pieces have probability c / n too"),
    (lambda n, a, b, c: by_terms(n, a, b, c, after=n), "You divide by the same n before and after"),
    (
        lambda *x: gain_with(*x, shrink=False, new=False),
        ("so n becomes n - c_ab", "The new piece is missing"),
    ),
]


RIGHT = {
    "split_word": SPLIT_RIGHT,
    "two_rules": RULES_RIGHT,
    "mended_merges": MENDED_RIGHT,
    "fewest_pieces": FEWEST_RIGHT,
    "likelihood_gain": GAIN_RIGHT,
}
WRONG = {
    "split_word": SPLIT_WRONG,
    "two_rules": RULES_WRONG,
    "mended_merges": MENDED_WRONG,
    "fewest_pieces": FEWEST_WRONG,
    "likelihood_gain": GAIN_WRONG,
}
