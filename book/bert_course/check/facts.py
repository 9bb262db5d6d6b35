"""What is true of a difference that no known mistake explains: the same way on all wrong cases."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bert_course.check.differences import Traced, as_array, close, difference, members
from minigrad.tensor import Tensor

RIGHT_NUMBERS = "The numbers themselves are right."
OTHER_ORDER = "The values are right, and in the other order."
STRONG = r"[Ee]very number is (?:the|(?:2|0\.5) times|\S+ times what it should be, and)"


def is_strong(fact: str | None) -> bool:
    """Whether a sentence says, of each wrong value, how its numbers come from the right ones, as they do by no chance.

    A factor can be one: it must be a size of an argument, or 2 or 1/2.
    """
    text = fact or ""
    return text == OTHER_ORDER or len(re.findall(STRONG, text)) >= max(1, text.count("Of the "))


def is_rounding(fact: str | None) -> bool:
    """Whether a sentence says that no more is wrong than rounding may do: seven digits are right, or more."""
    found = re.match(r"All numbers agree .* in about (\d+) digits", fact or "")
    return found is not None and int(found[1]) >= 7


@dataclass(frozen=True)
class Wrong:
    """A wrong case: what came, what was expected, and the arguments by name."""

    got: Any
    want: Any
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """Looks for what is true of wrong cases.

    rtol, atol: how close numbers must be to be the same.
    """

    rtol: float
    atol: float

    def sentence(self, cases: Sequence[Wrong]) -> str | None:
        """How what came differs from what was expected, in a sentence; None if nothing is known of all cases."""
        if not cases:
            return None
        with np.errstate(all="ignore"):
            if all(isinstance(case.want, tuple | list) for case in cases):
                listed = [_list_of_numbers(case) for case in cases]
                # Of two values each has its own meaning; a list may be of any length.
                if all(listed) and len({len(case.want) for case in cases}) > 1:
                    return self.sentence([case for case in listed if case])
                return self._of_several(cases)
            numbers = _as_numbers(cases)
            return self._of_numbers(cases, numbers) if numbers else None

    # --- Several values ----------------------------------------------------------------------------------

    def _of_several(self, cases: Sequence[Wrong]) -> str | None:
        """Which of several returned values are right on each wrong case, and what is true of the others."""
        cases = [replace(case, got=members(case.got)) for case in cases]
        count = len(cases[0].want)
        if not all(isinstance(case.got, tuple | list) and len(case.got) == count for case in cases):
            return None
        if any(len(case.want) != count for case in cases) or not 2 <= count <= (
            99 if isinstance(cases[0].want, Traced) else len(NUMBERS)
        ):
            return None
        wrong = [n for n in range(count) if not all(self._same(case.got[n], case.want[n]) for case in cases)]
        if not wrong:
            return RIGHT_NUMBERS
        if all(self._same(tuple(reversed(case.got)), case.want) for case in cases):
            return OTHER_ORDER
        if len(wrong) == count:  # is it the same with all of them?
            each = [replace(case, got=case.got[n], want=case.want[n]) for case in cases for n in range(count)]
            text = self.sentence(each)
            if text and text.startswith(("Every number", "All numbers")):
                return text
        traced = cases[0].want if isinstance(cases[0].want, Traced) else None
        names = traced.names if traced else [f"the {number}" for number in NUMBERS[:count]]
        right = [names[n] for n in range(count) if n not in wrong]
        verb = f"{'' if traced else f' of the {count} values'} {'is' if len(right) == 1 else 'are'}"
        parts = [_sentence(f"{_listed(right)}{verb} right.")] if right else []
        facts = [
            self.sentence([replace(case, got=case.got[n], want=case.want[n]) for case in cases])
            for n in wrong
        ]
        if all(facts):
            value = "" if right or traced else " value"
            parts += [
                f"Of {names[n]}{value}: {fact[0].lower()}{fact[1:]}"
                for n, fact in zip(wrong, facts, strict=True)
                if fact
            ]
        return " ".join(parts) or None

    # --- Numbers -----------------------------------------------------------------------------------------

    def _of_numbers(self, cases: Sequence[Wrong], numbers: list[Numbers]) -> str | None:
        if all(self._same(case.got, case.want) for case in cases):
            return RIGHT_NUMBERS
        if all(got.size == want.size for got, want in numbers):
            flat = [(got.reshape(want.shape), want) for got, want in numbers]
            if self._all_close(flat):
                same_type = all(type(case.got) is type(case.want) for case in cases)
                return f"The numbers are right; only the {'shape' if same_type else 'type'} is not what is asked for."
        several = len(np.unique(np.concatenate([np.abs(want[want != 0]).ravel() for _, want in numbers]))) > 1
        for change, sentence in ALIKE:  # of one number, many things are true
            if (several or change is _turned) and self._all_close(
                [(change(got), want) for got, want in numbers]
            ):
                return sentence
        whole = all(got.size == 1 or (got.size and got.shape == want.shape) for got, want in numbers)
        same = numbers[0][0].flat[0] if whole else math.nan
        says = not same or (several and len(cases) > 2 and all(want.size == 1 for _, want in numbers))
        if says and all((got == same).all() for got, _ in numbers):
            return f"Where it is wrong, your answer is {same:g}."
        if any(got.shape != want.shape for got, want in numbers):
            return None
        near = _near(numbers)
        if is_rounding(near):  # a factor of 1.00000001 has no name
            return near
        factor = self._factor(cases, numbers) if several else None
        return factor or self._in_another_order(numbers) or near

    def _factor(self, cases: Sequence[Wrong], numbers: list[Numbers]) -> str | None:
        """That all numbers of a case are off by one factor, and what it is."""
        ratios = [ratio for both in numbers if (ratio := self._ratio(*both))]
        if len(ratios) < len(numbers):
            return None
        first = ratios[0]
        if all(math.isclose(first, ratio, rel_tol=1e-4) for ratio in ratios):
            return f"Every number is {first:.6g} times what it should be."
        sizes = [dict(_sizes(case.arguments)) for case in cases]
        for name in sizes[0]:
            if not all(name in of_case for of_case in sizes):
                continue
            for over, words in ((False, ""), (True, "one over ")):
                values = [1 / one[name] if over else one[name] for one in sizes]
                if all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(ratios, values, strict=True)):
                    other = next(ratio for ratio in ratios if not math.isclose(ratio, first, rel_tol=1e-4))
                    return (
                        f"Every number is {first:.4g} times what it should be, and on another case {other:.4g} times: that "
                        f"is {words}{name}. Is there a mean in the place of a sum, or the reverse?"
                    )
        return None

    def _ratio(self, got: np.ndarray, want: np.ndarray) -> float | None:
        """The one ratio of all entries; None if there is none, or it is 0 or not finite."""
        if not want.size:
            return None
        place = np.unravel_index(np.argmax(np.abs(want)), want.shape)
        ratio = float(got[place] / want[place]) if want[place] else 0.0
        fits = ratio and math.isfinite(ratio) and close(got / ratio, want, self.rtol, self.atol).all()
        return ratio if fits else None

    def _in_another_order(self, numbers: list[Numbers]) -> str | None:
        both = [(_sorted(got), _sorted(want)) for got, want in numbers]
        if all(len(np.unique(want)) <= 2 for _, want in both):  # of rows of 0 and 1 it is always so
            return None
        return "The numbers are the right ones, in another order." if self._all_close(both) else None

    # --- Both --------------------------------------------------------------------------------------------

    def _same(self, got: Any, want: Any) -> bool:
        return difference(got, want, self.rtol, self.atol) is None

    def _all_close(self, numbers: list[Numbers]) -> bool:
        return all(
            got.shape == want.shape and bool(close(got, want, self.rtol, self.atol).all())
            for got, want in numbers
        )


Numbers = tuple[np.ndarray, np.ndarray]  # what came, what was expected
NUMBERS = ("first", "second", "third", "fourth", "fifth")


def _sentence(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]


def _listed(words: Sequence[str]) -> str:
    """As in: the first, the second and the third."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _as_numbers(cases: Sequence[Wrong]) -> list[Numbers] | None:
    """What came and what was expected as arrays of numbers; None where that cannot be."""
    if not all(isinstance(case.want, Tensor | np.ndarray | int | float) for case in cases):
        return None
    try:
        both = [(as_array(case.got), as_array(case.want)) for case in cases]
    except Exception:  # whatever a foreign type raises
        return None
    if any(got.dtype.kind not in "fiub" or want.dtype.kind == "b" for got, want in both):
        return None
    return [(got if got.dtype.kind == "f" else got.astype(float), want) for got, want in both]


