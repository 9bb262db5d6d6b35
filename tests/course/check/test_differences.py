"""What is wrong with a value, in words."""

from __future__ import annotations

import numpy as np
import pytest
from doubling import HINT, make, returning

from minigrad import Tensor

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.numpy_only("answers are written in NumPy")]

# --- What is wrong with a value --------------------------------------------------------------------------

ARRAY = np.array([[1.0, 2.0], [3.0, 4.0]])


class Equal(np.ndarray):
    """An array that says of itself that it is close to all others."""

    def __array_function__(self, *_):
        return np.ones(self.shape, bool)


class TensorOfEqual(Tensor):
    """A tensor that gives such an array."""

    def numpy(self):
        return np.zeros(self.shape).view(Equal)


class EqualText(str):
    """A text that says of itself that it is equal to all others."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class Foreign:
    """An array of another library, which cannot be converted."""

    def __array__(self, *_, **__):
        raise RuntimeError("detach me first")

    def __repr__(self):
        return "Foreign()"


@pytest.mark.parametrize(
    ("expected", "value", "words"),
    [
        (ARRAY, ARRAY[0], "it should return shape (2, 2), and returned shape (2,)"),
        (ARRAY, ARRAY.tolist(), "should return an array of shape (2, 2) and dtype float64, and returned a list of 2"),
        (ARRAY, np.float64(3.5), "and returned np.float64(3.5)"),
        (ARRAY, ARRAY + 0j, "and returned an array of shape (2, 2) and dtype complex128"),
        (ARRAY, Tensor(ARRAY), "and returned a Tensor of shape (2, 2)"),
        (Tensor(ARRAY), ARRAY, "it should return a Tensor of shape (2, 2), and returned an array of shape (2, 2)"),
        (Tensor(ARRAY), Tensor(ARRAY + 1), "4 of 4 entries are off. The entry [0, 0] should be 1, and is 2"),
        (Tensor(ARRAY), TensorOfEqual(ARRAY), "4 of 4 entries are off. The entry [0, 0] should be 1, and is 0"),
        ("text", EqualText("other"), "it should return 'text', and returned 'other'"),
        (ARRAY, np.array([[1, 2], [np.inf, 4]]), "1 of 4 entries are NaN or infinite"),
        (ARRAY, ARRAY + [[0, 0.5], [0, 1]], "2 of 4 entries are off. The entry [0, 1] should be 2, and is 2.5"),
        (ARRAY, ARRAY * (1 + 1e-8), "The entry [0, 0] should be 1, and is 1.00000001"),
        (np.array([True, False]), np.array([True, True]), "The entry [1] should be 0, and is 1"),
        (np.array([-np.inf, 1]), np.array([-np.inf, 2]), "1 of 2 entries are off. The entry [1] should be 1, and is 2"),
        (np.array([-np.inf, 1.0]), np.array([0.0, 1.0]), "The entry [0] should be -inf, and is 0"),
        (np.array([-1.7e308]), np.array([1.7e308]), "The entry [0] should be -1.7e+308, and is 1.7e+308"),
        (0.125, 1, "it should return 0.125, and returned 1"),
        (0.125, np.array([0.125]), "and returned an array of shape (1,) and dtype float64"),
        (0.125, 0.125j, "it should return 0.125, and returned 0.125j"),
        (0.125, float("nan"), "it should return 0.125, and returned nan"),
        (0.125, [[1], [1, 2]], "and returned a list of 2"),
        (0.125, Foreign(), "and returned Foreign()"),
        ((1.0, 2.0), 1.0, "it should return 2 values, and returned 1.0"),
        ((1.0, 2.0), (1.0,), "it should return 2 values, and returned a tuple of 1"),
        ((1.0, 2.0), (1.0, 5.0), "value 2 of 2: it should return 2, and returned 5"),
        ((ARRAY, ARRAY), (ARRAY, ARRAY[0]), "value 2 of 2: it should return shape (2, 2), and returned shape (2,)"),
        (["un", "##aff"], ["un", "aff"], "value 2 of 2: it should return '##aff', and returned 'aff'"),
        (["un"], "un", "it should return 1 value, and returned 'un'"),
        ("yes", "no", "it should return 'yes', and returned 'no'"),
        ("yes", np.array(["yes", "no"]), "it should return 'yes', and returned an array"),
        (True, False, "it should return True, and returned False"),
        (True, ARRAY, "it should return True, and returned an array"),
        ({"a": 1.0}, {"b": 1.0}, "it should have the keys a, and has b"),
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
        (np.array(0.5), np.float64(0.5)),
        (2, 2.0),
        (True, np.bool_(True)),
        ((1.0, 2.0), [1.0, 2.0]),
        ({"a": 1.0, "b": ARRAY}, {"b": ARRAY, "a": 1}),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_what_is_as_good_is_accepted(expected, value, told):
    assert told(returning(expected), lambda: value)[0] == "double: right. 1 case."


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


def test_a_float32_does_not_widen_a_tolerance_that_is_wide(told):
    exercise = make(rtol=1e-5, cases=lambda rng: [("one", 1.0)])
    assert told(exercise, lambda x: np.float32(2 * x))[0].startswith("double: right")
    assert told(exercise, lambda x: np.float32(2.01 * x))[0].startswith("double: not yet")
    assert told(exercise, lambda x: np.float32(0))[0].startswith("double: not yet")


def test_the_lowest_number_of_a_mask_hides_no_other_difference(told):
    lowest = np.finfo(np.float32).min
    mask = np.array([0, lowest, 0], np.float32)
    exercise = returning(mask)
    assert told(exercise, lambda: mask + np.array([1, 0, 0], np.float32))[0].startswith("double: not yet")
    assert told(exercise, lambda: mask.copy())[0].startswith("double: right")


def test_the_first_case_that_is_wrong_is_told(told):
    lines = told(make(), lambda x: 2 * x if x.ndim == 2 else x)
    assert lines[0] == "double: not yet. 1 of 2 cases is right."
    assert "On a (4,) array of float32: 4 of 4 entries are off." in " ".join(lines)
