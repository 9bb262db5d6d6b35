"""Chapter `masking`: masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import constant
from bert_course.common.softmax import softmax
from minigrad import Tensor

# --- padding_mask ----------------------------------------------------------------------------------------


def _padding_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def texts(*lengths: int, L: int) -> np.ndarray:
        return (np.arange(L) < np.array(lengths)[:, None]).astype(int)

    yield "3 texts of up to 5 tokens, float32", texts(5, 2, 3, L=5), np.float32
    yield "float64, 2 texts", texts(1, 6, L=7), np.float64
    yield "as many texts as tokens", texts(4, 1, 2, 3, L=4), np.float32
    yield "a text of nothing but padding", texts(3, 0, L=3), np.float64
    yield "no padding at all", texts(4, 4, L=4), np.float32
    yield "padding at the left end", rng.permuted(texts(3, 4, L=6), axis=1), np.float32


@exercise(
    difficulty=1,
    minutes=8,
    cases=_padding_cases,
    observed=constant,
    same_dtype=True,
    hints="""
Make a number for each key of each text: 0 where attention_mask is 1, and where it is 0 a number that the softmax turns into a weight of 0.

The lowest finite number of a format is np.finfo(dtype).min. np.where(condition, this, that) chooses entry by entry.

The scores have the shape (B, h, L, L): text, head, query, key. The mask belongs to text and key, so it is (B, 1, 1, L); x[:, None, None, :] inserts two axes of length 1.

The mask is a Tensor, because it is added to Tensors, but a constant: Tensor(array) gets no gradient.
""",
    mistakes="""
You add -∞. Then a row that may see nothing becomes NaN, and one NaN spoils every gradient. Take the lowest finite number, np.finfo(dtype).min.
    np.finfo(dtype).min -> -np.inf
That is not low enough for a row that may see nothing: the same number for all keys cancels, and the row attends as if there were no mask. Take the lowest finite number, np.finfo(dtype).min.
    np.finfo(dtype).min -> -10_000 || -1e9 || -1e4 || -1e30 || -100 || -1e6
You take the lowest number of another format. The lowest number of float64 is -∞ in float32, and that of float32 is not the lowest in float64. Take np.finfo(dtype).
    np.finfo(dtype) -> np.finfo(float) || np.finfo(np.float32) || np.finfo(np.float16)
You take the largest number. The mask is added, so the hidden keys would get all the weight.
    np.finfo(dtype).min -> np.finfo(dtype).max
That number is nearly 0, so it changes no score. The lowest number is far below 0: np.finfo(dtype).min.
    np.finfo(dtype).min -> np.finfo(dtype).tiny || np.finfo(dtype).smallest_subnormal || np.finfo(dtype).eps
Your mask hides the tokens and shows the padding: attention_mask is 1 for a token.
    == 0 -> == 1 || != 0
The mask is added to the scores. Ones and zeros are for multiplying, and even that hides nothing: a score of 0 is an ordinary score.
    np.where(hidden, lowest, 0) -> attention_mask
    np.where(hidden, lowest, 0) -> hidden
Tokens get 1 where they should get 0: the mask must not change their scores.
    np.where(hidden, lowest, 0) -> np.where(hidden, lowest, 1)
Your mask lies along the queries. The queries of padding do no harm. Hide the keys of padding, on the last axis of the scores.
    [:, None, None, :] -> [:, None, :, None]
The shape lacks an axis. Lined up with scores (B, h, L, L) from the right, your mask gives each head, or each query, the mask of another text, and NumPy raises no error if the sizes agree. The shape is (B, 1, 1, L).
    [:, None, None, :] -> || [:, None, :] || [:, None] || [None]
Your texts are on the wrong axis. The scores are (B, h, L, L), so the texts belong on axis 0 and the keys on the last: (B, 1, 1, L).
    [:, None, None, :] -> [None, :, None, :] || [None, None] || [:, :, None, None]
You repeat the mask for every query. Broadcasting does that without memory: (B, 1, 1, L).
    [:, None, None, :] -> [:, None, None, :].repeat(attention_mask.shape[1], axis=2)
