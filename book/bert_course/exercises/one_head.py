"""Chapter `one_head`: one attention head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import operation, tensor
from bert_course.common.softmax import softmax as weights_of
from minigrad import Tensor

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
    difficulty=1,
    minutes=10,
    cases=_attend_cases,
    hints="""
Scores, scale, softmax, values: four steps, the shapes (n, d_k) (d_k, m) -> (n, m), then (n, m) (m, d_v) -> (n, d_v).

k.T turns (m, d_k) into (d_k, m). The scale is the last axis of q: q.shape[-1].
""",
    mistakes="""
[no-scale] The scores are not scaled: with d_k entries of variance 1 their variance is d_k, and softmax picks one winner.
    / math.sqrt(q.shape[-1]) ->
You divide by d_k, the variance of the scores. Divide by its square root, their standard deviation.
    math.sqrt(q.shape[-1]) -> q.shape[-1]
You multiply by the square root of d_k. Divide by it.
    / math -> * math
[other-scale] You divide by the wrong number. The scores need √d_k, the square root of the length of one query.
    math.sqrt(q.shape[-1]) -> 8 || q.shape[-1] ** 0.25
    q.shape[-1] -> q.size
You divide the vectors by their lengths, so that the scores are cosines. The scale is one number for all, √d_k.
    q @ k.T / math.sqrt(q.shape[-1]) -> (q / np.linalg.norm(q, axis=-1, keepdims=True)) @ (k / np.linalg.norm(k, axis=-1, keepdims=True)).T
    q @ k.T -> (q / np.linalg.norm(q, axis=-1, keepdims=True)) @ (k / np.linalg.norm(k, axis=-1, keepdims=True)).T
[number-of-keys] You take the square root of the number of keys. What makes the scores large is the length of the vectors, d_k.
    q.shape[-1] -> len(k)
You take the square root of the number of queries. What makes the scores large is the length of the vectors, d_k.
    q.shape[-1] -> len(q)
You take the length of the values for the scale. The scores are made of queries and keys, so take their length, d_k.
    q.shape[-1] -> v.shape[-1]
[scale-after] You scale after the softmax, which shrinks the output and leaves the weights as they are. Scale the scores.
    / math.sqrt(q.shape[-1]) -> ; @ v -> / math.sqrt(q.shape[-1]) @ v
[no-softmax] You return the scores times V: the softmax between them is missing.
    weights @ v -> scores @ v
You apply softmax to the values, or to the output. Apply it to the scores.
    weights @ v -> weights_of(scores @ v) || scores @ weights_of(v)
[each-key-sums-to-one] In your answer the weights of each key sum to 1 over the queries. The weights of each query must sum to 1 over the keys.
    axis=-1 -> axis=0
    e.sum(axis=-1, keepdims=True) -> e.sum(axis=0)
All your weights together sum to 1. The weights of each query (a row) must sum to 1.
    axis=-1, keepdims=True ->
    e / e.sum(axis=-1, keepdims=True) -> np.exp(scores) / np.exp(scores).sum() || e / e.sum()
The weights of a query do not sum to 1: divide the exponentials by their sum over the keys.
    e / e.sum(axis=-1, keepdims=True) -> e || np.exp(scores)
Your weights are the scores divided by their sum: take e to the power of the scores first.
    e / e.sum(axis=-1, keepdims=True) -> scores / scores.sum(axis=-1, keepdims=True)
You scale a second time, after the softmax. Scale only the scores.
    weights @ v -> weights @ v / math.sqrt(q.shape[-1])
You take the softmax twice: the second one makes the weights nearly equal.
    weights @ v -> weights_of(weights) @ v
Each of your queries takes only the value of its best key, but softmax mixes all values.
    weights @ v -> v[scores.argmax(axis=-1)]
Every query gets the plain mean of the values, but the scores must determine the weights.
    weights @ v -> np.full(weights.shape, 1 / len(k)) @ v
The sign of the scores is wrong, so the key that fits least gets the most weight.
    scores = q -> scores = -q
You hide the keys after each query's own position, a causal mask. Here every query sees every key.
    largest = -> scores = np.where(np.tri(*scores.shape), scores, -np.inf); largest =
Where V is mixed, the rows of your weights belong to the keys and the columns to the queries. Row i has to be what query i takes from each value.
    weights @ v -> weights.T @ v
