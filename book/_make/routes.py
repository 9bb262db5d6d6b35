"""The ways through the course with their hours, for the first page, the README and the page that `make lab` opens.

    python -m book._make.routes [ROOT]

`make map` does so. It replaces what stands between the marks in the README and in the first page.
"""

from __future__ import annotations

import argparse
import html
from pathlib import Path
from typing import Any

from book._make import reading_time
from book._make.notebooks import read
from book._make.readme import put
from minigrad.course.contents import CHAPTERS, NUMBERS, ROUTES, Route

INDEX = Path("book") / "index.md"


def written(root: Path) -> list[str]:
    """The names of the chapters that have a notebook, in their order."""
    return [chapter.name for chapter in CHAPTERS if (root / f"{chapter.page}.ipynb").exists()]


def minutes(root: Path, names: Any) -> tuple[int, int]:
    """To read these chapters, and to solve their exercises."""
    reading = solving = 0
    for name in names:
        reading += reading_time.minutes(read(root / "book" / f"{name}.ipynb"))
        solution = root / "solutions" / f"{name}.ipynb"
        if solution.exists():
            solving += sum(one.minutes for one in reading_time.exercises(read(solution)))
    return reading, solving


def hours(route: Route, root: Path) -> str:
    """ "5 hours to read, 3 of exercises" or "20 minutes to read"; of the chapters that are written."""
    there = written(root)
    reading, solving = minutes(root, [n for n in route.chapters if n in there])
    whole = round(reading / 60)
    words = f"{reading} minutes" if reading < 60 else f"{whole} hour{'s' * (whole > 1)}"
    words += " to read"
    return words + (f", {solving / 60:.0f} of exercises" if solving else "")


def table(root: Path, link: str) -> str:
    """The routes as a table in Markdown; `link` says how a chapter is reached, such as "book/{name}.ipynb"."""
    there = written(root)
    lines = ["| you have | you read | hours | and you know |", "|---|---|---|---|"]
    for route in ROUTES:
        whole = len(route.chapters) == len(CHAPTERS)
        chapters = ", ".join(
            f"[{NUMBERS[name]}]({link.format(name=name)})" for name in route.chapters if name in there
        )
        lines.append(
            f"| {route.title} | {'all chapters' if whole else chapters} | {hours(route, root)} | {route.why} |"
        )
    return "\n".join(lines) + "\n"


def boxes(root: Path) -> str:
    """The routes as boxes in HTML, each with a button that progress.js makes work."""
    short = {chapter.name: chapter.short for chapter in CHAPTERS}
    parts = []
    for route in ROUTES:
        whole = len(route.chapters) == len(CHAPTERS)
        links = ", ".join(
            f'<a href="{name}.html">{NUMBERS[name]}. {html.escape(short[name])}</a>'
            for name in route.chapters
        )
        chapters = "Every chapter, in its order." if whole else links
        parts.append(
            f'<div class="course-route"><h3>{route.title}</h3><p class="course-note">{hours(route, root)}</p>'
            f"<p>You know {html.escape(route.why)}.</p><p>{chapters}</p>"
            f'<button type="button" class="course-button" data-route="{route.name}" '
            f'data-chapters="{" ".join(route.chapters)}" hidden>Show me this way</button></div>'
        )
    return '```{raw} html\n<div class="course-routes">\n' + "\n".join(parts) + "\n</div>\n```\n"


def exercises(root: Path) -> int:
    """How many there are."""
    return sum(len(reading_time.exercises(read(path))) for path in (root / "solutions").glob("*.ipynb"))


def says(root: Path) -> str:
    """The first page's promise, where pages run and where they do not."""
    count = f"{len(written(root))} chapters and {exercises(root)} exercises"
    return (
        "::::{only} run\n"
        f"All {count} run on these pages, in your browser, and your code is checked. There is nothing to install, and "
        "nothing is sent anywhere.\n::::\n\n"
        f"::::{{only}} not run\nIts {count} run in Jupyter, where your code is checked.\n::::\n"
    )


def renewed(root: Path) -> dict[Path, str]:
    """The README and the first page, made again. Raises ValueError where one has no place for it."""
    readme, index = (root / name for name in ("README.md", INDEX))
    ways = table(root, "book/{name}.ipynb")
    first = put(index.read_text(encoding="utf-8"), "says", says(root), "the first page")
    return {
        readme: put(readme.read_text(encoding="utf-8"), "routes", ways, "the README"),
        index: put(first, "routes", boxes(root), "the first page"),
    }


def main(arguments: Any = None) -> None:
    """Write both again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path, nargs="?", default=Path(), help="the course's folder")
    root = parser.parse_args(arguments).root
    for path, text in renewed(root).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
