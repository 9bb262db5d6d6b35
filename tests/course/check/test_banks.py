"""Each exercise's check against a bank of answers: wrong ones are turned down with their message, right ones accepted.

A chapter's bank is a file `bank_*.py` beside this one with WRONG, by exercise the pairs (answer, a piece of what its
author must be told, or several), and RIGHT, by exercise the answers.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigrad.course import check
from minigrad.course.check.differences import equal
from minigrad.course.check.exercise import EXERCISES, Exercise
from minigrad.course.check.slips import build, pairs
from minigrad.course.grade import command

pytestmark = pytest.mark.numpy_only("answers are written in NumPy")

BANKS = [importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("bank_*.py"))]
SEEDS = (0, 2026)

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


@each_exercise
def test_wrong_answers_are_turned_down_with_their_message(exercise, told):
    """On the cases of one seed each, in turn: an answer that no slip explains is held against all pairs of them."""
    survivors, wrong = [], banked(exercise, "WRONG")
    for (answer, pieces), seed in zip(wrong, itertools.cycle(SEEDS), strict=False):
        pieces = (pieces,) if isinstance(pieces, str) else pieces
        accepted, text = told(exercise, answer, seed)
        if accepted or not all(piece in text for piece in pieces):
            survivors.append(f"{answer.__qualname__}: expected {pieces} in {text!r}")
    assert not survivors, "\n".join(survivors)


@each_seed
@each_exercise
def test_right_answers_are_accepted(exercise, seed, told):
    for answer in [exercise.answer, *banked(exercise, "RIGHT")]:
        accepted, text = told(exercise, answer, seed)
        assert accepted, f"{answer.__qualname__}: {text}"
        assert text.startswith(f"{exercise.name}: right."), text


@each_exercise
def test_mistakes_are_turned_down_on_the_cases_of_grading_too(exercise):
    """A class is graded on other cases than those of the notebook: no mistake may pass there by chance."""
    mistakes = [build(exercise.answer, slip) for slip in exercise.slips]
    mistakes += [answer for answer, _ in banked(exercise, "WRONG")]
    with contextlib.redirect_stdout(io.StringIO()):
        passed = [place for place, answer in enumerate(mistakes) if exercise.accepts(answer, command.SEED)]
    assert not passed


@each_exercise
def test_each_slip_is_told_apart_from_the_others(exercise, told):
    """What makes the slip gets its sentence: it is no right answer, and not taken for another slip or for two."""
    sentences = {slip.sentence for slip in exercise.slips}
    for slip in exercise.slips:
        accepted, text = told(exercise, build(exercise.answer, slip), 2026)
        assert not accepted, slip
        assert [sentence for sentence in sentences if sentence in text] == [slip.sentence], f"{slip}: {text}"
        assert "Two slips" not in text, slip


@each_exercise
def test_two_slips_come_to_an_end(exercise):
    """No combination of slips is an endless loop: each is tried when an answer is wrong."""
    ended = []
    for _, _, answer in pairs(exercise.answer, exercise.slips):
        for _, *arguments in exercise.cases(np.random.default_rng(0)):
            with np.errstate(all="ignore"), contextlib.suppress(Exception):
                answer(*arguments)
            break
        ended.append(answer)
    assert len(ended) > 10


@each_exercise
def test_two_slips_are_explained(exercise, told):
    """A few drawn at random: they get sentences, their own or those of slips that come to the same."""
    sentences = {slip.sentence for slip in exercise.slips}
    doubles = [answer for _, _, answer in pairs(exercise.answer, exercise.slips)]
    for place in np.random.default_rng(0).choice(len(doubles), 4, replace=False):
        accepted, text = told(exercise, doubles[place], 0)
        assert accepted or any(sentence in text for sentence in sentences), text


@each_exercise
def test_no_slip_is_seen_in_every_error(exercise, told):
    def fails(*_):
        raise ValueError("a typing mistake")

    def misspelt(*_):
        return nothing_of_that_name  # noqa: F821

    for answer in (fails, misspelt):
        accepted, text = told(exercise, answer, 0)
        assert not accepted
        assert not [slip.sentence for slip in exercise.slips if slip.sentence in text]


@each_exercise
def test_arguments_are_made_anew_for_each_call(exercise):
    """An answer that spoils them spoils no other call."""
    first, second = (list(exercise.cases(np.random.default_rng(0))) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert len(inspect.signature(exercise.answer).parameters) >= len(one) - 1
        for a, b in zip(one[1:], other[1:], strict=True):
            assert a is not b or _immutable(a)
            assert equal(a, b)
            if isinstance(a, np.ndarray):
                assert not np.shares_memory(a, b)


def _immutable(value):
    if isinstance(value, tuple):
        return all(map(_immutable, value))
    return isinstance(value, str | int | float | bool | type | type(None))


def test_an_exercise_is_found_by_its_name():
    """Also where a chapter's file of checks has the same name, as `check.feed_forward`."""
    assert {name: getattr(check, name) for name in EXERCISES} == EXERCISES


def test_an_unknown_name_is_told_with_a_near_one():
    with pytest.raises(AttributeError, match=r"no exercise 'atend': did you mean check.attend\?"):
        check.atend  # noqa: B018
    with pytest.raises(AttributeError, match=r"no exercise 'xyz': check.progress\(\) lists them"):
        check.xyz  # noqa: B018
