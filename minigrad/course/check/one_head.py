"""Chapter 7: one attention head."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.check.exercise import exercise

# --- softmax ---------------------------------------------------------------------------------------------


def _softmax_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for dtype in (np.float64, np.float32):
        yield f"a (3, 5) array of {dtype.__name__}", rng.standard_normal((3, 5)).astype(dtype)
    yield "a square (4, 4)", rng.standard_normal((4, 4))
    yield "two matrices at once (2, 3, 7)", rng.standard_normal((2, 3, 7))
    yield "one row alone (6,)", rng.standard_normal(6)
    yield "a single entry in each row (6, 1)", rng.standard_normal((6, 1))
    yield "scores in the thousands (3, 4)", (1000 * rng.standard_normal((3, 4))).astype(np.float32)
    masked = rng.standard_normal((2, 5)).astype(np.float32)
    masked[0] = np.finfo(np.float32).min
    masked[1, 3:] = np.finfo(np.float32).min
    yield "a row with everything masked (2, 5)", masked


@exercise(
    chapter=7,
    difficulty=1,
    minutes=8,
    cases=_softmax_cases,
    same_dtype=True,
    hints="""
Three steps: shift, exponential, divide. The first and the last need one number for each row.

x.max(axis=-1, keepdims=True) has shape (..., 1): one number a row, in the right place to be broadcast.

With e = np.exp(x - x.max(axis=-1, keepdims=True)), the answer is e over its sum along the last axis.
""",
    mistakes="""
Large scores overflow: e to the 1000 is not a float. Softmax does not change when a row's largest entry is subtracted from the row first.
    x - largest -> x
    x - largest -> x ; e / total -> e / (total + 1e-9) || e / (total + 1e-12)

    return np.exp(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))
You replace NaN by 0 and leave what makes it, the overflow: the largest score, which should get nearly everything, gets nothing. Subtract the row's largest entry before the exponential.
    x - largest -> x ; e / total -> np.nan_to_num(e / total)
You cut the scores off at a fixed value: all that lie beyond get equal shares. Subtract the row's largest entry: then nothing overflows, and nothing is lost.
    x - largest -> np.clip(x, -80, 80)
