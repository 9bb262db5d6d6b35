"""The pictures that the README and the course's first page show. Needs matplotlib.

    python -m book.make.pictures guesses LEARNING STEM   what the stored model guessed while it learned
    python -m book.make.pictures map [BOOK]       the map of the course

The map says which chapters are written, so it is made again with each new one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bert_course.common.figures import draw
from bert_course.common.small_model import EXAMPLES
from book.make import reading_time
from book.make.course_map import CourseMap

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


def main(arguments: Any = None) -> None:
    """Draw one of the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    words, course = (commands.add_parser(name) for name in ("guesses", "map"))
    words.add_argument("learning", type=Path, help="what learning.py wrote")
    words.add_argument("stem", help="where to write, without -light.png and -dark.png")
    course.add_argument("book", type=Path, nargs="?", default=Path("book"), help="the folder of the chapters")
    options = parser.parse_args(arguments)
    if options.command == "guesses":
        guesses(options.learning, options.stem)
    elif changed := renew_map(options.book):
        print(changed)


if __name__ == "__main__":
    main()
