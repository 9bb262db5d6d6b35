"""Fine-tuning on stories from different weights, with few labels and many: the record that chapter 16 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 19 python tests/tools/finetuning_runs.py --jobs 2

writes book/runs/finetuning.json, run by run, and goes on where it was stopped. First each task, each start of
`minigrad/course/chapters/finetuning.py` is tried at three learning rates, on examples that no other run sees, with few
labels and with many (`SEARCHED`); then, at the best rate, with several seeds. A seed draws the labelled examples, the
new weights and the order. The last runs look for names in real text, with the labels on this or that piece of a word.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import records

from minigrad.course.chapters.finetuning import SEARCH_SEED, STARTS, TASKS, accuracy, begin, fine_tune
from minigrad.course.chapters.names import ALIGNMENTS, begin_names, name_examples, score_names

SIZES = (16, 64, 256, 1024)
SEARCHED = {16: 64, 64: 64, 256: 256, 1024: 256}  # the number of labels at which the rate was looked for
RATES = dict.fromkeys(STARTS, (3e-4, 1e-3, 3e-3)) | {"frozen": (1e-2, 3e-2, 1e-1, 3e-1)}
SEEDS = {"pre-trained": range(5), "from scratch": range(5), "frozen": range(3)}
CONTROLS, CONTROL_SEEDS, CONTROL_SIZES = ("shuffled", "embeddings only"), range(3), (64, 256)
KEYWORD, KEYWORD_SIZES = "moved", (16, 64)  # a task of one word, without controls
HELD_OUT, HELD_OUT_SEED, SEARCH_HELD_OUT_SEED = 400, 1000, 1001

NAMES, NAMES_STARTS, NAMES_SIZE, NAMES_STEPS, NAMES_SEEDS = (
    "names",
    ("pre-trained", "from scratch"),
    64,
    100,
    range(3),
)

Case = tuple[str, str, int, float, int]  # task, start, labels, rate, seed


def steps_of(size: int) -> int:
    """Steps of 16 examples."""
    return 160 if size <= 64 else 320


def cases() -> list[tuple[str, str, int]]:
    """Task, start and number of labels of the runs that are compared."""
    return [
        (task, start, size)
        for size in SIZES
        for task in TASKS
        for start in STARTS
        if (task != KEYWORD or (size in KEYWORD_SIZES and start not in CONTROLS))
        and (start not in CONTROLS or size in CONTROL_SIZES)
    ]


def search() -> list[Case]:
    """The runs that find the rates."""
    found = dict.fromkeys((task, start, SEARCHED[size]) for task, start, size in cases())
    return [(*case, rate, SEARCH_SEED) for case in found for rate in RATES[case[1]]]


def main_runs(runs: list[dict[str, Any]]) -> list[Case]:
    """The runs that are compared, at the best rate found."""
    return [
        (task, start, size, best_rate(runs, task, start, size), seed)
        for task, start, size in cases()
        for seed in SEEDS.get(start, CONTROL_SEEDS)
    ]


def best_rate(runs: list[dict[str, Any]], task: str, start: str, size: int) -> float:
    """The rate with the highest accuracy in the search."""
    what = (task, start, SEARCHED[size], SEARCH_SEED)
    found = {
        run["rate"]: run.get("f1", run["accuracy"])
        for run in runs
        if (run["task"], run["start"], run["labels"], run["seed"]) == what
    }
    return max(found, key=found.__getitem__)


def search_names() -> list[Case]:
    """The runs that find the rates for names."""
    return [
        (f"{NAMES}: {ALIGNMENTS[0]}", start, NAMES_SIZE, rate, SEARCH_SEED)
        for start in NAMES_STARTS
        for rate in RATES[start]
    ]


def names_runs(runs: list[dict[str, Any]]) -> list[Case]:
    """From each start with the labels on first pieces, and pre-trained with the labels elsewhere."""
    found = []
    for start in NAMES_STARTS:
        rate = best_rate(runs, f"{NAMES}: {ALIGNMENTS[0]}", start, NAMES_SIZE)
        for how in ALIGNMENTS if start == "pre-trained" else ALIGNMENTS[:1]:
            found += [(f"{NAMES}: {how}", start, NAMES_SIZE, rate, seed) for seed in NAMES_SEEDS]
    return found


def make(case: Case) -> dict[str, Any]:
    """Fine-tune once."""
    name, start, size, rate, seed = case
    run = {"task": name, "start": start, "labels": size, "rate": rate, "seed": seed}
    if name.startswith(NAMES):
        model = begin_names(start, seed)
        train = name_examples(size, seed, name.removeprefix(f"{NAMES}: "))
        fine_tune(model, train, rate, NAMES_STEPS, seed)
        held_out = name_examples(HELD_OUT, int(seed == SEARCH_SEED), held_out=True)[: HELD_OUT // 2]
        run |= {what: round(value, 4) for what, value in score_names(model, held_out).items()}
    else:
        task = TASKS[name]
        train = task.examples(size, seed)
        held_out = task.examples(HELD_OUT, SEARCH_HELD_OUT_SEED if seed == SEARCH_SEED else HELD_OUT_SEED)
        model = begin(task, start, seed)
        fine_tune(model, train, rate, steps_of(size), seed)
        run |= {
            "accuracy": round(accuracy(model, held_out), 4),
            "training_accuracy": round(accuracy(model, train), 4),
        }
    print(*run.values(), flush=True)
    return run


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = records.parser(__doc__, "finetuning.json")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at the same time, each in a process of its own"
    )
    parser.add_argument("--only", choices=("stories", "names"), help="make these runs alone")
    options = parser.parse_args()
    record = records.read(options.record, __file__, held_out=HELD_OUT, steps={n: steps_of(n) for n in SIZES})
    stages: dict[str, list[Callable[[], list[Case]]]] = {
        "stories": [search, lambda: main_runs(record["runs"])],
        "names": [search_names, lambda: names_runs(record["runs"])],
    }
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for stage in [stage for name in stages if options.only in (None, name) for stage in stages[name]]:
            done = {
                (run["task"], run["start"], run["labels"], run["rate"], run["seed"]) for run in record["runs"]
            }
            running = [pool.submit(make, case) for case in stage() if case not in done]
            for run in as_completed(running):
                record["runs"].append(run.result())
                records.write(options.record, record)


if __name__ == "__main__":
    main()
