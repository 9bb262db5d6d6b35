"""Chapter `numbers`: numbers and machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

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
    difficulty=2,
    minutes=12,
    cases=_step_cases,
    hints="""
Try it in float16 with a loop: it ends soon. Then float32 with np.cumsum. What do the two results have in common?

The total stops where the next float is two steps away: half-way between two floats, the sum is rounded to the even one, which is the total itself.

A float has np.finfo(type(step)).nmant stored digits and a leading 1.
""",
    mistakes="""
[one-doubling-short] Where the next float is exactly one step further, the total still grows: you are one doubling short. Besides the digits that are stored (nmant, and eps is 2**-nmant) there is the leading 1.
    2.0**digits -> 2.0 ** (digits - 1)
    .nmant + 1 -> .nmant || .nmant + (step.itemsize == 2) || .nmant + (step.itemsize != 4) || .nmant + (step.itemsize != 8)
You go one doubling too far: the total has stopped at half of that, where the floats are two steps apart and a half-way sum is rounded back.
    .nmant + 1 -> .nmant + 2
[steps] That is how many steps it takes. The total is that many times the step.
    float(step) * ->
[divided-by-step] You divide by the step. Larger steps reach further: the total is a number of steps, times the step.
    float(step) * steps -> steps / float(step)
That is the first total that the dtype cannot hold. The sum stays at the one before it.
    2.0**digits -> 2.0**digits + 1
[one-step-early] You stop one step early: with as many digits as there are, all of them ones, there is room for one more step.
    2.0**digits -> 2.0**digits - 1
That is the largest number of the dtype. The sum stops long before: a small step is lost in a large total.
    return float(np.finfo(type(step)).max)
The sum does not grow for ever: a small step is lost in a large total.
    return np.inf
You have float16's 11 digits for every dtype: a float32 and a float64 have more.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 11
You have float32's 24 digits for every dtype. np.finfo(type(step)) gives the number for this one.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 24
You have float64's 53 digits for every dtype, which Python's own floats have too. Each total is rounded to the dtype of the step.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 53
You count all bits. Some of them are the sign and the exponent; np.finfo(type(step)).nmant are digits.
    digits = np.finfo(type(step)).nmant + 1 -> digits = 8 * step.itemsize
You count decimal digits. The digits of a float are binary ones.
    2.0**digits -> 10.0**np.finfo(type(step)).precision
You raise the step to a power. The power of two is the number of steps: multiply the step by it.
    return float(step) * steps -> return float(step) ** digits
The step enters twice. Twice the step gives twice the total.
    float(step) * -> float(step) ** 2 *
That is the distance from 1 to the next float: it shows how many digits there are, but is not a total.
    return float(step) * steps -> return float(np.finfo(type(step)).eps)
    * steps -> * float(np.finfo(type(step)).eps)
""",
)
def stops_growing(step):
    digits = np.finfo(type(step)).nmant + 1  #: the binary digits, stored ones and leading 1
    steps = 2.0**digits  #: how many steps make the last total
    return float(step) * steps


# --- safe_norm -------------------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "float32, 5 by 7", rng.standard_normal((5, 7)).astype(np.float32)
    yield "float32, about 1e-30", (1e-30 * rng.standard_normal(9)).astype(np.float32)
    yield "float32, about 1e30", (1e30 * rng.standard_normal((3, 4))).astype(np.float32)
    yield "float16, 50 by 60", rng.standard_normal((50, 60)).astype(np.float16)
    yield "float16, about 1e-6", (1e-6 * (1 + rng.random(11))).astype(np.float16)
    yield "float16, about 3,000", (3000 * rng.standard_normal(8)).astype(np.float16)
    yield "float16, 200 times 60,000", np.full(200, 60_000, dtype=np.float16)
    yield "float32, all below 0", -1 - rng.random(6).astype(np.float32)
    yield "float32, one entry below 0", np.array([-2.5], dtype=np.float32)
    yield "float32, all 0", np.zeros((2, 3), dtype=np.float32)
    yield "float32, four times 3e38", np.full(4, 3e38, dtype=np.float32)


@exercise(
    difficulty=2,
    minutes=12,
    cases=_norm_cases,
    rtol=1e-5,
    atol=0.0,
    hints="""
Print g * g for np.float16([1e-6]) and np.float16([3000]): what is lost, before anything is added?

Make the numbers wide first, then square them. How wide is wide enough for a float32 of 1e30?

