"""Optimisers, the learning-rate schedule of BERT, and gradient clipping."""

from __future__ import annotations

import itertools
import math
import numbers
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad import backend
from minigrad.graph import changed_in_place
from minigrad.nn import Parameter
from minigrad.tensor import Array, Tensor

ParameterGroups = Iterable[Parameter] | Sequence[dict[str, Any]]
Members = Sequence[tuple[Array, Array, list[Array]]]  # each parameter's array, its gradient, its moments


def _gradient(parameter: Parameter) -> Array | None:
    """Its gradient; one that was set by hand may be on the host, and is moved to where the parameter is."""
    data, gradient = parameter.data, parameter.grad
    if gradient is None or type(gradient) is type(data):
        return gradient
    return backend.of(data).asarray(gradient)


def _listed(owner: str, parameters: Iterable[object]) -> list[Any]:
    """`parameters` as a list. Raises TypeError for one tensor, ValueError for an iterator that is used up."""
    if isinstance(parameters, Tensor):
        raise TypeError(f"{owner}: expected a list of parameters, got one: put it in [ ]")
    listed = list(parameters)
    if not listed and isinstance(parameters, Iterator):
        raise ValueError(
            f"{owner}: no parameters are left in the {type(parameters).__name__}, which can be gone through once: "
            "pass model.parameters() each time, or keep list(model.parameters())"
        )
    return listed


def _in_order(owner: str, parameters: Iterable[object]) -> list[Any]:
    """The same of what an optimiser keeps moments for. Raises TypeError for a set."""
    if isinstance(parameters, set | frozenset):
        raise TypeError(
            f"{owner}: a set has no order, in which moments could be kept: expected a list of parameters"
        )
    return _listed(owner, parameters)


def _require_leaf(owner: str, parameter: object) -> None:
    """Raise unless it is a tensor that training can change: a leaf, with a gradient or a Parameter that is frozen."""
    if not isinstance(parameter, Tensor):
        raise TypeError(f"{owner}: expected parameters, got {type(parameter).__name__}")
    if parameter.node is not None:
        raise ValueError(
            f"{owner}: expected leaves, got the output of {parameter.node.op}: a step would not change what that "
            "was computed from"
        )
    if not (parameter.requires_grad or isinstance(parameter, Parameter)):
        raise ValueError(f"{owner}: got a tensor of shape {parameter.shape} that requires no gradient")


