"""How a value differs from the right one, in words, and what is true of the difference."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.tensor import Tensor

TO_FLOAT64 = (
    "A NumPy number keeps its dtype where a Python number gives way: np.sqrt of a whole number, np.float64, a new "
    "np.zeros or np.ones, an array of whole numbers times a fraction, np.arange times a fraction and what astype(float) made are float64 and make float64 of what they meet. math.sqrt gives a "
    "Python number."
)


ROUNDINGS = 100  # of the largest entry, that a sum may be off by
MASKING = 1e30  # numbers from here on stand for infinity

_SHORT = reprlib.Repr()
_SHORT.maxother = 300  # a program of a check says all its steps


class Traced(tuple[Any, ...]):
    """What a Tensor holds, and what comes back from it to each Tensor that it was made of; None where nothing does.

    names: of each in words, "the result" and "the gradient for X". returned: how many of them an answer gave back.
    """

    names: tuple[str, ...]
    returned: int

    @classmethod
    def of(cls, results: Mapping[str, Any], gradients: Mapping[str, Any]) -> Traced:
        """From what was returned, and what came back from it, by their names."""
        traced = cls([*results.values(), *gradients.values()])
        traced.names, traced.returned = (*results, *gradients), len(results)
        return traced


NO_GRADIENT = (
    "{} does not arrive: on the way from there to the result, .data, .numpy() or a new Tensor(…) takes the numbers out "
    "of a Tensor, and there the gradient ends"
)


def difference(value: Any, expected: Any, rtol: float, atol: float) -> str | None:
    """How `value` differs from `expected`, in words; None if it does not, whatever its dtype."""
    if expected is None:
        return None if value is None else _differs(value, expected)
    if isinstance(expected, tuple | list):
        if isinstance(value, Traced) and isinstance(expected, Traced) and value.returned != expected.returned:
            return f"it should return {_values(expected.returned)}, and returned {value.returned}"
        came, value = value, members(value)
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            return f"it should return {_values(len(expected))}, and returned {described(came)}"
        for number, (one, other) in enumerate(zip(value, expected, strict=True)):
            if isinstance(expected, Traced) and one is None and other is not None:
                return NO_GRADIENT.format(expected.names[number])
            if found := difference(one, other, rtol, atol):
                return f"{which(expected, number)}: {found}"
        return None
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            return _differs(value, expected)
        if set(value) != set(expected):
            return f"it should have the keys {_keys(expected)}, and has {_keys(value)}"
        for key, other in expected.items():
            if found := difference(value[key], other, rtol, atol):
                return f"for {key}, {found}"
        return None
    if isinstance(expected, str):  # str's own comparison: that of a class made from it may say anything
        return None if isinstance(value, str) and str.__eq__(value, expected) else _differs(value, expected)
    if isinstance(expected, bool):
        return None if isinstance(value, bool | np.bool_) and value == expected else _differs(value, expected)
    is_array = isinstance(expected, Tensor | np.ndarray)
    if isinstance(value, Tensor) != isinstance(expected, Tensor):
        return _differs(value, expected)
    # NumPy's arithmetic makes a number of an array without axes.
    as_good = is_array and as_array(expected).ndim == 0 and isinstance(value, np.number)
    if is_array and not as_good and not isinstance(value, Tensor | np.ndarray):
        return _differs(value, expected)
    try:
        got, want = as_array(value), as_array(expected)
    except Exception:  # whatever a foreign type raises
        return _differs(value, expected)
    if got.dtype.kind not in "fiub" or (got.ndim and not is_array):
        return _differs(value, expected)
    if want.dtype.kind not in "fiub":  # as of a whole number that is too large for NumPy
        return None if value == expected else _differs(value, expected)
    if got.shape != want.shape:
        return f"it should return shape {want.shape}, and returned shape {got.shape}"
    wrong = ~close(got, want, rtol, atol)
    if not wrong.any():
        numbers = want.dtype.kind == "b" and got.dtype.kind != "b"  # ~ and an index take them otherwise
        return f"it should return True and False, and returned numbers ({got.dtype})" if numbers else None
    if not want.ndim:
        return "it should return {}, and returned {}".format(*digits_that_differ(want[()], got[()]))
    if unbounded := int((wrong & ~np.isfinite(got)).sum()):
        return f"{unbounded} of {got.size} entries are NaN or infinite"
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    wanted, came = digits_that_differ(want[place], got[place])
    count = f"{int(wrong.sum())} of {got.size} entries are off"
    return f"{count}. The entry [{', '.join(map(str, place))}] should be {wanted}, and is {came}"


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def which(values: Sequence[Any], number: int) -> str:
    """One of several values in words, counted from 0."""
    return values.names[number] if isinstance(values, Traced) else f"value {number + 1} of {len(values)}"


def _differs(value: Any, expected: Any) -> str:
    return f"it should return {described(expected)}, and returned {described(value)}"


@dataclass(frozen=True)
class Differing:
    """The first place where a value differs from the right one.

    where: of several values, which, in words. got, want: arrays where both are numbers, else as they came. wrong: of
    arrays of one shape, True for each entry that differs; None where entries cannot be held against each other.
    """

    where: str
    got: Any
    want: Any
    wrong: np.ndarray | None


def differing(value: Any, expected: Any, rtol: float, atol: float, where: str = "") -> Differing:
    """The first place where `value` differs from `expected`; where it does not, all of it."""
    if isinstance(expected, tuple | list):
        value = members(value)
    if isinstance(expected, tuple | list) and isinstance(value, tuple | list) and len(value) == len(expected):
        for number, (one, other) in enumerate(zip(value, expected, strict=True)):
            if difference(one, other, rtol, atol):
                return differing(one, other, rtol, atol, f"{where} {which(expected, number)}".strip())
    elif isinstance(expected, dict) and isinstance(value, dict) and set(value) == set(expected):
        for key, other in expected.items():
            if difference(value[key], other, rtol, atol):
                return differing(value[key], other, rtol, atol, f"{where} {key}".strip())
    elif isinstance(value, Tensor) == isinstance(expected, Tensor) and all(
        isinstance(one, Tensor | np.ndarray | np.number) for one in (value, expected)
    ):
        got, want = as_array(value), as_array(expected)
        alike = got.shape == want.shape and got.dtype.kind in "fiub"
        return Differing(where, got, want, ~close(got, want, rtol, atol) if alike else None)
    return Differing(where, value, expected, None)


def other_dtype(value: Any, expected: Any) -> str | None:
    """That an array, or one of several, has not the dtype of the right one, and how that comes about."""
    if dtypes := differing_dtypes(value, expected):
        text = "The numbers are right, and are {} for {}.".format(*dtypes)
        return f"{text} {TO_FLOAT64}" if dtypes == (np.float64, np.float32) else text
    return None


def differing_dtypes(value: Any, expected: Any) -> tuple[Any, Any] | None:
    """The dtype of an array, or of the first of several, that has another one than the right one, and that one's."""
    if isinstance(expected, tuple | list):
        if not isinstance(value, tuple | list):
            return None
        found = (differing_dtypes(one, other) for one, other in zip(value, expected, strict=False))
        return next(filter(None, found), None)
    if not isinstance(expected, Tensor | np.ndarray) or not isinstance(
        value, Tensor | np.ndarray | np.generic
    ):
        return None
    return (value.dtype, expected.dtype) if value.dtype != expected.dtype else None


