"""Pre-training on light stories, as BERT is and with one thing changed: the record that chapter `pretraining` shows.

The main runs (five seeds of `BERT`) have
LONG steps. Each variant of `book/bert_course/chapters/pretraining.py` has SHORT steps at three learning rates, of which
the third is on the side of the better of the first two, and at the best of them two more seeds. What is stored of a run
is `score_stories` at some steps, on PAIRS held-out pairs. An hour and a half on two idle
cores.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from typing import Any

from bert_course.chapters import pretraining
from minigrad.bert.story_scores import Score, score_stories
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs

LONG, SHORT = 10_000, 3_000
LONG_POINTS = (0, 250, 500, 750, *range(1000, LONG + 1, 500))
SHORT_POINTS = (0, 500, 1000, 1500, 2000, 2500, 3000)
MAIN_RATE, SECOND_RATE, SEEDS, MAIN_SEEDS = 1e-3, 2e-3, (0, 1, 2), range(5)
THIRD_RATE = {MAIN_RATE: 5e-4, SECOND_RATE: 4e-3}  # by the better of the first two
PAIRS, PAIRS_SEED = 150, 2**20

CASE = ("variant", "rate", "seed", "steps")  # of a run: what it was made for
Case = tuple[str, float, int, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"text": pretraining.stories().fingerprint()}


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make, stage by stage; stages read the best rates of the runs that are there."""
    names = list(pretraining.VARIANTS)
    yield [("BERT", MAIN_RATE, seed, LONG) for seed in MAIN_SEEDS]
    yield [(name, rate, 0, SHORT) for rate in (MAIN_RATE, SECOND_RATE) for name in names]
    yield [(name, THIRD_RATE[best_rate(runs, name, THIRD_RATE)], 0, SHORT) for name in names]
    # the lowest loss first: the far ones cannot be taken for BERT
    ranked = sorted(names, key=lambda name: min(ends(runs, name).values()))
    yield [(name, best_rate(runs, name), seed, SHORT) for name in ranked for seed in SEEDS[1:]]
    # mistakes that a second rate may show: not by one seed alone
    yield [(name, SECOND_RATE, seed, SHORT) for name in ("no scale", "second residual") for seed in SEEDS[1:]]


def ends(runs: list[dict[str, Any]], name: str) -> dict[float, float]:
    """The last loss of each of a variant's runs with seed 0, by rate."""
    return {
        run["rate"]: run["curve"][-1][1]["all"]["nats"]
        for run in runs
        if (run["variant"], run["seed"], run["steps"]) == (name, 0, SHORT)
    }


def best_rate(runs: list[dict[str, Any]], name: str, among: Container[float] | None = None) -> float:
    """The rate with the lowest last loss, of the runs with seed 0; among: of these rates."""
    found = {rate: loss for rate, loss in ends(runs, name).items() if among is None or rate in among}
    return min(found, key=found.__getitem__)


def short(scores: dict[str, Score]) -> dict[str, dict[str, Any]]:
    """What a run stores of its scores: the floors are the same in all."""
    return {
        slot: {
            "nats": round(score.nats, 4),
            "accuracy": round(score.accuracy, 4),
            "forced": None if score.forced is None else round(score.forced, 4),
        }
        for slot, score in scores.items()
    }


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    name, rate, seed, steps = case
    source, curve, seconds = pretraining.stories(), [], 0.0
    scorer, pairs = Scorer(source.setting), draw_pairs(source.setting, PAIRS, PAIRS_SEED)
    started = time.perf_counter()
    points = LONG_POINTS if steps == LONG else SHORT_POINTS
    for step, model in pretraining.train(pretraining.VARIANTS[name], seed, rate, steps, points):
        seconds += time.perf_counter() - started
        scores = score_stories(model, source, pairs, scorer)
        curve.append([step, short(scores)])
        started = time.perf_counter()
    return {
        "variant": name,
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "seconds": round(seconds),
        "curve": curve,
    }
