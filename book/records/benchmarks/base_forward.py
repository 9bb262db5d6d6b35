"""How long BERT-Base takes for one text of 512 tokens on this machine, and how much memory: `encoder` quotes it.

    python book/records/benchmarks/base_forward.py [--rounds 15] [--record book/records/base_forward.json]

Untrained weights do: the work is the same. Run it on a machine that does nothing else; the record says how busy other
processes kept it.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import json
import math
import resource
import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from machine import Others, numpy_kernels, processor

from minigrad import no_grad, random
from minigrad.backend import threads
from minigrad.bert.config import PRESETS
from minigrad.bert.model import BertModel, parameter_shapes

assert minigrad  # imported for what it does

LENGTH = 512


def measure(rounds: int) -> dict[str, Any]:
    """The seconds of each of `rounds` forwards, after two that warm up, and the memory at its highest."""
    config = PRESETS["base"]
    random.manual_seed(0)
    before = _highest()
    model = BertModel(config).eval()
    with_weights = _highest()
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (1, LENGTH))
    others, seconds = Others(), []
    with no_grad():
        for _ in range(rounds + 2):
            start = time.perf_counter()
            model(ids)
            seconds.append(time.perf_counter() - start)
    kept = sorted(seconds[2:])
    body = (n for n in parameter_shapes(config).items() if n[0].startswith("bert."))
    return {
        "command": "python book/records/benchmarks/base_forward.py --record book/records/base_forward.json",
        "date": date.today().isoformat(),
        "processor": processor(),
        "kernels": numpy_kernels(),
        "numpy": np.__version__,
        "threads": threads.THREADS,
        "others": others.share(),
        "length": LENGTH,
        "rounds": rounds,
        "parameters": sum(math.prod(shape) for _, shape in body),
        "seconds": {"median": statistics.median(kept), "lowest": kept[0], "highest": kept[-1]},
        "mb": {"before the model": before, "with its weights": with_weights, "highest": _highest()},
    }


def _highest() -> float:
    """The most memory that this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    """Measure, say it, and write the record if one is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    found = measure(options.rounds)
    text = json.dumps(found, indent=1)
    print(text)
    if options.record:
        options.record.write_text(text + "\n")


if __name__ == "__main__":
    main()
