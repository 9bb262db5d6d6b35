"""What a learner sees of a check: one line for an empty answer, the mistake by its name, and never a traceback."""

from __future__ import annotations

import ctypes
import random as python_random
import sys
import time
import warnings

import numpy as np
import pytest
from doubling import HINT, double, make, recorded

from bert_course.check import exercise as module
from bert_course.check import watch
from bert_course.common.show import Source
from minigrad import Tensor, random

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]

# --- Right -----------------------------------------------------------------------------------------------


def test_a_right_answer_is_told_the_cases(told):
    assert told(make(), lambda x: x + x) == [
        "double: right. 2 cases.",
        "To compare with a solution: check.double.solution()",
        "All exercises of this page are right.",
    ]


def test_a_call_prints_what_it_found_and_returns_nothing(capsys):
    """At the end of a cell a value would be shown beside the text."""
    assert make()(double) is None
    assert capsys.readouterr().out.startswith("double: right. 2 cases")


def test_after_a_right_answer_the_next_exercise_that_is_not_solved_is_named(told):
    exercises = [make(name=name) for name in ("one", "two", "three")]
    assert told(exercises[0], double)[-1] == "Next: two, difficulty 1, 5 minutes."
    assert told(exercises[1], double)[-1] == "Next: three, difficulty 1, 5 minutes."
    assert told(exercises[0], double)[-1] == "Next: three, difficulty 1, 5 minutes."  # two is solved
    assert told(exercises[2], double)[-1] == "All exercises of this page are right."
    assert "Next" not in " ".join(told(exercises[0], abs))


def test_after_the_last_one_an_earlier_one_that_is_open_is_named(told):
    exercises = [make(name=name) for name in ("one", "two", "three")]
    assert told(exercises[0], double)[-1] == "Next: two, difficulty 1, 5 minutes."
    assert told(exercises[2], double)[-1] == "Next: two, difficulty 1, 5 minutes."


def test_long_lines_are_wrapped(told):
    exercise = make(mistakes=f"You {'really ' * 30}halve it.\n    2 * x -> x / 2")
    lines = told(exercise, lambda x: x / 2)
    assert lines[1].startswith("You really really")
    assert lines[2].startswith("really")
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
    assert told(make(), double) == ["double: MINIGRAD_CHECK_SEED should be a whole number, and is '-x'."]


# --- Not a function, errors, no return -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((3, 4)), "an array of shape (3, 4) and dtype float64"),
        (None, "None"),
        ([1, 2], "a list of 2"),
        (Tensor(np.ones(3)), "a Tensor of shape (3,)"),
    ],
)
def test_what_is_no_function_is_named(given, words, told, folder):
    exercise = make()
    assert told(exercise, given) == [
        "double: pass the function itself, check.double(double).",
        f"This is {words}.",
    ]
    assert list(folder.iterdir()) == []


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


def test_a_forgotten_return_is_named(told):
    def answer(x):
        x = 2 * x

    lines = told(make(), answer)
    assert "it returned None. Is there a `return` before the result?" in " ".join(lines)
    assert recorded()["double"]["attempts"] == 1


def test_a_builtin_without_source_is_no_empty_answer(told):
    assert "it returned None" in " ".join(told(make(), [].append))


# --- The mistake -----------------------------------------------------------------------------------------

MISTAKES = """
You halve it.
    2 * x -> x / 2

You divide by 0.
    2 * x -> x / 0 * 0

You make it long.
    return 2 * x -> return np.append(x, x)

You fail on matrices.
    if x.ndim == 2:
        raise ValueError("the library's words")
    return x

You have made a table of it.
    return -> return 1 +
"""


@pytest.fixture
def known():
    """An exercise that knows five mistakes."""
    return make(mistakes=MISTAKES)


def mistakes_told(exercise, lines):
    """The sentences of known mistakes among what was told."""
    return [mistake.sentence for mistake in exercise.known_mistakes if mistake.sentence in " ".join(lines)]


def test_a_mistake_is_told_by_its_name(known, told):
    lines = told(known, lambda x: 0.5 * x)
    assert lines[0] == "double: not yet. 0 of 2 cases are right."
    assert lines[1] == "You halve it."
    assert lines[-1] == HINT


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: np.full_like(x, np.nan), "You divide by 0."),
        (lambda x: np.concatenate([x.ravel(), x.ravel()]), "You make it long."),
        (lambda x: x.astype(np.float64) / 2, "You halve it."),  # and float64 besides
        (lambda x: (x / 2).tolist(), "You halve it."),  # and a list
    ],
)
def test_nan_shapes_and_dtypes_are_recognised(answer, message, known, told):
    assert told(known, answer)[1] == message


