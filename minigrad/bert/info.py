"""What a BERT of these sizes consists of and costs: parameters, products, bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from minigrad import backend
from minigrad.bert.config import LARGEST_SIZE, BertConfig
from minigrad.bert.model import parameter_shapes
from minigrad.messages import quoted

# --- The work of a forward pass --------------------------------------------------------------------------

FLOAT, ID, MASK = 4, 8, 1  # bytes of an entry: float32, int64, bool
PRODUCTS = ("linear", "scaled_dot_product_attention")  # the operations that are matrix products


@dataclass(frozen=True)
class Work:
    """What one operation of a pre-training forward does, all its calls together.

    name: the module, as in Hugging Face's BERT, or what is computed. op: the operation, as nodes of the graph are
    called. flops: floating-point operations; of a matrix product 2 per multiply-add and nothing else, elsewhere
    those of the formula, with an exponential as one. moved: bytes, where each kernel reads its inputs once and
    writes its outputs once. saved: bytes that it keeps for its `backward`, without parameters, and without what an
    operation before it keeps anyway. calls: how often it runs. part: "embeddings", "layers" (all but the last),
    "last layer" or "heads".
    """

    name: str
    op: str
    flops: int
    moved: int
    saved: int
    calls: int = 1
    part: str = ""


def forward_work(config: BertConfig, batch_size: int, length: int, chosen: int | None = None) -> list[Work]:
    """The operations of a pre-training forward, in the order in which they run.

    In training and in float32, on `batch_size` sequences of `length` tokens without padding, `chosen` of which are
    predicted (by default 15 %). Views, which move nothing, are left out, and so are the draws of dropout's masks and
    the sum of the two losses. Raises ValueError for sizes that make no sense.
    """
    if batch_size > LARGEST_SIZE:
        raise ValueError(f"batch_size must be at most {LARGEST_SIZE:,}, got {quoted(batch_size)}")
    if batch_size < 1 or not 1 <= length <= config.max_position_embeddings:
        raise ValueError(
            f"expected at least 1 sequence of 1 … {config.max_position_embeddings} tokens, the model's positions; "
            f"got {quoted(batch_size)} of {quoted(length)}"
        )
    chosen = round(0.15 * batch_size * length) if chosen is None else chosen
    wanted = batch_size + chosen  # [CLS] of each sequence, and what is predicted: all that the losses read
    layers = config.num_hidden_layers
    work = _part("embeddings", _embeddings(config, batch_size, length))
    if layers > 1:
        work += _part("layers", _layer(config, batch_size, length), times=layers - 1)
    if layers:
        work += _part("last layer", _layer(config, batch_size, length, wanted))
    else:
        work += _part("embeddings", [_pick("rows that are wanted", wanted, config.hidden_size)])
    return work + _part("heads", _heads(config, batch_size, chosen))


def _part(part: str, work: list[Work], times: int = 1) -> list[Work]:
    """The operations of a part that is there so many times."""
    return [
        Work(w.name, w.op, times * w.flops, times * w.moved, times * w.saved, times * w.calls, part)
        for w in work
    ]


def _embeddings(config: BertConfig, batch_size: int, length: int) -> list[Work]:
    """The sum of three tables' rows, of which those of the positions are a view (T, H)."""
    tokens, size = batch_size * length, config.hidden_size
    return [
        _pick("word_embeddings", tokens, size, op="embedding"),
        _pick("token_type_embeddings", tokens, size, op="embedding"),
        _add("words + segments", tokens * size),
        Work("+ positions", "add", tokens * size, FLOAT * (2 * tokens + length) * size, saved=0),
        _layer_norm("LayerNorm", tokens, size),
        *_dropout("dropout", tokens * size, config.hidden_dropout_prob),
    ]


def _layer(config: BertConfig, batch_size: int, length: int, wanted: int | None = None) -> list[Work]:
    """A layer, which goes on with `wanted` of its tokens when its heads are done, or (None) with all."""
    tokens, size, inner = batch_size * length, config.hidden_size, config.intermediate_size
    work = [
        # all three save the layer's input, which is one array
        _linear("attention.self.query, key, value", tokens, size, size, saved=tokens * size, calls=3),
        _attention("attention.self", config, batch_size, length),
    ]
    if wanted is not None:  # one index picks rows of the heads' output and of the layer's input
        work += [_pick("rows that are wanted", wanted, size, calls=2)]
        tokens = wanted
    return [
        *work,
        _linear("attention.output.dense", tokens, size, size),
        *_add_and_norm("attention.output", config, tokens),
        _linear("intermediate.dense", tokens, size, inner),
        _activation("intermediate", config, tokens * inner),
        _linear("output.dense", tokens, inner, size),
        *_add_and_norm("output", config, tokens),
    ]


def _add_and_norm(name: str, config: BertConfig, tokens: int) -> list[Work]:
    entries = tokens * config.hidden_size
    return [
        *_dropout(f"{name}.dropout", entries, config.hidden_dropout_prob),
        _add(f"{name}, input added", entries),
        _layer_norm(f"{name}.LayerNorm", tokens, config.hidden_size),
    ]


def _heads(config: BertConfig, batch_size: int, chosen: int) -> list[Work]:
    """The pooler, both heads of pre-training and their losses."""
    size, vocabulary = config.hidden_size, config.vocab_size
    pooled = batch_size * size
    return [
        _linear("pooler.dense", batch_size, size, size),
        Work("pooler, tanh", "tanh", pooled, 2 * FLOAT * pooled, saved=FLOAT * pooled),  # its output
        _linear("predictions.transform.dense", chosen, size, size),
        _activation("predictions.transform", config, chosen * size),
        _layer_norm("predictions.transform.LayerNorm", chosen, size),
        _linear("predictions.decoder", chosen, size, vocabulary),
        _linear("seq_relationship", batch_size, size, 2, saved=0),  # its input is kept by tanh
        _cross_entropy("mlm_loss", chosen, vocabulary),
        _cross_entropy("nsp_loss", batch_size, 2),
    ]


