"""What an exercise's check does: try an answer on many inputs, and name the mistake behind a wrong one.

A check knows a right answer and the typical wrong ones (`Misconception`). A wrong answer that gives, on every input,
what a typical wrong one gives has that mistake in it: the learner is told its name, not only that a number is off.
What is wrong in no known way is described: which input, what came, what was expected.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.bert.files import SaveError, write_atomic
from minigrad.course.show import Source
from minigrad.tensor import Tensor

__all__ = ["EXERCISES", "Case", "Exercise", "Misconception", "progress"]

PROGRESS_FILE = ".progress.json"  # in the folder of the notebook
NOT_ATTEMPTED = "not attempted yet: replace the `...` above, run that cell, then this one"

EXERCISES: dict[str, Exercise] = {}  # by name, in the order of the course


@dataclass(frozen=True)
class Case:
    """One input: the arguments, and what is special about it (shown to the learner)."""

    name: str
    arguments: tuple[Any, ...]

    def copies(self) -> tuple[Any, ...]:
        """The arguments for a call that may spoil them."""
        return tuple(_copy(argument) for argument in self.arguments)


@dataclass(frozen=True)
class Misconception:
    """A typical wrong answer, and what to tell whoever gave it."""

    message: str
    wrong: Callable[..., Any]


@dataclass
class Exercise:
    """A check to call on an answer, `check.softmax(softmax)`, with hints and a solution.

    name: of the function asked for. chapter: its number. difficulty: 1 to 3. minutes: about how long. answer: a right
    one, shown by `solution()`. cases: from a random generator to the inputs. misconceptions: what is recognised, the
    more special first. hints: the gentlest first. rtol, atol: how close the numbers must be in float64; in float32
    10⁵ times as far.
    """

    name: str
    chapter: int
    difficulty: int
    minutes: int
    answer: Callable[..., Any]
    cases: Callable[[np.random.Generator], Iterable[Case]]
    misconceptions: list[Misconception]
    hints: list[str]
    rtol: float = 1e-9
    atol: float = 1e-11
    _hints_given: int = field(default=0, init=False)
    _attempted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.name in EXERCISES:
            raise ValueError(f"there are two exercises called {self.name}")
        EXERCISES[self.name] = self

    def __repr__(self) -> str:
        return (
            f"check.{self.name}: chapter {self.chapter}, difficulty {self.difficulty}, {self.minutes} minutes"
        )

    # --- For the learner ---------------------------------------------------------------------------------

    def __call__(self, answer: Callable[..., Any]) -> bool:
        """Try `answer` on all cases and say what came of it; returns whether it is right."""
        if not callable(answer):
            print(f"{self.name}: expected the function, got {answer!r}. Pass it without calling it.")
            return False
        cases = list(self.cases(np.random.default_rng(int(os.environ.get("MINIGRAD_CHECK_SEED", "0")))))
        outcomes: list[Any] = []
        for case in cases:
            outcomes.append(_Outcome(answer, case))
            if outcomes[-1].not_attempted:
                print(f"{self.name}: {NOT_ATTEMPTED}")
                return False
        self._attempted = True
        expected = [self.answer(*case.copies()) for case in cases]
        wrong = [
            i for i, outcome in enumerate(outcomes) if outcome.complaint(expected[i], self.rtol, self.atol)
        ]
        if not wrong:
            shapes = ", ".join(dict.fromkeys(case.name for case in cases))
            print(f"{self.name}: right. {len(cases)} cases: {shapes}.")
            _record(self.name, solved=True)
            return True
        first = wrong[0]
        complaint = outcomes[first].complaint(expected[first], self.rtol, self.atol)
        print(f"{self.name}: not yet. {len(cases) - len(wrong)} of {len(cases)} cases are right.")
        print(textwrap.fill(f"On {cases[first].name}: {complaint}", 100))
        message = self._recognise(cases, expected, outcomes)
        if message:
            print(textwrap.fill(message, 100))
        print(f"For a hint: check.{self.name}.hint()")
        _record(self.name, solved=False)
        return False

    def hint(self) -> None:
        """Print the next hint; after the last one, say how to see a solution."""
        if self._hints_given == len(self.hints):
            print(f"No more hints. After an attempt, check.{self.name}.solution() shows one way.")
            return
        self._hints_given += 1
        print(
            textwrap.fill(
                f"Hint {self._hints_given} of {len(self.hints)}: {self.hints[self._hints_given - 1]}", 100
            )
        )

    def solution(self) -> Source | None:
        """One right answer, after an attempt."""
        if not self._attempted:
            print(f"First try: run check.{self.name}({self.name}) on an answer of your own.")
            return None
        return Source(self.answer)

    # --- Finding the mistake -----------------------------------------------------------------------------

    def _recognise(self, cases: list[Case], expected: list[Any], outcomes: list[Any]) -> str | None:
        """The message of the first misconception that answers every case as the learner's function did."""
        for misconception in self.misconceptions:
            theirs = [_Outcome(misconception.wrong, case) for case in cases]
            if all(
                mine.same_as(other, self.rtol, self.atol)
                for mine, other in zip(outcomes, theirs, strict=True)
            ):
                return misconception.message
        return None


