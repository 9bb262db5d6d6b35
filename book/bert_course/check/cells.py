"""In a notebook: which cell an answer comes from, whether a later cell that defines it anew has failed, and what to run
when it has no value.

A cell with a mistake in its syntax leaves the function of before in place, and a check would judge that one. After a
restart, a check alone finds no function.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """A cell that failed: its number, its text, and the name of the error."""

    number: int
    source: str
    error: str


_failures: list[Failure] = []


def remember_failures(say: Callable[[str], object]) -> None:
    """From here on, remember the cells that fail, and tell `say` what to run where a check finds no answer.

    Without IPython, nothing.
    """
    if shell := _shell():
        shell.events.register("post_run_cell", _remember)
        shell.events.register("post_run_cell", lambda result: _say_what_to_run(result, say))


def _say_what_to_run(result: Any, say: Callable[[str], object]) -> None:
    error = result.error_in_exec
    if (
        isinstance(error, NameError)
        and error.name
        and f"check.{error.name}({error.name})" in result.info.raw_cell
    ):
        say(
            f"{error.name} has no value in this kernel: run the cell above, which defines it, then check again. After a "
            "restart, the first cell of the page comes before that."
        )


def _remember(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    if error is not None and result.execution_count is not None:
        _failures.append(Failure(result.execution_count, result.info.raw_cell, type(error).__name__))


def failed_since(function: Callable[..., Any]) -> str | None:
    """A sentence if a cell after that of `function` should have defined it anew and failed; else None."""
    code, shell = getattr(function, "__code__", None), _shell()
    if code is None or shell is None:
        return None
    label = shell.compile.format_code_name(code.co_filename)  # ("Cell", "In[12]")
    number = int(re.sub(r"\D", "", label[1])) if label else None
    if number is None:
        return None
    name = re.escape(function.__name__)
    defines = re.compile(rf"^\s*(?:def\s+{name}\b|{name}\s*=)", re.MULTILINE)
    for failure in reversed(_failures):
        if failure.number > number and defines.search(failure.source):
            return (
                f"You are checking the function of cell [{number}]. Cell [{failure.number}], which defines it anew, "
                f"failed ({failure.error}): mend it, run it, then check again."
            )
    return None


def _shell() -> Any:
    """The IPython that runs this, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
