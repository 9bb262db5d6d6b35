"""Chapter `optimisers`: optimisers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.outcome import Probe

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
[m-alone-corrected] m is corrected and v is not: v starts at 0 too, and is slower to leave it.
    / (1 - beta2**t) ->
[v-alone-corrected] v is corrected and m is not: m starts at 0 too.
    / (1 - beta1**t) ->
You multiply by 1 - βᵗ: the means are too small at first, so divide.
    / (1 - beta1**t) -> * (1 - beta1**t) ; / (1 - beta2**t) -> * (1 - beta2**t)
    / (1 - beta1**t) -> * (1 - beta1**t)
    / (1 - beta2**t) -> * (1 - beta2**t)
You correct with 1 - β instead of 1 - βᵗ: that is right in the first step only.
    **t ->
    beta1**t -> beta1
    beta2**t -> beta2
You correct with 1 - β t: β is raised to the power t.
    **t -> * t
The power belongs to β alone: 1 - βᵗ, not (1 - β)ᵗ.
    (1 - beta1**t) -> (1 - beta1) ** t ; (1 - beta2**t) -> (1 - beta2) ** t
You use t + 1: the first step has t = 1 already.
    **t -> ** (t + 1)
You use t - 1: the first step has t = 1 and divides by 1 - β, which t - 1 makes 0.
    **t -> ** (t - 1)
β₁ belongs to m and β₂ to v; you have them the other way round.
    beta1 -> beta2 ; beta2 -> beta1
[eps-inside] ε is inside the root, where it acts like its own root, which is far larger. It is added to the root.
    np.sqrt(v_hat) + eps -> np.sqrt(v_hat + eps)
ε is added to the root before v is corrected; the correction then scales ε as well. Correct v first, take the root, add ε.
    (np.sqrt(v_hat) + eps) -> ((np.sqrt(v_new) + eps) / math.sqrt(1 - beta2**t))
ε is missing: a gradient that was always 0 gives 0 / 0.
    + eps ->
ε belongs to the root, in the denominator: you add it to the quotient, or to the parameter.
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
[m-whole] The new gradient enters m whole: its share is 1 - β₁, so that m is a mean and not a sum.
    (1 - beta1) * ->
[v-whole] The new gradient enters v whole: its share is 1 - β₂, so that v is a mean and not a sum.
    (1 - beta2) * ->
The shares are swapped: the old mean keeps β, the new gradient gets 1 - β.
    beta1 * m + (1 - beta1) * -> (1 - beta1) * m + beta1 * ; beta2 * v + (1 - beta2) * -> (1 - beta2) * v + beta2 *
    beta1 * m + (1 - beta1) * -> (1 - beta1) * m + beta1 *
    beta2 * v + (1 - beta2) * -> (1 - beta2) * v + beta2 *
The betas and ε are arguments: you put fixed numbers in their place.
    beta1 -> 0.9 ; beta2 -> 0.999
    beta1 -> 0.9 ; beta2 -> 0.999 ; eps -> 1e-8
    eps -> 1e-8
[corrected-returned] You return m or v corrected: the next step would correct them once more. Return the means as they are before the correction.
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
[climbs] You climb: the step is subtracted.
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
    m_new = beta1 * m + (1 - beta1) * g  #: the gradients' running mean, uncorrected
    v_new = beta2 * v + (1 - beta2) * g**2  #: the squared gradients' running mean, uncorrected
    m_hat = m_new / (1 - beta1**t)  #: the new m, corrected for its start at 0
    v_hat = v_new / (1 - beta2**t)  #: the new v, corrected for its start at 0
    step = lr * m_hat / (np.sqrt(v_hat) + eps)  #: the step, which is to be subtracted
    return theta - step, m_new, v_new


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


def _handed_back(_: None, returned: Any, arguments: Mapping[str, Any]) -> str | None:
    if not any(np.may_share_memory(new, g) for new in returned[0] for g in arguments["gradients"]):
        return None
    return "it returns arrays of `gradients` themselves; new ones are asked for."


@exercise(
    difficulty=2,
    minutes=12,
    cases=_clip_cases,
    same_dtype=True,
    rtol=1e-6,  # a small number added to the norm, as PyTorch does, is right too
    probes=[Probe(lambda arguments: None, _handed_back)],
    hints="""
The norm is one number for all arrays: the root of the sum of the squares of every entry of every array.

If that norm is above max_norm, multiply all by one factor, max_norm / norm; otherwise by 1.
""",
    mistakes="""
