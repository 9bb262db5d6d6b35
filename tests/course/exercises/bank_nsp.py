"""Right answers to the exercises of chapter `nsp`, as learners write them."""

from __future__ import annotations

import numpy as np

RIGHT = {}


def joined(lists):
    return [item for one in lists for item in one]


# --- make_pair -------------------------------------------------------------------------------------------


def with_sum(documents, number, start, middle, end, is_next, other, place):
    a = joined(documents[number][start:middle])
    if is_next:
        return a, joined(documents[number][middle:end]), 0
    rest = documents[:number] + documents[number + 1 :]
    return a, joined(rest[other][place : place + (end - middle)]), 1


RIGHT["make_pair"] = [with_sum]

# --- share_of_next ---------------------------------------------------------------------------------------


def as_arrays(sentences, most):
    N, P = np.zeros(sentences + 1), np.zeros(sentences + 1)
    for r in range(1, sentences + 1):
        n = min(r, most)
        P[r] = 1 + (P[r - 1] if n == 1 else P[r - n] / 2 + P[r - n + 1 : r].mean() / 2)
        N[r] = N[r - 1] if n == 1 else (1 + N[r - n] + N[r - n + 1 : r].mean()) / 2
    return N[-1] / P[-1]


RIGHT["share_of_next"] = [as_arrays]

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


RIGHT["hard_negative"] = [with_max]

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
    lengths = {len(b) for _, b, _ in nexts}
    return "length" if share(lambda a, b: len(b) not in lengths, random) > 0.9 else "none"


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


RIGHT["name_the_mistake"] = [by_shares, with_means]

# --- pairs_needed ----------------------------------------------------------------------------------------


def with_numpy(share, z_test, z_power):
    deviations = np.sqrt([0.25, share * (1 - share)])
    return int(np.ceil((deviations @ [z_test, z_power] / (share - 0.5)) ** 2))


RIGHT["pairs_needed"] = [with_numpy]
