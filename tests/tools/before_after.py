"""What chapter 24 says about one machine: its two roofs, and every optimisation before and after.

    python tests/tools/before_after.py [--rounds 15] [--record book/runs/machine.json]

Contestants take turns within a round, so that a noisy machine slows all alike; the figures are medians over rounds.
What changes a whole process (memory that is kept, the BLAS's kernels, the number of threads) is measured in processes
that take turns. A few minutes, on a machine that does nothing else.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from contestants import compute_all_of_the_last_layer
from machine import processor
from roofs import PRODUCTS, Contestants, caches, draws, medians, memory_rates, operator_rates, product_rates

from minigrad import Tensor, backend, ops, optim, profiler
from minigrad.backend import threads
from minigrad.bert.config import PRESETS
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.pretraining import parameter_groups
from minigrad.course.chapters.fast import (
    PAIRS,
    THREADS,
    add_at,
    blas_kernel,
    forward_without_padding,
    in_blocks,
    one_exponential,
)

ROWS, LENGTH = 32, 64  # of a batch: B sequences of T tokens
CONFIG = PRESETS["reduced"].replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
numpy = backend.get("numpy")


# --- A step, in processes of their own -------------------------------------------------------------------


def pretraining_step(
    padding: float = 0.0, packed: bool = False, last_layer_everywhere: bool = False
) -> Callable[[], None]:
    """Forward, backward, clipping and AdamW of the reduced model, 15 % of the positions chosen.

    padding: the share of the places that hold no token; packed: whether these are left out.
    last_layer_everywhere: whether it is computed for all tokens, not only for those that the losses read.
    """
    minigrad.manual_seed(0)
    model = BertForPreTraining(CONFIG)
    if last_layer_everywhere:
        compute_all_of_the_last_layer(model.bert)
    optimizer = optim.AdamW(parameter_groups(model, 0.01), lr=1e-4)
    rng = np.random.default_rng(0)
    ids = rng.integers(5, CONFIG.vocab_size, (ROWS, LENGTH))
    lengths = LENGTH - np.rint(np.linspace(0, 2 * padding, ROWS) * LENGTH)
    mask = np.arange(LENGTH) < lengths[:, None]
    batch = {
        "input_ids": ids,
        "attention_mask": mask.astype(int),
        "token_type_ids": np.zeros_like(ids),
        "labels": np.where((rng.random(ids.shape) < 0.15) & mask, ids, -100),
        "next_sentence_label": rng.integers(0, 2, ROWS),
    }

    def step() -> None:
        optimizer.zero_grad()
        loss = (forward_without_padding(model, **batch) if packed else model(**batch)).loss
        assert loss is not None
        loss.backward()
        optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()

    return step


def _compose() -> None:
    for name in ops.composed.__all__:
        setattr(ops, name, getattr(ops.composed, name))


def _replace(**functions: Any) -> Callable[[], None]:
    """What puts other functions into the NumPy backend."""

    def replace() -> None:
        for name, function in functions.items():
            assert hasattr(numpy, name), name
            setattr(numpy, name, function)

    return replace


def _without_blocks() -> None:
    threads.BLOCK = 2**60


def _adamw_plain(
    parameters: Any,
    gradients: Any,
    firsts: Any,
    seconds: Any,
    *,
    beta1: float,
    beta2: float,
    **settings: float,
) -> None:
    for p, g, m, v in zip(parameters, gradients, firsts, seconds, strict=True):
        m[:] = beta1 * m + (1 - beta1) * g
        v[:] = beta2 * v + (1 - beta2) * g**2
        root = np.sqrt(v) / settings["second_correction"] + settings["eps"]
        p[:] = p - settings["decay"] * p - settings["step_size"] * m / root


# The engine without one of its optimisations: by name, what a process changes before it runs.
UNDO: dict[str, Callable[[], None]] = {
    "operations composed": _compose,
    "no blocks": _without_blocks,
    "products in turn, each on all threads": _replace(matmul=np.matmul),
    "a random float for each mask entry": _replace(
        keep_mask=lambda shape, p, keys: np.random.default_rng(keys).random(shape, np.float32) >= p
    ),
    "rows added one at a time": _replace(scatter_add_rows=add_at),
    "AdamW as in its formulas": _replace(adamw_step=_adamw_plain),
}
LAST_LAYER, MEMORY_GIVEN_BACK = "the last layer everywhere", "memory given back"
ONE_THREAD, AVX2 = "one thread", "AVX2 kernels"
# Each step that is measured, and what it goes without.
STEPS: dict[str, tuple[str, ...]] = {
    "everything": (),
    **{name: (name,) for name in (*UNDO, LAST_LAYER, MEMORY_GIVEN_BACK, ONE_THREAD, AVX2)},
    "composed, memory given back": ("operations composed", MEMORY_GIVEN_BACK),
}


def step_child(without: list[str]) -> dict[str, float]:
    """In a process of its own: milliseconds and page faults of a step, and of what else kept memory changes."""
    if MEMORY_GIVEN_BACK not in without:
        numpy.keep_freed_memory()
    for name in set(without) & set(UNDO):
        UNDO[name]()
    step = pretraining_step(last_layer_everywhere=LAST_LAYER in without)
    for _ in range(3):
        step()
    woken = _threads_woken(step)
    times, faults = [], _page_faults()
    for _ in range(20):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1000)
    faults = (_page_faults() - faults) / len(times)
    # as a step does: several arrays of 8 MB that live together, and are then freed together
    x, w, y = draws(2048, 256), draws(256, 1024), draws(2048, 1024)
    new = medians(
        {
            "a product into a new array": lambda: [x @ w for _ in range(8)],
            "a sum into a new array": lambda: [y + y for _ in range(8)],
        },
        9,
    )
    new = {name: ms / 8 for name, ms in new.items()}
    return {"step": statistics.median(times), "page faults": faults, "threads woken": woken, **new}


def _threads_woken(step: Callable[[], None]) -> int:
    """How often a step gives work to another thread."""
    workers, count = threads._workers, itertools.count()
    if workers is None:
        return 0
    start = workers.start
    workers.start = lambda *work: (next(count), start(*work))[1]  # type: ignore[method-assign]
    step()
    del workers.start
    return next(count)


def wake_up() -> float:
    """Microseconds to wake a thread that waits: half of the time from a call to its answer."""
    there, back = threading.Event(), threading.Event()
    times, rounds = [], 3000

    def answer() -> None:
        for _ in range(rounds):
            there.wait()
            there.clear()
            back.set()

    threading.Thread(target=answer, daemon=True).start()
    for _ in range(rounds):
        start = time.perf_counter()
        there.set()
        back.wait()
        back.clear()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6 / 2


def _page_faults() -> float:
    """Of this process so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def steps(rounds: int) -> dict[str, dict[str, float]]:
    """The medians over rounds of what `step_child` gives, by name in STEPS; and the lowest and highest step."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in STEPS}
    for _ in range(max(3, rounds // 3)):
        for name, without in STEPS.items():
            environment = {"OPENBLAS_CORETYPE": "Haswell"} if AVX2 in without else {}
            found[name].append(child("step", *without, one_thread=ONE_THREAD in without, **environment))
    return {
        name: {key: statistics.median(one[key] for one in results) for key in results[0]}
        | {"lowest": min(one["step"] for one in results), "highest": max(one["step"] for one in results)}
        for name, results in found.items()
    }


def padding(rounds: int) -> list[list[float]]:
    """Milliseconds of a step with padding computed and with it left out: [share of padding, ms, ms]."""
    shares = (0.0, 0.05, 0.1, 0.25, 0.5)
    contestants = {
        f"{share} {packed}": pretraining_step(share, packed) for share in shares for packed in (False, True)
    }
    times = medians(contestants, 2 * rounds)
    return [[share, times[f"{share} False"], times[f"{share} True"]] for share in shares]


def child(*arguments: str, one_thread: bool = False, **environment: str) -> Any:
    """What this file prints in another process, which may have one core only."""
    settings = {**os.environ, **environment, **({"OPENBLAS_NUM_THREADS": "1"} if one_thread else {})}

    def keep_to_one_core() -> None:
        if one_thread and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=settings, preexec_fn=keep_to_one_core
    )
    return json.loads(done.stdout)


def time_by_operation(without: list[str], count: int = 10) -> list[dict[str, Any]]:
    """In a process of its own: the rows of `minigrad.profiler`, in milliseconds a step, the longest first."""
    numpy.keep_freed_memory()
    for name in without:
        UNDO[name]()
    step = pretraining_step()
    for _ in range(3):
        step()
    with profiler.profile() as report:
        for _ in range(count):
            step()
    return [
        {
            "op": row.op,
            "calls": row.calls // count,
            "forward_ms": row.forward_ms / count,
            "backward_ms": row.backward_ms / count,
            "ms": row.ms / count,
            "share": row.share,
        }
        for row in report.rows
    ]


def operations(rounds: int, *without: str) -> list[dict[str, Any]]:
    """`time_by_operation` of the process whose total is the median."""
    found = [child("operations", *without) for _ in range(2 * (rounds // 3) + 1)]
    return sorted(found, key=lambda rows: sum(row["ms"] for row in rows))[len(found) // 2]


# --- Before and after ------------------------------------------------------------------------------------


def pairs(rounds: int) -> dict[str, dict[str, float]]:
    """Each pair of `minigrad.course.chapters.fast`."""
    found = {}
    for name, (before, after, make) in PAIRS.items():
        first, second = make(), make()  # AdamW changes its inputs
        contestants: Contestants = {
            "before": lambda f=before, x=first: f(*x),
            "after": lambda f=after, x=second: f(*x),
        }
        found[name] = medians(contestants, 3 * rounds)
    return found


def composed_and_fused(rounds: int) -> dict[str, dict[str, float]]:
    """Forward and backward of the operations that have a fused twin, at the reduced model's sizes."""
    n, d, classes = ROWS * LENGTH, CONFIG.hidden_size, CONFIG.vocab_size
    labels = np.random.default_rng(0).integers(0, classes, 300)
    cases: dict[str, tuple[np.ndarray, ...]] = {
        "softmax": (draws(64, LENGTH, LENGTH),),
        "layer_norm": (draws(n, d), np.ones(d, np.float32), np.zeros(d, np.float32)),
        "gelu": (draws(n, CONFIG.intermediate_size),),
        "cross_entropy": (draws(300, classes),),
    }

    def run(op: Callable[..., Tensor], name: str) -> None:
        tensors = [Tensor(array, requires_grad=True) for array in cases[name]]
        if name == "cross_entropy":
            op(*tensors, labels).backward()
        else:
            op(*tensors).backward(cases[name][0])

    return {
        name: medians(
            {
                "composed": lambda name=name: run(getattr(ops.composed, name), name),
                "fused": lambda name=name: run(getattr(ops.fused, name), name),
            },
            2 * rounds,
        )
        for name in cases
    }