def test_an_id_is_not_shown(told):
    exercise = make(
        mistakes="[halved] You halve it.\n    2 * x -> x / 2\n[one] You add 1.\n    return -> return 1 +"
    )
    assert told(exercise, lambda x: x / 2)[1] == "You halve it."
    assert told(exercise, lambda x: x / 2 + 1)[2:4] == ["(1) You halve it.", "(2) You add 1."]


def test_a_mistake_is_found_by_its_id():
    exercise = make(mistakes="None.\n    2 ->\n[halved] You halve it.\n    2 * x -> x / 2\n    2 -> 0.5")
    assert exercise.mistake("halved") is exercise.known_mistakes[1]
    for id in ("halves", "", "None."):
        with pytest.raises(LookupError, match=rf"check.double knows no mistake \[{id}\]; its ids: halved"):
            exercise.mistake(id)


def test_two_mistakes_get_both_sentences(known, told):
    lines = told(known, lambda x: x / 2 + 1)
    assert lines[1:4] == ["Two mistakes at once.", "(1) You halve it.", "(2) You have made a table of it."]


def test_a_single_mistake_comes_before_two_mistakes(told):
    exercise = make(
        mistakes="One.\n    2 * x -> x\n\nTwo.\n    return -> return 1 *\n\nThree.\n    return 1 * x"
    )
    assert told(exercise, lambda x: x)[1] == "One."


def test_an_error_of_the_same_kind_is_recognised_whatever_it_says(known, told):
    def answer(x):
        if x.ndim == 2:
            raise ValueError("other words")
        return x

    assert told(known, answer)[1] == "You fail on matrices."


def test_a_mistake_that_returns_none_on_some_cases_is_named(told):
    exercise = make(
        mistakes="Vectors are doubled too.\n    return 2 * x -> return 2 * x if x.ndim > 1 else None"
    )
    assert "Vectors are doubled too." in told(exercise, lambda x: x + x if x.ndim > 1 else None)
    assert "Vectors are doubled too." not in told(exercise, lambda x: x + x if x.ndim > 1 else x)


def test_an_answer_that_returns_none_everywhere_has_only_forgotten_to_return(told):
    exercise = make(mistakes="Halved.\n    2 * x -> x / 2\n\nNever any.\n    2 * x -> None")
    assert "Never any." not in told(exercise, lambda x: print(2 * x))


def test_an_error_of_another_kind_explains_in_part(known, told):
    def answer(x):
        if x.ndim == 2:
            raise TypeError
        return x

    lines = told(known, answer)
    text = "On 1 of the 2 wrong cases your answer gives what this mistake gives: You fail on matrices."
    assert lines[1] == text


def test_nothing_but_errors_is_no_known_mistake(told):
    exercise = make(mistakes="You fail.\n    raise ValueError")

    def answer(x):
        raise ValueError

    assert mistakes_told(exercise, told(exercise, answer)) == []


def test_a_division_by_zero_is_a_sign_of_a_mistake(told):
    exercise = make(
        mistakes="You divide by it.\n    return 2 * x -> return 2 * x * x / x",
        cases=lambda rng: [("nothing", 0), ("three", 3)],
    )
    lines = told(exercise, lambda x: x / x + 2 * x - 1)
    assert "it raised ZeroDivisionError" in lines[2]
    assert mistakes_told(exercise, lines) == ["You divide by it."]


def test_a_mistake_on_one_of_two_wrong_cases_is_told_as_such(known, told):
    lines = told(known, lambda x: x / 2 if x.ndim == 2 else x + 7)
    assert lines[1] == "On 1 of the 2 wrong cases your answer gives what this mistake gives: You halve it."


def test_a_mistake_on_the_only_wrong_case_is_told_as_such(known, told):
    lines = told(known, lambda x: x / 2 if x.ndim == 2 else 2 * x)
    assert lines[1] == "On the wrong case your answer gives what this mistake gives: You halve it."