You compare keys with queries, K Qᵀ, so the rows belong to the keys. They must belong to the queries, which ask.
    q @ k.T -> k @ q.T
Q and K are multiplied without a transpose: q_i · k_j is row i times row j, Q Kᵀ.
    q @ k.T -> q @ k
You transpose Q: Qᵀ K compares features with features. q_i · k_j is row i times row j, Q Kᵀ.
    q @ k.T -> q.T @ k
You compare vectors with others of their own kind. A score belongs to a query and a key, Q Kᵀ.
    q @ k.T -> q @ q.T || k @ k.T
You compare the queries with the values. Compare them with the keys; the values are what is handed over.
    k.T -> v.T
`*` multiplies entry by entry, but scores and mixture are matrix products, `@`.
    q @ k.T -> q * k
    weights @ v -> weights * v
    q @ k.T -> q * k ; weights @ v -> weights * v
[mixed-keys] You mix the keys. The weights must mix the values, V.
    weights @ v -> weights @ k
You return the weights, which still have to be multiplied by V.
    weights @ v -> weights
You return the weights as well. Return the output alone.
    weights @ v -> weights @ v, weights || weights, weights @ v
Your output is transposed. Row i belongs to query i.
    weights @ v -> (weights @ v).T
Large scores overflow: your softmax lacks the shift by each row's largest entry.
    scores - largest -> scores
You cut off large scores. Scores beyond the limit then count alike, and the best key no longer wins: subtract each row's largest score, which changes no weight.
    scores - largest -> np.clip(scores, -50, 50)
You replace NaN at the end, when the weights are already lost. Subtract each row's largest score, and nothing overflows.
    scores - largest -> scores ; weights @ v -> np.nan_to_num(weights) @ v
    scores - largest -> scores ; weights @ v -> np.nan_to_num(weights @ v)
What you subtract differs from key to key, and that changes the weights. Within a row it must be one number: the row's own largest score, axis=-1.
    scores.max(axis=-1, keepdims=True) -> scores.max(axis=0)
Your softmax subtracts the largest score of all. A row far below it underflows to 0 / 0: every row needs its own largest entry.
    scores.max(axis=-1, keepdims=True) -> scores.max()
""",
)
def attend(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])  #: the scaled scores, (n, m)
    largest = scores.max(axis=-1, keepdims=True)  #: the largest score of each row, (n, 1)
    e = np.exp(scores - largest)  #: the exponentials of the scores, shifted by each row's largest
    weights = e / e.sum(axis=-1, keepdims=True)  #: the weights, whose rows sum to 1
    return weights @ v  # (n, d_v)


# --- softmax ---------------------------------------------------------------------------------------------


def _softmax_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(*shape: int, dtype: type = np.float64) -> Tensor:
        return tensor(rng.standard_normal(shape).astype(dtype))

    yield "3 rows of 5", draw(3, 5)
    yield "4 rows of 4", draw(4, 4)
    yield "2 texts, 3 heads, 4 rows of 6", draw(2, 3, 4, 6)
    yield "float32, 5 rows of 8", draw(5, 8, dtype=np.float32)
    yield "rows of one score", draw(3, 1)
    sides = 800 * np.array([[1.0], [-1.0], [1.0]])  # the second row lies far below the others
    yield "scores in the hundreds", tensor(sides + rng.standard_normal((3, 4)))
    hidden = np.where(np.arange(5) < 3, 0, np.finfo(np.float32).min)
    yield "scores with a mask added", tensor(rng.standard_normal((2, 5)) + hidden)


@exercise(
    difficulty=3,
    minutes=25,
    cases=_softmax_cases,
    observed=operation,
    same_dtype=True,
    hints="""
Forward: subtract each row's largest score, take exponentials, divide each row by its sum. Do all of this with NumPy, on S.data.

Weight j of a row moves with score k at the rate A_j (1 if j = k, else 0) - A_j A_k. The gradient for score k is the sum over j of dA_j times this rate.

dS = A (dA - Σ dA A), with the sum along the row, keepdims=True. backward returns a tuple with one gradient, (dS,).
""",
    mistakes="""
The backward of softmax is missing: you pass dA on as if it were dS.
    A * (dA - mean) -> dA
[no-mean] The mean is missing in the backward of softmax: dS = A (dA - mean), with the mean of dA weighted by A.
    A * (dA - mean) -> A * dA
The factor A is missing in the backward of softmax: dS = A (dA - mean).
    A * (dA - mean) -> dA - mean
