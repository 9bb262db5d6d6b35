"""Chapter 3: modules and optimisers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad.course.check.exercise import Case, Exercise, Misconception

__all__ = ["adam_step", "clip_gradients", "dropout", "learning_rate"]

# --- dropout ---------------------------------------------------------------------------------------------


def _dropout(x, keep, p, training):
    if not training:
        return x
    return x * keep / (1 - p)


def _dropout_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape, dtype, p in (
        ((3, 5), np.float64, 0.3),
        ((7,), np.float64, 0.75),
        ((2, 3, 4), np.float32, 0.1),
    ):
        x, keep = rng.standard_normal(shape).astype(dtype), rng.random(shape) >= p
        keep.flat[:2] = True, False
        yield Case(f"training, {shape} of {np.dtype(dtype)}, p = {p}", (x, keep, p, True))
    yield Case("training, p = 0", (rng.standard_normal((2, 3)), np.ones((2, 3), bool), 0.0, True))
    for shape, p in (((3, 5), 0.3), ((4,), 0.6)):
        x, keep = rng.standard_normal(shape), rng.random(shape) >= p
        keep.flat[:2] = True, False
        yield Case(f"evaluation, {shape}, p = {p}", (x, keep, p, False))


def _in_training(
    rule: Callable[..., Any], otherwise: Callable[..., Any] = lambda x, keep, p: x
) -> Callable[..., Any]:
    """`rule` in training, and `otherwise` (nothing, if not given) in evaluation."""
    return lambda x, keep, p, training: rule(x, keep, p) if training else otherwise(x, keep, p)


def _right_in_training(x, keep, p):
    return x * keep / (1 - p)


dropout = Exercise(
    name="dropout",
    chapter=3,
    difficulty=1,
    minutes=8,
    answer=_dropout,
    cases=_dropout_cases,
    misconceptions=[
        Misconception(
            "What is kept is not scaled: with the share p missing, the mean shrinks by 1 - p, and evaluation, where all is "
            "there, sees larger numbers than training did.",
            _in_training(lambda x, keep, p: x * keep),
        ),
        Misconception(
            "You divide by p, the probability to be dropped. The mean shrinks by the share that is kept, 1 - p: divide by that.",
            _in_training(lambda x, keep, p: x * keep / p),
        ),
        Misconception(
            "You multiply by 1 - p, which shrinks the mean a second time: divide.",
            _in_training(lambda x, keep, p: x * keep * (1 - p)),
        ),
        Misconception(
            "You keep what should go: `keep` is True where an entry stays.",
            _in_training(lambda x, keep, p: x * ~keep / (1 - p)),
        ),
        Misconception(
            "You divide by the share that this draw kept. It is the mean over all draws that has to stay, and there 1 - p are "
            "kept; a draw may keep more or fewer.",
            _in_training(lambda x, keep, p: x * keep / keep.mean()),
        ),
        Misconception(
            "What is dropped becomes 0; you leave it as it was.",
            _in_training(lambda x, keep, p: np.where(keep, x / (1 - p), x)),
        ),
        Misconception(
            "You drop in evaluation too: there, every entry stays, and two runs on one input must agree.",
            lambda x, keep, p, training: _right_in_training(x, keep, p),
        ),
        Misconception(
            "You drop in evaluation and not in training: it is the other way round.",
            lambda x, keep, p, training: x if training else _right_in_training(x, keep, p),
        ),
        Misconception(
            "You scale in evaluation, by 1 - p, and not in training (the form of the first paper). Here training does the "
            "scaling, so that evaluation has nothing to do.",
            _in_training(lambda x, keep, p: x * keep, lambda x, keep, p: x * (1 - p)),
        ),
        Misconception(
            "You scale twice: training has divided by 1 - p already, so evaluation returns x as it is.",
            _in_training(_right_in_training, lambda x, keep, p: x * (1 - p)),
        ),
        Misconception(
            "You scale in evaluation too, where nothing is missing: return x as it is.",
            _in_training(_right_in_training, lambda x, keep, p: x / (1 - p)),
        ),
        Misconception(
            "You scale and do not drop: entries that are not kept become 0.",
            _in_training(lambda x, keep, p: x / (1 - p)),
        ),
    ],
    hints=[
        "Two cases: in evaluation the answer is x. In training, what is the mean over many draws of x * keep?",
        "An entry is kept with probability 1 - p, so the mean of x * keep is x (1 - p). What brings it back to x?",
    ],
)

# --- learning_rate ---------------------------------------------------------------------------------------


def _learning_rate(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * step / warmup_steps
    left = (total_steps - step) / (total_steps - warmup_steps)
    return peak * max(0.0, left)


def _rate_cases(rng: np.random.Generator) -> Iterator[Case]:
    warmup = int(rng.integers(7, 12))
    total = warmup + int(rng.integers(21, 40))
    peak = float(rng.uniform(1e-4, 1e-2))
    for name, step in (
        ("the first step", 0),
        ("the second step", 1),
        ("the last step of the warm-up", warmup - 1),
        ("the first step after it", warmup),
        ("a step on the way down", warmup + 10),
        ("the last step", total - 1),
        ("the step after the last", total),
        ("a step long after the last", total + 50),
    ):
        yield Case(name, (step, peak, warmup, total))
    for name, step in (("the first step without warm-up", 0), ("a later step without warm-up", 9)):
        yield Case(name, (step, 1.0, 0, 20))


def _rises_then(after: Callable[..., float], up: Callable[..., float] = lambda step, warmup: step / warmup):
    """A wrong schedule: `up` during the warm-up, `after` behind it."""

    def rate(step, peak, warmup_steps, total_steps):
        if step < warmup_steps:
            return peak * up(step, warmup_steps)
        return peak * after(step, warmup_steps, total_steps)

    return rate


def _falls(step, warmup, total):
    return max(0.0, (total - step) / (total - warmup))


def _counted_from_one(step, peak, warmup_steps, total_steps):
    return _learning_rate(step + 1, peak, warmup_steps, total_steps)


def _one_early(step, peak, warmup_steps, total_steps):
    return _learning_rate(max(0, step - 1), peak, warmup_steps, total_steps)


learning_rate = Exercise(
    name="learning_rate",
    chapter=3,
    difficulty=1,
    minutes=10,
    answer=_learning_rate,
    cases=_rate_cases,
    misconceptions=[
        Misconception(
            "You are one step ahead everywhere: the first step is number 0 and has rate 0 when there is warm-up; the peak comes "
            "at step warmup_steps.",
            _counted_from_one,
        ),
        Misconception(
            "You are one step ahead in the warm-up: it is step / warmup_steps, and the first step is number 0.",
            _rises_then(_falls, lambda step, warmup: (step + 1) / warmup),
        ),
        Misconception(
            "You are one step behind: the steps are counted from 0 here, not from 1.",
            _one_early,
        ),
        Misconception(
            "On the way down you are one step ahead: the rate is 0 at step total_steps, not at the one before.",
            _rises_then(lambda step, warmup, total: max(0.0, (total - 1 - step) / (total - 1 - warmup))),
        ),
        Misconception(
            "Your falling line starts at step 0: after the warm-up the rate jumps down to below the peak. (BERT's released "
            "code does this.) Here it starts at the peak: divide by the steps that come after the rise.",
            _rises_then(lambda step, warmup, total: max(0.0, (total - step) / total)),
        ),
        Misconception(
            "After the warm-up you count the steps from 0 but divide by all of them: the line is too flat and never reaches 0. "
            "It has total_steps - warmup_steps to fall.",
            _rises_then(lambda step, warmup, total: max(0.0, 1 - (step - warmup) / total)),
        ),
        Misconception(
            "Your line falls too early: the warm-up's steps are no part of the way down. Count from the peak, step - warmup_steps.",
            _rises_then(lambda step, warmup, total: max(0.0, 1 - step / (total - warmup))),
        ),
        Misconception(
            "After the last step your rate becomes negative, and training would climb: it stays 0.",
            _rises_then(lambda step, warmup, total: (total - step) / (total - warmup)),
        ),
        Misconception(
            "After the warm-up your rate stays at the peak: it falls, to 0 at step total_steps.",
            _rises_then(lambda step, warmup, total: 1.0),
        ),
        Misconception(
            "That is the share of the peak: multiply by the peak.",
            lambda step, peak, warmup_steps, total_steps: _learning_rate(
                step, 1.0, warmup_steps, total_steps
            ),
        ),
        Misconception(
            "Without warm-up you divide by 0. Then there is no rise: the first step has the peak.",
            lambda step, peak, warmup_steps, total_steps: (
                peak * min(step / warmup_steps, max(0.0, (total_steps - step) / (total_steps - warmup_steps)))
            ),
        ),
        Misconception(
            "The rise is missing: below warmup_steps the rate is the share step / warmup_steps of the peak.",
            lambda step, peak, warmup_steps, total_steps: (
                peak * min(1.0, _falls(step, warmup_steps, total_steps))
            ),
        ),
        Misconception(
            "Both factors act at once: during the warm-up the rate only rises. Decide by step < warmup_steps which line it is on.",
            lambda step, peak, warmup_steps, total_steps: (
                peak
                * (min(1.0, step / warmup_steps) if warmup_steps else 1.0)
                * max(0.0, 1 - step / total_steps)
            ),
        ),
    ],
    hints=[
        "Two lines, and a question that decides between them: step < warmup_steps.",
        "The way down is total_steps - warmup_steps long, and total_steps - step of it are still to go.",
        "The second line is peak * (total_steps - step) / (total_steps - warmup_steps), and not below 0.",
    ],
)

# --- clip_gradients --------------------------------------------------------------------------------------


def _norm(gradients):
    return math.sqrt(sum(float((g * g).sum()) for g in gradients))


def _clip_gradients(gradients, max_norm):
    norm = _norm(gradients)
    scale = max_norm / norm if norm > max_norm else 1.0
    return [g * scale for g in gradients], norm


def _clip_cases(rng: np.random.Generator) -> Iterator[Case]:
    def draw(*shapes: tuple[int, ...], size: float = 1.0, dtype: type = np.float64) -> list[np.ndarray]:
        return [(size * rng.standard_normal(shape)).astype(dtype) for shape in shapes]

    def of_norm(norm: float, gradients: list[np.ndarray]) -> list[np.ndarray]:
        return [g * (norm / _norm(gradients)) for g in gradients]

    shapes = ((4, 3), (3,), (2, 2, 5))
    yield Case("three arrays far above the limit", (draw(*shapes, size=30), 1.0))
    yield Case("three arrays below the limit", (of_norm(0.4, draw(*shapes)), 1.0))
    yield Case("each array below the limit, all together above", (of_norm(2.2, draw(*[(4, 4)] * 6)), 1.6))
    yield Case("norm 5 and limit 2.5", ([np.array([3.0, 0.0]), np.array([[4.0]])], 2.5))
    yield Case("norm 5 and limit 5", ([np.array([3.0, 0.0]), np.array([[4.0]])], 5.0))
    yield Case("float32", (draw((5,), (6, 2), size=100, dtype=np.float32), 0.5))
    yield Case("gradients of zero", ([np.zeros((2, 3)), np.zeros(2)], 1.0))
    yield Case("a single number", ([np.array([-7.0])], 3.0))


def _scaled(norm: Callable[..., float], always: bool = False) -> Callable[..., Any]:
    """Clipping with another norm, or scaling whether the limit is reached or not."""

    def wrong(gradients, max_norm):
        n = norm(gradients)
        scale = max_norm / n if n and (always or n > max_norm) else 1.0
        return [g * scale for g in gradients], n

    return wrong


def _each_by_itself(gradients, max_norm):
    return [_clip_gradients([g], max_norm)[0][0] for g in gradients], _norm(gradients)


def _norm_afterwards(gradients, max_norm):
    clipped, _ = _clip_gradients(gradients, max_norm)
    return clipped, _norm(clipped)


def _to_length_one(gradients, max_norm):
    norm = _norm(gradients)
    return [g / norm if norm > max_norm else g for g in gradients], norm


def _unprotected(gradients, max_norm):
    norm = _norm(gradients)
    scale = min(1.0, max_norm / norm)
    return [g * scale for g in gradients], norm


clip_gradients = Exercise(
    name="clip_gradients",
    chapter=3,
    difficulty=2,
    minutes=12,
    answer=_clip_gradients,
    cases=_clip_cases,
    misconceptions=[
        Misconception(
            "You limit each array's norm by itself. Then the long ones shrink and the short ones do not, and the step points "
            "elsewhere: one norm and one factor for all.",
            _each_by_itself,
        ),
        Misconception(
            "You cut each entry at the limit. That turns the direction of the step; scale all entries by one factor.",
            lambda gradients, max_norm: (
                [np.clip(g, -max_norm, max_norm) for g in gradients],
                _norm(gradients),
            ),
        ),
        Misconception(
            "You scale gradients that are below the limit too, up to it: leave those as they are.",
            _scaled(_norm, always=True),
        ),
        Misconception(
            "You add the arrays' norms. The joint norm is that of all entries in one long vector: add the squares, then take "
            "the root once.",
            _scaled(lambda gradients: float(sum(np.linalg.norm(g) for g in gradients))),
        ),
        Misconception(
            "The square root is missing: the norm is the root of the sum of squares.",
            _scaled(lambda gradients: _norm(gradients) ** 2),
        ),
        Misconception(
            "You take the largest entry for the norm: it is the root of the sum of all squares.",
            _scaled(lambda gradients: max(float(np.abs(g).max()) for g in gradients)),
        ),
        Misconception(
            "You take the largest of the arrays' norms: all arrays together have one.",
            _scaled(lambda gradients: max(float(np.linalg.norm(g)) for g in gradients)),
        ),
        Misconception(
            "You sum the absolute values: the norm is the root of the sum of squares.",
            _scaled(lambda gradients: float(sum(np.abs(g).sum() for g in gradients))),
        ),
        Misconception(
            "You take the mean of the squares: the norm is the root of their sum.",
            _scaled(
                lambda gradients: math.sqrt(np.mean(np.concatenate([g.ravel() ** 2 for g in gradients])))
            ),
        ),
        Misconception(
            "You divide by the norm, which makes the length 1 whatever the limit: multiply by max_norm as well.",
            _to_length_one,
        ),
        Misconception(
            "The gradients are right; return the norm that they had before clipping, which tells you how training goes.",
            _norm_afterwards,
        ),
        Misconception(
            "The gradients are right; return the norm beside them: two values, the list and a number.",
            lambda gradients, max_norm: _clip_gradients(gradients, max_norm)[0],
        ),
        Misconception(
            "The order is the list of gradients first, then the norm.",
            lambda gradients, max_norm: _clip_gradients(gradients, max_norm)[::-1],
        ),
        Misconception(
            "Gradients of zero have norm 0, by which you divide: do so only when the norm is above the limit.",
            _unprotected,
        ),
    ],
    hints=[
        "One number for all arrays: the root of the sum of the squares of every entry of every array.",
        "If that norm is above max_norm, one factor for all, max_norm / norm; otherwise the factor 1.",
    ],
    rtol=1e-6,  # a small number added to the norm, as PyTorch does, is right too
)

# --- adam_step -------------------------------------------------------------------------------------------


def _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    return theta - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


def _adam_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(name: str, shape: tuple[int, ...], t: int, dtype: type = np.float64, **settings: float) -> Case:
        theta, g, m = np.asarray(rng.standard_normal((3, *shape)), dtype)
        v: np.ndarray = np.asarray(rng.uniform(0.1, 2, shape), dtype)
        if t == 1:
            m, v = np.zeros_like(m), np.zeros_like(v)
        values = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, **settings}
        return Case(name, (theta, g, m, v, t, *values.values()))

    yield case("the first step", (3, 4), 1)
    yield case("the second step", (3, 4), 2)
    yield case("step 7, other betas and a large ε", (5,), 7, lr=0.03, beta1=0.7, beta2=0.95, eps=0.1)
    yield case("step 40", (2, 1, 3), 40, lr=1.5, beta1=0.85, beta2=0.99, eps=0.01)
    yield case("float32, step 3", (6,), 3, np.float32, lr=0.01, eps=1e-3)
    theta = rng.standard_normal(3)
    zeros = np.zeros(3)
    yield Case("a gradient that was always 0", (theta, zeros, zeros, zeros, 1, 0.1, 0.9, 0.999, 1e-8))


def _corrected(moment, beta, t):
    return moment / (1 - beta**t)


def _over_the_root(m, v, eps):
    return m / (np.sqrt(v) + eps)


def _mean(m, g, beta):
    return beta * m + (1 - beta) * g


def _mean_of_squares(v, g, beta):
    return beta * v + (1 - beta) * g**2


def _uncorrected(m, v, corrected_m, corrected_v):
    return m, v


def _adam(
    m_hat: Callable[..., Any] = _corrected,
    v_hat: Callable[..., Any] = _corrected,
    step: Callable[..., Any] = _over_the_root,
    first: Callable[..., Any] = _mean,
    second: Callable[..., Any] = _mean_of_squares,
    state: Callable[..., Any] = _uncorrected,
) -> Callable[..., Any]:
    """Adam with one of its parts exchanged."""

    def wrong(theta, g, m, v, t, lr, beta1, beta2, eps):
        m, v = first(m, g, beta1), second(v, g, beta2)
        corrected_m, corrected_v = m_hat(m, beta1, t), v_hat(v, beta2, t)
        return theta - lr * step(corrected_m, corrected_v, eps), *state(m, v, corrected_m, corrected_v)

    return wrong


def _as_it_is(moment, beta, t):
    return moment


def _means_not_updated(theta, g, m, v, t, lr, beta1, beta2, eps):
    return _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps)[0], m, v


def _means_of_the_step_before(theta, g, m, v, t, lr, beta1, beta2, eps):
    _, new_m, new_v = _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps)
    moved = lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return theta - moved, new_m, new_v


def _epsilon_before_the_correction(theta, g, m, v, t, lr, beta1, beta2, eps):
    _, m, v = _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps)
    step = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    return theta - step * m / (np.sqrt(v) + eps), m, v


def _betas_swapped(theta, g, m, v, t, lr, beta1, beta2, eps):
    return _adam_step(theta, g, m, v, t, lr, beta2, beta1, eps)


def _steps_from_zero(theta, g, m, v, t, lr, beta1, beta2, eps):
    return _adam_step(theta, g, m, v, t + 1, lr, beta1, beta2, eps)


def _one_step_less(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
    one, two = np.float64(1 - beta1 ** (t - 1)), np.float64(1 - beta2 ** (t - 1))
    return theta - lr * (m / one) / (np.sqrt(v / two) + eps), m, v


def _gradient_over_the_root(theta, g, m, v, t, lr, beta1, beta2, eps):
    _, m, v = _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps)
    return theta - lr * g / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def _uphill(theta, g, m, v, t, lr, beta1, beta2, eps):
    new, m, v = _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps)
    return 2 * theta - new, m, v


def _decayed(theta, g, m, v, t, lr, beta1, beta2, eps):
    new, m, v = _adam_step(theta, g, m, v, t, lr, beta1, beta2, eps)
    return new - lr * 0.01 * theta, m, v


adam_step = Exercise(
    name="adam_step",
    chapter=3,
    difficulty=2,
    minutes=15,
    answer=_adam_step,
    cases=_adam_cases,
    misconceptions=[
        Misconception(
            "The bias correction is missing: m and v start at 0, and after t steps their weights add up to 1 - βᵗ only. "
            "Without it the first steps are several times too long.",
            _adam(m_hat=_as_it_is, v_hat=_as_it_is),
        ),
        Misconception(
            "m is corrected and v is not: v starts at 0 too, and is slower to leave it.",
            _adam(v_hat=_as_it_is),
        ),
        Misconception(
            "v is corrected and m is not: m starts at 0 too.",
            _adam(m_hat=_as_it_is),
        ),
        Misconception(
            "You multiply by 1 - βᵗ: the means are too small at first, so divide.",
            _adam(lambda m, beta, t: m * (1 - beta**t), lambda v, beta, t: v * (1 - beta**t)),
        ),
        Misconception(
            "You correct with 1 - β instead of 1 - βᵗ: that is right in the first step only.",
            _adam(lambda m, beta, t: m / (1 - beta), lambda v, beta, t: v / (1 - beta)),
        ),
        Misconception(
            "You correct with 1 - β t: β is to the power of t.",
            _adam(lambda m, beta, t: m / (1 - beta * t), lambda v, beta, t: v / (1 - beta * t)),
        ),
        Misconception(
            "ε stands inside the root: there it acts like its own root, which is far larger. It is added to the root.",
            _adam(step=lambda m, v, eps: m / np.sqrt(v + eps)),
        ),
        Misconception(
            "ε is added to the root before v is corrected; the correction then scales ε as well. Correct v first, take the "
            "root, add ε.",
            _epsilon_before_the_correction,
        ),
        Misconception(
            "ε is missing: a gradient that was always 0 gives 0 / 0.",
            _adam(step=lambda m, v, eps: m / np.sqrt(v)),
        ),
        Misconception(
            "The root is missing: v is a mean of squares, and only its root has the units of the gradient.",
            _adam(step=lambda m, v, eps: m / (v + eps)),
        ),
        Misconception(
            "You multiply by the root of v: divide, so that large gradients do not make large steps.",
            _adam(step=lambda m, v, eps: m * (np.sqrt(v) + eps)),
        ),
        Misconception(
            "v is the mean of the squared gradients; yours is a mean of the gradients.",
            _adam(second=lambda v, g, beta: beta * v + (1 - beta) * g),
        ),
        Misconception(
            "v is the mean of the squared gradients; yours is a mean of their absolute values.",
            _adam(second=lambda v, g, beta: beta * v + (1 - beta) * np.abs(g)),
        ),
        Misconception(
            "You square 1 - β₂ along with the gradient: (1 - β₂) g², not ((1 - β₂) g)².",
            _adam(second=lambda v, g, beta: beta * v + ((1 - beta) * g) ** 2),
        ),
        Misconception(
            "The new gradient enters m and v whole: its share is 1 - β, so that they are means and not sums.",
            _adam(first=lambda m, g, beta: beta * m + g, second=lambda v, g, beta: beta * v + g**2),
        ),
        Misconception(
            "The new gradient enters m whole: its share is 1 - β₁.",
            _adam(first=lambda m, g, beta: beta * m + g),
        ),
        Misconception(
            "The shares are swapped: the old mean keeps β, the new gradient gets 1 - β.",
            _adam(
                first=lambda m, g, beta: (1 - beta) * m + beta * g,
                second=lambda v, g, beta: (1 - beta) * v + beta * g**2,
            ),
        ),
        Misconception("β₁ belongs to m and β₂ to v; you have them the other way round.", _betas_swapped),
        Misconception(
            "You return the corrected means as the state: the next step would correct them once more. Return m and v as they "
            "are before the correction.",
            _adam(state=lambda m, v, corrected_m, corrected_v: (corrected_m, corrected_v)),
        ),
        Misconception(
            "The parameter is right, but you return the means as they came: the next step needs the new ones.",
            _means_not_updated,
        ),
        Misconception(
            "You step with the means of the step before: take in the new gradient first.",
            _means_of_the_step_before,
        ),
        Misconception("You use t + 1: the first step has t = 1 already.", _steps_from_zero),
        Misconception(
            "You use t - 1: the first step has t = 1 and divides by 1 - β, which t - 1 makes 0.",
            _one_step_less,
        ),
        Misconception(
            "You divide the gradient itself; Adam steps along m, the running mean.", _gradient_over_the_root
        ),
        Misconception("You climb: the step is subtracted.", _uphill),
        Misconception(
            "You decay the weights as well: that is AdamW, and λ is not among the arguments.", _decayed
        ),
    ],
    hints=[
        "Five lines: new m, new v, corrected m, corrected v, and the parameter minus the step.",
        "m = β₁ m + (1 - β₁) g, and v likewise with β₂ and g². The corrected ones are these over 1 - βᵗ.",
        "The step is lr times the corrected m over (root of the corrected v, plus ε). What you return is the m and v before "
        "the correction.",
    ],
)