def test_a_mistake_that_would_spoil_more_than_it_explains_is_not_told(told):
    exercise = make(
        mistakes="You square it.\n    2 * x -> x**2",
        cases=lambda rng: [(f"the number {n}", float(n)) for n in (3, 5, 7)],
    )
    lines = told(exercise, lambda x: 49.0 if x == 7 else 2 * x)
    assert mistakes_told(exercise, lines) == []


def test_a_mistake_behind_fewer_than_half_of_the_wrong_cases_is_not_told(told):
    exercise = make(
        mistakes="You halve it.\n    2 * x -> x / 2",
        cases=lambda rng: [(f"the number {n}", float(n)) for n in (3, 5, 7)],
    )
    assert mistakes_told(exercise, told(exercise, lambda x: x / 2 if x == 3 else x * x)) == []
    assert mistakes_told(exercise, told(exercise, lambda x: x / 2 if x < 6 else x * x)) == ["You halve it."]


def test_two_mistakes_that_explain_as_much_are_not_told(known, told):
    lines = told(known, lambda x: x / 2 if x.ndim == 2 else np.append(x, x))
    assert mistakes_told(known, lines) == []


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda x: -2 * x, "Every number is the negative of what it should be."),
        (lambda x: 2 * x[None], "The numbers are right; only the shape is not what is asked for."),
        (lambda x: (2 * x).tolist(), "The numbers are right; only the type is not what is asked for."),
    ],
)
def test_what_is_true_on_every_case_is_told(answer, sentence, told):
    positive = make(cases=lambda rng: [("one", rng.uniform(0.1, 2, (2, 3))), ("two", rng.uniform(0.1, 2, 5))])
    assert told(positive, answer)[1] == sentence


def test_what_is_true_on_one_case_only_is_not_told(told):
    lines = told(make(), lambda x: 6 * x if x.ndim == 2 else 8 * x)
    assert "times" not in " ".join(lines)


def test_which_cases_are_wrong_is_told(told):
    lines = told(make(), lambda x: 2 * x if x.ndim == 2 else x + 9)
    assert "Wrong only on: a (4,) array of float32." in lines


def test_of_several_values_the_right_ones_are_told(told):
    exercise = make(answer=lambda x: (x, 2 * x, x * x))
    lines = told(exercise, lambda x: (x, -2 * x, x * x))
    sentence = (
        "The first and the third of the 3 values are right. Of the second: every number is the negative"
    )
    assert sentence in " ".join(lines)
    assert "The values are right, and in the other order." in told(exercise, lambda x: (x * x, 2 * x, x))


def test_a_changed_argument_is_told_with_the_mistake_besides(known, told):
    def answer(x):
        x /= 2
        return x

    lines = told(known, answer)
    assert "it changes `x`" in lines[2]
    assert lines[1] == "You halve it."


def test_the_first_of_two_that_fit_is_told(told):
    exercise = make(mistakes="First.\n    2 * x -> x\n\nSecond.\n    2 * x -> 1 * x")
    assert told(exercise, lambda x: x)[1] == "First."


# --- How much two mistakes, or one on some cases, are worth ------------------------------------------------


def whole_numbers(rng):
    yield from ((f"the number {n}", n) for n in range(1, 7))


def test_whole_numbers_that_agree_on_few_cases_are_no_sign_of_a_mistake(told):
    exercise = make(mistakes="You square it.\n    2 * x -> x**2", cases=whole_numbers)
    lines = told(exercise, lambda x: x * x if x in (3, 4, 5) else 7 * x + 4)
    assert mistakes_told(exercise, lines) == []
    lines = told(exercise, lambda x: x * x if x in (1, 3, 4, 5) else 2 * x if x == 2 else 46)
    assert lines[1] == "On 4 of the 5 wrong cases your answer gives what this mistake gives: You square it."


def name_of(x):
    return "even" if x % 2 == 0 else "three" if x == 3 else "odd"


NAMES = """
Even numbers are odd here.
    "even" if -> "odd" if
Three is odd here.
    "three" if -> "odd" if
Three is even here.
    "three" if -> "even" if
"""


