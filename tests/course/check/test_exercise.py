"""What a learner sees of a check: one line for an empty answer, the mistake by its name, and never a traceback."""

# ruff: noqa: PIE790, RET503 - gaps in answers are what is tested

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.course.check import exercise as module
from minigrad.course.check.exercise import NOT_ATTEMPTED, Case, Exercise, Misconception, progress
from minigrad.course.show import Source

HINT = "For a hint: check.double.hint()"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory, no exercises but the test's own, and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "EXERCISES", {})
    monkeypatch.delenv("MINIGRAD_PROGRESS", raising=False)
    monkeypatch.delenv("MINIGRAD_CHECK_SEED", raising=False)
    return tmp_path


def doubled(x):
    return 2 * x


def two_arrays(rng):
    yield Case("a (2, 3) array of float64", (rng.standard_normal((2, 3)),))
    yield Case("a (4,) array of float32", (rng.standard_normal(4).astype(np.float32),))


def make(name="double", answer=doubled, cases=two_arrays, misconceptions=(), hints=("Add.", "x + x"), **more):
    """An exercise that asks for twice its argument."""
    return Exercise(
        name=name,
        chapter=3,
        difficulty=1,
        minutes=5,
        answer=answer,
        cases=cases,
        misconceptions=list(misconceptions),
        hints=list(hints),
        **more,
    )


def returning(expected, *arguments):
    """An exercise with one case, whose right answer is `expected`."""
    return make(answer=lambda *_: expected, cases=lambda rng: [Case("the case", arguments)])


@pytest.fixture
def told(capsys):
    """`told(exercise, answer)`: the lines that the check prints; it must return whether the answer is right."""

    def tell(exercise, answer):
        capsys.readouterr()
        right = exercise.judge(answer)
        captured = capsys.readouterr()
        assert captured.err == ""
        assert right is captured.out.startswith(f"{exercise.name}: right.")
        return captured.out.splitlines()

    return tell


def recorded():
    """What the progress file says."""
    return json.loads(Path(".progress.json").read_text())


# --- Right -----------------------------------------------------------------------------------------------


def test_a_right_answer_is_told_the_cases(told):
    assert told(make(), lambda x: x + x) == [
        "double: right. 2 cases: a (2, 3) array of float64; a (4,) array of float32."
    ]


def test_a_call_prints_what_it_found_and_returns_nothing(capsys):
    """At the end of a cell a value would be shown beside the text."""
    assert make()(doubled) is None
    assert capsys.readouterr().out.startswith("double: right. 2 cases")


def test_cases_of_one_name_are_told_once(told):
    exercise = make(cases=lambda rng: [Case("a number", (1.5,)), Case("a number", (2.5,))])
    assert told(exercise, doubled) == ["double: right. 2 cases: a number."]


def test_long_lines_are_wrapped(told):
    names = [f"an array with the long name {i}" for i in range(9)]
    lines = told(make(cases=lambda rng: [Case(name, (1.0,)) for name in names]), doubled)
    assert len(lines) > 1
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(("seed", "same"), [("0", True), ("7", False)])
def test_the_seed_is_0_unless_set(monkeypatch, seed, same):
    def drawn():
        seen = []
        make(name=f"exercise {len(module.EXERCISES)}")(lambda x: seen.append(x) or 2 * x)
        return seen[0]

    default = drawn()
    monkeypatch.setenv("MINIGRAD_CHECK_SEED", seed)
    assert np.array_equal(drawn(), default) is same


def test_a_seed_that_is_no_number_is_named(told, monkeypatch):
    monkeypatch.setenv("MINIGRAD_CHECK_SEED", "-x")
    assert told(make(), doubled) == ["double: MINIGRAD_CHECK_SEED should be a whole number, and is '-x'."]


# --- Not attempted ---------------------------------------------------------------------------------------


def ellipsis_body(x):
    """What to do."""
    ...


def ellipsis_returned(x):
    return ...


def pass_body(x):
    pass


def docstring_body(x):
    """What to do."""


