"""Right answers to the exercises of chapter `looking_inside`, as learners write them."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}

# --- arcs_found ------------------------------------------------------------------------------------------


def nothing_is_larger(A, words, arcs):
    """The end is found if no other word that counts has more."""
    story, start, end = arcs[:, 0], arcs[:, 1], arcs[:, 2]
    rows = A[story, :, start]
    counts = words[story] & (np.arange(A.shape[-1]) != start[:, None])
    at_end = np.take_along_axis(rows, end[:, None, None], axis=2)
    return np.mean(~((rows > at_end) & counts[:, None]).any(axis=2), axis=0)


RIGHT["arcs_found"] = [nothing_is_larger]

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


RIGHT["other_weights"] = [one_entry_as_unit, by_projection]

# --- last_same_word --------------------------------------------------------------------------------------


def softmax(S):
    E = np.exp(S - S.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def head(X, W_Q, W_K):
    return softmax(X @ W_Q @ (X @ W_K).T / math.sqrt(W_Q.shape[1]))


def placed(words, n_words, order, same=1e5):
    L = len(words)
    X = np.hstack([np.eye(n_words)[words], np.eye(L)])
    W_Q = np.zeros((n_words + L, n_words + L))
    W_Q[:n_words, :n_words] = same * np.eye(n_words)
    W_Q[n_words:, n_words:] = order
    return head(X, W_Q, np.eye(n_words + L)).round(1)


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


RIGHT["last_same_word"] = [with_loops, keys_do_it]

# --- fault_of_a_report ------------------------------------------------------------------------------------


ARC, OTHER = np.array([[0, 1, 2]]), np.array([[0, 3, 2]])


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


RIGHT["fault_of_a_report"] = [at_random]

# --- flattery --------------------------------------------------------------------------------------------


def with_logs(n, p, h):
    k = np.arange(n + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k])
    F = np.exp(ways + k * math.log(p) + (n - k) * math.log(1 - p)).cumsum()
    F = np.append(0, np.minimum(F, 1))
    return np.dot(k / n, F[1:] ** h - F[:-1] ** h) - p


RIGHT["flattery"] = [with_logs]
