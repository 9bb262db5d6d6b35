"""The course's figures: one style, each drawn for a light and for a dark page. Needs matplotlib."""

from __future__ import annotations

import base64
import csv
import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import matplotlib
    from matplotlib.figure import Figure
except ImportError as error:
    raise ModuleNotFoundError(
        "the course's figures need matplotlib: pip install 'minigrad[course]'"
    ) from error

__all__ = ["SCHEMES", "Picture", "Plot", "draw", "figure", "read_table"]

Plot = Callable[[Figure, dict[str, str]], None]

# Okabe & Ito's colours, which the colour-blind can tell apart; lighter ones on a dark page.
SCHEMES: dict[str, dict[str, str]] = {
    "light": {
        "ink": "#24292f",
        "grid": "#d8dee4",
        "first": "#0072b2",
        "second": "#d55e00",
        "third": "#595959",
    },
    "dark": {
        "ink": "#e6edf3",
        "grid": "#3d444d",
        "first": "#56b4e9",
        "second": "#f0a35e",
        "third": "#b0b0b0",
    },
}


# A page says which scheme it has: the book on <html>, JupyterLab on <body>. Elsewhere the light picture shows.
_SWITCH = """<style>
html[data-theme="dark"] .picture-light, body[data-jp-theme-light="false"] .picture-light {display: none !important}
html[data-theme="dark"] .picture-dark, body[data-jp-theme-light="false"] .picture-dark {display: block !important}
</style>"""


class Picture:
    """A figure in a cell's output: both drawings with their alt text, of which the page shows one."""

    def __init__(self, drawings: dict[str, bytes], alt: str, width: int) -> None:
        self.drawings, self.alt, self.width = drawings, alt, width

    def _repr_html_(self) -> str:
        images = []
        for scheme, png in self.drawings.items():
            source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
            hidden = "display: none; " if scheme == "dark" else ""
            images.append(
                f'<img class="picture-{scheme}" style="{hidden}width: {self.width}px; max-width: 100%" '
                f'alt="{html.escape(self.alt)}" src="{source}">'
            )
        return "\n".join([*images, _SWITCH])

    def __repr__(self) -> str:
        return f"Figure: {self.alt}"


def figure(plot: Plot, alt: str, size: tuple[float, float] = (5.4, 3.4)) -> Picture:
    """A figure to be the last line of a cell.

    plot: puts axes on an empty figure, with the colours it is given (the names in `SCHEMES`). alt: what there
    is to see, for those who cannot. size: width and height in inches; wider than 5.4 gets small on a phone.
    """
    return Picture(_drawings(plot, size), alt, round(96 * size[0]))


def draw(plot: Plot, stem: str | Path, size: tuple[float, float]) -> None:
    """The same into two files, `stem`-light.png and `stem`-dark.png."""
    for scheme, png in _drawings(plot, size).items():
        path = Path(f"{stem}-{scheme}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)


def _drawings(plot: Plot, size: tuple[float, float]) -> dict[str, bytes]:
    """The figure as PNG in both schemes: on white for a light page, see-through for a dark one."""
    drawings = {}
    for scheme, colours in SCHEMES.items():
        ink, grid = colours["ink"], colours["grid"]
        style: Any = {
            "font.size": 11,
            "text.color": ink,
            "axes.labelcolor": ink,
            "axes.edgecolor": grid,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": grid,
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "xtick.color": ink,
            "ytick.color": ink,
            "lines.linewidth": 1.8,
        }
        with matplotlib.rc_context(style):
            canvas = Figure(figsize=size, layout="constrained")
            canvas.patch.set_facecolor("white" if scheme == "light" else "none")
            plot(canvas, colours)
            for axes in canvas.axes:
                axes.patch.set_facecolor("none")
            png = io.BytesIO()
            canvas.savefig(png, format="png", dpi=160, metadata={"Software": None})
        drawings[scheme] = png.getvalue()
    return drawings


def read_table(path: str | Path) -> dict[str, list[float]]:
    """A CSV of numbers as columns by name."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}
