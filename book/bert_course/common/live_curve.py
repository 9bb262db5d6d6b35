"""A loss that falls while the reader looks on, in Jupyter and in a page, where Stop keeps what was learned."""

from __future__ import annotations

import importlib
import time
from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, figure
from minigrad.training.progress import interruptible

EVERY = 0.5  # seconds between two pictures
MEAN_OF = 10  # steps that the thick line averages


class LiveCurve:
    """The steps of a training and their losses, drawn while it runs.

    steps: trains a step each time it is asked for the next loss. loss: its name on the axis. floor: the best possible
    one, if known.
    """

    def __init__(
        self, steps: Iterator[float], loss: str = "loss in nats", floor: float | None = None
    ) -> None:
        self.steps, self.loss, self.floor = steps, loss, floor
        self.losses: list[float] = []
        self._end = 0  # of the horizontal axis: the step up to which it was told to train

    def run(self, count: int) -> None:
        """Train `count` steps more, or as many as there are. Stopped, it keeps what it has; the next run goes on.

        Raises ValueError unless count is at least 1.
        """
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        self._end = len(self.losses) + count
        work = self._work(count)
        shell = _ipython("get_ipython")
        if hasattr(shell, "in_slices"):  # a page hears its reader only between them
            return shell.in_slices(work)
        with interruptible() as stop:
            for _ in work:
                if stop.signal is not None:
                    work.close()
                    print(f"stopped after step {len(self.losses):,}; run the cell again, and it goes on")
                    break
        return None

    def _work(self, count: int) -> Generator[None]:
        display = _ipython("display.display") if _ipython("get_ipython") is not None else None
        shown = display(Nothing(), display_id=True) if display else None
        if shown and self.losses:
            shown.update(self)
        drawn = time.monotonic()
        try:
            for loss in islice(self.steps, count):
                self.losses.append(float(loss))
                if shown and time.monotonic() - drawn > EVERY:
                    shown.update(self)
                    drawn = time.monotonic()
                yield
        finally:
            if display and shown:  # what a notebook keeps is the same whether somebody looked on or not
                shown.update(Nothing())
                display(self)

    def means(self) -> np.ndarray:
        """For each step the mean loss of the last `MEAN_OF` up to it (n,)."""
        sums = np.concatenate([[0.0], np.cumsum(self.losses)])  # (n + 1,)
        ends = np.arange(1, len(sums))  # (n,)
        begins = np.maximum(0, ends - MEAN_OF)  # (n,)
        return (sums[ends] - sums[begins]) / (ends - begins)

    def _repr_html_(self) -> str:
        return figure(self._plot, repr(self), (5.4, 2.8))._repr_html_()

    def __repr__(self) -> str:
        if not self.losses:
            return "step 0"
        floor = "" if self.floor is None else f", best possible {self.floor:.2f}"
        return f"step {len(self.losses)}: {self.means()[-1]:.2f}{floor}"

    def _plot(self, canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        steps = np.arange(1, len(self.losses) + 1)
        axes.plot(steps, self.losses, color=colours["first"], linewidth=0.8, alpha=0.4)
        axes.plot(steps, self.means(), color=colours["first"], linewidth=2)
        if self.floor is not None:
            axes.axhline(self.floor, color=colours["second"], linewidth=1, linestyle="--")
            axes.text(
                self._end, self.floor, "best possible", color=colours["second"], ha="right", va="bottom"
            )
        axes.set_xlim(0, 1.02 * self._end)  # room for the last number
        axes.set_ylim(0, max([*self.losses, 1.0]) * 1.05)
        axes.set_xlabel("steps")
        axes.set_ylabel(self.loss)


class Nothing:
    """What stands in the place of the moving picture before and after it moves."""

    def _repr_html_(self) -> str:
        return ""

    def __repr__(self) -> str:
        return ""


def _ipython(name: str) -> Any:
    """Something of IPython's, or None where there is none."""
    try:
        found: Any = importlib.import_module("IPython")
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found() if name == "get_ipython" else found
