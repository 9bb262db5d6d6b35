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


def masked_only(x, keep, p, training):
    return np.where(keep, x, 0) if training else x


def over_p(x, keep, p, training):
    return np.where(keep, x / p, 0) if training else x


def times_the_rest(x, keep, p, training):
    return x * keep * (1 - p) if training else x


def drops_the_kept(x, keep, p, training):
    return np.where(keep, 0, x / (1 - p)) if training else x


def over_the_count(x, keep, p, training):
    return x * keep * (keep.size / keep.sum()) if training else x


def leaves_the_dropped(x, keep, p, training):
    if not training:
        return x
    y = x.copy()
    y[keep] /= 1 - p
    return y


def always_dropping(x, keep, p, training):
    return keep * x / (1 - p)


def always_scaling_and_masking_in_training(x, keep, p, training):
    y = x / (1 - p)
    return y * keep if training else y


def modes_swapped(x, keep, p, training):
    if training:
        return x
    return np.where(keep, x, 0) / (1 - p)


def of_the_first_paper(x, keep, p, training):
    return np.where(keep, x, 0) if training else (1 - p) * x


def scaled_on_both_sides(x, keep, p, training):
    return np.where(keep, x / (1 - p), 0) if training else x * (1 - p)


def scaled_without_dropping(x, keep, p, training):
    return x / (1 - p) if training else x


def a_draw_of_its_own(x, keep, p, training):
    return x * (np.random.default_rng(3).random(x.shape) > p) / (1 - p) if training else x


def in_the_callers_array(x, keep, p, training):
    if training:
        x *= keep
        x /= 1 - p
    return x


def kept_entries_alone(x, keep, p, training):
    return x[keep] / (1 - p) if training else x


def in_float64(x, keep, p, training):
    return np.where(keep, x.astype(np.float64) / (1 - p), 0) if training else x


def only_when_training(x, keep, p, training):
    if training:
        return x * keep / (1 - p)
    return None


def one_minus_p_without_brackets(x, keep, p, training):
    return x * keep / 1 - p if training else x


def as_a_tensor(x, keep, p, training):
    return ops.dropout(Tensor(x), keep, p) if training else Tensor(x)


