"""What axes can hold: each mark knows the numbers it needs room for, and draws itself as SVG."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bert_course.common.drawing import words
from bert_course.common.drawing.words import number

Places = tuple[Callable[[Any], np.ndarray], Callable[[Any], np.ndarray]]  # numbers on x and on y -> points
Box = tuple[float, float, float, float]  # left, top, width, height, in points
NOTHING = np.empty(0)
MARKERS = "osD^vPx+"
# Dashes and gaps, times the line's width.
DASHES = {"-": (), "--": (3.7, 1.6), ":": (1.0, 1.65), "-.": (6.4, 1.6, 1.0, 1.6)}
# ends of lines without dashes, and SVG's names
CAPS = {"butt": "butt", "round": "round", "projecting": "square"}
LINE_WIDTH, MARKER_SIZE = 1.8, 6.0
SEEN = 0.4  # points: a shorter step in a line is left out


class Mark:
    """Something that is drawn; higher `zorder` lies on top. Some are cut off where the axes end."""

    zorder: float = 2
    is_cut = True
    label = ""

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers on x and on y that the limits should have room for."""
        return NOTHING, NOTHING

    def edges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The numbers on x and on y at which limits may end without a margin."""
        return (), ()

    def draw(self, places: Places) -> str:
        """SVG elements."""
        raise NotImplementedError

    def sample(self, x: float, y: float, length: float) -> str:
        """What stands for it in a legend, from (x, y) to the right."""
        return ""

    def hidden_by(self, box: Box, places: Places) -> int:
        """How much of it a legend in this box would hide: points, and 1 for a line, words or a rectangle."""
        return 0


def _points_in(box: Box, x: np.ndarray, y: np.ndarray) -> int:
    left, top, wide, high = box
    return int(((x > left) & (x < left + wide) & (y > top) & (y < top + high)).sum())


def _line_in(box: Box, x: np.ndarray, y: np.ndarray) -> int:
    """1 if a line through these points goes through the box, 0 otherwise."""
    at = np.linspace(0, len(x) - 1, 50 * len(x))  # between its points, too
    return int(
        len(x) > 1 and _points_in(box, *(np.interp(at, np.arange(len(x)), part) for part in (x, y))) > 0
    )


def _overlap(box: Box, x: np.ndarray, y: np.ndarray) -> int:
    """1 if the rectangle between two corners has some of the box, 0 otherwise."""
    left, top, wide, high = box
    return int(x.min() < left + wide and x.max() > left and y.min() < top + high and y.max() > top)


def look_of(fmt: str) -> tuple[str, str]:
    """The marker and the line of a format such as "o-"; a marker alone has no line. Raises ValueError for others."""
    marker = next((c for c in fmt if c in MARKERS), "")
    line = fmt.replace(marker, "", 1) if marker else fmt
    if line and line not in DASHES:
        raise ValueError(
            f"a line is one of {', '.join(DASHES)} behind one of the markers {MARKERS}; got {fmt!r}"
        )
    return marker, line


@dataclass
class Line(Mark):
    """Points joined by a line, with a marker at each, or one of the two alone."""

    x: np.ndarray
    y: np.ndarray
    colour: str
    line: str = "-"
    marker: str = ""
    width: float = LINE_WIDTH
    size: float = MARKER_SIZE
    alpha: float = 1.0
    filled: bool = True
    label: str = ""
    zorder: float = 2
    half_x: np.ndarray = field(default_factory=lambda: NOTHING)  # of the error bars
    cap: float = 0.0
    ends: str = "projecting"  # of the line, one of CAPS

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Its points, with their error bars."""
        if self.half_x.size:
            return np.concatenate([self.x - self.half_x, self.x + self.half_x]), self.y
        return self.x, self.y

    def draw(self, places: Places) -> str:
        """Error bars, line, markers."""
        x, y = places[0](self.x), places[1](self.y)
        drawn = self._bars(places, y) if self.half_x.size else ""
        if self.line:
            drawn += polyline(x, y, self.colour, self.width, self.line, self.alpha, self.ends)
        return drawn + self._markers(x, y)

    def _bars(self, places: Places, y: np.ndarray) -> str:
        left, right = places[0](self.x - self.half_x), places[0](self.x + self.half_x)
        return "".join(
            f'<path d="M{number(a)} {number(v)}H{number(b)}M{number(a)} {number(v - self.cap)}v{number(2 * self.cap)}'
            f'M{number(b)} {number(v - self.cap)}v{number(2 * self.cap)}" stroke="{self.colour}" '
            f'stroke-width="{number(self.width)}"/>'
            for a, b, v in zip(left, right, y, strict=True)
        )

    def _markers(self, x: np.ndarray, y: np.ndarray) -> str:
        if not self.marker:
            return ""
        return "".join(
            marker(self.marker, a, b, self.size, self.colour, self.alpha, self.filled)
            for a, b in zip(x, y, strict=True)
            if np.isfinite(a) and np.isfinite(b)
        )

    def hidden_by(self, box: Box, places: Places) -> int:
        """Its points, and the line if it goes through."""
        x, y = places[0](self.x), places[1](self.y)
        return _points_in(box, x, y) + (_line_in(box, x, y) if self.line else 0)

    def sample(self, x: float, y: float, length: float) -> str:
        """A short line with a marker."""
        ends, heights = np.array([x, x + length]), np.array([y, y])
        drawn = ""
        if self.line:
            drawn = polyline(ends, heights, self.colour, self.width, self.line, self.alpha, self.ends)
        return drawn + self._markers(ends.mean(keepdims=True), heights[:1])


