"""The graph and the walk back: order, memory, who owns a gradient, and what a wrong backward is told."""

from __future__ import annotations

import gc
import re
import threading
import weakref

import numpy as np
import pytest

from arrays import host, on_backend
from minigrad import Tensor, backend, graph, no_grad, ops, optim
from minigrad.graph import Gradient


def share(a, b) -> bool:
    return bool(backend.of(a).xp.may_share_memory(a, b))


# --- The walk back ---------------------------------------------------------------------------------------


def test_a_chain_of_20_000():
    x = Tensor(np.ones(2), requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1.0
    y.sum().backward()
    np.testing.assert_array_equal(host(x.grad), [1, 1])


def test_an_unused_chain_of_20_000_can_be_dropped():
    y = Tensor(1.0, requires_grad=True)
    for _ in range(20_000):
        y = y * 1.0
    del y


def test_each_node_hears_from_all_its_users_before_it_answers(leaf):
    """A diamond of diamonds: 2^30 paths, which only an order by newness walks in time."""
    x = leaf(2)
    y = x
    for _ in range(30):
        y = y + y
    y.sum().backward()
    np.testing.assert_array_equal(host(x.grad), np.full(2, 2.0**30))


def test_long_and_short_way_to_the_same_node(leaf):
    x = leaf(3)
    early = x * 2.0
    late = ((early * 3.0).exp() * 0.0 + early * 5.0) * early  # 10 x · 2 x
    late.sum().backward()
    np.testing.assert_allclose(host(x.grad), 40 * x.numpy())


def test_node_behind_which_nothing_requires_a_gradient(leaf):
    x, fixed = leaf(3), Tensor(np.ones(3))
    y = (fixed * 2.0) * x
    assert (fixed * 2.0).node is None
    y.sum().backward()
    np.testing.assert_array_equal(host(x.grad), np.full(3, 2.0))
    assert fixed.grad is None


def test_backward_of_a_leaf():
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.backward([3.0, 4.0])
    x.backward([1.0, 1.0])
    np.testing.assert_array_equal(host(x.grad), [4, 5])


def test_cotangent_as_list_array_and_tensor(leaf):
    x = leaf(2)
    for gradient in ([1, 2], np.array([1.0, 2.0]), Tensor([1.0, 2.0]), on_backend([1, 2])):
        x.zero_grad()
        (x * 3.0).backward(gradient)
        assert x.grad.dtype == np.float64
        np.testing.assert_array_equal(host(x.grad), [3, 6])


def test_none_gradients_end_a_path(leaf):
    x, w = leaf(3), leaf(3)

    def only_first(a, b):
        def backward(dy):
            return dy * 2, None

        return Tensor.from_op(a.data * 2, (a, b), backward)

    only_first(x, w * 1.0).sum().backward()
    np.testing.assert_array_equal(host(x.grad), np.full(3, 2.0))
    assert w.grad is None


def test_backward_where_there_is_no_graph(leaf):
    with pytest.raises(RuntimeError, match=r"does not require a gradient.*no_grad\(\)"):
        Tensor(1.0).backward()
    with no_grad():
        y = leaf(1) * 2.0
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        y.backward()
    with no_grad(), pytest.raises(RuntimeError, match=r"does not require a gradient: recording is off here"):
        y.backward()


def test_cotangent_missing_or_of_another_shape(leaf):
    y = leaf(2, 3) * 2.0
    with pytest.raises(ValueError, match=r"shape \(2, 3\) needs a gradient of that shape"):
        y.backward()
    with pytest.raises(ValueError, match=r"the gradient has shape \(3,\), the tensor \(2, 3\)"):
        y.backward(np.ones(3))


def test_a_complex_cotangent_is_refused():
    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"the gradient must be of numbers, got dtype complex128"):
        (x * 2).backward(np.array([1j]))


def test_second_backward_on_a_freed_graph(leaf):
    x = leaf(3)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"second time through sum.*compute the output again"):
        y.backward()


