"""Chapter `fast`: making it fast. These checks look at memory too: what is made on the way, and what is changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.outcome import Probe, temporaries

BUFFERS = 150_000  # bytes that NumPy takes where it casts, however large the arrays are

# --- softmax_gradient_into -------------------------------------------------------------------------------


def _into_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    # Small ones tell wrong numbers apart. In the large ones arrays weigh more than NumPy's buffers; they have short rows,
    # so that a Jacobian for each row is bearable, but for (150, 140), where one of them is as large as dy.
    for n, m, dtype in (
        (11, 5, np.float64),
        (8, 8, np.float64),
        (9, 6, np.float32),
        (4001, 48, np.float64),
        (2501, 60, np.float32),
        (150, 140, np.float64),
    ):
        dy, y, out = (rng.random((n, m), dtype) for _ in range(3))
        yield f"shape {(n, m)} of {dtype.__name__}", dy - dtype(0.5), y / y.sum(axis=-1, keepdims=True), out
    dy = np.repeat(rng.standard_normal((9, 1)), 8, axis=1)
    yield (
        "a dy that is the same along each row, which must give 0",
        dy,
        np.full((9, 8), 1 / 8),
        np.ones((9, 8)),
    )
    y = rng.dirichlet(np.ones(3), size=9)
    yield "an out full of NaN", rng.standard_normal((9, 3)), y, np.full((9, 3), np.nan)


@exercise(
    difficulty=2,
    minutes=15,
    cases=_into_cases,
    into="out",
    probes=[
        temporaries(lambda _, given: given["dy"], "dy", "half of one is enough", most=0.5, beside=BUFFERS)
    ],
    hints="""
Write the formula y (dy - Σ dy y) as three operators. Which of their results can `out` hold, one after the other?

np.multiply(dy, y, out=out) first: then out.sum(axis=-1, keepdims=True) is the row's sum, and `out` is free again.

np.subtract(dy, along, out=out), then out *= y.
""",
    mistakes="""
