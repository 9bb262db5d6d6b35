"""How much faster a pre-training step is when two cores or two processes share its batch, and what they exchange.

    python book/records/benchmarks/several_processes.py [--cases reduced small] [--rounds N] [--steps K] [--record FILE]

The contestants make the same steps of `Pretraining`, data and dropout included. With two threads, kernels and products
are shared out over the cores in small pieces; with two shares, the batch is. Elsewhere a process has one thread. In
each round each takes a turn, in a new process (or under `mpirun` in new ones), and who begins changes, so that a noisy
machine slows all alike. The figures are medians over rounds; the spread is the middle half of the rounds. An efficiency
of 1 is half the time of one process with one thread.

Waits: of the first process and step, how often a thread has slept until another one woke it, such as the one that held
the interpreter. Bytes: of each process and step, what it gives to be added up, the gradients in float32, and what a
ring sends of that, 2 (n - 1) / n of it. It needs mpi4py, an `mpirun` beside this Python or on the path, two cores, and
nobody else on them.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import machine
import numpy as np
from pretraining_step import middle_half, rounded
from settings import CASES

from minigrad.backend import threads
from minigrad.bert.pretraining import Pretraining
from minigrad.bert.settings import PretrainingArguments
from minigrad.distributed import BYTES_PER_BUCKET, GradientBuckets, from_environment, ring_bytes
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

assert minigrad  # imported for what it does

WARM_UP = 2  # steps before a turn
NO_END = 2**62  # bytes: one bucket, which is full when the walk back has ended
# name: how many processes, threads and shares in each, bytes a bucket
CONTESTANTS = {
    "one process, one thread": (1, 1, 1, BYTES_PER_BUCKET),
    "one process, two threads": (1, 2, 1, BYTES_PER_BUCKET),
    "one process, two shares": (1, 2, 2, BYTES_PER_BUCKET),
    "two processes": (2, 1, 1, BYTES_PER_BUCKET),
    "two processes, one bucket": (2, 1, 1, NO_END),
}
BASELINE = "one process, one thread"


# --- One turn --------------------------------------------------------------------------------------------


def take_turn(case: str, count: int, shares: int, steps: int, bucket: int) -> dict[str, float] | None:
    """The milliseconds and bytes of a step, in this process and its partners; None in all but the first.

    count: how many threads this process may use. shares: in how many it computes its part of a batch.
    """
    world, setting = from_environment(), CASES[case]
    if count == 1:
        threads.share_cores(os.cpu_count() or 1)
    rng = np.random.default_rng(0)
    pieces = setting.config.vocab_size - len(SPECIAL_TOKENS)
    documents = [
        [rng.integers(len(SPECIAL_TOKENS), setting.config.vocab_size, 12).tolist() for _ in range(40)]
        for _ in range(200)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = Pretraining(
            setting.config,
            documents,
            WordPieceTokenizer([*SPECIAL_TOKENS, *(f"w{number}" for number in range(pieces))]),
            [],
            folder,
            PretrainingArguments(batch_size=setting.batch, max_length=setting.length),
            world=world,
            shares=shares,
        )
        with run:
            run.buckets = GradientBuckets(dict(run.model.named_parameters()), world, bucket)
            run.model.train()
            for _ in range(WARM_UP):
                run.train_step(run.tally)
            world.barrier()
            given, waits, started = world.bytes_given, _waits(), time.perf_counter()
            for _ in range(steps):
                run.train_step(run.tally)
            world.barrier()
            ms, waits = (time.perf_counter() - started) * 1000 / steps, _waits() - waits
    if not world.is_first:
        return None
    return {
        "ms": ms,
        "waits": waits / steps,
        "bytes_given": (world.bytes_given - given) / steps,
        "bytes_of_a_ring": ring_bytes(world.size, run.buckets.bytes),
    }


def _waits() -> int:
    """How often a thread of this process has slept until another one woke it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


