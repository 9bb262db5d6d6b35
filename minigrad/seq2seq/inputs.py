"""What the models ask of their inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from minigrad.bert.config import IGNORED
from minigrad.bert.model import checked_mask, integers
from minigrad.seq2seq.config import Seq2SeqConfig
from minigrad.seq2seq.data import shift_right


def source(
    config: Seq2SeqConfig, input_ids: ArrayLike, attention_mask: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """input_ids (B, S) and attention_mask (B, S) on the host, the mask with ones where none is given.

    Raises TypeError for what are not integers, OutsideError for an id outside the vocabulary, ValueError for other
    shapes, for a mask of other numbers than 1 and 0, and for a row without a word.
    """
    input_ids = integers("input_ids", input_ids, limit=config.vocab_size)
    if input_ids.ndim != 2 or not input_ids.size:
        raise ValueError(f"input_ids: expected shape (batch, length), got {input_ids.shape}")
    if attention_mask is None:
        return input_ids, np.ones(input_ids.shape, np.int64)
    attention_mask = checked_mask(attention_mask, input_ids.shape)
    if not attention_mask.any(axis=1).all():
        row = int(np.argmin(attention_mask.any(axis=1)))
        raise ValueError(f"attention_mask: row {row} has padding alone, expected at least one word")
    return input_ids, attention_mask


def lengths(attention_mask: np.ndarray) -> np.ndarray:
    """How many words each row has: (B, S) -> (B,). Raises ValueError where a word comes after padding."""
    counts = attention_mask.sum(axis=1)
    behind = (attention_mask != 0) & (np.arange(attention_mask.shape[1]) >= counts[:, None])
    if behind.any():
        row = int(np.argmax(behind.any(axis=1)))
        raise ValueError(
            f"attention_mask: row {row} has a word behind padding, expected padding on the right"
        )
    return counts


def target(
    config: Seq2SeqConfig, decoder_input_ids: ArrayLike | None, labels: ArrayLike | None, batch: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """decoder_input_ids (B, T) and labels (B, T) on the host: the first made of the second where it is not given.

    Raises ValueError if neither is given or shapes do not fit, TypeError and OutsideError as `source` does, and
    ValueError if no label counts.
    """
    if labels is not None:
        labels = integers("labels", labels, limit=config.vocab_size, ignored=IGNORED)
        if labels.ndim != 2 or len(labels) != batch or not labels.size:
            raise ValueError(f"labels: expected shape ({batch}, length), got {labels.shape}")
        if (labels == IGNORED).all():
            raise ValueError(f"labels: every label is {IGNORED}, there is nothing to predict")
    if decoder_input_ids is None:
        if labels is None:
            raise ValueError("expected decoder_input_ids or labels, got neither")
        return shift_right(labels, config.start_token_id, config.pad_token_id), labels
    shape = None if labels is None else labels.shape
    ids = integers("decoder_input_ids", decoder_input_ids, shape, config.vocab_size)
    if ids.ndim != 2 or len(ids) != batch or not ids.size:
        raise ValueError(f"decoder_input_ids: expected shape ({batch}, length), got {ids.shape}")
    return ids, labels


def last_words(config: Seq2SeqConfig, last_ids: ArrayLike, rows: int) -> np.ndarray:
    """The newest word of each row, (N,), on the host. Raises as `source` does."""
    return integers("last_ids", last_ids, (rows,), config.vocab_size)
