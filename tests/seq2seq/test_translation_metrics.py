"""Loss and hits of training, whole translations held against the right ones, and lines for the reader."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_translation import CONFIGS, TOKENIZER, model, pairs

from minigrad import Tensor, no_grad
from minigrad.seq2seq.data import pad_pairs
from minigrad.seq2seq.metrics import TranslationTally, brief, compare, describe, evaluate
from minigrad.seq2seq.output import Seq2SeqOutput


def batches(count: int, size: int) -> list:
    found = pairs(count)
    return [pad_pairs(found[i : i + size], 3, 0) for i in range(0, count, size)]


def test_a_tally_counts_pieces_and_not_padding():
    logits = np.zeros((2, 3, 5), np.float32)
    logits[0, 0, 4] = logits[0, 1, 3] = logits[1, 0, 2] = logits[1, 1, 1] = 1
    batch = {
        "labels": np.array([[4, 2, -100], [2, -100, -100]]),
        "attention_mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0]]),
    }
    tally = TranslationTally()
    tally.add(Seq2SeqOutput(Tensor(logits), Tensor(np.float32(0.5))), batch)
    assert tally.state_dict() == {"loss": 1.5, "hits": 2, "count": 3}
    assert tally.tokens == 6 + 3
    tally.add(
        Seq2SeqOutput(Tensor(logits[1:]), Tensor(np.float32(2.5))), {n: a[1:] for n, a in batch.items()}
    )
    assert tally.means() == {"loss": 1.0, "accuracy": 0.75}
    again = TranslationTally()
    again.load_state_dict(tally.state_dict())
    assert again.means() == tally.means()


@pytest.mark.parametrize("name", CONFIGS)
def test_an_evaluation_is_over_all_pieces_whatever_the_batches(name):
    of = model(name).train()
    one, many = evaluate(of, batches(7, 7)), evaluate(of, batches(7, 2))
    assert of.training is True
    assert one["loss"] == pytest.approx(many["loss"], rel=1e-5)
    assert one["accuracy"] == many["accuracy"]
    (batch,) = batches(7, 7)
    with no_grad():
        logits = of.eval()(**batch).logits.numpy().astype(np.float64)
    counted = batch["labels"] != -100
    logits, labels = logits[counted], batch["labels"][counted]
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert one["loss"] == pytest.approx(-log_p[np.arange(len(labels)), labels].mean(), rel=1e-5)
    assert one["accuracy"] == np.mean(logits.argmax(axis=1) == labels)


def ids(text: str) -> list[int]:
    return TOKENIZER.token_ids(text)


@pytest.mark.no_arrays
def test_translations_held_against_the_right_ones():
    right = [ids("mary has two books ."), ids("he reads the books .")]
    assert compare(TOKENIZER, right, right) == pytest.approx({"exact_match": 1.0, "bleu": 100.0})
    half = compare(TOKENIZER, [right[0], right[1][:-1]], right)
    assert half["exact_match"] == 0.5
    assert 50 < half["bleu"] < 100
    assert compare(TOKENIZER, [[], []], right) == {"exact_match": 0.0, "bleu": 0.0}
    with pytest.raises(ValueError, match="expected at least one translation, got none"):
        compare(TOKENIZER, [], [])
    with pytest.raises(ValueError, match="zip"):
        compare(TOKENIZER, right[:1], right)


@pytest.mark.no_arrays
def test_lines_for_the_reader():
    figures = {"loss": 0.1234, "accuracy": 0.9876, "exact_match": 0.805, "bleu": 95.67}
    expected = "loss 0.123, pieces right 98.8%; translations right 80.5%, BLEU 95.7"
    assert describe(figures) == expected
    assert brief(figures) == ["loss 0.123", "pieces right 99%"]
