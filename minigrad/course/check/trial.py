"""Trying an answer on the cases of an exercise, and finding the mistake behind a wrong one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minigrad.course.check.differences import (
    difference,
    differing,
    differing_dtypes,
    other_dtype,
    what_is_true,
)
from minigrad.course.check.errors import explained
from minigrad.course.check.outcome import Outcome, Probe
from minigrad.course.check.report import Values
from minigrad.course.check.slips import Slip, build, pairs, parse
from minigrad.course.check.watch import Watch

Answer = Callable[..., Any]
Cases = Callable[[np.random.Generator], Iterable[tuple[Any, ...]]]


@dataclass(kw_only=True)
class Task:
    """What answers are held against.

    answer: a right one, which gives the task its name and its parameters. cases: from a random generator to tuples,
    what is special about an input (shown to the learner) and the arguments; each call of an answer gets arguments
    that were made for it alone. mistakes: the typical wrong answers as text, the more special first (slips.py says
    how). into: the parameter that takes the result, if it is not returned. probes: what else is looked at in each
    call. same_dtype: whether the text asks for the arguments' dtype; if not, another one is a remark, not a mistake.
    rtol, atol: how close the numbers must be in float64; in float32 10⁵ times as far.
    """

    answer: Answer
    cases: Cases
    mistakes: str
    into: str = ""
    probes: Sequence[Probe] = ()
    same_dtype: bool = False
    rtol: float = 1e-9
    atol: float = 1e-11

    @property
    def name(self) -> str:
        """Of the function asked for."""
        return self.answer.__name__

    @cached_property
    def slips(self) -> list[Slip]:
        """The typical wrong answers."""
        return parse(self.mistakes)

    def slip(self, id: str) -> Slip:
        """The one with this id, the first if it is that of several. Raises LookupError where there is none."""
        for slip in self.slips:
            if id and slip.id == id:
                return slip
        known = ", ".join(dict.fromkeys(slip.id for slip in self.slips if slip.id)) or "none"
        raise LookupError(f"check.{self.name} knows no mistake [{id}]; its ids: {known}")


class Trial:
    """The cases of one seed, what the right answer does with them, and what can be said of another one."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed = task, seed
        self.names = [name for name, *_ in task.cases(np.random.default_rng(seed))]
        self.unchanged = list(self._arguments())  # to see what a call has changed
        self.expected = list(self.outcomes(task.answer))
        self._done: dict[Answer, tuple[list[Outcome], Iterator[Outcome]]] = {}

    def _arguments(self) -> Iterator[dict[str, Any]]:
        """Each case's arguments by name: the same numbers each time, in objects that are new each time."""
        parameters = inspect.signature(self.task.answer).parameters
        for _, *values in self.task.cases(np.random.default_rng(self.seed)):
            yield dict(zip(parameters, values, strict=False))

    def outcomes(self, answer: Answer, watch: Watch | None = None) -> Iterator[Outcome]:
        """What an answer does with each case. watch: it is a learner's, which may print, or not come to an end."""
        task = self.task
        for number, (arguments, unchanged) in enumerate(zip(self._arguments(), self.unchanged, strict=True)):
            case = f"case {number + 1} of {len(self.names)}, {self.names[number]}"
            with watch.at(task.name, case) if watch else nullcontext():
                outcome = Outcome(answer, arguments, unchanged, task.into, task.probes)
            yield outcome

    def complaints(self, outcomes: Sequence[Outcome]) -> list[str | None]:
        """What is wrong on each case, or None."""
        return [
            outcome.complaint(right.value, self.task.rtol, self.task.atol)
            or (self.task.same_dtype and other_dtype(outcome.value, right.value))
            or None
            for outcome, right in zip(outcomes, self.expected, strict=True)
        ]

    def values(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> Values:
        """The first wrong case: its input, what came, what was expected."""
        place = next(i for i, words in enumerate(complaints) if words)
        outcome, right = outcomes[place], self.expected[place]
        inputs = {name: value for name, value in self.unchanged[place].items() if name != self.task.into}
        close = self.task.rtol, self.task.atol
        none = outcome.error is not None or outcome.value is None
        if none or difference(outcome.value, right.value, *close) is None:
            return Values(inputs)
        return Values(inputs, differing(outcome.value, right.value, *close))

    def remark(self, outcomes: Sequence[Outcome]) -> str | None:
        """On an answer that is right, what could still be better."""
        found = (
            other_dtype(one.value, right.value) for one, right in zip(outcomes, self.expected, strict=True)
        )
        return next((f"A remark. {sentence}" for sentence in found if sentence), None)

    def diagnosis(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> list[str]:
        """Paragraphs on what is behind the complaints; none if nothing is known."""
        if all(one.value is None and one.error is None for one in outcomes):
            return []  # told already, and no sign of more
        answer, slips = self.task.answer, self.task.slips
        singles = self._singles
        # With what was done to memory and arguments first; where all values are right, that is all that tells.
        kinds = (True, False) if self._wrong_values(outcomes) else (True,)
        for effects in kinds:
            for slip, wrong in singles:
                if self._alike(outcomes, self._known(wrong), effects):
                    return [slip.sentence]
        doubles = list(pairs(answer, slips))
        for effects in kinds:
            for one, other, wrong in doubles:
                if self._alike(outcomes, self.outcomes(wrong), effects):
                    return ["Two slips at once.", f"(1) {one.sentence}", f"(2) {other.sentence}"]
        measured = self._measured(outcomes, complaints)
        # What is true of all wrong cases, if most are wrong, says more than a slip behind some of them.
        most = 2 * complaints.count(None) < len(complaints) and sum(map(bool, complaints)) > 1
        of_all = most and (measured or "").startswith("Every number")
        if not of_all and (part := self._in_part(outcomes, complaints, singles)):
            return [part]
        return [text for text in (measured, self._which(complaints)) if text]

    def besides(
        self, outcomes: Sequence[Outcome], complaints: Sequence[str | None], paragraphs: Sequence[str]
    ) -> str | None:
        """What a probe saw, or that the dtype is another one, if neither the complaint nor the paragraphs tell it."""
        told = next(filter(None, complaints))
        found = [
            (name, words)
            for name, outcome in zip(self.names, outcomes, strict=True)
            for words in outcome.seen
            if not any(told in one.seen for one in outcomes)
        ]
        if self.task.same_dtype and "float64" not in " ".join([told, *paragraphs]):
            for name, outcome, right in zip(self.names, outcomes, self.expected, strict=True):
                if dtypes := differing_dtypes(outcome.value, right.value):
                    found.append((name, "it returns {} for {}.".format(*dtypes)))
        return next((f"Besides, on {name}: {words}" for name, words in found), None)

    # --- Finding the mistake -----------------------------------------------------------------------------

    @cached_property
    def _singles(self) -> list[tuple[Slip, Answer]]:
        """Each slip, and the answer with it."""
        task = self.task
        return [(slip, wrong) for slip in task.slips if (wrong := build(task.answer, slip))]

    def _known(self, wrong: Answer) -> Iterator[Outcome]:
        """What an answer with a slip does with each case, which is tried once."""
        done, others = self._done.setdefault(wrong, ([], self.outcomes(wrong)))
        for place in range(len(self.names)):
            if place == len(done):
                done.append(next(others))
            yield done[place]

    def _same(self, one: Outcome, other: Outcome) -> bool:
        return one.same_value(other, self.task.rtol, self.task.atol)

    def _wrong_values(self, outcomes: Sequence[Outcome]) -> bool:
        return not all(self._same(*both) for both in zip(outcomes, self.expected, strict=True))

    def _alike(self, outcomes: Sequence[Outcome], others: Iterator[Outcome], effects: bool) -> bool:
        """Whether a wrong answer does on every case what the learner's does, and on one of them more than to fail.

        An error is like every other of its kind: alone it is no sign of the same mistake, but one of arithmetic, such
        as a division by 0, is. Nor is a value that is right: in float32, where the tolerance is large, it can be near
        a mistake's too.
        """
        telling = False
        for outcome, right, other in zip(outcomes, self.expected, others, strict=False):
            if not self._same(outcome, other) or (effects and not outcome.same_effects(other)):
                return False
            if outcome.error is not None:
                telling = telling or isinstance(outcome.error, ArithmeticError)
            elif not telling:
                telling = not self._same(other, right) and not self._same(outcome, right)
                telling = telling or (effects and not other.same_effects(right))
        return telling

    def _in_part(
        self,
        outcomes: Sequence[Outcome],
        complaints: Sequence[str | None],
        singles: Sequence[tuple[Slip, Answer]],
    ) -> str | None:
        """The one sentence that explains more of the wrong cases than any other, and at least half of them.

        A mistake that would spoil more cases than it explains is not behind the answer, which has those right.
        """
        right_ones = [self._same(*both) for both in zip(outcomes, self.expected, strict=True)]
        pairs_of_both = zip(outcomes, right_ones, strict=True)
        wrong_values = sum(outcome.error is None and not is_right for outcome, is_right in pairs_of_both)
        count = sum(map(bool, complaints))
        if 2 * wrong_values < count:
            return None
        best: dict[str, int] = {}
        for slip, wrong in singles:
            explained, spoilt = wrong_values, 0  # explained: so many at most
            for outcome, right, is_right, other in zip(
                outcomes, self.expected, right_ones, self._known(wrong), strict=False
            ):
                differs = not self._same(other, right)
                if is_right:
                    spoilt += differs
                elif outcome.error is None:
                    explained -= not (differs and self._same(outcome, other))
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

    def _measured(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> str | None:
        """What is true of the numbers of all wrong cases; where the first ended in an error, what that says."""
        wrong_ones = [
            (outcome, right.value)
            for outcome, right, complaint in zip(outcomes, self.expected, complaints, strict=True)
            if complaint
        ]
        first = wrong_ones[0][0]
        if first.error is not None:
            return explained(first.error)
        values = [(outcome.value, right) for outcome, right in wrong_ones if outcome.error is None]
        got, want = zip(*values, strict=True)
        text = what_is_true(got, want, self.task.rtol, self.task.atol)
        told = next(filter(None, complaints)).startswith("The numbers are right")
        return None if told and text == "The numbers themselves are right." else text

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
