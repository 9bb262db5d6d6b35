"""Tests of what happens to a whole process: a Python of its own that finds minigrad."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """For a Python of its own: NumPy, one thread, warnings as errors."""
    own = {key: value for key, value in os.environ.items() if key != "MINIGRAD_BACKEND"}
    return own | {
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "bert", ROOT / "tests" / "seq2seq"))),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error",
    }


def run_python(
    script: str, *arguments: object, timeout: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python of its own; variables: more of its environment."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