def _require_number(what: str, value: object, least: float = 0, below: float = math.inf) -> None:
    """Raise unless `value` is a number of at least `least` and below `below`; neither NaN nor infinite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{what} must be finite, got {value}")
    if not least <= float(value) < below:
        limit = "" if below == math.inf else f" and below {below}"
        raise ValueError(f"{what} must be at least {least}{limit}, got {value}")


def _require_settings(owner: str, settings: Mapping[str, Any]) -> None:
    """Raise for numbers with which the optimisers here could not train."""
    for name, value in settings.items():
        if name in ("lr", "eps", "weight_decay"):
            _require_number(f"{owner}: {name}", value)
        elif name == "momentum":
            _require_number(f"{owner}: {name}", value, below=1)
        elif name == "betas":
            if not isinstance(value, Sequence) or len(value) != 2:
                raise TypeError(f"{owner}: betas must be two numbers, got {value!r}")
            for i, beta in enumerate(value, start=1):
                _require_number(f"{owner}: β{i} of betas", beta, below=1)


class Optimizer:
    """What all optimisers share: groups of parameters, each with its settings, and counts of steps.

    parameters: parameters, or groups as dicts {"params": […], "weight_decay": 0.0, …} whose settings override
        the defaults. Raises ValueError for no parameters, one named twice, one that is the output of an
        operation or requires no gradient, an unknown setting or one out of its range; TypeError for what is
        not a parameter or a number.

    `steps` counts the calls of `step`, which a schedule goes by. `parameter_steps` counts for each parameter those in
    which it had a gradient: Adam's corrections use these, as in PyTorch.
    """

    moments = 0  # how many arrays an optimiser keeps beside each parameter

    def __init__(self, parameters: ParameterGroups, **defaults: object) -> None:
        owner = type(self).__name__
        groups = _in_order(owner, parameters)
        if groups and not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        self.groups: list[dict[str, Any]] = []
        for group in groups:
            unknown = set(group) - set(defaults) - {"params"}
            if unknown:
                raise ValueError(f"{owner}: unknown settings {sorted(unknown)}")
            self.groups.append({**defaults, **group, "params": _in_order(owner, group["params"])})
            _require_settings(owner, self.groups[-1])
        everything = [p for group in self.groups for p in group["params"]]
        if not everything:
            raise ValueError(f"{owner}: no parameters")
        for parameter in everything:
            _require_leaf(owner, parameter)
        if len({id(p) for p in everything}) < len(everything):
            raise ValueError(f"{owner}: a parameter is named twice")
        # Of each group: the peak of a schedule's rates, the present one
        self.scheduled: list[tuple[float, float]] = []
        self.steps = 0
        self.parameter_steps = [0] * len(everything)
        self.state: list[list[Array]] = [
            [backend.of(p.data).xp.zeros_like(p.data) for _ in range(self.moments)] for p in everything
        ]

    def __setattr__(self, name: str, value: object) -> None:
        if name != "params" and any(name in group for group in vars(self).get("groups", ())):
            raise AttributeError(
                f"{type(self).__name__}: {name} is a setting of each group: "
                f'for group in optimiser.groups: group["{name}"] = {value!r}'
            )
        super().__setattr__(name, value)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for group in self.groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self, rates: Array | None = None) -> None:
        """Change every parameter that has a gradient.

        rates: what `AdamW.next_rates` gave, where the parameters are; it has counted the step already.
        """
        if rates is None:
            self.steps += 1
        numbers = itertools.count()
        for row, group in enumerate(self.groups):
            settings = {name: value for name, value in group.items() if name != "params"}
            if rates is not None:
                settings["rates"] = rates[row]
            alike = defaultdict(list)  # by their counts of steps: nearly always all
            for parameter in group["params"]:
                number, gradient = next(numbers), _gradient(parameter)
                if gradient is not None:
                    if rates is None:
                        self.parameter_steps[number] += 1
                    alike[self.parameter_steps[number]].append((parameter.data, gradient, self.state[number]))
            changed_in_place(p for p in group["params"] if p.grad is not None)
            for step, members in alike.items():
                self.update(members, step, **settings)

    def update(self, *args: Any, **settings: Any) -> None:
        """Change parameters of a group in place: an optimiser's `update(members, step, *, lr, …)`.

        members: for each parameter its array, its gradient and its moments. step: the number of their step,
        from 1. settings: the group's, which each optimiser names.
        """
        raise NotImplementedError(f"{type(self).__name__} has no update()")

    def state_dict(self) -> dict[str, Any]:
        """The counts of steps and the moments, in the order of the parameters: arrays, not copies."""
        return {"steps": self.steps, "parameter_steps": list(self.parameter_steps), "state": self.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; without "parameter_steps", each parameter has made all the steps.

        Raises ValueError and changes nothing if the state does not fit.
        """
        new = state["state"]
        have = [[tuple(a.shape) for a in arrays] for arrays in new]
        expected = [[tuple(a.shape) for a in arrays] for arrays in self.state]
        if have != expected:
            raise ValueError(
                f"{type(self).__name__}: the state is for other parameters: {have}, not {expected}"
            )
        steps = int(state["steps"])
        counts = [int(count) for count in state.get("parameter_steps", [steps] * len(self.state))]
        if len(counts) != len(self.state) or any(not 0 <= count <= steps for count in counts):
            raise ValueError(
                f"{type(self).__name__}: parameter_steps must be {len(self.state)} counts within 0 … {steps}, "
                f"got {counts}"
            )
        for arrays, others in zip(self.state, new, strict=True):
            for mine, other in zip(arrays, others, strict=True):
                mine[...] = backend.of(mine).asarray(backend.to_numpy(other), dtype=mine.dtype)
        self.steps, self.parameter_steps = steps, counts


