"""Chapter 1: arrays and backends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.check.exercise import exercise

# --- unbroadcast -----------------------------------------------------------------------------------------


def _unbroadcast_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for wide, shape in (
        ((3, 4), (4,)),
        ((3, 4), (3, 1)),
        ((2, 3, 4), (3, 1)),
        ((3, 3, 3), (3,)),
        ((2, 3, 4), (4,)),
        ((2, 3, 4), (2, 1, 4)),
        ((5, 6), (1, 1)),
        ((2, 1, 4), (1, 4)),
        ((2, 3), (2, 3)),
        ((2, 3), ()),
    ):
        yield f"{wide} to {shape}", rng.standard_normal(wide), shape
    yield "float32, (4, 3, 2) to (3, 1)", rng.standard_normal((4, 3, 2)).astype(np.float32), (3, 1)


@exercise(
    chapter=1,
    difficulty=2,
    minutes=12,
    cases=_unbroadcast_cases,
    same_dtype=True,
    hints="""
Two kinds of axes were copied along: those that `shape` does not have at all, and those in which it has a 1.

dy.ndim - len(shape) axes were added, all in front. Sum over them first; then the axes of both agree.

After dy = dy.sum(axis=tuple(range(added))), sum over the axes i with shape[i] == 1, with keepdims=True.
""",
    mistakes="""
