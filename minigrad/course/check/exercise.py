"""What an exercise's check does: try an answer on many inputs, and name the mistake behind a wrong one.

A check knows a right answer and the typical wrong ones (`Misconception`). A wrong answer that gives, on every input,
what a typical wrong one gives has that mistake in it: the learner is told its name, not only that a number is off.
What is wrong in no known way is described: which input, what came, what was expected.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import os
import reprlib
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.course.show import Source
from minigrad.files import write_atomic
from minigrad.tensor import Tensor

__all__ = ["EXERCISES", "Case", "Exercise", "Misconception", "progress"]

PROGRESS_FILE = ".progress.json"  # in the folder of the notebook
WIDTH = 100  # of what is printed, in characters
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

    def __call__(self, answer: Callable[..., Any]) -> None:
        """Try `answer` on all cases and say what came of it."""
        self.judge(answer)

    @np.errstate(all="ignore")  # NaN and infinity are judged below
    def judge(self, answer: Callable[..., Any]) -> bool:
        """The same, and return whether it is right."""
        if not callable(answer):
            print(f"{self.name}: pass the function itself, check.{self.name}({self.name}).")
            print(f"This is {_described(answer)}.")
            return False
        seed = os.environ.get("MINIGRAD_CHECK_SEED", "0")
        if not seed.isdecimal():
            print(f"{self.name}: MINIGRAD_CHECK_SEED should be a whole number, and is {seed!r}.")
            return False
        cases = list(self.cases(np.random.default_rng(int(seed))))
        outcomes: list[_Outcome] = []
        for case in cases:
            outcomes.append(_Outcome(answer, case))
            if outcomes[-1].not_attempted:
                print(f"{self.name}: {NOT_ATTEMPTED}")
                return False
        self._attempted = True
        expected = [self.answer(*case.copies()) for case in cases]
        complaints = [
            f"On {case.name}: {complaint}"
            for case, outcome, right in zip(cases, outcomes, expected, strict=True)
            if (complaint := outcome.complaint(right, self.rtol, self.atol))
        ]
        if not complaints:
            names = "; ".join(dict.fromkeys(case.name for case in cases))
            _say(f"{self.name}: right. {len(cases)} cases: {names}.")
            _record(self.name, solved=True)
            return True
        print(f"{self.name}: not yet. {len(cases) - len(complaints)} of {len(cases)} cases are right.")
        _say(complaints[0])
        if message := self._recognise(cases, outcomes):
            _say(message)
        print(f"For a hint: check.{self.name}.hint()")
        _record(self.name, solved=False)
        return False

    def hint(self) -> None:
        """Print the next hint; after the last one, say how to see a solution."""
        if self._hints_given == len(self.hints):
            print(f"No more hints. After an attempt, check.{self.name}.solution() shows one way.")
            return
        text = self.hints[self._hints_given]
        self._hints_given += 1
        _say(f"Hint {self._hints_given} of {len(self.hints)}: {text}")

    def solution(self) -> Source | None:
        """One right answer, after an attempt."""
        if not self._attempted:
            print(f"First try: run check.{self.name}({self.name}) on an answer of your own.")
            return None
        return Source(self.answer)

    # --- Finding the mistake -----------------------------------------------------------------------------

    def _recognise(self, cases: list[Case], outcomes: list[_Outcome]) -> str | None:
        """The message of the first misconception that answers every case as the learner's function did."""
        for misconception in self.misconceptions:
            if all(
                outcome.same_as(_Outcome(misconception.wrong, case), self.rtol, self.atol)
                for outcome, case in zip(outcomes, cases, strict=True)
            ):
                return misconception.message
        return None


def _say(text: str) -> None:
    """Print a paragraph in lines that fit a page."""
    print(textwrap.fill(text, WIDTH, break_on_hyphens=False))


class _Outcome:
    """What a function did with a case: its value, or the error it raised, and whether it changed its input."""

    def __init__(self, function: Callable[..., Any], case: Case) -> None:
        given = case.copies()
        self.function = function
        self.value: Any = None
        self.error: Exception | None = None
        try:
            with warnings.catch_warnings(action="ignore"):
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
        """Whether the place for the answer is still empty, which can show as a missing name further down."""
        if isinstance(self.error, NotImplementedError) or self.value is Ellipsis:
            return True
        missing = isinstance(self.error, NameError) or "ellipsis" in str(self.error)
        return (missing or (self.value is None and self.error is None)) and _has_gap(self.function)

    def complaint(self, expected: Any, rtol: float, atol: float) -> str | None:
        """What is wrong with it, or None."""
        if self.error is not None:
            return f"it raised {_told(self.error, self.function)}"
        if self.changed:
            return (
                f"it changes its argument number {self.changed[0] + 1}, which the caller still needs. "
                "Put the result into a new array: x = x - 1 makes one, x -= 1 does not."
            )
        if self.value is None:
            return "it returned None. Is there a `return` before the result?"
        return _difference(self.value, expected, rtol, atol)

    def same_as(self, other: _Outcome, rtol: float, atol: float) -> bool:
        """Whether both did the same: the same kind of error, or the same value, whatever its dtype."""
        if self.error is not None or other.error is not None:
            return type(self.error) is type(other.error)
        if self.changed != other.changed:
            return False
        return _difference(self.value, other.value, rtol, atol, any_dtype=True) is None


