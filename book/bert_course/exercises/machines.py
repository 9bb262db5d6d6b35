"""Chapter `machines`: the loss of a batch that is shared out, a ring's order, clipping, how many GPUs a batch can feed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- whole_loss ------------------------------------------------------------------------------------------


def _share_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "three tokens and one", np.array([2.0, 6.0]), np.array([3, 1])
    yield "equal shares", np.array([1.0, 2.0, 4.0]), np.array([5, 5, 5])
    yield "one process", np.array([3.5]), np.array([7])
    yield "a process without a chosen token", np.array([1.0, np.nan, 3.0]), np.array([4, 0, 2])
    yield "a process that is certain of its tokens", np.array([0.0, 2.0]), np.array([6, 2])
    size = int(rng.integers(4, 9))
    yield "random shares", rng.uniform(0.5, 9, size), rng.integers(1, 40, size)


@exercise(
    difficulty=1,
    minutes=10,
    cases=_share_cases,
    hints="""
What is the sum of the losses of a process's tokens, if you know their mean and their number?

The loss of the batch is the sum over all tokens, divided by the number of all tokens.

A process without a chosen token has no mean: 0 tokens, 0 / 0. It adds nothing to the sum, so leave it out.
""",
    mistakes="""
That is the mean of the means. A token of a process with few tokens counts too much in it.
    return sum(m / M * mean for mean, m in zip(means, counts, strict=True) if m > 0) -> return sum(means) / len(means)
    m / M * mean for -> mean / sum(c > 0 for c in counts) for
A process without a chosen token has the mean NaN, and 0 times NaN is NaN. Leave this process out.
    strict=True) if m > 0) -> strict=True))
That is the sum over all tokens. Divide it by their number.
    m / M * mean -> m * mean
You divide by the number of processes. The mean is over tokens.
    M = sum(counts) -> M = len(counts)
You divide by the largest number of tokens. The mean is over all tokens.
    M = sum(counts) -> M = max(counts)
The weights are upside down: a process with more tokens counts more.
    m / M * mean -> M / m * mean || 1 / m * mean || 1 / m / sum(1 / c for c in counts if c) * mean
That adds up the means without weights.
    m / M * mean -> mean
You weight each mean by the square of its share.
    m / M * mean -> (m / M) ** 2 * mean
That is too large by a factor of the number of processes. This factor belongs to a library that divides the sum by their number.
    m / M * mean -> len(counts) * m / M * mean
A process with one chosen token counts as well. Only one without any has no mean.
    if m > 0) -> if m > 1)
You leave out processes by their means. A mean of 0 is a process that is certain of its tokens: the counts show which processes have any.
    if m > 0) -> if mean > 0) ; M = sum(counts) -> M = sum(m for mean, m in zip(means, counts, strict=True) if mean > 0)
You divide by the number of processes as well. The weights sum to 1 already, so add the weighted means up.
    if m > 0) -> if m > 0) / len(means)
""",
)
def whole_loss(means, counts):
    M = sum(counts)  #: the number of all chosen tokens
    return sum(m / M * mean for mean, m in zip(means, counts, strict=True) if m > 0)


# --- part_to_send ----------------------------------------------------------------------------------------


def _ring_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "three processes, process 0, step 0", 0, 0, 3
    yield "three processes, process 0, step 1", 0, 1, 3
    yield "two processes, process 1", 1, 0, 2
    yield "four processes, the last step of process 2", 2, 2, 4
    yield "eight processes, step 1 of process 5", 5, 1, 8
    n = int(rng.integers(5, 12))
    yield f"{n} processes, the first", 0, int(rng.integers(0, n - 1)), n
    yield f"{n} processes, the last", n - 1, n - 2, n
    yield f"{n} processes, one of them", int(rng.integers(1, n)), int(rng.integers(0, n - 1)), n


@exercise(
    difficulty=2,
    minutes=20,
    cases=_ring_cases,
    hints="""
Begin at the end: in which step does the sum of part r come to process r, and from which process?

In step n − 2, process r − 1 sends part r. So process r sends part r + 1 in that step.

What a process sends in step s + 1 is what came to it in step s. So from step to step, a process goes one part back. (r + 1) with n − 2 − s parts more is r − s − 1, up to a multiple of n.
""",
    mistakes="""
That is the order of the page. There, process r has the sum of part r + 1 in the end; here it should have that of part r.
    rank - step - 1 -> rank - step
