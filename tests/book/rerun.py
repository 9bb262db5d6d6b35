"""Runs notebooks for test_rerun.py: a process that imports the course once and forks itself for each notebook.

It runs beside an installed minigrad, which comes first on its path; the authors' tools are no part of that and come
from the repository. A line of JSON in, {"path", "folder", "left_out"}, is a notebook, where to run it and the ids of
cells to leave out; a line of JSON out, a list of what is wrong.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

PATIENCE = 600  # seconds of the processor for a notebook


def faults(path: Path, folder: Path, left_out: set[str], differences: Any) -> list[str]:
    """Run a notebook in a folder; what is unlike its stored outputs, and its false shape comments."""
    from book.make.cell_needs import split
    from book.make.notebooks import read
    from book.make.shapes import ShapeKernel

    os.chdir(folder)
    outputs: list[dict[str, Any]] = []
    kernel, found = ShapeKernel(outputs.append), []
    for cell in read(path).cells:
        if cell.cell_type != "code" or not cell.source.strip() or "install" in cell.metadata.get("tags", []):
            continue
        if cell.id in left_out:
            kernel.run(split(cell.source)[0])  # what it names, for the cells below
            continue
        outputs.clear()
        well = kernel.run(cell.source, cell.metadata.get("course", {}).get("random"))
        unlike = differences(cell.outputs, outputs, cell.metadata)
        found += [f"cell {cell.id}: {one}" for one in unlike]
        if not well and unlike:
            return found + outputs[-1]["traceback"][-3:]
    return found + list(kernel.complaints)


def answer(asked: dict[str, Any], differences: Any) -> list[str]:
    """Run one notebook in a fork, which nothing that an earlier one did can reach."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)  # a busy machine takes none of it
        signal.alarm(10 * PATIENCE)  # for one that waits
        try:
            found = faults(Path(asked["path"]), Path(asked["folder"]), set(asked["left_out"]), differences)
        except BaseException:
            found = [traceback.format_exc()]
        with os.fdopen(theirs, "w") as pipe:
            json.dump(found, pipe)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    ended = f"it ended with status {status}, at the latest after {PATIENCE} s of the processor"
    return json.loads(said) if said else [ended]


def main() -> None:
    """Import what notebooks import (0.4 s for each otherwise), then answer until there is no more to do."""
    root = Path(__file__).resolve().parents[2]
    os.environ["MINIGRAD_PROGRESS"] = "off"
    sys.path.append(str(root))

    import bert_course.chapters
    from book.make.pages_check import root_conftest

    chapters = pkgutil.iter_modules(bert_course.chapters.__path__, "bert_course.chapters.")
    tools = ("book.make.cell_needs", "book.make.notebooks", "book.make.shapes", "bert_course.check")
    for name in (*tools, *(chapter.name for chapter in chapters)):
        importlib.import_module(name)
    gc.freeze()  # no collection in a fork need look at all this, nor copy its pages

    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what cells print past their kernel is no answer
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), root_conftest.differences)), file=results, flush=True)


if __name__ == "__main__":
    main()
