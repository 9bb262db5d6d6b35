"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import nn, optim

RIGHT = {}
WRONG = {}

# --- clip_gradients --------------------------------------------------------------------------------------


def with_pytorchs_small_number(gradients, max_norm):
    norm = sum(float(np.vdot(g, g)) for g in gradients) ** 0.5
    factor = min(1.0, max_norm / (norm + 1e-6))
    return [g * factor for g in gradients], norm


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
    return [g * factor if factor < 1 else g.copy() for g in gradients], norm


def by_value_and_norm_afterwards(gradients, max_norm):
    clipped = [np.minimum(np.maximum(g, -max_norm), max_norm) for g in gradients]
    return clipped, joint(clipped)


def clipped_in_place(gradients, max_norm):
    norm = joint(gradients)
    for g in gradients:
        if norm > max_norm:
            g *= max_norm / norm
    return gradients, min(norm, max_norm)


def with_a_float64_factor(gradients, max_norm):
    norm = np.float64(joint(gradients))
    return [g * np.minimum(max_norm / norm, 1.0) for g in gradients], norm


RIGHT["clip_gradients"] = [with_pytorchs_small_number, clipped_by_the_library]
WRONG["clip_gradients"] = [
    (over_a_norm_of_nought, ("it raised ZeroDivisionError", "[norm-of-zero]")),
    (by_value_and_norm_afterwards, ("[each-entry]", "[norm-after]")),
    (clipped_in_place, ("it writes into what is in the list `gradients`", "[norm-after]")),
    (with_a_float64_factor, "and are float64 for float32"),
]

# --- adam_step -------------------------------------------------------------------------------------------


def with_folded_corrections(theta, g, m, v, t, lr, beta1, beta2, eps):
    m = m + (1 - beta1) * (g - m)
    v = v + (1 - beta2) * (g * g - v)
    root = math.sqrt(1 - beta2**t)
    return theta - lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root), m, v


def moments(g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def corrected_state_and_epsilon_inside(theta, g, m, v, t, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    m, v = m / (1 - beta1**t), v / (1 - beta2**t)
    return theta - lr * m * (v + eps) ** -0.5, m, v


def in_the_arguments(theta, g, m, v, t, lr, beta1, beta2, eps):
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    theta -= lr * m / (np.sqrt(v / (1 - beta2**t)) + eps)
    return theta, m, v


RIGHT["adam_step"] = [with_folded_corrections]
WRONG["adam_step"] = [
    (corrected_state_and_epsilon_inside, ("[eps-inside]", "[corrected-returned]")),
    (in_the_arguments, ("it changes `theta`", "[v-alone-corrected]")),
]

# --- momentum_steps --------------------------------------------------------------------------------------


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


RIGHT["momentum_steps"] = [with_a_state_each]
WRONG["momentum_steps"] = [(into_the_parameters, "`parameters`")]

# --- largest_rate ----------------------------------------------------------------------------------------


def in_one_line(curvatures, beta1):
    return (2.0 + 2.0 * beta1) / np.max(curvatures)


def by_a_loop(curvatures, beta1):
    return min(2 / c for c in curvatures) * (1 + beta1)


RIGHT["largest_rate"] = [in_one_line, by_a_loop]
WRONG["largest_rate"] = [
    (lambda curvatures, beta1: 3.8 / max(curvatures), "Right only on: the page's valley")
]

# --- shortest_warmup -------------------------------------------------------------------------------------


def from_the_end(beta1, beta2, limit):
    t = 20_000
    while t > 1 and (1 - beta1 ** (t - 1)) / math.sqrt(1 - beta2 ** (t - 1)) <= limit:
        t -= 1
    return t


RIGHT["shortest_warmup"] = [from_the_end]