def block_sizes(rounds: int) -> dict[str, list[list[float]]]:
    """GELU over 2048 x 512 numbers in blocks, by the number of threads: [numbers in a block, ms]."""
    x = draws(2048 * 512)
    y, slope = np.empty_like(x), np.empty_like(x)
    sizes, counts = [2**k for k in range(10, 21)], sorted({1, THREADS})
    contestants: Contestants = {}
    for count in counts:
        for size in sizes:

            def run(size: int = size, count: int = count) -> None:
                in_blocks(lambda b: one_exponential(x[b], y[b], slope[b]), x.size, size, count)

            contestants[f"{count} {size}"] = run
    times = medians(contestants, rounds)
    return {str(count): [[size, times[f"{count} {size}"]] for size in sizes] for count in counts}


# --- The BLAS's kernels ----------------------------------------------------------------------------------


def kernels(rounds: int) -> dict[str, Any]:
    """The BLAS's own choice, and AVX2's kernels on the same processor; each in processes of its own."""
    found: dict[str, list[dict[str, Any]]] = {"chosen": [], "Haswell": []}
    for _ in range(3):
        found["chosen"].append(child("kernels", str(rounds)))
        found["Haswell"].append(child("kernels", str(rounds), OPENBLAS_CORETYPE="Haswell"))
    return {
        name: {
            "kernel": results[0]["kernel"],
            "gflops": {
                shape: statistics.median(one["gflops"][shape] for one in results) for shape in PRODUCTS
            },
        }
        for name, results in found.items()
    }


