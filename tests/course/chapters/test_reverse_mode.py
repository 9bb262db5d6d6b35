"""The pictures of chapter `reverse_mode`, what it reads from the library's graph, and the table of every operation."""

from __future__ import annotations

import numpy as np

from bert_course.chapters.reverse_mode import every_operation
from minigrad import ops


def test_every_operation_is_there():
    assert set(every_operation(np.random.default_rng(0))) == set(ops.__all__) - {"composed", "fused"}
