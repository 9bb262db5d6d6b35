"""Right answers to the exercises of chapter `scaling`, as learners write them."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}
WRONG = {}

# --- bert_parameters -------------------------------------------------------------------------------------


def linear(a, b):
    return a * b + b


def by_parts(V, P, layers, d, d_ff):
    count = V * d + P * d + 2 * d  # tables
    count += d + d  # gain and bias
    for _ in range(layers):
        for _ in ("query", "key", "value", "output"):
            count += linear(d, d)
        count += linear(d, d_ff) + linear(d_ff, d)
        count += 2 * (2 * d)
    return count + linear(d, d)


def by_shapes(V, P, layers, d, d_ff):
    layer = [(d, d), (d,)] * 4 + [(d, d_ff), (d_ff,), (d_ff, d), (d,)] + [(d,)] * 4
    shapes = [(V, d), (P, d), (2, d), (d,), (d,), *(layer * layers), (d, d), (d,)]
    return sum(math.prod(shape) for shape in shapes)


RIGHT["bert_parameters"] = [by_parts, by_shapes]

# --- best_size -------------------------------------------------------------------------------------------


def by_logarithms(C, A, alpha, B, beta):
    log_n = (math.log(alpha * A) - math.log(beta * B) + beta * math.log(C / 6)) / (alpha + beta)
    return [math.exp(log_n), math.exp(math.log(C / 6) - log_n)]


def by_halving(C, A, alpha, B, beta):
    """Where the slope with respect to log N is 0."""
    low, high = -20.0, 120.0
    for _ in range(200):
        x = (low + high) / 2
        falls = alpha * A * math.exp(-alpha * x) > beta * B * math.exp(-beta * (math.log(C / 6) - x))
        low, high = (x, high) if falls else (low, x)
    return math.exp(low), C / 6 / math.exp(low)


RIGHT["best_size"] = [by_logarithms, by_halving]

# --- spend_budget ----------------------------------------------------------------------------------------


def with_a_loop(C, tokens, sizes, law):
    best = None
    for N in sorted(sizes):
        D = C / 6 / N
        if 6 * N * tokens < C:
            D = tokens
        if best is None or law(N, D) < best[0]:
            best = law(N, D), N, D
    return best[1], best[2]


def with_argmin(C, tokens, sizes, law):
    N = np.sort(np.array(sizes, dtype=float))
    D = np.minimum(C / (6 * N), tokens)
    best = int(np.argmin([law(*pair) for pair in zip(N, D, strict=True)]))
    return N[best], D[best]


RIGHT["spend_budget"] = [with_a_loop, with_argmin]

# --- forecast_loss ---------------------------------------------------------------------------------------


def in_base_ten(N, loss, floor, larger):
    slope, height = np.polyfit(np.log10(N), np.log10(loss - floor), 1)
    return 10**height * larger**slope + floor


def by_least_squares(N, loss, floor, larger):
    X = np.stack([np.ones(len(N)), np.log(N)], axis=1)
    b = np.linalg.lstsq(X, np.log(np.asarray(loss) - floor), rcond=None)[0]
    return floor + math.exp(b[0] + b[1] * math.log(larger))


RIGHT["forecast_loss"] = [in_base_ten, by_least_squares]

# --- exponent_interval -----------------------------------------------------------------------------------


def by_covariance(N, above, drawn):
    x, y = np.log(N)[drawn], np.log(above)[drawn]  # (draws, n)
    x = x - x.mean(axis=1, keepdims=True)
    slopes = (x * y).sum(axis=1) / (x * x).sum(axis=1)
    return np.quantile(-slopes, [0.05, 0.95])


def with_a_list(N, above, drawn):
    found = []
    for numbers in drawn:
        slope, _ = np.polyfit(np.log10([N[i] for i in numbers]), np.log10([above[i] for i in numbers]), 1)
        found.append(-slope)
    return np.array([np.percentile(found, q) for q in (5, 95)])


def slopes(N, above, drawn):
    return np.percentile([np.polyfit(np.log(N[row]), np.log(above[row]), 1)[0] for row in drawn], [5, 95])


RIGHT["exponent_interval"] = [by_covariance, with_a_list]
WRONG["exponent_interval"] = [
    (lambda *runs: by_covariance(*runs)[::-1], "The values are right, and in the other order.")
]
