"""What one machine can do at best: its matrix products, its memory, its operators. `before_after.py` records it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bert_course.chapters.fast import THREADS, in_blocks

Contestants = dict[str, Callable[[], Any]]


def medians(contestants: Contestants, rounds: int) -> dict[str, float]:
    """The median over rounds of each one's milliseconds; they take turns, each with a call to warm up."""
    return {name: found["median"] for name, found in spreads(contestants, rounds).items()}


def spreads(contestants: Contestants, rounds: int) -> dict[str, dict[str, float]]:
    """As `medians`, with the lowest and highest: of the middle half of the rounds, as a pause hits single ones."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            run()
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1000)
    return {name: middle_half(values) for name, values in times.items()}


def middle_half(values: list[float]) -> dict[str, float]:
    """The median, and the quarter points as lowest and highest."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return {"median": statistics.median(ordered), "lowest": ordered[cut], "highest": ordered[-1 - cut]}


def draws(*shape: int) -> np.ndarray:
    """Normal float32 numbers."""
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


PRODUCTS = {  # (n, k) (k, m)
    "feed-forward layer, reduced": (2048, 128, 512),
    "feed-forward layer, BERT-Base": (4096, 768, 3072),
    "square": (2048, 2048, 2048),
}


def product_rates(rounds: int) -> dict[str, dict[str, float]]:
    """GFLOP/s of products into a kept array, by shape: median, lowest, highest."""
    contestants: Contestants = {}
    for name, (n, k, m) in PRODUCTS.items():
        a, b, y = draws(n, k), draws(k, m), np.empty((n, m), np.float32)
        contestants[name] = lambda a=a, b=b, y=y: np.matmul(a, b, out=y)
    times = spreads(contestants, rounds)
    return {
        name: {
            "median": 2e-6 * math.prod(shape) / times[name]["median"],
            "lowest": 2e-6 * math.prod(shape) / times[name]["highest"],
            "highest": 2e-6 * math.prod(shape) / times[name]["lowest"],
        }
        for name, shape in PRODUCTS.items()
    }


def regimes(rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Microseconds of three pieces of code: as they are, with twice the numbers, and with twice the arithmetic.

    A product of large matrices; y = x + 1 over arrays that no cache holds, in blocks, so that a second + 1 finds its
    block in the cache; and the same over 16 numbers. Each of the last is called many times within one measurement.
    """
    a, b = draws(2048, 512), draws(512, 1024)
    y = np.empty((2048, 1024), np.float32)
    x, z = draws(2**25), np.empty(2**25, np.float32)
    small, sum_ = draws(32), np.empty(32, np.float32)
    one, block, calls = np.float32(1), 2**15, 1000

    def product(n: int, times: int) -> None:
        for _ in range(times):
            np.matmul(a[:n], b, out=y[:n])

    def long_sum(size: int, times: int) -> None:
        def work(part: slice) -> None:
            np.add(x[part], one, out=z[part])
            for _ in range(times - 1):
                np.add(z[part], one, out=z[part])

        in_blocks(work, size, block, THREADS)

    def short_sum(size: int, times: int) -> None:
        part, out = small[:size], sum_[:size]
        for _ in range(calls * times):
            np.add(part, one, out=out)

    codes: dict[str, tuple[Callable[[int, int], None], int, int]] = {
        "a product of large matrices": (product, 1024, 1),
        "x + 1, 64 MB": (long_sum, 2**24, 1),
        "x + 1, 16 numbers": (short_sum, 16, calls),
    }
    times = spreads(
        {
            f"{name}: {case}": lambda run=run, size=size * more, again=again: run(size, again)
            for name, (run, size, _) in codes.items()
            for case, more, again in (
                ("as it is", 1, 1),
                ("twice the numbers", 2, 1),
                ("twice the arithmetic", 1, 2),
            )
        },
        rounds,
    )
    return {
        name: {
            case: {key: 1000 * ms / count for key, ms in times[f"{name}: {case}"].items()}
            for case in ("as it is", "twice the numbers", "twice the arithmetic")
        }
        for name, (_, _, count) in codes.items()
    }


def memory_rates(rounds: int) -> list[list[float]]:
    """GB/s read and written by y = x + 1 on all threads, by the size of x and y together: [bytes, GB/s].

    Small arrays are walked over many times within one call of `np.add` (x seen as a matrix whose rows all lie in
    the same place), because a call of its own for each would measure Python.
    """
    contestants: Contestants = {}
    sizes = [2**k for k in range(12, 28)]
    repeats = {size: max(1, 2**23 // size) for size in sizes}
    for size in sizes:
        x, y = (
            np.lib.stride_tricks.as_strided(array, (repeats[size], size), (0, 4))
            for array in (draws(size), np.empty(size, np.float32))
        )

        def run(x: np.ndarray = x, y: np.ndarray = y, size: int = size) -> None:
            part = -(-size // THREADS)
            in_blocks(lambda b: np.add(x[:, b], np.float32(1), out=y[:, b]), size, part, THREADS)

        contestants[str(size)] = run
    times = medians(contestants, rounds)
    return [[8 * size, 8e-6 * size * repeats[size] / times[str(size)]] for size in sizes]


def caches() -> list[dict[str, Any]]:
    """The first core's caches for data: level, bytes, and how many cores share it (Linux; else none)."""
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level, size, cores = (
            (folder / name).read_text().strip() for name in ("type", "level", "size", "shared_cpu_map")
        )
        if kind != "Instruction":
            sharing = bin(int(cores.replace(",", ""), 16)).count("1")
            found.append({"level": int(level), "bytes": 1024 * int(size.rstrip("K")), "cores": sharing})
    return found


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: np.add(x, x, out=y),
    "multiply": lambda x, y: np.multiply(x, x, out=y),
    "divide": lambda x, y: np.divide(1, x, out=y),
    "sqrt": lambda x, y: np.sqrt(x, out=y),
    "exp": lambda x, y: np.exp(x, out=y),
    "tanh": lambda x, y: np.tanh(x, out=y),
}


def operator_rates(rounds: int) -> dict[str, float]:
    """Entries a nanosecond of each operator, on one thread and arrays that stay in the cache."""
    x = np.abs(draws(2**16)) + np.float32(0.1)
    y = np.empty_like(x)
    repeats = 16
    contestants: Contestants = {
        name: lambda run=run: [run(x, y) for _ in range(repeats)] for name, run in OPERATORS.items()
    }
    return {name: repeats * x.size * 1e-6 / ms for name, ms in medians(contestants, rounds).items()}