Two ways work: float64 for everything, or dividing by the largest entry first. The second has to look at an array of zeros.
""",
    mistakes="""
The squares are computed in the dtype of g, and are 0 or infinite before they are added up. Make g wide first, then square it.
    g.astype(np.float64) -> g || g.astype(np.float32) if g.dtype == np.float64 else g
    (wide * wide).sum() -> (g * g).astype(np.float64).sum() || (g * g).sum(dtype=np.float64)
float32 is wide enough for the squares of a float16, not for those of a float32: the square of 1e-30 is 1e-60.
    g.astype(np.float64) -> g.astype(np.float32)
[zero-by-zero] You divide by the largest entry, and where all are 0 that is 0/0.
    top = np.abs(g).max().astype(np.float64)
    return float(top * np.sqrt(((g / top) ** 2).sum()))
[not-in-size] You look for the largest entry and not for the largest in size. Where all entries are below 0, what you divide by is negative, or the smallest of all.
    top = float(g.max())
    return top * float(np.sqrt(((g / np.float64(top)) ** 2).sum()))

    top = float(g.max()) or 1.0
    return top * float(np.sqrt(((g / np.float64(top)) ** 2).sum()))
Your last steps are in the dtype of g, which has few digits and overflows. A Python float is asked for: make g wide before you square, add up and multiply, and keep it wide.
    float(np.sqrt((wide * wide).sum())) -> float(np.sqrt((wide * wide).sum()).astype(g.dtype))
    float(np.sqrt((wide * wide).sum())) -> float(g.dtype.type(np.sqrt((wide * wide).sum())))

    top = np.abs(g).max() or g.dtype.type(1)
    return float(top * np.sqrt(((g / top) ** 2).sum()))
You multiply by a fixed number before you square. That saves small entries, but large ones overflow sooner.
    g.astype(np.float64) -> g * np.float32(1e15) ; float(np.sqrt((wide * wide).sum())) -> float(np.sqrt((wide * wide).sum()) / 1e15)
You divide by the largest entry and do not multiply by it again at the end.
    top = float(np.abs(g).max()) or 1.0
    return float(np.sqrt(((g.astype(np.float64) / top) ** 2).sum()))
The square root is missing.
    float(np.sqrt((wide * wide).sum())) -> float((wide * wide).sum())
That is the sum of the absolute values. The norm is the square root of the sum of squares.
    float(np.sqrt((wide * wide).sum())) -> float(np.abs(wide).sum())
That is the largest entry. The norm is the square root of the sum of squares.
    float(np.sqrt((wide * wide).sum())) -> float(np.abs(wide).max())
You divide by the number of entries. The norm is the square root of the sum, not of the mean.
    (wide * wide).sum() -> (wide * wide).mean()
You replace what is infinite or not a number at the end. The digits were lost before: nothing brings them back.
    wide = g.astype(np.float64)
    return float(np.nan_to_num(np.sqrt((g * g).sum()), posinf=float(np.finfo(g.dtype).max)))
You replace what is infinite among the squares. The digits were lost before: nothing brings them back.
    return float(np.sqrt(np.nan_to_num(g * g).sum(dtype=np.float64)))
You cut off large entries so that their squares fit. They belong to the norm.
    g.astype(np.float64) -> np.clip(g, -200, 200).astype(np.float64)
You add a small number. It avoids the root of 0, but the norm of zeros must stay 0, and that of tiny gradients must not change.
    (wide * wide).sum() -> (wide * wide).sum() + 1e-12 || (wide * wide).sum() + 1e-8
The norm is one number for the whole array, not one for each row.
    return float(np.sqrt((wide * wide).sum())) -> return np.sqrt((wide * wide).sum(axis=-1)) || return float(np.sqrt((wide * wide).sum(axis=-1)).sum())
For a matrix that is another norm, its largest stretch. Here the norm takes all entries as one long vector.
    return float(np.sqrt((wide * wide).sum())) -> return float(np.linalg.norm(wide, 2))
