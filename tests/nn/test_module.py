"""Modules: which parameters they find and under what names, states, modes; layers against PyTorch's."""

from __future__ import annotations

import copy
import math
import re

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, backend, manual_seed, nn, ops, random


class Block(nn.Module):
    """A module with everything: a parameter of its own, modules in attributes and lists, a shared table."""

    def __init__(self) -> None:
        self.scale = nn.Parameter(np.ones(3, np.float32))
        self.table = nn.Embedding(7, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3, bias=False)])
        self.head = nn.Sequential(nn.LayerNorm(3), ops.tanh, nn.Dropout(0.5))
        self.decoder = self.table  # tied
        self.bias = self.layers[0].bias  # shared with a layer inside
        self.note = "not a parameter"
        self.buffer = Tensor([1.0])

    def forward(self, ids):
        x = self.table(ids) * self.scale
        for layer in self.layers:
            x = layer(x)
        return self.head(x) @ self.decoder.weight.T


NAMES = [
    "scale",
    "bias",
    "table.weight",
    "layers.0.weight",
    "layers.1.weight",
    "head.0.weight",
    "head.0.bias",
]


# --- Finding ---------------------------------------------------------------------------------------------


def test_parameters_have_dotted_names_and_come_once():
    block = Block()
    assert [name for name, _ in block.named_parameters()] == NAMES
    assert len({id(p) for p in block.parameters()}) == len(list(block.parameters())) == len(NAMES)
    assert list(block.state_dict()) == NAMES
    assert [name for name, _ in block.named_parameters("model.")] == [f"model.{name}" for name in NAMES]
    assert all(p.requires_grad and p.node is None for p in block.parameters())


def test_modules_come_before_their_children():
    kinds = [type(module).__name__ for module in Block().modules()]
    assert kinds[:5] == ["Block", "Embedding", "ModuleList", "Linear", "Linear"]
    assert kinds[5:] == ["Sequential", "LayerNorm", "Dropout"]  # the embedding, which is there twice, once


def test_a_module_may_point_to_its_parent():
    class Child(nn.Module):
        def __init__(self, parent):
            self.parent = parent
            self.weight = nn.Parameter([1.0])

    class Parent(nn.Module):
        def __init__(self):
            self.child = Child(self)
            self.bias = nn.Parameter([2.0])

    parent = Parent()
    assert [name for name, _ in parent.named_parameters()] == ["bias", "child.weight"]
    assert [name for name, _ in parent.named_modules()] == ["", "child"]
    assert [name for name, _ in parent.child.named_parameters()] == ["weight", "parent.bias"]
    assert list(parent.state_dict()) == ["bias", "child.weight"]
    assert not parent.eval().child.training
    assert repr(parent) == "Parent(bias=(1,)\n  (child): Child(weight=(1,)\n    (parent): …\n  )\n)"
    twin = copy.deepcopy(parent)
    assert twin.child.parent is twin
    assert twin.child.weight is not parent.child.weight


