"""One set of axes: what is drawn in it, its limits, ticks, names and legend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.course.drawing import words
from minigrad.course.drawing.axis import Axis
from minigrad.course.drawing.legend import Legend
from minigrad.course.drawing.marks import (
    Band,
    Dots,
    Image,
    Label,
    Line,
    Mark,
    Places,
    Rectangle,
    Rule,
    look_of,
)
from minigrad.course.drawing.words import FONT, TITLE, number

__all__ = ["Axes", "Box"]

TICK, SMALL_TICK, GAP = 3.5, 2.0, 3.5  # points: length of ticks, and what is left free beside their names
FRAME = 0.8  # width of the lines on the left and below
Box = tuple[float, float, float, float]  # left, top, width, height


class _Spines:
    """`axes.spines[:]`: the lines around; they are shown or hidden together."""

    def __init__(self) -> None:
        self.are_visible = True

    def __getitem__(self, which: slice) -> _Spines:
        return self

    def set_visible(self, visible: bool) -> None:
        """Show or hide them."""
        self.are_visible = visible


class Axes:
    """What `Figure.subplots` gives: matplotlib's methods, as far as the course uses them.

    ink, lines: the colours of words, and of frame and grid.
    """

    def __init__(self, x: Axis, ink: str, lines: str) -> None:
        self.x, self.y, self.ink, self.lines = x, Axis(), ink, lines
        for axis in (self.x, self.y):
            axis.of.append(self)
        self.marks: list[Mark] = []
        self.names = {"title": "", "xlabel": "", "ylabel": ""}
        self.title_size = TITLE
        self.grid_of = {"x", "y"}
        self.named_ticks = {"x", "y"}  # whose ticks are written at
        self.spines = _Spines()
        self.is_on = True
        self.aspect = ""
        self.own_legend: Legend | None = None
        self.box: Box = (0, 0, 1, 1)

    # --- What is drawn -----------------------------------------------------------------------------------

    def plot(
        self,
        x: Any,
        y: Any,
        fmt: str = "",
        *,
        color: str,
        label: str = "",
        marker: str = "",
        linestyle: str = "",
        linewidth: float = 1.8,
        markersize: float = 6.0,
        ms: float | None = None,
        alpha: float = 1.0,
        zorder: float = 2,
        fillstyle: str = "full",
    ) -> None:
        """A line through points, markers, or both."""
        own_marker, line = look_of(fmt)
        line = linestyle or line or ("" if own_marker else "-")
        look_of(line)
        a, b = (np.asarray(list(values), float) for values in (x, y))
        if a.shape != b.shape:
            raise ValueError(f"plot: x has {len(a)} numbers, y has {len(b)}")
        size, filled = markersize if ms is None else ms, fillstyle != "none"
        self.marks.append(
            Line(a, b, color, line, own_marker or marker, linewidth, size, alpha, filled, label, zorder)
        )

    def errorbar(
        self, x: Any, y: Any, *, xerr: Any, fmt: str, color: str, label: str = "", capsize: float = 0.0
    ) -> None:
        """Markers with a bar of `xerr` to the left and to the right."""
        mark, line = look_of(fmt)
        a, b, half = (np.asarray(list(values), float) for values in (x, y, xerr))
        self.marks.append(Line(a, b, color, line, mark, label=label, half_x=half, cap=capsize))

    def scatter(
        self,
        x: Any,
        y: Any,
        *,
        s: float,
        color: str = "none",
        facecolors: str | None = None,
        edgecolors: str | None = None,
        alpha: float = 1.0,
        linewidths: float = 1.0,
        zorder: float = 1,
    ) -> None:
        """Dots of `s` square points."""
        a, b = (np.asarray(list(values), float) for values in (x, y))
        self.marks.append(Dots(a, b, facecolors or color, edgecolors or color, s, alpha, linewidths, zorder))

    def fill_between(self, x: Any, low: Any, high: Any, *, color: str, alpha: float) -> None:
        """The area between two lines, or two numbers."""
        a = np.asarray(list(x), float)
        under, over = (np.broadcast_to(np.asarray(values, float), a.shape) for values in (low, high))
        self.marks.append(Band(a, under, over, color, alpha))

    def bar(self, x: Any, heights: Any, width: float = 0.8, *, color: str) -> None:
        """Bars from 0, with their middles at x."""
        for middle, height in zip(x, heights, strict=True):
            self.marks.append(Rectangle((middle - width / 2, 0.0), width, height, color, grounded=True))

    def add_patch(self, patch: Rectangle) -> None:
        """A rectangle."""
        self.marks.append(patch)

    def imshow(self, colours: np.ndarray, *, interpolation: str, aspect: str = "equal") -> None:
        """An array of colours (rows, columns, 4), row 0 above; a square for each unless aspect is "auto"."""
        if interpolation != "nearest":
            raise ValueError(
                f"imshow: squares of one colour each are interpolation='nearest', got {interpolation!r}"
            )
        self.marks.append(Image(colours))
        self.y.is_turned = True
        self.aspect = aspect if aspect == "equal" else ""

    def axhline(
        self,
        y: float,
        *,
        color: str,
        linestyle: str = "-",
        linewidth: float = 1.8,
        zorder: float = 2,
    ) -> None:
        """A line at this height from edge to edge."""
        self.marks.append(Rule(float(y), True, color, linestyle, linewidth, zorder))

    def axvline(
        self,
        x: float,
        *,
        color: str,
        linestyle: str = "-",
        linewidth: float = 1.8,
        zorder: float = 2,
    ) -> None:
        """A line at this place on x, from edge to edge."""
        self.marks.append(Rule(float(x), False, color, linestyle, linewidth, zorder))

    def text(
        self,
        x: float,
        y: float,
        s: str,
        *,
        color: str | None = None,
        ha: str = "left",
        va: str = "baseline",
        fontsize: float = FONT,
    ) -> None:
        """Words at a place."""
        self.marks.append(Label(float(x), float(y), s, color or self.ink, fontsize, ha, va))

    def annotate(
        self,
        text: str,
        xy: Sequence[float],
        xytext: tuple[float, float] | None = None,
        *,
        textcoords: str = "data",
        color: str | None = None,
        ha: str = "left",
        va: str = "baseline",
        horizontalalignment: str | None = None,
        fontsize: float = FONT,
        arrowprops: Mapping[str, str] | None = None,
    ) -> None:
        """Words beside a point, moved by "offset points", or an arrow from `xytext` to it."""
        colour = color or (arrowprops or {}).get("color") or self.ink
        label = Label(float(xy[0]), float(xy[1]), text, colour, fontsize, horizontalalignment or ha, va)
        if arrowprops is not None:
            label.arrow_from = xytext
        elif xytext is not None:
            if textcoords != "offset points":
                raise ValueError(f"annotate: textcoords is 'offset points', got {textcoords!r}")
            label.offset = xytext
        self.marks.append(label)

    # --- Limits, ticks and names -------------------------------------------------------------------------

    def set(self, **settings: Any) -> None:
        """Several at once: title, xlabel, ylabel, and whatever `set_…` takes one argument of."""
        for name, value in settings.items():
            if name in self.names:
                self.names[name] = value
            else:
                setter = getattr(self, f"set_{name}")
                setter(*value) if name in ("xlim", "ylim") else setter(value)

    def set_title(self, title: str, fontsize: float = TITLE) -> None:
        """What stands above."""
        self.names["title"], self.title_size = title, fontsize

    def set_xlabel(self, label: str) -> None:
        """What stands below."""
        self.names["xlabel"] = label

    def set_ylabel(self, label: str) -> None:
        """What stands on the left, from below to above."""
        self.names["ylabel"] = label

    def set_xlim(self, left: float | None = None, right: float | None = None) -> None:
        """The ends of x; None leaves one as it is."""
        self.x.set_limits(left, right)

    def set_ylim(self, bottom: float | None = None, top: float | None = None) -> None:
        """The ends of y; None leaves one as it is."""
        self.y.set_limits(bottom, top)

    def get_ylim(self) -> tuple[float, float]:
        """The ends of y, below and above."""
        return self.y.limits()

    def set_xticks(self, ticks: Iterable[float], labels: Iterable[str] | None = None) -> None:
        """Where the ticks of x stand, and what is written there."""
        self.x.set_ticks(ticks, labels)

    def set_yticks(self, ticks: Iterable[float], labels: Iterable[str] | None = None) -> None:
        """Where the ticks of y stand, and what is written there."""
        self.y.set_ticks(ticks, labels)

    def set_xscale(self, value: str, base: float = 10) -> None:
        """ "log" or "linear"."""
        self.x.set_scale(value, base)

    def set_yscale(self, value: str, base: float = 10) -> None:
        """ "log" or "linear"."""
        self.y.set_scale(value, base)

    def margins(self, share: float) -> None:
        """How much is left free beside the data, as a share of what they span."""
        self.x.margin = self.y.margin = share

    def minorticks_off(self) -> None:
        """No ticks between those with names."""
        self.x.has_small_ticks = self.y.has_small_ticks = False

    def tick_params(self, *, labelbottom: bool = True, labelleft: bool = True) -> None:
        """Whether the ticks have names."""
        self.named_ticks = {name for name, on in (("x", labelbottom), ("y", labelleft)) if on}

    def grid(self, visible: bool, axis: str = "both") -> None:
        """Whether there are lines across, at the ticks of x, of y or of both."""
        which = {"x", "y"} if axis == "both" else {axis}
        self.grid_of = self.grid_of | which if visible else self.grid_of - which

    def invert_yaxis(self) -> None:
        """The first number of y above."""
        self.y.is_turned = not self.y.is_turned

    def set_aspect(self, aspect: str, adjustable: str = "box") -> None:
        """ "equal": a unit is as long on x as on y; the box gets smaller, or with "datalim" the limits wider."""
        if aspect != "equal":
            raise ValueError(f"set_aspect: expected 'equal', got {aspect!r}")
        self.aspect = aspect if adjustable == "box" else adjustable

    def axis(self, option: str) -> None:
        """ "off": no frame, no grid, no ticks."""
        if option != "off":
            raise ValueError(f"axis: expected 'off', got {option!r}")
        self.is_on = False

    def legend(
        self,
        *,
        loc: str = "best",
        bbox_to_anchor: tuple[float, float] | None = None,
        title: str = "",
        ncols: int = 1,
        fontsize: float = FONT,
    ) -> None:
        """What the marks with a label are: in a corner such as "upper left", in "center right", or where it is free."""
        self.own_legend = Legend(loc, bbox_to_anchor, title, ncols, fontsize, self.labelled())

    def labelled(self) -> list[Mark]:
        """The marks that have a label."""
        return [mark for mark in self.marks if mark.label]

    # --- As SVG ------------------------------------------------------------------------------------------

    def room(self, wide: float, high: float) -> tuple[float, float, float, float]:
        """What is needed on the left, right, above and below, in points, if the box is about so large."""
        left = right = 2.0
        top = self.title_size * 1.5 if self.names["title"] else 4.0
        below = 2.0
        if self.is_on and "y" in self.named_ticks:
            names = [name for _, name in self.y.ticks(high, 2 * FONT)]
            left += TICK + GAP + max((words.width(name, FONT) for name in names), default=-TICK - GAP)
            top = max(top, FONT / 2) if names else top
        if self.is_on and "x" in self.named_ticks:
            ticks = self.x.ticks(wide, 3 * FONT)
            below += (TICK + GAP + FONT) if ticks else 0
            for value, name in ticks:  # the last name goes over the edge
                at = float(self.x.scale.place(value, self.x.limits())) * wide
                half = words.width(name, FONT) / 2
                left, right = max(left, half - at + 2), max(right, at + half - wide + 2)
        below += 1.5 * FONT if self.names["xlabel"] else 0
        left += 1.5 * FONT if self.names["ylabel"] else 0
        return left, right, top, below

    def put(self, box: Box) -> None:
        """Give it its place in the figure, in points."""
        left, top, wide, high = box
        if self.aspect:
            span_x, span_y = (abs(axis.limits()[1] - axis.limits()[0]) for axis in (self.x, self.y))
            if self.aspect == "equal":
                unit = min(wide / span_x, high / span_y)
                box = (
                    left + (wide - unit * span_x) / 2,
                    top + (high - unit * span_y) / 2,
                    unit * span_x,
                    unit * span_y,
                )
            else:  # wider limits
                unit = min(wide / span_x, high / span_y)
                for axis, length in ((self.x, wide), (self.y, high)):
                    (low, end), wanted = axis.limits(), length / unit
                    more = (wanted - (end - low)) / 2
                    axis.set_limits(low - more, end + more)
        self.box = box

    def places(self) -> Places:
        """From numbers on x and y to points of the figure."""
        left, top, wide, high = self.box
        x_limits, y_limits = self.x.limits(), self.y.limits()
        return (
            lambda values: left + wide * self.x.scale.place(values, x_limits),
            lambda values: top + high * (1 - self.y.scale.place(values, y_limits)),
        )

    def beyond(self) -> np.ndarray:
        """How far words that stand among the numbers go over the box: left, right, top, bottom, in points."""
        left, top, wide, high = self.box
        places = self.places()
        boxes = [mark.box(places) for mark in self.marks if isinstance(mark, Label) and mark.words]
        over = np.array([(left - a, b - left - wide, top - c, d - top - high) for a, b, c, d in boxes])
        return np.maximum(0, over.max(axis=0)) if len(over) else np.zeros(4)

    def svg(self) -> str:
        """All of it."""
        left, top, wide, high = self.box
        places = self.places()
        ordered = sorted(self.marks, key=lambda mark: mark.zorder)
        inside = "".join(mark.draw(self._from_corner(places)) for mark in ordered if mark.is_cut)
        free = "".join(mark.draw(places) for mark in ordered if not mark.is_cut)
        drawn = (self._grid() if self.is_on else "") + (
            f'<svg x="{number(left)}" y="{number(top)}" width="{number(wide)}" height="{number(high)}" '
            f'overflow="hidden">{inside}</svg>'
        )
        return drawn + (self._frame() if self.is_on else "") + self._names() + free + self._legend(places)

    def _from_corner(self, places: Places) -> Places:
        """Points counted from the corner of the box: an SVG inside cuts off what is beyond it."""
        left, top, _, _ = self.box
        return lambda values: places[0](values) - left, lambda values: places[1](values) - top

    def _grid(self) -> str:
        left, top, wide, high = self.box
        x_ticks, y_ticks = self.x.ticks(wide, 3 * FONT), self.y.ticks(high, 2 * FONT)
        to_x, to_y = self.places()
        path = ""
        if "x" in self.grid_of:
            path += "".join(f"M{number(float(to_x(v)))} {number(top)}v{number(high)}" for v, _ in x_ticks)
        if "y" in self.grid_of:
            path += "".join(f"M{number(left)} {number(float(to_y(v)))}h{number(wide)}" for v, _ in y_ticks)
        return f'<path d="{path}" stroke="{self.lines}" stroke-width="0.6"/>' if path else ""

    def _frame(self) -> str:
        """The lines on the left and below, and the ticks with what is written there."""
        left, top, wide, high = self.box
        bottom = top + high
        to_x, to_y = self.places()
        path = (
            f"M{number(left)} {number(top)}v{number(high)}h{number(wide)}" if self.spines.are_visible else ""
        )
        drawn = ""
        for value, name in self.x.ticks(wide, 3 * FONT):
            x = float(to_x(value))
            path += f"M{number(x)} {number(bottom)}v{TICK}"
            if "x" in self.named_ticks:
                drawn += words.text(x, bottom + TICK + GAP, name, FONT, self.ink, "center", "top")
        for value, name in self.y.ticks(high, 2 * FONT):
            y = float(to_y(value))
            path += f"M{number(left)} {number(y)}h-{TICK}"
            if "y" in self.named_ticks:
                drawn += words.text(left - TICK - GAP, y, name, FONT, self.ink, "right", "center")
        path += "".join(
            f"M{number(float(to_x(v)))} {number(bottom)}v{SMALL_TICK}" for v in self.x.small_ticks()
        )
        path += "".join(
            f"M{number(left)} {number(float(to_y(v)))}h-{SMALL_TICK}" for v in self.y.small_ticks()
        )
        return f'<path d="{path}" fill="none" stroke="{self.lines}" stroke-width="{FRAME}"/>' + drawn

    def _names(self) -> str:
        left, top, wide, high = self.box
        before, _, _, below = self.room(wide, high)
        middle_x, middle_y = left + wide / 2, top + high / 2
        title, x_name, y_name = self.names["title"], self.names["xlabel"], self.names["ylabel"]
        return (
            words.text(middle_x, top - 0.45 * self.title_size, title, self.title_size, self.ink, "center")
            + words.text(middle_x, top + high + below - 0.3 * FONT, x_name, FONT, self.ink, "center")
            + words.text(
                left - before + FONT, middle_y, y_name, FONT, self.ink, "center", "baseline", turned=True
            )
        )

    def _legend(self, places: Places) -> str:
        legend = self.own_legend
        if legend is None or not legend.marks:
            return ""
        wide, high = legend.measure()
        left, top, box_wide, box_high = self.box
        pad = FONT / 2
        spots = {
            f"{y} {x}": (
                left + {"left": pad, "center": (box_wide - wide) / 2, "right": box_wide - wide - pad}[x],
                top + {"upper": pad, "center": (box_high - high) / 2, "lower": box_high - high - pad}[y],
            )
            for y in ("upper", "center", "lower")
            for x in ("left", "center", "right")
        }
        if legend.place == "best":
            spot = min(spots.values(), key=lambda at: self._covered(places, (*at, wide, high)))
        elif legend.place not in spots:
            raise ValueError(f"legend: loc is best or one of {', '.join(spots)}; got {legend.place!r}")
        else:
            spot = spots[legend.place]
        if legend.at is not None:  # its right, middle edge at this place of the box
            spot = (
                left + box_wide * legend.at[0] - wide - pad,
                top + box_high * (1 - legend.at[1]) - high / 2,
            )
        return legend.draw(*spot, self.ink)

    def _covered(self, places: Places, box: Box) -> int:
        """How many points of the lines a box would hide."""
        left, top, wide, high = box
        hidden = 0
        for mark in self.marks:
            if isinstance(mark, Line):
                x, y = places[0](mark.x), places[1](mark.y)
                hidden += int(((x > left) & (x < left + wide) & (y > top) & (y < top + high)).sum())
        return hidden
