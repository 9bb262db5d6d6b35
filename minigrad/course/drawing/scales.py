"""From a number to a place between 0 and 1, and where the ticks stand: linear and logarithmic axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Linear", "Logarithmic", "Scale"]

STEPS = (1, 2, 2.5, 5, 10)  # between ticks, times a power of ten
MOST_TICKS = 9
MARGIN = 0.05  # beside the data, as a share of what they span


class Scale:
    """What both kinds have in common: limits are numbers, and places are counted on the scale's own measure."""

    def measure(self, values: Any) -> np.ndarray:
        """The numbers on the scale's own measure."""
        raise NotImplementedError

    def number(self, measured: float) -> float:
        """The number that has this measure."""
        raise NotImplementedError

    def place(self, values: Any, limits: tuple[float, float]) -> np.ndarray:
        """0 at the first limit, 1 at the second."""
        low, high = self.measure(limits)
        return (self.measure(values) - low) / (high - low)

    def around(self, values: np.ndarray, margin: float, edges: tuple[float, ...] = ()) -> tuple[float, float]:
        """Limits for these numbers, with a margin on either side except where they end at one of `edges`."""
        measured = self.measure(values[np.isfinite(values)])
        if not measured.size:
            return self.number(0.0), self.number(1.0)
        low, high = float(measured.min()), float(measured.max())
        if low == high:
            low, high = low - 0.5, high + 0.5
        room = margin * (high - low)
        sticky = [float(edge) for edge in self.measure(np.array(edges))] if edges else []
        return (
            self.number(low if low in sticky else low - room),
            self.number(high if high in sticky else high + room),
        )

    def ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """Round numbers within the limits, about as many as there is room for, each as it is written."""
        raise NotImplementedError

    def small_ticks(self, limits: tuple[float, float]) -> list[float]:
        """Numbers that get a short tick without a name."""
        return []


class Linear(Scale):
    """Equal differences are equally far apart."""

    def measure(self, values: Any) -> np.ndarray:
        """The numbers themselves."""
        return np.asarray(values, float)

    def number(self, measured: float) -> float:
        """The measure itself."""
        return measured

    def ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """Multiples of 1, 2, 2.5 or 5 times a power of ten."""
        low, high = sorted(limits)
        most = min(max(room, 1), MOST_TICKS)
        power = 10.0 ** math.floor(math.log10((high - low) / most))
        step = next(s * power for s in STEPS if (high - low) / (s * power) <= most)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        digits += round(step * 10**digits, 6) != round(step * 10**digits)  # 2.5 and 0.25 need one more
        return [(n * step, f"{n * step:.{digits}f}".replace("-", "−")) for n in range(first, last + 1)]


class Logarithmic(Scale):
    """Equal factors are equally far apart; ticks at the powers of `base`."""

    def __init__(self, base: float = 10) -> None:
        self.base = base

    def measure(self, values: Any) -> np.ndarray:
        """Logarithms to the base."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.asarray(values, float)) / math.log(self.base)

    def number(self, measured: float) -> float:
        """The power of the base."""
        return self.base**measured

    def ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """Powers of the base, or every second, third …"""
        low, high = sorted(self.measure(limits))
        powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        every = -(-len(powers) // min(max(room, 1), MOST_TICKS))
        return [
            (self.number(n), f"{self.base:g}^{{{n}}}".replace("-", "−")) for n in powers if n % every == 0
        ]

    def small_ticks(self, limits: tuple[float, float]) -> list[float]:
        """The multiples of each power below the next."""
        low, high = sorted(self.measure(limits))
        if high - low > MOST_TICKS:
            return []
        powers = range(math.floor(low), math.ceil(high))
        between = (k * self.number(n) for n in powers for k in range(2, int(self.base)))
        return [value for value in between if low <= self.measure(value) <= high]