def not_implemented(x):
    raise NotImplementedError


def gap_before_a_use(x):
    """The exercise asks for `result` alone."""
    y = x.copy()  # noqa: F841
    ...
    return result  # noqa: F821


def gap_before_a_use_of_a_local_name(x):
    ...
    if len(x) > 100:
        result = x
    return result


def gap_for_a_value(x):
    result = ...
    return result * x


def gap_below_code(x):
    y = x.copy()  # noqa: F841
    ...


def gap_in_a_branch(x):
    if x.ndim == 2:
        return 2 * x
    ...


@pytest.mark.parametrize(
    "answer",
    [
        ellipsis_body,
        ellipsis_returned,
        pass_body,
        docstring_body,
        not_implemented,
        gap_before_a_use,
        gap_before_a_use_of_a_local_name,
        gap_for_a_value,
        gap_below_code,
        gap_in_a_branch,
    ],
)
def test_an_empty_answer_gets_one_friendly_line_and_no_record(answer, told, folder):
    exercise = make()
    assert told(exercise, answer) == [f"double: {NOT_ATTEMPTED}"]
    assert list(folder.iterdir()) == []
    assert exercise.solution() is None


def test_a_gap_that_was_left_beside_a_right_answer_does_not_matter(told):
    def answer(x):
        ...
        return 2 * x

    assert told(make(), answer)[0].startswith("double: right.")


def test_an_error_of_ones_own_is_told_though_a_gap_is_left(told):
    def answer(x):
        y = x @ "text"
        ...
        return y

    assert "TypeError" in "".join(told(make(), answer))


def test_an_index_of_dots_is_no_gap(told):
    def answer(x):
        y = x[..., None]  # noqa: F841

    assert "it returned None" in "".join(told(make(), answer))


# --- Not a function, errors, no return ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((3, 4)), "an array of shape (3, 4) and dtype float64"),
        (None, "None"),
        (3, "3"),
        ([1, 2], "a list of 2"),
        ({"a": 1}, "a dict of 1"),
        ("text", "'text'"),
    ],
)
def test_what_is_no_function_is_named(given, words, told, folder):
    exercise = make()
    assert told(exercise, given) == [
        "double: pass the function itself, check.double(double).",
        f"This is {words}.",
    ]
    assert list(folder.iterdir()) == []


def test_a_tensor_is_named(told):
    assert told(make(), Tensor(np.ones(3)))[1] == "This is a Tensor of shape (3,)."


def test_an_error_is_told_in_one_line_with_its_place(told):
    def answer(x):
        y = x + 1
        return y[0, 0, 0]

    lines = told(make(), answer)
    text = " ".join(lines)
    assert "Traceback" not in text
    assert lines[0] == "double: not yet. 0 of 2 cases are right."
    assert "On a (2, 3) array of float64: it raised IndexError: too many indices for array" in text
    assert "The line is: return y[0, 0, 0]" in text
    assert lines[-1] == HINT


def test_the_place_is_in_the_learners_code_not_in_numpys(told):
    def answer(x):
        return np.linalg.inv(x)

    text = " ".join(told(make(), answer))
    assert "it raised LinAlgError" in text
    assert "The line is: return np.linalg.inv(x)" in text


def test_the_place_is_the_innermost_of_the_learners_functions(told):
    def helper(x):
        return x.nothing

    def answer(x):
        return helper(x)

    assert "The line is: return x.nothing" in " ".join(told(make(), answer))


def test_an_error_without_words_is_told(told):
    def answer(x):
        raise ValueError

    assert "it raised ValueError. The line is: raise ValueError" in " ".join(told(make(), answer))


def test_an_error_of_many_lines_is_cut_short(told):
    def answer(x):
        raise ValueError("\n".join(["no"] * 1000))

    lines = told(make(), answer)
    assert len(lines) < 8
    assert "no no no … The line is" not in " ".join(lines)  # a full stop in between
    assert "no …. The line is" in " ".join(lines)