def test_module_list_and_sequential():
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
    layers.append(nn.Linear(2, 5))
    assert len(layers) == 3
    assert layers[-1].weight.shape == (2, 5)
    assert [layer.weight.shape[1] for layer in layers] == [2, 2, 5]
    assert [name for name, _ in layers.named_parameters()][-1] == "2.bias"
    stack = nn.Sequential(nn.Linear(2, 3), ops.relu, nn.Linear(3, 1))
    assert [name for name, _ in stack.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    x = Tensor(np.ones((4, 2), np.float32))
    expected = stack[2](ops.relu(stack[0](x)))
    np.testing.assert_array_equal(stack(x).numpy(), expected.numpy())


class Listing(nn.Module):
    """A module with a list that is empty when it is assigned."""

    def __init__(self) -> None:
        self.layers = []


@pytest.mark.parametrize(
    "hidden",
    [
        [nn.Linear(2, 2), nn.Linear(2, 2)],
        (ops.tanh, nn.LayerNorm(2)),
        {"first": nn.Parameter([1.0])},
        [(nn.Linear(2, 2), "a name")],
        {"inside": {"deeper": [nn.Dropout()]}},
    ],
    ids=["list", "tuple", "dict", "list of tuples", "dict of dicts"],
)
def test_a_module_in_a_list_where_no_walk_finds_it_is_refused(hidden):
    block, message = Block(), r"^Block\.layers2: .* in a (list|tuple|dict), .*nn\.ModuleList"
    with pytest.raises(TypeError, match=message):
        block.layers2 = hidden
    assert not hasattr(block, "layers2")


@pytest.mark.parametrize(
    "hide", [lambda x: x, lambda x: [x], lambda x: {"w": (x,)}], ids=["attribute", "list", "dict"]
)
def test_a_leaf_that_would_not_be_trained_is_refused(hide):
    module = nn.Module()
    with pytest.raises(TypeError, match=r"Module.w: parameters\(\) does not find .*Tensor"):
        module.w = hide(Tensor(np.ones(2), requires_grad=True))
    later = Tensor(np.ones(2))
    module.w = hide(later)  # a buffer
    assert not list(module.parameters())
    later.requires_grad = True
    with pytest.raises(TypeError, match=r"Module.w: parameters\(\) does not find"):
        list(module.parameters())


def test_an_output_may_be_kept_in_a_module():
    """As attention weights are, to be looked at."""
    module = nn.Module()
    module.w = nn.Parameter(np.ones(2))
    module.seen = module.w * 2.0
    assert [name for name, _ in module.named_parameters()] == ["w"]


def test_a_list_that_is_filled_later_is_found_by_every_walk():
    listing = Listing()
    assert list(listing.parameters()) == []
    listing.layers.append(nn.Linear(2, 3))
    for walk in (lambda: list(nn.Sequential(listing).parameters()), listing.state_dict, listing.eval):
        with pytest.raises(TypeError, match=r"^Listing\.layers: .*nn\.ModuleList"):
            walk()


def test_other_lists_are_attributes_like_any():
    block = Block()
    block.sizes, block.names, block.buffers = [1, (2, 3)], {"a": ["b"]}, (Tensor([1.0]), np.ones(2), None)
    assert [name for name, _ in block.named_parameters()] == NAMES


def test_a_class_may_find_the_modules_of_a_list_by_itself():
    class Pairs(nn.Module):
        walked = frozenset({"pairs"})

        def __init__(self):
            self.pairs = [("first", nn.Linear(2, 3)), ("second", nn.Linear(3, 1, bias=False))]

        def children(self):
            return iter(self.pairs)

    assert [name for name, _ in Pairs().named_parameters()] == ["first.weight", "first.bias", "second.weight"]

    class Steps(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Linear(2, 3))
            self.others = [nn.Linear(2, 3)]

    with pytest.raises(TypeError, match=r"^Steps\.others: "):
        Steps()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("scale", np.ones(3), "Block.scale: expected a Parameter or None, got ndarray; for other numbers"),
        ("scale", Tensor([1.0]), "Block.scale: expected a Parameter or None, got Tensor; for other numbers"),
        ("scale", nn.LayerNorm(3), "Block.scale: expected a Parameter or None, got LayerNorm"),
        ("head", ops.tanh, "Block.head: expected a Module, a Parameter or None, got function"),
        ("head", Tensor([1.0]), "Block.head: expected a Module, a Parameter or None, got Tensor"),
    ],
)
def test_what_is_trained_is_not_replaced_by_what_is_not(name, value, message):
    block = Block()
    before = getattr(block, name)
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        setattr(block, name, value)
    assert getattr(block, name) is before


def test_parameters_and_modules_may_be_replaced_and_taken_away():
    block = Block()
    block.scale = nn.Parameter(np.zeros(3))
    block.table = block.decoder = nn.Embedding(5, 3)
    block.head = nn.Parameter([1.0])  # as PyTorch has it: a Parameter may stand in a module's place
    block.bias = block.layers = None
    assert [name for name, _ in block.named_parameters()] == ["scale", "head", "table.weight"]
    block.note, block.buffer = 1, None


def test_repr_shows_what_is_inside():
    block = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.LayerNorm(3)))
    assert repr(block) == (
        "Sequential(\n  (0): Linear(weight=(2, 3), bias=(3,))\n  (1): Sequential(\n"
        "    (0): LayerNorm(weight=(3,), bias=(3,))\n  )\n)"
    )


