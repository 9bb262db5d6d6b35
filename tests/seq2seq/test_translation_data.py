"""Sentence pairs as batches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from minigrad.seq2seq.data import POOL, TranslationData, pad_pairs, shift_right

pytestmark = pytest.mark.no_arrays

PAIRS = [([10 + i] * (1 + i % 7), [40 + i] * (1 + i % 5)) for i in range(23)]


def data(pairs=PAIRS, batch_size=4, seed=0):
    return TranslationData(pairs, batch_size, seed, end_token_id=3, pad_token_id=0)


def rows(batch):
    """The number of each pair in a batch."""
    return [int(ids[0]) - 10 for ids in batch["input_ids"]]


def assert_same(one, other):
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_a_batch_has_end_tokens_and_padding():
    batch = pad_pairs([([5, 6, 7], [8]), ([5], [8, 9])], end_token_id=3, pad_token_id=0)
    np.testing.assert_array_equal(batch["input_ids"], [[5, 6, 7, 3], [5, 3, 0, 0]])
    np.testing.assert_array_equal(batch["attention_mask"], [[1, 1, 1, 1], [1, 1, 0, 0]])
    np.testing.assert_array_equal(batch["labels"], [[8, 3, -100], [8, 9, 3]])
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int64)}


def test_an_empty_source_or_target_is_an_end_token():
    batch = pad_pairs([([], [])], end_token_id=3, pad_token_id=0)
    assert (batch["input_ids"].tolist(), batch["labels"].tolist()) == ([[3]], [[3]])


def test_the_decoder_reads_the_start_token_and_all_labels_but_the_last():
    labels = np.array([[8, 9, 3], [8, 3, -100], [3, -100, -100]])
    np.testing.assert_array_equal(shift_right(labels, 2, 0), [[2, 8, 9], [2, 8, 3], [2, 3, 0]])
    np.testing.assert_array_equal(labels[1], [8, 3, -100])


def test_an_epoch_has_each_pair_once_but_for_what_is_left_over():
    source = data()
    assert source.batches_per_epoch == 5
    seen = Counter(row for _ in range(5) for row in rows(source.next_batch()))
    assert len(seen) == 20
    assert set(seen.values()) == {1}
    left = {*range(23)} - set(seen)
    later = {row for _ in range(20) for row in rows(source.next_batch())}
    assert left <= later


def test_each_epoch_and_each_seed_has_an_order_of_its_own():
    def order(seed):
        source = data(seed=seed)
        return [[rows(source.next_batch()) for _ in range(5)] for _ in range(2)]

    assert order(0) == order(0)
    assert order(0) != order(1)
    first, second = order(0)
    assert first != second


@pytest.mark.parametrize("before", [0, 1, 4, 5, 6, 13])
def test_a_resumed_row_of_batches_goes_on_as_it_would_have(before):
    source = data()
    for _ in range(before):
        source.next_batch()
    state = source.state_dict()
    expected = [source.next_batch() for _ in range(12)]
    resumed = data()
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    for one in expected:
        assert_same(one, resumed.next_batch())
    assert_same(next(iter(resumed)), source.next_batch())


def test_sentences_of_about_one_length_go_together():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 40, 2000)
    pairs = [([5] * n, [6] * n) for n in lengths]
    source = data(pairs, batch_size=10)
    batches = [source.next_batch() for _ in range(source.batches_per_epoch)]
    padding = 1 - np.concatenate([b["attention_mask"].ravel() for b in batches]).mean()
    in_any_order = pad_pairs(pairs[:10], 3, 0)["attention_mask"]
    assert padding < 0.1 < 0.3 < 1 - in_any_order.mean()
    # and they do not come from short to long
    means = [b["attention_mask"].sum(axis=1).mean() for b in batches[:POOL]]
    assert means != sorted(means)


def test_fewer_pairs_than_a_batch_are_a_smaller_batch():
    source = data(PAIRS[:3], batch_size=8)
    assert sorted(rows(source.next_batch())) == [0, 1, 2]
    assert sorted(rows(source.next_batch())) == [0, 1, 2]
    assert source.state_dict() == {"epoch": 1, "index": 1}


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(ValueError, match="TranslationData: expected at least one pair, got none"):
        data([])
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        data(batch_size=0)
    with pytest.raises(ValueError, match="pad_pairs: expected at least one pair, got none"):
        pad_pairs([], 3, 0)
