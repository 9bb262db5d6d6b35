"""What a chapter spends above the line and below it, and what its first screen shows.

    python -m book._make.budget [--screens SITE] [NAME …]

`make budget` does so. The line divides the lesson from how it was measured: below it is what stands in a box,
<details>. A chapter whose metadata say `"told": true` keeps the budget; of others this is a report. With --screens the
pages of a built site are opened in Chromium, and what stands in the first screen of a desk and of a phone is said too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import nbformat

from book._make import chromium, reading_time
from book._make.serve import no_site
from minigrad.course.contents import CHAPTERS, PLACES

MOST = {"words": 1800, "cells": 45, "minutes": 45, "tables": 5, "rows": 6, "below": 1000}
IDEA = 25  # words of the idea at most
SCREENS = {"desk": (1280, 800), "phone": (390, 844)}


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


# What stands above the fold: the first output and the first picture, and how far down they begin.
SEEN = """() => {
  const top = (what) => {
    const found = [...document.querySelectorAll(what)].find((one) => one.getClientRects().length);
    return found ? Math.round(found.getBoundingClientRect().top + scrollY) : null;
  };
  const article = "article.bd-article ";
  return {
    output: top(article + ".cell_output"),
    picture: top(article + ".cell_output .text_html:not(:has(.course-table, .course-check))"),
    words: [...document.querySelectorAll(article + ":is(p, li)")].filter((one) =>
      one.getClientRects().length && one.getBoundingClientRect().bottom < innerHeight)
      .reduce((sum, one) => sum + one.innerText.split(/\\s+/).length, 0),
  };
}"""


def first_screens(browser: Any, site: Path, names: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """For each chapter and each of SCREENS: words in the first screen, and how far down, in pixels, the first output
    and the first picture begin. browser: playwright's."""
    for screen, (width, height) in SCREENS.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        for name in names:
            page.goto((site / "book" / f"{name}.html").resolve().as_uri(), wait_until="load")
            yield name, screen, page.evaluate(SEEN)
        page.close()


def report_screens(site: Path, names: list[str]) -> None:
    """Print what the first screens show. Needs playwright and Chromium."""
    print(
        f"\n{'first screen':18}{'':8}{'words':>8}{'output at':>11}{'picture at':>12}  (pixels from the top)"
    )
    with chromium.opened() as browser:
        for name, screen, seen in first_screens(browser, site, names):
            output, picture = (
                "none" if seen[what] is None else f"{seen[what]:,}" for what in ("output", "picture")
            )
            print(f"{name:18}{screen:8}{seen['words']:>8}{output:>11}{picture:>12}")


def read(name: str) -> Any:
    """A chapter's notebook."""
    return nbformat.read(Path("book") / f"{name}.ipynb", as_version=4)


def main(arguments: Any = None) -> int:
    """Report; the exit status is 1 where a chapter that is told is over its budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--screens", type=Path, metavar="SITE", help="of a built site, such as _build/html")
    parser.add_argument("names", nargs="*", metavar="NAME", help="chapters, such as one_head; all without it")
    options = parser.parse_args(arguments)
    written = [chapter.name for chapter in CHAPTERS if (Path("book") / f"{chapter.name}.ipynb").exists()]
    if unknown := [name for name in options.names if name not in PLACES]:
        parser.error(f"there is no chapter {', '.join(unknown)}")
    if options.screens and (why := no_site(options.screens)):
        parser.error(why)
    names = options.names or written
    columns = [one.name for one in fields(Spent)]
    print(f"{'':18}" + "".join(f"{name:>9}" for name in columns) + "   over the budget")
    print(f"{'(the budget)':18}" + "".join(f"{MOST.get(name, ''):>9}" for name in columns))
    failed = False
    for name in names:
        notebook = read(name)
        excess = list(over(notebook))
        told = notebook.metadata.get("course", {}).get("told", False)
        failed |= told and bool(excess)
        counts = "".join(f"{count:>9,}" for count in asdict(spent(notebook)).values())
        print(f"{name:18}{counts}   {'told; ' * told}{', '.join(line.split(':')[0] for line in excess)}")
    if options.screens:
        report_screens(options.screens, names)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
