"""What the tests of fine-tuning share: a small BERT of the grammar's words, and stories as examples of each task."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

from minigrad import random
from minigrad.bert.checkpoint import save_pretrained
from minigrad.bert.config import BertConfig
from minigrad.bert.finetuning import Finetuning, prepare_finetuning
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.settings import FinetuningArguments
from minigrad.stories.grammar import Story
from minigrad.stories.stories import (
    STORIES,
    Pair,
    draw_pairs,
    labels,
    questions,
    story_tokenizer,
    tell_stories,
)

SETTING = STORIES["stories"]
TOKENIZER = story_tokenizer(SETTING)
CONFIG = BertConfig(
    vocab_size=TOKENIZER.vocab_size + 3,
    hidden_size=24,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=40,
    initializer_range=0.1,
)
ARGUMENTS = FinetuningArguments(
    epochs=2, batch_size=8, max_length=40, learning_rate=3e-3, log_every=2, eval_every=4, save_every=3
)


def pretrained(folder: Path) -> Path:
    """A model of random weights, saved as pre-training saves it."""
    random.manual_seed(11)
    save_pretrained(BertForPreTraining(CONFIG), folder, TOKENIZER)
    return folder


def rows(task: str, count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Stories, and what they are examples of: the kind of the thing, whether the halves belong together, …"""
    if task in ("pairs", "similarity"):
        return [_pair(task, pair) for pair in draw_pairs(SETTING, count, seed)]
    make = {"classify": _text, "regression": _rated, "qa": _question, "tag": _tags}[task]
    return [make(story) for story in tell_stories(SETTING, count, seed)]


def _pair(task: str, pair: Pair) -> dict[str, Any]:
    """Whether the halves belong together, or which share of their words they have in common, from 0 to 5."""
    first, second = ([word for sentence in half for word in sentence] for half in (pair.text_a, pair.text_b))
    share = 5 * len({*first} & {*second}) / len({*first} | {*second})
    label = ["next", "other"][pair.next_sentence_label] if task == "pairs" else round(share, 2)
    return {"text": " ".join(first), "text_pair": " ".join(second), "label": label}


def _words(story: Story) -> list[str]:
    return [word.text for sentence in story.sentences for word in sentence]


def _text(story: Story) -> dict[str, Any]:
    return {"text": " ".join(_words(story)), "label": f"kind {labels(story)['kind']}"}


def _rated(story: Story) -> dict[str, Any]:
    """A number for each kind, from 0.5 to 5.5."""
    return {"text": " ".join(_words(story)), "label": labels(story)["kind"] + 0.5}


def _question(story: Story) -> dict[str, Any]:
    asked, words = questions(story)[-1], _words(story)
    return {
        "question": asked.text,
        "context": " ".join(words),
        "answer": " ".join(words[asked.start : asked.end]),
        "answer_start": len(" ".join([*words[: asked.start], ""])),
    }


def _tags(story: Story) -> dict[str, Any]:
    kinds = {"NAME": "B-person", "NOUN": "B-thing"}
    tags = [kinds.get(word.tag, "O") for sentence in story.sentences for word in sentence]
    return {"tokens": _words(story), "tags": tags}


def write(path: Path, examples: list[dict[str, Any]]) -> Path:
    """Examples as a file of the kind that its name says."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in examples))
    else:
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(examples[0]))
            writer.writeheader()
            writer.writerows(examples)
    return path


def run_in(
    folder: Path,
    task: str = "classify",
    resume: bool = False,
    dropout: float | None = None,
    said: list[str] | None = None,
    shares: int | None = 1,
    **changes: Any,
) -> Finetuning:
    """A run in `folder/run` on 42 examples, evaluated on 10 others; its model and files are made if need be.

    said: takes what is said before the run.
    """
    if not (folder / "model").exists():
        pretrained(folder / "model")
        write(folder / "train.jsonl", rows(task, 42))
        write(folder / "dev.jsonl", rows(task, 10, seed=1))
    settings = dataclasses.replace(ARGUMENTS, **changes)
    return prepare_finetuning(
        folder / "model",
        folder / "train.jsonl",
        settings,
        folder / "run",
        evaluation=folder / "dev.jsonl",
        dropout=dropout,
        resume=resume,
        shares=shares,
        say=(said if said is not None else []).append,
    )


def remove_weights(checkpoint: Path, *names: str) -> None:
    """Take weights out of a checkpoint, as somebody who cuts a file would: without its sums."""
    path = checkpoint / "model.safetensors"
    kept = {name: array for name, array in load_file(path).items() if name not in names}
    save_file(kept, path, {"format": "pt"})
    (checkpoint / "SHA256SUMS").unlink(missing_ok=True)
