"""A process of its own for each contestant, so that none shares memory, threads or allocator with another.

`Worker` starts one and asks it to do things, one JSON line a question and an answer; run as a script, this
file is that process. Between two questions it waits for its input and uses no processor time. Several can be asked
at once, and answer one after the other.
"""

from __future__ import annotations

import minigrad  # isort: skip  (before NumPy, as on the command line: it tells OpenBLAS how long to wait)

import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from contestants import MAKERS, PACKAGES
from settings import CASES, make_batch

assert minigrad  # imported for what it does


class WorkerError(RuntimeError):
    """A worker has died; the message has the end of what it wrote."""


class Worker:
    """A contestant in its process.

    environment: the process's variables. batch: another number of sequences than the case's. dropout: False
    sets both probabilities to 0. Raises WorkerError if the process dies, at the first question that shows it.
    """

    def __init__(
        self,
        contestant: str,
        case: str,
        environment: dict[str, str],
        device: str = "cpu",
        batch: int | None = None,
        dropout: bool = True,
    ) -> None:
        self.name = f"{contestant} on {case}"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (open as long as the process)
        what = {"contestant": contestant, "case": case, "device": device, "batch": batch, "dropout": dropout}
        self._process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(what)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
        )

    def turn(self, steps: int) -> float:
        """Milliseconds a step, over `steps` steps after one that is not counted."""
        return self.ask(do="turn", steps=steps)()

    def memory(self) -> dict[str, float]:
        """peak_mb, since the last question of this kind and beyond what the process needed before it made
        the contestant; resident_mb, now; device_mb on a GPU."""
        return self.ask(do="memory")()

    def dismiss(self) -> None:
        """Its input is at an end, and so will the process be."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.close()

    def close(self) -> None:
        """End the process: its input is at an end, and a library can end what it has started itself."""
        self.dismiss()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def ask(self, **question: Any) -> Callable[[], Any]:
        """Ask it to do something; what this returns waits for the answer."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the missing answer says so
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        return self._answer

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        self._errors.seek(0)
        end = "".join(self._errors.readlines()[-15:])
        raise WorkerError(f"{self.name}: its process ended with status {code}:\n{end}")


@contextmanager
def worker(*args: Any, **kwargs: Any) -> Iterator[Worker]:
    """A Worker that ends with the context."""
    one = Worker(*args, **kwargs)
    try:
        yield one
    finally:
        one.close()


# --- The process -----------------------------------------------------------------------------------------


def serve(contestant: str, case: str, device: str, batch: int | None, dropout: bool) -> None:
    """Make the contestant, then answer questions until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(value: Any) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    if contestant in PACKAGES:
        importlib.import_module(PACKAGES[contestant])
    before = resident_mb()
    config = CASES[case].config
    if not dropout:
        config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    inputs = make_batch(config, batch or CASES[case].batch, CASES[case].length)
    one = MAKERS[contestant](config, inputs, device)
    for line in sys.stdin:
        question = json.loads(line)
        steps = question.get("steps")
        match question["do"]:
            case "turn":
                one.step()  # the others' data out of the caches
                one.wait()
                start = time.perf_counter()
                for _ in range(steps):
                    one.step()
                one.wait()
                answer((time.perf_counter() - start) / steps * 1000)
            case "losses":
                answer([float(one.step()) for _ in range(steps)])
            case "bits":  # of the losses and the weights after so many steps
                losses = [one.step() for _ in range(steps)]
                digest = hashlib.sha256(np.array([float(loss) for loss in losses]).tobytes())
                for array in one.weights():
                    digest.update(array.tobytes())
                answer(digest.hexdigest()[:16])
            case "memory":
                figures = {"peak_mb": peak_mb() - before, "resident_mb": resident_mb()}
                if one.device_mb is not None:
                    figures["device_mb"] = one.device_mb()
                forget_peak()
                answer(figures)


def _status_mb(field: str) -> float:
    """MB; from Linux's own account, since getrusage's starts from the parent process's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(field))) / 1000


def resident_mb() -> float:
    """MB of memory that this process holds now."""
    return _status_mb("VmRSS")


def peak_mb() -> float:
    """MB of memory that this process has held at most since `forget_peak`."""
    return _status_mb("VmHWM")


def forget_peak() -> None:
    """Begin the account of the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    serve(**json.loads(sys.argv[1]))
