"""Settings as a table: each on a line of its own, with its default, what it is, and what it may be.

The table makes the checks, the list in the docstring and the options of the command line.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from minigrad import backend
from minigrad.bert.reading import quoted

__all__ = [
    "LARGEST_INTEGER",
    "LARGEST_NUMBER",
    "FinetuningArguments",
    "PretrainingArguments",
    "check",
    "documented",
    "setting",
]

LARGEST_INTEGER, LARGEST_NUMBER = 2**63 - 1, sys.float_info.max

Class = TypeVar("Class", bound=type)


def setting(
    default: float | str,
    help: str,
    *,
    at_least: int = 0,
    at_most: int | None = None,
    positive: bool = False,
    one_of: Sequence[str] = (),
) -> Any:
    """A line of the table: the field of a dataclass, whose kind (yes or no, integer, number, text) is its default's.

    at_least: of an integer, which must also be below 2^63, or of a number, which must also be finite. at_most: of an
    integer. positive: a number above 0. one_of: the texts that it may be.
    """
    bounds = {"at_least": at_least, "at_most": at_most, "positive": positive, "one_of": one_of}
    return dataclasses.field(default=default, metadata={"help": help, **bounds})


def check(settings: Any) -> None:
    """Raise ValueError naming the first setting that is not what its line of the table says."""
    for line in dataclasses.fields(settings):
        value = getattr(settings, line.name)
        expected = _expected(value, line)
        if expected is not None:
            raise ValueError(f"{line.name} must be {expected}, got {quoted(value)}")


def _expected(value: Any, line: dataclasses.Field[Any]) -> str | None:
    """What a value should have been, in words; None if it is that."""
    at_least, positive, one_of = (line.metadata[name] for name in ("at_least", "positive", "one_of"))
    if one_of:
        return None if value in one_of else f"one of {', '.join(one_of)}"
    if isinstance(line.default, bool):
        return None if isinstance(value, bool) else "true or false"
    whole = isinstance(line.default, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return "an integer" if whole else "a number"
    if whole and value < at_least:
        return f"at least {at_least}"
    if whole and (at_most := line.metadata["at_most"]) is not None:
        return None if value <= at_most else f"at most {at_most:,}"
    if whole:
        return None if value <= LARGEST_INTEGER else "below 2^63"
    enough = value > 0 if positive else value >= at_least  # NaN is neither
    if enough and value <= LARGEST_NUMBER:
        return None
    return f"{'positive' if positive else f'at least {at_least}'} and finite"


def documented(table: Class) -> Class:
    """The class with its table at the end of its docstring: a line for each setting."""
    lines = [
        f"{line.name}: {line.metadata['help']} (default: {line.default})"
        for line in dataclasses.fields(table)
    ]
    table.__doc__ = "\n".join([inspect.cleandoc(table.__doc__ or ""), "", *lines])
    return table


@documented
@dataclass(frozen=True)
class PretrainingArguments:
    """The settings of a run; the defaults suit the `reduced` preset (the paper's: appendix A.2).

    Raises ValueError for values that make no sense.
    """

    steps: int = setting(4000, "optimiser steps", at_least=1)
    batch_size: int = setting(32, "sentence pairs a micro-batch", at_least=1)
    max_length: int = setting(64, "tokens a pair", at_least=5)  # [CLS] A [SEP] B [SEP]
    # For hidden 128: attention forms within the run; at 1e-3 it barely does.
    learning_rate: float = setting(2e-3, "the peak", positive=True)
    warmup_steps: int = setting(300, "steps of linear rise before the linear fall")
    weight_decay: float = setting(0.01, "of AdamW, not on biases and LayerNorms")
    max_grad_norm: float = setting(1.0, "where the gradients' joint norm is clipped", positive=True)
    gradient_accumulation_steps: int = setting(1, "micro-batches a step", at_least=1)
    seed: int = setting(0, "of weights, data, masks and dropout")
    log_every: int = setting(20, "steps between rows of metrics.csv", at_least=1)
    eval_every: int = setting(500, "steps between held-out evaluations", at_least=1)
    save_every: int = setting(500, "steps between checkpoints", at_least=1)
    precision: str = setting(
        "float32",
        "what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
        one_of=backend.PRECISIONS,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps must be within 0 … steps = {self.steps}, got {self.warmup_steps}")


@documented
@dataclass(frozen=True)
class FinetuningArguments:
    """The settings of a run of fine-tuning; the defaults are within the paper's ranges (appendix A.3).

    The rate alone depends on the model: `finetuning.default_rate`.

    Raises ValueError for values that make no sense.
    """

    epochs: int = setting(3, "passes over the examples", at_least=1)
    batch_size: int = setting(32, "examples a micro-batch", at_least=1)
    max_length: int = setting(128, "tokens an example", at_least=3)
    learning_rate: float = setting(0.0, "the peak; 0 is by the model's width: 1.8e-3 at 128, 5e-5 at 768")
    warmup_share: float = setting(0.1, "share of the steps in which the rate rises, before it falls")
    weight_decay: float = setting(0.01, "of AdamW, not on biases and LayerNorms")
    max_grad_norm: float = setting(1.0, "where the gradients' joint norm is clipped", positive=True)
    gradient_accumulation_steps: int = setting(1, "micro-batches a step", at_least=1)
    frozen: bool = setting(False, "train the new layer alone, and leave the encoder as it is")
    seed: int = setting(0, "of the new layer, the order of the examples and dropout")
    log_every: int = setting(10, "steps between rows of metrics.csv", at_least=1)
    eval_every: int = setting(0, "steps between evaluations; 0 is once an epoch")
    save_every: int = setting(0, "steps between checkpoints; 0 is once an epoch")
    keep: str = setting(
        "last", "which model to keep: of the last step, or of the best accuracy", one_of=("last", "best")
    )
    precision: str = setting(
        "float32",
        "what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
        one_of=backend.PRECISIONS,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.warmup_share > 1:
            raise ValueError(f"warmup_share must be within 0 … 1, got {self.warmup_share}")
