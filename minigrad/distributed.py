"""Several processes that train one model: who they are, and how their arrays are added up.

`mpirun -n 4 python …` starts the same program four times. Each process has a `World`, which says which of them it is
(`rank`, from 0) and how many there are (`size`), and adds up arrays over all of them. What carries the numbers is MPI,
by mpi4py, and between GPUs NCCL, by CuPy. A program that was started alone has `World()`, which does nothing and
imports neither. `GradientBuckets` adds up a model's gradients while the walk back still goes on.

The names are those of `torch.distributed`. Not handled: models that do not fit into one process, and processes that
come or go on the way.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import numpy as np

from minigrad import backend
from minigrad.backend import threads
from minigrad.tensor import Array, Tensor

Value = TypeVar("Value")

BYTES_PER_BUCKET = 2**20
SECONDS_FOR_THE_OTHERS = 3.0  # that a process with an error waits for all others to have one too
SECONDS_FOR_THE_LAUNCHER = (
    0.5  # to read an error's line: Open MPI's drops what it has not read before an abort
)
# What `mpirun` tells the processes that it starts: of Open MPI, and of MPICH and its kin (Intel's, MVAPICH).
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


class DistributedError(RuntimeError):
    """Processes that cannot train one model together, and why."""


class Sum:
    """A sum over all processes that has begun; here, of one process, there is nothing to wait for."""

    def wait(self) -> None:
        """Return when the array holds the sum."""


# --- Worlds ----------------------------------------------------------------------------------------------


class World:
    """The processes that train one model; here, this process alone.

    rank: which of them this is, from 0. size: how many there are. `bytes_given`: how many bytes of arrays this process
    has given to be added up so far.
    """

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.bytes_given = 0

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes, saves and speaks for all."""
        return self.rank == 0

    def start_all_reduce(self, array: Array) -> Sum:
        """Begin to add up an array over all processes, in place; all give arrays of one shape, in the same order.

        array: contiguous. It must be left alone until `wait` of what this returns.
        """
        self.bytes_given += array.nbytes
        return Sum()

    def summed(self, numbers: Sequence[float]) -> list[float]:
        """Each of a few numbers, added up over all processes in float64; it waits."""
        return list(map(float, numbers))

    def broadcast(self, value: Value) -> Value:
        """A small Python object of the first process, in all processes."""
        return value

    def gather(self, value: Value) -> list[Value]:
        """The small Python objects of all processes, by rank, in all processes."""
        return [value]

    def barrier(self) -> None:
        """Wait until all processes are here."""

    def abort(self) -> NoReturn:
        """End all processes at once, with exit status 1."""
        raise SystemExit(1)

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """Let an error in one process end all of them, with one message.

        An error that all have at the same place (a wrong setting) is raised in the first, and ends the others silently.
        One that this process has alone is printed with its rank, and all are ended, for the others may be waiting for
        this one. Errors of a kind that nobody expects are printed with their traceback.
        """
        yield

    def require_the_same(self, what: Mapping[str, Any]) -> None:
        """Raise DistributedError, the same in all processes, naming what is not in one of them what the first has."""
        first, *others = self.gather(dict(what))
        differing = [
            f"{name} is {first.get(name)} in process 0, {theirs.get(name)} in process {rank}"
            for rank, theirs in enumerate(others, 1)
            for name in {**first, **theirs}
            if theirs.get(name) != first.get(name)
        ]
        if differing:
            raise DistributedError(f"the processes do not start alike: {'; '.join(differing)}")


class MPIWorld(World):
    """The processes that `mpirun` has started; what adds up is MPI.

    communicator: mpi4py's, by default of all of them. Arrays are NumPy's.
    """

    def __init__(self, communicator: Any = None) -> None:
        super().__init__()
        from mpi4py import MPI

        self._mpi = MPI
        self._all = MPI.COMM_WORLD if communicator is None else communicator
        self._for_errors = self._all.Dup()  # so that these are not taken for the work's messages
        self.rank, self.size = self._all.Get_rank(), self._all.Get_size()

    def start_all_reduce(self, array: Array) -> Sum:
        """Begin to add up an array over all processes, in place."""
        self.bytes_given += array.nbytes
        return _SumOfMPI(self._all.Iallreduce(self._mpi.IN_PLACE, array))

    def summed(self, numbers: Sequence[float]) -> list[float]:
        """Each of a few numbers, added up over all processes in float64; it waits."""
        array = np.array(numbers, np.float64)
        self._all.Allreduce(self._mpi.IN_PLACE, array)
        return array.tolist()

    def broadcast(self, value: Value) -> Value:
        """A small Python object of the first process, in all processes."""
        return self._all.bcast(value)

    def gather(self, value: Value) -> list[Value]:
        """The small Python objects of all processes, by rank, in all processes."""
        return self._all.allgather(value)

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self._all.Barrier()

    def abort(self) -> NoReturn:
        """End all processes at once, with exit status 1."""
        sys.stderr.flush()
        time.sleep(SECONDS_FOR_THE_LAUNCHER)
        self._all.Abort(1)
        raise SystemExit(1)

    def local_rank(self) -> tuple[int, int]:
        """Which of the processes on this machine this is, and how many they are."""
        here = self._all.Split_type(self._mpi.COMM_TYPE_SHARED)
        return here.Get_rank(), here.Get_size()

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """Let an error in one process end all of them, with one message."""
        stderr = sys.stderr  # of the process: what comes may put another in its place
        try:
            yield
        except BaseException as error:
            if self._all_have_come():
                if self.is_first:
                    raise
                interrupted = isinstance(error, KeyboardInterrupt)
                raise SystemExit(130 if interrupted else 1) from None
            if not isinstance(error, OSError | ValueError | RuntimeError | ArithmeticError | MemoryError):
                traceback.print_exc(file=stderr)
            text = str(error) or type(error).__name__
            print(f"error: process {self.rank} of {self.size}: {text}", file=stderr, flush=True)
            self.abort()

    def _all_have_come(self) -> bool:
        """Whether all processes come to this place within a few seconds."""
        here, until = self._for_errors.Ibarrier(), time.monotonic() + SECONDS_FOR_THE_OTHERS
        while not (done := here.Test()) and time.monotonic() < until:
            time.sleep(0.01)
        return done


