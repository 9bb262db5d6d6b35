"""The processes in which runs are made.

In a module of their own: a worker cannot find what is defined in the file that Python was started with.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def workers(count: int) -> ProcessPoolExecutor:
    """So many processes, which end soon after this one has gone."""
    return ProcessPoolExecutor(count, get_context("spawn"), _end_with, (os.getpid(),))


def _end_with(parent: int) -> None:
    """In a worker: end soon after the process `parent` has gone, which may be killed without a word."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
