"""Is what a cell is said to need enough? Each cell of a page, run after those cells alone, in a fresh namespace.

    python -m book.make.cells_alone book/one_head.ipynb …

Runs a page once whole, in the kernel that records needs, and notes for each cell what it needs, its seconds and the
state of `minigrad.random` before it. What it needs beside the stored needs is said. Then each cell runs after its
stored needs, from that state, and its output is held against the stored one. Cells that two lists of needs begin with
run once, in a process that is forked where the lists part. Prints what differs, and which cells take longer than a page
should (tag `native=heavy`); 1 if something differed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from book.make.cell_needs import Recorder
from book.make.notebooks import read
from book.make.pages_check import ROOT, root_conftest
from book.make.site import page_cells, parts
from minigrad import random

LONG = 2.0  # seconds on a processor, natively, from which on a cell is `native=heavy`


class Page:
    """A notebook, its cells as pages get them, and what was found."""

    def __init__(self, path: Path) -> None:
        self.path = path
        notebook = read(path)
        self.stored = {cell.id: cell for cell in notebook.cells}
        self.sources = {name: source for name, source, _, _ in parts(notebook)}
        self.cells = {cell["id"]: cell for cell in page_cells(notebook, path.relative_to(ROOT).as_posix())}
        self.outputs: list[dict[str, Any]] = []
        self.kernel = Recorder(self.outputs.append)
        self.record: dict[str, Any] = {}

    def run(self, cell: str) -> str:
        """Run a cell from its own random state; what is wrong with its output, or nothing."""
        self.outputs.clear()
        begun = time.process_time()
        well = self.kernel.run(self.sources[cell], self.record.get(cell, {}).get("before"))
        self.seconds = round(time.process_time() - begun, 2)
        if cell not in self.stored:  # what a cell names, without an output of its own
            return "" if well else str(self.outputs[-1])
        different = root_conftest.differences(
            self.stored[cell].outputs, self.outputs, self.stored[cell].metadata
        )
        if not well:
            return " / ".join(self.outputs[-1]["traceback"][-3:])
        return "; ".join(different)[:500]

    def whole(self) -> list[str]:
        """All cells in order: fills the record; what differs."""
        found = []
        for cell in self.cells:
            now = random.get_state()
            before = [now["seed"], now["draws"]]
            with self.kernel.noting(cell, self.sources[cell]):
                wrong = self.run(cell)
            if wrong:
                found.append(f"{cell} in the whole page: {wrong}")
            if more := self.kernel.needs[cell] - set(self.cells[cell]["needs"]):
                found.append(f"{cell} also needs {', '.join(sorted(more))}: run make notebook")
            self.record[cell] = {"before": before, "seconds": self.seconds}
        return found


def is_run(cell: dict[str, Any]) -> bool:
    """Whether a page runs it without asking its reader for patience."""
    return cell["runs"] is True and not cell["long"]


def tree_of(page: Page) -> dict[str, Any]:
    """Cells below the cells that run before them: {cell: (is it looked at here, those below)}."""
    root: dict[str, Any] = {}
    for cell in page.cells.values():
        if not is_run(cell):
            continue
        below = root
        for one in cell["needs"]:
            below = below.setdefault(one, [False, {}])[1]
        below.setdefault(cell["id"], [False, {}])[0] = True
    return root


def walk(page: Page, tree: dict[str, Any], log: int) -> None:
    """Run each cell of a level in a process of its own, and there what is below it."""
    for cell, (looked_at, below) in tree.items():
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        status = 1
        try:
            wrong = page.run(cell)
            if looked_at:
                os.write(log, f"{json.dumps([cell, wrong])}\n".encode())
            walk(page, below, log)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)


def alone(page: Page) -> list[str]:
    """Each cell after its needs; what differs, and cells of which no word came."""
    with tempfile.TemporaryFile() as file:
        walk(page, tree_of(page), file.fileno())
        file.seek(0)
        said = dict(json.loads(line) for line in file)
    asked = [cell["id"] for cell in page.cells.values() if is_run(cell)]
    return [f"{cell} alone: {said.get(cell, 'no word')}" for cell in asked if said.get(cell, "no word")]


def checked(path: Path) -> tuple[Page, list[str]]:
    """A page whole and in parts. The whole runs in a fork, so that the parts begin without what it left."""
    page = Page(path)
    os.chdir(path.parent)
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            found = page.whole()
            os.write(file.fileno(), json.dumps([found, page.record]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        file.seek(0)
        found, page.record = json.load(file)
    return page, found + alone(page)


def main() -> int:
    """Check the pages; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", type=Path, nargs="+")
    os.environ["MINIGRAD_PROGRESS"] = "off"
    differ = 0
    for path in [path.resolve() for path in parser.parse_args().notebooks]:
        page, found = checked(path)
        print(f"{path.relative_to(ROOT)}: {len(page.cells)} cells, {len(found)} differ", flush=True)
        for one in found:
            print(f"    {one}", flush=True)
        for cell, ran in page.record.items():
            if ran["seconds"] > LONG and is_run(page.cells[cell]):
                print(f"    {cell} takes {ran['seconds']} s", flush=True)
        differ += len(found)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