def test_second_backward_through_a_shared_part(leaf):
    shared = leaf(3).exp()
    (shared * 1.0).sum().backward()
    with pytest.raises(RuntimeError, match="second time through exp"):
        (shared * 2.0).sum().backward()


def test_retain_grad(leaf):
    x = leaf(3)
    y = (x * 2.0).retain_grad()
    other = x * 3.0
    z = (y * y + other).sum()
    z.backward()
    np.testing.assert_allclose(host(y.grad), 4 * x.numpy())
    assert other.grad is None
    assert z.grad is None
    assert not share(y.grad, x.grad)


# --- Memory ----------------------------------------------------------------------------------------------


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
def test_saved_arrays_are_freed_by_backward(leaf):
    x = leaf(3)
    saved = x.exp()
    watch = weakref.ref(saved.data)
    y = (saved * saved).sum()
    del saved
    assert watch() is not None
    y.backward()
    assert watch() is None


@pytest.mark.usefixtures("without_collector")
def test_saved_arrays_are_freed_when_the_output_is_dropped(leaf):
    """An operation whose backward held its output Tensor would be a cycle and stay."""
    saved = leaf(3).exp()
    watch = weakref.ref(saved.data)
    y = ops.softmax(saved).sum()
    del saved, y
    assert watch() is None


@pytest.mark.usefixtures("without_collector")
def test_saved_arrays_are_freed_on_the_way(leaf):
    """Before backward has come to an end, what it has passed is gone."""
    x = leaf(3)
    late = x * 2.0
    early_alive = []

    def watching(a):
        def backward(dy):
            early_alive.append(watch() is not None)
            return (dy,)

        return Tensor.from_op(a.data.copy(), (a,), backward)

    top = watching(late).exp()
    watch = weakref.ref(top.data)
    y = top.sum()
    del top
    y.backward()
    assert early_alive == [False]


@pytest.mark.usefixtures("without_collector")
def test_arrays_that_no_closure_saved_are_freed_in_the_forward(leaf):
    """A sum's backward needs shapes alone: the graph must not keep what went through it."""
    x = leaf(3)
    between = x + 1.0
    watch = weakref.ref(between.data)
    y = (between + 2.0).sum()
    del between
    assert watch() is None
    y.backward()
    np.testing.assert_array_equal(host(x.grad), np.ones(3))


# --- Accumulation and ownership --------------------------------------------------------------------------


def test_a_plus_b_share_nothing(leaf):
    a, b = leaf(3), leaf(3)
    dy = on_backend([1, 2, 3], "float64")
    y = (a + b).retain_grad()
    y.backward(dy)
    for one, other in ((a.grad, b.grad), (a.grad, dy), (b.grad, dy), (y.grad, a.grad), (y.grad, dy)):
        assert not share(one, other)
    a.grad *= 10  # what a weight decay or a clipping does
    np.testing.assert_array_equal(host(b.grad), [1, 2, 3])
    np.testing.assert_array_equal(host(dy), [1, 2, 3])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: x.reshape(-1),
        lambda x: x.T,
        lambda x: x + 0.0,
        lambda x: x.expand(2, 2, 3),
        lambda x: ops.concat([x, x]),
        lambda x: ops.stack([x, x, x]),
        lambda x: x[0] + x[1],
        lambda x: x.sum() + x.sum(),
    ],
)
def test_neither_cotangent_nor_earlier_gradient_is_changed(function, leaf):
    x = leaf(2, 3)
    shape = function(x).shape
    dy = on_backend(np.ones(shape), "float64")
    function(x).backward(dy)
    first = x.grad
    before = host(first).copy()
    assert not share(first, dy)
    function(x).backward(dy)
    np.testing.assert_array_equal(host(dy), np.ones(shape))
    np.testing.assert_array_equal(host(first), before)
    np.testing.assert_array_equal(host(x.grad), 2 * before)


