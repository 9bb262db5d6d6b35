"""The numbers along x or y: their scale, limits and ticks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bert_course.common.drawing.scales import MARGIN, Linear, Logarithmic, Scale
from bert_course.common.drawing.words import FONT


class Axis:
    """The numbers along x or y: scale, limits, ticks. Axes one above the other may share one."""

    def __init__(self) -> None:
        self.scale: Scale = Linear()
        self.low: float | None = None  # None: from what is drawn
        self.high: float | None = None
        self.margin = MARGIN
        self.is_turned = False  # the first limit above
        self.fixed: list[tuple[float, str]] | None = None  # ticks
        self.font = FONT  # of what is written at them, in points
        self.has_small_ticks = True
        self.of: list[Any] = []  # the Axes that have it

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

    def ticks(self, room: int) -> list[tuple[float, str]]:
        """Numbers and names, those within the limits; about as many as there is room for."""
        limits = self.limits()
        found = self.scale.ticks(limits, room) if self.fixed is None else self.fixed
        return [
            (value, name) for value, name in found if -1e-9 <= self.scale.place(value, limits) <= 1 + 1e-9
        ]

    def small_ticks(self, room: int) -> list[tuple[float, str]]:
        """The same of the short ticks, where nothing or little is written."""
        return self.scale.small_ticks(self.limits(), room) if self.has_small_ticks else []

    def set_ticks(self, values: Iterable[float], names: Iterable[Any] | None, font: float | None) -> None:
        """Fix the ticks; without names they are written as numbers. font: size of the names in points."""
        values = [float(value) for value in values]
        written = _written(values) if names is None else [str(name) for name in names]
        self.fixed = list(zip(values, written, strict=True))
        self.font = font or self.font

    def name_ticks(self, names: Iterable[Any]) -> None:
        """What is written at the ticks that were fixed before. Raises ValueError if none were, or another number."""
        if self.fixed is None:
            raise ValueError("ticklabels: set the ticks first, then what is written there")
        self.set_ticks([value for value, _ in self.fixed], names, None)

    def set_scale(self, kind: str, base: float) -> None:
        """To "log" or "linear"."""
        if kind not in ("log", "linear"):
            raise ValueError(f"a scale is log or linear, got {kind!r}")
        self.scale = Logarithmic(base) if kind == "log" else Linear()


def _written(values: list[float]) -> list[str]:
    """Numbers with as many digits after the point as the longest of them has, six at most."""
    digits = max((len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in values), default=0)
    return [f"{value:.{digits}f}".replace("-", "−") for value in values]
