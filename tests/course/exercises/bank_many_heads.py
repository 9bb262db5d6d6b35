"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import ops

RIGHT = {}
WRONG = {}


def right_softmax(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


# --- multi_head ------------------------------------------------------------------------------------------


def head_by_head(X, weights, h, mask):
    d_k = X.shape[-1] // h
    q, k, v = (X @ weights[f"W_{n}"] + weights[f"b_{n}"] for n in "QKV")
    outputs = []
    for head in range(h):
        own = slice(head * d_k, (head + 1) * d_k)
        S = q[..., own] @ k[..., own].transpose(1, 2) / np.sqrt(d_k) + mask[:, 0]
        outputs.append(ops.softmax(S) @ v[..., own])
    return ops.concatenate(outputs, axis=-1) @ weights["W_O"] + weights["b_O"]


def cut(x, h):
    return x.reshape(*x.shape[:2], h, -1).transpose(1, 2)


def attended(X, weights, h, mask, *, scale=None):
    q, k, v = (cut(X @ weights[f"W_{n}"] + weights[f"b_{n}"], h) for n in "QKV")
    scale = math.sqrt(X.shape[-1] // h) if scale is None else scale
    return ops.softmax(q @ k.transpose(2, 3) / scale + mask) @ v


def joined(z):
    return z.transpose(1, 2).reshape(z.shape[0], z.shape[2], -1)


def out_of(z, weights):
    return joined(z) @ weights["W_O"] + weights["b_O"]


def mask_and_scale_forgotten(X, weights, h, mask):
    return out_of(attended(X, weights, h, 0.0, scale=1.0), weights)


def numpys_transpose(X, weights, h, mask):
    B, L, d = X.shape
    return (X @ weights["W_Q"]).reshape(B, L, h, d // h).transpose(0, 2, 1, 3)


def arrays_alone(X, weights, h, mask):
    W = {name: weight.data for name, weight in weights.items()}
    q, k, v = (
        (X.data @ W[f"W_{n}"] + W[f"b_{n}"]).reshape(*X.shape[:2], h, -1).swapaxes(1, 2) for n in "QKV"
    )
    z = right_softmax(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1]) + mask.data) @ v
    return z.swapaxes(1, 2).reshape(X.shape) @ W["W_O"] + W["b_O"]


RIGHT["multi_head"] = [head_by_head]
WRONG["multi_head"] = [
    (mask_and_scale_forgotten, ("[no-mask]", "[no-scale]")),
    (numpys_transpose, "A Tensor's transpose exchanges two axes: x.transpose(1, 2)"),
    (arrays_alone, "should return a Tensor"),
]

# --- heads_backward --------------------------------------------------------------------------------------


def block_by_block(Z, W_O, dY):
    _, h, _, d_k = Z.shape
    blocks = W_O.reshape(h, d_k, -1)
    dZ = np.einsum("blm,hkm->bhlk", dY, blocks)
    dW = np.einsum("bhlk,blm->hkm", Z, dY).reshape(W_O.shape)
    return [dZ, dW, np.einsum("blm->m", dY)]


def plain_reshapes(Z, W_O, dY):
    B, _, L, _ = Z.shape
    dZ = (dY @ W_O.T).reshape(Z.shape)
    dW = Z.reshape(B * L, -1).T @ dY.reshape(B * L, -1)
    return dZ, dW, dY.sum((0, 1))


RIGHT["heads_backward"] = [block_by_block]
WRONG["heads_backward"] = [(plain_reshapes, ("[cut-by-reshape]", "[joined-by-reshape]"))]

# --- both_neighbours -------------------------------------------------------------------------------------


def _run(words, n_words, heads, W_O):
    L = len(words)
    X = np.zeros((L, n_words + L))
    X[np.arange(L), words] = 1
    X[np.arange(L), n_words + np.arange(L)] = 1
    Z = [right_softmax(X @ q @ (X @ k).T / math.sqrt(q.shape[1])) @ X @ v for q, k, v in heads]
    return (np.concatenate(Z, axis=1) @ W_O)[1:-1].round(1)


def _matrices(n_words, L, step, strength=90.0):
    q, k = np.zeros((2, n_words + L, L))
    for i in range(L):
        if 0 <= i + step < L:
            q[n_words + i, i + step] = strength
        k[n_words + i, i] = 1
    return q, k, np.eye(n_words + L, n_words)


def by_loops(words, n_words):
    L = len(words)
    heads = [_matrices(n_words, L, -1), _matrices(n_words, L, 1)]
    return _run(words, n_words, heads, np.eye(2 * n_words))


def doubled_and_halved(words, n_words):
    L = len(words)
    heads = [(q, k, 2 * v) for q, k, v in (_matrices(n_words, L, step, 300.0) for step in (-1, 1))]
    return _run(words, n_words, heads, np.eye(2 * n_words) / 2)


RIGHT["both_neighbours"] = [by_loops, doubled_and_halved]

# --- refit -----------------------------------------------------------------------------------------------


def _silent(weights):
    return {name: 0 * W for name, W in weights.items()}


def column_by_column(layer, weights, h):
    d = weights["W_O"].shape[0]
    new, found = np.zeros_like(weights["W_O"]), np.zeros(d)
    for j in range(d):
        probe = _silent(weights)
        probe["b_V"] = np.eye(d)[j]
        probe["W_O"] = np.eye(d)
        arrived = int(np.argmax(layer(np.zeros((1, d)), probe, h)[0]))
        new[arrived], found[arrived] = weights["W_O"][j], j
    return found, new


def with_the_real_weights(layer, weights, h):
    """Column c of the joined outputs is that of the right order which it equals."""
    d = len(weights["W_O"])
    X = np.random.default_rng(3).normal(size=(7, d))
    joined = layer(X, {**weights, "W_O": np.eye(d), "b_O": np.zeros(d)}, h)
    q, k, v = (np.stack(np.split(X @ weights["W_" + n] + weights["b_" + n], h, 1)) for n in "QKV")
    a = right_softmax(q @ k.swapaxes(1, 2) / math.sqrt(d // h))
    mine = np.hstack(list(a @ v))
    found = [int(np.abs(mine - joined[:, [c]]).max(0).argmin()) for c in range(d)]
    return np.array(found), weights["W_O"][found]


RIGHT["refit"] = [column_by_column, with_the_real_weights]

# --- without_biases --------------------------------------------------------------------------------------


def in_one_expression(weights):
    zero = np.zeros_like(weights["b_K"])
    taken_over = np.einsum("i,ij->j", weights["b_V"], weights["W_O"])
    return weights | {"b_K": zero, "b_V": zero.copy(), "b_O": taken_over + weights["b_O"]}


def in_place(weights):
    weights["b_O"] += weights["b_V"] @ weights["W_O"]
    weights["b_K"][:] = 0
    weights["b_V"][:] = 0
    return weights


RIGHT["without_biases"] = [in_one_expression]
WRONG["without_biases"] = [(in_place, "which the caller still needs")]
