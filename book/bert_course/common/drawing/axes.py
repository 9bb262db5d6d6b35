"""One set of axes: what is drawn in it, its limits, ticks, names and legend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.drawing.axis import Axis
from bert_course.common.drawing.contour import Contour
from bert_course.common.drawing.frame import Frame, Spines
from bert_course.common.drawing.legend import Legend
from bert_course.common.drawing.marks import (
    CAPS,
    LINE_WIDTH,
    MARKER_SIZE,
    Band,
    Box,
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
from bert_course.common.drawing.words import FONT, TITLE, number


def _numbers(values: Any) -> np.ndarray:
    """One number or several, of any kind that can be gone through, as a row of floats."""
    return np.atleast_1d(np.asarray(list(values) if isinstance(values, Iterable) else values, float))


class Axes:
    """What `Figure.subplots` gives: matplotlib's methods, as far as the course uses them.

    ink, lines: the colours of words, and of frame and grid.
    """

    def __init__(self, x: Axis, y: Axis, ink: str, lines: str) -> None:
        self.x, self.y, self.ink = x, y, ink
        for axis in (x, y):
            axis.of.append(self)
        self.frame = Frame(x, y, ink, lines)
        self.marks: list[Mark] = []
        self.aspect = ""
        self.own_legend: Legend | None = None
        self.box: Box = (0, 0, 1, 1)

    # --- What is drawn -----------------------------------------------------------------------------------

    def plot(
        self,
        *data: Any,
        color: str,
        label: str = "",
        marker: str = "",
        linestyle: str = "",
        linewidth: float = LINE_WIDTH,
        markersize: float = MARKER_SIZE,
        ms: float | None = None,
        alpha: float = 1.0,
        zorder: float = 2,
        fillstyle: str = "full",
        solid_capstyle: str = "projecting",
    ) -> None:
        """A line through points, markers, or both. data: x and y, or y alone, and a format such as "o--" if need be."""
        if solid_capstyle not in CAPS:
            raise ValueError(f"plot: solid_capstyle is one of {', '.join(CAPS)}; got {solid_capstyle!r}")
        *numbers, fmt = data if isinstance(data[-1], str) else (*data, "")
        if len(numbers) not in (1, 2):
            raise ValueError(f"plot: expected x and y, or y alone; got {len(numbers)} rows of numbers")
        b = _numbers(numbers[-1])
        a = _numbers(numbers[0]) if len(numbers) == 2 else np.arange(len(b), dtype=float)
        if a.shape != b.shape:
            raise ValueError(f"plot: x has {len(a)} numbers, y has {len(b)}")
        own_marker, line = look_of(fmt)
        line = linestyle or line or ("" if own_marker else "-")
        look_of(line)
        size, filled = markersize if ms is None else ms, fillstyle != "none"
        self.marks.append(
            Line(
                *(a, b, color, line, own_marker or marker, linewidth, size, alpha, filled, label, zorder),
                ends=solid_capstyle,
            )
        )

    def loglog(self, *data: Any, base: float = 10, **look: Any) -> None:
        """As `plot`, with both scales logarithmic."""
        self.set_xscale("log", base)
        self.set_yscale("log", base)
        self.plot(*data, **look)

    def errorbar(
        self, x: Any, y: Any, *, xerr: Any, fmt: str, color: str, label: str = "", capsize: float = 0.0
    ) -> None:
        """Markers with a bar of `xerr` to the left and to the right."""
        mark, line = look_of(fmt)
        a, b, half = map(_numbers, (x, y, xerr))
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
        a, b = _numbers(x), _numbers(y)
        self.marks.append(Dots(a, b, facecolors or color, edgecolors or color, s, alpha, linewidths, zorder))

    def fill_between(
        self, x: Any, low: Any, high: Any, *, color: str, alpha: float, linewidth: float = 0
    ) -> None:
        """The area between two lines, or two numbers, without a line around it."""
        if linewidth:
            raise ValueError(f"fill_between: no line is drawn around an area, got linewidth={linewidth}")
        a = _numbers(x)
        under, over = (np.broadcast_to(np.asarray(values, float), a.shape) for values in (low, high))
        self.marks.append(Band(a, under, over, color, alpha))

    def bar(self, x: Any, heights: Any, width: float = 0.8, *, color: str) -> None:
        """Bars from 0, with their middles at x."""
        for middle, height in zip(_numbers(x), _numbers(heights), strict=True):
            self.marks.append(Rectangle((middle - width / 2, 0.0), width, height, color, foot="y"))

    def barh(self, y: Any, widths: Any, height: float = 0.8, left: float = 0.0, *, color: str) -> None:
        """Bars from `left` to the right, with their middles at y."""
        for middle, width in zip(_numbers(y), _numbers(widths), strict=True):
            self.marks.append(Rectangle((left, middle - height / 2), width, height, color, foot="x"))

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

    def contour(
        self,
        x: Any,
        y: Any,
        heights: Any,
        levels: Sequence[float],
        *,
        colors: str,
        linewidths: float = LINE_WIDTH,
    ) -> None:
        """The lines along which heights (rows, columns) are at one of the levels. x, y: as `np.meshgrid` gives them."""
        a, b, c = (np.asarray(values, float) for values in (x, y, heights))
        if not a.shape == b.shape == c.shape or c.ndim != 2 or (a != a[:1]).any() or (b != b[:, :1]).any():
            raise ValueError(
                f"contour: expected x, y and heights for the same grid, got {a.shape}, {b.shape}, {c.shape}"
            )
        self.marks.append(Contour(a[0], b[:, 0], c, levels, colors, linewidths))

    def vlines(
        self,
        x: Any,
        ymin: float,
        ymax: float,
        *,
        color: str,
        linestyle: str = "-",
        linewidth: float = LINE_WIDTH,
    ) -> None:
        """Upright lines, each from ymin to ymax."""
        look_of(linestyle)
        a = np.repeat(_numbers(x), 3)
        b = np.tile([ymin, ymax, np.nan], len(a) // 3)
        self.marks.append(Line(a, b, color, linestyle, width=linewidth, ends="butt"))

    def axhline(
        self,
        y: float,
        *,
        color: str,
        label: str = "",
        linestyle: str = "-",
        linewidth: float = LINE_WIDTH,
        zorder: float = 2,
    ) -> None:
        """A line at this height from edge to edge."""
        look_of(linestyle)
        self.marks.append(Rule(float(y), True, color, linestyle, linewidth, label, zorder))

    def axvline(
        self,
        x: float,
        *,
        color: str,
        label: str = "",
        linestyle: str = "-",
        linewidth: float = LINE_WIDTH,
        zorder: float = 2,
    ) -> None:
        """A line at this place on x, from edge to edge."""
        look_of(linestyle)
        self.marks.append(Rule(float(x), False, color, linestyle, linewidth, label, zorder))

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
        rotation: float = 0,
        fontweight: str = "normal",
    ) -> None:
        """Words at a place; rotation 90 is from below to above."""
        colour = color or self.ink
        self.marks.append(Label(float(x), float(y), s, colour, fontsize, ha, va, rotation, fontweight))

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
            if name in self.frame.names:
                self.frame.names[name] = value
            else:
                setter = getattr(self, f"set_{name}")
                setter(*value) if name in ("xlim", "ylim") else setter(value)

    @property
    def spines(self) -> Spines:
        """The lines on the left and below, to be shown or hidden."""
        return self.frame.spines

    def set_title(self, title: str, fontsize: float = TITLE) -> None:
        """What stands above."""
        self.frame.names["title"], self.frame.title_size = title, fontsize

    def set_xlabel(self, label: str) -> None:
        """What stands below."""
        self.frame.names["xlabel"] = label

    def set_ylabel(self, label: str) -> None:
        """What stands on the left, from below to above."""
        self.frame.names["ylabel"] = label

    def set_xlim(self, left: float | None = None, right: float | None = None) -> None:
        """The ends of x; None leaves one as it is."""
        self.x.set_limits(left, right)

    def set_ylim(self, bottom: float | None = None, top: float | None = None) -> None:
        """The ends of y; None leaves one as it is."""
        self.y.set_limits(bottom, top)

    def get_ylim(self) -> tuple[float, float]:
        """The ends of y, below and above."""
        return self.y.limits()

    def set_xticks(
        self, ticks: Iterable[float], labels: Iterable[Any] | None = None, *, fontsize: float | None = None
    ) -> None:
        """Where the ticks of x stand, and what is written there."""
        self.x.set_ticks(ticks, labels, fontsize)

    def set_xticklabels(self, labels: Iterable[Any]) -> None:
        """What is written at the ticks of x that were set before."""
        self.x.name_ticks(labels)

    def set_yticks(
        self, ticks: Iterable[float], labels: Iterable[Any] | None = None, *, fontsize: float | None = None
    ) -> None:
        """Where the ticks of y stand, and what is written there."""
        self.y.set_ticks(ticks, labels, fontsize)

    def set_yticklabels(self, labels: Iterable[Any]) -> None:
        """What is written at the ticks of y that were set before."""
        self.y.name_ticks(labels)

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

    def grid(self, visible: bool, axis: str = "both") -> None:
        """Whether there are lines across, at the ticks of x, of y or of both."""
        which = {"x", "y"} if axis == "both" else {axis}
        frame = self.frame
        frame.grid_of = frame.grid_of | which if visible else frame.grid_of - which

    def set_aspect(self, aspect: str) -> None:
        """ "equal": a unit is as long on x as on y; the box gets smaller."""
        if aspect != "equal":
            raise ValueError(f"set_aspect: expected 'equal', got {aspect!r}")
        self.aspect = aspect

    def axis(self, option: str) -> None:
        """ "off": no frame, no grid, no ticks."""
        if option != "off":
            raise ValueError(f"axis: expected 'off', got {option!r}")
        self.frame.is_on = False

    def legend(
        self,
        *,
        loc: str = "best",
        bbox_to_anchor: tuple[float, float] | None = None,
        title: str = "",
        ncols: int = 1,
        fontsize: float = FONT,
        labelcolor: str | None = None,
    ) -> None:
        """What the marks with a label are: in a corner such as "upper left", in "center right", or where it is free."""
        colour = labelcolor or self.ink
        self.own_legend = Legend(loc, bbox_to_anchor, title, ncols, fontsize, colour, self.labelled())

    def labelled(self) -> list[Mark]:
        """The marks that have a label."""
        return [mark for mark in self.marks if mark.label]

    # --- As SVG ------------------------------------------------------------------------------------------

    def put(self, box: Box) -> None:
        """Give it its place in the figure, in points."""
        left, top, wide, high = box
        if self.aspect:
            span_x, span_y = (abs(axis.limits()[1] - axis.limits()[0]) for axis in (self.x, self.y))
            unit = min(wide / span_x, high / span_y)
            box = (
                left + (wide - unit * span_x) / 2,
                top + (high - unit * span_y) / 2,
                unit * span_x,
                unit * span_y,
            )
        self.box = box

    def places(self) -> Places:
        """From numbers on x and y to points of the figure."""
        return self.frame.places(self.box)

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
        cut = (
            f'<svg x="{number(left)}" y="{number(top)}" width="{number(wide)}" height="{number(high)}" '
            f'overflow="hidden" style="width: {number(wide)}px; height: {number(high)}px; max-width: none">'
            f"{inside}</svg>"  # the style, because a page sets the width of every SVG in a figure
        )
        if self.frame.is_on:
            cut = self.frame.grid(self.box) + cut + self.frame.around(self.box)
        return cut + self.frame.title_and_names(self.box) + free + self._legend()

    def _from_corner(self, places: Places) -> Places:
        """Points counted from the corner of the box: an SVG inside cuts off what is beyond it."""
        left, top, _, _ = self.box
        return lambda values: places[0](values) - left, lambda values: places[1](values) - top

    def _legend(self) -> str:
        legend = self.own_legend
        return legend.draw(*legend.put(self.box, self._covered)) if legend and legend.marks else ""

    def _covered(self, box: Box) -> int:
        """How much a box would hide."""
        places = self.places()
        return sum(mark.hidden_by(box, places) for mark in self.marks)
