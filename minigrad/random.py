"""The random numbers of a run: one seed, and a count of the draws made since.

Every draw is a function of (seed, count) alone, so two integers are the whole state: a checkpoint stores
them, and a resumed run draws what an uninterrupted one would have. Initial weights are drawn with NumPy on
every backend, so that they start equal; dropout's bits are drawn by the backend on which they are needed, by
one formula, so they are equal too. Where a batch is shared out, each share draws what belongs to its own rows
(`rows_of_the_whole`), so that all together drop what would be dropped of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from minigrad import backend
from minigrad.tensor import Array

_seed = 0
_draws = 0


class _Part:
    """A share of a batch that is computed: where its rows stand in the whole, and the draws made so far."""

    def __init__(self, rows: Mapping[int, Sequence[range]], draws: int) -> None:
        self.rows, self.draws = rows, draws


_part: ContextVar[_Part | None] = ContextVar("part", default=None)  # each thread has its own
_given: ContextVar[list[Array] | None] = ContextVar("given", default=None)  # keys, the next one last


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
    """Go on from the moment at which `get_state` returned `state`."""
    global _seed, _draws
    _seed, _draws = int(state["seed"]), int(state["draws"])


def _next_draw() -> int:
    global _draws
    if (part := _part.get()) is not None:
        part.draws += 1
        return part.draws
    _draws += 1
    return _draws


def generator() -> np.random.Generator:
    """A new NumPy generator for one use on the host, such as the initial weights of a layer."""
    return np.random.default_rng([_seed, _next_draw()])


def keep_mask(like: Array, shape: tuple[int, ...], p: float) -> Any:
    """A boolean array on the backend of `like`: True with probability 1 - p, what dropout keeps.

    Inside `rows_of_the_whole`, raises ValueError for a number of rows that is not listed there.
    """
    kernels, given, part = backend.of(like), _given.get(), _part.get()
    if given is not None:
        if not given:
            raise ValueError("keep_mask: given_keys has no key left for this mask")
        return kernels.keep_mask(shape, p, given.pop())
    keys = mask_keys(_seed, _next_draw())
    if part is None:
        return kernels.keep_mask(shape, p, keys)
    rows = part.rows
    if not shape or shape[0] not in rows:
        raise ValueError(
            f"keep_mask: an array of shape {shape} has no place in the whole: rows_of_the_whole names arrays of "
            f"{', '.join(map(str, rows))} rows"
        )
    width = math.prod(shape[1:])  # entries of a row
    parts = [
        kernels.keep_mask((len(places), *shape[1:]), p, keys, places.start * width)
        for places in rows[shape[0]]
    ]
    return parts[0] if len(parts) == 1 else kernels.xp.concatenate(parts)


@contextmanager
def rows_of_the_whole(rows: Mapping[int, Sequence[range]], draws: int | None = None) -> Iterator[None]:
    """Draw masks as parts of larger ones inside this context, as a share of a batch does.

    rows: by the number of rows of an array, which rows of the whole array these are, as ranges one after the
    other. So {2: [range(4, 6)]} means that an array of two rows is rows 4 and 5 of the whole. draws: how many
    were made before the batch, by default as many as now. All shares begin with the same count, one after the
    other or in threads at once, and leave the same count behind. Raises ValueError for ranges that do not
    have that many rows, or have steps.
    """
    global _draws
    for count, ranges in rows.items():
        if sum(map(len, ranges)) != count or any(one.step != 1 or one.start < 0 for one in ranges):
            raise ValueError(
                f"rows_of_the_whole: expected ranges of {count} rows together, got {list(ranges)}"
            )
    part = _Part(rows, _draws if draws is None else draws)
    before = _part.set(part)
    try:
        yield
    finally:
        _part.reset(before)
        _draws = part.draws


def next_keys(count: int) -> np.ndarray:
    """The keys of the next `count` masks, (count, 2) of int64: these draws are made."""
    return np.array([mask_keys(_seed, _next_draw()) for _ in range(count)], np.int64).reshape(count, 2)


@contextmanager
def given_keys(keys: Array) -> Iterator[None]:
    """Draw masks with these keys inside this context, one after the other, and count no draws.

    keys: as `next_keys` gives them, where the masks are drawn. Raises ValueError if more or fewer masks are drawn.
    """
    left = list(keys)[::-1]
    before = _given.set(left)
    try:
        yield
    finally:
        _given.reset(before)
    if left:
        raise ValueError(f"given_keys: of {len(keys)} keys, {len(left)} were left over")


def mask_keys(seed: int, draw: int) -> tuple[int, int]:
    """Two 32-bit keys for the draw number `draw` of `seed` (SplitMix64; Steele et al. 2014)."""
    z = seed * 0xD1342543DE82EF95 + draw * 0x9E3779B97F4A7C15
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    z ^= z >> 31
    return z >> 32, z % 2**32
