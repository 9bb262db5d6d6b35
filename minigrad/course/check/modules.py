"""Chapter 3: modules and optimisers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.course.check.exercise import exercise

# --- dropout ---------------------------------------------------------------------------------------------


def _dropout_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for shape, dtype, p in (
        ((3, 5), np.float64, 0.3),
        ((7,), np.float64, 0.75),
        ((2, 3, 4), np.float32, 0.1),
    ):
        x, keep = rng.standard_normal(shape).astype(dtype), rng.random(shape) >= p
        keep.flat[:2] = True, False
        yield f"training, {shape} of {np.dtype(dtype)}, p = {p}", x, keep, p, True
    yield "training, nothing dropped", rng.standard_normal((2, 3)), np.ones((2, 3), bool), 0.01, True
    for shape, p in (((3, 5), 0.3), ((4,), 0.6)):
        x, keep = rng.standard_normal(shape), rng.random(shape) >= p
        keep.flat[:2] = True, False
        yield f"evaluation, {shape}, p = {p}", x, keep, p, False


@exercise(
    chapter=3,
    difficulty=1,
    minutes=8,
    cases=_dropout_cases,
    same_dtype=True,
    hints="""
Two cases: in evaluation the answer is x. In training, what is the mean over many draws of x * keep?

An entry is kept with probability 1 - p, so the mean of x * keep is x (1 - p). What brings it back to x?
""",
    mistakes="""
What is kept is not scaled: with the share p missing, the mean shrinks by 1 - p, and evaluation, where all is there, sees larger numbers than training did.
    / (1 - p) ->
You divide by p, the probability to be dropped. The mean shrinks by the share that is kept, 1 - p: divide by that.
    (1 - p) -> p
You multiply by 1 - p, which shrinks the mean a second time: divide.
    / (1 - p) -> * (1 - p)
1 - p needs brackets: without them you divide by 1, and subtract p from every entry.
    / (1 - p) -> / 1 - p
What is kept is multiplied by another number. It is kept with probability 1 - p: which factor brings the mean over many draws back to x?
    / (1 - p) -> / math.sqrt(1 - p) || * (1 + p) || * p || * 2
You fit the factor to this draw. It is the mean over all draws that has to stay, and there 1 - p are kept; a draw may keep more or fewer.
    (1 - p) -> keep.mean()
    / (1 - p) -> * x.mean() / (x * keep).mean()
You keep what should go: `keep` is True where an entry stays.
    x * keep -> x * ~keep
What is dropped becomes 0; you leave it as it was.
    x * keep / (1 - p) -> np.where(keep, x / (1 - p), x)
What is dropped becomes 0; you put another number there.
    x * keep -> np.where(keep, x, np.nan)
    x * keep / (1 - p) -> np.where(keep, x / (1 - p), np.finfo(x.dtype).min)
You scale and do not drop: entries that are not kept become 0.
    x * keep -> x
You drop in evaluation too: there, every entry stays, and two runs on one input must agree.
    dropped if training else x -> dropped
You drop in evaluation and not in training: it is the other way round.
    dropped if training else x -> x if training else dropped
Nothing is dropped in training.
    dropped if training else x -> x
You scale in evaluation, by 1 - p, and not in training (the form of the first paper). Here training does the scaling, so that evaluation has nothing to do.
    / (1 - p) -> ; else x -> else x * (1 - p)
You scale twice: training has divided by 1 - p already, so evaluation returns x as it is.
    else x -> else x * (1 - p)
You scale in evaluation too, where nothing is missing: return x as it is.
    else x -> else x / (1 - p)
The output alone is asked for: you return more than one value.
    dropped if training else x -> (dropped if training else x), keep
""",
)
def dropout(x, keep, p, training):
    dropped = x * keep / (1 - p)  # the mean over many draws is x
    return dropped if training else x


# --- learning_rate ---------------------------------------------------------------------------------------


def _rate_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
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
        yield name, step, peak, warmup, total
    for name, step in ("the first step without warm-up", 0), ("a later step without warm-up", 9):
        yield name, step, 1.0, 0, 20


@exercise(
    chapter=3,
    difficulty=1,
    minutes=10,
    cases=_rate_cases,
    hints="""
