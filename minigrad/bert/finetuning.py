"""Fine-tuning: a pre-trained encoder and a new layer learn a task from examples (Devlin et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minigrad import random
from minigrad.bert.checkpoint import config_file, from_pretrained, pretrained_files, read_config
from minigrad.bert.example_remarks import describe_labels, remarks
from minigrad.bert.examples import INPUTS, NUMBERS, OR_NONE, TARGETS, have_none, label_numbers, read_examples
from minigrad.bert.features import EncodedExamples, TaskData, encode_examples, pad
from minigrad.bert.info import require_memory
from minigrad.bert.settings import FinetuningArguments
from minigrad.bert.task_metrics import counted, describe_scores, yardstick
from minigrad.bert.task_predict import MODELS, evaluate_examples
from minigrad.bert.tasks import TaskModel
from minigrad.bert.training import BertTraining, finetuning_kind, require_positions
from minigrad.distributed import Share, World
from minigrad.nn import Module
from minigrad.tensor import Tensor
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.folders import BEST, RunFolder, read_latest
from minigrad.training.progress import Progress
from minigrad.training.reading import CheckpointError
from minigrad.training.shares import shares_of
from minigrad.training.state import read_state


def default_rate(hidden_size: int) -> float:
    """The peak of the learning rate where none is given: 5e-5 at BERT-Base's width, as 1/H² for others, 2e-3 at most.

    Measured on 300 texts of three classes, three epochs, two or three seeds: a model 128 wide gets 36 to 61 % right
    at 5e-5, 96 % at 1e-3 and 100 % at 2e-3; one 384 wide 60 % at 5e-5 and 100 % at 2e-4. On 1,200 pairs the latter
    gets 100 % at 2e-4, and learns nothing at 1e-3. Source of the 5e-5: Devlin et al. (2019), appendix A.3.
    """
    return min(2e-3, 5e-5 * (768 / hidden_size) ** 2)


class Finetuning(BertTraining):
    """A run of fine-tuning: what `python -m minigrad.bert finetune` runs.

    model: of the task's class in `MODELS`. tokenizer: the one that made the examples. train, held_out: as
    `encode_examples` makes them; without held_out there is no evaluation. output: the run's folder, which is
    locked until `run` ends, or the `with` that this is used in. resume: go on from the newest checkpoint in
    `output`. shares: as in Run.

    Raises what Pretraining raises, for the same reasons, and ValueError for keep="best" without held_out.
    """

    def __init__(
        self,
        model: TaskModel,
        tokenizer: WordPieceTokenizer,
        train: EncodedExamples,
        held_out: EncodedExamples | None,
        output: str | Path | RunFolder,
        arguments: FinetuningArguments,
        resume: bool = False,
        shares: int | None = None,
    ) -> None:
        require_positions(arguments.max_length, model.config)
        if arguments.keep == "best" and held_out is None:
            raise ValueError("keep is 'best', but there are no examples to evaluate the model on")
        size, padding = arguments.batch_size, model.config.pad_token_id
        self.train, self.examples = train, held_out
        if train.task in NUMBERS:
            self.unit = float(np.std([row["label"] for row in train.rows])) or 1.0
        self.kind = finetuning_kind(train.task)
        held = held_out.features if held_out else []
        batches = [pad(held[i : i + size], padding) for i in range(0, len(held), size)]
        super().__init__(arguments, tokenizer, batches, output, train.fingerprint(), None, shares=shares)
        self.yardstick = yardstick(held_out.task, held_out.rows) if held_out else None
        self.best: dict[str, float] = {}  # the figures of the best evaluation so far
        with self.folder.locked_unless_it_fails():
            checkpoint = self.folder.to_resume(resume)
            random.manual_seed(arguments.seed)
            if arguments.frozen:
                for parameter in model.bert.parameters():
                    parameter.requires_grad = False
            teaching = [one for one in train.features if one.teaches]
            self.data = TaskData(teaching, size, arguments.seed, padding)
            batches_in_all = arguments.epochs * self.data.batches_per_epoch
            steps = -(-batches_in_all // arguments.gradient_accumulation_steps)
            self.set_up(model, steps, round(arguments.warmup_share * steps))
            if checkpoint is not None:
                self.load(checkpoint)

    @property
    def learning_rate(self) -> float:
        """The peak of the schedule: the one that was set, or the default for the model's width."""
        return self.arguments.learning_rate or default_rate(self.model.config.hidden_size)

    def forward(self, model: Module, share: Share) -> tuple[Any, Tensor]:
        """What a model makes of a share of a batch, and its part of the loss of the whole batch."""
        output = model(**share.batch)
        return output, output.loss * (share.weight(counted(share.whole)) / self.unit**2)

    def model_files(self) -> dict[str, bytes]:
        """The files of model and tokenizer in a checkpoint, by name; config.json names the task."""
        task = OR_NONE if have_none(self.train.rows) else self.train.task
        return pretrained_files(self.model, self.tokenizer, task)

    def load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint. Raises CheckpointError; nothing on the disk is changed."""
        super().load(checkpoint)
        if self.arguments.keep == "last":
            self.best = self.evaluation
        elif (best := self.output / BEST).exists():
            state = read_state(best, self.kind)
            if state.step <= self.step:  # a later one comes again
                self.best = state.evaluation

    def guess(self, progress: Progress) -> None:
        """After each evaluation: keep the model if it is the best so far and the settings ask for that."""
        if self.arguments.keep != "best":
            self.best = self.evaluation
        elif not self.best or self._rank(self.evaluation) > self._rank(self.best):
            self.best = self.evaluation
            self.try_to_save(self.save_best, progress)

    def save_best(self) -> Path:
        """Write the checkpoint of this step beside the others, as the best so far. Raises SaveError."""
        return self.folder.save_best(self.files(self.tally))

    @staticmethod
    def _rank(figures: dict[str, float]) -> tuple[float, float]:
        """The better, the larger: by accuracy where there are classes, then by loss."""
        return figures.get("accuracy", 0.0), -figures["loss"]

    def is_due(self, every: int) -> bool:
        """Whether what is done every `every` steps, or once an epoch, is due now; at the end, all is."""
        accumulated = self.arguments.gradient_accumulation_steps
        return super().is_due(every or max(1, self.data.batches_per_epoch // accumulated))

    def measure(self) -> dict[str, float]:
        """Loss, and `task_metrics.scores`."""
        assert self.examples is not None
        return evaluate_examples(self.model, self.examples, self.arguments.batch_size)

    def describe(self, figures: dict[str, float]) -> str:
        """Held-out figures as one line for the reader."""
        assert self.yardstick is not None
        return describe_scores(self.train.task, figures, self.yardstick)

    def brief(self, figures: dict[str, float]) -> list[str]:
        """The figures of the last steps as the pieces of a progress bar."""
        right = [f"right {figures['accuracy']:.0%}"] if "accuracy" in figures else []
        return [f"loss {figures['loss']:.3f}", *right]

    def require_memory(self, shares: int) -> None:
        """Raise ValueError if a step in that many shares needs more memory than this machine has."""
        require_memory(self.model.config, self.arguments.batch_size, self.arguments.max_length, shares)


def prepare_finetuning(
    model: str | Path,
    data: str | Path,
    settings: FinetuningArguments,
    output: str | Path,
    *,
    evaluation: str | Path | None = None,
    task: str | None = None,
    named: Mapping[str, str] | None = None,
    dropout: float | None = None,
    resume: bool = False,
    shares: int | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> Finetuning:
    """A run on a file of examples, ready to `run`: what `python -m minigrad.bert finetune` starts with.

        with prepare_finetuning("runs/reduced", "train.csv", FinetuningArguments(), "runs/mine", say=print) as run:
            run.run()

    model: a run's folder or a checkpoint, from which the encoder is taken. data, evaluation: files of
    examples, as in `read_examples`; task: one of TASKS, or None, if the columns are to determine it. named:
    what the files call their columns, as in `read_examples`. dropout: in place of the model's own. output,
    resume, shares: as in Finetuning. say: takes each line for the reader.

    Raises what Finetuning, `from_pretrained`, `read_examples` and `encode_examples` raise; CheckpointError for a model
    without a vocabulary; ConfigError for more labels than a checkpoint can hold; MemoryError for a model that does not
    fit. All examples are read and checked before anything is trained.
    """
    config = read_latest(model, read_config)
    require_positions(settings.max_length, config)
    require_memory(
        config,
        settings.batch_size,
        settings.max_length,
        shares_of(settings.batch_size, settings.max_length, World(), shares),
    )
    train = read_examples(data, task, named=named)
    held_out = None if evaluation is None else read_examples(evaluation, train.task, named=named)
    if len(INPUTS[train.task]) == 2 and config.type_vocab_size < 2:
        raise ValueError(f"{train.task}: the model knows one kind of segment only (its type_vocab_size is 1)")
    labels = label_numbers(train)
    folder = RunFolder(output, finetuning_kind(train.task))
    with folder.locked_unless_it_fails():
        folder.to_resume(resume)
        random.manual_seed(settings.seed)
        kind = MODELS[train.task]
        loaded = read_latest(model, lambda source: from_pretrained(source, kind, labels, dropout))
        config_file(loaded.model, train.task)  # which may be too large to be read again
        if loaded.tokenizer is None:
            raise CheckpointError(f"{model} has no vocab.txt, which fine-tuning needs")
        for note in loaded.notes:
            say(f"note: {note}")
        encoded = [
            None if one is None else encode_examples(one, loaded.tokenizer, settings.max_length, labels)
            for one in (train, held_out)
        ]
        assert encoded[0] is not None
        to_evaluate = f"; {len(held_out.rows):,} in {evaluation}" if held_out else ""
        columns = ", ".join(INPUTS[train.task] + TARGETS[train.task])
        say(f"{train.task} ({columns}): {len(train.rows):,} examples in {data}{to_evaluate}")
        if train.task != "qa":
            say(describe_labels(train))
        if task is None and train.task in NUMBERS:
            say(
                "note: the labels are numbers, and learned as such; --task classify or pairs makes classes of them"
            )
        for note in [*remarks(train, held_out), *(note for one in encoded if one for note in one.notes)]:
            say(f"note: {note}")
        if train.task in NUMBERS and "classifier.bias" in loaded.missing:
            numbers = np.array([row["label"] for row in train.rows])  # many steps away from 0
            loaded.model.classifier.bias.data[:] = numbers.mean()
            loaded.model.classifier.weight.data *= np.float32(numbers.std())
        return Finetuning(
            loaded.model, loaded.tokenizer, encoded[0], encoded[1], folder, settings, resume, shares
        )
