"""How long one pre-training step takes beside PyTorch: forward, backward, clipping, AdamW, dropout on.

    python book/records/benchmarks/pretraining_step.py [--cases reduced small base] [--device cpu|cuda]
        [--rounds N] [--steps K] [--one-core] [--kernels Haswell] [--record FILE.json [--again]]

All train the same model on the same batch in float32 (on a GPU also with products in 16 bits), from the same
weights, with the chosen positions alone on the vocabulary; before anything is timed, all must give the same
losses with dropout off. On a GPU a step launched as a whole, as a CUDA graph, must give the bits that it gives one
operation at a time, dropout on. Each contestant is a process of its own, and they take turns, so that a noisy machine
slows all alike. The step's matrix products alone are the floor. The figures are medians over rounds; the spread
is the middle half of the rounds. A machine is faster in one hour than in the next, so the record has several
measurements, hours apart: `--again` adds one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import machine
from contestants import COMPETITORS, FLOORS, ON, OURS, PACKAGES, ROUNDED, SAME_BITS
from settings import CASES
from worker import WorkerError, worker

# How far losses may lie apart, with dropout off: of the first step, and after three updates. A GPU's products
# are in TF32, with 10 bits after the point; bfloat16 has 7.
TOLERANCES = {"cpu": (1e-4, 1e-3), "cuda": (5e-3, 2e-2)}
TOLERANCES_ROUNDED = (5e-2, 1e-1)
SCALING_BATCHES = (8, 16, 32, 64)


class DifferentWorkError(AssertionError):
    """A contestant computes another thing than minigrad: its time says nothing."""


class Benchmark:
    """What all measurements share: the device, the workers' environment, and who takes part.

    rounds, steps: instead of each case's own.
    """

    def __init__(
        self,
        device: str,
        environment: dict[str, str],
        installed: set[str],
        rounds: int | None = None,
        steps: int | None = None,
    ) -> None:
        self.device, self.environment, self.rounds, self.steps = device, environment, rounds, steps
        self.contestants = [name for name in ON[device] if PACKAGES.get(name, "numpy") in installed]

    def start(self, stack: ExitStack, contestant: str, case: str, **options: Any) -> Any:
        """A worker that ends with the stack."""
        environment = dict(self.environment)
        if self.device == "cuda":
            environment["CUPY_TF32"] = "1"  # as PyTorch
            environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = (
                "false"  # JAX would take three quarters of the memory
            )
            if contestant not in PACKAGES:
                environment["MINIGRAD_BACKEND"] = "cupy"
        return stack.enter_context(worker(contestant, case, environment, self.device, **options))

    # --- One case ----------------------------------------------------------------------------------------

    def measure(self, case: str) -> dict[str, Any]:
        """The record of one case."""
        others = machine.Others()
        setting = CASES[case]
        rounds, steps = self.rounds or setting.rounds, self.steps or setting.steps
        with ExitStack() as stack:
            workers = {name: self.start(stack, name, case) for name in self.contestants}
            losses = self.check_losses(case)
            workers = {name: one for name, one in workers.items() if name in losses or name in FLOORS}
            bits = self.check_bits(case, workers)
            # All at once, which is not timed: compile, record, fill the caches
            asked = {name: one.ask(do="turn", steps=4) for name, one in workers.items()}
            workers = {name: workers[name] for name in answers(case, asked)}
            for one in workers.values():
                one.memory()
            times = take_turns(workers, rounds, steps)
            memory = {name: one.memory() for name, one in workers.items() if name not in FLOORS}
            for one in workers.values():
                one.dismiss()  # all at once
        median = {name: statistics.median(values) for name, values in times.items()}
        return {
            "setting": setting.describe(),
            "rounds": rounds,
            "steps": steps,
            "others_share_of_cores": others.share(),
            "losses_without_dropout": losses,
            "bits_after_steps": bits,
            "ms": median,
            "middle_half_ms": {name: middle_half(values) for name, values in times.items()},
            "all_ms": times,
            "to_fastest_competitor": ratios(median, [name for name in COMPETITORS if name in median]),
            "to_products": ratios(median, [name for name in FLOORS if name in median]),
            "memory": memory,
        }

    def check_losses(self, case: str) -> dict[str, list[float]]:
        """The first four losses of each contestant, dropout off.

        Raises DifferentWorkError if one's first loss, or that after three updates, is not minigrad's.
        """
        with ExitStack() as stack:
            workers = {
                name: self.start(stack, name, case, dropout=False)
                for name in self.contestants
                if name not in FLOORS
            }
            asked = {name: one.ask(do="losses", steps=4) for name, one in workers.items()}
            losses = answers(case, asked)
            for one in workers.values():
                one.dismiss()
        for name, others in losses.items():
            tolerances = TOLERANCES_ROUNDED if name in ROUNDED else TOLERANCES[self.device]
            for step, tolerance in zip((0, 3), tolerances, strict=True):
                apart = abs(others[step] - losses[OURS][step])
                if not apart <= tolerance:
                    raise DifferentWorkError(
                        f"{case}: {name} does not compute what {OURS} does: with dropout off, the loss of step "
                        f"{step + 1} is {others[step]:.6f}, minigrad's {losses[OURS][step]:.6f}"
                    )
        return losses

    def check_bits(self, case: str, workers: dict[str, Any]) -> dict[str, str]:
        """What a hash says of the losses and weights of some steps with dropout, for those of SAME_BITS.

        Raises DifferentWorkError if a step launched as a whole has other bits than one operation at a time.
        """
        pairs = [pair for pair in SAME_BITS.items() if pair[0] in workers]
        names, steps = sorted({name for pair in pairs for name in pair}), CASES[case].bit_steps
        bits = answers(case, {name: workers[name].ask(do="bits", steps=steps) for name in names})
        for name, other in pairs:
            if bits[name] != bits[other]:
                raise DifferentWorkError(
                    f"{case}: after {steps} steps the bits of {name} are not those of {other}"
                )
        return bits

    # --- minigrad alone ----------------------------------------------------------------------------------

    def scaling(self) -> list[dict[str, float]]:
        """Milliseconds a step of `reduced` by batch size; `to_line`: over a straight line from 0 through the
        smallest batch (at most 1 where time grows no faster than the batch)."""
        with ExitStack() as stack:
            workers = {
                str(batch): self.start(stack, OURS, "reduced", batch=batch) for batch in SCALING_BATCHES
            }
            times = take_turns(workers, self.rounds or 9, self.steps or 3)
        ms = {batch: statistics.median(times[str(batch)]) for batch in SCALING_BATCHES}
        smallest = SCALING_BATCHES[0]
        return [
            {"batch": batch, "ms": ms[batch], "to_line": ms[batch] / (ms[smallest] * batch / smallest)}
            for batch in SCALING_BATCHES
        ]


def answers(case: str, asked: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """What contestants answer. A competitor that dies is left out, and named; minigrad's WorkerError is raised."""
    given = {}
    for name, answer in asked.items():
        try:
            given[name] = answer()
        except WorkerError as error:
            if name not in PACKAGES:
                raise
            print(f"{case}: without {name}, for {error}", flush=True)
    return given


