"""What chapter `fast` draws from records: the times of blocks of all sizes, and of launches on a GPU."""

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


def starts_on_a_gpu(launches: Mapping[str, float], shown: int = 57) -> Picture:
    """When Python starts kernels and when the GPU computes them: one by one, and all as one graph.

    launches: kernels, and the milliseconds one_by_one_ms, graph_ms and graph_host_ms that they took. shown: of the
    kernels that are started one by one, so many bars are drawn, each for equally many.
    """
    alone, whole = launches["one_by_one_ms"], launches["graph_ms"]
    spacing, computing = alone / shown, whole / shown
    rows: list[tuple[str, list[tuple[float, float]], str]] = [  # from below; bars as (from, how long)
        ("GPU", [(0, whole)], "second"),
        ("Python", [(0, max(launches["graph_host_ms"], alone / 400))], "first"),
        ("GPU", [(i * spacing + spacing / 2, computing) for i in range(shown)], "second"),
        ("Python", [(i * spacing, 0.8 * spacing) for i in range(shown)], "first"),
    ]
    places = [0, 1, 2.6, 3.6]

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for place, (_, bars, tone) in zip(places, rows, strict=True):
            for start, length in bars:
                axes.barh([place], [length], 0.7, start, color=colours[tone])
        for place, text in ((places[1], "all as one graph"), (places[3], "one by one")):
            axes.text(alone, place + 0.5, text, ha="right", fontsize=11, color=colours["ink"])
        axes.text(
            whole + 0.15,
            places[0],
            f"{whole / alone:.0%} of the time",
            va="center",
            fontsize=11,
            color=colours["ink"],
        )
        axes.set_yticks(places, [name for name, _, _ in rows])
        axes.set(xlabel=f"ms, {launches['kernels']:,} small kernels", ylim=(-0.6, 4.6))

    alt = (
        "Two timelines. One by one, Python starts kernels all the time, and the GPU is busy for at most a tenth of it, "
        "in thin bars with wide gaps. As one graph, there is one start, and the GPU ends after a tenth of the time."
    )
    return figure(plot, alt)
