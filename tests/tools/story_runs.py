"""Pre-training on light stories, as BERT is and with one thing changed: the record that chapter 15 shows.

    nice -n 19 python tests/tools/story_runs.py

writes book/runs/stories.json, run by run, and goes on where it was stopped. The main runs (five seeds of `BERT`) have
LONG steps; then each variant of `minigrad/course/chapters/pretraining.py` has SHORT steps at three learning rates,
and, at the best of them, two more seeds. What is stored of a run is `score_stories` at some steps, on PAIRS
held-out pairs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import records

from minigrad.bert.floors import Scorer
from minigrad.bert.stories import draw_pairs
from minigrad.bert.story_scores import Score, score_stories
from minigrad.course.chapters import pretraining

LONG, SHORT = 10_000, 3_000
LONG_POINTS = (0, 250, 500, 750, *range(1000, LONG + 1, 500))
SHORT_POINTS = (0, 500, 1000, 1500, 2000, 2500, 3000)
MAIN_RATE, RATES, SEEDS, MAIN_SEEDS = 1e-3, (5e-4, 1e-3, 2e-3), (0, 1, 2), range(5)
PAIRS, PAIRS_SEED = 150, 2**20


def cases(runs: list[dict[str, Any]], names: list[str]) -> Iterator[tuple[str, float, int, int]]:
    """The runs to make of these variants, in order: variant, rate, seed, steps.

    runs: those that are there by then, of which the best rates are read.
    """
    if "BERT" in names:
        for seed in MAIN_SEEDS:
            yield "BERT", MAIN_RATE, seed, LONG
    for name in names:
        for rate in RATES:
            yield name, rate, 0, SHORT
    for name in names:
        rate = best_rate(runs, name)
        for seed in SEEDS[1:]:
            yield name, rate, seed, SHORT


def best_rate(runs: list[dict[str, Any]], name: str) -> float:
    """The rate with the lowest last loss, of the runs with seed 0."""
    ends = {
        run["rate"]: run["curve"][-1][1]["all"]["nats"]
        for run in runs
        if (run["variant"], run["seed"], run["steps"]) == (name, 0, SHORT)
    }
    return min(ends, key=ends.__getitem__)


def short(scores: dict[str, Score]) -> dict[str, dict[str, Any]]:
    """What a run stores of its scores: the floors are the same in all."""
    return {
        slot: {
            "nats": round(score.nats, 4),
            "accuracy": round(score.accuracy, 4),
            "forced": None if score.forced is None else round(score.forced, 4),
        }
        for slot, score in scores.items()
    }


def make(name: str, rate: float, seed: int, steps: int, pairs: list[Any], scorer: Scorer) -> dict[str, Any]:
    """Train once."""
    source, curve, seconds = pretraining.stories(), [], 0.0
    started = time.perf_counter()
    points = LONG_POINTS if steps == LONG else SHORT_POINTS
    for step, model in pretraining.train(pretraining.VARIANTS[name], seed, rate, steps, points):
        seconds += time.perf_counter() - started
        scores = score_stories(model, source, pairs, scorer)
        curve.append([step, short(scores)])
        print(
            f"{name:16} {rate:.0e} seed {seed} step {step:6}: {scores['all'].nats:.3f} in {seconds:.0f} s",
            flush=True,
        )
        started = time.perf_counter()
    return {
        "variant": name,
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "seconds": round(seconds),
        "curve": curve,
    }


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = records.parser(__doc__, "stories.json")
    names = list(pretraining.VARIANTS)
    parser.add_argument("--only", choices=names, help="make the runs of this variant alone")
    options = parser.parse_args()
    source = pretraining.stories()
    scorer, pairs = Scorer(source.setting), draw_pairs(source.setting, PAIRS, PAIRS_SEED)
    record = records.read(options.record, __file__, text=source.fingerprint())
    if record["text"] != source.fingerprint():
        parser.error(f"{options.record} is of other stories: name another --record, or begin anew without it")
    done = {(run["variant"], run["rate"], run["seed"], run["steps"]) for run in record["runs"]}
    for case in cases(record["runs"], [options.only] if options.only else names):
        if case not in done:
            record["runs"].append(make(*case, pairs, scorer))
            records.write(options.record, record)


if __name__ == "__main__":
    main()
