"""Right answers to the exercises of chapter `scaling`, as learners write them."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}
WRONG = {}

# --- bert_parameters -------------------------------------------------------------------------------------


def by_shapes(V, P, layers, d, d_ff):
    layer = [(d, d), (d,)] * 4 + [(d, d_ff), (d_ff,), (d_ff, d), (d,)] + [(d,)] * 4
    shapes = [(V, d), (P, d), (2, d), (d,), (d,), *(layer * layers), (d, d), (d,)]
    return sum(math.prod(shape) for shape in shapes)


RIGHT["bert_parameters"] = [by_shapes]

# --- best_size -------------------------------------------------------------------------------------------


def by_logarithms(C, A, alpha, B, beta):
    log_n = (math.log(alpha * A) - math.log(beta * B) + beta * math.log(C / 6)) / (alpha + beta)
    return [math.exp(log_n), math.exp(math.log(C / 6) - log_n)]


RIGHT["best_size"] = [by_logarithms]

# --- spend_budget ----------------------------------------------------------------------------------------


def with_argmin(C, tokens, sizes, law):
    N = np.sort(np.array(sizes, dtype=float))
    D = np.minimum(C / (6 * N), tokens)
    best = int(np.argmin([law(*pair) for pair in zip(N, D, strict=True)]))
    return N[best], D[best]


RIGHT["spend_budget"] = [with_argmin]

# --- forecast_loss ---------------------------------------------------------------------------------------


def in_base_ten(N, loss, floor, larger):
    slope, height = np.polyfit(np.log10(N), np.log10(loss - floor), 1)
    return 10**height * larger**slope + floor


RIGHT["forecast_loss"] = [in_base_ten]

# --- exponent_interval -----------------------------------------------------------------------------------


def by_covariance(N, above, drawn):
    x, y = np.log(N)[drawn], np.log(above)[drawn]  # (draws, n)
    x = x - x.mean(axis=1, keepdims=True)
    slopes = (x * y).sum(axis=1) / (x * x).sum(axis=1)
    return np.quantile(-slopes, [0.05, 0.95])


def slopes(N, above, drawn):
    return np.percentile([np.polyfit(np.log(N[row]), np.log(above[row]), 1)[0] for row in drawn], [5, 95])


RIGHT["exponent_interval"] = [by_covariance]
WRONG["exponent_interval"] = [
    (lambda *runs: by_covariance(*runs)[::-1], "The values are right, and in the other order.")
]
