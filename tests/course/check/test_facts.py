"""What is measured of an answer that no known mistake explains: true of all wrong cases, and of some use."""

from __future__ import annotations

import numpy as np
import pytest
from doubling import make

from bert_course.check.facts import Facts, Wrong, is_strong

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]


def fact(*cases):
    """What is said of cases: what came, what was expected, and the arguments."""
    wrong = [Wrong(got, want, arguments[0] if arguments else {}) for got, want, *arguments in cases]
    return Facts(1e-9, 1e-11).sentence(wrong)


X = np.array([[0.5, -1.5], [2.5, 3.5]])

# --- A factor --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (3, "Every number is 3 times what it should be."),
    ],
)  # fmt: skip
def test_one_factor_on_all_cases(factor, words):
    assert words in fact((factor * X, X), (factor * X[0], X[0]))
    assert words in fact((factor * 1.5, 1.5), (factor * 2.5, 2.5))


@pytest.mark.parametrize(
    "cases",
    [
        [(3.0, 2.0)],
        [(4.0, 2.0)],
        [(2.0, -2.0)],
        [(4.0, 2.0), (4.0, 2.0)],
        [(3.0, 2.0), (6.0, 2.0)],
        [(0.0, 2.0), (1.0, 2.0)],
        [(1.0, 0.0)],
    ],
)
def test_one_number_or_several_ratios_are_no_factor(cases):
    assert "times" not in (fact(*cases) or "")


def sums(rng):
    for rows in (2, 3, 5):
        yield f"{rows} rows", rng.standard_normal((rows, 4)), rows


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x, n: x.mean(axis=0), "is 0.5 times what it should be, and on another case 0.3333 times: that is one"),
        (lambda x, n: x.sum(axis=0) * len(x), "is 2 times what it should be, and on another case 3 times: that is the"),
    ],
)  # fmt: skip
def test_a_factor_that_is_a_size(answer, words, told):
    text = " ".join(told(make(answer=lambda x, n: x.sum(axis=0), cases=sums), answer))
    assert words in text
    assert "the length of axis 0 of `x`. Is there a mean in the place of a sum, or the reverse?" in text


def test_a_whole_number_among_the_arguments_is_a_size():
    text = fact((X * 7, X, {"n": 7, "flag": True}), (X * 3, X, {"n": 3, "flag": True}))
    assert text.endswith("that is `n`. Is there a mean in the place of a sum, or the reverse?")
    assert fact((X * 7, X, {"n": 7}), (X * 3, X, {"n": 2})) is None


def test_rows_of_0_and_1_are_no_right_numbers_in_another_order():
    one_hot = np.eye(4)
    assert fact((one_hot[[1, 0, 3, 2]], one_hot), (np.array([0.0, 1.0]), np.array([1.0, 0.0]))) is None
    assert fact((X[::-1], X)) == "The numbers are the right ones, in another order."


# --- Near, and what says nothing --------------------------------------------------------------------------


def test_what_is_only_rounded_is_told_by_its_digits():
    pair = np.array([1.0, 2.0])
    rounded = fact((pair + [2e-7, 0], pair), (np.array([0.5, 0.0]), np.array([0.5, 1e-9])))
    assert rounded.startswith("All numbers agree with what they should be in about 6 digits.")
    # Not where small ones are off, and agree only beside the largest.
    assert fact((np.array([10300.0, 0.1, 3.0]), np.array([1e4, 0.5, 3.1]))) is None


def test_near_numbers_may_miss_a_small_part():
    near = "All numbers are within 5 % of what they should be."
    assert fact((112009, 112033), (5009.0, 5040.0)) == f"{near} A small part may be missing, or there twice."
    assert fact((0.61, 0.6), (0.75, 0.75), (0.2, 0.205)) == near  # of shares that is anybody's guess
    found = fact((np.array([1.01, 1e-3]), np.array([1.0, 0.0])))
    assert found.startswith("All numbers are within 5 % of what they should be, or small where that is 0.")
    assert fact((np.array([1.01, 0.2]), np.array([1.0, 0.0]))) is None


@pytest.mark.parametrize(
    ("got", "want"), [(-np.inf, 0.0), (1.14e18, np.inf), (np.nan, 2.0), (np.array([np.inf, 2.0]), np.array([0.0, 0.5]))]
)  # fmt: skip
def test_of_what_is_not_finite_nothing_empty_is_said(got, want):
    assert fact((got, want)) is None


def test_which_of_five_values_are_right():
    want = (1.0, 2.0, 3.0, 4.0, 5.0)
    assert (
        fact(((1.0, 2.0, 0.3, 4.0, 5.0), want))
        == "The first, the second, the fourth and the fifth of the 5 values are right."
    )


def test_what_is_true_of_all_of_several_values():
    want = (np.array([1.0, 2.5]), 3.0)
    assert fact(((2 * want[0], 6.0), want)) == "Every number is 2 times what it should be."
    assert fact(((2 * want[0], 7.0), want)) is None


def test_what_is_true_of_each_of_several_values():
    cases = [(np.array([1.0, 2.5]), 3.0), (np.array([-2.0, 0.5]), 4.5)]
    found = fact(*(((2 * x, -y), (x, y)) for x, y in cases))
    assert found == (
        "Of the first value: every number is 2 times what it should be. "
        "Of the second value: every number is the negative of what it should be."
    )
    assert is_strong(found)
    assert fact(*(((2 * x, 7.0), (x, y)) for x, y in cases)) is None


@pytest.mark.parametrize(
    ("text", "strong"),
    [
        ("Every number is 0.5 times what it should be.", True),
        ("Every number is 1.9 times what it should be.", False),
        ("Where it is wrong, your answer is 0.", False),
        ("The first of the 2 values is right. Of the second: every number is 0.", False),
        ("The first of the 2 values is right. Of the second: every number is 2 times what it should be.", True),
        ("Of the first value: every number is 0. Of the second value: every number is √2.", False),
        ("The numbers are the right ones, in another order.", False),
        (None, False),
    ],
)  # fmt: skip
def test_strong_facts_tell_where_all_numbers_come_from(text, strong):
    assert is_strong(text) == strong


def test_zeros_of_another_shape_are_a_matter_of_shape():
    assert fact((np.zeros(3), X), (np.zeros(3), X[0])) is None
    assert fact((0.0, X), (0.0, X[0])) == "Where it is wrong, your answer is 0."
    assert fact((0 * X, X), (0 * X[0], X[0])) == "Where it is wrong, your answer is 0."