def take_turns(workers: dict[str, Any], rounds: int, steps: int) -> dict[str, list[float]]:
    """The milliseconds a step of each worker's turns; who begins changes from round to round."""
    names = list(workers)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(workers[name].turn(steps))
    return times


def middle_half(values: list[float]) -> list[float]:
    """The first and the third quartile."""
    if len(values) == 1:
        return values * 2
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def ratios(median: dict[str, float], references: list[str]) -> dict[str, float]:
    """Each contestant's time over that of the fastest of `references`; empty if there are none."""
    if not references:
        return {}
    best = min(median[name] for name in references)
    return {name: ms / best for name, ms in median.items()}


# --- Printing --------------------------------------------------------------------------------------------


def print_case(name: str, figures: dict[str, Any]) -> None:
    """One table."""
    print(f"\n{name}: {figures['setting']}; {figures['rounds']} rounds of {figures['steps']} steps")
    if (others := figures["others_share_of_cores"] or 0.0) > 0.05:
        print(f"NOISY: other processes used {others:.0%} of the cores meanwhile")
    print(f"{'':30}{'ms a step':>11}{'middle half':>19}{'/ competitor':>14}{'/ products':>12}{'peak MB':>10}")
    for contestant, ms in figures["ms"].items():
        low, high = figures["middle_half_ms"][contestant]
        cells = [
            f"{figures[key][contestant]:{width}.2f}" if figures[key] else f"{'':{width}}"
            for key, width in (("to_fastest_competitor", 14), ("to_products", 12))
        ]
        memory = figures["memory"].get(contestant, {})
        peak = memory.get("device_mb", memory.get("peak_mb"))
        cells.append("" if peak is None else f"{peak:10.0f}")
        print(f"{contestant:30}{ms:11.1f}{f'{low:.1f} – {high:.1f}':>19}{''.join(cells)}")


def print_machine(entry: dict[str, Any]) -> None:
    """What the measurement runs on."""
    print(f"{entry['processor']}, {entry['cores']} cores, load {entry['load_before']:.2f}, {entry['date']}")
    if "gpu" in entry:
        print(f"GPU: {entry['gpu']}; products in TF32")
    for name, facts in entry["libraries"].items():
        kernels = f", {facts['kernels']} kernels" if "kernels" in facts else ""
        speed = ""
        if "gflops" in facts:
            speed = (
                f": {facts['gflops']:.0f} GFLOP/s at 2048 x 256 x 1024, {facts['best_gflops']:.0f} at best"
            )
        print(f"{name} {facts['version']}{kernels}{speed}")


