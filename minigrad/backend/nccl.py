"""Sums over the GPUs of several processes: NCCL, as CuPy has it. It is imported where there is more than one.

It has not been run on two GPUs: its tests replace NCCL by a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
from cupy.cuda import nccl

Array = Any  # a CuPy ndarray


def device_count() -> int:
    """How many GPUs this process sees."""
    return cupy.cuda.runtime.getDeviceCount()


def use_device(number: int) -> None:
    """Make new arrays on the GPU with this number, from 0, and run kernels there."""
    cupy.cuda.Device(number).use()


class GPUs:
    """The GPUs of all processes, one each, which add up arrays.

    rank, size: which of the processes this is, and how many there are. broadcast: takes an object, and returns that of
    the process with rank 0, in all of them.

    A sum runs beside the kernels, on a stream of its own: the host does not wait for it.
    """

    def __init__(self, rank: int, size: int, broadcast: Callable[[Any], Any]) -> None:
        number = broadcast(nccl.get_unique_id() if rank == 0 else None)
        self._communicator = nccl.NcclCommunicator(size, number, rank)
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def start_sum(self, array: Array) -> Callable[[], None]:
        """Begin to add up an array of float32 or float64 in place; what this returns makes later kernels wait."""
        kinds = {"float32": nccl.NCCL_FLOAT32, "float64": nccl.NCCL_FLOAT64}
        self._stream.wait_event(cupy.cuda.get_current_stream().record())  # the array must have been computed
        where, kind = array.data.ptr, kinds[array.dtype.name]
        self._communicator.allReduce(where, where, array.size, kind, nccl.NCCL_SUM, self._stream.ptr)
        done = self._stream.record()
        return lambda: cupy.cuda.get_current_stream().wait_event(done)