# --- All of it -------------------------------------------------------------------------------------------


def measure(rounds: int) -> dict[str, Any]:
    """The whole record."""
    parts: dict[str, Callable[[], Any]] = {
        "wake_up": wake_up,
        "steps": lambda: steps(rounds),
        "operations": lambda: operations(rounds),
        "operations_composed": lambda: operations(rounds, "operations composed"),
        "products": lambda: product_rates(rounds),
        "memory": lambda: memory_rates(rounds),
        "operators": lambda: operator_rates(rounds),
        "padding": lambda: padding(rounds),
        "pairs": lambda: pairs(rounds),
        "composed_and_fused": lambda: composed_and_fused(rounds),
        "block_sizes": lambda: block_sizes(rounds),
        "kernels": lambda: kernels(rounds),
    }
    record: dict[str, Any] = {
        "made_by": "tests/tools/before_after.py",
        "date": date.today().isoformat(),
        "processor": processor(),
        "caches": caches(),
        "threads": THREADS,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }
    numpy.keep_freed_memory()  # for all but the steps, whose processes decide themselves
    for name, part in parts.items():
        start = time.perf_counter()
        record[name] = part()
        print(f"{name:20} measured in {time.perf_counter() - start:.0f} s", flush=True)
    return record


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, *arguments = options.child
        done: Any
        if kind == "step":
            done = step_child(arguments)
        elif kind == "kernels":
            done = {"kernel": blas_kernel(), "gflops": product_rates(int(arguments[0]))}
        else:
            done = time_by_operation(arguments)
        print(json.dumps(done))
        return
    text = json.dumps(measure(options.rounds), indent=1) + "\n"
    if options.record:
        options.record.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