Each column sums to 1, not each row: over which axis did you normalise? A row holds the scores of one query, and its weights share out 1.
    axis=-1 -> axis=-2 || axis=0
    e.sum(axis=-1 -> e.sum(axis=-2 || e.sum(axis=0
axis=1 is the last axis of a matrix only. With more axes in front, the last one is axis=-1.
    axis=-1 -> axis=1
    e.sum(axis=-1 -> e.sum(axis=1
All entries together sum to 1, not each row: sum over the last axis only.
    axis=-1, keepdims=True ->
    e.sum(axis=-1, keepdims=True) -> e.sum()
You subtract the largest entry of the whole array. A row far below it underflows to 0 / 0: every row needs its own largest entry.
    x.max(axis=-1, keepdims=True) -> x.max()
You subtract each row's mean. Its largest entry can still be far above that and overflow: subtract the maximum.
    x.max( -> x.mean(
You take the largest absolute value, which in a row below 0 is the smallest entry's. Then all can underflow to 0 / 0: subtract the largest entry, with its sign.
    x.max(axis=-1, keepdims=True) -> np.abs(x).max(axis=-1, keepdims=True)
You subtract each row's smallest entry: the others lie above 0 then, and can still overflow. Subtract the largest.
    x.max( -> x.min(
You add the row's largest entry: that drives the exponents up. Subtract it, so that none is above 0.
    x - largest -> x + largest
You divide the scores by the largest: that changes how far they are apart, and so the weights. Subtract it.
    x - largest -> x / largest
You shift the numerator or the denominator, not both: the factor cancels only if it stands above and below the line.
    e.sum( -> np.exp(x).sum(
    e / total -> np.exp(x) / total
The sign of the exponent is turned round: the smallest score gets the largest share.
    x - largest -> largest - x
    x.max( -> x.min( ; x - largest -> largest - x
The base of the power is e: np.exp.
    np.exp(x - largest) -> 2 ** (x - largest) || 10 ** (x - largest)
The rows do not sum to 1: divide by each row's sum.
    e / total -> e
    e.sum( -> e.max(
You divide by the mean of the exponentials: a row then sums to its length. Divide by their sum.
    e.sum( -> e.mean(
You divide by the root of the sum of the squares: then the squares of a row sum to 1. Divide by the sum itself.
    e.sum( -> np.linalg.norm(e,
You sum the scores and take the exponential of that: it is the sum of the exponentials that makes a row sum to 1.
    e.sum(axis=-1, keepdims=True) -> np.exp(x.sum(axis=-1, keepdims=True)) || np.exp((x - largest).sum(axis=-1, keepdims=True))
You divide the scores themselves by their sum: the largest need not get the largest share. Take e to the power of the scores first.
    np.exp(x - largest) -> x || x - largest
That is the sigmoid of each score by itself: the entries of a row have to share out 1.
    return 1 / (1 + np.exp(-x))
You give everything to the largest score. Softmax leaves each entry a share, larger for larger scores.
    return np.eye(x.shape[-1])[x.argmax(axis=-1)]
The row sums have lost their axis: without keepdims=True, NumPy lines them up with the columns.
    e.sum(axis=-1, keepdims=True) -> e.sum(axis=-1)
Row maximum and row sum have lost their axis: without keepdims=True, NumPy lines them up with the columns.
    axis=-1, keepdims=True -> axis=-1
That is the logarithm of softmax: the weights themselves are asked for.
    e / total -> x - largest - np.log(total)
A small number added to the denominator makes every row sum to less than 1. After the shift the sum is at least 1 already: nothing to protect.
    e / total -> e / (total + 1e-2) || e / (total + 1e-3) || e / (total + 1e-4) || e / (total + 1e-5) || e / (total + 1e-6) || e / (total + 1e-7) || e / (total + 1e-8)
You leave out entries with the lowest float. In a row that holds nothing else no weight is left; softmax gives its entries equal shares, like those of any row of equal scores.
    total = -> e = e * (x > np.finfo(x.dtype).min); total =
    e / total -> e * (x > np.finfo(x.dtype).min) / total
You add the logarithm of the sum to the row's largest entry before you subtract: beside the lowest float it is lost to rounding. Subtract the largest entry first, then the logarithm.
    e / total -> np.exp(x - (largest + np.log(total)))
""",
)
def softmax(x):
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - largest)  # no exponent is above 0: nothing overflows
    total = e.sum(axis=-1, keepdims=True)
    return e / total


# --- softmax_backward ------------------------------------------------------------------------------------


def _backward_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for shape, dtype in (
        ((3, 5), np.float64),
        ((4, 4), np.float64),
        ((2, 3, 7), np.float32),
        ((6,), np.float64),
        ((6, 1), np.float64),
    ):
        y = softmax.answer(rng.standard_normal(shape)).astype(dtype)
        yield f"shape {shape} of {dtype.__name__}", rng.standard_normal(shape).astype(dtype), y
    yield (
        "a dy of ones (3, 5), which must give 0",
        np.ones((3, 5)),
        softmax.answer(rng.standard_normal((3, 5))),
    )
    yield "rows that are sure of themselves (2, 4)", rng.standard_normal((2, 4)), np.eye(4)[[1, 3]]


@exercise(
    chapter=7,
    difficulty=2,
    minutes=15,
    cases=_backward_cases,
    same_dtype=True,
    hints="""
Write down dy_i/dx_j for i = j and for i ≠ j, with y_i = e^(x_i) / S.

Both are y_i (δ_ij - y_j). Now sum over i with dy_i: dx_j = Σ_i dy_i y_i (δ_ij - y_j).

dx_j = y_j (dy_j - Σ_i dy_i y_i): one sum a row, then two products, no matrix.
""",
    mistakes="""
That is the diagonal of the Jacobian alone, y (1 - y): right for a sigmoid. In softmax every output depends on every score of its row, through the denominator.
    return dy * y * (1 - y)
The sum over the row is missing: raising one score lowers all other weights.
    return dy * y
You sum dy over the row. What is subtracted is the mean of dy weighted by y: sum dy times y.
    (dy * y) -> dy
You subtract the plain mean of dy. It is the mean weighted by y.
    (dy * y).sum -> dy.mean
Under the sum y stands once: what is subtracted is the mean of dy, weighted by y.
    (dy * y) -> (dy * y * y)
dy is missing under the sum: what is subtracted is the mean of dy, weighted by y.
    (dy * y) -> (y * y) || y
You take the largest product of dy and y: what is subtracted is their sum.
    .sum( -> .max(
You leave each entry's own product out of the sum: the denominator holds its exponential too.
    dy - mean -> dy - (mean - dy * y)
You take the mean of dy times y. The shares y sum to 1 already: their weighted mean is the sum.
    .sum( -> .mean(
That is the backward of log-softmax, dy minus the weights times the sum of dy: y are the weights themselves here, not their logarithms.
    return dy - y * dy.sum(axis=-1, keepdims=True)

    return dy - np.exp(y) * dy.sum(axis=-1, keepdims=True)
That is the gradient of softmax and cross-entropy in one, the weights minus the target. Here dy is the gradient for the weights, whatever comes after them.
    return y - dy

    return dy - y
You sum over the columns: each row has a softmax of its own.
    axis=-1 -> axis=-2 || axis=0
axis=1 is the last axis of a matrix only. With more axes in front, the last one is axis=-1.
    axis=-1 -> axis=1
You sum over the whole array: each row has a softmax of its own.
    axis=-1, keepdims=True ->
The factor y outside of the bracket is missing.
    y * (dy - mean) -> dy - mean
The brackets are missing: y multiplies the whole difference, not dy alone.
    y * (dy - mean) -> y * dy - mean
dy itself is missing in the bracket: a score also raises its own weight.
    dy - mean -> -mean
You divide by y: it is a factor.
    y * (dy - mean) -> (dy - mean) / y
The factor in front is y alone; 1 - y belongs to the sigmoid.
    return y -> return (1 - y) || return y * (1 - y)
You divide by the number of rows, or of entries in one. Where the loss is a mean, dy holds that already.
    return y -> return 1 / len(y) * y || return 1 / y.shape[-1] * y
You return the derivatives of each weight for each score: their products with dy still have to be summed.
    return y[..., :, None] * (np.eye(y.shape[-1]) - y[..., None, :])
The factor y stands inside of the bracket too: outside is enough.
    dy - mean -> dy - y * mean
dy and y have changed places: y is the factor in front, and the weighted mean is subtracted from dy.
    y * (dy - mean) -> dy * (y - mean)
The row sums have lost their axis, so that NumPy lines them up with the columns. keepdims=True, or [..., None], keeps it.
    , keepdims=True ->
    (dy * y).sum(axis=-1, keepdims=True) -> np.einsum("ij,ij->i", dy, y)
The sign is turned round: dy minus the weighted mean.
    return y -> return -y
You subtract y itself. What is subtracted is one number for each row, the mean of dy weighted by y.
    dy - mean -> dy - y
You add the weighted mean: subtract it. A dy of ones must give 0.
    dy - mean -> dy + mean
You took the softmax of y. y is the output of the forward already; the backward needs nothing else.
    mean = -> y = softmax.answer(y); mean =
""",
)
def softmax_backward(dy, y):
    mean = (dy * y).sum(axis=-1, keepdims=True)  # of dy, weighted by y
    return y * (dy - mean)


# --- attend ----------------------------------------------------------------------------------------------


def _attend_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(*shape: int, dtype: type = np.float64) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    yield "3 queries, 5 keys, d_k = 4, d_v = 6", draw(3, 4), draw(5, 4), draw(5, 6)
    yield "n = m = d_k = d_v = 4", draw(4, 4), draw(4, 4), draw(4, 4)
    yield "one token", draw(1, 7), draw(1, 7), draw(1, 2)
    yield "float32, d_k = 8", *(draw(6, n, dtype=np.float32) for n in (8, 8, 3))
    sides = np.array([[1], [-1], [1]])  # the second query's scores lie far below those of the others
    yield "large scores", 40 * sides * np.abs(draw(3, 16)), 40 * np.abs(draw(4, 16)), draw(4, 5)


@exercise(
    chapter=7,
    difficulty=1,
    minutes=10,
    cases=_attend_cases,
    hints="""
Scores, scale, softmax, values: four steps, the shapes (n, d_k) (d_k, m) -> (n, m), then (n, m) (m, d_v) -> (n, d_v).

k.T turns (m, d_k) into (d_k, m). The scale is the last axis of q: q.shape[-1].
""",
    mistakes="""
The scores are not scaled: with d_k entries of variance 1 their variance is d_k, and softmax picks one winner.
    / math.sqrt(q.shape[-1]) ->
You divide by d_k; it is the square root: the standard deviation of the scores, not their variance.
    math.sqrt(q.shape[-1]) -> q.shape[-1]
You multiply by the square root of d_k: divide.
    / math -> * math
You divide by another number: the scores need √d_k, the square root of the length of one query.
    math.sqrt(q.shape[-1]) -> 8 || q.shape[-1] ** 0.25
    q.shape[-1] -> q.size
You divide the vectors by their lengths, so that the scores are cosines. The scale is one number for all, √d_k.
    q @ k.T / math.sqrt(q.shape[-1]) -> (q / np.linalg.norm(q, axis=-1, keepdims=True)) @ (k / np.linalg.norm(k, axis=-1, keepdims=True)).T
    q @ k.T -> (q / np.linalg.norm(q, axis=-1, keepdims=True)) @ (k / np.linalg.norm(k, axis=-1, keepdims=True)).T
You take the square root of the number of keys. What makes the scores large is the length of the vectors, d_k.
    q.shape[-1] -> len(k)
You take the square root of the number of queries. What makes the scores large is the length of the vectors, d_k.
    q.shape[-1] -> len(q)
You take the length of the values for the scale; the scores are made of queries and keys, so it is theirs, d_k.
    q.shape[-1] -> v.shape[-1]
The scale comes after the softmax: it then shrinks the output, and the weights have been decided without it.
    / math.sqrt(q.shape[-1]) -> ; @ v -> / math.sqrt(q.shape[-1]) @ v
You return the scores times V: the softmax between them is missing.
    weights @ v -> scores @ v
Softmax belongs to the scores. You take it of the values, or of the output.
    weights @ v -> softmax.answer(scores @ v) || scores @ softmax.answer(v)
The weights of each key sum to 1 over the queries. It is the other way round: each query shares out 1 over the keys.
    axis=-1 -> axis=0
All weights together sum to 1: each query (a row) shares out 1 of its own.
    axis=-1, keepdims=True ->
    e / e.sum(axis=-1, keepdims=True) -> np.exp(scores) / np.exp(scores).sum()
The weights of a query do not sum to 1: divide the exponentials by their sum over the keys.
    e / e.sum(axis=-1, keepdims=True) -> e || np.exp(scores)
Your weights are the scores divided by their sum: take e to the power of the scores first.
    e / e.sum(axis=-1, keepdims=True) -> scores / scores.sum(axis=-1, keepdims=True)
You scale a second time, after the softmax: it is the scores alone that are scaled.
    weights @ v -> weights @ v / math.sqrt(q.shape[-1])
You take the softmax twice: the second one makes the weights nearly equal.
    weights @ v -> softmax.answer(weights) @ v
Each query takes the value of its best key alone: softmax mixes all of them.
    weights @ v -> v[scores.argmax(axis=-1)]
Every query gets the plain mean of the values: the scores have to decide.
    weights @ v -> np.full(weights.shape, 1 / len(k)) @ v
The sign of the scores is turned round: the key that fits least gets the most.
    scores = q -> scores = -q
You hide the keys behind each query's own place, a causal mask. Here every query sees every key.
    largest = -> scores = np.where(np.tri(*scores.shape), scores, -np.inf); largest =
Where V is mixed, the rows of your weights belong to the keys and the columns to the queries. Row i has to be what query i takes from each value.
    weights @ v -> weights.T @ v
You compare keys with queries, K Qᵀ: the rows then belong to the keys. Queries ask, so they are the rows.
    q @ k.T -> k @ q.T
Q and K are multiplied without a transpose: q_i · k_j is row i times row j, Q Kᵀ.
    q @ k.T -> q @ k
You transpose Q: Qᵀ K compares features with features. q_i · k_j is row i times row j, Q Kᵀ.
    q @ k.T -> q.T @ k
You compare vectors with others of their own kind. A score belongs to a query and a key, Q Kᵀ.
    q @ k.T -> q @ q.T || k @ k.T
You compare the queries with the values. They are compared with the keys; the values are what is handed over.
    k.T -> v.T
`*` multiplies entry by entry: scores and mixture are matrix products, `@`.
    q @ k.T -> q * k
    weights @ v -> weights * v
    q @ k.T -> q * k ; weights @ v -> weights * v
You mix the keys: what the weights share out is V.
    weights @ v -> weights @ k
You return the weights: they still have to take their share of each value.
    weights @ v -> weights
The output alone is asked for: you return the weights as well.
    weights @ v -> weights @ v, weights || weights, weights @ v
Row i of the output belongs to query i: yours is transposed.
    weights @ v -> (weights @ v).T
Large scores overflow: your softmax lacks the shift by each row's largest entry.
    scores - largest -> scores
Your softmax subtracts the largest score of all. A row far below it underflows to 0 / 0: every row needs its own largest entry.
    scores.max(axis=-1, keepdims=True) -> scores.max()
""",
)
def attend(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])  # (n, m)
    largest = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - largest)
    weights = e / e.sum(axis=-1, keepdims=True)  # each row sums to 1
    return weights @ v  # (n, d_v)


# --- score_scale -----------------------------------------------------------------------------------------


def _scale_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "d_k = 64 and entries of standard deviation 1", 64, 1.0, 1.0
    yield "d_k = 1", 1, 1.0, 1.0
    for d_k, order in (16, -1), (50, 1):  # once the queries' deviation is the larger one, once the keys'
        std_q, std_k = sorted(rng.uniform(0.2, 3, 2).round(2).tolist(), key=lambda std: order * std)
        yield f"d_k = {d_k} and deviations {std_q} and {std_k}", d_k, std_q, std_k


@exercise(
    chapter=7,
    difficulty=2,
    minutes=12,
    cases=_scale_cases,
    hints="""
A score is a sum of d_k products q_i k_i. What is the variance of one product, with means of 0?

Independent, mean 0: the variance of q_i k_i is σ_q² σ_k², and variances of independent terms add up.

The score has standard deviation √d_k σ_q σ_k. By what must you multiply to make it 1?
""",
    mistakes="""
That is right for entries of standard deviation 1 only: the deviations of q and k multiply into the score.
    std_q**2 * std_k**2 -> 1
The variance grows with d_k and a standard deviation with its root: √d_k.
    = d_k -> = d_k**2 || = d_k**4 || = d_k**0.5
You divide by the variance of the score, d_k σ_q² σ_k². Scaling by c multiplies a variance by c²: take the root.
    math.sqrt(variance) -> variance
That is the standard deviation of the score itself: what brings it to 1 is one over it.
    1 / math -> math
That is the variance of the score: what brings its deviation to 1 is one over the root of that.
    1 / math.sqrt(variance) -> variance
The root of d_k goes below the line: longer vectors make larger scores.
    = d_k -> = 1 / d_k
d_k does not enter: a score is a sum of d_k products, however many there are.
    = d_k * -> = || = 64 *
The means are known to be 0, so all d_k products count: d_k, not d_k - 1.
    = d_k -> = (d_k - 1)
The deviation of the keys is missing: both multiply into the score.
    * std_k**2 ->
The deviation of the queries is missing: both multiply into the score.
    * std_q**2 ->
You add the variances of q and k: the variance of a product of independent numbers is the product of theirs.
    std_q**2 * std_k**2 -> (std_q**2 + std_k**2)
The deviations stand under the root without their squares: √(d_k σ_q² σ_k²) is √d_k σ_q σ_k.
    **2 ->
You add the deviations: a product of independent numbers multiplies them.
    std_q**2 * std_k**2 -> (std_q + std_k) ** 2 || ((std_q + std_k) / 2) ** 2 || ((std_q + std_k) / 2) ** 4
One of the deviations is squared and the other is not: treat both alike.
    std_q**2 -> std_q**4 || std_q
    std_k**2 -> std_k**4 || std_k
One deviation stands above the line and the other below. Larger entries make larger scores, in q as in k.
    std_q**2 -> std_q**-2
    std_k**2 -> std_k**-2
`//` cuts off what comes after the point: divide with `/`.
    1 / math -> 1 // math
You take the squares of the deviations, the variances, beside a square root of d_k: take the root of all of it.
    **2 -> **4
The deviations go below the line too: larger entries make larger scores.
    **2 -> **-2
""",
)
def score_scale(d_k, std_q, std_k):
    variance = d_k * std_q**2 * std_k**2  # of a sum of d_k independent products
    return 1 / math.sqrt(variance)
