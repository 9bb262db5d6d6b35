"""Chapter 7: one attention head."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from minigrad.course.check.exercise import Case, Exercise, Misconception

__all__ = ["attend", "score_scale", "softmax", "softmax_backward"]

# --- softmax ---------------------------------------------------------------------------------------------


def _softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))  # the largest exponent is 0: nothing overflows
    return e / e.sum(axis=-1, keepdims=True)


def _softmax_cases(rng: np.random.Generator) -> Iterator[Case]:
    for dtype in (np.float64, np.float32):
        yield Case(f"a (3, 5) array of {dtype.__name__}", (rng.standard_normal((3, 5)).astype(dtype),))
    yield Case("a square (4, 4)", (rng.standard_normal((4, 4)),))
    yield Case("two matrices at once (2, 3, 7)", (rng.standard_normal((2, 3, 7)),))
    yield Case("a single entry in each row (6, 1)", (rng.standard_normal((6, 1)),))
    large = (1000 * rng.standard_normal((3, 4))).astype(np.float32)
    yield Case("scores in the thousands (3, 4)", (large,))
    masked = rng.standard_normal((2, 5)).astype(np.float32)
    masked[0] = np.finfo(np.float32).min
    masked[1, 3:] = np.finfo(np.float32).min
    yield Case("a row with everything masked (2, 5)", (masked,))


def _without_shift(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def _without_shift_through_the_logarithm(x):
    return np.exp(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))


def _over_axis(axis):
    def wrong(x):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    return wrong


def _over_everything(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def _sum_over_axis(axis):
    def wrong(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    return wrong


def _shift_by_global_max(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=-1, keepdims=True)


def _shift_by(statistic):
    def wrong(x):
        e = np.exp(x - statistic(x, axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return wrong


def _not_normalised(x):
    return np.exp(x - x.max(axis=-1, keepdims=True))


def _without_exponential(x):
    return x / x.sum(axis=-1, keepdims=True)


def _without_exponential_after_shift(x):
    return _without_exponential(x - x.max(axis=-1, keepdims=True))


def _without_keepdims(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1)


def _without_keepdims_twice(x):
    e = np.exp(x - x.max(axis=-1))
    return e / e.sum(axis=-1)


def _log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def _with_epsilon(epsilon):
    def wrong(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / (e.sum(axis=-1, keepdims=True) + epsilon)

    return wrong


_OVERFLOW = (
    "Large scores overflow: e to the 1000 is not a float. Softmax does not change when a row's largest entry "
    "is subtracted from the row first."
)
_COLUMNS = (
    "Each column sums to 1, not each row: over which axis did you normalise? "
    "A row holds the scores of one query, and its weights share out 1."
)
_AXIS_ONE = "axis=1 is the last axis of a matrix only. With more axes in front, the last one is axis=-1."
_EVERYTHING = "All entries together sum to 1, not each row: sum over the last axis only."
_SCORES = (
    "You divide the scores themselves by their sum: the largest need not get the largest share. "
    "Take e to the power of the scores first."
)
_EPSILON = (
    "A small number added to the denominator makes every row sum to less than 1. After the shift the sum is at "
    "least 1 already: nothing to protect."
)

softmax = Exercise(
    name="softmax",
    chapter=7,
    difficulty=1,
    minutes=8,
    answer=_softmax,
    cases=_softmax_cases,
    misconceptions=[
        Misconception(_OVERFLOW, _without_shift),
        Misconception(_OVERFLOW, _without_shift_through_the_logarithm),
        Misconception(_COLUMNS, _over_axis(-2)),
        Misconception(_COLUMNS, _over_axis(0)),
        Misconception(_COLUMNS, _sum_over_axis(-2)),
        Misconception(_COLUMNS, _sum_over_axis(0)),
        Misconception(_AXIS_ONE, _over_axis(1)),
        Misconception(_AXIS_ONE, _sum_over_axis(1)),
        Misconception(_EVERYTHING, _over_everything),
        Misconception(_EVERYTHING, _sum_over_axis(None)),
        Misconception(
            "You subtract the largest entry of the whole array. A row far below it underflows to 0 / 0: every row needs "
            "its own largest entry.",
            _shift_by_global_max,
        ),
        Misconception(
            "You subtract each row's mean. Its largest entry can still be far above that and overflow: subtract the maximum.",
            _shift_by(np.mean),
        ),
        Misconception(
            "You subtract each row's smallest entry: the others lie above 0 then, and can still overflow. Subtract the largest.",
            _shift_by(np.min),
        ),
        Misconception("The rows do not sum to 1: divide by each row's sum.", _not_normalised),
        Misconception(_SCORES, _without_exponential),
        Misconception(_SCORES, _without_exponential_after_shift),
        Misconception(
            "That is the sigmoid of each score by itself: the entries of a row have to share out 1.",
            lambda x: 1 / (1 + np.exp(-x)),
        ),
        Misconception(
            "The row sums have lost their axis: without keepdims=True, NumPy lines them up with the columns.",
            _without_keepdims,
        ),
        Misconception(
            "Row maximum and row sum have lost their axis: without keepdims=True, NumPy lines them up with the columns.",
            _without_keepdims_twice,
        ),
        Misconception(
            "That is the logarithm of softmax: the weights themselves are asked for.", _log_softmax
        ),
        *(Misconception(_EPSILON, _with_epsilon(epsilon)) for epsilon in (1e-5, 1e-6, 1e-7, 1e-8)),
    ],
    hints=[
        "Three steps: shift, exponential, divide. The first and the last need one number for each row.",
        "x.max(axis=-1, keepdims=True) has shape (..., 1): one number a row, in the right place to be broadcast.",
        "With e = np.exp(x - x.max(axis=-1, keepdims=True)), the answer is e over its sum along the last axis.",
    ],
)

# --- softmax_backward ------------------------------------------------------------------------------------


def _softmax_backward(dy, y):
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def _backward_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape, dtype in (
        ((3, 5), np.float64),
        ((4, 4), np.float64),
        ((2, 3, 7), np.float32),
        ((6, 1), np.float64),
    ):
        y = _softmax(rng.standard_normal(shape)).astype(dtype)
        yield Case(f"shape {shape} of {dtype.__name__}", (rng.standard_normal(shape).astype(dtype), y))
    y = _softmax(rng.standard_normal((3, 5)))
    yield Case("a dy of ones (3, 5), which must give 0", (np.ones((3, 5)), y))
    one_hot = np.eye(4)[[1, 3]]
    yield Case("rows that are sure of themselves (2, 4)", (rng.standard_normal((2, 4)), one_hot))


softmax_backward = Exercise(
    name="softmax_backward",
    chapter=7,
    difficulty=2,
    minutes=15,
    answer=_softmax_backward,
    cases=_backward_cases,
    misconceptions=[
        Misconception(
            "That is the diagonal of the Jacobian alone, y (1 - y): right for a sigmoid. In softmax every output depends "
            "on every score of its row, through the denominator.",
            lambda dy, y: dy * y * (1 - y),
        ),
        Misconception(
            "The sum over the row is missing: raising one score lowers all other weights.",
            lambda dy, y: dy * y,
        ),
        Misconception(
            "You sum dy over the row. What is subtracted is the mean of dy weighted by y: sum dy times y.",
            lambda dy, y: y * (dy - dy.sum(axis=-1, keepdims=True)),
        ),
        Misconception(
            "You subtract the plain mean of dy. It is the mean weighted by y.",
            lambda dy, y: y * (dy - dy.mean(axis=-1, keepdims=True)),
        ),
        Misconception(
            "You take the mean of dy times y. The shares y sum to 1 already: their weighted mean is the sum.",
            lambda dy, y: y * (dy - (dy * y).mean(axis=-1, keepdims=True)),
        ),
        Misconception(
            "That is the backward of log-softmax, dy - y times the sum of dy.",
            lambda dy, y: dy - y * dy.sum(axis=-1, keepdims=True),
        ),
        Misconception(
            "You sum over the columns: each row has a softmax of its own.",
            lambda dy, y: y * (dy - (dy * y).sum(axis=-2, keepdims=True)),
        ),
        Misconception(
            "You sum over the columns: each row has a softmax of its own.",
            lambda dy, y: y * (dy - (dy * y).sum(axis=0)),
        ),
        Misconception(
            _AXIS_ONE,
            lambda dy, y: y * (dy - (dy * y).sum(axis=1, keepdims=True)),
        ),
        Misconception(
            "You sum over the whole array: each row has a softmax of its own.",
            lambda dy, y: y * (dy - (dy * y).sum()),
        ),
        Misconception(
            "The factor y outside of the bracket is missing.",
            lambda dy, y: dy - (dy * y).sum(axis=-1, keepdims=True),
        ),
        Misconception(
            "The factor y stands inside of the bracket too: outside is enough.",
            lambda dy, y: y * (dy - y * (dy * y).sum(axis=-1, keepdims=True)),
        ),
        Misconception(
            "dy and y have changed places: y is the factor in front, and the weighted mean is subtracted from dy.",
            lambda dy, y: dy * (y - (dy * y).sum(axis=-1, keepdims=True)),
        ),
        Misconception(
            "The row sums have lost their axis: without keepdims=True, NumPy lines them up with the columns.",
            lambda dy, y: y * (dy - (dy * y).sum(axis=-1)),
        ),
        Misconception(
            "The sign is turned round: dy minus the weighted mean.",
            lambda dy, y: y * ((dy * y).sum(axis=-1, keepdims=True) - dy),
        ),
        Misconception(
            "You add the weighted mean: subtract it. A dy of ones must give 0.",
            lambda dy, y: y * (dy + (dy * y).sum(axis=-1, keepdims=True)),
        ),
        Misconception(
            "You took the softmax of y. y is the output of the forward already; the backward needs nothing else.",
            lambda dy, y: _softmax(y) * (dy - (dy * _softmax(y)).sum(axis=-1, keepdims=True)),
        ),
    ],
    hints=[
        "Write down dy_i/dx_j for i = j and for i ≠ j, with y_i = e^(x_i) / S.",
        "Both are y_i (δ_ij - y_j). Now sum over i with dy_i: dx_j = Σ_i dy_i y_i (δ_ij - y_j).",
        "dx_j = y_j (dy_j - Σ_i dy_i y_i): one sum a row, then two products, no matrix.",
    ],
)

# --- attend ----------------------------------------------------------------------------------------------


def _attend(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (n, m)
    return _softmax(scores) @ v  # (n, d_v)


def _attend_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(*shape: int, dtype: type = np.float64) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    yield Case("3 queries, 5 keys, d_k = 4, d_v = 6", (draw(3, 4), draw(5, 4), draw(5, 6)))
    yield Case("n = m = d_k = d_v = 4", (draw(4, 4), draw(4, 4), draw(4, 4)))
    yield Case("one token", (draw(1, 7), draw(1, 7), draw(1, 2)))
    single = (draw(6, 8, dtype=np.float32), draw(6, 8, dtype=np.float32), draw(6, 3, dtype=np.float32))
    yield Case("float32, d_k = 8", single)
    sides = np.array([[1], [-1], [1]])  # the second query's scores lie far below those of the others
    yield Case("large scores", (40 * sides * np.abs(draw(3, 16)), 40 * np.abs(draw(4, 16)), draw(4, 5)))


def _scaled_by(scale):
    def wrong(q, k, v):
        return _softmax(q @ k.swapaxes(-1, -2) * scale(q, k, v)) @ v

    return wrong


def _weighted_by(weights):
    def wrong(q, k, v):
        return weights(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v

    return wrong


attend = Exercise(
    name="attend",
    chapter=7,
    difficulty=1,
    minutes=10,
    answer=_attend,
    cases=_attend_cases,
    misconceptions=[
        Misconception(
            "The scores are not scaled: with d_k entries of variance 1 their variance is d_k, and softmax picks one winner.",
            _scaled_by(lambda q, k, v: 1.0),
        ),
        Misconception(
            "You divide by d_k; it is the square root: the standard deviation of the scores, not their variance.",
            _scaled_by(lambda q, k, v: 1 / q.shape[-1]),
        ),
        Misconception(
            "You multiply by the square root of d_k: divide.",
            _scaled_by(lambda q, k, v: math.sqrt(q.shape[-1])),
        ),
        Misconception(
            "You take the square root of the number of keys. What makes the scores large is the length of the vectors, d_k.",
            _scaled_by(lambda q, k, v: 1 / math.sqrt(k.shape[-2])),
        ),
        Misconception(
            "You take the square root of the number of queries. What makes the scores large is the length of the vectors, d_k.",
            _scaled_by(lambda q, k, v: 1 / math.sqrt(q.shape[-2])),
        ),
        Misconception(
            "You take the length of the values for the scale; the scores are made of queries and keys, so it is theirs, d_k.",
            _scaled_by(lambda q, k, v: 1 / math.sqrt(v.shape[-1])),
        ),
        Misconception(
            "The scale comes after the softmax: it then shrinks the output, and the weights have been decided without it.",
            lambda q, k, v: _softmax(q @ k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1]) @ v,
        ),
        Misconception(
            "You return the scores times V: the softmax between them is missing.",
            _weighted_by(lambda scores: scores),
        ),
        Misconception(
            "Softmax went down the columns: each query (a row) shares out 1 over the keys.",
            _weighted_by(_over_axis(0)),
        ),
        Misconception(
            "All weights together sum to 1: each query (a row) shares out 1 of its own.",
            _weighted_by(_over_everything),
        ),
        Misconception(
            "The weights of a query do not sum to 1: divide the exponentials by their sum over the keys.",
            _weighted_by(_not_normalised),
        ),
        Misconception(
            "You take the softmax twice: the second one makes the weights nearly equal.",
            _weighted_by(lambda scores: _softmax(_softmax(scores))),
        ),
        Misconception(
            "You transpose the weights before they meet V. Row i of the weights is what query i takes from each value.",
            _weighted_by(lambda scores: _softmax(scores).swapaxes(-1, -2)),
        ),
        Misconception(
            "You compare keys with queries, K Qᵀ: the rows then belong to the keys. Queries ask, so they are the rows.",
            lambda q, k, v: _softmax(k @ q.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v,
        ),
        Misconception(
            "Q and K are multiplied without a transpose: q_i · k_j is row i times row j, Q Kᵀ.",
            lambda q, k, v: _softmax(q @ k / math.sqrt(q.shape[-1])) @ v,
        ),
        Misconception(
            "You transpose Q: Qᵀ K compares features with features. q_i · k_j is row i times row j, Q Kᵀ.",
            lambda q, k, v: _softmax(q.swapaxes(-1, -2) @ k / math.sqrt(q.shape[-1])) @ v,
        ),
        Misconception(
            "You mix the keys: what the weights share out is V.",
            lambda q, k, v: _softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ k,
        ),
        Misconception(
            "You return the weights: they still have to take their share of each value.",
            lambda q, k, v: _softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])),
        ),
        Misconception(
            "Large scores overflow: your softmax lacks the shift by each row's largest entry.",
            _weighted_by(_without_shift),
        ),
        Misconception(
            "Your softmax subtracts the largest score of all. A row far below it underflows to 0 / 0: every row needs its "
            "own largest entry.",
            _weighted_by(_shift_by_global_max),
        ),
        Misconception(
            "The numbers are right, and are float64: np.sqrt of a whole number is a float64 NumPy number, which makes a "
            "float32 array float64. math.sqrt gives a Python number, which does not.",
            lambda q, k, v: _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v,
        ),
    ],
    hints=[
        "Scores, scale, softmax, values: four steps, the shapes (n, d_k) (d_k, m) -> (n, m), then (n, m) (m, d_v) -> (n, d_v).",
        "k.T turns (m, d_k) into (d_k, m). The scale is the last axis of q: q.shape[-1].",
    ],
)

# --- score_scale -----------------------------------------------------------------------------------------


def _score_scale(d_k, std_q, std_k):
    return 1 / (math.sqrt(d_k) * std_q * std_k)


def _scale_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield Case("d_k = 64 and entries of standard deviation 1", (64, 1.0, 1.0))
    yield Case("d_k = 1", (1, 1.0, 1.0))
    for d_k in (16, 50):
        std_q, std_k = rng.uniform(0.2, 3, 2).round(2).tolist()
        yield Case(f"d_k = {d_k} and deviations {std_q} and {std_k}", (d_k, std_q, std_k))


score_scale = Exercise(
    name="score_scale",
    chapter=7,
    difficulty=2,
    minutes=12,
    answer=_score_scale,
    cases=_scale_cases,
    misconceptions=[
        Misconception(
            "That is right for entries of standard deviation 1 only: the deviations of q and k multiply into the score.",
            lambda d_k, std_q, std_k: 1 / math.sqrt(d_k),
        ),
        Misconception(
            "You divide by the variance of the score, d_k σ_q² σ_k². Scaling by c multiplies a variance by c²: take the root.",
            lambda d_k, std_q, std_k: 1 / (d_k * std_q**2 * std_k**2),
        ),
        Misconception(
            "The variance grows with d_k and a standard deviation with its root: √d_k.",
            lambda d_k, std_q, std_k: 1 / (d_k * std_q * std_k),
        ),
        Misconception(
            "The variance grows with d_k and a standard deviation with its root: √d_k.",
            lambda d_k, std_q, std_k: 1 / d_k,
        ),
        Misconception(
            "That is the standard deviation of the score itself: what brings it to 1 is one over it.",
            lambda d_k, std_q, std_k: math.sqrt(d_k) * std_q * std_k,
        ),
        Misconception(
            "That is the variance of the score: what brings its deviation to 1 is one over the root of that.",
            lambda d_k, std_q, std_k: d_k * std_q**2 * std_k**2,
        ),
        Misconception(
            "The root of d_k goes below the line: longer vectors make larger scores.",
            lambda d_k, std_q, std_k: math.sqrt(d_k) / (std_q * std_k),
        ),
        Misconception(
            "d_k is missing: a score is a sum of d_k products.",
            lambda d_k, std_q, std_k: 1 / (std_q * std_k),
        ),
        Misconception(
            "The deviation of the keys is missing: both multiply into the score.",
            lambda d_k, std_q, std_k: 1 / (math.sqrt(d_k) * std_q),
        ),
        Misconception(
            "The deviation of the queries is missing: both multiply into the score.",
            lambda d_k, std_q, std_k: 1 / (math.sqrt(d_k) * std_k),
        ),
        Misconception(
            "You add the variances of q and k: the variance of a product of independent numbers is the product of theirs.",
            lambda d_k, std_q, std_k: 1 / math.sqrt(d_k * (std_q**2 + std_k**2)),
        ),
        Misconception(
            "The deviations stand under the root without their squares: √(d_k σ_q² σ_k²) is √d_k σ_q σ_k.",
            lambda d_k, std_q, std_k: 1 / math.sqrt(d_k * std_q * std_k),
        ),
        Misconception(
            "You add the deviations: a product of independent numbers multiplies them.",
            lambda d_k, std_q, std_k: 1 / (math.sqrt(d_k) * (std_q + std_k)),
        ),
        Misconception(
            "You take the squares of the deviations, the variances, beside a square root of d_k: take the root of all of it.",
            lambda d_k, std_q, std_k: 1 / (math.sqrt(d_k) * std_q**2 * std_k**2),
        ),
        Misconception(
            "The deviations go below the line too: larger entries make larger scores.",
            lambda d_k, std_q, std_k: std_q * std_k / math.sqrt(d_k),
        ),
    ],
    hints=[
        "A score is a sum of d_k products q_i k_i. What is the variance of one product, with means of 0?",
        "Independent, mean 0: the variance of q_i k_i is σ_q² σ_k², and variances of independent terms add up.",
        "The score has standard deviation √d_k σ_q σ_k. By what must you multiply to make it 1?",
    ],
)
