"""What an answer did with one input: its value or its error, what it changed, and what a probe saw."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bert_course.check.differences import as_array, difference, equal
from bert_course.check.errors import text_of
from minigrad.tensor import Tensor


class Unfit(Exception):
    """What an answer returned cannot be looked at; the text says why, after "it"."""


@dataclass(frozen=True)
class Probe:
    """What an answer does besides what it returns: looked at around each call, and told in a sentence.

    before: from the arguments to whatever `after` needs. after: from that, what was returned, and the arguments as
    they are now, to a complaint, or None. Arguments come as a mapping by name. decides: what it says of a value is the
    verdict, where the right answer's is one of many.
    """

    before: Callable[[Mapping[str, Any]], Any]
    after: Callable[[Any, Any, Mapping[str, Any]], str | None]
    decides: bool = False


def temporaries(
    of: Callable[[Any, Mapping[str, Any]], Any], called: str, allowed: str, most: float = 0, beside: int = 0
) -> Probe:
    """How much memory an answer has at one time beyond what there was, in arrays as large as `of(returned, arguments)`.

    called: what that array is in the sentence. allowed: the sentence's end. most: how many are no mistake. beside:
    bytes that do not count, for NumPy's own buffers: some 200 kB where a ufunc casts; smaller arrays are not measured.
    """

    def before(arguments: Mapping[str, Any]) -> tuple[bool, int]:
        running = tracemalloc.is_tracing()
        if not running:
            tracemalloc.start()
        tracemalloc.reset_peak()
        return running, tracemalloc.get_traced_memory()[0]

    def after(start: tuple[bool, int], returned: Any, arguments: Mapping[str, Any]) -> str | None:
        running, bytes_before = start
        peak = tracemalloc.get_traced_memory()[1] - bytes_before
        if not running:
            tracemalloc.stop()
        like = of(returned, arguments)
        if not isinstance(like, np.ndarray) or not like.size or like.nbytes < beside:
            return None
        if peak - beside <= (most + 0.15) * like.nbytes:
            return None
        count = peak / like.nbytes
        whole = count >= 0.9 and round(count) > most
        made = _arrays(round(count), called) if whole else f"{count:.1f} times the memory of {called}"
        return f"it takes {made} at one time; {allowed}."

    return Probe(before, after)


def _arrays(count: int, called: str) -> str:
    return f"{count} arrays as large as {called}" if count > 1 else f"an array as large as {called}"


Observed = Callable[[Any, Mapping[str, Any]], Any]
NOT_CALLED = "it never calls `{0}`. Choose what goes into it, and return what the page's `{0}` makes of that."


@contextlib.contextmanager
def _counting_calls(function: Callable[..., Any], given: str) -> Iterator[list[int]]:
    """How often the function of this name is called that the answer sees, in a list; an empty one if there is none."""
    scope = getattr(function, "__globals__", {})
    original = scope.get(given)
    if not callable(original):
        yield []
        return
    calls = [0]

    def counted(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        return original(*arguments, **named)

    scope[given] = counted
    try:
        yield calls
    finally:
        scope[given] = original


class Outcome:
    """What `function` did with `arguments`.

    arguments: made for this call alone. unchanged: the same once more, to see what the call changed. into: the name
    of the argument that takes the result, if it is not returned. probes: what else to look at. given: the name of a
    function that the page gives and that has to be called; where the answer knows none of this name, nobody asks.
    observed: from what was returned and the arguments to what is held against the right answer's; raises Unfit.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        unchanged: Mapping[str, Any],
        into: str = "",
        probes: Sequence[Probe] = (),
        given: str = "",
        observed: Observed | None = None,
    ) -> None:
        self.function = function
        self.returned: Any = None
        self.value: Any = arguments[into] if into else None
        self.error: BaseException | None = None
        self.unfit = ""
        self._arguments, self._unchanged, self._into = arguments, unchanged, into
        self._members = {name: _members(argument) for name, argument in arguments.items()}
        seen = [(probe, probe.before(arguments)) for probe in probes]
        try:
            # An answer may change NumPy's settings: they end with the call.
            with (
                warnings.catch_warnings(action="ignore"),
                np.errstate(all="ignore"),
                _counting_calls(function, given) as calls,
            ):
                self.returned = function(*arguments.values())
                self.value = arguments[into] if into else self.returned
                if observed and (into or self.returned is not None) and self.returned is not Ellipsis:
                    self.value = observed(self.returned, arguments)
        except Unfit as unfit:
            self.unfit = self.value = str(unfit)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # exit() must not end the learner's kernel
            self.error = error
        found = []
        self.decided = False
        for probe, start in seen:
            # What is returned may be anything; that it is wrong is told elsewhere.
            with contextlib.suppress(Exception):
                found.append(probe.after(start, self.returned, arguments))
                self.decided = self.decided or probe.decides
        if calls == [0]:
            found.append(NOT_CALLED.format(given))
        self.seen = [sentence for sentence in found if sentence] if self.error is None else []
        self.untouched = not into or equal(arguments[into], unchanged[into])

    @cached_property
    def changed(self) -> dict[str, str]:
        """What became of the arguments that it changed. (To look takes longer than most answers.)"""
        return {
            name: _how_changed(name, before, self._arguments[name], self._members[name], self._into)
            for name, before in self._unchanged.items()
            if name != self._into and not equal(before, self._arguments[name])
        }

    @property
    def not_attempted(self) -> bool:
        """Whether the place for the answer is still empty, which can show as a missing name further down."""
        if isinstance(self.error, NotImplementedError) or self.returned is Ellipsis:
            return True
        missing = isinstance(self.error, NameError) or (self.error and "ellipsis" in text_of(self.error))
        nothing = self.returned is None and self.error is None and (self.untouched or self.value is None)
        return bool(missing or nothing) and has_gap(self.function)

    def complaint(self, expected: Any, rtol: float, atol: float) -> str | None:
        """What is wrong with it, or None."""
        if self.error is not None:
            return f"it raised {_in_a_line(self.error, self.function)}"
        if self.changed:
            return next(iter(self.changed.values()))
        if self.value is None:
            return "it returned None. Is there a `return` before the result?"
        if self.unfit:
            return f"it {self.unfit}"
        found = None if self.decided else difference(self.value, expected, rtol, atol)
        return found or next(iter(self.seen), None)

    def same_value(self, other: Outcome, rtol: float, atol: float) -> bool:
        """Whether both gave the same value, whatever its dtype, or the same kind of error."""
        if self.error is not None or other.error is not None:
            return type(self.error) is type(other.error)
        if self.value is None or other.value is None:
            return self.value is other.value
        value = self.value
        if isinstance(other.value, np.ndarray) and isinstance(value, list | tuple):
            try:  # a list of numbers for an array has been told; what the numbers are can be told too
                value = np.asarray(value)
            except ValueError:
                return False
        return difference(value, other.value, rtol, atol) is None

    def same_effects(self, other: Outcome) -> bool:
        """Whether both changed the same arguments in the same way, and the probes said the same of them."""
        return self.changed == other.changed and self.seen == other.seen