class _Outcome:
    """What a function did with a case: its value, or the error it raised, and whether it changed its input."""

    def __init__(self, function: Callable[..., Any], case: Case) -> None:
        given = case.copies()
        self.value: Any = None
        self.error: Exception | None = None
        try:
            with np.errstate(all="ignore"):  # NaN and infinity are judged below
                self.value = function(*given)
        except Exception as error:
            self.error = error
        self.changed = [
            i
            for i, (before, after) in enumerate(zip(case.arguments, given, strict=True))
            if not _equal(before, after)
        ]

    @property
    def not_attempted(self) -> bool:
        return isinstance(self.error, NotImplementedError) or (
            self.error is None and (self.value is None or self.value is Ellipsis)
        )

    def complaint(self, expected: Any, rtol: float, atol: float) -> str | None:
        """What is wrong with it, or None."""
        if self.error is not None:
            return f"it raised {type(self.error).__name__}: {self.error}"
        if self.changed:
            return f"it changes its argument number {self.changed[0] + 1}; whoever called it still needs that"
        return _difference(self.value, expected, rtol, atol)

    def same_as(self, other: _Outcome, rtol: float, atol: float) -> bool:
        """Whether both did the same: the same kind of error, or the same value."""
        if self.error is not None or other.error is not None:
            return type(self.error) is type(other.error)
        return self.changed == other.changed and _difference(self.value, other.value, rtol, atol) is None


def _difference(value: Any, expected: Any, rtol: float, atol: float) -> str | None:
    """How `value` differs from `expected`, in words; None if it does not."""
    if isinstance(expected, tuple):
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            return f"it should return {len(expected)} values, and returned {_described(value)}"
        for number, (one, other) in enumerate(zip(value, expected, strict=True), 1):
            if difference := _difference(one, other, rtol, atol):
                return f"value {number} of {len(expected)}: {difference}"
        return None
    if isinstance(expected, str | bool):
        return None if value == expected else f"it should return {expected!r}, and returned {value!r}"
    if isinstance(expected, Tensor) != isinstance(value, Tensor):
        return f"it should return {_described(expected)}, and returned {_described(value)}"
    try:
        got, want = _array(value), _array(expected)
    except (TypeError, ValueError):
        return f"it should return {_described(expected)}, and returned {_described(value)}"
    if got.shape != want.shape:
        return f"it should return shape {want.shape}, and returned shape {got.shape}"
    if isinstance(expected, Tensor | np.ndarray) and got.dtype != want.dtype:
        return f"it should return {want.dtype}, as its input is, and returned {got.dtype}"
    if got.dtype.kind not in "fiub":
        return f"it should return numbers, and returned {_described(value)}"
    slack = 1e5 if want.dtype == np.float32 else 1
    if np.allclose(got, want, rtol=rtol * slack, atol=atol * slack):
        return None
    if not np.isfinite(got).all():
        return f"there are {int((~np.isfinite(got)).sum())} NaN or infinite entries among {got.size}"
    return _where_it_differs(got, want)


def _where_it_differs(got: np.ndarray, want: np.ndarray) -> str:
    if not want.ndim:
        return f"it should return {want:.6g}, and returned {got:.6g}"
    distance = np.abs(got.astype(float) - want.astype(float))
    place = tuple(int(i) for i in np.unravel_index(distance.argmax(), distance.shape))
    index = ", ".join(map(str, place))
    return f"the entry [{index}] should be {want[place]:.6g}, and is {got[place]:.6g}"


def _array(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a Tensor of shape {value.shape}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _copy(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return Tensor(argument.numpy().copy(), requires_grad=argument.requires_grad)
    return argument.copy() if isinstance(argument, np.ndarray | list | dict) else argument


def _equal(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor | np.ndarray):
        return np.array_equal(_array(before), _array(after), equal_nan=True)
    return callable(before) or bool(before == after)


# --- Progress --------------------------------------------------------------------------------------------


def _record(name: str, solved: bool) -> None:
    """Count an attempt in the notebook's folder; what was solved stays solved."""
    if os.environ.get("MINIGRAD_PROGRESS") == "off":
        return
    known = _known()
    entry = known.setdefault(name, {"attempts": 0, "solved": False})
    entry["attempts"] += 1
    entry["solved"] = entry["solved"] or solved
    try:
        write_atomic(Path(PROGRESS_FILE), (json.dumps(known, indent=2) + "\n").encode())
    except SaveError as error:
        print(f"(your progress could not be kept: {error})")


def _known() -> dict[str, dict[str, Any]]:
    try:
        return dict(json.loads(Path(PROGRESS_FILE).read_text()))
    except (OSError, ValueError):
        return {}


def progress() -> None:
    """Print which exercises are solved and which were tried."""
    known = {} if os.environ.get("MINIGRAD_PROGRESS") == "off" else _known()
    print(f"{'chapter':>7}  {'exercise':24}{'difficulty':>10}{'minutes':>9}  state")
    for name, exercise in EXERCISES.items():
        entry = known.get(name, {"attempts": 0, "solved": False})
        tries = f"{entry['attempts']} attempt{'s' if entry['attempts'] != 1 else ''}"
        state = f"solved, {tries}" if entry["solved"] else tries if entry["attempts"] else "-"
        print(f"{exercise.chapter:7}  {name:24}{exercise.difficulty:10}{exercise.minutes:9}  {state}")
    solved = sum(bool(known.get(name, {}).get("solved")) for name in EXERCISES)
    print(f"{solved} of {len(EXERCISES)} solved")
