"""Checks of the exercises: `check.softmax(softmax)`, `check.softmax.hint()`, `check.progress()`."""

from minigrad.course.check.exercise import progress
from minigrad.course.check.one_head import attend, score_scale, softmax, softmax_backward

__all__ = ["attend", "progress", "score_scale", "softmax", "softmax_backward"]
