"""From sentence pairs as ids to batches: padding, labels, the decoder's input, an order for each epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minigrad.bert.config import IGNORED
from minigrad.training.epochs import Batch, Epochs

IdPair = tuple[Sequence[int], Sequence[int]]  # a source and its target, without start and end tokens
PairSource = Callable[[np.random.Generator], Sequence[IdPair]]  # what makes the pairs of an epoch

POOL = 20  # batches: pairs are sorted by length within so many


def shift_right(labels: np.ndarray, start_token_id: int, pad_token_id: int) -> np.ndarray:
    """What the decoder reads to predict `labels`: the start token, then all labels but the last.

    labels (B, T), -100 where there is nothing to predict -> (B, T), with padding in place of -100.
    """
    ids = np.full_like(labels, start_token_id)
    ids[:, 1:] = labels[:, :-1]
    return np.where(ids == IGNORED, pad_token_id, ids)


def pad_pairs(pairs: Sequence[IdPair], end_token_id: int, pad_token_id: int) -> Batch:
    """Pairs of ids as a batch, in which each source and each target gets an end token and padding on the right.

    -> input_ids (B, S), attention_mask (B, S) of 1 and 0, labels (B, T) padded with -100. S and T are what the
    longest source and the longest target need. Raises ValueError for no pairs.
    """
    if not pairs:
        raise ValueError("pad_pairs: expected at least one pair, got none")
    sources = [[*source, end_token_id] for source, _ in pairs]
    targets = [[*target, end_token_id] for _, target in pairs]
    input_ids = _rows(sources, pad_token_id)
    lengths = np.array([len(source) for source in sources])
    attention_mask = (np.arange(input_ids.shape[1]) < lengths[:, None]).astype(np.int64)
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": _rows(targets, IGNORED)}


def _rows(sequences: list[list[int]], filler: int) -> np.ndarray:
    """Sequences of ids as the rows of an array, with `filler` behind the short ones."""
    rows = np.full((len(sequences), max(map(len, sequences))), filler, np.int64)
    for row, ids in zip(rows, sequences, strict=True):
        row[: len(ids)] = ids
    return rows


class TranslationData(Epochs):
    """An endless sequence of batches, in which each epoch has an order of its own.

    pairs: the ids of sources and targets, without start and end tokens, or what makes those of each epoch anew.

    A batch is as long as its longest sentence, so sentences of about the same length go together (Vaswani et
    al. 2017, section 5.1): the shuffled pairs are cut into pools of 20 batches, each pool is sorted by length
    and cut into batches, and the batches are shuffled. Pairs that are left over at the end of an epoch are
    not used in it. Raises ValueError for no pairs, or a batch_size below 1.
    """

    def __init__(
        self,
        pairs: Sequence[IdPair] | PairSource,
        batch_size: int,
        seed: int,
        end_token_id: int,
        pad_token_id: int,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self._source, self.batch_size, self.seed = pairs, batch_size, seed
        self.end_token_id, self.pad_token_id = end_token_id, pad_token_id
        super().__init__()

    def begin_epoch(self) -> None:
        """Draw which pairs are in each batch; the batches are whole ones, or a single smaller one."""
        rng = np.random.default_rng([self.seed, 4, self.epoch])
        self.pairs = self._source(rng) if callable(self._source) else self._source
        if not self.pairs:
            raise ValueError("TranslationData: expected at least one pair, got none")
        size = self.batch_size
        self.batches_per_epoch = max(1, len(self.pairs) // size)
        order = rng.permutation(len(self.pairs))[: self.batches_per_epoch * size]
        batches = []
        for start in range(0, len(order), POOL * size):
            pool = sorted(order[start : start + POOL * size], key=self._lengths)  # equals stay shuffled
            batches += [pool[i : i + size] for i in range(0, len(pool), size)]
        self._batches = [batches[i] for i in rng.permutation(len(batches))]

    def _lengths(self, i: int) -> tuple[int, int]:
        source, target = self.pairs[i]
        return len(target), len(source)

    def batch_at(self, index: int) -> Batch:
        """A batch of pairs, as `pad_pairs` gives it."""
        chosen = [self.pairs[i] for i in self._batches[index]]
        return pad_pairs(chosen, self.end_token_id, self.pad_token_id)