def _list_of_numbers(case: Wrong) -> Wrong | None:
    """The case with arrays in the place of lists, or tuples, of numbers; None if something else is in them."""
    both = [members(case.got), case.want]
    if not all(
        isinstance(one, tuple | list) and all(isinstance(n, int | float) for n in one) for one in both
    ):
        return None
    got, want = (np.array(one, float) for one in both)
    return replace(case, got=got, want=want)


def _sorted(x: np.ndarray) -> np.ndarray:
    return np.sort(x, axis=None).reshape(x.shape)


def _turned(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2) if x.ndim > 1 else x


# What makes the right numbers of the answer's, and what the answer's are then.
ALIKE: list[tuple[Callable[[np.ndarray], np.ndarray], str]] = [
    (_turned, "What you return is the transpose of what is asked for."),
    (np.negative, "Every number is the negative of what it should be."),
]

NEAR = 0.05


def _near(numbers: list[Numbers]) -> str | None:
    """That all numbers nearly are what they should be: of those that are 0, nearly beside the others."""
    largest = max((float(np.abs(want).max(initial=0)) for _, want in numbers), default=0)
    if not largest or not all(np.isfinite(got).all() and np.isfinite(want).all() for got, want in numbers):
        return None
    apart = max(
        float((np.abs(got - want) / np.maximum(np.abs(want), largest / 1000)).max(initial=0))
        for got, want in numbers
    )
    if 0 < apart < 1e-4:
        return (
            f"All numbers agree with what they should be in about {-math.log10(apart):.0f} digits. Is something rounded on the "
            "way, cut off or approximated, or is a small constant added?"
        )
    for got, want in numbers:
        if (np.abs(got - want) > NEAR * np.where(want == 0, largest, np.abs(want))).any():
            return None
    zeros = ", or small where that is 0" if any((want == 0).any() for _, want in numbers) else ""
    counts = all((got % 1 == 0).all() and (want % 1 == 0).all() for got, want in numbers)
    part = " A small part may be missing, or there twice." if counts else ""
    return f"All numbers are within 5 % of what they should be{zeros}.{part}"


def _length(argument: Any) -> int | None:
    """Along the first axis; None for what has none."""
    if isinstance(argument, Tensor | np.ndarray):
        return argument.shape[0] if argument.ndim else None
    return len(argument) if isinstance(argument, list | tuple) else None


def _sizes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers that a factor may be, in words, and what they are."""
    for name, argument in arguments.items():
        if isinstance(argument, int) and not isinstance(argument, bool) and argument > 0:
            yield f"`{name}`", argument
        elif isinstance(argument, Tensor | np.ndarray) and argument.size:
            axes = [
                (f"the length of axis {axis} of `{name}`", size) for axis, size in enumerate(argument.shape)
            ]
            yield from axes if len(axes) > 1 else ((f"the length of `{name}`", size) for _, size in axes)
            if len(axes) > 1:
                yield f"the number of entries of `{name}`", argument.size
            if len(axes) > 2:
                yield (
                    f"the number of rows of `{name}`, along all axes but the last",
                    math.prod(argument.shape[:-1]),
                )
        elif length := _length(argument):
            yield f"the length of `{name}`", length
