"""What chapter `one_head` shows of the stored model: its own first layer, and what each control changes."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import Tensor, ops
from minigrad.bert import from_pretrained
from minigrad.bert.stored import stored

pytest.importorskip("matplotlib")
from minigrad.course.chapters.one_head import (
    BY_THE_RIVER,
    W_K,
    W_Q,
    W_V,
    WITH_MONEY,
    FirstLayer,
    scale_bars,
    two_banks,
)

TEXT = "Return a new array of the given shape."


@pytest.fixture(scope="module")
def layer() -> FirstLayer:
    return FirstLayer(TEXT)


def test_queries_and_keys_are_those_of_the_model(layer):
    model = from_pretrained(stored("start")).model.bert
    model.eval()
    ids = layer.ids[None]
    x = model.embeddings(ids, np.zeros_like(ids))
    heads = model.encoder.layer[0].attention.self
    for part, ours in zip((heads.query, heads.key), layer.queries_and_keys(), strict=True):
        np.testing.assert_allclose(ours, heads.split_heads(part(x)).numpy()[0], rtol=1e-6)


def test_tokens_are_those_of_the_text(layer):
    assert layer.tokens[0] == "[CLS]"
    assert layer.tokens[-1] == "[SEP]"
    assert layer.tokens[1:4] == ["return", "a", "new"]


def test_random_words_leave_the_ends(layer):
    ids = layer.random_words(np.random.default_rng(0))
    assert ids.shape == layer.ids.shape
    assert ids[0] == layer.ids[0]
    assert ids[-1] == layer.ids[-1]
    assert (ids[1:-1] != layer.ids[1:-1]).mean() > 0.8


def test_positions_in_their_order_change_nothing_and_shuffled_ones_do(layer):
    length = len(layer.ids)
    for same, moved in zip(
        layer.queries_and_keys(positions=range(length)), layer.queries_and_keys(), strict=True
    ):
        np.testing.assert_array_equal(same, moved)
    backwards, _ = layer.queries_and_keys(positions=range(length)[::-1])
    assert np.abs(backwards - layer.queries_and_keys()[0]).max() > 0.1


def test_same_words_and_positions_move_together(layer):
    """Words and positions shuffled alike are the same rows in another order."""
    order = np.r_[0, 1 + np.random.default_rng(0).permutation(len(layer.ids) - 2), len(layer.ids) - 1]
    moved, _ = layer.queries_and_keys(layer.ids[order], order)
    np.testing.assert_allclose(moved, layer.queries_and_keys()[0][:, order], atol=1e-5)


def test_a_model_as_it_was_drawn_is_another_one(layer):
    drawn = FirstLayer(TEXT, trained=False)
    assert drawn.tokens == layer.tokens
    assert drawn.queries_and_keys()[0].var() < 0.5 * layer.queries_and_keys()[0].var()


def test_the_first_picture_has_the_shares_and_what_bank_gets():
    picture = two_banks()
    for X, number in ((BY_THE_RIVER, "5.4"), (WITH_MONEY, "5.4")):
        scores = Tensor((X[2:] @ W_Q) @ (X @ W_K).T / np.sqrt(2))  # (1, 3)
        weights = ops.softmax(scores).numpy()[0]
        taken = weights @ X @ W_V
        assert f"{taken.max():.1f}" == number
        assert f">{number}<" in picture.svg
        assert f">{weights[1]:.2f}<" in picture.svg
    assert picture.svg.count(">bank<") == 4  # in each sentence, and below it


def test_a_head_that_never_learns_has_a_bar_that_says_so():
    one = {"scaled": [80, 10], "not scaled": [110, np.inf]}
    steps = {"one": one, "two": {"scaled": [80, 10], "not scaled": [80, 10]}}
    picture = scale_bars(steps, ["0.001", "0.01"], "two panels")
    words = ("one", "two", "80", "110", "never", "0.001", "scaled", "not scaled")
    assert all(f">{word}<" in picture.svg for word in words)
