"""The figures of chapter `pretraining`: the numbers of one step, and what is read from a record of runs."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.chapters.pretraining import stories
from bert_course.chapters.pretraining_figures import (
    by_rate,
    floor_bars,
    knowledge_player,
    learned_at,
    loss_bars,
    runs_of,
)
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs


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


def test_a_loss_that_nobody_knows_has_no_bar(axes_of):
    losses = {
        "real text": {"a model": 3.5, "the best possible": None},
        "stories": {"the best possible": 0.25},
    }
    bars = axes_of(loss_bars, losses).patches
    assert [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in bars] == [(-1, 3.5), (-4, 0.25)]


def test_floors_are_drawn_from_low_to_high(axes_of):
    axes = axes_of(floor_bars, {"name": 1.75, "glue": 0.0, "event": 0.5})
    assert [bar.get_width() for bar in axes.patches] == [0.0, 0.5, 1.75]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["glue", "event", "name"]
