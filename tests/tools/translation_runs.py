"""Recurrent models that translate long stories: the record that chapter 18 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 5 python tests/tools/translation_runs.py

writes book/runs/translation.json, run by run, and goes on where it was stopped. A run is one of the variants of
`minigrad/course/chapters/seq2seq.py`, trained for STEPS steps on fresh texts; what is stored is `score` on HELD_OUT
texts, at the last step and half way. The plain LSTM has five seeds at RATE, the other variants one; with the first seed
all have two other rates as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import records

from minigrad.course.chapters import seq2seq

STEPS = 2000
RATE, OTHER_RATES = 2e-3, (1e-3, 4e-3)
MAIN_SEEDS = range(5)
NAMES = ["LSTM", "source reversed", "GRU", "RNN", "twice the state"]

Case = tuple[str, float, int, int]  # variant, rate, seed, steps


def case_of(run: dict[str, Any]) -> Case:
    """What a stored run was made for."""
    return run["variant"], run["rate"], run["seed"], run["steps"]


def stages(steps: int) -> Iterator[list[Case]]:
    """The runs to make, stage by stage, the most important first."""
    yield [(NAMES[0], RATE, seed, steps) for seed in MAIN_SEEDS]
    yield [(name, RATE, 0, steps) for name in NAMES]
    yield [(name, rate, 0, steps) for name in NAMES for rate in OTHER_RATES]


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    name, rate, seed, steps = case
    variant, started, run = seq2seq.VARIANTS[name], time.perf_counter(), {}
    for step, model, loss in seq2seq.train(variant, seed, rate, steps, (max(1, steps // 2), steps)):
        scores = seq2seq.score(model, variant)
        exact, total = (sum(of[what] for of in scores.values()) for what in ("exact", "texts"))
        seconds = time.perf_counter() - started
        print(f"{name:16} {rate:.0e} seed {seed} step {step:5}: loss {loss:.3f}, {exact} of {total} texts right, "
              f"{seconds:.0f} s", flush=True)  # fmt: skip
        if step < steps:
            run["half_way"] = [exact, total]
        else:
            run |= {"loss": round(loss, 4), "seconds": round(seconds), "scores": scores}
    return {"variant": name, "rate": rate, "seed": seed, "steps": steps, **run}


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = records.parser(__doc__, "translation.json", jobs=True)
    parser.add_argument("--steps", type=int, default=STEPS, help="of a run, fewer to try the tool")
    options = parser.parse_args()
    record = records.read(options.record, __file__, texts=seq2seq.HELD_OUT)
    records.make_missing(options.record, record, stages(options.steps), case_of, make, options.jobs)


if __name__ == "__main__":
    main()
