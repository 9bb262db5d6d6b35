"""Optimisers, schedule and clipping: PyTorch's trajectories over 100 steps, states, and what errors say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, backend, nn, optim

SHAPES = [(5, 3), (3,), (3, 2)]

OPTIMISERS = [
    ("SGD", "SGD", {"lr": 0.05}),
    ("SGD", "SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", "SGD", {"lr": 0.05, "momentum": 0.5, "weight_decay": 0.1}),
    ("Adam", "Adam", {"lr": 0.02}),
    ("Adam", "Adam", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    ("AdamW", "AdamW", {"lr": 0.02}),
    ("AdamW", "AdamW", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.3}),
]
optimisers = pytest.mark.parametrize(
    ("name", "theirs", "settings"),
    OPTIMISERS,
    ids=[f"{name}-{len(settings)}" for name, _, settings in OPTIMISERS],
)


def parameters(dtype="float64"):
    rng = np.random.default_rng(11)
    return [nn.Parameter(rng.standard_normal(shape).astype(dtype)) for shape in SHAPES]


def batches(count, dtype="float64"):
    rng = np.random.default_rng(12)
    return [rng.standard_normal((4, 5)).astype(dtype) for _ in range(count)]


def loss(x, w, b, v):
    """The same in minigrad and PyTorch."""
    y = (x @ w + b).tanh() @ v
    return (y * y).mean() + (w * w).mean()


def train(optimiser, ps, xs, after=lambda step: None):
    for step, x in enumerate(xs):
        optimiser.zero_grad()
        loss(Tensor(x), *ps).backward()
        if step % 10 == 3:  # a parameter without a gradient stays as it is
            ps[1].grad = None
        after(step)
        optimiser.step()


def train_torch(torch, optimiser, ps, xs, after=lambda step: None):
    for step, x in enumerate(xs):
        optimiser.zero_grad()
        loss(torch.tensor(x), *ps).backward()
        if step % 10 == 3:
            ps[1].grad = None
        after(step)
        optimiser.step()


def in_torch(torch, ps):
    return [torch.tensor(p.numpy().copy(), requires_grad=True) for p in ps]


def assert_same(ps, theirs, rtol):
    for ours, right in zip(ps, theirs, strict=True):
        np.testing.assert_allclose(ours.numpy(), right.detach().numpy(), rtol=rtol, atol=rtol)


# --- Against PyTorch -------------------------------------------------------------------------------------


@pytest.mark.oracle
@optimisers
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 2e-4)])
def test_100_steps_are_pytorchs(name, theirs, settings, dtype, rtol, torch):
    if name == "Adam" and dtype == "float64":
        rtol = 1e-9
    ps = parameters(dtype)
    qs = in_torch(torch, ps)
    start = [p.numpy().copy() for p in ps]
    ours, right = getattr(optim, name)(ps, **settings), getattr(torch.optim, theirs)(qs, **settings)
    xs = batches(100, dtype)
    train(ours, ps, xs)
    train_torch(torch, right, qs, xs)
    assert_same(ps, qs, rtol)
    assert all(np.abs(p.numpy() - before).max() > 0.05 for p, before in zip(ps, start, strict=True))
    assert {p.dtype.name for p in ps} == {dtype}


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("first", [1, 10, 1000])
def test_the_first_step_of_a_parameter_is_a_whole_one_whenever_it_comes(name, first):
    """Adam's first step is lr long, because m and v are corrected: of a layer thawed late as well."""
    early, late = nn.Parameter(np.zeros(3)), nn.Parameter(np.zeros(3))
    optimiser = getattr(optim, name)([early, late], lr=0.5, eps=0.0, weight_decay=0.0)
    for step in range(1, first + 1):
        early.grad = backend.default().asarray(np.array([1.0, -2.0, 3.0]))
        late.grad = early.grad if step == first else None
        optimiser.step()
    np.testing.assert_allclose(late.numpy(), [-0.5, 0.5, -0.5], rtol=1e-6)
    assert optimiser.parameter_steps == [first, 1]
    assert optimiser.steps == first


