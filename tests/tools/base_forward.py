"""How long BERT-Base reads 512 tokens, and in how much memory: the record that chapter 12 shows.

    python tests/tools/base_forward.py [--minutes 60]

writes book/runs/base_forward.json: the milliseconds of one forward of BertModel without gradients, for one sequence of
512 tokens in float32 on all cores (median, lowest and highest of the rounds of one window), the memory of the process
before the model, with it, and at most, and the share of the cores that other processes used in that window. It tries
again every half minute for as long as it is told, and keeps the window in which the others used least; it ends as soon
as that is below a fiftieth.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import json
import os
import resource
import statistics
import time
from datetime import date
from pathlib import Path

import numpy as np
from machine import cores, processor

from minigrad import no_grad, random
from minigrad.bert.config import PRESETS
from minigrad.bert.model import BertModel

assert minigrad  # imported for what it does

LENGTH, ROUNDS = 512, 10
QUIET, PAUSE = 0.02, 30  # the share of the cores that ends the search; seconds between windows


def used() -> float:
    """The processor seconds that all processes have used."""
    ticks = list(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]))
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def resident() -> int:
    """The bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def window(model: BertModel, ids: np.ndarray) -> dict[str, object]:
    """Some forwards one after the other, and what others did meanwhile."""
    times = []
    with no_grad():
        model(ids)
        start, own, everybody = time.perf_counter(), time.process_time(), used()
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            model(ids)
            times.append(1000 * (time.perf_counter() - begin))
    elapsed, own, everybody = time.perf_counter() - start, time.process_time() - own, used() - everybody
    return {
        "milliseconds": {"median": statistics.median(times), "lowest": min(times), "highest": max(times)},
        "rounds": ROUNDS,
        "others_share_of_cores": max(0.0, everybody - own) / (elapsed * cores()),
    }


def measure(minutes: float) -> dict[str, object]:
    """The quietest window of those minutes, and the memory."""
    before, end = resident(), time.monotonic() + 60 * minutes
    random.manual_seed(0)
    model = BertModel(PRESETS["base"]).eval()
    ids = np.random.default_rng(0).integers(1000, 30522, (1, LENGTH))
    with_model = resident()
    best = window(model, ids)
    at_most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    while best["others_share_of_cores"] > QUIET and time.monotonic() < end:
        time.sleep(PAUSE)
        best = min(best, window(model, ids), key=lambda one: one["others_share_of_cores"])
    memory = {"before": before, "with_model": with_model, "at_most": at_most}
    return {**best, "length": LENGTH, "bytes": memory}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", type=Path, default=Path("book/runs/base_forward.json"))
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    facts = {
        "made_by": "tests/tools/base_forward.py",
        "date": date.today().isoformat(),
        "processor": processor(),
        "cores": cores(),
        "numpy": np.__version__,
    }
    record = {**facts, **measure(options.minutes)}
    options.record.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