You limit each array's norm by itself. Then the long ones shrink and the short ones do not, and the step points elsewhere: use one norm and one factor for all.
    g * scale -> g * min(1, max_norm / (math.sqrt((g**2).sum()) or 1))
You bring each array to the limit by itself, long or short. Use one norm and one factor for all, and only if the norm is above the limit.
    g * scale -> g * (max_norm / (math.sqrt((g**2).sum()) or 1)) || g * (max_norm / np.linalg.norm(g))
[each-entry] You cut each entry at the limit. That changes the direction of the step; scale all entries by one factor.
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
[absolute-values] You sum the absolute values: the norm is the root of the sum of squares.
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
You multiply by the limit and do not divide by the norm: the length is then not the limit.
    min(1, max_norm / norm) -> (max_norm if norm > max_norm else 1)
[upside-down] The factor is upside down: it is max_norm / norm, below 1 where the norm is above the limit.
    max_norm / norm -> norm / max_norm
    min(1, max_norm / norm) -> max(1, norm / max_norm)
The number that you add to the norm is not small compared with it: the gradients become shorter than the limit.
    max_norm / norm -> max_norm / (norm + 1e-2) || max_norm / (norm + 1e-3) || max_norm / (norm + 1e-4)
    math.sqrt(squares) -> math.sqrt(squares) + 1e-3
[norm-after] Return the norm that the gradients had before clipping, which shows how training goes: yours is that of the clipped ones, or the limit.
    return clipped, norm -> return clipped, math.sqrt(sum(float((g**2).sum()) for g in clipped)) || return clipped, min(norm, max_norm)
The second value is the norm, not the factor.
    return clipped, norm -> return clipped, scale
The gradients alone do not show how long they were: return the norm with them, two values, the list and a number.
    return clipped, norm -> return clipped
The order is the list of gradients first, then the norm.
    return clipped, norm -> return norm, clipped
Where nothing is clipped, you hand back the caller's own arrays. Whoever changes one of them later changes the other too: return copies.
    [g * scale for g in gradients] -> [g * scale if scale < 1 else g for g in gradients]
[norm-of-zero] Gradients of zero have norm 0, by which you divide: do so only when the norm is above the limit.
    if norm else 1 ->
    if norm else 1 -> if norm else math.nan
""",
)
def clip_gradients(gradients, max_norm):
    squares = sum(float((g**2).sum()) for g in gradients)  #: the sum of the squares of all entries
    norm = math.sqrt(squares)  #: the joint norm of all gradients, before clipping
    scale = min(1, max_norm / norm) if norm else 1  #: a factor for all arrays, at most 1
    clipped = [g * scale for g in gradients]  #: the gradients, scaled by one factor
    return clipped, norm


# --- momentum_steps --------------------------------------------------------------------------------------


def _momentum_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(
        name: str, shapes: list[tuple[int, ...]], steps: int, dtype: type = np.float64
    ) -> tuple[Any, ...]:
        def draw() -> list[np.ndarray]:
            return [rng.standard_normal(shape).astype(dtype) for shape in shapes]

        parameters, gradients = draw(), [draw() for _ in range(steps)]
        return name, parameters, gradients, float(rng.uniform(0.01, 0.2)), float(rng.uniform(0.5, 0.9))

    yield case("one parameter, one step", [(3, 2)], 1)
    yield case("one parameter, five steps", [(4,)], 5)
    yield case("two parameters of one shape, three steps", [(2, 3), (2, 3)], 3)
    yield case("three parameters of one shape, six steps", [(5,), (5,), (5,)], 6)
    yield case("two parameters of different shapes, four steps", [(2, 3), (4,)], 4)
    yield case("float32, two parameters, three steps", [(3,), (3,)], 3, np.float32)
    yield case("no step", [(2,), (3, 1)], 0)


@exercise(
    difficulty=2,
    minutes=12,
    cases=_momentum_cases,
    same_dtype=True,
    hints="""
Follow u by hand for two parameters and one step. What does u hold when the second parameter is moved?

Each parameter needs a u of its own, which lives from step to step.
""",
    mistakes="""
All parameters share one u, so each one is moved along the gradients of the others too. Give each parameter a u of its own.
    u[i] -> u[0]
    u = [np.zeros_like(p) for p in parameters] -> u = [0.0] * len(parameters) ; u[i] -> u[0]
Nothing adds up from step to step: that is plain SGD. u has to live as long as the parameters, and the step goes along u.
    beta1 * u[i] + g[i] -> g[i]
    lr * u[i] -> lr * g[i]
The old u is not multiplied by beta1: what never fades never brakes.
    beta1 * u[i] + g[i] -> u[i] + g[i]
