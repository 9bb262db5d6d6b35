"""What chapter `add_norm` shows is made of the library's parts and says what it should."""

from __future__ import annotations

import re

import numpy as np
import pytest

from minigrad import Tensor, nn, no_grad, ops
from minigrad.bert.config import PRESETS
from minigrad.bert.encoder import BertLayer
from minigrad.course.chapters.add_norm import (
    Attention,
    FeedForward,
    Trained,
    _apart,
    add_norm_flow,
    depth_curves,
    stream_picture,
    sublayers,
    through_layers,
    who_shares,
)


def linears(part):
    return [module for module in part.modules() if isinstance(module, nn.Linear)]


def test_sublayers_come_in_turn_in_float64_and_depend_on_the_seed():
    stack = sublayers(2, seed=3)
    assert [type(part) for part in stack] == [Attention, FeedForward] * 2
    assert {parameter.dtype.name for part in stack for parameter in part.parameters()} == {"float64"}
    again, other = (sublayers(2, seed=seed)[1].expand.weight.numpy() for seed in (3, 4))
    np.testing.assert_array_equal(stack[1].expand.weight.numpy(), again)
    assert np.abs(again - other).max() > 0.01


@pytest.mark.parametrize(("start", "spread"), [("bert", None), ("unit", 1.0)])
def test_a_start_has_its_spread(start, spread):
    for part in sublayers(1, 0, start):
        for linear in linears(part):
            n_in, size = linear.weight.shape[0], linear.weight.numpy().std()
            expected = (
                0.88 * PRESETS["reduced"].initializer_range if spread is None else spread / np.sqrt(n_in)
            )
            assert size == pytest.approx(expected, rel=0.02)


def test_an_unknown_start_is_refused():
    with pytest.raises(ValueError, match="start must be 'bert' or 'unit', got 'small'"):
        sublayers(1, 0, "small")


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


def test_the_flow_computes_add_and_norm():
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((2, 3, 4))
    gain, bias = rng.standard_normal((2, 4))
    values = add_norm_flow(X, Y, gain, bias).values
    expected = ops.layer_norm(*(Tensor(a) for a in (X + Y, gain, bias))).numpy()
    np.testing.assert_allclose(values["Z"], expected, atol=1e-9)


def test_the_picture_of_means_lights_a_row_or_a_column():
    picture = who_shares(3, 4, 6)
    assert "3 texts, each a grid of 4 tokens by 6 features" in picture.alt
    lit = picture.svg.count("#0072b2"), picture.svg.count("#b94a00")
    assert lit == (
        5 + 11,
        2,
    )  # in two panels: a token's other features; a feature's other places; the number itself


def test_the_curves_are_drawn_with_their_names():
    draws = [[1e-15, 1e-14], [2e-15, 3e-14]]
    picture = depth_curves({"one start": {"neither": draws, "post-LN": [[1.0, 2.0]]}})
    assert all(name in picture.svg for name in ("one start", "neither", "post-LN", "layer"))


def test_names_keep_apart_and_within_the_picture():
    placed = _apart([0.1, 0.93, 0.94, 0.95, 1.0])
    assert placed[0] == 0.1
    assert max(placed) <= 1
    assert min(np.diff(placed)) > 0.0949


def test_through_linear_layers_a_gradient_is_multiplied_by_the_product():
    rng = np.random.default_rng(5)
    rng.standard_normal((1, 3))
    W = [rng.standard_normal((3, 3)) * 2 / np.sqrt(3) for _ in range(2)]
    dy = rng.standard_normal((1, 3))
    expected = np.linalg.norm(dy @ (W[0] @ W[1]).T) / np.linalg.norm(dy)
    assert through_layers(lambda x: x, 2, seed=5, layers=2, width=3) == pytest.approx(expected)


@pytest.fixture(scope="module")
def trained():
    return Trained()


def test_a_change_of_the_trained_model_lasts_for_one_loss(trained):
    before = trained.loss()
    assert 1.5 < before < 3.5  # nats; a model that knows nothing has log 4096, 8.3
    norms = [name for name in trained.start if "LayerNorm" in name]
    assert trained.loss(norms, lambda name, array: 0 * array) > 2 * before
    assert trained.loss() == pytest.approx(before, rel=1e-6)
    assert trained.numbers(norms) == 6 * 2 * 128


def test_only_what_is_named_is_changed(trained):
    seen = []
    trained.loss(["bert.embeddings.LayerNorm.bias"], lambda name, array: seen.append(name) or array)
    assert seen == ["bert.embeddings.LayerNorm.bias"]


def test_the_stream_has_its_parts_in_their_order():
    drawn = stream_picture().svg
    places = {name: [m.start() for m in re.finditer(f">{re.escape(name)}<", drawn)] for name in ("+", "Norm")}
    assert [len(found) for found in places.values()] == [2, 2]
    assert places["+"][0] < places["Norm"][0] < places["+"][1] < places["Norm"][1]
    assert drawn.index("attention") < drawn.index("feed-forward")
