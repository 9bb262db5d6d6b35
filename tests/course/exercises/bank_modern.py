"""Answers to the exercises of chapter `modern`, as others would write them."""

from __future__ import annotations

import math

import numpy as np

# --- geglu_width -----------------------------------------------------------------------------------------


def by_trying(d_model, d_ff, bias, multiple):
    def inner(width, matrices):
        return matrices * d_model * width + (matrices - 1) * width * bias

    width = 0
    while inner(width + multiple, 3) <= inner(d_ff, 2):
        width += multiple
    return width


def with_numpy(d_model, d_ff, bias, multiple):
    most = d_ff * (2 * d_model + int(bias)) / (3 * d_model + 2 * int(bias))
    return np.int64(np.floor(most / multiple) * multiple)


def all_counted(d_model, d_ff, bias, multiple):
    both = d_model if bias else 0
    bert = d_model * d_ff + d_ff * d_model + both + (d_ff if bias else 0)
    return max(
        w for w in range(0, d_ff + 1, multiple) if 3 * d_model * w + both + (2 * w if bias else 0) <= bert
    )


# --- alibi -----------------------------------------------------------------------------------------------


def recursive(n_heads, L):
    def slopes(n):
        if n & (n - 1) == 0:
            first = 2 ** (-8 / n)
            return [first * first**i for i in range(n)]
        p = 2 ** math.floor(math.log2(n))
        return slopes(p) + slopes(2 * p)[0::2][: n - p]

    far = np.abs(np.subtract.outer(np.arange(L), np.arange(L)))
    return np.stack([-m * far for m in slopes(n_heads)])


def head_by_head(n_heads, L):
    p = 1
    while 2 * p <= n_heads:
        p *= 2
    bias = np.zeros((n_heads, L, L))
    for h in range(n_heads):
        exponent = 8 * (h + 1) / p if h < p else 8 * (2 * (h - p) + 1) / (2 * p)
        for i in range(L):
            for j in range(L):
                bias[h, i, j] = -abs(i - j) / 2**exponent
    return bias


# --- rotary_head -----------------------------------------------------------------------------------------


def _softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def with_complex_numbers(X, W_Q, W_K, W_V):
    L, d_k = len(X), W_Q.shape[1]
    turn = np.exp(-1j * np.arange(L)[:, None] * 10000.0 ** (-np.arange(0, d_k, 2) / d_k))
    Q, K = (((X @ W)[:, 0::2] + 1j * (X @ W)[:, 1::2]) * turn for W in (W_Q, W_K))
    return _softmax((Q @ K.conj().T).real / np.sqrt(d_k)) @ (X @ W_V)


def from_position_one(X, W_Q, W_K, W_V):
    d_k = W_Q.shape[1]
    angle = np.arange(1, len(X) + 1)[:, None] * 10000.0 ** (-np.arange(0, d_k, 2) / d_k)
    cos, sin = np.cos(angle).repeat(2, axis=1), np.sin(angle).repeat(2, axis=1)

    def rotated(x):
        across = np.stack([x[:, 1::2], -x[:, 0::2]], axis=-1).reshape(x.shape)
        return x * cos + across * sin

    return _softmax(rotated(X @ W_Q) @ rotated(X @ W_K).T / math.sqrt(d_k)) @ (X @ W_V)


def by_absolute_weights(X, W_Q, W_K, W_V):
    d_k = W_Q.shape[1]
    S = (X @ W_Q) @ (X @ W_K).T / math.sqrt(d_k) - 0.1 * np.abs(
        np.arange(len(X))[:, None] - np.arange(len(X))
    )
    return _softmax(S) @ (X @ W_V)


# --- verdict ---------------------------------------------------------------------------------------------


def with_a_search_by_hand(run, rates):
    ranges = []
    for model in ["BERT", "change"]:
        best, lowest = None, float("inf")
        for rate in rates:
            loss = run(model, rate, 7)
            if loss < lowest:
                best, lowest = rate, loss
        losses = sorted(run(model, best, seed) for seed in (8, 9, 10))
        ranges.append((losses[0], losses[-1]))
    (bert_low, bert_high), (low, high) = ranges
    return "better" if high < bert_low else "worse" if low > bert_high else "cannot tell"


def with_a_seed_for_each_run(run, rates):
    seeds = iter(range(1000))
    found = {}
    for model in ("change", "BERT"):
        tried = np.array([run(model, rate, next(seeds)) for rate in rates])
        rate = rates[int(tried.argmin())]
        found[model] = np.array([run(model, rate, next(seeds)) for _ in range(3)])
    if (found["change"][:, None] < found["BERT"]).all():
        return "better"
    return "worse" if (found["change"][:, None] > found["BERT"]).all() else "cannot tell"


def with_the_search_s_seed_by_the_mean(run, rates):
    found = {}
    for model in ("BERT", "change"):
        tried = {rate: run(model, rate, 0) for rate in rates}
        rate = min(tried, key=tried.get)
        found[model] = [tried[rate], *(run(model, rate, seed) for seed in (1, 2))]
    if np.mean(found["change"]) < np.mean(found["BERT"]):
        return "better"
    return "worse" if np.mean(found["change"]) > np.mean(found["BERT"]) else "cannot tell"


def until_the_money_is_gone(run, rates):
    while True:
        run("BERT", rates[0], 0)


def by_a_step(run, rates):
    found = {}
    for model in ("BERT", "change"):
        rate = min(rates, key=lambda rate: run(model, rate, 100))
        found[model] = np.mean([run(model, rate, seed) for seed in (0, 1, 2)])
    gap = found["change"] - found["BERT"]
    return "better" if gap < -0.02 else "worse" if gap > 0.02 else "cannot tell"


RIGHT = {
    "geglu_width": [by_trying, with_numpy, all_counted],
    "alibi": [recursive, head_by_head],
    "rotary_head": [with_complex_numbers, from_position_one],
    "verdict": [with_a_search_by_hand, with_a_seed_for_each_run],
}
WRONG = {
    "geglu_width": [(lambda d_model, d_ff, bias, multiple: 64, "64")],
    "alibi": [(lambda n_heads, L: np.zeros((n_heads, L, L)), "entries")],
    "rotary_head": [(by_absolute_weights, "entries")],
    "verdict": [
        (until_the_money_is_gone, "only 12 are paid for"),
        (with_the_search_s_seed_by_the_mean, ("[search-seed]", "[one-number]")),
        (by_a_step, "it should return 'cannot tell'"),
    ],
}
