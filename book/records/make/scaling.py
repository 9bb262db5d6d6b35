"""Models of several sizes on several amounts of text whose floor is known: the record that chapter `scaling` shows.

First each width is tried at several
learning rates, with SEARCH_STEPS steps and a seed that no other run has, until the best has a worse one on either
side. At the best one come the runs that are compared: each width, each number of steps (each with fresh stories and a
schedule of its own), three seeds; and runs on few stories, again and again. What is stored of a run is its expected
loss on held-out pairs at some steps, and at its end what it knows of forced choices. An hour on two idle cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bert_course.chapters import scaling
from bert_course.chapters.pretraining import stories
from book.records.make import _rates

WIDTHS = (16, 32, 64, 128, 256)  # each has about four times the parameters of the one before
STEPS = (600, 1200, 2400, 4800)  # the next width with a quarter of the steps costs about as much
SEEDS = (0, 1, 2)
RATES, WIDENED = (1e-3, 2e-3, 4e-3), 3  # so often at most the search goes on by a factor of two
SEARCH_STEPS, SEARCH_SEED = 1200, 100
FEW, FEW_STEPS = 300, 2400  # pairs, again and again
POINTS = (150, 300, 600, 1200, 2400, 4800)

CASE = ("width", "pairs", "rate", "steps", "seed")  # of a run: what it was made for
Case = tuple[int, int | None, float, int, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"text": stories().fingerprint(), "floor": round(scaling.questions().floor, 6)}


def searched(runs: list[dict[str, Any]], width: int) -> dict[float, float]:
    """By rate, the last loss of the search's run."""
    return {
        run["rate"]: run["curve"][-1][1]
        for run in runs
        if (run["width"], run["steps"], run["seed"]) == (width, SEARCH_STEPS, SEARCH_SEED)
    }


def best_rate(runs: list[dict[str, Any]], width: int) -> float:
    """The rate with the lowest last loss in the search."""
    return _rates.best(searched(runs, width))


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make, stage by stage; widest first, so that the last runs are short.

    runs: those that are there when a stage begins, of which it reads the best rates.
    """
    widest_first = WIDTHS[::-1]
    yield [(width, None, rate, SEARCH_STEPS, SEARCH_SEED) for width in widest_first for rate in RATES]
    for _ in range(WIDENED):
        yield [
            (width, None, rate, SEARCH_STEPS, SEARCH_SEED)
            for width in widest_first
            if (rate := _rates.next_rate(searched(runs, width))) is not None
        ]
    rates = {width: best_rate(runs, width) for width in WIDTHS}
    for seed in SEEDS:  # the longest ones last: what the others say of them can then be tested
        yield [
            (width, None, rates[width], steps, seed)
            for steps in reversed(STEPS[:-1])
            for width in widest_first
        ]
    yield [(width, FEW, rates[width], FEW_STEPS, seed) for seed in SEEDS for width in widest_first]
    for seed in SEEDS:
        yield [(width, None, rates[width], STEPS[-1], seed) for width in widest_first]


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    width, pairs, rate, steps, seed = case
    asked = scaling.questions()
    points = sorted({point for point in POINTS if point < steps} | {steps})
    curve, forced, seconds = [], {}, 0.0
    started = time.perf_counter()
    for step, model in scaling.train(width, pairs, rate, steps, seed, points):
        seconds += time.perf_counter() - started
        found = scaling.score(model, asked)
        curve.append([step, round(found.nats, 5)])
        forced = {slot: round(share, 4) for slot, share in found.forced.items()}
        started = time.perf_counter()
    return {
        "width": width,
        "pairs": pairs,
        "rate": rate,
        "steps": steps,
        "seed": seed,
        "seconds": round(seconds),
        "curve": curve,
        "forced": forced,
    }
