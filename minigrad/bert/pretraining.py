"""The training loop: masked language modelling and next-sentence prediction together.

A run lives in a folder: `checkpoint-000500/` (Hugging Face's files, and the state of the training),
`metrics.csv` and `evaluation.csv`. Everything that the next step depends on is in the checkpoint, so that
a run that was stopped or killed goes on bit for bit, on the same machine with the same NumPy.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from minigrad import backend, optim, random
from minigrad.bert.checkpoint import CheckpointError, from_pretrained, pretrained_files
from minigrad.bert.config import IGNORED, BertConfig, ConfigError
from minigrad.bert.corpus import unigram_entropy
from minigrad.bert.data import Batch, PretrainingData
from minigrad.bert.model import BertForPreTraining, BertPreTrainingOutput
from minigrad.bert.progress import Progress, interruptible
from minigrad.bert.reading import SUMS, is_there, read_safetensors, shown
from minigrad.bert.runs import RunFolder, RunFolderError, environment, latest_checkpoint, step_of
from minigrad.bert.state import STATE, PretrainingArguments, TrainingState, read_state
from minigrad.bert.tokenizer import WordPieceTokenizer
from minigrad.files import SaveError
from minigrad.tensor import Array, no_grad

__all__ = [
    "DivergenceError",
    "Pretraining",
    "PretrainingArguments",
    "TrainingState",
    "evaluate",
    "latest_checkpoint",
    "parameter_groups",
    "read_state",
]

MOMENTS = "optimizer.safetensors"


class DivergenceError(ArithmeticError):
    """The loss or the gradients are not finite any more."""


def parameter_groups(model: BertForPreTraining, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters for AdamW: biases and LayerNorms without decay, as in the released `optimization.py`."""
    decayed: list[Any] = []
    plain: list[Any] = []
    for name, parameter in model.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def require_positions(max_length: int, config: BertConfig) -> None:
    """Raise ValueError if sequences may be longer than the model has positions."""
    if max_length > config.max_position_embeddings:
        raise ValueError(
            f"max_length is {max_length}, but the model has {config.max_position_embeddings} positions"
        )


# --- Counting --------------------------------------------------------------------------------------------


