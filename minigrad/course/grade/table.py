"""What was graded: the rows of the table, the table as CSV, and the file by which a second run goes on."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import minigrad
from minigrad.course.grade.inside import Limits, Task
from minigrad.course.grade.submissions import Refused
from minigrad.course.grade.verdict import Verdict
from minigrad.files import write_atomic

__all__ = ["COLUMNS", "NOT_READ", "Done", "Row", "as_csv", "key"]

COLUMNS = ("student", "notebook", "exercise", "right", "message", "seconds")
NOT_READ = "not read"


@dataclass(frozen=True)
class Row:
    """One exercise of one student. notebook: the file. stem: that of the course's notebook, as "07_one_head"."""

    student: str
    notebook: str
    stem: str
    exercise: str
    verdict: Verdict


def as_csv(rows: Sequence[Row], refused: Sequence[Refused]) -> bytes:
    """The table in UTF-8, a line for each exercise; below it what was not read, with no exercise."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        found = row.verdict
        writer.writerow(
            map(
                _cell,
                (row.student, row.notebook, row.exercise, found.right, found.message, f"{found.seconds:.2f}"),
            )
        )
    for one in refused:
        writer.writerow(map(_cell, (one.student, one.name, "", NOT_READ, one.reason, "")))
    return text.getvalue().encode("utf-8", "replace")


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula, on one line."""
    text = " ".join(text.replace("\0", "").split())
    return "'" + text if text.startswith(("=", "+", "-", "@")) else text


# --- To go on --------------------------------------------------------------------------------------------


def key(task: Task, limits: Limits, seed: int) -> str:
    """A short text that is the same for the same answers, checks, limits and seed."""
    pieces = [[piece.id, piece.source, piece.exercise] for piece in task.sheet.pieces]
    answers = {name: answer.source for name, answer in task.answers.items()}
    all_of_it = [task.exercise, pieces, answers, vars(limits), seed, _course()]
    return hashlib.sha256(json.dumps(all_of_it).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _course() -> str:
    """A short text that is another one when a file of the library or of the checks is."""
    found = hashlib.sha256()
    for path in sorted(Path(minigrad.__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


class Done:
    """The verdicts so far, by `key`, and the file that holds them. A damaged file is left aside: all is graded anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.verdicts: dict[str, Verdict] = {}
        try:
            self.verdicts = {name: Verdict.read(one) for name, one in json.loads(path.read_bytes()).items()}
        except FileNotFoundError:
            pass
        except (ValueError, AttributeError, RecursionError):
            self.verdicts = {}

    def save(self) -> None:
        """Write the file, whole or not at all. Raises SaveError."""
        found = {name: one.as_dict() for name, one in self.verdicts.items()}
        write_atomic(self.path, json.dumps(found).encode("utf-8", "replace"))
