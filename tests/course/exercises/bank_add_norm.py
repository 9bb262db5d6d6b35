"""Answers to the exercises of `add_norm` as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import numpy as np

from minigrad import Tensor, ops

RIGHT = {}
WRONG = {}

# --- add_norm --------------------------------------------------------------------------------------------


def by_subtracting_the_squares_mean(x, y, gain, bias, eps):
    r = x + y - (x + y).mean(axis=-1, keepdims=True)
    return gain * r * ((r * r).sum(axis=-1, keepdims=True) / r.shape[-1] + eps) ** -0.5 + bias


def by_the_library(x, y, gain, bias, eps):
    return ops.layer_norm(x + y, gain, bias, eps)


def with_numpys_functions(x, y, gain, bias, eps):
    r = (x + y).data
    return (r - np.mean(r, -1, keepdims=True)) / np.sqrt(
        np.var(r, -1, keepdims=True) + eps
    ) * gain.data + bias.data


def in_place(x, y, gain, bias, eps):
    x.data += y.data
    return ops.layer_norm(x, gain, bias, eps)


def two_mistakes(x, y, gain, bias, eps):
    r = x + y
    centred = r - r.mean(axis=-1, keepdims=True)
    return centred / ((centred**2).mean(axis=-1, keepdims=True) ** 0.5 + eps) * bias + gain


RIGHT["add_norm"] = [by_subtracting_the_squares_mean, by_the_library]
WRONG["add_norm"] = [
    (two_mistakes, ("[eps-outside]", "[gain-bias-swapped]")),
    (in_place, "it changes `x`"),
    (with_numpys_functions, "should return a Tensor"),
    (
        lambda x, y, gain, bias, eps: (x + y) / np.sqrt((x + y) ** 2),
        "Write x ** 0.5: a NumPy function would take the numbers out of the Tensor.",
    ),
]

# --- layer_norm ------------------------------------------------------------------------------------------


def through_the_variance(x, gain, bias, eps):
    """Step by step, as the graph would: variance and mean have gradients of their own."""
    x_, d = x.data, x.shape[-1]
    mu, var = x_.mean(-1, keepdims=True), x_.var(-1, keepdims=True)
    inv = 1 / np.sqrt(var + eps)

    def backward(dy):
        dx_hat = dy * gain.data
        dvar = (dx_hat * (x_ - mu)).sum(-1, keepdims=True) * -0.5 * inv**3
        dmu = -(dx_hat * inv).sum(-1, keepdims=True)
        dx = dx_hat * inv + dvar * 2 * (x_ - mu) / d + dmu / d
        rows = dy.reshape(-1, d)
        return [dx, (rows * ((x_ - mu) * inv).reshape(-1, d)).sum(0), rows.sum(0)]

    return Tensor.from_op((x_ - mu) * inv * gain.data + bias.data, [x, gain, bias], backward)


def gain_from_x(x, gain, bias, eps):
    right = through_the_variance(x, gain, bias, eps).data

    def backward(dy):
        d = dy.shape[-1]
        return 0 * dy, (dy * x.data).reshape(-1, d).sum(0), dy.reshape(-1, d).sum(0)

    return Tensor.from_op(right, (x, gain, bias), backward)


def gain_of_each_token(x, gain, bias, eps):
    right = through_the_variance(x, gain, bias, eps).data
    return Tensor.from_op(right, (x, gain, bias), lambda dy: (dy, dy, dy))


RIGHT["layer_norm"] = [through_the_variance]
WRONG["layer_norm"] = [
    (gain_from_x, "The result and the gradient for bias are right."),
    (gain_of_each_token, "sum over every axis along which the parent was repeated"),
]

# --- overwrite -------------------------------------------------------------------------------------------


def normalised(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)


def add_and_norm(X, W):
    return normalised(X + X @ W)


def written_by_hand(X, source, target):
    Y = X.copy()
    Y[:, target] = X[:, source]
    return normalised(Y)


def difference_of_one_hots(X, source, target):
    unit = np.eye(X.shape[1])
    W = np.outer(unit[source] - unit[target], unit[target])
    return add_and_norm(X, W)


def target_minus_identity(X, source, target):
    goal = np.eye(X.shape[1])
    goal[:, target] = goal[:, source]
    return add_and_norm(X, goal - np.eye(X.shape[1]))


RIGHT["overwrite"] = [difference_of_one_hots, target_minus_identity]
WRONG["overwrite"] = [
    (written_by_hand, "it never calls `add_and_norm`"),
    (lambda X, source, target: X + X[:, [source]] * 0, "of 3 cases are right"),
]

# --- first_fault -----------------------------------------------------------------------------------------


def probe(norm):
    x = 3 + np.random.default_rng(4).standard_normal((4, 6, 9))
    z, v = norm(x, 1e-13), x.var(-1)
    tests = {
        "neighbours": np.abs(norm(x[:1, :1], 1e-13) - z[:1, :1]).max() > 1e-8,
        "mean": np.abs(z.mean(-1)).max() > 1e-8,
        "size": np.abs(z.var(-1) - 1).max() > 1e-6,
        "eps": np.abs(norm(x, 0.5).var(-1) - v / (v + 0.5)).max() > 1e-6,
    }
    return next((name for name, failed in tests.items() if failed), "none")


def changes_the_others(norm):
    rng = np.random.default_rng(11)
    x = rng.normal(5, 2, (2, 3, 8))
    other = rng.normal(-1, 1, x.shape)
    other[0, 0] = x[0, 0]
    if not np.allclose(norm(x, 1e-12)[0, 0], norm(other, 1e-12)[0, 0]):
        return "neighbours"
    z = norm(x, 1e-12)
    if abs(z.sum(-1)).max() > 1e-6:
        return "mean"
    if not np.allclose((z**2).mean(-1), 1):
        return "size"
    small = norm(x, 3.0)
    return "none" if np.allclose((small**2).mean(-1), x.var(-1) / (x.var(-1) + 3)) else "eps"


RIGHT["first_fault"] = [probe, changes_the_others]

# --- what_is_left ----------------------------------------------------------------------------------------


def step_by_step(n, v):
    post = pre = total = 1.0
    for _ in range(n):
        post /= 1 + v
        total += v
    return post, pre / total


def a_list(n, v):
    return [1 / (1 + v) ** n, (1 + n * v) ** -1]


RIGHT["what_is_left"] = [step_by_step, a_list]
WRONG["what_is_left"] = [
    (lambda n, v: ((1 - v) ** n, (1 + n * v) ** -0.5), ("[share-negative]", "[ratio-of-sizes]"))
]
