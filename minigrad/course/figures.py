"""The course's figures: one style, each drawn for a light and for a dark page.

    python -m minigrad.course.figures RUN STEM

draws the training curve of a run's folder into STEM-light.png and STEM-dark.png. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

__all__ = ["SCHEMES", "draw", "training_curve"]

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


def draw(plot: Callable[[Figure, dict[str, str]], None], stem: str | Path, size: tuple[float, float]) -> None:
    """Draw a figure twice, as `stem`-light.png and `stem`-dark.png, on a transparent ground.

    plot: puts axes on an empty figure, with the colours it is given. size: width and height in inches.
    """
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
            "xtick.color": ink,
            "ytick.color": ink,
            "lines.linewidth": 1.8,
        }
        with matplotlib.rc_context(style):
            figure = Figure(figsize=size, layout="constrained")
            plot(figure, colours)
            path = Path(f"{stem}-{scheme}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=160, transparent=True, metadata={"Software": None})


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
        loss.legend(frameon=False, labelcolor=colours["ink"])
        for key, name, colour in (("nsp", "next sentence", "second"), ("mlm", "masked word", "first")):
            share = [100 * value for value in smooth(training[f"{key}_accuracy"])]
            accuracy.plot(training["step"], share, color=colours[colour], label=name)
            held = [100 * value for value in held_out[f"{key}_accuracy"]]
            accuracy.plot(held_out["step"], held, "o", color=colours[colour], markersize=5)
        accuracy.plot([], [], "o", color=colours["third"], markersize=5, label="held out")
        accuracy.set(xlabel="step", ylabel="accuracy (%)", ylim=(0, 100))
        accuracy.legend(frameon=False, labelcolor=colours["ink"])

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