# --- The command -----------------------------------------------------------------------------------------


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not (text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=positive, help="turns of each contestant (default: the case's own)")
    parser.add_argument("--steps", type=positive, help="steps a turn (default: the case's own)")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--device", choices=tuple(ON), default="cpu")
    parser.add_argument(
        "--one-core", action="store_true", help="keep all to one core; another entry of the record"
    )
    parser.add_argument(
        "--kernels",
        metavar="NAME",
        help="let OpenBLAS use another processor's kernels: Haswell for AVX2, as PyTorch's MKL on AMD",
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write the figures to this JSON file, as one entry of it"
    )
    parser.add_argument(
        "--again", action="store_true", help="add them to what the record's entry has, of the same machine"
    )
    options = parser.parse_args(arguments)
    here = [name for name, case in CASES.items() if options.device in case.devices]
    options.cases = options.cases or here
    if elsewhere := [name for name in options.cases if name not in here]:
        parser.error(f"not on {options.device}: {', '.join(elsewhere)}; there are {', '.join(here)}")
    if options.kernels and options.device == "cuda":
        parser.error("--kernels is about the CPU")
    if options.one_core and not hasattr(os, "sched_setaffinity"):
        parser.error("--one-core: this system cannot keep a process to one core")
    if options.again and not options.record:
        parser.error("--again is about --record")
    if options.record and not options.record.resolve().parent.is_dir():
        parser.error(f"--record: there is no folder {options.record.parent}")
    return options


def key_of(options: argparse.Namespace) -> str:
    """Which entry of the record this is."""
    kernels = f", {options.kernels} kernels" if options.kernels else ""
    return f"{options.device}{', one core' if options.one_core else ''}{kernels}"


def earlier(file: Path, key: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The measurements under `key` that `entry` can be added to; SystemExit for those of another machine."""
    measured = json.loads(file.read_text()).get(key, []) if file.exists() else []
    for one in measured:
        for fact in ("processor", "cores"):
            if one[fact] != entry[fact]:
                sys.exit(f"--again: the record's {fact} is {one[fact]}, here it is {entry[fact]}")
    return measured


def write_entry(file: Path, key: str, measured: list[dict[str, Any]]) -> None:
    """Put measurements into the file under `key`; entries of other devices, cores and kernels stay."""
    record = json.loads(file.read_text()) if file.exists() else {}
    record = {name: value for name, value in record.items() if isinstance(value, list)}  # no "not run yet"
    record[key] = measured
    file.write_text(json.dumps(rounded(record), indent=2, ensure_ascii=False) + "\n")


def rounded(value: Any) -> Any:
    """All floats in nested dicts and lists to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    """Measure, print the tables, write the record."""
    options = parse()
    load = os.getloadavg()[0]
    if options.one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    environment, left_out = machine.clean_environment(options.kernels)
    if left_out:
        print(f"left out of the environment, so that each library picks its kernels: {', '.join(left_out)}")
    entry: dict[str, Any] = {
        "date": f"{datetime.now():%Y-%m-%d %H:%M}",
        "processor": machine.processor(),
        "cores": machine.cores(),
        "load_before": load,
        "python": platform.python_version(),
        "kernels_asked_for": options.kernels,
        "left_out_of_environment": left_out,
        "threads_asked_for": {n: v for n, v in environment.items() if n.endswith("_NUM_THREADS")},
    }
    if options.device == "cuda":
        entry["gpu"] = machine.cuda_device(environment)
        if not entry["gpu"]:
            print("skipped: there is no CUDA device that both PyTorch and CuPy find")
            return
    entry["libraries"] = libraries = machine.libraries(environment)
    if options.device == "cuda" and importlib.util.find_spec("jax"):
        libraries["jax"] = {"version": importlib.metadata.version("jax")}
    print_machine(entry)
    chosen = libraries["numpy"]["kernels"]
    if options.kernels and chosen.lower() != options.kernels.lower():
        sys.exit(f"OpenBLAS runs its {chosen} kernels, not {options.kernels!r}: is the name right?")
    before = earlier(options.record, key_of(options), entry) if options.again else []
    benchmark = Benchmark(options.device, environment, set(libraries), options.rounds, options.steps)
    for name in ON[options.device]:
        if name not in benchmark.contestants:
            print(f"{name}: left out, {PACKAGES[name]} is not installed")

    entry["cases"] = {}
    for case in options.cases:
        entry["cases"][case] = benchmark.measure(case)
        print_case(case, entry["cases"][case])
        if options.record:  # what is measured is kept if the next case takes too long
            write_entry(options.record, key_of(options), [*before, entry])
    if "reduced" in options.cases:
        entry["scaling"] = benchmark.scaling()
        cells = [f"{row['batch']}: {row['ms']:.1f} ms ({row['to_line']:.2f})" for row in entry["scaling"]]
        print(f"\nreduced by batch size (over a straight line from 0): {', '.join(cells)}")
    if options.record:
        write_entry(options.record, key_of(options), [*before, entry])


if __name__ == "__main__":
    try:
        main()
    except (WorkerError, DifferentWorkError) as error:
        sys.exit(f"pretraining_step.py: {error}")
