"""Finding the mistake behind a wrong answer.

It is the mistake that does on every case what the answer does; or two at once; or a mistake, and a fact about what is still
wrong with it; or the mistake behind most of the wrong cases; or what is true of the numbers. Beside the last two, and a
mistake that anybody makes, stands the line of the answer's own source that a small change puts right.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import tee
from typing import Any

import numpy as np

from bert_course.check.differences import as_array, difference, has_digits, members
from bert_course.check.errors import explained
from bert_course.check.facts import RIGHT_NUMBERS, Facts, Wrong, is_rounding, is_strong
from bert_course.check.mistakes import CHANGED, Mistake, build, in_some_places, pairs
from bert_course.check.mutants import EXCHANGED, Mutant, mutants
from bert_course.check.outcome import Outcome
from bert_course.check.trial import Trial
from bert_course.check.watch import can_be_limited, time_limit

LOOSE = 1e-5  # a tolerance from which on numbers are near by chance
SECONDS = 3  # for each search that goes through many changes, of a slow answer
EXCHANGE = "One small change makes your answer right: exchange these two steps."
PLACE = "One small change makes your answer right, in the line `{}`."


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


def diagnose(trial: Trial, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> Diagnosis:
    """What is behind the complaints; without paragraphs if nothing is known.

    outcomes: what the answer did with each case. complaints: what is wrong with it, None where nothing is.
    """
    return _Search(trial, outcomes, complaints).diagnosis()


class _Search:
    """An answer's outcomes, held against those of the mistakes."""

    def __init__(self, trial: Trial, outcomes: Sequence[Outcome], complaints: Sequence[str | None]) -> None:
        self.trial, self.outcomes, self.complaints = trial, outcomes, complaints
        self.close = trial.task.rtol, trial.task.atol
        self.wrong = [place for place, words in enumerate(complaints) if words]
        self.has_effects = any(outcome.changed or outcome.seen for outcome in outcomes)
        # With what was done to memory and arguments first; where all values are right, or words, it has to be the same.
        self.right_ones = [trial.same(*both) for both in zip(outcomes, trial.expected, strict=True)]
        words = all(isinstance(one.value, str) for one in trial.expected)
        self.kinds = (True,) if words or all(self.right_ones) else (True, False)
        self.facts = Facts(trial.task.answer, *self.close)
        self.mistakes = self._that_say_something()
        # Where one number is asked for, and one that is near will do, two mistakes or a change of many come near by chance.
        numbers = all(isinstance(one.value, int | float | np.number) for one in trial.expected)
        self.by_chance = max(self.close) > LOOSE and numbers

    def diagnosis(self) -> Diagnosis:
        """From the surest to the weakest."""
        first = self.wrong[0]
        if all(one.value is None and one.error is None for one in self.outcomes):
            return Diagnosis([], first)  # told already, and no sign of more
        if mistake := self._single(self.mistakes):
            return Diagnosis([mistake.sentence], first)
        place = self._place()
        if mistake := self._single(self._mutants):
            return Diagnosis([mistake.sentence, *place], first)
        part, measured = self._in_part(), self._measured
        if not place and (both := self._two_mistakes(part)):
            return Diagnosis(["Two mistakes at once.", f"(1) {both[0]}", f"(2) {both[1]}"], first)
        # What is true of all wrong cases, if most are wrong, says more than a mistake behind some of them.
        most = 2 * len(self.wrong) > len(self.complaints) and len(self.wrong) > 1
        if part and not (most and (measured or "").startswith("Every number")):
            return Diagnosis([part.sentence, *place], part.explained[0])
        asides = [self._which()]
        if measured == RIGHT_NUMBERS:
            measured, asides = None, [measured, *asides]
        found = [measured] if measured else []
        return Diagnosis([*found, *place], first, [text for text in asides if text])

    def _that_say_something(self) -> Sequence[Mistake]:
        """Where the same whole number comes out on all cases, which many do: the mistakes that say so themselves."""
        mistakes = self.trial.task.known_mistakes
        if not self._is_constant:
            return mistakes
        value = self.outcomes[0].value
        written = re.compile(rf"return (?:np\.|math\.)?{value:g}(?:\.0)?$", re.MULTILINE)
        return [
            mistake
            for mistake in mistakes
            if written.search("\n".join([mistake.body, *dict(mistake.edits).values()]))
        ]

    @cached_property
    def _is_constant(self) -> bool:
        """Whether the same whole number comes out on all of several cases."""
        values = [one.value for one in self.outcomes]
        if not all(isinstance(value, int | float | np.number) for value in values) or has_digits(values):
            return False
        return len(set(values)) == 1 and len(values) > 2

    @cached_property
    def _mutants(self) -> Sequence[Mistake]:
        """Of anybody, and mistakes in some places only.

        None where one of so many explains the answer by chance: its values are words, a few whole numbers, or one.
        """
        wrong_ones = ((self.outcomes[place].value, self.trial.expected[place].value) for place in self.wrong)
        telling = sum(_says_much(came, want) for came, want in wrong_ones)
        if telling < 2 or self.by_chance or self._is_constant or is_strong(self._measured):
            return ()
        task = self.trial.task
        of_anybody = mutants(task.answer)
        return (*in_some_places(task.answer, task.known_mistakes), *of_anybody) if of_anybody else ()

    # --- One mistake ----------------------------------------------------------------------------------------

    def _single(self, mistakes: Sequence[Mistake]) -> Mistake | None:
        """The mistake that does on every case what the answer does."""
        for effects in self.kinds:
            for mistake in mistakes:
                if self._alike(self.trial.with_mistake(mistake), effects):
                    return mistake
        return None

    def _alike(self, others: Iterator[Outcome], effects: bool) -> bool:
        """Whether a wrong answer does on every case what the learner's does, and on one of them more than to fail.

        An error is like every other of its kind: alone it is no sign of the same mistake, but one of arithmetic, such
        as a division by 0, is. Nor is a value that is right: in float32, where the tolerance is large, it can be near
        a mistake's too.
        """
        if self._only_fails:
            return False
        telling = False
        for outcome, right, other in zip(self.outcomes, self.trial.expected, others, strict=False):
            if not self.trial.like(outcome, other) or (effects and not outcome.same_effects(other)):
                return False
            if outcome.error is not None:
                telling = telling or isinstance(outcome.error, ArithmeticError)
            elif not telling:
                telling = not self.trial.same(other, right) and not self.trial.same(outcome, right)
                telling = telling or (effects and not other.same_effects(right))
        return telling

    @cached_property
    def _only_fails(self) -> bool:
        """Whether there are errors alone that are no sign of a mistake."""
        errors = [outcome.error for outcome in self.outcomes]
        return all(error and not isinstance(error, ArithmeticError) for error in errors)

    def _place(self) -> list[str]:
        """The one line of the answer's own source at which a small change makes it right, if there is one.

        Where words are asked for, or only the last digits are wrong, that may be chance.
        """
        by_chance = self.by_chance or is_rounding(self._measured)
        if by_chance or self._evidence(self.wrong) < 2 * len(self.wrong) or not can_be_limited():
            return []
        found: dict[str, Mutant] = {}  # by the line
        answer, end = self.outcomes[0].function, time.monotonic() + SECONDS
        # The answer may print, and a change may be one that Python warns of.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            for mutant in mutants(answer, own=True):
                # Not all changes of all code are Python, or come to an end.
                with contextlib.suppress(SyntaxError), time_limit(SECONDS / 15, CHANGED):
                    changed = build(answer, mutant)
                    if changed and self.trial.accepts(changed):
                        found.setdefault(mutant.line, mutant)
                if time.monotonic() > end:
                    return []  # whether another line would do is not known
        if len(found) != 1:
            return []
        ((line, mutant),) = found.items()
        if EXCHANGED in mutant.sentence:
            code = inspect.cleandoc(mutant.piece)  # one below the other
            steps = [ast.get_source_segment(code, step) or "" for step in ast.parse(code).body]
            return [EXCHANGE, *(f"`{' '.join(step.split())}`" for step in steps)]
        piece = mutant.piece
        return [PLACE.format(line) + (f" Look at `{piece}`." if piece != line else "")]

    # --- Two ---------------------------------------------------------------------------------------------

    def _two_mistakes(self, part: Part | None) -> tuple[str, str] | None:
        fact = is_strong(self._measured) and not self.has_effects  # which says all
        # Errors, and what is no Tensor, are told as they are, whatever the numbers would be.
        told = self._only_fails or all(self.outcomes[place].unfit for place in self.wrong)
        if told or fact or self.by_chance or len(self.mistakes) < len(self.trial.task.known_mistakes):
            return None
        both = self._pair(part)
        if both or all(self.right_ones):
            return both
        return self._of_each_value() or self._mistake_and_fact()

    def _of_each_value(self) -> tuple[str, str] | None:
        """Of several returned values: two mistakes, each of which explains some of the wrong ones.

        Of those that do, the two that would spoil the fewest of the others.
        """
        mine, right = self._values(self.outcomes), self._values(self.trial.expected)
        if not mine or len(mine) != len(right):
            return None
        wrong = [n for n in range(len(right)) if not self._all_like(mine[n], right[n])]
        if not wrong:
            return None
        # What a mistake explains, how many others it spoils, and its sentence.
        found: list[tuple[set[int], int, str]] = []
        for mistake in self.mistakes:
            theirs = self._values(list(self.trial.with_mistake(mistake)))
            if len(theirs) == len(mine):
                explained = {n for n in wrong if self._all_like(mine[n], theirs[n])}
                spoilt = sum(not self._all_like(theirs[n], right[n]) for n in range(len(right)))
                found.append((explained, spoilt - len(explained), mistake.sentence))
        both = [
            (spoilt + spoilt_too, first, second)
            for explained, spoilt, first in found
            for explained_too, spoilt_too, second in found
            if wrong[0] in explained and explained_too - explained and explained | explained_too == set(wrong)
        ]
        return min(both, key=lambda pair: pair[0])[1:] if both else None

    def _values(self, outcomes: Sequence[Outcome]) -> list[list[Any]]:
        """What was returned of each case, by place among the values; nothing where there are not several each time."""
        of_cases = [members(one.value) for one in outcomes if one.error is None]
        if len(of_cases) < len(self.outcomes) or not all(isinstance(one, tuple | list) for one in of_cases):
            return []
        count = len(of_cases[0])
        same = count > 1 and all(len(one) == count for one in of_cases)
        return [[one[n] for one in of_cases] for n in range(count)] if same else []

    def _all_like(self, some: list[Any], others: list[Any]) -> bool:
        return all(
            difference(one, other, *self.close) is None for one, other in zip(some, others, strict=True)
        )

    def _pair(self, part: Part | None) -> tuple[str, str] | None:
        """Two mistakes that together do what the answer does.

        Where one mistake alone explains all but one case, and that says no more than a word or yes or no, the second is
        only a guess.
        """
        if part and not self.has_effects:
            others = set(range(len(self.outcomes))) - set(part.explained)
            if self._evidence(others) < 2:
                return None
        task = self.trial.task
        found: dict[bool, tuple[Mistake, Mistake]] = {}  # the first pair of each kind
        for one, other, wrong in pairs(task.answer, self.mistakes):
            tries = tee(self.trial.outcomes(wrong), len(self.kinds))  # once for all kinds
            for effects, outcomes in zip(self.kinds, tries, strict=True):
                if effects not in found and self._alike(outcomes, effects):
                    found[effects] = one, other
            if self.kinds[0] in found:
                break
        for effects in (kind for kind in self.kinds if kind in found):
            one, other = found[effects]
            follows = "This may follow from (1). " if self._only_later_values(one) else ""
            return one.sentence, f"{follows}{other.sentence}"
        if not can_be_limited():
            return None
        with time_limit(SECONDS, CHANGED) as over:
            for one, other, wrong in pairs(task.answer, self.mistakes, self._mutants):
                if self._alike(self.trial.outcomes(wrong), self.kinds[-1]):
                    return one.sentence, other.sentence
                if over():
                    break
        return None

    def _only_later_values(self, mistake: Mistake) -> bool:
        """Whether, of several values, a mistake explains the first wrong one, and later ones are wrong in another way.

        It has to spoil these as well: what it leaves alone cannot follow from it.
        """
        found = False
        for outcome, right, other in zip(
            self.outcomes, self.trial.expected, self.trial.with_mistake(mistake), strict=True
        ):
            values = [members(one.value) for one in (outcome, right, other)]
            if not all(isinstance(value, tuple | list) and len(value) == len(values[0]) for value in values):
                return False
            wrong = [one for one in zip(*values, strict=True) if difference(one[0], one[1], *self.close)]
            explained = [difference(came, mistakes, *self.close) is None for came, _, mistakes in wrong]
            if wrong:  # values of this case
                found = explained[0] and not explained[-1] and explained == sorted(explained, reverse=True)
                spoilt = all(difference(mistakes, wanted, *self.close) for _, wanted, mistakes in wrong)
                if not found or not spoilt:
                    return False
        return found

    def _mistake_and_fact(self) -> tuple[str, str] | None:
        """A mistake, and what is true of the answer's numbers beside those that the mistake gives."""
        if is_strong(self._measured) or any(outcome.error is not None for outcome in self.outcomes):
            return None
        for mistake in self.mistakes:
            others = list(self.trial.with_mistake(mistake))
            if any(other.error is not None for other in others):
                continue
            apart = [
                Wrong(outcome.value, other.value, arguments)
                for outcome, other, arguments in zip(self.outcomes, others, self.trial.unchanged, strict=True)
                if not self.trial.like(outcome, other)
            ]
            fact = self.facts.sentence(apart)
            if fact and is_strong(fact) and not self._undone(others):
                return mistake.sentence, f"Apart from that: {fact[0].lower()}{fact[1:]}"
        return None

    def _undone(self, others: Sequence[Outcome]) -> bool:
        """Whether the answer's numbers are much nearer to the right ones than a mistake's: what is beside it, undoes it."""
        mine, mistakes, right = (
            _flat([one.value for one in of]) for of in (self.outcomes, others, self.trial.expected)
        )
        alike = mine.shape == mistakes.shape == right.shape
        return alike and bool(np.abs(mine - right).sum() < np.abs(mistakes - right).sum() / 4)

    # --- In part -----------------------------------------------------------------------------------------

    def _evidence(self, places: Iterable[int]) -> int:
        """How much the wrong values of these cases say: 3 for numbers with digits, 2 for whole ones, 1 for a word."""
        wrong_ones = [
            (self.outcomes[place].value, self.trial.expected[place].value)
            for place in places
            if self.outcomes[place].error is None
            and not self.trial.same(self.outcomes[place], self.trial.expected[place])
        ]
        return sum(
            3 if has_digits(came) or has_digits(want) else 1 if isinstance(want, bool | str) else 2
            for came, want in wrong_ones
        )

    def _in_part(self) -> Part | None:
        """What one mistake explains: more of the wrong cases than any other, and at least half of them.

        Of cases whose values are whole numbers or words, three and three quarters. A mistake that would spoil more
        cases than it explains is not behind the answer, which has those right.
        """
        best: dict[str, list[int]] = {}
        for mistake in self.mistakes:
            explained, spoilt, open_ones = [], 0, len(self.wrong)
            for place, other in enumerate(self.trial.with_mistake(mistake)):
                outcome, right = self.outcomes[place], self.trial.expected[place]
                differs = not self.trial.same(other, right)
                if self.right_ones[place]:
                    spoilt += differs
                elif outcome.error is None and differs and self.trial.like(outcome, other):
                    explained.append(place)
                open_ones -= self.complaints[place] is not None
                most = len(explained) + open_ones
                if 2 * most < len(self.wrong) or spoilt > most:  # the other cases need not be run
                    break
            else:
                if spoilt <= len(explained) and len(explained) > len(best.get(mistake.sentence, ())):
                    best[mistake.sentence] = explained
        most = max(map(len, best.values()), default=0)
        found = [sentence for sentence, places in best.items() if len(places) == most]
        if not most or len(found) != 1:
            return None
        places, count = best[found[0]], len(self.wrong)
        if self._evidence(places) < 3 * most and count > 1 and (most < 3 or 4 * most < 3 * count):
            return None
        where = f"On {most} of the {count} wrong cases" if count > most else f"On all {count} wrong cases"
        where = where if count > 1 else "On the wrong case"
        return Part(f"{where} your answer gives what this mistake gives: {found[0]}", places)

    # --- No mistake -----------------------------------------------------------------------------------------

    @cached_property
    def _measured(self) -> str | None:
        """What is true of the numbers of all wrong cases; where the first ended in an error, what that says."""
        first = self.outcomes[self.wrong[0]]
        if first.error is not None:
            return explained(first.error)
        if first.decided:  # the numbers need not be those of the right answer
            return None
        wrong_ones = [
            Wrong(self.outcomes[place].value, self.trial.expected[place].value, self.trial.unchanged[place])
            for place in self.wrong
            if self.outcomes[place].error is None
        ]
        text = self.facts.sentence(wrong_ones)
        told = (self.complaints[self.wrong[0]] or "").startswith("The numbers are right")
        return None if told and text == RIGHT_NUMBERS else text

    def _which(self) -> str | None:
        """The names of the cases that are right, or of those that are wrong, whichever are fewer."""
        named = list(zip(self.trial.names, self.complaints, strict=True))
        right = dict.fromkeys(name for name, words in named if not words)
        wrong = dict.fromkeys(name for name, words in named if words)
        if not right or not wrong:
            return None
        if len(right) < len(wrong):
            return f"Right only on: {'; '.join(right)}."
        return f"Wrong only on: {'; '.join(wrong)}."


def _says_much(came: Any, want: Any) -> bool:
    """Whether a wrong value is no chance: there are digits in it, or it is an array of some size."""
    return has_digits(came) or has_digits(want) or (isinstance(want, np.ndarray) and want.size > 4)


def _flat(value: Any) -> np.ndarray:
    """The numbers of a value, or of several, in order of size."""
    several = isinstance(value, tuple | list)
    return np.sort(np.concatenate([_flat(one) for one in value]) if several else np.ravel(as_array(value)))
