"""BertModel and BertForPreTraining, held against transformers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from checkpoints import assert_same_gradients, inputs, make_model, twin
from tiny import SMALL

import minigrad
from minigrad import backend
from minigrad.bert.attention import BertAttention, BertSelfAttention
from minigrad.bert.config import BertConfig
from minigrad.bert.encoder import BertEncoder, BertLayer
from minigrad.bert.heads import BertPooler
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.tensor import Tensor, no_grad


def random_batch(config: BertConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Padding of several lengths, all segments, both NSP labels, and some ignored labels."""
    batch = inputs(config, (11, 5, 2, 8, 3), seed)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, config.vocab_size, (5, 11))
    labels[rng.random((5, 11)) < 0.7] = -100
    labels[0, 1] = 3
    labels = np.where(batch["attention_mask"] == 1, labels, -100)
    return {**batch, "labels": labels, "next_sentence_label": np.arange(5) % 2}


def tensors(batch: dict[str, np.ndarray]):
    torch = pytest.importorskip("torch")
    return {name: torch.tensor(values) for name, values in batch.items()}


@pytest.mark.oracle
def test_loss_and_every_gradient_equal_transformers_in_float64(config):
    model = make_model(config).astype("float64")
    batch = random_batch(config, seed=1)
    mine, their_model = model(**batch), twin(model, "float64")
    theirs = their_model(**tensors(batch))
    np.testing.assert_allclose(mine.loss.item(), theirs.loss.item(), rtol=1e-12)
    mine.loss.backward()
    theirs.loss.backward()
    assert_same_gradients(model, their_model)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_weights_equal_transformers(config, dtype):
    model = make_model(config).astype(dtype)
    with no_grad():
        mine = model.bert(**inputs(config), output_attentions=True).attentions
    their_model = twin(model, dtype).bert
    their_model.set_attn_implementation("eager")  # the one that keeps its weights
    theirs = their_model(**tensors(inputs(config)), output_attentions=True).attentions
    assert len(mine) == config.num_hidden_layers
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    for found, expected in zip(mine, theirs, strict=True):
        assert found.shape == (3, config.num_attention_heads, 9, 9)
        np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=0, atol=tolerance)


def test_attention_weights_of_every_token_also_where_few_are_wanted():
    model = make_model(SMALL)
    ids = random_batch(SMALL)["input_ids"]
    with no_grad():
        whole = model.bert(ids, output_attentions=True).attentions
        part = model.bert(ids, rows=np.array([3]), output_attentions=True).attentions
    for a, b in zip(whole, part, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_with_labels_only_the_chosen_positions_are_projected():
    model = make_model(SMALL)
    batch = random_batch(SMALL, seed=2)
    labels = batch.pop("labels")
    with no_grad():
        everything = model(**batch).prediction_logits.numpy()
        chosen = model(**batch, labels=labels).prediction_logits.numpy()
    np.testing.assert_allclose(chosen, everything[labels != -100], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_what_no_loss_reads_is_left_out_and_changes_nothing(layers, monkeypatch):
    """The last layer at the chosen tokens and [CLS] only, beside all of it: losses, logits, every gradient."""
    config = SMALL.replace(num_hidden_layers=layers)
    model = make_model(config).astype("float64")
    batch = random_batch(config, seed=4)
    batch["labels"][0, 0] = 7  # [CLS] itself is chosen: read twice
    batch["labels"][1] = -100  # a sequence of which only [CLS] is read

    def figures():
        """The losses, both tasks' logits and each parameter's gradient."""
        model.zero_grad()
        output = model(**batch)
        output.loss.backward()
        gradients = {name: backend.to_numpy(p.grad) for name, p in model.named_parameters()}
        return {**{name: tensor.numpy() for name, tensor in vars(output).items()}, **gradients}

    def everything(input_ids, attention_mask, token_type_ids, rows):
        """All of the last layer; what is wanted is picked afterwards."""
        output = BertModel.forward(model.bert, input_ids, attention_mask, token_type_ids)
        assert output.last_hidden_state.shape == (*batch["labels"].shape, config.hidden_size)
        output.last_hidden_state = output.last_hidden_state.reshape(-1, config.hidden_size)[rows]
        return output

    found = figures()
    monkeypatch.setattr(model.bert, "forward", everything, raising=False)
    expected = figures()
    assert len(expected) == 5 + len(model.state_dict())
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12, err_msg=name)


def test_loss_is_the_sum_of_the_losses_that_have_labels():
    model = make_model(SMALL)
    batch = random_batch(SMALL)
    both = model(**batch)
    assert both.loss.item() == pytest.approx(both.mlm_loss.item() + both.nsp_loss.item())
    labels, next_sentence_label = batch.pop("labels"), batch.pop("next_sentence_label")
    assert model(**batch).loss is None
    assert model(**batch, labels=labels).loss.item() == pytest.approx(both.mlm_loss.item())
    nsp_only = model(**batch, next_sentence_label=next_sentence_label)
    assert nsp_only.loss.item() == pytest.approx(both.nsp_loss.item())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_with_everything_masked_is_finite(dtype):
    model = make_model(SMALL).astype(dtype)
    batch = random_batch(SMALL)
    batch["attention_mask"][2] = 0
    output = model(**batch)
    output.loss.backward()
    assert np.isfinite(output.prediction_logits.numpy()).all()
    assert all(np.isfinite(backend.to_numpy(p.grad)).all() for p in model.parameters())


def test_a_mask_of_booleans_is_one_of_numbers():
    model = make_model(SMALL)
    batch = random_batch(SMALL)
    numbers = model(**batch).loss.item()
    assert model(**(batch | {"attention_mask": batch["attention_mask"] == 1})).loss.item() == numbers


def test_the_seed_fixes_the_initial_weights_and_dropout():
    config = SMALL.replace(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3)
    batch = random_batch(config)

    def loss(seed: int) -> float:
        minigrad.manual_seed(seed)
        return BertForPreTraining(config)(**batch).loss.item()

    assert loss(1) == loss(1)
    assert loss(1) != loss(2)


def changed(**changes):
    batch = random_batch(SMALL)
    batch.update(changes)
    return batch


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (changed(input_ids=np.full((5, 11), 41)), IndexError, r"input_ids: 41 at \(0, 0\) is outside 0 … 40"),
        (changed(input_ids=np.full((5, 11), -1)), IndexError, r"input_ids: -1"),
        (changed(input_ids=np.zeros((5, 11))), TypeError, "input_ids: expected integers, got dtype float64"),
        (changed(attention_mask=np.ones((5, 10), int)), ValueError, r"expected shape \(5, 11\)"),
        (changed(attention_mask=np.full((5, 11), -10_000)), ValueError, r".* got -10000 at \(0, 0\)"),
        (changed(attention_mask=np.zeros((5, 11), np.float32)), TypeError, "float32; the model itself makes"),
        (changed(token_type_ids=np.full((5, 11), 2)), IndexError, "token_type_ids: 2 .* outside 0 … 1"),
        (changed(labels=np.full((5, 11), -100)), ValueError, "every label is -100"),
        (changed(labels=np.full((5, 11), 41)), IndexError, "labels: 41"),
        (changed(next_sentence_label=np.full(5, 2)), IndexError, "next_sentence_label: 2"),
        (changed(next_sentence_label=np.zeros(4, int)), ValueError, r"expected shape \(5,\)"),
    ],
)
def test_bad_input_is_named(batch, error, message):
    with pytest.raises(error, match=message):
        make_model(SMALL)(**batch)


