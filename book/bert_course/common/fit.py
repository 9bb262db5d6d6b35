"""Fine-tuning as several chapters do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minigrad import backend, optim
from minigrad.bert.features import Features, TaskData
from minigrad.bert.training import parameter_groups
from minigrad.nn import Module
from minigrad.tensor import Tensor

BATCH, DECAY, WARMUP_SHARE = 16, 0.01, 0.1


def fine_tune(model: Any, examples: Sequence[Features], rate: float, steps: int, seed: int) -> None:
    """As BERT is fine-tuned: AdamW, a linear warm-up for a tenth of the steps, then a linear fall to 0."""
    for _ in fine_tuning(model, examples, rate, steps, seed):
        pass


def fine_tuning(
    model: Any, examples: Sequence[Features], rate: float, steps: int, seed: int
) -> Iterator[float]:
    """The same, step by step: the loss of each."""
    data = TaskData(list(examples), BATCH, seed, model.config.pad_token_id)
    optimizer = optim.AdamW(parameter_groups(model, DECAY), lr=rate, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, round(WARMUP_SHARE * steps), steps)
    backend.of(next(model.parameters()).data).keep_freed_memory()
    model.train()
    for _ in range(steps):
        loss = model(**data.next_batch()).loss
        descend(model, loss, optimizer, schedule)
        yield loss.item()
    model.eval()


def descend(model: Module, loss: Tensor | None, optimizer: optim.Optimizer, schedule: optim.Schedule) -> None:
    """One step: the gradients of a loss, cut to a joint norm of 1, then the optimiser's move and the next rate."""
    assert loss is not None
    optimizer.zero_grad()
    loss.backward()
    optim.clip_grad_norm(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