@pytest.mark.oracle
def test_groups_schedule_and_clipping_together_are_pytorchs(torch):
    """BERT's recipe: decay on matrices alone, linear warm-up and decay, gradients clipped to norm 0.1."""
    ps = parameters()
    qs = in_torch(torch, ps)

    def groups(tensors):
        return [
            {"params": [tensors[0], tensors[2]], "weight_decay": 0.3},
            {"params": [tensors[1]], "weight_decay": 0.0, "lr": 0.05},
        ]

    ours = optim.AdamW(groups(ps), lr=0.02, eps=1e-6)
    right = torch.optim.AdamW(groups(qs), lr=0.02, eps=1e-6)
    schedule = optim.LinearWarmupDecay(ours, 10, 90)
    factor = torch.optim.lr_scheduler.LambdaLR(
        right, lambda step: step / 10 if step < 10 else max(0.0, (90 - step) / 80)
    )
    norms, right_norms, rates = [], [], []
    for x in batches(100):
        for optimiser, tensors, wrap in ((ours, ps, Tensor), (right, qs, torch.tensor)):
            optimiser.zero_grad()
            loss(wrap(x), *tensors).backward()
        norms.append(float(optim.clip_grad_norm(ps, 0.1)))
        right_norms.append(float(torch.nn.utils.clip_grad_norm_(qs, 0.1)))
        ours.step()
        right.step()
        schedule.step()
        factor.step()
        rates.append([group["lr"] for group in ours.groups])
        np.testing.assert_allclose(rates[-1], [group["lr"] for group in right.param_groups], rtol=1e-12)
    np.testing.assert_allclose(norms, right_norms, rtol=1e-9)
    assert_same(ps, qs, 1e-9)
    assert max(norms) > 0.1  # so clipping did something
    assert rates[-1] == [0, 0]


@pytest.mark.oracle
def test_schedule_is_hugging_faces(torch):
    transformers = pytest.importorskip("transformers")
    right = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    theirs = transformers.get_linear_schedule_with_warmup(right, 7, 25)
    ours = optim.SGD([nn.Parameter([0.0])], lr=0.3)
    schedule = optim.LinearWarmupDecay(ours, 7, 25)
    for _ in range(30):
        assert ours.groups[0]["lr"] == pytest.approx(right.param_groups[0]["lr"], rel=1e-12, abs=1e-15)
        ours.step()
        right.step()
        schedule.step()
        theirs.step()


# --- By hand ---------------------------------------------------------------------------------------------


def one_step(optimiser_class, gradient, **settings):
    p = nn.Parameter(np.array([1.0, -2.0]))
    optimiser = optimiser_class([p], **settings)
    p.grad = backend.default().asarray(np.array(gradient))
    optimiser.step()
    return p.numpy()


def test_first_steps_by_hand():
    np.testing.assert_allclose(one_step(optim.SGD, [0.5, -1.0], lr=0.1), [0.95, -1.9])
    np.testing.assert_allclose(one_step(optim.SGD, [0.0, 0.0], lr=0.1, weight_decay=0.5), [0.95, -1.9])
    # Adam's first step is lr · sign(g), whatever the size of g
    np.testing.assert_allclose(one_step(optim.Adam, [0.5, -1e-3], lr=0.1), [0.9, -1.9], rtol=1e-4)
    # AdamW shrinks first: (1 - lr λ) p
    np.testing.assert_allclose(one_step(optim.AdamW, [0.0, 0.0], lr=0.1, weight_decay=0.5), [0.95, -1.9])
    # Adam puts the decay into the gradient, where it is normalised away
    np.testing.assert_allclose(
        one_step(optim.Adam, [0.0, 0.0], lr=0.1, weight_decay=0.5), [0.9, -1.9], rtol=1e-6
    )


def test_step_changes_the_array_in_place():
    p = nn.Parameter(np.ones(3))
    array = p.data
    for optimiser in (optim.SGD([p], lr=0.1), optim.AdamW([p])):
        p.grad = backend.default().asarray(np.ones(3))
        optimiser.step()
        assert p.data is array
    assert (p.numpy() < 1).all()
    np.testing.assert_array_equal(host(p.grad), np.ones(3))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_memory_layout_of_a_parameter_does_not_matter(name):
    """A transposed array, as a checkpoint may give it, is no contiguous one: a flat copy would learn alone."""
    values, gradient = np.random.default_rng(0).standard_normal((2, 7, 5))
    wide = np.zeros((7, 5, 2))
    wide[..., 1] = values
    layouts = [values.copy(), np.asfortranarray(values), wide[..., 1]]
    ps = []
    for array in layouts:
        p = nn.Parameter([0.0])
        p.data = backend.default().asarray(wide)[..., 1] if array.base is wide else nn.Parameter(array).data
        optimiser = getattr(optim, name)([p], lr=0.1, weight_decay=0.1)
        for step in range(3):
            p.grad = backend.default().asarray(gradient + step)
            optimiser.step()
        ps.append(p.numpy())
        assert np.abs(ps[-1] - values).min() > 1e-3
    np.testing.assert_array_equal(ps[1], ps[0])
    np.testing.assert_array_equal(ps[2], ps[0])


