"""Parameters, products and bytes: held against the model itself and against products written out."""

from __future__ import annotations

import inspect
import math
import re
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from tiny import SMALL

from bert_course.common.passes import count_passes
from minigrad import backend, ops
from minigrad.bert import info
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.info import describe_model, forward_work, require_memory, step_cost
from minigrad.bert.model import BertForPreTraining, parameter_shapes
from minigrad.graph import Node


def parameters(config: BertConfig, prefix: str = "") -> int:
    return sum(math.prod(s) for name, s in parameter_shapes(config).items() if name.startswith(prefix))


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


def test_bytes():
    cost = step_cost(SMALL, 4, 16)
    weights = sum(array.nbytes for array in BertForPreTraining(SMALL).state_dict().values())
    assert cost.weight_bytes == weights == 4 * parameters(SMALL)
    assert cost.training_bytes == 4 * weights  # weights, gradients, two moments


# --- Row by row, against the engine ----------------------------------------------------------------------

# Even sizes: a mask with an odd number of entries has a byte more.
EVEN = BertConfig(
    vocab_size=101, hidden_size=24, num_attention_heads=4, intermediate_size=40, max_position_embeddings=14
)


def recorded(
    config: BertConfig, batch: int = 3, length: int = 14
) -> tuple[BertForPreTraining, list[Node], int]:
    """A model, the nodes of a pre-training forward from the oldest to the newest, and how many tokens were chosen."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, config.vocab_size, (batch, length))
    labels = np.where(rng.random(ids.shape) < 0.2, ids, -100)
    model = BertForPreTraining(config).train()
    output = model(ids, token_type_ids=ids % 2, labels=labels, next_sentence_label=np.zeros(batch, np.int64))
    found: dict[int, Node] = {}
    waiting = [output.loss.node]
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting += [parent for parent in node.parents if isinstance(parent, Node)]
    return model, [found[number] for number in sorted(found)], int((labels != -100).sum())


def arrays_in(value) -> list[np.ndarray]:
    """The arrays that own the memory of an array, of those in a list, or of those that a function's closure holds."""
    if inspect.isfunction(value):
        value = [cell.cell_contents for cell in value.__closure__ or ()]
    if isinstance(value, list | tuple):
        return [array for part in value for array in arrays_in(part)]
    if not isinstance(value, np.ndarray):
        return []
    while value.base is not None:
        value = value.base
    return [value]


@pytest.mark.numpy_only("what an array is a view of")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("layers", [0, 1, 3])
def test_what_each_operation_saves_is_what_its_closures_hold(layers, dropout):
    """To the byte: each array that a backward refers to, once, for the first operation that does."""
    config = EVEN.replace(
        num_hidden_layers=layers, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    model, nodes, chosen = recorded(config)
    seen = {id(array) for parameter in model.parameters() for array in arrays_in(parameter.data)}
    held: Counter[str] = Counter()
    for node in nodes:
        for array in arrays_in(node.backward):
            if id(array) not in seen:
                seen.add(id(array))
                held[node.op] += array.nbytes
    predicted: Counter[str] = Counter()
    for work in forward_work(config, 3, 14, chosen):
        predicted[work.op] += work.saved
    assert predicted == held
    assert step_cost(config, 3, 14, chosen).activation_bytes == sum(held.values()) > 0


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_each_operation_is_called_so_often(layers):
    """All but views, and the sum of both losses."""
    config = EVEN.replace(num_hidden_layers=layers)
    _, nodes, chosen = recorded(config)
    calls = Counter(node.op for node in nodes)
    assert calls.pop("reshape") + calls.pop("permute") > 0
    calls["getitem"] -= 3  # the positions, [CLS], and the chosen tokens
    calls["add"] -= 1
    predicted: Counter[str] = Counter()
    for work in forward_work(config, 3, 14, chosen):
        predicted[work.op] += work.calls
    assert predicted == calls


def test_the_parts_are_there_in_order():
    def parts(layers: int) -> list[str]:
        return list(
            dict.fromkeys(work.part for work in forward_work(EVEN.replace(num_hidden_layers=layers), 3, 14))
        )

    assert parts(0) == ["embeddings", "heads"]
    assert parts(1) == ["embeddings", "last layer", "heads"]
    assert parts(3) == ["embeddings", "layers", "last layer", "heads"]


N, H, F, V = 3 * 14, EVEN.hidden_size, EVEN.intermediate_size, EVEN.vocab_size
keep, keep_weights = (np.random.default_rng(0).random(shape) < 0.9 for shape in ((N, H), (3, 4, 14, 14)))
CALLS = {  # of one layer and its surroundings: the operation, and the shapes of what it takes
    "words + segments": (ops.add, [(N, H), (N, H)]),
    "+ positions": (ops.add, [(3, 14, H), (14, H)]),
    "LayerNorm": (ops.layer_norm, [(N, H), (H,), (H,)]),
    "dropout": (lambda x: ops.dropout(x, keep, 0.1), [(N, H)]),
    "attention.self": (
        lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, None, keep_weights, 0.1),
        [(3, 4, 14, H // 4)] * 3,
    ),
    "intermediate.dense": (ops.linear, [(N, H), (H, F), (F,)]),
    "intermediate, GELU": (ops.gelu, [(N, F)]),
    "pooler, tanh": (lambda x: x.tanh(), [(3, H)]),
    "mlm_loss": (lambda x: ops.cross_entropy(x, np.arange(len(x))), [(40, V)]),
}
MASKS = {"dropout": keep.size, "attention.self": keep_weights.size}  # entries of a byte instead of four


@pytest.mark.numpy_only("NumPy's operators are counted")
@pytest.mark.parametrize("name", CALLS)
def test_what_each_operation_moves_is_what_its_kernels_read_and_write(name):
    op, shapes = CALLS[name]
    arrays = [np.random.default_rng(1).standard_normal(shape) for shape in shapes]
    forward, _ = count_passes(op, *arrays)
    entries = round(forward * arrays[0].size)
    moved = 4 * (entries - MASKS.get(name, 0)) + MASKS.get(name, 0)
    config = EVEN.replace(num_hidden_layers=2)
    (work,) = [w for w in forward_work(config, 3, 14, chosen=40) if w.name == name and w.part != "last layer"]
    # A loss walks over columns of a number a row, too, which are nothing beside V numbers a row.
    assert work.moved == (pytest.approx(moved, rel=8 / V) if name == "mlm_loss" else moved)


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
        {"num_hidden_layers": 1_000},
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
    cost = step_cost(config, 64, 64)
    needed = cost.training_bytes + cost.activation_bytes
    for there in (needed, None):  # None: the system does not tell
        monkeypatch.setattr(info, "machine_memory", lambda there=there: there)
        require_memory(config, 64, 64)
    monkeypatch.setattr(info, "machine_memory", lambda: needed - 1)
    place = "machine" if backend.default().name == "numpy" else "GPU"
    with pytest.raises(
        ValueError, match=rf"a step of this model on 64 x 64 tokens needs 0.1 GB .*, this {place} has 0.1"
    ):
        require_memory(config, 64, 64)


def test_the_memory_of_this_machine():
    """Or of its GPU."""
    memory = info.machine_memory()
    assert memory is None or 2**28 < memory < 2**50
