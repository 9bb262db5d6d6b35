"""The paper's six ways to hide words, on a language whose probabilities are known: the record that chapter `mlm` shows.

30 runs of about half a minute on one core. All schemes have the same rate and the same texts;
`book/bert_course/chapters/mlm.py` says what they are, and what is stored of a run (`score_on_the_ring`).
"""

from __future__ import annotations

import itertools
from typing import Any

from bert_course.chapters import mlm

STEPS, SEEDS = 2000, range(5)

CASE = ("seed", "scheme")  # of a run: what it was made for
Case = tuple[int, str]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"steps": STEPS}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [list(itertools.product(SEEDS, mlm.SCHEMES))]


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    seed, scheme = case
    found = mlm.score_on_the_ring(mlm.train_on_the_ring(mlm.SCHEMES[scheme], seed, STEPS))
    return {"scheme": scheme, "seed": seed, **{name: round(value, 4) for name, value in found.items()}}