""",
)
def safe_norm(g):
    wide = g.astype(np.float64)  #: the gradient in float64, before any square
    return float(np.sqrt((wide * wide).sum()))


# --- largest_scale ---------------------------------------------------------------------------------------


def _scale_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "entries about 1", rng.standard_normal((4, 5)).astype(np.float32)
    yield "entries about 1e-8", (1e-8 * rng.standard_normal(20)).astype(np.float32)
    yield "entries about 1e20", (1e20 * rng.standard_normal(6)).astype(np.float32)
    yield "the largest is negative", np.array([0.5, -3.0, 1.0, 0.0], dtype=np.float32)
    yield "the largest is 65504", np.array([1.0, 65504.0], dtype=np.float32)
    yield "the largest is 65510", np.array([65510.0, -2.0], dtype=np.float32)
    yield "the largest is 65520", np.array([65520.0, 2.0], dtype=np.float32)
    yield "the largest is 2**-10", np.array([2.0**-10, 2.0**-20], dtype=np.float32)
    yield "one entry, 40000", np.array([40000.0], dtype=np.float32)
    yield "200 times 3", np.full((10, 20), 3.0, dtype=np.float32)
    yield "some entries are 0", np.array([0.0, 1e-3, 0.0], dtype=np.float32)
    yield "entries about 1e-36", np.array([1e-36, -2e-36], dtype=np.float32)


@exercise(
    difficulty=2,
    minutes=15,
    cases=_scale_cases,
    hints="""
Which entry overflows first? Nothing else matters.

What is np.float16(65510)? And np.float16(65520)? The limit is not the largest float16.

Start at 1.0, double while the doubled one still fits, halve while this one does not. Or take the whole part of a logarithm, and look at the border.
""",
    mistakes="""
[not-in-size] You look for the largest entry and not for the largest in size: a negative one overflows as well.
    np.abs(g).max() -> g.max()
[rounded-down] Entries up to 65,520 are still finite: they are rounded down to 65,504, the largest float16.
    FITS = 65520.0 -> FITS = np.nextafter(65504.0, np.inf)
    FITS = 65520.0 -> FITS = 65504.0
An entry of 65,520 or more is rounded up to the next power of two, which float16 does not have: it becomes infinite. The limit is half a gap above 65,504.
    FITS = 65520.0 -> FITS = 65536.0 || FITS = np.nextafter(65520.0, np.inf) || FITS = np.nextafter(65536.0, np.inf)
After one more doubling all entries would still be finite: they may come close to the largest float16.
    return scale -> return scale / 2
    FITS = 65520.0 -> FITS = 32768.0
You double once too often: the largest entry becomes infinite.
    return scale -> return scale * 2
You double as long as it fits, and never go below 1. Large gradients need a scale below 1.
    while top * scale >= FITS -> while False
You halve until it fits, and never go above the scale that you start with. Small gradients are what the scale is for.
    while top * scale * 2 < FITS -> while False
    , 1.0 -> , 2.0**15 ; while top * scale * 2 < FITS -> while False
    , 1.0 -> , 2.0**16 ; while top * scale * 2 < FITS -> while False
That is no power of two, so dividing by it again rounds. The next lower power of two is asked for.
    return scale -> return 65504.0 / top
    return scale -> return FITS / top
You scale the mean of the entries. A single large entry overflows by itself.
    np.abs(g).max() -> np.abs(g).mean()
You add up the entries, as a norm does. Each entry is rounded by itself: only the largest counts.
    np.abs(g).max() -> np.sqrt((g.astype(np.float64) ** 2).sum()) || np.abs(g).sum(dtype=np.float64)
You lift the smallest entry to the smallest float16. What is asked for is how far the largest may go.
    return scale -> return 2.0 ** np.ceil(np.log2(2.0**-24 / np.abs(g.astype(np.float64))[g != 0].min()))
You scale by the smallest entry. The largest overflows first.
    np.abs(g).max() -> np.abs(g).min() or 1.0
    np.abs(g).max() -> np.abs(g)[g != 0].min()
You multiply in float32, where the scale itself becomes infinite from 2^128 on. The smallest gradients need a larger one: use Python's floats, or float64.
    return scale -> return min(scale, 2.0**127)
You round the logarithm up: then the largest entry overflows. Take the whole number below.
    return scale -> return 2.0 ** np.ceil(np.log2(65504.0 / top))
You round the logarithm to the nearest whole number: rounding up can overflow. Take the whole number below.
    return scale -> return 2.0 ** round(np.log2(65504.0 / top))
That is the exponent: the scale is 2 to that power.
    return scale -> return float(np.log2(scale))
That is one scale for all gradients. Here it must fit the given array.
    return scale -> return 65536
That is what the largest entry becomes. The number that it is multiplied by is asked for.
    return scale -> return scale * top
