"""What does dividing by √d_k do for a head that has to attend? The record that chapter `one_head` shows.

The head and the task are those of chapter `positions`: one layer with a learned table of positions names the word three
places to the left. 152 runs of about 3 seconds on one core: five ways, two starts, four learning rates, three seeds;
and two ways with BERT's recipe around them, eight seeds.

Under Adam, whose steps do not depend on the size of a gradient, dividing by √d_k is two things at once: queries and
keys that start smaller by d_k^¼ each, and steps of their weights that are smaller by as much. The ways have both, one
or none of them. All train on the same sequences, from the same draws. What is stored of a run is the loss on fresh
sequences, every EVERY steps, and what the rows of scores look like before the first.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from bert_course.chapters.positions import D_MODEL, SHORT, WORDS, OneLayer, batch_of
from bert_course.common.softmax import softmax
from minigrad import no_grad, ops, optim, random

TASK, BATCH, STEPS, EVERY = "left", 32, 400, 10
RATES, SEEDS, MORE_SEEDS = (1e-3, 3e-3, 1e-2, 3e-2), (0, 1, 2), range(8)
# what the first W_Q and W_K are multiplied by: q and k near variance 1 (0.77, because the draws are cut at two
# deviations), and q · k near the variance of 3.6 that BERT-Base's start has
STARTS = {"unit": 1.0, "small": 0.63}
SMALLER = D_MODEL**-0.25
# of each way: what the scores are multiplied by, then W_Q and W_K at the start, then their rates
WAYS = {
    "scaled": (1 / math.sqrt(D_MODEL), 1.0, 1.0),
    "plain": (1.0, 1.0, 1.0),
    "plain, smaller start": (1.0, SMALLER, 1.0),
    "plain, smaller steps": (1.0, 1.0, SMALLER),
    "plain, both": (1.0, SMALLER, SMALLER),
}
# Two of them at the highest rate as BERT trains: warm-up, then linear decay of the rate, clipping, weight decay.
RECIPE = {"scaled, recipe": "scaled", "plain, recipe": "plain"}
WARMUP, LIMIT, DECAY = 40, 1.0, 0.01
CASE = ("way", "start", "rate", "seed")  # of a run: what it was made for
Case = tuple[str, str, float, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"d_k": D_MODEL, "length": SHORT, "words": WORDS, "every": EVERY, "steps": STEPS}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [
        list(itertools.product(WAYS, STARTS, RATES, SEEDS)),
        list(itertools.product(RECIPE, STARTS, RATES[-1:], MORE_SEEDS)),
    ]


def look(model: OneLayer, ids: np.ndarray) -> dict[str, float]:
    """Within a row, the variance of q · k and the entropy of the weights. ids: (B, L)."""
    with no_grad():
        x = model.words(ids) + model.positions[: ids.shape[1]]  # (B, L, d)
        q, k = (part(x).numpy().astype(float) for part in (model.query, model.key))
    dots = q @ k.swapaxes(-1, -2)  # (B, L, L)
    weights = softmax(model.scale * dots)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=-1)
    return {"variance": round(float(dots.var(axis=-1).mean()), 4), "entropy": round(float(entropy.mean()), 4)}


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    way, start, rate, seed = case
    scale, smaller, slower = WAYS[RECIPE.get(way, way)]
    random.manual_seed(seed)
    model = OneLayer("learned")
    model.scale = scale
    scored = [*model.query.parameters(), *model.key.parameters()]
    for parameter in scored:
        parameter.data *= STARTS[start] * smaller
    others = [p for p in model.parameters() if all(p is not one for one in scored)]
    optimizer = optim.AdamW(
        [{"params": scored, "lr": rate * slower}, {"params": others}],
        lr=rate,
        weight_decay=DECAY if way in RECIPE else 0.0,
    )
    schedule = optim.LinearWarmupDecay(optimizer, WARMUP, STEPS) if way in RECIPE else None
    rng, (fresh, answers) = (
        np.random.default_rng(seed),
        batch_of(np.random.default_rng(1000), 500, SHORT, TASK),
    )
    before, losses = look(model, fresh), []
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            with no_grad():
                loss = ops.cross_entropy(model(fresh).reshape(-1, WORDS), answers.reshape(-1))
            losses.append(round(loss.item(), 4))
        ids, labels = batch_of(rng, BATCH, SHORT, TASK)
        optimizer.zero_grad()
        ops.cross_entropy(model(ids).reshape(-1, WORDS), labels.reshape(-1)).backward()
        if schedule is not None:
            optim.clip_grad_norm(model.parameters(), LIMIT)
        optimizer.step()
        if schedule is not None and step < STEPS:
            schedule.step()
    return {"way": way, "start": start, "rate": rate, "seed": seed, "before": before, "loss": losses}