def test_tied_weights(leaf, rng):
    """One table as embedding and as decoder: both gradients, each in the place of its use."""
    table = leaf(5, 3)
    ids = np.array([0, 3, 3])
    w = rng.standard_normal((3, 5))
    hidden = ops.embedding(ids, table)
    (hidden @ table.T).backward(w)
    vectors = table.numpy()[ids]
    expected = w.T @ vectors
    np.add.at(expected, ids, w @ table.numpy())
    np.testing.assert_allclose(host(table.grad), expected)


def test_one_array_for_two_parents(leaf):
    a, b = leaf(3), leaf(3)

    def both(a, b):
        def backward(dy):
            g = dy * 2.0
            return g, g

        return Tensor.from_op(a.data + b.data, (a, b), backward)

    both(a, b).sum().backward()
    assert not share(a.grad, b.grad)
    both(a, a).sum().backward()
    np.testing.assert_array_equal(host(a.grad), np.full(3, 6.0))
    np.testing.assert_array_equal(host(b.grad), np.full(3, 2.0))


def test_many_contributions_are_added_in_place(leaf):
    """Two borrowed ones need a new array, later ones do not: what a deep shared table would otherwise cost."""
    x = leaf(3)
    arrays_seen = []

    def use(a):
        def backward(dy):
            return (dy * 1.0,)

        return Tensor.from_op(a.data.copy(), (a,), backward)

    kept = Gradient(on_backend([1, 1, 1]))
    for _ in range(3):
        kept.add(on_backend([1, 1, 1]))
        arrays_seen.append(kept.array)
    assert arrays_seen[0] is arrays_seen[1] is arrays_seen[2]
    for first_owned in (True, False):  # the sum goes into the one that the engine owns
        first, second = on_backend([1, 1, 1]), on_backend([2, 2, 2])
        kept = Gradient(first, owned=first_owned)
        kept.add(second, owned=not first_owned)
        assert kept.array is (first if first_owned else second)
        np.testing.assert_array_equal(host(first), np.full(3, 3.0 if first_owned else 1.0))
        np.testing.assert_array_equal(host(second), np.full(3, 2.0 if first_owned else 3.0))
    (use(x) + use(x) + use(x)).sum().backward()
    np.testing.assert_array_equal(host(x.grad), np.full(3, 3.0))


@pytest.mark.numpy_only("the stand-in wraps an array's base anew")
def test_an_array_and_a_view_of_it_are_no_contributions_to_add_into(leaf):
    """An operation may return both; adding into the one would change the other."""
    a, b = leaf(2, 2), leaf(2, 2)

    def twins(a, b):
        def backward(dy):
            gradient = dy * 1.0
            return gradient, gradient.T

        return Tensor.from_op(a.data + b.data.T, (a, b), backward)

    dy = np.array([[1.0, 2.0], [3.0, 4.0]])
    (b * 100.0 + a * 10.0 + twins(a, b)).backward(dy)  # a hears from its own product before b does
    np.testing.assert_array_equal(host(a.grad), dy * 11)
    np.testing.assert_array_equal(host(b.grad), dy.T + dy * 100)


# --- Checked gradients -----------------------------------------------------------------------------------


def broken_op(returned):
    """An operation `broken` of two inputs, whose backward returns `returned(dy)`."""

    def broken(a: Tensor, b: Tensor) -> Tensor:
        def backward(dy):
            return returned(dy)

        return Tensor.from_op(a.data + b.data, (a, b), backward)

    return broken


KIND = f"an array of {backend.default().name}"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda dy: (dy, dy.sum(axis=0)), "input 1 has shape (3,) and dtype float64, its input has (2, 3)"),
        (lambda dy: (dy[:1], dy), "of input 0 has shape (1, 3) and dtype float64, its input has (2, 3)"),
        (lambda dy: (dy, dy.astype("float32")), "(2, 3) and dtype float32, its input has (2, 3) and float64"),
        (lambda dy: (dy,), "backward returned 1 gradients for 2 inputs"),
        (lambda dy: (dy, dy, dy), "backward returned 3 gradients for 2 inputs"),
        (lambda dy: (dy, 2.0), f"backward returned float for input 1, expected {KIND}"),
        (lambda dy: (Tensor(dy), dy), f"backward returned Tensor for input 0, expected {KIND}"),
        (lambda dy: (dy, [1.0]), f"backward returned list for input 1, expected {KIND}"),
    ],
)
def test_a_wrong_backward_is_named(returned, message, leaf):
    with pytest.raises(RuntimeError, match="^broken: .*" + re.escape(message)):
        broken_op(returned)(leaf(2, 3), leaf(2, 3)).sum().backward()


