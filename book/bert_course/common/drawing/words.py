"""Text in SVG: how wide it will be, where its lines begin, and the little of TeX that figures need."""

from __future__ import annotations

import html
import re

FONT, TITLE = 11.0, 13.0  # points
LINE = 1.2  # from a line to the next, in sizes of the font
ANCHORS = {"left": "start", "center": "middle", "right": "end"}
# From the place that is asked for to the baseline, in sizes of the font, for text of one line.
ALIGN_DOWN = {"baseline": 0.0, "bottom": -0.2, "center": 0.35, "top": 0.8}
# Of text from below to above: its begin, middle or end is where this part of it is; and its upper or lower edge.
TURNED = {
    "baseline": "left", "bottom": "left", "center": "center", "top": "right", "left": "top", "right": "bottom",
}  # fmt: skip
# Widths of characters in sizes of the font: a browser's fonts differ, so a little more than most of them need.
NARROW, WIDE = frozenset(" .,:;'|!()[]ijltfI"), frozenset("mwMW@%")
MATHS = re.compile(r"\$([^$]*)\$")
# subscripts, in braces or of one letter; what is upright
PARTS = re.compile(r"_(?:\{([^}]*)\}|(\w))|([\d.,()]+)")
SUPERSCRIPT = re.compile(r"\^\{([^}]*)\}")


def number(value: float) -> str:
    """A coordinate with two digits after the point at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0", "-0" if round(value, 2) else "0")


def plain(words: str) -> str:
    """Without the signs of TeX: as many characters as will be seen."""
    return re.sub(r"[$_^{}]", "", words)


def width(words: str, size: float) -> float:
    """About how wide the longest line is, in points."""

    def of(line: str) -> float:
        return sum(0.36 if c in NARROW else 0.92 if c in WIDE else 0.62 for c in plain(line))

    return size * max(map(of, words.split("\n")))


def height(words: str, size: float) -> float:
    """How high the lines are together, in points."""
    return size * (LINE * words.count("\n") + 1)


def text(
    x: float,
    y: float,
    words: str,
    size: float,
    colour: str,
    ha: str = "left",
    va: str = "baseline",
    rotation: float = 0,
    weight: str = "normal",
) -> str:
    """An SVG element with these words; lines end with a newline, and $W_1$ is a letter with a subscript.

    ha, va: which part of the text is at (x, y), as in matplotlib. rotation: 0, or 90 for from below to above. weight:
    "normal" or "bold". Raises ValueError for other rotations.
    """
    if rotation not in (0, 90):
        raise ValueError(f"text: rotation is 0 or 90, got {rotation}")
    if not words:
        return ""
    along, across = (TURNED[va], TURNED[ha]) if rotation else (ha, va)
    lines = words.split("\n")
    down = ALIGN_DOWN[across] * size
    if across == "center":
        down -= LINE * size * (len(lines) - 1) / 2
    elif across in ("bottom", "baseline"):
        down -= LINE * size * (len(lines) - 1)
    first, *rest = (_marked_up(line) for line in lines)
    inside = first + "".join(
        f'<tspan x="{number(x)}" dy="{number(LINE * size)}">{line}</tspan>' for line in rest
    )
    look = f' transform="rotate(-90 {number(x)} {number(y)})"' if rotation else ""
    look += f' font-weight="{weight}"' if weight != "normal" else ""
    return (
        f'<text x="{number(x)}" y="{number(y + down)}" font-size="{number(size)}" fill="{colour}" '
        f'text-anchor="{ANCHORS[along]}"{look}>{inside}</text>'
    )


def _marked_up(line: str) -> str:
    """A line as SVG: ^{3} higher; what stands between dollars in italics, with _d or _{model} lower."""

    def shifted(words: str, by: float) -> str:
        back = f'<tspan dy="{number(-by)}">\N{ZERO WIDTH SPACE}</tspan>'  # what follows is on the line again
        return f'<tspan dy="{number(by)}" font-size="75%">{words}</tspan>{back}'

    def maths(found: re.Match[str]) -> str:
        def part(of: re.Match[str]) -> str:
            lower = of[1] or of[2]
            return shifted(lower, 2.5) if lower else f'<tspan font-style="normal">{of[3]}</tspan>'

        return f'<tspan font-style="italic">{PARTS.sub(part, found[1])}</tspan>'

    raised = SUPERSCRIPT.sub(lambda found: shifted(found[1], -4), html.escape(line, quote=False))
    return MATHS.sub(maths, raised)
