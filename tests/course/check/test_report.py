"""A check's words as text and as HTML: the same words, the input, yours beside what was expected, hints to unfold."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from doubling import HINT, make

from bert_course.check import exercise as module
from bert_course.check.differences import differing
from bert_course.check.report import Report, Values
from minigrad import Tensor

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]


COMPARE = "To compare with a solution: check.double.solution()"


@pytest.fixture
def reported(monkeypatch):
    """`reported(exercise, answer)`: what the check shows."""

    def report(exercise, answer):
        shown = []
        monkeypatch.setattr(module, "tell", shown.append)
        exercise.judge(answer)
        (one,) = shown
        return one

    return report


def words(markup):
    """The text of HTML, on one line."""
    markup = re.sub(r"<style>.*?</style>|<summary>.*?</summary>", " ", markup, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def table_cells(markup, kind="td"):
    return re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", markup)


def small(rng):
    yield "two numbers", np.array([1.0, -2.0])
    yield "a matrix", np.array([[1.0, 2.0], [3.0, 4.0]])


# --- One structure -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [lambda x: 2 * x, lambda x: x, lambda x: ..., lambda x: x[9, 9], 3, lambda x: x / 2],
    ids=["right", "wrong", "empty", "error", "no function", "mistake"],
)
def test_all_that_the_text_says_is_in_the_html(answer, reported):
    report = reported(make(cases=small, mistakes="You `halve` it.\n    2 * x -> x / 2"), answer)
    text = repr(report).replace("`", " ").replace(HINT, "").replace(COMPARE, "").replace(".1", " .1")
    for word in text.split():
        assert word in words(report._repr_html_()).replace(".1", " .1"), word


@pytest.mark.parametrize(
    ("answer", "mark", "kind"),
    [(lambda x: 2 * x, "✓", "right"), (lambda x: x, "✗", "wrong"), (lambda x: ..., "·", "note")],
)
def test_the_verdict_is_a_mark_and_a_colour(answer, mark, kind, reported):
    markup = reported(make(), answer)._repr_html_()
    assert words(markup).startswith(f"{mark} double:")
    assert f'class="course-check course-colours is-{kind}"' in markup


def test_words_are_escaped_and_code_is_marked(reported):
    markup = Report("note", "a < b", "if `x > 0` & so on")._repr_html_()
    assert "a &lt; b" in markup
    assert "if <code>x &gt; 0</code> &amp; so on" in markup


def test_it_needs_no_script(reported):
    assert "<script" not in reported(make(), lambda x: x)._repr_html_()


# --- Values ------------------------------------------------------------------------------------------------


def test_small_arrays_are_shown_whole_with_what_differs_marked(reported):
    markup = reported(make(cases=small), lambda x: np.where(x > 0, 2 * x, x))._repr_html_()
    assert table_cells(markup) == ["2", "-2", "2", "-4", "1", "-2"]
    assert re.findall(r'<td class="off">(.*?)</td>', markup) == ["-2", "-4"]
    labels = re.findall(r"<div>(.*?)</div>", markup)
    assert labels == ["yours", "expected", "x"]
    assert markup.index("<summary>The input</summary>") > markup.index("expected")


def test_small_arrays_are_lines_of_the_text(reported):
    lines = repr(reported(make(cases=small), lambda x: x)).splitlines()
    assert lines[1] == "Every number is 0.5 times what it should be."
    assert lines[3:6] == ["  yours     1  -2", "  expected  2  -4", "  x         1  -2"]


def test_of_a_large_array_the_first_entries_that_differ_are_shown(reported):
    def answer(x):
        y = 2 * x
        y[3:, 5] = 0
        return y

    exercise = make(cases=lambda rng: [("large", rng.uniform(1, 2, (20, 30)))])
    report = reported(exercise, answer)
    assert "shape (20, 30); of the entries that differ, the first 5 of 17" in words(report._repr_html_())
    assert table_cells(report._repr_html_(), "th")[3:] == [f"[{i}, 5]" for i in range(3, 8)]
    assert "yours" not in repr(report)


def test_another_shape_is_shown_without_marks(reported):
    markup = reported(make(cases=small), lambda x: np.append(x, x))._repr_html_()
    assert table_cells(markup) == ["1", "-2", "1", "-2", "2", "-4", "1", "-2"]


def test_of_several_values_the_first_that_differs_is_shown(reported):
    exercise = make(answer=lambda x: (x, {"a": 2 * x}), cases=small)
    markup = reported(exercise, lambda x: (x, {"a": 3 * x}))._repr_html_()
    assert "yours, value 2 of 2 a" in words(markup)
    assert table_cells(markup)[:4] == ["3", "-6", "2", "-4"]


@pytest.mark.parametrize("answer", [lambda x: x[7, 7], lambda x: None, lambda x: 2 * x.astype(np.float32)])
def test_where_no_number_is_wrong_the_input_is_shown_alone(answer, reported):
    report = reported(make(cases=small, same_dtype=True), answer)
    assert table_cells(report._repr_html_()) == ["1", "-2"]
    assert "yours" not in repr(report)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((3, 4), "(3, 4)"),
        (["a", 1.5], "['a', 1.5]"),
        (list(range(99)), "a list of 99"),
        ([np.ones(3)], "a list of 1"),
        (np.ones((2, 3, 4)), "an array of shape (2, 3, 4) and dtype float64"),
        (np.ones((9, 2)), "an array of shape (9, 2) and dtype float64"),
        (Tensor(np.ones((2, 3, 4))), "a Tensor of shape (2, 3, 4)"),
        (np.ones((0, 3)), "an array of shape (0, 3) and dtype float64"),
        (None, "None"),
        ("<b>", "<b>"),
        (3, "3"),
        (np.float32(0.5), "0.5"),
        (True, "True"),
        (lambda model, rate: 0.5, "a function"),
        (object(), "an object"),
        (Tensor(np.ones(2)), "1 1"),
    ],
)
def test_inputs_are_shown_or_described(value, shown):
    assert words(Values({"x": value}).html()) == f"x {shown}"


def test_what_cannot_be_compared_is_shown_as_it_came():
    one = differing("words", np.ones(2), 1e-9, 1e-9)
    assert one.wrong is None
    assert words(Values({}, one).html()) == "yours words expected 1 1"


def test_an_argument_that_takes_the_result_is_no_input(reported):
    def fill(x, out):
        out[...] = 2 * x

    exercise = make(answer=fill, cases=lambda rng: [("two", np.ones(2), np.full(2, np.nan))], into="out")
    markup = reported(exercise, lambda x, out: out.fill(3))._repr_html_()
    assert re.findall(r"<div>(.*?)</div>", markup) == ["yours", "expected", "x"]


# --- Hints -------------------------------------------------------------------------------------------------


def test_hints_unfold_one_within_the_other_and_the_solution_last(reported):
    markup = reported(make(), lambda x: x)._repr_html_()
    assert re.findall(r"<summary>(.*?)</summary>", markup)[1:] == [
        "Hint 1 of 2",
        "Hint 2 of 2",
        "One solution",
    ]
    assert "return 2 * x" in markup
    assert markup.count("</details></details></details>") == 1
    assert " open" not in markup


@pytest.mark.parametrize("answer", [lambda x: ..., 3])
def test_what_is_no_attempt_brings_neither_hints_nor_the_solution(answer, reported):
    assert "<details>" not in reported(make(), answer)._repr_html_()


def test_a_right_answer_can_be_compared_with_one_solution(reported):
    markup = reported(make(), lambda x: 2 * x)._repr_html_()
    assert re.findall(r"<summary>(.*?)</summary>", markup) == ["One solution"]
    assert "return 2 * x" in markup
    assert "All exercises of this page are right" in markup


def test_the_diagnosis_comes_first_and_is_larger(reported):
    exercise = make(cases=small, mistakes="You `halve` it.\n    2 * x -> x / 2")
    report = reported(exercise, lambda x: x / 2)
    markup = report._repr_html_()
    assert '<p class="behind">You <code>halve</code> it.</p>' in markup
    assert markup.index("You <code>") < markup.index("entries are off") < markup.index("yours")
    assert repr(report).splitlines()[1] == "You `halve` it."


def test_the_case_that_is_shown_is_one_that_the_mistake_explains(reported):
    def cases(rng):
        yield from ((f"case {n}", np.full(2, n + 0.5)) for n in range(1, 5))

    exercise = make(cases=cases, mistakes="You halve it.\n    2 * x -> x / 2")
    report = reported(exercise, lambda x: x / 2 if x[0] > 2 else x * np.pi)
    assert report.paragraphs == [
        "On 3 of the 4 wrong cases your answer gives what this mistake gives: You halve it."
    ]
    assert report.symptom.startswith("On case 2: ")
    assert report.values.inputs["x"][0] == 2.5