def polyline(
    x: np.ndarray, y: np.ndarray, colour: str, width: float, line: str, alpha: float, ends: str = "projecting"
) -> str:
    """A path through the points, in pieces where a number is not finite, without steps too small to be seen."""
    path, last, skipped = [], (np.nan, np.nan), ""
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            path.append(skipped)
            last, skipped = (np.nan, np.nan), ""
        elif math.hypot(a - last[0], b - last[1]) < SEEN:
            skipped = f"L{number(a)} {number(b)}"
        else:
            path.append(f"{'M' if math.isnan(last[0]) else 'L'}{number(a)} {number(b)}")
            last, skipped = (a, b), ""
    path.append(skipped)  # a line goes to its end
    dashes = " ".join(number(width * part) for part in DASHES[line])
    dashed = f' stroke-dasharray="{dashes}"' if dashes else f' stroke-linecap="{CAPS[ends]}"'
    return (
        f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-linejoin="round" '
        f'stroke-width="{number(width)}"'
        f"{dashed}{_opacity(alpha)}/>"
    )


def _opacity(alpha: float) -> str:
    return "" if alpha == 1 else f' opacity="{number(alpha)}"'


def marker(
    kind: str, x: float, y: float, size: float, colour: str, alpha: float = 1.0, filled: bool = True
) -> str:
    """One marker with its middle at (x, y). size: its width in points."""
    r = size / 2
    paint = f'fill="{colour if filled else "none"}" stroke="{colour}"{_opacity(alpha)}'
    if kind == "o":
        return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(r)}" {paint}/>'
    corners = {
        "s": [(-r, -r), (r, -r), (r, r), (-r, r)],
        "D": [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)],
        "^": [(0, -r), (r, r), (-r, r)],
        "v": [(0, r), (r, -r), (-r, -r)],
    }
    if kind in corners:
        points = " ".join(f"{number(x + a)},{number(y + b)}" for a, b in corners[kind])
        return f'<polygon points="{points}" {paint}/>'
    a = number(size)
    path = f"M{number(x - r)} {number(y)}h{a}M{number(x)} {number(y - r)}v{a}"
    if kind == "x":
        path = f"M{number(x - r)} {number(y - r)}l{a} {a}M{number(x - r)} {number(y + r)}l{a} -{a}"
    bold = r if kind == "P" else 1.0  # P is a plus with thick arms
    return f'<path d="{path}" stroke="{colour}" stroke-width="{number(bold)}"{_opacity(alpha)}/>'


