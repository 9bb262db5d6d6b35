"""Short training with each way to look at the source: the record that chapter `attention_decoder` shows.

Each variant is trained at four rates with seed 0, then at its best rate with two more seeds: about twelve minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.chapters import attention_decoder as chapter
from minigrad.stories.translation import alignment_score, translation_tokenizer

VARIANTS = ("none", "even", "dot", "general", "additive", "general, both directions")
RATES, SEEDS, STEPS = (5e-3, 1e-2, 2e-2, 4e-2), (0, 1, 2), 600
# scores of weights, which "none" does not have and "even" does not choose
LOOKS = ("aligned", "nouns_at_end")
HELD_OUT, HELD_OUT_SEED = 400, 999_983


CASE = ("variant", "rate", "seed")  # of a run: what it was made for
Case = tuple[str, float, int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"steps": STEPS, "texts": HELD_OUT}


def stages(runs: list[dict[str, Any]]) -> Iterator[list[Case]]:
    """The runs to make; the last stage reads the best rates."""
    yield [(variant, rate, 0) for rate in RATES for variant in VARIANTS]
    yield [(variant, best_rate(runs, variant), seed) for seed in SEEDS[1:] for variant in VARIANTS]


def make(case: Case) -> dict[str, Any]:
    """Train once and score on texts that are not trained on."""
    variant, rate, seed = case
    tokenizer = translation_tokenizer(chapter.LONG)
    texts = chapter.read(HELD_OUT, HELD_OUT_SEED, short=True)
    model = chapter.train(variant, seed, rate, STEPS)
    hits = chapter.forced(model, texts, tokenizer)
    run = {
        "variant": variant,
        "rate": rate,
        "seed": seed,
        "steps": STEPS,
        "words": round(float(np.concatenate(hits).mean()), 4),
        "exact": round(float(np.mean([hit.all() for hit in hits])), 4),
    }
    if chooses(variant):
        weights = chapter.weights_of(model, texts, tokenizer)
        scores = [
            alignment_score(A, tuple(word.aligned for word in text.words))
            for A, text in zip(weights, texts, strict=True)
        ]
        run |= dict(
            zip(
                LOOKS, (round(float(np.mean(scores)), 4), round(nouns_at_end(weights, texts), 4)), strict=True
            )
        )
    return run


def chooses(variant: str) -> bool:
    """Whether its weights depend on the words."""
    return variant not in ("none", "even")


def nouns_at_end(weights: list[np.ndarray], texts: list[chapter.Text]) -> float:
    """The share of nouns for which the end token has the highest weight."""
    found = []
    for A, text in zip(weights, texts, strict=True):
        forms = (text.story.facts.noun, f"{text.story.facts.noun}s")
        for row, word in zip(A, text.words, strict=True):
            if word.aligned and text.source[word.aligned[0]] in forms:
                found.append(row.argmax() == len(text.source))
    return float(np.mean(found))


def best_rate(runs: list[dict[str, Any]], variant: str) -> float:
    """The rate with the most words right, of the runs with seed 0."""
    words = {run["rate"]: run["words"] for run in runs if (run["variant"], run["seed"]) == (variant, 0)}
    return max(words, key=words.__getitem__)
