"""Rotary positions (Su et al. 2021): queries and keys are rotated by angles that grow with their position."""

from __future__ import annotations

import functools

import numpy as np

from minigrad.seq2seq.transformer import sinusoids
from minigrad.tensor import Tensor


def rotated(x: Tensor) -> Tensor:
    """Each pair of entries (2i, 2i + 1) of x (…, L, d), rotated by its angle at the row's position.

    The angle at position p is p / 10000^(2i / d), in the direction of the paper, whose vectors are columns.
    """
    length, d = x.shape[-2:]
    cosine, sine, across = (Tensor(table, dtype=x.dtype).to(x.backend) for table in _tables(length, d))
    return x * cosine + (x @ across) * sine


@functools.cache
def _tables(length: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines and sines (L, d), each twice, and the product (d, d) that makes (a, b) to (-b, a)."""
    waves = sinusoids(length, d)  # (L, d)
    sine, cosine = (waves[:, i::2].repeat(2, axis=1) for i in (0, 1))  # (L, d)
    return cosine, sine, np.kron(np.eye(d // 2), [[0, 1], [-1, 0]])
