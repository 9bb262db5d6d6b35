"""save_pretrained and from_pretrained, in Hugging Face's format.

A folder with `config.json`, `model.safetensors` and `vocab.txt`. The weights' names are Hugging Face's; the
only difference is that a Linear's weight is stored (out, in) there and (in, out) here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from minigrad import backend, nn
from minigrad.bert.config import BertConfig, ConfigError
from minigrad.bert.files import write_atomic
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.bert.tokenizer import WordPieceTokenizer

__all__ = ["CheckpointError", "Pretrained", "from_pretrained", "pretrained_files", "save_pretrained"]

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"
INDEX = "model.safetensors.index.json"
TOKENIZER, FAST_TOKENIZER = "tokenizer_config.json", "tokenizer.json"

_OPTIONAL = re.compile(r"(bert\.)?pooler\.|cls\.")  # parts that a checkpoint may lack
_DUPLICATE = re.compile(r"cls\.predictions\.decoder\.(weight|bias)$")  # tied, so stored once
_BUFFER = re.compile(r"\.(position_ids|token_type_ids)$")  # counts up, or zeros: no weights


class CheckpointError(RuntimeError):
    """A checkpoint that is missing, damaged, or of another model."""


@dataclass
class Pretrained:
    """A model from a checkpoint, its tokenizer (None if there is no vocabulary), and what was left out."""

    model: Any
    tokenizer: WordPieceTokenizer | None
    notes: list[str] = field(default_factory=list)


# --- Saving ----------------------------------------------------------------------------------------------


def save_pretrained(
    model: BertForPreTraining | BertModel, folder: str | Path, tokenizer: WordPieceTokenizer | None = None
) -> None:
    """Write the model, and its vocabulary if given, into `folder`; `transformers` opens it.

    Each file is replaced atomically. Raises SaveError if the disk is full.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pretrained_files(model, tokenizer).items():
        write_atomic(folder / name, content)


def pretrained_files(
    model: BertForPreTraining | BertModel, tokenizer: WordPieceTokenizer | None = None
) -> dict[str, bytes]:
    """The files of a checkpoint by name."""
    state = {}
    transposed = _linear_weights(model)
    for name, array in model.state_dict().items():
        array = backend.to_numpy(array)
        state[name] = np.ascontiguousarray(array.T if name in transposed else array)
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    files = {CONFIG: _json(config), WEIGHTS: save(state, metadata={"format": "pt"})}
    if tokenizer is not None:
        files[VOCABULARY] = tokenizer.vocab_txt()
        files[TOKENIZER] = _json(
            {
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": tokenizer.lower_case,
                "strip_accents": tokenizer.strip_accents,
                "model_max_length": model.config.max_position_embeddings,
            }
        )
    return files


def _json(values: Any) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def _linear_weights(model: nn.Module) -> set[str]:
    """The names of the weights that are stored the other way round in Hugging Face's format."""
    return {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}


# --- Loading ---------------------------------------------------------------------------------------------


def from_pretrained(folder: str | Path, kind: type = BertForPreTraining) -> Pretrained:
    """The model in `folder`, in evaluation mode, on the default backend, in float32.

    kind: BertForPreTraining or BertModel. Accepts names with or without the `bert.` prefix, a checkpoint
    without heads or pooler (they stay as initialised, and a note says so), the older LayerNorm names `gamma`
    and `beta`, buffers, an absent tied decoder, and weights in several files. Raises CheckpointError naming
    the file for one that is missing, damaged or does not fit, ConfigError for another kind of model.
    """
    folder = Path(folder)
    config = read_config(folder)
    model = kind(config)
    state, notes = _renamed(_read_weights(folder), list(model.state_dict()))
    transposed = _linear_weights(model)
    state = {name: array.T if name in transposed else array for name, array in state.items()}
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except ValueError as error:
        raise CheckpointError(f"{folder}: the weights do not fit {CONFIG}: {error}") from None
    required = [name for name in missing if not _OPTIONAL.match(name)]
    if required:
        raise CheckpointError(f"{folder}: {len(required)} weights are missing: {_some(required)}")
    if missing:
        notes.append(f"not in the checkpoint, left as initialised: {_some(missing)}")
    if unexpected:
        notes.append(f"in the checkpoint, not used: {_some(unexpected)}")
    model.eval()
    return Pretrained(model, read_tokenizer(folder, config), notes)