Process r would have the sum of part r + 2 in the end. Which part does it send first?
    rank - step - 1 -> rank - step + 1
Process r would have the sum of part r − 1 in the end. In which step does the sum of part r come to it?
    rank - step - 1 -> rank - step - 2
The part before part 0 is the last one, n − 1.
    (rank - step - 1) % n -> max(rank - step - 1, 0)
A process cannot send the next part in the next step: it sends on what has come to it, which is one part further back.
    rank - step - 1 -> rank + step - 1 || rank + step || rank + step + 1
All processes send the same part at once. Each part should be on its way from another process.
    rank - step - 1 -> -step - 1 || step || step + 1
A process sends the same part in each step, so no sum grows beyond two summands.
    rank - step - 1 -> rank - 1 || rank || rank + 1
The parts are numbered from 0 to n − 1: take the remainder of the division by n.
    (rank - step - 1) % n -> rank - step - 1
The remainder is of the division by n, the number of processes and parts.
    % n -> % (n - 1)
""",
)
def part_to_send(rank, step, n):
    return (rank - step - 1) % n


# --- summed_and_clipped ----------------------------------------------------------------------------------


def _clip_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def shares(size: int, scale: float, dtype: type = np.float64) -> list[list[np.ndarray]]:
        shapes = [(3, 5), (5,), (2, 2)]
        return [[(scale * rng.standard_normal(s)).astype(dtype) for s in shapes] for _ in range(size)]

    yield "two processes, a sum that is too long", shares(2, 3.0), 1.0
    yield "four processes, a sum that is short enough", shares(4, 0.01), 1.0
    one = shares(1, 5.0)[0]
    opposite = [[-0.9 * array for array in one], one]
    yield "two long gradients that nearly cancel", opposite, 5.0
    yield "short shares with a long sum", [[0.3 * array for array in one] for _ in range(6)], 10.0
    yield "no gradient at all", [[np.zeros((2, 3)), np.zeros(3)] for _ in range(3)], 1.0
    yield "three processes, float32", shares(3, 2.0, np.float32), 2.5


@exercise(
    difficulty=2,
    minutes=20,
    cases=_clip_cases,
    rtol=1e-5,
    hints="""
What would one process clip, if it computed the whole batch? The gradient of the whole batch.

First add up, over all processes, for each parameter. Then take one norm, over all entries of all parameters.

Two long gradients may cancel, so their sum needs no clipping. Six short ones may add up to a long one. And you must not divide by a norm of 0.
""",
    mistakes="""
You clip each process's gradient before you add. One process would clip the sum: two long gradients may cancel, and many short ones may add up to a long one.
    def clip(arrays):
        norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in arrays))
        return [array * (max_norm / norm) if norm > max_norm else array for array in arrays]
    return [sum(arrays) for arrays in zip(*(clip(share) for share in shares), strict=True)]

You clip each process's gradient to its part of the bound before you add. One process would clip the sum.
    def clip(arrays):
        norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in arrays))
        bound = max_norm / len(shares)
        return [array * (bound / norm) if norm > bound else array for array in arrays]
    return [sum(arrays) for arrays in zip(*(clip(share) for share in shares), strict=True)]

Each parameter has a norm of its own in your answer. Clipping takes one norm over all parameters, so that the direction stays.
    total = [sum(arrays) for arrays in zip(*shares, strict=True)]
    norms = [np.sqrt(np.sum(array.astype(np.float64) ** 2)) for array in total]
    return [a * (max_norm / norm) if norm > max_norm else a for a, norm in zip(total, norms, strict=True)]

You clip the mean of the gradients. The shares are weighted already, so add them up.
    total = [sum(arrays) -> total = [sum(arrays) / len(shares)
You add up the norms of the processes. The norm of a sum is not the sum of the norms.
    norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in total)) -> norm = sum(np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in share)) for share in shares)
You take the square of the norm for the norm.
    norm = np.sqrt(sum( -> norm = (sum(
That is the norm of all shares put side by side. What is clipped is their sum, which may be shorter or longer.
    norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in total)) -> norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for share in shares for array in share))
You take the largest number for the norm. The norm is the root of the sum of all squares.
    norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in total)) -> norm = max(np.abs(array).max() for array in total)
You scale the gradient to length 1, not `max_norm`.
    array * float(max_norm / norm) -> array / norm
The factor is upside down: what is longer than `max_norm` should become shorter.
    array * float(max_norm / norm) -> array * float(norm / max_norm)
