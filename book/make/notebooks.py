"""Tools for those who write the course: run a notebook in place, make the exercises.

    TOOL=book.make.notebooks
    python -m $TOOL run book/one_head.ipynb …
    python -m $TOOL exercises           exercises/ from solutions/
    python -m $TOOL exercises --check   fail if they are out of step

Each works in the repository's root. Needs nbformat and nbclient, which Jupyter brings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

try:
    import nbformat
    from jupyter_core.utils import ensure_async
    from nbclient import NotebookClient
except ImportError as error:
    raise ModuleNotFoundError(
        "working on notebooks needs nbformat and nbclient: pip install nbformat nbclient"
    ) from error

from bert_course.grade.answers import ANSWER, CHECK, bound_in, label_cells
from bert_course.parts import MADE_WITH
from book.make.site import NEEDS_OF, note_needs, parts, reason, stamp, takes_long
from minigrad.files import write_atomic

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # the marks around an answer, which are nbgrader's too
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def read(path: Path) -> Any:
    """A notebook as nbformat reads it, version 4.5."""
    return nbformat.read(path, as_version=4)


def write(path: Path, notebook: Any) -> None:
    """Write a notebook whole or not at all, checked against nbformat's schema."""
    nbformat.validate(notebook)
    write_atomic(path, nbformat.writes(notebook).encode())


# In a kernel: the state of minigrad's random numbers, which are at their start as long as nobody has imported them.
STATE = """(lambda now: [now["seed"], now["draws"]])(
    getattr(__import__("sys").modules.get("minigrad.random"), "get_state", lambda: {"seed": 0, "draws": 0})()
)"""


class Client(NotebookClient):
    """Runs cells, and notes before which of them random numbers stood where."""

    async def async_execute_cell(
        self, cell: Any, cell_index: int, execution_count: int | None = None, store_history: bool = True
    ) -> Any:
        """Run one cell."""
        if cell.cell_type != "code" or not cell.source.strip():
            return await super().async_execute_cell(cell, cell_index, execution_count, store_history)
        before = await self.random_state()
        done = await super().async_execute_cell(cell, cell_index, execution_count, store_history)
        note_random(cell, before, await self.random_state())
        return done

    async def random_state(self) -> list[int]:
        """Seed and draws."""
        kernel: Any = self.kc
        asked = kernel.execute("", silent=True, user_expressions={"state": STATE})
        while True:
            answer = await ensure_async(kernel.get_shell_msg(timeout=60))
            if answer["parent_header"].get("msg_id") == asked:
                return list(json.loads(answer["content"]["user_expressions"]["state"]["data"]["text/plain"]))


def note_random(cell: Any, before: list[int], after: list[int]) -> None:
    """Note in a cell's metadata where random numbers stood before it (seed, draws), if they stood elsewhere after it.

    With that a page of the site runs the cell alone, and it draws what it draws in an uninterrupted run.
    """
    course = dict(cell.metadata.pop("course", {}))
    course.pop("random", None)
    if before != after:
        course["random"] = before
    if course:
        cell.metadata["course"] = course


def run(notebook: Any, folder: Path) -> None:
    """Run all cells of a notebook with `folder` as the working directory, and store what they put out.

    What differs from run to run is left out: times, the kernel's version. Raises nbclient's CellExecutionError
    where a cell fails that has no tag `raises-exception`.
    """
    client = Client(notebook, timeout=900, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(folder), env={**os.environ, "MINIGRAD_PROGRESS": "off"})
    notebook.metadata["kernelspec"] = KERNEL
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined_streams(cell.outputs)


