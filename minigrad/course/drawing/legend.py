"""What the marks with a label are: a sample and a name for each."""

from __future__ import annotations

from dataclasses import dataclass, field

from minigrad.course.drawing import words
from minigrad.course.drawing.marks import Mark
from minigrad.course.drawing.words import FONT

__all__ = ["Legend"]


@dataclass
class Legend:
    """The marks that have a label, each with a sample."""

    place: str
    at: tuple[float, float] | None = None  # shares of the axes, of the point that `place` is put to
    title: str = ""
    columns: int = 1
    size: float = FONT
    marks: list[Mark] = field(default_factory=list)

    SAMPLE = 24.0

    def measure(self) -> tuple[float, float]:
        """Width and height in points."""
        rows = -(-len(self.marks) // self.columns)
        wide = self.columns * self._column()
        return max(wide, words.width(self.title, self.size)), 1.45 * self.size * (rows + bool(self.title))

    def _column(self) -> float:
        return self.SAMPLE + 20 + max(words.width(mark.label, self.size) for mark in self.marks)

    def draw(self, left: float, top: float, colour: str) -> str:
        """Column by column, from above."""
        step, y = 1.45 * self.size, top
        drawn = ""
        if self.title:
            wide, _ = self.measure()
            drawn += words.text(
                left + wide / 2, y + step / 2, self.title, self.size, colour, "center", "center"
            )
            y += step
        rows = -(-len(self.marks) // self.columns)
        for i, mark in enumerate(self.marks):
            x, middle = left + self._column() * (i // rows) + 4, y + step * (i % rows + 0.5)
            drawn += mark.sample(x, middle, self.SAMPLE)
            drawn += words.text(x + self.SAMPLE + 6, middle, mark.label, self.size, colour, va="center")
        return drawn
