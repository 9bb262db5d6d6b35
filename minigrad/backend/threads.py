"""How the CPU's work is shared: in blocks small enough for a cache, a part of them for each core.

A NumPy expression such as `0.5 * x * (1 + t)` makes a pass over main memory for each operator. `in_blocks` calls a
kernel with the same few rows of each array instead, so that what one operator writes can still be in the cache
when the next one reads it. NumPy lets go of the interpreter lock inside an operator, so blocks are also shared over the
processor's cores. Where blocks end does not depend on the number of threads, so neither do results.

A signal's exception (Ctrl-C in a notebook) may come between any two instructions of the main thread. So nothing
here holds a lock across Python code: work goes through queues written in C, and what was changed for a while is put
back twice, as one exception can only cut short one of the two.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

# Numbers in a block: 512 KiB of float32. A compromise: a smaller block fits into a cache nearer to the core, but a
# thread asks for the interpreter lock after every operator on a block, so with smaller blocks it asks more often.
BLOCK = 2**17


def cores() -> int:
    """How many cores this process may use; 1 where no thread can start, as in WebAssembly."""
    if sys.platform == "emscripten":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


THREADS = cores()

# --- Blocks ----------------------------------------------------------------------------------------------


def in_blocks(kernel: Callable[..., Any], *arrays: Any, **same: Any) -> list[Any]:
    """Call `kernel(*blocks, **same)` for each block of rows, shared over threads; what the calls return, in order.

    arrays: of as many rows each (a `range` will do too), or None, whose blocks are None. The first one says how long
    a row is. same: what every block gets whole. There is a block even where there are no rows.
    """
    first, *_ = arrays
    rows = len(first)
    if first.size <= BLOCK:
        return [kernel(*arrays, **same)]
    most = max(1, BLOCK * rows // max(1, first.size))  # in a block
    count = max(1, -(-rows // most))
    step = -(-rows // count)
    results: list[Any] = [None] * count

    def run(numbers: range) -> None:
        for i in numbers:
            block = slice(i * step, (i + 1) * step)
            results[i] = kernel(*(None if array is None else array[block] for array in arrays), **same)

    share(run, range(count))
    return results


# --- Threads ---------------------------------------------------------------------------------------------


class _Workers:
    """Threads that wait for work. They are daemons: the interpreter's end does not wait for them."""

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._serve, name=f"minigrad-{number}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._work.get()()

    def start(self, context: Context, run: Callable[[range], None], items: range, done: SimpleQueue) -> None:
        """Let a thread call `run(items)` in a context; `done` gets the exception that it raised, or None."""

        def work() -> None:
            try:
                context.run(run, items)
            except BaseException as error:
                done.put(error)
            else:
                done.put(None)

        self._work.put(work)


_workers: _Workers | None = None  # made at the first use, and again in a forked process
# whether the work here is a part of what is shared already
_in_a_part = ContextVar("in_a_part", default=False)


def share(run: Callable[[range], None], items: range) -> None:
    """Call `run` on parts of `items`, one for each thread; the calling thread works too.

    Returns, or raises what a part has raised, when all parts are done. Inside a part, what is shared is not shared
    again: `run` gets all items there.
    """
    # When the interpreter ends, its threads stand still for ever.
    workers = None if len(items) < 2 or _in_a_part.get() or sys.is_finalizing() else _workers_here()
    if workers is None:
        run(items)
        return
    part = -(-len(items) // THREADS)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    started = 0
    errors: list[BaseException | None] = []
    context = copy_context()  # there `numpy.errstate` keeps its settings, and the engine its own
    context.run(_in_a_part.set, True)
    try:
        for first in range(part, len(items), part):
            workers.start(context.copy(), run, items[first : first + part], done)
            started += 1
        context.run(run, items[:part])
    finally:  # also after an exception: nobody shall go on writing into arrays when this returns
        while len(errors) < started:
            errors.append(done.get())
    for error in errors:
        if error is not None:
            raise error


def alone() -> bool:
    """Whether what is shared here stays in this thread: there is one core, or this is a part of what is shared."""
    return THREADS == 1 or _in_a_part.get()


def _workers_here() -> _Workers | None:
    """The threads beside the caller's, or None where there is one core, or threads cannot start (WebAssembly)."""
    global _workers, THREADS
    if _workers is None and THREADS > 1:
        try:
            _workers = _Workers(THREADS - 1)
        except RuntimeError:
            THREADS = 1
    return _workers if THREADS > 1 else None


# Two of the user's threads may add to the gradient of one leaf, or change leaves: see graph.py
lock = threading.Lock()


def _after_fork() -> None:
    """A forked process has none of its parent's threads, one of which may have held the lock."""
    global _workers, lock
    _workers = None
    lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- The BLAS' own threads -------------------------------------------------------------------------------

_blas = ThreadpoolController().select(user_api="blas").lib_controllers


def _set_blas_threads(counts: list[int]) -> None:
    for library, count in zip(_blas, counts, strict=True):
        library.set_num_threads(count)


# OpenBLAS lets the number of its threads be changed only by the thread that did so first: here, by the one that
# imports minigrad.
_set_blas_threads([library.num_threads for library in _blas])
_blas_owner = threading.get_ident()


def on_one_blas_thread(work: Callable[..., Result], *arguments: object, **settings: object) -> Result:
    """`work(*arguments, **settings)` with the BLAS on one thread, which gets its threads back.

    The BLAS would put all its threads to each product in turn, and these would compete with our own threads for
    the cores. In another thread than the one that imported minigrad, the BLAS keeps its threads (OpenBLAS lets
    nobody else change it), and `work` competes with them.
    """
    if threading.get_ident() != _blas_owner:
        return work(*arguments, **settings)
    before = [library.num_threads for library in _blas]
    try:
        try:
            _set_blas_threads([1] * len(_blas))
            return work(*arguments, **settings)
        finally:
            _set_blas_threads(before)
    finally:
        _set_blas_threads(before)


# --- Several processes -----------------------------------------------------------------------------------


def share_cores(processes: int) -> None:
    """Use this process's part of the cores, if so many processes share the machine: at least one, and no more than now.

    To be called before any work is shared, in the thread that imported minigrad.
    """
    global THREADS
    part = max(1, (os.cpu_count() or 1) // processes)
    THREADS = min(THREADS, part)
    _set_blas_threads([min(library.num_threads, part) for library in _blas])
