"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

RIGHT = {}
WRONG = {}


def erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def right_gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


# --- feed_forward ----------------------------------------------------------------------------------------


def with_the_layers_as_a_list(X, W_1, b_1, W_2, b_2):
    for number, (W, b) in enumerate([(W_1, b_1), (W_2, b_2)]):
        X = ops.gelu(X) if number else X
        X = X @ W + b
    return X


def in_float64(X, W_1, b_1, W_2, b_2):
    return (ops.gelu(X @ W_1 + b_1) @ W_2 + b_2).astype("float64")


def relu_without_bias(X, W_1, b_1, W_2, b_2):
    return ops.relu(X @ W_1) @ W_2 + b_2


def with_numpys_gelu(X, W_1, b_1, W_2, b_2):
    return right_gelu((X @ W_1 + b_1).data) @ W_2.data + b_2.data


RIGHT["feed_forward"] = [with_the_layers_as_a_list]
WRONG["feed_forward"] = [
    (relu_without_bias, "What belongs there: GELU of each entry of H"),
    (in_float64, "float64"),
    (with_numpys_gelu, "should return a Tensor"),
    (lambda X, W_1, b_1, W_2, b_2: np.maximum(X @ W_1 + b_1, 0) @ W_2, "take the numbers out of a Tensor"),
]

# --- gelu ------------------------------------------------------------------------------------------------


def by_slopes_of_erf(H):
    """Φ's slope from that of erf, 2 exp(-u²) / √π."""
    u = H.data / 2**0.5
    y = (H.data + H.data * erf(u)) / 2
    slope = (1 + erf(u)) / 2 + u * np.exp(-u * u) / np.pi**0.5
    return Tensor.from_op(y.astype(H.dtype), [H], lambda dy: [(dy * slope).astype(H.dtype)])


def of_operations(H):
    return H * (ops.erf(H / 2**0.5) + 1) / 2


RIGHT["gelu"] = [by_slopes_of_erf]
WRONG["gelu"] = [
    (of_operations, "not made of H in one operation"),
    (
        lambda H: Tensor.from_op(right_gelu(H), (H,), lambda dA: (dA,)),
        "NumPy's functions take the numbers out",
    ),
]

# --- larger_of_two ---------------------------------------------------------------------------------------


def network(X, W_1, b_1, W_2, b_2):
    return (right_gelu(X @ np.array(W_1, float) + b_1) @ np.array(W_2, float) + b_2)[:, 0]


def run(X, W_1, W_2, b_1=0.0, b_2=0.0):
    return network(X, W_1, b_1, W_2, b_2)


def by_sum_and_distance(X):
    s = 400
    return run(X, [[s, -s, s, -s], [s, -s, -s, s]], [[0.5 / s], [-0.5 / s], [0.5 / s], [0.5 / s]])


def with_a_large_bias(X):
    """b + 20 is above 0 for all b, so one unit lets it through."""
    s = 90
    return run(X, [[s, 0], [-s, s]], [[1 / s], [1 / s]], b_1=np.array([0, 20 * s]), b_2=-20)


RIGHT["larger_of_two"] = [by_sum_and_distance, with_a_large_bias]
WRONG["larger_of_two"] = [(lambda X: X.max(axis=1), "it never calls `network`")]

# --- first_alarm -----------------------------------------------------------------------------------------


def alarm(bend=None):
    """The three tests, perhaps with another one of linearity."""

    def first(network):
        X, other = np.random.default_rng(5).normal(size=(2, 9, 16))
        Y = network(X)
        for i in range(9):
            mixed = np.where(np.arange(9)[:, None] == i, X, other)
            if not np.allclose(network(mixed)[i], Y[i]):
                return "neighbours"
        if not np.allclose(network(X[::-1]), Y[::-1]):
            return "places"
        straight = bend or (lambda f: np.allclose(f(0.5 * X + 0.5 * other), 0.5 * Y + 0.5 * f(other)))
        return "linear" if straight(network) else "none"

    return first


def in_a_dictionary(network):
    rng = np.random.default_rng(2)
    X, other = rng.standard_normal((2, 6, 16))
    Y, order = network(X), np.array([4, 0, 5, 2, 1, 3])
    seen = []
    for i in range(6):
        changed = X + other
        changed[i] = X[i]
        seen.append(np.abs(network(changed)[i] - Y[i]).max() > 1e-8)
    failed = {
        "neighbours": any(seen),
        "places": np.abs(network(X[order]) - Y[order]).max() > 1e-8,
        "linear": np.abs(network(3 * X - 2 * other) - 3 * Y + 2 * network(other)).max() < 1e-8,
    }
    return next((name for name, is_so in failed.items() if is_so), "none")


def _two(network):
    X = np.random.default_rng(5).normal(size=(9, 16))
    return np.allclose(network(2 * X), 2 * network(X))


RIGHT["first_alarm"] = [alarm(), in_a_dictionary]
WRONG["first_alarm"] = [
    (alarm(bend=lambda network: not _two(network)), ("[linearity-reversed]", "f(2x) = 2 f(x) holds without"))
]

# --- best_coefficient ------------------------------------------------------------------------------------


def _gaps(limit, c):
    x = np.linspace(-limit, limit, 3000)
    y = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + c * x**3)))
    return x, y - right_gelu(x)


def in_two_rounds(limit):
    tried = np.linspace(0.03, 0.06, 301)
    for _ in range(3):
        best = min(tried, key=lambda c: np.abs(_gaps(limit, c)[1]).max())
        step = tried[1] - tried[0]
        tried = np.linspace(best - step, best + step, 41)
    return best


RIGHT["best_coefficient"] = [in_two_rounds]
