"""What an exercise's check does: try an answer on many inputs, and name the mistake behind a wrong one.

A check knows a right answer and the typical wrong ones, written as edits of the right one (mistakes.py). A wrong answer
that gives, on every input, what a typical wrong one gives has that mistake in it: the learner is told the mistake, not
only that a number is off. If none fits, the answer is followed: each of its expressions is held against the quantities
on the right answer's path, and the one that, put right, makes the answer right is shown (blame.py). Else what was
measured is told: the input, what came, what was expected, and what is true of the difference.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bert_course.check import record
from bert_course.check.cells import failed_since
from bert_course.check.diagnosis import diagnose
from bert_course.check.differences import described
from bert_course.check.follow import NAME
from bert_course.check.mistakes import source_of
from bert_course.check.outcome import own_line
from bert_course.check.report import Report, tell, tell_so_far
from bert_course.check.trial import Answer, Task, Trial
from bert_course.check.watch import Watch, no_trace, silent_lapack
from bert_course.common.show import Source
from bert_course.common.tables import table
from bert_course.contents import NUMBERS, numbered

NOT_ATTEMPTED = "not attempted yet: replace the `...` above, run that cell, then check again"
ENDLESS = "The line was `{}`. If it is in a loop, can what the loop waits for happen with this input?"
LISTING = 88  # columns of a solution: JupyterLab breaks longer lines inside of words

EXERCISES: dict[str, Exercise] = {}  # by name, in the order of the course


@dataclass(kw_only=True)
class Exercise(Task):
    """A check to call on an answer, `check.attend(attend)`, with hints and a solution.

    chapter: its name. difficulty: 1 to 3. minutes: about how long.
    hints: paragraphs, the gentlest first. The rest is `Task`'s.
    """

    chapter: str
    difficulty: int
    minutes: int
    hints: str
    _hints_given: int = field(default=0, init=False)
    _attempted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.name in EXERCISES:
            other = EXERCISES[self.name].chapter
            raise ValueError(
                f"two exercises are called {self.name}, in {other} and {self.chapter}: check.{self.name} can "
                "be one only. Name the later one after what is new in it, as dropout_by_hand"
            )
        if self.chapter not in NUMBERS:
            raise ValueError(f"check.{self.name} is of chapter {self.chapter!r}, which there is not")
        EXERCISES[self.name] = self

    def __repr__(self) -> str:
        return f"check.{self.name}: chapter {NUMBERS[self.chapter]}, difficulty {self.difficulty}, {self.minutes} minutes"

    def sentences(self) -> list[str]:
        """What the check has to say of this exercise: its mistakes, its hints and the names of its cases."""
        cases = [name for name, *_ in self.drawn(0)]
        return list(
            dict.fromkeys([*(mistake.sentence for mistake in self.known_mistakes), *self._hints, *cases])
        )

    # --- For the learner ---------------------------------------------------------------------------------

    def __call__(self, answer: Answer) -> None:
        """Try `answer` on all cases and say what came of it."""
        self.judge(answer)

    def judge(self, answer: Answer) -> bool:
        """The same, and return whether it is right."""
        shown = []
        with no_trace():
            report = self.report(answer, so_far=lambda known: shown.append(tell_so_far(known)))
        next(filter(None, shown), tell)(report)
        return report.verdict == "right"

    def accepts(self, answer: Answer, seed: int = 0) -> bool:
        """Whether an answer is right on the cases of a seed, without a word, and without counting an attempt."""
        trial, watch = Trial(self, seed), Watch()
        try:
            return trial.accepts(answer, watch)
        finally:
            watch.close()

    def report(
        self, answer: Answer, seed: int | None = None, so_far: Callable[[Report], object] = lambda known: None
    ) -> Report:
        """What there is to say of `answer`, unsaid.

        seed: of the cases, by default what the environment's MINIGRAD_CHECK_SEED says, or 0. so_far: is called with what
        is known of a wrong answer, before its mistake is looked for, which may take seconds.
        What an answer leaves changed for all stays so, and Ctrl-C ends it with a verdict that is a note.
        """
        if not callable(answer):
            words = f"pass the function itself, check.{self.name}({self.name})."
            return Report("note", f"{self.name}:", words, paragraphs=[f"This is {described(answer)}."])
        said = os.environ.get("MINIGRAD_CHECK_SEED", "0") if seed is None else str(seed)
        if not said.isdecimal():
            words = f"MINIGRAD_CHECK_SEED should be a whole number, and is {said!r}."
            return Report("note", f"{self.name}:", words)
        watch = Watch()
        try:
            with silent_lapack():
                return self._tried(answer, Trial(self, int(said)), watch, so_far)
        except KeyboardInterrupt as interrupt:
            where = f"It was at {watch.case}." if watch.case else "It was between two cases."
            line = own_line(interrupt, answer)
            return Report(
                "note", f"{self.name}: interrupted.", where, paragraphs=[ENDLESS.format(line)] if line else []
            )
        finally:
            watch.close()

    def _tried(
        self, answer: Answer, trial: Trial, watch: Watch, so_far: Callable[[Report], object]
    ) -> Report:
        outcomes = []
        for outcome in trial.outcomes(answer, watch):
            outcomes.append(outcome)
            if outcome.not_attempted:
                return Report("note", f"{self.name}:", NOT_ATTEMPTED, caution=failed_since(answer) or "")
        self._attempted = True
        complaints = trial.complaints(outcomes)
        right = complaints.count(None)
        solved = right == len(complaints)
        report = Report("right" if solved else "wrong", "", caution=failed_since(answer) or "")
        if solved:
            report.title = f"{self.name}: right."
            report.more = f"{right} case{'s' * (right > 1)}."
            report.paragraphs = list(filter(None, [trial.remark(outcomes)]))
            report.call = f"To compare with a solution: check.{self.name}.solution()"
        else:
            report.title = f"{self.name}: not yet."
            report.more = f"{right} of {len(complaints)} cases {'is' if right == 1 else 'are'} right."
            shown = next(place for place, words in enumerate(complaints) if words)
            report.symptom = f"On {trial.names[shown]}: {complaints[shown]}"
            report.values = trial.values(outcomes, shown)
            watch.close()
            so_far(report)
            try:
                with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
                    diagnosis = diagnose(trial, outcomes, complaints)  # the answer may print
                report.paragraphs, shown, report.besides = (
                    diagnosis.paragraphs,
                    diagnosis.shown,
                    diagnosis.asides,
                )
            except KeyboardInterrupt:  # that the answer is wrong is known all the same
                report.paragraphs = ["Interrupted: the check was still looking for the mistake behind it."]
            report.symptom = f"On {trial.names[shown]}: {complaints[shown]}"
            report.values = trial.values(outcomes, shown)
            if seen := trial.besides(outcomes, complaints[shown] or "", report.paragraphs):
                report.besides.append(seen)
            report.hints = self._hints
            report.call = f"For a hint: check.{self.name}.hint()"
        report.solution = partial(_listing, self.answer)
        report.footnotes = record.count_attempt(self.name, solved)
        report.onward = self._onward() if solved else ""
        return report

    def _onward(self) -> str:
        """After a right answer: the page's next exercise that is not solved, else the first one."""
        names = [one.name for one in EXERCISES.values() if one.chapter == self.chapter]
        known, place = record.known(), names.index(self.name)
        for name in names[place + 1 :] + names[:place]:
            if not known.get(name, {}).get("solved"):
                one = EXERCISES[name]
                return f"Next: {name}, difficulty {one.difficulty}, {one.minutes} minutes."
        return "All exercises of this page are right."

    @property
    def _hints(self) -> list[str]:
        return [numbered(" ".join(hint.split())) for hint in self.hints.strip().split("\n\n")]

    def hint(self) -> None:
        """Show the next hint; after the last one, say how to see a solution."""
        hints = self._hints
        if self._hints_given == len(hints):
            words = f"After an attempt, check.{self.name}.solution() shows one way."
            tell(Report("note", "No more hints.", words))
            return
        self._hints_given += 1
        title = f"Hint {self._hints_given} of {len(hints)}:"
        tell(Report("note", title, hints[self._hints_given - 1]))

    def solution(self) -> Source | None:
        """One right answer, after an attempt."""
        if not self._attempted:
            words = f"run check.{self.name}({self.name}) on an answer of your own."
            tell(Report("note", "First try:", words))
            return None
        return Source(self.answer, text=_listing(self.answer))