class Tally:
    """Losses and hits added up over batches, where the model is: nothing waits for a GPU before `means`."""

    def __init__(self) -> None:
        self.mlm_loss: Any = 0.0
        self.nsp_loss: Any = 0.0
        self.mlm_hits: Any = 0
        self.nsp_hits: Any = 0
        self.masked = self.pairs = self.tokens = 0

    def add(self, output: BertPreTrainingOutput, batch: Batch) -> None:
        """Count one batch and what the model said of it."""
        assert output.mlm_loss is not None
        assert output.nsp_loss is not None
        labels = batch["labels"][batch["labels"] != IGNORED]
        next_labels = batch["next_sentence_label"]
        self.mlm_loss = self.mlm_loss + output.mlm_loss.data.astype("float64") * len(labels)
        self.nsp_loss = self.nsp_loss + output.nsp_loss.data.astype("float64") * len(next_labels)
        self.mlm_hits = self.mlm_hits + _hits(output.prediction_logits.data, labels)
        self.nsp_hits = self.nsp_hits + _hits(output.seq_relationship_logits.data, next_labels)
        self.masked += len(labels)
        self.pairs += len(next_labels)
        self.tokens += int(batch["attention_mask"].sum())

    def state_dict(self) -> dict[str, float]:
        """The sums so far, without the tokens: their speed is measured afresh."""
        return {
            "mlm_loss": float(self.mlm_loss),
            "nsp_loss": float(self.nsp_loss),
            "mlm_hits": int(self.mlm_hits),
            "nsp_hits": int(self.nsp_hits),
            "masked": self.masked,
            "pairs": self.pairs,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        for name, value in state.items():
            setattr(self, name, value)

    def means(self) -> dict[str, float]:
        """mlm_loss and nsp_loss in nats, mlm_accuracy and nsp_accuracy as shares, and loss, their sum."""
        mlm_loss, nsp_loss = float(self.mlm_loss) / self.masked, float(self.nsp_loss) / self.pairs
        return {
            "loss": mlm_loss + nsp_loss,
            "mlm_loss": mlm_loss,
            "mlm_accuracy": int(self.mlm_hits) / self.masked,
            "nsp_loss": nsp_loss,
            "nsp_accuracy": int(self.nsp_hits) / self.pairs,
        }


def _hits(logits: Any, labels: np.ndarray) -> Any:
    return (logits.argmax(axis=-1) == backend.of(logits).asarray(labels)).sum()


def evaluate(model: BertForPreTraining, batches: list[Batch]) -> dict[str, float]:
    """Losses and accuracies over `batches`, without dropout; the model's mode is put back afterwards."""
    tally = Tally()
    training = model.training
    model.eval()
    try:
        with no_grad(), _no_warnings_of_overflow():
            for batch in batches:
                tally.add(model(**batch), batch)
    finally:
        model.train(training)
    return tally.means()


# --- The run ---------------------------------------------------------------------------------------------


def _no_warnings_of_overflow() -> np.errstate:
    """Losses and norms are looked at anyway, and an overflow is said in a clear error, or mended by loss scaling."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


@contextmanager
def _nothing_to_collect() -> Iterator[None]:
    """A step makes no cycles: let the garbage collector not look at the model and the text again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Pretraining:
    """A run of pre-training: what `python -m minigrad.bert pretrain` and the chapters use.

    config: of the model to make. documents: training text as ids (`encode_documents`). tokenizer: what made
    them. held_out: batches for the evaluation. output: the run's folder, which is locked until `run` ends.
    corpus: a name or fingerprint of the text, so that a resumed run can tell whether it is the same. resume: go
    on from the newest checkpoint in `output`. held_out_share: of the text, for who evaluates the model later.

    Raises RunFolderError if another run is in `output`; CheckpointError if it holds a run and `resume` is false, if
    its newest checkpoint is damaged, or if settings, model, vocabulary or text differ from those of the run to
    resume (each named).
    """

    def __init__(
        self,
        config: BertConfig,
        documents: list[list[list[int]]],
        tokenizer: WordPieceTokenizer,
        held_out: list[Batch],
        output: str | Path | RunFolder,
        arguments: PretrainingArguments,
        corpus: str = "",
        resume: bool = False,
        held_out_share: float | None = None,
    ) -> None:
        require_positions(arguments.max_length, config)
        if config.type_vocab_size < 2:
            raise ValueError("type_vocab_size must be at least 2, for sentences A and B; got 1")
        if tokenizer.vocab_size > config.vocab_size:
            raise ValueError(
                f"the vocabulary has {tokenizer.vocab_size} pieces, the model only {config.vocab_size}"
            )
        self.arguments, self.tokenizer, self.held_out = arguments, tokenizer, held_out
        self.corpus, self.held_out_share = corpus, held_out_share
        self.folder = output if isinstance(output, RunFolder) else RunFolder(output)
        self.output = self.folder.path
        self.notes: list[str] = []  # for the reader, when the run starts
        self.stopped_by: int | None = None  # the signal that ended `run` before the last step
        self.folder.lock()
        try:
            self._prepare(config, documents, self.folder.to_resume(resume))
        except BaseException:
            self.folder.release()
            raise

    def _prepare(self, config: BertConfig, documents: list[list[list[int]]], checkpoint: Path | None) -> None:
        arguments = self.arguments
        random.manual_seed(arguments.seed)
        self.model = BertForPreTraining(config)
        self.optimizer = optim.AdamW(
            parameter_groups(self.model, arguments.weight_decay), lr=arguments.learning_rate, eps=1e-6
        )
        self.scaler = optim.GradScaler(enabled=arguments.precision == "float16")
        self.schedule = optim.LinearWarmupDecay(self.optimizer, arguments.warmup_steps, arguments.steps)
        self.data = PretrainingData(
            documents, self.tokenizer, arguments.batch_size, arguments.max_length, arguments.seed
        )
        self.unigram_entropy = unigram_entropy(t for document in documents for s in document for t in s)
        self.step = 0
        self.tally = Tally()  # of the steps since the last row
        self.evaluation: dict[str, float] = {}
        # of the steps not looked at yet: the step, what it is, and its value, which may still be on a GPU
        self._unseen: list[tuple[int, str, Any]] = []
        if checkpoint is not None:
            self._load(checkpoint)

    # --- Training ----------------------------------------------------------------------------------------

    def run(self, report: Callable[[str], None] | None = None) -> dict[str, float]:
        """Train to the last step, or until Ctrl-C (or SIGTERM, SIGHUP), which finishes the step, saves and returns.

        report: takes each line for the reader; by default it is printed above the progress bar. Returns the
        last held-out figures; `stopped_by` is then the signal, if one stopped it. Raises DivergenceError naming
        the step at which the loss or the gradients stopped being finite, which is looked at every `log_every`
        steps and before each save, so that the last checkpoint is from before; SaveError if the last checkpoint
        cannot be written (one that fails on the way is reported, and the run goes on); RunFolderError if
        another run has come in since this one ended.
        """
        with self.folder:
            if self.folder.newest_step() > self.step:
                raise RunFolderError(
                    f"{self.output} has been trained on by another run since: resume that one"
                )
            return self._run(report)

    def _run(self, report: Callable[[str], None] | None) -> dict[str, float]:
        kernels = backend.of(next(self.model.parameters()).data)
        kernels.keep_freed_memory()
        total = self.arguments.steps
        metrics = self.folder.metrics
        self.folder.clear()
        for table in (metrics, self.folder.evaluations):
            table.drop_after(self.step)
        self.model.train()
        self.stopped_by = None
        with (
            Progress(self.step, total, report) as progress,
            interruptible() as stop,
            _nothing_to_collect(),
        ):
            for note in self.notes:
                progress.say(f"note: {note}")
            started = time.perf_counter()
            while self.step < total and stop.signal is None:
                norm, rate = self.train_step(self.tally)
                at_end = self.step == total
                if self.step % self.arguments.log_every == 0 or at_end:
                    self._stop_if_not_finite()
                    speed = self.tally.tokens / (time.perf_counter() - started - progress.seconds_away)
                    figures = self.tally.means()
                    row = {
                        "step": self.step,
                        **figures,
                        "learning_rate": rate,
                        "grad_norm": float(norm),
                        "tokens_per_second": speed,
                    }
                    metrics.append(row, progress.say)
                    progress.show(figures, speed)
                    self.tally, started, progress.seconds_away = Tally(), time.perf_counter(), 0.0
                progress.advance()
                if self.step % self.arguments.eval_every == 0 or at_end:
                    self._evaluate(progress)
                if self.step % self.arguments.save_every == 0 and not at_end:
                    self._save_on_the_way(progress)
            if self.folder.newest_step() < self.step:
                self.save()
            if self.step < total:
                self.stopped_by = stop.signal
                if self.step:
                    progress.say(f"stopped at step {self.step} of {total} and saved; go on with --resume")
                else:
                    progress.say("stopped before the first step: there is nothing to save")
        return self.evaluation

    def train_step(self, tally: Tally) -> tuple[Array, float]:
        """One optimiser step. Returns the gradients' norm, an array without axes, and the learning rate.

        Nothing here waits for a GPU (except loss scaling): the next step is prepared while it works on this one.
        """
        micro_batches = self.arguments.gradient_accumulation_steps
        self.optimizer.zero_grad()
        with _no_warnings_of_overflow():
            with backend.default_matmul_precision(self.arguments.precision):
                for _ in range(micro_batches):
                    batch = self.data.next_batch()
                    output = self.model(**batch)
                    assert output.loss is not None
                    self._unseen.append((self.step + 1, "the loss", output.loss.data))
                    tally.add(output, batch)
                    loss = output.loss if micro_batches == 1 else output.loss * (1 / micro_batches)
                    self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)
            norm = optim.clip_grad_norm(self.model.parameters(), self.arguments.max_grad_norm)
            rate = self.optimizer.groups[0]["lr"]
            stepped = self.scaler.step(self.optimizer)
        if stepped or self.scaler.get_scale() <= 1:  # otherwise a smaller scale will do
            self._unseen.append((self.step + 1, "the norm of the gradients", norm))
        self.scaler.update()
        self.schedule.step()
        self.step += 1
        return norm, rate

    def _stop_if_not_finite(self) -> None:
        """Look at the losses and norms of the steps since the last look."""
        unseen, self._unseen = self._unseen, []
        for step, what, value in unseen:
            if math.isfinite(value):
                continue
            saved = self.folder.newest_step()
            kept = f"the checkpoint of step {saved} is kept" if saved else "no checkpoint was saved before it"
            raise DivergenceError(
                f"{what} is {float(value)} in step {step}; {kept}. Try a lower learning rate or a longer warm-up"
            )

    def _evaluate(self, progress: Progress) -> None:
        if not self.held_out:
            return
        self._stop_if_not_finite()
        with progress.away():
            self.evaluation = evaluate(self.model, self.held_out)
        row = {"step": self.step, **self.evaluation, "unigram_entropy": self.unigram_entropy}
        self.folder.evaluations.append(row, progress.say)
        progress.say(
            f"step {self.step}: held out {describe(self.evaluation)} (unigram entropy {self.unigram_entropy:.3f})"
        )

    # --- Saving and resuming -----------------------------------------------------------------------------

    def save(self) -> Path:
        """Write the checkpoint of this step, whole or not at all, and drop all but the newest two.

        Raises SaveError if it cannot be written, DivergenceError if the run has stopped being finite; the
        checkpoints before it are untouched.
        """
        self._stop_if_not_finite()
        names = [name for name, _ in self._optimised()]
        moments = {
            f"{name}.{i}": backend.to_numpy(array)
            for name, arrays in zip(names, self.optimizer.state, strict=True)
            for i, array in enumerate(arrays)
        }
        state = TrainingState(
            step=self.step,
            optimizer_steps=self.optimizer.steps,
            scaler=self.scaler.state_dict(),
            random=random.get_state(),
            data=self.data.state_dict(),
            tally=self.tally.state_dict(),
            arguments=dataclasses.asdict(self.arguments),
            corpus=self.corpus,
            held_out=self.held_out_share,
            held_out_text=_fingerprint(self.held_out),
            evaluation=self.evaluation,
            environment=environment(),
        )
        files = pretrained_files(self.model, self.tokenizer)
        files[MOMENTS] = save(moments)
        files[STATE] = (json.dumps(dataclasses.asdict(state), indent=2) + "\n").encode()
        return self.folder.save(self.step, files)

    def _save_on_the_way(self, progress: Progress) -> None:
        try:
            with progress.away():
                self.save()
        except SaveError as error:
            progress.say(f"step {self.step}: {error}; training goes on, and saves again at the next chance")

    def _optimised(self) -> Iterator[tuple[str, Any]]:
        """The parameters in the optimiser's order, with their names."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        for group in self.optimizer.groups:
            for parameter in group["params"]:
                yield names[id(parameter)], parameter

    def _load(self, folder: Path) -> None:
        """Go on from a checkpoint. Raises CheckpointError; nothing on the disk is changed."""
        with self._naming_the_one_before(folder):
            state = read_state(folder)
            saved = from_pretrained(folder)
        differing = _differences(saved.model.config.to_dict(), self.model.config.to_dict())
        differing += _differences(state.arguments, dataclasses.asdict(self.arguments))
        if saved.tokenizer is None or saved.tokenizer.vocab != self.tokenizer.vocab:
            differing.append("the vocabulary")
        elif saved.tokenizer.lower_case != self.tokenizer.lower_case:
            differing.append("whether the text is lower-cased")
        if state.corpus != self.corpus:
            differing.append(f"the text (fingerprint {state.corpus} there, {self.corpus} here)")
        held_out = _fingerprint(self.held_out)
        if (
            not differing and state.held_out_text != held_out
        ):  # which the vocabulary and the settings change too
            differing.append(f"the held-out text (fingerprint {state.held_out_text} there, {held_out} here)")
        if differing:
            raise CheckpointError(
                f"{folder} cannot be resumed with other settings; these differ: {'; '.join(differing)}"
            )
        with self._naming_the_one_before(folder):
            moments = self._read_moments(folder / MOMENTS)
            self.data.load_state_dict(state.data)
            if self.data.index > self.data.batches_per_epoch:
                raise CheckpointError(
                    f"{folder / STATE}: data.index: expected at most {self.data.batches_per_epoch}, the batches of "
                    f"an epoch, got {self.data.index}"
                )
        self.model.load_state_dict(saved.model.state_dict())
        self.optimizer.load_state_dict({"steps": state.optimizer_steps, "state": moments})
        self.scaler.load_state_dict(state.scaler)
        self.tally.load_state_dict(state.tally)
        self.schedule.step()
        random.set_state(state.random)
        self.step, self.evaluation = state.step, state.evaluation
        changed = _differences(state.environment, environment())
        if not is_there(folder / SUMS):
            self.notes.append(f"{folder} has no {SUMS}: whether its files are what was saved is not known")
        if changed:
            note = f"the run goes on, but not bit for bit as it would have there: {'; '.join(changed)}"
            self.notes.append(shown(note, 1000))

    def _read_moments(self, path: Path) -> list[list[np.ndarray]]:
        """AdamW's two moments of each parameter, in the optimiser's order. Raises CheckpointError."""
        found = read_safetensors(path)
        moments = []
        for name, parameter in self._optimised():
            pair = [found.pop(f"{name}.{i}", None) for i in range(2)]
            for i, array in enumerate(pair):
                if array is None:
                    raise CheckpointError(f"{path} has no moments for '{name}.{i}'")
                if array.shape != tuple(parameter.shape):
                    raise CheckpointError(
                        f"{path} has moments of other shapes: {array.shape} for '{name}.{i}'"
                    )
                if array.dtype.kind != "f" or not np.isfinite(array).all() or (i == 1 and (array < 0).any()):
                    raise CheckpointError(f"{path} has numbers for '{name}.{i}' that are no moments")
            moments.append([array for array in pair if array is not None])
        if found:
            raise CheckpointError(f"{path} has moments for what the model has not: {sorted(found)[0]!r}")
        return moments

    @contextmanager
    def _naming_the_one_before(self, checkpoint: Path) -> Iterator[None]:
        """Let an error about a damaged checkpoint say from where the run can go on."""
        try:
            yield
        except (CheckpointError, ConfigError) as error:
            before = [path for path in self.folder.checkpoints() if step_of(path) < step_of(checkpoint)]
            help = f"; {before[-1]} is there: to go on from it, remove {checkpoint}" if before else ""
            raise CheckpointError(f"{error}{help}") from None


def _fingerprint(batches: list[Batch]) -> str:
    """A hash of batches: other text, or other masks, have another one."""
    digest = hashlib.sha256()
    for batch in batches:
        for name in sorted(batch):
            digest.update(np.ascontiguousarray(batch[name]).astype(np.int64).tobytes())
    return digest.hexdigest()[:16]


def _differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    return [
        f"{name} is {there.get(name)} there, {here.get(name)} here"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]


def describe(figures: dict[str, float]) -> str:
    """Losses and accuracies as one line for the reader."""
    return (
        f"MLM loss {figures['mlm_loss']:.3f}, accuracy {figures['mlm_accuracy']:.1%}; "
        f"NSP loss {figures['nsp_loss']:.3f}, accuracy {figures['nsp_accuracy']:.1%}"
    )
