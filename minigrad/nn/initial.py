"""How weights are initialised; and the shapes of a model's weights without them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from minigrad import random

Make = TypeVar("Make", bound=Callable[..., np.ndarray])

# Whether modules that are made now are asked for the shapes of their parameters alone.
shapes_alone: ContextVar[bool] = ContextVar("shapes_alone", default=False)


def _or_its_shape(make: Make) -> Make:
    """Where shapes are all that is asked for, something that has the shape and no numbers takes the array's place."""

    @functools.wraps(make)
    def made(shape: tuple[int, ...], *arguments: float, **named: float) -> np.ndarray | SimpleNamespace:
        return SimpleNamespace(shape=shape) if shapes_alone.get() else make(shape, *arguments, **named)

    return made  # type: ignore[return-value]


@_or_its_shape
def truncated_normal(shape: tuple[int, ...], std: float) -> np.ndarray:
    """Float32 draws from a normal distribution (mean 0), repeated where they exceed two standard deviations.

    BERT's initial weights (released code, `create_initializer`), with std 0.02. `std` is that of the normal
    distribution before the cut; what is left has 0.88 of it.
    """
    generator = random.generator()
    values = generator.standard_normal(shape, dtype=np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = generator.standard_normal(int(outside.sum()), dtype=np.float32)
    return values * np.float32(std)


@_or_its_shape
def uniform(shape: tuple[int, ...], bound: float) -> np.ndarray:
    """Float32 draws between -bound and bound."""
    return random.generator().uniform(-bound, bound, shape).astype(np.float32)


@_or_its_shape
def constant(shape: tuple[int, ...], value: float) -> np.ndarray:
    """The same float32 number in each entry."""
    return np.full(shape, value, np.float32)


def parameter_shapes(make: Callable[[], Any]) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter, by its name, of the module that `make` makes, without allocating them."""
    before = shapes_alone.set(True)
    try:
        return {name: tuple(parameter.shape) for name, parameter in make().named_parameters()}
    finally:
        shapes_alone.reset(before)
