"""The course's figures: one style, each drawn for a light and for a dark page. Needs matplotlib.

    python -m minigrad.course.figures RUN STEM

draws the training curve of a run's folder into STEM-light.png and STEM-dark.png.
"""

from __future__ import annotations

import argparse
import base64
import csv
import html
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

__all__ = ["SCHEMES", "Picture", "draw", "figure", "training_curve"]

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


def training_curve(run: str | Path, stem: str | Path) -> None:
    """The course of a pre-training run: MLM loss beside the unigram entropy, and both accuracies.

    run: the run's folder, with metrics.csv and evaluation.csv. Writes `stem`-light.png and `stem`-dark.png.
    """
    training, held_out = read_table(Path(run) / "metrics.csv"), read_table(Path(run) / "evaluation.csv")

    def smooth(values: list[float], width: int = 5) -> list[float]:
        return [sum(values[max(0, i - width + 1) : i + 1]) / min(i + 1, width) for i in range(len(values))]

    def plot(figure: Figure, colours: dict[str, str]) -> None:
        loss, accuracy = figure.subplots(1, 2)
        loss.plot(training["step"], smooth(training["mlm_loss"]), color=colours["first"], label="training")
        loss.plot(held_out["step"], held_out["mlm_loss"], "o", color=colours["second"], label="held out")
        loss.axhline(
            held_out["unigram_entropy"][0], color=colours["third"], linestyle="--", label="unigram entropy"
        )
        loss.set(xlabel="step", ylabel="masked-word loss (nats)")
        loss.legend(labelcolor=colours["ink"])
        for key, name, colour in (("nsp", "next sentence", "second"), ("mlm", "masked word", "first")):
            share = [100 * value for value in smooth(training[f"{key}_accuracy"])]
            accuracy.plot(training["step"], share, color=colours[colour], label=name)
            held = [100 * value for value in held_out[f"{key}_accuracy"]]
            accuracy.plot(held_out["step"], held, "o", color=colours[colour], markersize=5)
        accuracy.plot([], [], "o", color=colours["third"], markersize=5, label="held out")
        accuracy.set(xlabel="step", ylabel="accuracy (%)", ylim=(0, 100))
        accuracy.legend(labelcolor=colours["ink"])

    draw(plot, stem, (9.0, 3.4))


def main(arguments: Any = None) -> None:
    """Draw the training curve of a run."""
    parser = argparse.ArgumentParser(description=training_curve.__doc__)
    parser.add_argument("run", help="a run's folder")
    parser.add_argument("stem", help="where to write, without -light.png and -dark.png")
    options = parser.parse_args(arguments)
    training_curve(options.run, options.stem)


if __name__ == "__main__":
    main()