class SGD(Optimizer):
    """Stochastic gradient descent: p ← p - lr g, or with momentum p ← p - lr v, v ← momentum · v + g.

    weight_decay adds weight_decay · p to g, as PyTorch does.
    """

    moments = 1

    def __init__(
        self, parameters: ParameterGroups, lr: float, momentum: float = 0.0, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, lr=lr, momentum=momentum, weight_decay=weight_decay)

    def update(self, members: Members, step: int, *, lr: float, momentum: float, weight_decay: float) -> None:
        """Change parameters of a group in place."""
        for parameter, gradient, (velocity,) in members:
            if weight_decay:
                gradient = gradient + weight_decay * parameter
            velocity *= momentum
            velocity += gradient
            parameter -= lr * velocity


class AdamW(Optimizer):
    """Adam with the weight decay outside the gradient (Loshchilov & Hutter 2019, algorithm 2).

    m ← β₁ m + (1-β₁) g, v ← β₂ v + (1-β₂) g², p ← p - lr λ p - lr m̂ / (√v̂ + ε), with m̂ = m / (1-β₁ᵗ) and
    v̂ = v / (1-β₂ᵗ), t counting the steps of each parameter. A parameter without a gradient stays as it is,
    and so do its moments and its t.
    """

    moments = 2

    def __init__(
        self,
        parameters: ParameterGroups,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def update(
        self,
        members: Members,
        step: int,
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        rates: Array | None = None,
    ) -> None:
        """Change parameters of a group in place, on a GPU all of them at once."""
        beta1, beta2 = betas
        parameters, gradients, moments = zip(*members, strict=True)
        firsts, seconds = zip(*moments, strict=True)
        step_size, decay, second_correction = (
            _rates(step, lr, betas, weight_decay) if rates is None else rates
        )
        backend.of(parameters[0]).adamw_step(
            parameters,
            gradients,
            firsts,
            seconds,
            step_size=step_size,
            decay=decay,
            second_correction=second_correction,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
        )

    def next_rates(self) -> np.ndarray:
        """Count a step of all parameters, and give what changes from step to step, for `step` to go by.

        Returns a row for each group, (groups, 3) of float64: lr / (1 - β₁ᵗ), lr λ and √(1 - β₂ᵗ). Raises ValueError
        if the parameters of a group have not made equally many steps.
        """
        counts, rows = iter(self.parameter_steps), []
        for group in self.groups:
            steps = sorted({next(counts) + 1 for _ in group["params"]})
            if len(steps) > 1:
                raise ValueError(f"AdamW: the parameters of a group are at steps {steps}, not at one")
            rows.append(_rates(steps[0], group["lr"], group["betas"], group["weight_decay"]))
        self.steps += 1
        self.parameter_steps = [count + 1 for count in self.parameter_steps]
        return np.array(rows)


def _rates(step: int, lr: float, betas: Sequence[float], weight_decay: float) -> tuple[float, float, float]:
    """What AdamW's update number `step` goes by, but for what stays the same in all."""
    return lr / (1 - betas[0] ** step), lr * weight_decay, math.sqrt(1 - betas[1] ** step)


class Adam(AdamW):
    """Adam (Kingma & Ba 2015, algorithm 1); weight_decay, if any, is added to the gradient as in PyTorch."""

    def __init__(
        self,
        parameters: ParameterGroups,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay)

    def update(self, members: Members, step: int, *, weight_decay: float, **settings: Any) -> None:
        """Change parameters of a group in place."""
        if weight_decay:
            members = [(p, g + weight_decay * p, moments) for p, g, moments in members]
        super().update(members, step, weight_decay=0.0, **settings)


class Schedule:
    """A rate that changes from step to step: each group's own rate times `factor`.

    `step()` after each optimiser step sets every group's rate for the next one. The whole state is the optimiser's step
    count. A second schedule of an optimiser, as when code runs again, begins anew at the optimiser's present
    step, with the rates that the groups were given, or that were set by hand since. A subclass defines the
    factor. Raises TypeError for what is not an optimiser.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: expected an optimiser, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        self.start = optimizer.steps if optimizer.scheduled else 0
        self.peaks = [group["lr"] for group in optimizer.groups]
        for number, (peak, rate) in enumerate(optimizer.scheduled):
            if self.peaks[number] == rate:  # an earlier schedule's
                self.peaks[number] = peak
        self.step()

    def factor(self, step: int) -> float:
        """What the schedule's step number `step` (from 0) multiplies the rate by."""
        raise NotImplementedError(f"{type(self).__name__} has no factor()")

    def step(self) -> None:
        """Set the rate for the optimiser's next step."""
        factor = self.factor(max(0, self.optimizer.steps - self.start))
        self.optimizer.scheduled = [(peak, peak * factor) for peak in self.peaks]
        for group, (_, rate) in zip(self.optimizer.groups, self.optimizer.scheduled, strict=True):
            group["lr"] = rate


class LinearWarmupDecay(Schedule):
    """BERT's schedule: the rate rises linearly from 0 over `warmup_steps`, then falls linearly to 0.

    The first optimiser step has rate 0 when there is warm-up, as in Hugging Face's `get_linear_schedule_with_warmup`.
    Raises ValueError if warmup_steps is not within 0 … total_steps.
    """

    def __init__(self, optimizer: Optimizer, warmup_steps: int, total_steps: int) -> None:
        for name, value in (("warmup_steps", warmup_steps), ("total_steps", total_steps)):
            _require_number(f"LinearWarmupDecay: {name}", value, least=-math.inf)
        if not 0 <= warmup_steps <= total_steps or total_steps < 1:
            raise ValueError(
                f"LinearWarmupDecay: warmup_steps must be within 0 … {total_steps}, got {warmup_steps}"
            )
        self.warmup_steps, self.total_steps = warmup_steps, total_steps
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        """The share of the peak rate that the optimiser step number `step` (from 0) uses."""
        if step < self.warmup_steps:
            return step / self.warmup_steps
        return max(0.0, (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps))


class InverseSquareRootWarmup(Schedule):
    """The Transformer's schedule: d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5), step counted from 1.

    A linear rise over `warmup_steps`, then a fall with the square root of the step (Vaswani et al. 2017, equation 3).
    The optimiser's own rate multiplies this, so give the optimiser lr=1.0 for the paper's rates. Raises
    ValueError unless d_model and warmup_steps are at least 1.
    """

    def __init__(self, optimizer: Optimizer, d_model: int, warmup_steps: int) -> None:
        for name, value in (("d_model", d_model), ("warmup_steps", warmup_steps)):
            _require_number(f"InverseSquareRootWarmup: {name}", value, least=1)
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        """The paper's rate for the optimiser step number `step` (from 0)."""
        count = step + 1
        return self.d_model**-0.5 * min(count**-0.5, count * self.warmup_steps**-1.5)


def clip_grad_norm(parameters: Iterable[Parameter], max_norm: float) -> Array:
    """Scale all gradients down together so that their joint norm is at most `max_norm`.

    Returns the norm before clipping (NaN or infinite gradients are left as they are, and the norm shows it),
    an array without axes, on the GPU if the gradients are there: nothing waits until it is read with `float`.
    Raises ValueError if max_norm is not positive, or `parameters` is an exhausted iterator.
    """
    if isinstance(max_norm, bool) or not isinstance(max_norm, numbers.Real):
        raise TypeError(f"clip_grad_norm: max_norm must be a number, got {max_norm!r}")
    if not max_norm > 0:
        raise ValueError(f"clip_grad_norm: max_norm must be positive, got {max_norm}")
    gradients = [p.grad for p in _listed("clip_grad_norm", parameters) if p.grad is not None]
    if not gradients:
        return np.zeros(())
    kernels = backend.of(gradients[0])
    norm = kernels.global_norm(gradients)
    scale = max_norm / (norm + 1e-6)
    kernels.scale_in_place(gradients, kernels.xp.where(kernels.xp.isfinite(norm), scale.clip(max=1), 1))
    return norm


class GradScaler:
    """Loss scaling, for products in float16 (Micikevicius et al. 2018, section 3.2).

    A gradient below 6e-8 is 0 in float16. So the loss is multiplied by a large scale, and with it every gradient on
    the way back; the gradients are divided by it before they are used. When the scale was too large and
    something became infinite, that step is skipped and the scale is halved; after `growth_interval` steps
    without that, the scale is doubled. The scale is a power of two, so it rounds nothing.

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    Names and defaults are those of torch.amp.GradScaler. enabled=False: everything passes through as it is.
    Raises ValueError if a factor or the scale makes no sense.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not init_scale > 0 or not growth_factor > 1 or not 0 < backoff_factor < 1 or growth_interval < 1:
            raise ValueError(
                "GradScaler: expected init_scale > 0, growth_factor > 1, backoff_factor in (0, 1) and "
                f"growth_interval >= 1, got {init_scale}, {growth_factor}, {backoff_factor}, {growth_interval}"
            )
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.enabled = growth_interval, enabled
        self._scale = float(init_scale)
        self._steps_since = 0  # since the scale last changed
        # of each optimiser, by its id, that was unscaled since the last update
        self._found_inf: dict[int, bool] = {}

    def get_scale(self) -> float:
        """What the next loss is multiplied by; 1 if not enabled."""
        return self._scale if self.enabled else 1.0

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale: call `backward` on it."""
        return loss * self._scale if self.enabled else loss

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale, in place, and see whether all are finite; waits for a GPU.

        Raises RuntimeError if that was already done since the last `update`.
        """
        if not self.enabled:
            return
        if id(optimizer) in self._found_inf:
            raise RuntimeError("GradScaler: unscale_() was called twice since the last update()")
        gradients = [p.grad for group in optimizer.groups for p in group["params"] if p.grad is not None]
        self._found_inf[id(optimizer)] = False
        if gradients:
            kernels = backend.of(gradients[0])
            kernels.scale_in_place(gradients, 1 / self._scale)
            self._found_inf[id(optimizer)] = not math.isfinite(kernels.global_norm(gradients))

    def step(self, optimizer: Optimizer, rates: Array | None = None) -> bool:
        """Step the optimiser unless a gradient is not finite; returns whether it did. Unscales if need be.

        rates: as `optimizer.step` takes them.
        """
        if self.enabled and id(optimizer) not in self._found_inf:
            self.unscale_(optimizer)
        if self._found_inf.get(id(optimizer)):
            return False
        optimizer.step() if rates is None else optimizer.step(rates)
        return True

    def update(self) -> None:
        """Set the scale for the next step, after what `unscale_` found."""
        if not self._found_inf:
            return
        found = any(self._found_inf.values())
        self._steps_since = 0 if found else self._steps_since + 1
        if found:
            self._scale *= self.backoff_factor
        elif self._steps_since == self.growth_interval:
            self._scale *= self.growth_factor
            self._steps_since = 0
        self._found_inf = {}

    def state_dict(self) -> dict[str, Any]:
        """The scale and the steps since it last changed."""
        return {"scale": self._scale, "steps_since": self._steps_since}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self._scale, self._steps_since = float(state["scale"]), int(state["steps_since"])
