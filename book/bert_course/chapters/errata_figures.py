"""What chapter `errata` draws: how far each source's formula is from the right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bert_course.common.figures import Figure, Picture, figure

TONES = {  # by whose mistake it is
    "text": ("first", "the document's"),
    "copy": ("third", "our copy's"),
    "paper": ("second", "a paper's"),
}


def error_bars(errors: Mapping[str, tuple[float, str]]) -> Picture:
    """A bar for each formula, the largest error on top, in a colour for whose mistake it is.

    errors: by the formula's name, its error and a key of `errata.WHOSE`.
    """
    names = sorted(errors, key=lambda name: -errors[name][0])

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for row, name in enumerate(names):
            error, whose = errors[name]
            axes.barh([-row], [error], 0.66, color=colours[TONES[whose][0]])
        last = -len(names)
        axes.axvline(1, color=colours["ink"], linestyle="--", linewidth=1.2)
        axes.text(1.02, last + 0.2, "as bad as zeros", fontsize=10, va="center")
        for row, (tone, name) in enumerate(TONES.values()):
            axes.text(1.1, last + 4.2 - row, name, color=colours[tone], fontsize=12, va="center")
        axes.set_yticks([-row for row in range(len(names))], names)
        axes.set(xlim=(0, 2.1), ylim=(last - 0.4, 0.6), xlabel="relative error of the output")
        axes.grid(False, axis="y")

    alt = ", ".join(f"{name} {errors[name][0]:.2f}" for name in names)
    return figure(plot, f"Relative errors of the sources' formulas at random weights: {alt}", (5.4, 4.9))


def depth_lines(depths: Sequence[int], panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Picture:
    """The error after each number of layers: a panel for each kind of mistake, a line for each mistake, named below."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        grid = canvas.subplots(1, len(panels), sharey=True)
        for axes, (title, lines) in zip(grid, panels.items(), strict=True):
            for (name, errors), tone, mark in zip(
                lines.items(), ("first", "second", "third", "ink", "weight"), "os^dv", strict=False
            ):
                axes.plot(depths, errors, f"{mark}-", color=colours[tone], markersize=5, label=name)
            axes.axhline(1, color=colours["ink"], linestyle="--", linewidth=1)
            axes.set(title=title, xlabel="layers", ylim=(0, 1.6), xticks=depths)
            axes.legend(fontsize=10, loc="upper center", bbox_to_anchor=(0.5, -0.2))
        grid[0].set_ylabel("relative error")
        grid[0].text(12, 1.03, "as bad as zeros", ha="right", fontsize=10)

    told = "; ".join(
        f"{name} {errors[0]:.2f} after {depths[0]}, {errors[-1]:.2f} after {depths[-1]}"
        for lines in panels.values()
        for name, errors in lines.items()
    )
    return figure(plot, f"Relative errors by the number of layers: {told}.", (6.4, 4.6))
