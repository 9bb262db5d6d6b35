"""An endless sequence of batches: epoch after epoch, with a position that can be saved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

Batch = dict[str, np.ndarray]


class Epochs:
    """An endless sequence of batches, which a subclass defines by `begin_epoch` and `batch_at`.

    A subclass ensures that an epoch depends on (seed, epoch) alone, and a batch on (seed, epoch, index): then
    the position is two integers (`state_dict`), and a resumed run sees what an uninterrupted one would have.
    The `__init__` of a subclass ends with this one, which begins the first epoch.
    """

    epoch: int
    index: int
    batches_per_epoch: int

    def __init__(self) -> None:
        self.load_state_dict({"epoch": 0, "index": 0})

    def begin_epoch(self) -> None:
        """Get ready for the batches of `self.epoch`, and set `batches_per_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} has no begin_epoch()")

    def batch_at(self, index: int) -> Batch:
        """The batch of this epoch with this number, below `batches_per_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} has no batch_at()")

    def next_batch(self) -> Batch:
        """The next batch; after the last one of an epoch comes the first one of the next."""
        if self.index >= self.batches_per_epoch:
            self.load_state_dict({"epoch": self.epoch + 1, "index": 0})
        self.index += 1
        return self.batch_at(self.index - 1)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self.next_batch()

    def state_dict(self) -> dict[str, int]:
        """Where in the sequence of batches this is."""
        return {"epoch": self.epoch, "index": self.index}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go to where `state_dict` was taken."""
        self.epoch, self.index = int(state["epoch"]), int(state["index"])
        self.begin_epoch()


def fingerprint(batches: list[Batch]) -> str:
    """A hash of batches: other text, or other masks, have another hash."""
    digest = hashlib.sha256()
    for batch in batches:
        for name in sorted(batch):
            digest.update(np.ascontiguousarray(batch[name]).astype(np.int64).tobytes())
    return digest.hexdigest()[:16]
