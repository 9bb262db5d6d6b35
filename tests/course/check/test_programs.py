"""The programs that the check of chapter `reverse_mode`'s engine runs are shown by their steps."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.check.differences import described
from bert_course.check.exercise import EXERCISES
from bert_course.exercises.reverse_mode import _program_cases

pytestmark = pytest.mark.no_arrays


def shown() -> dict[str, str]:
    return {name: described(program) for name, program, _ in _program_cases(np.random.default_rng(0))}


def test_a_program_is_shown_by_its_steps():
    programs = shown()
    assert programs["a * a + a"] == "v1 = a * a; v2 = v1 + a; return v2"
    assert programs["an output that is an input"] == "return b"
    unused = "v1 = a * b; v2 = v1 + a; v3 = v1 * v1; v4 = v3 * b; return v2"
    assert programs["values that the output is not made of"] == unused


def test_no_program_is_cut_short():
    assert all("return v" in text or text == "return b" for text in shown().values())
    assert not any("..." in text for text in shown().values())


def test_what_is_shown_is_what_runs():
    class Number(float):
        def tanh(self):
            return Number(np.tanh(self))

        def __add__(self, other):
            return Number(float(self) + other)

        def __mul__(self, other):
            return Number(float(self) * other)

    for _, program, given in _program_cases(np.random.default_rng(1)):
        values = {name: Number(value) for name, value in zip(program.inputs, given, strict=True)}
        *steps, output = repr(program).split("; ")
        for step in steps:
            exec(step, {}, values)
        assert values[output.removeprefix("return ")] == program(*map(Number, given))


def test_a_wrong_result_shows_the_program(capsys):
    assert "differentiate" in EXERCISES
    EXERCISES["differentiate"](lambda program, numbers: [0.0 for _ in numbers])
    assert "v1 = w * x; v2 = v1 + b; return v2" in " ".join(capsys.readouterr().out.split())
