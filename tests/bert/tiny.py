"""What the tests of data and training share: a BERT of one layer, a text of topics, a vocabulary of its words."""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.bert.config import BertConfig
from minigrad.bert.data import PretrainingData, TokenDocument, encode_documents
from minigrad.bert.pretraining import Pretraining
from minigrad.bert.settings import PretrainingArguments
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS
from minigrad.training.epochs import Batch
from minigrad.training.loop import Training

TOPICS, WORDS = 8, 8  # words of a topic occur in no other

SMALL = BertConfig(
    vocab_size=41,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=16,
)
CONFIG = BertConfig(
    vocab_size=80,  # more than the vocabulary has, as in published models
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)
ARGUMENTS = PretrainingArguments(
    steps=10,
    batch_size=4,
    max_length=16,
    learning_rate=1e-2,
    warmup_steps=2,
    log_every=2,
    eval_every=5,
    save_every=4,
)


@functools.cache
def tokenizer() -> WordPieceTokenizer:
    """A tokenizer that knows each word of `texts` whole."""
    words = [word(topic, number) for topic in range(TOPICS) for number in range(WORDS)]
    return WordPieceTokenizer([*SPECIAL_TOKENS, *words])


def word(topic: int, number: int) -> str:
    """A word of letters only."""
    return "bcdfghjk"[topic] + "ai"[number // 4] + "lmnp"[number % 4]


def texts(count: int = 30, seed: int = 0) -> list[list[str]]:
    """Documents of eight sentences, each document about one topic."""
    rng = np.random.default_rng(seed)
    return [
        [" ".join(word(number % TOPICS, i) for i in rng.integers(0, WORDS, 5)) for _ in range(8)]
        for number in range(count)
    ]


@functools.cache
def documents(count: int = 30, seed: int = 0) -> list[TokenDocument]:
    """`texts` as ids: the same list each time, to be read alone."""
    return encode_documents(texts(count, seed), tokenizer())


@functools.cache
def held_out_batch() -> Batch:
    """One batch of other texts."""
    return PretrainingData(documents(6, seed=1), tokenizer(), 4, 16, seed=1).next_batch()


def pretraining(
    output: str | Path, arguments: PretrainingArguments = ARGUMENTS, **changes: Any
) -> Pretraining:
    """A run of the tiny model, or of one with some of Pretraining's settings changed."""
    settings = {
        "config": CONFIG,
        "documents": documents(),
        "tokenizer": tokenizer(),
        "held_out": [held_out_batch()],
        "corpus": "topics",
        "shares": 1,  # so tiny a step is Python's time, which threads do not share: two take twice as long
    }
    return Pretraining(output=output, arguments=arguments, **{**settings, **changes})


# --- Runs and what they leave ----------------------------------------------------------------------------


def changed(**changes: Any) -> PretrainingArguments:
    """ARGUMENTS with some of them changed."""
    return dataclasses.replace(ARGUMENTS, **changes)


def before_step(run: Training, number: int, action: Callable[[], object]) -> None:
    """Let a run do something else before it makes this step."""
    train_step = run.train_step

    def step(tally):
        if run.step == number - 1:
            action()
        return train_step(tally)

    run.train_step = step  # type: ignore[method-assign]


def kill_at(run: Any, step: int, of: Any, name: str, call: int = 1) -> None:
    """Let SIGKILL end this process after so many steps, before a function is called for the so-manieth time."""
    true, calls = getattr(of, name), []

    def function(*args: Any, **kwargs: Any) -> Any:
        if run.step == step:
            calls.append(args)
            if len(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
        return true(*args, **kwargs)

    setattr(of, name, function)


def quietly(run: Training) -> list[str]:
    """Run, and return what it reported."""
    lines: list[str] = []
    run.run(lines.append)
    return lines


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def without_speed(path: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv, of which the speed alone may differ."""
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in table(path)]


def checkpoints(folder: Path) -> list[str]:
    """The names of what is a checkpoint, or was to become one."""
    return sorted(path.name for path in folder.glob("checkpoint-*"))


def contents(folder: Path) -> dict[str, bytes]:
    """The files in a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same_run(run: Path, other: Path, last: str = "checkpoint-000010") -> None:
    """Hold a run that was stopped on its way against one that was not: its last checkpoint and its tables."""
    mine, expected = contents(run / last), contents(other / last)
    assert sorted(mine) == sorted(expected)
    assert [name for name in expected if mine[name] != expected[name]] == []
    for name in ("metrics.csv", "evaluation.csv"):
        assert without_speed(run / name) == without_speed(other / name)
