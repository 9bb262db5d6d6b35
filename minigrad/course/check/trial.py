"""Trying an answer on the cases of an exercise, and finding the mistake behind a wrong one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from minigrad.course.check.differences import (
    difference,
    differing,
    differing_dtypes,
    has_digits,
    members,
    other_dtype,
)
from minigrad.course.check.errors import explained
from minigrad.course.check.facts import RIGHT_NUMBERS, Facts, Wrong
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
    call. given: the function of the page that an answer has to call, where what goes into it is asked for.
    same_dtype: whether the text asks for the arguments' dtype; if not, another one is a remark, not a mistake.
    rtol, atol: how close the numbers must be in float64; in float32 10⁵ times as far.
    """

    answer: Answer
    cases: Cases
    mistakes: str
    into: str = ""
    probes: Sequence[Probe] = ()
    given: str = ""
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


@dataclass(frozen=True)
class Diagnosis:
    """What is behind a wrong answer, in paragraphs, the case that shows it, and what else there is to say."""

    paragraphs: list[str]
    shown: int
    asides: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A mistake behind some of the wrong cases: what to say, and which."""

    sentence: str
    explained: list[int]


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
                outcome = Outcome(answer, arguments, unchanged, task.into, task.probes, task.given)
            yield outcome

    def complaints(self, outcomes: Sequence[Outcome]) -> list[str | None]:
        """What is wrong on each case, or None."""
        return [
            outcome.complaint(right.value, self.task.rtol, self.task.atol)
            or (self.task.same_dtype and other_dtype(outcome.value, right.value))
            or None
            for outcome, right in zip(outcomes, self.expected, strict=True)
        ]

    def values(self, outcomes: Sequence[Outcome], place: int) -> Values:
        """Of a wrong case: its input, what came, what was expected."""
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

    def diagnosis(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> Diagnosis:
        """What is behind the complaints; without paragraphs if nothing is known."""
        first = next(i for i, words in enumerate(complaints) if words)
        if all(one.value is None and one.error is None for one in outcomes):
            return Diagnosis([], first)  # told already, and no sign of more
        # With what was done to memory and arguments first; where all values are right, that is all that tells.
        kinds = (True, False) if self._wrong_values(outcomes) else (True,)
        for effects in kinds:
            for slip, wrong in self._singles:
                if self._alike(outcomes, self._known(wrong), effects):
                    return Diagnosis([slip.sentence], first)
        part = self._in_part(outcomes, complaints)
        if both := self._pair(outcomes, kinds, part):
            return Diagnosis(both, first)
        measured = self._measured(outcomes, complaints)
        # What is true of all wrong cases, if most are wrong, says more than a slip behind some of them.
        most = 2 * complaints.count(None) < len(complaints) and sum(map(bool, complaints)) > 1
        of_all = most and (measured or "").startswith("Every number")
        if part and not of_all:
            return Diagnosis([part.sentence], part.explained[0])
        asides = [self._which(complaints)]
        if measured == RIGHT_NUMBERS:
            measured, asides = None, [measured, *asides]
        return Diagnosis([measured] if measured else [], first, [text for text in asides if text])

    def besides(self, outcomes: Sequence[Outcome], told: str, paragraphs: Sequence[str]) -> str | None:
        """What a probe saw, or that the dtype is another one, if neither the complaint nor the paragraphs tell it."""
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

    def _like(self, one: Outcome, other: Outcome) -> bool:
        """Whether an answer gives what a mistake gives: other operations in another order may round otherwise.

        Where the task itself is not exact, ten times as far would be another mistake's number.
        """
        slack = 10 if max(self.task.rtol, self.task.atol) < 1e-6 else 1
        return one.same_value(other, slack * self.task.rtol, slack * self.task.atol)

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
            if not self._like(outcome, other) or (effects and not outcome.same_effects(other)):
                return False
            if outcome.error is not None:
                telling = telling or isinstance(outcome.error, ArithmeticError)
            elif not telling:
                telling = not self._same(other, right) and not self._same(outcome, right)
                telling = telling or (effects and not other.same_effects(right))
        return telling

    def _pair(
        self, outcomes: Sequence[Outcome], kinds: Sequence[bool], part: Part | None
    ) -> list[str] | None:
        """Both sentences of two slips that together do what the learner's answer does.

        Where one slip alone explains all but one case, and that says no more than a word or yes or no, the second is
        only a guess.
        """
        effects_seen = any(outcome.changed or outcome.seen for outcome in outcomes)
        if (
            part
            and not effects_seen
            and self._evidence(set(range(len(outcomes))) - set(part.explained), outcomes) < 2
        ):
            return None
        doubles = list(pairs(self.task.answer, self.task.slips))
        for effects in kinds:
            for one, other, wrong in doubles:
                if self._alike(outcomes, self.outcomes(wrong), effects):
                    second = other.sentence
                    if self._only_later_values(outcomes, one):
                        second = f"This may follow from (1). {second}"
                    return ["Two slips at once.", f"(1) {one.sentence}", f"(2) {second}"]
        return None

    def _only_later_values(self, outcomes: Sequence[Outcome], slip: Slip) -> bool:
        """Whether, of several values, a slip explains the first wrong one, and leaves later ones wrong in another way."""
        wrong = next(answer for one, answer in self._singles if one is slip)
        found = False
        for outcome, right, other in zip(outcomes, self.expected, self._known(wrong), strict=True):
            values = [members(one.value) for one in (outcome, right, other)]
            if not all(isinstance(value, tuple | list) and len(value) == len(values[0]) for value in values):
                return False
            close = self.task.rtol, self.task.atol
            explained = [
                difference(came, slips, *close) is None
                for came, wanted, slips in zip(*values, strict=True)
                if difference(came, wanted, *close) is not None
            ]
            if explained:  # the wrong values of this case
                found = explained[0] and not explained[-1] and explained == sorted(explained, reverse=True)
                if not found:
                    return False
        return found

    def _evidence(self, places: Iterable[int], outcomes: Sequence[Outcome]) -> int:
        """How much the wrong values of these cases say: 3 for numbers with digits, 2 for whole ones, 1 for a word."""
        wrong_ones = [
            (outcomes[place].value, self.expected[place].value)
            for place in places
            if outcomes[place].error is None and not self._same(outcomes[place], self.expected[place])
        ]
        return sum(
            3 if has_digits(came) or has_digits(want) else 1 if isinstance(want, bool | str) else 2
            for came, want in wrong_ones
        )

    def _in_part(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> Part | None:
        """What one mistake explains: more of the wrong cases than any other, and at least half of them.

        Of cases whose values are whole numbers or words, three and three quarters. A mistake that would spoil more
        cases than it explains is not behind the answer, which has those right.
        """
        wrong_ones = [place for place, words in enumerate(complaints) if words]
        right_ones = [self._same(*both) for both in zip(outcomes, self.expected, strict=True)]
        best: dict[str, list[int]] = {}
        for slip, wrong in self._singles:
            explained, spoilt, open_ones = [], 0, len(wrong_ones)
            for place, other in enumerate(self._known(wrong)):
                differs = not self._same(other, self.expected[place])
                if right_ones[place]:
                    spoilt += differs
                elif outcomes[place].error is None and differs and self._like(outcomes[place], other):
                    explained.append(place)
                open_ones -= complaints[place] is not None
                most = len(explained) + open_ones
                if 2 * most < len(wrong_ones) or spoilt > most:  # the other cases need not be run
                    break
            else:
                if spoilt <= len(explained) and len(explained) > len(best.get(slip.sentence, ())):
                    best[slip.sentence] = explained
        most = max(map(len, best.values()), default=0)
        found = [sentence for sentence, places in best.items() if len(places) == most]
        if not most or len(found) != 1:
            return None
        places, count = best[found[0]], len(wrong_ones)
        if self._evidence(places, outcomes) < 3 * most and count > 1 and (most < 3 or 4 * most < 3 * count):
            return None
        where = f"On {most} of the {count} wrong cases" if count > most else f"On all {count} wrong cases"
        where = where if count > 1 else "On the wrong case"
        return Part(f"{where} your answer gives what this mistake gives: {found[0]}", places)

    def _measured(self, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> str | None:
        """What is true of the numbers of all wrong cases; where the first ended in an error, what that says."""
        wrong_ones = [
            (outcome, Wrong(outcome.value, right.value, arguments))
            for outcome, right, arguments, complaint in zip(
                outcomes, self.expected, self.unchanged, complaints, strict=True
            )
            if complaint
        ]
        first = wrong_ones[0][0]
        if first.error is not None:
            return explained(first.error)
        facts = Facts(self.task.answer, self.task.rtol, self.task.atol)
        text = facts.sentence([wrong for outcome, wrong in wrong_ones if outcome.error is None])
        told = next(filter(None, complaints)).startswith("The numbers are right")
        return None if told and text == RIGHT_NUMBERS else text

    def _which(self, complaints: Sequence[str | None]) -> str | None:
        """The names of the cases that are right, or of those that are wrong, whichever are fewer."""
        named = list(zip(self.names, complaints, strict=True))
        right = dict.fromkeys(name for name, words in named if not words)
        wrong = dict.fromkeys(name for name, words in named if words)
        if not right or not wrong:
            return None
        if len(right) < len(wrong):
            return f"Right only on: {'; '.join(right)}."
        return f"Wrong only on: {'; '.join(wrong)}."
