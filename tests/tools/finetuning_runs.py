"""Fine-tuning on stories from different weights, with few labels and many: the record that chapter 16 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 19 python tests/tools/finetuning_runs.py --jobs 2

writes book/runs/finetuning.json, run by run, and goes on where it was stopped. First each task, each start of
`minigrad/course/chapters/finetuning.py` and each number of labels is tried at three learning rates, on examples that
no other run sees; then, at the best rate, with five seeds. A seed draws the labelled examples, the new weights and the
order.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import records

from minigrad.course.chapters.finetuning import STARTS, TASKS, accuracy, begin, fine_tune

SIZES, SEEDS = (16, 64, 256, 1024), range(5)
SEARCH_SEED = 100
RATES = {start: (3e-4, 1e-3, 3e-3) for start in STARTS} | {"frozen": (3e-3, 1e-2, 3e-2)}
CONTROLS = ("shuffled", "embeddings only")
HELD_OUT, HELD_OUT_SEED, SEARCH_HELD_OUT_SEED = 500, 1000, 1001

Case = tuple[str, str, int, float, int]  # task, start, labels, rate, seed


def steps_of(size: int) -> int:
    """Steps of 16 examples."""
    return 160 if size <= 64 else 320


def starts_of(task: str) -> list[str]:
    """Where the runs of a task begin."""
    return [start for start in STARTS if start not in CONTROLS or task != "moved"]


def search() -> list[Case]:
    """The runs that find the rates."""
    return [
        (task, start, size, rate, SEARCH_SEED)
        for size in SIZES
        for task in TASKS
        for start in starts_of(task)
        for rate in RATES[start]
    ]


def main_runs(runs: list[dict[str, Any]]) -> list[Case]:
    """The runs that are compared, at the best rate found."""
    return [
        (task, start, size, best_rate(runs, task, start, size), seed)
        for size in SIZES
        for task in TASKS
        for start in starts_of(task)
        for seed in SEEDS
    ]


def best_rate(runs: list[dict[str, Any]], task: str, start: str, size: int) -> float:
    """The rate with the highest accuracy in the search."""
    what = (task, start, size, SEARCH_SEED)
    found = {
        run["rate"]: run["accuracy"]
        for run in runs
        if (run["task"], run["start"], run["labels"], run["seed"]) == what
    }
    return max(found, key=found.__getitem__)


def make(case: Case) -> dict[str, Any]:
    """Fine-tune once."""
    name, start, size, rate, seed = case
    task = TASKS[name]
    train = task.examples(size, seed)
    held_out = task.examples(HELD_OUT, SEARCH_HELD_OUT_SEED if seed == SEARCH_SEED else HELD_OUT_SEED)
    model = begin(task, start, seed)
    fine_tune(model, train, rate, steps_of(size), seed)
    run = {
        "task": name,
        "start": start,
        "labels": size,
        "rate": rate,
        "seed": seed,
        "accuracy": round(accuracy(model, held_out), 4),
        "training_accuracy": round(accuracy(model, train), 4),
    }
    print(*run.values(), flush=True)
    return run


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = records.parser(__doc__, "finetuning.json")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each in a process of its own")
    options = parser.parse_args()
    record = records.read(options.record, __file__, held_out=HELD_OUT, steps={n: steps_of(n) for n in SIZES})
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for stage in (search, lambda: main_runs(record["runs"])):
            done = {
                (run["task"], run["start"], run["labels"], run["rate"], run["seed"]) for run in record["runs"]
            }
            running = [pool.submit(make, case) for case in stage() if case not in done]
            for run in as_completed(running):
                record["runs"].append(run.result())
                records.write(options.record, record)


if __name__ == "__main__":
    main()
