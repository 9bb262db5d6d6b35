"""What users hold: making tensors, leaving the graph, dtypes, backends, methods, and what errors say."""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from arrays import host, needs_two_backends, on_backend
from minigrad import Tensor, backend, is_grad_enabled, nn, no_grad, ops

# --- Making tensors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (2, "float32"),
        (2.5, "float32"),
        ([1.0, 2.0], "float32"),
        ([[1, 2], [3, 4]], "float32"),
        ([True, False], "float32"),
        (np.arange(3), "float32"),
        (np.array([True]), "float32"),
        (np.arange(3, dtype=np.uint8), "float32"),
        (np.ones(2, np.float16), "float16"),
        (np.ones(2, np.float32), "float32"),
        (np.ones(2, np.float64), "float64"),
        (np.float64(1), "float64"),
        (np.float32(1), "float32"),
        ((), "float32"),
    ],
    ids=repr,
)
def test_dtype_of_new_tensors(data, dtype):
    x = Tensor(data)
    assert x.dtype == dtype
    assert x.shape == np.shape(data)
    np.testing.assert_array_equal(x.numpy(), np.asarray(data, dtype=dtype))
    assert Tensor(data, dtype="float64").dtype == np.float64


def test_facts():
    x = Tensor(np.zeros((3, 5)))
    assert (x.shape, x.ndim, x.size, len(x), x.backend) == ((3, 5), 2, 15, 3, backend.default().name)
    assert not x.requires_grad
    assert x.grad is None
    assert isinstance(x.numpy(), np.ndarray)


@pytest.mark.numpy_only("arrays of the host are copied to the device")
def test_an_array_of_the_host_is_not_copied():
    array = np.ones(3)
    assert Tensor(array).numpy() is array


def test_an_array_of_the_backend_is_not_copied():
    array = on_backend([1, 2])
    assert Tensor(array).data is array


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["a"], "a Tensor holds numbers; got data of dtype <U1"),
        (None, "a Tensor holds numbers; got data of dtype object"),
        (1j, "a Tensor holds numbers; got data of dtype complex128"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "a Tensor holds numbers"),
    ],
)
def test_only_numbers(data, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        Tensor(data)


def test_only_floats():
    with pytest.raises(TypeError, match="a Tensor holds float16, float32, float64; got dtype int32"):
        Tensor([1], dtype="int32")
    with pytest.raises(TypeError, match=r"use tensor\.detach\(\)"):
        Tensor(Tensor([1.0]))


# --- Describing and leaving ------------------------------------------------------------------------------


def test_repr():
    name = backend.default().name
    place = "" if name == "numpy" else f", backend={name}"
    assert repr(Tensor([1.0, 2.5])) == f"Tensor([1. , 2.5], shape=(2,){place})"
    assert repr(Tensor(1.0)) == f"Tensor(1.{place})"
    assert repr(Tensor(np.ones(1), requires_grad=True)) == (
        f"Tensor([1.], shape=(1,), dtype=float64{place}, requires_grad=True)"
    )
    assert repr(Tensor([1.0], requires_grad=True) * 2) == f"Tensor([2.], shape=(1,){place}, op=mul)"
    assert "..." in repr(Tensor(np.zeros(1000)))


def test_item_float_and_truth():
    assert Tensor([[2.5]]).item() == 2.5
    assert isinstance(Tensor(3).item(), float)
    assert float(Tensor(2)) == 2.0
    assert Tensor(1.0)
    assert not Tensor([0.0])


def test_what_needs_one_entry():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"one entry, this one has shape \(2,\)"):
        x.item()
    with pytest.raises(ValueError, match=r"shape \(2,\) is neither true nor false"):
        bool(x)
    with pytest.raises(ValueError, match=r"shape \(0,\)"):
        Tensor([]).item()
    with pytest.raises(TypeError, match="without axes"):
        len(Tensor(1.0))


def test_detach_shares_data_and_stops_gradients(leaf):
    x = leaf(3)
    cut = x.detach()
    assert cut.data is x.data
    assert not cut.requires_grad
    (x * cut).sum().backward()
    np.testing.assert_array_equal(host(x.grad), x.numpy())


# --- no_grad ---------------------------------------------------------------------------------------------


def test_no_grad_records_nothing_and_ends(leaf):
    x = leaf(3)
    with no_grad():
        assert not is_grad_enabled()
        with no_grad():
            y = x * 2.0
        assert not is_grad_enabled()
    assert is_grad_enabled()
    assert y.node is None
    assert not y.requires_grad
    assert (x * 2.0).node is not None


def test_no_grad_ends_with_an_exception():
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert is_grad_enabled()


# --- Dtypes ----------------------------------------------------------------------------------------------

SCALARS = [2, 2.5, True, np.float64(2.5), np.int64(3), np.float32(2)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: type(s).__name__ + str(s))
def test_numbers_never_promote(dtype, scalar):
    x = Tensor(np.ones(3, dtype), requires_grad=True)
    for y in (x + scalar, scalar + x, x - scalar, scalar - x, x * scalar, scalar * x, x / scalar, scalar / x):
        assert isinstance(y, Tensor)
        assert y.dtype == dtype
    assert (x**scalar).dtype == dtype
    assert (scalar**x).dtype == dtype
    assert ops.maximum(x, scalar).dtype == dtype
    assert ops.where(np.array([True, False, True]), x, scalar).dtype == dtype
    (x * scalar).sum().backward()
    assert x.grad.dtype == dtype


