"""RNN, GRU and LSTM: PyTorch's numbers, states and lengths; what padding must not change; what errors say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from arrays import host, on_backend
from minigrad import Tensor, check_grad, manual_seed, nn, ops
from minigrad.ops import composed

KINDS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
each_kind = pytest.mark.parametrize("kind", KINDS)


def as_tuple(state):
    return state if isinstance(state, tuple) else (state,)


def as_state(parts):
    """What a module takes for these parts of a state."""
    return tuple(parts) if len(parts) > 1 else parts[0]


def draw_state(kind, layers, rows, hidden, rng):
    return [rng.standard_normal((layers, rows, hidden)) for _ in range(2 if kind == "LSTM" else 1)]


# --- Against PyTorch -------------------------------------------------------------------------------------


def pytorchs_twin(torch, kind, ours, settings, dtype):
    """PyTorch's module with the same parameters."""
    theirs = getattr(torch.nn, kind)(**settings, batch_first=True).to(getattr(torch, dtype))
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.copy_(torch.tensor(host(ours.state_dict()[name]).T.copy()))
    return theirs


def run_theirs(torch, theirs, x, state, lengths):
    """PyTorch's outputs; rows of different lengths are packed and padded again."""
    if lengths is None:
        return theirs(x, state)
    utils = torch.nn.utils.rnn
    packed = utils.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    y, after = theirs(packed, state)
    return utils.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], after


# Seen once, beside PyTorch in one process: NumPy warns of a product of finite float32 whose result is finite. A NaN
# would still differ from PyTorch's numbers below.
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")
@pytest.mark.oracle
@each_kind
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize(
    ("rows", "steps", "lengths"),
    [(4, 7, None), (5, 6, [3, 6, 1, 2, 6]), (3, 5, [2, 4, 1]), (1, 5, [3]), (3, 1, None), (1, 1, [1])],
    ids=str,
)
@pytest.mark.parametrize("with_state", [False, True])
def test_outputs_states_and_every_gradient_are_pytorchs(
    kind, dtype, bidirectional, num_layers, rows, steps, lengths, with_state, torch, rng
):
    settings = {"input_size": 3, "hidden_size": 5, "num_layers": num_layers, "bidirectional": bidirectional}
    module = KINDS[kind](**settings).astype(dtype)
    theirs = pytorchs_twin(torch, kind, module, settings, dtype)
    start = [part.astype(dtype) for part in draw_state(kind, num_layers * (1 + bidirectional), rows, 5, rng)]
    arrays = [rng.standard_normal((rows, steps, 3)).astype(dtype), *start]
    leaves = [Tensor(array, requires_grad=True) for array in arrays]
    their_leaves = [torch.tensor(array, requires_grad=True) for array in arrays]

    y, state = module(leaves[0], as_state(leaves[1:]) if with_state else None, lengths)
    their_y, their_state = run_theirs(
        torch, theirs, their_leaves[0], as_state(their_leaves[1:]) if with_state else None, lengths
    )
    pairs = list(zip([y, *as_tuple(state)], [their_y, *as_tuple(their_state)], strict=True))
    loss, their_loss = Tensor(np.zeros((), dtype)), 0.0
    for ours, right in pairs:
        assert ours.shape == tuple(right.shape)
        assert ours.dtype == dtype
        cotangent = rng.standard_normal(ours.shape).astype(dtype)
        loss = loss + (ours * Tensor(cotangent)).sum()
        their_loss = their_loss + (right * torch.tensor(cotangent)).sum()
    loss.backward()
    their_loss.backward()
    found = [(host(ours.data), right.detach().numpy()) for ours, right in pairs]
    found += [
        (host(parameter.grad), their_parameter.grad.numpy().T)
        for parameter, their_parameter in zip(module.parameters(), theirs.parameters(), strict=True)
    ]
    found += [
        (host(leaf.grad), right.grad.numpy())
        for leaf, right in zip(leaves[: None if with_state else 1], their_leaves, strict=False)
    ]
    for ours, right in found:
        scale = max(1.0, float(np.abs(right).max()))
        np.testing.assert_allclose(ours, right, rtol=0, atol=scale * (1e-5 if dtype == "float32" else 1e-13))