def test_input_ids_need_two_axes():
    with pytest.raises(ValueError, match=r"expected shape \(batch, length\), got \(7,\)"):
        BertModel(SMALL)(np.zeros(7, int))


def test_an_id_outside_its_table_is_also_a_value_that_is_wrong():
    """So that what explains a ValueError to the reader explains this too."""
    model = BertForPreTraining(SMALL.replace(type_vocab_size=1))
    ids = np.ones((1, 3), int)
    with pytest.raises(ValueError, match=r"token_type_ids: 1 at \(0, 0\) is outside 0 … 0"):
        model(ids, token_type_ids=ids)


@pytest.mark.parametrize(
    ("ids", "types", "words"),
    [
        ((2, 5), (2, 4), r"of one shape \(B, T\), got \(2, 5\) and \(2, 4\)"),
        ((2, 5), (1, 5), r"of one shape \(B, T\), got \(2, 5\) and \(1, 5\)"),  # would be broadcast
        ((5,), (5,), r"of one shape \(B, T\), got \(5,\) and \(5,\)"),
        ((1, 17), (1, 17), "17 tokens are more than the 16 positions"),
    ],
)
def test_embeddings_by_themselves_say_what_does_not_fit(ids, types, words):
    with pytest.raises(ValueError, match=words):
        BertModel(SMALL).embeddings(np.zeros(ids, int), np.zeros(types, int))


@pytest.mark.parametrize("part", [BertSelfAttention, BertAttention, BertLayer, BertEncoder])
@pytest.mark.parametrize("shape", [(12,), (5, 12), (1, 2, 5, 12)])
def test_parts_by_themselves_want_a_batch_of_rows(part, shape):
    x = Tensor(np.ones(shape, np.float32))
    message = rf"attention: expected x of shape \(B, T, 12\), got {re.escape(str(shape))}"
    with pytest.raises(ValueError, match=message):
        part(SMALL)(x, None)


@pytest.mark.parametrize("shape", [(12,), (2, 5, 12)])
def test_the_pooler_wants_one_row_a_sequence(shape):
    """Of all rows it would make a vector each, and nothing would fail."""
    message = rf"pooler: expected the rows of \[CLS\], \(B, 12\), got {re.escape(str(shape))}"
    with pytest.raises(ValueError, match=message):
        BertPooler(SMALL)(Tensor(np.ones(shape, np.float32)))
