"""A batch shared out over the cores of this process: each computes some rows, forward and backward, on its own.

What kernels share over the cores comes in small pieces: the cores wait for each other after each one. A share
of the batch is whole, from the embeddings to the gradients, so the cores wait for each other once a step.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from minigrad import backend, random
from minigrad.backend import threads
from minigrad.distributed import Share, World
from minigrad.nn import Module, Parameter
from minigrad.tensor import Tensor
from minigrad.training.epochs import Batch

# Tokens, at least, in each share that nobody has asked for. What a share costs does not depend on its tokens: Python's
# time, for which threads take turns, and gradients of all weights. The step in two shares over the step in one, on two
# cores, with 256, 512 and 1,024 tokens in each: reduced BERT 1.05, 0.88, 0.88; BERT-Base 1.11, 1.04, 0.98.
LEAST_TOKENS = 1024


def shares_of(rows: int, length: int, world: World, asked: int | None = None) -> int:
    """How many shares a process makes of its part of a batch of so many rows of this length.

    asked: how many, if given; else one for each core that this process may use, as far as each has
    LEAST_TOKENS. On a GPU it is 1, because a GPU has cores of its own. Raises ValueError for more than there
    are rows, or below 1.
    """
    on_gpu = backend.default().name != "numpy"
    if asked is None:
        here = rows // world.size
        shares = 1 if on_gpu else max(1, min(threads.THREADS, here, here * length // LEAST_TOKENS))
    elif asked < 1:
        raise ValueError(f"shares must be at least 1, got {asked}")
    elif on_gpu and asked > 1:
        raise ValueError(f"shares must be 1 on a GPU, got {asked}: they are for the cores of a CPU")
    else:
        shares = asked
    if rows < shares * world.size:
        processes = f" in each of {world.size} processes" if world.size > 1 else ""
        shared_out = f"{shares} shares{processes}" if shares > 1 else f"{world.size} processes"
        raise ValueError(
            f"a batch of {rows} rows cannot be shared out over {shared_out}: use fewer, a larger batch, or more text"
        )
    return shares


class Replicas:
    """A model and its twins: the same weights, and for each share of a batch gradients of its own.

    shares: how many. The model is the first of `models`; what is assigned to one of its parameters reaches the twins
    when a batch begins.
    """

    def __init__(self, model: Module, shares: int) -> None:
        arrays = {id(parameter.data): parameter.data for parameter in model.parameters()}  # not to be copied
        self.models = [model, *(copy.deepcopy(model, dict(arrays)) for _ in range(shares - 1))]
        self._parameters: list[tuple[Parameter, ...]] = list(
            zip(*(one.parameters() for one in self.models), strict=True)
        )

    def __len__(self) -> int:
        return len(self.models)

    def compute(
        self,
        whole: Batch,
        kind: type[Share],
        forward: Callable[[Module, Any], tuple[Any, Tensor]],
        backward: Callable[[Tensor], object],
        world: World | None = None,
    ) -> list[tuple[Any, Any, Tensor]]:
        """Add the gradients of a batch to the model's: its shares at once, in threads, each with a BLAS of one thread.

        kind: of the shares. forward: from a model and a share to what the model makes of it, and its part of the loss
        of the whole batch, from which `backward` goes back. world: the processes that have shares too, by default this
        one alone. Returns the shares, what was made of them, and their parts of the loss. Raises what a share
        has raised, once all have ended.
        """
        world = world or World()
        count = min(len(self), max(1, len(next(iter(whole.values()))) // world.size))
        draws = random.get_state()["draws"]
        computed: list[Any] = [None] * count
        self._begin()

        def run(numbers: range) -> None:
            for number in numbers:
                share = kind(whole, world.rank * count + number, world.size * count)
                with random.rows_of_the_whole(share.places, draws) if share.count > 1 else nullcontext():
                    output, loss = forward(self.models[number], share)
                backward(loss)
                computed[number] = share, output, loss.detach()

        if count == 1:  # kernels and products have all cores
            run(range(1))
        else:
            threads.on_one_blas_thread(threads.share, run, range(count))
        self._add_up()
        return computed

    def _begin(self) -> None:
        """Give the twins the model's weights, and no gradients."""
        for parameter, *twins in self._parameters:
            for twin in twins:
                twin.data, twin.grad, twin.requires_grad = parameter.data, None, parameter.requires_grad
        for module, *twin_modules in zip(*(one.modules() for one in self.models), strict=True):
            for twin_module in twin_modules:
                twin_module.training = module.training

    def _add_up(self) -> None:
        """Add the twins' gradients to the model's, one twin after the other."""
        for parameter, *twins in self._parameters:
            for twin in twins:
                gradient, twin.grad = twin.grad, None
                if parameter.grad is None:
                    parameter.grad = gradient
                elif gradient is not None:
                    backend.of(gradient).add_in_place(parameter.grad, gradient)
