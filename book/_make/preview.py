"""The picture that a message shows beside a link to the course, 1200 by 630 pixels. Needs matplotlib.

python -m book._make.preview book/_static/preview.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from minigrad.course.furniture.palette import COLOURS

SIZE = (1200, 630)  # pixels, as Open Graph's users ask for
# From below, as the course builds them: what, chapters, colour.
TOWER = [
    ("arrays, gradients, optimisers", "1 to 4", "third"),
    ("text cut into pieces", "5", "query"),
    ("embeddings", "6", "query"),
    ("attention", "7 to 9", "key"),
    ("feed-forward, Add & Norm", "10 to 12", "key"),
    ("pre-training", "13 to 15", "value"),
    ("fine-tuning, looking inside", "16 to 19", "value"),
]


def draw_preview(path: str | Path) -> None:
    """Draw the preview and write it as a PNG."""
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
    for i, (what, chapters, name) in enumerate(TOWER):
        bottom, colour = 65 + 74 * i, colours[name]
        axes.add_patch(Rectangle((655, bottom), 480, 56, fill=False, edgecolor=colour, linewidth=3))
        axes.text(673, bottom + 28, what, fontsize=17, color=ink, va="center")
        axes.text(1118, bottom + 28, chapters, fontsize=17, color=colour, va="center", ha="right")
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
