"""What a chapter spends above the line and below it, and the budget that it keeps.

    python -m book.make.budget [NAME …]

The line divides the lesson from how it was measured: below it is what stands in a box, <details>.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bert_course.contents import PLACES
from book.make import reading_time

MOST = {"words": 1800, "cells": 45, "minutes": 45, "tables": 5, "rows": 6, "below": 1000}
IDEA = 25  # words of the idea at most


@dataclass(frozen=True)
class Spent:
    """What one page spends.

    words: of prose; printed: words that its cells put out; cells, tables, ranges, minutes: above the line; rows: of
    the longest table; below: words in boxes.
    """

    words: int
    printed: int
    cells: int
    tables: int
    rows: int
    ranges: int
    minutes: int
    below: int


def spent(notebook: Any) -> Spent:
    """The counts of a chapter's notebook."""
    tables = reading_time.tables(notebook)
    return Spent(
        words=reading_time.words(notebook),
        printed=reading_time.printed_words(notebook),
        cells=reading_time.cells(notebook),
        tables=len(tables),
        rows=max(tables, default=0),
        ranges=reading_time.ranges(notebook),
        minutes=reading_time.minutes(notebook),
        below=reading_time.words_below(notebook),
    )


def over(notebook: Any) -> Iterator[str]:
    """What of a chapter is over the budget, a sentence each."""
    found = asdict(spent(notebook))
    for name, most in MOST.items():
        if found[name] > most:
            yield f"{name}: {found[name]}; the budget is {most}"
    idea = notebook["metadata"].get("course", {}).get("idea", "")
    if not 0 < len(idea.split()) <= IDEA:
        yield f"the idea has {len(idea.split())} words, and should have 1 to {IDEA}"


def read(name: str) -> Any:
    """A chapter's notebook."""
    return reading_time.read(Path("book") / f"{name}.ipynb")


def main(arguments: Any = None) -> int:
    """Report; the exit status is 1 where a chapter is over its budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="chapters, such as one_head; all without it")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in PLACES]:
        parser.error(f"there is no chapter {', '.join(unknown)}")
    names = options.names or list(PLACES)
    columns = [one.name for one in fields(Spent)]
    print(f"{'':18}" + "".join(f"{name:>9}" for name in columns) + "   over the budget")
    print(f"{'(the budget)':18}" + "".join(f"{MOST.get(name, ''):>9}" for name in columns))
    failed = False
    for name in names:
        notebook = read(name)
        excess = list(over(notebook))
        failed |= bool(excess)
        counts = "".join(f"{count:>9,}" for count in asdict(spent(notebook)).values())
        print(f"{name:18}{counts}   {', '.join(line.split(':')[0] for line in excess)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