def _listing(answer: Answer) -> str:
    """The source of an answer; comments too long for a notebook's cell stand above their line, or are broken between words."""
    lines: list[str] = []
    source = [part for line in source_of(answer).split("\n") for part in _with_name_above(line)]
    for column, group in itertools.groupby(source, _comment_at):
        block = list(group)
        lines += block if column is None else _refilled(block, column)
    return "\n".join(lines)


def _with_name_above(line: str) -> list[str]:
    code, _, name = line.partition(f"  {NAME}")
    indent = " " * (len(code) - len(code.lstrip()))
    plain = f"{code}  # {name}"
    return [line] if not name else [plain] if len(plain) <= LISTING else [f"{indent}# {name}", code]


def _comment_at(line: str) -> int | None:
    """Where a line that is nothing but a comment begins, or None."""
    return len(line) - len(line.lstrip()) if line.lstrip().startswith("# ") else None


def _refilled(comment: list[str], column: int) -> list[str]:
    if max(map(len, comment)) <= LISTING:
        return comment
    text = " ".join(line.strip().removeprefix("# ") for line in comment)
    start = " " * column + "# "
    return textwrap.wrap(text, LISTING, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def exercise(
    difficulty: int, minutes: int, chapter: str = "", **settings: Any
) -> Callable[[Answer], Exercise]:
    """The function below is the right answer of an exercise; the arguments are those of `Exercise`.

    chapter: by default the one with whose name the module's begins.
    """

    def made(answer: Answer) -> Exercise:
        module = answer.__module__.rpartition(".")[2]
        own = next((name for name in NUMBERS if f"{module}_".startswith(f"{name}_")), module)
        return Exercise(
            answer=answer, chapter=chapter or own, difficulty=difficulty, minutes=minutes, **settings
        )

    return made


# --- Progress --------------------------------------------------------------------------------------------


def progress(chapter: int | str | None = None) -> None:
    """Show which exercises of a chapter, by its number or its name, or of all, are solved and which were tried."""
    numbers = list(dict.fromkeys(NUMBERS[one.chapter] for one in EXERCISES.values()))
    asked = None if chapter is None else NUMBERS.get(str(chapter), str(chapter))
    if asked not in (None, *numbers):
        words = f"there are some for {', '.join(numbers)}."
        tell(Report("note", f"There are no exercises for chapter {chapter};", words))
        return
    known = record.known()
    exercises = [one for one in EXERCISES.values() if asked in (None, NUMBERS[one.chapter])]
    rows, solved = [], 0
    for one in exercises:
        entry = known.get(one.name, {"attempts": 0, "solved": False})
        solved += entry["solved"]
        tries = f"{entry['attempts']} attempt{'s' if entry['attempts'] != 1 else ''}"
        state = f"solved, {tries}" if entry["solved"] else tries if entry["attempts"] else "-"
        number = NUMBERS[one.chapter]
        rows.append(
            [one.name, int(number) if number.isdecimal() else number, one.difficulty, one.minutes, state]
        )
    header = ["exercise", "chapter", "difficulty", "minutes", "state"]
    tell(table(header, rows, caption=f"{solved} of {len(exercises)} solved"))
