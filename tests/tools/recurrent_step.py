"""How long a recurrent layer takes, forward and backward, beside PyTorch's; each on one thread.

    python tests/tools/recurrent_step.py --record tests/tools/recurrent_step.json

Four ways take turns: `nn.RNN`, `nn.GRU` or `nn.LSTM` as it is, where all time steps are one node of the graph; with a
node for each step; composed from basic operations; and PyTorch's module. A call has a batch of 32 rows of 20 steps, of
as many features as the state has, and gives the gradients of the input and of every parameter. Milliseconds are told
twice: of the clock, and of the processor, which other processes disturb less. Where they used more than 5 % of the
cores, the record says so.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from minigrad import Tensor, backend, nn, ops
from minigrad.backend import threads
from minigrad.files import write_atomic
from minigrad.ops import composed, fused

ROWS, STEPS, SIZES = 32, 20, (128, 256)
CELLS = {"RNN": (nn.RNN, "rnn"), "GRU": (nn.GRU, "gru"), "LSTM": (nn.LSTM, "lstm")}


def node_for_each_step(op: str) -> Callable[..., Any]:
    """What `op` gives, from as many nodes of `op`_step as there are steps."""
    step = getattr(fused, f"{op}_step")

    def run(x_part: Tensor, *rest: Any) -> Any:
        *state, weight_hh, bias_hh, _ = rest
        after = []
        for now in x_part:
            state = step(now, *state, weight_hh, bias_hh)
            state = state if isinstance(state, tuple) else (state,)
            after.append(state)
        states = tuple(ops.stack(parts) for parts in zip(*after, strict=True))
        return states if len(states) > 1 else states[0]

    return run


def minigrads(kind: type[nn.Module], run: Callable[..., Any], x: np.ndarray) -> Callable[[], Any]:
    """A call of a module of this kind whose steps are done by `run`."""
    size = x.shape[-1]
    module = type(kind.__name__, (kind,), {"run": staticmethod(run)})(size, size)  # type: ignore[call-arg]
    dy = np.ones(x.shape, x.dtype)

    def call() -> None:
        module.zero_grad()
        y, _ = module(Tensor(x, requires_grad=True))
        y.backward(dy)

    return call


def pytorchs(name: str, x: np.ndarray) -> Callable[[], Any]:
    """A call of PyTorch's module of this name."""
    module = getattr(torch.nn, name)(x.shape[-1], x.shape[-1], batch_first=True)
    dy = torch.ones(*x.shape)

    def call() -> None:
        module.zero_grad()
        y, _ = module(torch.tensor(x, requires_grad=True))
        y.backward(dy)

    return call


def measure(contestants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, float]]:
    """Of each contestant, medians and quarter points in milliseconds of the clock and of the processor."""
    clock: dict[str, list[float]] = {name: [] for name in contestants}
    processor: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 2):
        for name, call in contestants.items():
            started, started_processor = time.perf_counter(), time.process_time()
            call()
            if number >= 2:  # the first two warm up
                clock[name].append((time.perf_counter() - started) * 1000)
                processor[name].append((time.process_time() - started_processor) * 1000)
    return {
        name: {
            "median_ms": statistics.median(clock[name]),
            "processor_ms": statistics.median(processor[name]),
            "processor_lowest_ms": sorted(processor[name])[rounds // 4],
            "processor_highest_ms": sorted(processor[name])[-1 - rounds // 4],
        }
        for name in contestants
    }


def rounded(value: Any) -> Any:
    """All floats in nested dicts to four digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    """Measure, print the table, write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--record", type=Path, help="the JSON file to write")
    options = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    threads.THREADS = 1
    backend.get("numpy").keep_freed_memory()
    others = machine.Others()
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    print(
        f"{'':10}{'one node':>12}{'node a step':>14}{'composed':>12}{'PyTorch':>12}   processor's ms (clock's)"
    )
    for name, (kind, op) in CELLS.items():
        for size in SIZES:
            x = rng.standard_normal((ROWS, STEPS, size), dtype=np.float32)
            contestants = {
                "one node": minigrads(kind, getattr(fused, op), x),
                "node a step": minigrads(kind, node_for_each_step(op), x),
                "composed": minigrads(kind, getattr(composed, op), x),
                "PyTorch": pytorchs(name, x),
            }
            times = measure(contestants, options.rounds)
            ratio = times["one node"]["processor_ms"] / times["PyTorch"]["processor_ms"]
            found[f"{name} {size}"] = {**times, "processor_ratio_to_pytorch": ratio}
            cells = "  ".join(f"{t['processor_ms']:6.2f} ({t['median_ms']:.2f})" for t in times.values())
            print(f"{name} {size:<6}{cells}   {ratio:.2f} of PyTorch's", flush=True)
    if options.record:
        share = others.share()
        record = {
            "made_by": "tests/tools/recurrent_step.py",
            "date": date.today().isoformat(),
            "processor": machine.processor(),
            "threads": 1,
            "others_share_of_cores": share,
            "quiet": share is not None and share <= 0.05,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "rows": ROWS,
            "steps": STEPS,
            "rounds": options.rounds,
            "times": found,
        }
        text = json.dumps(rounded(record), indent=2, ensure_ascii=False) + "\n"
        write_atomic(options.record, text.encode())


if __name__ == "__main__":
    main()