def test_wrong_arguments_are_told(told):
    lines = told(make(), lambda x, y: x)
    assert "missing 1 required positional argument: 'y'" in " ".join(lines)
    assert "The line is" not in " ".join(lines)  # the learner's code was not reached


@pytest.mark.parametrize("error", [RecursionError, MemoryError, KeyError, AssertionError, StopIteration])
def test_any_error_is_told(error, told):
    def answer(x):
        raise error

    assert f"it raised {error.__name__}" in " ".join(told(make(), answer))


def test_a_forgotten_return_is_named(told):
    def answer(x):
        x = 2 * x

    lines = told(make(), answer)
    assert "it returned None. Is there a `return` before the result?" in " ".join(lines)
    assert recorded()["double"]["attempts"] == 1


def test_a_builtin_without_source_is_no_empty_answer(told):
    assert "it returned None" in " ".join(told(make(), [].append))


# --- Argument changed ------------------------------------------------------------------------------------


def test_a_changed_argument_is_named_by_its_number(told):
    def answer(x, y):
        y += x
        return y

    exercise = make(
        answer=lambda x, y: x + y, cases=lambda rng: [Case("two arrays", (np.ones(3), np.ones(3)))]
    )
    lines = told(exercise, answer)
    assert lines[1].startswith(
        "On two arrays: it changes its argument number 2, which the caller still needs."
    )
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("argument", "spoil"),
    [
        (np.ones(3), lambda x: x.__setitem__(0, 2)),
        (np.array(["a", "b"]), lambda x: x.__setitem__(0, "c")),
        (np.ones((2, 2)), lambda x: setattr(x, "shape", (4,))),
        ([1, 2], lambda x: x.append(3)),
        ([[1], [2]], lambda x: x[0].append(3)),
        ([[1], [2]], lambda x: x.__setitem__(0, 1)),
        ({"a": [1]}, lambda x: x["a"].append(2)),
        ({"a": 1}, lambda x: x.update(b=2)),
        ({"a": 1}, lambda x: x.update(b=x.pop("a"))),
        ({"a": 1, "b": 2}, lambda x: x.update(a=x.pop("a"))),  # the order counts
        ([np.ones(2)], lambda x: x[0].fill(0)),
        ([np.ones(2)], lambda x: x.__setitem__(0, 1.0)),
        ({1, 2}, lambda x: x.add(3)),
        (("a", [1]), lambda x: x[1].clear()),
    ],
    ids=str,
)
def test_a_change_of_any_kind_is_seen(argument, spoil, told):
    exercise = returning(1.0, argument)

    def answer(x):
        spoil(x)
        return 1.0

    assert "it changes its argument number 1" in " ".join(told(exercise, answer))
    assert told(exercise, lambda x: 1.0)[0].startswith("double: right.")  # the case itself is as it was


def test_a_changed_tensor_is_seen(told):
    exercise = returning(1.0, Tensor(np.ones(3)))

    def answer(x):
        x.data[0] = 5
        return 1.0

    assert "it changes its argument number 1" in " ".join(told(exercise, answer))


@pytest.mark.parametrize(
    "argument", [np.array([1.0, np.nan]), float("nan"), np.random.default_rng(0), abs, None, np.array(["a"])]
)
def test_what_was_not_changed_is_not_named(argument, told):
    assert told(returning(1.0, argument), lambda x: 1.0)[0].startswith("double: right.")


def test_a_tensor_comes_with_or_without_gradient_as_in_the_case(told):
    given = (Tensor(np.ones(2), requires_grad=True), Tensor(np.ones(2)))
    exercise = make(answer=lambda a, b: 1.0, cases=lambda rng: [Case("two tensors", given)])
    assert told(exercise, lambda a, b: float(a.requires_grad and not b.requires_grad)) == [
        "double: right. 1 cases: two tensors."
    ]