[too-much-memory] On the way you hold more than half of dy's memory at one moment. Operators such as dy * y and dy - … make new arrays, and so do copies; np.multiply(dy, y, out=out) does not.
    np.multiply(dy, y, out=out) -> product = dy * y ; out.sum( -> product.sum(

    out[:] = y * (dy - (dy * y).sum(axis=-1, keepdims=True))

    right(dy, y, out)
    own = dy.copy(), y.copy()

    right(dy, y, out)
    own = dy.copy(), y.copy(), out.copy()
dy times the transpose of y multiplies each row with every row: n² numbers, and you need the n on the diagonal.
    out[:] = y * (dy - np.diag(dy @ y.T)[:, None])

    np.subtract(dy, np.diag(dy @ y.T)[:, None], out=out)
    out *= y
You make the matrix of all ∂y_i/∂x_j, (m, m), for each row: the formula needs one number for each row.
    out[:] = np.einsum("nij,nj->ni", np.eye(y.shape[1]) * y[:, None, :] - y[:, :, None] * y[:, None, :], dy)

    for i, p in enumerate(y):
        matrix = np.diag(p) - np.outer(p, p)
        out[i] = matrix @ dy[i]
[over-dy] You wrote over dy. A residual sum hands the same dy to its other parent, which reads it after you.
    np.subtract(dy, along, out=out) -> dy -= along ; np.multiply(out, y -> np.multiply(dy, y
You wrote over y. It is the output of the forward pass: whoever kept the weights finds something else there.
    np.multiply(out, y, out=out) -> y *= out; out[:] = y
`out` held dy times y when you went on with it: subtract the sum from dy, into `out`, then multiply by y.
    np.subtract(dy, along -> np.subtract(out, along
You subtract the sum from dy times y: subtract it from dy itself, and multiply the difference by y.
    np.subtract(dy, along -> np.subtract(out, along ; np.multiply(out, y, out=out) ->
You sum dy over the row: sum dy times y.
    out.sum( -> dy.sum(
You subtract 1, which is the sum of y over the row, or a largest entry: subtract the sum of dy times y.
    out.sum( -> y.sum( || out.max( || dy.max(
You divide by the length of the row, as a mean does. The shares y sum to 1: the sum of dy times y is a mean already, and nothing else is averaged.
    out.sum( -> out.mean( || dy.mean(
    np.multiply(out, y, out=out) -> np.multiply(out, y / y.shape[-1], out=out)
You sum over what `out` held when it was given to you: write dy times y there first.
    np.multiply(dy, y, out=out) ->
[no-factor] The factor y at the end is missing.
    np.multiply(out, y, out=out) ->
There is one factor y too many outside of the sum.
    np.multiply(out, y, out=out) -> np.multiply(out, y * y, out=out)
The sum is not subtracted: what all scores of the row have in common, Σ dy y, must be taken out.
    np.subtract(dy, along, out=out) -> || out[:] = dy
That is y (1 - y) dy, the diagonal of the Jacobian alone: right for a sigmoid. In softmax each output depends on every score of its row.
    out[:] = y * (1 - y) * dy
That is the backward of log-softmax, dy - y times the sum of dy.
    out[:] = dy - y * dy.sum(axis=-1, keepdims=True)
That contains no sum over the row: y - dy belongs to softmax followed by a cross-entropy, with the targets for dy.
    out[:] = y - dy
dy and y have changed places: y is the factor in front, and the weighted mean is subtracted from dy.
    np.subtract(dy, along -> np.subtract(y, along ; np.multiply(out, y -> np.multiply(out, dy
[over-columns] You sum over the columns: each row has a softmax of its own.
    axis=-1 -> axis=0
You take one sum for all rows: each row has a softmax of its own, and a sum of its own.
    axis=-1, keepdims=True ->
    along = out.sum(axis=-1, keepdims=True) -> along = out[0].sum()
A row of n sums is stretched along the wrong axis: keepdims=True keeps them below each other, (n, 1).
    axis=-1, keepdims=True -> axis=-1
[sign] The sign is the wrong way round: the sum is subtracted from dy.
    np.subtract(dy, along -> np.subtract(along, dy || np.add(dy, along
[added-to-out] You add to what `out` held before, which is of no use to anybody: write over it.
    held = out.copy()
    right(dy, y, out)
    out += held

    held = 0 * out  # which is NaN where it was NaN
    right(dy, y, out)
    out += held
[out-untouched] Nothing was written to `out`. `out = …` gives the name to another array, and a returned array is a new one: out[:] = …, out *= … and out=out write to the one you were given.
    return y
The last rows of `out` are not written: your blocks, or your loop, end before the array does.
    np.multiply(dy, y, out=out) -> dy, y, out = (x[:-1] for x in (dy, y, out)); np.multiply(dy, y, out=out)
    np.multiply(dy, y, out=out) -> dy, y, out = (x[: len(x) // 2 * 2] for x in (dy, y, out)); np.multiply(dy, y, out=out)
    np.multiply(dy, y, out=out) -> dy, y, out = (x[: len(x) // 4 * 4] for x in (dy, y, out)); np.multiply(dy, y, out=out)
    np.multiply(dy, y, out=out) -> dy, y, out = (x[: len(x) // 16 * 16] for x in (dy, y, out)); np.multiply(dy, y, out=out)
""",
)
def softmax_gradient_into(dy, y, out):
    np.multiply(dy, y, out=out)  #: the products of dy and y, entry by entry
    along = out.sum(axis=-1, keepdims=True)  #: the sum of dy times y in each row, (n, 1)
    np.subtract(dy, along, out=out)  #: dy minus the row's sum of dy times y
    np.multiply(out, y, out=out)


# --- scores_without_copies -------------------------------------------------------------------------------


def _scores_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    # In the large ones q and k are three times as large as the scores: how much memory there is says what was copied.
    for B, L, h, d_k, dtype in (
        (2, 3, 2, 5, np.float64),
        (3, 5, 3, 5, np.float32),
        (4, 4, 4, 4, np.float64),
        (2, 6, 1, 3, np.float64),
        (12, 36, 2, 108, np.float64),
        (9, 41, 4, 123, np.float32),
    ):
        q, k = (rng.random((B, L, h * d_k), dtype) for _ in range(2))
        yield f"B = {B}, L = {L}, h = {h}, d_k = {d_k}, {dtype.__name__}", q, k, h


@exercise(
    difficulty=2,
    minutes=12,
    cases=_scores_cases,
    probes=[
        temporaries(
            lambda returned, _: returned, "the result", "the result alone is enough", most=1, beside=BUFFERS
        )
    ],
    hints="""
Three lines of the slow version make an array that nobody needs. Which of its calls copy: reshape, transpose, copy, /?

A transpose is a view, and `@` takes views. And whose array are the scores: who else holds it?

scores = q @ k.swapaxes(-1, -2), with the views; then scores /= math.sqrt(d_k).
""",
    mistakes="""
There is still a copy of q or of k, or a scaled one. `@` takes the transposed view as it is: the BLAS is told how far apart the rows lie.
    q = q.transpose(0, 2, 1, 3) -> q = q.transpose(0, 2, 1, 3).copy()
    k = k.transpose(0, 2, 1, 3) -> k = k.transpose(0, 2, 1, 3).copy()
Both q and k exist twice: copied or scaled by you, or inside a call such as a reshape of a transposed view or np.einsum(…, optimize=True). `@` takes the transposed views as they are: the BLAS is told how far apart the rows lie.
    .transpose(0, 2, 1, 3) -> .transpose(0, 2, 1, 3).copy()
Nothing is saved yet: q and k exist twice, and there is a second array as large as the scores too. Look for what copies, line by line.
    .transpose(0, 2, 1, 3) -> .transpose(0, 2, 1, 3).copy() ; scores /= math.sqrt(d_k) -> scores = scores / math.sqrt(d_k)
At one moment there is a second array of about the size of the result. `scores / …` makes a new one, and so do np.stack or np.array of the heads' scores. Have one array: write to it and scale it in place.
    scores /= math.sqrt(d_k) -> scores = scores / math.sqrt(d_k)

    q, k = (x.reshape(*x.shape[:2], h, -1).swapaxes(1, 2) for x in (q, k))
    scores = np.empty((*q.shape[:3], q.shape[2]), q.dtype)
    for a in range(h):
        scores[:, a] = q[:, a] @ k[:, a].swapaxes(1, 2) / math.sqrt(q.shape[-1])
    return scores
[over-inputs] You change q or k, and the caller still needs them: gradients will be computed from them. The scores are the array that you have made yourself.
    scores = q @ -> q /= math.sqrt(d_k); scores = q @ ; scores /= math.sqrt(d_k) ->
    scores = q @ -> k /= math.sqrt(d_k); scores = q @ ; scores /= math.sqrt(d_k) ->
    scores = q @ -> q /= d_k**0.25; k /= d_k**0.25; scores = q @ ; scores /= math.sqrt(d_k) ->
    scores = q @ -> q /= math.sqrt(d_k); scores = q @ ; scores /= math.sqrt(d_k) -> q *= math.sqrt(d_k)
    scores = q @ -> k /= math.sqrt(d_k); scores = q @ ; scores /= math.sqrt(d_k) -> k *= math.sqrt(d_k)
[no-scale] The scale is missing.
    scores /= math.sqrt(d_k) ->
[other-scale] The scale is the root of one head's length, d_k = d_model / h.
    math.sqrt(d_k) -> math.sqrt(d_model) || math.sqrt(h) || math.sqrt(L) || 8
You divide by d_k (or by its root twice); the scale is its root, once.
    math.sqrt(d_k) -> d_k
You multiply by the scale: divide by it.
    scores /= -> scores *=
    scores /= math.sqrt(d_k) -> scores *= d_k
You round: the root of d_k is not a whole number in general, and neither are the scores. //, int() and math.isqrt cut off what follows the decimal point.
    math.sqrt(d_k) -> math.isqrt(d_k)
    scores /= -> scores //=
A reshape to (B, h, L, d_k) makes no copy, but does not give the heads: it keeps the reading order, and mixes tokens and heads (chapter `arrays`). Reshape to (B, L, h, d_k), then transpose.
    .reshape(B, L, h, d_k) -> .reshape(B, h, L, d_k) ; .transpose(0, 2, 1, 3) ->
[dealt-in-turn] You deal the features out to the heads in turn. Head i has the features i d_k, …, (i + 1) d_k - 1 of each token, next to each other.
    .reshape(B, L, h, d_k) -> .reshape(B, L, d_k, h) ; .transpose(0, 2, 1, 3) -> .transpose(0, 3, 1, 2)
You compare keys with queries: a row belongs to a query.
    q @ k.swapaxes(-1, -2) -> k @ q.swapaxes(-1, -2)
You compare queries with queries, or keys with keys.
    q @ k.swapaxes(-1, -2) -> q @ q.swapaxes(-1, -2) || k @ k.swapaxes(-1, -2)
A reshape of the keys to (B, h, d_k, L) is not a transpose: it keeps the reading order, and mixes tokens and features.
    k.swapaxes(-1, -2) -> k.reshape(B, h, d_k, L)
Row i of the queries meets row j of the keys: the last two axes of the keys change places, and no others (.T turns all four round).
    k.swapaxes(-1, -2) -> k || k.T
In your product the heads are where the tokens should be: each token's heads are compared with each other. Heads and tokens have to change places first.
    .transpose(0, 2, 1, 3) ->
You add up the scores of all heads (or have never split the heads): each head has scores of its own.
    return scores -> return scores.sum(axis=1)
The axes of the result are (B, h, L, L), in this order.
    return scores -> return scores.transpose(0, 2, 3, 1) || return scores.transpose(0, 2, 1, 3) || return scores.transpose(1, 0, 2, 3)
The axis of the batch is gone: each of its members has scores of its own.
    return scores -> return scores.sum(axis=0) || return scores[0]
That is the softmax of the scores: the scores themselves are asked for.
    scores /= math.sqrt(d_k) -> scores = np.exp(scores / math.sqrt(d_k)); scores /= scores.sum(axis=-1, keepdims=True)
""",
)
def scores_without_copies(q, k, h):
    B, L, d_model = q.shape  #: the numbers of texts, tokens and features
    d_k = d_model // h  #: the length of one head's queries and keys
    q = q.reshape(B, L, h, d_k)  #: a view of the queries with heads, (B, L, h, d_k)
    k = k.reshape(B, L, h, d_k)  #: a view of the keys with heads, (B, L, h, d_k)
    q = q.transpose(0, 2, 1, 3)  #: each head's queries, (B, h, L, d_k)
    k = k.transpose(0, 2, 1, 3)  #: each head's keys, (B, h, L, d_k)
    scores = q @ k.swapaxes(-1, -2)  #: each head's scores, not yet scaled, (B, h, L, L)
    scores /= math.sqrt(d_k)  #: the scale, the root of one head's length
    return scores


# --- add_up ----------------------------------------------------------------------------------------------


def _sum_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(n: int, shape: tuple[int, int] = (5, 4), dtype: type = np.float64) -> list[np.ndarray]:
        return [rng.random(shape, dtype) - dtype(0.25) for _ in range(n)]

    yield "two different gradients", draw(2)
    yield "one gradient alone", draw(1)
    (a,) = draw(1)
    yield "a + a: the same array twice", [a, a]
    a, b = draw(2)
    yield "the same array twice, and another", [a, a, b]
    a, b = draw(2)
    yield "a gradient, a view of it, and another", [a, a[::-1], b]
    a, b, c = draw(3)
    yield "a row stretched by broadcasting, and two others", [np.broadcast_to(a[:1], a.shape), b, c]
    # Below 256 KiB: of a larger result that has no name NumPy may take the memory again, and sum() looks harmless.
    yield "two of 250 kB", draw(2, (160, 201))
    yield "five of 240 kB in float32", draw(5, (250, 240), np.float32)
    a, b, c = draw(3, (160, 201))
    yield "four of 250 kB, the last two the same array", [a, b, c, c]


def _copied(given: np.ndarray | None, returned: Any, _: Mapping[str, Any]) -> str | None:
    if given is None or not isinstance(returned, np.ndarray) or np.may_share_memory(given, returned):
        return None
    return "it returns a new array; the one contribution can be handed on as it is."


def _alone(arguments: Mapping[str, Any]) -> np.ndarray | None:
    contributions = arguments["contributions"]
    return contributions[0] if len(contributions) == 1 else None


@exercise(
    difficulty=2,
    minutes=15,
    same_dtype=True,
    cases=_sum_cases,
    probes=[
        temporaries(
            lambda _, given: next(iter(given["contributions"]), None),
            "a contribution",
            "one new array is enough",
            most=1,
            beside=BUFFERS // 2,
        ),
        Probe(_alone, _copied),
    ],
    hints="""
Which array may be written to? One that you made yourself. When do you have the first such array?

The first contribution is borrowed, adding the second makes a new array, and all later ones go into it.

total = a[0] + a[1], then total += one for the rest; with a single contribution, return it.
""",
    mistakes="""
[into-borrowed] You add into one of the arrays, at least in some cases. All are borrowed: in a + a it is the second one too, and in a residual sum another parent reads the array later. That it can be written to does not make it yours.
    total = total + -> total += || total = total if total.flags.writeable else total.copy(); total +=
    total = total + -> total = total.copy() if any(one is total for one in contributions[1:]) else total; total +=
    total = total + -> total = total.copy() if total is contributions[1] else total; total +=
    total = contributions[0] -> total = contributions[-1] ; total = total + contributions[1] -> total += contributions[0] ; contributions[2:] -> contributions[1:-1]
total = total + one makes a new array each time. After the first sum the array is yours: go on with +=.
    total += one -> total = total + one
[list-changed] You change the caller's list: pop, append, reverse and an assignment to an entry change it for everybody who holds it. Go through it with a loop, and leave it whole.
    return total -> contributions.clear(); return total || contributions[1:] = []; return total || contributions[2:] = []; return total || contributions.append(total); return total
    return total -> contributions[0] = total; return total
    total = contributions[0] -> contributions.reverse(); total = contributions[0]
    total = contributions[0] -> total = contributions.pop(0) ; len(contributions) > 1 -> contributions ; contributions[1] -> contributions[0] ; contributions[2:] -> contributions[1:]
Your sum starts from 0, as sum() does, or from a copy, and then each addition makes one more array. One new array is enough: go on in it with +=.
    return sum(contributions)

    return contributions[0] if len(contributions) == 1 else sum(contributions)

    total = np.zeros_like(contributions[0])
    for one in contributions:
        total = total + one
    return total
You copy all of them first, as np.stack, np.array and np.sum of a list do too. One new array is enough.
    return np.stack(contributions).sum(axis=0)

    return contributions[0] if len(contributions) == 1 else np.stack(contributions).sum(axis=0)

    own = [one.copy() for one in contributions]
    return right(own) if len(own) > 1 else contributions[0]

    own = [one.copy() for one in contributions]
    for one in own[1:]:
        own[0] += one
    return own[0] if len(own) > 1 else contributions[0]
One gradient alone needs no copy: hand it on as it is. Most nodes of a graph have a single contribution.
    total = contributions[0] -> total = contributions[0].copy() ; total = total + -> total +=
Your sum is in float64 even where the contributions are in float32, and takes twice the memory: np.zeros and np.empty ask for a dtype.
    total = total + contributions[1] -> total = total.astype(np.float64); total += contributions[1]
    total = contributions[0] -> total = contributions[0].astype(np.float64) ; total = total + -> total +=
The same array twice counts twice: the gradient of a + a is 2 dy.
    return right([one for n, one in enumerate(contributions) if not any(one is other for other in contributions[:n])])
When the first two are the same array, you forget the others.
    contributions[2:] -> contributions[2 : None if contributions[0] is not contributions[1] else 2]
You return one of them alone: contributions of several paths add up (chapter `reverse_mode`).
    return total -> return contributions[-1] || return contributions[0]
[not-a-sum] They must be added up, neither averaged nor multiplied (chapter `reverse_mode`).
    return total -> return total / len(contributions) || return contributions[0] * len(contributions)
    total + contributions[1] -> total * contributions[1] ; total += one -> total *= one
[some-left-out] Some of them are not in your sum: add all of the list, however many there are.
    contributions[2:] -> contributions[3:] || contributions[2:3] || contributions[2:-1] || []
    contributions[2:] -> contributions[2:3] if len(contributions) == 3 else []
    total = contributions[0] -> contributions = contributions[:-1] or contributions; total = contributions[0]
    total = contributions[0] -> contributions = contributions[1:] or contributions; total = contributions[0]
One of them is in your sum twice.
    contributions[2:] -> contributions[1:] || [*contributions[2:], contributions[-1]] || [*contributions[2:], contributions[0]]
    total = contributions[0] -> contributions = [contributions[0], *contributions]; total = contributions[0]
One contribution alone comes back as None: hand it on.
    return total -> return total if len(contributions) > 1 else None
You return a list: an array is asked for.
    return total -> return [total] || return [total] if len(contributions) == 1 else total
That is one number, the sum of all entries: the sum of the arrays has their shape.
    return total -> return total.sum()
""",
)
def add_up(contributions):
    total = contributions[0]  #: the first contribution, which is borrowed
    if len(contributions) > 1:
        total = total + contributions[1]  #: a new array, the sum of the first two
        for one in contributions[2:]:  #: every contribution from the third on
            total += one
    return total


# --- row_blocks ------------------------------------------------------------------------------------------


def _row_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for n, m, most in (
        (100, 64, 640),
        (100, 64, 1000),
        (31, 33, 200),
        (5, 7, 100),
        (6, 7, 14),
        (1, 9, 9),
        (9, 64, 50),
    ):
        yield f"{n} rows of {m}, at most {most} numbers in a block", n, m, most
    n, m, most = (int(x) for x in rng.integers([20, 5, 60], [90, 30, 400]))
    yield f"{n} rows of {m}, at most {most} numbers in a block", n, m, most
    yield "no rows", 0, 8, 64


@exercise(
    difficulty=2,
    minutes=12,
    cases=_row_cases,
    hints="""
Try it by hand with 5 rows of 2 numbers and at most 4 numbers in a block; then with at most 5; then with at most 1.

How many whole rows fit into a block? What if not even one does?

rows = max(1, most // m), and range(0, n, rows) gives the first row of every block, including a last, shorter one.
""",
    mistakes="""
The last rows are never written: where the number of blocks is rounded down, what does not fill a whole block is left out.
    range(0, n, rows) -> range(0, n // rows * rows, rows)
The last block goes beyond the end of the array: it must stop at row n.
    min(first + rows, n) -> first + rows
A block is counted in numbers, but your borders are rows: `most` numbers are most // m rows.
    max(1, most // m) -> most
Your borders count entries of the flat array: rows are asked for.
    (first, min(first + rows, n)) -> (first * m, min(first + rows, n) * m)
You round the rows in a block up, so a block has more than `most` numbers.
    most // m -> -(-most // m)
A row can be longer than a block. It must not be cut, so a block has at least one row, even if that is more than `most` numbers.
    rows = most // m
    return [(first, min(first + rows, n)) for first in range(0, n, rows)] if rows else []
A block with one row is always right, and slow: take as many rows as fit.
    max(1, most // m) -> 1
One more row would still fit into your blocks.
    max(1, most // m) -> max(1, most // m - 1) || max(1, (most - 1) // m)
There is an empty block at the end: where the blocks come out even, nothing is left over.
    for first in range(0, n, rows)] -> for first in range(0, n, rows)] + [(n, n)]
    range(0, n, rows) -> range(0, n + 1, rows)
Blocks end where the next one begins: yours overlap, or leave a row out between them.
    min(first + rows, n) -> min(first + rows + 1, n) || min(first + rows, n) - 1
    range(0, n, rows) -> range(0, n, rows + 1)
That is where each block begins; where it ends is asked for too, (first row, row after the last).
    [(first, min(first + rows, n)) -> [first
You count blocks by the numbers in them, n m / most. A block has whole rows, so count rows: n / (most // m), rounded up.
    rows = max(1, most // m)
    return [(i * rows, min((i + 1) * rows, n)) for i in range(-(-n * m // most))]
Where a row is longer than `most`, each row is a block of its own. All rows in one block is the largest there can be.
    max(1, most // m) -> most // m or max(1, n)
The last block is missing: at the end of the array, what has been collected is a block too.
    range(0, n, rows)] -> range(0, n, rows)][:-1]
You round the rows in a block to the nearest whole number, so a block can have more than `most` numbers.
    most // m -> round(most / m)
You add one row to each block, to be sure of one. Take the larger of one row and those that fit.
    max(1, most // m) -> most // m + 1
""",
)
def row_blocks(n, m, most):
    rows = max(1, most // m)  #: the rows of a full block, at least one
    return [(first, min(first + rows, n)) for first in range(0, n, rows)]
