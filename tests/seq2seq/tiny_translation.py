"""What the tests of training and translating share: three tiny models, a few stories, a run of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from minigrad import random
from minigrad.seq2seq.checkpoint import make_model
from minigrad.seq2seq.config import RecurrentConfig, Seq2SeqConfig, TransformerConfig
from minigrad.seq2seq.data import IdPair
from minigrad.seq2seq.settings import TranslationArguments
from minigrad.seq2seq.training import TranslationTraining
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.translation import draw_translations, translation_tokenizer

SETTING = SETTINGS["light"]
TOKENIZER = translation_tokenizer(SETTING)
SIZE = TOKENIZER.vocab_size
CONFIGS: dict[str, Seq2SeqConfig] = {
    "lstm": RecurrentConfig(SIZE, dropout=0.2, hidden_size=12, num_layers=2),
    "lstm-attention": RecurrentConfig(SIZE, dropout=0.2, hidden_size=12, attention="general"),
    "transformer": TransformerConfig(
        SIZE,
        dropout=0.2,
        label_smoothing=0.1,
        d_model=12,
        nhead=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dim_feedforward=20,
    ),
}
ARGUMENTS = TranslationArguments(
    steps=10,
    batch_size=4,
    max_length=64,
    learning_rate=1e-2,
    warmup_steps=2,
    log_every=2,
    eval_every=5,
    eval_translations=3,
    save_every=4,
)


def pairs(count: int = 18, seed: int = 1) -> list[IdPair]:
    """Stories and their translations as ids."""
    return [
        (TOKENIZER.token_ids(pair.source), TOKENIZER.token_ids(pair.target))
        for pair in draw_translations(SETTING, count, seed)
    ]


def translating(output: str | Path, name: str = "transformer", **changes: Any) -> TranslationTraining:
    """A run of a tiny model, or of one with some of TranslationTraining's settings changed."""
    settings = {
        "config": CONFIGS[name],
        "pairs": pairs(),
        "tokenizer": TOKENIZER,
        "held_out": pairs(5, seed=2),
        "arguments": ARGUMENTS,
        "corpus": "stories",
        "shares": 1,
    }
    return TranslationTraining(output=output, **{**settings, **changes})


def changed(**changes: Any) -> TranslationArguments:
    """ARGUMENTS with some of them changed."""
    return dataclasses.replace(ARGUMENTS, **changes)


def model(name: str, seed: int = 3) -> Any:
    """An untrained model."""
    random.manual_seed(seed)
    return make_model(CONFIGS[name]).eval()


def write_pairs(path: Path, count: int = 40, seed: int = 0) -> Path:
    """Stories as a file of two columns."""
    rows = draw_translations(SETTING, count, seed)
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in rows), encoding="utf-8")
    return path
