"""Models as the command line names them, opened, and what the reader is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minigrad.bert.checkpoint import from_pretrained, read_config
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.trained import trained_model
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.command_line import remark
from minigrad.training.folders import RunKind, read_latest
from minigrad.training.reading import CheckpointError, is_there
from minigrad.training.state import STATE, TrainingState, read_state


def chosen(model: str | None) -> str:
    """The model that was named; where none was, the one that came with the library."""
    if model is not None:
        return model
    folder = trained_model()
    remark(f"no model is named: this is the one that came with minigrad, {folder}")
    return str(folder)


def load(model: str, *needs: str, kind: type = BertForPreTraining) -> tuple[Any, WordPieceTokenizer]:
    """The model, of which the weights whose names begin so must have been trained, and its tokenizer."""
    loaded = read_latest(model, lambda folder: from_pretrained(folder, kind, needs=needs))
    for note in loaded.notes:
        remark(note)
    if loaded.tokenizer is None:
        raise CheckpointError(f"{model} has no vocab.txt, which this command needs")
    return loaded.model, loaded.tokenizer


def described(checkpoint: Path, kind: RunKind) -> tuple[Path, BertConfig, TrainingState | None]:
    """A checkpoint, its configuration, and the state of its run, if that is there."""
    state = read_state(checkpoint, kind) if is_there(checkpoint / STATE) else None
    return checkpoint, read_config(checkpoint), state