def test_dtypes_do_not_mix():
    a, b = Tensor([1.0]), Tensor(np.ones(1))
    with pytest.raises(
        TypeError, match=r"add: the dtypes float32 and float64 do not mix.*astype\('float32'\)"
    ):
        a + b
    with pytest.raises(TypeError, match="matmul: the dtypes float64 and float32 do not mix"):
        b @ a


@pytest.mark.parametrize(
    "array", [np.ones(3), np.ones((2, 3), np.float32), np.arange(3)], ids=["64", "32", "int"]
)
def test_arrays_and_tensors_do_not_mix(array):
    x = Tensor(np.ones(3))
    for function in (
        lambda: x + array,
        lambda: array + x,
        lambda: x * array,
        lambda: array * x,
        lambda: array - x,
        lambda: array / x,
    ):
        with pytest.raises(TypeError, match=re.escape(f"wrap the array of shape {array.shape} in Tensor(…)")):
            function()
    with pytest.raises(TypeError, match="matmul: expected a Tensor, got an array of shape"):
        x @ array
    with pytest.raises(TypeError, match="matmul: expected a Tensor, got an array of shape"):
        array @ x


def test_arrays_of_the_backend_do_not_mix_either():
    x, array = Tensor([1.0, 2.0]), on_backend([1, 2])
    with pytest.raises(TypeError, match="do not mix"):
        x * array
    with pytest.raises(TypeError, match="do not mix"):
        array * x


def test_astype_takes_the_gradient_back():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x.astype("float64") * 3.0
    assert y.dtype == np.float64
    y.sum().backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(host(x.grad), [3, 3])
    with pytest.raises(TypeError, match="got dtype int64"):
        x.astype("int64")


# --- Backends --------------------------------------------------------------------------------------------


def test_to_the_same_backend_is_the_tensor_itself(leaf):
    x = leaf(3)
    assert x.to(x.backend) is x


def test_to_an_unknown_backend(leaf):
    with pytest.raises(backend.BackendError, match="there is no backend 'tpu': expected one of numpy, cupy"):
        leaf(3).to("tpu")


def test_gradients_flow_between_backends(leaf):
    needs_two_backends()
    x = leaf(3)
    y = x.to("numpy") * 2.0
    assert type(y.data) is np.ndarray
    (y.to("cupy") * 3.0).sum().backward()
    assert type(x.grad) is type(x.data)
    np.testing.assert_array_equal(host(x.grad), np.full(3, 6.0))


def test_tensors_of_two_backends_do_not_mix(leaf):
    needs_two_backends()
    x = leaf(3)
    with pytest.raises(
        TypeError, match=r"add: one tensor is on cupy, another on numpy; move one with \.to\('cupy'\)"
    ):
        x + x.to("numpy")


# --- Methods ---------------------------------------------------------------------------------------------


def test_what_tensor_declares_is_bound_to_the_operations():
    """What type checkers see of Tensor is there: an operator is the one of the table, a method the operation of its
    name, the fused one if there are two. And no operation is bound that is not declared."""
    declared = set(Tensor.__annotations__)
    operators = {name for name in declared if name.startswith("__")}
    assert operators == set(ops.OPERATORS)
    assert {"exp", "softmax", "reshape"} < declared
    for name in declared:
        expected = ops.OPERATORS[name] if name in operators else getattr(ops, name)
        assert inspect.getattr_static(Tensor, name) is expected
    assert Tensor.softmax is ops.fused.softmax
    operations = [getattr(ops, name) for name in ops.__all__]
    assert {name for name, value in vars(Tensor).items() if value in operations} <= declared


def test_what_has_no_operation_of_its_name(leaf):
    x = leaf(3, 5)
    np.testing.assert_array_equal(x.T.numpy(), x.numpy().T)
    np.testing.assert_array_equal(x[0].T.numpy(), x.numpy()[0])
    with pytest.raises(ValueError, match=r"T is for up to two axes, this tensor has shape \(1, 3, 5\)"):
        x.unsqueeze(0).T  # noqa: B018


# --- What learners of PyTorch expect, or have to be told ------------------------------------------------


@pytest.mark.parametrize("other", [0.0, 1, True, np.float32(0), np.zeros(2), [0.0, 0.0], (0.0,)], ids=repr)
def test_comparing_with_numbers_and_arrays_is_refused(other):
    """`x == 0.0` would be False, silently, and a mask made of it empty."""
    x = Tensor([0.0, 1.0])
    for compare in (lambda: x == other, lambda: other == x, lambda: x != other):
        with pytest.raises(
            TypeError, match=r"== between a Tensor and an? .* is not defined: compare .* of x.data"
        ):
            compare()


