"""The settings of a run, and what its checkpoints know of it: `training.json`."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minigrad import backend
from minigrad.bert.reading import CheckpointError, read_json
from minigrad.bert.runs import FIGURES, step_of

__all__ = ["STATE", "PretrainingArguments", "TrainingState", "read_state"]

STATE = "training.json"
LARGEST_INTEGER, LARGEST_NUMBER = 2**63 - 1, sys.float_info.max


@dataclass(frozen=True)
class PretrainingArguments:
    """The settings of a run; the defaults suit the `reduced` preset (the paper's: appendix A.2).

    steps: optimiser steps. batch_size: sentence pairs a micro-batch. gradient_accumulation_steps: micro-batches
    a step. max_length: tokens a pair. learning_rate: the peak. warmup_steps: of linear rise; the fall to 0 is
    linear too. weight_decay: not on biases and LayerNorms. max_grad_norm: where the joint norm is clipped.
    seed: of weights, data, masks and dropout. log_every, eval_every, save_every: in steps. precision: what the
    products of training round to (`backend.default_matmul_precision`), with loss scaling if it is float16.

    Raises ValueError for values that make no sense.
    """

    steps: int = 4000
    batch_size: int = 32
    max_length: int = 64
    learning_rate: float = 2e-3  # for hidden 128: attention forms within the run; at 1e-3 it barely does
    warmup_steps: int = 300
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    gradient_accumulation_steps: int = 1
    seed: int = 0
    log_every: int = 20
    eval_every: int = 500
    save_every: int = 500
    precision: str = "float32"

    def __post_init__(self) -> None:
        whole = (
            "steps",
            "batch_size",
            "gradient_accumulation_steps",
            "log_every",
            "eval_every",
            "save_every",
        )
        for name in whole:
            if not 1 <= getattr(self, name) <= LARGEST_INTEGER:
                limit = "at least 1" if getattr(self, name) < 1 else "below 2^63"
                raise ValueError(f"{name} must be {limit}, got {getattr(self, name)}")
        if self.precision not in backend.PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(backend.PRECISIONS)}, got {self.precision!r}"
            )
        for name in ("learning_rate", "max_grad_norm"):
            if not 0 < getattr(self, name) <= LARGEST_NUMBER:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not 0 <= self.weight_decay <= LARGEST_NUMBER:
            raise ValueError(f"weight_decay must be at least 0 and finite, got {self.weight_decay}")
        if not 0 <= self.seed <= LARGEST_INTEGER:
            raise ValueError(f"seed must be at least 0 and below 2^63, got {self.seed}")
        if not 0 <= self.warmup_steps <= self.steps:
            raise ValueError(f"warmup_steps must be within 0 … steps = {self.steps}, got {self.warmup_steps}")


# --- Checks ----------------------------------------------------------------------------------------------

Check = tuple[str, Callable[[Any], bool]]  # what is expected, in words, and whether a value is that
Checks = dict[str, "Check | Checks"]


def _is_number(value: Any) -> bool:
    """Whether it is a finite number. (True and False are integers to Python; NaN is no larger than anything.)"""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_INTEGER


WHOLE: Check = ("an integer of at least 0", _is_whole)
NUMBER: Check = ("a finite number", _is_number)
POSITIVE: Check = ("a positive number", lambda value: _is_number(value) and value > 0)
TEXT: Check = ("a text", lambda value: isinstance(value, str))
OBJECT: Check = ("an object", lambda value: isinstance(value, dict))
SHARE: Check = (
    "a share of 0 … 1, or null",
    lambda value: value is None or (_is_number(value) and 0 <= value <= 1),
)

STATE_CHECKS: Checks = {
    "step": WHOLE,
    "optimizer_steps": WHOLE,
    "scaler": {"scale": POSITIVE, "steps_since": WHOLE},
    "random": {"seed": WHOLE, "draws": WHOLE},
    "data": {"epoch": WHOLE, "index": WHOLE},
    "tally": {
        **dict.fromkeys(("mlm_loss", "nsp_loss"), NUMBER),
        **dict.fromkeys(("mlm_hits", "nsp_hits", "masked", "pairs"), WHOLE),
    },
    "arguments": {
        field.name: {int: WHOLE, float: NUMBER, str: TEXT}[type(field.default)]
        for field in dataclasses.fields(PretrainingArguments)
    },
    "corpus": TEXT,
    "held_out": SHARE,
    "held_out_text": TEXT,
    "evaluation": OBJECT,
    "environment": (
        "an object of texts",
        lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
    ),
}


@dataclass(frozen=True)
class TrainingState:
    """`training.json`: all that goes on at the next step, beside weights and moments, and what to hold it against.

    optimizer_steps: fewer than steps, where loss scaling left some out. scaler, random, data, tally: where each of
    them is. corpus, held_out_text: fingerprints of both parts of the text. held_out: the share that was held out,
    if known. evaluation: the last held-out figures, if any. environment: `runs.environment()`.
    """

    step: int
    optimizer_steps: int
    scaler: dict[str, Any]
    random: dict[str, int]
    data: dict[str, int]
    tally: dict[str, Any]
    arguments: dict[str, Any]
    corpus: str
    held_out: float | None
    held_out_text: str
    evaluation: dict[str, float]
    environment: dict[str, str]


def read_state(checkpoint: Path) -> TrainingState:
    """The state of the run in a checkpoint, each value checked. Raises CheckpointError naming the one that is wrong."""
    path = checkpoint / STATE
    values = read_json(path)
    _check(path, values, STATE_CHECKS)
    if values["evaluation"]:
        _check(path, values["evaluation"], dict.fromkeys(FIGURES, NUMBER), "evaluation.")
    state = TrainingState(**{field.name: values[field.name] for field in dataclasses.fields(TrainingState)})
    try:
        names = [field.name for field in dataclasses.fields(PretrainingArguments)]
        arguments = PretrainingArguments(**{name: state.arguments[name] for name in names})
    except ValueError as error:
        raise CheckpointError(f"{path}: arguments: {error}") from None
    if re.fullmatch(r"checkpoint-[0-9]+", checkpoint.name) and state.step != step_of(checkpoint):
        raise CheckpointError(
            f"{path}: step: expected {step_of(checkpoint)}, as its folder says, got {state.step}"
        )
    if state.step > arguments.steps:
        raise CheckpointError(f"{path}: step: expected at most {arguments.steps}, got {state.step}")
    fewest = 0 if arguments.precision == "float16" else state.step  # only loss scaling leaves steps out
    if not fewest <= state.optimizer_steps <= state.step:
        raise CheckpointError(
            f"{path}: optimizer_steps: expected {fewest} … {state.step}, got {state.optimizer_steps}"
        )
    return state


def _check(path: Path, values: dict[str, Any], checks: Checks, within: str = "") -> None:
    for name, check in checks.items():
        expected, fits = check if isinstance(check, tuple) else OBJECT
        if name not in values:
            raise CheckpointError(f"{path}: {within}{name}: is missing; was it saved by another version?")
        if not fits(values[name]):
            got = json.dumps(values[name])
            got = got if len(got) <= 40 else got[:40] + " …"
            raise CheckpointError(f"{path}: {within}{name}: expected {expected}, got {got}")
        if isinstance(check, dict):
            _check(path, values[name], check, f"{within}{name}.")
