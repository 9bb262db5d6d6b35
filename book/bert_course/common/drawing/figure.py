"""A figure: its size, its rows and columns of axes, and how much room each gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_course.common.drawing.axes import Axes
from bert_course.common.drawing.axis import Axis
from bert_course.common.drawing.legend import Legend
from bert_course.common.drawing.words import FONT

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

    @property
    def axes(self) -> list[Axes]:
        """All of them, row by row."""
        return list(self.grid.ravel())

    def subplots(
        self,
        nrows: int = 1,
        ncols: int = 1,
        *,
        sharex: bool | str = False,
        sharey: bool | str = False,
        squeeze: bool = True,
    ) -> Any:
        """Axes in rows and columns; one Axes, a row of them or (nrows, ncols), or always the last with squeeze=False.

        sharex, sharey: which have the same numbers: all (True), each "row", each "col", or none (False). Numbers that
        stand on one line are written once, below or on the left. Raises ValueError the second time.
        """
        if self.grid.size:
            raise ValueError("subplots: this figure has its axes already")
        self.grid = np.empty((nrows, ncols), dtype=object)
        x_of: dict[tuple[int, ...], Axis] = {}
        y_of: dict[tuple[int, ...], Axis] = {}
        for row, column in np.ndindex(nrows, ncols):
            x = x_of.setdefault(_sharing(sharex, row, column), Axis())
            y = y_of.setdefault(_sharing(sharey, row, column), Axis())
            axes = self.grid[row, column] = Axes(x, y, self.ink, self.lines)
            if sharex in (True, "all", "col") and row < nrows - 1:
                axes.frame.named_ticks.discard("x")
            if sharey in (True, "all", "row") and column > 0:
                axes.frame.named_ticks.discard("y")
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
        marks = [mark for axes in self.axes for mark in axes.labelled()]
        self.own_legend = Legend(loc, columns=ncols, size=fontsize, colour=self.ink, marks=marks)

    def svg(self) -> str:
        """The whole as one SVG element."""
        above = self.own_legend.measure()[1] + PAD if self.own_legend else 0.0
        rows, columns = self.grid.shape
        wide = (self.width - 2 * PAD - BETWEEN * (columns - 1)) / columns
        high = (self.height - 2 * PAD - above - BETWEEN * (rows - 1)) / rows
        for axes in self.axes:
            axes.box = (0.0, 0.0, 0.75 * wide, 0.75 * high)  # a first guess
        beyond = np.zeros((rows, columns, 4))
        for _ in range(3):  # the room that is needed depends on the room that is left
            room = np.array([[axes.frame.room(*axes.box[2:]) for axes in row] for row in self.grid])
            self._lay_out(np.maximum(room, beyond), above)
            beyond = np.array([[axes.beyond() for axes in row] for row in self.grid])  # words outside
        inside = "".join(axes.svg() for axes in self.axes)
        if self.own_legend:
            left = (self.width - self.own_legend.measure()[0]) / 2
            inside = self.own_legend.draw(left, PAD) + inside
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


def _sharing(how: bool | str, row: int, column: int) -> tuple[int, ...]:
    """The same for axes that share their numbers. Raises ValueError for a way that is none."""
    ways = {True: (), "all": (), "row": (row,), "col": (column,), False: (row, column), "none": (row, column)}
    if how not in ways:
        raise ValueError(f"subplots: sharex and sharey are one of {', '.join(map(str, ways))}; got {how!r}")
    return ways[how]
