"""Parameters, products and bytes: held against the model itself and against products written out."""

from __future__ import annotations

import math
import re
import time
import tracemalloc

import numpy as np
import pytest
from tiny import SMALL

from minigrad import backend
from minigrad.bert import info
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.info import describe_model, parameter_shapes, require_memory, step_cost
from minigrad.bert.model import BertForPreTraining


def parameters(config: BertConfig, prefix: str = "") -> int:
    return sum(math.prod(s) for name, s in parameter_shapes(config).items() if name.startswith(prefix))


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        SMALL.replace(num_hidden_layers=0),
        SMALL.replace(num_hidden_layers=3, type_vocab_size=5, num_attention_heads=1),
        SMALL.replace(vocab_size=53, hidden_size=15, num_attention_heads=5, intermediate_size=7),
        PRESETS["reduced"],
    ],
    ids=["small", "no layer", "three layers", "odd sizes", "reduced"],
)
def test_the_shapes_are_the_model_s(config):
    model = BertForPreTraining(config)
    expected = {name: tuple(array.shape) for name, array in model.state_dict().items()}
    assert parameter_shapes(config) == expected


@pytest.mark.parametrize(
    ("preset", "without_heads", "with_heads"),
    [
        ("base", 109_482_240, 110_106_428),
        ("large", 335_141_888, 336_226_108),
    ],
)
def test_the_published_sizes(preset, without_heads, with_heads):
    assert parameters(PRESETS[preset], "bert.") == without_heads
    assert parameters(PRESETS[preset]) == with_heads


@pytest.mark.oracle
@pytest.mark.parametrize("preset", PRESETS)
def test_transformers_counts_as_many(preset):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):  # shapes without weights
        model = transformers.BertForPreTraining(transformers.BertConfig.from_dict(PRESETS[preset].to_dict()))
    assert model.num_parameters() == parameters(PRESETS[preset])
    assert model.bert.num_parameters() == parameters(PRESETS[preset], "bert.")


def product(n: int, k: int, m: int) -> int:
    """The floating-point operations of (n, k) @ (k, m): a multiplication and an addition each."""
    return 2 * n * k * m


def test_the_products_of_a_small_model_written_out():
    batch, length, chosen = 3, 5, 2
    tokens = batch * length
    all_heads = (
        3 * product(tokens, 12, 12)  # Q, K and V
        + batch * 3 * product(length, 4, length)  # Q Kᵀ in each of 3 heads of 4
        + batch * 3 * product(length, length, 4)  # the weights times V
    )

    def rest(tokens: int) -> int:
        output = product(tokens, 12, 12)
        return output + product(tokens, 12, 20) + product(tokens, 20, 12)  # the feed-forward network

    read = chosen + batch  # of the last layer: the chosen tokens and [CLS]
    heads = (
        product(chosen, 12, 12)  # the transform before the vocabulary
        + product(chosen, 12, 41)
        + product(batch, 12, 12)  # the pooler
        + product(batch, 12, 2)
    )
    cost = step_cost(SMALL, batch, length, chosen)
    assert cost.forward_flops == 2 * all_heads + rest(tokens) + rest(read) + heads
    assert cost.step_flops == 3 * cost.forward_flops


def test_base_is_near_six_operations_a_weight_and_token():
    """The rule of thumb 6 N D, with N the weights in products: attention's own products come on top."""
    config = PRESETS["base"]
    cost = step_cost(config, 32, 128)
    rule = 6 * parameters(config, "bert.encoder.") * 32 * 128
    assert 1 < cost.step_flops / rule < 1.15


def test_fifteen_per_cent_are_predicted_by_default():
    assert step_cost(SMALL, 4, 16) == step_cost(SMALL, 4, 16, chosen=10)
    assert step_cost(SMALL, 4, 16) != step_cost(SMALL, 4, 16, chosen=11)


def test_bytes():
    cost = step_cost(SMALL, 4, 16)
    weights = sum(array.nbytes for array in BertForPreTraining(SMALL).state_dict().values())
    assert cost.weight_bytes == weights == 4 * parameters(SMALL)
    assert cost.training_bytes == 4 * weights  # weights, gradients, two moments


def test_what_is_kept_for_the_backward_grows_with_the_batch_and_the_layers():
    base = step_cost(SMALL, 4, 16).activation_bytes
    assert step_cost(SMALL, 8, 16, chosen=20).activation_bytes == 2 * base
    assert step_cost(SMALL, 4, 8, chosen=5).activation_bytes < base / 2  # scores go with the square
    depths = [step_cost(SMALL.replace(num_hidden_layers=n), 4, 16).activation_bytes for n in (0, 1, 2, 3)]
    assert depths[3] - depths[2] == depths[2] - depths[1] > depths[1] - depths[0] > 0  # the last does less


