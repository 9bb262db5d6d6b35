"""Shares as level bars: what two to six numbers are compared with in a chapter, without a table."""

from __future__ import annotations

from collections.abc import Mapping

from minigrad.course.furniture.figures import Figure, Picture, figure


def share_bars(
    shares: Mapping[str, float], of: str, alt: str, chance: tuple[str, float] | None = None
) -> Picture:
    """A bar from 0 to 1 for each share, with its number.

    of: what the shares are of, for the axis. alt: what there is to see. chance: the name and the place of a line to
    compare them with.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        rows = range(len(shares))[::-1]
        axes.barh(rows, list(shares.values()), 0.6, color=colours["weight"])
        for row, share in zip(rows, shares.values(), strict=True):
            at_the_line = chance is not None and share < chance[1] < share + 0.12
            end = chance[1] if chance is not None and at_the_line else share
            axes.text(end + 0.015, row, f"{share:.2f}", va="center", fontsize=11)
        if chance is not None:
            axes.axvline(chance[1], color=colours["ink"], linestyle="--", linewidth=1.2)
            axes.text(chance[1] + 0.015, len(shares) - 0.45, chance[0], fontsize=11)
        axes.set_yticks(rows, list(shares))
        axes.set(xlim=(0, 1.08), ylim=(-0.5, len(shares) - (0.5 if chance is None else 0.1)), xlabel=of)
        axes.grid(False, axis="y")

    return figure(plot, alt, (5.4, 0.9 + 0.5 * len(shares)))
