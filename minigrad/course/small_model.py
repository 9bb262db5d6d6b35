"""The small BERT that is stored with the course, and the words that several pages let it guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import random
from minigrad.bert import from_pretrained
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.tokenizer import WordPieceTokenizer
from minigrad.course.chapters.start import SENTENCES
from minigrad.course.stored import stored

__all__ = ["HiddenTokens", "as_drawn", "hide_each", "small_model"]


def small_model() -> tuple[Any, WordPieceTokenizer]:
    """The trained BertForPreTraining, ready to predict, and its tokenizer."""
    loaded = from_pretrained(stored("start"))
    assert loaded.tokenizer is not None
    return loaded.model.eval(), loaded.tokenizer


def as_drawn(seed: int = 0) -> Any:
    """A BertForPreTraining of the same size before its first step; seed 0 is that of the stored run."""
    config = small_model()[0].config
    random.manual_seed(seed)
    return BertForPreTraining(config).eval()


@dataclass(frozen=True)
class HiddenTokens:
    """One sentence of L tokens, n times: in each row another of its n = L - 2 own tokens is hidden.

    ids (L,), with [CLS] and [SEP]. places (n,): of the hidden tokens. inputs (n, L): the ids with [MASK].
    """

    ids: np.ndarray
    places: np.ndarray
    inputs: np.ndarray

    def losses(self, logits: np.ndarray) -> np.ndarray:
        """-log p, in nats, of each hidden token (n,). logits: (n, L, V), or more columns where the input was padded."""
        rows = np.arange(len(self.places))
        scores = logits[rows, self.places].astype(float)  # (n, V)
        scores -= scores.max(axis=-1, keepdims=True)
        return np.log(np.exp(scores).sum(axis=-1)) - scores[rows, self.ids[self.places]]


def hide_each(tokenizer: WordPieceTokenizer, sentences: Sequence[str] = SENTENCES) -> list[HiddenTokens]:
    """For each sentence all ways to hide one token; by default of chapter 0's twelve, which were not trained on."""
    found = []
    for sentence in sentences:
        ids = np.array(tokenizer.encode(sentence).input_ids)  # (L,)
        places = np.arange(1, len(ids) - 1)  # all but [CLS] and [SEP]
        inputs = np.tile(ids, (len(places), 1))  # (n, L)
        inputs[np.arange(len(places)), places] = tokenizer.mask_token_id
        found.append(HiddenTokens(ids, places, inputs))
    return found
