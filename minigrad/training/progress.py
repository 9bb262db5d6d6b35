"""What the reader sees of a long run, and how it is stopped."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

WIDE = 100  # columns: below, the figures need the place of the bar
WIDE_BAR = "{percentage:3.0f}%|{bar:6}| {n_fmt}/{total_fmt} {remaining} left, {rate_fmt}{postfix}"
NARROW_BAR = "{n_fmt}/{total_fmt} {remaining} left{postfix}"


class Unfailing:
    """A stream for messages: where it is full, closed or gone, the message is lost, and the work goes on."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream  # None: the process was started without it

    def write(self, text: str) -> int:
        """Write, or not."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed, or has no such characters
            if self._stream is not None:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or not."""
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.flush()

    def shows_a_bar(self) -> bool:
        """Whether this is a notebook, or a terminal that has columns (some that are no window have none)."""
        if _in_notebook():
            return True
        try:
            if self._stream is None or not self._stream.isatty():
                return False
        except ValueError:
            return False
        return self.columns() != 0

    def columns(self) -> int | None:
        """The width of the terminal; None where there is none to ask for."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Progress:
    """A bar in a terminal and, as text, in Jupyter; in a log file, a line now and then.

    What cannot be shown is no reason to stop: errors of the stream, and of `report`, are ignored.
    """

    def __init__(
        self, step: int, total: int, report: Callable[[str], None] | None, file: TextIO | None = None
    ) -> None:
        self.file = Unfailing(file or sys.stderr)
        self.total, self.step = total, step
        self.report = report
        self.started, self.first = time.perf_counter(), step
        self._measured_from, self._seconds_away = self.started, 0.0
        self.last_line = self.started
        self.bar = bar(total, "step", self.file, initial=step) if self.file.shows_a_bar() else None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def advance(self) -> None:
        """One more step is done."""
        self.step += 1
        if self.bar is not None:
            self.bar.update(1)

    def show(self, pieces: list[str]) -> None:
        """The latest figures, the most important first: a bar shows as many whole ones as fit beside it."""
        text = "  ".join(pieces)
        if self.bar is not None:
            self._show_in_bar(pieces)
        elif time.perf_counter() - self.last_line > 10 or self.step + 1 >= self.total:
            self.last_line = time.perf_counter()
            done = self.step + 1 - self.first
            left = (self.last_line - self.started) / done * (self.total - self.step - 1)
            self.say(f"step {self.step + 1}/{self.total}  {text}  {left / 60:.1f} min left")

    def _show_in_bar(self, pieces: list[str]) -> None:
        assert self.bar is not None
        columns = self.file.columns() or math.inf  # a notebook breaks what is too long
        self.bar.bar_format = WIDE_BAR if columns >= WIDE else NARROW_BAR
        for shown in range(len(pieces), -1, -1):
            self.bar.set_postfix_str("  ".join(pieces[:shown]), refresh=False)
            growth = len(str(self.total)) - len(str(self.bar.n))  # of the number of steps
            whole = self.bar.format_meter(**{**self.bar.format_dict, "ncols": None})  # not cut
            if len(whole) + growth < columns:
                break

    def say(self, line: str) -> None:
        """A line of its own."""
        if self.report is not None:
            with contextlib.suppress(OSError, ValueError):
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
            self._seconds_away += time.perf_counter() - before

    def speed(self, count: int) -> float:
        """How many per second, if `count` were done since measuring began, without the time `away`."""
        return count / (time.perf_counter() - self._measured_from - self._seconds_away)

    def measure(self) -> None:
        """Begin to measure the speed here."""
        self._measured_from, self._seconds_away = time.perf_counter(), 0.0


def bar(total: int, unit: str, file: Unfailing, initial: int = 0) -> tqdm:
    """A progress bar, which shows itself only where `file` shows bars."""
    hidden = not file.shows_a_bar()
    return tqdm(total=total, initial=initial, file=file, unit=unit, dynamic_ncols=True, disable=hidden)


@contextmanager
def counting(unit: str) -> Iterator[Callable[[int, int], None]]:
    """A function to call with (done, total), which shows a bar inside this context, where there is a place for one."""
    shown: list[tqdm] = []  # made at the first call, which says how much there is

    def count(done: int, total: int) -> None:
        if not shown:
            shown.append(bar(total, unit, Unfailing(sys.stderr)))
        shown[0].update(done - shown[0].n)

    try:
        yield count
    finally:
        for one in shown:
            one.close()


# --- Stopping --------------------------------------------------------------------------------------------

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
]


class Stop:
    """Whether a signal has asked to stop, and which: a plain attribute, which a handler can set at any moment.

    The lock inside a threading.Event is not reentrant: a second signal inside its `set` would wait for ever.
    """

    signal: int | None = None


@contextmanager
def interruptible() -> Iterator[Stop]:
    """Ctrl-C, or another signal to end, sets the `signal` of what this gives, so that no step is cut in two.

    A second Ctrl-C ends the process at once, or raises KeyboardInterrupt in a notebook, whose kernel must
    live. Other signals may come again, because a closing terminal sends them twice, and change nothing. A
    signal that was ignored, as under nohup, stays ignored.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals reach the main thread only
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = {
        number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)
    }
    at_second = signal.default_int_handler if _in_notebook() else signal.SIG_DFL

    def on_signal(number: int, _: object) -> None:
        if number == signal.SIGINT:  # first of all: nothing can keep the next one from its work
            signal.signal(number, at_second)
        stop.signal = stop.signal or number

    try:
        for number in before:
            signal.signal(number, on_signal)
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_notebook() -> bool:
    """Whether this code runs in a cell, which is more than that Jupyter's packages are loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config
