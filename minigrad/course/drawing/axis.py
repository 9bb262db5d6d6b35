"""The numbers along x or y: their scale, limits and ticks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from minigrad.course.drawing.scales import MARGIN, Linear, Logarithmic, Scale

if TYPE_CHECKING:
    from minigrad.course.drawing.axes import Axes

__all__ = ["Axis"]


class Axis:
    """The numbers along x or y: scale, limits, ticks. Axes one above the other may share one."""

    def __init__(self) -> None:
        self.scale: Scale = Linear()
        self.low: float | None = None  # None: from what is drawn
        self.high: float | None = None
        self.margin = MARGIN
        self.is_turned = False  # the first limit above
        self.fixed: list[tuple[float, str]] | None = None  # ticks
        self.has_small_ticks = True
        self.of: list[Axes] = []

    def limits(self) -> tuple[float, float]:
        """The numbers at both ends."""
        low, high = self.low, self.high
        if low is None or high is None:
            which = int(self is self.of[0].y)
            marks = [mark for axes in self.of for mark in axes.marks]
            reach = np.concatenate([np.empty(0), *(np.ravel(mark.reach()[which]) for mark in marks)])
            ends = tuple(edge for mark in marks for edge in mark.edges()[which])
            around = self.scale.around(reach, self.margin, ends)
            ticks = [value for value, _ in self.fixed or []]  # those that were asked for are in view
            low = min([around[0], *ticks]) if low is None else low
            high = max([around[1], *ticks]) if high is None else high
        return (high, low) if self.is_turned else (low, high)

    def set_limits(self, low: float | None, high: float | None) -> None:
        """Fix one end or both."""
        self.low = self.low if low is None else float(low)
        self.high = self.high if high is None else float(high)

    def ticks(self, length: float, size: float) -> list[tuple[float, str]]:
        """Numbers and names, those within the limits; so many as fit into this length, with names of this size."""
        limits = self.limits()
        found = self.scale.ticks(limits, int(length / size)) if self.fixed is None else self.fixed
        return [
            (value, name) for value, name in found if -1e-9 <= self.scale.place(value, limits) <= 1 + 1e-9
        ]

    def small_ticks(self) -> list[float]:
        """Numbers of the short ticks."""
        return self.scale.small_ticks(self.limits()) if self.has_small_ticks else []

    def set_ticks(self, values: Iterable[float], names: Iterable[str] | None) -> None:
        """Fix the ticks; without names they are written as numbers."""
        values = [float(value) for value in values]
        names = [f"{value:g}".replace("-", "−") for value in values] if names is None else list(names)
        self.fixed = list(zip(values, names, strict=True))

    def set_scale(self, kind: str, base: float) -> None:
        """To "log" or "linear"."""
        if kind not in ("log", "linear"):
            raise ValueError(f"a scale is log or linear, got {kind!r}")
        self.scale = Logarithmic(base) if kind == "log" else Linear()
