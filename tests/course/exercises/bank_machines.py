"""Answers to the exercises of `machines` as learners write them: wrong ones, what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

RIGHT = {}
WRONG = {}

# --- whole_loss ------------------------------------------------------------------------------------------


def by_average(means, counts):
    return np.average(np.nan_to_num(means), weights=counts)


RIGHT["whole_loss"] = [by_average]

# --- part_to_send ----------------------------------------------------------------------------------------


def from_the_end(rank, step, n):
    """In the last step, n - 2, process r sends part r + 1; a step earlier the part after that."""
    return (rank + 1 + (n - 2 - step)) % n


RIGHT["part_to_send"] = [from_the_end]

# --- summed_and_clipped ----------------------------------------------------------------------------------


def with_hypot(shares, max_norm):
    total = list(shares[0])
    for share in shares[1:]:
        total = [a + b for a, b in zip(total, share, strict=True)]
    norm = math.hypot(*(float(np.linalg.norm(array)) for array in total))
    if norm <= max_norm:
        return total
    return [array / norm * max_norm for array in total]


RIGHT["summed_and_clipped"] = [with_hypot]

# --- largest_world ---------------------------------------------------------------------------------------


def by_floor(flops, rate, grad_bytes, bandwidth):
    seconds, moved = flops / rate, grad_bytes / bandwidth
    return math.floor(seconds / moved / 2 + 1)


def rounded_up(flops, rate, grad_bytes, bandwidth):
    return math.ceil(1 + flops / rate / (2 * grad_bytes / bandwidth))


RIGHT["largest_world"] = [by_floor]
WRONG["largest_world"] = [(rounded_up, "[round-down]")]