def _has_gap(function: Callable[..., Any]) -> bool:
    """Whether its source has a `...` in the place of a statement or a value, or does nothing at all."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # no source, or a piece of a line
        return False
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    values = [getattr(statement, "value", None) for statement in statements]
    if any(isinstance(value, ast.Constant) and value.value is Ellipsis for value in values):
        return True
    return all(
        isinstance(statement, ast.FunctionDef | ast.Pass) or isinstance(value, ast.Constant)  # a docstring
        for statement, value in zip(statements, values, strict=True)
    )


def _told(error: Exception, function: Callable[..., Any]) -> str:
    """The error on one line, with the line of the learner's own code that led to it."""
    text = textwrap.shorten(f"{type(error).__name__}: {error}".rstrip(": "), 300, placeholder=" …")
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{text}. The line is: {own[-1].line}" if own and own[-1].line else text


def _difference(value: Any, expected: Any, rtol: float, atol: float, any_dtype: bool = False) -> str | None:
    """How `value` differs from `expected`, in words; None if it does not."""
    differs = f"it should return {_described(expected)}, and returned {_described(value)}"
    if isinstance(expected, tuple | list):
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            return f"it should return {len(expected)} values, and returned {_described(value)}"
        for number, (one, other) in enumerate(zip(value, expected, strict=True), 1):
            if difference := _difference(one, other, rtol, atol, any_dtype):
                return f"value {number} of {len(expected)}: {difference}"
        return None
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            return differs
        if set(value) != set(expected):
            return f"it should have the keys {_keys(expected)}, and has {_keys(value)}"
        for key, other in expected.items():
            if difference := _difference(value[key], other, rtol, atol, any_dtype):
                return f"for {key}, {difference}"
        return None
    if isinstance(expected, str | bool):
        return None if isinstance(value, str | bool | np.bool_) and value == expected else differs
    is_array = isinstance(expected, Tensor | np.ndarray)
    if isinstance(value, Tensor) != isinstance(expected, Tensor):
        return differs
    if is_array and not isinstance(value, Tensor | np.ndarray):
        return differs
    try:
        got, want = _array(value), _array(expected)
    except Exception:  # whatever a foreign type raises
        return differs
    if got.dtype.kind not in "fiub" or (got.ndim and not is_array):
        return differs
    if got.shape != want.shape:
        return f"it should return shape {want.shape}, and returned shape {got.shape}"
    if is_array and got.dtype != want.dtype and not any_dtype:
        return f"it should return {want.dtype}, and returned {got.dtype}"
    slack = 1e5 if np.float32 in (got.dtype, want.dtype) else 1
    wrong = ~np.isclose(got, want, rtol=rtol * slack, atol=atol * slack, equal_nan=True)
    if not wrong.any():
        return None
    if not want.ndim:
        return "it should return {}, and returned {}".format(*_apart(want[()], got[()]))
    if unbounded := int((wrong & ~np.isfinite(got)).sum()):
        return f"{unbounded} of {got.size} entries are NaN or infinite"
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    wanted, came = _apart(want[place], got[place])
    count = f"{int(wrong.sum())} of {got.size} entries are off"
    return f"{count}. The entry [{', '.join(map(str, place))}] should be {wanted}, and is {came}"


def _apart(want: Any, got: Any) -> tuple[str, str]:
    """Two numbers that differ, with as many digits as it takes to see it."""
    for digits in (6, 10):
        if f"{want:.{digits}g}" != f"{got:.{digits}g}":
            return f"{want:.{digits}g}", f"{got:.{digits}g}"
    return f"{want:.17g}", f"{got:.17g}"


def _array(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def _keys(values: dict[Any, Any]) -> str:
    return ", ".join(sorted(map(str, values)))


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a Tensor of shape {value.shape}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, tuple | list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return reprlib.repr(value)


def _copy(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return Tensor(argument.numpy().copy(), requires_grad=argument.requires_grad)
    return copy.deepcopy(argument)


def _equal(before: Any, after: Any) -> bool:
    """Whether an argument is what it was; of what it cannot look into, it supposes so."""
    if type(before) is not type(after):
        return False
    if isinstance(before, Tensor | np.ndarray):
        one, other = _array(before), _array(after)
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(_equal, before, after))
    if isinstance(before, dict):
        return _equal(list(before), list(after)) and _equal(list(before.values()), list(after.values()))
    return not isinstance(before, str | int | float | set) or before is after or before == after


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
    except OSError as error:
        reason = error.__cause__ or error
        print(f"(Your progress could not be kept in {PROGRESS_FILE}: {getattr(reason, 'strerror', reason)}.)")


def _known() -> dict[str, dict[str, Any]]:
    """The record so far; none if the file is missing or damaged."""
    try:
        return {
            name: {"attempts": int(entry["attempts"]), "solved": bool(entry["solved"])}
            for name, entry in json.loads(Path(PROGRESS_FILE).read_text()).items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def progress(chapter: int | None = None) -> None:
    """Print which exercises of a chapter, or of all, are solved and which were tried."""
    known = {} if os.environ.get("MINIGRAD_PROGRESS") == "off" else _known()
    exercises = [one for one in EXERCISES.values() if chapter in (None, one.chapter)]
    print(f"{'chapter':>7}  {'exercise':24}{'difficulty':>10}{'minutes':>9}  state")
    for exercise in exercises:
        entry = known.get(exercise.name, {"attempts": 0, "solved": False})
        tries = f"{entry['attempts']} attempt{'s' if entry['attempts'] != 1 else ''}"
        state = f"solved, {tries}" if entry["solved"] else tries if entry["attempts"] else "-"
        print(
            f"{exercise.chapter:7}  {exercise.name:24}{exercise.difficulty:10}{exercise.minutes:9}  {state}"
        )
    solved = sum(bool(known.get(exercise.name, {}).get("solved")) for exercise in exercises)
    print(f"{solved} of {len(exercises)} solved")
