"""Answers to the exercises of `one_head` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor

RIGHT = {}
WRONG = {}


def right_softmax(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


# --- attend ----------------------------------------------------------------------------------------------


def scaled_queries(q, k, v):
    return right_softmax(np.inner(q / q.shape[-1] ** 0.5, k)).dot(v)


def numpys_root(q, k, v):
    return right_softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v  # float64


def queries_scaled_in_place(q, k, v):
    q /= math.sqrt(q.shape[1])
    return right_softmax(q @ k.T) @ k


RIGHT["attend"] = [scaled_queries, numpys_root]
WRONG["attend"] = [
    (
        lambda q, k, v: right_softmax(k @ q.T / math.sqrt(len(k))).T @ v,
        ("[number-of-keys]", "[each-key-sums-to-one]"),
    ),
    (queries_scaled_in_place, ("it changes `q`", "[mixed-keys]")),
]

# --- softmax ---------------------------------------------------------------------------------------------


def by_jacobians(S):
    rows = S.data.reshape(-1, S.shape[-1])
    A = right_softmax(rows)

    def backward(dA):
        jacobians = A[:, :, None] * (np.eye(A.shape[1]) - A[:, None, :])  # of each row
        dS = (dA.reshape(A.shape)[:, None, :] @ jacobians)[:, 0]
        return [dS.reshape(S.shape).astype(S.dtype)]

    return Tensor.from_op(A.reshape(S.shape), [S], backward)


def forward_alone(S):
    A = right_softmax(S.data)
    return Tensor.from_op(A, (S,), lambda dA: (2 * A * (dA - np.sum(A * dA, -1, keepdims=True)),))


def of_the_array(S):
    S = S.data
    return Tensor.from_op(right_softmax(S), (S,), lambda dA: (dA,))


def without_a_tuple(S):
    A = right_softmax(S.data)
    return Tensor.from_op(A, (S,), lambda dA: A * (dA - np.sum(A * dA, -1, keepdims=True)))


def of_operations(S):
    powers = (S - S.max(axis=-1, keepdims=True)).exp()
    return powers / powers.sum(axis=-1, keepdims=True)


RIGHT["softmax"] = [by_jacobians]
WRONG["softmax"] = [
    (forward_alone, "Of the gradient for S: every number is 2 times what it should be."),
    (of_the_array, "The parents of Tensor.from_op are the Tensors that came in"),
    (without_a_tuple, "backward returns a tuple with one gradient for each parent"),
    (of_operations, "not made of S in one operation"),
]

# --- look_left -------------------------------------------------------------------------------------------


def _one_hot(words, n_words):
    L = len(words)
    return np.hstack([np.eye(n_words)[words], np.eye(L)])


def _run(X, W_Q, W_K, W_V):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    A = right_softmax(Q @ K.T / math.sqrt(Q.shape[-1]))
    return A[1:].round(1), (A @ V)[1:].round(1)


def by_loops(words, n_words):
    L = len(words)
    W_Q, W_K, W_V = np.zeros((n_words + L, L)), np.zeros((n_words + L, L)), np.zeros((n_words + L, n_words))
    for i in range(L):
        W_K[n_words + i, i] = 40
        if i > 0:
            W_Q[n_words + i, i - 1] = 5
    for word in range(n_words):
        W_V[word, word] = 1
    return _run(_one_hot(words, n_words), W_Q, W_K, W_V)


def shifted_keys(words, n_words):
    """Token j is found by j + 1, and each asks for its own place."""
    L = len(words)
    W_Q = 60 * np.vstack([np.zeros((n_words, L)), np.eye(L)])
    W_K = np.vstack([np.zeros((n_words, L)), np.eye(L, k=1)])
    return _run(_one_hot(words, n_words), W_Q, W_K, np.eye(n_words + L)[:, :n_words])


def all_before_it(words, n_words):
    L = len(words)
    W_Q = np.vstack([np.zeros((n_words, L)), 80 * np.tril(np.ones((L, L)), -1)])
    return _run(_one_hot(words, n_words), W_Q, np.eye(n_words + L)[:, n_words:], np.eye(n_words + L, n_words))


def itself_and_everything(words, n_words):
    L = len(words)
    W = np.eye(n_words + L)[:, n_words:]
    return _run(_one_hot(words, n_words), 100 * W, W, np.eye(n_words + L))


RIGHT["look_left"] = [by_loops, shifted_keys]
WRONG["look_left"] = [
    (all_before_it, "[everything-left]"),
    (itself_and_everything, ("[itself]", "[whole-row]")),
]

# --- first_to_catch --------------------------------------------------------------------------------------


def in_a_dictionary(head):
    rng = np.random.default_rng(3)
    q, k, v, others = rng.normal(size=(4, 20, 5))
    turned = slice(None, None, -1)
    out = head(q, k, v)
    tests = {
        "ones": np.abs(head(q, k, np.ones((20, 5))) - 1).max() < 1e-9,
        "range": bool(np.all(out <= v.max(0) + 1e-9) and np.all(out >= v.min(0) - 1e-9)),
        "order": np.abs(head(q, k[turned], v[turned]) - out).max() < 1e-9,
        "keys": np.abs(head(q, others, v) - out).max() > 1e-6,
    }
    return next((name for name, passed in tests.items() if not passed), "none")


def with_queries_turned_too(head):
    rng = np.random.default_rng(9)
    q, k, v = rng.normal(size=(3, 11, 11))
    out = head(q, k, v)
    if not np.allclose(head(q, k, 0 * v + 5.0), 5.0):
        return "ones"
    if np.any(np.clip(out, v.min(0), v.max(0)) - out > 1e-8) or np.any(out - v.max(0) > 1e-8):
        return "range"
    order = rng.permutation(11)
    if not np.allclose(head(q[order], k, v), out[order]) or not np.allclose(head(q, k[order], v[order]), out):
        return "order"
    return "keys" if np.allclose(head(q, -k, v), out) else "none"


RIGHT["first_to_catch"] = [in_a_dictionary, with_queries_turned_too]

# --- score_scale -----------------------------------------------------------------------------------------


def power_of_minus_a_half(d_k, std_q, std_k):
    return d_k**-0.5 / std_q / std_k


def root_of_the_variance(d_k, std_q, std_k):
    return 1 / np.sqrt(d_k * std_q**2 * std_k**2)


RIGHT["score_scale"] = [power_of_minus_a_half, root_of_the_variance]
WRONG["score_scale"] = [(lambda d_k, std_q, std_k: 1 / d_k, ("[no-deviations]", "[no-root]"))]