# --- States ----------------------------------------------------------------------------------------------


@optimisers
def test_a_resumed_run_is_the_uninterrupted_one(name, theirs, settings):
    xs = batches(20)
    whole = parameters()
    train(getattr(optim, name)(whole, **settings), whole, xs)

    ps = parameters()
    first = getattr(optim, name)(ps, **settings)
    train(first, ps, xs[:10])
    state = first.state_dict()
    copied = {**state, "state": [[host(a).copy() for a in arrays] for arrays in state["state"]]}
    again = [nn.Parameter(p.numpy().copy()) for p in ps]
    second = getattr(optim, name)(again, **settings)
    second.load_state_dict(copied)
    train(second, again, xs[10:])
    for a, b in zip(whole, again, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert second.steps == 20
    assert second.parameter_steps == [20, 18, 20]  # the second had no gradient twice


def test_a_state_without_counts_is_one_in_which_each_parameter_made_all_the_steps():
    optimiser = optim.AdamW(parameters())
    state = {"steps": 7, "state": optimiser.state_dict()["state"]}
    optimiser.load_state_dict(state)
    assert optimiser.parameter_steps == [7, 7, 7]
    for wrong in ([7], [7, 8, 7], [7, 7, -1]):
        with pytest.raises(ValueError, match=r"parameter_steps must be 3 counts within 0 … 7, got \[7"):
            optimiser.load_state_dict({**state, "parameter_steps": wrong})
    assert optimiser.parameter_steps == [7, 7, 7]


def test_schedule_resumes_from_the_step_count():
    def make(steps):
        optimiser = optim.SGD([nn.Parameter([0.0])], lr=1.0)
        optimiser.steps = steps
        return optim.LinearWarmupDecay(optimiser, 4, 12)

    schedule = make(0)
    for step in range(15):
        assert schedule.optimizer.groups[0]["lr"] == make(step).optimizer.groups[0]["lr"]
        schedule.optimizer.step()
        schedule.step()


def rates_of(schedule, steps):
    """The rate of each of the next steps."""
    found = []
    for _ in range(steps):
        found.append(schedule.optimizer.groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("before", [0, 3, 12, 40])
def test_a_second_schedule_begins_anew_with_the_rate_that_was_given(before):
    """A notebook's cell that makes the schedule and trains is run again."""
    optimiser = optim.SGD([nn.Parameter([0.0])], lr=0.1)
    first = rates_of(optim.LinearWarmupDecay(optimiser, 4, 12), before)
    again = rates_of(optim.LinearWarmupDecay(optimiser, 4, 12), 12)
    assert again == rates_of(optim.LinearWarmupDecay(optim.SGD([nn.Parameter([0.0])], lr=0.1), 4, 12), 12)
    assert max(again) == 0.1
    assert again[:before] == first[:12]


@pytest.mark.oracle
def test_a_second_schedule_is_pytorchs(torch):
    q = torch.zeros(1, requires_grad=True)
    right, ours = torch.optim.SGD([q], lr=0.1), optim.SGD([nn.Parameter([0.0])], lr=0.1)
    for warmup, total, steps in ((5, 30, 17), (3, 40, 50)):
        schedule = optim.LinearWarmupDecay(ours, warmup, total)
        theirs = torch.optim.lr_scheduler.LambdaLR(right, schedule.factor)
        for rate in rates_of(schedule, steps):
            assert rate == pytest.approx(right.param_groups[0]["lr"], rel=1e-12)
            right.step()
            theirs.step()


def test_a_rate_set_by_hand_is_the_next_schedules_peak():
    optimiser = optim.SGD([nn.Parameter([0.0])], lr=0.1)
    rates_of(optim.LinearWarmupDecay(optimiser, 4, 12), 5)
    optimiser.groups[0]["lr"] = 0.3
    assert max(rates_of(optim.LinearWarmupDecay(optimiser, 4, 12), 12)) == pytest.approx(0.3)


def test_a_schedule_goes_on_where_a_state_is_loaded_after_it_was_made():
    optimiser = optim.SGD([nn.Parameter([0.0])], lr=0.1)
    schedule = optim.LinearWarmupDecay(optimiser, 4, 12)
    optimiser.load_state_dict({"steps": 8, "state": optimiser.state})
    schedule.step()
    assert optimiser.groups[0]["lr"] == pytest.approx(0.05)


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (64, 10), (1, 1)])
def test_the_transformers_schedule_is_its_equation(d_model, warmup):
    """Vaswani et al. (2017), equation 3, whose steps begin at 1; two groups keep their ratio."""
    p, q = nn.Parameter([0.0]), nn.Parameter([0.0])
    optimiser = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=1.0)
    schedule = optim.InverseSquareRootWarmup(optimiser, d_model, warmup)
    for step in range(1, 30):
        rate = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert [group["lr"] for group in optimiser.groups] == pytest.approx([rate, rate / 2], rel=1e-12)
        optimiser.step()
        schedule.step()
    factors = [schedule.factor(step) for step in range(3 * warmup)]
    assert int(np.argmax(factors)) == warmup - 1  # the highest rate is that of step `warmup_steps`
    assert max(factors) == pytest.approx((d_model * warmup) ** -0.5, rel=1e-12)


