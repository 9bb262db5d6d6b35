"""The profiler: every millisecond on one row, right counts, and nothing left behind."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from minigrad import Tensor, backend, nn, no_grad, ops, optim, profiler, random
from minigrad.profiler import CLIPPING, DROPOUT_DRAWS, ELSE, ENGINE, profile
from minigrad.tensor import Array

PLACES = (ops, *ops.MODULES, ops.composed, Tensor, random, optim, optim.Optimizer, optim.AdamW)


def functions() -> list[dict]:
    """What stands under each name in the places that the profiler changes."""
    return [
        {
            name: value
            for name, value in vars(place).items()
            if callable(value) or isinstance(value, staticmethod)
        }
        for place in PLACES
    ]


@pytest.fixture(autouse=True)
def nothing_left_patched():
    before = functions()
    yield
    assert functions() == before
    assert profiler._active is None


@pytest.fixture
def wait(monkeypatch):
    """`wait(50)`: the clock goes on by so many milliseconds, and by none elsewhere."""
    now = [0.0]
    monkeypatch.setattr(profiler.time, "perf_counter", lambda: now[0])
    return lambda ms: now.append(now.pop() + ms / 1000)


def rows_of(report: profiler.Report) -> dict[str, profiler.Row]:
    return {row.op: row for row in report.rows}


def leaf(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32), requires_grad=True)


def test_counts_of_a_known_expression():
    x, y = leaf(3, 4), leaf(4, 5)
    with profile() as report:
        ((x * x + 2.0) @ y + 1.0).sum().backward()
    counts = {op: row.calls for op, row in rows_of(report).items() if row.calls}
    assert counts == {"mul": 1, "add": 2, "matmul": 1, "sum": 1}
    assert np.allclose(backend.to_numpy(x.grad), 10)  # dy yᵀ is 5 everywhere, times 2 x


def test_each_way_to_an_operation_is_seen():
    x = leaf(2, 3)
    with profile() as report:
        x.softmax()
        ops.softmax(x)
        ops.fused.softmax(x)
        _ = 1.0 + x, x.T  # __radd__, permute
    counts = {op: row.calls for op, row in rows_of(report).items() if row.calls}
    assert counts == {"softmax": 3, "add": 1, "permute": 1}


def test_rows_add_up_to_the_time_within_the_call():
    x, y = leaf(200, 300), leaf(300, 200)
    started = time.perf_counter()
    with profile() as report:
        entered = time.perf_counter()
        for _ in range(20):
            (x @ y).tanh().mean().backward()
        inside = time.perf_counter() - entered
    around = time.perf_counter() - started
    total = report.total_ms / 1000
    assert inside <= total <= around
    assert sum(row.ms for row in report.rows) == pytest.approx(report.total_ms)
    assert sum(row.share for row in report.rows) == pytest.approx(1)
    assert all(row.ms >= row.forward_ms + row.backward_ms - 1e-9 for row in report.rows)


def test_time_outside_operations_is_everything_else(wait):
    with profile() as report:
        wait(50)
        leaf(2).exp()
    rows = rows_of(report)
    assert (rows[ELSE].ms, rows["exp"].ms) == (pytest.approx(50), 0)


def test_an_operation_within_another_is_charged_once(monkeypatch, wait):
    original = ops.elementwise.exp

    def exp(x: Tensor) -> Tensor:
        wait(50)
        return original(x)

    monkeypatch.setattr(ops.elementwise, "exp", exp)
    monkeypatch.setattr(Tensor, "exp", exp)
    with profile() as report:
        ops.composed.softmax(leaf(2, 3))
    rows = rows_of(report)
    assert (rows["exp"].forward_ms, rows["softmax"].forward_ms) == (pytest.approx(50), 0)


def test_backward_is_charged_to_its_operation(wait):
    def slow(x: Tensor) -> Tensor:
        def backward(dy):
            wait(50)
            return (dy,)

        return Tensor.from_op(x.data, (x,), backward)

    x = leaf(3)
    with profile() as report:
        slow(x * 2.0).sum().backward()
    row = rows_of(report)["slow"]
    assert (row.calls, row.forward_ms) == (0, 0)  # made here, so its forward is not known by name
    assert (row.backward_ms, rows_of(report)[ENGINE].backward_ms) == (pytest.approx(50), 0)


def test_a_training_step_has_all_its_rows():
    layer, dropout = nn.Linear(4, 4), nn.Dropout(0.5)
    optimizer = optim.AdamW(layer.parameters(), lr=0.1)
    with profile() as report:
        for _ in range(2):
            dropout(layer(leaf(3, 4))).sum().backward()
            optim.clip_grad_norm(layer.parameters(), 1.0)
            optimizer.step()
    rows = rows_of(report)
    for op in ("linear", "dropout", "sum", DROPOUT_DRAWS, CLIPPING, "AdamW.step"):
        assert rows[op].calls == 2, op
        assert rows[op].ms > 0
    assert rows[CLIPPING].forward_ms == rows[CLIPPING].backward_ms == 0
    assert {"clip_grad_norm", "AdamW.step", ENGINE, ELSE} < set(rows)


def test_values_are_those_without_it():
    def step() -> Array:
        random.manual_seed(1)
        layer, x = nn.Linear(4, 3), leaf(2, 4)
        nn.Dropout(0.3)(layer(x)).softmax().log().sum().backward()
        return x.grad

    plain = step()
    with profile():
        measured = step()
    assert (plain == measured).all()


def test_no_graph_without_gradients():
    with profile() as report, no_grad():
        y = leaf(3).exp()
    assert y.node is None
    assert rows_of(report)["exp"].calls == 1


def test_a_nested_profile_is_refused():
    with profile() as report:
        with pytest.raises(RuntimeError, match="cannot be nested"), profile():
            pass
        leaf(2).exp()
    assert rows_of(report)["exp"].calls == 1


def test_nothing_stays_after_an_exception():
    before = functions()
    with pytest.raises(ZeroDivisionError), profile():
        raise ZeroDivisionError
    assert functions() == before


def test_an_operation_that_raises_gives_the_stopwatch_back(wait):
    with profile() as report:
        with pytest.raises(ValueError, match="matmul"):
            leaf(2, 3) @ leaf(2, 3)
        wait(20)
    rows = rows_of(report)
    assert (rows["matmul"].ms, rows[ELSE].ms) == (0, pytest.approx(20))


def test_a_graph_may_outlive_the_context():
    x = leaf(3)
    with profile() as report:
        y = (x * 3.0).sum()
    total = report.total_ms
    y.backward()
    assert np.allclose(backend.to_numpy(x.grad), 3)
    assert report.total_ms == total
    assert rows_of(report)["mul"].backward_ms == 0


def test_a_graph_from_before_counts_as_the_engine():
    x = leaf(3)
    y = (x * 3.0).sum()
    with profile() as report:
        y.backward()
    assert set(rows_of(report)) == {ENGINE, ELSE}


def test_a_measured_graph_is_no_reference_cycle():
    gc.disable()
    try:
        with profile():
            y = leaf(3).exp()
            node = y.node
            closure = weakref.ref(node.backward)
            del y, node
        assert closure() is None
    finally:
        gc.enable()


def test_the_table_names_each_row_and_the_sum():
    with profile() as report:
        leaf(3).exp().sum().backward()
    lines = str(report).splitlines()
    assert lines[0].split() == ["op", "calls", "forward", "ms", "backward", "ms", "ms", "share"]
    assert len(lines) == len(report.rows) + 2
    assert lines[-1].split()[0] == "all"
    assert [row.ms for row in report.rows] == sorted((row.ms for row in report.rows), reverse=True)


def test_an_empty_context_has_one_row():
    with profile() as report:
        pass
    assert [row.op for row in report.rows] == [ELSE]


def test_one_thread_is_measured():
    def work():
        for _ in range(50):
            (Tensor(np.ones((20, 20)), requires_grad=True) * 2.0).sum().backward()

    with profile() as report:
        other = threading.Thread(target=work)
        other.start()
        Tensor(np.ones(3)).exp()
        other.join()
    assert {row.op: row.calls for row in report.rows} == {"exp": 1, "everything else": 0}
