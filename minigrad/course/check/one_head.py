"""Chapter 7: one attention head."""

from __future__ import annotations

import math  # noqa: F401
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
    hints="""
Three steps: shift, exponential, divide. The first and the last need one number for each row.

x.max(axis=-1, keepdims=True) has shape (..., 1): one number a row, in the right place to be broadcast.

With e = np.exp(x - x.max(axis=-1, keepdims=True)), the answer is e over its sum along the last axis.
""",
    mistakes="""
Large scores overflow: e to the 1000 is not a float. Softmax does not change when a row's largest entry is subtracted from the row first.
    x - x.max(axis=-1, keepdims=True) -> x

    return np.exp(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))

Each column sums to 1, not each row: over which axis did you normalise? A row holds the scores of one query, and its weights share out 1.
    axis=-1 -> axis=-2
    axis=-1 -> axis=0
    e.sum(axis=-1 -> e.sum(axis=-2
    e.sum(axis=-1 -> e.sum(axis=0

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

You subtract each row's smallest entry: the others lie above 0 then, and can still overflow. Subtract the largest.
    x.max( -> x.min(

The rows do not sum to 1: divide by each row's sum.
    return e / e.sum(axis=-1, keepdims=True) -> return e

You divide the scores themselves by their sum: the largest need not get the largest share. Take e to the power of the scores first.
    np.exp(x - x.max(axis=-1, keepdims=True)) -> x
    np.exp(x - x.max(axis=-1, keepdims=True)) -> x - x.max(axis=-1, keepdims=True)

That is the sigmoid of each score by itself: the entries of a row have to share out 1.
    return 1 / (1 + np.exp(-x))

The row sums have lost their axis: without keepdims=True, NumPy lines them up with the columns.
    e.sum(axis=-1, keepdims=True) -> e.sum(axis=-1)

Row maximum and row sum have lost their axis: without keepdims=True, NumPy lines them up with the columns.
    axis=-1, keepdims=True -> axis=-1

That is the logarithm of softmax: the weights themselves are asked for.
    return e / e.sum(axis=-1, keepdims=True) -> return x - x.max(axis=-1, keepdims=True) - np.log(e.sum(axis=-1, keepdims=True))

A small number added to the denominator makes every row sum to less than 1. After the shift the sum is at least 1 already: nothing to protect.
    e.sum(axis=-1, keepdims=True) -> (e.sum(axis=-1, keepdims=True) + 1e-5)
    e.sum(axis=-1, keepdims=True) -> (e.sum(axis=-1, keepdims=True) + 1e-6)
    e.sum(axis=-1, keepdims=True) -> (e.sum(axis=-1, keepdims=True) + 1e-7)
    e.sum(axis=-1, keepdims=True) -> (e.sum(axis=-1, keepdims=True) + 1e-8)
""",
)
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))  # the largest exponent is 0: nothing overflows
    return e / e.sum(axis=-1, keepdims=True)