""",
)
def padding_mask(attention_mask, dtype):
    hidden = attention_mask == 0  #: True for padding, False for a token, (B, L)
    lowest = np.finfo(dtype).min  #: the lowest finite number of dtype
    return Tensor(np.where(hidden, lowest, 0).astype(dtype)[:, None, None, :])


# --- masked_gradient -------------------------------------------------------------------------------------


def _gradient_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(n: int, m: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((n, m)).astype(dtype)

    S, dA = draw(4, 6)
    yield "two keys of padding", S, np.tile(np.arange(6) < 4, (4, 1)), dA
    S, dA = draw(5, 5)
    yield "a causal mask", S, np.tri(5, dtype=bool), dA
    S, dA = draw(3, 7, np.float32)
    yield "float32, a random mask", S, rng.random((3, 7)) < 0.6, dA
    S, dA = draw(3, 3)
    yield "everything may be seen", S, np.ones((3, 3), bool), dA
    S, dA = draw(4, 5)
    blind = np.tile(np.arange(5) < 3, (4, 1))
    blind[1] = False
    yield "a row that may see nothing", S, blind, dA
    S, dA = draw(3, 4)
    yield "hidden scores of 900", S + 900 * (np.arange(4) > 1), np.tile(np.arange(4) < 2, (3, 1)), dA


@exercise(
    difficulty=3,
    minutes=20,
    cases=_gradient_cases,
    hints="""
First A, forward: softmax over the visible keys alone. Then chapter `one_head`'s rule, dS = A (dA - Σ dA A), row by row.

A hidden key has A = 0, and A is a factor of its dS. What does the sum over the row get from it?

A row that may see nothing is uniform, 1/m for each key, whatever its scores are. If you change one of its scores, which weights change?
""",
    mistakes="""
In a row that may see nothing the rule A (dA - Σ dA A) is not the derivative. That row is 1/m whatever its scores are: the lowest number has swallowed them. No score moves the row, so its gradient is 0.
    np.where(allowed, dS, 0) -> dS
Your number is not low enough for a row that may see nothing: the same number for all keys cancels, and the row attends as if there were no mask. The row should be uniform, 1/m for each key, and its gradient 0.
    np.where(allowed, S, np.finfo(S.dtype).min) -> S + np.where(allowed, 0, -10_000) ; np.where(allowed, dS, 0) -> dS
You hide the gradient and not the keys: your A still gives weight to hidden keys. A mask acts in the forward pass, and the zeros of the gradient follow.
    np.where(allowed, S, np.finfo(S.dtype).min) -> S
    np.where(allowed, S, np.finfo(S.dtype).min) -> S ; np.where(allowed, dS, 0) -> dS
The hidden scores are set to 0. But 0 is an ordinary score, so hidden keys still get weight.
    np.where(allowed, S, np.finfo(S.dtype).min) -> S * allowed
    np.where(allowed, S, np.finfo(S.dtype).min) -> S * allowed ; np.where(allowed, dS, 0) -> dS
You set weights to 0 after the softmax. The other weights then no longer sum to 1. Hide the scores before the softmax.
    E / E.sum(axis=-1, keepdims=True) -> softmax(S) * allowed
    E / E.sum(axis=-1, keepdims=True) -> softmax(S) * allowed ; np.where(allowed, dS, 0) -> dS
A row that may see nothing comes out as NaN: -∞ minus -∞ is not a number. Its gradient is 0.
    np.finfo(S.dtype).min -> -np.inf ; np.where(allowed, dS, 0) -> dS
You subtract the largest of all scores, hidden ones too. Where a hidden score lies far above the visible ones, all visible powers are 0.
    x.max(axis=-1, keepdims=True) -> S.max(axis=-1, keepdims=True)
You return dA, the gradient of the weights. The softmax lies between the weights and the scores: dS = A (dA - Σ dA A).
    return dA
Your mask is inverted: `allowed` is True where a query may look.
    np.where(allowed, S, np.finfo(S.dtype).min) -> np.where(allowed, np.finfo(S.dtype).min, S) ; np.where(allowed, dS, 0) -> np.where(allowed, 0, dS)
    np.where(allowed, S, np.finfo(S.dtype).min) -> np.where(allowed, np.finfo(S.dtype).min, S)
    np.where(allowed, S, np.finfo(S.dtype).min) -> np.where(allowed, np.finfo(S.dtype).min, S) ; np.where(allowed, dS, 0) -> dS
The sum over the row is missing: raising one score lowers all other visible weights, dS = A (dA - Σ dA A).
    A * (dA - mean) -> A * dA
The factor A is missing: dS = A (dA - Σ dA A).
    A * (dA - mean) -> dA - mean
That is the backward of a sigmoid. In softmax each weight depends on every visible score of its row.
    A * (dA - mean) -> A * (1 - A) * dA
You return dA at the visible keys. The softmax lies between A and S: dS = A (dA - Σ dA A).
    A * (dA - mean) -> dA
