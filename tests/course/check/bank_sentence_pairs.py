"""Answers to the exercises of chapter 14 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np

__all__ = ["RIGHT", "WRONG"]


def joined(lists):
    return [item for one in lists for item in one]


# --- make_pair -------------------------------------------------------------------------------------------


def with_sum(documents, number, start, middle, end, is_next, other, place):
    a = joined(documents[number][start:middle])
    if is_next:
        return a, joined(documents[number][middle:end]), 0
    rest = documents[:number] + documents[number + 1 :]
    return a, joined(rest[other][place : place + (end - middle)]), 1


def with_chain(documents, number, start, middle, end, is_next, other, place):
    size = end - middle
    if not is_next:
        number_b, at = [n for n in range(len(documents)) if n != number][other], place
    else:
        number_b, at = number, middle
    a = list(itertools.chain(*documents[number][start:middle]))
    b = list(itertools.chain.from_iterable(documents[number_b][at : at + size]))
    return a, b, int(not is_next)


def by_loops(documents, number, start, middle, end, is_next, other, place):
    a, b = [], []
    for i in range(start, middle):
        a += documents[number][i]
    if other >= number:
        other = other + 1
    for i in range(end - middle):
        b.extend(documents[number][middle + i] if is_next else documents[other][place + i])
    return a, b, 0 if is_next else 1


def is_next_is_one(documents, number, start, middle, end, is_next, other, place):
    a, b, label = with_sum(documents, number, start, middle, end, is_next, other, place)
    return a, b, 1 - label


def as_a_boolean(documents, number, start, middle, end, is_next, other, place):
    a, b, _ = with_chain(documents, number, start, middle, end, is_next, other, place)
    return a, b, int(is_next)


def plain_index(documents, number, start, middle, end, is_next, other, place):
    a = joined(documents[number][start:middle])
    if is_next:
        return a, joined(documents[number][middle:end]), 0
    return a, joined(documents[other][place : place + end - middle]), 1


def to_the_end(documents, number, start, middle, end, is_next, other, place):
    a, b, label = with_sum(documents, number, start, middle, end, is_next, other, place)
    if not is_next:
        b = joined((documents[:number] + documents[number + 1 :])[other][place:])
    return a, b, label


def from_the_top(documents, number, start, middle, end, is_next, other, place):
    return with_sum(documents, number, start, middle, end, is_next, other, 0)


def not_joined(documents, number, start, middle, end, is_next, other, place):
    a = documents[number][start:middle]
    b = documents[number][middle:end]
    if not is_next:
        b = (documents[:number] + documents[number + 1 :])[other][place : place + end - middle]
    return a, b, int(not is_next)


def one_too_many(documents, number, start, middle, end, is_next, other, place):
    a, b, label = by_loops(documents, number, start, middle, end, is_next, other, place)
    return a + documents[number][middle], b, label


def after_the_middle(documents, number, start, middle, end, is_next, other, place):
    a, b, label = with_sum(documents, number, start, middle, end, is_next, other, place)
    if label == 0:
        b = joined(documents[number][middle + 1 : end])
    return a, b, label


PAIR_RIGHT = [with_sum, with_chain, by_loops]
PAIR_WRONG = [
    (is_next_is_one, "Your labels are exchanged"),
    (as_a_boolean, "Your labels are exchanged"),
    (plain_index, "You take `other` as a place in `documents`"),
    (to_the_end, "goes on to the end of its document"),
    (from_the_top, "begins at the first sentence of its document"),
    (not_joined, "You return lists of sentences"),
    (one_too_many, "Sentence `middle` belongs to B"),
    (after_the_middle, "You leave sentence `middle` out"),
]

# --- share_of_next ---------------------------------------------------------------------------------------


def recursive(sentences, most):
    seen = {0: (Fraction(0), Fraction(0))}

    def expected(left):
        if left not in seen:
            n = min(left, most)
            if n == 1:
                nexts, pairs = expected(left - 1)
                seen[left] = nexts, pairs + 1
            else:
                after = [expected(left - cut) for cut in range(1, n)]
                nexts, pairs = (sum(column) / len(after) for column in zip(*after, strict=True))
                used = expected(left - n)
                seen[left] = (1 + used[0] + nexts) / 2, 1 + (used[1] + pairs) / 2
        return seen[left]

    nexts, pairs = expected(sentences)
    return float(nexts / pairs)


def by_visits(sentences, most):
    """How often a chunk starts with so many sentences left."""
    visits = np.zeros(sentences + 1)
    visits[sentences] = 1
    nexts = 0.0
    for left in range(sentences, 0, -1):
        n = min(left, most)
        if n == 1:
            visits[left - 1] += visits[left]
            continue
        nexts += visits[left] / 2
        visits[left - n] += visits[left] / 2
        visits[left - n + 1 : left] += visits[left] / 2 / (n - 1)
    return nexts / visits[1:].sum()


def as_arrays(sentences, most):
    N, P = np.zeros(sentences + 1), np.zeros(sentences + 1)
    for r in range(1, sentences + 1):
        n = min(r, most)
        P[r] = 1 + (P[r - 1] if n == 1 else P[r - n] / 2 + P[r - n + 1 : r].mean() / 2)
        N[r] = N[r - 1] if n == 1 else (1 + N[r - n] + N[r - n + 1 : r].mean()) / 2
    return N[-1] / P[-1]


def half(sentences, most):
    return 1 / 2


def used_up(sentences, most):
    """Without putting back."""
    whole, rest = divmod(sentences, most)
    if most == 1:
        return 0.0
    return (whole + (rest > 1)) / 2 / (whole + (rest > 0))


def the_number(sentences, most):
    N, P = [0.0], [0.0]
    for r in range(1, sentences + 1):
        n = min(r, most)
        if n == 1:
            N.append(N[-1])
            P.append(P[-1] + 1)
        else:
            N.append(0.5 * (1 + N[r - n]) + 0.5 * np.mean(N[r - n + 1 : r]))
            P.append(1 + 0.5 * P[r - n] + 0.5 * np.mean(P[r - n + 1 : r]))
    return N[-1]


def not_next(sentences, most):
    return 1 - by_visits(sentences, most)


def a_may_be_all(sentences, most):
    N, P = np.zeros(sentences + 1), np.zeros(sentences + 1)
    for r in range(1, sentences + 1):
        n = min(r, most)
        P[r] = 1 + (P[r - 1] if n == 1 else P[r - n] / 2 + P[r - n : r].mean() / 2)
        N[r] = N[r - 1] if n == 1 else (1 + N[r - n] + N[r - n : r].mean()) / 2
    return N[-1] / P[-1]


def mean_of_shares(sentences, most):
    """The share of each document, not that of all pairs."""

    @functools.cache
    def likely(left):
        if left == 0:
            return {(0, 0): 1.0}
        n = min(left, most)
        found = Counter()
        for used in range(1, n + 1):
            chance = 1 if n == 1 else 0.5 if used == n else 0.5 / (n - 1)
            for (a, b), other in likely(left - used).items():
                found[a + (used == n > 1), b + 1] += chance * other
        return found

    return sum(chance * a / b for (a, b), chance in likely(sentences).items())


SHARE_RIGHT = [recursive, by_visits, as_arrays]
SHARE_WRONG = [
    (half, "That is the coin for every chunk"),
    (used_up, "After a NotNext you go on after the whole chunk"),
    (the_number, "That is the expected number of IsNext"),
    (not_next, "That is the share of NotNext"),
    (mean_of_shares, "You average the shares of single documents"),
    (a_may_be_all, "You sometimes let A be the whole chunk"),
]

# --- hard_negative ---------------------------------------------------------------------------------------


def runs_of(documents, number, size):
    for other, document in enumerate(documents):
        for place in range(len(document) - size + 1):
            if other != number:
                yield other, place, joined(document[place : place + size])


def with_max(documents, number, a, size):
    found = list(runs_of(documents, number, size))
    best = max(found, key=lambda run: len(set(run[2]).intersection(a)))
    return best[0], best[1]


def sorted_runs(documents, number, a, size):
    keyed = [
        (-len({*a} & {*words}), other, place) for other, place, words in runs_of(documents, number, size)
    ]
    _, other, place = min(keyed)
    return other, place


def with_arrays(documents, number, a, size):
    found = list(runs_of(documents, number, size))
    shares = np.array([sum(word in words for word in set(a)) for _, _, words in found])
    return found[int(shares.argmax())][:2]


def all_documents(documents, number, a, size):
    return with_max(documents, -1, a, size)


def counted(documents, number, a, size):
    found = list(runs_of(documents, number, size))
    best = max(found, key=lambda run: sum(Counter(run[2])[word] for word in set(a)))
    return best[:2]


def a_last_one(documents, number, a, size):
    best = max(runs_of(documents, number, size), key=lambda run: (len(set(run[2]) & set(a)), run[:2]))
    return best[:2]


def least(documents, number, a, size):
    return min(runs_of(documents, number, size), key=lambda run: len(set(run[2]) & set(a)))[:2]


def too_short_runs(documents, number, a, size):
    found = [
        (other, place, joined(document[place : place + size]))
        for other, document in enumerate(documents)
        if other != number
        for place in range(len(document))
    ]
    return max(found, key=lambda run: len(set(run[2]) & set(a)))[:2]


NEGATIVE_RIGHT = [with_max, sorted_runs, with_arrays]
NEGATIVE_WRONG = [
    (all_documents, "Your B can be of A's own document"),
    (counted, "You count how often the shared words come in B"),
    (a_last_one, "Of runs that share as many words you take the last"),
    (least, "You take the run that shares the fewest words"),
    (too_short_runs, "Your run is shorter than `size`"),
]

# --- name_the_mistake ------------------------------------------------------------------------------------


def by_shares(make):
    pairs = [pair for seed in range(3) for pair in make(np.random.default_rng(seed))]
    nexts = [pair for pair in pairs if not pair[2]]
    random = [pair for pair in pairs if pair[2]]

    def share(test, of):
        return sum(test(a, b) for a, b, _ in of) / len(of)

    if share(lambda a, b: b[0] == (a[-1][0], a[-1][1] + 1), nexts) < 0.9:
        return "label"
    if share(lambda a, b: a[0][0] == b[0][0], random) > 0.9:
        return "document"
    if share(lambda a, b: b[0][1] == 0, random) > 0.9:
        return "opening"
    longest = max(len(b) for _, b, _ in nexts)
    return "length" if share(lambda a, b: len(b) > longest, random) > 0.9 else "none"


def with_means(make):
    pairs = make(np.random.default_rng(7)) + make(np.random.default_rng(8))
    y = np.array([label for *_, label in pairs])
    follows = np.array([a[-1][0] == b[0][0] and a[-1][1] == b[0][1] - 1 for a, b, _ in pairs])
    first = np.array([b[0][1] for _, b, _ in pairs])
    same = np.array([a[0][0] == b[0][0] for a, b, _ in pairs])
    size = np.array([len(b) for _, b, _ in pairs])
    if not follows[y == 0].all():
        return "label"
    if same[y == 1].all():
        return "document"
    if (first[y == 1] == 0).all():
        return "opening"
    return "length" if set(size[y == 1]) - set(size[y == 0]) else "none"


def any_opening(make):
    pairs = make(np.random.default_rng(0))
    if any(b[0][1] == 0 for _, b, label in pairs if label):
        named = with_means(make)
        return named if named in ("label", "document") else "opening"
    return with_means(make)


def no_labels(make):
    pairs = make(np.random.default_rng(0))
    swapped = with_means(make) == "label"
    random = [(a, b) for a, b, label in pairs if label]
    if swapped:
        return "document" if all(a[0][0] == b[0][0] for a, b in random) else "length"
    return with_means(make)


def one_length(make):
    named = with_means(make)
    if named in ("label", "document", "opening"):
        return named
    sizes = {len(b) for _, b, label in make(np.random.default_rng(0)) if label}
    return "length" if len(sizes) == 1 else "none"


def silent(make):
    named = with_means(make)
    return None if named == "none" else named


def labels_last(make):
    pairs = make(np.random.default_rng(0))
    nexts = [(a, b) for a, b, label in pairs if label == 0]
    others = [(a, b) for a, b, label in pairs if label == 1]
    if all(a[0][0] == b[0][0] for a, b in others):
        return "document"
    if all(b[0][1] == 0 for _, b in others):
        return "opening"
    if not all(a[0][0] == b[0][0] for a, b in nexts):
        return "label"
    return "length" if {len(b) for _, b in nexts} != {len(b) for _, b in others} else "none"


MISTAKE_RIGHT = [by_shares, with_means]
MISTAKE_WRONG = [
    (any_opening, "One B that opens a document is no mistake"),
    (no_labels, "The test of the labels is missing"),
    (labels_last, "The test of the labels is missing, or it comes too late"),
    (one_length, "A B that always has the same length is a mistake only"),
    (silent, 'If there is no mistake, return "none"'),
]

# --- pairs_needed ----------------------------------------------------------------------------------------


def by_trying(share, z_test, z_power):
    n = 1
    while abs(0.5 - share) < (z_test * 0.5 + z_power * math.sqrt(share - share**2)) / math.sqrt(n):
        n += 1
    return n


def with_numpy(share, z_test, z_power):
    deviations = np.sqrt([0.25, share * (1 - share)])
    return int(np.ceil((deviations @ [z_test, z_power] / (share - 0.5)) ** 2))


def without_power(share, z_test, z_power):
    return math.ceil((z_test * 0.5 / (0.5 - share)) ** 2)


def coin_twice(share, z_test, z_power):
    return math.ceil(((z_test + z_power) / 2 / (0.5 - share)) ** 2)


def the_share_twice(share, z_test, z_power):
    return math.ceil((z_test + z_power) ** 2 * share * (1 - share) / (0.5 - share) ** 2)


def not_rounded(share, z_test, z_power):
    return ((z_test * 0.5 + z_power * (share * (1 - share)) ** 0.5) / (share - 0.5)) ** 2


def no_square(share, z_test, z_power):
    return math.ceil((z_test * 0.5 + z_power * (share * (1 - share)) ** 0.5) / abs(share - 0.5))


NEEDED_RIGHT = [by_trying, with_numpy]
NEEDED_WRONG = [
    (without_power, "You leave out the power"),
    (coin_twice, "Under the other share the standard deviation is"),
    (the_share_twice, "Under the fair coin the standard deviation is 1/2"),
    (not_rounded, "Round up"),
    (no_square, "The square is missing"),
]

RIGHT = {
    "make_pair": PAIR_RIGHT,
    "share_of_next": SHARE_RIGHT,
    "hard_negative": NEGATIVE_RIGHT,
    "name_the_mistake": MISTAKE_RIGHT,
    "pairs_needed": NEEDED_RIGHT,
}
WRONG = {
    "make_pair": PAIR_WRONG,
    "share_of_next": SHARE_WRONG,
    "hard_negative": NEGATIVE_WRONG,
    "name_the_mistake": MISTAKE_WRONG,
    "pairs_needed": NEEDED_WRONG,
}
