"""Where a wrong answer leaves the path: the expression that, given its right value, makes the whole answer right.

What the right answer's expressions give are the quantities of its path. Each is put, on every case, in the place of what
an expression of the answer gives; the first in the order of evaluation that makes the end right is blamed. What is on no
path is unknown, not wrong. Where no single one does, there may be two, or one and a known mistake; and a condition may
have to go the other way.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bert_course.check import quantities
from bert_course.check.differences import as_array, difference, has_digits
from bert_course.check.differences import close as close_to
from bert_course.check.follow import OFTEN, Followed, OutOfTime, Place, is_known, scope_of
from bert_course.check.mistakes import Mistake, build, edited, pairs, source_of
from bert_course.check.mutants import EXCHANGED, Mutant, mutants
from bert_course.check.outcome import Outcome
from bert_course.check.quantities import Quantity, kind, laid
from bert_course.check.trial import Trial
from minigrad.tensor import Tensor

LONG = 100  # characters of an expression that says little by itself
SECONDS = 1.3  # of processor time, for all that is looked for here
SHARE = 0.6  # of it, for a single place
PATIENCE = 0.05  # for one case, beside five times what the answer needs
DRAWN = re.compile(r"\brandom\b|rng\b")  # numbers of the learner's own choice
EXCHANGE = "One small change makes your answer right: exchange these two steps."
CHANGE = "One small change makes your answer right, in the line `{}`."
NEEDED = "A small change is needed in the line `{}`."


@dataclass(frozen=True)
class Repair:
    """A place, the quantity that belongs there, and how it is laid out there."""

    mine: Quantity
    right: Quantity
    layout: str


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

    Raises what a source raises that cannot be followed: OSError, TypeError, SyntaxError; and OutOfTime.
    """

    def __init__(self, trial: Trial, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> None:
        self.trial, self.outcomes, self.cases = trial, outcomes, range(len(complaints))
        wrong = [case for case, words in enumerate(complaints) if words]
        self.has_effects = any(outcome.changed or outcome.seen for outcome in outcomes)
        self.words = all(isinstance(one.value, str | bool) for one in trial.expected)
        self.end = time.process_time() + SECONDS
        self.half_time = self.end - SECONDS * (1 - SHARE)
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
        self.theirs = quantities.distinct([*self._arguments(), *theirs])
        self.is_right = {one.place.number: any(map(one.is_same, self.theirs)) for one in self.mine}
        self.edits: list[str] = []  # a small change, and the known mistake that is left then
        self._gains: list[tuple[Repair, np.ndarray]] = []
        self._beside: list[Blame] = []
        self._maybe: list[Blame] = []

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
        self.answer.deadline = self.right.deadline = time.process_time() + self.patience
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

    # --- One place ---------------------------------------------------------------------------------------

    def places(self, again: bool) -> Iterator[Quantity]:
        """Those off the path, in order; again: those on it, which may be used wrongly, and variables, whose value is looked at
        first where it is made."""
        made: list[Quantity] = []
        for mine in self.mine:
            known = self.is_right[mine.place.number] or (
                mine.place.variable and any(mine.is_like(one) for one in made)
            )
            made.append(mine)
            free = DRAWN.search(mine.place.piece) and not any(
                "rng" in name for name in self.trial.unchanged[0]
            )
            if known == again and not (again and mine.place.tested) and not free:
                yield mine

    def repairs(self, mine: Quantity, again: bool) -> Iterator[Repair]:
        """What may belong in a place."""
        got, place = mine.values[self.wrong[0]], mine.place
        for right in self.theirs:
            same = mine.is_like(right) and not again
            # What is written as it is, is no result; and a result belongs only where all that goes into it is right.
            apart = place.closed and not right.place.closed and right.place.number >= 0
            want = right.values[self.wrong[0]]
            if same or apart or not quantities.may_be(got, want, place.closed or again):
                continue
            end = self.is_end(right)
            for layout, _ in laid(want, got) if not end or self.is_clean(mine) else ():
                if not (end and layout == "repeated"):  # a mean of it would be right as well
                    yield Repair(mine, right, layout)

    def is_end(self, right: Quantity) -> bool:
        """Whether a quantity is what is asked for: to put it somewhere says no more than that it is missing."""
        return any(right.is_like(one) for one in self.theirs if one.place.returned)

    def is_clean(self, mine: Quantity) -> bool:
        """Whether all that goes into a place is right, so that the mistake is there."""
        parts = [one for one in self.mine if one.place.number in mine.place.inside]
        deeper = frozenset[int]().union(*(one.place.inside for one in parts))
        widest = [one.place.number for one in parts if one.place.number not in deeper]
        return not mine.place.variable and all(self.is_right[number] for number in widest)

    @cached_property
    def single(self) -> Blame | None:
        """One expression, or condition, that makes the answer right when it is put right."""
        if self.words:  # what a test of the learner's own design computes is its own
            return self._flips()
        case = self.wrong[0]
        for again in (False, True):
            for mine in self.places(again):
                for repair in self.repairs(mine, again):
                    if time.process_time() > self.half_time:
                        return None
                    outcome = self.outcome([repair], case)
                    if self.is_mended(outcome, case):
                        if self._is_sure(repair) and self.mends([repair]):
                            return Blame((self._whole(repair),))
                    elif not mine.place.returned and outcome.error is None:
                        self._note(repair, outcome)
            if not again and (flips := self._flips()):
                return flips
        return None

    def _is_sure(self, repair: Repair) -> bool:
        """Whether more is said than that the end is wrong."""
        place = repair.mine.place
        if not place.returned and not (repair.right.place.returned and len(self.wrong) < 2):
            return True
        return self.is_clean(repair.mine)

    def _whole(self, repair: Repair) -> Repair:
        """In the place of what is written as it is: what it stands in, where the same belongs there."""
        for mine in self.mine if repair.mine.place.closed else ():
            wider = Repair(mine, repair.right, repair.layout)
            if (
                repair.mine.place.number in mine.place.inside
                and not mine.place.tested
                and self.mends([wider])
            ):
                return wider
        return repair

    def says_all(self, blame: Blame) -> bool:
        """Whether no second mistake can stand behind this one: what goes into it is right, and it is not the end itself."""
        return all(
            isinstance(step, Flip)
            or (
                self.is_clean(step.mine)
                and not step.mine.place.returned
                and not step.mine.place.closed
                and len(step.mine.place.piece) < LONG
                and not self.is_end(step.right)
            )
            for step in blame.steps
        )

    def _flips(self) -> Blame | None:
        """A condition, or two, that should go the other way on the wrong cases."""
        found: list[Flip] = []
        often = 10 if self.words else 1
        for mine in self.conditions:
            for turn, value in itertools.product(range(often), (False, True)):
                flips = [Flip(mine, (case,), value, turn) for case in self.wrong]
                flips = [
                    flip
                    for flip, case in zip(flips, self.wrong, strict=True)
                    if turn < len(mine.values[case]) <= often
                    and bool(mine.values[case][turn]) != value
                    and not self.over()
                    and self.is_mended(self.outcome([flip], case), case)
                ]
                if flips:
                    found.append(
                        Flip(mine, tuple(case for flip in flips for case in flip.cases), value, turn)
                    )
        whole = set(self.wrong)
        for flip in found:
            if set(flip.cases) == whole:
                return Blame((flip,))
        for one, other in itertools.combinations(found, 2):
            if set(one.cases) | set(other.cases) == whole and (one.mine, one.turn) != (
                other.mine,
                other.turn,
            ):
                if one.mine.place.line == other.mine.place.line and one.turn == other.turn:
                    return Blame((max(one, other, key=lambda flip: len(flip.mine.place.piece)),))
                return Blame((one, other))
        return None

    # --- Two ---------------------------------------------------------------------------------------------

    def _note(self, repair: Repair, outcome: Outcome) -> None:
        """Keep a repair that is no whole one: what is left is a known mistake, or more is right than before."""
        gains, place = self._gained(outcome), repair.mine.place
        if not place.closed and (mistake := self._left(outcome, lambda case: self.outcome([repair], case))):
            # A variable that is right may have to be changed first: its name is in what belongs there.
            clean = place.piece in repair.right.place.piece if place.variable else self.is_clean(repair.mine)
            kept = self._beside if clean or gains is not None else self._maybe
            kept.append(Blame((repair,), mistake))
        if gains is not None:
            self._gains.append((repair, gains))

    def double(self, part: str) -> Blame | None:
        """Two places, or a place and a known mistake, after `single` has found nothing.

        part: what is known already to be behind some of the wrong cases.
        """
        pairs = () if self.by_chance else itertools.combinations(self._gains, 2)
        for (one, some), (other, more) in pairs:
            if one.mine is not other.mine and (some | more).all() and self.mends([one, other]):
                return Blame((one, other))
            if self.over():
                break
        seen = (one for one in self._maybe if one.mistake and one.mistake.sentence in part)
        return next(itertools.chain(self._beside, seen), None)

    def _gained(self, outcome: Outcome) -> np.ndarray | None:
        """Which numbers of the first wrong case are right now, if more are and none less."""
        marks, before = self._marks(outcome), self._marks_before
        more = marks.shape == before.shape and (marks >= before).all() and (marks > before).any()
        return marks if more else None

    @cached_property
    def _marks_before(self) -> np.ndarray:
        return self._marks(self.outcomes[self.wrong[0]])

    def _marks(self, outcome: Outcome) -> np.ndarray:
        """Of each number, or other member, that is wanted of the first wrong case: whether it is the one that came."""
        close = self.trial.task.rtol, self.trial.task.atol

        def marks(got: Any, want: Any) -> np.ndarray:
            if isinstance(want, tuple | list) and isinstance(got, tuple | list) and len(got) == len(want):
                return np.concatenate([np.zeros(0, bool), *map(marks, got, want)])
            if isinstance(want, np.ndarray | Tensor) and isinstance(got, np.ndarray | Tensor):
                one, other = as_array(got), as_array(want)
                if one.shape == other.shape and {one.dtype.kind, other.dtype.kind} <= set("fiub"):
                    return close_to(one, other, *close).ravel()
            return np.full(
                np.size(want) if isinstance(want, np.ndarray) else 1, not difference(got, want, *close)
            )

        return marks(outcome.value, self.trial.expected[self.wrong[0]].value)

    @cached_property
    def _known(self) -> tuple[list[Mistake], np.ndarray]:
        """The known mistakes that come to a value on the first wrong case, and what identifies it."""
        case, found, prints = self.wrong[0], [], []
        for mistake in self.trial.task.known_mistakes:
            other = next(itertools.islice(self.trial.with_mistake(mistake), case, None))
            if other.error is None and has_digits(other.value) and not self.is_mended(other, case):
                found.append(mistake)
                prints.append(quantities.fingerprint([other.value]))
        return found, np.array(prints).reshape(-1, 3)

    def _left(self, outcome: Outcome, tried: Callable[[int], Outcome]) -> Mistake | None:
        """The known mistake that is left when something is put right. outcome: of the first wrong case; tried: of any."""
        known, prints = self._known
        mine = np.array(quantities.fingerprint([outcome.value]))
        for mistake, one in zip(known, prints, strict=True):
            if quantities.alike(one, mine):
                others = list(self.trial.with_mistake(mistake))
                # What is right already would not be wrong.
                if all(
                    case in self.wrong or self.is_mended(others[case], case) for case in self.cases
                ) and all(self.trial.like(tried(case), other) for case, other in enumerate(others)):
                    return mistake
        return None

    def named(self, blame: Blame, step: Repair | Flip, mistakes: Sequence[Mistake]) -> Mistake | None:
        """Of several steps: the mistake that is left when all others are put right."""
        rest = [one for one in blame.steps if one is not step]
        for mistake in mistakes if rest else ():
            if self.over():
                break
            if all(
                self.trial.like(self.outcome(rest, case), other)
                for case, other in enumerate(self.trial.with_mistake(mistake))
            ):
                return mistake
        return None

    # --- A change of the source --------------------------------------------------------------------------

    def edit(self) -> list[str]:
        """The one line of the answer's own source at which a small change makes it right, if there is one."""
        answer, case = self.outcomes[0].function, self.wrong[0]
        found: dict[str, Mutant] = {}  # by the line
        source = source_of(answer)
        endless = any(isinstance(node, ast.For | ast.While) for node in ast.walk(ast.parse(source)))
        for mutant in () if self.by_chance else mutants(answer, own=True):
            with suppress(SyntaxError, ValueError):
                followed = Followed(edited(answer, mutant) or "", scope_of(answer)) if endless else None
                changed = followed.call if followed else build(answer, mutant)
                if followed:
                    followed.put(lambda number, value: value)

                def tried(case: int, changed: Any = changed, followed: Followed | None = followed) -> Outcome:
                    if followed:
                        followed.deadline = time.process_time() + self.patience
                    return next(self.trial.outcomes(changed, only=(case,)))

                first = tried(case)
                if self.is_mended(first, case):
                    if all(self.is_mended(tried(other), other) for other in self.cases if other != case):
                        found.setdefault(mutant.line, mutant)
                elif (
                    not self.edits
                    and (mistake := self._left(first, tried))
                    and (self._gained(first) is not None or self._both(mistake))
                ):
                    self.edits = [" ".join(_changed(mutant, NEEDED)), mistake.sentence]
            if self.over():
                return []
        return _changed(*found.values()) if len(found) == 1 else []

    def _both(self, mistake: Mistake) -> bool:
        """Whether the right answer with this mistake and a small change does what the answer does."""
        right = self.trial.task.answer
        return any(
            all(
                itertools.starmap(self.trial.like, zip(self.outcomes, self.trial.outcomes(both), strict=True))
            )
            for _, _, both in pairs(right, [mistake], mutants(right))
            if not self.over()
        )

    @property
    def by_chance(self) -> bool:
        """Whether the wrong values say so little that one of many changes may give the right ones."""
        telling = 0
        for case in self.wrong:
            came, want = self.outcomes[case].value, self.trial.expected[case].value
            if self.outcomes[case].error is None:
                telling += (
                    3 if has_digits(came) or has_digits(want) else 1 if isinstance(want, bool | str) else 2
                )
        return telling < 2 * len(self.wrong)

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
        for case in sorted(self.wrong):
            mine = step.mine.values[case]
            right = dict(laid(step.right.values[case], mine))[step.layout]
            for turn, (got, want) in enumerate(zip(mine, right, strict=True), 1):
                if found := self._difference(got, want):
                    when = f" in turn {turn}," if turn > 1 else ""
                    return f"{belongs}On {self.trial.names[case]},{when} {found}."
        if self.trial.task.observed and any(
            isinstance(one, Tensor) for one in step.mine.values[self.wrong[0]]
        ):
            return "Its numbers are right, and its gradient is not."
        if all(map(_identical, step.mine.values, step.right.values)):
            return "Its value is right, and is changed later on: a copy would stay as it is."
        return "It is right but for the last digits, which what comes next does not forgive."

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


def _changed(mutant: Mutant, words: str = CHANGE) -> list[str]:
    """Where a small change is needed."""
    if EXCHANGED in mutant.sentence:
        code = inspect.cleandoc(mutant.piece)  # one below the other
        steps = [ast.get_source_segment(code, step) or "" for step in ast.parse(code).body]
        return [EXCHANGE, *(f"`{' '.join(step.split())}`" for step in steps)]
    return [
        CHANGE.format(mutant.line) + (f" Look at `{mutant.piece}`." if mutant.piece != mutant.line else "")
    ]


def _apart(value: Any) -> Any:
    """A copy of what can be changed."""
    return (
        copy.deepcopy(value) if isinstance(value, np.ndarray | list | dict | np.random.Generator) else value
    )