def test_an_array_of_another_backend_is_named(leaf):
    if backend.default().name == "numpy":
        pytest.skip("needs CuPy or its stand-in besides NumPy (--standin, --backend cupy)")
    with pytest.raises(
        RuntimeError,
        match=r"broken: backward returned an array of numpy for input 0, expected an array of cupy",
    ):
        broken_op(lambda dy: (backend.to_numpy(dy), dy))(leaf(3), leaf(3)).sum().backward()


def test_operations_are_named_after_the_function_around_backward(leaf):
    x = leaf(2, 3)
    named = {"add": x + 1.0, "matmul": x @ x.T, "softmax": ops.softmax(x), "reshape": x.unsqueeze(0)}
    assert {name: y.node.op for name, y in named.items()} == {name: name for name in named}
    assert broken_op(lambda dy: (dy, dy))(x, x).node.op == "broken"


@pytest.mark.numpy_only("on a GPU the sum of an array is an array")
def test_numpy_scalars_are_arrays_without_axes(leaf):
    """NumPy turns the sum of an array into a scalar; the engine turns it back."""
    x = leaf()
    y = broken_op(lambda dy: (np.float64(2.0), dy))(x, leaf())
    assert type(y.data) is np.ndarray
    y.backward()
    assert type(x.grad) is np.ndarray


# --- Hooks -----------------------------------------------------------------------------------------------


def test_a_hook_sees_the_whole_gradient_before_older_operations_are_walked(leaf):
    x, w = leaf(3), leaf(3)
    y = x * 2.0
    seen = []
    w.register_post_accumulate_grad_hook(lambda tensor: seen.append((host(tensor.grad).copy(), x.grad)))
    ((y * w) + (y * w)).sum().backward()  # w is used twice, and newer than x's only use
    [(gradient, of_x)] = seen
    np.testing.assert_allclose(gradient, 4 * x.numpy())
    assert of_x is None
    assert x.grad is not None


def test_a_hook_is_called_once_for_each_backward_and_sees_the_sum(leaf):
    x, seen = leaf(2), []
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(host(tensor.grad).tolist()))
    for _ in range(2):
        (x * 3.0).sum().backward()
    x.backward(np.ones(2))
    assert seen == [[3, 3], [6, 6], [7, 7]]


def test_hooks_go_in_their_order_and_can_be_removed(leaf):
    x, calls = leaf(2), []
    handles = [
        x.register_post_accumulate_grad_hook(lambda _, name=name: calls.append(name)) for name in "abc"
    ]
    handles[1].remove()
    handles[1].remove()
    x.sum().backward()
    assert calls == ["a", "c"]
    handles[0].remove()
    handles[2].remove()
    assert x not in graph._with_hooks  # no walk back looks for it
    x.sum().backward()
    assert calls == ["a", "c"]


def test_a_hook_may_change_the_gradient_in_place(leaf):
    x, y = leaf(2), leaf(2)

    def double(tensor):
        tensor.grad += tensor.grad

    x.register_post_accumulate_grad_hook(double)
    (x + y).sum().backward()
    np.testing.assert_array_equal(host(x.grad), [2, 2])
    np.testing.assert_array_equal(host(y.grad), [1, 1])


def test_no_hook_without_a_gradient(leaf):
    x, y, calls = leaf(2), leaf(2), []
    y.register_post_accumulate_grad_hook(calls.append)

    def backward(dy):
        return dy, None

    inner = y * 2.0  # hears nothing, so it is not walked
    Tensor.from_op(x.data + inner.data, (x, inner), backward).sum().backward()
    assert y.grad is None
    assert calls == []