def test_the_attention_weights_are_kept_once():
    """Two more heads of 16 x 16 weights: before dropout in float32, and a byte each of the mask."""
    more = step_cost(SMALL.replace(num_attention_heads=6), 4, 16).activation_bytes
    assert more - step_cost(SMALL, 4, 16).activation_bytes == 2 * 3 * 4 * 16 * 16 * (4 + 1)


@pytest.mark.parametrize(("layers", "batch", "length"), [(1, 8, 32), (3, 4, 64)])
def test_what_is_kept_for_the_backward_is_what_the_forward_keeps(layers, batch, length):
    """Measured: what a forward with dropout leaves behind; small objects make the difference."""
    if backend.default().name != "numpy":
        pytest.skip("tracemalloc sees NumPy's arrays only")
    config = BertConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
    )
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 1000, (batch, length))
    labels = np.where(rng.random(ids.shape) < 0.15, ids, -100)
    model = BertForPreTraining(config).train()
    model(ids, labels=labels, next_sentence_label=np.zeros(batch, int))
    tracemalloc.start()
    output = model(ids, labels=labels, next_sentence_label=np.zeros(batch, int))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert output.loss.requires_grad
    predicted = step_cost(config, batch, length, int((labels != -100).sum())).activation_bytes
    assert predicted == pytest.approx(kept, rel=0.05)


@pytest.mark.parametrize(("batch", "length"), [(0, 16), (-1, 16), (4, 0), (4, 17)])
def test_steps_that_make_no_sense(batch, length):
    with pytest.raises(ValueError, match=f"1 … 16 tokens, the model's positions; got {batch} of {length}"):
        step_cost(SMALL, batch, length)


def test_the_table_for_the_reader():
    text = describe_model(PRESETS["base"], 32, 128)
    for line in (
        r"bert\.embeddings\.word_embeddings\.weight +30522 x 768 +23,440,896",
        r"bert\.encoder\.layer\.0\.attention\.self\.query\.weight +768 x 768 +589,824",
        r"cls\.predictions\.bias +30522 +30,522",
        r"\(layers 1 to 11 as layer 0\)",
        r"embeddings +21\.6% +23,837,184",
        r"encoder, 12 layers +77\.2% +85,054,464",
        r"pooler +0\.5% +590,592",
        r"NSP head +0\.0% +1,538",
        r"all +110,106,428",
        r"without the pre-training heads +109,482,240",
        r"one training step of 32 x 128 tokens, 15 % of them predicted, float32:",
        r"  parameters +440\.4 MB; 1,761\.7 MB with gradients and AdamW's moments",
    ):
        assert re.search(f"^{line}$", text, re.MULTILINE), line
    assert "layer.1." not in text


def test_the_table_s_numbers_add_up():
    text = describe_model(SMALL, 4, 16)
    parts, total = text.split("component")[1].split("\nall ")
    numbers = [int(line.split()[-1].replace(",", "")) for line in parts.splitlines()[1:]]
    assert sum(numbers) == int(total.split()[0].replace(",", "")) == parameters(SMALL)
    assert "(layers" not in describe_model(SMALL.replace(num_hidden_layers=1), 4, 16)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 10_000},
        {"vocab_size": 2**31 - 1, "hidden_size": 2**31 - 1, "num_attention_heads": 1},
        dict.fromkeys(("intermediate_size", "max_position_embeddings", "type_vocab_size"), 2**31 - 1),
    ],
    ids=["deep", "wide", "long"],
)
def test_the_largest_models_are_described_at_once(changes):
    tracemalloc.start()
    started = time.process_time()
    config = SMALL.replace(**changes)
    text = describe_model(config, 2**31 - 1, config.max_position_embeddings)
    seconds = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 1
    assert peak < 1e6
    assert f"{parameters(config):,}" in text


def test_a_batch_beyond_all_reason():
    with pytest.raises(ValueError, match=r"batch_size must be at most 2,147,483,647, got 9{199}…$"):
        step_cost(SMALL, 10**400 - 1, 16)
    with pytest.raises(ValueError, match=r"the model's positions; got 4 of 9{199}…$"):
        step_cost(SMALL, 4, 10**400 - 1)


# --- Does it fit? ----------------------------------------------------------------------------------------


def test_a_model_that_does_not_fit_the_machine_is_refused(monkeypatch):
    config = PRESETS["reduced"]
    cost = step_cost(config, 32, 64)
    needed = cost.training_bytes + cost.activation_bytes
    for there in (needed, None):  # None: the system does not tell
        monkeypatch.setattr(info, "_memory", lambda there=there: there)
        require_memory(config, 32, 64)
    monkeypatch.setattr(info, "_memory", lambda: needed - 1)
    with pytest.raises(
        ValueError, match=r"a step of this model on 32 x 64 tokens needs 0.1 GB .*, this machine has 0.1"
    ):
        require_memory(config, 32, 64)


def test_the_memory_of_this_machine():
    memory = info._memory()
    assert memory is None or 2**28 < memory < 2**50
