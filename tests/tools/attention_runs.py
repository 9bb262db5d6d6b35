"""Short training with each way to look at the source: the record that chapter 19 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 10 python tests/tools/attention_runs.py

writes book/runs/attention_scores.json, run by run, and goes on where it was stopped (about twelve minutes in all).
Each variant is trained at four rates with seed 0, then at its best rate with two more seeds. A run of the record that
lacks a score is made again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import records

from minigrad.course.chapters import attention_decoder as chapter
from minigrad.stories.translation import alignment_score, translation_tokenizer

VARIANTS = ("none", "even", "dot", "general", "additive", "general, both directions")
RATES, SEEDS, STEPS = (5e-3, 1e-2, 2e-2, 4e-2), (0, 1, 2), 600
LOOKS = (
    "aligned",
    "nouns_at_end",
)  # scores of weights, which "none" does not have and "even" does not choose
HELD_OUT, HELD_OUT_SEED = 400, 999_983


def make(variant: str, rate: float, seed: int, steps: int) -> dict[str, Any]:
    """Train once and score on texts that are not trained on."""
    tokenizer = translation_tokenizer(chapter.LONG)
    texts = chapter.read(HELD_OUT, HELD_OUT_SEED, short=True)
    model = chapter.train(variant, seed, rate, steps)
    hits = chapter.forced(model, texts, tokenizer)
    run = {
        "variant": variant,
        "rate": rate,
        "seed": seed,
        "steps": steps,
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


def complete(run: dict[str, Any]) -> bool:
    """Whether a run of the record has all scores."""
    return not chooses(run["variant"]) or all(name in run for name in LOOKS)


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


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = records.parser(__doc__, "attention_scores.json")
    options = parser.parse_args()
    record = records.read(options.record, __file__, steps=STEPS, texts=HELD_OUT)
    runs = record["runs"] = [run for run in record["runs"] if complete(run)]

    def add(variant: str, rate: float, seed: int) -> None:
        if (variant, rate, seed) not in {(run["variant"], run["rate"], run["seed"]) for run in runs}:
            runs.append(make(variant, rate, seed, STEPS))
            records.write(options.record, record)
            print(runs[-1], flush=True)

    for rate in RATES:
        for variant in VARIANTS:
            add(variant, rate, 0)
    for seed in SEEDS[1:]:
        for variant in VARIANTS:
            add(variant, best_rate(runs, variant), seed)


if __name__ == "__main__":
    main()