@pytest.mark.oracle
@each_kind
def test_parameters_have_pytorchs_names_order_and_spread(kind, torch):
    module = KINDS[kind](30, 40, num_layers=2, bidirectional=True)
    theirs = getattr(torch.nn, kind)(30, 40, num_layers=2, bidirectional=True)
    assert list(module.state_dict()) == list(theirs.state_dict())
    for name, array in theirs.state_dict().items():
        assert module.state_dict()[name].shape == tuple(array.shape[::-1])
    draws = np.concatenate([host(array).ravel() for array in module.state_dict().values()])
    bound = 1 / np.sqrt(40)
    assert np.abs(draws).max() <= bound
    assert draws.std() == pytest.approx(bound / np.sqrt(3), rel=0.02)  # of an even spread
    assert abs(draws.mean()) < 0.01 * bound


# --- Names, draws, shapes --------------------------------------------------------------------------------


def test_initial_weights_hang_on_the_seed_alone():
    states = []
    for seed in (3, 3, 4):
        manual_seed(seed)
        states.append(host(nn.LSTM(2, 3).weight_hh_l0.data))
    np.testing.assert_array_equal(states[0], states[1])
    assert not np.array_equal(states[0], states[2])


@each_kind
def test_no_graph_is_recorded_for_what_needs_no_gradient(kind, rng):
    module = KINDS[kind](3, 4)
    for parameter in module.parameters():
        parameter.requires_grad = False
    y, state = module(Tensor(rng.standard_normal((2, 3, 3))).astype("float32"), lengths=[1, 3])
    assert not y.requires_grad
    assert not any(part.requires_grad for part in as_tuple(state))


# --- Gradients by differences ----------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("lengths", [None, [3, 1, 2]], ids=str)
def test_gradients_are_slopes(kind, lengths, rng):
    module = KINDS[kind](3, 2, num_layers=2, bidirectional=True).astype("float64")
    parameters = list(module.named_parameters())

    def function(x, *rest):
        start, values = rest[: len(rest) - len(parameters)], rest[-len(parameters) :]
        for (name, _), value in zip(parameters, values, strict=True):
            vars(module)[name] = value  # a Tensor, as an attribute, is refused
        y, state = module(x, as_state(start), lengths)
        return ops.concat([y.reshape(-1), *(part.reshape(-1) for part in as_tuple(state))])

    arrays = [rng.standard_normal((3, 3, 3)), *draw_state(kind, 4, 3, 2, rng)]
    inputs = [Tensor(array, requires_grad=True) for array in arrays]
    check_grad(function, *inputs, *(parameter for _, parameter in parameters))


# --- Steps, layers, directions ---------------------------------------------------------------------------


@each_kind
def test_dropout_is_between_layers_and_in_training_alone(kind, rng):
    x = Tensor(rng.standard_normal((2, 4, 3)).astype(np.float32))
    module = KINDS[kind](3, 30, num_layers=2, dropout=0.5)
    plain = KINDS[kind](3, 30, num_layers=2)
    plain.load_state_dict(module.state_dict())
    np.testing.assert_array_equal(module.eval()(x)[0].numpy(), plain(x)[0].numpy())
    y, state = module.train()(x)
    first, second = as_tuple(state)[0].numpy(), as_tuple(plain(x)[1])[0].numpy()
    np.testing.assert_array_equal(first[0], second[0])  # the lower layer's own state is not dropped
    assert not np.allclose(first[1], second[1])
    assert (y.numpy() != 0).all()  # nor is the last layer's output


@each_kind
def test_dropout_of_one_layer_has_nothing_to_drop_and_says_so(kind, rng):
    with pytest.warns(UserWarning, match=rf"^{kind}: dropout=0\.5 .* num_layers=1") as warnings:
        one = KINDS[kind](3, 30, dropout=0.5)
    assert warnings[0].filename == __file__  # where the layer is made
    x = Tensor(rng.standard_normal((2, 4, 3)).astype(np.float32))
    np.testing.assert_array_equal(one(x)[0].numpy(), one.eval()(x)[0].numpy())
    KINDS[kind](3, 30, num_layers=2, dropout=0.5)  # any warning is an error here
    KINDS[kind](3, 30, dropout=0.0)


# --- Lengths ---------------------------------------------------------------------------------------------

LENGTHS = [3, 5, 1, 4]