class _SumOfMPI(Sum):
    """A sum that MPI makes."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def wait(self) -> None:
        """Return when the array holds the sum."""
        self._request.Wait()


class NCCLWorld(MPIWorld):
    """Processes with a GPU each: NCCL adds up what is there, MPI what is on the host.

    It has not been run on two GPUs: its tests replace NCCL by a stand-in. Raises DistributedError if there are fewer
    GPUs on a machine than processes.
    """

    def __init__(self, communicator: Any = None) -> None:
        super().__init__(communicator)
        from minigrad.backend import nccl

        (rank, processes), gpus = self.local_rank(), nccl.device_count()
        if max(self._all.allgather(processes - gpus)) > 0:
            raise DistributedError(
                f"there are {processes} processes on this machine and {gpus} GPUs: each process needs a GPU of its own"
            )
        nccl.use_device(rank)
        self._gpus = nccl.GPUs(self.rank, self.size, self.broadcast)

    def start_all_reduce(self, array: Array) -> Sum:
        """Begin to add up an array over all processes, in place; later kernels wait for the sum, the host does not."""
        if isinstance(array, np.ndarray):
            return super().start_all_reduce(array)
        self.bytes_given += array.nbytes
        return _SumOfNCCL(self._gpus.start_sum(array))


class _SumOfNCCL(Sum):
    """A sum that NCCL makes; wait: what lets later kernels wait for it."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait

    def wait(self) -> None:
        """Let all later kernels wait for the sum."""
        self._wait()


def from_environment() -> World:
    """The world of this process: of all that `mpirun` has started, or of itself alone, if nobody did.

    The cores of a machine are shared out over its processes. Raises DistributedError if mpi4py is missing, finds no
    MPI, or finds another MPI than the one whose `mpirun` this was.
    """
    said = next((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()), 1)
    if said < 2:
        return World()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI that it could load
        raise DistributedError(
            f"mpirun has started {said} processes, but they cannot speak to one another: {error}; "
            "install mpi4py and an MPI: pip install mpi4py mpich"
        ) from None
    found = MPI.COMM_WORLD.Get_size()
    if found != said:
        library = MPI.Get_library_version().split(",")[0].split("\n")[0].strip()
        raise DistributedError(
            f"mpirun has started {said} processes, but mpi4py finds {found}: it uses another MPI ({library}) than "
            "that of this mpirun"
        )
    world = NCCLWorld() if backend.default().name == "cupy" else MPIWorld()
    threads.share_cores(world.local_rank()[1])
    return world


# --- Shares of a batch -----------------------------------------------------------------------------------


