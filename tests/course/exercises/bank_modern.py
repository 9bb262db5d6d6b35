"""Answers to the exercises of chapter `modern`, as others would write them."""

from __future__ import annotations

import math

import numpy as np

# --- geglu_width -----------------------------------------------------------------------------------------


def with_numpy(d_model, d_ff, bias, multiple):
    most = d_ff * (2 * d_model + int(bias)) / (3 * d_model + 2 * int(bias))
    return np.int64(np.floor(most / multiple) * multiple)


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


# --- rotary_head -----------------------------------------------------------------------------------------


def _softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def from_position_one(X, W_Q, W_K, W_V):
    d_k = W_Q.shape[1]
    angle = np.arange(1, len(X) + 1)[:, None] * 10000.0 ** (-np.arange(0, d_k, 2) / d_k)
    cos, sin = np.cos(angle).repeat(2, axis=1), np.sin(angle).repeat(2, axis=1)

    def rotated(x):
        across = np.stack([x[:, 1::2], -x[:, 0::2]], axis=-1).reshape(x.shape)
        return x * cos + across * sin

    return _softmax(rotated(X @ W_Q) @ rotated(X @ W_K).T / math.sqrt(d_k)) @ (X @ W_V)


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
    "geglu_width": [with_numpy],
    "alibi": [recursive],
    "rotary_head": [from_position_one],
    "verdict": [with_a_search_by_hand, with_a_seed_for_each_run],
}
WRONG = {
    "verdict": [
        (until_the_money_is_gone, "only 12 are paid for"),
        (with_the_search_s_seed_by_the_mean, ("[search-seed]", "[one-number]")),
        (by_a_step, "it should return 'cannot tell'"),
    ]
}
