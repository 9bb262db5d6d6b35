"""Ids of the tiny vocabulary, documents of numbered tokens, and whether counts of draws are as they should be.

Shares are held to five standard deviations of as many draws as it takes to tell 80/10/10 from 81/10/9.
"""

from __future__ import annotations

import math

import numpy as np
import tiny

TOKENIZER = tiny.tokenizer()
PAD, CLS, SEP, MASK = (
    TOKENIZER.pad_token_id,
    TOKENIZER.cls_token_id,
    TOKENIZER.sep_token_id,
    TOKENIZER.mask_token_id,
)
V = TOKENIZER.vocab_size
FIRST_WORD = 5  # the first id that is no special token
SIGMAS = 5


def within(count: float, draws: int, share: float) -> bool:
    """Whether a count of independent draws is within five standard deviations of its expectation."""
    return abs(count - share * draws) <= SIGMAS * math.sqrt(draws * share * (1 - share))


def even(counts: np.ndarray) -> bool:
    """Whether counts may come from equally likely classes: chi-square, within five standard deviations."""
    expected = counts.sum() / counts.size
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    freedom = counts.size - 1
    return abs(chi_square - freedom) <= SIGMAS * math.sqrt(2 * freedom)


def numbered(shape: list[list[int]]) -> list[list[list[int]]]:
    """Documents with sentences of these lengths, in which every token is another number."""
    ids = iter(range(10**6))
    return [[[next(ids) for _ in range(length)] for length in document] for document in shape]


def numbered_words(shape):
    """`numbered` documents in ids of words."""
    return [[[FIRST_WORD + t for t in sentence] for sentence in document] for document in numbered(shape)]
