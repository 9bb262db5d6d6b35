"""Short training of a Transformer with one part of the paper's recipe left out: the record that chapter 20 shows.

    OPENBLAS_NUM_THREADS=1 nice -n 10 python tests/tools/transformer_runs.py

writes book/runs/transformer_variants.json, run by run, and goes on where it was stopped (about fifteen minutes). Each
variant is trained with three seeds at the rates of the paper's schedule.
"""

from __future__ import annotations

from typing import Any

import records

from minigrad.course.chapters import transformer as chapter

SEEDS, STEPS, WARMUP = (0, 1, 2), 600, 150
HELD_OUT = 400


def make(name: str, seed: int, steps: int) -> dict[str, Any]:
    """Train once and score on stories that are not trained on, half way and at the end."""
    pairs = chapter.pairs_of(HELD_OUT)
    run: dict[str, Any] = {"variant": name, "seed": seed, "steps": steps}

    def tell(step: int, model: Any, loss: float) -> None:
        nats, words = chapter.held_out(model, pairs)
        exact = sum(chapter.right(model, pairs)) / len(pairs)
        found = {"loss": round(nats, 4), "words": round(words, 4), "exact": round(exact, 4)}
        run.update(found if step == steps else {"half_way": found})

    variant = chapter.VARIANTS[name]
    chapter.train(chapter.REDUCED, steps, min(WARMUP, steps), seed, variant, max(1, steps // 2), tell)
    return run


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = records.parser(__doc__, "transformer_variants.json")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a run, fewer to try the tool")
    options = parser.parse_args()
    fields = {"steps": options.steps, "warmup_steps": WARMUP, "texts": HELD_OUT}
    record = records.read(options.record, __file__, **fields)
    runs = record["runs"]
    for seed in SEEDS:
        for name in chapter.VARIANTS:
            if (name, seed) not in {(run["variant"], run["seed"]) for run in runs}:
                runs.append(make(name, seed, options.steps))
                records.write(options.record, record)
                print(runs[-1], flush=True)


if __name__ == "__main__":
    main()