def test_what_a_hook_raises_ends_backward(leaf):
    x, y = leaf(2), leaf(2)

    def fail(_):
        raise KeyError("no")

    x.register_post_accumulate_grad_hook(fail)
    with pytest.raises(KeyError):
        (y * 2.0 * x).sum().backward()
    assert x.grad is not None
    assert y.grad is None


def test_hooks_of_two_threads(leaf):
    leaves, calls = [leaf(50) for _ in range(2)], [[], []]
    for tensor, own in zip(leaves, calls, strict=True):
        tensor.register_post_accumulate_grad_hook(own.append)

    def work(tensor):
        for _ in range(50):
            (tensor * tensor).sum().backward()

    both = [threading.Thread(target=work, args=(tensor,)) for tensor in leaves]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    for tensor, own in zip(leaves, calls, strict=True):
        assert own == [tensor] * 50
        np.testing.assert_allclose(host(tensor.grad), 100 * tensor.numpy())


def test_who_can_have_a_hook(leaf):
    output = leaf(2) * 2.0
    with pytest.raises(RuntimeError, match=r"expected a leaf .* is the output of mul"):
        output.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match=r"expected a leaf .* requires no gradient"):
        Tensor([1.0]).register_post_accumulate_grad_hook(print)


def test_a_leaf_with_a_hook_dies_with_its_last_reference(leaf):
    x = leaf(2)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    dead = weakref.ref(x)
    del x
    gc.collect()
    assert dead() is None


@pytest.mark.oracle
def test_hooks_are_called_in_pytorchs_order_with_its_values(torch, rng):
    """Two layers between a tied table and the loss; each operation has one leaf, for the order within one is free."""
    table, first, second = (rng.standard_normal(shape) for shape in ((7, 4), (4, 4), (4, 4)))
    ids = np.array([0, 6, 6, 2])

    ours, theirs = [], []
    leaves = {
        name: Tensor(a, requires_grad=True) for name, a in zip("tab", (table, first, second), strict=True)
    }
    for name, one in leaves.items():
        one.register_post_accumulate_grad_hook(lambda x, name=name: ours.append((name, host(x.grad).copy())))
    x = ops.embedding(ids, leaves["t"])
    x = ((x @ leaves["a"]).tanh() @ leaves["b"]).tanh() @ leaves["a"] @ leaves["t"].transpose()
    (x * x).sum().backward()

    twins = {
        name: torch.tensor(a, requires_grad=True)
        for name, a in zip("tab", (table, first, second), strict=True)
    }
    for name, twin in twins.items():
        twin.register_post_accumulate_grad_hook(
            lambda x, name=name: theirs.append((name, x.grad.numpy().copy()))
        )
    x = torch.nn.functional.embedding(torch.tensor(ids), twins["t"])
    x = torch.tanh(torch.tanh(x @ twins["a"]) @ twins["b"]) @ twins["a"] @ twins["t"].T
    (x * x).sum().backward()

    assert [name for name, _ in ours] == [name for name, _ in theirs] == ["b", "a", "t"]
    for (_, one), (_, other) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


# --- Arrays that an optimiser changes ---------------------------------------------------------------------


def stepped(w):
    """An optimiser's step on w, with a gradient of ones."""
    w.grad = backend.of(w.data).xp.ones_like(w.data)
    optim.SGD([w], lr=0.5).step()


