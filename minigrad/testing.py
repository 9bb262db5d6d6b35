"""check_grad: is this gradient right?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minigrad import backend
from minigrad.tensor import Tensor, no_grad


class GradientError(AssertionError):
    """A gradient that differs from the slope of the function."""


def check_grad(
    function: Callable[..., Tensor],
    *inputs: Tensor,
    step: float = 1e-6,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    seed: int = 0,
) -> float:
    """Compare the gradients of `function(*inputs)` with central differences.

    inputs: tensors of float64, away from kinks; those with requires_grad=True are checked.
    step: how far an entry is moved; the difference's own error is of the order of step² and 1e-16/step.
    rtol, atol: what |difference - gradient| may be, relative to the largest entry and absolute.
    seed: of the random cotangent. An all-ones cotangent would miss a wrong softmax: its rows sum to 1, so its
        true gradient is then zero, and so is that of a `backward` that returns zeros.

    Returns the largest error, relative to the largest entry of that input's gradient (or to 1, if that is
    larger). Raises GradientError naming the input and the worst entry; TypeError for an input that is not
    float64, ValueError if there is nothing to check or the output does not depend on an input.
    """
    checked = [i for i, tensor in enumerate(inputs) if tensor.requires_grad]
    if not checked:
        raise ValueError("check_grad: no input has requires_grad=True")
    for i, tensor in enumerate(inputs):
        if tensor.dtype != np.float64:
            raise TypeError(f"check_grad: input {i} is {tensor.dtype}; differences need float64")

    leaves = [Tensor.wrap(tensor.data.copy(), tensor.requires_grad) for tensor in inputs]
    output = function(*leaves)
    cotangent = np.random.default_rng(seed).standard_normal(output.shape)
    output.backward(cotangent)

    worst = 0.0
    for i in checked:
        gradient = leaves[i].grad
        if gradient is None:
            raise ValueError(f"check_grad: no gradient reached input {i}")
        if not inputs[i].size:
            continue
        gradient, slope = backend.to_numpy(gradient), slopes(function, inputs, i, cotangent, step)
        error = np.abs(slope - gradient)
        scale = max(1.0, float(np.abs(slope).max()))
        worst = max(worst, float(error.max()) / scale)
        if not error.max() <= atol + rtol * scale:  # so that NaN fails too
            index = np.unravel_index(int(np.nanargmax(np.nan_to_num(error, nan=np.inf))), error.shape)
            place = tuple(int(n) for n in index)
            raise GradientError(
                f"check_grad: the gradient of input {i} (shape {slope.shape}) is wrong: at {place} backward "
                f"says {gradient[index]:.9g}, differences say {slope[index]:.9g}"
            )
    return worst


def slopes(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], i: int, cotangent: np.ndarray, step: float
) -> np.ndarray:
    """How fast Σ function(*inputs) · cotangent changes with each entry of input `i`: central differences.

    cotangent: of the shape of the output. Returns an array of the shape of input `i`.
    """
    host = np.array(inputs[i].numpy())  # a copy, of which one entry at a time is moved
    slope = np.empty_like(host)

    def output() -> np.ndarray:
        fresh = [
            Tensor(host.copy() if j == i else other.numpy(), dtype=np.float64).to(other.backend)
            for j, other in enumerate(inputs)
        ]
        with no_grad():
            return function(*fresh).numpy()

    for index in np.ndindex(host.shape):
        middle = host[index]
        host[index] = middle + step
        above = output()
        host[index] = middle - step
        below = output()
        host[index] = middle
        slope[index] = np.sum((above - below) * cotangent) / (2 * step)
    return slope
