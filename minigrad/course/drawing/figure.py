"""A figure: its size, its rows and columns of axes, and how much room each gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.drawing.axes import Axes
from minigrad.course.drawing.axis import Axis
from minigrad.course.drawing.legend import Legend
from minigrad.course.drawing.words import FONT

__all__ = ["Figure"]

PAD, BETWEEN = 3.0, 9.0  # points: around everything, and between axes
POINTS = 72.0  # an inch


class Figure:
    """An empty figure, to be filled by `subplots` or `add_subplot`.

    figsize: width and height in inches. ink, lines: the colours of words, and of frame and grid.
    """

    def __init__(self, figsize: tuple[float, float], ink: str, lines: str) -> None:
        self.width, self.height = POINTS * figsize[0], POINTS * figsize[1]
        self.ink, self.lines = ink, lines
        self.grid = np.empty((0, 0), dtype=object)
        self.own_legend: Legend | None = None

    def subplots(self, nrows: int = 1, ncols: int = 1, *, sharex: bool = False, squeeze: bool = True) -> Any:
        """Axes in rows and columns; one Axes, a row of them or (nrows, ncols), or always the last with squeeze=False.

        sharex: all have the x of the lowest row, which alone has its numbers. Raises ValueError the second time.
        """
        if self.grid.size:
            raise ValueError("subplots: this figure has its axes already")
        shared = Axis()
        self.grid = np.empty((nrows, ncols), dtype=object)
        for row in range(nrows):
            for column in range(ncols):
                axes = Axes(shared if sharex else Axis(), self.ink, self.lines)
                if sharex and row < nrows - 1:
                    axes.named_ticks = {"y"}
                self.grid[row, column] = axes
        if not squeeze:
            return self.grid
        return self.grid[0, 0] if self.grid.size == 1 else np.squeeze(self.grid)

    def add_subplot(self) -> Axes:
        """The only axes."""
        return self.subplots()

    def legend(self, *, loc: str, ncols: int = 1, fontsize: float = FONT) -> None:
        """What all marks with a label are, above all axes."""
        if loc != "outside upper center":
            raise ValueError(f"legend: loc is 'outside upper center', got {loc!r}")
        marks = [mark for axes in self.grid.ravel() for mark in axes.labelled()]
        self.own_legend = Legend(loc, columns=ncols, size=fontsize, marks=marks)

    def svg(self) -> str:
        """The whole as one SVG element."""
        above = self.own_legend.measure()[1] + PAD if self.own_legend else 0.0
        rows, columns = self.grid.shape
        wide = (self.width - 2 * PAD - BETWEEN * (columns - 1)) / columns
        high = (self.height - 2 * PAD - above - BETWEEN * (rows - 1)) / rows
        for axes in self.grid.ravel():
            axes.box = (0.0, 0.0, 0.75 * wide, 0.75 * high)  # a first guess
        beyond = np.zeros((rows, columns, 4))
        for _ in range(3):  # the room that is needed depends on the room that is left
            room = np.array([[axes.room(*axes.box[2:]) for axes in row] for row in self.grid])
            self._lay_out(np.maximum(room, beyond), above)
            beyond = np.array([[axes.beyond() for axes in row] for row in self.grid])  # words outside
        inside = "".join(axes.svg() for axes in self.grid.ravel())
        if self.own_legend:
            left = (self.width - self.own_legend.measure()[0]) / 2
            inside = self.own_legend.draw(left, PAD, self.ink) + inside
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}pt" height="{self.height:g}pt" font-family="sans-serif">{inside}</svg>'
        )

    def _lay_out(self, room: np.ndarray, above: float) -> None:
        """Give each axes its box. room (rows, columns, 4): what is needed left, right, above, below."""
        rows, columns = self.grid.shape
        left, right = room[:, :, 0].max(axis=0), room[:, :, 1].max(axis=0)  # (columns,)
        top, below = room[:, :, 2].max(axis=1), room[:, :, 3].max(axis=1)  # (rows,)
        free_x = self.width - 2 * PAD - BETWEEN * (columns - 1) - (left + right).sum()
        free_y = self.height - 2 * PAD - above - BETWEEN * (rows - 1) - (top + below).sum()
        y = PAD + above
        for row in range(rows):
            x, high = PAD, free_y / rows
            for column in range(columns):
                self.grid[row, column].put((x + left[column], y + top[row], free_x / columns, high))
                x += left[column] + free_x / columns + right[column] + BETWEEN
            y += top[row] + high + below[row] + BETWEEN