USES = {
    "mul": lambda w, x: w * x,
    "matmul": lambda w, x: w @ x,
    "transpose": lambda w, x: x @ w.T,
    "linear": ops.linear,
    "square": lambda w, x: w * w,
    "div": lambda w, x: x / w,
    "einsum": lambda w, x: ops.einsum("ij,jk->ik", w, x),
    "softmax": lambda w, x: ops.softmax(w, -1) * x,
    "tanh": lambda w, x: ops.tanh(w) * x,
    "add": lambda w, x: w + x,
    "sub": lambda w, x: x - w,
    "sum": lambda w, x: w.sum() + x,
    "concat": lambda w, x: ops.concat([w, x]),
    "getitem": lambda w, x: w[1:] + x[1:],
    "embedding": lambda w, x: ops.embedding(np.array([0, 0, 2]), w) + x,
    "layer_norm": lambda w, x: ops.layer_norm(x, w[0], w[1]),
    "attention": lambda w, x: ops.scaled_dot_product_attention(x, w, x),
}
SAVES_W = {  # for the gradient of x: as PyTorch says of each
    "mul", "matmul", "transpose", "linear", "square", "div", "einsum", "layer_norm", "attention",
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_a_step_before_backward_is_an_error_where_a_gradient_is_made_of_what_it_changed(use, leaf):
    w, x = leaf(3, 3), leaf(3, 3)
    y = USES[use](w, x)
    stepped(w)
    if use in SAVES_W:
        with pytest.raises(
            RuntimeError, match=r"backward\(\) after step\(\): since the forward pass, an optimiser has"
        ):
            y.sum().backward()
    else:
        y.sum().backward()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "use", [use for use in USES if use not in ("linear", "concat", "embedding", "layer_norm", "attention")]
)
@pytest.mark.parametrize("wants", ["both", "w", "x"])
def test_it_is_an_error_where_it_is_pytorchs(use, wants, leaf, torch, monkeypatch):
    w, x = leaf(3, 3), leaf(3, 3)
    v, z = (torch.tensor(one.numpy().copy(), requires_grad=True) for one in (w, x))
    for ours, theirs, name in ((w, v, "w"), (x, z, "x")):
        ours.requires_grad = wants in ("both", name)
        theirs.requires_grad_(wants in ("both", name))
    outcomes = []
    for inputs, step in (((w, x), lambda: change(w)), ((v, z), lambda: v.detach().sub_(0.5))):
        if inputs[0] is v:
            monkeypatch.setattr("test_graph.ops", torch)
        y = USES[use](*inputs)
        step()
        try:
            y.sum().backward()
            outcomes.append("fine")
        except RuntimeError:
            outcomes.append("error")
    assert outcomes[0] == outcomes[1]


def change(w):
    """What a step does, also to a tensor that wants no gradient."""
    graph.changed_in_place([w])
    w.data[...] -= 0.5


def test_backward_after_a_step_that_came_before_the_forward_pass_is_fine(leaf):
    w, x = leaf(3), leaf(3)
    stepped(w)
    (w * x).sum().backward()
    stepped(x)  # and of another graph's leaf
    (w * w).sum().backward()


def test_only_the_part_of_the_graph_that_was_there_is_old(leaf):
    w, x = leaf(3), leaf(3)
    y = w * x
    stepped(w)
    with pytest.raises(RuntimeError, match=r"^mul: backward\(\) after step\(\)"):
        (y * 2.0).sum().backward()


def test_what_a_step_changes_may_be_saved_out_of_sight(leaf):
    """In a list, in a function that backward calls, in a view of a detached twin."""
    w, x = leaf(3), leaf(3)
    for saved in ([w.data], w.detach().data[1:], ((w.data[::-1],), lambda: w.data)):

        def recorded(kept=saved):
            def backward(dy):
                return (dy * float(len(kept)),)

            return Tensor.from_op(x.data + 1.0, (x,), backward)

        y = recorded()
        stepped(w)
        with pytest.raises(RuntimeError, match=r"after step\(\)"):
            y.sum().backward()


def test_a_hook_may_step_as_soon_as_a_gradient_is_complete(leaf):
    w, x = leaf(3, 3), leaf(3, 3)
    optimiser = optim.SGD([w], lr=0.1)
    w.register_post_accumulate_grad_hook(lambda _: optimiser.step())
    ((x @ w) * 2.0 + x).sum().backward()
    assert optimiser.steps == 1
