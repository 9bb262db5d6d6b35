"""Losses and hits added up over batches: what the tallies of all kinds of runs have in common."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from minigrad import nn
from minigrad.distributed import World
from minigrad.training.epochs import Batch

Sums = TypeVar("Sums", bound=Any)  # a tally of any kind


def of_all_processes(tally: Sums, world: World) -> Sums:
    """A tally with the sums of all processes; the same one, where there is one process."""
    if world.size == 1:
        return tally
    counts = {**tally.state_dict(), "tokens": tally.tokens}
    sums = zip(counts.items(), world.summed(list(counts.values())), strict=True)
    whole = type(tally)()
    whole.load_state_dict({name: type(count)(total) for (name, count), total in sums})
    return whole


def tallied(
    model: nn.Module, batches: list[Batch], tally: Any, world: World | None = None
) -> dict[str, float]:
    """The means of a tally over `batches`, without dropout; the model's mode is put back afterwards.

    world: the processes whose tallies are added up, by default this one alone.
    """
    with nn.evaluating(model), quiet_overflow():
        for batch in batches:
            tally.add(model(**batch), batch)
    return of_all_processes(tally, world or World()).means()


def quiet_overflow() -> np.errstate:
    """No NumPy warnings: losses and norms show an overflow, which is reported or handled (loss scaling)."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")
