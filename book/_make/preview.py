"""The picture that a message shows beside a link to the course, 1200 by 630 pixels. Needs matplotlib.

python -m book._make.preview book/_static/preview.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from minigrad.bert.predict import fill_mask
from minigrad.course.furniture.palette import COLOURS
from minigrad.course.furniture.small_model import small_model

SIZE = (1200, 630)  # pixels, as Open Graph's users ask for
TEXT = "Raise an [MASK] if the file does not exist."
LINES = ("Raise an", "if the file", "does not exist.")  # the gap ends the first one


def draw_preview(path: str | Path) -> None:
    """Draw the preview, a mask that the stored model fills, and write it as a PNG."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    colours = {name: light for name, (light, _) in COLOURS.items()}
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(0, SIZE[1]))
    axes.axis("off")
    ink = colours["ink"]
    axes.text(
        70, 440, "BERT\nfrom nothing", fontsize=52, weight="bold", color=ink, va="center", linespacing=1.15
    )
    words = "Build an autograd engine,\nthen every part of BERT,\nthen train it on your laptop."
    axes.text(70, 240, words, fontsize=23, color=ink, va="center", linespacing=1.4)
    axes.text(70, 105, "NumPy only. No GPU, no PyTorch.", fontsize=19, color=colours["third"], va="center")
    first, second = colours["first"], colours["grid"]
    for row, line in enumerate(LINES):
        axes.text(655, 545 - 62 * row, line, fontsize=29, color=ink, va="center")
    axes.add_patch(Rectangle((838, 517), 190, 54, fill=False, edgecolor=first, linewidth=3))
    axes.text(933, 544, "[MASK]", fontsize=25, color=first, va="center", ha="center", weight="bold")
    (guesses,) = fill_mask(*small_model(), TEXT)
    for row, guess in enumerate(guesses[:5]):
        y = 340 - 62 * row
        axes.text(655, y, guess.token, fontsize=22, color=ink, va="center")
        axes.text(1140, y, f"{guess.probability:.2f}", fontsize=22, color=ink, va="center", ha="right")
        axes.add_patch(Rectangle((655, y - 30), 485, 8, color=second, linewidth=0))
        axes.add_patch(Rectangle((655, y - 30), 485 * guess.probability, 8, color=first, linewidth=0))
    figure.savefig(path, metadata={"Software": None})


def main(arguments: Any = None) -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    draw_preview(parser.parse_args(arguments).path)


if __name__ == "__main__":
    main()