DROPOUT_RIGHT = [by_where, by_a_mask_of_factors, zeroed_in_a_copy, entry_by_entry]
DROPOUT_WRONG = [
    (masked_only, "What is kept is not scaled"),
    (over_p, "You divide by p, the probability to be dropped"),
    (times_the_rest, "You multiply by 1 - p"),
    (drops_the_kept, "You keep what should go"),
    (over_the_count, "You divide by the share that this draw kept"),
    (leaves_the_dropped, "What is dropped becomes 0"),
    (always_dropping, "You drop in evaluation too"),
    (always_scaling_and_masking_in_training, "You scale in evaluation too"),
    (modes_swapped, "it is the other way round"),
    (of_the_first_paper, "the form of the first paper"),
    (scaled_on_both_sides, "You scale twice"),
    (scaled_without_dropping, "You scale and do not drop"),
    (a_draw_of_its_own, "entries are off"),
    (in_the_callers_array, "it changes its argument number 1"),
    (kept_entries_alone, "it should return shape (3, 5)"),
    (in_float64, "it should return float32, and returned float64"),
    (only_when_training, "it returned None. Is there a `return` before the result?"),
    (one_minus_p_without_brackets, "entries are off"),
    (as_a_tensor, "and returned a Tensor"),
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


def first_step_is_one(step, peak, warmup_steps, total_steps):
    return the_lower_of_two_lines(step + 1, peak, warmup_steps, total_steps)


def never_quite_zero(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    return peak * max(0, total_steps - step) / (total_steps - warmup_steps)


def behind_by_one(step, peak, warmup_steps, total_steps):
    step = step - 1 if step > 0 else 0
    return the_lower_of_two_lines(step, peak, warmup_steps, total_steps)


def zero_at_the_last_step(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * max(0, 1 - (step - warmup_steps) / (total_steps - 1 - warmup_steps))


def as_in_the_released_code(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps * peak
    return max(0.0, peak * (1 - step / total_steps))


def fall_of_all_steps(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps * peak
    return max(0.0, peak * (total_steps - (step - warmup_steps)) / total_steps)


def fall_counted_from_zero(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps * peak
    return peak * max(0.0, (total_steps - warmup_steps - step) / (total_steps - warmup_steps))


def below_zero(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return step * peak / warmup_steps
    return peak * (1 - (step - warmup_steps) / (total_steps - warmup_steps))


def constant_after_the_warm_up(step, peak, warmup_steps, total_steps):
    return peak if step >= warmup_steps else peak * step / warmup_steps


def share_of_the_peak(step, peak, warmup_steps, total_steps):
    return the_lower_of_two_lines(step, 1, warmup_steps, total_steps)


def over_zero_steps(step, peak, warmup_steps, total_steps):
    rise = step / warmup_steps
    fall = (total_steps - step) / (total_steps - warmup_steps)
    return peak * max(0, min(rise, fall))


def no_rise(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak
    return peak * max(0, (total_steps - step) / (total_steps - warmup_steps))


def both_at_once(step, peak, warmup_steps, total_steps):
    rise = 1 if step >= warmup_steps else step / warmup_steps
    return max(0, peak * rise * (total_steps - step) / total_steps)


def cosine(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * step / warmup_steps
    done = min(1, (step - warmup_steps) / (total_steps - warmup_steps))
    return peak * 0.5 * (1 + math.cos(math.pi * done))


def whole_division(step, peak, warmup_steps, total_steps):
    if step < warmup_steps:
        return peak * (step // warmup_steps)
    return peak * max(0, (total_steps - step) / (total_steps - warmup_steps))


def the_whole_curve(step, peak, warmup_steps, total_steps):
    return [by_interpolation(s, peak, warmup_steps, total_steps) for s in range(total_steps)]


def rate_printed(step, peak, warmup_steps, total_steps):
    print(end="")


RATE_RIGHT = [the_lower_of_two_lines, by_interpolation, in_three_branches, by_the_library]
RATE_WRONG = [
    (first_step_is_one, "You are one step ahead everywhere"),
    (never_quite_zero, "You are one step ahead in the warm-up"),
    (behind_by_one, "You are one step behind"),
    (zero_at_the_last_step, "On the way down you are one step ahead"),
    (as_in_the_released_code, "Your falling line starts at step 0"),
    (fall_of_all_steps, "but divide by all of them"),
    (fall_counted_from_zero, "Your line falls too early"),
    (below_zero, "After the last step your rate becomes negative"),
    (constant_after_the_warm_up, "After the warm-up your rate stays at the peak"),
    (share_of_the_peak, "That is the share of the peak"),
    (over_zero_steps, "Without warm-up you divide by 0"),
    (no_rise, "The rise is missing"),
    (both_at_once, "Both factors act at once"),
    (cosine, "On a step on the way down: it should return"),
    (whole_division, "On the second step: it should return"),
    (the_whole_curve, "and returned a list of"),
    (rate_printed, "it returned None. Is there a `return` before the result?"),
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
        length = np.linalg.norm(g)
        out.append(g * (max_norm / length) if length > max_norm else g)
    return out, joint(gradients)


def by_value(gradients, max_norm):
    return [np.minimum(np.maximum(g, -max_norm), max_norm) for g in gradients], joint(gradients)


def always_to_the_limit(gradients, max_norm):
    norm = joint(gradients)
    return [g / norm * max_norm if norm > 0 else g for g in gradients], norm


def norms_added(gradients, max_norm):
    norm = 0.0
    for g in gradients:
        norm += float(np.sqrt((g * g).sum()))
    return [g * min(1.0, max_norm / norm) if norm else g for g in gradients], norm


def squares_without_a_root(gradients, max_norm):
    norm = float(sum((g**2).sum() for g in gradients))
    return [g * max_norm / norm if norm > max_norm else g for g in gradients], norm


def largest_entry(gradients, max_norm):
    norm = float(max(np.abs(g).max() for g in gradients))
    return [g * max_norm / norm if norm > max_norm else g for g in gradients], norm


def longest_array(gradients, max_norm):
    norm = max(joint([g]) for g in gradients)
    return [g * max_norm / norm if norm > max_norm else g for g in gradients], norm


def absolute_values(gradients, max_norm):
    norm = float(sum(abs(g).sum() for g in gradients))
    return [g * max_norm / norm if norm > max_norm else g for g in gradients], norm


def root_of_the_mean(gradients, max_norm):
    count = sum(g.size for g in gradients)
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients) / count)
    return [g * max_norm / norm if norm > max_norm else g for g in gradients], norm


def to_length_one(gradients, max_norm):
    norm = joint(gradients)
    return ([g / norm for g in gradients] if norm > max_norm else gradients), norm


def norm_after_clipping(gradients, max_norm):
    clipped = over_one_long_vector(gradients, max_norm)[0]
    return clipped, joint(clipped)


def limit_in_the_place_of_the_norm(gradients, max_norm):
    norm = joint(gradients)
    return over_one_long_vector(gradients, max_norm)[0], min(norm, max_norm)


def gradients_alone(gradients, max_norm):
    return over_one_long_vector(gradients, max_norm)[0]


def norm_first(gradients, max_norm):
    clipped, norm = over_one_long_vector(gradients, max_norm)
    return norm, clipped


def over_a_norm_of_nought(gradients, max_norm):
    norm = joint(gradients)
    factor = max_norm / norm
    return [g * factor if factor < 1 else g for g in gradients], norm


def with_a_float64_factor(gradients, max_norm):
    norm = np.float64(joint(gradients))
    return [g * np.minimum(max_norm / norm, 1.0) for g in gradients], norm


def clipped_in_place(gradients, max_norm):
    norm = joint(gradients)
    for g in gradients:
        if norm > max_norm:
            g *= max_norm / norm
    return gradients, norm


def one_array(gradients, max_norm):
    norm = joint(gradients)
    return np.concatenate([g.ravel() for g in gradients]) * min(1, max_norm / (norm + 1e-12)), norm


def forgets_the_last(gradients, max_norm):
    clipped, norm = over_one_long_vector(gradients, max_norm)
    return clipped[:-1], norm


def upside_down(gradients, max_norm):
    norm = joint(gradients)
    return [g * norm / max_norm if norm > max_norm else g for g in gradients], norm


CLIP_RIGHT = [
    over_one_long_vector,
    with_pytorchs_small_number,
    norm_of_the_norms,
    clipped_by_the_library,
]
CLIP_WRONG = [
    (array_by_array, "You limit each array's norm by itself"),
    (by_value, "You cut each entry at the limit"),
    (always_to_the_limit, "You scale gradients that are below the limit too"),
    (norms_added, "You add the arrays' norms"),
    (squares_without_a_root, "The square root is missing"),
    (largest_entry, "You take the largest entry for the norm"),
    (longest_array, "You take the largest of the arrays' norms"),
    (absolute_values, "You sum the absolute values"),
    (root_of_the_mean, "You take the mean of the squares"),
    (to_length_one, "which makes the length 1 whatever the limit"),
    (norm_after_clipping, "return the norm that they had before clipping"),
    (limit_in_the_place_of_the_norm, "return the norm that they had before clipping"),
    (gradients_alone, "return the norm beside them"),
    (norm_first, "The order is the list of gradients first"),
    (over_a_norm_of_nought, "Gradients of zero have norm 0"),
    (with_a_float64_factor, "it should return float32, and returned float64"),
    (clipped_in_place, "it changes its argument number 1"),
    (one_array, "value 1 of 2: it should return 3 values"),
    (forgets_the_last, "value 1 of 2: it should return 3 values, and returned a list of 2"),
    (upside_down, "entries are off"),
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


def first_corrected(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr / (1 - beta1**t) * m / (np.sqrt(v) + eps), m, v


def second_corrected(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * m / ((v / (1 - beta2**t)) ** 0.5 + eps), m, v


def correction_turned_round(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * m * (1 - beta1**t) / (np.sqrt(v * (1 - beta2**t)) + eps), m, v


def without_the_power(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1)) / (np.sqrt(v / (1 - beta2)) + eps), m, v


def times_t(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1 * t)) / (np.sqrt(v / (1 - beta2 * t)) + eps), m, v


def epsilon_under_the_root(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return theta - lr * m_hat / (v_hat + eps) ** 0.5, m, v


def epsilon_too_early(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m_hat = m / (1 - beta1**t)
    return theta - lr * m_hat / ((np.sqrt(v) + eps) / np.sqrt(1 - beta2**t)), m, v


def without_epsilon(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1**t)) / np.sqrt(v / (1 - beta2**t)), m, v


def without_the_root(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1**t)) / (v / (1 - beta2**t) + eps), m, v


def times_the_root(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1**t)) * (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def gradients_not_squared(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def absolute_gradients(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * abs(g)
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def share_squared_too(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + np.square((1 - beta2) * g)
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def sums_of_gradients(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + g, beta2 * v + g * g
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def as_in_momentum(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = beta1 * m + g, beta2 * v + (1 - beta2) * g * g
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def shares_swapped(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = (1 - beta1) * m + beta1 * g, (1 - beta2) * v + beta2 * g * g
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def betas_swapped(theta, g, m, v, t, lr, beta2, beta1, eps):
    return with_folded_corrections(theta, g, m, v, t, lr, beta1, beta2, eps)


def corrected_state(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m, v = m / (1 - beta1**t), v / (1 - beta2**t)
    return theta - lr * m / (np.sqrt(v) + eps), m, v


def old_state_returned(theta, g, m, v, t, lr, beta1, beta2, eps):
    return on_copies(theta, g, m, v, t, lr, beta1, beta2, eps)[0], m, v


def step_before_the_update(theta, g, m, v, t, lr, beta1, beta2, eps):
    theta = theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return theta, *moments(g, m, v, beta1, beta2)


def t_counted_on(theta, g, m, v, t, lr, beta1, beta2, eps):
    t += 1
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def t_counted_back(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m_hat = np.divide(m, 1 - beta1 ** (t - 1))
    v_hat = np.divide(v, 1 - beta2 ** (t - 1))
    return theta - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


def gradient_itself(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * g / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def uphill(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta + lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def with_bert_decay(theta, g, m, v, t, lr, beta1, beta2, eps):
    new, m, v = on_copies(theta, g, m, v, t, lr, beta1, beta2, eps)
    return new - lr * 0.01 * theta, m, v


def parameter_alone(theta, g, m, v, t, lr, beta1, beta2, eps):
    return on_copies(theta, g, m, v, t, lr, beta1, beta2, eps)[0]


def the_step_alone(theta, g, m, v, t, lr, beta1, beta2, eps):
    new, m, v = on_copies(theta, g, m, v, t, lr, beta1, beta2, eps)
    return theta - new, m, v


def in_the_arguments(theta, g, m, v, t, lr, beta1, beta2, eps):
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    theta -= lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return theta, m, v


def root_of_math(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    return theta - lr * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps), m, v


def signs(theta, g, m, v, t, lr, beta1, beta2, eps):
    return theta - lr * np.sign(g), *moments(g, m, v, beta1, beta2)


ADAM_RIGHT = [with_folded_corrections, on_copies, adam_by_the_library]
ADAM_WRONG = [
    (without_correction, "The bias correction is missing"),
    (first_corrected, "m is corrected and v is not"),
    (second_corrected, "v is corrected and m is not"),
    (correction_turned_round, "You multiply by 1 - βᵗ"),
    (without_the_power, "You correct with 1 - β instead of 1 - βᵗ"),
    (times_t, "You correct with 1 - β t"),
    (epsilon_under_the_root, "ε stands inside the root"),
    (epsilon_too_early, "ε is added to the root before v is corrected"),
    (without_epsilon, "ε is missing"),
    (without_the_root, "The root is missing"),
    (times_the_root, "You multiply by the root of v"),
    (gradients_not_squared, "yours is a mean of the gradients"),
    (absolute_gradients, "yours is a mean of their absolute values"),
    (share_squared_too, "You square 1 - β₂ along with the gradient"),
    (sums_of_gradients, "The new gradient enters m and v whole"),
    (as_in_momentum, "The new gradient enters m whole"),
    (shares_swapped, "The shares are swapped"),
    (betas_swapped, "β₁ belongs to m and β₂ to v"),
    (corrected_state, "You return the corrected means as the state"),
    (old_state_returned, "you return the means as they came"),
    (step_before_the_update, "You step with the means of the step before"),
    (t_counted_on, "You use t + 1"),
    (t_counted_back, "You use t - 1"),
    (gradient_itself, "You divide the gradient itself"),
    (uphill, "You climb"),
    (with_bert_decay, "You decay the weights as well"),
    (parameter_alone, "it should return 3 values, and returned an array"),
    (the_step_alone, "value 1 of 3"),
    (in_the_arguments, "it changes its argument number 1"),
    (root_of_math, "it raised TypeError"),
    (signs, "value 1 of 3"),
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
