"""A step of pre-training in JAX, compiled whole by `jax.jit`: what benchmarks on a GPU compare with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from settings import Settings

from minigrad.bert.config import IGNORED, BertConfig

Weights = dict[str, Any]  # by Hugging Face's names, as minigrad's `state_dict`


def _dropout(x: Any, p: float, keys: Iterator[Any]) -> Any:
    return jnp.where(jax.random.bernoulli(next(keys), 1 - p, x.shape), x / (1 - p), 0) if p else x


def _linear(x: Any, weights: Weights, name: str) -> Any:
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _layer_norm(x: Any, weights: Weights, name: str, eps: float) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    normalised = centred * jax.lax.rsqrt(jnp.square(centred).mean(axis=-1, keepdims=True) + eps)
    return normalised * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def _loss(weights: Weights, batch: Weights, key: Any, config: BertConfig) -> Any:
    """Both losses of a batch, whose `chosen` (n_chosen,) are positions in the flattened tokens."""
    hidden_p, attention_p = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    keys = iter(jax.random.split(key, 1 + 3 * config.num_hidden_layers))
    norm = functools.partial(_layer_norm, weights=weights, eps=config.layer_norm_eps)
    gelu = functools.partial(jax.nn.gelu, approximate=False)
    n, length = batch["input_ids"].shape
    tables = "bert.embeddings.{}_embeddings.weight"
    words = weights[tables.format("word")]
    x = words[batch["input_ids"]] + weights[tables.format("token_type")][batch["token_type_ids"]]
    x = norm(x + weights[tables.format("position")][:length], name="bert.embeddings.LayerNorm")
    x = _dropout(x, hidden_p, keys)  # (B, T, H)
    bias = jnp.where(batch["attention_mask"] == 0, jnp.finfo(x.dtype).min, 0)[:, None, None]
    for number in range(config.num_hidden_layers):
        name = f"bert.encoder.layer.{number}"
        q, k, v = (
            _linear(x, weights, f"{name}.attention.self.{part}")
            .reshape(n, length, config.num_attention_heads, -1)
            .swapaxes(1, 2)
            for part in ("query", "key", "value")
        )  # (B, A, T, d_k)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(config.head_size).astype(x.dtype) + bias
        z = _dropout(jax.nn.softmax(scores), attention_p, keys) @ v
        z = _linear(z.swapaxes(1, 2).reshape(x.shape), weights, f"{name}.attention.output.dense")
        x = norm(x + _dropout(z, hidden_p, keys), name=f"{name}.attention.output.LayerNorm")
        inner = gelu(_linear(x, weights, f"{name}.intermediate.dense"))
        y = _dropout(_linear(inner, weights, f"{name}.output.dense"), hidden_p, keys)
        x = norm(x + y, name=f"{name}.output.LayerNorm")
    head = "cls.predictions.transform"
    chosen = gelu(_linear(x.reshape(-1, x.shape[-1])[batch["chosen"]], weights, f"{head}.dense"))
    logits = norm(chosen, name=f"{head}.LayerNorm") @ words.T + weights["cls.predictions.bias"]
    pooled = jnp.tanh(_linear(x[:, 0], weights, "bert.pooler.dense"))
    relation = _linear(pooled, weights, "cls.seq_relationship")
    return _cross_entropy(logits, batch["targets"]) + _cross_entropy(relation, batch["next_sentence_label"])


def _adamw(p: Any, g: Any, m: Any, v: Any, t: Any, decay: float, settings: Settings) -> tuple[Any, Any, Any]:
    beta1, beta2 = settings.betas
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * jnp.square(g)
    step = (m / (1 - beta1**t)) / (jnp.sqrt(v / (1 - beta2**t)) + settings.eps)
    return p * (1 - settings.learning_rate * decay) - settings.learning_rate * step, m, v


def make_step(
    config: BertConfig, batch: dict[str, np.ndarray], weights: dict[str, np.ndarray], settings: Settings
) -> Callable[[], Any]:
    """What makes a step and returns its loss: forward, backward, clipping and AdamW are one compiled function."""
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")  # on a CPU it changes nothing
    jax.config.update("jax_default_prng_impl", "rbg")  # the fast one
    labels = batch["labels"].reshape(-1)
    chosen = np.flatnonzero(labels != IGNORED)
    here = {name: array for name, array in batch.items() if name != "labels"}
    inputs = jax.device_put(here | {"chosen": chosen, "targets": labels[chosen]})

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state: tuple[Weights, Weights, Weights, Any, Any]) -> tuple[Any, Any]:
        weights, firsts, seconds, t, key = state
        key, of_step = jax.random.split(key)
        loss, gradients = jax.value_and_grad(_loss)(weights, inputs, of_step, config)
        norm = jnp.sqrt(sum(jnp.square(g).sum() for g in gradients.values()))
        scale = jnp.minimum(1, settings.max_grad_norm / (norm + 1e-6))
        new: tuple[Weights, Weights, Weights] = {}, {}, {}
        for name, p in weights.items():
            decay = 0.0 if name.endswith("bias") or "LayerNorm" in name else settings.weight_decay
            arrays = p, gradients[name] * scale, firsts[name], seconds[name]
            for part, array in zip(new, _adamw(*arrays, t, decay, settings), strict=True):
                part[name] = array
        return (*new, t + 1, key), loss

    zeros = [{name: jnp.zeros_like(array) for name, array in weights.items()} for _ in range(2)]
    state: Any = (jax.device_put(weights), *zeros, jnp.float32(1), jax.random.key(0))

    def one() -> Any:
        nonlocal state
        state, loss = step(state)
        return loss

    return one
