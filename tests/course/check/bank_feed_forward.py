"""Answers to the exercises of chapter 10 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]


def erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def right_gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


# --- feed_forward ----------------------------------------------------------------------------------------


def by_the_engine(X, W_1, b_1, W_2, b_2):
    x, *layers = (Tensor(a, dtype=a.dtype) for a in (X, W_1, b_1, W_2, b_2))
    return (ops.gelu(x @ layers[0] + layers[1]) @ layers[2] + layers[3]).numpy()


def unit_by_unit(X, W_1, b_1, W_2, b_2):
    Y = np.zeros((*X.shape[:-1], len(b_2)), X.dtype) + b_2
    for key, bias, value in zip(W_1.T, b_1, W_2, strict=True):
        Y = Y + right_gelu(np.asarray(X @ key + bias))[..., None] * value
    return Y


def by_the_tail(X, W_1, b_1, W_2, b_2):
    """Φ(x) as erfc(-x / √2) / 2."""
    H = X @ W_1 + b_1
    share = np.vectorize(math.erfc)(-H * math.sqrt(0.5)) / 2
    return ((H * share) @ W_2 + b_2).astype(X.dtype)


def with_einsum(X, W_1, b_1, W_2, b_2):
    A = right_gelu(np.einsum("...d,df->...f", X, W_1) + b_1)
    return np.einsum("...f,fd->...d", A, W_2) + b_2


def in_float64(X, W_1, b_1, W_2, b_2):
    H = X @ W_1 + b_1
    return (0.5 * H * (1 + np.vectorize(math.erf, otypes=[float])(H / np.sqrt(2)))) @ W_2 + b_2


def activated(f):
    return lambda X, W_1, b_1, W_2, b_2: f(X @ W_1 + b_1) @ W_2 + b_2


def residual_too(X, W_1, b_1, W_2, b_2):
    return X + right_gelu(X @ W_1 + b_1) @ W_2 + b_2


def bias_behind(X, W_1, b_1, W_2, b_2):
    return (right_gelu(X @ W_1) + b_1) @ W_2 + b_2


def at_the_end(X, W_1, b_1, W_2, b_2):
    return right_gelu((X @ W_1 + b_1) @ W_2 + b_2)


def twice(X, W_1, b_1, W_2, b_2):
    return right_gelu(right_gelu(X @ W_1 + b_1) @ W_2 + b_2)


def relu_without_bias(X, W_1, b_1, W_2, b_2):
    return np.where(X @ W_1 > 0, X @ W_1, 0) @ W_2 + b_2


FORWARD_RIGHT = [by_the_engine, unit_by_unit, by_the_tail, with_einsum]
FORWARD_WRONG = [
    (activated(lambda x: x), "The activation is missing"),
    (activated(lambda x: x * (x > 0)), "That is ReLU"),
    (activated(lambda x: Tensor(x, dtype=x.dtype).gelu("tanh").numpy()), "That is GELU's tanh form"),
    (activated(lambda x: x * (1 + erf(x)) / 2), "The argument of erf lacks its 1 / √2"),
    (activated(lambda x: x * (1 + erf(x / math.sqrt(2)))), "The factor 1/2 is missing"),
    (activated(lambda x: 0.5 + 0.5 * erf(x / math.sqrt(2))), "You apply Φ alone"),
    (activated(lambda x: x * np.reciprocal(1 + np.exp(-x))), "That is x times a sigmoid"),
    (activated(lambda x: x * 0.5 * erf(x * math.sqrt(0.5))), "The 1 is missing"),
    (residual_too, "You add X"),
    (bias_behind, "The first bias comes after GELU"),
    (at_the_end, "You apply GELU to the output. It stands between"),
    (twice, "You apply GELU to the output as well"),
    (relu_without_bias, ("That is ReLU", "The first bias is missing")),
    (in_float64, "float64"),
    (lambda X, W_1, b_1, W_2, b_2: right_gelu(X @ W_1 + b_1), "You return what is inside"),
]

# --- feed_forward_gradients ------------------------------------------------------------------------------


def bell(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def share(x):
    return (1 + erf(x / math.sqrt(2))) / 2


def back_by_the_engine(X, W_1, b_1, W_2, b_2, dY):
    leaves = [Tensor(a, requires_grad=True, dtype=a.dtype) for a in (X, W_1, b_1, W_2, b_2)]
    x, w_1, c_1, w_2, c_2 = leaves
    (ops.gelu(x @ w_1 + c_1) @ w_2 + c_2).backward(dY)
    return tuple(Tensor(leaf.grad).numpy() for leaf in leaves)


def token_by_token(X, W_1, b_1, W_2, b_2, dY):
    dX, dW_1, db_1, dW_2, db_2 = (np.zeros_like(a) for a in (X, W_1, b_1, W_2, b_2))
    for i, (x, dy) in enumerate(zip(X, dY, strict=True)):
        h = x @ W_1 + b_1
        dh = (W_2 @ dy) * (share(h) + h * bell(h))
        dX[i] = W_1 @ dh
        dW_1 += np.outer(x, dh)
        db_1 += dh
        dW_2 += np.outer(right_gelu(h), dy)
        db_2 += dy
    return dX, dW_1, db_1, dW_2, db_2


def a_list_with_einsum(X, W_1, b_1, W_2, b_2, dY):
    H = X @ W_1 + b_1
    dH = np.einsum("ld,fd->lf", dY, W_2) * (share(H) + H * bell(H))
    ones = np.ones(len(X), X.dtype)
    return [dH @ W_1.T, np.einsum("ld,lf->df", X, dH), ones @ dH, right_gelu(H).T @ dY, ones @ dY]


def back(slope=lambda h: share(h) + h * bell(h), value=right_gelu, bias=np.sum):
    """The backward with one thing changed."""

    def gradients(X, W_1, b_1, W_2, b_2, dY):
        H = X @ W_1 + b_1
        dH = dY @ W_2.T * slope(H)
        return dH @ W_1.T, X.T @ dH, bias(dH, axis=0), value(H).T @ dY, bias(dY, axis=0)

    return gradients


GRADIENTS_RIGHT = [back_by_the_engine, token_by_token, a_list_with_einsum, back()]
GRADIENTS_WRONG = [
    (back(slope=np.ones_like), "The slope of GELU is missing"),
    (back(slope=share), "The slope lacks x φ(x)"),
    (back(slope=lambda h: h * bell(h)), "The slope lacks Φ(x)"),
    (back(slope=lambda h: share(h) + bell(h)), "the factor x is missing"),
    (back(slope=lambda h: share(h) + h * np.exp(-h * h / 2)), "The bell curve φ lacks its factor"),
    (back(slope=lambda h: np.where(h > 0, 1, 0)), "That is the slope of ReLU"),
    (back(slope=right_gelu), "You multiply by GELU itself"),
    (back(value=lambda h: h), "dW_2 needs what went into the second layer"),
    (back(slope=lambda h: 1 + h * bell(h)), "The slope's first term is Φ(x)"),
    (back(bias=np.mean), "You take the mean"),
    (back(bias=lambda g, axis: np.ones(g.shape[1])), "You return ones"),
    (back(slope=share, bias=np.mean), ("The slope lacks x φ(x)", "You take the mean")),
    (
        lambda X, W_1, b_1, W_2, b_2, dY: [-g for g in back()(X, W_1, b_1, W_2, b_2, dY)],
        "The sign is the wrong way round",
    ),
    (
        lambda *given: (back()(*given)[0] + given[-1], *back()(*given)[1:]),
        "You add dY to dX",
    ),
    (lambda *given: back()(*given)[1:], "it should return 5 values"),
    (lambda *given: (*back()(*given)[1:], back()(*given)[0]), "The order is dX"),
]

# --- larger_of_two ---------------------------------------------------------------------------------------


def run(X, W_1, W_2, b_1=0.0, b_2=0.0):
    return (right_gelu(X @ np.array(W_1, float) + b_1) @ np.array(W_2, float) + b_2)[:, 0]


def by_sum_and_distance(X):
    s = 400
    return run(X, [[s, -s, s, -s], [s, -s, -s, s]], [[0.5 / s], [-0.5 / s], [0.5 / s], [0.5 / s]])


def with_a_large_bias(X):
    """b + 20 is above 0 for all b, so one unit lets it through."""
    s = 90
    return run(X, [[s, 0], [-s, s]], [[1 / s], [1 / s]], b_1=np.array([0, 20 * s]), b_2=-20)


def from_the_other_side(X):
    s = 25
    return run(X, [[-s, s, -s], [s, 0, 0]], [[1 / s], [1 / s], [-1 / s]])


def scale(s):
    return lambda X: run(X, [[s, 0, 0], [-s, s, -s]], [[1 / s], [1 / s], [-1 / s]])


LARGER_RIGHT = [by_sum_and_distance, with_a_large_bias, from_the_other_side]
LARGER_WRONG = [
    (scale(1), "Your units get numbers near 0"),
    (scale(10), "Your units get numbers near 0"),
    (lambda X: 1000 * scale(1000)(X), "that many times too large"),
    (lambda X: X.min(axis=1), "That is the smaller of the two"),
    (lambda X: np.abs(X[:, 0] - X[:, 1]), "That is the distance of a and b"),
    (lambda X: X.mean(axis=1), "That is their mean"),
    (lambda X: np.abs(X).max(axis=1), "That is the larger of |a| and |b|"),
    (lambda X: np.maximum(X[:, 0] - X[:, 1], 0), "by how much a is larger"),
    (
        lambda X: np.maximum(X[:, 0] - X[:, 1], 0) + np.maximum(X[:, 1], 0),
        "b gets through where it is above 0 alone",
    ),
    (lambda X: np.maximum(X, 0).sum(axis=1), "what is above 0 of a and of b"),
    (lambda X: scale(1000)(X)[:, None], "it should return"),
]

# --- first_alarm -----------------------------------------------------------------------------------------


def alarm(everyone=True, places=True, linear=True, neighbours=True, bend=None, same=np.allclose):
    """The three tests, with what a learner may have left out."""

    def first(network):
        X, other = np.random.default_rng(5).normal(size=(2, 9, 16))
        Y = network(X)
        for i in range(9) if everyone else [0]:
            mixed = np.where(np.arange(9)[:, None] == i, X, other)
            if neighbours and not same(network(mixed)[i], Y[i]):
                return "neighbours"
        if places and not same(network(X[::-1]), Y[::-1]):
            return "places"
        straight = bend or (lambda f: same(f(0.5 * X + 0.5 * other), 0.5 * Y + 0.5 * f(other)))
        return "linear" if linear and straight(network) else "none"

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


ALARM_RIGHT = [alarm(), in_a_dictionary]
ALARM_WRONG = [
    (alarm(neighbours=False), "The test of the neighbours is missing"),
    (alarm(everyone=False), "You change the neighbours of one token alone"),
    (alarm(places=False), "The test of the places is missing"),
    (alarm(linear=False), "Your test of linearity finds nothing, or is missing"),
    (alarm(bend=_two), "takes a bias for a bend"),
    (alarm(bend=lambda network: not _two(network)), ("wrong way round", "linearity")),
    (lambda network: None, "it returned None"),
    (lambda network: alarm()(network).upper(), "it should return"),
]

# --- best_coefficient ------------------------------------------------------------------------------------


def _gaps(limit, c, points=3000):
    x = np.linspace(-limit, limit, points)
    y = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + c * x**3)))
    return x, y - right_gelu(x)


def in_two_rounds(limit):
    tried = np.linspace(0.03, 0.06, 301)
    for _ in range(3):
        best = min(tried, key=lambda c: np.abs(_gaps(limit, c)[1]).max())
        step = tried[1] - tried[0]
        tried = np.linspace(best - step, best + step, 41)
    return best


def by_halves(limit):
    """Where two heights of the gap are equal: its slope by c changes its sign there."""
    low, high = 0.04, 0.05
    for _ in range(40):
        c = (low + high) / 2
        rising = np.abs(_gaps(limit, c + 1e-8)[1]).max() > np.abs(_gaps(limit, c)[1]).max()
        low, high = (low, c) if rising else (c, high)
    return c


def _lowest(measure, digits=6):
    def search(limit):
        tried = np.arange(0.0400, 0.0500, 5e-6)
        return round(float(min(tried, key=lambda c: measure(*_gaps(limit, c, 1500)))), digits)

    return search


BEST_RIGHT = [in_two_rounds, by_halves]
BEST_WRONG = [
    (lambda limit: 0.044715, "That is the number in the released code"),
    (lambda limit: 2 / 3 / math.pi - 1 / 6, "That is the coefficient of the series"),
    (_lowest(lambda x, gap: np.square(gap).sum()), "mean of the squares small"),
    (lambda limit: in_two_rounds(10), "You look at GELU up to another limit"),
    (lambda limit: round(in_two_rounds(limit), 3), "Three digits are not enough"),
    (lambda limit: float(np.abs(_gaps(limit, in_two_rounds(limit), 8001)[1]).max()), "You return the gap"),
    (lambda limit: "0.0444", "it should return"),
]


RIGHT = {
    "feed_forward": FORWARD_RIGHT,
    "feed_forward_gradients": GRADIENTS_RIGHT,
    "larger_of_two": LARGER_RIGHT,
    "first_alarm": ALARM_RIGHT,
    "best_coefficient": BEST_RIGHT,
}
WRONG = {
    "feed_forward": FORWARD_WRONG,
    "feed_forward_gradients": GRADIENTS_WRONG,
    "larger_of_two": LARGER_WRONG,
    "first_alarm": ALARM_WRONG,
    "best_coefficient": BEST_WRONG,
}
