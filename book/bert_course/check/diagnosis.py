"""Finding the mistake behind a wrong answer.

It is the known mistake that does on every case what the answer does; or the place where the answer leaves the path of the
right one (blame.py); or two of these at once; or the mistake behind most of the wrong cases; or what is true of the numbers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import tee

import numpy as np

from bert_course.check import path
from bert_course.check.blame import Suspects
from bert_course.check.differences import evidence, has_digits
from bert_course.check.errors import explained
from bert_course.check.facts import OTHER_ORDER, RIGHT_NUMBERS, Facts, Wrong, is_rounding, is_strong
from bert_course.check.follow import OutOfTime
from bert_course.check.mistakes import Mistake, pairs
from bert_course.check.outcome import Outcome
from bert_course.check.path import Blame, Flip, Path, Repair
from bert_course.check.trial import Trial

LOOSE = 1e-5  # a tolerance from which on numbers are near by chance


@dataclass(frozen=True)
class Diagnosis:
    """What is behind a wrong answer, in paragraphs, the case that shows it, and what else there is to say."""

    paragraphs: list[str]
    shown: int
    asides: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A mistake behind some of the wrong cases: what to say, which, and how many right ones it would spoil."""

    sentence: str
    explained: list[int]
    spoilt: int


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
        self.words = all(isinstance(one.value, str) for one in trial.expected)
        self.kinds = (True,) if self.words or all(self.right_ones) else (True, False)
        self.facts = Facts(*self.close)
        self.mistakes = self._that_say_something()
        # Where one number is asked for, and one that is near will do, two mistakes or a change of many come near by chance.
        numbers = all(isinstance(one.value, int | float | np.number) for one in trial.expected)
        self.by_chance = max(self.close) > LOOSE and numbers

    def diagnosis(self) -> Diagnosis:
        """From the surest to the weakest."""
        first = self.wrong[0]
        if all(one.value is None and one.error is None for one in self.outcomes):
            return Diagnosis([], first)  # told already, and no sign of more
        if mistake := self._single():
            # Many mistakes have one word: where it was said, says more.
            suspects = self._suspects() if self.words else None
            single = suspects.single if suspects else None
            place = suspects.path.told(single.steps) if suspects and single and len(single.steps) == 1 else ""
            return Diagnosis([f"{mistake.sentence} {place}".strip()], first)
        part = self._in_part()
        # Where only the last digits are wrong, many changes make it right.
        rounded = all(self.right_ones) or is_rounding(self._measured)
        failed = self._only_fails and self._measured  # what the error says is known
        both = self._two_mistakes(part)
        suspects = None if rounded or failed else self._suspects()
        if found := self._followed(suspects, part, both) if suspects else both:
            return Diagnosis(found, first)
        measured = self._measured
        # What is true of all wrong cases, if most are wrong, says more than a mistake behind some of them.
        most = 2 * len(self.wrong) > len(self.complaints) and len(self.wrong) > 1
        if part and not (most and (measured or "").startswith("Every number")):
            return Diagnosis([part.sentence], part.explained[0])
        asides = [self._which()]
        if measured == RIGHT_NUMBERS:
            measured, asides = None, [measured, *asides]
        return Diagnosis([measured] if measured else [], first, [text for text in asides if text])

    # --- Following ---------------------------------------------------------------------------------------

    def _suspects(self) -> Suspects | None:
        """What may be to blame; None where the answer cannot be followed."""
        try:
            return Suspects(
                Path(self.trial, self.outcomes, self.complaints, time.process_time() + path.SECONDS)
            )
        except (OSError, TypeError, SyntaxError, OutOfTime):
            return None

    def _followed(self, suspects: Suspects, part: Part | None, both: list[str] | None) -> list[str] | None:
        """What the answer's own expressions say, if that is sure. both: two known mistakes that say it too."""
        single = suspects.single
        place = self._told(suspects, single) if single else None
        if place and len(place) == 1:
            place = [*self._strong(part), *place]
        if single and suspects.says_all(single):
            return place
        if edit := suspects.edit():
            return [*self._strong(part), *edit]
        if both:
            return both
        if self._measured == OTHER_ORDER:
            return place
        double = suspects.double()
        if not (double or place):
            double = suspects.beside(part.sentence if part else "")
        if double:
            return self._told(suspects, double)
        return place

    def _strong(self, part: Part | None) -> list[str]:
        """What is known beside a place: how all numbers differ, or the mistake behind some of the wrong cases."""
        if self._measured and is_strong(self._measured):
            return [self._measured]
        return [part.sentence] if part else []

    def _told(self, suspects: Suspects, blame: Blame) -> list[str]:
        """What to put right, by a mistake's sentence where one explains what came of a place."""
        told: dict[str, tuple[str, list[Repair | Flip]]] = {}  # two calls of a function are one mistake
        for step in blame.steps:
            mistake = suspects.named(blame, step, self.mistakes) if isinstance(step, Repair) else None
            sentence = mistake.sentence if mistake else ""
            turn = f" {step.turn}" if isinstance(step, Flip) else ""
            key = sentence or step.mine.place.piece.partition("(")[0] + turn
            told.setdefault(key, (sentence, []))[1].append(step)
        texts = [f"{sentence} {suspects.path.told(steps)}".strip() for sentence, steps in told.values()]
        if blame.mistake:
            texts.append(blame.mistake.sentence)
        if len(texts) > 1:
            return _numbered(texts)
        return texts if self.has_effects else [f"{texts[0]} With that, your answer is right."]

    # --- Known mistakes ----------------------------------------------------------------------------------

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

    def _single(self) -> Mistake | None:
        """The mistake that does on every case what the answer does."""
        for effects in self.kinds:
            for mistake in self.mistakes:
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

    def _two_mistakes(self, part: Part | None) -> list[str] | None:
        fact = is_strong(self._measured) and not (self.has_effects or part)  # which says all
        # Errors, and what is no Tensor, are told as they are, whatever the numbers would be.
        told = self._only_fails or all(self.outcomes[place].unfit for place in self.wrong)
        if told or fact or self.by_chance or len(self.mistakes) < len(self.trial.task.known_mistakes):
            return None
        both = self._pair(part)
        return _numbered(both) if both else None

    def _pair(self, part: Part | None) -> tuple[str, str] | None:
        """Two mistakes that together do what the answer does.

        Where one mistake alone explains all but a word, or a yes or no, the second has to be the only one that will do.
        """
        others = set(range(len(self.outcomes))) - set(part.explained if part else ())
        guess = part is not None and not self.has_effects and self._evidence(others) < 2
        varied = self.words and len({one.value for one in self.outcomes if isinstance(one.value, str)}) > 1
        if guess and part and not (part.spoilt or varied):
            return None
        found: dict[bool, list[tuple[str, str]]] = {kind: [] for kind in self.kinds}
        end = time.process_time() + path.SECONDS / 2
        for one, other, wrong in pairs(self.trial.task.answer, self.mistakes):
            tries = tee(self.trial.outcomes(wrong), len(self.kinds))  # once for all kinds
            for effects, outcomes in zip(self.kinds, tries, strict=True):
                if self._alike(outcomes, effects):
                    found[effects].append((one.sentence, other.sentence))
            if time.process_time() > end:
                guess = True
                break
            if found[self.kinds[0]] and not guess:
                break
        best = next(filter(None, found.values()), [])
        return best[0] if best and not (guess and len(set(best)) > 1) else None

    # --- In part -----------------------------------------------------------------------------------------

    def _evidence(self, places: Iterable[int]) -> int:
        """How much the wrong values of these cases say."""
        wrong_ones = [
            (self.outcomes[place].value, self.trial.expected[place].value)
            for place in places
            if self.outcomes[place].error is None
            and not self.trial.same(self.outcomes[place], self.trial.expected[place])
        ]
        return sum(evidence(*both) for both in wrong_ones)

    def _in_part(self) -> Part | None:
        """What one mistake explains: more of the wrong cases than any other, and at least half of them.

        Of cases whose values are whole numbers or words, three and three quarters. A mistake that would spoil more
        cases than it explains is not behind the answer, which has those right.
        """
        best: dict[str, tuple[list[int], int]] = {}
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
                if spoilt <= len(explained) and len(explained) > len(best.get(mistake.sentence, [()])[0]):
                    best[mistake.sentence] = explained, spoilt
        most = max((len(explained) for explained, _ in best.values()), default=0)
        found = [sentence for sentence, (explained, _) in best.items() if len(explained) == most]
        if not most or len(found) != 1:
            return None
        (places, spoilt), count = best[found[0]], len(self.wrong)
        if self._evidence(places) < 3 * most and count > 1 and (most < 3 or 4 * most < 3 * count):
            return None
        where = f"On {most} of the {count} wrong cases" if count > most else f"On all {count} wrong cases"
        where = where if count > 1 else "On the wrong case"
        return Part(f"{where} your answer gives what this mistake gives: {found[0]}", places, spoilt)

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


def _numbered(texts: Sequence[str]) -> list[str]:
    return ["Two mistakes at once.", *(f"({number}) {text}" for number, text in enumerate(texts, 1))]
