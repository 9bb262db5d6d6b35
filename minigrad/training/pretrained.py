"""A model as files, whichever it is: their names, its tokenizer's, and what is read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minigrad.files import write_atomic
from minigrad.messages import quoted, shown
from minigrad.text.tokenizer import WordPieceTokenizer, pieces_of
from minigrad.training.reading import SUMS, CheckpointError, checksums, is_there, read_file, read_json

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
VOCABULARY, TOKENIZER, FAST_TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"

# How tokenizer_config.json names a tokenizer whose vocabulary may be BERT's; the last two are transformers' names
# for whatever is in tokenizer.json, before version 5 and since.
TOKENIZER_CLASSES = (
    None,
    "BertTokenizer",
    "BertTokenizerFast",
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
)

# More numbers than this that a checkpoint lacks, and than it has, are those of a config.json that fills the memory.
MOST_INITIALISED = 10_000_000


@dataclass
class Pretrained:
    """A model from a checkpoint, its tokenizer (None if there is no vocabulary), and what was left out.

    missing: the weights that were not there, and stayed as initialised.
    """

    model: Any
    tokenizer: WordPieceTokenizer | None
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def write_checkpoint(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a checkpoint, by name, one after the other, and their sums. Raises SaveError."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomic(folder / name, content)
    (folder / INDEX).unlink(missing_ok=True)
    write_atomic(folder / SUMS, checksums(files))


def json_file(values: Any) -> bytes:
    """The content of a JSON file."""
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def tokenizer_files(tokenizer: WordPieceTokenizer, max_length: int | None) -> dict[str, bytes]:
    """The files of a tokenizer by name; max_length: how many tokens its model takes at most."""
    options = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokenizer.lower_case,
        "strip_accents": tokenizer.strip_accents,
        "model_max_length": max_length,
    }
    return {VOCABULARY: tokenizer.vocab_txt(), TOKENIZER: json_file(options)}


def read_tokenizer(folder: Path, vocab_size: int) -> WordPieceTokenizer | None:
    """The tokenizer of the vocabulary in `folder`, or None if there is none. Raises CheckpointError.

    The vocabulary is in `vocab.txt`, or in the `tokenizer.json` that newer versions of transformers write.
    """
    lower_case, strip_accents = _tokenizer_options(folder)
    try:
        if is_there(path := folder / VOCABULARY):
            pieces = pieces_of(read_file(path))
            tokenizer = WordPieceTokenizer(pieces, lower_case, strip_accents)
        elif is_there(path := folder / FAST_TOKENIZER):
            vocabulary = _fast_vocabulary(read_json(path))
            tokenizer = WordPieceTokenizer(vocabulary, lower_case, strip_accents)
            tokenizer.vocab_txt()  # raises UnicodeEncodeError for half of a surrogate pair, which JSON can have
        else:
            return None
    except ValueError as error:
        raise CheckpointError(f"{path} holds no vocabulary of WordPiece: {shown(str(error))}") from None
    if tokenizer.vocab_size > vocab_size:
        raise CheckpointError(f"{path} has {tokenizer.vocab_size} pieces, the model only {vocab_size}")
    return tokenizer


def _tokenizer_options(folder: Path) -> tuple[bool, bool | None]:
    """lower_case and strip_accents."""
    path = folder / TOKENIZER
    options = read_json(path) if is_there(path) else {}
    name = options.get("tokenizer_class")
    if name not in TOKENIZER_CLASSES:
        raise CheckpointError(f"{path}: tokenizer_class is {quoted(name)}, expected BertTokenizer")
    lower_case, strip_accents = options.get("do_lower_case", True), options.get("strip_accents")
    if not isinstance(lower_case, bool):
        raise CheckpointError(f"{path}: do_lower_case must be true or false, got {quoted(lower_case)}")
    if strip_accents is not None and not isinstance(strip_accents, bool):
        raise CheckpointError(
            f"{path}: strip_accents must be true, false or null, got {quoted(strip_accents)}"
        )
    return lower_case, strip_accents


def _fast_vocabulary(values: dict[str, Any]) -> dict[str, int]:
    """The pieces and their ids in a tokenizer.json. Raises ValueError."""
    model = values.get("model")
    if not isinstance(model, dict):
        raise ValueError("it has no model")
    kind = model.get("type", "BPE" if "merges" in model else "WordPiece")  # old ones do not say
    if kind != "WordPiece":
        raise ValueError(f"its model is {quoted(kind)}")
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict):
        raise ValueError("its model has no vocab that maps pieces to ids")
    return vocabulary


def listed(names: list[str]) -> str:
    """The names with commas between them; of many, the first five and how many more there are."""
    first = ", ".join(shown(name, 80) for name in names[:5])
    return first if len(names) <= 5 else f"{first} and {len(names) - 5} more"
