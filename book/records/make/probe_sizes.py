"""How many stories does a probe of each layer need? The record that chapter `features` shows.

Each question of that chapter is put to the layers of the trained encoder and of an untrained one, by the chapter's
linear probe, fitted to some stories and tested on three other sets of 300. What is stored of a run is the number of
words that the probe was fitted to, and the share of right answers, by question and layer. Four runs of a minute.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from bert_course.chapters import features
from bert_course.common.varied_stories import as_drawn, read, story_model

AT_ONCE, FIRST_SEED = 600, 7  # stories; the first 600 are those of the chapter
TESTS = (1000, 1001, 1002)  # seeds of 300 stories each
CASE = ("encoder", "stories")  # of a run: what it was made for
Case = tuple[str, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"tests": TESTS}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [list(itertools.product(("trained", "untrained"), (AT_ONCE, 10 * AT_ONCE)))]


def make(case: Case) -> dict[str, Any]:
    """Fit and test the probes of all layers."""
    encoder, count = case
    model = story_model()[0] if encoder == "trained" else as_drawn(1)
    names = list(features.PHENOMENA)
    products: dict[str, Any] = dict.fromkeys(names, 0.0)  # of the rows x with themselves, (layers, 129, 129)
    sums: dict[str, Any] = dict.fromkeys(names, 0.0)  # of x with the one-hot answers, (layers, 129, classes)
    words = dict.fromkeys(names, 0)
    for seed in range(FIRST_SEED, FIRST_SEED + count // AT_ONCE):
        for name, x, y in rows(model, AT_ONCE, seed):
            products[name] += x.swapaxes(1, 2) @ x
            sums[name] += x.swapaxes(1, 2) @ np.eye(CLASSES)[y]
            words[name] += len(y)
    weights = {
        name: np.linalg.solve(products[name] + np.eye(products[name].shape[-1]), sums[name]) for name in names
    }
    right: dict[str, Any] = {name: [] for name in names}
    for seed in TESTS:
        for name, x, y in rows(model, 300, seed):
            right[name].append(((x @ weights[name]).argmax(axis=-1) == y).mean(axis=1))
    return {
        "encoder": encoder,
        "stories": count,
        "words": words,
        "right": {name: np.mean(found, axis=0).round(4).tolist() for name, found in right.items()},
    }


CLASSES = 40  # more than any question has; a class without a word is never the likeliest


def rows(model: Any, count: int, seed: int) -> Any:
    """Of each question its words: rows (layers, n, 129) with a 1 for the bias, and answers (n,)."""
    texts = read(count, seed)
    states = features.hidden_states(model, texts)
    for name in features.PHENOMENA:
        tags = features.tagged(texts, name)
        x = states[:, tags != -100].astype(float)  # (layers, n, 128)
        yield name, np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=-1), tags[tags != -100]