class Share:
    """The rows of a batch that one of several computes: as many as each other, or one more.

    Each process has shares of the batch, and each core of a process has one of these; all are counted through.

    whole: the batch, arrays of as many rows. number, count: which of how many shares. rows: which rows these are.
    batch: the arrays of these rows. places: where the rows of the arrays in the model stand in those of the whole
    batch, as `random.rows_of_the_whole` takes it.
    """

    def __init__(self, whole: dict[str, Array], number: int, count: int) -> None:
        self.whole, self.count = whole, count
        rows = len(next(iter(whole.values())))
        self.rows = range(number * rows // count, (number + 1) * rows // count)
        self.batch = whole if count == 1 else {name: self.rows_of(array) for name, array in whole.items()}
        self.places = {len(self.rows): [self.rows]}

    def rows_of(self, array: Array) -> Array:
        """Those of an array's rows that are the share's."""
        return array[self.rows.start : self.rows.stop]

    def weight(self, counted: Array) -> float:
        """By how much a mean over the share counts in the mean over the whole batch.

        counted: of the whole batch, true for each token, or each row, that the mean is over.
        """
        return int(self.rows_of(counted).sum()) / int(counted.sum())


# --- Gradients -------------------------------------------------------------------------------------------


def ring_bytes(size: int, gradient_bytes: int) -> float:
    """How many bytes a process sends to add up `gradient_bytes` over `size` processes in a ring: 2 (n - 1) / n of them.

    Each part goes n - 1 times on while it is added up, and as often while the sums are handed round (Patarasuk & Yuan
    2009).
    """
    return 2 * (size - 1) / size * gradient_bytes


class _Bucket:
    """Some parameters, and one array for all their gradients."""

    def __init__(self, members: list[tuple[int, Tensor]]) -> None:
        first = members[0][1].data
        self.parameters = [parameter for _, parameter in members]
        self.numbers = [number for number, _ in members]
        sizes = [parameter.size for parameter in self.parameters]
        flat = backend.of(first).xp.empty(sum(sizes), first.dtype)
        ends = np.cumsum(sizes).tolist()
        self.flat = flat
        self.places = [
            flat[end - p.size : end].reshape(p.shape) for end, p in zip(ends, self.parameters, strict=True)
        ]
        self.waiting = len(members)  # of its gradients
        self.sum: Sum | None = None


class GradientBuckets:
    """Adds up the gradients of some parameters over all processes, while the walk back still goes on.

        with buckets.summing():
            loss.backward()

    A gradient is copied into its bucket as soon as it is complete (`register_post_accumulate_grad_hook`). A full bucket
    is added up while the gradients of the next one are computed. At the end of the context `.grad` holds the sums.

    parameters: by name, in the order in which the model uses them, the same in all processes. The last ones have their
    gradients first, so the buckets are filled from the end. bytes_per_bucket: how many bytes of gradients are added up
    at once, at least one parameter's: few large ones cost less, many small ones begin earlier.

    Raises DistributedError where a parameter has a gradient in some processes and in others not; one that has none in
    all of them stays without.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], world: World, bytes_per_bucket: int = BYTES_PER_BUCKET
    ) -> None:
        if bytes_per_bucket < 1:
            raise ValueError(f"bytes_per_bucket must be at least 1, got {bytes_per_bucket}")
        self.world = world
        self.names = [name for name, parameter in parameters.items() if parameter.requires_grad]
        self.bytes = sum(parameters[name].data.nbytes for name in self.names)  # of all gradients together
        self._buckets: list[_Bucket] = []
        if world.size == 1:
            return
        members: list[tuple[int, Tensor]] = []
        for number, name in reversed(list(enumerate(self.names))):
            parameter = parameters[name]
            together = [*members, (number, parameter)]
            size = sum(one.data.nbytes for _, one in together)
            if members and (size > bytes_per_bucket or members[0][1].dtype != parameter.dtype):
                self._buckets.append(_Bucket(members))
                together = together[-1:]
            members = together
        if members:
            self._buckets.append(_Bucket(members))

    @contextmanager
    def summing(self, last: bool = True, as_they_come: bool = True) -> Iterator[None]:
        """Add up the gradients that are computed inside this context.

        last: False for micro-batches before the last. as_they_come: False where a gradient is not yet complete when the
        engine says so, because other shares' are added to it; then the sums begin at the end.
        """
        if self.world.size == 1 or not last:
            yield
            return
        arrived: set[int] = set()
        with contextlib.ExitStack() as hooks:
            for bucket in self._buckets:
                bucket.waiting, bucket.sum = len(bucket.parameters), None
                if not as_they_come:
                    continue
                for place, number, parameter in zip(
                    bucket.places, bucket.numbers, bucket.parameters, strict=True
                ):

                    def arrive(
                        tensor: Tensor, bucket: _Bucket = bucket, place: Array = place, number: int = number
                    ) -> None:
                        place[...] = tensor.grad
                        arrived.add(number)
                        bucket.waiting -= 1
                        self._start_full_ones()

                    hooks.callback(parameter.register_post_accumulate_grad_hook(arrive).remove)
            yield
        self._finish(arrived)

    def _start_full_ones(self) -> None:
        """In their order: all processes must begin the same sums one after the other."""
        for bucket in self._buckets:
            if bucket.sum is not None:
                continue
            if bucket.waiting:
                break
            bucket.sum = self.world.start_all_reduce(bucket.flat)

    def _finish(self, arrived: set[int]) -> None:
        """Fill what is missing, wait for all sums, and put them into `.grad`."""
        there = [0.0] * len(self.names)
        for bucket in self._buckets:
            for place, number, parameter in zip(
                bucket.places, bucket.numbers, bucket.parameters, strict=True
            ):
                there[number] = float(parameter.grad is not None)
                if number not in arrived:  # not from the last micro-batch
                    place[...] = 0 if parameter.grad is None else parameter.grad
            bucket.waiting = 0
        self._start_full_ones()
        for name, count in zip(self.names, self.world.summed(there), strict=True):
            if 0 < count < self.world.size:
                raise DistributedError(
                    f"{name} has a gradient in {count:.0f} of {self.world.size} processes: all must use the same "
                    "parameters"
                )
        for bucket in self._buckets:
            assert bucket.sum is not None
            bucket.sum.wait()
            for place, parameter in zip(bucket.places, bucket.parameters, strict=True):
                if parameter.grad is not None:
                    parameter.grad[...] = place
