"""What was graded: the rows of the table, the table as CSV, and the file by which a second run goes on."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import bert_course
import minigrad
from bert_course.grade.inside import Limits, Task
from bert_course.grade.submissions import Refused
from bert_course.grade.verdict import CRASHED, LOOK, TIMED_OUT, Verdict
from minigrad.files import SaveError, write_atomic
from minigrad.messages import shown

COLUMNS = ("student", "notebook", "exercise", "right", "message", "seconds")
NOT_READ = "not read"
# Where a formula begins, also in full width: with the text, or behind a semicolon, where spreadsheets in German, French
# and many other languages begin a new cell; to these the quotes around a cell of ours are text.
FORMULA = re.compile(r"""((?:^|;)[\s"]*)(?=[=+\-@＝＋－＠])""")
ENDED = "Grading was ended, from outside or by an answer, while this one ran: read it. --again runs all answers again."
NOT_KEPT = (TIMED_OUT, CRASHED)  # a busy machine may be why: the next run tries again


@dataclass(frozen=True)
class Row:
    """One exercise of one student. notebook: the file. stem: that of the course's notebook, as "one_head"."""

    student: str
    notebook: str
    stem: str
    exercise: str
    verdict: Verdict


def as_csv(rows: Sequence[Row], refused: Sequence[Refused]) -> bytes:
    """The table in UTF-8, a line for each exercise; below it what was not read, with no exercise."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)  # spreadsheets part cells at other characters too
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
    """A text that no spreadsheet takes for a formula, and no terminal obeys, on one line."""
    text = " ".join(text.split())
    text = shown(text, 12 * len(text))  # of which each character has room to be spelled out
    return FORMULA.sub(r"\1'", text)


# --- To go on --------------------------------------------------------------------------------------------


def key(task: Task, limits: Limits, seed: int) -> str:
    """A short text that is the same for the same answers, checks, limits and seed."""
    pieces = [[piece.id, piece.source, piece.exercise] for piece in task.sheet.pieces]
    answers = {name: [answer.source, answer.above] for name, answer in task.answers.items()}
    all_of_it = [task.exercise, pieces, answers, vars(limits), seed, _course()]
    return hashlib.sha256(json.dumps(all_of_it).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _course() -> str:
    """A short text that is another one when a file of the library or of the checks is."""
    found = hashlib.sha256()
    for package in (minigrad, bert_course):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


class Done:
    """The verdicts so far, by `key`, and the file that holds them: a line when an answer begins, and one when it ends.

    So whatever ends the grading, its verdicts are kept, and the next run finds which answers ran at that moment: it has
    the verdict "look by hand" for these, and does not run them. A damaged line is left aside.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.verdicts: dict[str, Verdict] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
                    self._read(json.loads(line))

    def _read(self, line: dict[str, Any]) -> None:
        if "verdict" not in line:  # it began
            self.verdicts[line["key"]] = Verdict(LOOK, f"{line['exercise']}: not judged.", ENDED)
        elif line["verdict"] is None:  # it ended, and is tried again
            del self.verdicts[line["key"]]
        else:
            self.verdicts[line["key"]] = Verdict.read(line["verdict"])

    def begin(self, name: str, exercise: str) -> None:
        """Note that an answer runs from now on. Raises SaveError."""
        self._append({"key": name, "exercise": exercise})

    def end(self, name: str, verdict: Verdict) -> None:
        """Note what came of it. Raises SaveError."""
        self.verdicts[name] = verdict
        self._append(_line(name, verdict))

    def _append(self, line: dict[str, Any]) -> None:
        try:
            with open(self.path, "ab") as file:
                file.write(_as_bytes([line]))
        except OSError as error:
            raise SaveError(f"could not write to {self.path}: {error.strerror}") from error

    def save(self) -> None:
        """Write the file anew, without answers that began and did not end. Raises SaveError."""
        write_atomic(self.path, _as_bytes(_line(name, one) for name, one in self.verdicts.items()))


def _line(name: str, verdict: Verdict) -> dict[str, Any]:
    return {"key": name, "verdict": None if verdict.right in NOT_KEPT else verdict.as_dict()}


def _as_bytes(lines: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode("utf-8", "replace")
