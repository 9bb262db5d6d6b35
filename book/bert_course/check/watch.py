"""While an answer runs: say where it is if that takes long, hold what it prints to a few lines, and put back what it
changes for all (random state, print options, warnings)."""

from __future__ import annotations

import contextlib
import inspect
import io
import random as python_random
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from minigrad import random

PATIENCE = 4.0  # seconds without an answer after which the check says where it is
LINES, CHARACTERS = 12, 2000  # of what an answer prints, that are shown


class Excerpt(io.TextIOBase):
    """A stream that passes its first lines on to another and counts the rest."""

    def __init__(self, target: TextIO) -> None:
        self.target = target
        self.lines = self.characters = 0  # shown
        self.open_line = False  # what was shown last does not end its line
        self.rest = ""  # the end of what is not shown
        self.dropped = 0  # lines of it that end

    def write(self, text: str) -> int:
        """Pass on what is within the limits. Returns the length of the text, as a stream does."""
        for line in text.splitlines(keepends=True):
            ends = line.endswith("\n")
            if self.rest or self.lines >= LINES or self.characters + len(line) > CHARACTERS:
                self.rest = line
                self.dropped += ends
                continue
            self.target.write(line)
            self.lines += ends
            self.characters += len(line)
            self.open_line = not ends
        return len(text)

    def lines_left_out(self) -> int:
        """How many lines were not shown, one without an end among them."""
        return self.dropped + bool(self.rest and not self.rest.endswith("\n"))

    def flush(self) -> None:
        """As a stream does."""
        self.target.flush()

    def writable(self) -> bool:
        """It takes text."""
        return True


class Watch:
    """What an answer prints over all its cases, and at which case it is."""

    def __init__(self) -> None:
        self.streams: tuple[Excerpt, ...] = Excerpt(sys.stdout), Excerpt(sys.stderr)
        self.case = ""  # "case 3 of 6, a row of equal scores", while one runs

    @contextlib.contextmanager
    def at(self, name: str, case: str) -> Iterator[None]:
        """While `case` of the exercise `name` runs: its output held, and a line if it takes long."""
        self.case = case
        shown = sys.stdout
        words = f"{name}: still at {case}. Interrupt the kernel to stop."

        def say() -> None:
            shown.write(words + "\n")
            shown.flush()

        timer = threading.Timer(PATIENCE, say)
        timer.daemon = True
        with contextlib.suppress(RuntimeError):  # where no thread can start (WebAssembly), nobody says it
            timer.start()
        try:
            with contextlib.redirect_stdout(self.streams[0]), contextlib.redirect_stderr(self.streams[1]):
                yield
        finally:
            timer.cancel()
        self.case = ""

    def close(self) -> None:
        """End the last line that was shown, and say how many are not; once."""
        streams, self.streams = self.streams, ()
        for stream in streams:
            if stream.open_line:
                stream.target.write("\n")
        if dropped := sum(stream.lines_left_out() for stream in streams):
            lines = (
                "line that your answer printed is" if dropped == 1 else "lines that your answer printed are"
            )
            print(f"(… {dropped:,} more {lines} not shown.)")


@contextlib.contextmanager
def no_trace() -> Iterator[None]:
    """What an answer changes for all ends here: random states, NumPy's settings, filters of warnings."""
    states = np.random.get_state(), python_random.getstate(), random.get_state()
    with np.printoptions(), np.errstate(), warnings.catch_warnings():
        try:
            yield
        finally:
            np.random.set_state(states[0])
            python_random.setstate(states[1])
            random.set_state(states[2])


@contextlib.contextmanager
def silent_lapack() -> Iterator[None]:
    """A fit to NaN fails before LAPACK sees it, which writes lines of its own, past Python, before NumPy raises."""
    fit, places = np.linalg.lstsq, (vars(np.linalg), inspect.unwrap(np.polyfit).__globals__)

    def finite(a: Any, b: Any, *more: Any, **named: Any) -> Any:
        if not all(np.isfinite(one).all() for one in (a, b)):
            raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")
        return fit(a, b, *more, **named)

    try:
        for place in places:
            place["lstsq"] = finite
        yield
    finally:
        for place in places:
            place["lstsq"] = fit
