"""The exercises as data: for each a right answer, cases, the typical mistakes with their sentences, and hints."""

from __future__ import annotations

import importlib

# The order of the course, which is the order of `check.progress()`.
for _stem in (
    "arrays",
    "reverse_mode",
    "modules",
    "optimisers",
    "wordpiece",
    "embeddings",
    "positions",
    "one_head",
    "many_heads",
    "masking",
    "feed_forward",
    "add_and_norm",
    "encoder",
    "assembly",
    "hidden_words",
    "sentence_pairs",
    "pretraining",
    "fine_tuning",
    "looking_inside",
    "seq2seq",
    "decoder_attention",
    "transformer",
    "decoding",
    "features",
    "numbers",
    "step_cost",
    "fast",
    "scaling",
    "machines",
):
    importlib.import_module(f"{__name__}.{_stem}")
