"""How the CPU's work is shared: blocks, errors, the BLAS' threads, forks, signals, several threads at once."""

from __future__ import annotations

import contextlib
import dis
import os
import sys
import threading

import numpy as np
import pytest

from minigrad import Tensor, backend, is_grad_enabled, no_grad, ops
from minigrad.backend import threads
from processes import run_python

pytestmark = pytest.mark.numpy_only("about the threads of the CPU")

kernels = backend.get("numpy")


def blas_threads():
    return [library.num_threads for library in threads._blas]


def large_step(seed=0):
    """Gradients of a model that is large enough for every kernel to be shared."""
    rng = np.random.default_rng(seed)
    x, w = (Tensor(rng.standard_normal((512, 512)).astype("f4"), requires_grad=True) for _ in range(2))
    ops.gelu(ops.linear(x, w)).sum().backward()
    return x.grad, w.grad


# --- Blocks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(
    ("rows", "row_size"), [(0, 5), (1, 1), (5, 0), (10, 2**17), (7, 2**18), (200_000, 3), (512, 768)]
)
def test_blocks_cover_every_row_once(rows, row_size, count, cores):
    x, seen = np.zeros((rows, row_size), np.int8), np.zeros(rows, int)

    def kernel(x, seen, numbers, nothing, add):
        assert len(x) == len(seen) == len(numbers)
        assert len(x) <= max(1, threads.BLOCK // max(1, row_size))
        assert nothing is None
        seen += add
        return numbers

    cores(count)
    blocks = threads.in_blocks(kernel, x, seen, range(rows), None, add=1)
    assert (seen == 1).all()
    assert [number for numbers in blocks for number in numbers] == list(range(rows))
    assert len(blocks) >= 1
    sizes = [len(numbers) for numbers in blocks]
    # Nearly even: no thread gets a crumb.
    assert max(sizes) - min(sizes) < len(sizes)


@pytest.mark.parametrize(("n", "m"), [(300, 70), (70, 301), (128, 128)])
def test_matmul_in_parts(n, m, cores, rng):
    a, b = rng.standard_normal((n, 65)), rng.standard_normal((65, m))
    cores(3)
    np.testing.assert_allclose(kernels.matmul(a, b), a @ b, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernels.matmul(b.T, a.T), (a @ b).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_results_do_not_depend_on_the_number_of_threads(count, cores, rng):
    """Bit for bit: block borders are the same, and partial sums are added in one order."""
    x = rng.standard_normal((4001, 97)).astype(np.float32)
    w, b = rng.standard_normal((2, 97)).astype(np.float32)
    keep = rng.random(x.shape) > 0.1

    def results():
        leaves = [Tensor(array.copy(), requires_grad=True) for array in (x, w, b)]
        y = ops.softmax(ops.gelu(ops.layer_norm(*leaves)))
        y = ops.dropout(y, keep, 0.1)
        (y * y).sum().backward()
        state = [np.zeros_like(x), np.zeros_like(x)]
        p = x.copy()
        settings = {"step_size": 0.1, "decay": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
        kernels.adamw_step(
            [p], [leaves[0].grad], *([moment] for moment in state), **settings, second_correction=0.5
        )
        total = kernels.sum_rows(x)
        heads = [Tensor(x[:4000].reshape(8, 5, 100, 97)) for _ in range(3)]
        z = ops.scaled_dot_product_attention(
            *heads, keep=keep[:4000, :50].reshape(8, 5, 100, 50).repeat(2, -1), p=0.1
        )
        mask = kernels.keep_mask((4001, 97), 0.3, (1, 2))
        return [y.numpy(), p, *state, total, z.numpy(), mask, *(leaf.grad for leaf in leaves)]

    expected = results()
    cores(count)
    for ours, reference in zip(results(), expected, strict=True):
        np.testing.assert_array_equal(ours, reference)


@pytest.mark.parametrize("part", [0, 1, 2], ids=["the caller's", "another's", "the last"])
def test_an_error_in_a_part_is_raised_when_all_parts_are_done(part, cores):
    done = []

    def run(items):
        if items.start == part:
            raise ZeroDivisionError
        done.append(items.start)

    cores(3)
    with pytest.raises(ZeroDivisionError):
        threads.share(run, range(3))
    assert sorted(done) == sorted({0, 1, 2} - {part})


@pytest.mark.parametrize("where", [0, 3 * 2**17])  # in the caller's block, in another thread's
def test_what_numpy_does_with_an_overflow_is_the_callers_choice(where, cores):
    a = np.ones(4 * 2**17, np.float32)
    a[where] = 3e38
    cores(2)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        kernels.add_in_place(a.copy(), a)
    with np.errstate(over="ignore"):
        kernels.add_in_place(a.copy(), a)


NESTED = """
import threading
from minigrad.backend import threads

threads.THREADS = 3
def outer(numbers):
    mine = []
    threads.share(lambda inner: mine.extend((i, threading.get_ident()) for i in inner), range(7))
    assert mine == [(i, threading.get_ident()) for i in range(7)]
threads.share(outer, range(9))
print("done")
"""


def test_what_is_shared_in_a_part_stays_in_its_thread():
    """All threads are busy with parts: one that waited for another would wait for ever."""
    assert run_python(NESTED).stdout == "done\n"


def test_where_no_thread_can_start_the_caller_does_the_work(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_workers", None)
    monkeypatch.setattr(threads, "THREADS", 4)
    monkeypatch.setattr(threading.Thread, "start", start)
    seen = []
    threads.share(seen.extend, range(10))
    assert seen == list(range(10))


# --- The BLAS' threads -----------------------------------------------------------------------------------


@pytest.fixture
def two_blas_threads():
    """The BLAS on two threads, also where the tests as a whole run on one: else there is nothing to give back."""
    before = blas_threads()
    threads._set_blas_threads([2] * len(before))
    assert blas_threads() == [2] * len(before)
    yield
    threads._set_blas_threads(before)


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("fails", [False, True])
def test_matmul_gives_the_blas_its_threads_back(fails, monkeypatch, cores, rng):
    inside = []
    cores(2)

    def share(run, items):
        inside.append(blas_threads())
        if fails:
            raise ZeroDivisionError
        run(items)

    monkeypatch.setattr(kernels, "share", share)
    monkeypatch.setattr(kernels, "SMALL_PRODUCT", 1)
    before = blas_threads()
    with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
        kernels.matmul(rng.standard_normal((128, 64)), rng.standard_normal((64, 64)))
    assert inside == [[1] * len(before)]
    assert blas_threads() == before


class Libraries:
    """Stands for the BLAS, and records how many threads it was given."""

    def __init__(self, count):
        self.num_threads = count

    def set_num_threads(self, count):
        self.num_threads = count


def test_another_thread_leaves_the_blas_alone(monkeypatch):
    """OpenBLAS obeys one thread only: another one could take the BLAS's threads, and not give them back."""
    blas = Libraries(6)
    monkeypatch.setattr(threads, "_blas", [blas])
    seen_inside: list[int] = []
    seen = in_another_thread(
        lambda: [threads.on_one_blas_thread(lambda: seen_inside.append(blas.num_threads))]
    )
    assert seen == [None]
    assert seen_inside == [6]
    threads.on_one_blas_thread(lambda: seen_inside.append(blas.num_threads))
    assert seen_inside == [6, 1]
    assert blas.num_threads == 6


# --- Signals ---------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """What stands for KeyboardInterrupt, raised between two instructions."""


def interrupted(function, moment):
    """Run `function`, and raise Interrupted at moment number `moment` at which Python looks for signals: after a call,
    at a function's start, and where a loop goes back. Returns whether there are so many moments."""
    last: dict[object, str] = {}  # of each frame, the instruction before
    names: dict[object, dict[int, str]] = {}
    left = moment

    def trace(frame, event, arg):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            code = frame.f_code
            if code not in names:
                names[code] = {i.offset: i.opname for i in dis.get_instructions(code)}
            before, last[frame] = last.get(frame, ""), names[code].get(frame.f_lasti, "")
            if before.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise Interrupted
        return trace

    sys._getframe().f_trace_opcodes = True  # Python 3.12.1 looks for it when tracing begins
    sys.settrace(trace)
    try:
        function()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


def test_an_exception_at_any_moment_leaves_nothing_behind(monkeypatch, cores):
    """Work shared over threads with the BLAS on one: interrupted at each moment in turn, it neither hangs nor leaves
    the BLAS at one thread, and the next call does its work."""
    blas = Libraries(6)
    monkeypatch.setattr(threads, "_blas", [blas])
    cores(3)

    def work():
        threads.on_one_blas_thread(threads.share, seen.extend, range(7))

    moment = 0
    seen: list[int] = []
    while interrupted(work, moment):
        assert blas.num_threads == 6, f"interrupted at moment {moment}"
        seen = []
        work()
        assert sorted(seen) == list(range(7)), f"after an interrupt at moment {moment}"
        seen = []
        moment += 1
    assert moment > 30
    assert sorted(seen) == list(range(7))


SIGNALS = """
import signal
import numpy as np
from minigrad import Tensor, ops
from minigrad.backend import threads

threads.THREADS = 3
x = Tensor(np.ones((512, 512), "f4"), requires_grad=True)
before = [library.num_threads for library in threads._blas]
signal.signal(signal.SIGALRM, signal.default_int_handler)
interrupts = 0
while interrupts < 200:
    try:
        signal.setitimer(signal.ITIMER_REAL, float(np.random.uniform(1e-3, 2e-2)))
        while True:
            ops.gelu(ops.linear(x, x)).sum().backward()
    except KeyboardInterrupt:
        interrupts += 1
signal.setitimer(signal.ITIMER_REAL, 0)
ops.gelu(ops.linear(x, x)).sum().backward()
assert [library.num_threads for library in threads._blas] == before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals as on Unix")
def test_signals_at_any_moment_hang_nothing():
    result = run_python(SIGNALS, OPENBLAS_NUM_THREADS="3")
    assert result.returncode == 0, result.stderr


# --- Forks -----------------------------------------------------------------------------------------------

FORK = """
import os, signal, sys
import numpy as np
from minigrad import Tensor, ops
from minigrad.backend import threads

threads.THREADS = 2
def step():
    x = Tensor(np.ones((512, 512), "f4"), requires_grad=True)
    ops.gelu(ops.linear(x, x)).sum().backward()
    return x.grad
expected = step()
threads.lock.acquire()  # as another thread may at this moment
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if (step() == expected).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own():
    result = run_python(FORK, PYTHONWARNINGS="ignore")
    assert result.returncode == 0, result.stderr


# --- Several threads of the user's -----------------------------------------------------------------------


def in_another_thread(function):
    """What `function` returns in a new thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(60)
    return results[0]


def test_no_grad_is_of_one_thread():
    def requires_grad():
        return is_grad_enabled() and (Tensor([1.0], requires_grad=True) * 2).requires_grad

    with no_grad():
        assert not requires_grad()
        assert in_another_thread(requires_grad)
    assert requires_grad()


def test_the_precision_of_products_is_of_one_thread():
    with backend.default_matmul_precision("bfloat16"):
        assert backend.matmul_precision() == "bfloat16"
        assert in_another_thread(backend.matmul_precision) == "float32"
    assert backend.matmul_precision() == "float32"


def test_threads_that_train_at_once_get_the_gradients_of_one_that_trains_alone():
    expected = [large_step(seed) for seed in range(4)]
    results: dict[int, tuple] = {}

    def train(seed):
        for _ in range(5):
            results[seed] = large_step(seed)

    workers = [threading.Thread(target=train, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    for seed, gradients in enumerate(expected):
        for ours, alone in zip(results[seed], gradients, strict=True):
            np.testing.assert_allclose(ours, alone, rtol=0, atol=1e-4)


def test_threads_that_share_a_leaf_lose_no_gradient():
    x = Tensor(np.zeros(10), requires_grad=True)

    def add():
        for _ in range(500):
            (x * 1.0).sum().backward()

    workers = [threading.Thread(target=add) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
    finally:
        sys.setswitchinterval(interval)
    np.testing.assert_array_equal(x.grad, np.full(10, 2000.0))


def test_no_grad_begun_here_and_ended_in_another_thread_leaves_that_one_on():
    def generator():
        with no_grad():
            yield

    g = generator()
    next(g)
    try:
        assert in_another_thread(lambda: (g.close(), is_grad_enabled())[1])
    finally:
        no_grad().__exit__()  # this thread stays without


def test_no_grad_refuses_what_runs_later():
    async def coroutine():
        pass

    def generator():
        yield

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match=f"no_grad\\(\\) around {function.__name__}, which runs later"):
            no_grad()(function)


END = """
from minigrad.backend import threads
threads.THREADS = 2
threads.share(list, range(10))
class Late:
    def __del__(self, share=threads.share, seen=[]):
        share(seen.extend, range(10))
        print(len(seen))
late = Late()
late.me = late
"""


def test_work_when_the_interpreter_ends_does_not_hang():
    """The threads that would share it stand still then."""
    assert run_python(END).stdout == "10\n"