def test_a_second_mistake_that_only_one_word_shows_is_not_told(told):
    exercise = make(answer=name_of, mistakes=NAMES, cases=whole_numbers)
    lines = told(exercise, lambda x: "odd")
    assert (
        lines[1]
        == "On 3 of the 4 wrong cases your answer gives what this mistake gives: Even numbers are odd here."
    )
    listed = told(exercise, lambda x: ["odd"] if x == 3 else "odd")
    assert not any("Two mistakes" in line for line in listed)
    halves = make(name="halves", mistakes=MISTAKES, cases=lambda rng: [("a", 1.5), ("b", 2.5), ("c", 3.5)])
    assert "Two mistakes at once." in told(halves, lambda x: 1 + x / 2)
    # Where a number that is near will do, two mistakes come near by chance.
    about = make(
        name="about", mistakes=MISTAKES, rtol=0.01, cases=lambda rng: [("a", 1.5), ("b", 2.5), ("c", 3.5)]
    )
    assert "Two mistakes at once." not in told(about, lambda x: 1 + x / 2)


def mean_and_variance(x):
    mean = x.mean()
    return mean, ((x - mean) ** 2).mean()


def two_moments(mistakes):
    cases = [("two", np.array([1.5, -0.25])), ("three", np.array([1.0, -2.5, 4.0]))]
    return make(answer=mean_and_variance, mistakes=mistakes, cases=lambda rng: cases)


def test_what_a_mistake_leaves_alone_does_not_follow_from_it(told):
    exercise = two_moments(
        "Doubled.\n    return mean, -> return 2 * mean,\n\nNo square.\n    (x - mean) ** 2 -> abs(x - mean)\n"
    )
    lines = told(exercise, lambda x: (2 * x.mean(), abs(x - x.mean()).mean()))
    assert lines[1:4] == ["Two mistakes at once.", "(1) Doubled.", "(2) No square."]


def test_a_mistake_and_a_fact_that_undo_each_other_are_not_told(told):
    """Two negations, of values that have changed places."""
    for_two = two_moments(
        "The signs, and the order.\n    return mean, ((x - mean) ** 2) -> return 0 - x.var(), -(mean + 0 * x)"
    )
    assert told(for_two, lambda x: (x.var(), x.mean()))[1] == "The values are right, and in the other order."


def test_what_one_fact_says_is_not_told_as_two_mistakes(told):
    """Here two mistakes come to the same as the other order."""
    both = two_moments(
        "The variance twice.\n    return mean, -> return x.var(),\n"
        "The mean twice.\n    ((x - mean) ** 2).mean() -> x.mean()"
    )
    assert told(both, lambda x: (x.var(), x.mean()))[1] == "The values are right, and in the other order."


def test_nor_are_two_negations_of_values_that_are_nearly_right(told):
    for_two = two_moments(
        "The signs, and n - 1.\n    return mean, ((x - mean) ** 2).mean() -> return -mean, -x.var(ddof=1)"
    )
    assert "Two mistakes at once." not in told(for_two, lambda x: (x.mean(), x.var(ddof=1)))


def test_a_mistake_that_rounds_otherwise_is_recognised(told):
    exercise = make(mistakes="You halve it.\n    2 * x -> x / 2")
    assert told(exercise, lambda x: x / 2 * (1 + 5e-9 * (x.ndim == 2)))[1] == "You halve it."


def test_in_float32_an_entry_near_0_may_be_off_as_a_sum_of_large_ones_is(told):
    large = np.array([24.0, 6.5e-5, 3.0], np.float32)
    exercise = make(cases=lambda rng: [("one", large)])
    assert told(exercise, lambda x: 2 * x + np.array([0, 1.4e-4, 0], np.float32))[0].startswith(
        "double: right."
    )
    assert not told(exercise, lambda x: 2 * x + np.array([0, 1e-3, 0], np.float32))[0].startswith(
        "double: right."
    )
    assert not told(exercise, lambda x: 2.001 * x)[0].startswith("double: right.")


# --- What the page gives ---------------------------------------------------------------------------------

PAGE = """
def run(x):
    return 2 * x

def calls(x):
    return run(x)

def writes_down(x):
    return 2 * x

def wrong(x):
    return x
"""


def test_a_function_that_the_page_gives_has_to_be_called(told):
    exercise, page = make(given="run"), {}
    exec(PAGE, page)
    run = page["run"]
    assert told(exercise, page["calls"])[0].startswith("double: right.")
    text = " ".join(told(exercise, page["writes_down"]))
    assert (
        "it never calls `run`. Choose what goes into it, and return what the page's `run` makes of that."
        in text
    )
    assert "entries are off" in " ".join(told(exercise, page["wrong"]))  # first
    assert told(exercise, lambda x: 2 * x)[0].startswith("double: right.")  # there is none here
    assert page["run"] is run


