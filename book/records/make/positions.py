"""Ways to tell a head positions, on two tasks: the record that chapter `positions` shows.

144 runs of about 6 seconds on one core.
Each way has three learning rates and three seeds on each task (`book/bert_course/chapters/positions.py` says what they
are); the two tables also with sequences that begin at a random position. All train on the same sequences.
What is stored of a run is `score` on sequences as long as those in training, and on longer ones; of the relative
kinds on much longer ones too.
"""

from __future__ import annotations

import itertools
from typing import Any

from bert_course.chapters import positions

STEPS, RATES, SEEDS = 1000, (1e-3, 3e-3, 1e-2), (0, 1, 2)
WAYS = [*itertools.product(positions.KINDS, (False,)), ("learned", True), ("sinusoids", True)]
LONGER = (64, 128, positions.LONGEST)  # tokens, on which only relative kinds can be tested
RELATIVE = ("bias", "bias without a limit", "rotary", "ALiBi")
CASE = ("task", "kind", "moved", "rate", "seed")  # of a run: what it was made for
Case = tuple[str, str, bool, float, int]
CASES: list[Case] = [
    (task, kind, moved, rate, seed)
    for seed, task, (kind, moved), rate in itertools.product(SEEDS, ("left", "fixed"), WAYS, RATES)
    if not (moved and task == "fixed")
]


def rounded(scores: dict[str, float]) -> dict[str, float]:
    """With four digits after the point."""
    return {name: round(value, 4) for name, value in scores.items()}


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"steps": STEPS, "rates": RATES}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [CASES]


def make(case: Case) -> dict[str, Any]:
    """Train one layer; what it is, and how well it does at both lengths."""
    task, kind, moved, rate, seed = case
    model = positions.train(kind, task, seed, rate, STEPS, moved)
    return {
        "task": task,
        "kind": kind,
        "moved": moved,
        "rate": rate,
        "seed": seed,
        "short": rounded(positions.score(model, task, positions.SHORT)),
        "long": rounded(positions.score(model, task, positions.LONG)),
        **{f"{L} tokens": rounded(positions.score(model, task, L)) for L in LONGER if kind in RELATIVE},
    }
