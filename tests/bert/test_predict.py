"""Filling a mask and judging whether one sentence follows another."""

from __future__ import annotations

import numpy as np
import pytest
import tiny

from minigrad import random
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.predict import Filling, fill_mask, next_sentence
from minigrad.tensor import no_grad

TOKENIZER = tiny.tokenizer()
A, B, C = (tiny.word(topic, 0) for topic in range(3))


@pytest.fixture
def model() -> BertForPreTraining:
    """A model with larger weights than at the start, so that its answers differ, left in training mode."""
    return BertForPreTraining(tiny.CONFIG.replace(initializer_range=0.5))


def scores(model, text: str, pair: str | None = None):
    """Both heads' logits in float64, for one input."""
    encoding = TOKENIZER.encode(text, pair)
    model.eval()
    with no_grad():
        output = model(np.array([encoding.input_ids]), token_type_ids=np.array([encoding.token_type_ids]))
    model.train()
    return (
        output.prediction_logits.numpy()[0].astype(np.float64),
        output.seq_relationship_logits.numpy()[0].astype(np.float64),
    )


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum()


def test_the_probabilities_are_a_softmax_over_the_vocabulary(model):
    (fillings,) = fill_mask(model, TOKENIZER, f"{A} [MASK] {B}", top=TOKENIZER.vocab_size)
    assert len(fillings) == TOKENIZER.vocab_size < tiny.CONFIG.vocab_size
    assert sum(filling.probability for filling in fillings) == pytest.approx(1, abs=1e-12)
    expected = softmax(scores(model, f"{A} [MASK] {B}")[0][2, : TOKENIZER.vocab_size])  # behind [CLS] and A
    found = {filling.token: filling.probability for filling in fillings}
    assert [found[piece] for piece in TOKENIZER.vocab] == pytest.approx(expected.tolist(), rel=1e-5)


def test_a_row_that_no_piece_has_takes_no_part(model):
    """A table may be padded; there the largest score of all would leave nothing of the others."""
    expected = fill_mask(model, TOKENIZER, f"{A} [MASK]")
    bias = model.cls.predictions.bias
    bias.data[TOKENIZER.vocab_size] = 800
    assert fill_mask(model, TOKENIZER, f"{A} [MASK]") == expected


def test_the_likeliest_come_first(model):
    everything = fill_mask(model, TOKENIZER, f"[MASK] {A}", top=1000)[0]
    probabilities = [filling.probability for filling in everything]
    assert probabilities == sorted(probabilities, reverse=True)
    assert fill_mask(model, TOKENIZER, f"[MASK] {A}")[0] == everything[:5]
    assert fill_mask(model, TOKENIZER, f"[MASK] {A}", top=1)[0] == everything[:1]
    assert isinstance(everything[0], Filling)


def test_each_mask_has_its_fillings(model):
    first, second = fill_mask(model, TOKENIZER, f"[MASK] {A} [MASK]", top=3)
    logits = scores(model, f"[MASK] {A} [MASK]")[0][:, : TOKENIZER.vocab_size]
    assert [f.token for f in first] == [TOKENIZER.vocab[i] for i in np.argsort(-logits[1])[:3]]
    assert [f.token for f in second] == [TOKENIZER.vocab[i] for i in np.argsort(-logits[3])[:3]]


def test_the_probability_that_b_follows_a(model):
    expected = softmax(scores(model, f"{A} {B}", C)[1])
    assert next_sentence(model, TOKENIZER, f"{A} {B}", C) == pytest.approx(expected[0], rel=1e-5)
    assert next_sentence(model, TOKENIZER, C, f"{A} {B}") != pytest.approx(expected[0], rel=1e-3)


@pytest.mark.parametrize("bias", [-1e5, -500.0, 0.0, 500.0, 1e5])
def test_class_0_is_is_next_also_where_it_is_certain(model, bias):
    state = {name: array * 0 for name, array in model.state_dict().items() if name.startswith("cls.seq")}
    model.load_state_dict({**state, "cls.seq_relationship.bias": np.array([bias, 0.0])}, strict=False)
    assert next_sentence(model, TOKENIZER, A, B) == pytest.approx(
        [0, 0.5, 1][int(np.sign(bias)) + 1], abs=1e-9
    )


@pytest.mark.parametrize("training", [True, False])
def test_without_dropout_and_without_a_trace(model, training):
    model.train(training)
    before = random.get_state()
    answers = [
        (fill_mask(model, TOKENIZER, f"{A} [MASK]"), next_sentence(model, TOKENIZER, A, B)) for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert random.get_state() == before
    assert all(part.training is training for part in model.modules())


def test_a_model_of_one_segment():
    model = BertForPreTraining(tiny.CONFIG.replace(type_vocab_size=1))
    assert len(fill_mask(model, TOKENIZER, f"{A} [MASK]")[0]) == 5
    with pytest.raises(ValueError, match="this model knows one kind of segment only"):
        next_sentence(model, TOKENIZER, A, B)


def test_scores_that_are_not_finite(model):
    huge = {name: np.full(array.shape, 3e38, "float32") for name, array in model.state_dict().items()}
    model.load_state_dict(huge)
    with pytest.raises(ValueError, match="scores are not finite"):
        fill_mask(model, TOKENIZER, f"{A} [MASK]")
    with pytest.raises(ValueError, match="scores are not finite"):
        next_sentence(model, TOKENIZER, A, B)


def test_the_message_about_a_text_is_one_short_line(model):
    with pytest.raises(ValueError, match=r"there is no \[MASK\] in '\\x1b\[2J\\nx+…$") as caught:
        fill_mask(model, TOKENIZER, "\x1b[2J\n" + "x" * 10**6)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", A, "[mask]", "MASK"])
def test_no_mask_to_fill(model, text):
    with pytest.raises(ValueError, match=r"there is no \[MASK\] in "):
        fill_mask(model, TOKENIZER, text)


@pytest.mark.parametrize("top", [0, -1])
def test_no_filling_to_show(model, top):
    with pytest.raises(ValueError, match=f"top must be at least 1, got {top}"):
        fill_mask(model, TOKENIZER, "[MASK]", top)


def test_a_text_longer_than_the_model(model):
    with pytest.raises(ValueError, match="17 tokens are more than the 16 positions"):
        fill_mask(model, TOKENIZER, " ".join([A] * 14 + ["[MASK]"]))
    with pytest.raises(ValueError, match="23 tokens are more than the 16 positions"):
        next_sentence(model, TOKENIZER, " ".join([A] * 10), " ".join([B] * 10))
    assert model.training  # put back, error or not


@pytest.mark.parametrize(("a", "b", "which"), [("", B, "first"), (A, " \n", "second"), ("", "", "first")])
def test_a_sentence_without_tokens(model, a, b, which):
    with pytest.raises(ValueError, match=f"the {which} sentence has no tokens: "):
        next_sentence(model, TOKENIZER, a, b)
