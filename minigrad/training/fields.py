"""Settings as a table: each on a line of its own, with its default, what it is, and what it may be.

The table makes the checks, the list in the docstring and the options of the command line.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

from minigrad.messages import quoted

LARGEST_INTEGER, LARGEST_NUMBER = 2**63 - 1, sys.float_info.max

Class = TypeVar("Class", bound=type)


def setting(
    default: float | str,
    help: str,
    *,
    at_least: int = 0,
    at_most: int | None = None,
    positive: bool = False,
    one_of: Sequence[str] = (),
    added: bool = False,
) -> Any:
    """A line of the table: the field of a dataclass, whose kind (yes or no, integer, number, text) is its default's.

    at_least: of an integer, which must also be below 2^63, or of a number, which must also be finite. at_most: of an
    integer. positive: a number above 0. one_of: the texts that it may be. added: earlier runs, which do not have it,
    have gone by its default.
    """
    bounds = {
        "at_least": at_least,
        "at_most": at_most,
        "positive": positive,
        "one_of": one_of,
        "added": added,
    }
    return dataclasses.field(default=default, metadata={"help": help, **bounds})


def check(settings: Any) -> None:
    """Raise ValueError naming the first setting that is not what its line of the table says."""
    for line in dataclasses.fields(settings):
        value = getattr(settings, line.name)
        expected = _expected(value, line)
        if expected is not None:
            raise ValueError(f"{line.name} must be {expected}, got {quoted(value)}")


def _expected(value: Any, line: dataclasses.Field[Any]) -> str | None:
    """What a value should have been, in words; None if it is that."""
    at_least, positive, one_of = (line.metadata[name] for name in ("at_least", "positive", "one_of"))
    if one_of:
        return None if value in one_of else f"one of {', '.join(one_of)}"
    if isinstance(line.default, bool):
        return None if isinstance(value, bool) else "true or false"
    whole = isinstance(line.default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return "an integer" if whole else "a number"
    if whole and value < at_least:
        return f"at least {at_least}"
    if whole and (at_most := line.metadata["at_most"]) is not None:
        return None if value <= at_most else f"at most {at_most:,}"
    if whole:
        return None if value <= LARGEST_INTEGER else "below 2^63"
    enough = value > 0 if positive else value >= at_least  # NaN is neither
    if enough and value <= LARGEST_NUMBER:
        return None
    return f"{'positive' if positive else f'at least {at_least}'} and finite"


def documented(table: Class) -> Class:
    """The class with its table at the end of its docstring: a line for each setting."""
    lines = [
        f"{line.name}: {line.metadata['help']} (default: {line.default})"
        for line in dataclasses.fields(table)
    ]
    table.__doc__ = "\n".join([inspect.cleandoc(table.__doc__ or ""), "", *lines])
    return table
