"""Chapter 1: arrays and backends."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from minigrad.course.check.exercise import Case, Exercise, Misconception

__all__ = ["merge_heads", "right_by_luck", "split_heads", "stops_growing", "unbroadcast"]

# --- unbroadcast -----------------------------------------------------------------------------------------


def _unbroadcast(dy, shape):
    added = dy.ndim - len(shape)
    dy = dy.sum(axis=tuple(range(added)))  # the axes that were put in front
    stretched = tuple(i for i, n in enumerate(shape) if n == 1)
    return dy.sum(axis=stretched, keepdims=True)


def _unbroadcast_cases(rng: np.random.Generator) -> Iterator[Case]:
    for wide, shape in (
        ((3, 4), (4,)),
        ((3, 4), (3, 1)),
        ((2, 3, 4), (3, 1)),
        ((3, 3, 3), (3,)),
        ((2, 3, 4), (2, 1, 4)),
        ((5, 6), (1, 1)),
        ((2, 1, 4), (1, 4)),
        ((2, 3), (2, 3)),
    ):
        yield Case(f"{wide} to {shape}", (rng.standard_normal(wide), shape))
    yield Case("float32, (4, 3, 2) to (3, 1)", (rng.standard_normal((4, 3, 2)).astype(np.float32), (3, 1)))


def _axes_and(reduce):
    """An unbroadcast with another reduction than the sum: reduce(dy, axes), axes kept as length 1."""

    def wrong(dy, shape):
        full = (1,) * (dy.ndim - len(shape)) + shape
        axes = tuple(i for i, n in enumerate(full) if n != dy.shape[i])
        return reduce(dy, axes).reshape(shape)

    return wrong


def _first_copy(dy, axes):
    return dy[tuple(slice(0, 1) if i in axes else slice(None) for i in range(dy.ndim))]


def _added_only(dy, shape):
    return dy.sum(axis=tuple(range(dy.ndim - len(shape))))


def _stretched_only(dy, shape):
    added = dy.ndim - len(shape)
    axes = tuple(i + added for i, n in enumerate(shape) if n == 1 and dy.shape[i + added] != 1)
    return dy.sum(axis=axes, keepdims=True)


def _without_keepdims(dy, shape):
    full = (1,) * (dy.ndim - len(shape)) + shape
    return dy.sum(axis=tuple(i for i, n in enumerate(full) if n != dy.shape[i]))


def _everything_kept(dy, shape):
    full = (1,) * (dy.ndim - len(shape)) + shape
    return dy.sum(axis=tuple(i for i, n in enumerate(full) if n != dy.shape[i]), keepdims=True)


def _lined_up_from_the_left(dy, shape):
    full = shape + (1,) * (dy.ndim - len(shape))
    return dy.sum(axis=tuple(i for i, n in enumerate(full) if n != dy.shape[i])).reshape(shape)


unbroadcast = Exercise(
    name="unbroadcast",
    chapter=1,
    difficulty=2,
    minutes=12,
    answer=_unbroadcast,
    cases=_unbroadcast_cases,
    misconceptions=[
        Misconception(
            "You take the mean over the copies. Every copy moves the loss by itself, so what they get adds up: it is the sum.",
            _axes_and(lambda dy, axes: dy.mean(axis=axes, keepdims=True)),
        ),
        Misconception(
            "You take what one copy gets and drop the others. One cell was read many times: add up what all readers get.",
            _axes_and(_first_copy),
        ),
        Misconception(
            "You sum over the axes that were added in front, and not over those that were stretched from length 1.",
            _added_only,
        ),
        Misconception(
            "You sum over the axes that were stretched from length 1, and not over those that were added in front.",
            _stretched_only,
        ),
        Misconception(
            "A stretched axis has length 1 again in the end. The sum has dropped it: keepdims=True, or a reshape to `shape`.",
            _without_keepdims,
        ),
        Misconception(
            "The axes that were added in front are still there, with length 1: the gradient must have exactly `shape`.",
            _everything_kept,
        ),
        Misconception(
            "You add up everything. Only the copies of one entry belong together.",
            lambda dy, shape: np.full(shape, dy.sum()),
        ),
        Misconception(
            "You line the shapes up from the left. Broadcasting lines them up from the right: missing axes are in front.",
            _lined_up_from_the_left,
        ),
    ],
    hints=[
        "Two kinds of axes were copied along: those that `shape` does not have at all, and those in which it has a 1.",
        "dy.ndim - len(shape) axes were added, all in front. Sum over them first; then the axes of both agree.",
        "After dy = dy.sum(axis=tuple(range(added))), sum over the axes i with shape[i] == 1, with keepdims=True.",
    ],
)

# --- split_heads and merge_heads -------------------------------------------------------------------------


def _split_heads(x, h):
    length, d_model = x.shape
    return x.reshape(length, h, d_model // h).transpose(1, 0, 2)


def _split_cases(rng: np.random.Generator) -> Iterator[Case]:
    for length, d_model, h in ((3, 4, 2), (5, 12, 3), (8, 8, 4), (4, 8, 4), (1, 6, 3), (4, 6, 1)):
        name = f"{length} token{'s' if length > 1 else ''} of {d_model} in {h} head{'s' if h > 1 else ''}"
        yield Case(name, (rng.standard_normal((length, d_model)), h))
    yield Case("float32, 6 tokens of 10 in 2 heads", (rng.standard_normal((6, 10)).astype(np.float32), 2))
    yield Case("an x that is a view, 5 tokens of 6 in 2 heads", (rng.standard_normal((6, 5)).T, 2))


split_heads = Exercise(
    name="split_heads",
    chapter=1,
    difficulty=1,
    minutes=6,
    answer=_split_heads,
    cases=_split_cases,
    misconceptions=[
        Misconception(
            "A plain reshape keeps the reading order: your head 0 is the first tokens with all their features. It has to "
            "be all tokens with their first features.",
            lambda x, h: x.reshape(h, x.shape[0], x.shape[1] // h),
        ),
        Misconception(
            "The head is still the second axis. Each token is cut right; bring the heads to the front.",
            lambda x, h: x.reshape(x.shape[0], h, x.shape[1] // h),
        ),
        Misconception(
            "You deal the columns out like cards: head 0 gets the columns 0, h, 2h. It gets the first d_k columns.",
            lambda x, h: x.reshape(x.shape[0], x.shape[1] // h, h).transpose(2, 0, 1),
        ),
        Misconception(
            "Each head lies on its side, (d_k, L). Tokens are rows.",
            lambda x, h: x.reshape(x.shape[0], h, x.shape[1] // h).transpose(1, 2, 0),
        ),
        Misconception(
            "You turn x round and then reshape. Cut the last axis in two first; then move whole axes.",
            lambda x, h: x.T.reshape(h, x.shape[0], x.shape[1] // h),
        ),
        Misconception(
            "You cut the tokens into h groups. Each head has all tokens, and a part of their features.",
            lambda x, h: np.stack(np.split(x, h, axis=0)),
        ),
        Misconception(
            "You take h for the length of a head. It is how many heads there are; the length is d_model / h.",
            lambda x, h: x.reshape(x.shape[0], x.shape[1] // h, h).transpose(1, 0, 2),
        ),
    ],
    hints=[
        "Column c belongs to head c // d_k. Which reshape puts c // d_k and c % d_k on two axes, and moves nothing else?",
        "x.reshape(L, h, d_k) reads the same. Then the axes (L, h, d_k) have to come in the order (h, L, d_k).",
    ],
)


def _merge_heads(z):
    h, length, d_k = z.shape
    return z.transpose(1, 0, 2).reshape(length, h * d_k)


def _merge_cases(rng: np.random.Generator) -> Iterator[Case]:
    for h, length, d_k in ((2, 3, 2), (3, 5, 4), (4, 4, 4), (2, 1, 3), (1, 4, 6)):
        name = f"{h} head{'s' if h > 1 else ''}, {length} token{'s' if length > 1 else ''}, d_k = {d_k}"
        yield Case(name, (rng.standard_normal((h, length, d_k)),))
    yield Case("float32, 2 heads, 6 tokens, d_k = 3", (rng.standard_normal((2, 6, 3)).astype(np.float32),))


merge_heads = Exercise(
    name="merge_heads",
    chapter=1,
    difficulty=1,
    minutes=5,
    answer=_merge_heads,
    cases=_merge_cases,
    misconceptions=[
        Misconception(
            "A plain reshape keeps the reading order: your first row is several tokens of head 0. It has to be one token "
            "of all heads. Transpose first.",
            lambda z: z.reshape(z.shape[1], -1),
        ),
        Misconception(
            "You take the heads in turn, feature by feature. Head 0 goes whole, then head 1.",
            lambda z: z.transpose(1, 2, 0).reshape(z.shape[1], -1),
        ),
        Misconception(
            "The axes are in the right order; the last two have to become one.",
            lambda z: z.transpose(1, 0, 2),
        ),
        Misconception(
            "You put the heads one below the other, and every token appears h times. They go beside each other.",
            lambda z: z.reshape(-1, z.shape[2]),
        ),
        Misconception(
            "You add the heads up. They are put beside each other: mixing them is the work of the next layer.",
            lambda z: z.sum(axis=0),
        ),
        Misconception(
            "You average the heads. They are put beside each other: mixing them is the work of the next layer.",
            lambda z: z.mean(axis=0),
        ),
        Misconception(
            "You swap the wrong two axes: heads and tokens have to change places, and features stay last.",
            lambda z: z.transpose(0, 2, 1).reshape(z.shape[1], -1),
        ),
        Misconception(
            "The result lies on its side: a row for each token.",
            lambda z: z.transpose(0, 2, 1).reshape(-1, z.shape[1]),
        ),
    ],
    hints=[
        "It undoes split_heads: the two steps backwards, in the opposite order.",
        "(h, L, d_k) -> (L, h, d_k) is a transpose; (L, h, d_k) -> (L, h d_k) is a reshape.",
    ],
)

# --- stops_growing ---------------------------------------------------------------------------------------


def _stops_growing(step):
    digits = np.finfo(type(step)).nmant + 1  # with the leading 1, which is not stored
    return float(step) * 2**digits


def _step_cases(rng: np.random.Generator) -> Iterator[Case]:
    for kind, step in (
        (np.float16, 1.0),
        (np.float32, 1.0),
        (np.float64, 1.0),
        (np.float32, 0.5),
        (np.float16, 4.0),
    ):
        yield Case(f"{kind.__name__}({step:g})", (kind(step),))
    exponent = int(rng.integers(-30, -3))
    yield Case(f"float32(2**{exponent})", (np.float32(2.0**exponent),))


def _digits(step):
    return int(np.finfo(type(step)).nmant) + 1


stops_growing = Exercise(
    name="stops_growing",
    chapter=1,
    difficulty=2,
    minutes=12,
    answer=_stops_growing,
    cases=_step_cases,
    misconceptions=[
        Misconception(
            "There the next float is exactly one step further, so the total still grows. You have counted the digits that "
            "are stored: the leading 1 is one more.",
            lambda step: float(step) * 2 ** (_digits(step) - 1),
        ),
        Misconception(
            "You go one doubling too far: the total has stopped at half of that, where the floats are two steps apart and a "
            "half-way sum is rounded back.",
            lambda step: float(step) * 2 ** (_digits(step) + 1),
        ),
        Misconception(
            "That is how many steps it takes. The total is that many times the step.",
            lambda step: 2.0 ** _digits(step),
        ),
        Misconception(
            "That is the first total that the dtype cannot hold. The sum stays at the one before it.",
            lambda step: float(step) * (2 ** _digits(step) + 1),
        ),
        Misconception(
            "You stop one step early: with as many digits as there are, all of them ones, there is room for one more step.",
            lambda step: float(step) * (2 ** _digits(step) - 1),
        ),
        Misconception(
            "That is the largest number of the dtype. The sum stops long before: a small step is lost in a large total.",
            lambda step: float(np.finfo(type(step)).max),
        ),
        Misconception(
            "You have float32's 24 digits for every dtype. np.finfo(type(step)) knows how many this one has.",
            lambda step: float(step) * 2**24,
        ),
        Misconception(
            "You count all bits. Some of them are the sign and the exponent; np.finfo(type(step)).nmant are digits.",
            lambda step: float(step) * 2 ** (8 * type(step)().itemsize),
        ),
    ],
    hints=[
        "Try it in float16 with a loop: it ends soon. Then float32 with np.cumsum. What do the two results have in common?",
        "The total stops where the next float is two steps away: half-way between two floats, the sum is rounded to the "
        "even one, which is the total itself.",
        "A float has np.finfo(type(step)).nmant stored digits and a leading 1.",
    ],
)

# --- right_by_luck ---------------------------------------------------------------------------------------


def _right_by_luck(L, h, d_k):
    gaps = math.gcd(h - 1, L - 1)  # between the solutions of t (h - 1) = i (L - 1)
    return (gaps + 1) * d_k


def _luck_cases(rng: np.random.Generator) -> Iterator[Case]:
    for L, h, d_k in ((1024, 8, 64), (8, 8, 64), (3, 2, 2), (13, 9, 5), (1, 5, 3), (9, 1, 4)):
        yield Case(f"L = {L}, h = {h}, d_k = {d_k}", (L, h, d_k))
    g, a, d_k = (int(n) for n in rng.integers(2, 12, 3))
    L, h = 12 * g + 1, a * g + 1
    yield Case(f"L = {L}, h = {h}, d_k = {d_k}", (L, h, d_k))
    yield Case("L = 2**50 + 1, h = 17, d_k = 64", (2**50 + 1, 17, 64))


right_by_luck = Exercise(
    name="right_by_luck",
    chapter=1,
    difficulty=3,
    minutes=20,
    answer=_right_by_luck,
    cases=_luck_cases,
    misconceptions=[
        Misconception(
            "Two rows, the first and the last, are always right. But t (h - 1) = i (L - 1) can have more solutions: try "
            "L = 8 and h = 8.",
            lambda L, h, d_k: 2 * d_k,
        ),
        Misconception(
            "Only the first row? The last token of the last head is at the end of memory in both ways, too.",
            lambda L, h, d_k: d_k,
        ),
        Misconception(
            "That is how many rows are right. Each row has d_k entries.",
            lambda L, h, d_k: math.gcd(h - 1, L - 1) + 1,
        ),
        Misconception(
            "One row is missing: between the first solution and the last there are gcd(h - 1, L - 1) gaps, and so one "
            "solution more than gaps.",
            lambda L, h, d_k: math.gcd(h - 1, L - 1) * d_k,
        ),
        Misconception(
            "You take the common divisor of h and L. In t (h - 1) = i (L - 1) stand h - 1 and L - 1.",
            lambda L, h, d_k: (math.gcd(h, L) + 1) * d_k,
        ),
        Misconception(
            "You take the common divisor of h and L. In t (h - 1) = i (L - 1) stand h - 1 and L - 1; and it counts the "
            "gaps between solutions.",
            lambda L, h, d_k: math.gcd(h, L) * d_k,
        ),
        Misconception(
            "That is an h-th of all entries, as if a right place were a matter of chance. Ask which pairs solve "
            "t (h - 1) = i (L - 1).",
            lambda L, h, d_k: L * d_k,
        ),
        Misconception(
            "That is the share of the right entries: their number is asked for.",
            lambda L, h, d_k: (math.gcd(h - 1, L - 1) + 1) / (L * h),
        ),
    ],
    hints=[
        "The row of head i and token t is right if i + h t = L i + t, that is t (h - 1) = i (L - 1). Count the pairs (i, t) "
        "with 0 ≤ i < h and 0 ≤ t < L.",
        "All solutions lie on a line from (0, 0) to (h - 1, L - 1). How many whole points are on it? Draw 3 by 5 and 4 by 6.",
        "From one point to the next, i goes on by (h - 1) / g and t by (L - 1) / g, with g their greatest common divisor.",
    ],
)
