"""GradScaler: a scale changes no step, follows PyTorch's rule, and leaves out steps that became infinite."""

from __future__ import annotations

import math

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, nn, optim


def matrix():
    """A parameter, the same at every call."""
    return nn.Parameter(np.random.default_rng(11).standard_normal((5, 3)).astype("float32"))


def scaled_steps(scaler, optimiser, ps, gradients, unscale=False):
    """Steps with the given gradients, infinite ones among them; the scale and whether it stepped, after each."""
    history = []
    for gradient in gradients:
        optimiser.zero_grad()
        scaler.scale((ps[0] * Tensor(gradient)).sum()).backward()
        if unscale:
            scaler.unscale_(optimiser)
        stepped = scaler.step(optimiser)
        scaler.update()
        history.append((scaler.get_scale(), stepped))
    return history


INFINITE_AT = [2, 3, 9]


def some_gradients(count):
    gradients = np.random.default_rng(4).standard_normal((count, 5, 3)).astype("float32")
    for i in INFINITE_AT:
        gradients[i, i % 5, 0] = [math.inf, math.nan, -math.inf][i % 3]
    return gradients


@pytest.mark.parametrize("unscale", [False, True])
def test_loss_scaling_changes_no_step(unscale):
    """A scale is a power of two: the parameters have the bits that they have without it."""
    w, plain = matrix(), matrix()
    scaler = optim.GradScaler(growth_interval=3)
    gradients = some_gradients(14)
    history = scaled_steps(scaler, optim.AdamW([w], lr=0.1), [w], gradients, unscale)
    finite = [g for i, g in enumerate(gradients) if i not in INFINITE_AT]
    scaled_steps(optim.GradScaler(enabled=False), optim.AdamW([plain], lr=0.1), [plain], finite)
    np.testing.assert_array_equal(w.numpy(), plain.numpy())
    exponents = [16, 16, 15, 14, 14, 14, 15, 15, 15, 14, 14, 14, 15, 15]
    assert history == [(2.0**e, i not in INFINITE_AT) for i, e in enumerate(exponents)]


@pytest.mark.oracle
def test_the_scale_is_pytorchs(torch):
    w = matrix()
    ours = scaled_steps(
        optim.GradScaler(2.0**10, 4.0, 0.25, 2), optim.AdamW([w], lr=0.1), [w], some_gradients(20)
    )
    v = torch.tensor(matrix().numpy().copy(), requires_grad=True)
    optimiser, scaler = torch.optim.AdamW([v], lr=0.1), torch.amp.GradScaler("cpu", 2.0**10, 4.0, 0.25, 2)
    for gradient, (scale, _) in zip(some_gradients(20), ours, strict=True):
        optimiser.zero_grad()
        scaler.scale((v * torch.tensor(gradient)).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        assert scaler.get_scale() == scale
    np.testing.assert_allclose(w.numpy(), v.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_unscaled_gradients_can_be_clipped():
    w = matrix()
    scaler, optimiser = optim.GradScaler(), optim.SGD([w], lr=1.0)
    scaler.scale((w * w).sum()).backward()
    assert float(optim.clip_grad_norm([w], 1e9)) > 2**16
    scaler.unscale_(optimiser)
    np.testing.assert_array_equal(host(w.grad), 2 * w.numpy())
    with pytest.raises(RuntimeError, match="unscale_\\(\\) was called twice since the last update"):
        scaler.unscale_(optimiser)
    scaler.step(optimiser)
    scaler.update()
    scaler.unscale_(optimiser)  # and now again


def test_a_scaler_that_is_not_enabled_does_nothing():
    w = matrix()
    scaler, optimiser = optim.GradScaler(enabled=False), optim.SGD([w], lr=1.0)
    loss = (w * w).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    before = w.grad
    for _ in range(2):
        scaler.unscale_(optimiser)
        assert w.grad is before
    w.grad[0, 0] = math.inf
    assert scaler.step(optimiser)
    scaler.update()
    assert scaler.get_scale() == 1


def test_a_scaler_goes_on_from_its_state():
    w, v = matrix(), matrix()
    gradients = some_gradients(14)
    whole = optim.GradScaler(growth_interval=3)
    expected = scaled_steps(whole, optim.SGD([w], lr=0.1), [w], gradients)
    first, second = optim.GradScaler(growth_interval=3), optim.GradScaler(8.0, growth_interval=3)
    optimiser = optim.SGD([v], lr=0.1)
    history = scaled_steps(first, optimiser, [v], gradients[:6])
    second.load_state_dict(first.state_dict())
    assert history + scaled_steps(second, optimiser, [v], gradients[6:]) == expected
    assert second.state_dict() == whole.state_dict() != first.state_dict()


def test_a_step_without_gradients_counts_as_finite():
    w = matrix()
    assert optim.GradScaler().step(optim.SGD([w], lr=1.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"init_scale": 0}, {"init_scale": math.nan}, {"growth_factor": 1.0}, {"backoff_factor": 1.0},
        {"backoff_factor": 0.0}, {"growth_interval": 0},
    ],
    ids=str,
)  # fmt: skip
def test_scaler_with_settings_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=r"GradScaler: expected init_scale > 0, growth_factor > 1, .* got"):
        optim.GradScaler(**wrong)


def test_loss_scaling_with_two_optimisers():
    """Each one's gradients are unscaled, and looked at, by themselves."""
    a, b = nn.Parameter(np.ones(1)), nn.Parameter(np.ones(1))
    first, second = optim.SGD([a], lr=1.0), optim.SGD([b], lr=1.0)
    scaler = optim.GradScaler(init_scale=1024.0)
    scaler.scale((a * 0.5 + b * 0.25).sum()).backward()
    scaler.unscale_(first)
    b.grad = b.grad * np.inf
    assert scaler.step(first)
    assert not scaler.step(second)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (0.5, 1.0, 512.0)
    for parameter in (a, b):
        parameter.grad = None
    scaler.scale((a * 0.5 + b * 0.25).sum()).backward()
    assert scaler.step(first)
    assert scaler.step(second)
    assert (a.item(), b.item()) == (0.0, 0.75)