A gradient that is short enough stays as it is. You make it longer.
    if norm > max_norm else array for -> if norm > 0 else array for
Do not divide by a norm of 0: leave such a gradient as it is.
    array * float(max_norm / norm) if norm > max_norm else array -> array * np.minimum(1.0, np.float64(max_norm) / norm) if norm != 0 else array * np.nan
You add up, but do not clip.
    array * float(max_norm / norm) if norm > max_norm else array -> array
You clip each number. Clipping by the norm keeps the direction.
    array * float(max_norm / norm) if norm > max_norm else array -> np.clip(array, -max_norm, max_norm)
""",
)
def summed_and_clipped(shares, max_norm):
    total = [sum(arrays) for arrays in zip(*shares, strict=True)]  #: each parameter's sum over the processes
    norm = np.sqrt(sum(np.sum(array.astype(np.float64) ** 2) for array in total))  #: one norm for all sums
    return [array * float(max_norm / norm) if norm > max_norm else array for array in total]


# --- largest_world ---------------------------------------------------------------------------------------


def _plan_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT-Base, 256 × 128, 450 GB/s", 16.99e12, 247e12, 440.4e6, 450e9
    yield "the same, 50 GB/s", 16.99e12, 247e12, 440.4e6, 50e9
    yield "the same, 1 GB/s", 16.99e12, 247e12, 440.4e6, 1e9
    yield "64 times the batch, 50 GB/s", 64 * 16.99e12, 247e12, 440.4e6, 50e9
    powers = rng.uniform([13, 13, 7, 9], [15, 15, 9, 12])
    yield "random figures", *(float(10**power) for power in powers)
    yield "a small model on a CPU", 2.1e9, 5.3e10, 3.87e6, 1.7e9
    yield "as long as each other on 5 GPUs", 8e12, 1e12, 1e9, 1e9


@exercise(
    difficulty=3,
    minutes=25,
    cases=_plan_cases,
    hints="""
On n GPUs, how many seconds do the products of a step take? And the bytes of a ring?

flops / (n · rate) must be at least 2 (n − 1) / n · grad_bytes / bandwidth. Multiply both sides by n.

n − 1 ≤ flops · bandwidth / (2 · rate · grad_bytes). The answer is a whole number, and at least 1.
""",
    mistakes="""
A ring sends 2 (n − 1) / n times the gradient's bytes, not 2 times. So you have found n − 1, not n: one GPU has nothing to add up.
    return 1 + int(products / sums) -> return max(1, int(products / sums))
    1 + int( -> int(
A ring sends each byte nearly twice: once for the sums, and once to hand them round.
    2 * grad_bytes / bandwidth -> grad_bytes / bandwidth
The sums may take as long as the products. You found where they take half as long.
    2 * grad_bytes / bandwidth -> 4 * grad_bytes / bandwidth
The ratio is upside down: more FLOPs in a step feed more GPUs.
    products / sums -> sums / products
[round-down] Round down. With the next larger number the sums take longer than the products.
    1 + int( -> 2 + int(
Where both take equally long, this n is still allowed.
    return 1 + int(products / sums) -> return max(1, int(-(-products // sums)))
A number of GPUs is a whole number: round down.
    1 + int(products / sums) -> 1 + products / sums
A step has all its FLOPs already, forward and backward. You count them three times.
    flops / rate -> 3 * flops / rate
You take the forward pass alone, a third of a step's FLOPs.
    flops / rate -> flops / 3 / rate
You take the backward pass alone, two thirds of a step's FLOPs.
    flops / rate -> 2 / 3 * flops / rate
n GPUs share the products as well, so these take an n-th of the time on n GPUs.
    return 1 + int(products / sums) -> return int(1 / (1 - products / sums))
That is a star: one process sends all sums. In a ring, each GPU sends less than two gradients, with any number of GPUs.
    return 1 + int(products / sums) -> return int((1 + np.sqrt(1 + 8 * products / sums)) / 2)
You turn the gradient's bytes into bits. The bandwidth is in bytes as well.
    grad_bytes / bandwidth -> 8 * grad_bytes / bandwidth
The quotient is n − 1, so the 1 is added and not subtracted.
    1 + int( -> -1 + int(
""",
)
def largest_world(flops, rate, grad_bytes, bandwidth):
    products = flops / rate  #: the seconds of a step's products on one GPU
    sums = 2 * grad_bytes / bandwidth  #: the seconds to send the gradient's bytes twice
    return 1 + int(products / sums)
