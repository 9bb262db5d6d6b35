"""An exercise to try checks with: twice the argument."""

from __future__ import annotations

import copy
import json
import types
from pathlib import Path

import numpy as np

from bert_course.check.exercise import Exercise

HINT = "For a hint: check.double.hint()"


def double(x):
    return 2 * x


def two_arrays(rng):
    yield "a (2, 3) array of float64", rng.standard_normal((2, 3))
    yield "a (4,) array of float32", rng.standard_normal(4).astype(np.float32)


def make(name="double", answer=double, cases=two_arrays, mistakes="", hints="Add.\n\nx + x", **more):
    """An exercise that asks for twice its argument."""
    named = types.FunctionType(
        answer.__code__, answer.__globals__, name, answer.__defaults__, answer.__closure__
    )
    return Exercise(
        answer=named,
        chapter="modules",
        difficulty=1,
        minutes=5,
        cases=cases,
        mistakes=mistakes,
        hints=hints,
        **more,
    )


def returning(expected, *arguments):
    """An exercise with one case, whose right answer is `expected`."""
    answer = (lambda x: expected) if arguments else (lambda: expected)
    return make(answer=answer, cases=lambda rng: [("the case", *copy.deepcopy(arguments))])


def recorded():
    """What the progress file says, without the time it took."""
    entries = json.loads(Path(".progress.json").read_text())
    return {name: {key: entry[key] for key in ("attempts", "solved")} for name, entry in entries.items()}