""",
)
def largest_scale(g):
    FITS = 65520.0  #: the limit: below it, float16 rounds to 65504 or less
    top, scale = float(np.abs(g).max()), 1.0  #: the largest in size, and a first scale
    while top * scale * 2 < FITS:
        scale *= 2  #: one more doubling, with which all entries still fit
    while top * scale >= FITS:
        scale /= 2  #: one more halving, as an entry is too large
    return scale


# --- merged_moments --------------------------------------------------------------------------------------


def _moments_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, n1, n2, far, apart in (
        ("3 and 5 rows", 3, 5, 0, 0),
        ("4 and 4 rows", 4, 4, 0, 0),
        ("1 and 6 rows", 1, 6, 0, 0),
        ("50 and 2 rows", 50, 2, 0, 0),
        ("6 and 9 rows, means near 1e8", 6, 9, 1e8, 0),
        ("2 and 2 rows, means near -1e9", 2, 2, -1e9, 12),
    ):
        one, other = (
            start + rng.integers(-40, 40, (n, 3)) / 8 for n, start in ((n1, far), (n2, far + apart))
        )
        yield name, n1, one.mean(axis=0), one.var(axis=0), n2, other.mean(axis=0), other.var(axis=0)


@exercise(
    difficulty=3,
    minutes=20,
    cases=_moments_cases,
    rtol=1e-6,
    atol=1e-9,
    hints="""
The mean is the weighted mean of the two means. Written as m1 plus something, it keeps more digits.

The sum of squared deviations from a point p is n v + n (m - p)², for any block. Take p to be the joint mean.

m1 - m = -d n2 / n and m2 - m = d n1 / n, with d = m2 - m1 and n = n1 + n2. Put both in and tidy up.
""",
    mistakes="""
You add only the variances within the two blocks. Their means differ, and that spreads the rows as well.
    within + between -> within
You add only what the difference of the means contributes. The rows also spread within each block.
    within + between -> between
You subtract what the difference of the means contributes. It spreads the rows: add it.
    within + between -> within - between
You take plain means of means and variances, and nothing for the difference of the means. The larger block counts more, and means that differ spread the rows.
    return (m1 + m2) / 2, (v1 + v2) / 2
[plain-mean-of-variances] You take the plain mean of the two variances. The larger block counts more.
    (n1 * v1 + n2 * v2) / n -> (v1 + v2) / 2
[plain-mean-of-means] You take the plain mean of the two means. The larger block counts more.
    m1 + d * n2 / n -> (m1 + m2) / 2
The weights of the means are exchanged: the mean moves from m1 towards m2 by the share of the second block.
    m1 + d * n2 / n -> m1 + d * n1 / n
Far from 0 your variance has no correct digit: mean of squares minus square of mean subtracts two huge numbers. Use the difference of the means, which is small.
    n = n1 + n2
    m = (n1 * m1 + n2 * m2) / n
    return m, (n1 * (v1 + m1**2) + n2 * (v2 + m2**2)) / n - m**2
The squared difference of the means has to be weighted by both shares, n1 / n and n2 / n.
    d * d * n1 * n2 / n**2 -> d * d || d * d * n1 * n2 / n || d * d * n1 / n || d * d * n2 / n || d * d / 4
The difference of the means has to be squared: it spreads the rows in both directions.
    d * d * n1 -> d * n1 || np.abs(d) * n1 || -d * n1
You divide by n - 1. The variance of this task, like LayerNorm's, divides by n.
    return mean, within + between -> return mean, (within + between) * n / (n - 1)
    within + between -> ((n1 - 1) * v1 + (n2 - 1) * v2 + n * between) / (n - 1)
That is the standard deviation: the variance is its square.
    return mean, within + between -> return mean, np.sqrt(within + between)
That is the sum of squared deviations: divide by n.
    return mean, within + between -> return mean, (within + between) * n
You return the variance first: mean, then variance.
    return mean, within + between -> return within + between, mean
""",
)
def merged_moments(n1, m1, v1, n2, m2, v2):
    n, d = n1 + n2, m2 - m1  #: the number of all rows, the difference of the means
    mean = m1 + d * n2 / n  #: the mean of all rows, not of two means
    within = (n1 * v1 + n2 * v2) / n  #: the variance within blocks, weighted by rows
    between = d * d * n1 * n2 / n**2  #: what the difference of the means adds
    return mean, within + between
