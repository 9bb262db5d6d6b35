"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}
WRONG = {}

# --- product_bound ---------------------------------------------------------------------------------------


def by_intensity(n, k, m, peak, bandwidth):
    flops = 2.0 * n * k * m
    nbytes = 4 * (n * k + k * m + n * m)
    if flops / nbytes < peak / bandwidth:
        return "memory", nbytes / bandwidth
    return "compute", flops / peak


def bounds(flops, moved, peak, bandwidth):
    times = {"compute": flops / peak, "memory": moved / bandwidth}
    word = max(times, key=times.get)
    return word, times[word]


def the_word_alone(n, k, m, peak, bandwidth):
    return by_intensity(n, k, m, peak, bandwidth)[0]


def doubles_of_the_factors(n, k, m, peak, bandwidth):
    return bounds(2 * n * k * m, 8 * (n * k + k * m), peak, bandwidth)


RIGHT["product_bound"] = [by_intensity]
WRONG["product_bound"] = [
    (the_word_alone, ("it should return 2 values", "[one-value]")),
    (doubles_of_the_factors, ("[other-bytes]", "[result-not-written]")),
]

# --- from_which_length -----------------------------------------------------------------------------------


def solved_for_the_length(d_k, peak, bandwidth):
    # 2 d L² / peak >= 4 (2 d L + L²) / bandwidth, divided by 2 L
    gain = d_k / peak - 2 / bandwidth
    return int(np.ceil(4 * d_k / bandwidth / gain)) if gain > 0 else float("inf")


def bisected(d_k, peak, bandwidth):
    waits = lambda L: by_intensity(L, d_k, L, peak, bandwidth)[0] == "memory"  # noqa: E731
    low, high = 0, 2**40
    if waits(high):
        return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waits(middle) else (low, middle)
    return high


def one_before_or_minus_one(d_k, peak, bandwidth):
    length = bisected(d_k, peak, bandwidth)
    return -1 if length == math.inf else length - 1


RIGHT["from_which_length"] = [solved_for_the_length, bisected]
WRONG["from_which_length"] = [(one_before_or_minus_one, ("[last-that-waits]", "[no-such-length]"))]

# --- worth_trying ----------------------------------------------------------------------------------------


def by_the_time_left(profile, changes, least):
    before = sum(profile.values())
    found = []
    for name, (op, times) in changes.items():
        after = sum(ms / times if one == op else ms for one, ms in profile.items())
        found.append(((before - after) / before, name))
    return [name for saved, name in sorted(found, reverse=True) if saved > least]


def with_arrays(profile, changes, least):
    names = list(changes)
    saved = np.array([profile[op] - profile[op] / times for op, times in changes.values()])
    order = np.argsort(-saved)
    return [names[i] for i in order if saved[i] > least * sum(profile.values())]


RIGHT["worth_trying"] = [by_the_time_left, with_arrays]

# --- gelu_in_16_passes -----------------------------------------------------------------------------------


def by_a_sigmoid(x):
    k = math.sqrt(8 / math.pi)
    return x / (1 + np.exp(x * (-k - (0.044715 * k) * np.square(x))))


def half_in_the_constants(x):
    t = np.square(x)
    np.multiply(t, -math.sqrt(8 / math.pi) * 0.044715, out=t)
    np.subtract(t, math.sqrt(8 / math.pi), out=t)
    np.multiply(t, x, out=t)
    np.exp(t, out=t)
    np.add(t, 1, out=t)
    np.divide(x, t, out=t)
    return t


def as_it_stands(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


RIGHT["gelu_in_16_passes"] = [by_a_sigmoid, half_in_the_constants]
WRONG["gelu_in_16_passes"] = [(as_it_stands, ("it makes 18 passes", "[same-passes]"))]
