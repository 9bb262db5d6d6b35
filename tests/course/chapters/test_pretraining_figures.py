"""The figures of chapter `pretraining`: the numbers of one step, and what is read from a record of runs."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import backend, random
from minigrad.bert.data import make_batch
from minigrad.course.chapters.pretraining import LENGTH, VARIANTS, model_of, stories
from minigrad.course.chapters.pretraining_figures import (
    SLOTS,
    ablation_figure,
    by_rate,
    floor_bars,
    gap_figure,
    knowledge_player,
    learned_at,
    loss_bars,
    order_figure,
    runs_of,
    step_flow,
)
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs


def test_the_step_has_the_numbers_of_the_model():
    random.manual_seed(0)
    text = stories()
    pair = draw_pairs(text.setting, 1, seed=5)[0]
    batch = make_batch([text.encode(pair, LENGTH)], text.tokenizer, LENGTH, np.random.default_rng(2))
    before, model = model_of(VARIANTS["BERT"], 1), model_of(VARIANTS["BERT"], 1)
    values = step_flow(model, batch, text).values
    output = before(**batch)
    for name, loss in (("mlm", output.mlm_loss), ("nsp", output.nsp_loss), ("loss", output.loss)):
        assert values[name].item() == pytest.approx(loss.item(), rel=1e-5), name
    np.testing.assert_allclose(values["P"].sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(values["losses"].mean(), output.mlm_loss.item(), rtol=1e-5)
    output.loss.backward()
    word = batch["labels"][0][batch["labels"][0] >= 0][0]
    table = before.bert.embeddings.word_embeddings.weight
    np.testing.assert_allclose(
        values["G"][0] / 1000, backend.to_numpy(table.grad)[word, :4], rtol=1e-4, atol=1e-7
    )
    np.testing.assert_allclose(values["clipped"] * values["norm"], values["G"], rtol=1e-6)
    np.testing.assert_array_equal(values["before"][0], 1000 * table.numpy()[word, :4])
    after = model.bert.embeddings.word_embeddings.weight.numpy()[word, :4]
    np.testing.assert_array_equal(values["after"][0], 1000 * after)
    np.testing.assert_allclose(np.abs(values["after"] - values["before"]), 1, rtol=0.05)


def run(variant, rate, seed, steps, *nats):
    points = np.linspace(0, steps, len(nats)).round().astype(int).tolist()
    curve = [[point, {"all": {"nats": n}}] for point, n in zip(points, nats, strict=True)]
    return {"variant": variant, "rate": rate, "seed": seed, "steps": steps, "curve": curve}


def test_the_runs_of_a_variant_are_those_at_its_best_rate():
    runs = [
        run("a", 1, 0, 9, 5, 2),
        run("a", 2, 0, 9, 5, 1),
        run("a", 2, 1, 9, 5, 3),
        run("b", 1, 0, 9, 5, 0),
    ]
    runs.append(run("a", 3, 0, 99, 5, 0))
    assert runs_of({"runs": runs[::-1]}, "a", 9) == [runs[1], runs[2]]
    assert runs_of({"runs": runs}, "a", 9, rate=1) == [runs[0]]
    assert runs_of({"runs": runs}, "a", 99) == [runs[4]]
    with pytest.raises(ValueError, match="no run of 'c' with 9 steps"):
        runs_of({"runs": runs}, "c", 9)
    assert by_rate({"runs": runs[::-1]}, "a", 9) == {1: 2, 2: 1}


@pytest.mark.parametrize(
    ("nats", "step"),
    [
        ((5, 3, 1.3, 1.2), 20),
        ((5, 1.3, 3, 1.2), 30),  # it had come back
        ((5, 4, 3, 2), float("inf")),
        ((5, 1.41, 1.39, 1), 20),
    ],
)
def test_learned_is_from_when_nine_tenths_of_the_gap_stay_closed(nats, step):
    assert learned_at(run("a", 1, 0, 30, *nats), "all", floor=1.0) == step


def test_the_player_counts_the_words_that_are_known():
    text = stories()
    pair = draw_pairs(text.setting, 1, seed=5)[0]
    scorer = Scorer(text.setting)
    best = [
        guess[word.text]
        for word, guess in zip(pair.words, scorer.hidden_words(pair.text_a, pair.text_b), strict=True)
    ]
    shown = sum(word.slot not in ("glue", "preposition") for word in pair.words)
    found = knowledge_player(
        {0: np.zeros(len(best)), 50: np.array(best), 60: np.ones(len(best))}, pair, scorer
    )
    assert [frame.title for frame in found.frames] == ["step 0", "step 50", "step 60"]
    known = sum(
        p < 0.1 for word, p in zip(pair.words, best, strict=True) if word.slot not in ("glue", "preposition")
    )
    assert f"{known} of {shown} words" in found.frames[0].text
    assert f"{shown} of {shown} words" in found.frames[1].text
    sure = sum(
        p > 0.9 for word, p in zip(pair.words, best, strict=True) if word.slot not in ("glue", "preposition")
    )
    assert sure < shown
    assert f"{sure} of {shown} words" in found.frames[2].text  # too much is not near
    assert found.frames[1].svg.count("<rect") == 3 * shown


def test_the_slots_are_those_of_the_grammar():
    found = {word.slot for pair in draw_pairs(stories().setting, 60, seed=3) for word in pair.words}
    assert found == set(SLOTS)


def test_figures_say_in_which_order_things_stand():
    ends = {"worst": [0.9, 1.0], "best": [0.5, 0.52], "between": [0.8]}
    others = {name: [1.5] for name in ends}
    assert repr(ablation_figure(ends, others, 0.4, 0.7)).endswith("from low to high: best, between, worst")
    steps = {"late": [9000, 10_000], "never": [9000, float("inf"), float("inf")], "early": [250, 500]}
    assert repr(order_figure(steps, 10_000)).endswith(": early, late, never")
    assert "floor" in gap_figure([run("a", 1, 0, 30, 5, 3)], 0.5, 3.9, {0: 5.0})._repr_html_()


def test_a_loss_that_nobody_knows_is_a_question_mark(axes_of):
    losses = {
        "real text": {"a model": 3.5, "the best possible": None},
        "stories": {"the best possible": 0.25},
    }
    picture = loss_bars(losses)
    words = ("real text", "stories", "a model", "the best possible", "3.50", "?", "0.25")
    assert all(f">{word}<" in picture.svg for word in words)
    alt = "real text: a model 3.50, the best possible ?; stories: the best possible 0.25"
    assert repr(picture).endswith(alt)
    bars = axes_of(loss_bars, losses).patches
    assert [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in bars] == [(-1, 3.5), (-4, 0.25)]


def test_floors_are_drawn_from_low_to_high(axes_of):
    floors = {"name": 1.75, "glue": 0.0, "event": 0.5}
    picture = floor_bars(floors)
    assert repr(picture).endswith(": glue 0.00, event 0.50, name 1.75")
    assert f">0.50  {SLOTS['event']}<" in picture.svg
    axes = axes_of(floor_bars, floors)
    assert [bar.get_width() for bar in axes.patches] == [0.0, 0.5, 1.75]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["glue", "event", "name"]
