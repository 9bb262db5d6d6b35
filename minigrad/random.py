"""The random numbers of a run: one seed, and a count of the draws made since.

Every draw is a function of (seed, count) alone, so two integers are the whole state: a checkpoint stores
them, and a resumed run draws what an uninterrupted one would have. Initial weights are drawn with NumPy on
every backend, so that they start equal; dropout's bits are drawn by the backend on which they are needed, by
one formula, so they are equal too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import backend
from minigrad.tensor import Array

_seed = 0
_draws = 0


def manual_seed(seed: int) -> None:
    """Start the random numbers afresh from `seed`, an integer of at least 0."""
    global _seed, _draws
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"manual_seed: expected an integer of at least 0, got {seed!r}")
    _seed, _draws = int(seed), 0


def get_state() -> dict[str, int]:
    """The state of the random numbers, as `set_state` takes it."""
    return {"seed": _seed, "draws": _draws}


def set_state(state: dict[str, int]) -> None:
    """Go on as from the moment when `get_state` gave `state`."""
    global _seed, _draws
    _seed, _draws = int(state["seed"]), int(state["draws"])


def _next_draw() -> int:
    global _draws
    _draws += 1
    return _draws


def generator() -> np.random.Generator:
    """A NumPy generator of its own for one use on the host, such as the initial weights of a layer."""
    return np.random.default_rng([_seed, _next_draw()])


def keep_mask(like: Array, shape: tuple[int, ...], p: float) -> Any:
    """A boolean array on the backend of `like`: True with probability 1 - p, what dropout keeps."""
    return backend.of(like).keep_mask(shape, p, mask_keys(_seed, _next_draw()))


def mask_keys(seed: int, draw: int) -> tuple[int, int]:
    """Two 32-bit keys for the draw number `draw` of `seed` (SplitMix64; Steele, Lea & Flood 2014)."""
    z = seed * 0xD1342543DE82EF95 + draw * 0x9E3779B97F4A7C15
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    z ^= z >> 31
    return z >> 32, z % 2**32
