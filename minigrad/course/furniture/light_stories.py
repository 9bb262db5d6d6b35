"""The light stories as `pretraining` and `scaling` train on them: the batches' sizes, and the model that reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minigrad.bert.config import PRESETS, BertConfig
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import Stories

LENGTH = 32  # tokens of a pair, at most 30 of the light stories


BATCH, DECAY = 32, 0.01


def stories() -> Stories:
    """The light stories."""
    return Stories(SETTINGS["light"])


def small_config(**changes: Any) -> BertConfig:
    """The reduced model, with four heads, the stories' words and no more positions than a pair has."""
    sizes = {
        "vocab_size": stories().tokenizer.vocab_size,
        "num_attention_heads": 4,
        "max_position_embeddings": LENGTH,
    }
    return replace(PRESETS["reduced"], **{**sizes, **changes})
