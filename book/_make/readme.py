"""What the README says of the chapters, made from the notebooks: minutes to read, exercises.

    python -m book._make.readme [ROOT]

`make map` does so. It replaces what stands between the marks.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from book._make import reading_time
from minigrad.course.contents import CHAPTERS, NUMBERS, OPTIONAL, Chapter

END = "<!-- end, by make map -->\n"


def renewed(text: str, root: Path) -> str:
    """The README's text with the table made again. Raises ValueError where it has no place for it."""
    return put(text, "contents", contents(root), "the README")


def put(text: str, name: str, made: str, page: str) -> str:
    """A page's text with `made` in the place marked by `name`. Raises ValueError where it has no such place."""
    mark = f"<!-- {name} -->\n"
    before, found, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not (found and end):
        raise ValueError(f"{page} has no place for the {name}: {mark.strip()} … {END.strip()}")
    return f"{before}{mark}{made}{END}{after}"


def contents(root: Path) -> str:
    """The table of the chapters: each with a link, minutes to read and exercises."""
    lines = ["| chapter | what you build | minutes | exercises |", "|---|---|---|---|"]
    part = ""
    for chapter in CHAPTERS:
        if chapter.part != part:
            part = chapter.part
            after = f" (optional, after chapter {NUMBERS[OPTIONAL[part]]})" if part in OPTIONAL else ""
            lines.append(f"| **{part}**{after} | | | |")
        path = _notebook(root, chapter)
        minutes, exercises = reading_time.minutes(_read(path)), _exercises(root, chapter)
        name = f"[{chapter.heading}]({path.relative_to(root).as_posix()})"
        lines.append(f"| {name} | {chapter.build} | {minutes} | {exercises} |")
    return "\n".join(lines) + "\n"


def _exercises(root: Path, chapter: Chapter) -> str:
    """How many there are, and the minutes that they say of themselves together."""
    path = root / "solutions" / f"{chapter.name}.ipynb"
    found = reading_time.exercises(_read(path)) if path.exists() else []
    return f"{len(found)}, {sum(exercise.minutes for exercise in found)} minutes" if found else ""


def _notebook(root: Path, chapter: Chapter) -> Path:
    return root / f"{chapter.page}.ipynb"


def _read(path: Path) -> Any:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def main(arguments: Any = None) -> None:
    """Write the README again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path, nargs="?", default=Path(), help="the course's folder")
    root = parser.parse_args(arguments).root
    path = root / "README.md"
    path.write_text(renewed(path.read_text(encoding="utf-8"), root), encoding="utf-8")


if __name__ == "__main__":
    main()
