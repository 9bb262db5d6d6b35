"""How long one pre-training step takes beside PyTorch: forward, backward, clipping, AdamW, dropout on.

    python tests/benchmarks/pretraining_step.py [--rounds 15] [--steps 3] [--record FILE.json]

Both train the same model on the same batch in float32, with the chosen positions alone on the vocabulary:
PyTorch with `scaled_dot_product_attention` and the fused AdamW. The step's matrix products alone (NumPy, into
kept arrays) are the floor. The three take turns within a round, so that a noisy machine slows all alike; the
figures are medians over rounds. Peak memory is that of a process of its own for each.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np

from minigrad import backend, optim
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.data import Batch
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.pretraining import parameter_groups

CASES: dict[str, tuple[BertConfig, int, int]] = {  # config, batch size B, length T
    "reduced, 32 x 64": (
        PRESETS["reduced"].replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1),
        32,
        64,
    ),
    "4 layers, hidden 256, 16 x 128": (
        BertConfig(
            vocab_size=8192,
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
        ),
        16,
        128,
    ),
}
CONTESTANTS = ("minigrad", "pytorch", "products")


def make_batch(config: BertConfig, batch: int, length: int) -> Batch:
    """A batch as pre-training sees it: 15 % chosen, a few rows with some padding."""
    rng = np.random.default_rng(0)
    input_ids = rng.integers(5, config.vocab_size, (batch, length))
    attention_mask = np.ones((batch, length), np.int64)
    attention_mask[::4, -length // 8 :] = 0
    chosen = (rng.random((batch, length)) < 0.15) & (attention_mask == 1)
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": np.tile((np.arange(length) > length // 2).astype(np.int64), (batch, 1)),
        "labels": np.where(chosen, input_ids, -100),
        "next_sentence_label": rng.integers(0, 2, batch),
    }


# --- The contestants: each a function that does one step -------------------------------------------------


def minigrad_step(config: BertConfig, batch: Batch) -> Callable[[], None]:
    """The step of `Pretraining`, on the default backend."""
    minigrad.manual_seed(0)
    model = BertForPreTraining(config)
    kernels = backend.of(next(model.parameters()).data)
    kernels.keep_freed_memory()
    optimizer = optim.AdamW(parameter_groups(model, 0.01), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        output = model(**batch)
        assert output.loss is not None
        output.loss.backward()
        output.loss.item()
        optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()

    return step


def pytorch_step(config: BertConfig, batch: Batch) -> Callable[[], None]:
    """The same model from PyTorch's own layers."""
    import torch
    from pytorch_bert import TorchBert

    torch.manual_seed(0)
    model = TorchBert(config).train()
    tensors = {name: torch.tensor(values) for name, values in batch.items()}
    optimizer = torch.optim.AdamW(model.parameter_groups(0.01), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss = model.loss(**tensors)
        loss.backward()
        loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def products_step(config: BertConfig, batch: Batch) -> Callable[[], None]:
    """Only the matrix products of the step, forward and both backward ones, into kept arrays."""
    rng = np.random.default_rng(0)
    size, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    rows, length = batch["input_ids"].shape
    tokens, chosen = rows * length, int((batch["labels"] != -100).sum())
    heads, d_k = config.num_attention_heads, config.head_size

    def arrays(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    pairs = [
        (arrays(tokens, n), arrays(n, m)) for n, m in [(size, size)] * 4 + [(size, inner), (inner, size)]
    ]
    pairs += [(arrays(rows, heads, length, d_k), arrays(rows, heads, d_k, length))]
    pairs += [(arrays(rows, heads, length, length), arrays(rows, heads, length, d_k))]
    head = [(arrays(rows, size), arrays(size, size)), (arrays(chosen, size), arrays(size, size))]
    head += [(arrays(chosen, size), arrays(size, config.vocab_size))]
    outputs = [(np.matmul(a, b), np.empty_like(a), np.empty_like(b)) for a, b in pairs + head]

    def products(some: list[tuple[np.ndarray, np.ndarray]], into: list[tuple[np.ndarray, ...]]) -> None:
        for (a, b), (y, da, db) in zip(some, into, strict=True):
            np.matmul(a, b, out=y)
            np.matmul(y, b.swapaxes(-1, -2), out=da)
            np.matmul(a.swapaxes(-1, -2), y, out=db)

    def step() -> None:
        for _ in range(layers):
            products(pairs, outputs[: len(pairs)])
        products(head, outputs[len(pairs) :])

    return step


MAKERS = {"minigrad": minigrad_step, "pytorch": pytorch_step, "products": products_step}


# --- Measuring -------------------------------------------------------------------------------------------


def median_times(case: str, rounds: int, steps: int) -> dict[str, float]:
    """The median over rounds of each contestant's milliseconds a step; they take turns within a round."""
    config, rows, length = CASES[case]
    batch = make_batch(config, rows, length)
    contestants = {name: MAKERS[name](config, batch) for name in CONTESTANTS}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for step in contestants.values():
        step()
        step()
    for _ in range(rounds):
        for name, step in contestants.items():
            step()  # the other's data out of the caches, its threads to rest
            start = time.perf_counter()
            for _ in range(steps):
                step()
            times[name].append((time.perf_counter() - start) / steps * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(case: str, name: str) -> float:
    """MB of resident memory that a process needs for ten steps, beyond what it needs to start."""
    command = [sys.executable, __file__, "--peak", case, name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _print_peak(case: str, name: str) -> None:
    config, rows, length = CASES[case]
    step = MAKERS[name](config, make_batch(config, rows, length))
    before = _peak_so_far()
    for _ in range(10):
        step()
    print(_peak_so_far() - before)


def _peak_so_far() -> float:
    """MB; from Linux's own account, since getrusage's starts from the parent process's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1000


def main() -> None:
    """Print the table; write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=3, help="steps a contestant makes in its turn")
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--peak", nargs=2, metavar=("CASE", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        _print_peak(*options.peak)
        return
    import torch

    record: dict = {
        "date": date.today().isoformat(),
        "machine": f"{_processor()}, {torch.get_num_threads()} threads",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
        },
        "cases": {},
    }
    print(f"{record['machine']}; {record['versions']}")
    print(f"{'':32}{'ms a step':>34}{'ratio':>20}{'peak MB':>18}")
    print(f"{'':32}{'minigrad  PyTorch  products':>34}{'PyTorch  products':>20}{'minigrad PyTorch':>18}")
    for case in CASES:
        times = median_times(case, options.rounds, options.steps)
        peaks = {name: peak_memory(case, name) for name in ("minigrad", "pytorch")}
        record["cases"][case] = {"ms": times, "peak_mb": peaks}
        ours, theirs, floor = (times[name] for name in CONTESTANTS)
        print(
            f"{case:32}{ours:16.1f}{theirs:9.1f}{floor:9.1f}{ours / theirs:11.2f}{ours / floor:9.2f}"
            f"{peaks['minigrad']:9.0f}{peaks['pytorch']:9.0f}"
        )
    if options.record:
        options.record.write_text(json.dumps(record, indent=2) + "\n")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
