"""Chapter `arrays`: arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

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
[mean-of-copies] You take a mean over copies. Every copy moves the loss by itself, so what they get adds up: take the sum, for axes in front and for stretched ones.
    .sum( -> .mean(
    .sum(axis=0) -> .mean(axis=0)
    .sum(axis=i -> .mean(axis=i
[one-copy] You take what one copy gets and drop the others. One cell was read many times: add up what all its readers get.
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
[axis-gone] A stretched axis has length 1 again in the end. Yours is gone: keepdims=True, or a reshape to `shape`, keeps it.
    , keepdims=True ->

    dy = dy.sum(axis=tuple(range(dy.ndim - len(shape))))
    return dy.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))

    dy = dy.sum(axis=tuple(range(dy.ndim - len(shape))))
    return dy.sum(axis=tuple(i for i, n in enumerate(shape) if n != dy.shape[i]))
You fold all axes in front into one and sum over it. The stretched axes come after it: sum over them as well.
    return dy.reshape((-1, *shape)).sum(axis=0)
You add up everything. Only the copies of one entry belong together.
    return np.full(shape, dy.sum())

    return dy.sum()
You line the shapes up from the left. Broadcasting lines them up from the right: missing axes are in front.
    axis=0 -> axis=-1

    full = shape + (1,) * (dy.ndim - len(shape))
    return dy.sum(axis=tuple(i for i, n in enumerate(full) if n != dy.shape[i])).reshape(shape)
You sum over one of the axes in front. There can be several: dy.ndim - len(shape).
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
You sum over the same axis whatever `shape` is. `shape` determines which axes were copied.
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
        dy = dy.sum(axis=0)  #: the gradient, summed over an axis added in front
    for i, n in enumerate(shape):  #: each axis of the array, with its length
        if n == 1:
            dy = dy.sum(axis=i, keepdims=True)  #: the gradient, summed to length 1 along this axis
    return dy


# --- heads_of_batch --------------------------------------------------------------------------------------


def _batch_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for batch, length, d_model, h in ((2, 3, 4, 2), (1, 5, 12, 3), (3, 5, 12, 3), (4, 4, 8, 4), (2, 6, 6, 2)):
        shape = f"{batch} sequence{'s' if batch > 1 else ''} of {length} tokens, {d_model} numbers each, {h} heads"
        yield shape, rng.standard_normal((batch, length, d_model)), h
    yield "1 head", rng.standard_normal((3, 4, 6)), 1
    yield "float32, 2 heads", rng.standard_normal((3, 2, 10)).astype(np.float32), 2
    yield "an x that is a view", rng.standard_normal((6, 5, 2)).T, 3


@exercise(
    difficulty=1,
    minutes=10,
    cases=_batch_cases,
    hints="""
Run both functions on np.arange(2 * 3 * 4).reshape(2, 3, 4) with 2 heads. Which numbers should head 0 of sequence 0 have?

With one sequence the broken function is right. So which of its lines handles the axis of length B?

Write the shape after each line. A reshape may cut one axis in two, or join two neighbours. Which of the reshapes does more than that?
""",
    mistakes="""
This has the fault of the broken function: before its last line the axes are (h, B L, d_k), and a reshape keeps that order. So the first sequence gets what head 0 has of all sequences. Exchange axes with a transpose only.
    parts.transpose(0, 2, 1, 3) -> parts.reshape(B * L, h, -1).transpose(1, 0, 2).reshape(B, h, L, -1)
