"""What expressions give, case by case, and whether it is the same in another layout."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_course.check.differences import as_array
from bert_course.check.follow import Place
from minigrad.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Quantity:
    """What one expression gives: by case its values, and what identifies them in any layout."""

    place: Place
    values: list[list[Any]]
    print: np.ndarray

    @classmethod
    def of(cls, place: Place, values: list[list[Any]]) -> Quantity:
        """From the values, by case."""
        return cls(place, values, np.array([fingerprint(case) for case in values]))

    def is_like(self, other: Quantity) -> bool:
        """Whether both may give the same numbers on each case that has both."""
        both = ~np.isnan(self.print[:, 0]) & ~np.isnan(other.print[:, 0])
        return bool(both.any()) and alike(self.print[both], other.print[both])

    def is_same(self, other: Quantity) -> bool:
        """Whether both give the same numbers, in one layout on all cases."""
        if not self.is_like(other):
            return False
        cases = [both for both in zip(other.values, self.values, strict=True) if all(both)]
        layouts = [dict(laid(*both)) for both in cases]
        return any(
            all(name in one and near(got, one[name]) for (_, got), one in zip(cases, layouts, strict=True))
            for name in layouts[0]
        )


def distinct(quantities: Iterable[Quantity]) -> list[Quantity]:
    """Each once: what is of another type, or dtype, stands in other places."""
    found: list[Quantity] = []
    for one in quantities:
        if not any(
            one.is_like(other) and _kinds(one) == _kinds(other) and near(one.values, other.values)
            for other in found
        ):
            found.append(one)
    return found


def _kinds(quantity: Quantity) -> list[str]:
    return [kind(value) for case in quantity.values for value in case]


def fingerprint(case: list[Any]) -> tuple[float, float, float]:
    """How many numbers there are, their sum, and the sum of their squares; NaN where there was nothing."""
    if not case:
        return np.nan, np.nan, np.nan
    numbers = _numbers(case)
    if numbers is None:
        with suppress(
            Exception
        ):  # a whole number of thousands of digits, or what a class of the learner's raises
            return -1.0, float(hash(repr(case)) % 10**9), 0.0
        return -2.0, float(id(case)), 0.0
    finite = np.nan_to_num(numbers, nan=7e7, posinf=1e12, neginf=-1e12).clip(-1e12, 1e12)
    return float(finite.size), float(finite.sum()), float((finite**2).sum())


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two fingerprints, or rows of them, are the same but for rounding."""
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9))


def _numbers(value: Any) -> np.ndarray | None:
    """All numbers of a value in a row; None for what has others in it."""
    if isinstance(value, np.ndarray | Tensor | int | float | np.number | np.bool_):
        with suppress(OverflowError, ValueError, TypeError):
            return np.asarray(as_array(value), float).ravel()
    elif isinstance(value, list | tuple):
        parts = [_numbers(one) for one in value]
        if all(part is not None for part in parts):
            return np.concatenate([np.zeros(0), *parts])
    return None


def kind(value: Any) -> str:
    """What a value is, as far as it matters for what may stand in its place."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, np.ndarray):
        return "mask" if value.dtype.kind == "b" else "array"
    if isinstance(value, bool | np.bool_):
        return "flag"
    if isinstance(value, int | float | np.number):
        return "number"
    return "list" if isinstance(value, list | tuple) else type(value).__name__


HUGE = 10_000  # times as large
ALSO = {
    "array": ("list", "tensor"),
    "list": ("array",),
    "number": ("array",),
    "tensor": ("number",),
    "mask": ("array",),
}


def may_be(got: list[Any], want: list[Any], strictly: bool) -> bool:
    """Whether what was got may be meant to be what is wanted."""
    if not want:
        return False
    one, other = kind(got[0]), kind(want[0])
    if one != other and (strictly or other not in ALSO.get(one, ())):
        return False
    if (
        isinstance(got[0], int)
        and isinstance(want[0], int | float)
        and abs(want[0]) > HUGE * max(1, abs(got[0]))
    ):
        return False  # as a size, or a number of steps, it would have no end
    shapes: list[tuple[int, ...]] = [getattr(value, "shape", ()) for value in (got[0], want[0])]
    if strictly or len(want) != len(got) or () in shapes or len(shapes[0]) == len(shapes[1]):
        return not strictly or shapes[0] == shapes[1]
    with suppress(ValueError):
        return bool(np.broadcast_shapes(*shapes) is not None)
    return bool(np.prod(shapes[0]) == np.prod(shapes[1]))


def near(got: Any, want: Any) -> bool:
    """Whether two values are the same numbers, but for their rounding."""
    if isinstance(got, list | tuple) and isinstance(want, list | tuple):
        return len(got) == len(want) and all(map(near, got, want))
    one, other = _numbers(got), _numbers(want)
    if one is None or other is None or isinstance(got, list | tuple) or isinstance(want, list | tuple):
        with suppress(Exception):  # whatever a class of the learner's raises
            return type(got) is type(want) and bool(got == want)
        return False
    same_shape = np.shape(as_array(got)) == np.shape(as_array(want))
    return same_shape and bool(np.allclose(one, other, rtol=1e-5, atol=1e-7, equal_nan=True))


def laid(want: list[Any], got: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """A quantity's values, as often as a place has some, in the layouts that they may have there."""
    if not got or not want:
        return
    whole, mine = want[0], got[0]
    arrays = all(isinstance(one, np.ndarray) for one in want)
    if len(want) == len(got):
        yield "as it is", want
        if isinstance(whole, np.ndarray | Tensor) and isinstance(mine, np.ndarray | Tensor):
            yield from _turned(want, mine.shape)
        if arrays and all(isinstance(one, np.ndarray) for one in got):
            pairs = list(zip(want, got, strict=True))
            if whole.ndim < mine.ndim:
                with suppress(ValueError):
                    yield "repeated", [np.broadcast_to(a, b.shape) for a, b in pairs]
            if whole.ndim != mine.ndim and all(a.size == b.size for a, b in pairs):
                yield "reshaped", [a.reshape(b.shape) for a, b in pairs]
    elif len(want) == 1 and (isinstance(whole, list | tuple) or (arrays and whole.ndim)):
        if len(whole) == len(got):
            yield "rows", list(whole)
    elif len(got) == 1 and isinstance(mine, np.ndarray):
        with suppress(ValueError, TypeError):
            yield "stacked", [np.stack([as_array(one) for one in want])]


def _turned(want: list[Any], shape: tuple[int, ...]) -> Iterator[tuple[str, list[Any]]]:
    """With the axes in another order that has this shape."""
    whole = want[0]
    if whole.ndim != len(shape) or any(getattr(one, "shape", None) != whole.shape for one in want):
        return
    for order in itertools.islice(itertools.permutations(range(whole.ndim)), 1, 24):
        moved = [axis for axis, old in enumerate(order) if axis != old]
        axes = order if isinstance(whole, np.ndarray) else moved  # of a Tensor, two are exchanged
        fits = tuple(whole.shape[axis] for axis in order) == shape
        if fits and (isinstance(whole, np.ndarray) or len(moved) == 2):
            yield f"axes {order}", [one.transpose(*axes) for one in want]
