"""Answers to the exercises of chapter 25b as learners write them: wrong ones, what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RIGHT", "WRONG"]


# --- whole_loss ------------------------------------------------------------------------------------------


def by_sums(means, counts):
    total = 0.0
    for mean, count in zip(means, counts, strict=True):
        if count:
            total += mean * count
    return total / sum(counts)


def by_average(means, counts):
    return np.average(np.nan_to_num(means), weights=counts)


def average_with_nan(means, counts):
    return np.average(means, weights=counts)


def mean_of_means(means, counts):
    return float(np.nanmean(means))


def not_divided(means, counts):
    return sum(mean * count for mean, count in zip(means, counts, strict=True) if count)


def by_processes(means, counts):
    return np.nansum(np.asarray(means) * np.asarray(counts)) / len(counts)


def as_in_pytorch(means, counts):
    return len(means) * by_sums(means, counts)


LOSS_RIGHT = [by_sums, by_average]
LOSS_WRONG = [
    (average_with_nan, "0 times NaN is NaN"),
    (mean_of_means, "the mean of the means"),
    (not_divided, "Divide it by their number"),
    (by_processes, "The mean is over tokens"),
    (as_in_pytorch, "belongs to a library"),
]

# --- part_to_send ----------------------------------------------------------------------------------------


def by_turns(rank, step, n):
    part = rank - 1
    for _ in range(step):
        part -= 1
    return (part + 2 * n) % n


def from_the_end(rank, step, n):
    """In the last step, n - 2, process r sends part r + 1; a step earlier the part after that."""
    return (rank + 1 + (n - 2 - step)) % n


def of_the_page(rank, step, n):
    return (rank - step + n) % n


def forward(rank, step, n):
    return (rank + step) % n


def negative(rank, step, n):
    return rank - step - 1


def alike(rank, step, n):
    return step % n


def one_too_far(rank, step, n):
    return (rank - 2 - step) % n


def stopped_at_the_first(rank, step, n):
    return max(0, rank - 1 - step)


PART_RIGHT = [by_turns, from_the_end]
PART_WRONG = [
    (of_the_page, "the order of the page"),
    (forward, "one part further back"),
    (negative, "from 0 to n − 1"),
    (alike, "send the same part at once"),
    (one_too_far, "the sum of part r − 1"),
    (stopped_at_the_first, "The part before part 0"),
]

# --- summed_and_clipped ----------------------------------------------------------------------------------


def flat(shares, max_norm):
    total = [np.sum(np.stack(arrays), axis=0) for arrays in zip(*shares, strict=True)]
    norm = np.linalg.norm(np.concatenate([array.ravel() for array in total]))
    factor = min(1.0, max_norm / (norm + 1e-12))
    return [array * factor for array in total]


def with_hypot(shares, max_norm):
    total = list(shares[0])
    for share in shares[1:]:
        total = [a + b for a, b in zip(total, share, strict=True)]
    norm = math.hypot(*(float(np.linalg.norm(array)) for array in total))
    if norm <= max_norm:
        return total
    return [array / norm * max_norm for array in total]


def clipped_first(shares, max_norm):
    def clip(share):
        norm = math.sqrt(sum(float((array**2).sum()) for array in share))
        return [array * min(1.0, max_norm / max(norm, 1e-12)) for array in share]

    return [sum(arrays) for arrays in zip(*map(clip, shares), strict=True)]


def each_alone(shares, max_norm):
    total = [sum(arrays) for arrays in zip(*shares, strict=True)]
    return [array * min(1.0, max_norm / max(np.linalg.norm(array), 1e-12)) for array in total]


def averaged(shares, max_norm):
    return flat([[array / len(shares) for array in share] for share in shares], max_norm)


def always_scaled(shares, max_norm):
    total = [sum(arrays) for arrays in zip(*shares, strict=True)]
    norm = np.linalg.norm(np.concatenate([array.ravel() for array in total]))
    return [array * max_norm / max(norm, 1e-12) for array in total]


def with_the_norm(norm_of, factor=lambda max_norm, norm: max_norm / norm):
    """An answer that adds up, and then clips by what it takes for the norm."""

    def answer(shares, max_norm):
        total = [sum(arrays) for arrays in zip(*shares, strict=True)]
        norm = norm_of(shares, total)
        return [array * factor(max_norm, norm) for array in total] if norm > max_norm else total

    return answer


def right_norm(shares, total):
    return np.linalg.norm(np.concatenate([array.ravel() for array in total]))


def of_all_shares(shares, total):
    return np.sqrt(sum((array**2).sum() for share in shares for array in share))


def largest_entry(shares, total):
    return max(np.abs(array).max() for array in total)


CLIP_RIGHT = [flat, with_hypot]
CLIP_WRONG = [
    (clipped_first, "before you add"),
    (each_alone, "one norm over all parameters"),
    (averaged, "weighted already"),
    (always_scaled, "You make it longer"),
    (with_the_norm(of_all_shares), "put side by side"),
    (with_the_norm(largest_entry), "the largest number"),
    (with_the_norm(right_norm, lambda max_norm, norm: 1 / norm), "1 long"),
    (with_the_norm(right_norm, lambda max_norm, norm: norm / max_norm), "upside down"),
]

# --- largest_world ---------------------------------------------------------------------------------------


def by_counting(flops, rate, grad_bytes, bandwidth):
    n = 1
    while n < 100_000_000 and 2 * n / (n + 1) * grad_bytes / bandwidth <= flops / ((n + 1) * rate):
        n += 1
    return n


def by_floor(flops, rate, grad_bytes, bandwidth):
    seconds, moved = flops / rate, grad_bytes / bandwidth
    return math.floor(seconds / moved / 2 + 1)


def twice_the_bytes(flops, rate, grad_bytes, bandwidth):
    return max(1, math.floor(flops / rate / (2 * grad_bytes / bandwidth)))


def sent_once(flops, rate, grad_bytes, bandwidth):
    return 1 + math.floor(flops / rate / (grad_bytes / bandwidth))


def rounded_up(flops, rate, grad_bytes, bandwidth):
    return math.ceil(1 + flops / rate / (2 * grad_bytes / bandwidth))


def not_whole(flops, rate, grad_bytes, bandwidth):
    return 1 + flops / rate / (2 * grad_bytes / bandwidth)


def backward_alone(flops, rate, grad_bytes, bandwidth):
    return 1 + math.floor(2 * flops / 3 / rate / (2 * grad_bytes / bandwidth))


def products_of_one(flops, rate, grad_bytes, bandwidth):
    """(n - 1) / n * sums = products, solved for n."""
    products, sums = flops / rate, 2 * grad_bytes / bandwidth
    return int(sums / (sums - products))


def as_a_star(flops, rate, grad_bytes, bandwidth):
    n = 1
    while n * grad_bytes / bandwidth <= flops / rate / (n + 1):
        n += 1
    return n


WORLD_RIGHT = [by_counting, by_floor]
WORLD_WRONG = [
    (twice_the_bytes, "n − 1"),
    (sent_once, "nearly twice"),
    (rounded_up, "Round down"),
    (not_whole, "whole number"),
    (backward_alone, "the backward pass alone"),
    (products_of_one, "share the products as well"),
    (as_a_star, "a star"),
]

RIGHT = {
    "whole_loss": LOSS_RIGHT,
    "part_to_send": PART_RIGHT,
    "summed_and_clipped": CLIP_RIGHT,
    "largest_world": WORLD_RIGHT,
}
WRONG = {
    "whole_loss": LOSS_WRONG,
    "part_to_send": PART_WRONG,
    "summed_and_clipped": CLIP_WRONG,
    "largest_world": WORLD_WRONG,
}
