"""What may be seen: padding and sequence masks, as what is added to the scores."""

from __future__ import annotations

import numpy as np

from minigrad import backend
from minigrad.bert.attention import additive_mask
from minigrad.tensor import Array, Tensor


def padding_mask(attention_mask: np.ndarray, like: Tensor) -> Array | None:
    """Nobody looks at padding: 0 for a word, the lowest finite number for padding.

    attention_mask (B, S), 0 for padding -> (B, 1, 1, S), the same for every head and every query word, on the
    backend and in the dtype of `like`; None if there is no padding.
    """
    return additive_mask(attention_mask, like)


def sequence_mask(length: int, like: Tensor) -> Array:
    """A word of the target looks at itself and at what comes before it, never at what comes after.

    -> (1, 1, T, T): 0 on and below the diagonal, the lowest finite number above it, on the backend and in the dtype
    of `like` (Vaswani et al. 2017, section 3.2.3).
    """
    future = np.triu(np.ones((length, length), bool), k=1)  # (T, T)
    mask = np.where(future, np.finfo(like.dtype).min, 0)[None, None]
    return backend.of(like.data).asarray(mask, dtype=like.dtype)


def decoder_mask(attention_mask: np.ndarray, like: Tensor) -> Array:
    """The mask of the decoder's self-attention: it hides what either mask hides.

    attention_mask (B, T) of the target, 0 for padding -> (B, 1, T, T), or (1, 1, T, T) where there is no padding.
    The lower of both numbers is taken; their sum could be -∞.
    """
    sequence = sequence_mask(attention_mask.shape[1], like)  # (1, 1, T, T)
    padding = padding_mask(attention_mask, like)  # (B, 1, 1, T)
    return sequence if padding is None else backend.of(like.data).xp.minimum(sequence, padding)
