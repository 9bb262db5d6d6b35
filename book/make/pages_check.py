"""Every cell of every page, run as the site's pages run it: in Python as WebAssembly, in Node.

    python -m book.make.pages_check _build/html/_static/python _build/python/node_modules [PAGE …]

Each output is held against the stored one with the comparison of `pytest --nbval` (conftest.py in the root). A page's
cells run in order in a fresh namespace. Ends with a line for each page, and with 1 if a cell failed or differed.
With --quick the cells of five seconds and more are left out (`course.page_seconds`), with those that need them.
With --long the cells that take long run too: those that the page runs when its reader wants to wait. With --write a
chapter's notebook says which cells compute for five seconds and more (`course.page_seconds`, which the page tells its
reader), and which do so for longer than a page should without being asked (`native=slow`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat

from book.make.notebooks import read, write
from book.make.site import takes_long

ROOT = Path(__file__).resolve().parent.parent.parent
RUNNER = ROOT / "book" / "site" / "python" / "check.mjs"
PATIENCE = 600  # seconds for a page, of the cells that take no longer than a reader waits
TOGETHER = 8  # pages of exercises in one process
LONG_PATIENCE = 3600  # and with all cells
# Seconds of the processor from which a cell is said to take long, and from which it does not run in a page.
SAID, LONG, SLOW = 5.0, 30.0, "native=slow"

spec = importlib.util.spec_from_file_location("root_conftest", ROOT / "conftest.py")
assert spec is not None
assert spec.loader is not None
root_conftest: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(root_conftest)


def notebook_of(page: str) -> Any:
    """The notebook of a page, `one_head` or `exercises/one_head`."""
    path = ROOT / (page if "/" in page else f"book/{page}")
    return nbformat.read(path.with_suffix(".ipynb"), as_version=4)


def faults(page: str, ran: dict[str, Any]) -> list[str]:
    """What is wrong with the outputs of a page, a line for each cell."""
    cells = {cell.id: cell for cell in notebook_of(page).cells}
    found = []
    for one in ran["cells"]:
        if one["id"] not in cells:  # what a cell names, without an output of its own
            if not one["ok"]:
                found.append(f"{page} {one['id']}: {one['outputs'][-1]}")
            continue
        stored, fresh = cells[one["id"]].outputs, one["outputs"]
        different = root_conftest.differences(stored, fresh, cells[one["id"]].metadata, pictures=False)
        found += [f"{page} {one['id']}: {line[:600]}" for line in different]
    return found


def write_down(path: Path, seconds: dict[str, float]) -> None:
    """Note in a chapter's notebook which of its cells compute for long. Cells that did not run keep what is said."""
    notebook = read(path)
    before = json.dumps(notebook)
    for cell in notebook.cells:
        if cell.id not in seconds:
            continue
        course = dict(cell.metadata.get("course", {}))
        course.pop("page_seconds", None)
        if seconds[cell.id] > SAID:
            course["page_seconds"] = round(seconds[cell.id])
        cell.metadata.pop("course", None)
        if course:
            cell.metadata["course"] = course
        tags = cell.metadata.get("tags", [])
        if seconds[cell.id] > LONG and not takes_long(tags):
            cell.metadata["tags"] = [*tags, SLOW]
    if json.dumps(notebook) != before:
        write(path, notebook)


def run(pages: Sequence[str], options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Run pages in one process; for each a line that says how it went, and its faults."""
    patience = LONG_PATIENCE if options.long else PATIENCE * len(pages)
    try:
        done = subprocess.run(
            ["node", str(RUNNER), str(options.site), str(options.packages / "pyodide"), *pages],
            capture_output=True,
            text=True,
            timeout=patience,
            env={**os.environ, "LONG_CELLS": str(int(options.long)), "QUICK_CELLS": str(int(options.quick))},
        )
    except subprocess.TimeoutExpired:
        for page in pages:
            yield f"{page}: stopped", [f"{page}: not done after {patience} s"]
        return
    ran = {one["page"]: one for one in map(json.loads, done.stdout.splitlines())}
    for page in pages:
        if page not in ran:
            yield f"{page}: broken", [f"{page}: Python broke: {done.stderr[-2000:]}"]
        else:
            yield judged(page, ran[page], options)


def judged(page: str, ran: dict[str, Any], options: argparse.Namespace) -> tuple[str, list[str]]:
    """A line that says how a page went, and its faults."""
    asked = json.loads((options.site / "cells" / f"{page}.json").read_text(encoding="utf-8"))["cells"]
    found = faults(page, ran)
    if options.write and "/" not in page:
        write_down(ROOT / "book" / f"{page}.ipynb", {one["id"]: one["seconds"] for one in ran["cells"]})
    known = {one["id"] for one in asked if one["long"]}
    slow = [
        f"{one['id']} {one['seconds']:.0f} s"
        for one in ran["cells"]
        if one["seconds"] > LONG and one["id"] not in known
    ]
    seconds = sum(one["seconds"] for one in ran["cells"])
    said = f"{page}: {len(ran['cells'])} of {len(asked)} cells, {len(found)} differ, {seconds:.0f} s"
    return said + (f"; slow: {', '.join(slow)}" if slow else ""), found


def groups(pages: Sequence[str]) -> list[list[str]]:
    """Pages that share a process, which takes three seconds to start: exercises, which compute little."""
    exercises = [page for page in pages if page.startswith("exercises/")]
    alone = [[page] for page in pages if page not in exercises]
    return alone + [exercises[i : i + TOGETHER] for i in range(0, len(exercises), TOGETHER)]


def main() -> int:
    """Check the pages; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, help="the folder _static/python of a built site")
    parser.add_argument("packages", type=Path, help="npm's node_modules")
    parser.add_argument("pages", nargs="*", help="such as one_head or exercises/one_head; all without any")
    parser.add_argument(
        "--write", action="store_true", help="write into the chapters' notebooks what takes long"
    )
    parser.add_argument("--quick", action="store_true", help="leave out the cells of five seconds and more")
    parser.add_argument("--long", action="store_true", help="run the cells that take long, too")
    options = parser.parse_args()
    cells = options.site / "cells"
    pages = options.pages or sorted(
        path.relative_to(cells).with_suffix("").as_posix() for path in cells.rglob("*.json")
    )
    if not pages:
        parser.error(f"{cells} has no pages: run make site")
    found: list[str] = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2) as pool:
        for ran in pool.map(lambda group: list(run(group, options)), groups(pages)):
            for line, wrong in ran:
                print("\n    ".join([line, *wrong]), flush=True)
                found += wrong
    print(f"{len(pages)} pages, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
