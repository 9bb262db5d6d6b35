"""What came after BERT, each change alone, on stories whose floor is known: the record that chapter `modern` shows.

First each recipe of `book/bert_course/chapters/modern.py` is tried at several learning rates, in runs of SEARCH_STEPS
with a seed that no other run has, judged on other stories, until the best has a worse one on either side or WIDENED is
used up. At the best come the runs that are compared, with SEEDS; BERT and all together also with MORE_SEEDS. Light
stories for all recipes, long ones for those that are about distance; on these BERT also has LONGER steps at two rates.
What is stored of a run is its expected loss on one hidden word at some steps; the same with a new head on the frozen
encoder, of the recipe without that head and, beside it, of BERT; which share of the hidden tokens the small BERT
replaced in the EVERY steps before a point; and how often it is right on *holder*, fine-tuned with LABELS labels at the
best of three rates.
Seven hours on one idle core.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.chapters import modern
from bert_course.common.hidden_words import HELD_OUT_SEED, Questions, questions, score
from book.records.make import _rates

STEPS, SEARCH_STEPS = {"light": 3000, "long": 2000}, {"light": 2000, "long": 1200}
LONGER = 4000  # of BERT on long stories
EVERY = 250  # steps between two points of a curve
HELD_OUT = {"light": 150, "long": 50}  # pairs, whose words are about as many
RATES, WIDENED = (1e-3, 2e-3), 2  # so often at most the search goes on by a factor of two
SEARCH_SEED, SEEDS, MORE_SEEDS = 100, (0, 1, 2), (3, 4)
SEARCH_HELD_OUT_SEED = 2**21  # of the pairs on which rates are compared
TWICE = ("BERT", "all together")
# recipes tried on long stories
FAR_APART = ("BERT", "rotary", "rotary and a table", "ALiBi", "local attention", "all together")
PROBED, PROBE_STEPS = ("BERT", "replaced tokens"), 1000
LABELS, TUNING_STEPS, TUNING_RATES, TUNINGS = 64, 160, (3e-4, 1e-3, 3e-3), (0, 1, 2)

CASE = ("change", "text", "rate", "seed", "steps")  # of a run: what it was made for
Case = tuple[str, str, float, int, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    floors = {text: round(asked(text, HELD_OUT_SEED).floor, 6) for text in modern.TEXTS}
    return {"steps": STEPS, "floors": floors, "labels": LABELS}


def asked(text: str, seed: int) -> Questions:
    """The held-out pairs of a text."""
    return questions(HELD_OUT[text], seed, modern.TEXTS[text])


def recipes() -> list[tuple[str, str]]:
    """Each recipe with each text on which it is tried."""
    return [(change, "light") for change in modern.RECIPES] + [(change, "long") for change in FAR_APART]


def searched(runs: list[dict[str, Any]], change: str, text: str) -> dict[float, float]:
    """By rate, the last loss of the search's run: of the model's own head, or of the new one."""
    return {
        run["rate"]: run["probe"] if modern.RECIPES[change].detects else run["curve"][-1][1]
        for run in runs
        if (run["change"], run["text"], run["seed"]) == (change, text, SEARCH_SEED)
    }


def best_rate(runs: list[dict[str, Any]], change: str, text: str) -> float:
    """The rate with the lowest last loss in the search."""
    return _rates.best(searched(runs, change, text))


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make, stage by stage; a stage reads the best rates of those before it."""
    first, *others = recipes()
    for some in ([first], others):
        yield [(*one, rate, SEARCH_SEED, SEARCH_STEPS[one[1]]) for one in some for rate in RATES]
    for _ in range(WIDENED):
        yield [
            (*one, rate, SEARCH_SEED, SEARCH_STEPS[one[1]])
            for one in recipes()
            if (rate := _rates.next_rate(searched(runs, *one))) is not None
        ]
    for seed in SEEDS + MORE_SEEDS:
        yield [
            (*one, best_rate(runs, *one), seed, STEPS[one[1]])
            for one in recipes()
            if seed in SEEDS or one[0] in TWICE
        ]
    yield [("BERT", "long", RATES[1], seed, LONGER) for seed in SEEDS]
    yield [("BERT", "long", RATES[0], SEEDS[0], LONGER)]


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    change, text, rate, seed, steps = case
    is_search = seed == SEARCH_SEED
    held_out = asked(text, SEARCH_HELD_OUT_SEED if is_search else HELD_OUT_SEED)
    points = [steps] if is_search else [*range(0, steps, EVERY), steps]
    curve, shares, seconds = [], [], 0.0
    started = time.perf_counter()
    for step, model, trained in modern.train(change, text, seed, rate, steps, points):
        seconds += time.perf_counter() - started
        if not modern.RECIPES[change].detects:
            curve.append([step, round(score(model, held_out).nats, 5)])
        if isinstance(trained, modern.Detection) and step:
            shares.append([step, round(float(np.mean(trained.shares[-EVERY:])), 4)])
        started = time.perf_counter()
    run = {
        "change": change,
        "text": text,
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "seconds": round(seconds),
        "curve": curve,
    }
    if shares:
        run["replaced"] = shares
    if text == "light" and not is_search:
        run |= tuned(model)
    if change in PROBED and steps != LONGER:
        run["probe"] = round(score(modern.probe(model, text, seed, PROBE_STEPS), held_out).nats, 5)
    return run


def tuned(model: modern.Model) -> dict[str, Any]:
    """The rate that is best on other stories, and with it how often *holder* is right, once for each of TUNINGS."""

    def right(rate: float, seed: int, held_out: int) -> float:
        return round(modern.holder_accuracy(model, rate, LABELS, TUNING_STEPS, seed, held_out), 4)

    tried = {rate: right(rate, SEARCH_SEED, 1001) for rate in TUNING_RATES}
    best = max(sorted(tried), key=tried.__getitem__)  # of equal ones the lowest
    return {"tuning_rate": best, "holder": [right(best, seed, 1000) for seed in TUNINGS]}