[sigmoid] That is the backward of a sigmoid. In softmax each weight depends on every score of its row.
    A * (dA - mean) -> A * (1 - A) * dA
You take the plain mean of dA. In the backward of softmax the mean is weighted by A: the sum of dA times A.
    (dA * A).sum( -> dA.mean(
You sum dA over a row. In the backward of softmax, sum dA times A.
    (dA * A).sum( -> dA.sum(
You sum over the queries on the way back: each row of A has a softmax of its own, so the sum goes along the row.
    (dA * A).sum(axis=-1, keepdims=True) -> (dA * A).sum(axis=-2, keepdims=True)
You sum over all entries on the way back: each row of A has a softmax of its own, so the sum goes along the row.
    (dA * A).sum(axis=-1, keepdims=True) -> (dA * A).sum()
The row sums have lost their axis on the way back, so that NumPy lines them up with the columns. Keep the axis with keepdims=True.
    (dA * A).sum(axis=-1, keepdims=True) -> (dA * A).sum(axis=-1)
You add the weighted mean in the backward of softmax. Subtract it.
    dA - mean -> dA + mean
The sign of dS is wrong: a gradient shows how the loss grows, and the optimiser subtracts it.
    return (A * (dA -> return (-A * (dA
You take dA as 1, but it comes from the layers above.
    A * (dA - mean) -> A * (1 - A.sum(axis=-1, keepdims=True)) || A * (1 - A)
You multiply by the score, or by its exponential. In the backward of softmax the factor is the weight A.
    A * (dA - mean) -> S.data * (dA - mean) || powers * (dA - mean)
You divide by the number of rows. If the loss is a mean, dA already contains the division.
    A * (dA - mean) -> A * (dA - mean) / len(A)
[columns] Each column of your A sums to 1. Each row must sum to 1, so normalise along the last axis.
    powers.sum(axis=-1, keepdims=True) -> powers.sum(axis=-2, keepdims=True)
All your weights together sum to 1, but each row must sum to 1.
    powers.sum(axis=-1, keepdims=True) -> powers.sum()
Your weights do not sum to 1: divide the exponentials by their sum along the row.
    A = powers / powers.sum(axis=-1, keepdims=True) -> A = powers
You take a softmax over the first axis after the batch, or whatever axis has that number. Count from the end: axis=-1.
    powers.sum(axis=-1, keepdims=True) -> powers.sum(axis=1, keepdims=True) ; (dA * A).sum(axis=-1, keepdims=True) -> (dA * A).sum(axis=1, keepdims=True)
Large scores overflow: subtract each row's largest score before the exponential, which changes no weight.
    np.exp(S.data - S.data.max(axis=-1, keepdims=True)) -> np.exp(S.data)
You cut off large scores. Scores beyond the limit then count alike: subtract each row's largest score, which changes no weight.
    S.data - S.data.max(axis=-1, keepdims=True) -> np.clip(S.data, -50, 50)
Your softmax subtracts the largest score of all. A row far below it underflows to 0 / 0: every row needs its own largest score.
    S.data.max(axis=-1, keepdims=True) -> S.data.max()
What you subtract differs from column to column, and that changes the weights. Within a row it must be one number: the row's own largest score.
    S.data.max(axis=-1, keepdims=True) -> S.data.max(axis=-2, keepdims=True)
That is the sigmoid of each score by itself, but the entries of a row must sum to 1.
    A = powers / powers.sum(axis=-1, keepdims=True) -> A = 1 / (1 + np.exp(-S.data))
You return the logarithm of the weights. Return the weights themselves.
    from_op(A, -> from_op(np.log(A),
You normalise along axis 1. The keys are on the last axis, however many axes there are.
    axis=-1 -> axis=1
""",
)
def softmax(S):
    powers = np.exp(S.data - S.data.max(axis=-1, keepdims=True))  #: the exponentials of the shifted scores
    A = powers / powers.sum(axis=-1, keepdims=True)  #: the weights, whose rows sum to 1

    def backward(dA):
        mean = (dA * A).sum(axis=-1, keepdims=True)  #: each row's mean of dA, weighted by A
        return (A * (dA - mean),)  #: dS, the gradient for S, in a tuple

    return Tensor.from_op(A, (S,), backward)


# --- look_left -------------------------------------------------------------------------------------------


def _look_left_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "2 tokens, 3 words", rng.integers(0, 3, 2), 3
    yield "5 tokens that are the same word", np.full(5, 2), 4
    yield "9 tokens, 4 words", rng.integers(0, 4, 9), 4
    yield "6 tokens, 11 words", rng.integers(0, 11, 6), 11
    yield "24 tokens, 5 words", rng.integers(0, 5, 24), 5
    yield "4 tokens, 90 words", rng.integers(0, 90, 4), 90


@exercise(
    difficulty=2,
    minutes=20,
    cases=_look_left_cases,
    given="run",
    hints="""
A query and a key have L entries, one for each position: the key says "I am at j", the query says "I want j". X @ W_Q is row i of the lower half of W_Q for the token at i, as long as the upper half, which the word picks from, is 0.

np.eye(L) says "I am at j". np.eye(L, k=-1) has its ones one place to the left: row i has a 1 at column i - 1.

Softmax mixes: only a score that is far above the others takes nearly everything. Make the queries long. The value is the word: the identity in the upper half of W_V, 0 in the lower.
""",
    mistakes="""
Your head looks to the right. Row i of the queries must point at i - 1: np.eye(L, k=-1).
    k=-1 -> k=1
[itself] Each token looks at itself. Row i of the queries must point at i - 1: np.eye(L, k=-1).
    k=-1 -> k=0
Your head looks two positions to the left instead of one.
    k=-1 -> k=-2
Your head looks to the left, but too softly: a part of the weight still goes to the others. Longer queries make larger scores.
    100 * -> || 2 * || 3 * || 4 * || 5 * || 6 * || 8 * || 10 * || 20 * || 5 * math.sqrt(L) *
Your head looks to the left, but too softly where there are many words. The scores are divided by the root of the queries' length. With n_words + L numbers in a query, your factor has to make up for that root.
    100 * -> 10 * math.sqrt(L) * ; math.sqrt(Q.shape[-1]) -> math.sqrt(n_words + L)
[everything-left] Your head looks at everything to the left. Each token must look only at the token before it: one 1 in each row, np.eye(L, k=-1).
    np.eye(L, k=-1) -> np.tri(L, k=-1)
You multiply 0 by infinity, which is not a number. A large factor is enough.
    100 * -> np.inf *
The first row does not count: leave it out of both, as the sheet's last line does.
    A[1:] -> A ; (A @ V)[1:] -> (A @ V)
The sign is wrong, so the token to the left gets the least weight, and all others share the rest.
    100 * -> -100 *
Your head compares words, so a token finds all tokens with its own word. Compare positions, the lower half of X.
    W_Q = np.vstack([no_words, 100 * np.eye(L, k=-1)]) -> W_Q = np.vstack([100 * np.eye(n_words), np.zeros((L, n_words))]) ; W_K = np.vstack([no_words, np.eye(L)]) -> W_K = np.vstack([np.eye(n_words), np.zeros((L, n_words))])
The upper half of a matrix belongs to the words, and the lower half to the positions. Yours has them the other way round.
    [no_words, 100 * np.eye(L, k=-1)] -> [100 * np.eye(L, k=-1), no_words] ; [no_words, np.eye(L)] -> [np.eye(L), no_words] ; W_V = np.vstack([np.eye(n_words), np.zeros((L, n_words))]) -> W_V = np.vstack([np.zeros((L, n_words)), np.eye(n_words)])
    [no_words, 100 * np.eye(L, k=-1)] -> [100 * np.eye(L, k=-1), no_words] ; [no_words, np.eye(L)] -> [np.eye(L), no_words]
Your queries or keys are all 0, so all scores are 0, and every token gets a uniform mixture.
    100 * np.eye(L, k=-1) -> np.zeros((L, L))
    no_words, np.eye(L)] -> no_words, np.zeros((L, L))]
Your head looks at the right token but hands over its position. Hand over the word, the upper half of X.
    W_V = np.vstack([np.eye(n_words), np.zeros((L, n_words))]) -> W_V = np.vstack([np.zeros((n_words, L)), np.eye(L)])
[whole-row] Your head looks at the right token but hands over its whole row, word and position. Hand over the word alone.
    W_V = np.vstack([np.eye(n_words), np.zeros((L, n_words))]) -> W_V = np.eye(n_words + L)
Your head hands over nothing, because the values are all 0.
    W_V = np.vstack([np.eye(n_words), np.zeros((L, n_words))]) -> W_V = np.zeros((n_words + L, n_words))
Your head looks for the word that came before. Where this word occurs twice, the head cannot find out which of the two is the neighbour: compare positions.
    L = len(words)
    X = np.eye(n_words)[words]
    before = np.zeros((n_words, n_words))
    before[words[1:], words[:-1]] = 1000
    A = weights_of(X @ before @ X.T)
    return A[1:].round(1), (A @ X)[1:].round(1)
""",
)
def look_left(words, n_words):
    L = len(words)  #: the number of tokens
    X = np.hstack([np.eye(n_words)[words], np.eye(L)])  #: words and positions, one-hot, (L, n_words + L)
    no_words = np.zeros((n_words, L))  #: zeros for the upper half, which reads the words
    W_Q = np.vstack([no_words, 100 * np.eye(L, k=-1)])  #: the query matrix: each position asks for i - 1
    W_K = np.vstack([no_words, np.eye(L)])  #: the key matrix, in which each position names itself
    W_V = np.vstack([np.eye(n_words), np.zeros((L, n_words))])  #: the value matrix, for the word alone
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V  #: the queries, the keys and the values
    A = weights_of(Q @ K.T / math.sqrt(Q.shape[-1]))  #: the attention weights, (L, L)
    return A[1:].round(1), (A @ V)[1:].round(1)


# --- first_to_catch --------------------------------------------------------------------------------------


def _heads(scale: float) -> dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]:
    """Heads with scores divided by `scale` times √d_k, by what is special about them."""

    def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return q @ k.T / (scale * math.sqrt(q.shape[-1]))

    def plain_shares(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        s = scores(q, k)
        s = s * np.abs(s).mean()
        return s / s.sum(axis=-1, keepdims=True) @ v

    def nearest_places(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        distance = np.abs(np.arange(len(q))[:, None] - np.arange(len(k)))
        return weights_of(scores(q, k) - distance) @ v

    def places_alone(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        distance = np.abs(np.arange(len(q))[:, None] - np.arange(len(k)))
        return weights_of(-distance.astype(float)) @ v

    return {
        "a right head": lambda q, k, v: weights_of(scores(q, k)) @ v,
        "a head whose keys are its values": lambda q, k, v: weights_of(scores(q, v)) @ v,
        "a head that transposes its weights": lambda q, k, v: weights_of(scores(q, k)).T @ v,
        "a head that halves its output": lambda q, k, v: weights_of(scores(q, k)) @ v / 2,
        "a head right for its first query alone": lambda q, k, v: (
            weights_of(scores(q, k)) @ v * np.linspace(1, 2, len(q))[:, None]
        ),
        "a head that divides the scores by their sum": plain_shares,
        "a head that prefers what stands near": nearest_places,
        "a head that uses only positions": places_alone,
        "a head that takes the values of the next column": lambda q, k, v: (
            weights_of(1000 * scores(q, k)) @ np.roll(v, 1, axis=1)
        ),
        "a head that goes too low": lambda q, k, v: _spread(weights_of(scores(q, k)) @ v, np.max),
        "a head that goes too high": lambda q, k, v: _spread(weights_of(scores(q, k)) @ v, np.min),
        "a head that gives everybody the mean": lambda q, k, v: np.full((len(q), len(k)), 1 / len(k)) @ v,
    }


def _spread(z: np.ndarray, end: Callable[..., Any]) -> np.ndarray:
    """Each column's distances from its largest, or least, number made much larger."""
    return end(z, axis=0) + 30 * (z - end(z, axis=0))


def _catch_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield from _heads(1.0).items()
    yield "a right head with another scale", _heads(rng.uniform(0.4, 2.5))["a right head"]


@exercise(
    difficulty=2,
    minutes=20,
    cases=_catch_cases,
    hints="""
Draw q, k and v of shape (7, 4): as many queries as keys, and d_k = d_v, so that a wrong head does not fail on a shape. Then call head on them, and on changed copies.

"ones": head(q, k, ones) must be ones, because the weights of a row sum to 1. "range": each column of the output lies between v.min(axis=0) and v.max(axis=0), because a mixture does.

"order": with k[order] and v[order] for the same order, each query finds the same pairs, so the output is the same. "keys": with other keys the output must differ.
""",
    mistakes="""
The test with ones is missing: values of 1 must come out as 1, because the weights of a row sum to 1.
    if not same(head(q, k, np.ones_like(v)), 1): -> if False:
The test of the range is missing: an output outside of the values' range is no mixture of them. Weights that sum to 1 can still be negative.
    if (z < v.min(axis=0) - 1e-9).any() or (z > v.max(axis=0) + 1e-9).any(): -> if False:
The test of the order is missing: pairs of key and value in another order must give the same output.
    if not same(head(q, k[order], v[order]), z): -> if False:
The test of the keys is missing: a head whose output stays the same with other keys did not use them.
    if same(head(q, other, v), z): -> if False:
Your test of the keys comes before that of the order. Where a head fails both, return the first name in the list.
    if not same(head(q, k[order], v[order]), z): -> if same(head(q, other, v), z): ; return "order" -> return "keys" ; if same(head(q, other, v), z): -> if not same(head(q, k[order], v[order]), z): ; return "keys" -> return "order"
Your test of the range looks at its top alone: a mixture is not below v.min(axis=0) either.
    (z < v.min(axis=0) - 1e-9).any() or ->
Your test of the range looks at its bottom alone: a mixture is not above v.max(axis=0) either.
    or (z > v.max(axis=0) + 1e-9).any() ->
Your range is that of all values. Each column has its own: v.min(axis=0) and v.max(axis=0).
    v.min(axis=0) -> v.min() ; v.max(axis=0) -> v.max()
You compare floats with ==. Rounding turns a 1 into 0.9999999999999999, so a right head fails: allow for a small difference, as np.allclose does.
    same = np.allclose -> same = lambda x, y: (x == y).all()
    same = np.allclose -> same = lambda x, y: (x == y).all() ; - 1e-9 -> ; + 1e-9 ->
Your other keys are the first ones with the same number added to all. That adds one number to all scores of a row, which changes no weight: draw new keys.
    head(q, other, v) -> head(q, k + 1, v)
You change the queries. A head that uses its values as keys reacts to that too: change the keys alone.
    head(q, other, v) -> head(other, k, v)
You set queries and keys to 1 too. Then all weights are the same, and faults in them do not show.
    head(q, k, np.ones_like(v)) -> head(np.ones_like(q), np.ones_like(k), np.ones_like(v))
You compare the head with a right one. That shows whether it is wrong, but not which of the four tests fails first.
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 7, 4))
    alike = np.allclose(head(q, k, v), weights_of(q @ k.T / math.sqrt(4)) @ v)
    return "none" if alike else "keys"
You draw a single key. Its weight is 1 whatever the scores are, so the tests cannot distinguish heads: draw several keys.
    (3, 7, 4) -> (3, 1, 4) ; (7, 4) -> (1, 4) ; permutation(7) -> permutation(1)
You shuffle the keys or the values alone, so the pairs change, and a right head gives another output. Shuffle both in the same way.
    k[order], v[order] -> k[order], v || k, v[order]
Your outputs stand in another order than what you compare them with. They go with the queries: where these stay, compare with z, and where they are shuffled too, with z[order].
    v[order]), z) -> v[order]), z[order])
    head(q, k[order], v[order]) -> head(q[order], k[order], v[order])
Your test of the keys is the wrong way round: it is a fault if the output does not change.
    if same(head(q, other, v), z): -> if not same(head(q, other, v), z):
Your test of the order is the wrong way round: it is a fault if the output changes.
    if not same(head(q, k[order], v[order]), z): -> if same(head(q, k[order], v[order]), z):
Your test of the ones is the wrong way round: it is a fault if the output is not 1.
    if not same(head(q, k, np.ones_like(v)), 1): -> if same(head(q, k, np.ones_like(v)), 1):
Your range is that of each row of the values: a row is one token, and the mixture goes along the columns.
    v.min(axis=0) -> v.min(axis=1, keepdims=True) ; v.max(axis=0) -> v.max(axis=1, keepdims=True)
Return the name of the test, or "none" if no test fails.
    return "none" -> return "" || return None
One output of 1 passes your test of the ones. All must be 1.
    same(head(q, k, np.ones_like(v)), 1) -> np.isclose(head(q, k, np.ones_like(v)), 1).any()
""",
)
def first_to_catch(head):
    rng = np.random.default_rng(0)
    q, k, other = rng.standard_normal((3, 7, 4))  #: queries, keys and other keys, 7 of each
    v = rng.standard_normal((7, 4))  #: the values, as many as keys and as long
    order = rng.permutation(7)  #: a new order for the keys and values
    same = np.allclose
    z = head(q, k, v)  #: the head's output with nothing changed
    if not same(head(q, k, np.ones_like(v)), 1):
        return "ones"
    if (z < v.min(axis=0) - 1e-9).any() or (z > v.max(axis=0) + 1e-9).any():
        return "range"
    if not same(head(q, k[order], v[order]), z):
        return "order"
    if same(head(q, other, v), z):
        return "keys"
    return "none"


# --- score_scale -----------------------------------------------------------------------------------------


def _scale_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "d_k = 64 and entries of standard deviation 1", 64, 1.0, 1.0
    yield "d_k = 1", 1, 1.0, 1.0
    for d_k, order in (16, -1), (50, 1):  # once the queries' deviation is the larger one, once the keys'
        std_q, std_k = sorted(rng.uniform(0.2, 3, 2).round(2).tolist(), key=lambda std: order * std)
        yield f"d_k = {d_k} and deviations {std_q} and {std_k}", d_k, std_q, std_k


@exercise(
    difficulty=2,
    minutes=12,
    cases=_scale_cases,
    hints="""
A score is a sum of d_k products q_i k_i. What is the variance of one product, with means of 0?

Independent, mean 0: the variance of q_i k_i is σ_q² σ_k², and variances of independent terms add up.

The score has standard deviation √d_k σ_q σ_k. By what must you multiply to make it 1?
""",
    mistakes="""
[no-deviations] That is right only for entries of standard deviation 1: the deviations of q and k multiply into the score.
    std_q**2 * std_k**2 -> 1
[no-root] Your power of d_k is wrong. The variance grows with d_k, the standard deviation with √d_k.
    = d_k -> = d_k**2 || = d_k**4 || = d_k**0.5
You divide by the variance of the score, d_k σ_q² σ_k². Scaling by c multiplies a variance by c²: take the root.
    math.sqrt(variance) -> variance
[upside-down] That is the standard deviation of the score itself. The factor that brings it to 1 is its reciprocal.
    1 / math -> math
That is the variance of the score: the factor that brings its deviation to 1 is one over the variance's root.
    1 / math.sqrt(variance) -> variance
The root of d_k belongs in the denominator, because longer vectors make larger scores.
    = d_k -> = 1 / d_k
Your answer does not depend on d_k, but a score is a sum of d_k products.
    = d_k * -> = || = 64 *
The means are known to be 0, so all d_k products count: d_k, not d_k - 1.
    = d_k -> = (d_k - 1)
[no-key-deviation] The deviation of the keys is missing: both multiply into the score.
    * std_k**2 ->
The deviation of the queries is missing: both multiply into the score.
    * std_q**2 ->
You add the variances of q and k: the variance of a product of independent numbers is the product of their variances.
    std_q**2 * std_k**2 -> (std_q**2 + std_k**2)
The deviations are under the root without their squares: √(d_k σ_q² σ_k²) is √d_k σ_q σ_k.
    **2 ->
You add the deviations: a product of independent numbers multiplies them.
    std_q**2 * std_k**2 -> (std_q + std_k) ** 2 || ((std_q + std_k) / 2) ** 2 || ((std_q + std_k) / 2) ** 4
You take one of the two deviations for both: each multiplies into the score.
    std_q**2 * std_k**2 -> max(std_q, std_k) ** 4 || min(std_q, std_k) ** 4
The root of d_k is seldom a whole number: int and isqrt cut off what comes after the point.
    = d_k -> = math.isqrt(d_k) ** 2
One of the deviations is squared and the other is not: treat both alike.
    std_q**2 -> std_q**4 || std_q
    std_k**2 -> std_k**4 || std_k
One deviation is in the numerator and the other in the denominator. Larger entries make larger scores, in q as in k.
    std_q**2 -> std_q**-2
    std_k**2 -> std_k**-2
`//` cuts off what comes after the point: divide with `/`.
    1 / math -> 1 // math
You multiply the root of d_k by the variances, the squares of the deviations. Take the root of the whole product.
    **2 -> **4
The deviations belong in the denominator too: larger entries make larger scores.
    **2 -> **-2
""",
)
def score_scale(d_k, std_q, std_k):
    variance = d_k * std_q**2 * std_k**2  #: a score's variance, of a sum of d_k independent products
    return 1 / math.sqrt(variance)