# --- All turns -------------------------------------------------------------------------------------------


def start_turn(name: str, case: str, steps: int) -> dict[str, float]:
    """Let a contestant take a turn in processes of its own."""
    processes, count, shares, bucket = CONTESTANTS[name]
    turn = [case, *map(str, (count, shares, steps, bucket))]
    command = [sys.executable, __file__, "--turn", *turn]
    if processes > 1:
        beside = os.path.dirname(sys.executable)
        mpirun = shutil.which("mpirun", path=beside) or shutil.which("mpirun")
        if mpirun is None:
            sys.exit("several_processes.py: there is no mpirun here: pip install mpich")
        command = [mpirun, "-n", str(processes), *command]
    environment, _ = machine.clean_environment()
    environment["OPENBLAS_NUM_THREADS"] = str(count)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"several_processes.py: {name} on {case} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(case: str, rounds: int, steps: int) -> dict[str, Any]:
    """The record of one case."""
    others = machine.Others()
    names = list(CONTESTANTS)
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            turns[name].append(start_turn(name, case, steps))
    times = {name: [turn["ms"] for turn in of_name] for name, of_name in turns.items()}
    median = {name: statistics.median(values) for name, values in times.items()}
    cores_used = {name: processes * count for name, (processes, count, *_) in CONTESTANTS.items()}
    return {
        "setting": CASES[case].describe(),
        "rounds": rounds,
        "steps": steps,
        "others_share_of_cores": others.share(),
        "ms": median,
        "middle_half_ms": {name: middle_half(values) for name, values in times.items()},
        "all_ms": times,
        "efficiency": {name: median[BASELINE] / median[name] / cores_used[name] for name in names},
        "waits": {
            name: statistics.median(turn["waits"] for turn in of_name) for name, of_name in turns.items()
        },
        "bytes_given": {name: of_name[0]["bytes_given"] for name, of_name in turns.items()},
        "bytes_of_a_ring": {name: of_name[0]["bytes_of_a_ring"] for name, of_name in turns.items()},
    }


def print_case(case: str, figures: dict[str, Any]) -> None:
    """One table."""
    print(f"\n{case}: {figures['setting']}; {figures['rounds']} rounds of {figures['steps']} steps")
    if (others := figures["others_share_of_cores"] or 0.0) > 0.05:
        print(f"  other processes used {others:.0%} of the cores: measure again on an idle machine")
    print(f"{'':28}{'ms':>8}{'middle half':>18}{'efficiency':>12}{'waits':>8}{'given':>10}{'of a ring':>11}")
    for name, ms in figures["ms"].items():
        low, high = figures["middle_half_ms"][name]
        given, ring = (figures[what][name] / 1e6 for what in ("bytes_given", "bytes_of_a_ring"))
        print(
            f"{name:28}{ms:8.1f}{f'{low:.1f} … {high:.1f}':>18}{figures['efficiency'][name]:12.2f}"
            f"{figures['waits'][name]:8.0f}"
            f"{given:7.2f} MB{ring:8.2f} MB"
        )


def main() -> None:
    """Measure, print the tables, write the record."""
    if sys.argv[1:2] == ["--turn"]:
        case, *numbers = sys.argv[2:]
        if (found := take_turn(case, *map(int, numbers))) is not None:
            print(json.dumps(found))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", choices=("reduced", "small"), default=["reduced", "small"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10, help="in a turn")
    parser.add_argument("--record", type=Path, metavar="FILE")
    options = parser.parse_args()
    record: dict[str, Any] = {
        "made_by": "book/records/benchmarks/several_processes.py",
        "date": date.today().isoformat(),
        "processor": machine.processor(),
        "cores": machine.cores(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cases": {},
    }
    for case in options.cases:
        record["cases"][case] = measure(case, options.rounds, options.steps)
        print_case(case, record["cases"][case])
    if options.record:
        options.record.write_text(json.dumps(rounded(record), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
