"""What `step_cost` and `fast` say of one machine: its roofs, where a step's time goes, and every idea before and after.

    python book/records/benchmarks/before_after.py [--minutes 60] [--record book/records/machine.json]

Everything that is compared takes turns, so that a noisy machine slows all alike, and every figure keeps its lowest and
highest value. A step is measured in processes of their own, in rounds: each round has every version of the engine
once, and the finished one at its start, middle and end. The record keeps the quietest seven rounds in a row, where the
finished engine spreads least. It goes on until that is below 5 %, or the minutes are over. The rest takes two minutes.
Run it on a machine that does nothing else; PyTorch takes part where it is installed.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import importlib.util
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from contestants import pytorch_step
from machine import Others, numpy_kernels, peak, processor
from roofs import Contestants, caches, draws, memory_rates, operator_rates, product_rates, regimes, spreads

from bert_course.chapters import fast
from bert_course.chapters.fast import (
    AS_WHOLE_ARRAYS,
    IDEAS,
    KEPT,
    LAST_LAYER,
    NAIVE_WITH_ERF,
    PAIRS,
    SHARES,
    THREADS,
    WORDS,
)
from minigrad import Tensor, backend, ops, optim, profiler
from minigrad.backend import threads
from minigrad.bert.config import PRESETS
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.pretraining import PairShare
from minigrad.bert.training import parameter_groups
from minigrad.distributed import World
from minigrad.training.shares import Replicas, shares_of

ROWS, LENGTH = 32, 64  # of a batch: B sequences of L tokens
CONFIG = PRESETS["reduced"].replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
ROUNDS, QUIET = 7, 0.05  # of the steps; the spread of the baseline that is small enough
cpu = backend.get("numpy")


# --- A step, in processes of their own -------------------------------------------------------------------


def batch_of(padding: float = 0.0) -> dict[str, np.ndarray]:
    """Random ids, 15 % of the positions chosen. padding: the share of the places that hold no token."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, CONFIG.vocab_size, (ROWS, LENGTH))
    lengths = LENGTH - np.rint(np.linspace(0, 2 * padding, ROWS) * LENGTH)
    mask = np.arange(LENGTH) < lengths[:, None]
    return {
        "input_ids": ids,
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": np.zeros_like(ids),
        "labels": np.where((rng.random(ids.shape) < 0.15) & mask, ids, -100),
        "next_sentence_label": rng.integers(0, 2, ROWS),
    }


def pretraining_step(
    padding: float = 0.0, packed: bool = False, without: tuple[str, ...] = ()
) -> Callable[[], None]:
    """Forward, backward, clipping and AdamW of the reduced model.

    packed: whether padding is left out. without: the ideas that the model's own work goes without.
    """
    minigrad.manual_seed(0)
    model = BertForPreTraining(CONFIG)
    replicas = Replicas(model, 1 if SHARES in without else shares_of(ROWS, LENGTH, World()))
    if {WORDS, LAST_LAYER} & set(without):
        for one in replicas.models:
            fast.work_everywhere(one, vocabulary=WORDS in without)
    optimizer = optim.AdamW(parameter_groups(model, 0.01), lr=1e-4)
    batch = batch_of(padding)

    def forward(model: Any, share: PairShare) -> tuple[None, Tensor]:
        output = fast.forward_without_padding(model, **share.batch) if packed else model(**share.batch)
        return None, share.loss(output)

    def step() -> None:
        optimizer.zero_grad()
        replicas.compute(batch, PairShare, forward, Tensor.backward)
        optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()

    return step


FINISHED, NAIVE, PYTORCH = "finished", "naive", "PyTorch"
ONE_THREAD, HASWELL = "one thread", "Haswell kernels"


def versions() -> dict[str, tuple[str, ...]]:
    """Each version of the engine that is measured, and the ideas that it goes without.

    "naive" has none, `NAIVE_WITH_ERF` only an erf of whole arrays, which SciPy's users have from the start. "+ idea"
    has all up to this one, "finished" all, and "- idea" all but this one.
    """
    found: dict[str, tuple[str, ...]] = {FINISHED: (), NAIVE: IDEAS}
    found[NAIVE_WITH_ERF] = tuple(idea for idea in IDEAS if idea != AS_WHOLE_ARRAYS)
    for i, idea in enumerate(IDEAS[:-1], 1):
        found[f"+ {idea}"] = IDEAS[i:]
    for idea in IDEAS:
        # Scores at all positions need the last layer at all positions.
        found[f"- {idea}"] = (WORDS, LAST_LAYER) if idea == WORDS else (idea,)
    return found


def step_child(without: tuple[str, ...]) -> dict[str, float]:
    """In a process of its own: milliseconds and page faults of a step, and of what else kept memory changes."""
    if KEPT not in without:
        cpu.keep_freed_memory()
    with fast.engine_without(without):
        step = pretraining_step(without=without)
        for _ in range(2):
            step()
        woken = _threads_woken(step)
        faults = _page_faults()
        times = _times(step, 8)
        faults = (_page_faults() - faults) / 8
    found = {"ms": statistics.median(times), "page faults": faults, "threads woken": woken}
    if not set(without) - {KEPT}:
        # as a step does: several arrays of 8 MB that live together, and are then freed together
        x, w, y = draws(2048, 256), draws(256, 1024), draws(2048, 1024)
        found["a product into a new array"] = (
            statistics.median(_times(lambda: [x @ w for _ in range(8)], 9)) / 8
        )
        found["a sum into a new array"] = statistics.median(_times(lambda: [y + y for _ in range(8)], 9)) / 8
    return found