def close(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Entry by entry; in float32 within 1e-4, or 1e-6 of 0, where less is asked for.

    A sum of terms as large as the largest entry may be off by their rounding, also where it is near 0. (What a mask puts
    in the place of -inf is no such term.)
    """
    if in_float32 := np.float32 in (got.dtype, want.dtype):
        rtol, atol = max(rtol, min(1e5 * rtol, 1e-4)), max(atol, min(1e5 * atol, 1e-6))
    got, numbers = (array.astype(np.result_type(array, 1.0), copy=False) for array in (got, want))
    # The lowest and the largest number are further apart than a float can say, and inf - inf is NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(numbers)
        if want.dtype.kind == "f":
            largest = float(sizes.max(initial=0, where=sizes < MASKING))
            atol = max(
                atol, ROUNDINGS * float(np.finfo(np.float32 if in_float32 else np.float64).eps) * largest
            )
        near = np.abs(got - numbers) <= atol + rtol * sizes
    return (near & (sizes < np.inf)) | (got == numbers) | ((got != got) & (numbers != numbers))


def has_digits(value: Any) -> bool:
    """Whether a value is made of numbers that are not whole: two answers that agree in one agree by no chance."""
    if isinstance(value, tuple | list):
        return any(map(has_digits, value))
    if isinstance(value, dict):
        return any(map(has_digits, value.values()))
    if not isinstance(value, Tensor | np.ndarray | float | np.floating):
        return False
    numbers = as_array(value)
    return numbers.dtype.kind == "f" and bool((numbers[np.isfinite(numbers)] % 1 != 0).any())


def evidence(came: Any, want: Any) -> int:
    """How much a wrong value says: 3 for numbers with digits, 2 for whole ones, 1 for a word, or yes and no."""
    return 3 if has_digits(came) or has_digits(want) else 1 if isinstance(want, bool | str) else 2


def digits_that_differ(want: Any, got: Any) -> tuple[str, str]:
    """Two numbers that differ, what is wanted first, with as many digits as it takes to see it."""
    for digits in (6, 10):
        texts = [f"{number + 0.0:.{digits}g}" for number in (want, got)]  # + 0.0: no -0
        if texts[0] != texts[1]:
            return texts[0], texts[1]
    return f"{want:.17g}", f"{got:.17g}"


def members(value: Any) -> Any:
    """Of an array in the place of several values, what it has along its first axis; else the value."""
    return tuple(value) if isinstance(value, np.ndarray) and value.ndim else value


def as_array(value: Any) -> np.ndarray:
    """A tensor's or an array's numbers, or a number, as a NumPy array, of no class that was made from it."""
    return np.asarray(value.numpy() if isinstance(value, Tensor) else value)


def _keys(values: dict[Any, Any]) -> str:
    return ", ".join(sorted(map(str, values)))


def described(value: Any) -> str:
    """What kind of thing a value is."""
    if isinstance(value, Tensor):
        return f"a Tensor of shape {value.shape}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple | list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__[:100].lstrip("_") or "value"
    try:
        text = _SHORT.repr(value)
    except (
        SystemExit,
        ValueError,
    ):  # a number of thousands of digits; what else a class raises, reprlib takes care of
        text = ""
    if not text or " at 0x" in text:  # an address says nothing
        return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
    return text


def equal(before: Any, after: Any) -> bool:
    """Whether an argument is what it was; of what it cannot look into, it supposes so."""
    if type(before) is not type(after):
        return False
    if isinstance(before, Tensor | np.ndarray):
        one, other = as_array(before), as_array(after)
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(equal, before, after))
    if isinstance(before, dict):
        return equal(list(before), list(after)) and equal(list(before.values()), list(after.values()))
    return not isinstance(before, str | int | float | set) or before is after or before == after
