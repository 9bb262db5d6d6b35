"""The ways through the course with their hours, and the list of its chapters, for the first page and the README.

    python -m book.make.routes

`make map` does so, in the repository's root. It replaces what stands between the marks in both pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bert_course.contents import CHAPTERS, NUMBERS, OPTIONAL, ROUTES, Route
from book.make import reading_time

INDEX = Path("book") / "index.md"
END = "<!-- end, by make map -->\n"


def put(text: str, name: str, made: str, page: str) -> str:
    """A page's text with `made` in the place marked by `name`. Raises ValueError where it has no such place."""
    mark = f"<!-- {name} -->\n"
    before, found, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not (found and end):
        raise ValueError(f"{page} has no place for the {name}: {mark.strip()} … {END.strip()}")
    return f"{before}{mark}{made}{END}{after}"


class Time(NamedTuple):
    """What a chapter takes: the minutes to read it, and its exercises."""

    reading: int
    exercises: list[reading_time.Exercise]

    @property
    def solving(self) -> int:
        """The minutes for all exercises."""
        return sum(one.minutes for one in self.exercises)


def times(root: Path) -> dict[str, Time]:
    """What each chapter that has a notebook takes, in their order."""
    found = {}
    for chapter in CHAPTERS:
        page, solution = root / f"{chapter.page}.ipynb", root / "solutions" / f"{chapter.name}.ipynb"
        if page.exists():
            there = reading_time.exercises(reading_time.read(solution)) if solution.exists() else []
            found[chapter.name] = Time(reading_time.minutes(reading_time.read(page)), there)
    return found


def hours(route: Route, took: Mapping[str, Time]) -> str:
    """ "5 hours to read, 3 of exercises" or "65 minutes to read"; of the chapters that are written."""
    there = [took[name] for name in route.chapters if name in took]
    reading, solving = sum(one.reading for one in there), sum(one.solving for one in there)
    words = f"{reading} minutes" if reading < 90 else f"{reading / 60:.0f} hours"
    return f"{words} to read" + (f", {solving / 60:.0f} of exercises" if solving and route.solved else "")


def table(took: Mapping[str, Time]) -> str:
    """The routes as a table in Markdown."""
    lines = ["| you have | you read | hours | and you know |", "|---|---|---|---|"]
    for route in ROUTES:
        whole = len(route.chapters) == len(CHAPTERS)
        links = ", ".join(f"[{NUMBERS[name]}](book/{name}.ipynb)" for name in route.chapters if name in took)
        chapters = "all chapters" if whole else links
        lines.append(f"| {route.title} | {chapters} | {hours(route, took)} | {route.why} |")
    return "\n".join(lines) + "\n"


def boxes(took: Mapping[str, Time]) -> str:
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
            f'<div class="course-route"><h3>{route.title}</h3><p class="course-note">{hours(route, took)}</p>'
            f"<p>You know {html.escape(route.why)}.</p><p>{chapters}</p>"
            f'<button type="button" class="course-button" data-route="{route.name}" '
            f'data-chapters="{" ".join(route.chapters)}" hidden>Show me this way</button></div>'
        )
    return '```{raw} html\n<div class="course-routes">\n' + "\n".join(parts) + "\n</div>\n```\n"


def contents(took: Mapping[str, Time]) -> str:
    """The table of the chapters: each with a link, minutes to read and exercises."""
    lines = ["| chapter | what you build | minutes | exercises |", "|---|---|---|---|"]
    part = ""
    for chapter in CHAPTERS:
        if chapter.part != part:
            part = chapter.part
            after = f" (optional, after chapter {NUMBERS[OPTIONAL[part]]})" if part in OPTIONAL else ""
            lines.append(f"| **{part}**{after} | | | |")
        one = took[chapter.name]
        exercises = f"{len(one.exercises)}, {one.solving} minutes" if one.exercises else ""
        name = f"[{chapter.heading}]({chapter.page}.ipynb)"
        lines.append(f"| {name} | {chapter.build} | {one.reading} | {exercises} |")
    return "\n".join(lines) + "\n"


def says(took: Mapping[str, Time]) -> str:
    """The first page's promise, where pages run and where they do not."""
    count = f"{len(took)} chapters and {sum(len(one.exercises) for one in took.values())} exercises"
    return (
        "::::{only} run\n"
        f"All {count} run on these pages, in your browser, and your code is checked. There is nothing to install, and "
        "nothing is sent anywhere.\n::::\n\n"
        f"::::{{only}} not run\nIts {count} run in Jupyter, where your code is checked.\n::::\n"
    )


def engine_lines(root: Path) -> int:
    """How many lines of Python the engine has, in hundreds: minigrad/ without what is built on it."""
    above = {"text", "stories", "training", "bert", "seq2seq"}
    files = [
        path for path in (root / "minigrad").rglob("*.py") if path.relative_to(root).parts[1] not in above
    ]
    return round(sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files), -2)


def renewed(root: Path) -> dict[Path, str]:
    """The README and the first page, made again. Raises ValueError where one has no place for it."""
    readme, index = (root / name for name in ("README.md", INDEX))
    took = times(root)
    counted = re.sub(
        r"[\d,]+(?= lines\. It needs)", f"{engine_lines(root):,}", readme.read_text(encoding="utf-8")
    )
    listed = put(counted, "contents", contents(took), "the README")
    first = put(index.read_text(encoding="utf-8"), "says", says(took), "the first page")
    return {
        readme: put(listed, "routes", table(took), "the README"),
        index: put(first, "routes", boxes(took), "the first page"),
    }


if __name__ == "__main__":
    for path, text in renewed(Path()).items():
        path.write_text(text, encoding="utf-8")
