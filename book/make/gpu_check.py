"""Everything that needs a GPU, on real CuPy, with the Python that runs this.

`make gpu-check` runs the test suite, and the notebooks, held against their stored outputs; `make gpu-bench` the
tests of the step that is launched as a whole, and the benchmark, which writes its record. Each takes some minutes.
Installs nothing and needs no network. Without CuPy or a device it says so and exits with 0. Packages that a
step can do without are named when they are missing, and what needs them is skipped. Ends with a table; the
exit status is 1 if a step failed.

Tests and notebooks run with products in full float32 (CUPY_TF32=0), because what they compare with was
computed so; the benchmark runs as a user would. Pytest loads no plugins but those needed here: others may warn,
and a warning is an error.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("numpy", "pytest", "threadpoolctl")
NEEDED_BY_BERT = ("filelock", "safetensors", "tqdm")
NEEDED_BY_NOTEBOOKS = ("nbval", "nbformat", "nbclient", "ipykernel", "matplotlib", *NEEDED_BY_BERT)
OPTIONAL = ("hypothesis", "torch", "transformers", "tokenizers")
RECORD = "book/records/pretraining_step_gpu.json"
CASES = ("reduced", "base-32x128")  # of the benchmark
WITHOUT_ARRAYS = ("book", "make")  # folders of tests that have nothing to do with a GPU
EXACT = {"CUPY_TF32": "0", "OPENBLAS_NUM_THREADS": "1"}
MEMORY_FOR_A_PROCESS = 3 << 30  # bytes of the GPU's; CUDA itself takes half a GiB


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of `packages` that cannot be imported here."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


def why_not() -> str:
    """Why nothing can run here; empty if it can."""
    if missing(("cupy",)):
        return "CuPy is not installed"
    import cupy

    if not cupy.is_available():
        return "CuPy finds no CUDA device"
    lacking = missing(NEEDED)
    return f"these packages are missing: {', '.join(lacking)}" if lacking else ""


def pytest(distribution: str) -> list[str]:
    """Pytest's command, with as many processes as the cores and the GPU's memory allow."""
    import cupy

    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if missing(("xdist",)):
        return command
    processes = min(os.cpu_count() or 1, cupy.cuda.Device().mem_info[0] // MEMORY_FOR_A_PROCESS)
    return [*command, "-p", "xdist.plugin", "-n", str(max(1, processes)), "--dist", distribution]


def of_a_whole_step() -> list[str]:
    """The command of the tests of what a graph is made of."""
    files = ("training/test_device_step.py", "backend/test_kernels.py", "backend/test_cuda.py")
    return [*pytest("loadgroup"), "--backend", "cupy", *(f"tests/{name}" for name in files)]


def suite() -> list[str]:
    """The command of the test suite."""
    left_out = set(WITHOUT_ARRAYS)
    for name in missing(NEEDED_BY_BERT):
        print(f"gpu-check: {name} is missing, tests/bert and tests/training are left out", flush=True)
        left_out |= {"bert", "training"}
    ignored = [f"--ignore=tests/{name}" for name in sorted(left_out)]
    return [*pytest("loadgroup"), "--backend", "cupy", *ignored, "tests"]


def notebooks() -> list[str]:
    """The command of the Makefile's `nbval`."""
    found = [str(path.relative_to(ROOT)) for name in ("book", "solutions", "exercises")
             for path in sorted((ROOT / name).glob("*.ipynb"))]  # fmt: skip
    return [*pytest("loadfile"), "-p", "nbval.plugin", "--nbval", "--nbval-current-env",
            "--nbval-cell-timeout=600", *found]  # fmt: skip


def benchmark() -> list[str]:
    """The command of the benchmark; PyTorch and JAX take part if they are there."""
    script = "book/records/benchmarks/pretraining_step.py"
    return [script, "--device", "cuda", "--cases", *CASES, "--rounds", "7", "--record", RECORD]


def run(command: list[str], **settings: str) -> tuple[str, float]:
    """Run Python with `command`: "passed" or what it ended with, and the seconds it took."""
    paths = [str(ROOT), str(ROOT / "book"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **settings, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    start = time.monotonic()
    status = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment).returncode
    return f"FAILED with status {status}" if status else "passed", time.monotonic() - start


def check() -> dict[str, tuple[str, float]]:
    """Tests and notebooks: what each ended with, and its seconds."""
    outcomes = {"tests": run(suite(), **EXACT)}
    if lacking := missing(NEEDED_BY_NOTEBOOKS):
        return outcomes | {"notebooks": (f"skipped: no {', '.join(lacking)}", 0.0)}
    return outcomes | {"notebooks": run(notebooks(), **EXACT, MINIGRAD_BACKEND="cupy")}


def bench() -> dict[str, tuple[str, float]]:
    """The step that is launched as a whole, and the benchmark."""
    return {"tests": run(of_a_whole_step(), **EXACT), "benchmark": run(benchmark())}


def main(leg: str = "check") -> int:
    """Run every step of a leg on the GPU; 0 if none failed, or where there is no GPU."""
    reason = why_not()
    if reason:
        print(f"gpu-{leg}: skipped, {reason}")
        return 0
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    device = f"{properties['name'].decode()}, CuPy {cupy.__version__}, Python {sys.version.split()[0]}"
    print(f"gpu-{leg}: {device}", flush=True)
    for name in missing(OPTIONAL):
        print(f"gpu-{leg}: {name} is missing, the tests that need it are skipped", flush=True)
    outcomes = {"check": check, "bench": bench}[leg]()

    print(f"\ngpu-{leg}: {device}")
    for step, (outcome, seconds) in outcomes.items():
        print(f"  {step:12}{seconds:7.0f} s   {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome, _ in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