You take the plain mean of dA. The mean must be weighted by A.
    (dA * A).sum(axis=-1, keepdims=True) -> dA.mean(axis=-1, keepdims=True)
    (dA * A).sum(axis=-1, keepdims=True) -> (dA * allowed).sum(axis=-1, keepdims=True) / np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
You sum dA over the row. Sum dA times A.
    (dA * A).sum(axis=-1, keepdims=True) -> dA.sum(axis=-1, keepdims=True)
You sum over the queries, but each row has a softmax of its own.
    (dA * A).sum(axis=-1, keepdims=True) -> (dA * A).sum(axis=0, keepdims=True)
You sum over all entries, but each row has a softmax of its own.
    (dA * A).sum(axis=-1, keepdims=True) -> (dA * A).sum()
The sign of the sum is wrong: dS = A (dA - Σ dA A).
    dA - mean -> dA + mean
You return the weights. Return the gradient of the scores.
    np.where(allowed, dS, 0) -> A
Your mask lowers the hidden scores by too little, so they keep some weight. Take a number below all scores.
    np.where(allowed, S, np.finfo(S.dtype).min) -> S - 10.0 * ~allowed || S - 100.0 * ~allowed
You divide the sum of dA times A by the number of keys. The weights sum to 1, so their sum is the mean already.
    (dA * A).sum -> (dA * A).mean
""",
)
def masked_gradient(S, allowed, dA):
    x = np.where(allowed, S, np.finfo(S.dtype).min)  #: the scores, the lowest number where hidden
    E = np.exp(x - x.max(axis=-1, keepdims=True))  #: the exponentials of the shifted scores
    A = E / E.sum(axis=-1, keepdims=True)  #: the weights, uniform in a row that sees nothing
    mean = (dA * A).sum(axis=-1, keepdims=True)  #: each row's mean of dA, weighted by A
    dS = A * (dA - mean)  #: the gradient by softmax's rule, not yet masked
    return np.where(allowed, dS, 0)  # rows that may see nothing do not move


# --- who_sees --------------------------------------------------------------------------------------------


def _sees_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "one document, from left to right", np.ones(5, int), 0, 9
    yield "two documents", np.array([1, 1, 1, 2, 2]), 0, 9
    yield "two documents and padding", np.array([1, 1, 2, 2, 2, 0, 0]), 0, 9
    yield "a prefix of 3", np.ones(6, int), 3, 9
    yield "a window of 1", np.ones(6, int), 0, 1
    yield "a window of 0", np.array([1, 1, 2, 0]), 0, 0
    yield "everything is prefix: both sides, in a window of 2", np.ones(7, int), 7, 2
    yield "all at once", np.array([1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0]), 6, 2
    yield "one token", np.array([3]), 1, 0
    yield "a long input", np.sort(rng.integers(1, 4, 12)), int(rng.integers(3, 9)), 4


@exercise(
    difficulty=2,
    minutes=20,
    cases=_sees_cases,
    hints="""
Each rule is a matrix of yes and no, with a row for each query and a column for each key. np.arange(L)[:, None] is the query's position and np.arange(L) the key's.

documents[:, None] == documents is True for each pair of tokens from the same document.

A key may be seen if it does not come after the query, or is in the prefix: that "or" is |. All rules have to hold together: that "and" is &.
""",
    mistakes="""
Two documents see each other: both tokens must be of the same one.
    same & token -> token
Padding sees padding. All padding has the number 0, so "the same document" is not enough.
    same & token -> same
The prefix is missing: its tokens may be seen by every token of their document.
    | (key < prefix) ->
You count the prefix from the start of each document. The prefix is the first tokens of the row.
    (key < prefix) -> (key - np.array([list(documents).index(d) for d in documents]) < prefix)
In your mask the prefix hides keys. It should show more of them: a key may be seen if it does not come after the query, or is in the prefix.
    | (key < prefix) -> & (key < prefix)
Every token of the prefix sees everything in your mask. The rule is about the keys of the prefix, so it sets columns, not rows.
    (key < prefix) -> (query < prefix)
Your prefix is one token too long: prefix = 2 means the positions 0 and 1.
    key < prefix -> key <= prefix
The window is missing.
    & near -> & (near | True)
Your window is too narrow by one: a distance of exactly `window` may be seen.
    <= window -> < window
Your window is one-sided. A key of the prefix can also be too far to the right.
    np.abs(query - key) -> (query - key)
The window applies to the prefix too: all rules hold together.
    past & near -> (past & near | (key < prefix))
