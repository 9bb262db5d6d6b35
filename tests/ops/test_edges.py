"""The basic operations at their edges: empty, one entry, no axes; ties; extreme values; what errors say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import minigrad
from arrays import host
from minigrad import Tensor, backend, check_grad, ops


def zeros(*shape):
    return Tensor(np.zeros(shape), requires_grad=True)


# --- Empty, one entry, no axes ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 5)])
@pytest.mark.parametrize(
    "op",
    [
        "neg",
        "abs",
        "exp",
        "log",
        "sqrt",
        "tanh",
        "erf",
        "sigmoid",
        "relu",
        "gelu",
        "transpose",
        "flip",
        "sum",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_empty(op, shape, dtype):
    if op == "transpose" and len(shape) < 2:
        pytest.skip("transpose needs two axes")
    x = Tensor(np.zeros(shape, dtype), requires_grad=True)
    y = getattr(ops, op)(x)
    y.sum().backward()
    assert y.dtype == dtype
    assert x.grad.shape == shape
    if op == "sum":
        assert y.item() == 0


def test_empty_products_are_zeros():
    a, b = zeros(3, 0), zeros(0, 5)
    y = a @ b
    np.testing.assert_array_equal(y.numpy(), np.zeros((3, 5)))
    y.sum().backward()
    assert a.grad.shape == (3, 0)
    assert b.grad.shape == (0, 5)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4), (4, 2, 0)])
def test_fused_operations_on_no_rows(shape):
    d = shape[-1]
    x, w, b = zeros(*shape), zeros(d), zeros(d)
    total = ops.linear(x, zeros(d, 3)).sum() + ops.dropout(x, np.ones(shape, bool), 0.5).sum()
    if d:
        total = total + ops.softmax(x).sum() + ops.log_softmax(x).sum() + ops.layer_norm(x, w, b).sum()
        total = total + ops.embedding(np.zeros((0, 2), int), zeros(5, d)).sum()
    total.backward()
    assert x.grad.shape == shape


def test_concat_and_split_with_empty_parts():
    x = zeros(3, 2)
    parts = ops.split(x, [0, 3, 0])
    assert [part.shape for part in parts] == [(0, 2), (3, 2), (0, 2)]
    ops.concat(parts).sum().backward()
    np.testing.assert_array_equal(host(x.grad), np.ones((3, 2)))
    assert [part.shape for part in ops.split(zeros(0, 2), 3)] == [(0, 2)]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "logsumexp", "exp", "erf", "gelu", "sigmoid", "relu"])
def test_a_tensor_without_axes_stays_one(op):
    x = Tensor(np.array(0.7), requires_grad=True)
    y = getattr(ops, op)(x)
    assert y.shape == ()
    check_grad(getattr(ops, op), x)


def test_axes_as_numpy_integers_and_lists(leaf):
    x = leaf(2, 3, 5)
    np.testing.assert_array_equal(x.sum(axis=np.int64(1)).numpy(), x.sum(axis=1).numpy())
    np.testing.assert_array_equal(x.mean(axis=[0, -1]).numpy(), x.mean(axis=(0, 2)).numpy())


# --- Slopes by convention --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "values", "slopes"),
    [
        (lambda x: x.relu(), [-1.0, 0.0, 2.0], [0, 0, 1]),
        (lambda x: abs(x), [-1.0, 0.0, 2.0], [-1, 0, 1]),
        (lambda x: x.max(), [3.0, 1.0, 3.0, 3.0], [1 / 3, 0, 1 / 3, 1 / 3]),
        (lambda x: x.max(axis=0), [2.0, 2.0], [0.5, 0.5]),
        (lambda x: ops.maximum(x, 1.0), [0.0, 1.0, 2.0], [0, 0.5, 1]),
        (lambda x: ops.maximum(1.0, x), [0.0, 1.0, 2.0], [0, 0.5, 1]),
        (lambda x: x**0, [0.0, 2.0], [0, 0]),
        (lambda x: x**1, [0.0, -2.0], [1, 1]),
        (lambda x: x**2, [0.0, -3.0], [0, -6]),
        (lambda x: 0.0**x, [1.0, 2.0], [0, 0]),
        (lambda x: x.var(axis=0, correction=0), [1.0, 3.0], [-1, 1]),
    ],
)
def test_slopes_where_there_is_a_choice(function, values, slopes):
    x = Tensor(values, requires_grad=True)
    function(x).sum().backward()
    np.testing.assert_allclose(host(x.grad), slopes, rtol=1e-6)


# --- Extreme values --------------------------------------------------------------------------------------


def test_sigmoid_and_logsumexp_do_not_overflow():
    x = Tensor([-1e4, -100.0, 0.0, 100.0, 1e4], requires_grad=True)
    y = x.sigmoid()
    np.testing.assert_allclose(y.numpy(), [0, 0, 0.5, 1, 1], atol=1e-7)
    y.sum().backward()
    assert np.isfinite(host(x.grad)).all()
    for value in (1e4, -1e4):
        z = Tensor([value, value], requires_grad=True)
        total = z.logsumexp()
        assert total.item() == pytest.approx(value + math.log(2), rel=1e-7)
        total.backward()
        np.testing.assert_allclose(host(z.grad), [0.5, 0.5])


def test_float64_erf_is_exact():
    x = np.linspace(-6, 6, 1001)
    np.testing.assert_allclose(ops.erf(Tensor(x)).numpy(), [math.erf(v) for v in x], rtol=1e-14)


# --- Indexing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [[1, 1, -2, 0], [[0, 2, 2], [1, 0, 2]], [[-1, 2], [0, -3]]], ids=str)
def test_getitem_of_rows_by_numbers(leaf, index):
    """As an embedding picks them, negative numbers counted from the end; what is picked twice gets both gradients."""
    x = leaf(3, 4)
    dy = np.random.default_rng(0).standard_normal((*np.shape(index), 4))
    x[np.array(index)].backward(dy)
    expected = np.zeros((3, 4))
    np.add.at(expected, np.array(index), dy)
    np.testing.assert_allclose(host(x.grad), expected, rtol=1e-12)


def test_numpy_integers_are_indices(leaf):
    x = leaf(3, 5)
    np.testing.assert_array_equal(x[np.int64(1)].numpy(), x.numpy()[1])
    np.testing.assert_array_equal(x[:, np.int32(-1)].numpy(), x.numpy()[:, -1])
    with pytest.raises(IndexError, match="ndex 3 is out of bounds for axis 0 with size 3"):
        x[np.int64(3)]


def test_getitem_of_a_view_does_not_write_to_the_tensor(leaf):
    x = leaf(3)
    before = x.numpy().copy()
    (x[1:] * 2.0).sum().backward()
    np.testing.assert_array_equal(x.numpy(), before)


# --- Errors ----------------------------------------------------------------------------------------------

ERRORS = [
    (lambda: ops.add(2, 3), TypeError, "add: expected a Tensor, got int and int"),
    (lambda: zeros(3) + None, TypeError, "add: expected a Tensor or a number, got NoneType"),
    (lambda: [1.0] * zeros(1), TypeError, "mul: expected a Tensor or a number, got list"),
    (lambda: zeros(3) / "2", TypeError, "div: expected a Tensor or a number, got str"),
    (lambda: 2j - zeros(3), TypeError, "sub: expected a Tensor or a number, got complex"),
    (lambda: ops.mul("a", 3), TypeError, "mul: expected a Tensor, got int and str"),
    (lambda: zeros(3) - zeros(4), ValueError, "sub: the shapes (3,) and (4,) do not broadcast"),
    (lambda: ops.maximum(zeros(2, 3), zeros(2)), ValueError, "the shapes (2, 3) and (2,) do not broadcast"),
    (lambda: ops.where(np.ones(4, bool), zeros(3), zeros(1)), ValueError, "not broadcast with (3,) and (1,)"),
    (lambda: ops.where(np.ones(4, bool), 1.0, 2.0), TypeError, "expected a Tensor, got float and float"),
    (lambda: zeros(3).masked_fill(np.ones((2, 3), bool), 0.0), ValueError, "does not broadcast to (3,)"),
    (lambda: zeros(3).masked_fill(np.ones(2, bool), 0.0), ValueError, "which does not broadcast to (3,)"),
    (lambda: zeros(2, 3).sum(axis=2), ValueError, "sum: there is no axis 2 in shape (2, 3)"),
    (lambda: zeros().sum(axis=0), ValueError, "sum: there is no axis 0 in shape ()"),
    (lambda: zeros(2, 3).mean(axis=(0, -2)), ValueError, "axis is named twice in (0, -2) for shape (2, 3)"),
    (lambda: zeros(2, 0).mean(), ValueError, "mean: there is nothing along axes (0, 1) of shape (2, 0)"),
    (lambda: zeros(2, 0).max(axis=1), ValueError, "max: there is nothing along axes (1,) of shape (2, 0)"),
    (lambda: zeros(0).var(), ValueError, "var: there is nothing along axes (0,) of shape (0,)"),
    (lambda: zeros(1).var(), ValueError, "var: 1 values along axes (0,) and correction=1"),
    (lambda: zeros(0).logsumexp(), ValueError, "logsumexp: there is nothing along axes (0,) of shape (0,)"),
    (lambda: zeros(2, 3) @ zeros(2, 3), ValueError, "lengths differ, 3 and 2, in shapes (2, 3) @ (2, 3)"),
    (lambda: zeros(5, 1, 2) @ zeros(3, 2, 1), ValueError, "axes of (5, 1, 2) and (3, 2, 1) do not broadcast"),
    (lambda: zeros() @ zeros(3), ValueError, "needs at least one axis on both sides, got shapes () and (3,)"),
    (lambda: zeros(2, 3).reshape(4, 2), ValueError, "6 entries of shape (2, 3) do not fit shape (4, 2)"),
    (lambda: zeros(2, 3).reshape(-1, 4), ValueError, "6 entries of shape (2, 3) do not fit shape (-1, 4)"),
    (lambda: zeros(2, 3).permute(0, 0), ValueError, "(0, 0) does not name each axis of shape (2, 3) once"),
    (lambda: zeros(2, 3).permute(1, 2), ValueError, "(1, 2) does not name each axis of shape (2, 3) once"),
    (lambda: zeros(3).transpose(), ValueError, "transpose: there is no axis -2 in shape (3,)"),
    (lambda: zeros(2, 3).expand(2, 4), ValueError, "expand: shape (2, 3) does not broadcast to (2, 4)"),
    (lambda: zeros(2, 3).expand(3), ValueError, "expand: shape (2, 3) does not broadcast to (3,)"),
    (lambda: zeros(2, 3).squeeze(0), ValueError, "squeeze: axis 0 of shape (2, 3) has length 2, not 1"),
    (lambda: zeros(2, 3).squeeze(5), ValueError, "squeeze: there is no axis 5 in shape (2, 3)"),
    (lambda: zeros(2).unsqueeze(2), ValueError, "unsqueeze: there is no place 2 for an axis in shape (2,)"),
    (lambda: ops.concat([]), ValueError, "concat: needs at least one tensor"),
    (lambda: ops.concat([zeros(2, 3), zeros(2, 4)]), ValueError, "(2, 3) and (2, 4) differ beside axis 0"),
    (lambda: ops.concat([zeros(2, 3), zeros(3)]), ValueError, "concat: (2, 3) and (3,) differ beside axis 0"),
    (lambda: ops.concat([zeros(2), np.ones(2)]), TypeError, "an array of shape (2,): wrap it in Tensor(…)"),
    (lambda: ops.einsum("ij,kl", zeros(2), zeros(2, 3)), ValueError, "axis of the shapes (2,) and (2, 3)"),
    (lambda: ops.einsum("ij,jk->ik", zeros(2, 3), zeros(4, 3)), ValueError, "the shapes (2, 3) and (4, 3)"),
    (lambda: ops.einsum("ii,ij->j", zeros(2, 2), zeros(2, 3)), ValueError, "one place, which is not handled"),
    (lambda: ops.einsum("ij,jk->iz", zeros(2, 3), zeros(3, 2)), ValueError, "an axis that no operand has"),
    (lambda: ops.einsum("ij->ji", zeros(2, 3), zeros(3, 2)), ValueError, "as in \"ij,jk->ik\", got 'ij->ji'"),
    (lambda: zeros(3).clip(), ValueError, "clip: expected min, max or both"),
    (lambda: zeros(3).clip("a", 2), TypeError, "clip: min must be a number, got str"),
    (lambda: zeros(1).std(), ValueError, "std: 1 values along axes (0,) and correction=1"),
    (lambda: zeros(0).argmax(), ValueError, "argmax: there is nothing along axes (0,) of shape (0,)"),
    (lambda: zeros(2, 3).argmin((0, 1)), TypeError, "argmin: axis must be an integer or None, got (0, 1)"),
    (lambda: zeros(3).cumsum(1), ValueError, "cumsum: there is no axis 1 in shape (3,)"),
    (lambda: zeros(3).tril(), ValueError, "tril: expected (…, n, m), got shape (3,)"),
    (lambda: zeros(2, 3, 5, 7).transpose(0, 2, 1, 3), TypeError, "all of them write x.permute(0, 2, 1, 3)"),
    (lambda: zeros(2, 3).transpose((1, 0)), TypeError, "for an order of all of them write x.permute(1, 0)"),
    (lambda: np.ones((2, 3)) @ zeros(3, 2), TypeError, "got an array of shape (2, 3): wrap it in Tensor(…)"),
    (lambda: ops.concat([zeros()]), ValueError, "concat: there is no axis 0 in shape ()"),
    (lambda: ops.stack([]), ValueError, "stack: needs at least one tensor"),
    (lambda: ops.stack([zeros(2), zeros(3)]), ValueError, "stack: the shapes (2,) and (3,) differ"),
    (lambda: ops.split(zeros(5), 0), ValueError, "split: a part must have length 1 or more, got 0"),
    (lambda: ops.split(zeros(5), [2, 2]), ValueError, "parts of [2, 2] do not add up to the 5 of axis 0"),
    (lambda: ops.split(zeros(5), [7, -2]), ValueError, "parts of [7, -2] do not add up to the 5 of axis 0"),
    (lambda: ops.pad(zeros(2, 3), [(1, 1)]), ValueError, "of (before, after) for shape (2, 3), got [(1, 1)]"),
    (lambda: ops.pad(zeros(2), [(-1, 0)]), ValueError, "expected 1 pairs of (before, after) for shape (2,)"),
    (lambda: zeros(2).flip(1), ValueError, "flip: there is no axis 1 in shape (2,)"),
    (lambda: zeros(2)[Tensor([1.0])], TypeError, "index is an array of integers or booleans, not a Tensor"),
    (lambda: zeros(2)[2], IndexError, "in shape (2,)"),
    (lambda: zeros(2, 3)[0, 0, 0], IndexError, "getitem: too many indices"),
    (lambda: zeros(2)[np.array([0.5])], IndexError, "in shape (2,)"),
    (lambda: zeros(2, 3)[np.ones(3, bool)], IndexError, "in shape (2, 3)"),
    (lambda: ops.embedding([0], zeros(3)), ValueError, "the table must be a matrix (V, d), got shape (3,)"),
    (lambda: ops.embedding([[0, 3]], zeros(3, 2)), IndexError, "id 3 is outside 0 … 2"),
    (lambda: ops.embedding([-1], zeros(3, 2)), IndexError, "id -1 is outside 0 … 2"),
    (lambda: ops.embedding([0.5], zeros(3, 2)), TypeError, "ids must be integers, got dtype float64"),
    (lambda: ops.embedding([True], zeros(3, 2)), TypeError, "ids must be integers, got dtype bool"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message[:60] for *_, message in ERRORS])
def test_what_errors_say(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.numpy_only("a GPU wraps an index outside")
def test_integer_array_outside():
    with pytest.raises(
        IndexError, match=re.escape("getitem: index 2 is out of bounds for axis 0 with size 2, in shape (2,)")
    ):
        zeros(2)[np.array([2])]


@pytest.mark.numpy_only("ids on a GPU are not checked for their range")
def test_ids_on_the_backend_are_checked_for_their_range():
    with pytest.raises(IndexError, match="id 7 is outside 0 … 2"):
        ops.embedding(np.array([7]), zeros(3, 2))


def test_ids_on_the_backend():
    kernels = backend.default()
    x = ops.embedding(kernels.asarray(np.array([1, 1])), zeros(3, 2))
    assert x.shape == (2, 2)
    with pytest.raises(TypeError, match="ids must be integers, got dtype float32"):
        ops.embedding(kernels.asarray(np.ones(2, np.float32)), zeros(3, 2))


# --- Values by NumPy, where there is no PyTorch ----------------------------------------------------------


def test_shape_operations_are_numpys(rng):
    x, y = rng.standard_normal((2, 2, 3, 5))
    a, b = Tensor(x), Tensor(y)
    for ours, right in (
        (ops.concat([a, b], axis=1), np.concatenate([x, y], axis=1)),
        (ops.stack([a, b], axis=-1), np.stack([x, y], axis=-1)),
        (ops.pad(a, [(1, 0), (0, 2), (3, 3)], -1.0), np.pad(x, [(1, 0), (0, 2), (3, 3)], constant_values=-1)),
        (a.permute(2, 0, 1), x.transpose(2, 0, 1)),
        (a.reshape(-1, 2), x.reshape(-1, 2)),
        (a.expand(4, 2, 3, 5), np.broadcast_to(x, (4, 2, 3, 5))),
        (ops.split(a, [1, 4], axis=2)[1], x[:, :, 1:]),
        (ops.split(a, 2, axis=1)[1], x[:, 2:]),
        (a.masked_fill(x > 0, -7.0), np.where(x > 0, -7, x)),
        (ops.embedding([2, 0, 2], a[0]), x[0][[2, 0, 2]]),
    ):
        np.testing.assert_array_equal(ours.numpy(), right)


# --- Indices of any integer type ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("rows", [100, 300, 70_000])
def test_index_arrays_of_small_integers(dtype, rows):
    """A table may have more rows than its index's type can count."""
    x = Tensor(np.zeros((rows, 2)), requires_grad=True)
    x[np.array([1, 3, 1], dtype)].sum().backward()
    expected = np.zeros((rows, 2))
    expected[[1, 3]] = [[2], [1]]
    np.testing.assert_array_equal(backend.to_numpy(x.grad), expected)
    if dtype.startswith("i"):
        x = Tensor(np.zeros((rows, 2)), requires_grad=True)
        x[np.array([-1], dtype)].sum().backward()
        assert backend.to_numpy(x.grad)[-1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("index", [[], [[]], np.array([], np.int64), ([], 0)], ids=repr)
def test_an_empty_list_picks_nothing(index):
    x = Tensor(np.ones((3, 2)), requires_grad=True)
    y = x[index]
    assert y.size == 0
    y.sum().backward()
    np.testing.assert_array_equal(backend.to_numpy(x.grad), np.zeros((3, 2)))


@pytest.mark.parametrize(
    "sections", [np.int64(2), np.uint8(2), np.array([2, 2, 1]), [np.int32(2), 2, 1]], ids=repr
)
def test_split_takes_numpys_integers(sections):
    x = Tensor(np.arange(5.0))
    assert [part.numpy().tolist() for part in ops.split(x, sections)] == [[0, 1], [2, 3], [4]]


def test_numpys_booleans_and_integers_as_arguments():
    x = Tensor(np.arange(6.0).reshape(2, 3))
    for op in (ops.sum, ops.mean, ops.var, ops.max, ops.logsumexp):
        assert op(x, axis=np.int64(1), keepdims=np.True_).shape == (2, 1)
    assert ops.pad(x, np.array([[1, 0], [0, 2]], np.uint8)).shape == (3, 5)
    assert ops.permute(x, np.array([1, 0])).shape == (3, 2)
    assert ops.reshape(x, np.array([3, 2])).shape == (3, 2)


# --- What PyTorch's and NumPy's users try -----------------------------------------------------------------


def test_the_module_says_what_torch_tensor_is_here():
    with pytest.raises(TypeError, match=r"minigrad.tensor is a module: write minigrad.Tensor\(…\)"):
        minigrad.tensor([1.0])


def test_comparisons_are_boolean_arrays(rng):
    values, others = np.round(rng.standard_normal((2, 3, 5)), 1)
    x, y = Tensor(values, requires_grad=True), Tensor(others, dtype=np.float64)
    for symbol in ("<", "<=", ">", ">="):
        for text in (
            f"x {symbol} 0.5",
            f"0.5 {symbol} x",
            f"x {symbol} y",
            f"x {symbol} y.data",
            f"y.data {symbol} x",
        ):
            found = eval(text, {"x": x, "y": y})
            assert type(found) is type(x.data), text
            assert found.dtype == bool, text
            right = eval(text.replace(".data", ""), {"x": values, "y": others})
            np.testing.assert_array_equal(host(found), right, err_msg=text)
    np.testing.assert_array_equal(ops.where(x > 0, x, 0.0).numpy(), np.maximum(values, 0))
    with pytest.raises(TypeError, match="does not compare with a str"):
        assert x < "a"


def test_places_of_the_largest_and_smallest_are_numpys(rng):
    values = np.round(rng.standard_normal((4, 3, 5)), 1)
    values[0, 0, 3] = values[2, 1, 1] = np.nan
    x = Tensor(values)
    for op in ("argmax", "argmin"):
        for axis in (None, 0, 1, -1):
            for keepdims in (False, True):
                found = getattr(x, op)(axis=axis, keepdims=keepdims)
                assert found.dtype.kind == "i"
                np.testing.assert_array_equal(
                    host(found), getattr(np, op)(values, axis=axis, keepdims=keepdims)
                )


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda x: np.exp(x), "write minigrad.ops.exp(…)"),
        (lambda x: np.multiply(x, 2), "write minigrad.ops.mul(…)"),
        (lambda x: np.abs(x), "write minigrad.ops.abs(…)"),
        (lambda x: np.hypot(x, 1), "say np.hypot(x.numpy()) to leave the graph"),
        (lambda x: np.sum(x), "write minigrad.ops.sum(…)"),
        (lambda x: np.concatenate([x, x]), "write minigrad.ops.concatenate(…)"),
        (lambda x: np.where([True, False], x, 0), "write minigrad.ops.where(…)"),
        (lambda x: np.transpose(x), "write minigrad.ops.permute(…)"),
        (lambda x: np.add(np.ones(2), 1, out=x), "write minigrad.ops.add(…)"),
        (lambda x: np.add.reduce(x), "say np.add.reduce(x.numpy()) to leave the graph"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numpys_functions_say_what_to_write(call, line):
    with pytest.raises(TypeError, match=f"{re.escape(line)}$"):
        call(Tensor([1.0, 2.0], requires_grad=True))


def test_numpys_functions_read_a_tensor_without_a_gradient():
    x = Tensor([1.0, 2.0])
    assert np.sum(x) == 3
    np.testing.assert_array_equal(np.concatenate([x, x]), [1, 2, 1, 2])
    np.testing.assert_array_equal(np.broadcast_to(x, shape=(2, 2)), [[1, 2], [1, 2]])
    assert isinstance(np.float64(2) * x, Tensor)


# --- Many rows -------------------------------------------------------------------------------------------


MANY = [
    ((2**20, 2), 0),
    ((2**17, 3), (0,)),
    ((4, 2**17, 2), 1),
    ((2**13, 16, 3), (0, 2)),
    ((64, 2**11, 2), (0, 1)),
    ((2**19,), 0),
]


@pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, lambda x: x[::-1]], ids=["C", "F", "turned"]
)
@pytest.mark.parametrize(("shape", "axis"), MANY, ids=str)
def test_sums_of_many_rows_keep_their_digits(shape, axis, layout, rng):
    """Row after row, float32 would lose three to five digits here; PyTorch's sums are within 1e-7 to 3e-7."""
    x = layout(rng.uniform(250, 320, shape).astype(np.float32))
    tensor, wide = Tensor(x), x.astype(np.float64)
    for op, right, rtol in (("sum", np.sum, 1e-6), ("mean", np.mean, 1e-6), ("var", np.var, 2e-5)):
        settings = {"correction": 0} if op == "var" else {}
        found = getattr(ops, op)(tensor, axis=axis, **settings)
        np.testing.assert_allclose(found.numpy(), right(wide, axis=axis), rtol=rtol, err_msg=op)


ONES, ZEROS, IDENTITY = (np.array(values, np.float32) for values in ([1, 1], [0, 0], [[1, 0], [0, 1]]))


@pytest.mark.parametrize(
    "add",
    [
        lambda x, bias: x + bias,
        lambda x, bias: ops.linear(x, Tensor(IDENTITY), bias),
        lambda x, bias: ops.layer_norm(x, Tensor(ONES), bias),
        lambda x, bias: ops.layer_norm(x, bias, Tensor(ZEROS)),
        lambda x, bias: ops.embedding(np.zeros(len(x), int), bias.reshape(1, 2)),
    ],
    ids=["bias", "linear", "layer_norm", "its gain", "embedding"],
)
def test_gradients_that_add_many_rows_keep_their_digits(add, rng):
    """The normalised rows are (1, -1), so that the gain's gradients are such sums too, with signs."""
    x = np.tile(np.array([2, 0], np.float32), (2**16, 1))
    bias = Tensor(ONES, requires_grad=True)
    dy = rng.uniform(250, 320, x.shape).astype(np.float32)
    add(Tensor(x), bias).backward(dy)
    np.testing.assert_allclose(np.abs(host(bias.grad)), dy.astype(np.float64).sum(axis=0), rtol=1e-6)