# --- The dtype -------------------------------------------------------------------------------------------


def test_another_dtype_is_a_remark(told):
    lines = told(make(), lambda x: 2 * x.astype(np.float64))
    assert lines[0].startswith("double: right.")
    assert lines[1].startswith("A remark. The numbers are right, and are float64 for float32.")


def test_another_dtype_is_a_mistake_where_the_text_asks_for_one(told):
    lines = told(make(same_dtype=True), lambda x: 2 * x.astype(np.float64))
    assert lines[0] == "double: not yet. 1 of 2 cases is right."
    assert "On a (4,) array of float32: The numbers are right, and are float64 for float32." in " ".join(
        lines
    )


def test_another_dtype_is_told_beside_a_mistake(told):
    exercise = make(same_dtype=True, mistakes="You do not double.\n    2 * x -> x")
    lines = told(exercise, lambda x: x.astype(np.float64))
    assert "You do not double." in lines
    assert "it returns float64 for float32." in " ".join(lines)


# --- A long wait -----------------------------------------------------------------------------------------


def test_right_numbers_of_another_dtype_are_no_mistake_that_is_nearly_right(told):
    exercise = make(same_dtype=True, mistakes="You add something.\n    return -> return 1e-7 +")
    lines = told(exercise, lambda x: (2 * x).astype(np.float32))
    assert "are float32 for float64" in " ".join(lines)
    assert mistakes_told(exercise, lines) == []
    assert mistakes_told(exercise, told(exercise, lambda x: 2 * x + 1e-7)) == ["You add something."]


def test_a_long_wait_is_told_with_the_case(capsys, monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 0.05)
    make()(lambda x: time.sleep(0.2 * (x.ndim == 1)) or 2 * x)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("double: still at case 2 of 2, a (4,) array of float32. Interrupt")
    assert lines[1].startswith("double: right.")


