"""What chapter `add_norm` shows is made of the library's parts and says what it should."""

from __future__ import annotations

import numpy as np

from bert_course.chapters.add_norm import _apart, sublayers
from minigrad import Tensor, nn, no_grad, ops
from minigrad.bert.config import PRESETS
from minigrad.bert.encoder import BertLayer


def linears(part):
    return [module for module in part.modules() if isinstance(module, nn.Linear)]


def test_sublayers_with_add_and_norm_are_the_librarys_layer():
    attention, feed_forward = sublayers(1, 0)
    layer = BertLayer(PRESETS["reduced"]).astype("float64")
    theirs = linears(layer)
    ours = [*linears(attention), *linears(feed_forward)]
    for one, other in zip(theirs, ours, strict=True):
        one.weight.data = other.weight.data
    x = Tensor(np.random.default_rng(0).standard_normal((2, 5, 128)))
    ones, zeros = Tensor(np.ones(128)), Tensor(np.zeros(128))
    with no_grad():
        z = ops.layer_norm(x + attention(x), ones, zeros)
        z = ops.layer_norm(z + feed_forward(z), ones, zeros)
        np.testing.assert_allclose(z.numpy(), layer(x, None).numpy(), atol=1e-12)


def test_names_keep_apart_and_within_the_picture():
    placed = _apart([0.1, 0.93, 0.94, 0.95, 1.0])
    assert placed[0] == 0.1
    assert max(placed) <= 1
    assert min(np.diff(placed)) > 0.0949
