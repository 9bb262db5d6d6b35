"""The light stories as several chapters train on them: the batches, and the model that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bert_course.common.fit import descend
from minigrad import backend, optim
from minigrad.bert.config import IGNORED, PRESETS, BertConfig
from minigrad.bert.data import PretrainingData, mask_tokens
from minigrad.bert.training import parameter_groups
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import Stories
from minigrad.tensor import Tensor
from minigrad.training.epochs import Batch

LENGTH = 32  # tokens of a pair, at most 30 of the light stories
LENGTHS = {4: LENGTH, 12: 88}  # by the sentences of a story
BATCH, DECAY = 32, 0.01
CHOSEN = 0.15  # the share of the tokens that BERT must guess


def stories(sentences: int = 4) -> Stories:
    """The light stories, or the same told in more sentences."""
    return Stories(replace(SETTINGS["light"], sentences=(sentences,)))


def small_config(**changes: Any) -> BertConfig:
    """The reduced model, with four heads, the stories' words and no more positions than a pair has."""
    sizes = {
        "vocab_size": stories().tokenizer.vocab_size,
        "num_attention_heads": 4,
        "max_position_embeddings": LENGTH,
    }
    return replace(PRESETS["reduced"], **{**sizes, **changes})


class _Chosen(PretrainingData):
    """Batches in which another share of the tokens than 15 % is chosen; set `share`."""

    share: float

    def next_batch(self) -> Batch:
        """The same texts as in the library, masked anew."""
        batch = super().next_batch()
        read = np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])
        rng = np.random.default_rng([self.seed, 4, self.epoch, self.index])
        masked, labels = mask_tokens(read, self.tokenizer, rng, self.share)
        return batch | {"input_ids": masked, "labels": labels}


def batches(source: Stories, seed: int, chosen: float = CHOSEN, length: int = LENGTH) -> PretrainingData:
    """Endless batches of BATCH pairs of `length` tokens; chosen: the share of the tokens to be guessed."""
    if chosen == CHOSEN:
        return PretrainingData(source, source.tokenizer, BATCH, length, seed)
    data = _Chosen(source, source.tokenizer, BATCH, length, seed)
    data.share = chosen
    return data


def pretrain(
    model: Any,
    loss: Callable[[Batch], Tensor | None],
    data: PretrainingData,
    rate: float,
    steps: int,
    warmup: int,
    points: Sequence[int],
) -> Iterator[int]:
    """Train for so many steps, and stop at each of `points`, 0 among them or not, where the model may be asked.

    loss: of the model on a batch. AdamW with weight decay on the matrices, gradients clipped at norm 1, a linear
    warm-up to `rate`, then a linear fall to 0 at the last step.
    """
    optimizer = optim.AdamW(parameter_groups(model, DECAY), lr=rate, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, warmup, steps)
    backend.of(next(model.parameters()).data).keep_freed_memory()
    if 0 in points:
        yield 0
    for step in range(1, steps + 1):
        model.train()
        descend(model, loss(data.next_batch()), optimizer, schedule)
        if step in points:
            yield step