@dataclass
class Dots(Mark):
    """Dots of an area, `s` square points each, filled or as rings."""

    x: np.ndarray
    y: np.ndarray
    face: str
    edge: str
    s: float
    alpha: float = 1.0
    width: float = 1.0
    zorder: float = 1

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Their middles."""
        return self.x, self.y

    def hidden_by(self, box: Box, places: Places) -> int:
        """Their middles."""
        return _points_in(box, places[0](self.x), places[1](self.y))

    def draw(self, places: Places) -> str:
        """Circles."""
        r, stroke = number(np.sqrt(self.s) / 2), f'stroke="{self.edge}" stroke-width="{number(self.width)}"'
        return "".join(
            f'<circle cx="{number(a)}" cy="{number(b)}" r="{r}" fill="{self.face}" {stroke}{_opacity(self.alpha)}/>'
            for a, b in zip(places[0](self.x), places[1](self.y), strict=True)
        )


@dataclass
class Band(Mark):
    """The area between two lines."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    colour: str
    alpha: float
    zorder: float = 1

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Both lines."""
        return self.x, np.concatenate([self.low, self.high])

    def draw(self, places: Places) -> str:
        """A polygon."""
        x = np.concatenate([self.x, self.x[::-1]])
        y = np.concatenate([self.low, self.high[::-1]])
        points = " ".join(f"{number(a)},{number(b)}" for a, b in zip(places[0](x), places[1](y), strict=True))
        return f'<polygon points="{points}" fill="{self.colour}"{_opacity(self.alpha)}/>'


@dataclass
class Rule(Mark):
    """A line from edge to edge of the axes: at a height, or at a place on x."""

    at: float
    is_level: bool
    colour: str
    line: str = "-"
    width: float = LINE_WIDTH
    label: str = ""
    zorder: float = 2

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Its place, on one of the two."""
        own = np.array([self.at])
        return (NOTHING, own) if self.is_level else (own, NOTHING)

    def draw(self, places: Places) -> str:
        """A line that goes far beyond the axes."""
        return polyline(*self._ends(places), self.colour, self.width, self.line, 1.0)

    def hidden_by(self, box: Box, places: Places) -> int:
        """Whether it goes through."""
        x, y = self._ends(places)
        return _overlap(box, x, y)

    def _ends(self, places: Places) -> tuple[np.ndarray, np.ndarray]:
        far = np.array([-1e4, 1e4])  # points: cut off at the axes
        own = np.repeat(places[self.is_level](np.array([self.at])), 2)
        return (far, own) if self.is_level else (own, far)

    def sample(self, x: float, y: float, length: float) -> str:
        """A short line."""
        ends = np.array([x, x + length]), np.array([y, y])
        return polyline(*ends, self.colour, self.width, self.line, 1.0)


class Rectangle(Mark):
    """A rectangle from a corner (x, y), with matplotlib's settings and their short names (fc, ec, lw)."""

    zorder = 1

    def __init__(
        self,
        xy: tuple[float, float],
        width: float,
        height: float,
        facecolor: str = "none",
        edgecolor: str = "none",
        linewidth: float = 1.0,
        alpha: float = 1.0,
        *,
        fc: str | None = None,
        ec: str | None = None,
        lw: float | None = None,
        foot: str = "",
    ) -> None:
        self.xy, self.width, self.height, self.alpha = xy, width, height, alpha
        self.face, self.edge = fc or facecolor, ec or edgecolor
        self.line = linewidth if lw is None else lw
        self.foot = foot  # "x" or "y": a bar, which may stand on the end of the axes

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Two corners."""
        (x, y), wide, high = self.xy, self.width, self.height
        return np.array([x, x + wide]), np.array([y, y + high])

    def hidden_by(self, box: Box, places: Places) -> int:
        """Whether there is some of it."""
        x, y = (place(ends) for place, ends in zip(places, self.reach(), strict=True))
        return _overlap(box, x, y)

    def edges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The foot of a bar."""
        return (self.xy[:1] if self.foot == "x" else ()), (self.xy[1:] if self.foot == "y" else ())

    def draw(self, places: Places) -> str:
        """A rectangle."""
        x, y = (place(ends) for place, ends in zip(places, self.reach(), strict=True))
        return (
            f'<rect x="{number(x.min())}" y="{number(y.min())}" width="{number(np.ptp(x))}" '
            f'height="{number(np.ptp(y))}" fill="{self.face}" stroke="{self.edge}" '
            f'stroke-width="{number(self.line)}"{_opacity(self.alpha)}/>'
        )


