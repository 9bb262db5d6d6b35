"""Where a wrong answer leaves the path: the expression that, given its right value, makes the whole answer right.

What the right answer's expressions give are the quantities of its path. Each is put, on every case, in the place of what
an expression of the answer gives; the first in the order of evaluation that makes the end right is blamed. What is on no
path is unknown, not wrong. Where no single one does, there may be two, or one and a known mistake; and a condition may
have to go the other way.
"""

from __future__ import annotations

import ast
import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from bert_course.check import quantities
from bert_course.check.differences import evidence, has_digits
from bert_course.check.follow import Followed, scope_of
from bert_course.check.mistakes import Mistake, build, edited, source_of
from bert_course.check.mutants import Mutant, mutants
from bert_course.check.outcome import Outcome
from bert_course.check.path import Blame, Flip, Path, Repair
from bert_course.check.quantities import Quantity, laid

SHARE = 0.6  # of the time that is left, for a single place
LONG = 100  # characters of an expression that says little by itself
DRAWN = re.compile(r"\brandom\b|rng\b")  # numbers of the learner's own choice


class Suspects:
    """What may be to blame in an answer that is followed."""

    def __init__(self, path: Path) -> None:
        self.path, self.trial, self.cases, self.wrong = path, path.trial, path.cases, path.wrong
        now = time.process_time()
        self.half_time = now + SHARE * (path.end - now)
        self._gains: list[tuple[Repair, np.ndarray]] = []
        self._beside: list[Blame] = []
        self._maybe: list[Blame] = []

    # --- One place ---------------------------------------------------------------------------------------

    def places(self, again: bool) -> Iterator[Quantity]:
        """Those off the path, in order; again: those on it, which may be used wrongly, and variables, whose value is looked at
        first where it is made."""
        made: list[Quantity] = []
        for mine in self.path.mine:
            known = self.path.is_right[mine.place.number] or (
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
        for right in self.path.theirs:
            same = mine.is_like(right) and not again
            # What is written as it is, is no result; and a result belongs only where all that goes into it is right.
            apart = place.closed and not right.place.closed and right.place.number >= 0
            want = right.values[self.wrong[0]]
            if same or apart or not quantities.may_be(got, want, place.closed or again):
                continue
            end = self.path.is_end(right)
            if end and (self.trial.task.observed or not self.path.is_clean(mine)):
                continue
            for layout, _ in laid(want, got):
                if not (end and layout == "repeated"):  # a mean of it would be right as well
                    yield Repair(mine, right, layout)

    @cached_property
    def single(self) -> Blame | None:
        """One expression, or condition, that makes the answer right when it is put right."""
        if self.path.words:  # what a test of the learner's own design computes is its own
            return self._flips()
        case = self.wrong[0]
        for again in (False, True):
            for mine in self.places(again):
                for repair in self.repairs(mine, again):
                    if time.process_time() > self.half_time:
                        return None
                    outcome = self.path.outcome([repair], case)
                    if self.path.is_mended(outcome, case):
                        if self._is_sure(repair) and self.path.mends([repair]):
                            return Blame((self._whole(repair),))
                    elif outcome.error is None:
                        self._note(repair, outcome)
            if not again and (flips := self._flips()):
                return flips
        return None

    def _is_sure(self, repair: Repair) -> bool:
        """Whether more is said than that the end is wrong."""
        place = repair.mine.place
        if not place.returned and not (repair.right.place.returned and len(self.wrong) < 2):
            return True
        return self.path.is_clean(repair.mine)

    def _whole(self, repair: Repair) -> Repair:
        """In the place of what is written as it is: what it stands in, where the same belongs there."""
        for mine in self.path.mine if repair.mine.place.closed else ():
            wider = Repair(mine, repair.right, repair.layout)
            if (
                repair.mine.place.number in mine.place.inside
                and not mine.place.tested
                and self.path.mends([wider])
            ):
                return wider
        return repair

    def says_all(self, blame: Blame) -> bool:
        """Whether no second mistake can stand behind this one: what goes into it is right, and it is not the end itself."""
        return not self.path.words and all(
            isinstance(step, Flip)
            or step.mine.is_same(step.right)  # and changed later, or without its gradient
            or step.is_changed_argument
            or (
                self.path.is_clean(step.mine, surely=True)
                and not step.mine.place.returned
                and not step.mine.place.closed
                and len(step.mine.place.piece) < LONG
                and not self.path.is_end(step.right)
            )
            for step in blame.steps
        )

    def _flips(self) -> Blame | None:
        """A condition, or two, that should go the other way on the wrong cases."""
        found: list[Flip] = []
        often = 10 if self.path.words else 1
        for mine in self.path.conditions:
            for turn, value in itertools.product(range(often), (False, True)):
                flips = [Flip(mine, (case,), value, turn) for case in self.wrong]
                flips = [
                    flip
                    for flip, case in zip(flips, self.wrong, strict=True)
                    if turn < len(mine.values[case]) <= often
                    and bool(mine.values[case][turn]) != value
                    and not self.path.over()
                    and self.path.is_mended(self.path.outcome([flip], case), case)
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
        right = repair.right.place
        # An argument that has nothing to do with the place is no second mistake.
        given = right.number < 0 and right.piece not in place.piece
        inside = not (place.closed or place.returned or right.closed or given)
        if inside and (mistake := self._left(outcome, lambda case: self.path.outcome([repair], case))):
            # A variable that is right may have to be changed first: its name is in what belongs there.
            clean = (
                place.piece in repair.right.place.piece if place.variable else self.path.is_clean(repair.mine)
            )
            kept = self._beside if clean or gains is not None else self._maybe
            kept.append(Blame((repair,), mistake))
        if gains is not None and (not place.returned or self.path.is_clean(repair.mine)):
            self._gains.append((repair, gains))

    def double(self) -> Blame | None:
        """Two places, after `single` has found none that is sure."""
        pairs = () if self.by_chance else itertools.combinations(self._gains, 2)
        for (one, some), (other, more) in pairs:
            if one.mine is not other.mine and (some | more).all() and self.path.mends([one, other]):
                return Blame((one, other))
            if self.path.over():
                break
        return None

    def beside(self, part: str) -> Blame | None:
        """A place and a known mistake, after `single` has found nothing.

        part: what is known already to be behind some of the wrong cases.
        """
        for one in self._beside + self._maybe:
            if one.mistake and (one.mistake.sentence in part or (not part and one in self._beside)):
                return one
        return None

    def _gained(self, outcome: Outcome) -> np.ndarray | None:
        """Which numbers of the first wrong case are right now, if more are and none less."""
        marks, before = self.path.marks(outcome), self.path.marks_before
        more = marks.shape == before.shape and (marks >= before).all() and (marks > before).any()
        return marks if more else None

    @cached_property
    def _known(self) -> tuple[list[Mistake], np.ndarray]:
        """The known mistakes that come to a value on the first wrong case, and what identifies it."""
        case, found, prints = self.wrong[0], [], []
        for mistake in self.trial.task.known_mistakes:
            other = next(itertools.islice(self.trial.with_mistake(mistake), case, None))
            if other.error is None and has_digits(other.value) and not self.path.is_mended(other, case):
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
                    case in self.wrong or self.path.is_mended(others[case], case) for case in self.cases
                ) and all(self.trial.like(tried(case), other) for case, other in enumerate(others)):
                    return mistake
        return None

    def named(self, blame: Blame, step: Repair | Flip, mistakes: Sequence[Mistake]) -> Mistake | None:
        """Of several steps: the mistake that is left when all others are put right."""
        rest = [one for one in blame.steps if one is not step]
        for mistake in mistakes if rest else ():
            if self.path.over():
                break
            if all(
                self.trial.like(self.path.outcome(rest, case), other)
                for case, other in enumerate(self.trial.with_mistake(mistake))
            ):
                return mistake
        return None

    # --- A change of the source --------------------------------------------------------------------------

    def edit(self) -> list[str]:
        """The one line of the answer's own source at which a small change makes it right, if there is one."""
        answer, case = self.path.outcomes[0].function, self.wrong[0]
        found: dict[str, Mutant] = {}  # by the line
        source = source_of(answer)
        endless = any(isinstance(node, ast.For | ast.While) for node in ast.walk(ast.parse(source)))
        for mutant in () if self.by_chance else mutants(answer):
            with suppress(SyntaxError, ValueError):
                followed = Followed(edited(answer, mutant) or "", scope_of(answer)) if endless else None
                changed = followed.call if followed else build(answer, mutant)
                if followed:
                    followed.put(lambda number, value: value)

                def tried(case: int, changed: Any = changed, followed: Followed | None = followed) -> Outcome:
                    if followed:
                        followed.deadline = time.process_time() + self.path.patience
                    return next(self.trial.outcomes(changed, only=(case,)))

                rest = (other for other in self.cases if other != case)
                if all(self.path.is_mended(tried(other), other) for other in (case, *rest)):
                    found.setdefault(mutant.line, mutant)
            if self.path.over():
                return []
        if len(found) != 1:
            return []
        ((line, mutant),) = found.items()
        look = f" Look at `{mutant.piece}`." if mutant.piece != line else ""
        return [f"One small change makes your answer right, in the line `{line}`.{look}"]

    @property
    def by_chance(self) -> bool:
        """Whether the wrong values say so little that one of many changes may give the right ones."""
        valued = [case for case in self.wrong if self.path.outcomes[case].error is None]
        telling = sum(
            evidence(self.path.outcomes[case].value, self.trial.expected[case].value) for case in valued
        )
        return telling < 2 * len(self.wrong)
