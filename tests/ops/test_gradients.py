"""Every operation in `op_cases.py`: gradients against differences, values and gradients against PyTorch."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from minigrad import Tensor, backend, check_grad, ops
from minigrad.graph import Node
from op_cases import BASIC, CASES, FUSED, Case

MODULES = {"fused": ops.fused, "composed": ops.composed}
EVERY = [pytest.param(case, ops, id=str(case)) for case in BASIC] + [
    pytest.param(case, module, id=f"{name}.{case}") for case in FUSED for name, module in MODULES.items()
]
every_operation = pytest.mark.parametrize(("case", "module"), EVERY)


def gradients(case: Case, inputs: list[Tensor], module=ops) -> tuple[np.ndarray, list[np.ndarray]]:
    """The output, and the gradient of each input for a random cotangent."""
    y = case.run(*inputs, module=module)
    y.backward(cotangent(y))
    return y.numpy(), [backend.to_numpy(x.grad) for x in inputs]


def cotangent(y: Tensor) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(y.shape).astype(y.dtype)


def test_every_operation_has_a_case():
    assert {case.op for case in CASES} == set(ops.__all__) - {"composed", "fused"}
    assert {case.op for case in FUSED} == set(ops.fused.__all__) == set(ops.composed.__all__)


@pytest.mark.parametrize("module", [*ops.MODULES, ops.composed], ids=lambda module: module.__name__)
def test_every_function_of_these_files_is_an_operation(module):
    functions = {
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert functions == set(module.__all__)


@every_operation
def test_gradient_is_the_slope(case, module):
    check_grad(lambda *inputs: case.run(*inputs, module=module), *case.inputs())


@every_operation
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype_and_shape_stay(case, module, dtype):
    inputs = case.inputs(dtype)
    y = case.run(*inputs, module=module)
    assert y.dtype == dtype
    y.backward(cotangent(y))
    for x in inputs:
        assert x.grad.dtype == dtype
        assert x.grad.shape == x.shape
        assert type(x.grad) is type(x.data)


@pytest.mark.oracle
@every_operation
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 2e-6)])
def test_values_and_gradients_are_pytorchs(case, module, dtype, rtol, torch):
    y, grads = gradients(case, case.inputs(dtype), module)
    theirs = [torch.tensor(array, requires_grad=True) for array in case.arrays(dtype)]
    expected = case.torch(torch, *theirs)
    expected.backward(torch.tensor(np.random.default_rng(7).standard_normal(y.shape).astype(dtype)))
    pairs = [(y, expected.detach().numpy())] + list(zip(grads, [x.grad.numpy() for x in theirs], strict=True))
    for ours, right in pairs:
        assert ours.shape == right.shape
        scale = max(1.0, float(np.abs(right).max(initial=0)))
        np.testing.assert_allclose(ours, right, rtol=0, atol=rtol * scale)


@every_operation
def test_memory_layout_of_the_inputs_does_not_matter(case, module):
    expected, grads = gradients(case, case.inputs(), module)
    strided = []
    for array in case.arrays():
        wide = np.full((*array.shape, 2), np.nan)  # every other entry, in the reverse order of axes
        wide = np.asfortranarray(wide)
        wide[..., 0] = array
        x = Tensor(wide)
        x.data = x.data[..., 0]
        x.requires_grad = True
        strided.append(x)
    y, strided_grads = gradients(case, strided, module)
    np.testing.assert_allclose(y, expected, rtol=1e-13, atol=1e-14)
    for ours, right in zip(strided_grads, grads, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-14)


@every_operation
def test_cotangent_may_be_a_broadcast_view(case, module):
    """`sum` sends back such views: no operation may write to its dy or expect it to be contiguous."""
    inputs, plain = case.inputs(), case.inputs()
    case.run(*inputs, module=module).sum().backward()
    y = case.run(*plain, module=module)
    y.backward(np.ones(y.shape))
    for x, right in zip(inputs, plain, strict=True):
        np.testing.assert_allclose(
            backend.to_numpy(x.grad), backend.to_numpy(right.grad), rtol=1e-12, atol=1e-14
        )


@every_operation
def test_no_gradient_shares_memory(case, module):
    """Neither with an input, an output, the caller's cotangent nor another gradient."""
    inputs = case.inputs()
    y = case.run(*inputs, module=module)
    dy = y.detach() * 0 + 1.0
    y.retain_grad()
    y.backward(dy)
    xp = backend.default().xp
    grads = [x.grad for x in inputs] + [y.grad]
    others = [x.data for x in inputs] + [y.data, dy.data]
    for i, grad in enumerate(grads):
        for other in others + grads[:i]:
            assert not xp.may_share_memory(grad, other)


def held(value) -> list:
    """What a closure's variable holds, looking into tuples and lists."""
    return [one for part in value for one in held(part)] if isinstance(value, tuple | list) else [value]


@every_operation
def test_backward_holds_arrays_and_no_tensor(case, module):
    """A Tensor would keep its data, and what it was computed from, for as long as the graph lives."""
    nodes = [case.run(*case.inputs(), module=module).node]
    while nodes:
        node = nodes.pop()
        nodes += [parent for parent in node.parents if isinstance(parent, Node)]
        for name, cell in inspect.getclosurevars(node.backward).nonlocals.items():
            for value in held(cell):
                assert not isinstance(value, Tensor), f"the backward of {node.op} holds the Tensor {name}"


@every_operation
def test_inputs_are_not_changed(case, module):
    inputs = case.inputs()
    gradients(case, inputs, module)
    for x, before in zip(inputs, case.arrays(), strict=True):
        np.testing.assert_array_equal(x.numpy(), before)


@every_operation
def test_only_some_inputs_require_gradients(case, module):
    _, expected = gradients(case, case.inputs(), module)
    for chosen in range(len(case.shapes)):
        inputs = case.inputs()
        for i, x in enumerate(inputs):
            x.requires_grad = i == chosen
        y = case.run(*inputs, module=module)
        y.backward(cotangent(y))
        for i, x in enumerate(inputs):
            if i != chosen:
                assert x.grad is None
            else:
                np.testing.assert_allclose(backend.to_numpy(x.grad), expected[i], rtol=1e-13, atol=1e-14)
