"""Answers to the exercises of chapter 17 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RIGHT", "WRONG"]


# --- arcs_found ------------------------------------------------------------------------------------------


def arc_by_arc(A, words, arcs):
    found = np.zeros(A.shape[1])
    for story, start, end in arcs:
        for head in range(A.shape[1]):
            row = A[story, head, start].copy()
            row[~words[story]] = -1.0
            row[start] = -1.0
            found[head] += np.argmax(row) == end
    return found / len(arcs)


def nothing_is_larger(A, words, arcs):
    """The end is found if no other word that counts has more."""
    story, start, end = arcs[:, 0], arcs[:, 1], arcs[:, 2]
    rows = A[story, :, start]
    counts = words[story] & (np.arange(A.shape[-1]) != start[:, None])
    at_end = np.take_along_axis(rows, end[:, None, None], axis=2)
    return np.mean(~((rows > at_end) & counts[:, None]).any(axis=2), axis=0)


def by_product(A, words, arcs):
    """Weights are above 0, so what does not count can be made 0."""
    rows = np.stack([A[s, :, i] * words[s] * (np.arange(A.shape[-1]) != i) for s, i, _ in arcs])
    return (rows.argmax(-1) == arcs[:, 2:]).mean(0)


def counted(A, words, arcs):
    return arc_by_arc(A, words, arcs) * len(arcs)


def columns_read(A, words, arcs):
    return arc_by_arc(np.swapaxes(A, -1, -2), words, arcs)


def backwards(A, words, arcs):
    return nothing_is_larger(A, words, arcs[:, [0, 2, 1]])


def anything_wins(A, words, arcs):
    s, i, j = arcs.T
    return (A[s, :, i].argmax(-1) == j[:, None]).mean(0)


def itself_wins(A, words, arcs):
    s, i, j = arcs.T
    return (np.where(words[s][:, None], A[s, :, i], 0).argmax(-1) == j[:, None]).mean(0)


def mean_weight(A, words, arcs):
    return np.array([np.mean([A[s, k, i, j] for s, i, j in arcs]) for k in range(A.shape[1])])


def above_half(A, words, arcs):
    return np.mean([A[s, :, i, j] > 0.5 for s, i, j in arcs], axis=0)


def special_wins(A, words, arcs):
    return arc_by_arc(A, words | True, arcs)


ARCS_RIGHT = [arc_by_arc, nothing_is_larger, by_product]
ARCS_WRONG = [
    (counted, "Divide by the number of arcs"),
    (columns_read, "You read columns"),
    (backwards, "backwards"),
    (anything_wins, "Take both away"),
    (itself_wins, "out of its own row"),
    (special_wins, "Only words count"),
    (mean_weight, "counts as 0 or 1"),
    (above_half, "above one half"),
]

# --- other_weights ---------------------------------------------------------------------------------------


def one_entry_as_unit(a, V):
    """z[0] = -1, and the others from a linear system."""
    C = np.vstack([V.T, np.ones(len(a))])
    z = np.append(-1.0, np.linalg.solve(C[:, 1:], C[:, 0]))
    return a + min(a[i] / -z[i] for i in range(len(a)) if z[i] < 0) * z


def by_projection(a, V):
    """What is left of the first unit vector outside of the rows of C."""
    C = np.column_stack([V, np.ones(len(V))])
    q, _ = np.linalg.qr(C)
    unit = np.zeros(len(a))
    unit[0] = -1
    z = unit - q @ (q.T @ unit)
    with np.errstate(divide="ignore"):
        t = np.where(z < 0, -a / z, np.inf).min()
    return a + t * z


def sum_forgotten(a, V):
    z = np.linalg.svd(V.T)[2][-1]
    z = -z if z[0] > 0 else z
    return a + (a[z < 0] / -z[z < 0]).min() * z


def other_side(a, V):
    C = np.vstack([V.T, np.ones(len(a))])
    z = np.linalg.svd(C)[2][-1]
    z = z if z[0] > 0 else -z
    return a + (a[z < 0] / -z[z < 0]).min() * z


def first_at_zero(a, V):
    C = np.vstack([V.T, np.ones(len(a))])
    z = np.append(-1.0, np.linalg.solve(C[:, 1:], C[:, 0]))
    return a + a[0] * z


def the_same(a, V):
    return np.array(a)


def half_way(a, V):
    return (a + one_entry_as_unit(a, V)) / 2


def of_least_squares(a, V):
    C = np.vstack([V.T, np.ones(len(a))])
    return np.linalg.lstsq(C, C @ a, rcond=None)[0]


WEIGHTS_RIGHT = [one_entry_as_unit, by_projection]
WEIGHTS_WRONG = [
    (sum_forgotten, "do not sum to 1"),
    (other_side, "the other way along the line"),
    (first_at_zero, "another weight may be below 0"),
    (the_same, "the weights that came in"),
    (half_way, "half way"),
    (of_least_squares, "squares have the smallest sum"),
]

# --- last_same_word --------------------------------------------------------------------------------------


def softmax(S):
    E = np.exp(S - S.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def head(X, W_Q, W_K):
    return softmax(X @ W_Q @ (X @ W_K).T / math.sqrt(W_Q.shape[1]))


def placed(words, n_words, order, same=1e5, softer=1.0):
    L = len(words)
    X = np.hstack([np.eye(n_words)[words], np.eye(L)])
    W_Q = np.zeros((n_words + L, n_words + L))
    W_Q[:n_words, :n_words] = same * np.eye(n_words)
    W_Q[n_words:, n_words:] = order
    return head(X, W_Q / softer, np.eye(n_words + L)).round(1)


def with_loops(words, n_words):
    L = len(words)
    order = np.full((L, L), -1e7)
    for i in range(L):
        order[i, 0] = 500.0
        for j in range(1, i):
            order[i, j] = 20.0 * j
    return placed(words, n_words, order, same=3000.0)


def keys_do_it(words, n_words):
    """The queries are X, and the keys hold the matrices, transposed."""
    L = len(words)
    X = np.hstack([np.eye(n_words)[words], np.eye(L)])
    order = np.tri(L, k=-1) * 60 * np.arange(L) - 1e7 * (1 - np.tri(L, k=-1))
    order[:, 0] = 5000
    W_K = np.zeros((n_words + L, n_words + L))
    W_K[:n_words, :n_words] = 4e4 * np.eye(n_words)
    W_K[n_words:, n_words:] = order.T
    return head(X, np.eye(n_words + L), W_K).round(1)


def tri(L):
    order = np.where(np.tri(L, k=-1) > 0, 100.0 * np.arange(L), -1e6)
    order[:, 0] = 1e4
    return order


def no_rest(words, n_words):
    L = len(words)
    return placed(words, n_words, np.where(np.tri(L, k=-1) > 0, 50.0 * np.arange(L), -1e6))


def even_share(words, n_words):
    order = tri(len(words))
    order[:, 1:] = np.minimum(order[:, 1:], 0)
    return placed(words, n_words, order)


def next_one(words, n_words):
    L = len(words)
    order = np.where(np.tri(L).T - np.eye(L) > 0, 100.0 * np.arange(L), -1e6)
    order[:, 0] = 1e4
    return placed(words, n_words, order)


def always_first(words, n_words):
    order = tri(len(words))
    order[:, 0] = 1e7
    return placed(words, n_words, order)


def soft(words, n_words):
    return placed(words, n_words, tri(len(words)), softer=3e4)


SAME_RIGHT = [with_loops, keys_do_it]
SAME_WRONG = [
    (no_rest, "no place to rest"),
    (even_share, "shares its weight among all earlier"),
    (next_one, "later occurrences"),
    (always_first, "always looks at [CLS]"),
    (soft, "too softly"),
]

# --- fault_of_a_report ------------------------------------------------------------------------------------


def row_of(*large, L=5, heads=1, layers=1):
    A = np.full((1, layers, heads, L, L), 1e-3)
    for layer, number, i, j, weight in large:
        A[0, layer, number, i, j] = weight
    return A / A.sum(-1, keepdims=True)


WORDS = np.array([[0, 1, 1, 1, 0]], bool)
ARC, OTHER = np.array([[0, 1, 2]]), np.array([[0, 3, 2]])


def in_another_order(scorer):
    two = row_of((0, 0, 1, 2, 1), (0, 0, 3, 1, 1), (0, 1, 3, 2, 1), (0, 1, 1, 3, 1), heads=2)
    name, found = scorer(two, WORDS, ARC, OTHER)
    if name in ("0-0", "0-1"):
        return "names"
    if found == 1 and name.endswith("2"):
        return "same set"
    if scorer(row_of((0, 0, 1, 0, 1), (0, 0, 1, 2, 0.5)), WORDS, ARC, ARC)[1] < 1:
        return "special"
    if scorer(row_of((0, 0, 1, 1, 1), (0, 0, 1, 2, 0.5)), WORDS, ARC, ARC)[1] < 1:
        return "itself"
    if scorer(row_of((0, 0, 1, 2, 1), (0, 0, 3, 1, 1)), WORDS, ARC, ARC)[1] < 1:
        return "columns"
    return "none"


def at_random(scorer):
    """Against a sound report of its own, on random weights."""
    rng = np.random.default_rng(1)

    def sound(A, words, choose, score, fault=""):
        def hits(arcs):
            out = []
            for s, i, j in arcs:
                rows = (A[s, :, :, :, i] if fault == "columns" else A[s, :, :, i]).copy()
                if fault != "special":
                    rows[..., ~words[s]] = -1
                if fault != "itself":
                    rows[..., i] = -1
                out.append(rows.argmax(-1) == j)
            return np.mean(out, axis=0)

        first = hits(score if fault == "same set" else choose)
        layer, number = np.unravel_index(first.argmax(), first.shape)
        more = fault != "names"
        return f"{layer + more}-{number + more}", float(hits(score)[layer, number])

    faults = {"names", "columns", "itself", "special", "same set", "none"}
    for _ in range(30):
        A = rng.random((3, 2, 3, 7, 7)) ** 6
        words = np.ones((3, 7), bool)
        words[:, [0, 6]] = False
        arcs = np.array(
            [(s, *rng.choice(np.arange(1, 6), 2, replace=False)) for s in range(3) for _ in range(4)]
        )
        said = scorer(A, words, arcs[:6], arcs[6:])
        faults = {
            f
            for f in faults
            if said[0] == sound(A, words, arcs[:6], arcs[6:], f)[0]
            and abs(said[1] - sound(A, words, arcs[:6], arcs[6:], f)[1]) < 1e-9
        }
    return faults.pop()


def but(skipped, scorer, instead="none"):
    named = in_another_order(scorer)
    return instead if named == skipped else named


def no_names(scorer):
    return but("names", scorer)


def no_columns(scorer):
    return but("columns", scorer)


def no_itself(scorer):
    return but("itself", scorer)


def no_special(scorer):
    return but("special", scorer)


def no_same_set(scorer):
    return but("same set", scorer)


def says_nothing(scorer):
    return but("none", scorer, None)


FAULT_RIGHT = [in_another_order, at_random]
FAULT_WRONG = [
    (no_names, 'the fault "names" gets past you'),
    (no_columns, "reads columns gets past you"),
    (no_itself, "look at itself gets past you"),
    (no_special, "[CLS] or [SEP] may win gets past you"),
    (no_same_set, "on the arcs that it scores gets past you"),
    (says_nothing, 'return "none"'),
]

# --- flattery --------------------------------------------------------------------------------------------


def by_tail(n, p, h):
    """The expected number is the sum of P(best >= k) over k = 1 … n."""
    total, below = 0.0, 0.0
    for k in range(n):
        below += math.comb(n, k) * p**k * (1 - p) ** (n - k)
        total += 1 - below**h
    return total / n - p


def with_logs(n, p, h):
    k = np.arange(n + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k])
    F = np.exp(ways + k * math.log(p) + (n - k) * math.log(1 - p)).cumsum()
    F = np.append(0, np.minimum(F, 1))
    return np.dot(k / n, F[1:] ** h - F[:-1] ** h) - p


def not_compared(n, p, h):
    return by_tail(n, p, h) + p


def worst_head(n, p, h):
    total, below = 0.0, 0.0
    for k in range(n):
        below += math.comb(n, k) * p**k * (1 - p) ** (n - k)
        total += (1 - below) ** h
    return total / n - p


def in_arcs(n, p, h):
    return (by_tail(n, p, h) + p) * n - p * n


def from_one(n, p, h):
    return by_tail(n, p, h) + 1 / n


def cubes_of_exactly(n, p, h):
    chance = np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    F = np.cumsum(chance**h)
    return np.arange(n + 1) @ np.diff(F, prepend=0) / n - p


FLATTERY_RIGHT = [by_tail, with_logs]
FLATTERY_WRONG = [
    (not_compared, "By how much is it above p"),
    (worst_head, "the worst of h heads"),
    (in_arcs, "Divide by n first"),
    (from_one, "Your k counts from 1"),
    (cubes_of_exactly, "Add up first"),
]

RIGHT = {
    "arcs_found": ARCS_RIGHT,
    "other_weights": WEIGHTS_RIGHT,
    "last_same_word": SAME_RIGHT,
    "fault_of_a_report": FAULT_RIGHT,
    "flattery": FLATTERY_RIGHT,
}
WRONG = {
    "arcs_found": ARCS_WRONG,
    "other_weights": WEIGHTS_WRONG,
    "last_same_word": SAME_WRONG,
    "fault_of_a_report": FAULT_WRONG,
    "flattery": FLATTERY_WRONG,
}
