"""Level bars: what two to six numbers are compared with in a chapter, without a table."""

from __future__ import annotations

from collections.abc import Mapping

from bert_course.common.figures import Figure, Picture, figure


def level_bars(
    values: Mapping[str, float],
    of: str,
    alt: str,
    line: tuple[str, float] | None = None,
    most: float = 1.0,
    digits: int = 2,
) -> Picture:
    """A bar from 0 for each value, with its number.

    of: what the values are of, for the axis. alt: what there is to see. line: the name and the place of a line to
    compare them with. most: where the axis ends, 1 for shares. digits: after the point of each number.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        rows = range(len(values))[::-1]
        axes.barh(rows, list(values.values()), 0.6, color=colours["weight"])
        for row, value in zip(rows, values.values(), strict=True):
            at_the_line = line is not None and value < line[1] < value + 0.12 * most
            end = line[1] if line is not None and at_the_line else value
            axes.text(end + 0.015 * most, row, f"{value:,.{digits}f}", va="center", fontsize=11)
        if line is not None:
            axes.axvline(line[1], color=colours["ink"], linestyle="--", linewidth=1.2)
            axes.text(line[1] + 0.015 * most, len(values) - 0.45, line[0], fontsize=11)
        axes.set_yticks(rows, list(values))
        axes.set(xlim=(0, 1.08 * most), ylim=(-0.5, len(values) - (0.5 if line is None else 0.1)), xlabel=of)
        axes.grid(False, axis="y")

    return figure(plot, alt, (5.4, 0.9 + 0.5 * len(values)))
