"""How a model is trained: the loop and its step, the same for pre-training, fine-tuning and translation.

What is logged, evaluated and saved on the way is in `run`. Several processes may train one model: each makes every
batch, computes its share, and all add up their gradients, so that all take the same step.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from minigrad import backend, optim
from minigrad.tensor import Array, Tensor
from minigrad.training.epochs import Batch
from minigrad.training.progress import interruptible
from minigrad.training.run import Run
from minigrad.training.tally import quiet_overflow


class Training(Run):
    """A run that trains `model` on `data`."""

    def run(self, report: Callable[[str], None] | None = None) -> dict[str, float]:
        """Train to the last step, or until Ctrl-C (or SIGTERM, SIGHUP), which finishes the step, saves and returns.

        report: takes each line for the reader; by default it is printed above the progress bar. Returns the
        last held-out figures; `stopped_by` is then the signal, if one stopped it. Raises DivergenceError naming
        the step at which the loss or the gradients stopped being finite, which is looked at every `log_every`
        steps and before each save, so that the last checkpoint is from before; SaveError if the last checkpoint
        cannot be written (one that fails on the way is reported, and the run goes on); RunFolderError if
        another run has come in since this one ended.
        """
        settings, total = self.arguments, self.total_steps
        with self.folder:
            self.begin()
            with (
                self.start_progress(report) as progress,
                interruptible() as stop,
                _no_garbage(),
            ):
                for note in self.notes:
                    progress.say(f"note: {note}")
                progress.measure()
                while self.step < total and not self.asked_to_stop(stop):
                    norm, rate = self.train_step(self.tally)
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

    def forward(self, batch: Batch) -> tuple[Batch, Any, Tensor]:
        """The part of a batch that this process computes, what the model makes of it, and its part of the loss."""
        output = self.model(**batch)
        return batch, output, output.loss

    def train_step(self, tally: Any) -> tuple[Array, float]:
        """One optimiser step. Returns the gradients' norm, an array without axes, and the learning rate.

        Nothing here waits for a GPU (except loss scaling): the next step is prepared while it works on this one.
        """
        micro_batches = self.arguments.gradient_accumulation_steps
        self.optimizer.zero_grad()
        with quiet_overflow():
            with backend.default_matmul_precision(self.arguments.precision):
                for number in range(1, micro_batches + 1):
                    batch, output, loss = self.forward(self.data.next_batch())
                    self.unchecked.append((self.step + 1, "the loss", loss.data))
                    tally.add(output, batch)
                    loss = loss if micro_batches == 1 else loss * (1 / micro_batches)
                    with self.buckets.summing(number == micro_batches):
                        self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)
            norm = optim.clip_grad_norm(self.model.parameters(), self.arguments.max_grad_norm)
            rate = self.optimizer.groups[0]["lr"]
            stepped = self.scaler.step(self.optimizer)
        if stepped or self.scaler.get_scale() <= 1:  # otherwise a smaller scale will do
            self.unchecked.append((self.step + 1, "the norm of the gradients", norm))
        self.scaler.update()
        self.schedule.step()
        self.step += 1
        return norm, rate


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
