"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import nn, optim

RIGHT = {}
WRONG = {}

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


RIGHT["clip_gradients"] = [
    over_one_long_vector,
    with_pytorchs_small_number,
    norm_of_the_norms,
    clipped_by_the_library,
]
WRONG["clip_gradients"] = [
    (over_a_norm_of_nought, ("it raised ZeroDivisionError", "[norm-of-zero]")),
    (by_value_and_norm_afterwards, ("[each-entry]", "[norm-after]")),
    (absolute_values_upside_down, ("[absolute-values]", "[upside-down]")),
    (clipped_in_place, ("it writes into what is in the list `gradients`", "[norm-after]")),
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


RIGHT["adam_step"] = [with_folded_corrections, on_copies, adam_by_the_library]
WRONG["adam_step"] = [
    (corrected_state_and_epsilon_inside, ("[eps-inside]", "[corrected-returned]")),
    (sums_of_gradients, ("[m-whole]", "[v-whole]")),
    (uphill_with_the_root_of_v_alone, ("[m-alone-corrected]", "[climbs]")),
    (in_the_arguments, ("it changes `theta`", "[v-alone-corrected]")),
]

# --- momentum_steps --------------------------------------------------------------------------------------


def momentum_by_the_library(parameters, gradients, lr, beta1):
    own = [nn.Parameter(p.copy()) for p in parameters]
    optimiser = optim.SGD(own, lr=lr, momentum=beta1)
    for step in gradients:
        for p, g in zip(own, step, strict=True):
            p.grad = g
        optimiser.step()
    return [p.numpy() for p in own]


def with_a_state_each(parameters, gradients, lr, beta1):
    parameters = list(parameters)
    states = [{} for _ in parameters]
    for step in gradients:
        for i, (g, state) in enumerate(zip(step, states, strict=True)):
            state["u"] = beta1 * state.get("u", 0) + g
            parameters[i] = parameters[i] - lr * state["u"]
    return parameters


def into_the_parameters(parameters, gradients, lr, beta1):
    u = [0.0] * len(parameters)
    for step in gradients:
        for i, g in enumerate(step):
            u[i] = beta1 * u[i] + g
            parameters[i] -= lr * u[i]
    return parameters


RIGHT["momentum_steps"] = [momentum_by_the_library, with_a_state_each]
WRONG["momentum_steps"] = [
    (into_the_parameters, "`parameters`"),
]

# --- largest_rate ----------------------------------------------------------------------------------------


def by_trying(curvatures, beta1):
    """Halve the interval between a rate that comes to rest and one that runs away."""
    low, high = 0.0, 8 / max(curvatures)
    for _ in range(24):
        lr = (low + high) / 2
        p, u = np.ones_like(curvatures), 0.0
        for _ in range(3000):
            u = beta1 * u + curvatures * p
            p = p - lr * u
            if np.abs(p).max() > 1e4:
                break
        low, high = (low, lr) if np.abs(p).max() > 1e4 else (lr, high)
    return low


def in_one_line(curvatures, beta1):
    return (2.0 + 2.0 * beta1) / np.max(curvatures)


def by_a_loop(curvatures, beta1):
    return min(2 / c for c in curvatures) * (1 + beta1)


RIGHT["largest_rate"] = [by_trying, in_one_line, by_a_loop]
WRONG["largest_rate"] = [
    (lambda curvatures, beta1: 3.8 / max(curvatures), "Right only on: the page's valley"),
]

# --- shortest_warmup -------------------------------------------------------------------------------------


def from_the_end(beta1, beta2, limit):
    t = 20_000
    while t > 1 and (1 - beta1 ** (t - 1)) / math.sqrt(1 - beta2 ** (t - 1)) <= limit:
        t -= 1
    return t


def by_the_definition(beta1, beta2, limit):
    lengths = [(1 - beta1**t) / math.sqrt(1 - beta2**t) for t in range(1, 6000)]
    for warmup in range(1, 6000):
        if lengths[warmup - 1] > limit:
            continue
        shares = [min(1.0, t / warmup) for t in range(1, 6000)]
        if all(share * length <= limit for share, length in zip(shares, lengths, strict=True)):
            return warmup
    return None


RIGHT["shortest_warmup"] = [from_the_end, by_the_definition]
WRONG["shortest_warmup"] = [
    (lambda beta1, beta2, limit: 10_000, "cases"),
]
