"""Ways through the graph, counted, and gradients along them: chapter `scaling`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad import ops
from minigrad.course.chapters.path_length import attend, orthogonal, path_lengths, reach, recur
from minigrad.ops import composed
from minigrad.tensor import Tensor

pytestmark = pytest.mark.numpy_only("gradients are read as NumPy arrays")


def drawn(length, d=4, seed=0):
    rng = np.random.default_rng(seed)
    words = [Tensor(rng.standard_normal((1, d)), requires_grad=True) for _ in range(length)]
    return words, [Tensor(rng.standard_normal((d, d)), requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_recurrent_network_has_a_product_for_each_word(length):
    words, W = drawn(length)
    states = recur(words, *W[:2])
    assert path_lengths(states[-1], words[0]) == (length, length)
    assert path_lengths(states[-1], words[-1]) == (1, 1)


@pytest.mark.parametrize("length", [1, 2, 7, 600])
def test_attention_has_two_and_three(length):
    words, W = drawn(length)
    assert path_lengths(attend(words, *W), words[0]) == (2, 3)


def test_two_layers_add_up():
    words, W = drawn(3)
    once = attend(words, *W)
    twice = attend(ops.split(once, 3), *W)
    assert path_lengths(twice, words[0]) == (4, 6)


def test_there_is_no_way_from_a_later_word():
    words, W = drawn(3)
    with pytest.raises(ValueError, match="no way leads"):
        path_lengths(recur(words, *W[:2])[0], words[2])
    with pytest.raises(ValueError, match="is a leaf"):
        path_lengths(words[0], words[0])


def test_the_recurrent_network_is_its_formula():
    words, (W_x, W_h, _) = drawn(3)
    h = np.zeros((1, 4))
    for word, state in zip(words, recur(words, W_x, W_h), strict=True):
        h = np.tanh(word.numpy() @ W_x.numpy() + h @ W_h.numpy())
        np.testing.assert_allclose(state.numpy(), h, rtol=1e-12)


def test_the_head_is_the_librarys():
    words, W = drawn(5)
    x = ops.concat(words, axis=0)
    wanted = composed.scaled_dot_product_attention(*(x @ w for w in W))
    np.testing.assert_allclose(attend(words, *W).numpy(), wanted.numpy(), rtol=1e-12)


def test_reach_of_a_sum_and_of_a_product():
    rng = np.random.default_rng(0)
    assert reach(lambda words: sum(words[1:], start=words[0]), 9, 3, rng) == pytest.approx(1)
    assert reach(lambda words: sum(words[1:], start=words[0] * 0.1), 9, 3, rng) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="at least 3 words, got 2"):
        reach(lambda words: words[0], 2, 3, rng)


def test_an_orthogonal_matrix_changes_no_length():
    rng = np.random.default_rng(0)
    q = orthogonal(7, rng)
    np.testing.assert_allclose(q @ q.T, np.eye(7), atol=1e-12)
    assert math.isclose(abs(np.linalg.det(q)), 1)
