"""What a BERT of these sizes consists of and costs: parameters, products, bytes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from minigrad.bert.config import LARGEST_SIZE, BertConfig, parameter_shapes
from minigrad.bert.reading import quoted

__all__ = ["Cost", "describe_model", "parameter_shapes", "require_memory", "step_cost"]


@dataclass(frozen=True)
class Cost:
    """What one training step costs.

    forward_flops, step_flops: floating-point operations in matrix products (2 per multiply-add), without the
    elementwise work; a backward has twice those of the forward. weight_bytes: parameters in float32.
    training_bytes: parameters, gradients and AdamW's two moments. activation_bytes: what the forward leaves
    for the backward, dropout on.
    """

    forward_flops: int
    step_flops: int
    weight_bytes: int
    training_bytes: int
    activation_bytes: int


def step_cost(config: BertConfig, batch_size: int, length: int, chosen: int | None = None) -> Cost:
    """The cost of a step on `batch_size` sequences of `length` tokens, `chosen` of which are predicted
    (by default 15 %). Raises ValueError for sizes that make no sense."""
    if batch_size > LARGEST_SIZE:
        raise ValueError(f"batch_size must be at most {LARGEST_SIZE:,}, got {quoted(batch_size)}")
    if batch_size < 1 or not 1 <= length <= config.max_position_embeddings:
        raise ValueError(
            f"expected at least 1 sequence of 1 … {config.max_position_embeddings} tokens, the model's positions; "
            f"got {quoted(batch_size)} of {quoted(length)}"
        )
    size, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    tokens = batch_size * length
    chosen = round(0.15 * tokens) if chosen is None else chosen
    scores = batch_size * config.num_attention_heads * length * length

    projections = 2 * tokens * size * (4 * size + 2 * inner)  # Q, K, V, output; feed-forward
    attention = 2 * (2 * batch_size * length * length * size)  # Q Kᵀ and A V over all heads
    heads = 2 * chosen * size * (size + config.vocab_size) + 2 * batch_size * size * (size + 2)
    # After its heads, the last layer goes on with what the losses read: the chosen tokens and [CLS].
    unread = tokens - chosen - batch_size if layers else 0
    left_out = 2 * unread * size * (size + 2 * inner)
    forward = layers * (projections + attention) - left_out + heads

    # What closures save, in float32 numbers. A layer: its input, Q, K, V, the heads put together, two
    # normalised x̂ and the feed-forward's input; GELU's slope and output; the attention weights.
    layer_numbers = tokens * (8 * size + 2 * inner) + scores
    outside_numbers = 2 * tokens * size + chosen * (4 * size + 2 * config.vocab_size)
    layers_numbers = layers * layer_numbers - unread * (4 * size + 2 * inner)
    mask_bytes = layers * (2 * tokens * size + scores) - 2 * unread * size  # dropout's, a byte an entry
    mask_bytes += tokens * size
    weights = 4 * _count(config)
    return Cost(
        forward_flops=forward,
        step_flops=3 * forward,
        weight_bytes=weights,
        training_bytes=4 * weights,
        activation_bytes=4 * (layers_numbers + outside_numbers) + mask_bytes,
    )


def require_memory(config: BertConfig, batch_size: int, length: int) -> None:
    """Raise ValueError if a training step needs more memory than this machine has. Of a GPU nothing is known here."""
    cost = step_cost(config, batch_size, length)
    needed, there = cost.training_bytes + cost.activation_bytes, _memory()
    if there is not None and needed > there:
        raise ValueError(
            f"a step of this model on {batch_size} x {length} tokens needs {needed / 1e9:,.1f} GB "
            f"({cost.training_bytes / 1e9:,.1f} for parameters, gradients and moments), "
            f"this machine has {there / 1e9:,.1f}; `info` shows where it goes"
        )


def _memory() -> int | None:
    """The bytes of memory of this machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _count(config: BertConfig, part: str = "") -> int:
    """How many numbers the parameters have, or those of a part such as "bert."; at once, also for many layers."""
    count = 0
    for name, shape in parameter_shapes(_with_one_layer(config)).items():
        if name.startswith(part):
            times = config.num_hidden_layers if name.startswith("bert.encoder.") else 1
            count += times * math.prod(shape)
    return count


def _with_one_layer(config: BertConfig) -> BertConfig:
    """The configuration with the first layer only: the others have the same shapes."""
    return config.replace(num_hidden_layers=min(1, config.num_hidden_layers))


def describe_model(config: BertConfig, batch_size: int, length: int) -> str:
    """A table for the reader: parameters by component with shapes, then what a step costs."""
    rows = [
        (name, " x ".join(map(str, shape)), math.prod(shape))
        for name, shape in parameter_shapes(_with_one_layer(config)).items()
    ]
    components = {
        "embeddings": _count(config, "bert.embeddings."),
        f"encoder, {config.num_hidden_layers} layers": _count(config, "bert.encoder."),
        "pooler": _count(config, "bert.pooler."),
        "MLM head (decoder tied)": _count(config, "cls.predictions."),
        "NSP head": _count(config, "cls.seq_relationship."),
    }
    everything = sum(components.values())
    cost = step_cost(config, batch_size, length)
    lines = [f"{'parameter':58}{'shape':>14}{'number':>14}"]
    lines += [f"{name:58}{shape:>14}{number:>14,}" for name, shape, number in rows]
    if config.num_hidden_layers > 1:
        lines.append(f"(layers 1 to {config.num_hidden_layers - 1} as layer 0)")
    lines += ["", f"{'component':58}{'share':>14}{'number':>14}"]
    lines += [f"{name:58}{number / everything:>14.1%}{number:>14,}" for name, number in components.items()]
    lines += [
        f"{'all':58}{'':>14}{everything:>14,}",
        f"{'without the pre-training heads':58}{'':>14}{_count(config, 'bert.'):>14,}",
        "",
        f"one training step of {batch_size} x {length} tokens, 15 % of them predicted, float32:",
        f"  matrix products   {cost.forward_flops / 1e9:12,.2f} GFLOP forward, "
        f"{cost.step_flops / 1e9:,.2f} with backward",
        f"  parameters        {cost.weight_bytes / 1e6:12,.1f} MB; {cost.training_bytes / 1e6:,.1f} MB with gradients "
        "and AdamW's moments",
        f"  kept for backward {cost.activation_bytes / 1e6:12,.1f} MB",
    ]
    return "\n".join(lines)
