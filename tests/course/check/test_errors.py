"""What an error says, in other words: of each kind one that NumPy or Python raises."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from bert_course.check.errors import SAYINGS, explained, text_of
from minigrad import Tensor

pytestmark = pytest.mark.numpy_only("what NumPy raises")

x, y = np.ones((3, 5)), np.ones((4, 2))


def of_one_parent(backward, dtype=np.float64):
    ones = np.ones((2, 3), dtype)
    Tensor.from_op(ones, (Tensor(ones, requires_grad=True),), backward).backward(ones)


def forgets(kind):
    if kind == "never":
        value = 1
    return value


def endless():
    return endless()


def tensor(*shape):
    return Tensor(np.ones(shape or (2, 3)), requires_grad=True)


RAISED = [
    (lambda: np.tanh(tensor()), "Write x.tanh()"),
    (lambda: np.sqrt(tensor()), "Write x ** 0.5"),
    (lambda: np.square(tensor()), "Write x ** 2"),
    (lambda: np.mean(tensor()), "Write x.mean(axis=-1, keepdims=True)"),
    (lambda: np.sum(tensor()), "Write x.sum(axis=-1, keepdims=True)"),
    (lambda: np.matmul(tensor(), tensor(3, 2)), "Write A @ B"),
    (lambda: tensor(2, 3, 4).transpose(0, 2, 1), "exchanges two axes: x.transpose(1, 2)"),
    (lambda: tensor(2, 3, 4).T, "exchanges two axes: x.transpose(1, 2)"),
    (lambda: np.reshape(tensor(), (3, 2)), "Write x.reshape(…)"),
    (lambda: np.zeros_like(tensor()), "Write 0 * x"),
    (lambda: np.exp(tensor()), "ops.softmax(S) is the softmax"),
    (lambda: np.ones(3) + tensor(), "Arrays and Tensors do not mix"),
    (lambda: np.array(tensor()), "Arrays and Tensors do not mix"),
    (lambda: tensor().flatten(), "A Tensor has + - * / @ **"),
    (lambda: Tensor.from_op(np.ones(3), (np.ones(3),), lambda dy: (dy,)), "the Tensors that came in"),
    (lambda: of_one_parent(lambda dy: (dy, dy)), "a tuple with one gradient for each parent"),
    (lambda: of_one_parent(lambda dy: (dy[0],)), "the shape of what it belongs to"),
    (lambda: of_one_parent(lambda dy: (dy.astype(np.float64),), np.float32), "right shape, and is float64"),
    (lambda: tensor(2, 3) - tensor(2, 3).mean(-1), "(2, 3) and (2,) do not fit"),
    (lambda: tensor().mean(axis=-1, keepdim=True), "called axis and keepdims"),
    (lambda: [1.0] * 0.5, "Does a function that you call return several things?"),
    (lambda: x + np.ones(3), "there (3,5) and (3,) do not fit"),
    (lambda: x @ y, "In a matrix product the last axis"),
    (lambda: np.dot(x, y), "In a matrix product the last axis"),
    (lambda: x[0, 0, 0], "fewer axes, or others"),
    (lambda: x.sum(axis=2), "fewer axes, or others"),
    (lambda: x.transpose(0, 2, 1), "fewer axes, or others"),
    (lambda: 1 if x else 0, "one True or False"),
    (lambda: x.reshape(4, 4), "15 do not fill (4,4)"),
    (lambda: np.add(np.ones(2, int), 0.5, out=np.ones(2, int)), "keeps the dtype"),
    (lambda: None + x, "Something there is None"),
    (lambda: np.broadcast_to(x, (2, 3, 5)).__setitem__(0, 1), "cannot be written to"),
    (lambda: math.sqrt(x), "take one number"),
    (lambda: 1 / 0, "a number that is 0"),
    (lambda: {x}, "cannot hold arrays"),
    (lambda: x.nothing, "another type"),
    (lambda: (lambda a: a)(), "other parameters"),
    (lambda: nowhere, "no value here"),  # noqa: F821
    (lambda: forgets("always"), "a branch that is not taken"),
    (lambda: endless(), "does not come to an end"),
    (lambda: x(0), "it is no function"),
    (lambda: np.ones(10**15), "larger than the memory"),
    (lambda: max(n for n in ()), "the smallest or the largest of"),
    (lambda: np.einsum("ij,ij->i", x, y), "letters of an einsum"),
    (lambda: x[7, 0], "beyond the end"),
    (lambda: [1][3], "beyond the end"),
    (lambda: math.log(0), "its term of a sum, 0 · log 0, counts as 0"),
    (lambda: math.sqrt(-1), "a root of less than 0"),
    (lambda: math.exp(1000), "beyond the largest float"),
    (lambda: 2.0**5000, "beyond the largest float"),
    (lambda: math.factorial(200) * 1.0, "beyond the largest float"),
    (lambda: np.erf, "no function of this name"),
]


@pytest.mark.parametrize(("raise_it", "words"), RAISED)
def test_an_error_is_told_in_other_words(raise_it, words):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        raise_it()
    assert words in (explained(caught.value) or ""), caught.value


def test_every_saying_is_tried():
    sentences = [sentence for _, sentence in SAYINGS]
    tried = set()
    for raise_it, _ in RAISED:
        try:
            raise_it()
        except Exception as error:
            tried.add(explained(error))
    assert len(tried) == len(sentences) + 1  # one of them names sum or mean


@pytest.mark.parametrize("raise_it", [lambda: len(x)[0], lambda: math.pi[0]])
def test_a_number_with_square_brackets_is_no_einsum(raise_it):
    with pytest.raises(TypeError) as caught:
        raise_it()
    assert "einsum" not in (explained(caught.value) or "")


def test_a_key_that_is_missing_is_told():
    with pytest.raises(KeyError) as caught:
        {}["y"] += 1
    assert explained(caught.value).startswith("The dictionary has no key 'y'")


def test_other_errors_are_left_as_they_are():
    assert explained(ValueError("of somebody's own")) is None


class OddError(Exception):
    """What it raises when it is asked what it says."""

    def __str__(self):
        raise self.args[0]


@pytest.mark.parametrize("raised", [OddError("x"), SystemExit(0), GeneratorExit()])
def test_an_error_that_cannot_say_what_it_is_says_nothing(raised):
    assert text_of(OddError(raised)) == ""
    assert explained(OddError(raised)) is None


def test_ctrl_c_while_an_error_is_asked_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        text_of(OddError(KeyboardInterrupt()))


@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_of_a_long_error_the_beginning_is_read(error):
    start = time.process_time()
    explained(error("x y" * 5_000_000))
    assert time.process_time() - start < 1
    assert len(text_of(error("x y" * 5_000))) == 1000