Two lines, and a question that decides between them: step < warmup_steps.

The way down is total_steps - warmup_steps long, and total_steps - step of it are still to go.

The second line is peak * (total_steps - step) / (total_steps - warmup_steps), and not below 0.
""",
    mistakes="""
You are one step ahead everywhere: the first step is number 0 and has rate 0 when there is warm-up; the peak comes at step warmup_steps.
    step < warmup_steps -> (step := step + 1) < warmup_steps
You are one step ahead in the warm-up: it is step / warmup_steps, and the first step is number 0.
    peak * step / -> peak * (step + 1) /
Your peak comes one step early, at step warmup_steps - 1.
    warmup_steps -> (warmup_steps - 1)
    peak * step / warmup_steps -> peak * step / (warmup_steps - 1)
You are one step behind: the steps are counted from 0 here, not from 1.
    step < warmup_steps -> (step := max(0, step - 1)) < warmup_steps
On the way down you are one step ahead: the rate is 0 at step total_steps, not at the one before.
    (total_steps - step) / (total_steps - warmup_steps) -> (total_steps - 1 - step) / (total_steps - 1 - warmup_steps)
    (total_steps - step) -> (total_steps - 1 - step)
On the way down you are one step behind: the rate is at the peak at step warmup_steps, and 0 at step total_steps.
    (total_steps - step) -> (total_steps - step + 1)
    (total_steps - step) -> (total_steps - step + 1) ; max(0, left) -> max(0, min(1, left)) || (step < total_steps) * left
