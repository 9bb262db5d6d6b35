"""What `step_cost` draws: what limits code, one limit after another, as a roofline (Williams et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from bert_course.common.figures import Figure, Picture, drawn_here
from bert_course.common.widgets import Frame


def roofline_frames(
    peak: float,
    memory: Mapping[str, float],
    ceiling: float,
    points: Mapping[str, tuple[float, float]],
    intensities: Mapping[str, float],
) -> list[Frame]:
    """The roof with the products under it, then the slopes with the sums, then the ceiling and where operations lie.

    peak, ceiling: GFLOP/s. memory: GB/s of each place. points: FLOPs per byte and GFLOP/s, measured; the names of sums
    begin with x + 1. intensities: FLOPs per byte of operations.
    """

    def plot(canvas: Figure, colours: dict[str, str], shown: int) -> None:
        axes = canvas.subplots()
        x = np.geomspace(0.04, 800, 200)
        if shown == 0:
            axes.loglog(x, np.full(len(x), peak), color=colours["ink"], label="peak")
        else:
            for (name, rate), line in zip(memory.items(), (":", "--", "-"), strict=True):
                axes.loglog(x, np.minimum(rate * x, peak), line, color=colours["ink"], label=name)
        for kind, mark, tone in (("products", "D", "first"), ("x + 1", "o", "second"))[: 1 + bool(shown)]:
            for name, (at, rate) in points.items():
                if name.startswith("x + 1") == (kind == "x + 1"):
                    axes.loglog(at, rate, mark, markersize=7, color=colours[tone])
            axes.plot([], [], mark, color=colours[tone], label=f"{kind}, measured")
        if shown == 2:
            axes.axhline(ceiling, color=colours["wrong"], linestyle="-.", label="ceiling: NumPy's add")
            for op, at in intensities.items():
                axes.axvline(at, color=colours["grid"], zorder=0)
                axes.text(
                    at, 2.7 * peak, op, rotation=90, fontsize=9, ha="right", va="top", color=colours["ink"]
                )
        axes.set(xlabel="FLOPs per byte", ylabel="GFLOP/s", ylim=(0.5, 3 * peak), xlim=(0.04, 800))
        axes.legend(labelcolor=colours["ink"], loc="lower right", fontsize=9)

    said = {
        "The roof is arithmetic": f"No code does more than {peak:.0f} GFLOP/s here. The products come near it.",
        "The slope is memory": "FLOPs per byte times bytes a second: left of the ridge, numbers arrive too slowly. "
        "The sum x + 1 lies on a slope, on a higher one if its arrays lie in a cache.",
        "The ceiling is NumPy's loop": "An operation made of NumPy's operators does one FLOP for each entry that it "
        "loads and stores. From two FLOPs per byte on, this limit lies below all the slopes.",
    }
    return [
        Frame(title, Picture(drawn_here(partial(plot, shown=n), (5.4, 4.2)), title, 518).drawn, text)
        for n, (title, text) in enumerate(said.items())
    ]
