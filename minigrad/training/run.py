"""What becomes of a run: its folder, what is logged and saved, how it is stopped and goes on.

A run lives in a folder: `checkpoint-000500/` (the model's files, and the state of the training), `metrics.csv` and
`evaluation.csv`. Everything that the next step depends on is in the checkpoint, so that a run that was stopped or
killed goes on bit for bit, on the same machine with the same NumPy.

Of several processes that train one model (`distributed.World`) the first writes what there is to write, and speaks
for all.
"""

from __future__ import annotations

import dataclasses
import io
import math
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from minigrad import backend, optim, random
from minigrad.distributed import GradientBuckets, World
from minigrad.files import SaveError
from minigrad.messages import LONGEST_LINE, shown
from minigrad.nn import Module, Parameter
from minigrad.tensor import Array
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.epochs import Batch, Epochs, fingerprint
from minigrad.training.folders import RunFolder, RunFolderError, RunKind, environment
from minigrad.training.pretrained import Pretrained, listed
from minigrad.training.progress import SIGNALS, Progress, Stop
from minigrad.training.reading import SUMS, CheckpointError, is_there
from minigrad.training.shares import shares_of
from minigrad.training.state import STATE, TrainingState, differences, read_moments, read_state, state_files
from minigrad.training.tally import of_all_processes

PARTS = ("scaler", "data", "tally")  # of a run: what its checkpoints keep by state_dict and load_state_dict


class DivergenceError(ArithmeticError):
    """The loss or the gradients are not finite any more."""