# --- Clipping --------------------------------------------------------------------------------------------


def with_gradients(*gradients):
    ps = []
    for gradient in gradients:
        p = nn.Parameter(np.zeros(np.shape(gradient)))
        p.grad = backend.default().asarray(np.asarray(gradient, dtype=np.float64))
        ps.append(p)
    return ps


def test_clipping_scales_all_to_the_joint_norm():
    ps = with_gradients([3.0, 0.0], [[4.0]])
    ps.append(nn.Parameter([1.0]))  # without a gradient
    assert float(optim.clip_grad_norm(ps, 1.0)) == pytest.approx(5.0)
    np.testing.assert_allclose(host(ps[0].grad), [0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(host(ps[1].grad), [[0.8]], rtol=1e-6)


def test_small_gradients_are_not_scaled():
    ps = with_gradients([0.3, 0.4])
    assert float(optim.clip_grad_norm(iter(ps), 1.0)) == pytest.approx(0.5)
    np.testing.assert_array_equal(host(ps[0].grad), [0.3, 0.4])
    assert optim.clip_grad_norm([], 1.0) == 0
    assert float(optim.clip_grad_norm(set(ps), 1.0)) == pytest.approx(0.5)  # a norm needs no order


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_broken_gradients_are_told(bad):
    ps = with_gradients([bad, 1.0], [2.0])
    norm = float(optim.clip_grad_norm(ps, 1.0))
    assert not math.isfinite(norm)
    np.testing.assert_array_equal(host(ps[1].grad), [2.0])


def test_the_norm_of_float16_gradients_is_not_infinite():
    parameter = nn.Parameter(np.zeros(4, "float16"))
    parameter.grad = backend.default().asarray(np.full(4, 200, "float16"))
    assert float(optim.clip_grad_norm([parameter], 1.0)) == pytest.approx(400)
    np.testing.assert_allclose(host(parameter.grad), np.full(4, 0.5), rtol=1e-3)


# --- Errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_norm", [0, -1.0, float("nan")])
def test_norms_that_are_none(max_norm):
    with pytest.raises(ValueError, match="clip_grad_norm: max_norm must be positive, got"):
        optim.clip_grad_norm([], max_norm)


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW])
def test_what_errors_say(cls):
    p, q = nn.Parameter([0.0]), nn.Parameter([1.0])
    name = cls.__name__
    with pytest.raises(ValueError, match=f"^{name}: no parameters"):
        cls([], lr=1.0)
    with pytest.raises(ValueError, match=f"^{name}: a parameter is named twice"):
        cls([{"params": [p, q]}, {"params": [p]}], lr=1.0)
    with pytest.raises(ValueError, match=rf"^{name}: unknown settings \['decay', 'rate'\]"):
        cls([{"params": [p], "rate": 1, "decay": 2}], lr=1.0)


def test_states_of_other_parameters_change_nothing():
    p = nn.Parameter(np.ones((2, 3)))
    optimiser = optim.AdamW([p])
    other = optim.AdamW([nn.Parameter(np.ones((3, 2)))]).state_dict()
    with pytest.raises(
        ValueError, match=r"AdamW: the state is for other parameters: .*\(3, 2\).*not.*\(2, 3\)"
    ):
        optimiser.load_state_dict({**other, "steps": 5})
    assert optimiser.steps == 0
    with pytest.raises(ValueError, match="the state is for other parameters"):
        optimiser.load_state_dict({"steps": 1, "state": []})


