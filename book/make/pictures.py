"""The pictures that the README, the course's first page, and messages beside a link to it show. Needs matplotlib.

    python -m book.make.pictures guesses LEARNING STEM   what the stored model guessed while it learned
    python -m book.make.pictures map [BOOK]       the map of the course
    python -m book.make.pictures preview PATH     what a message shows beside a link, 1200 by 630 pixels

The map says which chapters are written, so it is made again with each new one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bert_course.common.figures import draw
from bert_course.common.palette import COLOURS
from bert_course.common.small_model import EXAMPLES, small_model
from book.make import reading_time
from book.make.course_map import CourseMap
from minigrad.bert.predict import fill_mask

WATCHED = next(iter(EXAMPLES))  # the text whose gap `learning` fills
SHOWN = (0, 200, 3000, 6000, 12000)  # steps whose guesses are drawn
BEST = 3  # guesses of each


def guesses(learning: str | Path, stem: str | Path) -> None:
    """What a model takes a hidden word for while it learns, beside its loss on held-out text.

    learning: the record that `learning` writes. Writes `stem`-light.png and `stem`-dark.png.
    """
    record = json.loads(Path(learning).read_text(encoding="utf-8"))
    points = [point for point in record["points"] if point["step"] in SHOWN]
    entropy = record["unigram_entropy"]

    def plot(figure: Any, colours: dict[str, str]) -> None:
        words, loss = figure.subplots(1, 2, width_ratios=[1.25, 1])
        words.set_axis_off()
        words.set(xlim=(0, BEST), ylim=(len(points), -0.75))
        words.text(0, -0.55, WATCHED, style="italic")
        for i, point in enumerate(points):
            words.text(-0.08, i + 0.5, f"{point['step']:,}", ha="right", va="center")
            for j, (word, share) in enumerate(point["guesses"][:BEST]):
                words.barh(i + 0.78, 0.9 * share, left=j, height=0.18, color=colours["first"])
                words.text(
                    j,
                    i + 0.42,
                    f"{word}  {share:.1%}" if share < 0.01 else f"{word}  {share:.0%}",
                    va="center",
                )
        words.text(-0.08, -0.1, "step", ha="right")
        words.text(0, -0.1, "its best guesses")
        steps = [point["step"] for point in record["points"]]
        loss.plot(
            steps,
            [point["mlm_loss"] for point in record["points"]],
            "o-",
            markersize=4,
            color=colours["first"],
        )
        loss.axhline(entropy, color=colours["third"], linestyle="--")
        loss.text(
            steps[-1], entropy + 0.1, "knowing how frequent each word is", ha="right", color=colours["third"]
        )
        loss.set(
            xlabel="training step",
            ylabel="loss on hidden words (nats)",
            ylim=(3, None),
            xticks=range(0, 12_001, 3000),
        )

    draw(plot, stem, (9.0, 3.6))


def renew_map(book: str | Path) -> Path | None:
    """Make the map again in a book's folder, `records/map.html`, which index.md includes; returns it if it changed."""
    included = Path(book) / "records" / "map.html"
    minutes = {
        path.stem: reading_time.minutes(reading_time.read(path)) for path in Path(book).glob("*.ipynb")
    }
    drawn = CourseMap(minutes)._repr_html_() + "\n"
    if included.exists() and included.read_text(encoding="utf-8") == drawn:
        return None
    included.write_text(drawn, encoding="utf-8")
    return included


SIZE = (1200, 630)  # pixels of the preview, as Open Graph's users ask for
TEXT = "Raise an [MASK] if the file does not exist."
LINES = ("Raise an", "if the file", "does not exist.")  # the gap ends the first one


def preview(path: Path) -> None:
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
    (best,) = fill_mask(*small_model(), TEXT)
    for row, guess in enumerate(best[:5]):
        y = 340 - 62 * row
        axes.text(655, y, guess.token, fontsize=22, color=ink, va="center")
        axes.text(1140, y, f"{guess.probability:.2f}", fontsize=22, color=ink, va="center", ha="right")
        axes.add_patch(Rectangle((655, y - 30), 485, 8, color=second, linewidth=0))
        axes.add_patch(Rectangle((655, y - 30), 485 * guess.probability, 8, color=first, linewidth=0))
    figure.savefig(path, metadata={"Software": None})


def main(arguments: Any = None) -> None:
    """Draw one of the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    words, course, link = (commands.add_parser(name) for name in ("guesses", "map", "preview"))
    words.add_argument("learning", type=Path, help="what learning.py wrote")
    words.add_argument("stem", help="where to write, without -light.png and -dark.png")
    course.add_argument("book", type=Path, nargs="?", default=Path("book"), help="the folder of the chapters")
    link.add_argument("path", type=Path, help="where to write the PNG")
    options = parser.parse_args(arguments)
    if options.command == "guesses":
        guesses(options.learning, options.stem)
    elif options.command == "preview":
        preview(options.path)
    elif changed := renew_map(options.book):
        print(changed)


if __name__ == "__main__":
    main()
