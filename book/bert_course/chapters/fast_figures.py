"""What chapter `fast` draws from the record of a machine: the times of blocks of all sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bert_course.common.figures import Figure, Picture, figure

Timed = Mapping[str, float]  # what a record has of one measurement: its median, lowest and highest


def block_curves(curves: Mapping[int, Sequence[Timed]], starts: Sequence[float], ours: int) -> Picture:
    """The time of GELU by the size of its blocks, for each number of cores in `curves`, both axes logarithmic.

    starts: of one core, the milliseconds of each point that are for the starts of operators. ours: the library's size.
    """
    one, *others = curves

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        at = [point["block"] for point in curves[one]]
        times = {cores: np.array([point["median"] for point in curve]) for cores, curve in curves.items()}
        less = times[one] - starts
        less[less <= 0] = np.nan  # not on a logarithmic axis
        lines = [(times[one], "o-", "first", "one core"), (less, "o:", "first", "one core, less the starts")]
        lines += [(times[cores], "s--", "second", f"{cores} cores") for cores in others]
        for y, mark, tone, label in lines:
            axes.loglog(at, y, mark, base=2, color=colours[tone], markersize=5, label=label)
        axes.axvline(ours, color=colours["grid"], zorder=0)
        axes.text(ours, times[one].max(), "the library's", ha="center", fontsize=10, color=colours["ink"])
        axes.set(xlabel="numbers in a block", ylabel="ms, GELU of 2048 x 512 numbers")
        axes.legend(labelcolor=colours["ink"])

    alt = (
        "Time of GELU against the size of a block, both axes logarithmic. On one core and on all cores it falls "
        "steeply from the smallest blocks to blocks of some ten or hundred thousand numbers. On the left, more cores "
        "are slower than one, and for one block of all numbers they take the same time. With the starts of the "
        "operators subtracted, the curve of one core rises much less on the left."
    )
    return figure(plot, alt)
