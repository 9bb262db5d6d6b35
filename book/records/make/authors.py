"""Doyle or Melville, from few labels and many: the record that chapter `finetuning` shows of real text.

What counts words has nothing to choose; each of the others is tried at several rates, with 64 labels and with 1,024, on
sentences that no compared run is judged by. Then come the compared runs, at the best rate, without names and (but for
the published model, which takes longest) with them. A seed draws the labelled sentences, the new weights and the order.
Forty minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bert_course.chapters.authors import (
    SEARCH_SEED,
    STARTS,
    by_vectors,
    by_words,
    held_out,
    labelled,
    tuned,
    without_names,
)

SIZES = (16, 64, 256, 1024)
# Of 16 examples; the published model, which is fifty times as large, learns in fewer.
STEPS = {16: 100, 64: 160, 256: 320, 1024: 640}
FEWER = {16: 60, 64: 80, 256: 128, 1024: 192}
WITH_NAMES, WITHOUT = "with names", "without names"
RATES = {
    "from scratch": (3e-4, 1e-3, 3e-3),
    "documentation": (3e-4, 1e-3, 3e-3, 1e-2),
    "published, frozen": (1e-4, 3e-4, 1e-3, 1e-2),
    "published": (2e-5, 1e-4, 3e-4, 1e-3),
}
SEEDS = dict.fromkeys(STARTS, range(5)) | {"published": range(3)}

DROPS = True

CASE = ("text", "start", "labels", "rate", "seed")  # of a run: what it was made for
Case = tuple[str, str, int, float, int]


def searched(size: int) -> int:
    """The number of labels at which the rate for these runs is looked for."""
    return 64 if size <= 64 else 1024


def best_rate(runs: list[dict[str, Any]], start: str, size: int) -> float:
    """The rate with the highest accuracy in the search; of equal ones the lowest."""
    found = {
        run["rate"]: run["accuracy"]
        for run in runs
        if (run["start"], run["labels"], run["seed"]) == (start, searched(size), SEARCH_SEED)
    }
    return max(sorted(found), key=found.__getitem__, default=0.0)


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"steps": STEPS, "steps of published": FEWER, "rates": RATES}


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make, stage by stage; the published model's own training comes last, for it takes longest."""
    for starts in (STARTS[:-1], STARTS[-1:]):
        yield [
            (WITHOUT, start, size, rate, SEARCH_SEED)
            for start in starts
            for size in (64, 1024)
            for rate in RATES.get(start, ())
        ]
        yield [
            (text, start, size, best_rate(runs, start, size), seed)
            for text in (WITHOUT, WITH_NAMES)
            for start in starts
            for size in SIZES
            for seed in SEEDS[start]
            if text == WITHOUT or start != "published"  # which takes longest
        ]


def make(case: Case) -> dict[str, Any]:
    """Learn once."""
    text, start, size, rate, seed = case
    train, test = labelled(size, seed), held_out(seed)
    if text == WITHOUT:
        train, test = ([(without_names(one), writer) for one, writer in part] for part in (train, test))
    if start == "words counted":
        right = by_words(train, test)
    elif start == "published, frozen":
        right = by_vectors(train, test, rate, 300, seed)
    else:
        steps = (FEWER if start == "published" else STEPS)[size]
        right = tuned(start, train, test, rate, steps, seed)
    return {
        "text": text,
        "start": start,
        "labels": size,
        "rate": rate,
        "seed": seed,
        "accuracy": round(right, 4),
    }
