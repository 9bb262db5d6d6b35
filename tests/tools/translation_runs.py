"""Recurrent models that translate long stories: the record that chapter 18 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 5 python tests/tools/translation_runs.py

writes book/runs/translation.json, run by run, and goes on where it was stopped. A run is one of the variants of
`minigrad/course/chapters/seq2seq.py`, trained for STEPS steps on fresh texts; what is stored is `score` on HELD_OUT
texts, at the last step and half way. First the plain LSTM with each seed, then the other variants at one rate, then
these at two more rates, and, at the best rate of each, two more seeds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import records

from minigrad.course.chapters import seq2seq

STEPS, LONGER = 2000, 6000
RATE, OTHER_RATES = 2e-3, (1e-3, 4e-3)
SEEDS, MAIN_SEEDS = (0, 1, 2), range(5)
NAMES = ["LSTM", "source reversed", "GRU", "RNN", "twice the state"]

Case = tuple[str, float, int, int]  # variant, rate, seed, steps


def stages(runs: list[dict[str, Any]], steps: int) -> Iterator[list[Case]]:
    """The runs to make, stage by stage, the most important first.

    runs: those that are there when a stage begins, of which the last stage reads the best rates.
    """
    yield [(NAMES[0], RATE, seed, steps) for seed in (0, 1, 2)]
    yield [(name, RATE, 0, steps) for name in NAMES[1:]]
    yield [(NAMES[0], RATE, seed, steps) for seed in MAIN_SEEDS]
    yield [(name, rate, 0, steps) for name in NAMES for rate in OTHER_RATES]
    if steps == STEPS:
        yield [(NAMES[0], RATE, 0, LONGER)]
    yield [(name, best_rate(runs, name, steps), seed, steps) for seed in SEEDS for name in NAMES]


def best_rate(runs: list[dict[str, Any]], name: str, steps: int) -> float:
    """The rate with the most texts right, of the runs with seed 0."""
    exact = {
        run["rate"]: sum(of["exact"] for of in run["scores"].values())
        for run in runs
        if (run["variant"], run["seed"], run["steps"]) == (name, 0, steps)
    }
    return max(exact, key=exact.__getitem__)


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
    parser = records.parser(__doc__, "translation.json")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a run, fewer to try the tool")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each in its own process")
    options = parser.parse_args()
    record = records.read(options.record, __file__, texts=seq2seq.HELD_OUT)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for stage in stages(record["runs"], options.steps):
            done = {(run["variant"], run["rate"], run["seed"], run["steps"]) for run in record["runs"]}
            running = [pool.submit(make, case) for case in dict.fromkeys(stage) if case not in done]
            for run in as_completed(running):
                record["runs"].append(run.result())
                records.write(options.record, record)


if __name__ == "__main__":
    main()
