"""What it shows: the stored model with other feed-forward networks in it, and pictures of the right numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad import ops
from minigrad.bert import from_pretrained
from minigrad.bert.stored import stored
from minigrad.tensor import Tensor

pytest.importorskip("matplotlib")
from minigrad.course.chapters.feed_forward import (
    HiddenWords,
    area_player,
    gelu_figure,
    network_flow,
    reach_figure,
)


def feed_forward(X, W_1, b_1, W_2, b_2):
    H = X @ W_1 + b_1
    return ops.gelu(Tensor(H, dtype=np.float64)).numpy() @ W_2 + b_2


@pytest.fixture(scope="module")
def words() -> HiddenWords:
    return HiddenWords()


def test_the_losses_are_those_of_the_whole_model(words):
    model = from_pretrained(stored("start")).model
    model.eval()
    ids, losses = words.sentences[0], words.losses()[0]
    assert len(losses) == len(ids) - 2
    for place in (1, len(ids) - 2):
        hidden = ids[None].copy()
        hidden[0, place] = words.tokenizer.mask_token_id
        logits = model(hidden).prediction_logits.numpy()[0, place]
        expected = np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[ids[place]]
        assert losses[place - 1] == pytest.approx(expected, abs=1e-4)


def test_the_same_network_gives_the_same_losses_and_another_one_does_not(words):
    own, same = np.concatenate(words.losses()), np.concatenate(words.losses(feed_forward))
    np.testing.assert_allclose(same, own, atol=1e-4)
    without = np.concatenate(words.losses(lambda X, W_1, b_1, W_2, b_2: 0 * X))
    assert without.mean() > own.mean() + 1


def test_a_network_gets_one_sentence_at_a_time(words):
    shapes = set()

    def network(X, W_1, b_1, W_2, b_2):
        shapes.add(X.shape)
        return feed_forward(X, W_1, b_1, W_2, b_2)

    words.losses(network)
    assert shapes == {(len(ids), 128) for ids in words.sentences}


@pytest.mark.parametrize("layer", [0, 1])
def test_inner_is_what_reaches_the_layers_network(words, layer):
    part = words.inner(layer)
    model = from_pretrained(stored("start")).model.bert
    model.eval()
    ids = words.sentences[0][None]
    x = model.embeddings(ids, np.zeros_like(ids))
    for before in model.encoder.layer[:layer]:
        x = before(x, None)
    expected = model.encoder.layer[layer].attention(x, None).numpy()[0, 1:-1]
    n = len(ids[0]) - 2
    np.testing.assert_allclose(part.X[:n], expected, atol=1e-5)
    assert part.tokens[:n] == [words.tokenizer.id_to_token(i) for i in ids[0, 1:-1]]
    assert len(part.tokens) == len(part.X)
    assert [a.shape for a in (part.W_1, part.b_1, part.W_2, part.b_2)] == [
        (128, 512),
        (512,),
        (512, 128),
        (128,),
    ]


def test_a_model_is_drawn_from_its_seed():
    first, again, other = (HiddenWords(seed).inner(0).W_1 for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01


def test_the_flow_is_the_network():
    rng = np.random.default_rng(0)
    X, W_1, b_1, W_2, b_2 = (rng.standard_normal(s) for s in ((4, 3), (3, 4), (4,), (4, 3), (3,)))
    found = network_flow(X, W_1, b_1, W_2, b_2).values["R"]
    np.testing.assert_allclose(found, X + feed_forward(X, W_1, b_1, W_2, b_2), rtol=1e-12)


def test_the_player_says_gelu():
    frames = area_player().frames
    for frame in frames:
        x = float(frame.title.removeprefix("x = "))
        said = float(frame.text.rsplit("= ", 1)[1].rstrip("."))
        assert said == pytest.approx(0.5 * x * (1 + math.erf(x / math.sqrt(2))), abs=5e-4)
    assert [frames[0].title, frames[-1].title] == ["x = -3", "x = 3"]


def test_the_figures_say_what_they_show():
    assert "GELU" in gelu_figure().alt
    reaches = {"one": np.eye(3), "all": np.ones((3, 3))}
    assert "one: 3 of 9. all: 9 of 9." in reach_figure(reaches).alt