Your falling line starts at step 0, so that the first step after the warm-up is below the peak. (BERT's released code does this.) Here it starts at the peak: divide by the steps that come after the rise.
    / (total_steps - warmup_steps) -> / total_steps
After the warm-up you count the steps from 0 but divide by all of them: the line is too flat and never reaches 0 in time. It has total_steps - warmup_steps to fall.
    (total_steps - step) / (total_steps - warmup_steps) -> 1 - (step - warmup_steps) / total_steps
Your line falls too early: the warm-up's steps are no part of the way down. Count from the peak, step - warmup_steps.
    (total_steps - step) / (total_steps - warmup_steps) -> 1 - step / (total_steps - warmup_steps)
After the last step your rate becomes negative, and training would climb: it stays 0.
    max(0, left) -> left
After the last step your rate is above 0 again: it stays 0.
    max(0, left) -> abs(left)
After the warm-up your rate stays at the peak: it falls, to 0 at step total_steps.
    max(0, left) -> 1 || (step < total_steps)
After the warm-up your rate rises again from 0: it falls, from the peak to 0.
    max(0, left) -> 1 - max(0, left) || (step < total_steps) * (1 - left)
Your way down is curved: it is a straight line from the peak to 0.
    max(0, left) -> (1 + math.cos(math.pi * (1 - max(0, left)))) / 2 || max(0, left) ** 2 || math.sqrt(max(0, left)) || (step < total_steps) * math.exp(left - 1) || math.sqrt(max(1, warmup_steps) / max(1, step))
That is the share of the peak: multiply by the peak.
    peak * ->
Without warm-up you divide by 0. Then there is no rise: the first step has the peak.
    step < warmup_steps -> step <= warmup_steps

    rise, left = step / warmup_steps, (total_steps - step) / (total_steps - warmup_steps)
    return peak * min(rise, max(0, left))
Without warm-up the first step has the peak; your rate there is 0.
    step < warmup_steps -> step <= warmup_steps ; / warmup_steps -> / max(1, warmup_steps)
    max(0, left) -> max(0, left) * (step > 0)
Without warm-up your rate stays at the peak: it falls all the same, from the first step on.
    max(0, left) -> (max(0, left) if warmup_steps else 1)
The rise is missing: below warmup_steps the rate is the share step / warmup_steps of the peak.
    peak * step / warmup_steps -> peak
    step < warmup_steps -> False
In the warm-up your rate falls from the peak: it rises from 0 to the peak.
    peak * step / warmup_steps -> peak * (1 - step / warmup_steps)
The rise takes warmup_steps steps, and no more: divide by those.
    peak * step / warmup_steps -> peak * step / total_steps || peak * step / (warmup_steps + 1)
Both factors act at once: during the warm-up the rate only rises. Decide by step < warmup_steps which line it is on.
    / warmup_steps -> / warmup_steps * (1 - step / total_steps) ; / (total_steps - warmup_steps) -> / total_steps
    / warmup_steps -> / warmup_steps * (total_steps - step) / (total_steps - warmup_steps)
`//` cuts off what comes after the point: divide with `/`.
    peak * step / warmup_steps -> peak * (step // warmup_steps)
    (total_steps - step) / ( -> (total_steps - step) // (
    peak * step / warmup_steps -> peak * (step // warmup_steps) ; (total_steps - step) / ( -> (total_steps - step) // (
You multiply where a share is asked for: divide by the number of steps.
    / warmup_steps -> * warmup_steps
    / (total_steps - warmup_steps) -> * (total_steps - warmup_steps)
    / warmup_steps -> * warmup_steps ; / (total_steps - warmup_steps) -> * (total_steps - warmup_steps)
A difference has lost its brackets: / comes before -.
    (total_steps - step) / -> total_steps - step /
    / (total_steps - warmup_steps) -> / total_steps - warmup_steps
""",
)
def learning_rate(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * step / warmup_steps
    left = (total_steps - step) / (total_steps - warmup_steps)
    return peak * max(0, left)


# --- clip_gradients --------------------------------------------------------------------------------------


def _clip_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(*shapes: tuple[int, ...], dtype: type = np.float64, norm: float) -> list[np.ndarray]:
        gradients = [rng.standard_normal(shape) for shape in shapes]
        gradients[1] *= 1.5  # the longest is neither the first nor the last
        factor = norm / math.sqrt(sum(float((g**2).sum()) for g in gradients))
        return [(g * factor).astype(dtype) for g in gradients]

    shapes = ((4, 3), (2, 2, 5), (3,))
    yield "three arrays far above the limit", draw(*shapes, norm=30 + rng.random()), 1.0
    yield "three arrays below the limit", draw(*shapes, norm=0.4), 1.0
    yield "norm 2 and limit 3", draw(*shapes, norm=2), 3.0
    yield "each array below the limit, all together above", draw(*[(4, 4)] * 6, norm=2.2), 1.6
    yield "norm 5 and limit 2.5", [np.array([3.0, 0.0]), np.array([[4.0]])], 2.5
    yield "norm 5 and limit 5", [np.array([3.0, 0.0]), np.array([[4.0]])], 5.0
    yield "float32", draw((5,), (6, 2), (2,), dtype=np.float32, norm=400), 0.5
    yield "gradients of zero", [np.zeros((2, 3)), np.zeros(2)], 1.0
    yield "a single number", [np.array([-7.0])], 3.0


@exercise(
    chapter=3,
    difficulty=2,
    minutes=12,
    cases=_clip_cases,
    same_dtype=True,
    rtol=1e-6,  # a small number added to the norm, as PyTorch does, is right too
    hints="""
One number for all arrays: the root of the sum of the squares of every entry of every array.

If that norm is above max_norm, one factor for all, max_norm / norm; otherwise the factor 1.
""",
    mistakes="""
You limit each array's norm by itself. Then the long ones shrink and the short ones do not, and the step points elsewhere: one norm and one factor for all.
    g * scale -> g * min(1, max_norm / (math.sqrt((g**2).sum()) or 1))
You bring each array to the limit by itself, long or short. One norm and one factor for all, and only if the norm is above the limit.
    g * scale -> g * (max_norm / (math.sqrt((g**2).sum()) or 1)) || g * (max_norm / np.linalg.norm(g))
You cut each entry at the limit. That turns the direction of the step; scale all entries by one factor.
    g * scale -> np.clip(g, -max_norm, max_norm) || np.minimum(g, max_norm)
You scale gradients that are below the limit too, up to it: leave those as they are.
    min(1, -> max(0,
    min(1, max_norm / norm) if norm else 1 -> np.float64(max_norm) / norm
You scale what is below the limit, up to it, and leave what is above: it is the other way round.
    min(1, -> max(1,
Gradients above the limit come back as they were: scale them down.
    g * scale -> g
You add the arrays' norms. The joint norm is that of all entries in one long vector: add the squares, then take the root once.
    sum(float((g**2).sum()) for g in gradients) -> sum(math.sqrt((g**2).sum()) for g in gradients) ** 2
The square root is missing: the norm is the root of the sum of squares.
    math.sqrt(squares) -> squares
You compare the sum of the squares with the limit: compare the norm, its root.
    min(1, max_norm / norm) -> (max_norm / norm if squares > max_norm else 1)
You take the largest entry for the norm: it is the root of the sum of all squares.
    math.sqrt(squares) -> max(float(np.abs(g).max()) for g in gradients)
You take the largest of the arrays' norms: all arrays together have one.
    sum(float( -> max(float(
You take the norm of one array for that of all: every array's squares count.
    sum(float((g**2).sum()) for g in gradients) -> float((gradients[-1] ** 2).sum()) || float((gradients[0] ** 2).sum())
You sum the absolute values: the norm is the root of the sum of squares.
    math.sqrt(squares) -> sum(float(np.abs(g).sum()) for g in gradients)
You sum the entries without squaring them, so that they cancel: the norm is the root of the sum of squares.
    sum(float((g**2).sum()) for g in gradients) -> abs(sum(float(g.sum()) for g in gradients))
    (g**2).sum() -> g.sum() ** 2
You take the mean of the squares: the norm is the root of their sum.
    math.sqrt(squares) -> math.sqrt(squares / sum(g.size for g in gradients))
    (g**2).sum() -> (g**2).mean()
The norm of order 2 of a matrix is its largest singular value, not the root of the sum of its squares.
    float((g**2).sum()) -> float(np.linalg.norm(g, 2 if g.ndim == 2 else None)) ** 2 || float(np.linalg.norm(g, 2)) ** 2
You divide by the norm, which makes the length 1 whatever the limit: multiply by max_norm as well.
    max_norm / norm -> 1 / norm
    min(1, max_norm / norm) -> (1 / norm if norm > max_norm else 1)
You multiply by the limit and do not divide by the norm: the length becomes another one.
    min(1, max_norm / norm) -> (max_norm if norm > max_norm else 1)
The factor is upside down: it is max_norm / norm, below 1 where the norm is above the limit.
    max_norm / norm -> norm / max_norm
    min(1, max_norm / norm) -> max(1, norm / max_norm)
The number that you add to the norm is not small beside it: the gradients become shorter than the limit.
    max_norm / norm -> max_norm / (norm + 1e-2) || max_norm / (norm + 1e-3) || max_norm / (norm + 1e-4)
    math.sqrt(squares) -> math.sqrt(squares) + 1e-3
Return the norm that the gradients had before clipping, which tells you how training goes: yours is that of the clipped ones, or the limit.
    return clipped, norm -> return clipped, math.sqrt(sum(float((g**2).sum()) for g in clipped)) || return clipped, min(norm, max_norm)
The second value is the norm, not the factor.
    return clipped, norm -> return clipped, scale
The gradients alone do not tell how long they were: return the norm beside them, two values, the list and a number.
    return clipped, norm -> return clipped
The order is the list of gradients first, then the norm.
    return clipped, norm -> return norm, clipped
Gradients of zero have norm 0, by which you divide: do so only when the norm is above the limit.
    if norm else 1 ->
    if norm else 1 -> if norm else math.nan
""",
)
def clip_gradients(gradients, max_norm):
    squares = sum(float((g**2).sum()) for g in gradients)
    norm = math.sqrt(squares)
    scale = min(1, max_norm / norm) if norm else 1
    clipped = [g * scale for g in gradients]
    return clipped, norm


# --- adam_step -------------------------------------------------------------------------------------------


def _adam_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(name: str, shape: tuple[int, ...], t: int, dtype: type = np.float64, **settings: float) -> tuple:
        theta, g, m = np.asarray(rng.standard_normal((3, *shape)), dtype)
        v: np.ndarray = np.asarray(rng.uniform(0.1, 2, shape), dtype)
        if t == 1:
            m, v = np.zeros_like(m), np.zeros_like(v)
        values = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, **settings}
        return name, theta, g, m, v, t, *values.values()

    yield case("the first step", (3, 4), 1)
    yield case("the second step", (3, 4), 2)
    yield case("step 7, other betas and a large ε", (5,), 7, lr=0.03, beta1=0.7, beta2=0.95, eps=0.1)
    yield case("step 40", (2, 1, 3), 40, lr=1.5, beta1=0.85, beta2=0.99, eps=0.01)
    yield case("float32, step 3", (6,), 3, np.float32, lr=0.01, eps=1e-3)
    g, m, v = np.zeros((3, 3))
    yield "a gradient that was always 0", rng.standard_normal(3), g, m, v, 1, 0.1, 0.9, 0.999, 1e-8


@exercise(
    chapter=3,
    difficulty=2,
    minutes=15,
    cases=_adam_cases,
    same_dtype=True,
    hints="""
Five lines: new m, new v, corrected m, corrected v, and the parameter minus the step.

m = β₁ m + (1 - β₁) g, and v likewise with β₂ and g². The corrected ones are these over 1 - βᵗ.

The step is lr times the corrected m over (root of the corrected v, plus ε). What you return is the m and v before the correction.
""",
    mistakes="""
The bias correction is missing: m and v start at 0, and after t steps their weights add up to 1 - βᵗ only. Without it the first steps are several times too long.
    / (1 - beta1**t) -> ; / (1 - beta2**t) ->
m is corrected and v is not: v starts at 0 too, and is slower to leave it.
    / (1 - beta2**t) ->
v is corrected and m is not: m starts at 0 too.
    / (1 - beta1**t) ->
You multiply by 1 - βᵗ: the means are too small at first, so divide.
    / (1 - beta1**t) -> * (1 - beta1**t) ; / (1 - beta2**t) -> * (1 - beta2**t)
    / (1 - beta1**t) -> * (1 - beta1**t)
    / (1 - beta2**t) -> * (1 - beta2**t)
You correct with 1 - β instead of 1 - βᵗ: that is right in the first step only.
    **t ->
    beta1**t -> beta1
    beta2**t -> beta2
You correct with 1 - β t: β is to the power of t.
    **t -> * t
The power belongs to β alone: 1 - βᵗ, not (1 - β)ᵗ.
    (1 - beta1**t) -> (1 - beta1) ** t ; (1 - beta2**t) -> (1 - beta2) ** t
You use t + 1: the first step has t = 1 already.
    **t -> ** (t + 1)
You use t - 1: the first step has t = 1 and divides by 1 - β, which t - 1 makes 0.
    **t -> ** (t - 1)
β₁ belongs to m and β₂ to v; you have them the other way round.
    beta1 -> beta2 ; beta2 -> beta1
ε stands inside the root: there it acts like its own root, which is far larger. It is added to the root.
    np.sqrt(v_hat) + eps -> np.sqrt(v_hat + eps)
ε is added to the root before v is corrected; the correction then scales ε as well. Correct v first, take the root, add ε.
    (np.sqrt(v_hat) + eps) -> ((np.sqrt(v_new) + eps) / math.sqrt(1 - beta2**t))
ε is missing: a gradient that was always 0 gives 0 / 0.
    + eps ->
ε belongs to the root, below the line: you add it to the quotient, or to the parameter.
    (np.sqrt(v_hat) + eps) -> np.sqrt(v_hat) + eps || np.sqrt(v_hat) - eps
The root is missing: v is a mean of squares, and only its root has the units of the gradient.
    np.sqrt(v_hat) -> v_hat
You multiply by the root of v: divide, so that large gradients do not make large steps.
    / (np.sqrt(v_hat) + eps) -> * (np.sqrt(v_hat) + eps)
You do not divide by the root of v: that is momentum alone, and large gradients make large steps.
    / (np.sqrt(v_hat) + eps) ->
v is the mean of the squared gradients; yours is a mean of the gradients.
    g**2 -> g
    g**2 -> g ; np.sqrt(v_hat) -> np.sqrt(np.abs(v_hat))
v is the mean of the squared gradients; yours is a mean of their absolute values.
    g**2 -> np.abs(g)
v is the mean of the squared gradients, g²; you square m, their mean.
    g**2 -> m_new**2 || m**2
Every entry has a v of its own: you take the squares of all entries together.
    g**2 -> (g**2).sum() || (g**2).mean()
You square 1 - β₂ along with the gradient: (1 - β₂) g², not ((1 - β₂) g)².
    (1 - beta2) * g**2 -> ((1 - beta2) * g) ** 2
The new gradient enters m whole: its share is 1 - β₁, so that m is a mean and not a sum.
    (1 - beta1) * ->
The new gradient enters v whole: its share is 1 - β₂, so that v is a mean and not a sum.
    (1 - beta2) * ->
The shares are swapped: the old mean keeps β, the new gradient gets 1 - β.
    beta1 * m + (1 - beta1) * -> (1 - beta1) * m + beta1 * ; beta2 * v + (1 - beta2) * -> (1 - beta2) * v + beta2 *
    beta1 * m + (1 - beta1) * -> (1 - beta1) * m + beta1 *
    beta2 * v + (1 - beta2) * -> (1 - beta2) * v + beta2 *
The betas and ε are arguments: you put fixed numbers in their place.
    beta1 -> 0.9 ; beta2 -> 0.999
    beta1 -> 0.9 ; beta2 -> 0.999 ; eps -> 1e-8
    eps -> 1e-8
You return m or v corrected: the next step would correct them once more. Return the means as they are before the correction.
    m_new, v_new -> m_hat, v_hat || m_hat, v_new || m_new, v_hat
You return the means as they came: the next step needs the new ones.
    m_new, v_new -> m, v
You step with the means of the step before: take in the new gradient first.
    m_hat = m_new -> m_hat = m ; v_hat = v_new -> v_hat = v
    m_hat = m_new -> m_hat = m
    v_hat = v_new -> v_hat = v
You divide the gradient itself; Adam steps along m, the running mean.
    lr * m_hat -> lr * g
The learning rate is missing in the step.
    lr * ->
You climb: the step is subtracted.
    theta - step -> theta + step
You decay the weights as well: that is AdamW, and λ is not among the arguments.
    theta - step -> theta - step - lr * 0.01 * theta || theta - step - lr * 0.1 * theta
You return the step itself: the new parameter is the old one minus the step.
    theta - step -> step || -step
The parameter alone is not enough: the next step needs the new m and v too, so return three values.
    theta - step, m_new, v_new -> theta - step
The order is the parameter, then m, then v.
    theta - step, m_new, v_new -> m_new, v_new, theta - step
    m_new, v_new -> v_new, m_new
""",
)
def adam_step(theta, g, m, v, t, lr, beta1, beta2, eps):
    m_new = beta1 * m + (1 - beta1) * g
    v_new = beta2 * v + (1 - beta2) * g**2
    m_hat = m_new / (1 - beta1**t)
    v_hat = v_new / (1 - beta2**t)
    step = lr * m_hat / (np.sqrt(v_hat) + eps)
    return theta - step, m_new, v_new
