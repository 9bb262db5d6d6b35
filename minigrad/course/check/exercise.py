"""What an exercise's check does: try an answer on many inputs, and name the mistake behind a wrong one.

A check knows a right answer and the typical wrong ones, written as edits of the right one (slips.py). A wrong answer
that gives, on every input, what a typical wrong one gives has that mistake in it, or two that give it together: the
learner is told the mistake, not only that a number is off. If none fits on every input, the one that explains most of
them is named, or what was measured: the input, what came, what was expected, and what is true of the difference.
"""

from __future__ import annotations

import inspect
import os
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from minigrad.course.check import record
from minigrad.course.check.differences import described, other_dtype, what_is_true
from minigrad.course.check.outcome import Outcome, Probe
from minigrad.course.check.slips import Slip, build, pairs, parse, source_of
from minigrad.course.show import Source

__all__ = ["EXERCISES", "Exercise", "exercise", "progress"]

WIDTH = 100  # of what is printed, in characters
PATIENCE = 10  # seconds without an answer after which the check says where it is
NOT_ATTEMPTED = "not attempted yet: replace the `...` above, run that cell, then this one"

EXERCISES: dict[str, Exercise] = {}  # by name, in the order of the course

Cases = Callable[[np.random.Generator], Iterable[tuple[Any, ...]]]


@dataclass
class Exercise:
    """A check to call on an answer, `check.softmax(softmax)`, with hints and a solution.

    answer: a right one, which gives the exercise its name and its parameters. chapter: its number. difficulty: 1 to 3.
    minutes: about how long. cases: from a random generator to tuples, what is special about an input (shown to the
    learner) and the arguments; each call of an answer gets arguments that were made for it alone. mistakes: the
    typical wrong answers as text, the more special first (slips.py says how). hints: paragraphs, the gentlest first.
    into: the parameter that takes the result, if it is not returned. probes: what else is looked at in each call.
    same_dtype: whether the text asks for the arguments' dtype; if not, another one is a remark, not a mistake.
    rtol, atol: how close the numbers must be in float64; in float32 10⁵ times as far.
    """

    answer: Callable[..., Any]
    chapter: int
    difficulty: int
    minutes: int
    cases: Cases
    mistakes: str
    hints: str
    into: str = ""
    probes: Sequence[Probe] = ()
    same_dtype: bool = False
    rtol: float = 1e-9
    atol: float = 1e-11
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

    @property
    def name(self) -> str:
        """Of the function asked for."""
        return self.answer.__name__

    @cached_property
    def slips(self) -> list[Slip]:
        """The typical wrong answers."""
        return parse(self.mistakes)

    # --- For the learner ---------------------------------------------------------------------------------

    def __call__(self, answer: Callable[..., Any]) -> None:
        """Try `answer` on all cases and say what came of it."""
        self.judge(answer)

    def judge(self, answer: Callable[..., Any]) -> bool:
        """The same, and return whether it is right."""
        if not callable(answer):
            print(f"{self.name}: pass the function itself, check.{self.name}({self.name}).")
            print(f"This is {described(answer)}.")
            return False
        seed = os.environ.get("MINIGRAD_CHECK_SEED", "0")
        if not seed.isdecimal():
            print(f"{self.name}: MINIGRAD_CHECK_SEED should be a whole number, and is {seed!r}.")
            return False
        trial = _Trial(self, int(seed))
        outcomes = []
        for outcome in trial.outcomes(answer, patience=True):
            outcomes.append(outcome)
            if outcome.not_attempted:
                print(f"{self.name}: {NOT_ATTEMPTED}")
                return False
        self._attempted = True
        complaints = trial.complaints(outcomes)
        if not any(complaints):
            _say(f"{self.name}: right. {len(trial.names)} cases: {'; '.join(dict.fromkeys(trial.names))}.")
            if remark := trial.remark(outcomes):
                _say(remark)
            record.count_attempt(self.name, solved=True)
            return True
        right = complaints.count(None)
        print(
            f"{self.name}: not yet. {right} of {len(complaints)} cases {'is' if right == 1 else 'are'} right."
        )
        _say(
            next(f"On {name}: {words}" for name, words in zip(trial.names, complaints, strict=True) if words)
        )
        for paragraph in trial.diagnosis(outcomes, complaints):
            _say(paragraph)
        if besides := trial.besides(outcomes, complaints):
            _say(besides)
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
        _say(f"Hint {self._hints_given} of {len(hints)}: {hints[self._hints_given - 1]}")

    def solution(self) -> Source | None:
        """One right answer, after an attempt."""
        if not self._attempted:
            print(f"First try: run check.{self.name}({self.name}) on an answer of your own.")
            return None
        return Source(self.answer, source_of(self.answer))


