"""Recurrent models that translate long stories: the record that chapter `seq2seq` shows.

A run is one of the variants of
`book/bert_course/chapters/seq2seq.py`, trained for STEPS steps on fresh texts; what is stored is `score` on HELD_OUT
texts, at the last step and half way. The plain LSTM has five seeds at RATE, the other variants one; with the first seed
all have two other rates as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bert_course.chapters import seq2seq

STEPS = 2000
RATE, OTHER_RATES = 2e-3, (1e-3, 4e-3)
MAIN_SEEDS = range(5)
NAMES = ["LSTM", "source reversed", "GRU", "RNN", "twice the state"]

CASE = ("variant", "rate", "seed", "steps")  # of a run: what it was made for
Case = tuple[str, float, int, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"texts": seq2seq.HELD_OUT}


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make, stage by stage, the most important first."""
    yield [(NAMES[0], RATE, seed, STEPS) for seed in MAIN_SEEDS]
    yield [(name, RATE, 0, STEPS) for name in NAMES]
    yield [(name, rate, 0, STEPS) for name in NAMES for rate in OTHER_RATES]


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    name, rate, seed, steps = case
    variant, started, run = seq2seq.VARIANTS[name], time.perf_counter(), {}
    for step, model, loss in seq2seq.train(variant, seed, rate, steps, (steps // 2, steps)):
        scores = seq2seq.score(model, variant)
        exact, total = (sum(of[what] for of in scores.values()) for what in ("exact", "texts"))
        seconds = time.perf_counter() - started
        if step < steps:
            run["half_way"] = [exact, total]
        else:
            run |= {"loss": round(loss, 4), "seconds": round(seconds), "scores": scores}
    return {"variant": name, "rate": rate, "seed": seed, "steps": steps, **run}
