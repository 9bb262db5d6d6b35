"""Four ways to hide words, on a language whose probabilities are known: the record that chapter 13 shows.

    nice -n 19 env OPENBLAS_NUM_THREADS=1 python tests/tools/masking_runs.py

writes book/runs/masking_schemes.json, run by run, and goes on where it was stopped: 20 runs of about half a minute on
one core. All schemes have the same rate and the same texts; `minigrad/course/chapters/mlm.py` says what they are, and
what is stored of a run (`score_on_the_ring`).
"""

from __future__ import annotations

import argparse
import itertools
import json
from datetime import date
from pathlib import Path
from typing import Any

from minigrad.course.chapters import mlm

STEPS, SEEDS = 2000, range(5)


def compact(record: dict[str, Any]) -> str:
    """The record with each of its fields, and each run, on a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record.items() if name != "runs"]
    runs = ",\n".join(json.dumps(run) for run in record["runs"])
    return "{\n" + ",\n".join(lines) + f',\n"runs": [\n{runs}\n]\n}}\n'


def main() -> None:
    """Make the runs that the record does not have yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    stored = Path(__file__).resolve().parents[2] / "book" / "runs" / "masking_schemes.json"
    parser.add_argument("--record", type=Path, default=stored, help="where the runs are stored")
    options = parser.parse_args()
    record: dict[str, Any] = {
        "made_by": "tests/tools/masking_runs.py",
        "date": date.today().isoformat(),
        "steps": STEPS,
        "runs": [],
    }
    if options.record.exists():
        record = json.loads(options.record.read_text())
    done = {(run["scheme"], run["seed"]) for run in record["runs"]}
    for seed, (scheme, shares) in itertools.product(SEEDS, mlm.SCHEMES.items()):
        if (scheme, seed) not in done:
            found = mlm.score_on_the_ring(mlm.train_on_the_ring(shares, seed, STEPS))
            rounded = {name: round(value, 4) for name, value in found.items()}
            record["runs"].append({"scheme": scheme, "seed": seed, **rounded})
            options.record.write_text(compact(record))
            print(scheme, seed, rounded, flush=True)


if __name__ == "__main__":
    main()
