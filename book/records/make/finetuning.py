"""Fine-tuning on stories from different weights, with few labels and many: the record that chapter `finetuning` shows.

First each task and each start of `book/bert_course/chapters/finetuning.py` is tried at several learning rates, on
examples that no other run sees, with few labels and with many (`SEARCHED`, `SEARCHED_THERE`). If the highest rate is
the best, the next higher one is tried as well (`WIDENED`), and a lower one (`LOWER`) if the lowest alone is. Then come
the runs that are compared, at the best rate, with several seeds. A seed draws the labelled examples, the new weights
and the order. Two starts learn pairs for ten times as long (`LONGER`). The last runs look for names in real text, with
the labels on this or that piece of a word. Forty minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bert_course.chapters.finetuning import NAMED, SEARCH_SEED, STARTS, TASKS, accuracy, begin, fine_tune
from bert_course.chapters.names import ALIGNMENTS, begin_names, name_examples, score_names

SIZES = (16, 64, 256, 1024)
SEARCHED = {16: 64, 64: 64, 256: 256, 1024: 256}  # the number of labels at which the rate was looked for
# Where the search at another size cannot tell the rates apart: there all of them are right, or all of them guess.
SEARCHED_THERE = {("moved", 16), ("pairs", 1024)}
RATES = dict.fromkeys(STARTS, (3e-4, 1e-3, 3e-3)) | {"frozen": (1e-2, 3e-2, 1e-1, 3e-1)}
WIDENED = {"pre-trained": 1e-2, "from scratch": 1e-2, "frozen": 1.0}  # for each task but pairs, which guesses
LOWER = 1e-4
SEEDS = {"pre-trained": range(5), "from scratch": range(5), "frozen": range(3)}
CONTROLS, CONTROL_SEEDS = ("shuffled", "embeddings only"), range(3)
KEYWORD = "moved"  # a task of one word
PAIRS = "pairs"  # a task at which every start guesses with few labels
LONGER, LONGER_STEPS, LONGER_RATES = "pairs, longer", 3200, (3e-4, 1e-3)
HELD_OUT, HELD_OUT_SEED, SEARCH_HELD_OUT_SEED = 400, 1000, 1001

NAMES, NAMES_STARTS, NAMES_SIZE, NAMES_STEPS, NAMES_SEEDS = (
    "names",
    ("pre-trained", "from scratch"),
    64,
    100,
    range(3),
)

DROPS = True  # compared runs at a rate that is no longer the best

CASE = ("task", "start", "labels", "rate", "seed")  # of a run: what it was made for
Case = tuple[str, str, int, float, int]


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
        if size in sizes_for(task, start)
    ]


def sizes_for(task: str, start: str) -> tuple[int, ...]:
    """The numbers of labels of the runs that are compared."""
    if start in NAMED:
        return (64,) if task == "holder" else ()
    if task == KEYWORD:
        return {"shuffled": (), "embeddings only": (16,)}.get(start, (16, 64))
    if start in CONTROLS:
        return (64, 256) if task == PAIRS else (16, 64, 256)
    return SIZES


def searched(task: str, size: int) -> int:
    """The number of labels at which the rate for these runs is looked for."""
    return size if (task, size) in SEARCHED_THERE else SEARCHED[size]


def search() -> list[Case]:
    """The runs that find the rates."""
    return [(*case, rate, SEARCH_SEED) for case in searches() for rate in RATES[case[1]]]


def searches() -> list[tuple[str, str, int]]:
    """Task, start and number of labels of the runs that find the rates."""
    return list(dict.fromkeys((task, start, searched(task, size)) for task, start, size in cases()))


def wider_search(runs: list[dict[str, Any]]) -> list[Case]:
    """One higher rate where the highest of the others was the best, one lower where the lowest alone was."""
    lower = [
        (task, start, size, LOWER, SEARCH_SEED)
        for task, start, size in searches()
        if start != "frozen" and lowest_is_best(runs, task, start, size)
    ]
    return lower + [
        (task, start, size, WIDENED[start], SEARCH_SEED)
        for task, start, size in searches()
        if task != PAIRS
        and start in WIDENED
        and best_rate(runs, task, start, size) in (max(RATES[start]), WIDENED[start])
    ]


def main_runs(runs: list[dict[str, Any]]) -> list[Case]:
    """The runs that are compared, at the best rate found."""
    return [
        (task, start, size, best_rate(runs, task, start, size), seed)
        for task, start, size in cases()
        for seed in SEEDS.get(start, CONTROL_SEEDS)
    ]


def lowest_is_best(runs: list[dict[str, Any]], task: str, start: str, size: int) -> bool:
    """Whether the lowest of the first rates has the highest accuracy of all, and no other has it too."""
    case = (task, start, searched(task, size))
    found = {
        run["rate"]: run["accuracy"]
        for run in runs
        if (run["task"], run["start"], run["labels"]) == case and run["seed"] == SEARCH_SEED
    }
    lowest, *others = (found[rate] for rate in RATES[start])
    return lowest > max(others)


def best_rate(runs: list[dict[str, Any]], task: str, start: str, size: int) -> float:
    """The rate with the highest accuracy in the search."""
    what = (task, start, searched(task, size), SEARCH_SEED)
    found = {
        run["rate"]: run.get("f1", run["accuracy"])
        for run in runs
        if (run["task"], run["start"], run["labels"], run["seed"]) == what
    }
    return max(sorted(found), key=found.__getitem__)  # of equal ones the lowest


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


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"held_out": HELD_OUT, "steps": {size: steps_of(size) for size in SIZES}}


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make, stage by stage; a stage reads the best rates of those before it."""
    yield search()
    yield wider_search(runs)
    yield main_runs(runs)
    yield [
        (LONGER, start, max(SIZES), rate, seed)
        for start in ("from scratch", "embeddings only")
        for rate in LONGER_RATES
        for seed in range(3)
    ]
    yield search_names()
    yield names_runs(runs)


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
        task = TASKS[PAIRS if name == LONGER else name]
        train = task.examples(size, seed)
        held_out = task.examples(HELD_OUT, SEARCH_HELD_OUT_SEED if seed == SEARCH_SEED else HELD_OUT_SEED)
        model = begin(task, start, seed)
        fine_tune(model, train, rate, LONGER_STEPS if name == LONGER else steps_of(size), seed)
        run |= {
            "accuracy": round(accuracy(model, held_out), 4),
            "training_accuracy": round(accuracy(model, train), 4),
        }
    return run
