"""The paths of optimisers over the contours of a valley, as a picture for `widgets.player`."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping

import numpy as np

from minigrad.course.widgets import BLUE, RED, svg

__all__ = ["valley"]

LEVELS = (0.02, 0.1, 0.3, 0.7, 1.3, 2.1)  # of the loss


def valley(
    paths: Mapping[str, np.ndarray], curvature: tuple[float, float], reach: float, labels: tuple[str, str]
) -> str:
    """Paths over the contours of ½ (a x² + b y²) as SVG, both axes on one scale, x from -reach to reach.

    paths: at most two, each (n, 2), whose start is marked with a ring and whose end with a dot. curvature: a and b.
    labels: of the horizontal and the vertical axis.
    """
    width, height, foot = 480, 220, 50
    scale, middle = width / (2 * reach), np.array([width / 2, height / 2])
    parts = []
    for level in LEVELS:
        rx, ry = (scale * math.sqrt(2 * level / c) for c in curvature)
        parts.append(
            f'<ellipse cx="{middle[0]:g}" cy="{middle[1]:g}" rx="{rx:.1f}" ry="{ry:.1f}" fill="none" '
            'stroke="currentColor" stroke-opacity="0.3"/>'
        )
    legend = []
    for number, (name, path) in enumerate(paths.items()):
        colour, dashes = (BLUE, RED)[number], ' stroke-dasharray="7 4"' if number else ""
        # A path that runs away leaves the picture.
        points = np.clip(path * (scale, -scale) + middle, -9999, 9999)
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        for (x, y), fill in ((points[0], "none"), (points[-1], colour)):
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="{colour}" stroke-width="2"/>'
            )
        x, y = 8 + 240 * number, height + 18
        legend.append(
            f'<line x1="{x}" x2="{x + 30}" y1="{y - 5}" y2="{y - 5}" stroke="{colour}" stroke-width="3"{dashes}/>'
            f'<text x="{x + 38}" y="{y}" fill="currentColor" font-size="14">{html.escape(name)}</text>'
        )
    legend.append(
        f'<text x="{width / 2:g}" y="{height + foot - 8}" text-anchor="middle" fill="currentColor" font-size="13">'
        f"across: {html.escape(labels[0])}; up: {html.escape(labels[1])}</text>"
    )
    field = f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'  # cut at its edges
    return svg(width, height + foot, [field, *legend])