def test_each_call_gets_its_own_random_generator(told):
    """Else the learner's answer would draw what the right one draws next."""
    cases = [Case("draws", (np.random.default_rng(3), 4))]
    exercise = make(answer=lambda rng, n: rng.random(n), cases=lambda _: cases)
    assert told(exercise, lambda rng, n: np.array([rng.random() for _ in range(n)])) == [
        "double: right. 1 cases: draws."
    ]


# --- What is wrong with a value --------------------------------------------------------------------------

ARRAY = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("expected", "value", "words"),
    [
        (ARRAY, ARRAY[0], "it should return shape (2, 2), and returned shape (2,)"),
        (ARRAY, ARRAY.astype(np.float32), "it should return float64, and returned float32"),
        (ARRAY.astype(np.float32), ARRAY, "it should return float32, and returned float64"),
        (ARRAY, ARRAY.astype(int), "it should return float64, and returned int64"),
        (ARRAY, ARRAY.tolist(), "should return an array of shape (2, 2) and dtype float64, and returned a list of 2"),
        (ARRAY, tuple(ARRAY), "and returned a tuple of 2"),
        (ARRAY, 3.5, "and returned 3.5"),
        (ARRAY, "text", "and returned 'text'"),
        (ARRAY, ARRAY + 0j, "and returned an array of shape (2, 2) and dtype complex128"),
        (ARRAY, ARRAY.astype(object), "and returned an array of shape (2, 2) and dtype object"),
        (ARRAY, Tensor(ARRAY), "and returned a Tensor of shape (2, 2)"),
        (Tensor(ARRAY), ARRAY, "it should return a Tensor of shape (2, 2), and returned an array of shape (2, 2)"),
        (Tensor(ARRAY), Tensor(ARRAY + 1), "4 of 4 entries are off. The entry [0, 0] should be 1, and is 2"),
        (ARRAY, ARRAY * np.nan, "4 of 4 entries are NaN or infinite"),
        (ARRAY, np.array([[1, 2], [np.inf, 4]]), "1 of 4 entries are NaN or infinite"),
        (ARRAY, ARRAY + [[0, 0.5], [0, 1]], "2 of 4 entries are off. The entry [0, 1] should be 2, and is 2.5"),
        (ARRAY, ARRAY * (1 + 1e-8), "The entry [0, 0] should be 1, and is 1.00000001"),
        (ARRAY * np.pi, ARRAY * np.pi * (1 + 2e-9), "should be 3.141592654, and is 3.14159266"),
        (np.array([True, False]), np.array([True, True]), "The entry [1] should be 0, and is 1"),
        (np.array([1, 2]), np.array([1, 3]), "The entry [1] should be 2, and is 3"),
        (np.array([-np.inf, 1]), np.array([-np.inf, 2]), "1 of 2 entries are off. The entry [1] should be 1, and is 2"),
        (np.array([-np.inf, 1.0]), np.array([0.0, 1.0]), "The entry [0] should be -inf, and is 0"),
        (0.125, 1, "it should return 0.125, and returned 1"),
        (1 / 3, 2 / 3, "it should return 0.333333, and returned 0.666667"),
        (0.125, [0.125], "it should return 0.125, and returned a list of 1"),
        (0.125, np.array([0.125]), "and returned an array of shape (1,) and dtype float64"),
        (0.125, "0.125", "it should return 0.125, and returned '0.125'"),
        (0.125, 0.125j, "it should return 0.125, and returned 0.125j"),
        (0.125, float("nan"), "it should return 0.125, and returned nan"),
        (3, 4, "it should return 3, and returned 4"),
        ((1.0, 2.0), 1.0, "it should return 2 values, and returned 1.0"),
        ((1.0, 2.0), (1.0,), "it should return 2 values, and returned a tuple of 1"),
        ((1.0, 2.0), (1.0, 5.0), "value 2 of 2: it should return 2, and returned 5"),
        ((ARRAY, ARRAY), (ARRAY, ARRAY[0]), "value 2 of 2: it should return shape (2, 2), and returned shape (2,)"),
        (["un", "##aff"], ["un", "aff"], "value 2 of 2: it should return '##aff', and returned 'aff'"),
        (["un"], "un", "it should return 1 values, and returned 'un'"),
        ("yes", "no", "it should return 'yes', and returned 'no'"),
        ("yes", np.array(["yes", "no"]), "it should return 'yes', and returned an array"),
        (True, False, "it should return True, and returned False"),
        (True, ARRAY, "it should return True, and returned an array"),
        ({"a": 1.0}, {"b": 1.0}, "it should have the keys a, and has b"),
        ({"a": 1.0}, {}, "it should have the keys a, and has "),
        ({"a": 1.0}, {"b": 2.0, "a": 1.0}, "it should have the keys a, and has a, b"),
        ({"a": 1.0, "b": 2.0}, {"b": 3.0, "a": 1.0}, "for b, it should return 2, and returned 3"),
        ({"a": 1.0}, 1.0, "it should return a dict of 1, and returned 1.0"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_value_is_named(expected, value, words, told):
    lines = told(returning(expected), lambda: value)
    assert words in " ".join(lines)
    assert lines[0] == "double: not yet. 0 of 1 cases are right."
    assert lines[-1] == HINT


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (ARRAY, ARRAY * (1 + 1e-11)),
        (ARRAY.astype(np.float32), (ARRAY * (1 + 1e-5)).astype(np.float32)),
        (np.array([-np.inf, 0.0]), np.array([-np.inf, 1e-13])),
        (Tensor(ARRAY), Tensor(ARRAY, requires_grad=True)),
        (0.5, np.float32(0.5)),
        (0.5, np.array(0.5)),
        (2, 2.0),
        (True, np.bool_(True)),
        ((1.0, 2.0), [1.0, 2.0]),
        ([1, "a"], (1, "a")),
        ({"a": 1.0, "b": ARRAY}, {"b": ARRAY, "a": 1}),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_what_is_as_good_is_accepted(expected, value, told):
    assert told(returning(expected), lambda: value) == ["double: right. 1 cases: the case."]


@pytest.mark.parametrize(
    ("value", "right"), [(1 + 5e-10, True), (1 + 5e-9, False), (np.float32(1 + 5e-5), True), (np.float32(1.001), False)]
)  # fmt: skip
def test_the_tolerance_is_that_of_the_dtype(value, right, told):
    value = np.array([value])
    assert told(returning(np.ones(1, value.dtype)), lambda: value)[0].startswith("double: right") is right


def test_an_exercise_has_its_own_tolerance(told):
    exercise = make(rtol=1e-2)
    assert told(exercise, lambda x: 2.01 * x)[0].startswith("double: right")
    assert told(exercise, lambda x: 2.1 * x)[0].startswith("double: not yet")


def test_a_foreign_array_that_cannot_be_converted_is_named(told):
    class Foreign:
        def __array__(self, *_, **__):
            raise RuntimeError("detach me first")

        def __repr__(self):
            return "Foreign()"

    assert "and returned Foreign()" in " ".join(told(returning(0.5), lambda: Foreign()))


def test_a_ragged_list_is_named(told):
    assert "and returned a list of 2" in " ".join(told(returning(0.5), lambda: [[1], [1, 2]]))


def test_the_first_case_that_is_wrong_is_told(told):
    lines = told(make(), lambda x: 2 * x if x.ndim == 2 else x)
    assert lines[0] == "double: not yet. 1 of 2 cases are right."
    assert lines[1].startswith("On a (4,) array of float32: 4 of 4 entries are off.")


# --- The misconception -----------------------------------------------------------------------------------


def fails_on_matrices(x):
    if x.ndim == 2:
        raise ValueError("the library's words")
    return x


@pytest.fixture
def known():
    """An exercise that knows five mistakes."""
    return make(
        misconceptions=[
            Misconception("You halve it.", lambda x: x / 2),
            Misconception("You divide by 0.", lambda x: x / 0 * 0),
            Misconception("You make it long.", lambda x: np.append(x, x)),
            Misconception("You fail on matrices.", fails_on_matrices),
            Misconception("You have made float64 of it.", lambda x: np.float64(2) * x),
        ]
    )


def test_a_mistake_is_told_by_its_name(known, told):
    lines = told(known, lambda x: 0.5 * x)
    assert lines[0] == "double: not yet. 0 of 2 cases are right."
    assert lines[-2:] == ["You halve it.", HINT]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: np.full_like(x, np.nan), "You divide by 0."),
        (lambda x: np.concatenate([x.ravel(), x.ravel()]), "You make it long."),
        (lambda x: 2 * x.astype(np.float64), "You have made float64 of it."),
        (lambda x: x.astype(np.float64) / 2, "You halve it."),  # and float64 besides
    ],
)
def test_nan_shapes_and_dtypes_are_recognised(answer, message, known, told):
    assert told(known, answer)[-2] == message


