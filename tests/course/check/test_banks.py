"""Each exercise's check against a bank of answers: wrong ones are turned down with their message, right ones accepted.

A chapter's bank is a file `bank_*.py` beside this one with WRONG, by exercise the pairs (answer, a piece of what its
author must be told), and RIGHT, by exercise the answers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigrad.course import check  # noqa: F401 - makes the exercises
from minigrad.course.check.exercise import EXERCISES, Exercise

pytestmark = pytest.mark.numpy_only("answers are written in NumPy")

BANKS = [importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("bank_*.py"))]
SEEDS = (0, 1, 2026)

each_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
each_seed = pytest.mark.parametrize("seed", SEEDS)


def banked(exercise: Exercise, kind: str) -> list[Any]:
    """The answers to an exercise in all banks; kind: "RIGHT" or "WRONG"."""
    return [answer for bank in BANKS for answer in getattr(bank, kind).get(exercise.name, [])]


@pytest.fixture
def told(monkeypatch, capsys) -> Callable[..., tuple[bool, str]]:
    """`told(exercise, answer, seed)`: whether the check accepts the answer, and what it prints, on one line."""
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")

    def tell(exercise: Exercise, answer: Callable[..., Any], seed: int) -> tuple[bool, str]:
        monkeypatch.setenv("MINIGRAD_CHECK_SEED", str(seed))
        capsys.readouterr()
        accepted = exercise.judge(answer)
        return accepted, " ".join(capsys.readouterr().out.split())

    return tell


def test_banks_are_of_exercises_that_there_are():
    for bank in BANKS:
        assert set(bank.RIGHT) == set(bank.WRONG), bank.__name__
        assert set(bank.RIGHT) <= set(EXERCISES), bank.__name__


@each_exercise
def test_each_exercise_has_a_bank(exercise):
    wrong, right = banked(exercise, "WRONG"), banked(exercise, "RIGHT")
    assert len(wrong) >= 4, f"{exercise.name} has {len(wrong)} wrong answers"
    assert len(right) >= 2, f"{exercise.name} has {len(right)} right answers"


@each_seed
@each_exercise
def test_wrong_answers_are_turned_down_with_their_message(exercise, seed, told, kills):
    survivors, wrong = [], banked(exercise, "WRONG")
    for answer, piece in wrong:
        accepted, text = told(exercise, answer, seed)
        if accepted or piece not in text:
            survivors.append(f"{answer.__qualname__}: expected {piece!r} in {text!r}")
    kills["killed"] += len(wrong) - len(survivors)
    kills["tried"] += len(wrong)
    assert not survivors, "\n".join(survivors)


@each_seed
@each_exercise
def test_right_answers_are_accepted(exercise, seed, told):
    for answer in [exercise.answer, *banked(exercise, "RIGHT")]:
        accepted, text = told(exercise, answer, seed)
        assert accepted, f"{answer.__qualname__}: {text}"
        assert text.startswith(f"{exercise.name}: right."), text


@each_seed
@each_exercise
def test_each_misconception_is_told_apart_from_the_others(exercise, seed, told):
    """What gives the wrong answer gets this message: not a right answer's, and not that of another misconception."""
    messages = {misconception.message for misconception in exercise.misconceptions}
    for misconception in exercise.misconceptions:
        accepted, text = told(exercise, misconception.wrong, seed)
        assert not accepted, misconception.message
        found = [message for message in messages if message in text]
        assert found == [misconception.message], f"{misconception.message}: {text}"


@each_exercise
def test_a_misconception_is_not_one_error_on_every_case(exercise, told):
    """An error matches any other of its kind: a misconception that only fails would be seen in every typing mistake."""

    def fails(*_):
        raise ValueError("a typing mistake")

    def misspelt(*_):
        return nothing_of_that_name  # noqa: F821

    for answer in (fails, misspelt):
        accepted, text = told(exercise, answer, 0)
        assert not accepted
        assert not [one.message for one in exercise.misconceptions if one.message in text]
