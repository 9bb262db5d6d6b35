"""Fields as a table: each on a line of its own, with its default, what it is, and what it may be.

For a run's settings the table makes the checks, the list in the docstring and the options of the command
line; for a model's config and a checkpoint's state, the checks.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from minigrad.messages import quoted

LARGEST_INTEGER, LARGEST_NUMBER = 2**63 - 1, sys.float_info.max
WORDS = {int: "an integer", float: "a number", bool: "true or false", str: "a text", dict: "an object"}
KINDS = {kind.__name__: kind for kind in (int, float, bool, str)}

Class = TypeVar("Class", bound=type)


def setting(
    default: object = dataclasses.MISSING,
    help: str = "",
    *,
    at_least: float | None = 0,
    at_most: float | None = None,
    below: float | None = None,
    positive: bool = False,
    one_of: Sequence[str] = (),
) -> Any:
    """A line of the table: the field of a dataclass, an integer, a number, a text, or yes or no, as annotated.

    at_least, at_most, below: of an integer, which is below 2^63 anyway, or of a number, which is finite anyway.
    positive: a number above 0. one_of: the texts that it may be.
    """
    bounds = {
        "at_least": at_least,
        "at_most": at_most,
        "below": below,
        "positive": positive,
        "one_of": one_of,
    }
    return dataclasses.field(default=default, metadata={"help": help, **bounds})


def check(table: Any, error: type[Exception] = ValueError) -> None:
    """Raise an error naming the first field that is not what its line of the table requires."""
    for line in dataclasses.fields(table):
        kind, value = KINDS.get(str(line.type)), getattr(table, line.name)
        if kind is not None and (expected := fault(value, kind, line.metadata)):
            raise error(f"{line.name} must be {expected}, got {quoted(value)}")


def fault(value: Any, kind: type, bounds: Mapping[str, Any]) -> str | None:
    """What a value should have been, in words; None if it is that. (True and False are integers to Python.)"""
    if one_of := bounds.get("one_of"):
        return None if value in one_of else f"one of {', '.join(one_of)}"
    fits = isinstance(value, int | float if kind is float else kind)
    if not fits or isinstance(value, bool) != (kind is bool):
        return WORDS[kind]
    if kind not in (int, float):
        return None
    at_least, at_most, below = (bounds.get(name) for name in ("at_least", "at_most", "below"))
    lowest = "positive" if bounds.get("positive") else "" if at_least is None else f"at least {at_least}"
    high_enough = value > 0 if bounds.get("positive") else at_least is None or value >= at_least
    if high_enough and at_most is not None and at_most < value < math.inf:
        return f"at most {at_most:,.0f}"
    if high_enough and below is not None and below <= value < math.inf:
        return f"below {below}"
    if high_enough and abs(value) <= (LARGEST_INTEGER if kind is int else LARGEST_NUMBER):  # NaN is not
        return None
    if kind is int:
        return "below 2^63" if high_enough else lowest
    return " and ".join(filter(None, [lowest, "finite"]))


def documented(table: Class) -> Class:
    """The class with its table at the end of its docstring: a line for each setting."""
    lines = [
        f"{line.name}: {line.metadata['help']} (default: {line.default})"
        for line in dataclasses.fields(table)
    ]
    table.__doc__ = "\n".join([inspect.cleandoc(table.__doc__ or ""), "", *lines])
    return table
