"""A class graded: from what lies in a folder to a verdict for each student and exercise."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from minigrad.course.grade.answers import Answer, NotReadable, Sheet, answers_in
from minigrad.course.grade.inside import Limits, Task
from minigrad.course.grade.process import run_all
from minigrad.course.grade.submissions import Refused, Submission, find
from minigrad.course.grade.table import Done, Row, key
from minigrad.course.grade.verdict import NO_CELL, NOT_ATTEMPTED, Verdict

__all__ = ["HandedIn", "collect", "count", "grade", "right_task", "rows_of"]

SAVE_EVERY = 5.0  # seconds


@dataclass(frozen=True)
class HandedIn:
    """A notebook that counts, with what it answers."""

    student: str
    name: str
    sheet: Sheet
    answers: dict[str, Answer] = field(hash=False)


def collect(folder: Path, course: Sequence[Sheet]) -> tuple[list[HandedIn], list[Refused]]:
    """The notebooks in a folder that count, and what is not graded: what cannot be read, and what a newer one replaces.

    Of two notebooks of one student for one chapter the newest counts.
    """
    newest: dict[tuple[str, str], tuple[Submission, HandedIn]] = {}
    refused = []
    for one in find(folder):
        if isinstance(one, Refused):
            refused.append(one)
            continue
        try:
            sheet, answers = answers_in(one.content, course)
        except NotReadable as error:
            refused.append(Refused(one.student, one.name, str(error)))
            continue
        # Of its text only the answers are kept: a class's notebooks may be larger than the memory.
        new = replace(one, content=b""), HandedIn(one.student, one.name, sheet, answers)
        old = newest.get((one.student, sheet.stem))
        if old is not None:
            old, new = sorted([old, new], key=lambda both: (both[0].time, both[0].name))
            words = f"{new[1].name} is newer, and is the one that counts"
            refused.append(Refused(one.student, old[1].name, words))
        newest[one.student, sheet.stem] = new
    found = [handed_in for _, handed_in in newest.values()]
    return sorted(found, key=lambda one: (one.student.casefold(), one.sheet.stem)), refused


def _tasks(handed_in: Sequence[HandedIn], limits: Limits, seed: int) -> dict[str, Task]:
    """What there is to run, by key: answers that are the same to the letter are run once."""
    found = {}
    for one in handed_in:
        for name, answer in one.answers.items():
            if answer.source is not None and not answer.untouched:
                task = Task(one.sheet, name, one.answers)
                found[key(task, limits, seed)] = task
    return found


def count(handed_in: Sequence[HandedIn], limits: Limits, seed: int) -> int:
    """How many answers there are to run."""
    return len(_tasks(handed_in, limits, seed))


def grade(
    handed_in: Sequence[HandedIn],
    done: Done,
    jobs: int,
    limits: Limits,
    seed: int,
    private: Sequence[Path] = (),
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Run what is not in `done` yet, and put it there; what was graded is kept, also when this is interrupted.

    advance: called with how many exercises have a verdict now that had none.
    """
    todo = _tasks(handed_in, limits, seed)
    new = [(name, task) for name, task in todo.items() if name not in done.verdicts]
    advance(len(todo) - len(new))
    saved = time.monotonic()
    try:
        for name, verdict in run_all(new, jobs, limits, seed, private):
            done.verdicts[name] = verdict
            advance(1)
            if time.monotonic() - saved > SAVE_EVERY:
                done.save()
                saved = time.monotonic()
    finally:
        done.save()


def rows_of(handed_in: Sequence[HandedIn], done: Done, limits: Limits, seed: int) -> list[Row]:
    """A row for each student and exercise that has a verdict."""
    rows = []
    for one in handed_in:
        for name, answer in one.answers.items():
            if answer.source is None:
                verdict = Verdict(NO_CELL, answer.problem)
            elif answer.untouched:
                verdict = Verdict(NOT_ATTEMPTED, f"{name}: not attempted yet.")
            else:
                found = done.verdicts.get(key(Task(one.sheet, name, one.answers), limits, seed))
                if found is None:
                    continue
                verdict = found
            rows.append(Row(one.student, one.name, one.sheet.stem, name, verdict))
    return rows


def right_task(course: Sequence[Sheet], name: str, source: str) -> Task:
    """A task whose answer to an exercise is `source`, and which answers nothing else."""
    sheet = next(one for one in course if name in one.exercises)
    answers = {other: Answer(source if other == name else "") for other in sheet.exercises}
    return Task(sheet, name, answers)
