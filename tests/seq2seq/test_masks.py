"""Padding and sequence masks."""

from __future__ import annotations

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor
from minigrad.seq2seq.masks import decoder_mask, padding_mask, sequence_mask

WORDS = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_mask_is_nought_where_a_word_may_be_seen(dtype):
    like, least = Tensor([0.0], dtype=dtype), np.finfo(dtype).min
    padding, sequence = host(padding_mask(WORDS, like)), host(sequence_mask(4, like))
    both = host(decoder_mask(WORDS, like))
    assert {mask.dtype for mask in (padding, sequence, both)} == {np.dtype(dtype)}
    assert (padding.shape, sequence.shape, both.shape) == ((2, 1, 1, 4), (1, 1, 4, 4), (2, 1, 4, 4))
    for row in range(2):
        for asking in range(4):
            for seen in range(4):
                in_padding, in_future = WORDS[row, seen] == 0, seen > asking
                assert padding[row, 0, 0, seen] == (least if in_padding else 0)
                assert sequence[0, 0, asking, seen] == (least if in_future else 0)
                assert both[row, 0, asking, seen] == (least if in_padding or in_future else 0)


def test_without_padding_there_is_no_padding_mask():
    like = Tensor([0.0])
    assert padding_mask(WORDS[:1], like) is None
    np.testing.assert_array_equal(host(decoder_mask(WORDS[:1], like)), host(sequence_mask(4, like)))