def test_between_tensors_equality_is_identity():
    x, y = Tensor([0.0]), Tensor([0.0])
    assert x == x
    assert x != y
    assert x in [y, x]
    assert {x: 1, y: 2}[y] == 2
    assert (x == None) is False  # noqa: E711
    assert x != "x"
    assert len({x, y, x}) == 2


def test_an_array_of_a_tensor():
    x = Tensor(np.arange(3.0))
    assert np.asarray(x) is x.data or x.backend != "numpy"
    assert np.asarray(x).dtype == np.float64
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    assert np.array(x) is not x.data
    x.requires_grad = True
    with pytest.raises(TypeError, match=r"the gradient would end there: say tensor.numpy\(\)"):
        np.asarray(x)
    with pytest.raises(TypeError, match=r"say tensor.numpy\(\)"):
        Tensor([x, x])


def test_weak_references():
    x = Tensor([1.0])
    reference = weakref.ref(x)
    assert reference() is x
    del x
    assert reference() is None


def test_deepcopy_of_a_leaf():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    twin, again = copy.deepcopy([x, x])
    assert twin is again
    assert twin is not x
    assert twin.requires_grad
    for ours, theirs in ((x.data, twin.data), (x.grad, twin.grad)):
        np.testing.assert_array_equal(host(ours), host(theirs))
        assert not backend.default().xp.may_share_memory(ours, theirs)
    assert type(copy.deepcopy(nn.Parameter([1.0]))) is nn.Parameter


def test_deepcopy_of_an_output_is_refused():
    """Its graph would be there twice, but the arrays that the graph saved only once."""
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"deepcopy of the output of mul: .* use tensor.detach\(\) first"):
        copy.deepcopy(x * 2)
    np.testing.assert_array_equal(copy.deepcopy((x * 2).detach()).numpy(), [2.0, 4.0])


@pytest.mark.numpy_only("a GPU has one byte order")
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i4"])
def test_arrays_in_the_other_byte_order(dtype):
    x = Tensor(np.arange(3).astype(dtype), requires_grad=True)
    assert x.dtype.isnative
    (x * 2.0).sum().backward(np.array(3.0, ">f4"))
    assert x.grad.tolist() == [6.0, 6.0, 6.0]
    assert x.grad.dtype == x.dtype == (np.float32 if dtype == ">i4" else np.dtype(dtype).newbyteorder("="))
    assert Tensor([1.0], dtype=">f8").dtype.isnative


def interrupted(point):
    """Whether a Ctrl-C at this point of `with no_grad():` has come, counted from 0: Python looks for one where a
    function begins and where a call returns. (At the very beginning of __exit__ nothing can be done about it.)"""
    left = [point]

    def interrupt(frame, event, _):
        inside = frame.f_code in (no_grad.__enter__.__code__, no_grad.__exit__.__code__)
        begins = event == "call" and frame.f_code is no_grad.__enter__.__code__
        if inside and (begins or event == "c_return"):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt  # which also ends the profiling

    try:
        sys.setprofile(interrupt)
        with no_grad():
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def test_recording_goes_on_after_a_ctrl_c_anywhere_in_no_grad():
    point = 0
    while interrupted(point):
        assert is_grad_enabled()
        with no_grad():
            interrupted(point)
            assert not is_grad_enabled()
        assert is_grad_enabled()
        point += 1
    assert point == 5  # __enter__ begins, and two calls return in each


def test_no_grad_may_be_entered_again():
    x = Tensor([1.0], requires_grad=True)
    context = no_grad()
    for _ in range(2):
        with context:
            with context:
                assert not (x * 2).requires_grad
            assert not (x * 2).requires_grad
        assert (x * 2).requires_grad


def test_no_grad_as_a_decorator():
    x = Tensor([1.0], requires_grad=True)

    @no_grad()
    def double(depth):
        return double(depth - 1) if depth else x * 2

    assert not double(3).requires_grad
    assert (x * 2).requires_grad


def test_no_grad_of_an_asynchronous_task_is_its_own():
    async def without():
        with no_grad():
            await asyncio.sleep(0.01)
            return is_grad_enabled()

    async def with_gradients():
        await asyncio.sleep(0.005)
        return is_grad_enabled()

    async def both():
        return await asyncio.gather(without(), with_gradients())

    with ThreadPoolExecutor(1) as other:  # this thread may have an event loop that runs, a browser's
        assert other.submit(asyncio.run, both()).result() == [False, True]


def test_a_tensor_without_axes_has_no_rows():
    with pytest.raises(TypeError, match="iteration over a tensor without axes"):
        list(Tensor(2.0))
    assert [row.numpy().tolist() for row in Tensor([[1.0, 2.0], [3.0, 4.0]])] == [[1.0, 2.0], [3.0, 4.0]]
    rows = list(Tensor([1.0, 2.0], requires_grad=True))
    assert all(row.requires_grad for row in rows)


@pytest.mark.parametrize("value", [1j, np.complex128(1j), np.str_("2"), "2", None, np.array(1j)], ids=repr)
def test_what_is_no_real_number_does_not_mix_with_tensors(value):
    with pytest.raises(TypeError):
        Tensor([1.0]) + value