The new gradient enters u whole: the share 1 - beta1 belongs to Adam's mean, not to momentum's sum.
    beta1 * u[i] + g[i] -> beta1 * u[i] + (1 - beta1) * g[i]
The new gradient enters whole, and the old u is multiplied by beta1: you have it the other way round.
    beta1 * u[i] + g[i] -> u[i] + beta1 * g[i] || (1 - beta1) * u[i] + beta1 * g[i] || (1 - beta1) * u[i] + g[i]
The learning rate is missing.
    lr * u[i] -> u[i]
You climb: the step is subtracted.
    moved[i] - lr -> moved[i] + lr
You step with the u of the step before: take in the new gradient first.
    lr * u[i] -> lr * (u[i] - g[i]) / beta1
You return the final u: the parameters are asked for.
    return moved -> return u
You start each step from the parameters as they came: go on from where the last step ended.
    moved[i] - lr -> parameters[i] - lr
Every step's gradients count: you take those of one step only.
    in gradients: -> in gradients[:1]:
    in gradients: -> in gradients[-1:]:
Only the first parameter is moved.
    range(len(parameters)) -> range(1)
The gradients of a step are in the order of the parameters: you take that of another one.
    g[i] -> g[0]
    g[i] -> g[-1 - i]
In your answer u is the first gradient itself, so later steps change the caller's array.
    u[i] = beta1 * u[i] + g[i] -> u[i] = g[i] if not u[i].any() else np.add(beta1 * u[i], g[i], out=u[i])
""",
)
def momentum_steps(parameters, gradients, lr, beta1):
    moved = list(parameters)  #: the parameters before the first step, in a new list
    u = [np.zeros_like(p) for p in parameters]  #: a u for each parameter, 0 at first
    for g in gradients:  #: one list of gradients for each step
        for i in range(len(parameters)):  #: the number of each parameter
            u[i] = beta1 * u[i] + g[i]  #: this parameter's fading sum of gradients
            moved[i] = moved[i] - lr * u[i]  #: the parameter, moved against its own u
    return moved


# --- largest_rate ----------------------------------------------------------------------------------------


def _curvature_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    c = float(rng.uniform(0.5, 3))
    yield "one direction, beta1 = 0, which is SGD", np.array([c]), 0.0
    yield "the page's valley, beta1 = 0.9", np.array([0.04, 1.0]), 0.9
    yield "the same, beta1 = 0.5", np.array([0.04, 1.0]), 0.5
    yield "one direction, beta1 = 0.9", np.array([c * 1.7]), 0.9
    steep = rng.uniform(0.1, 1, 6)
    steep[2] = 4 + rng.random()
    yield "six directions, beta1 = 0.3", steep, 0.3
    yield "steepest first, beta1 = 0.99", np.array([30.0, 2.0, 0.001]), 0.99


@exercise(
    difficulty=3,
    minutes=25,
    cases=_curvature_cases,
    rtol=3e-3,
    hints="""
First measure. Take one direction, gradient c θ, and raise the rate until θ grows over a thousand steps. Do that for beta1 = 0, 0.5 and 0.9.

At the limit the sign of θ flips in each step and its size stays: θ, -θ, θ, … What is u then? It flips too: u = beta1 · (-u) + c θ.

So u = c θ / (1 + beta1), and a step must lead from θ to -θ.
""",
    mistakes="""
That is SGD's limit. What flips cancels in u, so momentum tolerates a larger rate: measure it for beta1 = 0.5 and 0.9.
    2 * (1 + beta1) / -> 2 /
The flat direction sets no limit. The rate must not be too large for the steepest.
    curvatures.max() -> curvatures.min()
The directions do not share the limit: the steepest alone sets it.
    curvatures.max() -> curvatures.mean() || curvatures.sum() || np.linalg.norm(curvatures)
You divide by 1 - beta1: that is how far a gradient that keeps its sign adds up. At the limit it flips.
    2 * (1 + beta1) / -> 2 / (1 - beta1) /
Momentum's steps are longer where the gradient keeps its sign. At the limit the sign flips, and there they are shorter: the limit rises with beta1.
    2 * (1 + beta1) / -> 2 * (1 - beta1) / || 2 / (1 + beta1) /
The curvature belongs in the denominator: a steeper valley needs a smaller rate.
    / curvatures.max() -> * curvatures.max()
Half of that is the limit up to which nothing swings, for SGD. It may swing as long as it does not grow.
    2 * (1 + beta1) -> (1 + beta1)
    2 * (1 + beta1) -> 1
