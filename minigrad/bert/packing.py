"""Padding left out: the tokens of a batch as the rows of one matrix, without the places that hold none."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from minigrad.tensor import Tensor

__all__ = ["Packing"]


class Packing:
    """Which of the B T places of a batch are computed, and the ways there and back.

    Layers that work on one token at a time take the n packed rows; attention, in which the tokens of a sequence
    meet, takes the padded form (`spread`) and gives it back (`gather`).

    kept (B, T): true where a place is computed. kernels: the backend of the model.
    """

    def __init__(self, kept: np.ndarray, kernels: ModuleType) -> None:
        self._shape = kept.shape
        self.places = np.flatnonzero(kept)  # (n,), among the B T
        self._row = np.zeros(kept.size, np.int64)  # of each place; row 0 for those that have none
        self._row[self.places] = np.arange(len(self.places))
        self._to_padded = kernels.asarray(self._row)  # moved once, not in each layer
        self._to_packed = kernels.asarray(self.places)

    def rows(self, places: np.ndarray) -> np.ndarray:
        """The packed rows of some of the B T places, all of them kept."""
        return self._row[places]

    def spread(self, x: Tensor) -> Tensor:
        """(n, H) -> (B, T, H). Padding gets the first token's vector: any will do, for nobody may look at it,
        and no gradient comes back from there."""
        return x[self._to_padded].reshape(*self._shape, x.shape[-1])

    def gather(self, x: Tensor) -> Tensor:
        """(B, T, H) -> (n, H)."""
        return x.reshape(-1, x.shape[-1])[self._to_packed]
