"""save_pretrained and from_pretrained, in Hugging Face's format.

A folder with `config.json`, `model.safetensors` and `vocab.txt`. The weights' names are Hugging Face's; the
only difference is that a Linear's weight is stored (out, in) there and (in, out) here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from safetensors.numpy import save

from minigrad import backend
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.bert.tasks import TaskModel
from minigrad.messages import quoted, shown
from minigrad.nn import Module, parameter_shapes
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.pretrained import (
    CONFIG,
    INDEX,
    MOST_INITIALISED,
    WEIGHTS,
    Pretrained,
    json_file,
    listed,
    read_tokenizer,
    tokenizer_files,
    write_checkpoint,
)
from minigrad.training.reading import (
    LARGEST_FILE,
    SUMS,
    CheckpointError,
    ConfigError,
    StoredArray,
    is_there,
    read_array,
    read_header,
    read_json,
)

Bert = BertModel | BertForPreTraining | TaskModel  # what a checkpoint may hold

TASK = "finetuning_task"  # in config.json: transformers' name, and it lets any text stand there
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")

_HEAD = re.compile(r"(classifier|qa_outputs)\.")  # of a task
_WORDS = re.compile(r"((?:.+?\.)??)(?:bert\.)?embeddings\.word_embeddings\.weight")
# Parts that a checkpoint may lack
_OPTIONAL = re.compile(r"(bert\.)?pooler\.|cls\.|(classifier|qa_outputs)\.")
_DUPLICATE = re.compile(r"cls\.predictions\.decoder\.(weight|bias)$")  # tied, so stored once
_BUFFER = re.compile(r"\.(position_ids|token_type_ids)$")  # counts up, or zeros: no weights


# --- Saving ----------------------------------------------------------------------------------------------


def save_pretrained(model: Bert, folder: str | Path, tokenizer: WordPieceTokenizer | None = None) -> None:
    """Write a model of any of the classes here, and its vocabulary if given, into `folder`; `transformers` opens it.

    Each file is replaced atomically, and an index of weights in several files removed. SHA256SUMS comes last, so
    that files of two models, which a kill on the way would leave, are not taken for one. Raises SaveError if the
    disk is full.
    """
    write_checkpoint(folder, pretrained_files(model, tokenizer))


def pretrained_files(
    model: Bert, tokenizer: WordPieceTokenizer | None = None, task: str | None = None
) -> dict[str, bytes]:
    """The files of a checkpoint by name, without SHA256SUMS (`checksums` makes it of them).

    task: one of `examples.TASKS` that the model has learned, which `read_task` finds again.
    """
    state = {}
    for name, array in model.state_dict().items():
        array = backend.to_numpy(array)
        state[name] = np.ascontiguousarray(array.T if _is_transposed(name, array.shape) else array)
    files = {CONFIG: config_file(model, task), WEIGHTS: save(state, metadata={"format": "pt"})}
    if tokenizer is not None:
        files |= tokenizer_files(tokenizer, model.config.max_position_embeddings)
    return files


def config_file(model: Bert, task: str | None = None) -> bytes:
    """The config.json of a model. Raises ConfigError for one that could not be read again."""
    learned = {} if task is None else {TASK: task}
    content = json_file({**model.config.to_dict(), "architectures": [type(model).__name__], **learned})
    if len(content) > LARGEST_FILE:
        raise ConfigError(
            f"its {model.config.num_labels:,} labels make a {CONFIG} of {len(content) / 1e6:.0f} MB, and one of more "
            f"than {LARGEST_FILE / 1e6:.0f} MB is not read again"
        )
    return content


def _is_transposed(name: str, shape: tuple[int, ...]) -> bool:
    """Whether Hugging Face's format has this weight the other way round: each matrix but the tables of embeddings."""
    return len(shape) == 2 and not name.endswith("embeddings.weight")


# --- Loading ---------------------------------------------------------------------------------------------