@each_kind
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_changes_nothing_and_gets_no_gradient(kind, bidirectional, rng):
    module = KINDS[kind](3, 4, num_layers=2, bidirectional=bidirectional)
    inside = np.arange(5) < np.array(LENGTHS)[:, None]
    x = rng.standard_normal((4, 5, 3)).astype(np.float32)
    results = []
    for filling in (0.0, 1e4, -3.0):
        leaf = Tensor(np.where(inside[:, :, None], x, np.float32(filling)), requires_grad=True)
        y, state = module(leaf, lengths=LENGTHS)
        module.zero_grad()
        # also of outputs beyond a length, which are 0 whatever x is
        (y.sum() + sum((part * part).sum() for part in as_tuple(state))).backward()
        gradient = host(leaf.grad)
        assert (gradient[~inside] == 0).all()
        assert (np.abs(gradient[inside]).sum(axis=-1) > 0).all()
        assert (y.numpy()[~inside] == 0).all()
        results.append([y.numpy(), *(part.numpy() for part in as_tuple(state)), gradient])
        results[-1] += [host(p.grad) for p in module.parameters()]
    for others in results[1:]:
        for ours, right in zip(others, results[0], strict=True):
            np.testing.assert_array_equal(ours, right)


@each_kind
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("filling", [np.nan, np.inf])
def test_padding_that_is_not_finite_reaches_no_gradient(kind, bidirectional, filling, monkeypatch, rng):
    module = KINDS[kind](3, 4, num_layers=2, bidirectional=bidirectional)
    inside = (np.arange(5) < np.array(LENGTHS)[:, None])[:, :, None]
    x = rng.standard_normal((4, 5, 3)).astype(np.float32)
    for run in (KINDS[kind].run, getattr(composed, kind.lower())):
        monkeypatch.setattr(KINDS[kind], "run", staticmethod(run))
        results = []
        for padding in (0.0, filling):
            leaf = Tensor(np.where(inside, x, np.float32(padding)), requires_grad=True)
            module.zero_grad()
            y, state = module(leaf, lengths=LENGTHS)
            (y.sum() + sum((part * part).sum() for part in as_tuple(state))).backward()
            results.append([y.numpy(), *(part.numpy() for part in as_tuple(state)), host(leaf.grad)])
            results[-1] += [host(p.grad) for p in module.parameters()]
        for ours, right in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, right)