# --- The work of an operation ----------------------------------------------------------------------------


def _linear(name: str, n: int, d_in: int, d_out: int, saved: int | None = None, calls: int = 1) -> Work:
    """(n, d_in) (d_in, d_out), then the bias added in place. Saves its input, or `saved` numbers."""
    product = n * d_in + d_in * d_out + n * d_out
    bias = n * d_out + d_out + n * d_out
    return Work(
        name,
        "linear",
        flops=calls * 2 * n * d_in * d_out,
        moved=calls * FLOAT * (product + bias),
        saved=FLOAT * (n * d_in if saved is None else saved),
        calls=calls,
    )


def _attention(name: str, config: BertConfig, batch_size: int, length: int) -> Work:
    """Q Kᵀ, softmax, dropout and A V as one operation, whose scores do not leave the cache. Saves Q, K, V, the
    weights A, and dropout's mask."""
    entries = batch_size * length * config.hidden_size  # of Q, K, V and the output each
    weights = batch_size * config.num_attention_heads * length * length
    mask = MASK * weights if config.attention_probs_dropout_prob else 0
    return Work(
        name,
        "scaled_dot_product_attention",
        flops=2 * (2 * entries * length),
        moved=FLOAT * (4 * entries + weights) + mask,
        saved=FLOAT * (3 * entries + weights) + mask,
    )


def _activation(name: str, config: BertConfig, entries: int) -> Work:
    """GELU reads x, writes GELU(x) and the slope, and saves the slope. ReLU reads x and writes max(x, 0); saves x."""
    if config.hidden_act == "relu":
        return Work(f"{name}, ReLU", "relu", entries, 2 * FLOAT * entries, saved=FLOAT * entries)
    return Work(f"{name}, GELU", "gelu", 25 * entries, 3 * FLOAT * entries, saved=FLOAT * entries)


def _layer_norm(name: str, n: int, size: int) -> Work:
    """Reads x, writes y, the normalised x (n, d) and 1/σ (n,). Saves the last two."""
    normalised = n * size + n
    moved = 2 * n * size + normalised + 2 * size
    return Work(name, "layer_norm", 7 * n * size, FLOAT * moved, saved=FLOAT * normalised)


def _dropout(name: str, entries: int, p: float) -> list[Work]:
    """Nothing where p is 0. Saves the mask."""
    work = Work(name, "dropout", 2 * entries, (2 * FLOAT + MASK) * entries, saved=MASK * entries)
    return [work] if p else []


def _add(name: str, entries: int) -> Work:
    """Saves nothing."""
    return Work(name, "add", entries, 3 * FLOAT * entries, saved=0)


def _pick(name: str, n: int, size: int, op: str = "getitem", calls: int = 1) -> Work:
    """n rows copied. Saves their ids, the same array for all calls."""
    return Work(name, op, 0, calls * (2 * FLOAT * n * size + ID * n), saved=ID * n, calls=calls)


def _cross_entropy(name: str, n: int, classes: int) -> Work:
    """Reads the logits (n, C), writes the probabilities. Saves these, and three ids and a float for each row."""
    return Work(
        name,
        "cross_entropy",
        flops=5 * n * classes,
        moved=2 * FLOAT * n * classes,
        saved=FLOAT * n * classes + (3 * ID + FLOAT) * n,
    )


# --- The cost of a step ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What one training step costs: sums of `forward_work`, and what the parameters take.

    forward_flops, step_flops: of matrix products alone; a backward pass has twice those of the forward pass.
    weight_bytes: parameters in float32. training_bytes: parameters, gradients and AdamW's two moments.
    activation_bytes: what the forward pass saves for the backward pass.
    """

    forward_flops: int
    step_flops: int
    weight_bytes: int
    training_bytes: int
    activation_bytes: int


def step_cost(config: BertConfig, batch_size: int, length: int, chosen: int | None = None) -> Cost:
    """The cost of a step on `batch_size` sequences of `length` tokens, `chosen` of which are predicted
    (by default 15 %). Raises ValueError for sizes that make no sense."""
    work = forward_work(config, batch_size, length, chosen)
    forward = sum(w.flops for w in work if w.op in PRODUCTS)
    weights = FLOAT * _count(config)
    return Cost(
        forward_flops=forward,
        step_flops=3 * forward,
        weight_bytes=weights,
        training_bytes=4 * weights,
        activation_bytes=sum(w.saved for w in work),
    )


def require_memory(config: BertConfig, batch_size: int, length: int, shares: int = 1) -> None:
    """Raise ValueError if a training step needs more memory than there is, on the machine or on its GPU.

    shares: in how many the batch is computed; each has gradients of its own.
    """
    cost = step_cost(config, batch_size, length)
    training_bytes = cost.training_bytes + (shares - 1) * cost.weight_bytes
    needed, there = training_bytes + cost.activation_bytes, machine_memory()
    if there is not None and needed > there:
        place = "machine" if backend.default().name == "numpy" else "GPU"
        raise ValueError(
            f"a step of this model on {batch_size} x {length} tokens needs {needed / 1e9:,.1f} GB "
            f"({training_bytes / 1e9:,.1f} for parameters, gradients and moments), "
            f"this {place} has {there / 1e9:,.1f}; `info` shows where it goes"
        )


def machine_memory() -> int | None:
    """The bytes of memory of the machine, or of its GPU if that computes; None where the system does not report it."""
    return backend.default().memory()


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
