"""Models of several sizes of chapter `scaling`: what they are, what they read, and what is asked of them."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from bert_course.chapters.pretraining import stories
from bert_course.chapters.scaling import batches_of, config_of, layer_parameters, questions, score, train
from minigrad.bert.config import PRESETS
from minigrad.bert.model import parameter_shapes
from minigrad.stories.stories import draw_pairs
from minigrad.tensor import Tensor


@pytest.mark.parametrize("config", [config_of(48), *PRESETS.values()])
def test_the_parameters_of_the_layers(config):
    shapes = parameter_shapes(config)
    counted = sum(math.prod(shape) for name, shape in shapes.items() if ".encoder." in name)
    assert layer_parameters(config) == counted
    d = config.hidden_size
    assert counted == config.num_hidden_layers * (12 * d**2 + 13 * d)


def test_heads_have_16_features():
    assert {config_of(width).hidden_size / config_of(width).num_attention_heads for width in (16, 256)} == {
        16
    }


def seen(data, batches):
    return {
        tuple(np.where(batch["labels"] < 0, batch["input_ids"], batch["labels"])[i])
        for batch in (data.next_batch() for _ in range(batches))
        for i in range(len(batch["labels"]))
    }


def test_few_pairs_come_again_and_fresh_ones_do_not(monkeypatch):
    for module in ("minigrad.stories.stories", "bert_course.chapters.scaling"):
        monkeypatch.setattr(f"{module}.STORIES_AN_EPOCH", 320)
    few = seen(batches_of(40, seed=0), 11)  # 352 pairs: more than an epoch
    assert len(few) == 40
    assert seen(batches_of(40, seed=1), 11) == few
    assert len(seen(batches_of(None, seed=0), 10)) > 300


def test_few_pairs_are_masked_anew():
    data = batches_of(32, seed=0)
    first, second = data.next_batch(), data.next_batch()
    assert {tuple(row) for row in first["input_ids"]} != {tuple(row) for row in second["input_ids"]}


def exact(asked):
    """A model that gives the exact probabilities."""

    def call(ids, attention_mask, token_type_ids):
        rows = [int(np.flatnonzero((asked.input_ids == row).all(axis=1))[0]) for row in ids]
        logits = np.zeros((*ids.shape, asked.p.shape[1]))
        logits[np.arange(len(ids)), asked.places[rows]] = np.log(np.maximum(asked.p[rows], 1e-300))
        return SimpleNamespace(prediction_logits=Tensor(logits))

    call.config = config_of(16)
    return call


def test_the_floor_is_the_loss_of_the_exact_model_and_its_choices_are_right():
    asked = questions(12, 77)
    found = score(exact(asked), asked)
    assert found.nats == pytest.approx(asked.floor, rel=1e-9)
    assert set(found.forced.values()) == {1.0}
    np.testing.assert_allclose(asked.p.sum(axis=1), 1, rtol=1e-9)


def test_a_uniform_model_has_log_v_and_wins_no_choice():
    asked = questions(12, 77)
    asked_nothing = SimpleNamespace(
        input_ids=asked.input_ids, places=asked.places, p=np.full_like(asked.p, 1 / asked.p.shape[1])
    )
    flat = exact(asked_nothing)
    found = score(flat, asked)
    assert found.nats == pytest.approx(math.log(asked.p.shape[1]))
    assert set(found.forced.values()) == {0.0}


def test_every_word_of_the_pairs_is_hidden_once():
    asked, source = questions(5, 3), stories()
    assert len(asked.places) == sum(len(pair.words) for pair in draw_pairs(source.setting, 5, 3))
    hidden = asked.input_ids == source.tokenizer.mask_token_id
    assert (hidden.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(hidden.argmax(axis=1), asked.places)


def test_training_stops_where_it_is_told_and_is_the_same_again(monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 64)

    def end():
        points = [step for step, _ in train(16, None, 4e-3, 6, 0, (0, 2, 6))]
        assert points == [0, 2, 6]
        *_, (_, model) = train(16, None, 4e-3, 6, 0, (6,))
        return score(model, questions(4, 9)).nats

    assert end() == end()


def test_training_lowers_the_loss(monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 640)
    asked = questions(12, 77)
    found = [score(model, asked).nats for _, model in train(32, None, 4e-3, 40, 0, (0, 40))]
    assert found[1] < found[0] - 1.0
