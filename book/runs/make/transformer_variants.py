"""Short training of a Transformer with one part of the paper's recipe left out: the record that `transformer` shows.

Each variant is trained with three seeds at the rates of the paper's schedule: about fifteen minutes.
"""

from __future__ import annotations

import itertools
from typing import Any

from minigrad.course.chapters import transformer as chapter

SEEDS, STEPS, WARMUP = (0, 1, 2), 600, 150
HELD_OUT = 400

CASE = ("seed", "variant")  # of a run: what it was made for
Case = tuple[int, str]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"steps": STEPS, "warmup_steps": WARMUP, "texts": HELD_OUT}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [list(itertools.product(SEEDS, chapter.VARIANTS))]


def make(case: Case) -> dict[str, Any]:
    """Train once and score on stories that are not trained on, half way and at the end."""
    seed, name = case
    pairs = chapter.pairs_of(HELD_OUT)
    run: dict[str, Any] = {"variant": name, "seed": seed, "steps": STEPS}

    def tell(step: int, model: Any, loss: float) -> None:
        nats, words = chapter.held_out(model, pairs)
        exact = sum(chapter.right(model, pairs)) / len(pairs)
        found = {"loss": round(nats, 4), "words": round(words, 4), "exact": round(exact, 4)}
        run.update(found if step == STEPS else {"half_way": found})

    chapter.train(chapter.REDUCED, STEPS, WARMUP, seed, chapter.VARIANTS[name], STEPS // 2, tell)
    return run