class Run:
    """A run in a folder of its own. `Training` adds the loop; Pretraining, Finetuning and others, what they train.

    kind: what sort of run it is. tokenizer: saved beside the model. held_out: batches for the evaluation. corpus: a
    name or fingerprint of the text, so that a resumed run can tell whether it is the same. held_out_share: of the
    text, for the evaluation of the model later. total_steps: how many there are to make. world: the processes that
    train it together, by default this one alone; their number is not part of a run, which may go on with
    another. shares: in how many parts each process computes its part of a batch at once; by default one for
    each core, as far as each has enough tokens, or for a resumed run as many as before. They change the last
    bits.
    """

    kind: RunKind
    model: Any
    data: Epochs
    total_steps: int

    def __init__(
        self,
        arguments: Any,
        tokenizer: WordPieceTokenizer,
        held_out: list[Batch],
        output: str | Path | RunFolder,
        corpus: str,
        held_out_share: float | None,
        world: World | None = None,
        shares: int | None = None,
    ) -> None:
        self.world = world or World()
        self._asked_shares = shares
        self.shares = shares_of(arguments.batch_size, arguments.max_length, self.world, shares)
        self.arguments, self.tokenizer, self.held_out = arguments, tokenizer, held_out
        self.corpus, self.held_out_share = corpus, held_out_share
        self.folder = (
            output if isinstance(output, RunFolder) else RunFolder(output, self.kind, self.world.is_first)
        )
        self.output = self.folder.path
        self.notes: list[str] = []  # for the reader, not said yet
        self.stopped_by: int | None = None  # the signal that ended `run` before the last step
        self.step = 0
        self.tally = self.kind.tally()  # of the steps since the last row
        self.evaluation: dict[str, float] = {}
        self.beside: dict[str, float] = {}  # what stands in each row of evaluation.csv beside the figures
        # of the steps not looked at yet: the step, what has to be finite, and its first figures, which may be on a GPU
        self.unchecked: list[tuple[int, Sequence[str], Array]] = []

    def set_up(self, model: Module, total_steps: int, warmup_steps: int) -> None:
        """Make the optimiser, the schedule and the loss scaling of a model."""
        self.model, self.total_steps = model, total_steps
        self.optimizer, self.schedule = self.optimizer_and_schedule(warmup_steps)
        self.scaler = optim.GradScaler(enabled=self.arguments.precision == "float16")
        self.buckets = GradientBuckets(dict(model.named_parameters()), self.world)

    # --- What a kind of run says of itself ---------------------------------------------------------------

    def optimizer_and_schedule(self, warmup_steps: int) -> tuple[optim.Optimizer, optim.Schedule]:
        """What changes `model`, and what sets its learning rate."""
        raise NotImplementedError

    def model_files(self) -> dict[str, bytes]:
        """The files of model and tokenizer in a checkpoint, by name."""
        raise NotImplementedError

    def read_model(self, checkpoint: Path) -> Pretrained:
        """What `model_files` has made. Raises CheckpointError or ConfigError."""
        raise NotImplementedError

    def measure(self) -> dict[str, float]:
        """The figures of the model on `held_out`."""
        raise NotImplementedError

    def describe(self, figures: dict[str, float]) -> str:
        """Held-out figures as one line for the reader."""
        raise NotImplementedError

    def brief(self, figures: dict[str, float]) -> list[str]:
        """The figures of the last steps as the pieces of a progress bar."""
        raise NotImplementedError

    def require_memory(self, shares: int) -> None:
        """Raise ValueError if a step of the model in so many shares needs more memory than this machine has."""
        raise NotImplementedError

    def guess(self, progress: Progress) -> None:
        """Report what the model makes of an example, after each evaluation."""

    # --- While it runs -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.release()

    def begin(self) -> None:
        """Make folder and model ready for the next step."""
        self._require_the_same_start()
        if self.folder.newest_step() > self.step:
            raise RunFolderError(f"{self.output} has been trained on by another run since: resume that one")
        backend.of(next(self.model.parameters()).data).keep_freed_memory()
        if self.world.is_first:
            self.folder.clear()
            for table in (self.folder.metrics, self.folder.evaluations):
                table.drop_after(self.step)
        self.model.train()
        self.stopped_by = None

    def _require_the_same_start(self) -> None:
        """Raise DistributedError if a process has other settings, texts or weights, or another vocabulary."""
        if self.world.size == 1:
            return
        weights = 0
        for parameter in self.model.parameters():
            weights = zlib.crc32(np.ascontiguousarray(parameter.numpy()).tobytes(), weights)
        self.world.require_the_same(
            {
                **self.model.config.to_dict(),
                **dataclasses.asdict(self.arguments),
                "the fingerprint of the text": self.corpus,
                "the fingerprint of the vocabulary": self.tokenizer.fingerprint(),
                "the fingerprint of the held-out text": fingerprint(self.held_out),
                "the number of shares": self.shares,
                "the step": self.step,
                "the checksum of the weights": weights,
            }
        )

    def start_progress(self, report: Callable[[str], None] | None) -> Progress:
        """What the reader sees, from the first process alone."""
        if self.world.is_first:
            return Progress(self.step, self.total_steps, report)
        return Progress(self.step, self.total_steps, lambda line: None, io.StringIO())

    def say_notes(self, progress: Progress) -> None:
        """Tell the reader what has come up."""
        notes, self.notes[:] = self.notes[:], []
        for note in notes:
            progress.say(f"note: {note}")

    def asked_to_stop(self, stop: Stop) -> bool:
        """Whether a signal has asked this or any other process to stop; all stop at the same step."""
        if self.world.size > 1:
            asked = self.world.summed([stop.signal == number for number in SIGNALS])
            stop.signal = next((number for number, count in zip(SIGNALS, asked, strict=True) if count), None)
        return stop.signal is not None

    def is_due(self, every: int) -> bool:
        """Whether what is done every `every` steps is due now; at the end, all is."""
        return self.step % every == 0 or self.step == self.total_steps

    def log(self, norm: Array, rate: float, progress: Progress) -> None:
        """Write the figures of the steps since the last row, and show them."""
        self.stop_if_not_finite()
        tally = of_all_processes(self.tally, self.world)
        figures, speed = tally.means(), progress.speed(tally.tokens)
        row = {
            "step": self.step,
            **figures,
            "learning_rate": rate,
            "grad_norm": float(norm),
            "tokens_per_second": speed,
        }
        if self.world.is_first:
            self.folder.metrics.append(row, progress.say)
        pieces = [f"rate {rate:.1e}", f"{speed / 1000:.1f}k tokens/s"]
        progress.show([*self.brief(figures), *pieces])
        self.tally = type(self.tally)()
        progress.measure()

    def stop_if_not_finite(self) -> None:
        """Look at the losses and norms of the steps since the last look; all processes find the same."""
        unchecked, self.unchecked = self.unchecked, []
        looked_at = [
            (step, what, value)
            for step, names, figures in unchecked
            for what, value in zip(names, backend.to_numpy(figures).tolist(), strict=False)
        ]
        sums = self.world.summed([value for _, _, value in looked_at])
        for (step, what, _), value in zip(looked_at, sums, strict=True):
            if math.isfinite(value):
                continue
            saved = self.folder.newest_step()
            kept = f"the checkpoint of step {saved} is kept" if saved else "no checkpoint was saved before it"
            raise DivergenceError(
                f"{what} is {value} in step {step}; {kept}. Try a lower learning rate or a longer warm-up"
            )

    def evaluate(self, progress: Progress) -> None:
        """Measure the model on what is held out, write that, and report it."""
        if not self.held_out:
            return
        self.stop_if_not_finite()
        with progress.away():
            self.evaluation = self.measure()
        if not self.world.is_first:
            return
        row = {"step": self.step, **self.evaluation, **self.beside}
        self.folder.evaluations.append(row, progress.say)
        progress.say(f"step {self.step}: held out {self.describe(self.evaluation)}")
        self.guess(progress)

    def try_to_save(self, save: Callable[[], object], progress: Progress) -> None:
        """Save on the way, by `self.save` or another method: if that fails, the reader is told."""
        try:
            with progress.away():
                save()
        except SaveError as error:
            progress.say(f"step {self.step}: {error}; training goes on, and saves again at the next chance")

    def end(self, stop: Stop, progress: Progress) -> None:
        """Save the last step, if that is not done yet, and say whether there are more to make."""
        if self.world.broadcast(self.folder.newest_step()) < self.step:
            self.save()
        if self.step == self.total_steps:
            return
        self.stopped_by = stop.signal
        if self.step:
            total = self.total_steps
            progress.say(f"stopped at step {self.step} of {total} and saved; go on with --resume")
        else:
            progress.say("stopped before the first step: there is nothing to save")

    # --- Saving and resuming -----------------------------------------------------------------------------

    def save(self) -> Path | None:
        """Write the checkpoint of this step, whole or not at all, and drop all but the newest two.

        All processes call it, the first one writes; the others return None. Raises SaveError if it cannot be written,
        DivergenceError if the run has stopped being finite; the checkpoints before it are untouched.
        """
        self.stop_if_not_finite()
        tally = of_all_processes(self.tally, self.world)
        return self.folder.save(self.step, self.files(tally)) if self.world.is_first else None

    def files(self, tally: Any) -> dict[str, bytes]:
        """The files of a checkpoint of this step, by name; tally: of all processes."""
        parts = {name: getattr(self, name).state_dict() for name in PARTS} | {"tally": tally.state_dict()}
        state = TrainingState(
            step=self.step,
            optimizer_steps=self.optimizer.steps,
            random=random.get_state(),
            **parts,
            arguments=dataclasses.asdict(self.arguments),
            shares=self.shares,
            corpus=self.corpus,
            held_out=self.held_out_share,
            held_out_text=fingerprint(self.held_out),
            evaluation=self.evaluation,
            environment=environment(),
        )
        moments = dict(zip(self._optimised(), self.optimizer.state, strict=True))
        return self.model_files() | state_files(state, moments)

    def _optimised(self) -> dict[str, Parameter]:
        """The parameters by name, in the optimiser's order."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        return {names[id(p)]: p for group in self.optimizer.groups for p in group["params"]}

    def load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint. Raises CheckpointError; nothing on the disk is changed."""
        with self.folder.naming_the_one_before(checkpoint):
            saved, state = self.read_model(checkpoint), read_state(checkpoint, self.kind)
            if saved.missing:
                raise CheckpointError(f"{checkpoint}: weights are missing: {listed(saved.missing)}")
        self._require_the_same(checkpoint, state, saved)
        if state.shares != self.shares:
            self._go_on_in_shares(checkpoint, state.shares)
        with self.folder.naming_the_one_before(checkpoint):
            moments = read_moments(checkpoint, self._optimised())
            for name in PARTS:
                getattr(self, name).load_state_dict(getattr(state, name))
            if self.data.index > self.data.batches_per_epoch:
                raise CheckpointError(
                    f"{checkpoint / STATE}: data.index: expected at most {self.data.batches_per_epoch}, the batches "
                    f"of an epoch, got {self.data.index}"
                )
        self.model.load_state_dict(saved.model.state_dict())
        self.optimizer.load_state_dict({"steps": state.optimizer_steps, "state": moments})
        self.schedule.step()
        random.set_state(state.random)
        self.step, self.evaluation = state.step, state.evaluation
        if not self.world.is_first:
            self.tally = self.kind.tally()  # what was counted is counted once
        if not is_there(checkpoint / SUMS):
            self.notes.append(
                f"{checkpoint} has no {SUMS}: whether its files are what was saved is not known"
            )
        changed = differences(state.environment, environment())
        if changed:
            note = f"the run goes on, but not bit for bit as it would have there: {'; '.join(changed)}"
            self.notes.append(shown(note, LONGEST_LINE))

    def _go_on_in_shares(self, checkpoint: Path, before: int) -> None:
        """In as many shares as before, if nobody asks for another number and this is a CPU. Raises CheckpointError."""
        if self._asked_shares is None and backend.default().name == "numpy":
            arguments = self.arguments
            try:
                self.shares = shares_of(arguments.batch_size, arguments.max_length, self.world, before)
                self.require_memory(before)
            except ValueError as error:
                raise CheckpointError(
                    f"{checkpoint / STATE} has {before} shares: {error}; --shares asks for another number"
                ) from None
        else:
            self.notes.append(
                f"the run goes on in {self.shares} shares, but was in {before}: not bit for bit as it would have"
            )

    def _require_the_same(self, checkpoint: Path, state: TrainingState, saved: Pretrained) -> None:
        """Raise CheckpointError naming all in which the run of a checkpoint is another one."""
        differing = differences(saved.model.config.to_dict(), self.model.config.to_dict())
        differing += differences(state.arguments, dataclasses.asdict(self.arguments))
        if saved.tokenizer is None or saved.tokenizer.vocab != self.tokenizer.vocab:
            differing.append("the vocabulary")
        elif saved.tokenizer.lower_case != self.tokenizer.lower_case:
            differing.append("whether the text is lower-cased")
        elif saved.tokenizer.spelling != self.tokenizer.spelling:
            differing.append("what becomes of accents or Chinese characters")
        if state.corpus != self.corpus:
            differing.append(f"the text (fingerprint {state.corpus} there, {self.corpus} here)")
        held_out = fingerprint(self.held_out)
        if not differing and state.held_out_text != held_out:  # vocabulary and settings change that too
            differing.append(f"the held-out text (fingerprint {state.held_out_text} there, {held_out} here)")
        if differing:
            raise CheckpointError(
                f"{checkpoint} cannot be resumed with other settings; these differ: {'; '.join(differing)}"
            )
