"""Tags read from a frozen encoder by a BiLSTM, and the same model fine-tuned: the record that chapter `features` shows.

Each task and input is tried at several
rates on stories that no compared run sees; then come the compared runs, at the best rate, with several seeds. A seed
draws the labelled stories, the new weights and the order. Sums without weights take the rate of the weighted sum;
fine-tuning for the control task "name" takes the rate of "holder". Forty minutes on a busy core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.chapters.features import (
    CHOICES,
    SEARCH_SEED,
    TAGS,
    Tagger,
    accuracy,
    fine_tuned_guesses,
    inputs_of,
    predict,
    stories_for,
    tagged,
    train,
)
from minigrad import ops, random

TASKS, CONTROL_TASK = ("kind", "holder"), "name"
SIX = tuple(CHOICES)[:6]
SUMS = {"sum, last two": "weighted sum, last two", "sum, all four": "weighted sum, all four"}
CONTROLS = ("last, untrained", "one-hot words")
SIZE = 64
RATES = {
    "lstm": (3e-3, 1e-2, 3e-2),
    "linear": (1e-2, 3e-2, 1e-1, 3e-1),
    "fine-tuned": (2e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3),
}
HIGHER = {("one-hot words", "lstm"): (1e-1, 3e-1)}  # its best rate among the first three was the highest
STEPS = {"lstm": 80, "linear": 160, "fine-tuned": 120}
SEEDS, CONTROL_SEEDS = range(5), range(3)
HELD_OUT, HELD_OUT_SEED, SEARCH_HELD_OUT, SEARCH_HELD_OUT_SEED = 400, 1000, 200, 1001

DROPS = True  # compared runs at a rate that is no longer the best

CASE = ("task", "what", "reader", "labels", "rate", "seed")  # of a run: what it was made for
Case = tuple[str, str, str, int, float, int]


def best_rate(runs: list[dict[str, Any]], task: str, what: str, reader: str) -> float:
    """The rate with the highest accuracy in the search; of equal ones the lowest."""
    what = SUMS.get(what, what)
    if task == CONTROL_TASK and reader == "fine-tuned":
        task = "holder"
    found = {
        run["rate"]: run["accuracy"]
        for run in runs
        if (run["task"], run["what"], run["reader"], run["seed"]) == (task, what, reader, SEARCH_SEED)
    }
    return max(sorted(found), key=found.__getitem__)


def search(whats: tuple[str, ...], reader: str, tasks: tuple[str, ...] = TASKS) -> list[Case]:
    """The runs that find the rates."""
    return [
        (task, what, reader, SIZE, rate, SEARCH_SEED)
        for task in tasks
        for what in whats
        for rate in (*RATES[reader], *HIGHER.get((what, reader), ()))
    ]


def compared(
    runs: list[dict[str, Any]],
    whats: tuple[str, ...],
    reader: str,
    seeds: range = SEEDS,
    tasks: tuple[str, ...] = TASKS,
) -> list[Case]:
    """The runs that are compared, at the best rate found."""
    return [
        (task, what, reader, SIZE, best_rate(runs, task, what, reader), seed)
        for task in tasks
        for what in whats
        for seed in seeds
    ]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"held_out": HELD_OUT, "steps": STEPS, "rates": RATES}


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """What is made, in order; each stage needs the ones before it."""
    tuned = ("fine-tuned",)
    yield search(SIX, "linear")
    yield compared(runs, SIX, "linear")
    yield search(SIX, "lstm")
    yield compared(runs, SIX, "lstm")
    yield search(tuned, "fine-tuned")
    yield compared(runs, tuned, "fine-tuned")
    yield search(CONTROLS, "lstm")
    yield compared(runs, CONTROLS, "lstm")
    yield search(CONTROLS, "linear")
    yield compared(runs, CONTROLS, "linear")
    yield compared(runs, tuple(SUMS), "lstm")
    yield search(SIX, "lstm", (CONTROL_TASK,))
    yield compared(runs, SIX, "lstm", CONTROL_SEEDS, (CONTROL_TASK,))
    yield compared(runs, tuned, "fine-tuned", CONTROL_SEEDS, (CONTROL_TASK,))


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    task, what, reader, size, rate, seed = case
    run = {"task": task, "what": what, "reader": reader, "labels": size, "rate": rate, "seed": seed}
    test_on = (SEARCH_HELD_OUT, SEARCH_HELD_OUT_SEED) if seed == SEARCH_SEED else (HELD_OUT, HELD_OUT_SEED)
    texts, _, lengths = stories_for(size, seed)
    test, _, test_lengths = stories_for(*test_on)
    tags, wanted = tagged(texts, task), tagged(test, task)
    if reader == "fine-tuned":
        guesses = fine_tuned_guesses(task, texts, test, rate, STEPS[reader], seed)
    else:
        layers, join = inputs_of(what, size, seed)
        random.manual_seed(seed)
        model = Tagger(len(layers), layers.shape[-1], join, TAGS[task][0], reader)
        train(model, layers, lengths, tags, rate, STEPS[reader], seed)
        guesses = predict(model, inputs_of(what, *test_on)[0], test_lengths)
        run["training_accuracy"] = round(accuracy(predict(model, layers, lengths), tags), 4)
        if join == "weighted":
            run["weights"] = np.round(ops.softmax(model.s).numpy().astype(float), 4).tolist()
    run["accuracy"] = round(accuracy(guesses, wanted), 4)
    return run
