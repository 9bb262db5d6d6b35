"""From a number to a place between 0 and 1, and where the ticks stand: linear and logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

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
        measured = self.measure(values)
        measured = measured[np.isfinite(measured)]  # on a logarithmic scale, not 0 and below
        if not measured.size:
            return self.number(0.0), self.number(1.0)
        low, high = float(measured.min()), float(measured.max())
        if low == high:
            low, high = self.beside(low)
        room = margin * (high - low)
        sticky = [float(edge) for edge in self.measure(np.array(edges))] if edges else []
        return (
            self.number(low if low in sticky else low - room),
            self.number(high if high in sticky else high + room),
        )

    def beside(self, measured: float) -> tuple[float, float]:
        """The ends of a piece around a single number, all on the scale's own measure."""
        raise NotImplementedError

    def ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """Round numbers within the limits, about as many as there is room for, each as it is written."""
        raise NotImplementedError

    def small_ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """Numbers between them that get a short tick, and what is written there, mostly nothing."""
        return []


class Linear(Scale):
    """Equal differences are equally far apart."""

    def measure(self, values: Any) -> np.ndarray:
        """The numbers themselves."""
        return np.asarray(values, float)

    def number(self, measured: float) -> float:
        """The measure itself."""
        return measured

    def beside(self, measured: float) -> tuple[float, float]:
        """A twentieth below and above."""
        away = abs(measured) / 20 or 1 / 20
        return measured - away, measured + away

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
        return float(self.base) ** measured

    def beside(self, measured: float) -> tuple[float, float]:
        """The power below and the power above."""
        return float(math.ceil(measured) - 1), float(math.floor(measured) + 1)

    def ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """Powers of the base, or every second, third …"""
        return [(self.number(n), self._power(n)) for n in self._powers(limits, room)]

    def small_ticks(self, limits: tuple[float, float], room: int) -> list[tuple[float, str]]:
        """The multiples of each power below the next; with names, where there are not two powers."""
        low, high = sorted(self.measure(limits))
        powers, whole = self._powers(limits, room), int(self.base)
        if self.base < 3 or powers.step > 1 or len(powers) > MOST_TICKS:
            return []
        between = [(k, n) for n in range(math.floor(low), math.ceil(high)) for k in range(2, whole)]
        between = [(k, n) for k, n in between if low <= self.measure(k * self.number(n)) <= high]
        if len(powers) + len(between) < 2:
            return Linear().ticks(limits, room)
        named: Iterable[int] = ()
        if len(powers) < 2:  # all of them, or 2, 3, 4 and 6 of base 10
            steps = whole // 2
            named = (
                range(whole) if high - low <= 0.4 else [round(self.base ** (k / steps)) for k in range(steps)]
            )
        return [(k * self.number(n), f"{k}×{self._power(n)}" if k in named else "") for k, n in between]

    def _power(self, n: int) -> str:
        return f"{self.base:g}^{{{n}}}".replace("-", "−")

    def _powers(self, limits: tuple[float, float], room: int) -> range:
        """The exponents that get a tick: with equal steps, of the numbers that fit, chosen as matplotlib does."""
        low, high = sorted(self.measure(limits))
        first, last, most = math.ceil(low - 1e-9), math.floor(high + 1e-9), min(max(room, 2), MOST_TICKS)
        there = max(0, last - first + 1)
        if there <= most:
            return range(first, last + 1)
        count = min(math.ceil(there / (there // (most + 1) + 1)), most)
        step = (there - 1) // (count - 1)
        skipped = -first % step  # the powers are multiples of the step, if there are as many of those
        fewest, end = max(0, there - step * count), min(there - step * (count - 1), step)
        return range(first + (skipped if fewest <= skipped < end else fewest), last + 1, step)