def from_pretrained(
    folder: str | Path,
    kind: type = BertForPreTraining,
    id2label: dict[int, str] | None = None,
    dropout: float | None = None,
    needs: Sequence[str] = (),
) -> Pretrained:
    """The model in `folder`, in evaluation mode, on the default backend, in float32.

    kind: BertForPreTraining, BertModel or a class of `tasks`. id2label: names of classes in place of those in the
    checkpoint; where they differ, its classifier is left out, and a new one initialised. dropout: of hidden
    states and attention weights, in place of the checkpoint's. needs: prefixes of the names of weights
    without which the model is of no use here, such as "classifier.".

    Accepts names with or without the `bert.` prefix, and a wrapper's before them, such as `module.`, a checkpoint
    without heads or pooler (they stay as initialised, and a note says so), the older LayerNorm names `gamma` and
    `beta`, buffers, an absent tied decoder, and weights in several files, of 16, 32 or 64 bits. Where there is a
    SHA256SUMS, files that differ from it are refused. Raises CheckpointError naming the file for one that is
    missing, damaged or does not fit, before memory is taken for a model; ConfigError for another kind of model.
    """
    folder = Path(folder)
    config = read_config(folder)
    if dropout is not None:
        config = config.replace(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    config, found, notes, missing = _fitted(folder, config, kind, id2label, needs)
    state = {name: read_array(where) for name, where in found.items()}
    model = kind(config)
    model.load_state_dict(
        {name: array.T if _is_transposed(name, array.shape) else array for name, array in state.items()},
        strict=False,
    )
    model.eval()
    tokenizer = read_tokenizer(folder, config.vocab_size, notes)
    if tokenizer is not None and tokenizer.vocab_size < config.vocab_size and not is_there(folder / SUMS):
        notes.append(
            f"the vocabulary has {tokenizer.vocab_size} pieces, the model {config.vocab_size}: its table was padded, "
            "or the vocabulary's file was cut short"
        )
    return Pretrained(model, tokenizer, notes, missing)


def describe_checkpoint(folder: Path) -> list[str]:
    """Lines on what is in a folder, and what of it would be left out, from the heads of its files alone.

    Raises what from_pretrained raises.
    """
    config, architecture, task = read_config(folder), read_architecture(folder), read_task(folder)
    tasks = {kind.__name__: kind for kind in (BertModel, *get_args(TaskModel))}
    kind = tasks.get(architecture, BertForPreTraining)
    config, found, notes, _ = _fitted(folder, config, kind)
    tokenizer = read_tokenizer(folder, config.vocab_size, notes)
    numbers = sum(math.prod(where.shape) for where in found.values())
    dtypes = " and ".join(sorted({str(where.dtype) for where in found.values()}))
    name = shown(architecture, 60) or "model of no name"
    opened = "" if name == kind.__name__ else f", opened as {kind.__name__}"
    lines = [f"{folder}: a {name}{opened}", f"weights: {numbers:,} numbers of {dtypes}"]
    if kind.__name__ in ("BertForSequenceClassification", "BertForTokenClassification"):
        learned = f" of the task {shown(task, 40)}" if task else ""
        names = ", ".join(shown(name, 40) for name in list(config.id2label.values())[:20])
        lines.append(f"one number{learned}" if config.num_labels == 1 else f"classes{learned}: {names}")
    lines.append(_tokenizer_line(tokenizer))
    return [*lines, *(f"note: {note}" for note in notes)]


def _tokenizer_line(tokenizer: WordPieceTokenizer | None) -> str:
    if tokenizer is None:
        return "no vocabulary: without a vocab.txt or tokenizer.json it reads no text"
    letters = "in lower case" if tokenizer.lower_case else "with capitals"
    return f"vocabulary: {tokenizer.vocab_size:,} pieces, {letters}"


def _fitted(
    folder: Path,
    config: BertConfig,
    kind: type,
    id2label: dict[int, str] | None = None,
    needs: Sequence[str] = (),
) -> tuple[BertConfig, dict[str, StoredArray], list[str], list[str]]:
    """The configuration, where the weights lie that the model has, notes on all others, and what is missing."""
    stored, notes = _unwrapped(_stored_weights(folder))
    stored, left_out = _renamed(stored, kind.__name__)
    notes += left_out
    if id2label is not None and id2label != config.id2label:
        config = config.replace(id2label=id2label)
        if any(map(_HEAD.match, stored)):
            stored = {name: where for name, where in stored.items() if not _HEAD.match(name)}
            notes.append("left out: the checkpoint's classifier, whose classes are others")
    expected = _expected(lambda: kind(config))
    _check_fit(folder, expected, stored, tuple(needs))
    missing = [name for name in expected if name not in stored]
    unexpected = [name for name in stored if name not in expected]
    if missing:
        notes.append(f"not in the checkpoint, left as initialised: {listed(missing)}")
    if unexpected:
        notes.append(f"in the checkpoint, not used: {listed(unexpected)}")
    return config, {name: where for name, where in stored.items() if name in expected}, notes, missing


def read_config(folder: Path) -> BertConfig:
    """The configuration in `folder`. Raises CheckpointError or ConfigError."""
    if not is_there(folder / CONFIG):
        raise CheckpointError(f"{folder} is no checkpoint: there is no file {CONFIG} in it")
    values = read_json(folder / CONFIG)
    try:
        return BertConfig.from_dict(values)
    except ConfigError as error:
        raise ConfigError(f"{folder / CONFIG}: {error}") from None


def read_architecture(folder: Path) -> str:
    """The class of the model in `folder`, as its config.json names it; "" if it does not. Raises CheckpointError."""
    names = read_json(folder / CONFIG).get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""


def read_task(folder: Path) -> str | None:
    """The task that the model in `folder` has learned, if its config.json says so.

    Raises CheckpointError for a model whose scores mean something other than those of `tasks`.
    """
    values = read_json(folder / CONFIG)
    problem, count = values.get("problem_type"), read_config(folder).num_labels
    expected = "regression" if count == 1 else "single_label_classification"
    if problem not in (None, expected):
        raise CheckpointError(
            f"{folder / CONFIG}: problem_type is {quoted(problem)}, and num_labels {count}; expected a model that "
            "gives a text one label, or one number"
        )
    task = values.get(TASK)
    return task if isinstance(task, str) else None


def _stored_weights(folder: Path) -> dict[str, StoredArray]:
    """Where each weight lies, by the name that it has there."""
    if is_there(path := folder / INDEX):
        return _weights_of_index(path)
    if not is_there(folder / WEIGHTS):
        for name in PICKLED:
            if is_there(folder / name):
                raise CheckpointError(f"{folder} has a {name}, which can run code; convert it to {WEIGHTS}")
    return read_header(folder / WEIGHTS)


def _weights_of_index(path: Path) -> dict[str, StoredArray]:
    """Where each weight lies of those in several files, which lie beside their index."""
    index = read_json(path).get("weight_map")
    if not isinstance(index, dict) or not index:
        raise CheckpointError(f"{path} is damaged: expected weight_map to map weights to files")
    for name in index.values():
        if (
            not isinstance(name, str)
            or not name.isprintable()
            or not re.fullmatch(r"[^/\\:]{1,200}\.safetensors", name)
        ):
            raise CheckpointError(
                f"{path} is damaged: expected weight_map to map weights to files in this folder such as "
                f"model-00001-of-00002.safetensors, got {quoted(name)}"
            )
    stored: dict[str, StoredArray] = {}
    for name in sorted(set(index.values())):
        stored.update(read_header(path.with_name(name)))
    absent = sorted(set(index) - set(stored))
    if absent:
        raise CheckpointError(f"{path} names weights that no file has: {listed(absent)}")
    return stored


def _unwrapped(stored: dict[str, StoredArray]) -> tuple[dict[str, StoredArray], list[str]]:
    """The weights without what a wrapper put before their names, and a note if there was one.

    It is what stands before the one table of words: `module.` of DataParallel, `_orig_mod.` of torch.compile,
    `0.auto_model.` of sentence-transformers, or the name of an attribute. Weights without it are the wrapper's own.
    """
    prefixes = [match[1] for match in map(_WORDS.fullmatch, stored) if match]
    if len(prefixes) != 1 or not prefixes[0]:
        return stored, []
    (prefix,) = prefixes
    own = {name.removeprefix(prefix): where for name, where in stored.items() if name.startswith(prefix)}
    others = [name for name in stored if not name.startswith(prefix)]
    return own, [
        f"the model's weights have {shown(prefix, 80)} before their names"
        + (f"; left out, because they have not: {listed(others)}" if others else "")
    ]


def _renamed(stored: dict[str, StoredArray], architecture: str) -> tuple[dict[str, StoredArray], list[str]]:
    """The weights under the names that the model has, and notes on what was left out."""
    renamed, left_out = {}, []
    for name, where in stored.items():
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        own = new.removeprefix("bert.")
        if architecture != "BertModel" and re.match(r"(embeddings|encoder|pooler)\.", own):
            own = "bert." + own
        if _BUFFER.search(own) or _DUPLICATE.search(own):
            left_out.append(name)
        else:
            renamed[own] = where
    bias = stored.get("cls.predictions.decoder.bias")
    if bias is not None:
        renamed.setdefault("cls.predictions.bias", bias)
    return renamed, [f"left out, held elsewhere or no weights: {listed(left_out)}"] if left_out else []


def _expected(make: Callable[[], Module]) -> dict[str, tuple[int, ...]]:
    """The names that a model's weights have, and the shapes that they have in Hugging Face's format."""
    shapes = parameter_shapes(make)
    return {name: shape[::-1] if _is_transposed(name, shape) else shape for name, shape in shapes.items()}


def _check_fit(
    folder: Path,
    expected: Mapping[str, tuple[int, ...]],
    stored: dict[str, StoredArray],
    needs: tuple[str, ...],
) -> None:
    """Raise CheckpointError if the weights are not those of a model of these sizes, before one is made."""
    required: list[str] = []
    misfits: list[str] = []
    present = to_initialise = 0
    for name, shape in expected.items():
        where = stored.get(name)
        if where is None:
            to_initialise += math.prod(shape)
            if not _OPTIONAL.match(name) or name.startswith(needs):
                required.append(name)
        elif where.shape != shape:
            misfits.append(f"{where.path}: {shown(where.name)} is {quoted(where.shape)}, expected {shape}")
        else:
            present += math.prod(shape)
    if misfits:
        more = f" (and {len(misfits) - 1} more)" if len(misfits) > 1 else ""
        raise CheckpointError(f"the weights do not fit {CONFIG}: {misfits[0]}{more}")
    if required:
        raise CheckpointError(f"{folder}: {len(required)} weights are missing: {listed(required)}")
    if to_initialise > max(present, MOST_INITIALISED):
        raise CheckpointError(
            f"{folder}: the checkpoint has {present} numbers and lacks {to_initialise} of pooler and heads"
        )
