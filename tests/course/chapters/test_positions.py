"""What `positions` imports: the toy's tasks and layers, the exchanged tables, and the stored record."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course import check
from bert_course.chapters import positions
from bert_course.chapters.positions import KINDS, OneLayer, batch_of, score, train
from minigrad.seq2seq.transformer import sinusoids

pytestmark = pytest.mark.numpy_only("the pages are written in NumPy")


def test_the_waves_are_those_of_the_exercise():
    np.testing.assert_allclose(sinusoids(7, 10), check.sinusoids.answer(7, 10), rtol=0, atol=1e-15)


def test_the_tasks():
    ids, labels = batch_of(np.random.default_rng(0), 3, 6, "left")
    np.testing.assert_array_equal(labels[:, 3:], ids[:, :3])
    assert (labels[:, :3] == -100).all()
    ids, labels = batch_of(np.random.default_rng(0), 3, 6, "fixed")
    np.testing.assert_array_equal(labels, np.repeat(ids[:, 3:4], 6, axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_layer_knows_of_the_order(kind):
    """Shuffled tokens give shuffled outputs without positions, and others with them."""
    layer = OneLayer(kind).astype(np.float64)
    if kind.startswith("bias"):
        layer.bias.data[:] = np.arange(len(layer.bias.data))
    rng = np.random.default_rng(0)
    ids, order = rng.permutation(positions.WORDS)[None, :8], rng.permutation(8)
    off = np.abs(layer(ids[:, order]).numpy() - layer(ids).numpy()[:, order]).max()
    assert off < 1e-12 if kind == "none" else off > 1e-3


@pytest.mark.parametrize("kind", ["bias", "bias without a limit", "rotary", "ALiBi"])
def test_a_relative_layer_is_what_the_page_says(kind):
    """With the page's matrices for the turns, and the bias put in by hand."""
    layer = OneLayer(kind).astype(np.float64)
    if kind.startswith("bias"):
        layer.bias.data[:] = np.random.default_rng(1).standard_normal(len(layer.bias.data))
    ids = np.random.default_rng(0).integers(0, positions.WORDS, (1, 12))
    x = layer.words(ids)
    q, k, v = (part(x).numpy()[0] for part in (layer.query, layer.key, layer.value))
    scores = np.empty((12, 12))
    for i in range(12):
        for j in range(12):
            if kind.startswith("bias"):
                far = 8 if kind == "bias" else positions.LONGEST
                scores[i, j] = q[i] @ k[j] / 8 + layer.bias.numpy()[np.clip(j - i, -far, far) + far]
            elif kind == "ALiBi":
                scores[i, j] = q[i] @ k[j] / 8 - abs(i - j) / 2
            else:
                scores[i, j] = q[i] @ check.shift_matrix.answer(j - i, positions.D_MODEL) @ k[j] / 8
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    expected = layer.decoder(positions.Tensor(shares @ v)).numpy()
    np.testing.assert_allclose(layer(ids).numpy()[0], expected, atol=1e-10)


def test_training_learns_what_the_kind_can():
    right = {kind: score(train(kind, steps=120), "left", 16)["seen"] for kind in ("none", "bias")}
    assert right["none"] < 0.3 < 0.9 < right["bias"]
