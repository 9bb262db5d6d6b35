"""Answers to the exercises of chapter 3 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, nn, ops, optim

__all__ = ["RIGHT", "WRONG"]

# --- dropout ---------------------------------------------------------------------------------------------


def by_where(x, keep, p, training):
    return np.where(keep, x / (1.0 - p), np.zeros_like(x)) if training else x.copy()


def by_a_mask_of_factors(x, keep, p, training):
    factors = np.ones_like(x)
    if training:
        factors[keep] = 1 / (1 - p)
        factors[~keep] = 0
    return factors * x


def zeroed_in_a_copy(x, keep, p, training):
    y = np.array(x)
    if training:
        y /= 1 - p
        y[np.logical_not(keep)] = 0
    return y


def entry_by_entry(x, keep, p, training):
    if not training:
        return x
    y = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        if keep[place]:
            y[place] = x[place] / (1 - p)
    return y


def leaves_the_dropped(x, keep, p, training):
    y = x.copy()
    if training:
        y[keep] /= 1 - p
    return y


def drops_the_kept_and_scales_always(x, keep, p, training):
    y = x / (1 - p)
    return np.where(keep, 0, y) if training else y


def in_the_callers_array(x, keep, p, training):
    if training:
        x *= keep
        x *= 1 - p
    return x


def only_when_training(x, keep, p, training):
    if training:
        return x * keep / (1 - p)
    return None


DROPOUT_RIGHT = [by_where, by_a_mask_of_factors, zeroed_in_a_copy, entry_by_entry]
DROPOUT_WRONG = [
    (lambda x, keep, p, training: np.where(keep, x, 0) if training else x, "What is kept is not scaled"),
    (
        lambda x, keep, p, training: x * keep * (keep.size / keep.sum()) if training else x,
        "You fit the factor to this draw",
    ),
    (leaves_the_dropped, "What is dropped becomes 0; you leave it"),
    (lambda x, keep, p, training: keep * x / (1 - p), "You drop in evaluation too"),
    (
        lambda x, keep, p, training: np.where(keep, x, 0) if training else (1 - p) * x,
        "the form of the first paper",
    ),
    (
        lambda x, keep, p, training: np.where(keep, 0, x / p) if training else x,
        ("You divide by p", "You keep what should go"),
    ),
    (drops_the_kept_and_scales_always, ("You keep what should go", "You scale in evaluation too")),
    (in_the_callers_array, ("it changes `x`", "You multiply by 1 - p")),
    (
        lambda x, keep, p, training: np.where(keep, x.astype(np.float64) / (1 - p), 0) if training else x,
        "and are float64 for float32",
    ),
    (only_when_training, "it returned None. Is there a `return` before the result?"),
    (
        lambda x, keep, p, training: (
            x * (np.random.default_rng(3).random(x.shape) > p) / (1 - p) if training else x
        ),
        "entries are off",
    ),
    (
        lambda x, keep, p, training: ops.dropout(Tensor(x), keep, p) if training else Tensor(x),
        "and returned a Tensor",
    ),
]

# --- learning_rate ---------------------------------------------------------------------------------------


def the_lower_of_two_lines(step, peak, warmup_steps, total_steps):
    rise = step / warmup_steps if warmup_steps else 1.0
    return peak * max(0.0, min(rise, (total_steps - step) / (total_steps - warmup_steps)))


def by_interpolation(step, peak, warmup_steps, total_steps):
    if warmup_steps == 0:
        return peak * max(0, 1 - step / total_steps)
    return float(np.interp(step, [0, warmup_steps, total_steps], [0, peak, 0]))


def in_three_branches(step, peak, warmup_steps, total_steps):
    if step >= total_steps:
        return 0
    if step < warmup_steps:
        return (step / warmup_steps) * peak
    done = (step - warmup_steps) / (total_steps - warmup_steps)
    return peak - done * peak


def by_the_library(step, peak, warmup_steps, total_steps):
    optimiser = optim.SGD([nn.Parameter(np.zeros(1))], lr=peak)
    return peak * optim.LinearWarmupDecay(optimiser, warmup_steps, total_steps).factor(step)


def as_in_the_released_code(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps * peak
    return max(0.0, peak * (1 - step / total_steps))


def below_zero(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return step * peak / warmup_steps
    return peak * (1 - (step - warmup_steps) / (total_steps - warmup_steps))


def over_zero_steps(step, peak, warmup_steps, total_steps):
    rise = step / warmup_steps
    fall = (total_steps - step) / (total_steps - warmup_steps)
    return peak * max(0, min(rise, fall))


def both_at_once(step, peak, warmup_steps, total_steps):
    rise = 1 if step >= warmup_steps else step / warmup_steps
    return max(0, peak * rise * (total_steps - step) / total_steps)


def cosine(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * step / warmup_steps
    done = min(1, (step - warmup_steps) / (total_steps - warmup_steps))
    return peak * 0.5 * (1 + math.cos(math.pi * done))


def from_one_and_below_zero(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return (1 + step) / warmup_steps * peak
    return peak - peak * (step - warmup_steps) / (total_steps - warmup_steps)


RATE_RIGHT = [the_lower_of_two_lines, by_interpolation, in_three_branches, by_the_library]
RATE_WRONG = [
    (lambda step, peak, warmup_steps, total_steps: 0.0, "Every number is 0."),
    (
        lambda step, peak, warmup_steps, total_steps: the_lower_of_two_lines(
            step + 1, peak, warmup_steps, total_steps
        ),
        "You are one step ahead everywhere",
    ),
    (as_in_the_released_code, "Your falling line starts at step 0"),
    (below_zero, "After the last step your rate becomes negative"),
    (over_zero_steps, ("it raised ZeroDivisionError", "Without warm-up you divide by 0")),
    (both_at_once, "Both factors act at once"),
    (cosine, "Your way down is curved"),
    (from_one_and_below_zero, ("You are one step ahead in the warm-up", "becomes negative")),
    (
        lambda step, peak, warmup_steps, total_steps: 1 if step >= warmup_steps else step / warmup_steps,
        ("your rate stays at the peak", "That is the share of the peak"),
    ),
    (
        lambda step, peak, warmup_steps, total_steps: [
            by_interpolation(s, peak, warmup_steps, total_steps) for s in range(total_steps)
        ],
        "and returned a list of",
    ),
]

# --- clip_gradients --------------------------------------------------------------------------------------


def over_one_long_vector(gradients, max_norm):
    everything = np.concatenate([g.reshape(-1) for g in gradients])
    norm = float(np.linalg.norm(everything))
    if norm <= max_norm:
        return [g.copy() for g in gradients], norm
    return [max_norm / norm * g for g in gradients], norm


def with_pytorchs_small_number(gradients, max_norm):
    norm = sum(float(np.vdot(g, g)) for g in gradients) ** 0.5
    factor = min(1.0, max_norm / (norm + 1e-6))
    return [g * factor for g in gradients], norm


def norm_of_the_norms(gradients, max_norm):
    norm = math.hypot(*(float(np.linalg.norm(g)) for g in gradients))
    factor = 1 / max(1.0, norm / max_norm)
    return [factor * g for g in gradients], norm


def clipped_by_the_library(gradients, max_norm):
    parameters = [nn.Parameter(np.zeros_like(g)) for g in gradients]
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = g.copy()
    norm = optim.clip_grad_norm(parameters, max_norm)
    return [parameter.grad for parameter in parameters], norm


def joint(gradients):
    return float(np.sqrt(sum(np.square(g, dtype=np.float64).sum() for g in gradients)))


def array_by_array(gradients, max_norm):
    out = []
    for g in gradients:
        length = float(np.linalg.norm(g))
        out.append(g * (max_norm / length) if length > max_norm else g)
    return out, joint(gradients)


def always_to_the_limit(gradients, max_norm):
    norm = joint(gradients)
    return [g / norm * max_norm if norm > 0 else g for g in gradients], norm


def norms_added(gradients, max_norm):
    norm = 0.0
    for g in gradients:
        norm += float(np.sqrt((g * g).sum()))
    return [g * min(1.0, max_norm / norm) if norm else g for g in gradients], norm


def squares_over_the_limit(gradients, max_norm):
    squares = sum(float((g * g).sum()) for g in gradients)
    factor = max_norm / math.sqrt(squares) if squares > max_norm else 1
    return [g * factor for g in gradients], math.sqrt(squares)


def over_a_norm_of_nought(gradients, max_norm):
    norm = joint(gradients)
    factor = max_norm / norm
    return [g * factor if factor < 1 else g for g in gradients], norm


def by_value_and_norm_afterwards(gradients, max_norm):
    clipped = [np.minimum(np.maximum(g, -max_norm), max_norm) for g in gradients]
    return clipped, joint(clipped)


def absolute_values_upside_down(gradients, max_norm):
    norm = float(sum(abs(g).sum() for g in gradients))
    return [g * norm / max_norm if norm > max_norm else g for g in gradients], norm


def clipped_in_place(gradients, max_norm):
    norm = joint(gradients)
    for g in gradients:
        if norm > max_norm:
            g *= max_norm / norm
    return gradients, min(norm, max_norm)


def with_a_float64_factor(gradients, max_norm):
    norm = np.float64(joint(gradients))
    return [g * np.minimum(max_norm / norm, 1.0) for g in gradients], norm


def one_array(gradients, max_norm):
    norm = joint(gradients)
    return np.concatenate([g.ravel() for g in gradients]) * min(1, max_norm / (norm + 1e-12)), norm


CLIP_RIGHT = [over_one_long_vector, with_pytorchs_small_number, norm_of_the_norms, clipped_by_the_library]
CLIP_WRONG = [
    (array_by_array, "You limit each array's norm by itself"),
    (always_to_the_limit, "You scale gradients that are below the limit too"),
    (norms_added, "You add the arrays' norms"),
    (squares_over_the_limit, "You compare the sum of the squares with the limit"),
    (over_a_norm_of_nought, ("it raised ZeroDivisionError", "Gradients of zero have norm 0")),
    (by_value_and_norm_afterwards, ("You cut each entry at the limit", "had before clipping")),
    (absolute_values_upside_down, ("You sum the absolute values", "The factor is upside down")),
    (clipped_in_place, ("it writes into what is in the list `gradients`", "had before clipping")),
    (with_a_float64_factor, "and are float64 for float32"),
    (one_array, "value 1 of 2: it should return 3 values"),
]

# --- adam_step -------------------------------------------------------------------------------------------


def with_folded_corrections(theta, g, m, v, t, lr, beta1, beta2, eps):
    m = m + (1 - beta1) * (g - m)
    v = v + (1 - beta2) * (g * g - v)
    root = math.sqrt(1 - beta2**t)
    return theta - lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root), m, v


def on_copies(theta, g, m, v, t, lr, beta1, beta2, eps):
    theta, m, v = theta.copy(), m.copy(), v.copy()
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * np.square(g)
    theta -= lr * (m / (1 - pow(beta1, t))) / (eps + (v / (1 - pow(beta2, t))) ** 0.5)
    return [theta, m, v]


def adam_by_the_library(theta, g, m, v, t, lr, beta1, beta2, eps):
    p = nn.Parameter(theta.copy())
    optimiser = optim.Adam([p], lr=lr, betas=(beta1, beta2), eps=eps)
    optimiser.load_state_dict({"steps": t - 1, "state": [[m, v]]})
    p.grad = g
    optimiser.step()
    return p.numpy(), *optimiser.state[0]


def moments(g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def without_correction(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * m / (np.sqrt(v) + eps), m, v


def epsilon_too_early(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m_hat = m / (1 - beta1**t)
    return theta - lr * m_hat / ((np.sqrt(v) + eps) / np.sqrt(1 - beta2**t)), m, v


def with_bert_decay(theta, g, m, v, t, lr, beta1, beta2, eps):
    new, m, v = on_copies(theta, g, m, v, t, lr, beta1, beta2, eps)
    return new - lr * 0.01 * theta, m, v


def corrected_state_and_epsilon_inside(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m, v = m / (1 - beta1**t), v / (1 - beta2**t)
    return theta - lr * m * (v + eps) ** -0.5, m, v


def sums_of_gradients(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + g, beta2 * v + g * g
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def uphill_with_the_root_of_v_alone(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta + lr * (m / (1 - beta1**t)) / (np.sqrt(v) + eps), m, v


def in_the_arguments(theta, g, m, v, t, lr, beta1, beta2, eps):
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    theta -= lr * m / (np.sqrt(v / (1 - beta2**t)) + eps)
    return theta, m, v


ADAM_RIGHT = [with_folded_corrections, on_copies, adam_by_the_library]
ADAM_WRONG = [
    (without_correction, "The bias correction is missing"),
    (epsilon_too_early, "ε is added to the root before v is corrected"),
    (
        lambda theta, g, m, v, t, lr, beta2, beta1, eps: with_folded_corrections(
            theta, g, m, v, t, lr, beta1, beta2, eps
        ),
        "β₁ belongs to m and β₂ to v",
    ),
    (with_bert_decay, "You decay the weights as well"),
    (corrected_state_and_epsilon_inside, ("ε stands inside the root", "You return m or v corrected")),
    (sums_of_gradients, ("enters m whole", "enters v whole")),
    (uphill_with_the_root_of_v_alone, ("m is corrected and v is not", "You climb")),
    (in_the_arguments, ("it changes `theta`", "v is corrected and m is not")),
    (
        lambda theta, g, m, v, t, lr, beta1, beta2, eps: on_copies(theta, g, m, v, t, lr, beta1, beta2, eps)[
            0
        ],
        "return three values",
    ),
]

RIGHT = {
    "dropout": DROPOUT_RIGHT,
    "learning_rate": RATE_RIGHT,
    "clip_gradients": CLIP_RIGHT,
    "adam_step": ADAM_RIGHT,
}
WRONG = {
    "dropout": DROPOUT_WRONG,
    "learning_rate": RATE_WRONG,
    "clip_gradients": CLIP_WRONG,
    "adam_step": ADAM_WRONG,
}
