"""Checks of the exercises: `check.softmax(softmax)`, `check.softmax.hint()`, `check.progress()`."""

# ruff: noqa: I001 - the order of the chapters is the order of `progress()`

from minigrad.course.check.exercise import progress
from minigrad.course.check.arrays import (
    merge_heads,
    right_by_luck,
    split_heads,
    stops_growing,
    unbroadcast,
)
from minigrad.course.check.reverse_mode import (
    gradients,
    matmul_backward,
    numerical_gradient,
    variance_backward,
)
from minigrad.course.check.modules import adam_step, clip_gradients, dropout, learning_rate
from minigrad.course.check.one_head import attend, score_scale, softmax, softmax_backward
from minigrad.course.check.fast import (
    add_up,
    from_which_length,
    product_bound,
    scores_without_copies,
    softmax_gradient_into,
)

__all__ = [
    "adam_step",
    "add_up",
    "attend",
    "clip_gradients",
    "dropout",
    "from_which_length",
    "gradients",
    "learning_rate",
    "matmul_backward",
    "merge_heads",
    "numerical_gradient",
    "product_bound",
    "progress",
    "right_by_luck",
    "score_scale",
    "scores_without_copies",
    "softmax",
    "softmax_backward",
    "softmax_gradient_into",
    "split_heads",
    "stops_growing",
    "unbroadcast",
    "variance_backward",
]
