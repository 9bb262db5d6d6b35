"""Short training of a Transformer with one part of the paper's recipe left out: the record that `transformer` shows.

Each variant is trained with three seeds at three peaks of the schedule, the highest of them the paper's rule for this
width and warm-up: 63 runs of half a minute on one core.
"""

from __future__ import annotations

import itertools
from typing import Any

from bert_course.chapters import transformer as chapter

SEEDS, STEPS, WARMUP = (0, 1, 2), 300, 150
PEAKS = (0.0005, 0.0015, round(chapter.paper_peak(chapter.REDUCED.d_model, WARMUP), 4))
HELD_OUT = 400

CASE = ("seed", "peak", "variant")  # of a run: what it was made for
Case = tuple[int, float, str]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"steps": STEPS, "warmup_steps": WARMUP, "peaks": PEAKS, "texts": HELD_OUT}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [list(itertools.product(SEEDS, PEAKS, chapter.VARIANTS))]


def make(case: Case) -> dict[str, Any]:
    """Train once and score on stories that are not trained on."""
    seed, peak, name = case
    pairs = chapter.pairs_of(HELD_OUT)
    variant = chapter.VARIANTS[name]
    model = chapter.train(chapter.REDUCED, STEPS, WARMUP, seed=seed, variant=variant, peak=peak)
    nats, words = chapter.held_out(model, pairs)
    exact = sum(chapter.right(model, pairs)) / len(pairs)
    return {
        "variant": name,
        "seed": seed,
        "peak": peak,
        "loss": round(nats, 4),
        "words": round(words, 4),
        "exact": round(exact, 4),
    }
