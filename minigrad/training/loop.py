"""How a model is trained: the loop and its step, the same for pre-training, fine-tuning and translation.

What is logged, evaluated and saved on the way is in `run`. Each batch is shared out over the cores of a process, and
over all processes that train one model: each makes every batch and computes its shares, and the gradients of all are
added up, so that all take the same step.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import Any

from minigrad import backend, optim
from minigrad.distributed import Share
from minigrad.nn import Module
from minigrad.tensor import Array, Tensor
from minigrad.training.epochs import Batch
from minigrad.training.progress import interruptible
from minigrad.training.run import Run
from minigrad.training.shares import Replicas
from minigrad.training.tally import quiet_overflow, vector

LOOKED_AT = ("the loss", "the norm of the gradients")  # of a step's figures


class Training(Run):
    """A run that trains `model` on `data`."""

    share = Share  # what a batch is cut into

    @cached_property
    def replicas(self) -> Replicas:
        """The model, and a twin of it for each further share."""
        return Replicas(self.model, self.shares)

    def run(self, report: Callable[[str], None] | None = None) -> dict[str, float]:
        """Train to the last step, or until Ctrl-C (or SIGTERM, SIGHUP), which finishes the step, saves and returns.

        report: takes each line for the reader; by default it is printed above the progress bar. Returns the
        last held-out figures; `stopped_by` is then the signal, if one stopped it. Raises DivergenceError naming
        the step at which the loss or the gradients stopped being finite, which is checked every `log_every`
        steps and before each save, so that the last checkpoint is from before; SaveError if the last
        checkpoint cannot be written (one that fails on the way is reported, and the run goes on);
        RunFolderError if another run has come in since this one ended.
        """
        settings, total = self.arguments, self.total_steps
        with self.folder:
            self.begin()
            with self.start_progress(report) as progress, interruptible() as stop, _no_garbage():
                self.say_notes(progress)
                progress.measure()
                while self.step < total and not self.asked_to_stop(stop):
                    norm, rate = self.train_step(self.tally)
                    self.say_notes(progress)
                    if self.is_due(settings.log_every):
                        self.log(norm, rate, progress)
                    progress.advance()
                    if self.is_due(settings.eval_every):
                        self.evaluate(progress)
                    if self.is_due(settings.save_every) and self.step < total:  # the last may not fail
                        self.try_to_save(self.save, progress)
                self.end(stop, progress)
        self.world.barrier()  # when one ends, what the first writes is there
        return self.evaluation

    def forward(self, model: Module, share: Any) -> tuple[Any, Tensor]:
        """What a model makes of a share of a batch, and its part of the loss of the whole batch."""
        raise NotImplementedError

    def train_step(self, tally: Any) -> tuple[Array, float]:
        """One optimiser step. Returns the gradients' norm, an array without axes, and the learning rate.

        Nothing here waits for a GPU (except loss scaling): the next step is prepared while it works on this one.
        """
        batches = [self.data.next_batch() for _ in range(self.arguments.gradient_accumulation_steps)]
        rate = self.optimizer.groups[0]["lr"]
        figures = self.figures_of(batches)
        smaller_scale_will_do = not self.stepped and self.scaler.get_scale() > 1
        names = LOOKED_AT[:1] if smaller_scale_will_do else LOOKED_AT
        self.unchecked.append((self.step + 1, names, figures))
        tally.add_sums(figures[2:])
        for batch in batches:
            tally.count_batch(Share(batch, self.world.rank, self.world.size).batch)
        self.scaler.update()
        self.schedule.step()
        self.step += 1
        return figures[1], rate

    def figures_of(self, batches: Sequence[Batch]) -> Array:
        """Have a step of these batches computed; returns its figures, as `compute` does."""
        return self.compute(batches)

    def compute(self, batches: Sequence[Batch], rates: Array | None = None) -> Array:
        """What a step computes: the gradients of its batches, clipped, and new weights.

        rates: the optimiser's, if they are on the device already. Returns its figures, of float64: the loss, the norm
        of the gradients, and what the batches add to the tally.
        """
        sums: list[Array] = []

        def backward(loss: Tensor) -> None:
            self.scaler.scale(loss * (1 / len(batches))).backward()

        self.optimizer.zero_grad()
        with quiet_overflow():
            with backend.default_matmul_precision(self.arguments.precision):
                for number, batch in enumerate(batches, start=1):
                    last = number == len(batches)
                    with self.buckets.summing(last, as_they_come=len(self.replicas) == 1):
                        computed = self.replicas.compute(
                            batch, self.share, self.forward, backward, self.world
                        )
                    sums += [
                        vector([loss.data, *self.tally.sums_of(output, share.batch)])
                        for share, output, loss in computed
                    ]
                self.scaler.unscale_(self.optimizer)
            norm = optim.clip_grad_norm(self.model.parameters(), self.arguments.max_grad_norm)
            self.stepped = self.scaler.step(self.optimizer, rates)
        loss, *of_tally = reduce(operator.add, sums)
        return vector([loss, norm, *of_tally])


@contextmanager
def _no_garbage() -> Iterator[None]:
    """A step makes no cycles: let the garbage collector not look at the model and the text again and again.

    Where the caller has frozen objects, all stays as it is: `gc.unfreeze` would give back theirs too.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
