"""Pre-training on stories whose best possible loss is known, as BERT is and with one thing changed: `pretraining`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bert_course.common.light_stories import CHOSEN, batches, pretrain, small_config
from bert_course.common.light_stories import LENGTH as LENGTH
from bert_course.common.light_stories import stories as stories
from minigrad import ops, random
from minigrad.bert.attention import BertSelfAttention
from minigrad.bert.embeddings import BertEmbeddings
from minigrad.bert.encoder import BertLayer
from minigrad.bert.model import BertForPreTraining
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import Stories, draw_pairs
from minigrad.tensor import Array, Tensor
from minigrad.text.sentences import SentencePair
from minigrad.training.epochs import Batch

WARMUP = 300
FEW = 1000  # stories, where there are few


# --- One thing changed -----------------------------------------------------------------------------------


Projected = tuple[Tensor, Tensor, Tensor]  # queries, keys and values, (B, T, H) each


def _unscaled(q: Tensor, k: Tensor, v: Tensor, d_k: int) -> Projected:
    """Scores without 1/√d_k: the queries are √d_k times as long, which undoes the scale."""
    return q * math.sqrt(d_k), k, v


def _keys_are_values(q: Tensor, k: Tensor, v: Tensor, d_k: int) -> Projected:
    """K = Z W^V, as our copy of the formulas has it."""
    return q, v, v


def _keys_are_queries(q: Tensor, k: Tensor, v: Tensor, d_k: int) -> Projected:
    """K = Q: what a asks of b, b asks of a."""
    return q, q, v


def _even(q: Tensor, k: Tensor, v: Tensor, d_k: int) -> Projected:
    """Every token gives each token the same weight, with queries of zeros."""
    return q * 0, k, v


class _SecondResidual(BertLayer):
    """The second Add & Norm adds what went into the layer, as the walk-through writes it."""

    def forward(self, x: Tensor, mask: Array | None, rows: Array | None = None) -> Tensor:
        """As in the library, but the residual connection of the second half begins before the first."""
        between = self.attention(x, mask, rows)
        if rows is not None:
            x = x.reshape(-1, x.shape[-1])[rows]
        return self.output(self.intermediate(between), x)


class _OneSegment(BertEmbeddings):
    """A and B alike."""

    def forward(self, input_ids: Array, token_type_ids: Array) -> Tensor:
        """As in the library, with all tokens in segment 0."""
        return super().forward(input_ids, np.zeros_like(token_type_ids))


class _NoPositions(BertEmbeddings):
    """Token and segment alone."""

    def forward(self, input_ids: Array, token_type_ids: Array) -> Tensor:
        """As in the library, without the table of positions."""
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(x))


def _layers_as(kind: type[BertLayer], model: BertForPreTraining) -> None:
    for layer in model.bert.encoder.layer:
        layer.__class__ = kind  # the same weights, another forward


def _attention_as(change: Callable[..., Projected], model: BertForPreTraining) -> None:
    class Changed(BertSelfAttention):
        def forward(self, x: Tensor, mask: Array | None) -> Tensor:
            """As in the library, without dropout, with other projections: x (B, T, H) -> (B, T, H)."""
            changed = change(self.query(x), self.key(x), self.value(x), x.shape[-1] // self.heads)
            q, k, v = (self.split_heads(part) for part in changed)
            z = ops.scaled_dot_product_attention(q, k, v, mask)  # (B, A, T, d_k)
            return z.permute(0, 2, 1, 3).reshape(*x.shape)

    layers: Any = model.bert.encoder.layer
    for layer in layers:
        layer.attention.self.__class__ = Changed


def _embeddings_as(kind: type[BertEmbeddings], model: BertForPreTraining) -> None:
    model.bert.embeddings.__class__ = kind


class _Few(Stories):
    """The same FEW pairs in every epoch."""

    def pairs(self, max_length: int, rng: np.random.Generator) -> list[SentencePair]:
        """The pairs."""
        return [self.encode(pair, max_length) for pair in draw_pairs(self.setting, FEW, seed=1)]


def _as_drawn(model: BertForPreTraining) -> None:
    """Nothing is changed."""


@dataclass(frozen=True)
class Variant:
    """What is changed: sizes in the configuration, the model as drawn, the stories, and what is asked of the model.

    pairs: whether next-sentence prediction is a task. chosen: the share of the tokens that it must guess.
    """

    config: dict[str, Any] = field(default_factory=dict)
    change: Callable[[BertForPreTraining], None] = _as_drawn
    stories: type[Stories] = Stories
    pairs: bool = True
    chosen: float = CHOSEN


VARIANTS = {
    "BERT": Variant(),
    "no scale": Variant(change=partial(_attention_as, _unscaled)),
    "K = V": Variant(change=partial(_attention_as, _keys_are_values)),
    "K = Q": Variant(change=partial(_attention_as, _keys_are_queries)),
    "even attention": Variant(change=partial(_attention_as, _even)),
    "second residual": Variant(change=partial(_layers_as, _SecondResidual)),
    "no positions": Variant(change=partial(_embeddings_as, _NoPositions)),
    "one segment": Variant(change=partial(_embeddings_as, _OneSegment)),
    "one head": Variant(config={"num_attention_heads": 1}),
    "no NSP": Variant(pairs=False),
    "dropout 0.1": Variant(config={"hidden_dropout_prob": 0.1}),
    "few stories": Variant(stories=_Few),
    "5 % chosen": Variant(chosen=0.05),
    "40 % chosen": Variant(chosen=0.4),
}


# --- Training --------------------------------------------------------------------------------------------


def model_of(variant: Variant, seed: int) -> BertForPreTraining:
    """The model as drawn."""
    random.manual_seed(seed)
    model = BertForPreTraining(small_config(**variant.config))
    variant.change(model)
    return model


def train(
    variant: Variant, seed: int, rate: float, steps: int, points: Sequence[int]
) -> Iterator[tuple[int, BertForPreTraining]]:
    """Train for so many steps; stops at each of `points` and gives the step and the model, which may be asked there.

    The loss of both tasks, a warm-up of WARMUP steps, and else as `pretrain` does.
    """
    model = model_of(variant, seed)
    data = batches(variant.stories(SETTINGS["light"]), seed, variant.chosen)

    def loss(batch: Batch) -> Tensor | None:
        output = model(**batch)
        return output.loss if variant.pairs else output.mlm_loss

    for step in pretrain(model, loss, data, rate, steps, min(WARMUP, steps), points):
        yield step, model
