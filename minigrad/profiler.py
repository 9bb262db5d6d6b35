"""Where the time of a step goes: seconds by operation, forward and backward.

>>> from minigrad import Tensor, profiler
>>> x = Tensor([1.0, 2.0], requires_grad=True)
>>> with profiler.profile() as report:
...     (x * x).sum().backward()
>>> sorted(row.op for row in report.rows if row.calls)
['mul', 'sum']

Nothing is measured, and nothing costs, outside the context: inside it, the operations' names lead to wrappers
that switch one stopwatch to the operation and back. The stopwatch runs for one row at a time, so that an
operation which calls another is not charged for it, and the rows add up to the whole.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from minigrad import backend, ops, optim, random
from minigrad.graph import Array, Backward, op_name
from minigrad.tensor import ArrayLike, Tensor

ENGINE, DROPOUT_DRAWS, CLIPPING = "adding up gradients", "dropout's draws", "clip_grad_norm"
ELSE = "everything else"

FORWARD, BACKWARD, OUTSIDE = range(3)  # where a row's time is spent; OUTSIDE: neither


@dataclass(frozen=True)
class Row:
    """What one operation took; `ms` is the sum of forward pass, backward pass and what is neither.

    op: its name, as nodes of the graph have it. calls: in the forward pass. share: of the report's total, 0 … 1.
    """

    op: str
    calls: int
    forward_ms: float
    backward_ms: float
    ms: float
    share: float


@dataclass
class _Account:
    calls: int = 0
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])


class Report:
    """What `profile` measured: `rows`, the longest first, `total_ms`, their sum, and as text a table.

    Rows that are no operations: "adding up gradients" (the walk through the graph without the operations'
    own backward), "dropout's draws", "clip_grad_norm", the optimiser ("AdamW.step"), and "everything else".
    """

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._running: tuple[str, int] | None = None  # the row and phase that the stopwatch runs for
        self._since = 0.0
        self._thread = threading.get_ident()  # that is measured

    @property
    def rows(self) -> list[Row]:
        """One row for each operation that was called, the longest first."""
        total = sum(sum(account.seconds) for account in self._accounts.values())
        rows = [
            Row(
                op,
                account.calls,
                account.seconds[FORWARD] * 1000,
                account.seconds[BACKWARD] * 1000,
                sum(account.seconds) * 1000,
                sum(account.seconds) / total if total else 0.0,
            )
            for op, account in self._accounts.items()
        ]
        return sorted(rows, key=lambda row: -row.ms)

    @property
    def total_ms(self) -> float:
        """Milliseconds from the start of the context to its end."""
        return sum(row.ms for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{'op':30}{'calls':>8}{'forward ms':>13}{'backward ms':>13}{'ms':>11}{'share':>9}"]
        lines += [
            f"{row.op:30}{row.calls:8}{row.forward_ms:13.2f}{row.backward_ms:13.2f}{row.ms:11.2f}{row.share:9.1%}"
            for row in self.rows
        ]
        lines.append(f"{'all':30}{'':8}{'':13}{'':13}{self.total_ms:11.2f}{1:9.1%}")
        return "\n".join(lines)

    # --- The stopwatch -----------------------------------------------------------------------------------

    def _switch(self, to: tuple[str, int] | None) -> tuple[str, int] | None:
        """Let the stopwatch run for another row and phase; returns the one it ran for."""
        backend.default().synchronize()  # a GPU works on after the call has returned
        now = time.perf_counter()
        before = self._running
        if before is not None:
            op, phase = before
            self._accounts.setdefault(op, _Account()).seconds[phase] += now - self._since
        self._running, self._since = to, now
        return before

    @contextmanager
    def _measured(self, op: str, phase: int) -> Iterator[None]:
        if threading.get_ident() != self._thread:
            yield
            return
        before = self._switch((op, phase))
        try:
            yield
        finally:
            self._switch(before)

    def _call(
        self, op: str, phase: int, function: Callable[..., Any], *args: object, **kwargs: object
    ) -> Any:
        """Call `function` on the account of `op`."""
        with self._measured(op, phase):
            if threading.get_ident() == self._thread:
                self._accounts.setdefault(op, _Account()).calls += 1
            return function(*args, **kwargs)


_active: Report | None = None


@contextmanager
def profile() -> Iterator[Report]:
    """Measure what is called inside the context: `with profile() as report: step()`, then `print(report)`.

    Of several threads that share a batch (`training.shares`), the one that entered the context is measured: its share,
    and as "everything else" that it waits for the others. On a GPU each operation is waited for, so that the whole
    takes longer than without. An operation that was imported by its own name (`from minigrad.ops import softmax`)
    before the context is not seen, and counts as "everything else"; of a graph recorded before it, the backward pass
    counts as "adding up gradients". Raises RuntimeError inside another `profile()`.
    """
    global _active
    if _active is not None:
        raise RuntimeError("profile(): another profile() is running; they cannot be nested")
    _active = report = Report()
    undo = _wrap_everything(report)
    report._switch((ELSE, OUTSIDE))
    try:
        yield report
    finally:
        report._switch(None)
        for owner, name, original in reversed(undo):
            setattr(owner, name, original)
        _active = None


# --- Wrapping --------------------------------------------------------------------------------------------


def _wrap_everything(report: Report) -> list[tuple[Any, str, Any]]:
    """Put wrappers in the places through which everything is called; returns what stood there."""
    undo: list[tuple[Any, str, Any]] = []

    def put(owner: object, name: str, wrapper: object) -> None:
        undo.append((owner, name, vars(owner)[name]))
        setattr(owner, name, wrapper)

    def timed(function: Callable[..., Any], op: str, phase: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Any:
            return report._call(op, phase, function, *args, **kwargs)

        return wrapper

    operations = {
        function: timed(function, function.__name__, FORWARD)
        for module in (*ops.MODULES, ops.composed)
        for function in (vars(module)[name] for name in module.__all__)
    }
    for owner in (ops, *ops.MODULES, ops.composed, Tensor):
        for name, value in list(vars(owner).items()):
            if callable(value) and value in operations:
                put(owner, name, operations[value])

    put(Tensor, "from_op", staticmethod(_from_op(report)))
    walk = Tensor.backward

    @functools.wraps(walk)
    def backward(tensor: Tensor, gradient: Tensor | ArrayLike | None = None) -> None:
        with report._measured(ENGINE, BACKWARD):
            walk(tensor, gradient)

    put(Tensor, "backward", backward)
    put(random, "keep_mask", timed(random.keep_mask, DROPOUT_DRAWS, FORWARD))
    put(optim, "clip_grad_norm", timed(optim.clip_grad_norm, CLIPPING, OUTSIDE))
    for kind in _with_subclasses(optim.Optimizer):
        if "step" in vars(kind):
            put(kind, "step", _optimizer_step(report, vars(kind)["step"]))
    return undo


def _from_op(report: Report) -> Callable[..., Tensor]:
    """`Tensor.from_op`, with the time of its `backward` on the account of the operation that defined it."""
    from_op = Tensor.from_op

    def wrapper(y: Array, parents: Iterable[Tensor], backward: Backward) -> Tensor:
        op = op_name(backward)

        @functools.wraps(backward)  # from_op, too, looks at its name
        def timed(dy: Array) -> Any:
            if _active is not report:  # the graph has outlived the context
                return backward(dy)
            with report._measured(op, BACKWARD):
                return backward(dy)

        return from_op(y, parents, timed)

    return wrapper


def _optimizer_step(report: Report, step: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(step)
    def wrapper(optimizer: optim.Optimizer, *rates: Any) -> None:
        report._call(f"{type(optimizer).__name__}.step", OUTSIDE, step, optimizer, *rates)

    return wrapper


def _with_subclasses(kind: type) -> list[type]:
    kinds = [kind]
    children: list[type] = kind.__subclasses__()
    for child in children:
        kinds += _with_subclasses(child)
    return kinds
