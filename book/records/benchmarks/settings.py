"""What is measured: the configurations, the batch, and the training settings that all contestants share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minigrad.bert.config import IGNORED, PRESETS, BertConfig
from minigrad.training.epochs import Batch


@dataclass(frozen=True)
class Settings:
    """Of the optimiser (AdamW) and the clipping."""

    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01  # not on biases and LayerNorms
    max_grad_norm: float = 1.0


SETTINGS = Settings()


@dataclass(frozen=True)
class Case:
    """A configuration on a batch of `batch` sequences of `length` tokens.

    rounds: how many turns each contestant takes. steps: how many steps a turn has. devices: where it is run. bit_steps:
    after how many steps bits are compared, on a GPU.
    """

    config: BertConfig
    batch: int
    length: int
    rounds: int = 15
    steps: int = 3
    devices: tuple[str, ...] = ("cpu", "cuda")
    bit_steps: int = 200

    def describe(self) -> str:
        """One line for the reader."""
        c = self.config
        return (
            f"{self.batch} x {self.length}, {c.num_hidden_layers} layers, hidden {c.hidden_size}, "
            f"{c.num_attention_heads} heads, vocabulary {c.vocab_size:,}"
        )


_SMALL = BertConfig(
    vocab_size=8192, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
)
CASES = {
    "reduced": Case(
        PRESETS["reduced"].replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1), 32, 64
    ),
    "small": Case(_SMALL, 16, 128),
    "base": Case(PRESETS["base"], 4, 128, rounds=5, steps=1, devices=("cpu",)),
    "base-32x128": Case(PRESETS["base"], 32, 128, steps=5, devices=("cuda",), bit_steps=50),
    "base-8x512": Case(PRESETS["base"], 8, 512, steps=5, devices=("cuda",), bit_steps=50),
}


def make_batch(config: BertConfig, batch: int, length: int) -> Batch:
    """A batch as pre-training sees it: 15 % of each row chosen, a few rows with some padding."""
    rng = np.random.default_rng(0)
    input_ids = rng.integers(5, config.vocab_size, (batch, length))
    attention_mask = np.ones((batch, length), np.int64)
    attention_mask[::4, -length // 8 :] = 0
    order = np.where(attention_mask, rng.random((batch, length)), 2).argsort(axis=1).argsort(axis=1)
    chosen = order < np.rint(0.15 * attention_mask.sum(axis=1, keepdims=True))
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": np.tile((np.arange(length) > length // 2).astype(np.int64), (batch, 1)),
        "labels": np.where(chosen, input_ids, IGNORED),
        "next_sentence_label": rng.integers(0, 2, batch),
    }