@dataclass
class Image(Mark):
    """Colours (rows, columns, 4) from 0 to 1 as a picture, a square of one colour for each; row 0 is above."""

    colours: np.ndarray
    zorder: float = 0

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Its edges: the middle of the first square is at 0."""
        rows, columns = self.colours.shape[:2]
        return np.array([-0.5, columns - 0.5]), np.array([-0.5, rows - 0.5])

    def edges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The same."""
        x, y = self.reach()
        return tuple(x), tuple(y)

    def draw(self, places: Places) -> str:
        """A picture of as many pixels as there are colours, stretched."""
        x, y = (place(ends) for place, ends in zip(places, self.reach(), strict=True))
        code = base64.b64encode(_png(self.colours)).decode()
        return (
            f'<image x="{number(x.min())}" y="{number(y.min())}" width="{number(np.ptp(x))}" '
            f'height="{number(np.ptp(y))}" preserveAspectRatio="none" style="image-rendering: pixelated" '
            f'href="data:image/png;base64,{code}"/>'
        )


def _png(colours: np.ndarray) -> bytes:
    """(rows, columns, 4) from 0 to 1 as a PNG with 8 bits a channel (W3C's PNG specification, section 11)."""
    pixels = np.rint(255 * colours.clip(0, 1)).astype(np.uint8)
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)  # 0: no filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


@dataclass
class Label(Mark):
    """Words at a place among the numbers, moved by so many points, or an arrow that ends there."""

    x: float
    y: float
    words: str
    colour: str
    size: float
    ha: str = "left"
    va: str = "baseline"
    rotation: float = 0
    weight: str = "normal"
    offset: tuple[float, float] = (0.0, 0.0)  # to the right and up
    arrow_from: tuple[float, float] | None = None  # numbers on x and y
    zorder: float = 3
    is_cut = False

    def draw(self, places: Places) -> str:
        """The words, and the arrow."""
        x, y = self._point(places, self.x, self.y)
        drawn = words.text(
            x, y, self.words, self.size, self.colour, self.ha, self.va, self.rotation, self.weight
        )
        return drawn + (self._arrow(places, x, y) if self.arrow_from else "")

    def box(self, places: Places) -> tuple[float, float, float, float]:
        """About where it will be: left, right, top, bottom, in points."""
        x, y = self._point(places, self.x, self.y)
        wide, high = words.width(self.words, self.size), words.height(self.words, self.size)
        if self.rotation:
            wide, high = high, wide
        left = x - {"left": 0.0, "center": 0.5, "right": 1.0}[self.ha] * wide
        above = 1.0 if self.rotation else 0.8
        top = y - {"baseline": above, "bottom": 1.0, "center": 0.5, "top": 0.0}[self.va] * high
        return left, left + wide, top, top + high

    def hidden_by(self, box: Box, places: Places) -> int:
        """Whether there is some of it."""
        left, right, top, bottom = self.box(places)
        return _overlap(box, np.array([left, right]), np.array([top, bottom]))

    def _point(self, places: Places, x: float, y: float) -> tuple[float, float]:
        a, b = (float(place(np.array([value]))[0]) for place, value in zip(places, (x, y), strict=True))
        return a + self.offset[0], b - self.offset[1]

    def _arrow(self, places: Places, x: float, y: float) -> str:
        assert self.arrow_from is not None
        from_x, from_y = self._point(places, *self.arrow_from)
        length = float(np.hypot(x - from_x, y - from_y)) or 1.0
        along_x, along_y = (x - from_x) / length, (y - from_y) / length
        wings = "".join(
            f"M{number(x)} {number(y)}l{number(-4 * along_x - side * along_y)} {number(-4 * along_y + side * along_x)}"
            for side in (2, -2)
        )
        path = f"M{number(from_x)} {number(from_y)}L{number(x)} {number(y)}{wings}"
        return f'<path d="{path}" fill="none" stroke="{self.colour}"/>'
