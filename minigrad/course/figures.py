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

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ImportError as error:
    raise ModuleNotFoundError(
        "the course's figures need matplotlib: pip install 'minigrad[course]'"
    ) from error

__all__ = ["SCHEMES", "Picture", "course_map", "draw", "figure", "read_table", "training_curve"]

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


MAP_ALT = (
    "BERT as a tower of boxes, each with the chapter that builds it. From below: the engine (1 to 3), text cut into "
    "pieces (4), embeddings (5); then the encoder layer, repeated (11): attention heads (6, 7) with masks (8), Add and "
    "Norm (10), feed-forward (9), Add and Norm (10); on top its two tasks, hidden words (12) and sentence pairs (13)."
)


def course_map(canvas: Figure, colours: dict[str, str]) -> None:
    """BERT's parts from the text up, each with the chapter that builds it: a `plot` for `figure` and `draw`."""
    axes = canvas.subplots()
    axes.set(xlim=(0, 10), ylim=(0, 12.4))
    axes.axis("off")

    def box(left: float, bottom: float, width: float, text: str, chapter: str, colour: str) -> None:
        axes.add_patch(Rectangle((left, bottom), width, 0.9, fill=False, edgecolor=colour, linewidth=1.8))
        axes.text(left + 0.25, bottom + 0.45, text, va="center", color=colours["ink"])
        axes.text(left + width - 0.2, bottom + 0.45, chapter, va="center", ha="right", color=colour)

    def arrow(x: float, bottom: float, top: float) -> None:
        style = {"arrowstyle": "->", "color": colours["third"]}
        axes.annotate("", (x, top), (x, bottom), arrowprops=style)

    first, second, third = colours["first"], colours["second"], colours["third"]
    box(0.5, 0.1, 9, "the engine: arrays, gradients, optimisers", "1-3", third)
    box(0.5, 1.5, 9, "text cut into pieces", "4", first)
    box(0.5, 2.9, 9, "embeddings: token + segment + position", "5", first)
    axes.add_patch(
        Rectangle((0.2, 4.25), 9.6, 5.75, fill=False, edgecolor=third, linewidth=1, linestyle="--")
    )
    axes.text(9.6, 9.6, "the encoder: N such layers    11", ha="right", va="center", color=third)
    box(0.5, 4.5, 9, "attention: heads and masks", "6, 7, 8", second)
    box(0.5, 5.7, 9, "Add & Norm", "10", second)
    box(0.5, 6.9, 9, "feed-forward", "9", second)
    box(0.5, 8.1, 9, "Add & Norm", "10", second)
    box(0.5, 10.9, 4.3, "hidden words", "12", first)
    box(5.2, 10.9, 4.3, "sentence pairs", "13", first)
    for bottom, top in ((1.0, 1.5), (2.4, 2.9), (3.8, 4.5), (5.4, 5.7), (6.6, 6.9), (7.8, 8.1)):
        arrow(5, bottom, top)
    arrow(2.6, 10.0, 10.9)
    arrow(7.3, 10.0, 10.9)


def main(arguments: Any = None) -> None:
    """Draw the training curve of a run."""
    parser = argparse.ArgumentParser(description=training_curve.__doc__)
    parser.add_argument("run", help="a run's folder")
    parser.add_argument("stem", help="where to write, without -light.png and -dark.png")
    options = parser.parse_args(arguments)
    training_curve(options.run, options.stem)


if __name__ == "__main__":
    main()