def test_an_error_of_the_same_kind_is_recognised_whatever_it_says(known, told):
    def answer(x):
        if x.ndim == 2:
            raise ValueError("other words")
        return x

    assert told(known, answer)[-2] == "You fail on matrices."


def test_an_error_of_another_kind_is_not_recognised(known, told):
    def answer(x):
        if x.ndim == 2:
            raise TypeError
        return x

    assert not set(told(known, answer)) & {one.message for one in known.misconceptions}


def test_a_mistake_on_some_cases_only_is_not_recognised(known, told):
    lines = told(known, lambda x: x / 2 if x.ndim == 2 else x)
    assert not set(lines) & {one.message for one in known.misconceptions}


def test_a_changed_argument_is_not_taken_for_a_mistake_of_dtype(known, told):
    def answer(x):
        x *= 2
        return x

    lines = told(known, answer)
    assert "it changes its argument number 1" in lines[1]
    assert not set(lines) & {one.message for one in known.misconceptions}


def test_the_first_of_two_that_fit_is_told(told):
    exercise = make(
        misconceptions=[Misconception("First.", lambda x: x), Misconception("Second.", lambda x: 1 * x)]
    )
    assert told(exercise, lambda x: x)[-2] == "First."


# --- Nothing leaks ---------------------------------------------------------------------------------------


