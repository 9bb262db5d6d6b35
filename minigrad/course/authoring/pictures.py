"""The pictures that the README and the course's first page show. Needs matplotlib.

    python -m minigrad.course.authoring.pictures curve RUN STEM   the training curve of a run's folder
    python -m minigrad.course.authoring.pictures map STEM         the map of the course

Each draws STEM-light.png and STEM-dark.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from minigrad.course.chapters.start import MAP_SIZE, course_map
from minigrad.course.figures import draw, read_table

__all__ = ["main", "training_curve"]


def training_curve(run: str | Path, stem: str | Path) -> None:
    """The course of a pre-training run: MLM loss beside the unigram entropy, and both accuracies.

    run: the run's folder, with metrics.csv and evaluation.csv. Writes `stem`-light.png and `stem`-dark.png.
    """
    training, held_out = read_table(Path(run) / "metrics.csv"), read_table(Path(run) / "evaluation.csv")

    def smooth(values: list[float], width: int = 5) -> list[float]:
        return [sum(values[max(0, i - width + 1) : i + 1]) / min(i + 1, width) for i in range(len(values))]

    def plot(figure: Any, colours: dict[str, str]) -> None:
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
    """Draw one of the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    curve, course = commands.add_parser("curve"), commands.add_parser("map")
    curve.add_argument("run", type=Path, help="a run's folder")
    for command in (curve, course):
        command.add_argument("stem", help="where to write, without -light.png and -dark.png")
    options = parser.parse_args(arguments)
    if options.command == "curve":
        training_curve(options.run, options.stem)
    else:
        draw(course_map, options.stem, MAP_SIZE)


if __name__ == "__main__":
    main()