Your mask shows a pair if the order or the window allows it. Both have to.
    past & near -> (past | near)
Your mask shows the future and hides the past. Keys up to the query's own position may be seen: the lower triangle.
    key <= query -> key >= query
In your mask no token sees itself, but the diagonal belongs to what may be seen.
    key <= query -> key < query
In your mask every query looks to both sides. Of the keys after a query, only those of the prefix may be seen.
    (key <= query) | (key < prefix) -> (key <= query) | True
The mask is transposed: rows are queries and columns are keys.
    same & token & past & near -> (same & token & past & near).T
Your mask is inverted: True is where a query may look.
    same & token & past & near -> ~(same & token & past & near)
You return numbers. Return True and False.
    same & token & past & near -> 1 * (same & token & past & near) || 1.0 * (same & token & past & near)
You return numbers to add to the scores. Return True and False.
    same & token & past & near -> np.where(same & token & past & near, 0, -np.inf)
    same & token & past & near -> np.where(same & token & past & near, 0, np.finfo(float).min)
    same & token & past & near -> np.where(same & token & past & near, 0, np.finfo(np.float32).min)
""",
)
def who_sees(documents, prefix, window):
    key = np.arange(len(documents))  #: the positions of the keys, (L,)
    query = key[:, None]  #: the positions of the queries, (L, 1)
    same = documents[:, None] == documents  #: the pairs of one document, or both padding, (L, L)
    token = documents != 0  #: the keys that are no padding, (L,)
    past = (key <= query) | (key < prefix)  #: pairs whose key is not later, or in the prefix
    near = np.abs(query - key) <= window  #: the pairs at most `window` positions apart, either way
    return same & token & past & near


# --- leaks_and_losses ------------------------------------------------------------------------------------


Head = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _heads(allowed: np.ndarray) -> dict[str, Head]:
    """Heads that should see what is allowed (n, m), by what is special about them."""

    def scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
        return Q @ K.T / math.sqrt(Q.shape[-1])

    def with_mask(seen: np.ndarray, low: float = -np.inf) -> Head:
        return lambda Q, K, V: softmax(scores(Q, K) + np.where(seen, 0, low)) @ V

    more, less = allowed.copy(), allowed.copy()
    more[0, -1] = True
    less[-1, 0] = False
    return {
        "a right mask": with_mask(allowed),
        "scores times 0": lambda Q, K, V: softmax(scores(Q, K) * allowed) @ V,
        "weights times 0": lambda Q, K, V: softmax(scores(Q, K)) * allowed @ V,
        "a mask of -15": with_mask(allowed, -15.0),
        "one hidden key that is seen": with_mask(more),
        "one allowed key that is not seen": with_mask(less),
        "an inverted mask": with_mask(~allowed),
        "values that leak past the mask": lambda Q, K, V: with_mask(allowed)(Q, K, V) + V.mean(axis=0) / 8,
        "no mask": with_mask(np.ones_like(allowed)),
    }


def _leak_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    window = np.abs(np.arange(4)[:, None] - np.arange(4)) <= 1
    for name, head in _heads(window).items():
        yield name, head, window
    few = np.tile(np.arange(7) < 5, (3, 1))
    for name in ("a right mask", "a mask of -15", "one allowed key that is not seen"):
        yield f"{name}, 3 queries and 7 keys", _heads(few)[name], few


@exercise(
    difficulty=2,
    minutes=20,
    cases=_leak_cases,
    hints="""
Draw Q (n, 8), K and V (m, 8) from a normal distribution. For each key j in turn: change row j of K and of V in a copy, call head again, and see which rows of its output have moved.

Compare with != and not with a tolerance: the weight of a hidden key is exactly 0, and a small leak is a leak.

A leak is seen & ~allowed, and a loss is allowed & ~seen. Count both.
""",
    mistakes="""
You change the values alone. A head that multiplies the weights by 0 leaks through the keys, which are in the denominator of the softmax. Change row j of both.
    other_K[j] += 1 ->
You change the keys alone. Values can leak past the mask too. Change row j of both.
    other_V[j] += 1 ->
You compare with a tolerance. The weight of a hidden key is exactly 0, and a leak may be as small as e to the power of -15. Use !=.
    other != before -> ~np.isclose(other, before)
    other != before -> np.abs(other - before) > 1e-6
    other != before -> np.abs(other - before) > 1e-3
    other != before -> other.round(6) != before.round(6)
Your changes add up, because the copies are missing. From the first key on, everything has moved.
    K.copy(), V.copy() -> K, V
