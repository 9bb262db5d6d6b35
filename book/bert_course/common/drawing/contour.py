"""Lines along which an array has one value: marching squares (Lorensen and Cline, 1987, in two dimensions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bert_course.common.drawing.marks import Mark, Places, polyline

Side = tuple[int, int, int]  # of a square: from (row, column) to the next column (0) or to the next row (1)


@dataclass
class Contour(Mark):
    """Lines of equal height. x (columns,), y (rows,), heights (rows, columns)."""

    x: np.ndarray
    y: np.ndarray
    heights: np.ndarray
    levels: Sequence[float]
    colour: str
    width: float
    zorder: float = 2

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers for which there are heights."""
        return self.x, self.y

    def edges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The first and the last of them."""
        return (float(self.x.min()), float(self.x.max())), (float(self.y.min()), float(self.y.max()))

    def draw(self, places: Places) -> str:
        """A path for each line."""
        return "".join(
            polyline(places[0](x), places[1](y), self.colour, self.width, "-", 1.0)
            for level in self.levels
            for x, y in level_lines(self.x, self.y, self.heights, level)
        )


def level_lines(
    x: np.ndarray, y: np.ndarray, heights: np.ndarray, level: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The lines along which the heights are `level`, straight inside each square; a closed one ends where it begins.

    x (columns,), y (rows,), heights (rows, columns). Returns (points,) on x and on y for each line.
    """
    ways = _ways(heights, level)
    lines: list[tuple[np.ndarray, np.ndarray]] = []
    ends = [side for side, others in ways.items() if len(others) == 1]
    for start in [*ends, *ways]:  # lines with ends first, so that each is walked from one to the other
        if start not in ways:
            continue
        line: list[Side] = []
        others: list[Side] = []
        here: Side | None = start
        while here is not None:
            line.append(here)
            others = ways.pop(here)
            here = next((side for side in others if side in ways), None)
        if len(line) > 2 and start in others:
            line.append(start)
        lines.append(_points(line, x, y, heights, level))
    return lines


def _ways(heights: np.ndarray, level: float) -> dict[Side, list[Side]]:
    """For each side of a square that the line crosses, those of the one or two squares beside it that it goes on to."""
    above = heights > level
    corners = above[:-1, :-1].astype(int) + above[:-1, 1:] + above[1:, 1:] + above[1:, :-1]
    ways: dict[Side, list[Side]] = {}
    for i, j in np.argwhere((corners > 0) & (corners < 4)).tolist():
        here, right, across, next_row = above[i, j], above[i, j + 1], above[i + 1, j + 1], above[i + 1, j]
        first, second, third, fourth = (i, j, 0), (i, j + 1, 1), (i + 1, j, 0), (i, j, 1)  # around the square
        crossed = [
            side
            for side, differs in (
                (first, here != right),
                (second, right != across),
                (third, across != next_row),
                (fourth, next_row != here),
            )
            if differs
        ]
        if len(crossed) == 4:  # a saddle: its middle says which corners belong together
            middle = heights[i : i + 2, j : j + 2].mean() > level
            crossed = [first, second, third, fourth] if middle == here else [fourth, first, second, third]
        for one, other in zip(crossed[::2], crossed[1::2], strict=True):
            ways.setdefault(one, []).append(other)
            ways.setdefault(other, []).append(one)
    return ways


def _points(
    line: list[Side], x: np.ndarray, y: np.ndarray, heights: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where on each side the height is the level, if it is linear along the side."""
    i, j, turned = np.array(line).T
    next_i, next_j = i + turned, j + 1 - turned
    share = (level - heights[i, j]) / (heights[next_i, next_j] - heights[i, j])
    return x[j] + share * (x[next_j] - x[j]), y[i] + share * (y[next_i] - y[i])
