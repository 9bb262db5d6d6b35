"""Checks of the exercises: `check.attend(attend)`, `check.attend.hint()`, `check.progress()`."""

from __future__ import annotations

import difflib
import importlib

from minigrad.course.check.cells import remember_failures
from minigrad.course.check.exercise import EXERCISES, Exercise, progress

__all__ = ["progress"]  # and every exercise by its name

# The order of the course, which is the order of `progress()`.
for _stem in (
    "arrays",
    "reverse_mode",
    "modules",
    "optimisers",
    "wordpiece",
    "embeddings",
    "positions",
    "one_head",
    "many_heads",
    "masking",
    "feed_forward",
    "add_and_norm",
    "encoder",
    "assembly",
    "hidden_words",
    "sentence_pairs",
    "pretraining",
    "fine_tuning",
    "looking_inside",
    "seq2seq",
    "decoder_attention",
    "transformer",
    "decoding",
    "features",
    "numbers",
    "step_cost",
    "fast",
    "scaling",
    "machines",
):
    importlib.import_module(f"{__name__}.{_stem}")

# The exercise wins where a chapter's module has its name: check.feed_forward is the exercise.
globals().update(EXERCISES)

remember_failures()


def __getattr__(name: str) -> Exercise:
    if name in EXERCISES:
        return EXERCISES[name]
    close = difflib.get_close_matches(name, EXERCISES, n=1)
    hint = f"did you mean check.{close[0]}?" if close else "check.progress() lists them"
    raise AttributeError(f"there is no exercise {name!r}: {hint}")