def torch_child() -> dict[str, float]:
    """The same step in PyTorch, as it stands (its last layer goes on with all tokens)."""
    import torch

    step = pytorch_step(CONFIG, batch_of(), "cpu").step  # type: ignore[arg-type]
    _times(step, 3)
    return {"ms": statistics.median(_times(step, 8)), "threads": torch.get_num_threads()}


def _times(run: Callable[[], Any], count: int) -> list[float]:
    """Milliseconds of each of `count` calls."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    return times


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


def _page_faults() -> float:
    """Of this process so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


Round = dict[str, list[dict[str, float]]]  # what each version's processes gave


def one_round(pytorch: bool) -> Round:
    """Every version once, the finished one at the start, in the middle and at the end."""
    found: Round = {FINISHED: [child("step")]}
    others = list(versions().items())[1:]
    for i, (name, without) in enumerate(others):
        if i == len(others) // 2:
            found[FINISHED].append(child("step"))
        found[name] = [child("step", *without)]
    found[ONE_THREAD] = [child("step", one_thread=True)]
    found[HASWELL] = [child("step", OPENBLAS_CORETYPE="Haswell")]
    if pytorch:
        found[PYTORCH] = [child("torch")]
    found[FINISHED].append(child("step"))
    return found


def spread_of(rounds: list[Round]) -> float:
    """How far the finished engine's processes lie apart, as a share of their median."""
    ms = [one["ms"] for a_round in rounds for one in a_round[FINISHED]]
    return (max(ms) - min(ms)) / statistics.median(ms)


def steps(minutes: float, count: int, pytorch: bool) -> tuple[list[Round], int]:
    """The quietest `count` rounds in a row, and how many there were."""
    end, rounds = time.monotonic() + 60 * minutes, [one_round(pytorch) for _ in range(count)]

    def quietest() -> list[Round]:
        return min((rounds[i : i + count] for i in range(len(rounds) - count + 1)), key=spread_of)

    while (spread := spread_of(quietest())) > QUIET:
        print(
            f"{len(rounds)} rounds; in the quietest {count} the finished step spreads by {spread:.0%}",
            flush=True,
        )
        if time.monotonic() > end:
            break
        rounds.append(one_round(pytorch))
    return quietest(), len(rounds)


def summary(rounds: list[Round]) -> dict[str, dict[str, Any]]:
    """By version: the median, lowest and highest milliseconds, how many processes, and the medians of the rest."""
    found = {}
    for name in rounds[0]:
        results = [one for a_round in rounds for one in a_round[name]]
        rest = {key: statistics.median(one[key] for one in results) for key in results[0] if key != "ms"}
        found[name] = {**_spread([one["ms"] for one in results]), "processes": len(results), **rest}
    return found


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


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