def test_warnings_of_an_answer_are_neither_shown_nor_raised(told):
    def answer(x):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        np.log(-np.abs(x))
        np.ones(2) / 0
        return 2 * x

    assert told(make(), answer)[0].startswith("double: right")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        told(make(name="again"), answer)
    assert seen == []


def test_numpys_settings_of_the_learner_neither_matter_nor_change(told):
    def cases(rng):
        yield Case("large", (np.array([1e308, 1e-320]),))

    with np.errstate(all="raise"):
        before = np.geterr()
        assert told(make(cases=cases, answer=lambda x: x * x), lambda x: x**2)[0].startswith("double: right")
        assert np.geterr() == before


def test_prints_of_an_answer_are_kept(capsys):
    make()(lambda x: print("looking at", x.shape) or 3 * x)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["looking at (2, 3)", "looking at (4,)"]
    assert lines[2] == "double: not yet. 0 of 2 cases are right."


# --- Hints and solution ----------------------------------------------------------------------------------


def test_hints_come_in_order_and_end(capsys):
    exercise = make(hints=("Add.", "long " * 30))
    exercise.hint()
    assert capsys.readouterr().out == "Hint 1 of 2: Add.\n"
    exercise.hint()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Hint 2 of 2: long long")
    assert max(map(len, lines)) <= 100
    for _ in range(2):
        exercise.hint()
        assert (
            capsys.readouterr().out
            == "No more hints. After an attempt, check.double.solution() shows one way.\n"
        )


def test_the_solution_comes_after_an_attempt(told, capsys):
    exercise = make()
    assert exercise.solution() is None
    assert capsys.readouterr().out == "First try: run check.double(double) on an answer of your own.\n"
    told(exercise, 3)
    told(exercise, ellipsis_body)
    assert exercise.solution() is None
    told(exercise, lambda x: x)
    shown = exercise.solution()
    assert isinstance(shown, Source)
    assert repr(shown) == "def doubled(x):\n    return 2 * x"