def test_a_module_without_forward():
    with pytest.raises(NotImplementedError, match="Nothing has no forward"):
        type("Nothing", (nn.Module,), {})()(1)


# --- Modes, gradients, dtypes ----------------------------------------------------------------------------


def test_train_and_eval_reach_every_module():
    block = Block()
    assert all(module.training for module in block.modules())
    assert block.eval() is block
    assert not any(module.training for module in block.modules())
    assert block.train() is block
    assert all(module.training for module in block.modules())
    assert nn.Module.training  # the class keeps its default


def test_zero_grad():
    block = Block()
    block(np.array([1, 2])).sum().backward()
    assert all(p.grad is not None for p in block.parameters())
    block.zero_grad()
    assert all(p.grad is None for p in block.parameters())


def test_astype_and_to():
    block = Block()
    block.scale.grad = block.scale.data
    assert block.astype("float64") is block
    assert {p.dtype.name for p in block.parameters()} == {"float64"}
    assert block.scale.grad is None
    assert block.decoder.weight is block.table.weight
    assert block.to(backend.default().name) is block
    assert block.to("numpy").scale.backend == "numpy"


# --- States ----------------------------------------------------------------------------------------------


def test_state_round_trip():
    one, other = Block().eval(), Block().eval()
    ids = np.array([[1, 2, 6]])
    assert not np.array_equal(one(ids).numpy(), other(ids).numpy())
    assert other.load_state_dict(one.state_dict()) == ([], [])
    np.testing.assert_array_equal(one(ids).numpy(), other(ids).numpy())
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert not backend.default().xp.may_share_memory(a.data, b.data)


def test_state_dict_gives_the_arrays_themselves():
    block = Block()
    assert block.state_dict()["scale"] is block.scale.data


def test_states_come_from_the_host_in_any_dtype():
    layer = nn.Linear(2, 3)
    state = {"weight": np.arange(6.0).reshape(2, 3), "bias": np.arange(3)}
    layer.load_state_dict(state)
    assert layer.weight.dtype == layer.bias.dtype == np.float32
    assert layer.weight.backend == backend.default().name
    np.testing.assert_array_equal(layer.weight.numpy(), state["weight"])
    state["weight"][:] = 9
    assert layer.weight.numpy()[0, 0] == 0


def test_loaded_arrays_are_contiguous():
    """Also from a transposed one, as a checkpoint of PyTorch gives it."""
    layer = nn.Linear(2, 3, bias=False)
    layer.load_state_dict({"weight": np.arange(6.0).reshape(3, 2).T})
    assert layer.weight.data.flags.c_contiguous
    np.testing.assert_array_equal(layer.weight.numpy(), [[0, 2, 4], [1, 3, 5]])


def test_a_model_can_be_copied():
    layer = nn.Linear(2, 3)
    twin = copy.deepcopy(layer)
    assert isinstance(twin.weight, nn.Parameter)
    assert twin.weight.requires_grad
    assert not backend.default().xp.may_share_memory(twin.weight.data, layer.weight.data)


def test_what_is_missing_and_unexpected_is_listed():
    block = Block()
    state = block.state_dict()
    del state["scale"], state["head.0.bias"]
    state["extra"] = np.ones(3)
    with pytest.raises(KeyError, match=r"missing scale, head\.0\.bias; unexpected extra"):
        block.load_state_dict(state)
    assert block.load_state_dict(state, strict=False) == (["scale", "head.0.bias"], ["extra"])


def test_every_misshaped_array_is_listed_and_nothing_is_loaded():
    block = Block()
    before = {name: host(array).copy() for name, array in block.state_dict().items()}
    state = {name: np.full(array.shape, 9.0) for name, array in before.items()}
    state["scale"], state["head.0.bias"] = np.ones(4), np.ones((3, 1))
    for strict in (True, False):
        with pytest.raises(
            ValueError, match=r"scale is \(4,\), expected \(3,\); head\.0\.bias is \(3, 1\), expected \(3,\)"
        ):
            block.load_state_dict(state, strict=strict)
    for name, array in block.state_dict().items():
        np.testing.assert_array_equal(host(array), before[name])


# --- Initial weights -------------------------------------------------------------------------------------


