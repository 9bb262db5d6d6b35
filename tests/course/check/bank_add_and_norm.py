"""Answers to the exercises of chapter 11 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]


# --- add_norm --------------------------------------------------------------------------------------------


def with_numpys_functions(x, y, gain, bias, eps):
    r = x + y
    return gain * (r - np.mean(r, -1, keepdims=True)) / np.sqrt(np.var(r, -1, keepdims=True) + eps) + bias


def by_the_library(x, y, gain, bias, eps):
    parts = (Tensor(part, dtype=x.dtype) for part in (x + y, gain, bias))
    return ops.layer_norm(*parts, eps).numpy()


def token_by_token(x, y, gain, bias, eps):
    out = np.empty_like(x)
    rows, others = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1])
    for row, other, target in zip(rows, others, out.reshape(rows.shape), strict=True):
        r = row + other
        r = r - r.sum() / len(r)
        target[:] = gain * r * (r @ r / len(r) + eps) ** -0.5 + bias
    return out


def with_einsum(x, y, gain, bias, eps):
    r = x + y
    d = r.shape[-1]
    r = r - np.einsum("...d->...", r)[..., None] / d
    s = np.einsum("...d,...d->...", r, r)[..., None] / d
    return r / (s + eps) ** 0.5 * gain + bias


def pre_ln(x, y, gain, bias, eps):
    return x + with_numpys_functions(y, 0 * y, gain, bias, eps)


def in_place(x, y, gain, bias, eps):
    x += y
    x -= x.mean(-1, keepdims=True)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * gain + bias


def batch_norm(x, y, gain, bias, eps):
    r = x + y
    return (r - r.mean(0)) / np.sqrt(r.var(0) + eps) * gain + bias


def two_slips(x, y, gain, bias, eps):
    r = x + y
    return (r - r.mean(-1, keepdims=True)) / (r.std(-1, keepdims=True) + eps) * bias + gain


ADD_NORM_RIGHT = [with_numpys_functions, by_the_library, token_by_token, with_einsum]
ADD_NORM_WRONG = [
    (pre_ln, "You normalise y and add x afterwards"),
    (batch_norm, "Your mean and variance go over the tokens"),
    (two_slips, ("eps stands outside of the root", "Gain and bias are exchanged")),
    (in_place, "it changes `x`"),
    (
        lambda x, y, gain, bias, eps: with_numpys_functions(x, y, gain, bias, 1e-5),
        "The parameter eps does not count",
    ),
    (
        lambda x, y, gain, bias, eps: with_numpys_functions(y, 0, gain, bias, eps),
        "You normalise only what the sub-layer made",
    ),
    (
        lambda x, y, gain, bias, eps: (x + y - (x + y).mean()) / np.sqrt((x + y).var() + eps) * gain + bias,
        "one mean and one variance for all tokens",
    ),
    (
        lambda x, y, gain, bias, eps: (
            (x + y) / np.sqrt(((x + y) ** 2).mean(-1, keepdims=True) + eps) * gain + bias
        ),
        "You do not subtract the mean",
    ),
    (
        lambda x, y, gain, bias, eps: (
            (x + y - (x + y).mean(-1, keepdims=True))
            / ((x + y).std(-1, ddof=1, keepdims=True) ** 2 + eps) ** 0.5
            * gain
            + bias
        ),
        "You divide the sum of squares by d - 1",
    ),
    (
        lambda x, y, gain, bias, eps: (
            (x + y - (x + y).mean(-1, keepdims=True))
            / np.sqrt(np.mean((x + y) ** 2, -1, keepdims=True) - np.mean(x + y, -1, keepdims=True) ** 2 + eps)
            * gain
            + bias
        ),
        "a small difference of large numbers",
    ),
    (
        lambda x, y, gain, bias, eps: with_numpys_functions(x, y, 1.0, 0.0, eps),
        "Gain and bias are missing",
    ),
    (
        lambda x, y, gain, bias, eps: with_numpys_functions(
            *(one.astype(float) for one in (x, y)), gain, bias, eps
        ),
        "float64",
    ),
    (lambda x, y, gain, bias, eps: with_numpys_functions(x, y, gain, bias, eps).tolist(), "returned a list"),
]

# --- layer_norm_backward ---------------------------------------------------------------------------------


def by_the_engine(dy, x, gain, eps):
    leaves = [Tensor(a, requires_grad=True, dtype=a.dtype) for a in (x, gain, 0 * gain)]
    ops.composed.layer_norm(*leaves, eps).backward(dy)
    return tuple(Tensor(leaf.grad).numpy() for leaf in leaves)


def by_the_jacobian(dy, x, gain, eps):
    d = x.shape[-1]
    dx, dgain, dbias = np.zeros_like(x), np.zeros_like(gain), np.zeros_like(gain)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place]
        s = math.sqrt(row.var() + eps)
        x_hat = (row - row.mean()) / s
        J = (np.eye(d) - 1 / d - np.outer(x_hat, x_hat) / d) / s
        dx[place] = J @ (dy[place] * gain)
        dgain += dy[place] * x_hat
        dbias += dy[place]
    return dx, dgain, dbias


def through_the_variance(dy, x, gain, eps):
    """Step by step, as the graph would: variance and mean have gradients of their own."""
    d = x.shape[-1]
    mu, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    inv = 1 / np.sqrt(var + eps)
    dx_hat = dy * gain
    dvar = (dx_hat * (x - mu)).sum(-1, keepdims=True) * -0.5 * inv**3
    dmu = -(dx_hat * inv).sum(-1, keepdims=True)
    dx = dx_hat * inv + dvar * 2 * (x - mu) / d + dmu / d
    rows = dy.reshape(-1, d)
    return [dx, (rows * ((x - mu) * inv).reshape(-1, d)).sum(0), rows.sum(0)]


def constants(dy, x, gain, eps):
    s = np.sqrt(x.var(-1, keepdims=True) + eps)
    x_hat = (x - x.mean(-1, keepdims=True)) / s
    axes = tuple(range(x.ndim - 1))
    return dy * gain / s, (dy * x_hat).sum(axes), dy.sum(axes)


def _with(dy, x, gain, eps, dx=None, dgain=None, dbias=None):
    right = through_the_variance(dy, x, gain, eps)
    s = np.sqrt(x.var(-1, keepdims=True) + eps)
    x_hat = (x - x.mean(-1, keepdims=True)) / s
    made = [make and make(dy * gain, x_hat, s, right) for make in (dx, dgain, dbias)]
    return tuple(old if new is None else new for new, old in zip(made, right, strict=True))


def _mean(a):
    return a.mean(-1, keepdims=True)


def _over_tokens(a):
    return a.sum(tuple(range(a.ndim - 1)))


BACKWARD_RIGHT = [by_the_engine, by_the_jacobian, through_the_variance]
BACKWARD_WRONG = [
    (constants, "You treat mean and divisor as constants"),
    (
        lambda *a: _with(*a, dx=lambda g, h, s, _: (g - h * _mean(g * h)) / s),
        "The term of the mean is missing",
    ),
    (lambda *a: _with(*a, dx=lambda g, h, s, _: (g - _mean(g)) / s), "The term of the divisor is missing"),
    (lambda *a: _with(*a, dx=lambda g, h, s, r: r[0] * s), "dx is not divided"),
    (
        lambda *a: _with(*a, dx=lambda g, h, s, _: (g - _mean(g) - _mean(g * h)) / s),
        "The divisor's term has the same number for all features",
    ),
    (lambda dy, x, gain, eps: through_the_variance(dy, x, 1 + 0 * gain, eps), "The gain is missing in dx"),
    (
        lambda *a: _with(*a, dgain=lambda g, h, s, _: _over_tokens(g * h)),
        "The gain's gradient is computed from dy times gain",
    ),
    (
        lambda *a: _with(*a, dbias=lambda g, h, s, _: _over_tokens(g)),
        "The bias's gradient is computed from dy times gain",
    ),
    (
        lambda dy, x, gain, eps: (through_the_variance(dy, x, gain, eps)[0], (dy * x).sum(0), dy.sum(0)),
        ("The gain's gradient is computed from x", "summed over the first axis alone"),
    ),
    (
        lambda dy, x, gain, eps: (constants(dy, x, gain, eps)[0], *(constants(dy, x, gain, eps)[:0:-1])),
        ("You treat mean and divisor as constants", "The order is dx, dgain, dbias"),
    ),
    (lambda dy, x, gain, eps: through_the_variance(dy, x, gain, eps)[0], "it should return 3 values"),
    (lambda dy, x, gain, eps: by_the_jacobian(dy, x, gain, 0.0), "eps is missing"),
]

# --- overwrite -------------------------------------------------------------------------------------------


def normalised(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)


def difference_of_one_hots(X, source, target):
    unit = np.eye(X.shape[1])
    W = np.outer(unit[source] - unit[target], unit[target])
    return normalised(X + X @ W)


def target_minus_identity(X, source, target):
    goal = np.eye(X.shape[1])
    goal[:, target] = goal[:, source]
    return normalised(X + X @ (goal - np.eye(X.shape[1])))


def by_loops(X, source, target):
    d = X.shape[-1]
    W = [[0.0] * d for _ in range(d)]
    W[source][target], W[target][target] = 1.0, -1.0
    return normalised(X + X @ np.array(W))


def matrix(write):
    def answer(X, source, target):
        W = np.zeros((X.shape[1], X.shape[1]))
        write(W, source, target)
        return normalised(X + X @ W)

    return answer


def adds_only(W, source, target):
    W[source, target] = 1


def erases_only(W, source, target):
    W[target, target] = -1


def other_way_round(W, source, target):
    W[target, target], W[target, source] = -1, 1


def whole_token(W, source, target):
    W += np.eye(len(W))
    W[target, target], W[source, target] = 0, 1


def identity_too(W, source, target):
    W += np.eye(len(W))
    W[target, target], W[source, target] = -1, 1


def moves_it(W, source, target):
    W[target, target], W[source, target], W[source, source] = -1, 1, -1


def without_norm(X, source, target):
    out = X.copy()
    out[:, target] = X[:, source]
    return out


OVERWRITE_RIGHT = [difference_of_one_hots, target_minus_identity, by_loops]
OVERWRITE_WRONG = [
    (matrix(adds_only), "The old feature is still there"),
    (matrix(erases_only), "nothing is written in its place"),
    (matrix(other_way_round), "W is transposed"),
    (matrix(whole_token), "Your W makes the whole new token"),
    (matrix(identity_too), "The other features are written a second time"),
    (matrix(moves_it), "You remove the source feature"),
    (lambda X, source, target: difference_of_one_hots(X, target, source), "Source and target are exchanged"),
    (lambda X, source, target: X + X[:, [source]] * 0, "3 cases are right"),
    (without_norm, "You return the sum as it is"),
]

# --- first_fault -----------------------------------------------------------------------------------------


def probe(norm, *, skip=(), eps=0.5, ddof=0, swap=False, law=lambda v, eps: v / (v + eps), alone=(1, 1)):
    """The tests, with what a learner may have changed in them."""
    x = 3 + np.random.default_rng(4).standard_normal((4, 6, 9))
    z, v = norm(x, 1e-13), x.var(-1)
    texts, tokens = alone
    few = x[:texts, :tokens]
    tests = {
        "neighbours": np.abs(norm(few, 1e-13) - z[:texts, :tokens]).max() > 1e-8,
        "mean": np.abs(z.mean(-1)).max() > 1e-8,
        "size": np.abs(z.var(-1, ddof=ddof) - 1).max() > 1e-6,
        "eps": np.abs(norm(x, eps).var(-1) - law(v, eps)).max() > 1e-6,
    }
    names = ["mean", "neighbours", "size", "eps"] if swap else list(tests)
    return next((name for name in names if tests[name] and name not in skip), "none")


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


FAULT_RIGHT = [probe, changes_the_others]
FAULT_WRONG = [
    (lambda norm: probe(norm, skip=("neighbours",)), "The test of the neighbours is missing"),
    (lambda norm: probe(norm, skip=("mean",)), "The test of the mean is missing"),
    (lambda norm: probe(norm, skip=("size",)), "The test of the size is missing"),
    (lambda norm: probe(norm, skip=("eps",)), "The test of eps is missing"),
    (lambda norm: probe(norm, eps=1e-12), "its eps is too small to be seen"),
    (lambda norm: probe(norm, ddof=1), "You compute the variance with d - 1"),
    (lambda norm: probe(norm, law=lambda v, eps: 1), "You expect rows of variance 1"),
    (
        lambda norm: probe(norm, law=lambda v, eps: v / (v**0.5 + eps) ** 2),
        "expect the output of an eps outside",
    ),
    (lambda norm: probe(norm, swap=True), "Your test of the mean comes before that of the neighbours"),
    (lambda norm: probe(norm, alone=(1, 6)), "You change only the other texts"),
    (lambda norm: probe(norm, alone=(4, 1)), "You change only the other tokens of the text"),
    (lambda norm: None, "it returned None"),
]

# --- what_is_left ----------------------------------------------------------------------------------------


def step_by_step(n, v):
    post = pre = total = 1.0
    for _ in range(n):
        post /= 1 + v
        total += v
    return post, pre / total


def as_an_exponential(n, v):
    return np.exp(-n * np.log1p(v)), 1.0 / (n * v + 1.0)


def a_list(n, v):
    return [1 / (1 + v) ** n, (1 + n * v) ** -1]


LEFT_RIGHT = [step_by_step, as_an_exponential, a_list]
LEFT_WRONG = [
    (lambda n, v: ((1 + v) ** (-n / 2), (1 + n * v) ** -0.5), "That is the ratio of the sizes"),
    (lambda n, v: ((1 + v) ** -n, (1 + v) ** -n), "that of post-LN"),
    (lambda n, v: (1 / (1 + n * v), 1 / (1 + n * v)), "that of pre-LN"),
    (lambda n, v: (1 / (1 + n * v), (1 + v) ** -n), "Pre-LN's share comes first"),
    (lambda n, v: (math.exp(-n * v), 1 / (1 + n * v)), "That is the limit for small v"),
    (lambda n, v: ((1 + v) ** (-2 * n), 1 / (1 + n * v)), "You count two LayerNorms for each sub-layer"),
    (lambda n, v: ((1 + v) ** (-2 * n), 1 / (1 + 2 * n * v)), "n counts the sub-layers already"),
    (lambda n, v: ((1 + v) ** -n, 1 / (1 + 2 * n * v)), "n counts the sub-layers already"),
    (lambda n, v: ((1 + v) ** -n, 1), "Pre-LN's skip path takes nothing away"),
    (lambda n, v: ((1 + v) ** n, 1 + n * v), "the shares are missing"),
    (lambda n, v: ((1 + v) ** (-n / 2), 1 / (1 + n * v)), "In post-LN you give the ratio of the sizes"),
    (
        lambda n, v: ((1 - v) ** n, (1 + n * v) ** -0.5),
        ("A share cannot be negative or grow", "In pre-LN you give the ratio of the sizes"),
    ),
    (lambda n, v: (1 + v) ** -n, "it should return 2 values"),
]

RIGHT = {
    "add_norm": ADD_NORM_RIGHT,
    "layer_norm_backward": BACKWARD_RIGHT,
    "overwrite": OVERWRITE_RIGHT,
    "first_fault": FAULT_RIGHT,
    "what_is_left": LEFT_RIGHT,
}
WRONG = {
    "add_norm": ADD_NORM_WRONG,
    "layer_norm_backward": BACKWARD_WRONG,
    "overwrite": OVERWRITE_WRONG,
    "first_fault": FAULT_WRONG,
    "what_is_left": LEFT_WRONG,
}
