"""What a page said before it was rewritten and does not say now: numbers, seeds, and whether a hidden cell held them.

    python -m book._make.told SINCE [NAME …]

`make told SINCE=v1 NB=book/one_head.ipynb` does so. A number is looked for in what a page prints, in its prose and in
its hidden cells of claims; 0.767 is there too where 0.77 is. The lines whose numbers are gone are listed: an author
says of each why. Reports only.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import nbformat

from book._make.reading_time import NOT_WORDS
from minigrad.course.contents import CHAPTERS

NUMBER = re.compile(r"(?<![\w.,])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
SEED = re.compile(r"(?:default_rng|manual_seed|seed=)\(?\s*(\d+)")
CHAPTER = "book/{name}.ipynb"
FEWEST = 3  # digits of a number that is a finding, and not a section, a layer or a count of three


def text_of(output: Any) -> str:
    """What an output prints."""
    return output.get("text", "") or output.get("data", {}).get("text/plain", "")


def numbers(text: str, fewest: int) -> list[str]:
    """The numbers of a text with so many digits, zeros in front not counted; years are none."""
    found = [number.lstrip("-−").replace(",", "") for number in NUMBER.findall(text)]
    long = [number for number in found if len(number.replace(".", "").lstrip("0")) >= fewest]
    return [number for number in long if not re.fullmatch(r"(19|20)\d\d", number)]


def said(notebook: Any, fewest: int = FEWEST) -> Iterator[tuple[str, str]]:
    """Each number of a page with so many digits, and the line it is in."""
    for cell in notebook.cells:
        hidden = "remove-cell" in cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            lines = re.split(r"(?<=[.:])\s|\n", NOT_WORDS.sub(" ", cell.source))
        else:
            lines = "\n".join(map(text_of, cell.outputs)).split("\n")
            lines += [line for line in cell.source.split("\n") if hidden and "assert" in line]
        for line in lines:
            for number in numbers(line, fewest):
                yield number, line.strip()


def held(notebook: Any) -> set[float]:
    """All numbers of a page, the constants of its hidden cells with them."""
    found = {float(number) for number, _ in said(notebook, 1)}
    for cell in notebook.cells:
        if "claims" in cell.metadata.get("tags", []):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                    found.add(float(node.value))
    return found


def gone(before: Any, now: Any) -> dict[str, list[str]]:
    """The lines with numbers that the page had and has no more, rounded or in full; each number once."""
    there = held(now)
    lost: dict[str, list[str]] = {}
    seen: set[str] = set()
    for number, line in said(before):
        places = len(number.partition(".")[2])
        kept = any(
            abs(value - float(number)) < 0.51 * 10.0 ** -min(places, digits)
            for value in there
            for digits in (places, places - 1)
            if digits >= 1 or value == float(number)
        )
        if not kept and number not in seen:
            seen.add(number)
            lost.setdefault(line, []).append(number)
    return lost


def seeds(notebook: Any) -> list[str]:
    """The seeds of its cells, in order."""
    return SEED.findall("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code"))


def asserts(notebook: Any) -> int:
    """How many assertions its hidden cells make."""
    return sum(
        isinstance(node, ast.Assert)
        for cell in notebook.cells
        if "claims" in cell.metadata.get("tags", [])
        for node in ast.walk(ast.parse(cell.source))
    )


def at(commit: str, name: str) -> Any:
    """A chapter's notebook as it was at a commit."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:{CHAPTER.format(name=name)}"], capture_output=True, text=True
    )
    if shown.returncode:
        raise SystemExit(f"there is no book/{name}.ipynb at {commit}")
    return nbformat.reads(shown.stdout, as_version=4)


def main(arguments: Any = None) -> int:
    """Report on chapters."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("since", metavar="SINCE", help="the commit to compare with")
    parser.add_argument("names", nargs="*", metavar="NAME", help="chapters, such as one_head; all without it")
    options = parser.parse_args(arguments)
    for name in options.names or [chapter.name for chapter in CHAPTERS if not chapter.planned]:
        now = nbformat.read(CHAPTER.format(name=name), as_version=4)
        before = at(options.since, name)
        lost = gone(before, now)
        print(
            f"{name}: {asserts(before)} assertions, now {asserts(now)}; seeds {len(seeds(before))}, "
            f"now {len(seeds(now))}; {sum(map(len, lost.values()))} numbers gone"
        )
        for line in lost:
            print(f"  {' '.join(line.split())[:140]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
