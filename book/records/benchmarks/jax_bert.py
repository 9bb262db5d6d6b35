"""The BERT of `minigrad.bert` in plain `jax.numpy`, and its pre-training step under `jit`.

The parameters are a dictionary with minigrad's names and shapes. What is written with speed in mind: dropout
compares 16 random bits a number (as minigrad does) from XLA's `RngBitGenerator` ("rbg", a few times faster on
a CPU than JAX's default), the chosen positions alone go through the vocabulary projection, parameters and
moments are donated, so that the step changes them in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from settings import Settings

from minigrad.bert.config import IGNORED, BertConfig

Parameters = dict[str, jax.Array]
Batch = dict[str, jax.Array]


class Dropout:
    """Drops with probability p, each time with bits of its own from one key."""

    def __init__(self, key: jax.Array) -> None:
        self.key, self.draws = key, 0

    def __call__(self, x: jax.Array, p: float) -> jax.Array:
        """x (…) -> (…)."""
        if not p:
            return x
        self.draws += 1
        bits = jax.random.bits(jax.random.fold_in(self.key, self.draws), x.shape, jnp.uint16)
        return jnp.where(bits >= round(p * 65536), x * (1 / (1 - p)), 0.0)


def linear(parameters: Parameters, name: str, x: jax.Array) -> jax.Array:
    """x (…, d_in) -> (…, d_out)."""
    return x @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def layer_norm(parameters: Parameters, name: str, x: jax.Array, eps: float) -> jax.Array:
    """x (…, H) -> (…, H)."""
    centred = x - x.mean(-1, keepdims=True)
    inverse_std = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + eps)
    return (
        centred * inverse_std * parameters[f"{name}.LayerNorm.weight"] + parameters[f"{name}.LayerNorm.bias"]
    )


def gelu(x: jax.Array) -> jax.Array:
    """The erf form."""
    return jax.nn.gelu(x, approximate=False)


def attention(
    config: BertConfig, parameters: Parameters, name: str, x: jax.Array, bias: jax.Array, dropout: Dropout
) -> jax.Array:
    """x (B, T, H), bias (B, 1, 1, T) -> (B, T, H), the heads concatenated."""

    def heads(part: str) -> jax.Array:  # (B, A, T, d_k)
        projected = linear(parameters, f"{name}.{part}", x)
        return projected.reshape(*x.shape[:2], config.num_attention_heads, -1).swapaxes(1, 2)

    q, k, v = heads("query"), heads("key"), heads("value")
    scores = (q * (1 / math.sqrt(config.head_size))) @ k.swapaxes(-1, -2) + bias  # (B, A, T, T)
    weights = dropout(jax.nn.softmax(scores), config.attention_probs_dropout_prob)
    return (weights @ v).swapaxes(1, 2).reshape(x.shape)


def loss_of(
    config: BertConfig, chosen_count: int, parameters: Parameters, batch: Batch, key: jax.Array
) -> jax.Array:
    """The sum of both losses; `chosen_count` is how many labels count, a constant of the compiled step."""
    dropout = Dropout(key)
    eps, p = config.layer_norm_eps, config.hidden_dropout_prob
    words = parameters["bert.embeddings.word_embeddings.weight"]
    segments = parameters["bert.embeddings.token_type_embeddings.weight"]
    positions = parameters["bert.embeddings.position_embeddings.weight"]
    input_ids = batch["input_ids"]

    x = words[input_ids] + segments[batch["token_type_ids"]] + positions[: input_ids.shape[1]]
    x = dropout(layer_norm(parameters, "bert.embeddings", x, eps), p)
    lowest = jnp.finfo(jnp.float32).min
    bias = jnp.where(batch["attention_mask"] == 0, lowest, 0.0)[:, None, None, :]
    for number in range(config.num_hidden_layers):
        layer = f"bert.encoder.layer.{number}"
        z = attention(config, parameters, f"{layer}.attention.self", x, bias, dropout)
        z = dropout(linear(parameters, f"{layer}.attention.output.dense", z), p)
        x = layer_norm(parameters, f"{layer}.attention.output", x + z, eps)
        inner = gelu(linear(parameters, f"{layer}.intermediate.dense", x))
        inner = dropout(linear(parameters, f"{layer}.output.dense", inner), p)
        x = layer_norm(parameters, f"{layer}.output", x + inner, eps)

    labels = batch["labels"].reshape(-1)
    (chosen,) = jnp.nonzero(labels != IGNORED, size=chosen_count)
    transformed = gelu(
        linear(parameters, "cls.predictions.transform.dense", x.reshape(len(labels), -1)[chosen])
    )
    transformed = layer_norm(parameters, "cls.predictions.transform", transformed, eps)
    scores = transformed @ words.T + parameters["cls.predictions.bias"]  # (n_chosen, V)
    pooled = jnp.tanh(linear(parameters, "bert.pooler.dense", x[:, 0]))
    relation = linear(parameters, "cls.seq_relationship", pooled)  # (B, 2)
    return cross_entropy(scores, labels[chosen]) + cross_entropy(relation, batch["next_sentence_label"])


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """logits (n, C), labels (n,) -> ()."""
    picked = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return (jax.nn.logsumexp(logits, axis=1) - picked).mean()


def clip_by_norm(gradients: Parameters, max_norm: float) -> Parameters:
    """All gradients scaled together so that their joint norm is at most `max_norm`."""
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in gradients.values()))
    scale = jnp.minimum(1.0, max_norm / (norm + 1e-6))
    return {name: g * scale for name, g in gradients.items()}


def make_step(
    config: BertConfig, weights: dict[str, np.ndarray], batch: dict[str, np.ndarray], settings: Settings
) -> tuple[Callable[[], jax.Array], Callable[[], None]]:
    """The compiled step, which returns its loss, and a function that waits until it has been computed.

    weights: the initial ones.
    """
    plain = {name for name in weights if name.endswith("bias") or "LayerNorm" in name}
    chosen_count = int((batch["labels"] != IGNORED).sum())
    beta1, beta2 = settings.betas

    def step(state: dict[str, Any], batch: Batch) -> tuple[dict[str, Any], jax.Array]:
        def loss_now(parameters: Parameters) -> jax.Array:
            key = jax.random.fold_in(jax.random.key(0, impl="rbg"), state["steps"])
            return loss_of(config, chosen_count, parameters, batch, key)

        loss, gradients = jax.value_and_grad(loss_now)(state["parameters"])
        gradients = clip_by_norm(gradients, settings.max_grad_norm)
        steps = state["steps"] + 1
        step_size = settings.learning_rate / (1 - beta1**steps)
        second_correction = jnp.sqrt(1 - beta2**steps)
        new: dict[str, Any] = {"steps": steps, "parameters": {}, "first": {}, "second": {}}
        for name, p in state["parameters"].items():
            g = gradients[name]
            new["first"][name] = m = beta1 * state["first"][name] + (1 - beta1) * g
            new["second"][name] = v = beta2 * state["second"][name] + (1 - beta2) * g * g
            decay = 0.0 if name in plain else settings.learning_rate * settings.weight_decay
            new["parameters"][name] = p * (1 - decay) - step_size * m / (
                jnp.sqrt(v) / second_correction + settings.eps
            )
        return new, loss

    compiled = jax.jit(step, donate_argnums=0)
    on_device = {name: jnp.asarray(values, jnp.int32) for name, values in batch.items()}
    state = {
        "steps": jnp.zeros((), jnp.int32),
        "parameters": {name: jnp.array(array) for name, array in weights.items()},
        "first": {name: jnp.zeros(array.shape) for name, array in weights.items()},
        "second": {name: jnp.zeros(array.shape) for name, array in weights.items()},
    }

    def one_step() -> jax.Array:
        nonlocal state
        state, loss = compiled(state, on_device)
        return loss

    return one_step, lambda: jax.block_until_ready(state)
