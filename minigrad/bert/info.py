"""What a BERT of these sizes consists of and costs: parameters, products, bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from minigrad.bert.config import BertConfig

__all__ = ["Cost", "describe_model", "parameter_shapes", "step_cost"]

Shape = tuple[int, ...]


def parameter_shapes(config: BertConfig) -> dict[str, Shape]:
    """The shape of every parameter of BertForPreTraining by its name, without making the model."""
    size, inner, vocabulary = config.hidden_size, config.intermediate_size, config.vocab_size

    def linear(name: str, n: int, m: int) -> dict[str, Shape]:
        return {f"{name}.weight": (n, m), f"{name}.bias": (m,)}

    def layer_norm(name: str) -> dict[str, Shape]:
        return {f"{name}.LayerNorm.weight": (size,), f"{name}.LayerNorm.bias": (size,)}

    shapes: dict[str, Shape] = {
        "bert.embeddings.word_embeddings.weight": (vocabulary, size),
        "bert.embeddings.position_embeddings.weight": (config.max_position_embeddings, size),
        "bert.embeddings.token_type_embeddings.weight": (config.type_vocab_size, size),
        **layer_norm("bert.embeddings"),
    }
    for number in range(config.num_hidden_layers):
        layer = f"bert.encoder.layer.{number}"
        for part in ("query", "key", "value"):
            shapes |= linear(f"{layer}.attention.self.{part}", size, size)
        shapes |= linear(f"{layer}.attention.output.dense", size, size) | layer_norm(
            f"{layer}.attention.output"
        )
        shapes |= linear(f"{layer}.intermediate.dense", size, inner)
        shapes |= linear(f"{layer}.output.dense", inner, size) | layer_norm(f"{layer}.output")
    shapes |= linear("bert.pooler.dense", size, size)
    shapes |= linear("cls.predictions.transform.dense", size, size) | layer_norm("cls.predictions.transform")
    shapes["cls.predictions.bias"] = (vocabulary,)
    return shapes | linear("cls.seq_relationship", size, 2)


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
    if batch_size < 1 or not 1 <= length <= config.max_position_embeddings:
        raise ValueError(
            f"expected at least 1 sequence of 1 … {config.max_position_embeddings} tokens, the model's positions; "
            f"got {batch_size} of {length}"
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
    weights = 4 * sum(math.prod(shape) for shape in parameter_shapes(config).values())
    return Cost(
        forward_flops=forward,
        step_flops=3 * forward,
        weight_bytes=weights,
        training_bytes=4 * weights,
        activation_bytes=4 * (layers_numbers + outside_numbers) + mask_bytes,
    )


def describe_model(config: BertConfig, batch_size: int, length: int) -> str:
    """A table for the reader: parameters by component with shapes, then what a step costs."""
    shapes = parameter_shapes(config)
    rows: list[tuple[str, str, int]] = []
    for name, shape in shapes.items():
        if name.startswith("bert.encoder.layer.") and not name.startswith("bert.encoder.layer.0."):
            continue
        rows.append((name, " x ".join(map(str, shape)), math.prod(shape)))

    def total(prefix: str) -> int:
        return sum(math.prod(shape) for name, shape in shapes.items() if name.startswith(prefix))

    components = {
        "embeddings": total("bert.embeddings."),
        f"encoder, {config.num_hidden_layers} layers": total("bert.encoder."),
        "pooler": total("bert.pooler."),
        "MLM head (decoder tied)": total("cls.predictions."),
        "NSP head": total("cls.seq_relationship."),
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
        f"{'without the pre-training heads':58}{'':>14}{total('bert.'):>14,}",
        "",
        f"one training step of {batch_size} x {length} tokens, 15 % of them predicted, float32:",
        f"  matrix products   {cost.forward_flops / 1e9:12,.2f} GFLOP forward, "
        f"{cost.step_flops / 1e9:,.2f} with backward",
        f"  parameters        {cost.weight_bytes / 1e6:12,.1f} MB; {cost.training_bytes / 1e6:,.1f} MB with gradients "
        "and AdamW's moments",
        f"  kept for backward {cost.activation_bytes / 1e6:12,.1f} MB",
    ]
    return "\n".join(lines)