def padding(rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of a step in one share with padding computed and with it left out, by the share of padding."""
    shares = (0.0, 0.05, 0.1, 0.25, 0.5)
    contestants = {
        f"{share} {packed}": pretraining_step(share, packed, (SHARES,))
        for share in shares
        for packed in (False, True)
    }
    times = spreads(contestants, rounds)
    return [
        {"share": share, "computed": times[f"{share} False"], "left out": times[f"{share} True"]}
        for share in shares
    ]


def time_by_operation(without: tuple[str, ...], count: int = 8) -> list[dict[str, Any]]:
    """In a process of its own: the rows of `minigrad.profiler`, in milliseconds a step, the longest first."""
    if KEPT not in without:
        cpu.keep_freed_memory()
    with fast.engine_without(without):
        step = pretraining_step(without=without)
        for _ in range(2):
            step()
        with profiler.profile() as report:
            for _ in range(count):
                step()
    return [{"op": row.op, "calls": row.calls // count, "ms": row.ms / count} for row in report.rows]


def operations(processes: int, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """`time_by_operation` of several processes: the median, lowest and highest milliseconds of each operation."""
    found = [child("operations", *without) for _ in range(processes)]
    rows = [{row["op"]: row for row in one} for one in found]
    return [
        {"op": op, "calls": first["calls"], **_spread([one[op]["ms"] for one in rows if op in one])}
        for op, first in rows[0].items()
    ]


# --- Before and after ------------------------------------------------------------------------------------


def pairs(rounds: int) -> dict[str, dict[str, Any]]:
    """Each pair of `bert_course.chapters.fast`."""
    found = {}
    for name, (before, after, make) in PAIRS.items():
        first, second = make(), make()  # AdamW changes its inputs
        contestants: Contestants = {
            "before": lambda f=before, x=first: f(*x),
            "after": lambda f=after, x=second: f(*x),
        }
        found[name] = spreads(contestants, rounds)
    return found


def composed_and_fused(rounds: int) -> dict[str, dict[str, Any]]:
    """Forward and backward of the operations that have a fused twin, at the reduced model's sizes: composed, fused
    on one core, and fused on all."""
    n, d, classes = ROWS * LENGTH, CONFIG.hidden_size, CONFIG.vocab_size
    labels = np.random.default_rng(0).integers(0, classes, 300)
    cases: dict[str, tuple[np.ndarray, ...]] = {
        "softmax": (draws(64, LENGTH, LENGTH),),
        "layer_norm": (draws(n, d), np.ones(d, np.float32), np.zeros(d, np.float32)),
        "gelu": (draws(n, CONFIG.intermediate_size),),
        "cross_entropy": (draws(300, classes),),
    }

    def run(op: Callable[..., Tensor], name: str, cores: int | None = None) -> None:
        tensors = [Tensor(array, requires_grad=True) for array in cases[name]]
        all_cores = threads.THREADS
        threads.THREADS = cores or all_cores
        try:
            if name == "cross_entropy":
                op(*tensors, labels).backward()
            else:
                op(*tensors).backward(cases[name][0])
        finally:
            threads.THREADS = all_cores

    return {
        name: spreads(
            {
                "composed": lambda name=name: run(getattr(ops.composed, name), name),
                "fused, one core": lambda name=name: run(getattr(ops.fused, name), name, cores=1),
                "fused": lambda name=name: run(getattr(ops.fused, name), name),
            },
            rounds,
        )
        for name in cases
    }


def block_sizes(rounds: int) -> dict[str, list[dict[str, Any]]]:
    """GELU over 2048 x 512 numbers in blocks, by the number of threads."""
    x = draws(2048 * 512)
    sizes, counts = [2**k for k in range(10, 21)], sorted({1, THREADS})
    contestants: Contestants = {
        f"{count} {size}": lambda size=size, count=count: fast.gelu_in_blocks(x, size, count)
        for count in counts
        for size in sizes
    }
    times = spreads(contestants, rounds)
    return {str(count): [{"block": size, **times[f"{count} {size}"]} for size in sizes] for count in counts}


# --- All of it -------------------------------------------------------------------------------------------


def measure(minutes: float, count: int, rounds: int, pytorch: bool) -> dict[str, Any]:
    """The whole record. minutes: how long to try for quiet steps. count, rounds: of steps, and of the rest."""
    others = Others()
    record: dict[str, Any] = {
        "made_by": "book/records/benchmarks/before_after.py",
        "command": "python book/records/benchmarks/before_after.py "
        f"--minutes {minutes:g} --record book/records/machine.json",
        "date": date.today().isoformat(),
        "processor": processor(),
        "peak": peak(),
        "caches": caches(),
        "threads": THREADS,
        "kernel": numpy_kernels(),
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }
    start = time.perf_counter()
    window, tried = steps(minutes, count, pytorch)
    record["steps"] = summary(window)
    record["rounds"] = {"kept": count, "measured": tried}
    record["baseline_spread"] = spread_of(window)
    print(f"{'steps':20} measured in {time.perf_counter() - start:.0f} s", flush=True)
    parts: dict[str, Callable[[], Any]] = {
        # A stopwatch sees one thread, so this step is in one share.
        "operations": lambda: operations(5, (SHARES,)),
        "operations_naive": lambda: operations(3, IDEAS),
        "regimes": lambda: regimes(rounds),
        "products": lambda: product_rates(rounds),
        "memory": lambda: memory_rates(rounds),
        "operators": lambda: operator_rates(rounds),
        "padding": lambda: padding(2 * rounds),
        "pairs": lambda: pairs(2 * rounds),
        "composed_and_fused": lambda: composed_and_fused(2 * rounds),
        "block_sizes": lambda: block_sizes(rounds),
    }
    cpu.keep_freed_memory()  # for all but the steps, whose processes decide themselves
    for name, part in parts.items():
        start = time.perf_counter()
        record[name] = part()
        print(f"{name:20} measured in {time.perf_counter() - start:.0f} s", flush=True)
    record["others_share_of_cores"] = others.share()
    return record


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, default=60, help="try for so long to find quiet rounds (%(default)s)"
    )
    parser.add_argument(
        "--steps", type=int, default=ROUNDS, help="rounds of steps in the record (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=15, help="rounds of everything else (%(default)s)")
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, *arguments = options.child
        done: Any
        if kind == "step":
            done = step_child(tuple(arguments))
        elif kind == "torch":
            done = torch_child()
        else:
            done = time_by_operation(tuple(arguments))
        print(json.dumps(done))
        return
    record = measure(
        options.minutes, options.steps, options.rounds, importlib.util.find_spec("torch") is not None
    )
    if record["baseline_spread"] > QUIET:
        spread = record["baseline_spread"]
        print(
            f"not quiet: the finished step spreads by {spread:.0%}; only ranges that do not overlap say something"
        )
    text = json.dumps(record, indent=1) + "\n"
    if options.record:
        options.record.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
