"""A step on a GPU as a function of arrays that lie there, so that it can be recorded once and launched as a whole.

A step has three parts. The host prepares: batches of one shape, the keys of dropout's masks, the optimiser's rates, all
counted as used. The device computes, and takes nothing else from the host. Then the host counts the step. The
part in the middle is the same work whether it is launched as a whole or one operation at a time, bit for bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad import backend, nn, random
from minigrad.nn import Module
from minigrad.tensor import Array
from minigrad.training.epochs import Batch

KEYS, RATES = "keys", "rates"


class DeviceStep:
    """What a step computes, from batches on the host.

    model, optimizer: what is trained, by AdamW; each Dropout of the model draws one mask for each batch. compute: from
    batches and the optimiser's rates, all on the device, to the step's figures. pack: makes a batch one whose shape is
    always the same. recorded: whether it is launched as a whole; say: takes a sentence where it cannot be. Then the
    optimiser's other settings, the shares that are dropped, and where gradients are clipped stay what they were.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Any,
        compute: Callable[[Sequence[Batch], Array], Array],
        pack: Callable[[Batch], Batch],
        recorded: bool,
        say: Callable[[str], object],
    ) -> None:
        self.optimizer, self.compute, self.pack = optimizer, compute, pack
        self.parameters = list(model.parameters())
        self.moments = [array for arrays in optimizer.state for array in arrays]
        self.dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
        self.kernels = backend.of(self.parameters[0].data)
        if recorded:
            self.run: Callable[[dict[str, Any]], Array] = self.kernels.recorded(
                self._on_device, self._lasting, say
            )
        else:
            self.run = self._at_once

    def __call__(self, batches: Sequence[Batch]) -> Array:
        """Prepare a step of these batches, and have it computed; returns its figures."""
        inputs = {
            f"{number} {name}": array
            for number, batch in enumerate(batches)
            for name, array in self.pack(batch).items()
        }
        masks = sum(dropout.p > 0 for dropout in self.dropouts)
        inputs[KEYS] = random.next_keys(masks * len(batches))
        inputs[RATES] = self.optimizer.next_rates()
        return self.run(inputs)

    def _at_once(self, inputs: dict[str, np.ndarray]) -> Array:
        """One operation at a time."""
        return self._on_device({name: self.kernels.asarray(array) for name, array in inputs.items()})

    def _on_device(self, inputs: dict[str, Array]) -> Array:
        batches: defaultdict[str, Batch] = defaultdict(dict)
        for name, array in inputs.items():
            if name not in (KEYS, RATES):
                number, _, part = name.partition(" ")
                batches[number][part] = array
        with random.given_keys(inputs[KEYS]):
            return self.compute(list(batches.values()), inputs[RATES])

    def _lasting(self) -> list[Array]:
        """The weights and the optimiser's moments."""
        return [parameter.data for parameter in self.parameters] + self.moments