def test_an_exercise_says_what_it_is():
    assert repr(make()) == "check.double: chapter 3, difficulty 1, 5 minutes"


def test_a_name_is_taken_once():
    make()
    with pytest.raises(ValueError, match="two exercises called double"):
        make()


# --- Progress --------------------------------------------------------------------------------------------


def test_attempts_are_counted_and_what_is_solved_stays_solved(told):
    exercise = make()
    told(exercise, lambda x: x)
    assert recorded() == {"double": {"attempts": 1, "solved": False}}
    told(exercise, doubled)
    assert recorded() == {"double": {"attempts": 2, "solved": True}}
    told(exercise, lambda x: x)
    assert recorded() == {"double": {"attempts": 3, "solved": True}}


def test_progress_is_kept_over_runs(told, folder, monkeypatch):
    told(make(), doubled)
    monkeypatch.setattr(module, "EXERCISES", {})  # a new kernel
    told(make(), lambda x: x)
    told(make(name="other"), lambda x: x)
    assert recorded() == {
        "double": {"attempts": 2, "solved": True},
        "other": {"attempts": 1, "solved": False},
    }
    assert [path.name for path in folder.iterdir()] == [".progress.json"]


def test_progress_is_in_the_working_directory(told, folder, monkeypatch):
    exercise = make()
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    told(exercise, doubled)
    assert (folder / "below" / ".progress.json").exists()
    assert not (folder / ".progress.json").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"[1]", b"3", b"null", b"\xff\xfe", b'{"double": 3}', b'{"double": {}}',
     b'{"double": {"attempts": null, "solved": true}}', b'{"double": {"attempts": "many", "solved": true}}'],
)  # fmt: skip
def test_a_damaged_record_is_begun_anew(content, told, capsys):
    Path(".progress.json").write_bytes(content)
    exercise = make()
    progress()
    assert "0 of 1 solved" in capsys.readouterr().out
    assert len(told(exercise, doubled)) == 1
    assert recorded() == {"double": {"attempts": 1, "solved": True}}


def test_a_record_that_cannot_be_written_is_said_and_nothing_more(told, folder):
    (folder / ".progress.json").mkdir()
    lines = told(make(), doubled)
    assert lines[0].startswith("double: right.")
    assert lines[1:] == ["(Your progress could not be kept in .progress.json: Is a directory.)"]


@pytest.mark.skipif(os.name != "posix", reason="only POSIX removes a folder that is in use")
def test_a_folder_that_is_gone(told, folder, monkeypatch):
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    lines = told(make(), doubled)
    monkeypatch.chdir(folder)
    assert lines[1:] == ["(Your progress could not be kept in .progress.json: No such file or directory.)"]


def test_progress_can_be_switched_off(told, folder, monkeypatch, capsys):
    exercise = make()
    told(exercise, doubled)
    before = recorded()
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    told(exercise, doubled)
    assert recorded() == before
    progress()
    assert (
        "0 of 1 solved" in capsys.readouterr().out
    )  # nor is it read: a stored notebook's table is the same for all


def test_the_table_of_progress(told, capsys):
    exercises = [make(name=name) for name in ("first", "second", "third", "fourth")]
    for exercise, answer in zip(exercises, (doubled, abs, lambda x: x), strict=False):
        told(exercise, answer)
    told(exercises[2], lambda x: 3 * x)
    Path(".progress.json").write_text(
        json.dumps({**recorded(), "of another course": {"attempts": 1, "solved": True}})
    )
    progress()
    assert capsys.readouterr().out.splitlines() == [
        "chapter  exercise                difficulty  minutes  state",
        "      3  first                            1        5  solved, 1 attempt",
        "      3  second                           1        5  1 attempt",
        "      3  third                            1        5  2 attempts",
        "      3  fourth                           1        5  -",
        "1 of 4 solved",
    ]
