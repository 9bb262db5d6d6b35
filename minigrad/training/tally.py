"""Losses and hits added up over batches: what the tallies of all kinds of runs have in common."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from minigrad import backend, nn
from minigrad.distributed import World
from minigrad.graph import as_array
from minigrad.tensor import Array
from minigrad.training.epochs import Batch

Sums = TypeVar("Sums", bound=Any)  # a tally of any kind


class BatchTally:
    """Losses and hits added up over batches, where the model is: nothing waits for a GPU before they are read.

    names: of what the model's output is summed to, with "hits" in those that are whole numbers. Every other attribute
    counts what is in the batches, such as `tokens`.
    """

    names: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.sums: Array = np.zeros(len(self.names))
        self.tokens = 0

    def sums_of(self, output: Any, batch: Batch) -> list[Array]:
        """What one batch adds to each of `names`, from what the model made of it: arrays without axes."""
        raise NotImplementedError

    def count_batch(self, batch: Batch) -> None:
        """Count one batch, which is on the host."""
        raise NotImplementedError

    def add(self, output: Any, batch: Batch) -> None:
        """Count one batch with its targets, and what the model predicted for it."""
        self.add_sums(vector(self.sums_of(output, batch)))
        self.count_batch(batch)

    def add_sums(self, sums: Array) -> None:
        """Add what batches have come to."""
        self.sums = backend.of(sums).asarray(self.sums) + sums

    def state_dict(self) -> dict[str, float]:
        """The sums so far, without the tokens: their speed is measured afresh."""
        sums = zip(self.names, backend.to_numpy(self.sums).tolist(), strict=True)
        counts = {name: value for name, value in vars(self).items() if name not in ("sums", "tokens")}
        return {name: int(value) if "hits" in name else value for name, value in sums} | counts

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.sums = np.array([state[name] for name in self.names], np.float64)
        for name in state.keys() - set(self.names):
            setattr(self, name, state[name])


def vector(numbers: list[Array]) -> Array:
    """Arrays without axes as one of float64, where the first of them is."""
    kernels = backend.of(as_array(numbers[0]))
    return kernels.xp.stack([kernels.asarray(number, dtype="float64") for number in numbers])


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
