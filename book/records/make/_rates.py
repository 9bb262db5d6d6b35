"""The search for a learning rate, as records make it: by the loss at each rate tried."""

from __future__ import annotations

from collections.abc import Mapping


def best(tried: Mapping[float, float]) -> float:
    """The rate with the lowest loss."""
    return min(tried, key=tried.__getitem__)


def next_rate(tried: Mapping[float, float]) -> float | None:
    """Twice the highest rate tried if that was the best, half the lowest if that was; otherwise None."""
    rate = best(tried)
    return 2 * rate if rate == max(tried) else rate / 2 if rate == min(tried) else None
