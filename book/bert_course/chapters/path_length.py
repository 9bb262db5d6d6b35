"""A plain recurrent network and one attention head, and how many products lie between two words: chapter `scaling`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_course.common.graph import nodes_before
from minigrad import ops
from minigrad.tensor import Tensor


def recur(words: Sequence[Tensor], W_x: Tensor, W_h: Tensor) -> list[Tensor]:
    """A plain recurrent network: h_t = tanh(x_t W_x + h_{t-1} W_h). words: (1, d) each -> states, (1, d) each."""
    states = [ops.tanh(words[0] @ W_x)]
    for word in words[1:]:
        states.append(ops.tanh(word @ W_x + states[-1] @ W_h))
    return states


def attend(words: Sequence[Tensor], W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """One head of attention. words: L of (1, d) each -> (L, d)."""
    x = ops.concat(list(words), axis=0)  # (L, d)
    scores = (x @ W_q) @ (x @ W_k).transpose() * (1 / math.sqrt(x.shape[-1]))  # (L, L)
    return ops.softmax(scores) @ (x @ W_v)  # (L, d)


def path_lengths(output: Tensor, word: Tensor) -> tuple[int, int]:
    """Matrix products on the shortest and on the longest way through the graph from `word` to `output`.

    Raises ValueError where there is no way.
    """
    ways: dict[Any, tuple[int, int]] = {word: (0, 0)}
    nodes = nodes_before(output)
    for node in nodes:
        before = [ways[parent] for parent in node.parents or () if parent in ways]
        if before:
            product = int(node.op == "matmul")
            ways[node] = min(w[0] for w in before) + product, max(w[1] for w in before) + product
    if nodes[-1] not in ways:
        raise ValueError("no way leads from this word to this output")
    return ways[nodes[-1]]


def orthogonal(d: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix (d, d) that changes no vector's length, at random."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))
