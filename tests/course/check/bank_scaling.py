"""Answers to the exercises of chapter 25 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RIGHT", "WRONG"]


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


def as_on_the_page(V, P, layers, d, d_ff):
    return (V + P + 2) * d + 2 * d + layers * (12 * d**2 + 13 * d) + d * (d + 1)


def without_pooler(V, P, layers, d, d_ff):
    return by_parts(V, P, layers, d, d_ff) - linear(d, d)


def weights_of_attention_alone(V, P, layers, d, d_ff):
    return by_parts(V, P, layers, d, d_ff) - layers * 4 * d


def one_norm_a_layer(V, P, layers, d, d_ff):
    return by_parts(V, P, layers, d, d_ff) - layers * 2 * d


def no_segments(V, P, layers, d, d_ff):
    return by_parts(V, P, layers, d, d_ff) - 2 * d


MODEL_RIGHT = [by_parts, by_shapes]
MODEL_WRONG = [
    (as_on_the_page, "need not be 4 d"),
    (without_pooler, "The pooler is missing"),
    (weights_of_attention_alone, "four biases of the attention"),
    (one_norm_a_layer, "two LayerNorms"),
]

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


def terms_alike(C, A, alpha, B, beta):
    """A / N^alpha = B / D^beta."""
    N = (A / B * (C / 6) ** beta) ** (1 / (alpha + beta))
    return N, C / (6 * N)


def without_six(C, A, alpha, B, beta):
    N = (alpha * A / (beta * B) * C**beta) ** (1 / (alpha + beta))
    return N, C / N


def square_root(C, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * math.sqrt(C / 6)
    return N, C / 6 / N


def exponent_of_data(C, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (C / 6) ** (alpha / (alpha + beta))
    return N, C / 6 / N


def data_first(C, A, alpha, B, beta):
    return best_first(C, A, alpha, B, beta)[::-1]


def best_first(C, A, alpha, B, beta):
    return by_logarithms(C, A, alpha, B, beta)


BUDGET_RIGHT = [by_logarithms, by_halving]
BUDGET_WRONG = [
    (terms_alike, "the two *slopes* cancel"),
    (without_six, "The budget is 6 N D"),
    (square_root, "equal exponents only"),
    (exponent_of_data, "β over the sum"),
    (data_first, "Return N first"),
]

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


def endless_text(C, tokens, sizes, law):
    N = min(sorted(sizes), key=lambda N: law(N, C / (6 * N)))
    return N, C / (6 * N)


def endless_money(C, tokens, sizes, law):
    N = min(sorted(sizes), key=lambda N: law(N, tokens))
    return N, tokens


def the_largest(C, tokens, sizes, law):
    N = max(sizes)
    return N, min(C / (6 * N), tokens)


def forward_only(C, tokens, sizes, law):
    N = min(sorted(sizes), key=lambda N: law(N, min(C / (2 * N), tokens)))
    return N, min(C / (2 * N), tokens)


SPEND_RIGHT = [with_a_loop, with_argmin]
SPEND_WRONG = [
    (endless_text, "There are only `tokens` tokens"),
    (endless_money, "the budget pays for 6 N D"),
    (the_largest, "That is the largest size"),
    (forward_only, "A token costs 6 N FLOPs"),
]

# --- forecast_loss ---------------------------------------------------------------------------------------


def in_base_ten(N, loss, floor, larger):
    slope, height = np.polyfit(np.log10(N), np.log10(loss - floor), 1)
    return 10**height * larger**slope + floor


def by_least_squares(N, loss, floor, larger):
    X = np.stack([np.ones(len(N)), np.log(N)], axis=1)
    b = np.linalg.lstsq(X, np.log(np.asarray(loss) - floor), rcond=None)[0]
    return floor + math.exp(b[0] + b[1] * math.log(larger))


def as_given(N, loss, floor, larger):
    slope, height = np.polyfit(np.log10(N), np.log(loss), 1)
    return np.exp(height + slope * np.log(larger))


def no_floor_at_all(N, loss, floor, larger):
    slope, height = np.polyfit(np.log(N), np.log(loss), 1)
    return np.exp(height) * larger**slope


def excess_only(N, loss, floor, larger):
    slope, height = np.polyfit(np.log(N), np.log(loss - floor), 1)
    return np.exp(height) * larger**slope


def half_logarithmic(N, loss, floor, larger):
    slope, height = np.polyfit(np.log(N), loss, 1)
    return height + slope * np.log(larger)


def other_bases(N, loss, floor, larger):
    slope, height = np.polyfit(np.log10(N), np.log(loss - floor), 1)
    return floor + np.exp(height + slope * np.log(larger))


FORECAST_RIGHT = [in_base_ten, by_least_squares]
FORECAST_WRONG = [
    (as_given, "The function as it was given"),
    (no_floor_at_all, "You fit the loss itself"),
    (excess_only, "The floor is not added"),
    (half_logarithmic, "not of their logarithms"),
    (other_bases, "The bases are mixed"),
]

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


def eighty(N, above, drawn):
    low, high = np.quantile(
        [-np.polyfit(np.log(N[row]), np.log(above[row]), 1)[0] for row in drawn], [0.1, 0.9]
    )
    return np.array([low, high])


def shares(N, above, drawn):
    found = [-np.polyfit(np.log(N[row]), np.log(above[row]), 1)[0] for row in drawn]
    return np.percentile(found, [0.05, 0.95])


def normal(N, above, drawn):
    found = [-np.polyfit(np.log(N[row]), np.log(above[row]), 1)[0] for row in drawn]
    return np.array([np.mean(found) - 1.645 * np.std(found), np.mean(found) + 1.645 * np.std(found)])


def not_in_logarithms(N, above, drawn):
    return np.percentile([-np.polyfit(N[row], above[row], 1)[0] for row in drawn], [5, 95])


INTERVAL_RIGHT = [by_covariance, with_a_list]
INTERVAL_WRONG = [
    (slopes, "minus the slope"),
    (eighty, "between the percentiles 5 and 95"),
    (shares, "counts to 100"),
    (normal, "Take the percentiles of the draws"),
    (not_in_logarithms, "a straight line of logarithms"),
]

RIGHT = {
    "bert_parameters": MODEL_RIGHT,
    "best_size": BUDGET_RIGHT,
    "spend_budget": SPEND_RIGHT,
    "forecast_loss": FORECAST_RIGHT,
    "exponent_interval": INTERVAL_RIGHT,
}
WRONG = {
    "bert_parameters": [*MODEL_WRONG, (no_segments, "two rows of the segment table")],
    "best_size": BUDGET_WRONG,
    "spend_budget": SPEND_WRONG,
    "forecast_loss": FORECAST_WRONG,
    "exponent_interval": INTERVAL_WRONG,
}
