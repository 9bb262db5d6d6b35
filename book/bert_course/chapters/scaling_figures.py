"""What chapter `scaling` draws: stored runs against size and against compute, and the laws fitted to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.chapters.scaling import config_of, layer_parameters
from bert_course.chapters.scaling_laws import Law
from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.light_stories import BATCH, LENGTH
from minigrad.bert.info import step_cost

TOKENS = BATCH * LENGTH  # of a step
SEARCH_SEED = 100


def step_flops(width: int) -> int:
    """The FLOPs of a training step of the stored runs, in matrix products."""
    return step_cost(config_of(width), BATCH, LENGTH).step_flops


class Runs:
    """Stored runs as arrays, a row for each: width, steps, seed, N, D, loss (the last one), flops.

    N: parameters of the layers. D: tokens trained on.
    """

    def __init__(self, runs: Iterable[Mapping[str, Any]]) -> None:
        self.runs = list(runs)
        self.width, self.steps, self.seed = (
            np.array([run[name] for run in self.runs], dtype=int) for name in ("width", "steps", "seed")
        )
        self.N = np.array([layer_parameters(config_of(int(width))) for width in self.width], dtype=float)
        self.D = self.steps * float(TOKENS)
        self.loss = np.array([run["curve"][-1][1] for run in self.runs])
        self.flops = np.array([step_flops(int(width)) for width in self.width]) * self.steps.astype(float)

    @classmethod
    def of(cls, record: Mapping[str, Any], pairs: int | None = None) -> Runs:
        """Those of a record on fresh stories, or on so many again and again; not those that chose a rate."""
        return cls(run for run in record["runs"] if run["pairs"] == pairs and run["seed"] != SEARCH_SEED)

    def where(self, **wanted: int) -> Runs:
        """Those of this width, steps or seed. Raises ValueError if there are none."""
        kept = [run for run in self.runs if all(run[name] == value for name, value in wanted.items())]
        if not kept:
            raise ValueError(f"the record has no run with {wanted}")
        return Runs(kept)

    @property
    def widths(self) -> list[int]:
        """From narrow to wide."""
        return sorted(set(self.width.tolist()))


def line_figure(runs: Runs, slope: float, height: float, at: float, floor: float) -> Picture:
    """Losses against size, the line through their logarithms, where it leads at a larger size, and the floor."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        line = np.geomspace(runs.N.min() / 1.5, 2 * at, 60)
        axes.plot(line, height * line**-slope, "--", color=colours["second"])
        axes.axhline(floor, color=colours["ink"], linewidth=1.4)
        axes.plot(runs.N, runs.loss, "o", color=colours["first"], markersize=5)
        forecast = height * at**-slope
        axes.plot([at], [forecast], "D", color=colours["second"], markersize=8)
        axes.text(
            at / 2, forecast, "BERT-Base?", color=colours["second"], ha="right", va="center", fontsize=12
        )
        axes.text(
            line[0] * 1.2, floor / 1.13, "no model can go below this", color=colours["ink"], fontsize=12
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_yticks([0.2, 0.3, 0.5, 1], ["0.2", "0.3", "0.5", "1"])
        axes.minorticks_off()
        axes.set(xlabel="parameters of the layers", ylabel="loss (nats)", ylim=(0.18, 1.6))

    alt = (
        "The losses of five models fall with their size. The straight line through their logarithms leads, at the size "
        "of BERT-Base, below the lowest possible loss of the text."
    )
    return figure(plot, alt, (5.4, 3.6))


def size_figure(runs: Runs, floor: float, law: Law) -> Picture:
    """How far above the floor the runs end, against the parameters, for each length; and the law, as lines."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        for steps, name in zip(
            sorted(set(runs.steps.tolist())), ("ink", "third", "second", "first"), strict=False
        ):
            some = runs.where(steps=steps)
            axes.plot(some.N, some.loss - floor, "o", color=colours[name], markersize=4, alpha=0.8)
            line = np.geomspace(some.N.min(), some.N.max(), 50)
            axes.plot(line, law(line, some.D[0]) - law.E, color=colours[name], linewidth=1)
            axes.text(
                1.15 * some.N.max(),
                float((law(some.N.max(), some.D[0])) - law.E),
                f"{steps:,} steps",
                color=colours[name],
                va="center",
            )
        axes.set_xlabel("parameters of the layers")
        _logarithmic(axes)
        axes.set_xlim(runs.N.min() / 1.5, 12 * runs.N.max())

    alt = (
        "Nats above the floor against the parameters of the layers, both axes logarithmic, for each number of steps. "
        "Larger models and longer runs end lower; the lines of the law bend and flatten towards the right"
    )
    return figure(plot, alt, (5.4, 3.6))


def compute_figure(runs: Runs, floor: float, others: Sequence[float] = ()) -> Picture:
    """How far above the floor the runs are against the FLOPs spent: ends as markers, and the way of the longest a line.

    Colours come back after the third width; each has its marker and line. others: FLOPs at which a thin line stands.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        longest = max(runs.steps)
        for flops in others:
            axes.axvline(flops, color=colours["grid"], linewidth=1, zorder=0)
        for i, width in enumerate(runs.widths):
            name, mark = ("third", "second", "first")[i % 3], "os^Dv"[i % 5]
            line = ("-", "--", ":")[i // 3 % 3]
            some = runs.where(width=width)
            curves = [run["curve"] for run in some.runs if run["steps"] == longest]
            steps = np.array([step for step, _ in curves[0]])
            on_the_way = np.mean([[nats for _, nats in curve] for curve in curves], axis=0)
            x = float(step_flops(width)) * steps  # a page's integers have 32 bits
            axes.plot(x, on_the_way - floor, line, color=colours[name], linewidth=1)
            axes.plot(some.flops, some.loss - floor, mark, color=colours[name], markersize=4, alpha=0.8)
            axes.text(x[0], 1.1 * (on_the_way[0] - floor), f"{width}", color=colours[name], ha="center")
        axes.set_xlabel("FLOPs")
        _logarithmic(axes)
        axes.set_ylim(top=4)

    alt = (
        "Nats above the floor against FLOPs, both axes logarithmic: a line for each width while its longest runs "
        "train, with the width at its start, and markers for the ends of all runs. At a few FLOPs the narrow models "
        "are lowest, at many the wide ones"
    )
    return figure(plot, alt, (5.4, 3.6))


def _logarithmic(axes: Any) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
    axes.minorticks_off()
    axes.set_ylabel("nats above the floor")