def _members(argument: Any) -> list[Any]:
    """The things in a list, tuple or dict, to see later whether they are still there."""
    if isinstance(argument, dict):
        return list(argument.values())
    return list(argument) if isinstance(argument, list | tuple) else []


def _how_changed(name: str, before: Any, after: Any, members: list[Any], into: str) -> str:
    """What became of an argument, and how not to do that to it, by its type."""
    change = f"it changes `{name}`, which the caller still needs"
    if isinstance(after, Tensor | np.ndarray):
        one, other = as_array(before), as_array(after)
        if one.shape == other.shape and one.dtype.kind == "f" and np.allclose(one, other, 1e-6, 1e-9):
            return (
                f"it leaves a rounding error in `{name}`: adding and subtracting again does not bring back every bit. "
                "Keep the old entry and write it back, or work on a copy."
            )
        if one.shape != other.shape:
            return f"{change}: its shape is {other.shape} now. x.reshape(…) gives a new view, x.shape = … changes x itself."
        if into:
            return f"{change}. Write into `{into}` alone."
        return f"{change}. Put the result into a new array: x = x - 1 makes one, x -= 1 does not."
    if isinstance(after, list | dict):
        kind = type(after).__name__
        if len(after) != len(before):
            verb = "takes entries out of" if len(after) < len(before) else "adds entries to"
            return f"it {verb} the {kind} `{name}`, which the caller still needs. Walk over it with a loop, or copy it."
        if all(one is other for one, other in zip(_members(after), members, strict=True)):
            return (
                f"it writes into what is in the {kind} `{name}`, which the caller still needs. Make new arrays: "
                "x = x - 1 makes one, x -= 1 does not."
            )
        return (
            f"it puts other things into the {kind} `{name}`, which the caller still needs. Make a new {kind}."
        )
    return f"{change}."


def has_gap(function: Callable[..., Any]) -> bool:
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


def _in_a_line(error: BaseException, function: Callable[..., Any]) -> str:
    """The error on one line, with the line of the learner's own code that led to it."""
    # An operation of the library's is advice for its users: the learner's engine has none (errors.py says what to write).
    words = text_of(error).partition(": write minigrad.ops.")[0]
    text = textwrap.shorten(
        f"{type(error).__name__[:100]}: {words}".rstrip(": "), 300, placeholder=" …"
    ).rstrip(".")
    line = own_line(error, function)
    return f"{text}. The line is: {line}" if line else text


def own_line(error: BaseException, function: Callable[..., Any]) -> str:
    """The innermost line of the learner's own code that led to an error; empty where it was not reached."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return (own[-1].line or "") if own else ""
