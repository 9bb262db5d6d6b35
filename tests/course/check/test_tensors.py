"""Answers on Tensors are held against the right ones with the gradients that they send back."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course import check
from bert_course.check.differences import difference
from bert_course.check.outcome import Unfit
from bert_course.check.tensors import constant, linked, operation, tensor, traced
from minigrad import Tensor, ops

pytestmark = pytest.mark.numpy_only("answers are judged on NumPy")


def leaf(*shape):
    return tensor(np.random.default_rng(len(shape)).standard_normal(shape))


def test_what_is_looked_at_has_names():
    layers = [{"W": leaf(2, 2)}, {"W": leaf(2, 2), "norm": (leaf(2), leaf(2))}]
    arguments = {"x": leaf(3, 2), "weights": {"W_Q": leaf(2, 2)}, "model": {"layers": layers}, "h": 2}
    x = arguments["x"] @ arguments["weights"]["W_Q"] @ layers[0]["W"] @ layers[1]["W"]
    found = traced(x * layers[1]["norm"][0] + layers[1]["norm"][1], arguments)
    assert found.names == (
        "the result",
        "the gradient for x",
        "the gradient for W_Q",
        "the gradient for W of layers[0]",
        "the gradient for W of layers[1]",
        "the gradient for norm[0] of layers[1]",
        "the gradient for norm[1] of layers[1]",
    )
    assert all(isinstance(one, np.ndarray) for one in found)


def test_a_gradient_that_does_not_arrive_is_a_difference_and_one_that_nobody_expects_is_none():
    def found(cut):
        x, y = leaf(3), leaf(3)
        return traced(x * (Tensor(y.data) if cut else y), {"x": x, "y": y})

    words = difference(found(cut=True), found(cut=False), 1e-9, 1e-9)
    assert words.startswith("the gradient for y does not arrive: ")
    assert difference(found(cut=True), found(cut=True), 1e-9, 1e-9) is None


def test_a_rule_of_zeros_is_told_though_the_sum_of_a_softmax_does_not_move(capsys):
    """With a cotangent of ones it would pass."""

    def softmax(S):
        return Tensor.from_op(ops.softmax(S).data, (S,), lambda dA: (0 * dA,))

    assert not check.softmax.judge(softmax)
    assert "the gradient for S" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("look", "returned", "words"),
    [
        (traced, np.ones(3), "an array of shape (3,) and dtype float64, and should return a Tensor"),
        (traced, (Tensor(1.0), Tensor(1.0)), "a tuple of 2, and should return a Tensor"),
        (linked, (Tensor(1.0), 2.0), "2.0, and should return a Tensor"),
        (constant, np.ones(3), "Tensor(array)"),
        (constant, leaf(2), "wants a gradient"),
    ],
)
def test_what_is_no_tensor_is_told(look, returned, words):
    with pytest.raises(Unfit) as told:
        look(returned, {})
    assert words in str(told.value)


def test_what_the_engine_of_ones_own_file_has_not_is_remarked(capsys):
    def pool(X, W, b):
        return (X[:, 0] @ W + b).unsqueeze(0).squeeze(0).tanh()

    assert check.pool.judge(pool)
    assert "The engine of your own file has no .unsqueeze: it has" in " ".join(
        capsys.readouterr().out.split()
    )


def test_numpy_on_a_tensor_is_answered_with_what_both_engines_have(capsys):
    def pool(X, W, b):
        return np.tanh(X[:, 0] @ W + b)

    assert not check.pool.judge(pool)
    told = capsys.readouterr().out
    assert "x.tanh()" in told
    assert "minigrad.ops" not in told


@pytest.mark.parametrize("name", ["backward", "train_step", "softmax", "multi_head", "bert", "padding_mask"])
def test_what_the_engine_has_is_not_remarked(name):
    exercise = getattr(check, name)
    assert exercise.report(exercise.answer).paragraphs == []


def of_one(x):
    return Tensor.from_op(x.data + 1, (x,), lambda dy: (dy,))


@pytest.mark.parametrize("name", ["softmax", "gelu", "layer_norm", "cross_entropy"])
def test_an_operation_of_the_library_is_no_answer(name):
    assert not getattr(check, name).accepts(getattr(ops, name))


def test_one_operation_is_made_of_all_that_came_in():
    x, gain = leaf(2, 3), leaf(3)
    arguments = {"x": x, "gain": gain, "eps": 0.1}
    own = Tensor.from_op(
        x.data * gain.data, (x, gain), lambda dy: (dy * gain.data, (dy * x.data).sum(axis=0))
    )
    assert len(operation(own, arguments)) == 3
    with pytest.raises(Unfit, match=r"what the library's mul makes"):
        operation(ops.mul(x, gain), arguments)
    with pytest.raises(Unfit, match=r"not made of x and gain in one operation"):
        operation(of_one(x * gain), arguments)
    with pytest.raises(Unfit, match=r"not made of gain in one operation"):
        operation(of_one(x), arguments)


def test_links_are_those_of_each_result():
    x, W = leaf(2, 2), leaf(2, 2)
    y = x @ W
    both = linked((y, Tensor(y.data) * x), {"x": x, "W": W})
    reached = dict(zip(both.names, (one is not None for one in both), strict=True))
    assert reached == {
        "value 1": True,
        "value 2": True,
        "the gradient of value 1 for x": True,
        "the gradient of value 1 for W": True,
        "the gradient of value 2 for x": True,
        "the gradient of value 2 for W": False,
    }
    assert difference(linked((y,), {"x": x}), both, 1e-9, 1e-9) == "it should return 2 values, and returned 1"