def _joined_streams(outputs: list[Any]) -> list[Any]:
    """Neighbouring pieces of one stream as one: how a run cuts them is chance."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


# --- Exercises -------------------------------------------------------------------------------------------


def make_exercise(solution: Any) -> Any:
    """The exercise from its solution: what stands between the solution marks becomes `...`.

    Cells tagged `solution` are left out; its metadata say what it was made with, and those of a cell with an answer
    or its check, of which exercise they are. Raises ValueError for marks that do not pair or share their line.
    """
    exercise = nbformat.from_dict(solution)  # a deep copy
    label_cells(exercise.cells, lambda cell: BEGIN in cell.source)
    exercise.cells = [cell for cell in exercise.cells if "solution" not in cell.metadata.get("tags", [])]
    _let_answers_read(exercise)
    for cell in exercise.cells:
        if cell.cell_type == "code":
            cell.source = _without_solutions(cell.source)
            cell.outputs, cell.execution_count = [], None
        if "training" in cell.metadata.get("tags", []):
            cell.metadata["tags"].append("nbval-skip")  # nbval runs it in the solution
    exercise.metadata[MADE_WITH] = fingerprint(exercise)
    if NEEDS_OF in exercise.metadata:
        exercise.metadata[NEEDS_OF] = stamp(exercise)
    return exercise


def _let_answers_read(notebook: Any) -> None:
    """Note that an answer needs, beside what the solution reads, every given cell above that defines something.

    But for cells that do not run in a page, or for long, and those that need an answer. So does grading
    (`grade.answers.needed`), which knows the answer and takes the cells with the names that it uses.
    """
    given: list[str] = []
    with_answers: set[str] = set()
    for name, source, cell, key in parts(notebook):
        tags, needs = cell.metadata.get("tags", []), cell.metadata.get("course", {}).get(key, "").split()
        if ANSWER in tags and NEEDS_OF in notebook.metadata:
            cell.metadata["course"][key] = " ".join(dict.fromkeys([*needs, *given]))
        if ANSWER in tags or not with_answers.isdisjoint(needs):
            with_answers.add(name)
        elif CHECK not in tags and not reason(tags) and not takes_long(tags) and bound_in(source):
            given.append(name)


def _without_solutions(source: str) -> str:
    lines, inside = [], False
    for line in source.split("\n"):
        mark = line.strip()
        if mark not in (BEGIN, END) and re.search(r"#.*\b(begin|end) solution", line, re.IGNORECASE):
            raise ValueError(f"a mark stands alone on its line, as {BEGIN} or {END}; this is {mark!r}")
        if mark == BEGIN:
            if inside:
                raise ValueError(f"{BEGIN} inside a solution")
            inside = True
            lines.append(line.replace(BEGIN, "..."))
        elif mark == END:
            if not inside:
                raise ValueError(f"{END} without a {BEGIN}")
            inside = False
        elif not inside:
            lines.append(line)
    if inside:
        raise ValueError(f"{BEGIN} without an {END}")
    return "\n".join(lines)


def fingerprint(notebook: Any) -> str:
    """A short text that is another one when a cell's source, type, id, tags or exercise are others; outputs do not
    count."""
    return hashlib.sha256(json.dumps(_cells(notebook)).encode()).hexdigest()[:16]


def holds_answers(exercise: Any) -> bool:
    """Whether somebody has worked in an exercise: its cells are not those that it was made with."""
    return fingerprint(exercise) != exercise.metadata.get(MADE_WITH)


def _exercises(root: Path, check: bool) -> tuple[list[str], bool]:
    """Write exercises/ (or, with `check`, compare the cells).

    Returns what there is to say of each, and whether all is well. What holds answers is left as it is: that is well
    as long as it was made from today's solution, except in CI, where answers are about to be committed.
    """
    found, well = [], True
    solutions = sorted((root / "solutions").glob("*.ipynb"))
    for path in solutions:
        target, made = root / "exercises" / path.name, make_exercise(read(path))
        there = read(target) if target.exists() else None
        if there and holds_answers(there):
            today = there.metadata.get(MADE_WITH) == fingerprint(made)
            age = "" if today else ", and is of an older version"
            words = f"holds answers, or was changed by hand{age}: left as it is (make lab copies it)"
            found.append(f"exercises/{path.name}: {words}")
            well = well and today and not os.environ.get("CI")
            continue
        if there and _cells(there) == _cells(made) and _needs(there) == _needs(made):
            continue
        found.append(f"exercises/{path.name}: {'out of step' if check else 'made'}")
        if check:
            well = False
        else:
            target.parent.mkdir(exist_ok=True)
            run(made, target.parent)
            write(target, made)
    for path in sorted((root / "exercises").glob("*.ipynb")):
        if path.name not in {solution.name for solution in solutions}:
            found.append(f"exercises/{path.name}: has no solution")
            well = False
    return found, well


def _cells(notebook: Any) -> list[list[Any]]:
    """What an exercise takes over from its solution; the cell that installs the course is publish.py's."""
    return [
        [
            *(cell.id, cell.cell_type, cell.source, cell.metadata.get("tags") or None),
            *([{"exercise": name}] if (name := cell.metadata.get("course", {}).get("exercise")) else []),
        ]
        for cell in notebook.cells
        if "install" not in cell.metadata.get("tags", [])
    ]


def _needs(notebook: Any) -> list[Any]:
    return [cell.metadata.get("course", {}).get(key) for _, _, cell, key in parts(notebook)]


def main(arguments: Any = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("notebooks", type=Path, nargs="+")
    commands.add_parser("exercises").add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    if options.command == "run":
        for path in options.notebooks:
            print(path, flush=True)
            notebook = read(path)
            run(notebook, path.parent)
            note_needs(notebook, path.parent)
            write(path, notebook)
        return 0
    found, well = _exercises(root, options.check)
    print("\n".join(found) or "every exercise is in step with its solution")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
