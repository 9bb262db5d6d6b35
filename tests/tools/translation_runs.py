"""Recurrent models that translate long stories: the record that chapter 18 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 5 python tests/tools/translation_runs.py

writes book/runs/translation.json, run by run, and goes on where it was stopped. A run is one of the variants of
`minigrad/course/chapters/seq2seq.py`, trained for STEPS steps on fresh texts; what is stored is `score` on HELD_OUT
texts, at the last step and half way. First the plain LSTM with three seeds and the other variants with one, all at
one rate. Then a search, with the first seed: rates by factors of two, until the best of a variant has a worse one on
either side. At the best rate of each: two more seeds, four more of the plain LSTM, and one LSTM with LONGER steps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import records

from minigrad.course.chapters import seq2seq

STEPS, LONGER = 2000, 6000
RATE = 2e-3  # the first that is tried
SEEDS, MAIN_SEEDS = (0, 1, 2), range(5)
NAMES = ["LSTM", "source reversed", "GRU", "RNN", "twice the state"]

Case = tuple[str, float, int, int]  # variant, rate, seed, steps


def case_of(run: dict[str, Any]) -> Case:
    """What a stored run was made for."""
    return run["variant"], run["rate"], run["seed"], run["steps"]


def stages(runs: list[dict[str, Any]], steps: int) -> Iterator[list[Case]]:
    """The runs to make, stage by stage, the most important first.

    runs: those that are there when a stage begins, of which all but the first two stages read the best rates.
    """
    yield [(NAMES[0], RATE, seed, steps) for seed in SEEDS]
    yield [(name, RATE, 0, steps) for name in NAMES[1:]]
    while beside := beside_the_best(runs, steps):
        yield beside
    best = {name: best_rate(runs, name, steps) for name in NAMES}
    yield [(name, rate, seed, steps) for seed in SEEDS for name, rate in best.items()]
    yield [(NAMES[0], best[NAMES[0]], seed, steps) for seed in MAIN_SEEDS]
    if steps == STEPS:
        yield [(NAMES[0], best[NAMES[0]], 0, LONGER)]


def beside_the_best(runs: list[dict[str, Any]], steps: int) -> list[Case]:
    """What the search lacks: half and twice the best rate so far, of each variant that has no run there."""
    done = set(map(case_of, runs))
    best = {name: best_rate(runs, name, steps) for name in NAMES}
    cases = [(name, rate * factor, 0, steps) for name, rate in best.items() for factor in (0.5, 2)]
    return [case for case in cases if case not in done]


def best_rate(runs: list[dict[str, Any]], name: str, steps: int) -> float:
    """Of a variant's runs of this length."""
    return seq2seq.best_rate([run for run in runs if (run["variant"], run["steps"]) == (name, steps)])


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
    runs = stages(record["runs"], options.steps)
    records.make_missing(options.record, record, runs, case_of, make, options.jobs)


if __name__ == "__main__":
    main()