A plain reshape of each sequence keeps the reading order: head 0 gets the first tokens, whole. It should get a part of every token.
    x.reshape(B, L, h, d_model // h) -> x.reshape(B, h, L, d_model // h).transpose(0, 2, 1, 3)
The head is still the third axis. Each token is cut; now bring the heads in front of the tokens.
    .transpose(0, 2, 1, 3) ->
You deal the columns out like cards: head 0 gets the columns 0, h, 2h. It should get the first d_k columns.
    x.reshape(B, L, h, d_model // h) -> x.reshape(B, L, d_model // h, h).swapaxes(2, 3)
Each head is transposed, (d_k, L). Tokens should be rows.
    (0, 2, 1, 3) -> (0, 2, 3, 1)
The heads are in front of the batch: (h, B, L, d_k). The batch should stay the first axis.
    (0, 2, 1, 3) -> (2, 0, 1, 3)
The axes are not in the order asked for. After the cut they are (B, L, h, d_k), and they have to become (B, h, L, d_k).
    (0, 2, 1, 3) -> (3, 2, 1, 0) || (0, 1, 3, 2) || (0, 3, 1, 2) || (0, 3, 2, 1) || (1, 2, 0, 3)
You take h for the length of a head. It is the number of heads; their length is d_model / h.
    x.reshape(B, L, h, d_model // h) -> x.reshape(B, L, d_model // h, h)
Your answer has two heads whatever h is.
    (B, L, h, d_model // h) -> (B, L, 2, d_model // 2)
The heads come in the opposite order: head 0 should have the first part of each token.
    return parts -> return parts[:, :, ::-1]
Every sequence gets the heads of the first one, but each has tokens of its own.
    return parts -> return parts[[0] * B]
That is only the first sequence: return the whole batch.
    return parts.transpose(0, 2, 1, 3) -> return parts[0].transpose(1, 0, 2)
Your slices begin one column apart. Head i begins at column i d_k.
    return np.stack([x[:, :, i : i + x.shape[2] // h] for i in range(h)], axis=1)
Every head has all the numbers of a token's query. Each should get d_k of them.
    return np.stack([x] * h, axis=1)
x comes back as it was: each token has to be cut, (B, L, d_model) -> (B, h, L, d_k).
    return x
""",
)
def heads_of_batch(x, h):
    B, L, d_model = x.shape  #: the counts of sequences, tokens, and numbers per token
    parts = x.reshape(B, L, h, d_model // h)  #: each token cut into h parts, nothing moved, (B, L, h, d_k)
    return parts.transpose(0, 2, 1, 3)


# --- window_rule and window_adjoint ----------------------------------------------------------------------


def _rule_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for length, d_model, n in ((5, 4, 2), (6, 1, 3), (9, 5, 4), (7, 7, 2), (512, 768, 3), (4, 3, 3)):
        yield f"L = {length}, d_model = {d_model}, windows of {n}", length, d_model, n
    length, d_model = (int(m) for m in rng.integers(10, 100, 2))
    yield f"L = {length}, d_model = {d_model}, windows of 6", length, d_model, 6
    yield "L = 5, d_model = 3, windows of 1", 5, 3, 1


@exercise(
    difficulty=2,
    minutes=12,
    cases=_rule_cases,
    hints="""
Write down the memory of L = 4 tokens with d_model = 1: cells 0, 1, 2, 3. The windows of 2 are (0, 1), (1, 2), (2, 3). How many are there?

From entry (w, i, j), how many cells is it to (w, i, j + 1)? To (w, i + 1, j)? And to (w + 1, i, j), the same position in the next window?

The next window begins one token later. Two axes may have the same stride.
""",
    mistakes="""
Your windows do not overlap: the next one begins n tokens later. It should begin one token later, at the second token of this one.
    (d_model, d_model, 1) -> (n * d_model, d_model, 1)
    L - n + 1 -> L // n ; (d_model, d_model, 1) -> (n * d_model, d_model, 1)
That many windows fit side by side. Windows that overlap may begin at any token from which n are left.
    L - n + 1 -> L // n
[one-too-few] One window is missing: the last one begins at token L - n, the first at token 0.
    L - n + 1 -> L - n
You have a window for each token. The last ones would read beyond the end of the memory.
    L - n + 1 -> L
The last window reads beyond the end of the memory: the last token from which n are left is L - n.
    L - n + 1 -> L - n + 2
[one-cell-on] Your next window begins one cell later. The next token is d_model cells on.
    (d_model, d_model, 1) -> (1, d_model, 1)
A step from token to token is not n or L cells: a token has d_model numbers.
    (d_model, d_model, 1) -> (d_model, n, 1) || (n, d_model, 1) || (n, n, 1) || (L, L, 1) || (d_model, L, 1)
The numbers of a token lie side by side: one step along the last axis is one cell.
    (d_model, d_model, 1) -> (d_model, d_model, 0)
The tokens of a window are the second axis and their numbers the third: yours are exchanged, as in NumPy's sliding_window_view.
    (L - n + 1, n, d_model) -> (L - n + 1, d_model, n) ; (d_model, d_model, 1) -> (d_model, 1, d_model)
In your view, one step along the window is one cell. The next token is d_model cells on.
    (d_model, d_model, 1) -> (d_model, 1, 1)
Every window is the first one: with a stride of 0 the next one begins where this one does.
    (d_model, d_model, 1) -> (0, d_model, 1)
These strides are in bytes. The task counts entries, as the chapter does.
    (d_model, d_model, 1) -> (8 * d_model, 8 * d_model, 8) || (4 * d_model, 4 * d_model, 4)
Your last axis steps from token to token. The numbers of a token lie side by side, with stride 1.
    (d_model, d_model, 1) -> (d_model, 1, d_model) || (1, d_model, d_model)
The first axis counts the windows and the second the tokens in one: yours are exchanged.
    (L - n + 1, n, d_model) -> (n, L - n + 1, d_model)
Shape and strides are exchanged: the shape comes first.
    return shape, strides -> return strides, shape
For windows of one token you leave out the axis within a window. The view has three axes for every n, and for n = 1 the second has length 1.
    strides = (d_model, d_model, 1) -> strides = (d_model, d_model, 1) if n > 1 else (d_model, 1) ; shape = (L - n + 1, n, d_model) -> shape = (L - n + 1, n, d_model) if n > 1 else (L, d_model)
Those are the strides of the tokens themselves, (L, d_model). A window needs an axis of its own.
    strides = (d_model, d_model, 1) -> strides = (d_model, 1)
""",
)
def window_rule(L, d_model, n):
    shape = (L - n + 1, n, d_model)  #: the shape: windows, tokens in a window, d_model
    strides = (d_model, d_model, 1)  #: strides in entries, equal for windows and tokens
    return shape, strides


def _windows_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for windows, n, d_model in ((4, 2, 3), (3, 3, 1), (5, 4, 2), (2, 5, 3), (1, 3, 2), (4, 1, 2), (6, 6, 6)):
        name = f"{windows} window{'s' if windows > 1 else ''} of {n} token{'s' if n > 1 else ''}"
        yield f"{name}, d_model = {d_model}", rng.standard_normal((windows, n, d_model))
    yield "float32, 7 windows of 3 tokens", rng.standard_normal((7, 3, 2)).astype(np.float32)


@exercise(
    difficulty=3,
    minutes=15,
    cases=_windows_cases,
    same_dtype=True,
    hints="""
How long is the text? The windows begin at the tokens 0, 1, …, and there are dy.shape[0] of them.

Entry (w, i, j) of the windows is a copy of entry (w + i, j) of the text. A cell gets the sum of what its copies get.

Add dy[:, i] to the tokens i, i + 1, …: one line for each position i within a window.
""",
    mistakes="""
Each token keeps only what one window gives it. It has a copy in up to n windows, and what the copies get adds up: += in place of =. With an array of indices or a view, even += keeps one of several: np.add.at adds all.
    ] += dy[:, i] -> ] = dy[:, i]
    in range(n) -> in reversed(range(n)) ; ] += dy[:, i] -> ] = dy[:, i]
You take the mean over a token's copies. Each copy moves the loss by itself, so what they get adds up.
    return dx -> count = np.convolve(np.ones(windows), np.ones(n)); return dx / count[:, None].astype(dy.dtype)
    return dx -> return dx / n
You use one position of each window and drop the others, but each of them is a copy of a token.
    for i in range(n) -> for i in range(1) || for i in range(n - 1, n)
You count the positions from the end: position i of window w is token w + i.
    dy[:, i] -> dy[:, n - 1 - i]
You put the windows one after the other. They overlap: window 1 begins at token 1.
    return dy.reshape(-1, dy.shape[2])
You sum over the windows and keep the positions: return a row for each token, w + i.
    return dy.sum(axis=0)
You sum over the positions and keep the windows: return a row for each token, w + i.
    return dy.sum(axis=1)
The text is one token too long: the last token is the end of the last window, number windows + n - 2.
    windows + n - 1 -> windows + n
The last tokens are missing: the last window begins at token windows - 1 and has n tokens.
    return dx -> return dx[:windows]
The last window is missing.
    dx[i : i + windows] += dy[:, i] -> dx[i : i + windows - 1] += dy[:-1, i]
Your positions go backwards: position i of window w is token w + i, not w - i.
    dx[i : i + windows] += dy[:, i] -> np.add.at(dx, np.arange(windows) - i, dy[:, i])
The ends are missing: only the tokens that are in n windows are left. The others have fewer copies, but they count too.
    return dx -> return dx[n - 1 : windows]
The result is transposed: return a row for each token.
    return dx -> return dx.T
That counts the copies. What they get is in dy: add it up.
    dy[:, i] -> 1
""",
)
def window_adjoint(dy):
    windows, n, d_model = dy.shape  #: the counts of windows, tokens in one, d_model
    dx = np.zeros((windows + n - 1, d_model), dtype=dy.dtype)  #: zeros, a row for each token
    for i in range(n):  #: every position within a window
        dx[i : i + windows] += dy[:, i]  #: what token w + i gets from window w
    return dx


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
    difficulty=3,
    minutes=20,
    cases=_luck_cases,
    hints="""
The row of head i and token t is right if i + h t = L i + t, that is t (h - 1) = i (L - 1). Count the pairs (i, t) with 0 ≤ i < h and 0 ≤ t < L.

All solutions lie on a line from (0, 0) to (h - 1, L - 1). How many integer points are on it? Draw 3 by 5 and 4 by 6.

From one point to the next, i grows by (h - 1) / g and t by (L - 1) / g, with g their greatest common divisor.
""",
    mistakes="""
Two rows, the first and the last, are always right. But t (h - 1) = i (L - 1) can have more solutions: try L = 8 and h = 8.
    gaps + 1 -> 2
Only the first row? The last token of the last head is at the end of memory in both ways, too.
    gaps + 1 -> 1
[rows] That is how many rows are right. Each row has d_k entries.
    rows * d_k -> rows
[one-too-few] One row is missing: between the first solution and the last there are gcd(h - 1, L - 1) gaps, and so one solution more than gaps.
    gaps + 1 -> gaps || gaps + (min(h, L) == 1)
You count two rows for each gap. Between neighbours there is one gap, so there is one solution more than gaps.
    gaps + 1 -> 2 * gaps
You count one row too many: between neighbours there is one gap, so there is one solution more than gaps.
    gaps + 1 -> gaps + 2
[no-minus-one] You take a common divisor of h and L, or of h + 1 and L + 1. The equation t (h - 1) = i (L - 1) contains h - 1 and L - 1.
    math.gcd(h - 1, L - 1) -> math.gcd(h, L) || math.gcd(h + 1, L + 1)
The equation t (h - 1) = i (L - 1) contains h - 1 and L - 1. You have one of them right.
    math.gcd(h - 1, L - 1) -> math.gcd(h - 1, L) || math.gcd(h, L - 1)
You use the least common multiple. The number of gaps is the greatest common divisor.
    math.gcd( -> math.lcm(
The width d_k does not affect which rows are right: it is the number of entries in a row.
    math.gcd(h - 1, L - 1) -> math.gcd(h - 1, L - 1, d_k)
    return rows * d_k -> return math.gcd(h * d_k - 1, L * d_k - 1) + 1
    h - 1, L - 1) -> h * d_k - 1, L * d_k - 1)
The 1 is a row, not an entry: it has d_k entries as well.
    rows * d_k -> (rows - 1) * d_k + 1
You look at the two cases with many right rows and with two. There are others between: try L = 13 and h = 9.
    gaps + 1 -> h if h == L else 2 || h if h > 1 and (L - 1) % (h - 1) == 0 else 2 || h if (L - 1) % (h - 1) == 0 else 2 || h if h > 1 and L > 1 and (L - 1) % (h - 1) == 0 else 2
    gaps + 1 -> min(h, L) if min(h, L) > 1 and max(h - 1, L - 1) % min(h - 1, L - 1) == 0 else 2
With one token or one head, both ways read the same: all entries are right.
    gaps + 1 -> gaps + 1 if min(L, h) > 1 else 1 || gaps + 1 if min(L, h) > 1 else 2 || gaps + 1 if L > 1 else 1 || gaps + 1 if h > 1 else 1
    gaps + 1 -> gaps + 1 if L > 1 else 2 || gaps + 1 if h > 1 else 2
With as many tokens as heads, not all entries are right: only those on the diagonal.
    rows * d_k -> (rows if L != h else L * h) * d_k
A diagonal has as many positions as the smaller of L and h, but only for some sizes are all of them right: try L = 1024 and h = 8.
    gaps + 1 -> min(h, L)
That is an h-th of all entries, as if a right position were a matter of chance. Ask which pairs solve t (h - 1) = i (L - 1).
    gaps + 1 -> L
[share] That is the share of the right entries: their number is asked for.
    rows * d_k -> rows / (L * h)
Those are the entries in the wrong position: the number of right ones is asked for.
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
    gaps = math.gcd(h - 1, L - 1)  #: the number of gaps between neighbouring right rows
    rows = gaps + 1  #: the number of right rows, one more than gaps
    return rows * d_k
