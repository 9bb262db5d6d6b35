"""Each exercise's check against its mistakes and a bank of answers: wrong ones get their message, right ones pass.

A chapter's bank is a file `bank_*.py` beside this one with RIGHT, by exercise the answers, and, where there are any,
WRONG, by exercise the pairs (answer, a piece of what its author must be told, or several). "[no-scale]" as a piece
stands for the sentence with this id. A wrong answer that does on every case what one mistake does is not in a bank:
each mistake is tested here as it is. Nor is a second right answer that differs in its formula alone: other rounding is
tested here too.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from banks import expected
from doubling import make

from bert_course import check
from bert_course.check import path, watch
from bert_course.check.diagnosis import LOOSE, diagnose
from bert_course.check.differences import difference, equal
from bert_course.check.exercise import EXERCISES, Exercise
from bert_course.check.mistakes import Mistake, build, pairs
from bert_course.check.outcome import Outcome
from bert_course.check.trial import Trial
from bert_course.common.engine import course_bert
from bert_course.grade import command
from minigrad import Tensor

pytestmark = pytest.mark.numpy_only("answers are written in NumPy")

BANKS = [importlib.import_module(path.stem) for path in sorted(Path(__file__).parent.glob("bank_*.py"))]
SEEDS = (0, 2026)

each_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
# What one seed's cases let through, the other's nearly always let through too.
each_seed = pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])]
)


def banked(exercise: Exercise, kind: str) -> list[Any]:
    """The answers to an exercise in all banks; kind: "RIGHT" or "WRONG"."""
    return [answer for bank in BANKS for answer in getattr(bank, kind, {}).get(exercise.name, [])]


@pytest.fixture
def told(monkeypatch, capsys) -> Callable[..., tuple[bool, str]]:
    """`told(exercise, answer, seed)`: whether the check accepts the answer, and what it prints, on one line."""
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    monkeypatch.setattr(path, "SECONDS", 30)  # on a busy machine
    monkeypatch.setattr(watch, "PATIENCE", 600)

    def tell(exercise: Exercise, answer: Callable[..., Any], seed: int) -> tuple[bool, str]:
        monkeypatch.setenv("MINIGRAD_CHECK_SEED", str(seed))
        capsys.readouterr()
        accepted = exercise.judge(answer)
        return accepted, " ".join(capsys.readouterr().out.split())

    return tell


def test_banks_are_of_exercises_that_there_are():
    for bank in BANKS:
        assert set(bank.RIGHT) <= set(EXERCISES), bank.__name__
        assert set(getattr(bank, "WRONG", {})) <= set(bank.RIGHT), bank.__name__


@each_exercise
def test_each_exercise_has_another_right_answer_and_mistakes(exercise):
    right, sentences = banked(exercise, "RIGHT"), {mistake.sentence for mistake in exercise.known_mistakes}
    assert right, f"{exercise.name} has no right answer but its own"
    assert len(sentences) >= 6, f"{exercise.name} knows {len(sentences)} mistakes"


@pytest.mark.usefixtures("folder")
def test_an_id_stands_for_its_sentence():
    exercise = make(mistakes="[halved] You halve it.\n    2 * x -> x / 2")
    assert expected(exercise, "it changes `x`") == ("it changes `x`",)
    assert expected(exercise, ("[halved]", "it returned None")) == ("You halve it.", "it returned None")
    with pytest.raises(LookupError, match=r"check.double knows no mistake \[halves\]; its ids: halved"):
        expected(exercise, "[halves]")


def echoes(exercise: Exercise, wrong: list[Any]) -> Iterator[tuple[str, Mistake]]:
    """The wrong answers that do on every case what one mistake does, and must be told its sentence and no more."""
    trials = [Trial(exercise, seed) for seed in SEEDS]

    def done(answer: Callable[..., Any]) -> list[Outcome]:
        return [outcome for trial in trials for outcome in trial.outcomes(answer)]

    close = exercise.rtol, exercise.atol
    for answer, pieces in wrong:
        for mistake in exercise.known_mistakes:
            if all(piece in mistake.sentence for piece in expected(exercise, pieces)):
                both = zip(done(answer), done(build(exercise.answer, mistake)), strict=True)
                if all(one.same_value(other, *close) and one.same_effects(other) for one, other in both):
                    yield answer.__qualname__, mistake


@each_exercise
def test_no_answer_of_a_bank_is_an_echo_of_a_mistake(exercise):
    with contextlib.redirect_stdout(io.StringIO()):
        found = list(echoes(exercise, banked(exercise, "WRONG")))
    assert not found, "\n".join(f"{name} does what a mistake does: {mistake}" for name, mistake in found)


@pytest.mark.usefixtures("folder")
def test_an_echo_is_found():
    exercise = make(mistakes="[halved] You halve it.\n    2 * x -> x / 2\nYou add.\n    2 * -> 2 +")

    def in_place(x):
        x /= 2
        return x

    wrong = [
        (lambda x: 0.5 * x, "[halved]"),
        (lambda x: 0.5 * x, ("You halve", "it")),
        (lambda x: x / 2 if x.ndim == 2 else 2 * x, "[halved]"),
        (lambda x: x / 2 + 1, ("[halved]", "You add.")),
        (in_place, "[halved]"),
        (lambda x: x.tolist(), "returned a list"),
    ]
    assert [wrong.index(one) for one in wrong if list(echoes(exercise, [one]))] == [0, 1]


@each_exercise
def test_wrong_answers_are_turned_down_with_their_message(exercise, told):
    """On the cases of one seed each, in turn: an answer that no mistake explains is held against all pairs of them."""
    survivors, wrong = [], banked(exercise, "WRONG")
    for (answer, pieces), seed in zip(wrong, itertools.cycle(SEEDS), strict=False):
        pieces = expected(exercise, pieces)
        accepted, text = told(exercise, answer, seed)
        a_second = len(pieces) == 1 and "Two mistakes" in text  # that is not there
        if accepted or a_second or not all(piece in text for piece in pieces):
            survivors.append(f"{answer.__qualname__}: expected {pieces} in {text!r}")
    assert not survivors, "\n".join(survivors)


@pytest.mark.parametrize("seed", range(6))
def test_an_overwritten_gradient_is_one_mistake_in_any_order_of_visits(seed, told):
    """Which use is kept depends on the order, and each value may come as soon as all its users have."""

    def overwritten(output):
        rng = np.random.default_rng(seed)
        left, order = {output}, []
        for tensor in (waiting := [output]):
            left |= set(tensor.parents)
            waiting += [parent for parent in tensor.parents if parent not in waiting]
        while left:
            users = {parent for tensor in left for parent in tensor.parents}
            ready = sorted(left - users, key=lambda tensor: tensor.number)
            order.append(ready[rng.integers(len(ready))])
            left.remove(order[-1])
        arrived = {output: np.ones_like(output.data)}
        for tensor in order:
            dy = arrived.get(tensor)
            if dy is not None and tensor.rule is None:
                tensor.grad = dy if tensor.grad is None else tensor.grad + dy
            for parent, gradient in zip(tensor.parents, tensor.rule(dy) if tensor.rule else (), strict=True):
                if parent.requires_grad:
                    arrived[parent] = course_bert().unbroadcast(gradient, parent.shape)

    accepted, text = told(EXERCISES["backward"], overwritten, 0)
    assert not accepted
    assert EXERCISES["backward"].mistake("one-use").sentence in text
    assert "Two mistakes" not in text


@each_seed
@each_exercise
def test_right_answers_are_accepted(exercise, seed, told):
    for answer in [exercise.answer, *banked(exercise, "RIGHT")]:
        accepted, text = told(exercise, answer, seed)
        assert accepted, f"{answer.__qualname__}: {text}"
        assert text.startswith(f"{exercise.name}: right."), text


# Cases on a border, or such that lose digits: what one rounding decides there is what they ask for.
BORDERS = {
    "add_norm": {"rows of equal numbers", "float32, around 65,536"},
    "largest_scale": {"the largest is 65520"},
    "least_aligned": {"a word with two equal weights"},
    "largest_world": {"as long as each other on 5 GPUs"},
    "safe_norm": {"float16, 50 by 60", "float16, about 3,000", "float16, 200 times 60,000"},
    "worth_trying": {"exactly half saved, and more than half asked for", "three changes that save the same"},
}


def nudged(value: Any, rng: np.random.Generator) -> Any:
    """The same with each of its numbers as it is, or one rounding away."""
    if type(value) in (list, tuple):
        return type(value)(nudged(one, rng) for one in value)
    if type(value) is dict:
        return {key: nudged(one, rng) for key, one in value.items()}
    if isinstance(value, Tensor):
        return Tensor(nudged(value.data, rng), value.requires_grad)
    if type(value) not in (float, np.ndarray) or np.asarray(value).dtype.kind != "f":
        return value
    dtype = np.asarray(value).dtype
    steps = 1 + np.finfo(dtype).eps * rng.choice([-1, 0, 1], size=np.shape(value))
    with np.errstate(over="ignore"):  # the largest number
        return value * steps.astype(dtype) if isinstance(value, np.ndarray) else float(value * steps)


@each_exercise
def test_no_more_digits_are_asked_for_than_the_numbers_have(exercise):
    """Other right operations round as differently as the same ones on an input with another last bit."""
    trial, rng = Trial(exercise, 0), np.random.default_rng(0)
    for _ in range(4):
        cases = exercise.cases(np.random.default_rng(0))
        for (name, *values), right in zip(cases, trial.expected, strict=True):
            arguments = dict(zip(trial.unchanged[0], nudged(values, rng), strict=False))
            outcome = Outcome(
                exercise.answer, arguments, arguments, exercise.into, observed=exercise.observed
            )
            # An error says that the input is none any more, as a probability above 1.
            if outcome.error is None and name not in BORDERS.get(exercise.name, ()):
                found = difference(outcome.value, right.value, exercise.rtol, exercise.atol)
                assert not found, f"{name}: {found}"


def test_clipping_that_keeps_float32_gets_no_remark(told):
    exercise = EXERCISES["summed_and_clipped"]
    keeps = next(answer for answer in banked(exercise, "RIGHT") if answer.__name__ == "with_hypot")
    for answer in (exercise.answer, keeps):
        accepted, text = told(exercise, answer, 0)
        assert accepted, text
        assert "A remark" not in text


@pytest.mark.slow
@each_exercise
def test_mistakes_are_turned_down_on_the_cases_of_grading_too(exercise):
    """A class is graded on other cases than those of the notebook: no mistake may pass there by chance."""
    mistakes = [build(exercise.answer, mistake) for mistake in exercise.known_mistakes]
    mistakes += [answer for answer, _ in banked(exercise, "WRONG")]
    with contextlib.redirect_stdout(io.StringIO()):
        passed = [place for place, answer in enumerate(mistakes) if exercise.accepts(answer, command.SEED)]
    assert not passed


@each_seed
@each_exercise
def test_each_mistake_is_told_apart_from_the_others(exercise, seed):
    """What makes the mistake gets its sentence: it is no right answer, and not taken for another mistake or for two."""
    sentences = {mistake.sentence for mistake in exercise.known_mistakes}
    trial = Trial(exercise, seed)
    for mistake in exercise.known_mistakes:
        outcomes = list(trial.with_mistake(mistake))
        complaints = trial.complaints(outcomes)
        assert any(complaints), mistake
        text = " ".join(diagnose(trial, outcomes, complaints).paragraphs)
        assert [sentence for sentence in sentences if sentence in text] == [mistake.sentence], (
            f"{mistake}: {text}"
        )
        assert "Two mistakes" not in text, mistake


@pytest.mark.slow
@each_exercise
def test_two_mistakes_come_to_an_end(exercise):
    """No combination of mistakes is an endless loop: each is tried when an answer is wrong.

    Where a bank has a wrong answer that no mistake explains, its quick test tries them all.
    """
    ended = []
    for _, _, answer in pairs(exercise.answer, exercise.known_mistakes):
        for _, *arguments in exercise.cases(np.random.default_rng(0)):
            with np.errstate(all="ignore"), contextlib.suppress(Exception):
                answer(*arguments)
            break
        ended.append(answer)
    assert len(ended) > 10


@pytest.mark.slow
@each_exercise
def test_two_mistakes_are_explained(exercise, told):
    """A few drawn at random: they get sentences, their own or those of mistakes that come to the same.

    But not where one number is asked for, and one that is near will do: there two mistakes are chance. Nor where the
    same number comes out of all cases, which many mistakes do, or an error of most.
    """
    _, *arguments = next(iter(exercise.cases(np.random.default_rng(0))))
    if max(exercise.rtol, exercise.atol) > LOOSE and isinstance(exercise.answer(*arguments), float | int):
        return
    sentences = {mistake.sentence for mistake in exercise.known_mistakes}
    doubles = [answer for _, _, answer in pairs(exercise.answer, exercise.known_mistakes)]
    for place in np.random.default_rng(0).choice(len(doubles), 4, replace=False):
        accepted, text = told(exercise, doubles[place], 0)
        outcomes = list(Trial(exercise, 0).outcomes(doubles[place]))
        values = [outcome.value for outcome in outcomes]
        if all(isinstance(value, float | int) for value in values) and len(set(values)) == 1:
            assert not accepted
            continue
        if (
            sum(outcome.value is None for outcome in outcomes) > len(outcomes) / 2
        ):  # an error or None, which is told
            assert not accepted
            continue
        assert accepted or any(sentence in text for sentence in sentences), text


@pytest.mark.slow
@each_exercise
def test_no_mistake_is_seen_in_every_error(exercise, told):
    def fails(*_):
        raise ValueError("a typing mistake")

    def misspelt(*_):
        return nothing_of_that_name  # noqa: F821

    for answer in (fails, misspelt):
        accepted, text = told(exercise, answer, 0)
        assert not accepted
        assert not [mistake.sentence for mistake in exercise.known_mistakes if mistake.sentence in text]


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
