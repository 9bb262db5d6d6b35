"""Shapes that broadcast, and the way back: what the forward pass stretches, the backward pass sums."""

from __future__ import annotations

from minigrad import backend
from minigrad.graph import Array

_broadcast_shapes = backend.get("numpy").xp.broadcast_shapes  # arithmetic on the host, whatever the backend


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that `shapes` broadcast to; raises ValueError if they do not."""
    return shapes[0] if len(set(shapes)) == 1 else _broadcast_shapes(*shapes)


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum `gradient` over the axes along which an array of `shape` was broadcast: broadcasting's adjoint.

    gradient (…, n, m) -> shape, for example (4, 3, 5) -> (3, 1): axis 0 was added and axis 2 stretched.
    """
    if gradient.shape == shape:
        return gradient
    added = gradient.ndim - len(shape)
    stretched = tuple(i + added for i, n in enumerate(shape) if n == 1 and gradient.shape[i + added] != 1)
    return backend.of(gradient).sum_entries(gradient, (*range(added), *stretched)).reshape(shape)
