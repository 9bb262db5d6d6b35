"""What an exercise's check does: try an answer on many inputs, and name the mistake behind a wrong one.

A check knows a right answer and the typical wrong ones, written as edits of the right one (slips.py). A wrong answer
that gives, on every input, what a typical wrong one gives has that mistake in it, or two that give it together: the
learner is told the mistake, not only that a number is off. If none fits on every input, the one that explains most of
them is named, or what was measured: the input, what came, what was expected, and what is true of the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minigrad.course.check import record
from minigrad.course.check.differences import described
from minigrad.course.check.slips import source_of
from minigrad.course.check.trial import Answer, Task, Trial, say
from minigrad.course.show import Source

__all__ = ["EXERCISES", "Exercise", "exercise", "progress"]

NOT_ATTEMPTED = "not attempted yet: replace the `...` above, run that cell, then this one"

EXERCISES: dict[str, Exercise] = {}  # by name, in the order of the course


@dataclass(kw_only=True)
class Exercise(Task):
    """A check to call on an answer, `check.softmax(softmax)`, with hints and a solution.

    chapter: its number. difficulty: 1 to 3. minutes: about how long. hints: paragraphs, the gentlest first. The rest is
    `Task`'s.
    """

    chapter: int
    difficulty: int
    minutes: int
    hints: str
    _hints_given: int = field(default=0, init=False)
    _attempted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.name in EXERCISES:
            other = EXERCISES[self.name].chapter
            raise ValueError(
                f"two exercises are called {self.name}, in chapters {other} and {self.chapter}: check.{self.name} can "
                "be one only. Name the later one after what is new in it, as dropout_by_hand"
            )
        EXERCISES[self.name] = self

    def __repr__(self) -> str:
        return (
            f"check.{self.name}: chapter {self.chapter}, difficulty {self.difficulty}, {self.minutes} minutes"
        )

    # --- For the learner ---------------------------------------------------------------------------------

    def __call__(self, answer: Answer) -> None:
        """Try `answer` on all cases and say what came of it."""
        self.judge(answer)

    def judge(self, answer: Answer) -> bool:
        """The same, and return whether it is right."""
        if not callable(answer):
            print(f"{self.name}: pass the function itself, check.{self.name}({self.name}).")
            print(f"This is {described(answer)}.")
            return False
        seed = os.environ.get("MINIGRAD_CHECK_SEED", "0")
        if not seed.isdecimal():
            print(f"{self.name}: MINIGRAD_CHECK_SEED should be a whole number, and is {seed!r}.")
            return False
        trial = Trial(self, int(seed))
        outcomes = []
        for outcome in trial.outcomes(answer, patience=True):
            outcomes.append(outcome)
            if outcome.not_attempted:
                print(f"{self.name}: {NOT_ATTEMPTED}")
                return False
        self._attempted = True
        complaints = trial.complaints(outcomes)
        if not any(complaints):
            say(f"{self.name}: right. {len(trial.names)} cases: {'; '.join(dict.fromkeys(trial.names))}.")
            if remark := trial.remark(outcomes):
                say(remark)
            record.count_attempt(self.name, solved=True)
            return True
        right = complaints.count(None)
        print(
            f"{self.name}: not yet. {right} of {len(complaints)} cases {'is' if right == 1 else 'are'} right."
        )
        say(next(f"On {name}: {words}" for name, words in zip(trial.names, complaints, strict=True) if words))
        paragraphs = trial.diagnosis(outcomes, complaints)
        for paragraph in paragraphs:
            say(paragraph)
        if besides := trial.besides(outcomes, complaints, paragraphs):
            say(besides)
        print(f"For a hint: check.{self.name}.hint()")
        record.count_attempt(self.name, solved=False)
        return False

    def hint(self) -> None:
        """Print the next hint; after the last one, say how to see a solution."""
        hints = [" ".join(hint.split()) for hint in self.hints.strip().split("\n\n")]
        if self._hints_given == len(hints):
            print(f"No more hints. After an attempt, check.{self.name}.solution() shows one way.")
            return
        self._hints_given += 1
        say(f"Hint {self._hints_given} of {len(hints)}: {hints[self._hints_given - 1]}")

    def solution(self) -> Source | None:
        """One right answer, after an attempt."""
        if not self._attempted:
            print(f"First try: run check.{self.name}({self.name}) on an answer of your own.")
            return None
        return Source(self.answer, text=source_of(self.answer))


def exercise(chapter: int, difficulty: int, minutes: int, **settings: Any) -> Callable[[Answer], Exercise]:
    """The function below is the right answer of an exercise; the arguments are those of `Exercise`."""
    return lambda answer: Exercise(
        answer=answer, chapter=chapter, difficulty=difficulty, minutes=minutes, **settings
    )


# --- Progress --------------------------------------------------------------------------------------------


def progress(chapter: int | None = None) -> None:
    """Print which exercises of a chapter, or of all, are solved and which were tried."""
    chapters = sorted({one.chapter for one in EXERCISES.values()})
    if chapter is not None and chapter not in chapters:
        print(
            f"There are no exercises for chapter {chapter!r}; there are some for {', '.join(map(str, chapters))}."
        )
        return
    known = record.known()
    exercises = [one for one in EXERCISES.values() if chapter in (None, one.chapter)]
    print(f"{'chapter':>7}  {'exercise':24}{'difficulty':>10}{'minutes':>9}  state")
    for one in exercises:
        entry = known.get(one.name, {"attempts": 0, "solved": False})
        tries = f"{entry['attempts']} attempt{'s' if entry['attempts'] != 1 else ''}"
        state = f"solved, {tries}" if entry["solved"] else tries if entry["attempts"] else "-"
        print(f"{one.chapter:7}  {one.name:24}{one.difficulty:10}{one.minutes:9}  {state}")
    solved = sum(bool(known.get(one.name, {}).get("solved")) for one in exercises)
    print(f"{solved} of {len(exercises)} solved")
