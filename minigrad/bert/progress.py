"""What the reader sees of a long run, and how it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

__all__ = ["Progress", "interruptible"]


class Progress:
    """A bar in a terminal and, as text, in Jupyter; in a log file, a line now and then."""

    def __init__(
        self, step: int, total: int, report: Callable[[str], None] | None, file: TextIO | None = None
    ) -> None:
        self.file = file or sys.stderr
        self.total, self.step = total, step
        self.report = report
        self.seconds_away = 0.0
        self.started, self.first = time.perf_counter(), step
        self.last_line = self.started
        self.bar = None
        if _in_notebook() or self.file.isatty():
            self.bar = tqdm(total=total, initial=step, file=self.file, unit="step", dynamic_ncols=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.bar is not None:
            self.bar.close()

    def advance(self) -> None:
        """One more step is done."""
        self.step += 1
        if self.bar is not None:
            self.bar.update(1)

    def show(self, figures: dict[str, float], tokens_per_second: float) -> None:
        """The latest losses, both accuracies and the speed."""
        text = (
            f"loss {figures['loss']:.3f}  MLM {figures['mlm_accuracy']:.1%}  NSP {figures['nsp_accuracy']:.1%}  "
            f"{tokens_per_second / 1000:.1f}k tokens/s"
        )
        if self.bar is not None:
            self.bar.set_postfix_str(text, refresh=False)
        elif time.perf_counter() - self.last_line > 10 or self.step + 1 >= self.total:
            self.last_line = time.perf_counter()
            done = self.step + 1 - self.first
            left = (self.last_line - self.started) / done * (self.total - self.step - 1)
            self.say(f"step {self.step + 1}/{self.total}  {text}  {left / 60:.1f} min left")

    def say(self, line: str) -> None:
        """A line of its own."""
        if self.report is not None:
            self.report(line)
        elif self.bar is not None:
            self.bar.write(line, file=self.file)
        else:
            print(line, file=self.file, flush=True)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Time that is not training: the speed shown leaves it out."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self.seconds_away += time.perf_counter() - before


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that no step is cut in two; the second one stops at once."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # signals reach the main thread only
        return

    def on_interrupt(*_: Any) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _in_notebook() -> bool:
    """Whether this code runs in a cell, which is more than that Jupyter's packages are loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config
