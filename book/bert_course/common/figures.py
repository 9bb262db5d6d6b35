"""The course's figures: one style, drawn once, in colours that follow the page.

matplotlib draws them. Where a page of the site runs its own cells there is none, and `common.drawing` draws.
"""

from __future__ import annotations

import csv
import html
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_course.common.palette import COLOURS, STYLE, colour

IN_A_PAGE = sys.platform == "emscripten"
if TYPE_CHECKING or IN_A_PAGE:
    from bert_course.common.drawing import Figure as Figure
    from bert_course.common.drawing import Rectangle as Rectangle
else:
    try:
        from matplotlib.figure import Figure as Figure
        from matplotlib.patches import Rectangle as Rectangle
    except ImportError as error:
        raise ModuleNotFoundError("the course's figures need matplotlib: pip install matplotlib") from error

# on a Figure of matplotlib, or of bert_course.common.drawing
Plot = Callable[[Any, dict[str, str]], None]

SCHEMES: dict[str, dict[str, str]] = {
    scheme: {name: pair[i] for name, pair in COLOURS.items()} for i, scheme in enumerate(("light", "dark"))
}

_LAYOUT = "<style>.course-figure svg{width:100%;height:auto;display:block}</style>"

# What an error says that a page may raise where matplotlib would draw.
NOTE = "A page draws without matplotlib, with bert_course.common.drawing. What is not in there, Jupyter can draw."


class Picture:
    """A figure in a cell's output: an SVG in the page's colours, which says what there is to see."""

    def __init__(self, svg: str, alt: str, width: int) -> None:
        self.svg, self.alt, self.width = svg, alt, width

    @property
    def drawn(self) -> str:
        """The SVG in colours that follow the page's."""
        drawn = self.svg
        for name, (light, _) in COLOURS.items():
            drawn = drawn.replace(light, colour(name))
        return drawn

    def _repr_html_(self) -> str:
        alt = html.escape(self.alt)
        drawn = self.drawn.replace("<svg ", f'<svg class="course-drawing" role="img" aria-label="{alt}" ', 1)
        return (
            f'<div class="course-figure course-colours" style="max-width: {self.width}px">{STYLE}{_LAYOUT}'
            f"{drawn}</div>"
        )

    def __repr__(self) -> str:
        return f"Figure: {self.alt}"


class Drawing:
    """HTML in the page's colours, and what it says as text."""

    def __init__(self, body: str, style: str, text: str) -> None:
        self.body, self.style, self.text = body, style, text

    def _repr_html_(self) -> str:
        return f'<div class="course-colours">{STYLE}<style>{self.style}</style>{self.body}</div>'

    def __repr__(self) -> str:
        return self.text


def figure(plot: Plot, alt: str, size: tuple[float, float] = (5.4, 3.4)) -> Picture:
    """A figure to be the last line of a cell.

    plot: puts axes on an empty figure, with the colours it is given (the names of `palette.COLOURS`). alt: what there
    is to see, for those who cannot. size: width and height in inches; wider than 5.4 gets small on a phone.
    """
    if IN_A_PAGE:
        return Picture(drawn_here(plot, size), alt, round(96 * size[0]))
    import matplotlib

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "minigrad", "path.simplify_threshold": 0.5}
    with matplotlib.rc_context(settings):
        file = io.StringIO()
        _drawn(plot, size, "light", ground="none").savefig(
            file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return Picture(_small(file.getvalue()), alt, round(96 * size[0]))


def drawn_here(plot: Plot, size: tuple[float, float]) -> str:
    """The figure as SVG without matplotlib: the same in Jupyter and in a page."""
    from bert_course.common import drawing

    canvas = drawing.Figure(size, SCHEMES["light"]["ink"], SCHEMES["light"]["grid"])
    try:
        plot(canvas, SCHEMES["light"])
    except (AttributeError, TypeError) as error:  # a method or a setting that the course does not use
        error.add_note(NOTE)
        raise
    return canvas.svg()


def tinted(values: np.ndarray, above: str, below: str | None = None) -> np.ndarray:
    """Numbers from -1 to 1 as colours (…, 4): one above 0, the other below (#rrggbb), clear at 0."""
    image = np.empty((*values.shape, 4))
    for part, name in ((values >= 0, above), (values < 0, below or above)):
        image[part, :3] = [int(name[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    image[..., 3] = np.abs(values).clip(0, 1)
    return image


def draw(plot: Plot, stem: str | Path, size: tuple[float, float]) -> None:
    """The same into two files for pages that are no notebooks, `stem`-light.png on white and `stem`-dark.png."""
    for scheme in SCHEMES:
        path = Path(f"{stem}-{scheme}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas = _drawn(plot, size, scheme, ground="white" if scheme == "light" else "none")
        canvas.savefig(path, format="png", dpi=160, metadata={"Software": None})


def _drawn(plot: Plot, size: tuple[float, float], scheme: str, ground: str) -> Any:
    """The figure in the course's style and the scheme's colours, by matplotlib."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    colours = SCHEMES[scheme]
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
        canvas = Canvas(figsize=size, layout="constrained")
        canvas.patch.set_facecolor(ground)
        plot(canvas, colours)
        for axes in canvas.axes:
            axes.patch.set_facecolor("none")
    return canvas


def _rounded(tag: str) -> str:
    """The tag with two digits after the point in all its numbers."""
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number.group()):.2f}", tag)


def _small(svg: str) -> str:
    """The SVG element alone, with two digits after the point and without names that a second figure would repeat."""
    svg = svg[svg.index("<svg ") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = svg.replace("<svg ", '<svg stroke-linejoin="round" ', 1)
    svg = re.sub(r"font-family: [^;]*", "font-family: sans-serif", svg)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    # what a text says between the tags stays
    svg = re.sub(r"<[^>]+>", lambda tag: _rounded(tag.group()), svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip()


def read_table(path: str | Path) -> dict[str, list[float]]:
    """A CSV of numbers as columns by name."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}