@pytest.mark.parametrize(("warmup", "total"), [(-1, 5), (6, 5), (0, 0)])
def test_schedules_that_are_none(warmup, total):
    with pytest.raises(ValueError, match="LinearWarmupDecay: warmup_steps must be within"):
        optim.LinearWarmupDecay(optim.SGD([nn.Parameter([0.0])], lr=1.0), warmup, total)


@pytest.mark.parametrize(
    ("settings", "message"),
    [((0, 5), "d_model must be at least 1, got 0"), ((8, 0), "warmup_steps must be at least 1, got 0")],
)
def test_inverse_square_roots_that_are_none(settings, message):
    with pytest.raises(ValueError, match=f"InverseSquareRootWarmup: {message}"):
        optim.InverseSquareRootWarmup(optim.SGD([nn.Parameter([0.0])], lr=1.0), *settings)


def test_a_schedule_needs_a_factor():
    with pytest.raises(NotImplementedError, match=r"Schedule has no factor\(\)"):
        optim.Schedule(optim.SGD([nn.Parameter([0.0])], lr=1.0))


def test_update_is_for_subclasses():
    p = nn.Parameter([0.0])
    optimiser = optim.Optimizer([p], lr=1.0)
    p.grad = p.data
    with pytest.raises(NotImplementedError, match=r"Optimizer has no update\(\)"):
        optimiser.step()


def test_a_gradient_set_by_hand_may_be_on_the_host():
    (p, *_), (q, *_) = parameters("float32"), parameters("float32")
    gradient = np.ones((5, 3), np.float32)
    for kind in (optim.SGD, optim.Adam, optim.AdamW):
        one, other = kind([p], lr=0.1), kind([q], lr=0.1)
        p.grad, q.grad = gradient, backend.of(q.data).asarray(gradient)
        one.step()
        other.step()
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_a_setting_of_the_groups_is_no_attribute_of_the_optimiser():
    first, second = nn.Parameter([0.0]), nn.Parameter([0.0])
    optimiser = optim.AdamW([{"params": [first]}, {"params": [second], "lr": 2.0}], lr=1.0)
    for name, value in (("lr", 1e-9), ("betas", (0.5, 0.5)), ("weight_decay", 0.0)):
        message = (
            f'AdamW: {name} is a setting of each group: for group in optimiser.groups: group["{name}"] = '
        )
        with pytest.raises(AttributeError, match=f"^{re.escape(message)}"):
            setattr(optimiser, name, value)
    assert [group["lr"] for group in optimiser.groups] == [1.0, 2.0]
    optimiser.note = "an attribute of one's own"


def test_one_parameter_instead_of_a_list_is_refused():
    parameter = nn.Parameter(np.zeros((3, 2)))
    with pytest.raises(TypeError, match=r"SGD: expected a list of parameters, got one: put it in \[ \]"):
        optim.SGD(parameter, lr=0.1)
    with pytest.raises(TypeError, match=r"clip_grad_norm: expected a list of parameters, got one"):
        optim.clip_grad_norm(parameter, 1.0)


def test_an_iterator_that_is_used_up_is_refused():
    model = nn.Linear(3, 2)
    for take in (
        lambda ps: optim.clip_grad_norm(ps, 1.0),
        lambda ps: optim.AdamW(ps),
        lambda ps: optim.SGD([{"params": [nn.Parameter([0.0])]}, {"params": ps}], lr=0.1),
    ):
        parameters = model.parameters()
        take(parameters)
        with pytest.raises(
            ValueError, match=r"no parameters are left in the generator.*list\(model.parameters\(\)\)"
        ):
            take(parameters)
    assert optim.SGD([{"params": model.parameters()}, {"params": []}], lr=0.1).groups[1]["params"] == []


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW])
def test_what_a_step_could_not_train_is_refused(cls):
    w = nn.Parameter(np.ones(2))
    with pytest.raises(ValueError, match="expected leaves, got the output of mul: a step would not change"):
        cls([w * 0.01], lr=0.1)
    with pytest.raises(ValueError, match=r"got a tensor of shape \(2,\) that requires no gradient"):
        cls([{"params": [w, w.detach()]}], lr=0.1)
    with pytest.raises(TypeError, match="expected parameters, got ndarray"):
        cls([w.numpy()], lr=0.1)
    with pytest.raises(TypeError, match="expected parameters, got tuple"):
        cls(nn.Linear(3, 2).named_parameters(), lr=0.1)
    for unordered in ({w}, [{"params": {w}}]):
        with pytest.raises(TypeError, match="a set has no order"):
            cls(unordered, lr=0.1)
    w.requires_grad = False  # a parameter that is frozen
    cls([w], lr=0.1)