def test_a_check_works_where_no_thread_can_start(told, monkeypatch):
    """As in WebAssembly, which the site's pages run."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(watch.threading.Thread, "start", refuse)
    assert told(make(), lambda x: x + x)[0].startswith("double: right.")


# --- Nothing leaks ---------------------------------------------------------------------------------------


def fitted(x):
    return np.polyfit(np.arange(4.0), np.log(x), 1)


def test_what_lapack_writes_of_nan_does_not_reach_the_learner(capfd):
    """A search makes NaN of numbers; the answer may do so itself."""
    exercise = make(
        answer=fitted,
        cases=lambda rng: [("four", np.array([1.0, 2.0, 4.0, 9.0]))],
        mistakes="Backwards.\n    np.log(x) -> np.log(-x)",
    )
    for answer in (
        lambda x: np.polyfit(np.arange(4), np.log(x - 1), 1),
        lambda x: np.linalg.lstsq(x[:, None] * np.nan, x),
    ):
        exercise(answer)
    ctypes.CDLL(None).fflush(None)  # it writes by C's own stdout
    out, err = capfd.readouterr()
    assert "DLASCL" not in out + err
    assert "SVD did not converge" in out


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
        yield ("large", np.array([1e308, 1e-320]))

    with np.errstate(all="raise"):
        before = np.geterr()
        assert told(make(cases=cases, answer=lambda x: x * x), lambda x: x**2)[0].startswith("double: right")
        assert np.geterr() == before


def test_more_prints_than_a_few_lines_are_counted(capsys):
    def answer(x):
        for i in range(10_000):
            print(i)
        return 2 * x

    make()(answer)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:12] == [str(i) for i in range(12)]
    assert lines[12] == "(… 19,988 more lines that your answer printed are not shown.)"
    assert lines[13].startswith("double: right.")


def test_what_is_written_to_stderr_is_counted_with_it(capsys):
    make()(lambda x: print("x" * 5000, file=sys.stderr) or (sys.stderr.write("y") and 2 * x))
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("(… 3 more lines")
    make(name="again")(lambda x: sys.stdout.write("x" * (5000 if x.ndim == 1 else 1)) and 2 * x)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "x",
        "(… 1 more line that your answer printed is not shown.)",
    ]


def test_a_print_without_an_end_of_line_does_not_run_into_the_verdict(capsys):
    make()(lambda x: print(".", end="") or 2 * x)
    assert capsys.readouterr().out.splitlines()[0] == ".."


def test_settings_that_an_answer_changes_do_not_reach_the_check_nor_what_comes_after(told):
    def answer(x):
        np.seterr(all="raise")
        np.set_printoptions(precision=1)
        np.random.seed(3)
        python_random.seed(3)
        random.manual_seed(3)
        warnings.simplefilter("error")
        sys.stdout = sys.stderr = None
        return 2 * x

    def settings():
        draws = np.random.get_state()[1].tolist(), python_random.getstate(), str(random.get_state())
        return np.geterr(), np.get_printoptions(), draws, warnings.filters[:], sys.stdout, sys.stderr

    before = settings()
    large = make(cases=lambda rng: [("large", np.array([1e308, 1e-320]))] * 2, answer=lambda x: x * x)
    assert told(large, lambda x: [x * x, np.seterr(all="raise")][0])[0].startswith("double: right.")
    assert told(make(name="again"), answer)[0].startswith("again: right.")
    assert settings() == before


def test_an_answer_may_not_end_the_kernel(told):
    assert "it raised SystemExit: 3" in told(make(), lambda x: sys.exit(3))[1]


def test_an_interrupted_answer_is_told_the_case_and_not_counted(told, folder):
    def answer(x):
        if x.ndim == 1:
            raise KeyboardInterrupt
        return 2 * x

    exercise = make()
    assert " ".join(told(exercise, answer)) == (
        "double: interrupted. It was at case 2 of 2, a (4,) array of float32. The line was `raise KeyboardInterrupt`. "
        "If it is in a loop, can what the loop waits for happen with this input?"
    )
    assert list(folder.iterdir()) == []
    assert exercise.solution() is None


def test_an_interrupted_search_for_the_mistake_is_told(told, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "diagnose", interrupt)
    lines = told(make(), lambda x: x)
    assert lines[0] == "double: not yet. 0 of 2 cases are right."
    assert lines[1] == "Interrupted: the check was still looking for the mistake behind it."


def test_a_terminal_shows_the_values_before_the_search_and_goes_on_with_the_mistake(monkeypatch, capsys):
    said = []
    search = module.diagnose
    monkeypatch.setattr(
        module, "diagnose", lambda *known: said.append(capsys.readouterr().out) or search(*known)
    )
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    make(mistakes="You halve it.\n    2 * x -> x / 2")(lambda x: print("half") or x / 2)
    (before,), after = said, capsys.readouterr().out
    assert before.startswith(
        "half\nhalf\ndouble: not yet. 0 of 2 cases are right.\nOn a (2, 3) array of float64: "
    )
    assert before.endswith("\nLooking for the mistake …\n")
    assert "yours" in before
    assert after.splitlines() == ["You halve it.", HINT]


# --- Hints and solution ----------------------------------------------------------------------------------


def test_hints_come_in_order_and_end(capsys):
    exercise = make(hints="Add.\n\n" + "long " * 30)
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
    told(exercise, lambda x: ...)
    assert exercise.solution() is None
    told(exercise, lambda x: x)
    shown = exercise.solution()
    assert isinstance(shown, Source)
    assert repr(shown) == "def double(x):\n    return 2 * x"


def test_long_comments_of_a_solution_are_broken_between_words(told):
    def answer(x):
        # A short comment stays.
        y = 2 * x
        # This comment is longer than what a cell of a notebook can show in one line, so it is broken somewhere. It
        # goes on here.
        return y + 0

    exercise = make(answer=answer)
    told(exercise, abs)
    lines = exercise.solution().text.split("\n")
    assert lines[1:3] == ["    # A short comment stays.", "    y = 2 * x"]
    assert lines[-1] == "    return y + 0"
    comment = lines[3:-1]
    assert max(map(len, comment)) <= 88
    assert all(line.startswith("    # ") for line in comment)
    assert " ".join(line[6:] for line in comment).endswith("it is broken somewhere. It goes on here.")


def test_an_exercise_says_what_it_is():
    assert repr(make()) == "check.double: chapter 3, difficulty 1, 5 minutes"


def test_a_name_is_taken_once():
    make()
    with pytest.raises(ValueError, match="two exercises are called double, in modules and modules"):
        make()
