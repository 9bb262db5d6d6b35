"""What `many_heads` shows: the ledger counts what a function does, and the model is put back after each drop."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters.many_heads import HiddenWords, as_much_of, bert_base_attention

# --- The library's attention, and mistakes in it -------------------------------------------------------------


def test_the_attention_of_bert_base_is_the_sum_over_its_heads():
    X = np.random.default_rng(0).standard_normal((3, 768))
    weights, y = bert_base_attention(X, seed=0)
    total = weights["b_O"].astype(float)
    for i in range(12):
        part = slice(64 * i, 64 * i + 64)
        q, k, v = (X @ weights[f"W_{n}"][:, part] + weights[f"b_{n}"][part] for n in "QKV")
        A = np.exp(q @ k.T / 8)
        total = total + A / A.sum(axis=1, keepdims=True) @ v @ weights["W_O"][part]
    np.testing.assert_allclose(y, total, atol=1e-5)


# --- Heads taken out of a trained model -------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> HiddenWords:
    return HiddenWords()


def test_the_model_is_put_back(model):
    before, (W_O, b_O) = model.losses(), model.output(0)
    changed = model.losses({0: (0 * W_O, b_O)})
    assert np.abs(changed - before).mean() > 0.5
    np.testing.assert_array_equal(model.losses(), before)
    with pytest.raises(ValueError, match="broadcast"):
        model.losses({0: (W_O[:, :5], b_O)})
    np.testing.assert_array_equal(model.losses(), before)


def a_variance(d):
    """A variance (d, d) whose axes are not those of the columns, with sizes from 1 to 100."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return axes * np.geomspace(1, 100, d) @ axes.T


@pytest.mark.parametrize("share", [0.01, 0.2, 0.3])
def test_directions_of_a_head_hold_the_share_that_is_asked_for(share):
    variance, rng, head = a_variance(13), np.random.default_rng(0), slice(6, 13)
    U, other = (as_much_of(variance, head, share, rng) for _ in range(2))
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
    assert not U[:6].any()

    def held(columns):
        return np.trace(columns.T @ variance @ columns) / np.trace(variance)

    assert held(U) >= share > held(U[:, :-1])
    assert np.abs(U[:, 0] - other[:, 0]).max() > 0.01  # each draw has directions of its own