@pytest.mark.oracle
@each_kind
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_that_is_not_finite_is_to_pytorch_as_if_it_were_not_there(kind, bidirectional, torch, rng):
    settings = {"input_size": 3, "hidden_size": 4, "num_layers": 2, "bidirectional": bidirectional}
    module = KINDS[kind](**settings).astype("float64")
    theirs = pytorchs_twin(torch, kind, module, settings, "float64")
    inside = (np.arange(5) < np.array(LENGTHS)[:, None])[:, :, None]
    x = np.where(inside, rng.standard_normal((4, 5, 3)), np.nan)
    y, _ = module(Tensor(x), lengths=LENGTHS)
    their_y, _ = run_theirs(torch, theirs, torch.tensor(x), None, LENGTHS)
    cotangent = rng.standard_normal(y.shape)
    y.backward(cotangent)
    their_y.backward(torch.tensor(cotangent))
    np.testing.assert_allclose(y.numpy(), their_y.detach().numpy(), atol=1e-13)
    for parameter, right in zip(module.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(host(parameter.grad), right.grad.numpy().T, atol=1e-13)


@pytest.mark.parametrize(
    "make", [list, np.array, lambda n: np.array(n, np.uint8), lambda n: on_backend(n, "int64")]
)
def test_lengths_may_come_as(make, rng):
    module, x = nn.GRU(3, 4), Tensor(rng.standard_normal((4, 5, 3)).astype(np.float32))
    np.testing.assert_array_equal(
        module(x, lengths=make(LENGTHS))[0].numpy(), module(x, None, LENGTHS)[0].numpy()
    )


# --- Precision and extremes ------------------------------------------------------------------------------


@each_kind
def test_huge_inputs_saturate_and_stay_finite(kind):
    module = KINDS[kind](2, 3)
    x = Tensor(np.full((2, 4, 2), 1e30, np.float32), requires_grad=True)
    y, _ = module(x)
    y.sum().backward()
    assert np.isfinite(y.numpy()).all()
    assert all(np.isfinite(host(p.grad)).all() for p in module.parameters() if p.shape[0] != 2)


# --- Errors ----------------------------------------------------------------------------------------------


def tensor(*shape):
    return Tensor(np.zeros(shape, np.float32))


X = (2, 5, 3)
ERRORS = [
    (lambda: nn.GRU(3, 4)(np.zeros(X)), TypeError, "GRU: expected a Tensor, got ndarray"),
    (lambda: nn.GRU(3, 4)(tensor(5, 3)), ValueError, "with at least one time step, got shape (5, 3)"),
    (lambda: nn.GRU(3, 4)(tensor(2, 5, 4)), ValueError, "x (B, T, 3) with at least one time step, got"),
    (lambda: nn.GRU(3, 4)(tensor(2, 0, 3)), ValueError, "with at least one time step, got shape (2, 0, 3)"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), lengths=[0, 5]), ValueError, "length must be within 1 … 5, got 0"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), lengths=[2, 6]), ValueError, "length must be within 1 … 5, got 6"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), lengths=[1, 2, 3]), ValueError, "lengths of shape (2,), got (3,)"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), lengths=[[1, 2]]), ValueError, "lengths of shape (2,), got (1, 2)"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), lengths=[1.0, 2.0]), TypeError, "must be integers, got dtype float64"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), lengths=[True, True]), TypeError, "must be integers, got dtype bool"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), tensor(1, 2, 4)), TypeError, "must be a pair (h, c), got Tensor"),
    (lambda: nn.LSTM(3, 4)(tensor(*X), (tensor(1, 2, 4),)), TypeError, "be a pair (h, c), got a tuple of 1"),
    (lambda: nn.GRU(3, 4)(tensor(*X), (tensor(1, 2, 4), tensor(1, 2, 4))), TypeError, "h, got a tuple of 2"),
    (lambda: nn.RNN(3, 4)(tensor(*X), np.zeros((1, 2, 4))), TypeError, "must be a Tensor h, got ndarray"),
    (
        lambda: nn.LSTM(3, 4)(tensor(*X), (tensor(1, 2, 4), np.zeros((1, 2, 4)))),
        TypeError,
        "LSTM: c must be a Tensor, got ndarray",
    ),
    (
        lambda: nn.LSTM(3, 4, num_layers=2)(tensor(*X), (tensor(2, 2, 4), tensor(1, 2, 4))),
        ValueError,
        "LSTM: c must have shape (2, 2, 4), got (1, 2, 4)",
    ),
    (
        lambda: nn.RNN(3, 4, bidirectional=True)(tensor(*X), tensor(1, 2, 4)),
        ValueError,
        "RNN: h must have shape (2, 2, 4), got (1, 2, 4)",
    ),
    (lambda: nn.RNN(3, 0), ValueError, "RNN: hidden_size must be at least 1, got 0"),
    (lambda: nn.RNN(0, 4), ValueError, "RNN: input_size must be at least 1, got 0"),
    (lambda: nn.RNN(3, 4, num_layers=0), ValueError, "RNN: num_layers must be at least 1, got 0"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message[-50:] for *_, message in ERRORS])
def test_what_errors_say(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_a_state_of_another_dtype():
    with pytest.raises(TypeError, match="the dtypes float32 and float64 do not mix"):
        nn.GRU(3, 4)(tensor(*X), Tensor(np.zeros((1, 2, 4))))


# --- Any sizes -------------------------------------------------------------------------------------------

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402


@given(
    kind=st.sampled_from(list(KINDS)),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    more=st.integers(0, 2),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    bidirectional=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_rows_of_any_lengths_are_the_rows_alone(kind, lengths, more, sizes, bidirectional):
    """In any batch, with any padding: outputs, and the gradient of each row's input."""
    rng = np.random.default_rng(0)
    module = KINDS[kind](*sizes, bidirectional=bidirectional).astype("float64")
    x = rng.standard_normal((len(lengths), max(lengths) + more, sizes[0]))
    leaf = Tensor(x, requires_grad=True)
    y, _ = module(leaf, lengths=lengths)
    cotangent = rng.standard_normal(y.shape)
    y.backward(cotangent)
    for row, length in enumerate(lengths):
        own = Tensor(x[row : row + 1, :length], requires_grad=True)
        alone, _ = module(own)
        alone.backward(cotangent[row : row + 1, :length])
        np.testing.assert_allclose(y.numpy()[row, :length], alone.numpy()[0], atol=1e-13)
        np.testing.assert_allclose(host(leaf.grad)[row, :length], host(own.grad)[0], atol=1e-13)
        assert (host(leaf.grad)[row, length:] == 0).all()
        assert (y.numpy()[row, length:] == 0).all()