WRONG_SETTINGS = [
    *[
        (cls, {"lr": value})
        for cls in ("SGD", "Adam", "AdamW")
        for value in (-1.0, math.nan, math.inf, "0.1", None, 1j)
    ],
    *[("SGD", {"lr": 0.1, "momentum": value}) for value in (-0.5, 5, math.nan, "a")],
    *[
        (cls, {name: value})
        for cls in ("Adam", "AdamW")
        for name in ("eps", "weight_decay")
        for value in (-1.0, math.nan, math.inf, None)
    ],
    ("SGD", {"lr": 0.1, "weight_decay": -1.0}),
    *[
        (cls, {"betas": value})
        for cls in ("Adam", "AdamW")
        for value in ((1.0, 0.9), (0.9, 1.0), (-1.0, 0.9), (0.9, math.nan), (0.9,), 0.9, ("a", 0.9))
    ],
]


@pytest.mark.parametrize(("name", "settings"), WRONG_SETTINGS, ids=str)
def test_numbers_with_which_nothing_could_be_trained_are_refused(name, settings):
    cls = getattr(optim, name)
    expected = rf"^{name}: .*({'|'.join(settings)}).* must be .*"
    with pytest.raises((ValueError, TypeError), match=expected):
        cls([nn.Parameter([0.0])], **settings)
    defaults = {"lr": 0.1} if name == "SGD" else {}
    with pytest.raises((ValueError, TypeError), match=expected):  # of a group
        cls([{"params": [nn.Parameter([0.0])], **settings}], **defaults)


@pytest.mark.oracle
def test_pytorch_refuses_no_number_that_is_taken_here(torch):
    numbers = [-1.0, -1e-9, 0.0, 1e-3, 0.5, 0.999, 1.0, 2.0]
    for name in ("SGD", "Adam", "AdamW"):
        for setting in ("lr", "eps", "weight_decay", "momentum"):
            if (setting == "momentum") != (name == "SGD") and setting in ("momentum", "eps"):
                continue
            for value in numbers:
                settings = {"lr": 0.1, setting: value}
                try:
                    getattr(torch.optim, name)([torch.zeros(1, requires_grad=True)], **settings)
                except ValueError:
                    with pytest.raises(ValueError, match=f"{setting} must be"):
                        getattr(optim, name)([nn.Parameter([0.0])], **settings)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "10", None])
def test_schedules_of_what_are_no_numbers(wrong):
    optimiser = optim.SGD([nn.Parameter([0.0])], lr=1.0)
    for make in (
        lambda: optim.LinearWarmupDecay(optimiser, wrong, 10),
        lambda: optim.LinearWarmupDecay(optimiser, 0, wrong),
        lambda: optim.InverseSquareRootWarmup(optimiser, wrong, 5),
        lambda: optim.InverseSquareRootWarmup(optimiser, 8, wrong),
    ):
        with pytest.raises((ValueError, TypeError), match=r"Warmup\w*: \w+ must be (a number|finite), got"):
            make()
    with pytest.raises(TypeError, match="LinearWarmupDecay: expected an optimiser, got list"):
        optim.LinearWarmupDecay([nn.Parameter([0.0])], 1, 10)
    assert optimiser.groups[0]["lr"] == 1.0


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 1e30), ("float32", 1e-30), ("float64", 1e200), ("float64", 1e-200)]
)
def test_a_norm_whose_squares_leave_the_range(dtype, size):
    ps = [nn.Parameter(np.zeros(2, dtype)), nn.Parameter(np.zeros((3, 1), dtype))]
    if dtype == "float64" and backend.default().name == "cupy":
        pytest.skip("on a GPU squares are float64, and no wider")
    for p in ps:
        p.grad = backend.default().asarray(np.full(p.shape, size, dtype))
    assert float(optim.clip_grad_norm(ps, 1.0)) == pytest.approx(math.sqrt(5) * size, rel=1e-6)
    expected = 1 / math.sqrt(5) if size > 1 else size
    np.testing.assert_allclose(host(ps[0].grad), expected, rtol=1e-5)