You have the two counts the other way round: leaks come first.
    leaks, losses -> losses, leaks
You count every pair that is seen. A leak is a pair that is seen though hidden.
    seen & ~allowed -> seen
You count every pair that is not seen. A loss is one of those that are allowed.
    allowed & ~seen -> ~seen
You count hidden pairs, whether they are seen or not.
    seen & ~allowed -> ~allowed
The mask is inverted: `allowed` is True where a query may look.
    seen & ~allowed -> seen & allowed ; allowed & ~seen -> ~allowed & ~seen
You ask whether any query moves. Ask it of each: row i of the output belongs to query i.
    (other != before).any(axis=-1) -> (other != before).any()
You change all keys at once, so every query that sees anything moves. Change one row at a time.
    other_K[j] += 1 -> other_K += 1 ; other_V[j] += 1 -> other_V += 1
You change the queries. A leak comes by way of a key and a value.
    head(Q, other_K, other_V) -> head(Q + 1, K, V)
""",
)
def leaks_and_losses(head, allowed):
    n, m = allowed.shape  #: the numbers of queries and of keys
    rng = np.random.default_rng(0)
    Q, K, V = rng.standard_normal((n, 8)), rng.standard_normal((m, 8)), rng.standard_normal((m, 8))
    before = head(Q, K, V)  #: the head's output with nothing changed
    seen = np.zeros((n, m), bool)  #: the seen pairs, none of them yet, (n, m)
    for j in range(m):  #: the number of each key, one at a time
        other_K, other_V = K.copy(), V.copy()  #: copies of the keys and of the values
        other_K[j] += 1  #: a change of key j
        other_V[j] += 1  #: a change of value j
        other = head(Q, other_K, other_V)  #: the head's output with key and value j changed
        seen[:, j] = (other != before).any(axis=-1)  #: for each query, whether its output has moved at all
    leaks = int((seen & ~allowed).sum())  #: the number of hidden pairs that are seen
    losses = int((allowed & ~seen).sum())  #: the number of allowed pairs that are not seen
    return leaks, losses


# --- leaked_share ----------------------------------------------------------------------------------------


def _share_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "variance 1", 1.0
    yield "all scores equal, variance 0", 0.0
    yield "variance 4", 4.0
    yield "another variance", float(rng.uniform(0.3, 0.7))
    yield "another variance", float(rng.uniform(1.5, 2.5))


@exercise(
    difficulty=3,
    minutes=25,
    cases=_share_cases,
    rtol=5e-3,
    hints="""
Take a query at a share t of a long text. A share t of the keys is visible, and each of these has a power e^s; a share 1 - t lies in the future, and each of these has the power e^0 = 1.

For a normal s with mean 0 and variance v the mean of e^s is r = e^(v/2). In a long text a sum of many powers is close to their number times r. So the share on the future is (1 - t) / ((1 - t) + t r).

The mean over the queries is the integral over t from 0 to 1. By hand it is (r log r - (r - 1)) / (r - 1)²; a sum over many t will do as well. For r = 1 look at the integrand.
""",
    mistakes="""
The mean of e^s is e^(v/2) for a normal s of variance v. The half is missing.
    variance / 2 -> variance
You take the standard deviation. The mean of e^s is e^(v/2), with the variance.
    variance / 2 -> math.sqrt(variance) || math.sqrt(variance) / 2
That is the share on the past, or the visible and the hidden keys have changed places: the visible ones have the power r and the hidden ones 1.
    math.exp(variance / 2) -> math.exp(-variance / 2)
That is the query in the middle of the text. Take the mean over all queries.
    return (r * math.log(r) - (r - 1)) / (r - 1) ** 2 -> return 1 / (1 + r)
Where all scores are equal, r is 1 and the formula is 0 / 0. The integrand is 1 - t there: half of the weight.
    return 0.5 -> return math.nan || return 0.0 || return 1.0
    if r == 1: -> if False:
A share of 0 means that nothing leaks. But a score of 0 is an ordinary score, and the share on the future is far from 0.
    return 0.0
That is the share without any mask, or with e to the power of the mean score. The mean of e^s is larger than that, e^(v/2), so the visible keys get somewhat more.
    return 0.5
""",
)
def leaked_share(variance):
    r = math.exp(variance / 2)  #: the mean of e^s over the scores s
    if r == 1:
        return 0.5  #: the share on the future where all scores are equal
    return (r * math.log(r) - (r - 1)) / (r - 1) ** 2
