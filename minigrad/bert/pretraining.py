"""The training loop: masked language modelling and next-sentence prediction together.

A run lives in a folder: `checkpoint-000500/` (Hugging Face's files, and the state of the training),
`metrics.csv` and `evaluation.csv`. Everything that the next step depends on is in the checkpoint, so that
a run that was stopped or killed goes on bit for bit.
"""

from __future__ import annotations

import csv
import dataclasses
import gc
import io
import json
import math
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save

from minigrad import backend, optim, random
from minigrad.bert.checkpoint import (
    CheckpointError,
    from_pretrained,
    pretrained_files,
    read_safetensors,
)
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.corpus import unigram_entropy
from minigrad.bert.data import Batch, PretrainingData
from minigrad.bert.files import SaveError, write_atomic, write_folder_atomic
from minigrad.bert.model import BertForPreTraining, BertPreTrainingOutput
from minigrad.bert.progress import Progress, interruptible
from minigrad.bert.tokenizer import WordPieceTokenizer
from minigrad.tensor import Array, no_grad

__all__ = [
    "DivergenceError",
    "Pretraining",
    "PretrainingArguments",
    "evaluate",
    "latest_checkpoint",
    "parameter_groups",
]

MOMENTS, STATE = "optimizer.safetensors", "training.json"
KEPT_CHECKPOINTS = 2


class DivergenceError(ArithmeticError):
    """The loss or the gradients are not finite any more."""


@dataclass(frozen=True)
class PretrainingArguments:
    """The settings of a run; the defaults suit the `reduced` preset (the paper's: appendix A.2).

    steps: optimiser steps. batch_size: sentence pairs a micro-batch. gradient_accumulation_steps: micro-batches
    a step. max_length: tokens a pair. learning_rate: the peak. warmup_steps: of linear rise; the fall to 0 is
    linear too. weight_decay: not on biases and LayerNorms. max_grad_norm: where the joint norm is clipped.
    seed: of weights, data, masks and dropout. log_every, eval_every, save_every: in steps. precision: what the
    products of training round to (`backend.default_matmul_precision`), with loss scaling if it is float16.

    Raises ValueError for values that make no sense.
    """

    steps: int = 4000
    batch_size: int = 32
    max_length: int = 64
    learning_rate: float = 2e-3  # for hidden 128: attention forms within the run; at 1e-3 it barely does
    warmup_steps: int = 300
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    gradient_accumulation_steps: int = 1
    seed: int = 0
    log_every: int = 20
    eval_every: int = 500
    save_every: int = 500
    precision: str = "float32"

    def __post_init__(self) -> None:
        whole = (
            "steps",
            "batch_size",
            "gradient_accumulation_steps",
            "log_every",
            "eval_every",
            "save_every",
        )
        for name in whole:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.precision not in backend.PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(backend.PRECISIONS)}, got {self.precision!r}"
            )
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if self.seed < 0 or not self.weight_decay >= 0:
            raise ValueError(
                f"seed and weight_decay must be at least 0, got {self.seed}, {self.weight_decay}"
            )
        if not 0 <= self.warmup_steps <= self.steps:
            raise ValueError(f"warmup_steps must be within 0 … steps = {self.steps}, got {self.warmup_steps}")