def test_truncated_normal():
    draws = nn.truncated_normal((400, 500), 0.02)
    assert draws.dtype == np.float32
    assert np.abs(draws).max() <= 0.04
    phi2 = math.exp(-2) / math.sqrt(2 * math.pi)
    expected = 0.02 * math.sqrt(1 - 4 * phi2 / math.erf(math.sqrt(2)))  # 0.88 of it
    assert draws.std() == pytest.approx(expected, rel=0.01)
    assert abs(draws.mean()) < 5 * expected / math.sqrt(draws.size)
    share = (np.abs(draws) < 0.02).mean()  # of a normal distribution cut at 2σ, within 1σ
    assert share == pytest.approx(math.erf(math.sqrt(0.5)) / math.erf(math.sqrt(2)), abs=0.005)


def test_initial_weights_hang_on_the_seed_alone():
    manual_seed(5)
    one = nn.Linear(3, 4)
    manual_seed(5)
    other = nn.Linear(3, 4)
    third = nn.Linear(3, 4)
    np.testing.assert_array_equal(one.weight.numpy(), other.weight.numpy())
    assert not np.array_equal(one.weight.numpy(), third.weight.numpy())


def test_initial_weights_and_shapes():
    linear, norm, table = nn.Linear(3, 5, std=0.5), nn.LayerNorm(7), nn.Embedding(11, 3)
    assert linear.weight.shape == (3, 5)
    assert np.abs(linear.weight.numpy()).max() > 0.1
    np.testing.assert_array_equal(linear.bias.numpy(), np.zeros(5))
    np.testing.assert_array_equal(norm.weight.numpy(), np.ones(7))
    np.testing.assert_array_equal(norm.bias.numpy(), np.zeros(7))
    assert (norm.eps, table.weight.shape, nn.Linear(3, 5, bias=False).bias) == (1e-12, (11, 3), None)
    assert {p.dtype.name for m in (linear, norm, table) for p in m.parameters()} == {"float32"}


# --- Layers ----------------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_layers_are_pytorchs(torch, rng):
    x = rng.standard_normal((2, 5, 3)).astype(np.float32)
    linear, norm, table = nn.Linear(3, 7, std=0.5), nn.LayerNorm(3), nn.Embedding(11, 3, std=1.0)
    theirs = torch.nn.Linear(3, 7), torch.nn.LayerNorm(3, eps=1e-12), torch.nn.Embedding(11, 3)
    ids = rng.integers(0, 11, (2, 4))
    with torch.no_grad():
        theirs[0].weight.copy_(torch.tensor(linear.weight.numpy().T.copy()))
        theirs[0].bias.zero_()
        theirs[2].weight.copy_(torch.tensor(table.weight.numpy().copy()))
        expected = [theirs[0](torch.tensor(x)), theirs[1](torch.tensor(x)), theirs[2](torch.tensor(ids))]
    ours = [linear(Tensor(x)), norm(Tensor(x)), table(ids)]
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)


def test_dropout_in_evaluation_and_with_p_0_is_nothing():
    x = Tensor(np.ones(3))
    before = random.get_state()
    assert nn.Dropout(0.5).eval()(x) is x
    assert nn.Dropout(0.0)(x) is x
    assert nn.Dropout(0.5).eval().draw(x, (3,)) is None
    assert random.get_state() == before


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_in_training(p):
    n = 200_000
    x = Tensor(np.ones(n, np.float32), requires_grad=True)
    y = nn.Dropout(p)(x)
    values = y.numpy()
    np.testing.assert_allclose(values[values != 0], 1 / (1 - p), rtol=1e-6)
    assert (values == 0).mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / n) + 1e-4)
    assert values.mean() == pytest.approx(1, abs=5 * math.sqrt(p / (1 - p) / n) + 1e-4)
    y.sum().backward()
    np.testing.assert_array_equal(host(x.grad), values)


def test_dropout_draws_anew_each_time():
    x, layer = Tensor(np.ones(1000)), nn.Dropout(0.5)
    assert not np.array_equal(layer(x).numpy(), layer(x).numpy())


@pytest.mark.parametrize("p", [-0.1, 1.0, 2, float("nan")])
def test_dropout_probabilities(p):
    with pytest.raises(ValueError, match="p must be at least 0 and below 1, got"):
        nn.Dropout(p)
