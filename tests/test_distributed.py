"""Worlds of processes, and buckets of gradients; what needs several processes is in bert/test_processes.py."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, backend, ops
from minigrad.backend import threads
from minigrad.distributed import (
    DistributedError,
    GradientBuckets,
    NCCLWorld,
    Sum,
    World,
    from_environment,
    ring_bytes,
)


class Twins(World):
    """Two processes of which the other does what this one does, so that each sum is twice what is here."""

    size = 2

    def __init__(self, on_start=lambda: None, also_there=None):
        super().__init__()
        self.on_start, self.also_there = on_start, also_there

    def start_all_reduce(self, array):
        super().start_all_reduce(array)
        self.on_start()
        return SimpleNamespace(wait=lambda: backend.of(array).add_in_place(array, array.copy()))

    def summed(self, numbers):
        others = numbers if self.also_there is None else self.also_there
        return [a + b for a, b in zip(numbers, others, strict=True)]


@pytest.fixture
def network(leaf):
    """Parameters in the order of their use, and a function that computes a loss; the table is used twice."""
    parameters = {"table": leaf(9, 5), "first": leaf(5, 5), "second": leaf(5, 5), "bias": leaf(9)}

    def loss(ids=(1, 8, 1)):
        x = ops.embedding(np.array(ids), parameters["table"]) @ parameters["first"]
        logits = x.tanh() @ parameters["second"] @ parameters["table"].transpose() + parameters["bias"]
        return ops.cross_entropy(logits, np.array(ids))

    return parameters, loss


def gradients_of(parameters, *losses):
    for parameter in parameters.values():
        parameter.zero_grad()
    for loss in losses:
        loss.backward()
    return {name: None if p.grad is None else host(p.grad).copy() for name, p in parameters.items()}


# --- Buckets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 200, 500, 2**20])
def test_gradients_are_added_up(network, size):
    parameters, loss = network
    expected = gradients_of(parameters, loss())
    for parameter in parameters.values():
        parameter.zero_grad()
    world = Twins()
    buckets = GradientBuckets(parameters, world, size)
    with buckets.summing():
        loss().backward()
    for name, parameter in parameters.items():
        np.testing.assert_array_equal(host(parameter.grad), 2 * expected[name])
    assert buckets.bytes == world.bytes_given == 8 * (45 + 25 + 25 + 9)
    assert all(parameter.hooks is None for parameter in parameters.values())


def test_a_full_bucket_is_added_up_before_the_walk_back_has_ended(network):
    parameters, loss = network
    there = []
    world = Twins(lambda: there.append([name for name, p in parameters.items() if p.grad is not None]))
    with GradientBuckets(parameters, world, 200).summing():  # 200 bytes: one of the matrices
        loss().backward()
    assert there == [
        ["bias"],
        ["second", "bias"],
        ["first", "second", "bias"],
        ["table", "first", "second", "bias"],
    ]


def test_sums_begin_in_one_order_whichever_gradient_comes_first(leaf):
    a, b = leaf(3), leaf(4)
    begun = []
    world = Twins()
    start = world.start_all_reduce
    world.start_all_reduce = lambda array: [begun.append(array.size), start(array)][1]
    for order in ({"a": a, "b": b}, {"b": b, "a": a}):
        begun.clear()
        with GradientBuckets(order, world, 1).summing():
            ((a * 2.0).sum() * (b * 3.0).sum()).backward()
        assert begun == [parameter.size for parameter in reversed(order.values())]


def test_micro_batches_are_added_up_once(network):
    parameters, loss = network
    expected = gradients_of(parameters, loss(), loss((0, 2, 3)))
    for parameter in parameters.values():
        parameter.zero_grad()
    world = Twins()
    buckets = GradientBuckets(parameters, world)
    with buckets.summing(last=False):
        loss().backward()
    assert world.bytes_given == 0
    with buckets.summing():
        loss((0, 2, 3)).backward()
    assert world.bytes_given == buckets.bytes
    for name, parameter in parameters.items():
        np.testing.assert_allclose(host(parameter.grad), 2 * expected[name], rtol=1e-12)


def test_a_gradient_of_an_earlier_micro_batch_alone_is_added_up_too(leaf):
    early, late = leaf(3), leaf(3)
    buckets = GradientBuckets({"early": early, "late": late}, Twins())
    with buckets.summing(last=False):
        early.sum().backward()
    with buckets.summing():
        late.sum().backward()
    np.testing.assert_array_equal(host(early.grad), [2, 2, 2])
    np.testing.assert_array_equal(host(late.grad), [2, 2, 2])


def test_dtypes_have_buckets_of_their_own(leaf):
    wide, narrow = leaf(3), leaf(3, dtype="float32")
    with GradientBuckets({"wide": wide, "narrow": narrow}, Twins()).summing():
        (wide * (narrow.astype("float64") * (1 / 3))).sum().backward()
    assert (wide.grad.dtype, narrow.grad.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(host(wide.grad), 2 / 3 * narrow.numpy().astype("float64"), rtol=1e-12)


def test_parameters_without_a_gradient(leaf):
    used, unused, frozen = leaf(3), leaf(3), Tensor(np.ones(3))
    parameters = {"used": used, "unused": unused, "frozen": frozen}
    buckets = GradientBuckets(parameters, Twins())
    with buckets.summing():
        (used * 2.0).sum().backward()
    assert buckets.names == ["used", "unused"]
    assert unused.grad is None
    np.testing.assert_array_equal(host(used.grad), [4, 4, 4])


def test_a_parameter_with_a_gradient_in_one_process_only(leaf):
    used, other = leaf(3), leaf(3)
    buckets = GradientBuckets({"used": used, "other": other}, Twins(also_there=[1.0, 1.0]))
    with pytest.raises(DistributedError, match="other has a gradient in 1 of 2 processes"), buckets.summing():
        used.sum().backward()


def test_after_an_error_no_hook_is_left(leaf):
    x = leaf(3)
    with pytest.raises(KeyError), GradientBuckets({"x": x}, Twins()).summing():
        raise KeyError
    assert x.hooks is None


def test_one_process_alone_adds_nothing_up(network):
    parameters, loss = network
    expected = gradients_of(parameters, loss())
    for parameter in parameters.values():
        parameter.zero_grad()
    world = World()
    with GradientBuckets(parameters, world).summing():
        assert all(parameter.hooks is None for parameter in parameters.values())
        loss().backward()
    assert world.bytes_given == 0
    for name, parameter in parameters.items():
        np.testing.assert_array_equal(host(parameter.grad), expected[name])


def test_bucket_sizes_that_are_none(leaf):
    with pytest.raises(ValueError, match="bytes_per_bucket must be at least 1, got 0"):
        GradientBuckets({"x": leaf(3)}, World(), 0)


def test_bytes_of_a_ring():
    assert [ring_bytes(size, 120) for size in (1, 2, 4)] == [0, 120, 180]


# --- Worlds ----------------------------------------------------------------------------------------------


def test_a_world_of_one(leaf):
    world = World()
    x = leaf(3)
    before = host(x.data).copy()
    world.start_all_reduce(x.data).wait()
    np.testing.assert_array_equal(host(x.data), before)
    assert (world.rank, world.size, world.is_first, world.bytes_given) == (0, 1, True, 24)
    assert world.summed([1, 0.5]) == [1.0, 0.5]
    assert world.broadcast({"a": 1}) == {"a": 1}
    assert world.gather({"a": 1}) == [{"a": 1}]
    world.require_the_same({"a": 1})
    world.barrier()
    with pytest.raises(KeyError), world.ending_together():
        raise KeyError


def test_what_differs_between_processes_is_named_with_the_process_and_both_values():
    world = World()
    world.gather = lambda value: [value, value, {"a": 2, "b": 3}]
    words = "do not start alike: a is 1 in process 0, 2 in process 2; b is None in process 0, 3 in process 2$"
    with pytest.raises(DistributedError, match=words):
        world.require_the_same({"a": 1})


def test_who_was_started_alone_imports_no_mpi(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "mpi4py", None)  # an import would fail
    assert type(from_environment()) is World
    monkeypatch.setenv("PMI_SIZE", "1")
    assert type(from_environment()) is World


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_started_by_mpirun_without_mpi4py(monkeypatch, name):
    """Each of the processes would train the same model, in the same folder."""
    monkeypatch.setenv(name, "4")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistributedError, match=r"has started 4 processes, but .* install mpi4py and an MPI"):
        from_environment()


def test_started_by_the_mpirun_of_another_mpi(monkeypatch):
    found = SimpleNamespace(
        COMM_WORLD=SimpleNamespace(Get_size=lambda: 1),
        Get_library_version=lambda: "MPICH Version: 5, and more",
    )
    module = ModuleType("mpi4py")
    module.MPI = found
    monkeypatch.setitem(sys.modules, "mpi4py", module)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(
        DistributedError,
        match=r"started 2 processes, but mpi4py finds 1: it uses another MPI \(MPICH Version: 5\)",
    ):
        from_environment()


def test_processes_on_one_machine_share_its_cores(monkeypatch):
    given = []
    monkeypatch.setattr(threads, "_set_blas_threads", given.append)
    monkeypatch.setattr(threads, "_blas", [SimpleNamespace(num_threads=8), SimpleNamespace(num_threads=1)])
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 8)
    for processes, expected in ((2, 4), (3, 2), (100, 1)):
        monkeypatch.setattr(threads, "THREADS", 8)
        threads.share_cores(processes)
        assert expected == threads.THREADS
        assert given.pop() == [expected, 1]


# --- GPUs ------------------------------------------------------------------------------------------------


class Communicator:
    """What NCCLWorld asks of mpi4py's, as the second of two processes."""

    def Dup(self):
        return self

    def Get_rank(self):
        return 1

    def Get_size(self):
        return 2

    def Split_type(self, _):
        return self

    def allgather(self, value):
        return [value, value]

    def bcast(self, value):
        assert value is None  # only the first process makes the number
        return "the number"