def parameter_groups(model: BertForPreTraining, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters for AdamW: biases and LayerNorms without decay, as in the released `optimization.py`."""
    decayed: list[Any] = []
    plain: list[Any] = []
    for name, parameter in model.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


# --- Counting --------------------------------------------------------------------------------------------


class Tally:
    """Losses and hits added up over batches, where the model is: nothing waits for a GPU before `means`."""

    def __init__(self) -> None:
        self.mlm_loss: Any = 0.0
        self.nsp_loss: Any = 0.0
        self.mlm_hits: Any = 0
        self.nsp_hits: Any = 0
        self.masked = self.pairs = self.tokens = self.batches = 0

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
        self.batches += 1

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
        with no_grad():
            for batch in batches:
                tally.add(model(**batch), batch)
    finally:
        model.train(training)
    return tally.means()


# --- Checkpoints -----------------------------------------------------------------------------------------


def latest_checkpoint(folder: str | Path) -> Path:
    """The newest complete checkpoint in a run's folder, or the folder itself if it is a checkpoint.

    Raises CheckpointError if there is none.
    """
    folder = Path(folder)
    if (folder / "config.json").is_file():
        return folder
    found = _checkpoints(folder)
    if not found:
        raise CheckpointError(
            f"{folder} has no checkpoint in it; train one with: python -m minigrad.bert pretrain"
        )
    return found[-1]


def _checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints in a run's folder, oldest first."""
    found = [p for p in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", p.name)]
    return sorted(found, key=_step_of)


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("checkpoint-"))


@contextmanager
def _nothing_to_collect() -> Iterator[None]:
    """A step makes no cycles: let the garbage collector not look at the model and the text again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


# --- The run ---------------------------------------------------------------------------------------------


class Pretraining:
    """A run of pre-training: what `python -m minigrad.bert pretrain` and the chapters use.

    config: of the model to make. documents: training text as ids (`encode_documents`). tokenizer: what made
    them. held_out: batches for the evaluation. output: the run's folder. corpus: a name or fingerprint of the
    text, so that a resumed run can tell whether it is the same. resume: go on from the newest checkpoint in
    `output`.

    Raises CheckpointError if `output` holds a run and `resume` is false, or if settings, model, vocabulary or
    text differ from those of the run to resume (each named).
    """

    def __init__(
        self,
        config: BertConfig,
        documents: list[list[list[int]]],
        tokenizer: WordPieceTokenizer,
        held_out: list[Batch],
        output: str | Path,
        arguments: PretrainingArguments,
        corpus: str = "",
        resume: bool = False,
    ) -> None:
        if arguments.max_length > config.max_position_embeddings:
            raise ValueError(
                f"max_length is {arguments.max_length}, but the model has {config.max_position_embeddings} positions"
            )
        if config.type_vocab_size < 2:
            raise ValueError("type_vocab_size must be at least 2, for sentences A and B; got 1")
        if tokenizer.vocab_size > config.vocab_size:
            raise ValueError(
                f"the vocabulary has {tokenizer.vocab_size} pieces, the model only {config.vocab_size}"
            )
        self.arguments, self.tokenizer, self.held_out = arguments, tokenizer, held_out
        self.output = Path(output)
        self.corpus = corpus
        checkpoint = self._checkpoint_to_resume(resume)
        random.manual_seed(arguments.seed)
        self.model = BertForPreTraining(config)
        self.optimizer = optim.AdamW(
            parameter_groups(self.model, arguments.weight_decay), lr=arguments.learning_rate, eps=1e-6
        )
        self.scaler = optim.GradScaler(enabled=arguments.precision == "float16")
        self.schedule = optim.LinearWarmupDecay(self.optimizer, arguments.warmup_steps, arguments.steps)
        self.data = PretrainingData(
            documents, tokenizer, arguments.batch_size, arguments.max_length, arguments.seed
        )
        self.unigram_entropy = unigram_entropy(t for document in documents for s in document for t in s)
        self.step = 0
        self.evaluation: dict[str, float] = {}
        # of the steps not looked at yet: the step, what it is, and its value, which may still be on a GPU
        self._unseen: list[tuple[int, str, Any]] = []
        if checkpoint is not None:
            self._load(checkpoint)

    def _checkpoint_to_resume(self, resume: bool) -> Path | None:
        if (self.output / "config.json").exists():
            raise CheckpointError(f"{self.output} is a checkpoint: name the folder of a run, or a new one")
        checkpoints = _checkpoints(self.output)
        if not checkpoints:
            return None  # nothing saved yet: resuming starts from the beginning
        if not resume:
            raise CheckpointError(
                f"{self.output} holds a run already ({checkpoints[-1].name}): resume it, or name another folder"
            )
        return checkpoints[-1]

    # --- Training ----------------------------------------------------------------------------------------

    def run(self, report: Callable[[str], None] | None = None) -> dict[str, float]:
        """Train to the last step, or until Ctrl-C, which finishes the step, saves and returns.

        report: takes each line for the reader; by default it is printed above the progress bar. Returns the
        last held-out figures. Raises DivergenceError naming the step at which the loss or the gradients
        stopped being finite, which is looked at every `log_every` steps and before each save, so that the last
        checkpoint is from before; SaveError if the last
        checkpoint cannot be written (one that fails on the way is reported, and the run goes on).
        """
        kernels = backend.of(next(self.model.parameters()).data)
        kernels.keep_freed_memory()
        total = self.arguments.steps
        self._open_tables()
        self.model.train()
        with (
            Progress(self.step, total, report) as progress,
            interruptible() as interrupted,
            _nothing_to_collect(),
        ):
            tally, started = Tally(), time.perf_counter()
            while self.step < total and not interrupted.is_set():
                norm, rate = self.train_step(tally)
                at_end = self.step == total
                if self.step % self.arguments.log_every == 0 or at_end:
                    self._stop_if_not_finite()
                    speed = tally.tokens / (time.perf_counter() - started - progress.seconds_away)
                    row = {
                        "step": self.step,
                        **tally.means(),
                        "learning_rate": rate,
                        "grad_norm": float(norm),
                    }
                    self._write_row("metrics.csv", {**row, "tokens_per_second": speed}, progress)
                    progress.show(tally.means(), speed)
                    tally, started, progress.seconds_away = Tally(), time.perf_counter(), 0.0
                progress.advance()
                if self.step % self.arguments.eval_every == 0 or at_end:
                    self._evaluate(progress)
                if self.step % self.arguments.save_every == 0 and not at_end:
                    self._save_on_the_way(progress)
            if self._newest_saved() < self.step:
                self.save()
            if self.step < total:
                progress.say(f"stopped at step {self.step} of {total} and saved; go on with --resume")
        return self.evaluation

    def train_step(self, tally: Tally) -> tuple[Array, float]:
        """One optimiser step. Returns the gradients' norm, an array without axes, and the learning rate.

        Nothing here waits for a GPU (except loss scaling): the next step is prepared while it works on this one.
        """
        micro_batches = self.arguments.gradient_accumulation_steps
        self.optimizer.zero_grad()
        # With loss scaling an infinite gradient is no news: NumPy need not warn of it, the scaler sees it.
        overflow: Literal["ignore"] | None = "ignore" if self.scaler.enabled else None
        errors = np.errstate(over=overflow, invalid=overflow)
        with backend.default_matmul_precision(self.arguments.precision), errors:
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
            saved = self._newest_saved()
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
        self._write_row("evaluation.csv", row, progress)
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
        state = {
            "step": self.step,
            "optimizer_steps": self.optimizer.steps,  # fewer, where loss scaling left some out
            "scaler": self.scaler.state_dict(),
            "random": random.get_state(),
            "data": self.data.state_dict(),
            "arguments": dataclasses.asdict(self.arguments),
            "corpus": self.corpus,
            "evaluation": self.evaluation,
        }
        files = pretrained_files(self.model, self.tokenizer)
        files[MOMENTS] = save(moments)
        files[STATE] = (json.dumps(state, indent=2) + "\n").encode()
        folder = self.output / f"checkpoint-{self.step:06d}"
        write_folder_atomic(folder, files)
        for old in _checkpoints(self.output)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(old, ignore_errors=True)
        return folder

    def _save_on_the_way(self, progress: Progress) -> None:
        try:
            with progress.away():
                self.save()
        except SaveError as error:
            progress.say(f"step {self.step}: {error}; training goes on, and saves again at the next chance")

    def _newest_saved(self) -> int:
        return max(map(_step_of, _checkpoints(self.output)), default=0)

    def _optimised(self) -> Iterator[tuple[str, Any]]:
        """The parameters in the optimiser's order, with their names."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        for group in self.optimizer.groups:
            for parameter in group["params"]:
                yield names[id(parameter)], parameter

    def _load(self, folder: Path) -> None:
        saved = from_pretrained(folder)
        try:
            state = json.loads((folder / STATE).read_bytes())
            names = (
                "arguments", "corpus", "step", "optimizer_steps", "scaler", "data", "random", "evaluation",
            )  # fmt: skip
            arguments, corpus, step, optimizer_steps, scaler, data, draws, evaluation = (
                state[name] for name in names
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{folder / STATE} is missing or damaged: {error}") from None
        differing = _differences(saved.model.config.to_dict(), self.model.config.to_dict())
        differing += _differences(arguments, dataclasses.asdict(self.arguments))
        if saved.tokenizer is None or saved.tokenizer.vocab != self.tokenizer.vocab:
            differing.append("the vocabulary")
        elif saved.tokenizer.lower_case != self.tokenizer.lower_case:
            differing.append("whether the text is lower-cased")
        if corpus != self.corpus:
            differing.append(f"the text (fingerprint {corpus} there, {self.corpus} here)")
        if differing:
            raise CheckpointError(
                f"{folder} cannot be resumed with other settings; these differ: {'; '.join(differing)}"
            )
        self.model.load_state_dict(saved.model.state_dict())
        moments = read_safetensors(folder / MOMENTS)
        try:
            arrays = [[moments[f"{name}.{i}"] for i in range(2)] for name, _ in self._optimised()]
        except KeyError as error:
            raise CheckpointError(f"{folder / MOMENTS} has no moments for {error}") from None
        try:
            self.optimizer.load_state_dict({"steps": optimizer_steps, "state": arrays})
        except ValueError:
            raise CheckpointError(f"{folder / MOMENTS} has moments of other shapes") from None
        self.scaler.load_state_dict(scaler)
        self.schedule.step()
        self.data.load_state_dict(data)
        random.set_state(draws)
        self.step, self.evaluation = step, evaluation

    # --- Tables ------------------------------------------------------------------------------------------

    def _open_tables(self) -> None:
        """Make the folder; drop rows of steps that the checkpoint does not know of."""
        self.output.mkdir(parents=True, exist_ok=True)
        for name in ("metrics.csv", "evaluation.csv"):
            path = self.output / name
            if path.exists():
                header, *rows = path.read_text().splitlines() or [""]
                kept = [
                    row for row in rows if row.split(",")[0].isdigit() and int(row.split(",")[0]) <= self.step
                ]
                if kept:
                    write_atomic(path, "".join(line + "\n" for line in [header, *kept]).encode())
                else:
                    path.unlink()

    def _write_row(self, name: str, row: dict[str, float], progress: Progress) -> None:
        path = self.output / name
        text = io.StringIO()
        writer = csv.DictWriter(text, list(row), lineterminator="\n")
        if not path.exists():
            writer.writeheader()
        writer.writerow(
            {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
        )
        try:
            with open(path, "a") as file:
                file.write(text.getvalue())
        except OSError as error:
            progress.say(f"step {self.step}: could not write to {path}: {error.strerror}; training goes on")


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
