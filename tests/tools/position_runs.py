"""Five ways to tell a head positions, on two tasks: the record that chapter 6b shows.

    nice -n 19 env OPENBLAS_NUM_THREADS=1 python tests/tools/position_runs.py

writes book/runs/positions.json, run by run, and goes on where it was stopped: 108 runs of about 4 seconds on one core.
Each way has three learning rates and three seeds on each task (`minigrad/course/chapters/positions.py` says what they
are); the two tables also with sequences that begin at a random position. All train on the same sequences.
What is stored of a run is `score` on sequences as long as those in training, and on longer ones.
"""

from __future__ import annotations

import itertools
from typing import Any

import records

from minigrad.course.chapters import positions

STEPS, RATES, SEEDS = 1000, (1e-3, 3e-3, 1e-2), (0, 1, 2)
WAYS = [*itertools.product(positions.KINDS, (False,)), ("learned", True), ("sinusoids", True)]
CASES = [
    (task, kind, moved, rate, seed)
    for seed, task, (kind, moved), rate in itertools.product(SEEDS, ("left", "fixed"), WAYS, RATES)
    if not (moved and task == "fixed")
]


def rounded(scores: dict[str, float]) -> dict[str, float]:
    """With four digits after the point."""
    return {name: round(value, 4) for name, value in scores.items()}


def run_of(task: str, kind: str, moved: bool, rate: float, seed: int) -> dict[str, Any]:
    """Train one layer; what it is, and how well it does at both lengths."""
    model = positions.train(kind, task, seed, rate, STEPS, moved)
    return {
        "task": task,
        "kind": kind,
        "moved": moved,
        "rate": rate,
        "seed": seed,
        "short": rounded(positions.score(model, task, positions.SHORT)),
        "long": rounded(positions.score(model, task, positions.LONG)),
    }


def main() -> None:
    """Make the runs that the record does not have yet."""
    path = records.parser(__doc__, "positions.json").parse_args().record
    record = records.read(path, __file__, steps=STEPS, rates=RATES)
    done = {tuple(run[name] for name in ("task", "kind", "moved", "rate", "seed")) for run in record["runs"]}
    for case in CASES:
        if case not in done:
            record["runs"].append(run_of(*case))
            records.write(path, record)
            print(*case, record["runs"][-1]["short"], record["runs"][-1]["long"], flush=True)


if __name__ == "__main__":
    main()
