"""Documents as ids, batches, and what is held out (Devlin et al. 2019, sections 3.1 and A.1)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import tiny
from draws import CLS, PAD, SEP, TOKENIZER, numbered_words, within

from minigrad.bert import data as data_module
from minigrad.bert.config import IGNORED
from minigrad.bert.data import PretrainingData, create_pairs, encode_documents, held_out_batches, make_batch
from minigrad.text.corpus import CorpusError
from minigrad.text.sentences import IS_NEXT, NOT_NEXT, SentencePair
from minigrad.training.epochs import fingerprint

pytestmark = pytest.mark.no_arrays


# --- Documents -------------------------------------------------------------------------------------------


def test_documents_as_ids_without_what_is_empty():
    a, b = tiny.word(0, 0), tiny.word(1, 3)
    encoded = encode_documents([[a, "", f"{b} {a}"], [" ", ""], [b]], TOKENIZER)
    ids = {word: TOKENIZER.token_to_id(word) for word in (a, b)}
    assert encoded == [[[ids[a]], [ids[b], ids[a]]], [[ids[b]]]]


@pytest.mark.parametrize("documents", [[], [["a"]], [["a"], [""]]])
def test_two_documents_with_text_are_needed(documents):
    with pytest.raises(CorpusError, match="at least two documents with text are needed, found"):
        encode_documents(documents, TOKENIZER)


def test_a_sentence_without_an_end_is_cut(monkeypatch):
    monkeypatch.setattr(data_module, "LONGEST_SENTENCE", 3)
    words = [tiny.word(0, number) for number in range(7)]
    ids = [TOKENIZER.token_to_id(word) for word in words]
    encoded = encode_documents([[" ".join(words)], [words[0], " ".join(words[:3])]], TOKENIZER)
    assert encoded == [[ids[:3], ids[3:6], ids[6:]], [ids[:1], ids[:3]]]


def test_progress_of_encoding():
    calls = []
    encode_documents(
        (d for d in [["bal"], [""], ["bil"]]), TOKENIZER, lambda done, total: calls.append((done, total))
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]


# --- Batches ---------------------------------------------------------------------------------------------


def test_a_batch_written_out():
    pairs = [SentencePair([7, 8, 9], [10], IS_NEXT), SentencePair([11], [12], NOT_NEXT)]
    batch = make_batch(pairs, TOKENIZER, 9, np.random.default_rng(0))
    true = np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])
    assert true.tolist() == [
        [CLS, 7, 8, 9, SEP, 10, SEP, PAD, PAD],
        [CLS, 11, SEP, 12, SEP, PAD, PAD, PAD, PAD],
    ]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 7 + [0] * 2, [1] * 5 + [0] * 4]
    assert batch["next_sentence_label"].tolist() == [IS_NEXT, NOT_NEXT]
    assert ((batch["labels"] != IGNORED).sum(axis=1) == 1).all()
    assert all(values.dtype.kind == "i" for values in batch.values())


def data(seed: int = 0, batch_size: int = 4, count: int = 30) -> PretrainingData:
    return PretrainingData(tiny.documents(count), TOKENIZER, batch_size, 16, seed)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


def true_rows(batch) -> list[tuple[int, ...]]:
    """The rows of a batch before masking."""
    return [tuple(row) for row in np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])]


def test_the_seed_fixes_every_batch():
    a, b, other = data(), data(), data(seed=1)
    batches = [next(batches) for batches in (iter(a), iter(b), iter(other)) for _ in range(100)]
    assert all(map(same, batches[:100], batches[100:200]))
    assert not any(map(same, batches[:100], batches[200:]))
    assert a.epoch > 1  # so several epochs were seen


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("index", [1, 5, "last"])
def test_the_position_is_all_there_is_to_keep(epoch, index):
    whole = data()
    assert whole.state_dict() == {"epoch": 0, "index": 0}
    whole.next_batch()
    while whole.epoch < epoch:
        whole.next_batch()
    last = whole.batches_per_epoch
    while whole.index < (last if index == "last" else index):
        whole.next_batch()
    state = whole.state_dict()
    assert state == {"epoch": epoch, "index": last if index == "last" else index}
    resumed = data()
    resumed.load_state_dict(state)
    for _ in range(2 * last):
        assert same(whole.next_batch(), resumed.next_batch())
    assert whole.state_dict() == resumed.state_dict()


def test_every_epoch_pairs_anew_and_uses_each_pair_once():
    whole = data()
    epochs = []
    for epoch in range(3):
        pairs = Counter((*p.a, *p.b) for p in whole._pairs)
        size = whole.batches_per_epoch
        batches = [whole.next_batch() for _ in range(size)]
        assert whole.state_dict() == {"epoch": epoch, "index": size}
        assert size == sum(pairs.values()) // 4
        assert {batch["input_ids"].shape for batch in batches} == {(4, 16)}
        rows = [tuple(t for t in row if t not in (CLS, SEP, PAD)) for b in batches for row in true_rows(b)]
        assert len(rows) == 4 * size
        assert Counter(rows) <= pairs
        epochs.append(Counter(rows))
        batch = whole.next_batch()  # the first of the next epoch: pairs are made there
        assert whole.epoch == epoch + 1
        assert batch["input_ids"].shape == (4, 16)
        whole.index = 0
    assert epochs[0] != epochs[1] != epochs[2]
    assert len(set(epochs[0]) & set(epochs[1])) < 0.5 * len(epochs[0])


def test_pairs_are_shuffled_across_documents():
    whole = PretrainingData(numbered_words([[1] * 200] * 10), TOKENIZER, 4, 16, seed=0)
    starts = [pair.a[0] for pair in whole._pairs]
    assert sorted(starts) != starts
    in_order = sum(a < b for a, b in pairwise(starts))
    assert within(in_order, len(starts) - 1, 0.5)


def test_masks_are_drawn_anew_for_a_pair_that_comes_again():
    whole = PretrainingData(numbered_words([[5, 5], [5, 5]]), TOKENIZER, 2, 16, seed=0)
    masks = {}
    for _ in range(50):
        batch = whole.next_batch()
        for labels, row in zip(batch["labels"], true_rows(batch), strict=True):
            masks.setdefault(row, set()).add(tuple(np.flatnonzero(labels != IGNORED)))
    assert max(len(different) for different in masks.values()) > 5


def test_fewer_pairs_than_a_batch_make_a_smaller_one():
    whole = PretrainingData(numbered_words([[2, 3], [4, 2]]), TOKENIZER, 8, 16, seed=0)
    assert whole.batches_per_epoch == 1
    for epoch in range(3):
        batch = whole.next_batch()
        assert len(batch["input_ids"]) == 2
        assert sorted(batch["next_sentence_label"]) == [IS_NEXT, NOT_NEXT]
        assert whole.epoch == epoch


@pytest.mark.parametrize("special", ["[SEP]", "[CLS] [SEP]", "[PAD] [PAD] [CLS]"])
def test_no_batch_without_a_label(special):
    """Where a text is of special tokens alone, nothing can be chosen: such pairs are passed over."""
    texts = [[special] * 20, [special] * 20, [tiny.word(0, 0), tiny.word(0, 1), special, special]]
    whole = PretrainingData(encode_documents(texts, TOKENIZER), TOKENIZER, 1, 8, seed=0)
    for _ in range(100):
        assert (whole.next_batch()["labels"] != IGNORED).any()
    assert whole.epoch > 5


def test_nothing_but_special_tokens():
    documents = encode_documents([["[SEP]"] * 9, ["[CLS]", "[PAD] [SEP]"]], TOKENIZER)
    with pytest.raises(CorpusError, match=r"every sentence pair is of \[CLS\], \[SEP\] and \[PAD\] alone"):
        PretrainingData(documents, TOKENIZER, 4, 16, seed=0)


def test_of_ordinary_text_every_pair_is_used():
    documents = tiny.documents()
    for epoch in range(3):
        whole = PretrainingData(documents, TOKENIZER, 4, 16, seed=5)
        whole.load_state_dict({"epoch": epoch, "index": 0})
        rng = np.random.default_rng([5, 2, epoch])
        pairs = create_pairs(documents, 16, rng)
        assert whole._pairs == [pairs[i] for i in rng.permutation(len(pairs))]


@pytest.mark.parametrize("max_length", [5, 6, 16, 128])
def test_any_length_from_five_on(max_length):
    whole = PretrainingData(tiny.documents(), TOKENIZER, 4, max_length, seed=0)
    for _ in range(20):
        batch = whole.next_batch()
        assert batch["input_ids"].shape == (4, max_length)
        assert ((batch["input_ids"] == SEP) | (batch["labels"] == SEP)).sum() >= 8
        assert ((batch["labels"] != IGNORED).sum(axis=1) >= 1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_length": 4}, r"max_length must be at least 5, \[CLS\] A \[SEP\] B \[SEP\]; got 4"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        PretrainingData(tiny.documents(), TOKENIZER, **{"batch_size": 4, "max_length": 16, **changes}, seed=0)


# --- Held out --------------------------------------------------------------------------------------------


def test_what_is_held_out_is_paired_and_masked_by_other_draws_than_training():
    documents = tiny.documents()
    held_out = held_out_batches(documents, TOKENIZER, 4, 16, seed=0)
    again = held_out_batches(documents, TOKENIZER, 4, 16, seed=0)
    training = PretrainingData(documents, TOKENIZER, 4, 16, seed=0)
    assert len(held_out) == len(again) == training.batches_per_epoch
    for batch, same in zip(held_out, again, strict=True):
        assert (batch["input_ids"] == same["input_ids"]).all()
        assert (batch["input_ids"] != training.next_batch()["input_ids"]).any()


def test_a_fingerprint_is_of_the_text_and_of_the_masks():
    batches = held_out_batches(tiny.documents(), TOKENIZER, 4, 16, seed=0)
    assert fingerprint(batches) == fingerprint(held_out_batches(tiny.documents(), TOKENIZER, 4, 16, seed=0))
    other_text = held_out_batches(tiny.documents(seed=1), TOKENIZER, 4, 16, seed=0)
    other_masks = held_out_batches(tiny.documents(), TOKENIZER, 4, 16, seed=1)
    other_labels = [{**batch, "labels": batch["labels"] + 1} for batch in batches]
    several = (batches, batches[1:], other_text, other_masks, other_labels)
    assert len({fingerprint(each) for each in several}) == len(several)
