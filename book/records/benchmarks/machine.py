"""What a measurement ran on: the processor, the libraries, and how fast each multiplies two matrices.

    python book/records/benchmarks/machine.py numpy|torch

prints, as JSON, a library's version, the kernels that its BLAS has chosen and its speed at a product of
2048 x 256 by 256 x 1024 numbers in float32.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

assert minigrad  # imported for what it does

N, K, M = 2048, 256, 1024

# A library picks its kernels for the processor by itself, unless one of these tells it otherwise.
KERNEL_CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_")


def clean_environment(kernels: str | None = None) -> tuple[dict[str, str], list[str]]:
    """This process's environment without what chooses kernels, and the names left out.

    kernels: OpenBLAS' name of the processor whose kernels it is to use, instead of this one's.
    """
    left_out = sorted(name for name in os.environ if name.startswith(KERNEL_CHOICES))
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    if kernels:
        environment["OPENBLAS_CORETYPE"] = kernels
    return environment, left_out


def processor() -> str:
    """The processor's name, with family and model, which tell generations of one name apart."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"
    except (OSError, KeyError):
        return platform.processor() or platform.machine()


# By maker and family: float32 FLOPs that a core can do in a cycle, and the highest clock in GHz that the maker's data
# sheets give for server processors of many cores. Zen 4 has two units for multiply-adds of 8 numbers, and does
# AVX-512's 16 in two halves; Zen 5 and Intel's servers from Skylake on have two of 16.
PEAKS = {
    ("AuthenticAMD", 25): (2 * 8 * 2, 3.7),
    ("AuthenticAMD", 26): (2 * 16 * 2, 4.1),
    ("GenuineIntel", 6): (2 * 16 * 2, 3.8),
}


def peak() -> dict[str, float | int | None]:
    """What arithmetic the cores can do at most: a calculation, cores x clock x FLOPs in a cycle.

    flops_per_cycle and clock_ghz are those of `PEAKS`, and 0 for a processor that is not there. reported_ghz is the
    clock that the system tells, on a virtual machine often the base clock.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    per_cycle, clock = PEAKS.get((facts.get("vendor_id", ""), int(facts.get("cpu family", 0))), (0, 0.0))
    reported = float(facts["cpu MHz"]) / 1000 if "cpu MHz" in facts else None
    return {"cores": cores(), "flops_per_cycle": per_cycle, "clock_ghz": clock, "reported_ghz": reported}


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Others:
    """How busy other processes keep the cores, from here to `share()`."""

    def __init__(self) -> None:
        self._started, self._busy = time.perf_counter(), self._busy_seconds()

    def share(self) -> float | None:
        """Of all cores' time, 0 … 1; None where Linux does not tell. Counts workers that have ended as ours."""
        busy = self._busy_seconds()
        if busy is None or self._busy is None:
            return None
        elapsed = (time.perf_counter() - self._started) * (os.cpu_count() or 1)
        return max(0.0, busy - self._busy) / elapsed

    @staticmethod
    def _busy_seconds() -> float | None:
        """Of all processes, less this one and its children that have ended; with what a hypervisor took."""
        try:
            fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        except OSError:
            return None
        user, nice, system, _, _, irq, soft_irq, steal = fields[:8]
        everybody = (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")
        return everybody - sum(os.times()[:4])


def cuda_device(environment: dict[str, str]) -> str:
    """The name of the GPU that CuPy finds, and PyTorch too if it is installed; empty if there is none."""
    code = (
        "import cupy, importlib.util\n"
        "found = cupy.is_available()\n"
        "if importlib.util.find_spec('torch'):\n"
        "    import torch\n"
        "    found = found and torch.cuda.is_available()\n"
        "print(cupy.cuda.runtime.getDeviceProperties(0)['name'].decode() if found else '')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    return result.stdout.strip() if result.returncode == 0 else ""


def libraries(environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What each library says of itself on the CPU, from a process of its own; those not installed are left out."""
    found = {}
    for name in LIBRARIES:
        command = [sys.executable, __file__, name]
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        if result.returncode == 0:
            found[name] = json.loads(result.stdout.splitlines()[-1])
    return found


# --- One library, in this process ------------------------------------------------------------------------


def _speed(product: Callable[[], Any]) -> dict[str, float]:
    """GFLOP/s: the median, and the best, which a noisy machine slows less."""
    times = []
    for _ in range(200):
        start = time.perf_counter()
        product()
        times.append(time.perf_counter() - start)
    work = 2 * N * K * M / 1e9
    return {"gflops": work / statistics.median(times[10:]), "best_gflops": work / min(times)}


def _factors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, K), dtype=np.float32), rng.standard_normal((K, M), dtype=np.float32)


def numpy_kernels() -> str:
    """The processor whose kernels NumPy's BLAS has chosen, as far as it tells."""
    blas = _blas()
    return blas[0].get("architecture", "?") if blas else "?"


def _blas() -> list[dict[str, Any]]:
    from threadpoolctl import threadpool_info

    return [info for info in threadpool_info() if info["user_api"] == "blas"]


def _numpy() -> dict[str, Any]:
    a, b = _factors()
    y = np.empty((N, M), np.float32)
    blas = _blas()
    return {
        "version": np.__version__,
        "blas": [f"{info['internal_api']} {info['version']}" for info in blas],
        "kernels": numpy_kernels(),
        "threads": blas[0]["num_threads"] if blas else 1,
        **_speed(lambda: np.matmul(a, b, out=y)),
    }


def _torch() -> dict[str, Any]:
    import torch

    a, b = (torch.from_numpy(x) for x in _factors())
    y = torch.empty(N, M)
    return {
        "version": torch.__version__,
        "blas": [line.strip(" -") for line in torch.__config__.show().splitlines() if "Math Kernel" in line],
        "elementwise_kernels": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        **_speed(lambda: torch.mm(a, b, out=y)),
    }


LIBRARIES = {"numpy": _numpy, "torch": _torch}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LIBRARIES:
        sys.exit(f"usage: machine.py {'|'.join(LIBRARIES)}")
    print(json.dumps(LIBRARIES[sys.argv[1]]()))
