"""The test suite on real CuPy, with the Python that runs this: `make gpu-check`.

Installs nothing and needs no network. Without CuPy or a device it says so and exits with 0. Packages that
tests can do without are named when they are missing, and the tests that need them are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("numpy", "pytest")
NEEDED_BY_BERT = ("safetensors", "tqdm")
OPTIONAL = ("hypothesis", "torch", "transformers", "tokenizers")


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of `packages` that cannot be imported here."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


def why_not() -> str:
    """Why the tests cannot run here; empty if they can."""
    if missing(("cupy",)):
        return "CuPy is not installed"
    import cupy

    if not cupy.is_available():
        return "CuPy finds no CUDA device"
    lacking = missing(NEEDED)
    return f"these packages are missing: {', '.join(lacking)}" if lacking else ""


def main() -> int:
    """Run the suite on the GPU; the exit status is pytest's, or 0 where there is no GPU."""
    reason = why_not()
    if reason:
        print(f"gpu-check: skipped, {reason}")
        return 0
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    print(
        f"gpu-check: {properties['name'].decode()}, CuPy {cupy.__version__}, Python {sys.version.split()[0]}"
    )
    for name in missing(OPTIONAL):
        print(f"gpu-check: {name} is missing, the tests that need it are skipped")
    command = [sys.executable, "-m", "pytest", "-q", "--backend", "cupy", "tests"]
    for name in missing(NEEDED_BY_BERT):
        print(f"gpu-check: {name} is missing, tests/bert is left out")
        command.append("--ignore=tests/bert")
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode


if __name__ == "__main__":
    sys.exit(main())
