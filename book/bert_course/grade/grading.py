"""A class graded: from what lies in a folder to a verdict for each student and exercise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from bert_course.contents import PLACES
from bert_course.grade.answers import Answer, NotReadable, Sheet, answers_in
from bert_course.grade.inside import Limits, Task
from bert_course.grade.process import run_all
from bert_course.grade.submissions import NOTHING, Other, Refused, find
from bert_course.grade.table import Done, Row, key
from bert_course.grade.verdict import NO_CELL, NOT_ATTEMPTED, UNGRADED, Verdict

INTERRUPTED = "Grading was interrupted before this exercise."
SAME_TIME = 2.0  # seconds between two files that a zip file, or a copy, may have given one date


@dataclass(frozen=True)
class HandedIn:
    """A notebook that counts, with what it answers."""

    student: str
    name: str
    sheet: Sheet
    answers: dict[str, Answer] = field(hash=False)


@dataclass(frozen=True)
class Candidate:
    """A notebook that may count: of its text only the answers are kept, as a class may be larger than the memory."""

    time: float
    handed_in: HandedIn
    said_in: str  # of what was handed in, as is `account`
    account: str
    below: str

    @property
    def name(self) -> str:
        """Where it lies."""
        return self.handed_in.name


def collect(
    folder: Path, course: Sequence[Sheet], without: Sequence[Path] = ()
) -> tuple[list[HandedIn], list[Refused]]:
    """The notebooks in a folder that count, and what is not graded: what cannot be read, and what a newer one replaces.

    without: files and folders to pass by.
    """
    candidates: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    said_in: dict[str, dict[str, str]] = defaultdict(dict)  # by student and folder, the first file there
    others: dict[str, list[Other]] = defaultdict(list)
    refused = []
    for one in find(folder, without):
        if isinstance(one, Refused):
            refused.append(one)
        elif isinstance(one, Other):
            others[one.student].append(one)
        else:
            try:
                sheet, answers, elsewhere = answers_in(one.content, course)
            except NotReadable as error:
                refused.append(Refused(one.student, one.name, str(error)))
                continue
            if elsewhere:
                words = f"its answers to {', '.join(elsewhere)} are not graded: each chapter has a notebook of its own"
                refused.append(Refused(one.student, one.name, words))
            handed_in = HandedIn(one.student, one.name, sheet, answers)
            candidates[one.student, sheet.stem].append(
                Candidate(one.time, handed_in, one.said_in, one.account, one.below or one.name)
            )
            said_in[one.student].setdefault(one.said_in, one.name)
    found = []
    for (student, _), own in candidates.items():
        if len({one.said_in for one in own}) > 1 or _one_in_another(said_in[student]):
            sources = " and ".join(sorted(said_in[student].values()))
            why = (
                f"{sources} both say that they are of {student}, in different folders: nobody can tell which is. Keep "
                "those that are, or grade the folders one by one"
            )
            refused += [Refused(student, one.name, why) for one in own]
            continue
        counts, left = _choose(own)
        found += counts
        refused += left
    known = {one.student for one in found} | {one.student for one in refused}
    for student, rest in others.items():
        if student not in known:
            files = [one for one in rest if one.reason != NOTHING]
            more = f", nor are {len(files) - 1} more" if len(files) > 1 else ""
            first = (files or rest)[0]
            refused.append(Refused(student, first.name, f"{first.reason}{more}"))
    return sorted(found, key=lambda one: (one.student.casefold(), PLACES[one.sheet.stem])), refused


def _choose(own: list[Candidate]) -> tuple[list[HandedIn], list[Refused]]:
    """Of one student's notebooks for one chapter the newest; none where it is not plain which that is."""
    own = sorted(own, key=lambda one: (one.time, one.name), reverse=True)
    newest, student = own[0], own[0].handed_in.student
    names, why = " and ".join(sorted(one.name for one in own)), ""
    for one in own[1:]:
        if one.handed_in.answers == newest.handed_in.answers:
            continue
        if one.account != newest.account:
            why = (
                f"{names} both say that they are of {student}, and differ in what stands beside that name. If these "
                "are two students, grade them one by one; if not, keep the notebook that counts"
            )
        elif not _nested(one.below, newest.below):
            why = (
                f"{names} lie in several folders of {student}. If these are several students, grade {student} alone; "
                "if not, keep the notebook that counts"
            )
        elif newest.time - one.time <= SAME_TIME:
            why = why or f"{names} have the same date, as after a copy or from git: keep the one that counts"
    if why:
        return [], [Refused(student, one.name, why) for one in own]
    words = f"{newest.name} is newer, and is the one that counts"
    return [newest.handed_in], [Refused(student, one.name, words) for one in own[1:]]


def _one_in_another(folders: Iterable[str]) -> bool:
    """Whether one of these folders lies in another one, as what somebody has unpacked into their own."""
    return any(
        one != other and PurePosixPath(one).is_relative_to(other) for one in folders for other in folders
    )


def _nested(one: str, other: str) -> bool:
    """Whether one of two files lies beside the other, or in a folder beside it."""
    folders = [PurePosixPath(name).parent for name in (one, other)]
    return folders[0].is_relative_to(folders[1]) or folders[1].is_relative_to(folders[0])


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
    done.save()
    try:
        for name, verdict in run_all(new, jobs, limits, seed, private, done.begin):
            done.end(name, verdict)
            advance(1)
    finally:
        done.save()


def rows_of(handed_in: Sequence[HandedIn], done: Done, limits: Limits, seed: int) -> list[Row]:
    """A row for each student and exercise; those that have no verdict in `done` say so."""
    rows = []
    for one in handed_in:
        for name, answer in one.answers.items():
            if answer.source is None:
                verdict = Verdict(NO_CELL, answer.problem)
            elif answer.untouched:
                verdict = Verdict(NOT_ATTEMPTED, f"{name}: not attempted yet.")
            else:
                task = Task(one.sheet, name, one.answers)
                verdict = done.verdicts.get(key(task, limits, seed)) or Verdict(UNGRADED, INTERRUPTED)
                if answer.note:
                    verdict = replace(verdict, caution=f"{answer.note} {verdict.caution}".strip())
            rows.append(Row(one.student, one.name, one.sheet.stem, name, verdict))
    return rows


def right_task(course: Sequence[Sheet], name: str, source: str) -> Task:
    """A task whose answer to an exercise is `source`, and which answers nothing else."""
    sheet = next(one for one in course if name in one.exercises)
    answers = {other: Answer(source if other == name else "") for other in sheet.exercises}
    return Task(sheet, name, answers)
