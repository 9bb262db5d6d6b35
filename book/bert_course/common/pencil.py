"""What pictures of players are drawn with: words, boxes and arrows as SVG, in the palette's colours.

Places and sizes are in the picture's own units, from the upper left corner; `widgets.svg` makes a picture of the parts.
"""

from __future__ import annotations

import html

from bert_course.common.palette import colour


def words(
    x: float, y: float, text: str, size: int = 15, tone: str = "", anchor: str = "middle", **more: object
) -> str:
    """A line of text with its foot at `y`.

    tone: a name of the palette; without one, the page's ink. anchor: which part of it is at `x`, "start", "middle" or
    "end". more: further attributes of SVG, as font_weight="bold".
    """
    ink = colour(tone) if tone else "currentColor"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{ink}"{_attributes(more)}>'
        f"{html.escape(text)}</text>"
    )


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    tone: str = "",
    fill: float = 0,
    line: float = 1,
    **more: object,
) -> str:
    """A box with round corners, in one tone.

    tone: as in `words`. fill: how much of the tone is inside, from 0 to 1. line: how thick its outline is. more:
    further attributes of SVG, as stroke_dasharray="5 4".
    """
    ink = colour(tone) if tone else "currentColor"
    inside = f'fill="{ink}" fill-opacity="{fill:g}"' if fill else 'fill="none"'
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" {inside} '
        f'stroke="{ink}" stroke-width="{line:g}"{_attributes(more)}/>'
    )


def arrow(x0: float, x1: float, y: float, tone: str = "first") -> str:
    """A level arrow from `x0` to its tip at `x1`."""
    ink = colour(tone)
    return (
        f'<path d="M{x0:.1f} {y:.1f}H{x1 - 6:.1f}" stroke="{ink}" stroke-width="2.4" fill="none"/>'
        f'<path d="M{x1:.1f} {y:.1f}l-8 -5v10z" fill="{ink}"/>'
    )


def upright(x: float, y0: float, y1: float, tone: str = "token") -> str:
    """An arrow from `y0` up or down to its tip at `y1`."""
    ink, way = colour(tone), 1 if y1 > y0 else -1
    return (
        f'<path d="M{x:.1f} {y0:.1f}V{y1 - 5 * way:.1f}" stroke="{ink}" stroke-width="1.8" fill="none"/>'
        f'<path d="M{x:.1f} {y1:.1f}l-5 {-8 * way}h10z" fill="{ink}"/>'
    )


def _attributes(more: dict[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
