"""Settings as a table, and the one of a run."""

from __future__ import annotations

import dataclasses
import math

import pytest

from minigrad.bert.settings import PretrainingArguments
from minigrad.training.fields import check, documented, setting

pytestmark = pytest.mark.no_arrays


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps must be at least 1"),
        ({"log_every": 0}, "log_every must be at least 1"),
        ({"eval_every": -1}, "eval_every must be at least 1"),
        ({"save_every": 0}, "save_every must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive and finite, got 0.0"),
        ({"max_grad_norm": -1.0}, "max_grad_norm must be positive"),
        ({"learning_rate": math.inf}, "learning_rate must be positive and finite, got inf"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 2**63}, "seed must be below 2\\^63, got 9223372036854775808"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0 and finite, got -0.1"),
        ({"weight_decay": math.inf}, "weight_decay must be at least 0 and finite"),
        ({"steps": 5, "warmup_steps": 6}, "warmup_steps must be within 0 … steps = 5, got 6"),
        ({"warmup_steps": -1}, "warmup_steps must be at least 0, got -1"),
        ({"max_length": 4}, "max_length must be at least 5, got 4"),
        ({"steps": 2.0}, "steps must be an integer, got 2.0"),
        ({"batch_size": True}, "batch_size must be an integer, got True"),
        ({"learning_rate": None}, "learning_rate must be a number, got None"),
        ({"precision": "half"}, "precision must be one of float32, bfloat16, float16, got 'half'"),
    ],
)
def test_arguments_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        PretrainingArguments(**{"steps": 10, "warmup_steps": 2, **changes})


def test_the_largest_and_the_smallest_that_make_sense():
    PretrainingArguments(steps=2**63 - 1, seed=2**63 - 1, learning_rate=5e-324, weight_decay=0, max_length=5)
    PretrainingArguments(steps=1, warmup_steps=1, seed=0, max_grad_norm=1.7e308, weight_decay=1)


def test_the_docstring_lists_each_setting():
    lines = (PretrainingArguments.__doc__ or "").splitlines()
    assert lines[0].startswith("The settings of a run; ")
    assert "steps: optimiser steps (default: 4000)" in lines
    names = [line.partition(":")[0] for line in lines[-len(dataclasses.fields(PretrainingArguments)) :]]
    assert names == [field.name for field in dataclasses.fields(PretrainingArguments)]


@documented
@dataclasses.dataclass(frozen=True)
class Table:
    """A table."""

    count: int = setting(3, "how many")
    rate: float = setting(0.5, "how fast", at_least=-1)
    kind: str = setting("a", "which", one_of=("a", "b"))


def test_a_table_of_its_own():
    assert Table.__doc__ == (
        "A table.\n\ncount: how many (default: 3)\nrate: how fast (default: 0.5)\nkind: which (default: a)"
    )
    assert (Table.count, Table().rate, Table(4).count) == (3, 0.5, 4)
    check(Table(0, -1, "b"))
    for values, message in (
        ((-1, 0, "a"), "count must be at least 0, got -1"),
        ((0, -1.5, "a"), "rate must be at least -1 and finite, got -1.5"),
        ((0, 0, "c"), "kind must be one of a, b, got 'c'"),
        ((-1, -2, "c"), "count must be at least 0"),  # the first
    ):
        with pytest.raises(ValueError, match=message):
            check(Table(*values))