def exercise(
    chapter: int, difficulty: int, minutes: int, *, cases: Cases, mistakes: str, hints: str, **settings: Any
) -> Callable[[Callable[..., Any]], Exercise]:
    """The function below is the right answer of an exercise; the arguments are those of `Exercise`."""
    return lambda answer: Exercise(answer, chapter, difficulty, minutes, cases, mistakes, hints, **settings)


def _say(text: str) -> None:
    """Print a paragraph in lines that fit a page."""
    print(textwrap.fill(text, WIDTH, break_on_hyphens=False))


# --- Trying an answer, and finding the mistake -----------------------------------------------------------


class _Trial:
    """The cases of one seed, what the right answer does with them, and what can be said of a wrong one."""

    def __init__(self, exercise: Exercise, seed: int) -> None:
        self.exercise, self.seed = exercise, seed
        self.names = [name for name, *_ in exercise.cases(np.random.default_rng(seed))]
        self.unchanged = list(self._arguments())  # to see what a call has changed
        self.expected = list(self.outcomes(exercise.answer))

    def _arguments(self) -> Iterator[dict[str, Any]]:
        """Each case's arguments by name: the same numbers each time, in objects that are new each time."""
        parameters = inspect.signature(self.exercise.answer).parameters
        for _, *values in self.exercise.cases(np.random.default_rng(self.seed)):
            yield dict(zip(parameters, values, strict=False))

    def outcomes(self, function: Callable[..., Any], patience: bool = False) -> Iterator[Outcome]:
        """What a function does with each case. patience: say where it is if that takes long."""
        exercise = self.exercise
        for number, (arguments, unchanged) in enumerate(zip(self._arguments(), self.unchanged, strict=True)):
            where = f"{exercise.name}: still at case {number + 1} of {len(self.names)}, {self.names[number]}."
            with _patience(f"{where} Interrupt the kernel to stop.") if patience else nullcontext():
                outcome = Outcome(function, arguments, unchanged, exercise.into, exercise.probes)
            yield outcome

    def complaints(self, outcomes: Sequence[Outcome]) -> list[str | None]:
        """What is wrong on each case, or None."""
        return [
            outcome.complaint(right.value, self.exercise.rtol, self.exercise.atol)
            or (self.exercise.same_dtype and other_dtype(outcome.value, right.value))
            or None
            for outcome, right in zip(outcomes, self.expected, strict=True)
        ]

    def remark(self, outcomes: Sequence[Outcome]) -> str | None:
        """On an answer that is right, what could still be better."""
        found = (
            other_dtype(one.value, right.value) for one, right in zip(outcomes, self.expected, strict=True)
        )
        return next((f"A remark. {sentence}" for sentence in found if sentence), None)

    def diagnosis(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> list[str]:
        """Paragraphs on what is behind the complaints; none if nothing is known."""
        exercise = self.exercise
        if all(
            one.value is None and one.error is None for one in outcomes
        ):  # told already, and no sign of more
            return []
        singles = [(slip, wrong) for slip in exercise.slips if (wrong := build(exercise.answer, slip))]
        values_wrong = any(
            not outcome.same_value(right, exercise.rtol, exercise.atol)
            for outcome, right in zip(outcomes, self.expected, strict=True)
        )
        kinds = [self._all_alike]  # with effects on memory and arguments
        if values_wrong:
            kinds.append(self._values_alike)
        for alike in kinds:
            for slip, wrong in singles:
                if alike(outcomes, wrong):
                    return [slip.sentence]
        doubles = list(pairs(exercise.answer, exercise.slips))
        for alike in kinds:
            for one, other, wrong in doubles:
                if alike(outcomes, wrong):
                    return ["Two slips at once.", f"(1) {one.sentence}", f"(2) {other.sentence}"]
        if part := self._in_part(outcomes, complaints, singles):
            return [part]
        wrong_ones = [
            (outcome, right)
            for outcome, right, complaint in zip(outcomes, self.expected, complaints, strict=True)
            if complaint and outcome.error is None
        ]
        sentence = what_is_true(
            [outcome.value for outcome, _ in wrong_ones],
            [right.value for _, right in wrong_ones],
            exercise.rtol,
            exercise.atol,
        )
        return [text for text in (sentence, self._which(complaints)) if text]

    def besides(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> str | None:
        """What a probe saw, if the complaint that the learner is told is another one."""
        told = next(filter(None, complaints))
        if any(told in outcome.seen for outcome in outcomes):
            return None
        found = zip(self.names, outcomes, strict=True)
        return next((f"Besides, on {name}: {words}" for name, one in found for words in one.seen), None)

    def _all_alike(self, outcomes: Sequence[Outcome], wrong: Callable[..., Any]) -> bool:
        return self._alike(outcomes, wrong, effects=True)

    def _values_alike(self, outcomes: Sequence[Outcome], wrong: Callable[..., Any]) -> bool:
        return self._alike(outcomes, wrong, effects=False)

    def _alike(self, outcomes: Sequence[Outcome], wrong: Callable[..., Any], effects: bool) -> bool:
        """Whether a wrong answer does on every case what the learner's does, and on one of them more than to fail.

        An error is like every other of its kind: alone it is no sign of the same mistake, but one of arithmetic, such
        as a division by 0, is. Nor is a value that is right: in float32, where the tolerance is large, it can be near
        a mistake's too.
        """
        rtol, atol = self.exercise.rtol, self.exercise.atol
        telling = False
        for outcome, right, other in zip(outcomes, self.expected, self.outcomes(wrong), strict=False):
            if not outcome.same_value(other, rtol, atol) or (effects and not outcome.same_effects(other)):
                return False
            telling = telling or isinstance(outcome.error, ArithmeticError)
            telling = telling or (
                outcome.error is None
                and (
                    not (other.same_value(right, rtol, atol) or outcome.same_value(right, rtol, atol))
                    or (effects and not other.same_effects(right))
                )
            )
        return telling

    def _in_part(
        self,
        outcomes: Sequence[Outcome],
        complaints: Sequence[str | None],
        singles: Sequence[tuple[Slip, Any]],
    ) -> str | None:
        """The one sentence that explains more of the wrong cases than any other, and at least half of them.

        A mistake that would spoil more cases than it explains is not behind the answer, which has those right.
        """
        rtol, atol = self.exercise.rtol, self.exercise.atol
        right_ones = [
            outcome.same_value(right, rtol, atol)
            for outcome, right in zip(outcomes, self.expected, strict=True)
        ]
        count = sum(map(bool, complaints))
        wrong_values = sum(
            outcome.error is None and not is_right
            for outcome, is_right in zip(outcomes, right_ones, strict=True)
        )
        if 2 * wrong_values < count:
            return None
        best: dict[str, int] = {}
        for slip, wrong in singles:
            explained, spoilt = wrong_values, 0  # explained: so many at most
            for outcome, right, is_right, other in zip(
                outcomes, self.expected, right_ones, self.outcomes(wrong), strict=False
            ):
                differs = not other.same_value(right, rtol, atol)
                if is_right:
                    spoilt += differs
                elif outcome.error is None:
                    explained -= not (differs and outcome.same_value(other, rtol, atol))
                if 2 * explained < count or spoilt > explained:  # the other cases need not be run
                    break
            else:
                best[slip.sentence] = max(explained, best.get(slip.sentence, 0))
        most = max(best.values(), default=0)
        found = [sentence for sentence, hits in best.items() if hits == most]
        if not most or len(found) != 1:
            return None
        where = f"On {most} of the {count} wrong cases" if count > 1 else "On the wrong case"
        return f"{where} your answer gives what this mistake gives: {found[0]}"

    def _which(self, complaints: Sequence[str | None]) -> str | None:
        """The names of the cases that are right, or of those that are wrong, whichever are fewer."""
        named = list(zip(self.names, complaints, strict=True))
        right = dict.fromkeys(name for name, words in named if not words)
        wrong = dict.fromkeys(name for name, words in named if words)
        if not right or not wrong:
            return None
        if len(right) < len(wrong):
            return f"Right is only: {'; '.join(right)}."
        return f"Wrong is only: {'; '.join(wrong)}."


@contextmanager
def _patience(words: str) -> Iterator[None]:
    """Say so if what is inside takes long."""
    timer = threading.Timer(PATIENCE, _say, [words])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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
