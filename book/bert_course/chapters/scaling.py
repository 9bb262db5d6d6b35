"""Models of several sizes, trained on several amounts of text whose best possible loss is known: chapter `scaling`.

The text is the light stories of `pretraining`, the task is the hidden words alone. The loss of a model is its expected
loss on one hidden word (`hidden_words`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bert_course.common.hidden_words import questions as questions
from bert_course.common.hidden_words import score as score
from bert_course.common.light_stories import batches, pretrain, small_config, stories
from minigrad import random
from minigrad.bert.config import BertConfig
from minigrad.bert.data import PretrainingData
from minigrad.bert.model import BertForPreTraining
from minigrad.stories.stories import STORIES_AN_EPOCH, Stories, draw_pairs
from minigrad.text.sentences import SentencePair

LAYERS, HEAD = 2, 16  # layers of every model, and the width of each head
WARMUP_SHARE = 0.1  # of the steps


def config_of(width: int) -> BertConfig:
    """A model of this width: two layers, heads of 16 features, a feed-forward layer four times as wide."""
    return small_config(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=LAYERS,
        num_attention_heads=width // HEAD,
    )


def layer_parameters(config: BertConfig) -> int:
    """The parameters of the layers, without embeddings and heads: 12 d² + 13 d a layer, where d_ff is 4 d."""
    d, d_ff = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * (4 * d * (d + 1) + d_ff * (d + 1) + d * (d_ff + 1) + 4 * d)


# --- The text --------------------------------------------------------------------------------------------


class _Fixed(Stories):
    """The same pairs again and again, in another order and masked anew each time."""

    count: int

    def pairs(self, max_length: int, rng: np.random.Generator) -> list[SentencePair]:
        """At least as many as an epoch of fresh pairs has, so that no batch is cut short."""
        once = [self.encode(pair, max_length) for pair in draw_pairs(self.setting, self.count, seed=1)]
        times = -(-STORIES_AN_EPOCH // len(once))
        order = np.concatenate([rng.permutation(len(once)) for _ in range(times)])
        return [once[i] for i in order]


def batches_of(pairs: int | None, seed: int) -> PretrainingData:
    """Endless batches of BATCH pairs: fresh ones, or (pairs) so many fixed ones."""
    source: Stories = stories()
    if pairs is not None:
        source = _Fixed(source.setting)
        source.count = pairs
    return batches(source, seed)


# --- Training --------------------------------------------------------------------------------------------


def train(
    width: int, pairs: int | None, rate: float, steps: int, seed: int, points: Sequence[int]
) -> Iterator[tuple[int, BertForPreTraining]]:
    """Train for so many steps; stops at each of `points` and gives the step and the model, which may be asked there.

    The loss of the hidden words, a warm-up over a tenth of the steps, and else as `pretrain` does.
    """
    random.manual_seed(seed)
    model = BertForPreTraining(config_of(width))
    data = batches_of(pairs, seed)
    warmup = max(1, round(WARMUP_SHARE * steps))
    for step in pretrain(model, lambda batch: model(**batch).mlm_loss, data, rate, steps, warmup, points):
        yield step, model