You have twice the limit: at the limit a step leads from θ to -θ, a distance of 2 θ.
    2 * (1 + beta1) -> 4 * (1 + beta1)
That law fits beta1 = 0 and one other value. Measure at a third.
    2 * (1 + beta1) -> 2 * (1 + beta1) ** 2 || 2 * (1 + beta1**2) || 2 + beta1 || 2 + 4 * beta1
The square root of the curvature has no place here: the gradient is c θ.
    curvatures.max() -> math.sqrt(curvatures.max())
The rate is one number, for all directions.
    curvatures.max() -> curvatures
That is another momentum, in which the new gradient has the share 1 - beta1. Here it enters whole.
    2 * (1 + beta1) / -> 2 * (1 + beta1) / (1 - beta1) /
""",
)
def largest_rate(curvatures, beta1):
    return 2 * (1 + beta1) / curvatures.max()


# --- shortest_warmup -------------------------------------------------------------------------------------


def _warmup_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT's betas, limit 1.5", 0.9, 0.999, 1.5
    yield "BERT's betas, limit 3", 0.9, 0.999, 3.0
    yield "BERT's betas, limit 1.1", 0.9, 0.999, 1.1
    yield "beta2 = 0.98, limit 1.2", 0.9, 0.98, 1.2
    yield "beta1 = 0.5, beta2 = 0.99, limit 2", 0.5, 0.99, 2.0
    yield "a limit that the first step keeps and a later one does not", 0.9, 0.999, 4.0
    yield "a limit that no step exceeds", 0.9, 0.999, 7.0
    yield "beta1 above beta2, where no step is long", 0.99, 0.9, 1.5


@exercise(
    difficulty=3,
    minutes=20,
    cases=_warmup_cases,
    hints="""
Step t is (1 - β₁ᵗ) / √(1 - β₂ᵗ) learning rates long, times the schedule's share t / warmup while t is at most warmup.

The share is 1 at t = warmup. So from there on the step without a warm-up must keep the limit by itself.

Which is the last step that is too long without a warm-up? A loop up to some tens of thousands finds it.
""",
    mistakes="""
That is the last step that is too long. At t = warmup the share is 1, so the warm-up must end one step later.
    + 1 ->
Your warm-up is one step too short. Step t has the share t / warmup: the first step has 1 / warmup, not 0, and step number warmup has 1.
    int(too_long.max(initial=0)) + 1 -> max(1, int(too_long.max(initial=0)))
Your warm-up is one step too long. Steps are counted from 1, and step number warmup has the full rate already.
    + 1 -> + 2
    int(too_long.max(initial=0)) + 1 -> int(too_long.max(initial=-1)) + 2
    **t -> ** np.maximum(t - 1, 1)
The first steps are not the longest: at first m warms up faster than v, so the length rises before it falls. Look for the last step that is too long.
    int(too_long.max(initial=0)) + 1 -> int(t[length <= limit].min())
That is the step at which the length is largest. The shortest warm-up ends later, where the length has come down to the limit.
    int(too_long.max(initial=0)) + 1 -> int(t[length.argmax()])
If no step is too long, no warm-up is needed: the first step may have the full rate already, warmup = 1.
    initial=0 -> initial=-1
The root is missing: Adam divides by the root of v.
    np.sqrt(1 - beta2**t) -> (1 - beta2**t)
You left m out: it starts at 0 too, and its 1 - β₁ᵗ makes the first steps shorter.
    (1 - beta1**t) / -> 1 /
The length is upside down: v is too small at first, and Adam divides by its root.
    length > limit -> 1 / length > limit
β₁ belongs to m and β₂ to v; you have them the other way round.
    beta1 -> beta2 ; beta2 -> beta1
You count the steps that are too long. Those at the very start may be short enough, and they lie within the warm-up too.
    int(too_long.max(initial=0)) + 1 -> too_long.size + 1
You compare with 1. The limit is an argument.
    > limit -> > 1.0001
You stop looking too soon: with β₂ near 1 the lengths need thousands of steps to come down.
    20_001 -> 1001 || 501 || 301 || 101
You multiply by the limit: the length itself is compared with it.
    > limit -> > limit**2
""",
)
def shortest_warmup(beta1, beta2, limit):
    t = np.arange(1, 20_001)  #: the numbers of the steps, counted from 1
    length = (1 - beta1**t) / np.sqrt(1 - beta2**t)  #: step lengths in learning rates, without a warm-up
    too_long = t[length > limit]  #: the steps that are too long without a warm-up
    return int(too_long.max(initial=0)) + 1
