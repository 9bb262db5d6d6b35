"""The pictures of chapter `arrays` show the numbers that are there, where they are."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.course.chapters.arrays import broadcast_frames, token_to_heads

pytestmark = pytest.mark.no_arrays


X = np.array([[1, 2, 0, 4], [3, 5, 1, 0]])
W = np.array([[1, 7, 0, 2], [0, 1, 1, 0], [2, 0, 3, 1], [1, 0, 0, 6]])


def test_token_to_heads_needs_heads_that_fit():
    with pytest.raises(ValueError, match="3 heads do not divide 4 columns"):
        token_to_heads(X, W, 3, ("a", "b"), 0, 0)


COLUMN, ROW, DY = np.array([[10], [20]]), np.array([1, 2, 3]), np.array([[1, 0, 2], [4, 3, 0]])


def test_broadcast_frames_need_shapes_that_fit():
    with pytest.raises(
        ValueError, match=r"dy of shape \(2, 3\) needs \(2, 1\) and \(3,\), got \(2,\) and \(3,\)"
    ):
        broadcast_frames(np.array([10, 20]), ROW, DY)
