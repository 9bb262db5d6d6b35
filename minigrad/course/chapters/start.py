"""The map of the course that chapter 0 and the first page show. Needs matplotlib."""

from __future__ import annotations

from typing import Any

__all__ = ["MAP_ALT", "MAP_SIZE", "course_map"]

MAP_ALT = (
    "BERT as a tower of boxes, each with the chapter that builds it. From below: the engine (1 to 4), text cut into "
    "pieces (5), embeddings (6); then the encoder layer, repeated (12): attention heads (7, 8) with masks (9), Add and "
    "Norm (11), feed-forward (10), Add and Norm (11); on top its two tasks, hidden words (13) and sentence pairs (14)."
)
MAP_SIZE = (5.4, 6.2)  # inches


def course_map(canvas: Any, colours: dict[str, str]) -> None:
    """BERT's parts from the text up, each with the chapter that builds it: a `plot` for `figure` and `draw`."""
    from matplotlib.patches import Rectangle  # here: without matplotlib, `figures` says what is missing

    axes = canvas.subplots()
    axes.set(xlim=(0, 10), ylim=(0, 12.4))
    axes.axis("off")

    def box(left: float, bottom: float, width: float, text: str, chapter: str, colour: str) -> None:
        axes.add_patch(Rectangle((left, bottom), width, 0.9, fill=False, edgecolor=colour, linewidth=1.8))
        axes.text(left + 0.25, bottom + 0.45, text, va="center", color=colours["ink"])
        axes.text(left + width - 0.2, bottom + 0.45, chapter, va="center", ha="right", color=colour)

    def arrow(x: float, bottom: float, top: float) -> None:
        style = {"arrowstyle": "->", "color": colours["third"]}
        axes.annotate("", (x, top), (x, bottom), arrowprops=style)

    first, second, third = colours["first"], colours["second"], colours["third"]
    box(0.5, 0.1, 9, "the engine: arrays, gradients, optimisers", "1-4", third)
    box(0.5, 1.5, 9, "text cut into pieces", "5", first)
    box(0.5, 2.9, 9, "embeddings: token + segment + position", "6", first)
    axes.add_patch(
        Rectangle((0.2, 4.25), 9.6, 5.75, fill=False, edgecolor=third, linewidth=1, linestyle="--")
    )
    axes.text(9.6, 9.6, "the encoder: N such layers    12", ha="right", va="center", color=third)
    box(0.5, 4.5, 9, "attention: heads and masks", "7, 8, 9", second)
    box(0.5, 5.7, 9, "Add & Norm", "11", second)
    box(0.5, 6.9, 9, "feed-forward", "10", second)
    box(0.5, 8.1, 9, "Add & Norm", "11", second)
    box(0.5, 10.9, 4.3, "hidden words", "13", first)
    box(5.2, 10.9, 4.3, "sentence pairs", "14", first)
    for bottom, top in ((1.0, 1.5), (2.4, 2.9), (3.8, 4.5), (5.4, 5.7), (6.6, 6.9), (7.8, 8.1)):
        arrow(5, bottom, top)
    arrow(2.6, 10.0, 10.9)
    arrow(7.3, 10.0, 10.9)
