"""Checks of the exercises: `check.softmax(softmax)`, `check.softmax.hint()`, `check.progress()`."""

# ruff: noqa: I001 - the order of the chapters is the order of `progress()`

from minigrad.course.check.exercise import progress
from minigrad.course.check.reverse_mode import (
    gradients,
    matmul_backward,
    numerical_gradient,
    variance_backward,
)
from minigrad.course.check.one_head import attend, score_scale, softmax, softmax_backward

__all__ = [
    "attend",
    "gradients",
    "matmul_backward",
    "numerical_gradient",
    "progress",
    "score_scale",
    "softmax",
    "softmax_backward",
    "variance_backward",
]
