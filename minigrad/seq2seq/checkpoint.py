"""A model that translates as files: config.json, model.safetensors, and the tokenizer's as BERT's are.

No other library has these models, so the weights are in the file as they are here, under the names that they
have here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from minigrad import backend
from minigrad.messages import quoted, shown
from minigrad.nn import parameter_shapes
from minigrad.seq2seq.config import RecurrentConfig, Seq2SeqConfig, TransformerConfig
from minigrad.seq2seq.recurrent import RecurrentSeq2Seq
from minigrad.seq2seq.transformer import Transformer
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.folders import read_latest
from minigrad.training.pretrained import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    Pretrained,
    json_file,
    listed,
    read_tokenizer,
    tokenizer_files,
    write_checkpoint,
)
from minigrad.training.reading import (
    CheckpointError,
    ConfigError,
    StoredArray,
    is_there,
    read_array,
    read_header,
    read_json,
)

TRAIN_COMMAND = "python -m minigrad.seq2seq train"

TranslationModel = RecurrentSeq2Seq | Transformer  # what a checkpoint may hold

# The config and the model of each `model_type`.
KINDS: dict[str, tuple[type[Seq2SeqConfig], type]] = {
    RecurrentConfig.model_type: (RecurrentConfig, RecurrentSeq2Seq),
    TransformerConfig.model_type: (TransformerConfig, Transformer),
}


@dataclass
class PretrainedSeq2Seq(Pretrained):
    """A model, its tokenizer, and what was left out. max_length: the most pieces of a text that it was trained on,
    with the end token; None if that is not known."""

    max_length: int | None = None


def make_model(config: Seq2SeqConfig) -> Any:
    """A new model of these sizes, of the class that the config is for."""
    return KINDS[config.model_type][1](config)


def parameter_count(config: Seq2SeqConfig) -> int:
    """How many numbers the parameters of a model of these sizes have, without allocating them."""
    return sum(math.prod(shape) for shape in parameter_shapes(lambda: make_model(config)).values())


# --- Saving ----------------------------------------------------------------------------------------------


def save_pretrained(
    model: TranslationModel, folder: str | Path, tokenizer: WordPieceTokenizer, max_length: int | None = None
) -> None:
    """Write a model and its tokenizer into `folder`, each file whole or not at all. Raises SaveError.

    max_length: the most pieces of a text that it was trained on, with the end token.
    """
    write_checkpoint(folder, pretrained_files(model, tokenizer, max_length))


def pretrained_files(
    model: TranslationModel, tokenizer: WordPieceTokenizer, max_length: int | None = None
) -> dict[str, bytes]:
    """The files of a checkpoint by name, without SHA256SUMS."""
    state = {
        name: np.ascontiguousarray(backend.to_numpy(array)) for name, array in model.state_dict().items()
    }
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    return {
        CONFIG: json_file(config),
        WEIGHTS: save(state, metadata={"format": "minigrad"}),
        **tokenizer_files(tokenizer, max_length),
    }


# --- Loading ---------------------------------------------------------------------------------------------


def from_pretrained(folder: str | Path) -> PretrainedSeq2Seq:
    """The model in a run's folder or a checkpoint, in evaluation mode, on the default backend, in float32.

    Where there is a SHA256SUMS, files that differ from it are refused. Raises CheckpointError naming the file for one
    that is missing, damaged or does not fit, before memory is taken for a model; ConfigError for another kind of
    model.
    """
    return read_latest(folder, _read, TRAIN_COMMAND)


def _read(folder: Path) -> PretrainedSeq2Seq:
    config = read_config(folder)
    stored = read_header(folder / WEIGHTS)
    model = _model_that_fits(folder, config, stored)
    model.load_state_dict({name: read_array(where) for name, where in stored.items()})
    model.eval()
    tokenizer = read_tokenizer(folder, config.vocab_size)
    if tokenizer is not None:
        _require_the_same_ids(folder, config, tokenizer)
    return PretrainedSeq2Seq(model, tokenizer, max_length=_max_length(folder))


def read_config(folder: Path) -> Seq2SeqConfig:
    """The configuration in `folder`. Raises CheckpointError or ConfigError."""
    path = folder / CONFIG
    if not is_there(path):
        raise CheckpointError(f"{folder} is no checkpoint: there is no file {CONFIG} in it")
    values = read_json(path)
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{path}: model_type is {quoted(kind)}, expected one of {', '.join(KINDS)}")
    try:
        return KINDS[kind][0].from_dict(values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _model_that_fits(folder: Path, config: Seq2SeqConfig, stored: dict[str, StoredArray]) -> Any:
    """A new model, whose parameters have the names and shapes of what is stored. Raises CheckpointError."""
    expected = parameter_shapes(lambda: make_model(config))
    if missing := [name for name in expected if name not in stored]:
        raise CheckpointError(f"{folder}: {len(missing)} weights are missing: {listed(missing)}")
    if unexpected := [name for name in stored if name not in expected]:
        raise CheckpointError(f"{folder} has weights that no such model has: {listed(unexpected)}")
    for name, shape in expected.items():
        if stored[name].shape != shape:
            raise CheckpointError(
                f"the weights do not fit {CONFIG}: {folder / WEIGHTS}: {shown(name)} is "
                f"{quoted(stored[name].shape)}, expected {shape}"
            )
    return make_model(config)


def _require_the_same_ids(folder: Path, config: Seq2SeqConfig, tokenizer: WordPieceTokenizer) -> None:
    """Raise CheckpointError if the tokenizer's special tokens are not those of the config."""
    own = (tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id)
    theirs = (config.pad_token_id, config.start_token_id, config.end_token_id)
    if own != theirs:
        raise CheckpointError(
            f"{folder}: padding, start and end token are {own} in the vocabulary, {theirs} in {CONFIG}"
        )


def _max_length(folder: Path) -> int | None:
    """What the tokenizer's options say. Raises CheckpointError for what is no such number."""
    path = folder / TOKENIZER
    value = read_json(path).get("model_max_length") if is_there(path) else None
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 2):
        raise CheckpointError(
            f"{path}: model_max_length must be an integer of at least 2, got {quoted(value)}"
        )
    return value
