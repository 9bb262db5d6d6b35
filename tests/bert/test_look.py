"""What the heads look at: their weights, entropy and surface patterns, beside the same by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tiny

from minigrad import random
from minigrad.bert.look import MIXED, MOST_TOKENS, PATTERNS, Head, Look, Share, look, surface_patterns
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.predict import fill_mask
from minigrad.tensor import no_grad

TOKENIZER = tiny.tokenizer()
A, B, C = (tiny.word(topic, 0) for topic in range(3))
CONFIG = tiny.CONFIG.replace(num_hidden_layers=2, initializer_range=0.5)


@pytest.fixture
def model() -> BertForPreTraining:
    """A model with larger weights than at the start, so that its heads differ, left in training mode."""
    return BertForPreTraining(CONFIG)


# --- Weights ---------------------------------------------------------------------------------------------


def test_all_heads_in_their_order(model):
    found = look(model, TOKENIZER, A, B)
    assert found.tokens == ["[CLS]", A, "[SEP]", B, "[SEP]"]
    assert (found.segments, found.texts) == ([0, 0, 0, 1, 1], [A, B])
    assert [head.name for head in found.heads] == ["1-1", "1-2", "2-1", "2-2"]
    encoding = TOKENIZER.encode(A, B)
    model.eval()
    with no_grad():
        attentions = model.bert(
            np.array([encoding.input_ids]),
            token_type_ids=np.array([encoding.token_type_ids]),
            output_attentions=True,
        ).attentions
    for head in found.heads:
        of_layer = attentions[head.layer - 1].numpy()[0]
        np.testing.assert_array_equal(head.weights, of_layer[head.number - 1].astype(np.float64))
        np.testing.assert_allclose(head.weights.sum(axis=1), 1, atol=1e-6)


def test_without_dropout_and_without_a_trace():
    model = BertForPreTraining(CONFIG.replace(attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.5))
    before = random.get_state()
    first, second = (look(model, TOKENIZER, f"{A} [MASK]") for _ in range(2))
    np.testing.assert_array_equal(first.heads[0].weights, second.heads[0].weights)
    assert first.fillings == second.fillings
    assert random.get_state() == before
    assert all(part.training for part in model.modules())


def test_a_mask_gets_its_fillings(model):
    found = look(model, TOKENIZER, f"{A} [MASK]", f"[MASK] {B}", top=3)
    assert list(found.fillings) == [2, 4]
    assert list(found.fillings.values()) == fill_mask(model, TOKENIZER, f"{A} [MASK]", 3, f"[MASK] {B}")
    assert found.fillings[2] != fill_mask(model, TOKENIZER, f"{A} [MASK]", 3)[0]
    assert look(model, TOKENIZER, A).fillings == {}


# --- Entropy and patterns --------------------------------------------------------------------------------


def looked_at(tokens: list[str], weights: np.ndarray, monkeypatch) -> Head:
    """The one head of a model that gives these weights."""
    monkeypatch.setattr("minigrad.bert.look._weights", lambda model, encoding: weights[None, None])
    text = " ".join(tokens[1:-1])
    assert TOKENIZER.encode(text).tokens == tokens
    (head,) = look(BertForPreTraining(CONFIG), TOKENIZER, text).heads
    return head


TOKENS = ["[CLS]", A, B, A, C, "[SEP]"]


def test_entropy_is_0_for_one_token_and_log_t_for_all(monkeypatch):
    assert looked_at(TOKENS, np.eye(6), monkeypatch).entropy == 0
    assert looked_at(TOKENS, np.full((6, 6), 1 / 6), monkeypatch).entropy == pytest.approx(math.log(6))
    half = np.full((6, 6), 1 / 6)
    half[:3] = np.eye(6)[:3]
    assert looked_at(TOKENS, half, monkeypatch).entropy == pytest.approx(math.log(6) / 2)


@pytest.mark.no_arrays
def test_where_each_pattern_finds_its_tokens():
    tokens = [
        "[CLS]",
        "un",
        "##do",
        "it",
        ",",
        "un",
        "##do",
        "re",
        "##do",
        ".",
        "[SEP]",
        "it",
        "[MASK]",
        "[MASK]",
    ]
    found = {
        name: {tuple(place) for place in np.argwhere(where).tolist()}
        for name, where in surface_patterns(tokens).items()
    }
    n = len(tokens)
    assert list(found) == list(PATTERNS)
    assert found["previous"] == {(i, i - 1) for i in range(1, n)}
    assert found["next"] == {(i, i + 1) for i in range(n - 1)}
    assert found["itself"] == {(i, i) for i in range(n)}
    assert found["[CLS]"] == {(i, 0) for i in range(1, n)}
    assert found["[SEP]"] == {(i, j) for i in range(n) for j in (4, 9, 10) if i != j}
    # "redo" ends alike and is another word; so is each [MASK]
    undo = {(i, j) for i in (1, 2) for j in (5, 6)}
    one_way = undo | {(3, 11)}
    assert found["same word"] == one_way | {(j, i) for i, j in one_way}


def test_a_share_is_the_mean_over_the_tokens_that_have_a_place(monkeypatch):
    weights = np.full((6, 6), 1 / 6)
    weights[1] = [0.5, 0, 0, 0.5, 0, 0]  # half on the token before, half on its like
    head = looked_at(TOKENS, weights, monkeypatch)
    assert head.shares["previous"] == Share(pytest.approx((0.5 + 4 / 6) / 5), pytest.approx(1 / 6), 5)
    assert head.shares["same word"] == Share(pytest.approx((0.5 + 1 / 6) / 2), pytest.approx(1 / 6), 2)
    assert head.shares["itself"] == Share(pytest.approx(5 / 36), pytest.approx(1 / 6), 6)
    assert head.pattern == MIXED


@pytest.mark.parametrize("pattern", ["previous", "next", "itself", "[CLS]", "[SEP]"])
def test_a_head_has_the_name_of_what_it_looks_at(pattern, monkeypatch):
    places = surface_patterns(TOKENS)[pattern]
    weights = np.where(
        places.any(axis=1, keepdims=True), places / places.sum(axis=1, keepdims=True).clip(1), 1 / 6
    )
    head = looked_at(TOKENS, weights, monkeypatch)
    assert (head.pattern, head.strongest) == (pattern, pattern)
    assert head.shares[pattern].share == pytest.approx(1)
    assert head.shares[pattern].beyond == pytest.approx(1)
    even = looked_at(TOKENS, np.full((6, 6), 1 / 6), monkeypatch)
    assert all(abs(share.beyond) < 1e-12 for share in even.shares.values())
    assert even.pattern == MIXED


def test_a_pattern_for_few_tokens_gives_no_name(monkeypatch):
    weights = np.full((6, 6), 1 / 6)
    weights[[1, 3]] = np.eye(6)[[3, 1]]
    head = looked_at(TOKENS, weights, monkeypatch)
    assert head.shares["same word"].beyond == 1
    assert head.pattern == MIXED
    tokens = ["[CLS]", A, B, A, B, "[SEP]"]
    weights[[1, 2, 3, 4]] = np.eye(6)[[3, 4, 1, 2]]
    assert looked_at(tokens, weights, monkeypatch).pattern == "same word"


@pytest.mark.no_arrays
def test_the_most_pronounced_come_first():
    def head(number: int, share: float) -> Head:
        return Head(1, number, np.eye(2), 0.0, {"itself": Share(share, 0.5, 2)})

    found = Look(["x"], ["[CLS]", "[SEP]"], [0, 0], 1, [head(1, 0.7), head(2, 0.9), head(3, 0.6)], {})
    assert [one.name for one in found.pronounced()] == ["1-2", "1-1"]
    assert found.most_entropy == pytest.approx(math.log(2))


# --- Mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("",), "the text has no tokens: ''"),
        ((A, " \n"), "the second text has no tokens: "),
        ((" ".join([A] * 15),), r"17 tokens with \[CLS\] and \[SEP\], more than the 16 positions of this"),
        ((" ".join([A] * 7), " ".join([B] * 7)), "17 tokens .* 16 positions"),
    ],
)
def test_texts_that_do_not_do(model, texts, message):
    with pytest.raises(ValueError, match=message):
        look(model, TOKENIZER, *texts)
    assert model.training


def test_a_text_too_long_for_a_page():
    model = BertForPreTraining(CONFIG.replace(max_position_embeddings=200))
    assert len(look(model, TOKENIZER, " ".join([A] * (MOST_TOKENS - 2))).tokens) == MOST_TOKENS
    with pytest.raises(ValueError, match=f"{MOST_TOKENS + 1} tokens .* a page has room for {MOST_TOKENS}"):
        look(model, TOKENIZER, " ".join([A] * (MOST_TOKENS - 1)))


def test_models_that_do_not_do(model):
    with pytest.raises(ValueError, match="this model has no layers"):
        look(BertForPreTraining(CONFIG.replace(num_hidden_layers=0)), TOKENIZER, A)
    one_segment = BertForPreTraining(CONFIG.replace(type_vocab_size=1))
    assert len(look(one_segment, TOKENIZER, A).heads) == 4
    with pytest.raises(ValueError, match="it reads one text, not two"):
        look(one_segment, TOKENIZER, A, B)
    model.load_state_dict({n: np.full(a.shape, 3e38, "float32") for n, a in model.state_dict().items()})
    with pytest.raises(ValueError, match="attention weights are not finite"):
        look(model, TOKENIZER, A)
    assert model.training
