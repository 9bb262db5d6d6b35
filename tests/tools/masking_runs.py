"""Four ways to hide words, on a language whose probabilities are known: the record that chapter 13 shows.

    nice -n 19 env OPENBLAS_NUM_THREADS=1 python tests/tools/masking_runs.py

writes book/runs/masking_schemes.json, run by run, and goes on where it was stopped: 20 runs of about half a minute on
one core. All schemes have the same rate and the same texts; `minigrad/course/chapters/mlm.py` says what they are, and
what is stored of a run (`score_on_the_ring`).
"""

from __future__ import annotations

import itertools

import records

from minigrad.course.chapters import mlm

STEPS, SEEDS = 2000, range(5)


def main() -> None:
    """Make the runs that the record does not have yet."""
    path = records.parser(__doc__, "masking_schemes.json").parse_args().record
    record = records.read(path, __file__, steps=STEPS)
    done = {(run["scheme"], run["seed"]) for run in record["runs"]}
    for seed, (scheme, shares) in itertools.product(SEEDS, mlm.SCHEMES.items()):
        if (scheme, seed) not in done:
            found = mlm.score_on_the_ring(mlm.train_on_the_ring(shares, seed, STEPS))
            rounded = {name: round(value, 4) for name, value in found.items()}
            record["runs"].append({"scheme": scheme, "seed": seed, **rounded})
            records.write(path, record)
            print(scheme, seed, rounded, flush=True)


if __name__ == "__main__":
    main()