def read_config(folder: Path) -> BertConfig:
    """The configuration in `folder`. Raises CheckpointError or ConfigError."""
    values = _read_json(folder, CONFIG)
    try:
        return BertConfig.from_dict(values)
    except ConfigError as error:
        raise ConfigError(f"{folder / CONFIG}: {error}") from None


def read_tokenizer(folder: Path, config: BertConfig) -> WordPieceTokenizer | None:
    """The tokenizer of the vocabulary in `folder`, or None if there is none. Raises CheckpointError.

    The vocabulary is in `vocab.txt`, or in the `tokenizer.json` that newer versions of transformers write.
    """
    options = _read_json(folder, TOKENIZER) if (folder / TOKENIZER).exists() else {}
    lower_case, strip_accents = options.get("do_lower_case", True), options.get("strip_accents")
    if (folder / VOCABULARY).exists():
        path = folder / VOCABULARY
        tokenizer = WordPieceTokenizer.from_file(path, lower_case, strip_accents)
    elif (folder / FAST_TOKENIZER).exists():
        path = folder / FAST_TOKENIZER
        try:
            vocabulary = _read_json(folder, FAST_TOKENIZER)["model"]["vocab"]
            tokenizer = WordPieceTokenizer(vocabulary, lower_case, strip_accents)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} holds no vocabulary of WordPiece: {error}") from None
    else:
        return None
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(f"{path} has {tokenizer.vocab_size} pieces, the model only {config.vocab_size}")
    return tokenizer


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        raise CheckpointError(f"{folder} is no checkpoint: there is no file {name} in it")
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} is damaged: expected an object, got {type(values).__name__}")
    return values


def _read_weights(folder: Path) -> dict[str, np.ndarray]:
    if (folder / INDEX).exists():
        index = _read_json(folder, INDEX).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(name, str) for name in index.values()):
            raise CheckpointError(f"{folder / INDEX} is damaged: expected weight_map to map weights to files")
        state: dict[str, np.ndarray] = {}
        for name in sorted(set(index.values())):
            state.update(read_safetensors(folder / name))
        absent = sorted(set(index) - set(state))
        if absent:
            raise CheckpointError(f"{folder / INDEX} names weights that no file has: {_some(absent)}")
        return state
    if not (folder / WEIGHTS).exists() and (folder / "pytorch_model.bin").exists():
        raise CheckpointError(
            f"{folder} has a pytorch_model.bin, which can run code; convert it to {WEIGHTS}"
        )
    return read_safetensors(folder / WEIGHTS)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays in a safetensors file. Raises CheckpointError naming the file."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except (SafetensorError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged or holds no arrays that NumPy knows: {error}") from None


def _renamed(
    state: dict[str, np.ndarray], expected: Iterable[str]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The weights under the names that the model has, and notes on what was left out."""
    prefixed = any(name.startswith("bert.") for name in expected)
    renamed, left_out = {}, []
    for name, array in state.items():
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        own = new.removeprefix("bert.")
        if prefixed and re.match(r"(embeddings|encoder|pooler)\.", own):
            own = "bert." + own
        if _BUFFER.search(own) or _DUPLICATE.search(own):
            left_out.append(name)
        else:
            renamed[own] = array
    bias = state.get("cls.predictions.decoder.bias")
    if bias is not None:
        renamed.setdefault("cls.predictions.bias", bias)
    return renamed, [f"left out, held elsewhere or no weights: {_some(left_out)}"] if left_out else []


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
