"""An answer's expressions beside those of the right one: what each gives, and what comes of it with another value there."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bert_course.check import quantities
from bert_course.check.differences import TO_FLOAT64, as_array, difference
from bert_course.check.differences import close as close_to
from bert_course.check.follow import OFTEN, Followed, OutOfTime, Place, is_known, scope_of
from bert_course.check.mistakes import Mistake, source_of
from bert_course.check.outcome import Outcome
from bert_course.check.quantities import Quantity, kind, laid
from bert_course.check.trial import Trial
from minigrad.tensor import Tensor

SECONDS = 1.0  # of processor time, for all that is looked for here, after half as much for known mistakes
PATIENCE = 0.05  # for one case, beside five times what the answer needs


@dataclass(frozen=True)
class Repair:
    """A place, the quantity that belongs there, and how it is laid out there."""

    mine: Quantity
    right: Quantity
    layout: str

    @property
    def is_changed_argument(self) -> bool:
        """Whether it is an argument that is not any more what it was."""
        return self.right.place.number < 0 and self.mine.place.piece == self.right.place.piece


@dataclass(frozen=True)
class Flip:
    """A condition that should go the other way on these wrong cases, when it is evaluated for the `turn`-th time."""

    mine: Quantity
    cases: tuple[int, ...]
    value: bool
    turn: int


@dataclass(frozen=True)
class Blame:
    """What has to be put right: all of it together makes the answer right, or leaves a known mistake."""

    steps: tuple[Repair | Flip, ...]
    mistake: Mistake | None = None


class Path:
    """An answer's expressions beside those of the right answer.

    end: in processor time, of all that is looked for. Raises what a source raises that cannot be followed: OSError,
    TypeError, SyntaxError; and OutOfTime.
    """

    def __init__(
        self, trial: Trial, outcomes: Sequence[Outcome], complaints: Sequence[str | None], end: float
    ) -> None:
        self.trial, self.outcomes, self.cases = trial, outcomes, range(len(complaints))
        wrong = [case for case, words in enumerate(complaints) if words]
        self.has_effects = any(outcome.changed or outcome.seen for outcome in outcomes)
        self.words = all(isinstance(one.value, str | bool) for one in trial.expected)
        self.end = end
        self.answer, self.right = (
            Followed(source_of(function), scope_of(function))
            for function in (outcomes[0].function, trial.task.answer)
        )
        self.answer.deadline = self.right.deadline = self.end
        values, seconds = self._traced(self.answer)
        self.patience = PATIENCE + 5 * sum(seconds)
        # Most is tried on the first of the wrong cases alone.
        quickest = min(seconds[case] for case in wrong)
        self.wrong = sorted(wrong, key=lambda case: seconds[case] > 5 * quickest)
        self.mine = list(self._quantities(self.answer, values))
        self.conditions = list(self._conditions(values))
        theirs = self._quantities(self.right, self._traced(self.right)[0])
        self.right.deadline = float("inf")  # it comes to an end by itself
        self.theirs = quantities.distinct([*self._arguments(), *theirs])
        self.is_right = {one.place.number: any(map(one.is_same, self.theirs)) for one in self.mine}

    def _traced(self, followed: Followed) -> tuple[list[Mapping[int, list[Any]]], list[float]]:
        """By case what each place gives, and how long it takes."""
        values: list[Mapping[int, list[Any]]] = []
        times = [time.process_time()]
        for _ in self.trial.outcomes(followed.call, first=lambda arguments: followed.record()):
            values.append(followed.values)
            times.append(time.process_time())
        if times[-1] > self.end:
            raise OutOfTime
        return values, [end - start for start, end in itertools.pairwise(times)]

    def _quantities(self, followed: Followed, values: list[Mapping[int, list[Any]]]) -> Iterator[Quantity]:
        """What the expressions give that are evaluated on all wrong cases, in the order of evaluation."""
        for number in followed.order:
            of_cases = [of_case.get(number, []) for of_case in values]
            known = all(len(case) <= OFTEN and all(map(is_known, case)) for case in of_cases)
            if known and all(of_cases[case] for case in self.wrong):
                yield Quantity.of(followed.places[number], of_cases)

    def _conditions(self, values: list[Mapping[int, list[Any]]]) -> Iterator[Quantity]:
        """What a branch hangs on, in the order of evaluation."""
        for number in self.answer.order:
            of_cases = [of_case.get(number, []) for of_case in values]
            flags = all(isinstance(value, bool | np.bool_) for case in of_cases for value in case)
            if self.answer.places[number].condition and flags:
                yield Quantity.of(self.answer.places[number], of_cases)

    def _arguments(self) -> Iterator[Quantity]:
        for name in self.trial.unchanged[0]:
            values = [[one[name]] if name in one else [] for one in self.trial.unchanged]
            if all(isinstance(one[0], np.ndarray | int | float) for one in values if one):
                yield Quantity.of(Place(-1, name, name, variable=True), values)

    # --- Trying ------------------------------------------------------------------------------------------

    def over(self) -> bool:
        """Whether there is no time left."""
        return time.process_time() > self.end

    def outcome(self, steps: Sequence[Repair | Flip], case: int) -> Outcome:
        """What the answer does with a case when all this is put right."""
        table: dict[int, Iterator[Any]] = {}

        def first(arguments: dict[str, Any]) -> None:
            fresh: Mapping[int, list[Any]] | None = None
            if self.trial.task.observed:  # Tensors that lead back to this call's arguments
                self.right.record()
                self.right.call(*map(_apart, arguments.values()))
                fresh = self.right.values
            for step in steps:
                own = list(step.mine.values[case])
                if isinstance(step, Flip):
                    if case in step.cases:
                        own[step.turn] = step.value
                        table[step.mine.place.number] = iter(own)
                    continue
                right = step.right.place.number
                values = fresh[right] if fresh is not None and right >= 0 else step.right.values[case]
                if (new := dict(laid(values, own)).get(step.layout)) is not None:
                    table[step.mine.place.number] = iter(new)

        def instead(number: int, value: Any) -> Any:
            return _apart(next(table[number], value)) if number in table else value

        self.answer.put(instead)
        self.answer.deadline = time.process_time() + self.patience
        return next(self.trial.outcomes(self.answer.call, only=(case,), first=first))

    def is_mended(self, outcome: Outcome, case: int) -> bool:
        """Whether the value is right. (What an answer does besides is told as it is.)"""
        if self.has_effects:
            return outcome.error is None and self.trial.same(outcome, self.trial.expected[case])
        return self.trial.complaint(outcome, case) is None

    def mends(self, steps: Sequence[Repair | Flip]) -> bool:
        """Whether the answer is right on every case then."""
        rest = (case for case in self.cases if case not in self.wrong)
        return all(self.is_mended(self.outcome(steps, case), case) for case in (*self.wrong, *rest))

    def is_end(self, right: Quantity) -> bool:
        """Whether a quantity is what is asked for: to put it somewhere says no more than that it is missing."""
        return any(right.is_like(one) for one in self.theirs if one.place.returned)

    def is_clean(self, mine: Quantity, surely: bool = False) -> bool:
        """Whether all that goes into a place is right, so that the mistake is there.

        surely: and known, but for arguments.
        """
        places = self.answer.places
        deeper = frozenset[int]().union(*(places[number].inside for number in mine.place.inside))
        widest = mine.place.inside - deeper
        given = {one for one in widest if not surely or places[one].piece in self.trial.unchanged[0]}
        right = (self.is_right.get(number, number in given) for number in widest)
        return not mine.place.variable and all(right)

    @cached_property
    def marks_before(self) -> np.ndarray:
        """The `marks` of the answer as it is."""
        return self.marks(self.outcomes[self.wrong[0]])

    def marks(self, outcome: Outcome) -> np.ndarray:
        """Of each number, or other member, that is wanted of the first wrong case: whether it is the one that came."""
        close = self.trial.task.rtol, self.trial.task.atol

        def each(got: Any, want: Any) -> np.ndarray:
            if isinstance(want, tuple | list) and isinstance(got, tuple | list) and len(got) == len(want):
                return np.concatenate([np.zeros(0, bool), *map(each, got, want)])
            if isinstance(want, np.ndarray | Tensor) and isinstance(got, np.ndarray | Tensor):
                one, other = as_array(got), as_array(want)
                if one.shape == other.shape and {one.dtype.kind, other.dtype.kind} <= set("fiub"):
                    return close_to(one, other, *close).ravel()
            return np.full(
                np.size(want) if isinstance(want, np.ndarray) else 1, not difference(got, want, *close)
            )

        return each(outcome.value, self.trial.expected[self.wrong[0]].value)

    # --- Telling -----------------------------------------------------------------------------------------

    def told(self, steps: Sequence[Repair | Flip]) -> str:
        """What should stand in places that are one mistake, and what does."""
        place = steps[0].mine.place
        pieces = " and ".join(dict.fromkeys(f"`{step.mine.place.piece}`" for step in steps))
        if place.line != place.piece and len(place.line) < 160:
            pieces += f", in the line `{place.line}`"
        return f"Look at {pieces}. {self._compared(steps[0])}"

    def _compared(self, step: Repair | Flip) -> str:
        if isinstance(step, Flip):
            when = f" in turn {step.turn + 1}," if max(map(len, step.mine.values)) > 1 else ""
            name = self.trial.names[min(step.cases)]
            return f"On {name},{when} it should be {step.value}, and is {not step.value}."
        belongs = f"What belongs there: {step.right.place.name}. " if step.right.place.name else ""
        if step.is_changed_argument:
            belongs = "It has been changed on the way. "
        for case in sorted(self.wrong):
            mine = step.mine.values[case]
            # It may not be laid out so in each case.
            right = dict(laid(step.right.values[case], mine)).get(step.layout, mine)
            for turn, (got, want) in enumerate(zip(mine, right, strict=True), 1):
                if found := self._difference(got, want):
                    when = f" in turn {turn}," if turn > 1 else ""
                    return f"{belongs}On {self.trial.names[case]},{when} {found}."
        if self.trial.task.observed and any(
            isinstance(one, Tensor) for one in step.mine.values[self.wrong[0]]
        ):
            return "Its numbers are right; its gradient should be too."
        mine, right = step.mine.values, step.right.values
        if not all(map(_identical, mine, right)):
            return "It is right but for the last digits, which what comes next does not forgive."
        if any(
            type(one) is not type(other)
            for case in zip(mine, right, strict=True)
            for one, other in zip(*case, strict=True)
        ):
            return f"Its value is right, its type is not. {TO_FLOAT64}"
        return "Its value is right, and is changed later on: a copy would stay as it is."

    def _difference(self, got: Any, want: Any) -> str | None:
        """How a value differs from what it should be."""
        if {kind(got), kind(want)} <= {"array", "mask", "number", "list"}:
            with suppress(ValueError, TypeError):
                arrays = np.asarray(got), np.asarray(want)
                if all(array.dtype.kind in "fiub" for array in arrays):
                    got, want = arrays
                    want = np.broadcast_to(want, got.shape) if want.size > 1 else want
        found = difference(got, want, self.trial.task.rtol, self.trial.task.atol)
        for old, new in SAID.items():
            found = found and found.replace(old, new)
        return found


SAID = {  # of a value on the way, what is said of one that is returned
    "it should return shape": "it should have the shape",
    "and returned shape": "and has",
    "it should return": "it should be",
    "and returned": "and is",
}


def _identical(some: list[Any], others: list[Any]) -> bool:
    with suppress(Exception):  # what is no array
        return all(
            np.array_equal(as_array(one), as_array(other)) for one, other in zip(some, others, strict=True)
        )
    return False


def _apart(value: Any) -> Any:
    """A copy of what can be changed."""
    return (
        copy.deepcopy(value) if isinstance(value, np.ndarray | list | dict | np.random.Generator) else value
    )
