"""What stands around the marks of one set of axes: lines, ticks and grid, title and names, and the room they need."""

from __future__ import annotations

from bert_course.common.drawing import words
from bert_course.common.drawing.axis import Axis
from bert_course.common.drawing.marks import Box, Places
from bert_course.common.drawing.words import FONT, TITLE, number

TICK, SMALL_TICK, GAP = 3.5, 2.0, 3.5  # points: length of ticks, and what is left free beside their names
LINE, GRID_LINE = 0.8, 0.6  # width of the lines on the left and below, and of the grid
SIDES = ("left", "bottom")


class Spines:
    """The lines on the left and below: `spines["left"]` is one of them, `spines[:]` are both."""

    def __init__(self, shown: set[str], chosen: tuple[str, ...] = SIDES) -> None:
        self.shown, self.chosen = shown, chosen

    def __getitem__(self, which: str | slice) -> Spines:
        """Raises ValueError for another side."""
        if isinstance(which, slice):
            return Spines(self.shown)
        if which not in SIDES:
            raise ValueError(f"spines: expected one of {', '.join(SIDES)}, got {which!r}")
        return Spines(self.shown, (which,))

    def set_visible(self, visible: bool) -> None:
        """Show or hide them."""
        (self.shown.update if visible else self.shown.difference_update)(self.chosen)


class Frame:
    """Lines, ticks, grid and names around a box.

    x, y: the numbers along it. ink, lines: the colours of words, and of lines and grid.
    """

    def __init__(self, x: Axis, y: Axis, ink: str, lines: str) -> None:
        self.x, self.y, self.ink, self.lines = x, y, ink, lines
        self.names = {"title": "", "xlabel": "", "ylabel": ""}
        self.title_size = TITLE
        self.grid_of = {"x", "y"}
        self.named_ticks = {"x", "y"}  # whose ticks are written at
        self.spines = Spines(set(SIDES))
        self.is_on = True

    def room(self, wide: float, high: float) -> tuple[float, float, float, float]:
        """What is needed on the left, right, above and below, in points, if the box is about so large."""
        left = right = below = 2.0
        lines = self.names["title"].count("\n")
        top = self.title_size * (1.5 + words.LINE * lines) if self.names["title"] else 4.0
        if self.is_on and "y" in self.named_ticks:
            names = [name for _, name, _ in self._y_ticks(high) if name]
            left += max((TICK + GAP + words.width(name, self.y.font) for name in names), default=0)
            top = max(top, FONT / 2) if names else top
        if self.is_on and "x" in self.named_ticks:
            ticks = [(value, name) for value, name, _ in self._x_ticks(wide) if name]
            below += (TICK + GAP + self.x.font) if ticks else 0
            for value, name in ticks:  # the last name goes over the edge
                at = float(self.x.scale.place(value, self.x.limits())) * wide
                half = words.width(name, self.x.font) / 2
                left, right = max(left, half - at + 2), max(right, at + half - wide + 2)
        below += 1.5 * FONT if self.names["xlabel"] else 0
        left += 1.5 * FONT if self.names["ylabel"] else 0
        return left, right, top, below

    def places(self, box: Box) -> Places:
        """From numbers on x and y to points of the figure."""
        left, top, wide, high = box
        x_limits, y_limits = self.x.limits(), self.y.limits()
        return (
            lambda values: left + wide * self.x.scale.place(values, x_limits),
            lambda values: top + high * (1 - self.y.scale.place(values, y_limits)),
        )

    def grid(self, box: Box) -> str:
        """Lines across, at the long ticks."""
        left, top, wide, high = box
        to_x, to_y = self.places(box)
        path = ""
        if "x" in self.grid_of:
            places = (float(to_x(value)) for value, _, length in self._x_ticks(wide) if length == TICK)
            path += "".join(f"M{number(x)} {number(top)}v{number(high)}" for x in places)
        if "y" in self.grid_of:
            places = (float(to_y(value)) for value, _, length in self._y_ticks(high) if length == TICK)
            path += "".join(f"M{number(left)} {number(y)}h{number(wide)}" for y in places)
        return f'<path d="{path}" stroke="{self.lines}" stroke-width="{GRID_LINE}"/>' if path else ""

    def around(self, box: Box) -> str:
        """The lines on the left and below, and the ticks with what is written there."""
        left, top, wide, high = box
        bottom = top + high
        to_x, to_y = self.places(box)
        path = f"M{number(left)} {number(top)}v{number(high)}" if "left" in self.spines.shown else ""
        path += f"M{number(left)} {number(bottom)}h{number(wide)}" if "bottom" in self.spines.shown else ""
        ticks = drawn = ""
        for value, name, length in self._x_ticks(wide):
            x = float(to_x(value))
            ticks += f"M{number(x)} {number(bottom)}v{length}"
            if "x" in self.named_ticks:
                drawn += words.text(x, bottom + TICK + GAP, name, self.x.font, self.ink, "center", "top")
        for value, name, length in self._y_ticks(high):
            y = float(to_y(value))
            ticks += f"M{number(left)} {number(y)}h-{length}"
            if "y" in self.named_ticks:
                drawn += words.text(left - TICK - GAP, y, name, self.y.font, self.ink, "right", "center")
        look = f'stroke-width="{LINE}"'
        lines = f'<path d="{path}" stroke="{self.lines}" {look}/>' if path else ""
        return lines + (f'<path d="{ticks}" stroke="{self.ink}" {look}/>' if ticks else "") + drawn

    def title_and_names(self, box: Box) -> str:
        """What stands above, below and on the left."""
        left, top, wide, high = box
        before, _, _, below = self.room(wide, high)
        middle_x, middle_y = left + wide / 2, top + high / 2
        title, x_name, y_name = self.names["title"], self.names["xlabel"], self.names["ylabel"]
        return (
            words.text(middle_x, top - 0.45 * self.title_size, title, self.title_size, self.ink, "center")
            + words.text(middle_x, top + high + below - 0.3 * FONT, x_name, FONT, self.ink, "center")
            + words.text(left - before, middle_y, y_name, FONT, self.ink, "left", "center", rotation=90)
        )

    def _x_ticks(self, wide: float) -> list[tuple[float, str, float]]:
        """Numbers, names and lengths of the ticks along a box of this width, whose names are about 3:1."""
        return _ticks(self.x, int(wide / (3 * FONT)))

    def _y_ticks(self, high: float) -> list[tuple[float, str, float]]:
        return _ticks(self.y, int(high / (2 * FONT)))


def _ticks(axis: Axis, room: int) -> list[tuple[float, str, float]]:
    long, short = axis.ticks(room), axis.small_ticks(room)
    return [(*tick, TICK) for tick in long] + [(*tick, SMALL_TICK) for tick in short]
