"""What the marks with a label are: a sample and a name for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bert_course.common.drawing import words
from bert_course.common.drawing.marks import Box, Mark
from bert_course.common.drawing.words import FONT

SPOTS = (  # in the order in which they are tried
    *("upper right", "upper left", "lower left", "lower right", "center right", "center left"),
    *("lower center", "upper center", "center"),
)


@dataclass
class Legend:
    """The marks that have a label, each with a sample."""

    place: str
    at: tuple[float, float] | None = None  # shares of the axes, of the point that `place` is put to
    title: str = ""
    columns: int = 1
    size: float = FONT
    colour: str = ""  # of the words
    marks: list[Mark] = field(default_factory=list)

    SAMPLE = 24.0

    def measure(self) -> tuple[float, float]:
        """Width and height in points."""
        rows = -(-len(self.marks) // self.columns)
        wide = self.columns * self._column()
        return max(wide, words.width(self.title, self.size)), 1.45 * self.size * (rows + bool(self.title))

    def _column(self) -> float:
        return self.SAMPLE + 20 + max(words.width(mark.label, self.size) for mark in self.marks)

    def put(self, box: Box, covered: Callable[[Box], int]) -> tuple[float, float]:
        """Its left, upper corner in the box of the axes. covered: how much of what is drawn a box would hide.

        Raises ValueError for a place that is none.
        """
        wide, high = self.measure()
        left, top, box_wide, box_high = box
        pad = FONT / 2
        if self.at is not None:  # its right, middle edge at this place of the box
            return left + box_wide * self.at[0] - wide - pad, top + box_high * (1 - self.at[1]) - high / 2
        spots = {}
        for spot in SPOTS:
            up, _, side = spot.partition(" ")
            spots[spot] = (
                left
                + {"left": pad, "center": (box_wide - wide) / 2, "right": box_wide - wide - pad}[side or up],
                top + {"upper": pad, "center": (box_high - high) / 2, "lower": box_high - high - pad}[up],
            )
        if self.place == "best":
            return min(spots.values(), key=lambda at: covered((*at, wide, high)))
        if self.place not in spots:
            raise ValueError(f"legend: loc is best or one of {', '.join(spots)}; got {self.place!r}")
        return spots[self.place]

    def draw(self, left: float, top: float) -> str:
        """Column by column, from above."""
        step, y = 1.45 * self.size, top
        drawn = ""
        if self.title:
            wide, _ = self.measure()
            middle = left + wide / 2
            drawn += words.text(middle, y + step / 2, self.title, self.size, self.colour, "center", "center")
            y += step
        rows = -(-len(self.marks) // self.columns)
        for i, mark in enumerate(self.marks):
            x, middle = left + self._column() * (i // rows) + 4, y + step * (i % rows + 0.5)
            drawn += mark.sample(x, middle, self.SAMPLE)
            drawn += words.text(x + self.SAMPLE + 6, middle, mark.label, self.size, self.colour, va="center")
        return drawn