@pytest.fixture
def gpus(monkeypatch):
    """`gpus(2)`: CuPy on a machine with two GPUs, as far as NCCLWorld asks for it; returns the calls that it gets."""

    def pretend(count):
        calls = []

        class Stream:
            ptr = 77

            def __init__(self, name="computing", non_blocking=False):
                self.name = "summing" if non_blocking else name

            def record(self):
                return f"what {self.name} has come to"

            def wait_event(self, event):
                calls.append(f"{self.name} waits for {event}")

        class NcclCommunicator:
            def __init__(self, *arguments):
                calls.append(arguments)

            def allReduce(self, *arguments):
                calls.append(arguments)

        nccl = ModuleType("cupy.cuda.nccl")
        nccl.NcclCommunicator = NcclCommunicator
        nccl.NCCL_FLOAT32, nccl.NCCL_FLOAT64, nccl.NCCL_SUM = 7, 8, 0
        cuda = ModuleType("cupy.cuda")
        cuda.nccl, cuda.Stream, cuda.get_current_stream = nccl, Stream, Stream
        cuda.runtime = SimpleNamespace(getDeviceCount=lambda: count)
        cuda.Device = lambda number: SimpleNamespace(use=lambda: calls.append(f"device {number}"))
        cupy = ModuleType("cupy")
        cupy.cuda = cuda
        mpi4py = ModuleType("mpi4py")
        mpi4py.MPI = SimpleNamespace(COMM_TYPE_SHARED=0)
        for module in (cupy, cuda, nccl, mpi4py):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.delitem(sys.modules, "minigrad.backend.nccl", raising=False)
        monkeypatch.delattr(backend, "nccl", raising=False)
        return calls

    return pretend


def test_a_sum_on_gpus_runs_on_a_stream_of_its_own(gpus):
    calls = gpus(2)
    world = NCCLWorld(Communicator())
    assert calls == ["device 1", (2, "the number", 1)]
    calls.clear()
    array = SimpleNamespace(nbytes=48, size=6, dtype=np.dtype("float64"), data=SimpleNamespace(ptr=1234))
    begun = world.start_all_reduce(array)
    assert isinstance(begun, Sum)
    assert calls == ["summing waits for what computing has come to", (1234, 1234, 6, 8, 0, 77)]
    begun.wait()
    assert calls[-1] == "computing waits for what summing has come to"
    assert world.bytes_given == 48


def test_fewer_gpus_than_processes(gpus):
    gpus(1)
    with pytest.raises(
        DistributedError, match="2 processes on this machine and 1 GPUs: each process needs a GPU of its own"
    ):
        NCCLWorld(Communicator())