You take a mean over copies. Every copy moves the loss by itself, so what they get adds up: it is the sum, for axes in front and for stretched ones.
    .sum( -> .mean(
    .sum(axis=0) -> .mean(axis=0)
    .sum(axis=i -> .mean(axis=i
You take what one copy gets and drop the others. One cell was read many times: add up what all its readers get.
    dy.sum(axis=0) -> dy[0] || dy[-1]
    dy.sum(axis=i, keepdims=True) -> dy.take([0], axis=i) || dy.take([-1], axis=i)
    dy.sum(axis=0) -> dy[0] ; dy.sum(axis=i, keepdims=True) -> dy.take([0], axis=i)
    dy.sum(axis=0) -> dy[-1] ; dy.sum(axis=i, keepdims=True) -> dy.take([-1], axis=i)
You take the largest of what the copies get. Every copy moves the loss by itself: add them up.
    .sum( -> .max(
You sum over the axes that were added in front, and not over those that were stretched from length 1.
    dy.sum(axis=i, keepdims=True) -> dy
The axes that were added in front are still there, with all their copies: sum over them as well.
    while dy.ndim > len(shape) -> while False
    while dy.ndim > len(shape) -> while False ; axis=i -> axis=i - len(shape)
The axes that were added in front are still there, with length 1: the gradient must have exactly `shape`.
    added = dy.ndim - len(shape)
    axes = [*range(added), *(added + i for i, n in enumerate(shape) if n == 1)]
    return dy.sum(axis=tuple(axes), keepdims=True)
A stretched axis has length 1 again in the end. Yours is gone: keepdims=True, or a reshape to `shape`, keeps it.
    , keepdims=True ->

    dy = dy.sum(axis=tuple(range(dy.ndim - len(shape))))
    return dy.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))

    dy = dy.sum(axis=tuple(range(dy.ndim - len(shape))))
    return dy.sum(axis=tuple(i for i, n in enumerate(shape) if n != dy.shape[i]))
You add up everything. Only the copies of one entry belong together.
    return np.full(shape, dy.sum())

    return dy.sum()
You line the shapes up from the left. Broadcasting lines them up from the right: missing axes are in front.
    axis=0 -> axis=-1

    full = shape + (1,) * (dy.ndim - len(shape))
    return dy.sum(axis=tuple(i for i, n in enumerate(full) if n != dy.shape[i])).reshape(shape)
Of the axes in front you sum over one. There can be several: dy.ndim - len(shape).
    while dy.ndim -> if dy.ndim
You sum over one stretched axis. Any axis that is 1 in `shape` may have been stretched, and several at once.
    enumerate(shape) -> sorted(enumerate(shape), key=lambda pair: pair[1] != 1)[:1]
    if n == 1 -> if n == 1 and i == 0 || if n == 1 and i == len(shape) - 1
From the right, axes are counted -1, -2, -3. -0 is 0, the first axis from the left.
    axis=i -> axis=-(len(shape) - 1 - i)
You sum over the axes that were not stretched. A stretched axis is one that is 1 in `shape`.
    if n == 1 -> if n != 1
Where no axis was added in front, you change nothing: axes can be stretched there too.
    return dy if dy.ndim == len(shape) else right(dy, shape)
Where axes were added in front, you leave out those that were stretched: both can happen at once.
    added = dy.ndim - len(shape)
    return dy.sum(axis=tuple(range(added))) if added else right(dy, shape)
You sum over the same axis whatever `shape` is. It is `shape` that says which axes were copied.
    return dy.sum(axis=0)

    return dy.sum(axis=0, keepdims=True)

    return dy.sum(axis=-1)
The numbers in dy do not come into your answer. What the copies get is in dy: add it up.
    return np.ones(shape)

    return right(np.ones_like(dy), shape)
""",
)
def unbroadcast(dy, shape):
    while dy.ndim > len(shape):
        dy = dy.sum(axis=0)  # an axis that was put in front
    for i, n in enumerate(shape):
        if n == 1:
            dy = dy.sum(axis=i, keepdims=True)  # it keeps its length of 1
    return dy


# --- split_heads and merge_heads -------------------------------------------------------------------------


def _split_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for length, d_model, h in ((3, 4, 2), (5, 12, 3), (8, 8, 4), (4, 8, 4), (1, 6, 3), (4, 6, 1)):
        name = f"{length} token{'s' if length > 1 else ''} of {d_model} in {h} head{'s' if h > 1 else ''}"
        yield name, rng.standard_normal((length, d_model)), h
    yield "float32, 6 tokens of 10 in 2 heads", rng.standard_normal((6, 10)).astype(np.float32), 2
    yield "an x that is a view, 5 tokens of 6 in 2 heads", rng.standard_normal((6, 5)).T, 2


@exercise(
    chapter=1,
    difficulty=1,
    minutes=6,
    cases=_split_cases,
    hints="""
Column c belongs to head c // d_k. Which reshape puts c // d_k and c % d_k on two axes, and moves nothing else?

x.reshape(L, h, d_k) reads the same. Then the axes (L, h, d_k) have to come in the order (h, L, d_k).
""",
    mistakes="""
A plain reshape keeps the reading order: your head 0 is the first tokens with all their features. It has to be all tokens with their first features.
    x.reshape(L, h, d_model // h) -> x.reshape(h, L, d_model // h).transpose(1, 0, 2) || x.reshape(h, d_model // h, L).transpose(2, 0, 1)
The head is still the second axis. Each token is cut; now bring the heads to the front.
    .transpose(1, 0, 2) ->
You deal the columns out like cards: head 0 gets the columns 0, h, 2h. It gets the first d_k columns.
    x.reshape(L, h, d_model // h) -> x.reshape(L, d_model // h, h).transpose(0, 2, 1)
Each head lies on its side, (d_k, L). Tokens are rows.
    .transpose(1, 0, 2) -> .transpose(1, 2, 0)
The axes come out in another order than asked for. After the cut they are (L, h, d_k), and they have to become (h, L, d_k).
    .transpose(1, 0, 2) -> .transpose(2, 1, 0) || .transpose(0, 2, 1) || .transpose(2, 0, 1)
You read x column after column, as x.T and order="F" do, and cut that. Cut the last axis in two first; then move whole axes.
    return x.T.reshape(h, x.shape[0], -1)

    return x.reshape(h, x.shape[0], -1, order="F")

    return x.T.reshape(x.shape[0], h, -1).transpose(1, 0, 2)
You cut the tokens into h groups. Each head has all tokens, and a part of their features.
    return np.stack(np.split(x, h, axis=0))

    return x.reshape(h, x.shape[0] // h, -1)
You take h for the length of a head. It is how many heads there are; the length is d_model / h.
    x.reshape(L, h, d_model // h) -> x.reshape(L, d_model // h, h)
Your answer has two heads whatever h is.
    (L, h, d_model // h) -> (L, 2, d_model // 2)
The heads come in the opposite order: head 0 has the first features.
    return parts -> return parts[:, ::-1]
Your head i begins at column i. Each head has d_k columns, so it begins at column i d_k.
    d_k = x.shape[1] // h
    return np.stack([x[:, i : i + d_k] for i in range(h)])
Each head has lost its last feature: a slice ends before its second number.
    return parts -> return parts[..., :-1]
That is one head: all h of them are asked for, along a new first axis.
    return parts.transpose(1, 0, 2) -> return parts[:, 0]
Every head has all the features. Each gets d_k of them.
    return np.stack([x] * h)
x comes back as it was: it has to be cut, (L, d_model) -> (h, L, d_k).
    return x
""",
)
def split_heads(x, h):
    L, d_model = x.shape
    parts = x.reshape(L, h, d_model // h)  # each token is cut; nothing moves
    return parts.transpose(1, 0, 2)


def _merge_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for h, length, d_k in ((2, 3, 2), (3, 5, 4), (4, 4, 4), (2, 1, 3), (1, 4, 6)):
        name = f"{h} head{'s' if h > 1 else ''}, {length} token{'s' if length > 1 else ''}, d_k = {d_k}"
        yield name, rng.standard_normal((h, length, d_k))
    yield "float32, 2 heads, 6 tokens, d_k = 3", rng.standard_normal((2, 6, 3)).astype(np.float32)


@exercise(
    chapter=1,
    difficulty=1,
    minutes=5,
    cases=_merge_cases,
    hints="""
It undoes split_heads: the two steps backwards, in the opposite order.

(h, L, d_k) -> (L, h, d_k) is a transpose; (L, h, d_k) -> (L, h d_k) is a reshape.
""",
    mistakes="""
Heads and tokens have not changed places, and a reshape keeps the reading order: a row holds several tokens of one head. It has to hold one token of all heads.
    z.transpose(1, 0, 2) -> z || z.reshape(L, h, d_k).swapaxes(0, 1)
You take the heads in turn, feature by feature. Head 0 goes whole, then head 1.
    (1, 0, 2) -> (1, 2, 0)
You swap tokens and features. Heads and tokens have to change places, and features stay last.
    (1, 0, 2) -> (0, 2, 1)
You bring the features to the front. Tokens belong there, and features stay last.
    (1, 0, 2) -> (2, 1, 0) || (2, 0, 1)
The heads are still an axis of their own: the last two axes have to become one.
    tokens.reshape(L, h * d_k) -> tokens
You put the heads one below the other, and every token appears h times. They go beside each other.
    tokens.reshape(L, h * d_k) -> z.reshape(h * L, d_k)
You add the heads up. They are put beside each other: mixing them is the work of the next layer.
    tokens.reshape(L, h * d_k) -> z.sum(axis=0)
You average the heads. They are put beside each other: mixing them is the work of the next layer.
    tokens.reshape(L, h * d_k) -> z.mean(axis=0)
Not all heads are there. Each token has h of them.
    tokens.reshape(L, h * d_k) -> z[0] || np.hstack(z[:2]) || np.hstack(z[:-1]) || np.hstack([*z[:-1], 0 * z[-1]])
The result lies on its side: a row for each token.
    h * d_k) -> h * d_k).T
The result has a row for each head: a row for each token is asked for. Which axis of z is L?
    reshape(L, h * d_k) -> reshape(h, L * d_k)
The result has the shape (h d_k, L): a row for each token is asked for.
    reshape(L, h * d_k) -> reshape(h * d_k, L)
Each head is turned on its side before they are put together: tokens are rows.
    return np.hstack([head.T for head in z])
The heads come in the opposite order: head 0 goes first.
    h, L, d_k = z.shape -> h, L, d_k = z.shape; z = z[::-1]
z comes back as it was: the heads have to be put together, (h, L, d_k) -> (L, h d_k).
    return z
You put head i at column i, over the one before. Each head has d_k columns, so head i begins at column i d_k.
    h, L, d_k = z.shape
    merged = np.zeros((L, h * d_k))
    for i in range(h):
        merged[:, i : i + d_k] = z[i]
    return merged
""",
)
def merge_heads(z):
    h, L, d_k = z.shape
    tokens = z.transpose(1, 0, 2)  # (L, h, d_k)
    return tokens.reshape(L, h * d_k)


# --- stops_growing ---------------------------------------------------------------------------------------


def _step_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for kind, step in (
        (np.float16, 1.0),
        (np.float32, 1.0),
        (np.float64, 1.0),
        (np.float32, 0.5),
        (np.float16, 4.0),
    ):
        yield f"{kind.__name__}({step:g})", kind(step)
    for kind, least in ((np.float32, -30), (np.float64, -60)):
        exponent = int(rng.integers(least, -3))
        yield f"{kind.__name__}(2**{exponent})", kind(2.0**exponent)


@exercise(
    chapter=1,
    difficulty=2,
    minutes=12,
    cases=_step_cases,
    hints="""
Try it in float16 with a loop: it ends soon. Then float32 with np.cumsum. What do the two results have in common?

The total stops where the next float is two steps away: half-way between two floats, the sum is rounded to the even one, which is the total itself.

A float has np.finfo(type(step)).nmant stored digits and a leading 1.
""",
    mistakes="""
Where the next float is exactly one step further, the total still grows: you are one doubling short. Besides the digits that are stored (nmant, and eps is 2**-nmant) there is the leading 1.
    2.0**digits -> 2.0 ** (digits - 1)
    .nmant + 1 -> .nmant || .nmant + (step.itemsize == 2) || .nmant + (step.itemsize != 4) || .nmant + (step.itemsize != 8)
You go one doubling too far: the total has stopped at half of that, where the floats are two steps apart and a half-way sum is rounded back.
    .nmant + 1 -> .nmant + 2
That is how many steps it takes. The total is that many times the step.
    float(step) * ->
You divide by the step. Larger steps reach further: the total is a number of steps, times the step.
    float(step) * steps -> steps / float(step)
That is the first total that the dtype cannot hold. The sum stays at the one before it.
    2.0**digits -> 2.0**digits + 1
You stop one step early: with as many digits as there are, all of them ones, there is room for one more step.
    2.0**digits -> 2.0**digits - 1
That is the largest number of the dtype. The sum stops long before: a small step is lost in a large total.
    return float(np.finfo(type(step)).max)
The sum does not grow for ever: a small step is lost in a large total.
    return math.inf
You have float16's 11 digits for every dtype: a float32 and a float64 have more.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 11
You have float32's 24 digits for every dtype. np.finfo(type(step)) knows how many this one has.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 24
You have float64's 53 digits for every dtype, which Python's own floats have too. Each total is rounded to the dtype of the step.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 53
You count all bits. Some of them are the sign and the exponent; np.finfo(type(step)).nmant are digits.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 8 * step.itemsize
You count decimal digits. The digits of a float are binary ones.
    2.0**digits -> 10.0**np.finfo(type(step)).precision
The step comes in twice. Twice the step gives twice the total.
    float(step) * -> float(step) ** 2 *
That is the distance from 1 to the next float: it says how many digits there are, and is no total.
    return float(step) * steps -> return float(np.finfo(type(step)).eps)
    * steps -> * float(np.finfo(type(step)).eps)
""",
)
def stops_growing(step):
    digits = np.finfo(type(step)).nmant + 1  # with the leading 1, which is not stored
    steps = 2.0**digits
    return float(step) * steps


# --- right_by_luck ---------------------------------------------------------------------------------------


def _luck_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    g, a, d_k = (int(n) for n in rng.integers(2, 12, 3))
    for L, h, width in (
        (1024, 8, 64),
        (8, 8, 64),
        (3, 2, 2),
        (13, 9, 5),
        (5, 13, 3),
        (1, 5, 3),
        (9, 1, 4),
        (12 * g + 1, a * g + 1, d_k),
    ):
        yield f"L = {L}, h = {h}, d_k = {width}", L, h, width
    yield "L = 2**50 + 1, h = 17, d_k = 64", 2**50 + 1, 17, 64


@exercise(
    chapter=1,
    difficulty=3,
    minutes=20,
    cases=_luck_cases,
    hints="""
The row of head i and token t is right if i + h t = L i + t, that is t (h - 1) = i (L - 1). Count the pairs (i, t) with 0 ≤ i < h and 0 ≤ t < L.

All solutions lie on a line from (0, 0) to (h - 1, L - 1). How many whole points are on it? Draw 3 by 5 and 4 by 6.

From one point to the next, i goes on by (h - 1) / g and t by (L - 1) / g, with g their greatest common divisor.
""",
    mistakes="""
Two rows, the first and the last, are always right. But t (h - 1) = i (L - 1) can have more solutions: try L = 8 and h = 8.
    gaps + 1 -> 2
Only the first row? The last token of the last head is at the end of memory in both ways, too.
    gaps + 1 -> 1
That is how many rows are right. Each row has d_k entries.
    rows * d_k -> rows
One row is missing: between the first solution and the last there are gcd(h - 1, L - 1) gaps, and so one solution more than gaps.
    gaps + 1 -> gaps || gaps + (min(h, L) == 1)
You count two rows for each gap. Between neighbours there is one gap, so there is one solution more than gaps.
    gaps + 1 -> 2 * gaps
You count one row too many: between neighbours there is one gap, so there is one solution more than gaps.
    gaps + 1 -> gaps + 2
You take a common divisor of h and L, or of h + 1 and L + 1. In t (h - 1) = i (L - 1) stand h - 1 and L - 1.
    math.gcd(h - 1, L - 1) -> math.gcd(h, L) || math.gcd(h + 1, L + 1)
In t (h - 1) = i (L - 1) stand h - 1 and L - 1. You have one of them right.
    math.gcd(h - 1, L - 1) -> math.gcd(h - 1, L) || math.gcd(h, L - 1)
That is made of the least common multiple. How many gaps there are is the greatest common divisor.
    math.gcd( -> math.lcm(
The width d_k has no part in which rows are right: it is how many entries a row has.
    math.gcd(h - 1, L - 1) -> math.gcd(h - 1, L - 1, d_k)
    return rows * d_k -> return math.gcd(h * d_k - 1, L * d_k - 1) + 1
    h - 1, L - 1) -> h * d_k - 1, L * d_k - 1)
The 1 is a row, not an entry: it has d_k entries as well.
    rows * d_k -> (rows - 1) * d_k + 1
You look at the two cases with many right rows and with two. There are others between: try L = 13 and h = 9.
    gaps + 1 -> h if h == L else 2 || h if h > 1 and (L - 1) % (h - 1) == 0 else 2 || h if h > 1 and L > 1 and (L - 1) % (h - 1) == 0 else 2
    gaps + 1 -> min(h, L) if min(h, L) > 1 and max(h - 1, L - 1) % min(h - 1, L - 1) == 0 else 2
With one token or one head, both ways read the same: all entries are right.
    gaps + 1 -> gaps + 1 if min(L, h) > 1 else 1 || gaps + 1 if min(L, h) > 1 else 2 || gaps + 1 if L > 1 else 1 || gaps + 1 if h > 1 else 1
    gaps + 1 -> gaps + 1 if L > 1 else 2 || gaps + 1 if h > 1 else 2
With as many tokens as heads, not all entries are right: only those on the diagonal.
    rows * d_k -> (rows if L != h else L * h) * d_k
A diagonal has as many places as the smaller of L and h, but only for some sizes are all of them right: try L = 1024 and h = 8.
    gaps + 1 -> min(h, L)
That is an h-th of all entries, as if a right place were a matter of chance. Ask which pairs solve t (h - 1) = i (L - 1).
    gaps + 1 -> L
That is the share of the right entries: their number is asked for.
    rows * d_k -> rows / (L * h)
Those are the entries in the wrong place: how many are right is asked for.
    rows * d_k -> (L * h - rows) * d_k
That is how many entries there are in all.
    rows * d_k -> L * h * d_k
You divide by the number of heads: all heads count, not one on average.
    rows * d_k -> rows * d_k // h || rows * d_k / h
A row has the d_k entries of one head, not all h d_k.
    rows * d_k -> rows * h * d_k
You look at the first tokens only, and in a long text the others are right further on. Count the solutions without visiting the tokens.
    gaps + 1 -> gaps + 1 if L < 2000 else 1
""",
)
def right_by_luck(L, h, d_k):
    # The row of head i and token t is right if i + h t = L i + t, that is t (h - 1) = i (L - 1): the whole points on
    # the line from (0, 0) to (h - 1, L - 1). The gaps between them are as many as the greatest common divisor.
    gaps = math.gcd(h - 1, L - 1)
    rows = gaps + 1
    return rows * d_k
