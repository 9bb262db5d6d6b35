"""Rows of dots: repeated measurements of several things, and which of them differ from a baseline; times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bert_course.common.figures import Figure, Picture, figure


def overlap(one: Iterable[float], other: Iterable[float]) -> bool:
    """Whether the ranges of two sets of numbers have a point in common."""
    one, other = list(one), list(other)
    return min(one) <= max(other) and min(other) <= max(one)


def dot_rows(
    measured: Mapping[str, Sequence[float]], baseline: str, what: str, alt: str, high: bool = False
) -> Picture:
    """A row for each thing, the best on top, a dot for each measurement; the range of `baseline` is shaded.

    A row is in colour if its range has no point in common with the baseline's. what: the label of the axis. high:
    whether the highest is the best, and not the lowest.
    """
    rows = sorted(measured, key=lambda name: (1 if high else -1) * np.mean(measured[name]))
    least, most = min(measured[baseline]), max(measured[baseline])

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        axes.fill_between([least, most], -1, len(rows), color=colours["grid"], alpha=0.6)
        for y, name in enumerate(rows):
            same = overlap(measured[name], measured[baseline])
            tone = "third" if same else "weight" if (max(measured[name]) < least) != high else "second"
            axes.plot(measured[name], [y] * len(measured[name]), "o", color=colours[tone], markersize=6)
        axes.set_yticks(range(len(rows)), rows)
        axes.set(xlabel=what, xlim=(0, None), ylim=(-0.6, len(rows) - 0.4))
        axes.grid(False, axis="y")

    return figure(plot, alt, (5.4, 0.9 + 0.32 * len(rows)))


def time_rows(times: Mapping[str, Mapping[str, float]], alt: str, other: str = "PyTorch") -> Picture:
    """A row for each thing in the order given: its median in milliseconds as a dot, and a line for its range.

    times: what a record has of each, its median, lowest and highest. other: rows whose name begins so have another
    colour.
    """
    lowest, highest = (
        min(time["lowest"] for time in times.values()),
        max(time["highest"] for time in times.values()),
    )

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for row, (name, time) in enumerate(times.items()):
            tone = colours["second" if name.startswith(other) else "first"]
            axes.plot([time["lowest"], time["highest"]], [-row, -row], color=tone, linewidth=3, alpha=0.5)
            axes.plot(time["median"], -row, "o", color=tone)
            axes.text(1.1 * time["highest"], -row, f"{time['median']:.0f}", va="center", fontsize=11)
        axes.set_yticks([-row for row in range(len(times))], list(times))
        axes.set(
            xlabel="ms a step", xscale="log", xlim=(lowest / 1.2, 1.4 * highest), ylim=(0.5 - len(times), 0.5)
        )
        ticks = [tick for tick in (10, 20, 50, 100, 200, 400) if lowest / 1.2 <= tick <= highest]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.grid(False, axis="y")

    return figure(plot, alt, (5.4, 0.9 + 0.3 * len(times)))
