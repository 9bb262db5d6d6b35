"""Masking (Devlin et al. 2019, section 3.1 and A.1): 15 %, 80/10/10."""

from __future__ import annotations

import numpy as np
import pytest
from draws import CLS, FIRST_WORD, MASK, PAD, SEP, TOKENIZER, V, even, within

from minigrad.bert.config import IGNORED
from minigrad.bert.data import mask_tokens

pytestmark = pytest.mark.no_arrays


def rows(lengths, length: int, rng: np.random.Generator, ids=None) -> np.ndarray:
    """Inputs [CLS] A [SEP] B [SEP] of these lengths, padded, their words drawn evenly or all `ids`."""
    lengths = np.asarray(lengths)
    place = np.arange(length)
    words = rng.integers(FIRST_WORD, V, (len(lengths), length)) if ids is None else ids
    words = np.where(place == 0, CLS, words)
    words = np.where((place == lengths[:, None] - 1) | (place == lengths[:, None] // 2), SEP, words)
    return np.where(place < lengths[:, None], words, PAD)


# To tell 80 % from 81 % with five standard deviations on either side, 0.01 ≥ 2 · 5 · √(0.8 · 0.2 / n): n is
# at least 160,000 chosen tokens, 15 % of 1.07 million; 10 % and 9 % then lie further apart still.
CHOSEN = 165_000


def test_80_10_10():
    """A random token is [MASK] or the true one with probability 1 / V each."""
    rng = np.random.default_rng(0)
    input_ids = rows(np.full(9_000, 128), 128, rng)
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    chosen = labels != IGNORED
    to_mask, stayed = masked[chosen] == MASK, masked[chosen] == input_ids[chosen]
    count = int(chosen.sum())
    assert count > CHOSEN
    assert within(to_mask.sum(), count, 0.8 + 0.1 / V)
    assert within(stayed.sum(), count, 0.1 + 0.1 / V)
    assert within((~to_mask & ~stayed).sum(), count, 0.1 - 0.2 / V)


@pytest.mark.parametrize("length", [5, 10, 16, 23, 64, 128])
def test_fifteen_per_cent_of_each_row_and_at_least_one(length):
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, length + 1, 300)
    input_ids = rows(lengths, length, rng)
    _, labels = mask_tokens(input_ids, TOKENIZER, rng)
    # [CLS] and [SEP] count, as in the released code
    expected = [max(1, round(0.15 * n)) for n in lengths.tolist()]
    assert (labels != IGNORED).sum(axis=1).tolist() == expected


def test_a_row_without_words_has_nothing_to_choose():
    input_ids = np.array([[CLS, SEP, SEP, PAD], [CLS, 7, SEP, PAD]])
    masked, labels = mask_tokens(input_ids, TOKENIZER, np.random.default_rng(0))
    assert (labels[0] == IGNORED).all()
    assert (masked[0] == input_ids[0]).all()
    assert labels[1].tolist() == [IGNORED, 7, IGNORED, IGNORED]


def test_special_tokens_are_never_chosen():
    rng = np.random.default_rng(0)
    input_ids = rows(rng.integers(5, 33, 3000), 32, rng)
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    special = np.isin(input_ids, [CLS, SEP, PAD])
    assert (labels[special] == IGNORED).all()
    assert (masked[special] == input_ids[special]).all()
    assert not np.isin(labels, [CLS, SEP, PAD]).any()


def test_labels_are_the_true_ids_and_the_rest_stays():
    rng = np.random.default_rng(0)
    input_ids = rows(rng.integers(5, 33, 300), 32, rng)
    before = input_ids.copy()
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    chosen = labels != IGNORED
    assert (labels[chosen] == input_ids[chosen]).all()
    assert (masked[~chosen] == input_ids[~chosen]).all()
    assert (input_ids == before).all()
    assert masked.shape == labels.shape == input_ids.shape


def test_random_tokens_are_any_of_the_vocabulary():
    rng = np.random.default_rng(0)
    word = 11
    input_ids = rows(np.full(6000, 64), 64, rng, ids=word)
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    came = np.bincount(masked[labels != IGNORED], minlength=V)
    seen = [i for i in range(V) if i not in (word, MASK)]
    assert came.size == V
    assert came[seen].min() > 0  # special tokens among them, as in the released code
    assert even(came[seen])
    assert not even(np.append(came[seen], 0))  # one token that never comes is noticed


def test_every_place_is_as_likely():
    rng = np.random.default_rng(0)
    input_ids = rows(np.full(6000, 64), 64, rng)
    chosen = mask_tokens(input_ids, TOKENIZER, rng)[1] != IGNORED
    places = chosen.sum(axis=0)[~np.isin(input_ids[0], [CLS, SEP])]
    assert all(within(count, len(chosen), chosen.sum() / chosen.shape[0] / len(places)) for count in places)


def test_another_share_of_tokens():
    rng = np.random.default_rng(0)
    _, labels = mask_tokens(rows([20] * 10, 24, rng), TOKENIZER, rng, share=0.5)
    assert ((labels != IGNORED).sum(axis=1) == 10).all()
