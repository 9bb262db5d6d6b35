"""Answers to the exercises of chapter 23 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RIGHT", "WRONG"]

# --- product_bound ---------------------------------------------------------------------------------------


def by_intensity(n, k, m, peak, bandwidth):
    flops = 2.0 * n * k * m
    nbytes = 4 * (n * k + k * m + n * m)
    if flops / nbytes < peak / bandwidth:
        return "memory", nbytes / bandwidth
    return "compute", flops / peak


def by_the_roof(n, k, m, peak, bandwidth):
    flops = 2 * n * k * m
    slope = bandwidth * flops / (4 * (n * k + k * m + n * m))
    return ["compute" if slope >= peak else "memory", flops / min(slope, peak)]


def bounds(flops, moved, peak, bandwidth):
    times = {"compute": flops / peak, "memory": moved / bandwidth}
    word = max(times, key=times.get)
    return word, times[word]


def multiplications_only(n, k, m, peak, bandwidth):
    return bounds(n * k * m, 4 * n * k + 4 * k * m + 4 * n * m, peak, bandwidth)


def side_by_side(n, k, m, peak, bandwidth):
    return "memory" if n < 6 * peak / bandwidth else "compute", by_intensity(n, k, m, peak, bandwidth)[1]


def always_compute(n, k, m, peak, bandwidth):
    return "compute", 2 * n * k * m / peak


def the_word_alone(n, k, m, peak, bandwidth):
    return by_intensity(n, k, m, peak, bandwidth)[0]


def doubles_of_the_factors(n, k, m, peak, bandwidth):
    return bounds(2 * n * k * m, 8 * (n * k + k * m), peak, bandwidth)


def milliseconds_first(n, k, m, peak, bandwidth):
    word, seconds = by_intensity(n, k, m, peak, bandwidth)
    return 1000 * seconds, word


BOUND_RIGHT = [by_intensity, by_the_roof]
BOUND_WRONG = [
    (multiplications_only, "The factor 2 is missing"),
    (side_by_side, "a rule for a square product does not hold"),
    (always_compute, "the same word on every machine"),
    (the_word_alone, ("it should return 2 values", "the word for the longer time, and that time")),
    (doubles_of_the_factors, ("a float32 has four bytes", "The result must be written too")),
    (milliseconds_first, ("Your times are not in seconds", "The word comes first")),
]

# --- from_which_length -----------------------------------------------------------------------------------


def solved_for_the_length(d_k, peak, bandwidth):
    # 2 d L² / peak >= 4 (2 d L + L²) / bandwidth, divided by 2 L
    gain = d_k / peak - 2 / bandwidth
    return int(np.ceil(4 * d_k / bandwidth / gain)) if gain > 0 else float("inf")


def counted_up(d_k, peak, bandwidth):
    if d_k * bandwidth <= 2 * peak:
        return math.inf
    L = 1
    while by_intensity(L, d_k, L, peak, bandwidth)[0] == "memory":
        L += 1
    return L


def bisected(d_k, peak, bandwidth):
    waits = lambda L: by_intensity(L, d_k, L, peak, bandwidth)[0] == "memory"  # noqa: E731
    low, high = 0, 2**40
    if waits(high):
        return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waits(middle) else (low, middle)
    return high


def bracket(flops, nbytes):
    """The least L at which so many FLOPs take as long as so many bytes."""

    def length(d_k, peak, bandwidth):
        low, high = 0, 10**9
        if flops(d_k, high) / peak < nbytes(d_k, high) / bandwidth:
            return math.inf
        while high - low > 1:
            L = (low + high) // 2
            if flops(d_k, L) / peak < nbytes(d_k, L) / bandwidth:
                low = L
            else:
                high = L
        return high

    return length


no_scores_written = bracket(lambda d_k, L: 2 * d_k * L * L, lambda d_k, L: 8 * d_k * L)
products_alone = bracket(lambda d_k, L: d_k * L * L, lambda d_k, L: 4 * (2 * d_k * L + L * L))
products_alone_of_one = bracket(lambda d_k, L: d_k * L * L, lambda d_k, L: 4 * (d_k * L + L * L))


def formula_without_a_look(d_k, peak, bandwidth):
    ridge = peak / bandwidth
    return math.ceil(2 * d_k * ridge / (d_k / 2 - ridge))


def first_fifty_thousand(d_k, peak, bandwidth):
    for L in range(1, 50_000):
        if by_intensity(L, d_k, L, peak, bandwidth)[0] == "compute":
            return L
    return math.inf


def nothing_for_none(d_k, peak, bandwidth):
    return counted_up(d_k, peak, bandwidth) if d_k > 2 * peak / bandwidth else None


def ridge_upside_down(d_k, peak, bandwidth):
    return solved_for_the_length(d_k, bandwidth, peak)


def printed(d_k, peak, bandwidth):
    print(solved_for_the_length(d_k, peak, bandwidth))


def one_before_or_minus_one(d_k, peak, bandwidth):
    length = bisected(d_k, peak, bandwidth)
    return -1 if length == math.inf else length - 1


LENGTH_RIGHT = [solved_for_the_length, counted_up, bisected]
LENGTH_WRONG = [
    (no_scores_written, "The scores must be written too"),
    (products_alone, "FLOPs per byte are twice what you take"),
    (formula_without_a_look, "FLOPs per byte grow with L, but not without limit"),
    (first_fifty_thousand, "You stop looking too early"),
    (nothing_for_none, "Where there is no such L, return math.inf"),
    (ridge_upside_down, "You compare with bandwidth / peak"),
    (printed, "it returned None"),
    (one_before_or_minus_one, ("the last L that still waits for memory", "return math.inf")),
    (products_alone_of_one, ("FLOPs per byte are twice what you take", "Two matrices are read")),
]

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


def whole_shares(profile, changes, least):
    total = sum(profile.values())
    shares = {name: profile[op] / total for name, (op, _) in changes.items()}
    return sorted((name for name in shares if shares[name] > least), key=lambda name: -shares[name])


def how_much_faster(profile, changes, least):
    total = sum(profile.values())
    gain = {name: total / (total - profile[op] + profile[op] / t) - 1 for name, (op, t) in changes.items()}
    return [name for name in sorted(gain, key=gain.get, reverse=True) if gain[name] > least]


def smallest_first(profile, changes, least):
    return by_the_time_left(profile, changes, least)[::-1]


def what_is_left(profile, changes, least):
    total = sum(profile.values())
    left = {name: profile[op] / times / total for name, (op, times) in changes.items()}
    return [name for name in sorted(left, key=left.get, reverse=True) if left[name] > least]


def operations_instead(profile, changes, least):
    return [changes[name][0] for name in by_the_time_left(profile, changes, least)]


TRYING_RIGHT = [by_the_time_left, with_arrays]
TRYING_WRONG = [
    (whole_shares, "You take an operation's whole share"),
    (how_much_faster, "You divide by the time after the change"),
    (smallest_first, "The largest saving comes first"),
    (what_is_left, "That is what is left of the operation"),
    (operations_instead, "not of the operations that they change"),
]

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


def as_it_stands_in_place(x):
    y = x**3
    y *= 0.044715
    y += x
    y *= math.sqrt(2 / math.pi)
    np.tanh(y, out=y)
    y += 1
    y *= 0.5
    y *= x
    return y


def growing_to_the_left(x):
    k = math.sqrt(8 / math.pi)
    return x / (1 + np.exp(x * (k + (0.044715 * k) * np.square(x))))


def half_the_exponent(x):
    k = math.sqrt(2 / math.pi)
    return x / (1 + np.exp(x * (-k - (0.044715 * k) * np.square(x))))


def one_and_seven(x):
    return x / (1 + np.exp(-1.702 * x))


GELU_RIGHT = [by_a_sigmoid, half_in_the_constants]
GELU_WRONG = [
    (as_it_stands, ("it makes 18 passes", "In place or not")),
    (as_it_stands_in_place, ("it makes 18 passes", "In place or not")),
    (growing_to_the_left, "The exponent has the wrong sign"),
    (half_the_exponent, "The exponent is -2z"),
    (one_and_seven, "a sigmoid of 1.702 x"),
]

RIGHT = {
    "product_bound": BOUND_RIGHT,
    "from_which_length": LENGTH_RIGHT,
    "worth_trying": TRYING_RIGHT,
    "gelu_in_16_passes": GELU_RIGHT,
}
WRONG = {
    "product_bound": BOUND_WRONG,
    "from_which_length": LENGTH_WRONG,
    "worth_trying": TRYING_WRONG,
    "gelu_in_16_passes": GELU_WRONG,
}
