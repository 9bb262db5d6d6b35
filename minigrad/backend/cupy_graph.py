"""A step that is launched as a whole: recorded once, as a CUDA graph.

Each launch costs Python and the driver some ten microseconds, and a training step has a thousand of them. A graph is
the list of these launches with their addresses and numbers, and one launch starts them all. So whatever changes from
step to step has to lie on the device, where it is filled in before: a number that a launch took from the host would
stay what it was when it was recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import cupy as xp
import numpy as np

from minigrad.backend import Step

Array = Any  # cupy.ndarray; CuPy ships no types

ALIGNED = 256  # bytes from one input to the next are a multiple of it
WARM_UP = 2  # steps: kernels are compiled, and the pool has all memory that a step needs

# Of the step that is being recorded: tables on the device, and what will be in them
_tables: ContextVar[list[tuple[Array, np.ndarray]] | None] = ContextVar("tables", default=None)


def table(values: np.ndarray) -> Array:
    """`values` on the device. While a step is recorded nothing comes from the host: it is filled in afterwards, before
    the first launch that reads it; so it must not lie in the step's own memory, which the step writes over."""
    tables = _tables.get()
    if tables is None:
        return xp.asarray(values)
    with xp.cuda.using_allocator():  # of CUDA itself, in no pool
        array = xp.empty(values.shape, values.dtype)
    tables.append((array, values))
    return array


class _Inputs:
    """The arrays that a step takes, one after the other in a block on the device, and where they come from.

    The host fills one of two blocks of its own, which are pinned, so that their copy waits for nobody; it fills the
    other one while the first is still being copied.
    """

    def __init__(self, inputs: Mapping[str, np.ndarray]) -> None:
        self.kinds = _kinds(inputs)
        places, end = {}, 0
        for name, array in inputs.items():
            places[name] = slice(end, end + array.nbytes)
            end += -(-array.nbytes // ALIGNED) * ALIGNED
        self.block = xp.empty(end, np.uint8)
        self.arrays = self._views(self.block, places)
        pinned = [np.frombuffer(xp.cuda.alloc_pinned_memory(end), np.uint8, end) for _ in range(2)]
        self._hosts = [(host, self._views(host, places), xp.cuda.Event()) for host in pinned]

    def _views(self, block: Any, places: Mapping[str, slice]) -> dict[str, Any]:
        return {
            name: block[places[name]].view(dtype).reshape(shape)
            for name, (shape, dtype) in self.kinds.items()
        }

    def fill(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Copy arrays of the same shapes to the device, on the current stream."""
        host, views, copied = self._hosts[0]
        copied.synchronize()
        for name, array in inputs.items():
            views[name][...] = array
        stream = xp.cuda.get_current_stream()
        self.block.data.copy_from_host_async(host.ctypes.data, host.nbytes, stream)
        copied.record(stream)
        self._hosts.reverse()


def _kinds(inputs: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    return {name: (array.shape, array.dtype) for name, array in inputs.items()}


class Recorded:
    """A step that runs twice as it is, is then recorded, and from then on launched; see `numpy.recorded`."""

    def __init__(
        self, step: Step, lasting: Callable[[], Sequence[Array]], say: Callable[[str], object]
    ) -> None:
        self._step, self._lasting, self._say = step, lasting, say
        self.pool, self._stream = xp.cuda.MemoryPool(), xp.cuda.Stream(non_blocking=True)
        self._inputs: _Inputs | None = None
        self._said_other_shape = self._refused = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._graph: Any = None
        self._warmed_up, self._of_graph = 0, self._lasting()

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> Array:
        if self._inputs is None:
            self._inputs = _Inputs(inputs)
        arrays = self._inputs.arrays
        if _kinds(inputs) != self._inputs.kinds:
            if not self._said_other_shape:
                self._said_other_shape = True
                self._say("a batch has another shape than the first: its step is not launched as a whole")
            return self._step({name: xp.asarray(array) for name, array in inputs.items()})
        self._inputs.fill(inputs)
        if self._refused:
            return self._step(arrays)
        if any(a is not b for a, b in zip(self._lasting(), self._of_graph, strict=True)):
            self._begin_anew()
        if self._warmed_up < WARM_UP:
            self._warmed_up += 1
            return self._on_own_stream(lambda: self._step(arrays)).copy()
        if self._graph is None:
            self._record(arrays)
            if self._refused:
                return self._step(arrays)
        self._graph.launch()
        return self._output.copy()  # the next launch writes over it

    def _on_own_stream(self, work: Callable[[], Any]) -> Any:
        """`work` on the graph's stream and with its memory, after all that came before; waits for its end."""
        xp.cuda.Device().synchronize()
        with self._stream, xp.cuda.using_allocator(self.pool.malloc):
            result = work()
        self._stream.synchronize()
        return result

    def _record(self, arrays: dict[str, Array]) -> None:
        """Make the graph; if that is refused, say why."""
        tables: list[tuple[Array, np.ndarray]] = []
        before = _tables.set(tables)
        try:
            self._graph, self._output = self._on_own_stream(lambda: self._captured(arrays))
        except Exception as error:
            self._refused = True
            self._say(f"the step is not launched as a whole: {error}")
            self.pool.free_all_blocks()  # from now on steps take their memory elsewhere
            return
        finally:
            _tables.reset(before)
        for array, values in tables:
            array.set(values)
        self._tables_of_graph = tables  # kept for as long as the graph reads them

    def _captured(self, arrays: dict[str, Array]) -> tuple[Any, Array]:
        before = self.pool.total_bytes()
        try:
            self._stream.begin_capture()
            output = self._step(arrays)
        except BaseException:
            with contextlib.suppress(Exception):  # what was refused may have ended the capture too
                self._stream.end_capture()
            raise
        graph = self._stream.end_capture()
        # For want of memory the pool gave back what is in the graph already
        if self.pool.total_bytes() < before:
            raise MemoryError("the device has too little memory for it")
        return graph, output
