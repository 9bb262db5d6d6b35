"""Checks of the exercises: `check.attend(attend)`, `check.attend.hint()`, `check.progress()`."""

from __future__ import annotations

import difflib

import bert_course.exercises  # noqa: F401
from bert_course.check.cells import remember_failures
from bert_course.check.exercise import EXERCISES, Exercise, progress
from bert_course.check.report import Report, tell

__all__ = ["progress"]  # and every exercise by its name

remember_failures(lambda words: tell(Report("note", "Nothing to check:", words)))


def __dir__() -> list[str]:
    return [*globals(), *EXERCISES]


def __getattr__(name: str) -> Exercise:
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(name, EXERCISES, n=1)
    hint = f"did you mean check.{close[0]}?" if close else "check.progress() lists them"
    raise AttributeError(f"there is no exercise {name!r}: {hint}")
