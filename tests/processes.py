"""Tests of what happens to a whole process: a Python of its own that finds minigrad, or several."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
    script: str, *arguments: object, timeout: float = 180, seconds: int | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python of its own; variables: more of its environment.

    seconds: of processor time, which a busy machine does not use up; a script that takes more fails the test, where
    the system counts it. timeout: by the clock, for scripts that wait for ever.
    """
    if seconds is not None and os.name == "posix":
        limit = f"resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds + 1}))"
        script = f"import resource; {limit}\n{script}"
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if seconds is not None and os.name == "posix" and done.returncode == -signal.SIGXCPU:
        pytest.fail(f"more than {seconds} s of processor time; it had said: {done.stdout[-200:]}")
    return done


# --- Several processes -----------------------------------------------------------------------------------

# Open MPI asks for these; other MPIs need nothing of the kind.
MORE_PROCESSES_THAN_CORES = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def mpirun() -> str:
    """The `mpirun` beside this Python, or that of the system; skips the test without one, or without mpi4py."""
    pytest.importorskip("mpi4py", reason="needs mpi4py: make oracles")
    beside = os.path.dirname(sys.executable)
    found = shutil.which("mpirun", path=beside) or shutil.which("mpirun")
    if found is None:
        pytest.skip("needs an mpirun: make oracles, or pip install mpich")
    return found


def start_pythons(count: int, *arguments: object) -> subprocess.Popen[str]:
    """So many processes of one MPI job: `mpirun -n count python arguments`."""
    return subprocess.Popen(
        [mpirun(), "-n", str(count), sys.executable, *map(str, arguments)],
        env=environment() | MORE_PROCESSES_THAN_CORES,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run_pythons(count: int, *arguments: object, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run `mpirun -n count python arguments` to its end."""
    with start_pythons(count, *arguments) as job:
        try:
            out, err = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)  # a SIGTERM would be taken for a wish to save and stop
            raise
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)
