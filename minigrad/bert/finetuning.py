"""Fine-tuning: a pre-trained encoder and a new layer learn a task from examples (Devlin et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from minigrad import random
from minigrad.bert.checkpoint import from_pretrained, read_config
from minigrad.bert.examples import label_numbers, read_examples
from minigrad.bert.features import EncodedExamples, TaskData, encode_examples, pad
from minigrad.bert.info import require_memory
from minigrad.bert.reading import CheckpointError
from minigrad.bert.runs import RunFolder, latest_checkpoint
from minigrad.bert.settings import FinetuningArguments
from minigrad.bert.state import FINETUNING
from minigrad.bert.task_metrics import describe_scores
from minigrad.bert.task_predict import MODELS, evaluate_examples
from minigrad.bert.tokenizer import WordPieceTokenizer
from minigrad.bert.training import Training, require_positions

__all__ = ["Finetuning", "prepare_finetuning"]


class Finetuning(Training):
    """A run of fine-tuning: what `python -m minigrad.bert finetune` and the chapters use.

    model: of the class in `MODELS` that is the task's. tokenizer: what made the examples. train, held_out: as
    `encode_examples` makes them; without held_out there is no evaluation. output: the run's folder, which is locked
    until `run` ends, or the `with` that this is used in. resume: go on from the newest checkpoint in `output`.

    Raises what Pretraining raises, for the same reasons.
    """

    kind = FINETUNING

    def __init__(
        self,
        model: Any,
        tokenizer: WordPieceTokenizer,
        train: EncodedExamples,
        held_out: EncodedExamples | None,
        output: str | Path | RunFolder,
        arguments: FinetuningArguments,
        resume: bool = False,
    ) -> None:
        require_positions(arguments.max_length, model.config)
        size, padding = arguments.batch_size, model.config.pad_token_id
        self.train, self.examples = train, held_out
        held = held_out.features if held_out else []
        batches = [pad(held[i : i + size], padding) for i in range(0, len(held), size)]
        super().__init__(arguments, tokenizer, batches, output, train.fingerprint(), None)
        self.notes += [*train.notes, *(held_out.notes if held_out else [])]
        with self.folder.locked_unless_it_fails():
            checkpoint = self.folder.to_resume(resume)
            random.manual_seed(arguments.seed)
            if arguments.frozen:
                for parameter in model.bert.parameters():
                    parameter.requires_grad = False
            self.data = TaskData(train.features, size, arguments.seed, padding)
            batches_in_all = arguments.epochs * self.data.batches_per_epoch
            steps = -(-batches_in_all // arguments.gradient_accumulation_steps)
            self.set_up(model, steps, round(arguments.warmup_share * steps))
            if checkpoint is not None:
                self.load(checkpoint)

    def is_due(self, every: int) -> bool:
        """Whether what is done every so many steps, or once an epoch, is to be done now; at the end, all is."""
        accumulated = self.arguments.gradient_accumulation_steps
        return super().is_due(every or max(1, self.data.batches_per_epoch // accumulated))

    def measure(self) -> dict[str, float]:
        """Loss, accuracy and F1."""
        assert self.examples is not None
        return evaluate_examples(self.model, self.examples, self.arguments.batch_size)

    def describe(self, figures: dict[str, float]) -> str:
        """Held-out figures as one line for the reader."""
        return describe_scores(self.train.task, figures)

    def brief(self, figures: dict[str, float]) -> list[str]:
        """The figures of the last steps as the pieces of a progress bar."""
        return [f"loss {figures['loss']:.3f}", f"right {figures['accuracy']:.0%}"]


def prepare_finetuning(
    model: str | Path,
    data: str | Path,
    settings: FinetuningArguments,
    output: str | Path,
    *,
    evaluation: str | Path | None = None,
    task: str | None = None,
    resume: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> Finetuning:
    """A run on a file of examples, ready to `run`: what `python -m minigrad.bert finetune` starts with.

        with prepare_finetuning("runs/reduced", "train.csv", FinetuningArguments(), "runs/mine", say=print) as run:
            run.run()

    model: a run's folder or a checkpoint, of which the encoder is taken. data, evaluation: files of examples, as in
    `read_examples`; task: one of TASKS, or None, if the columns are to say it. output, resume: as in Finetuning. say:
    takes each line for the reader.

    Raises what Finetuning, `from_pretrained`, `read_examples` and `encode_examples` raise; CheckpointError for a model
    without a vocabulary; MemoryError for a model that does not fit. All examples are read and checked before anything
    is trained.
    """
    source = latest_checkpoint(model)
    config = read_config(source)
    require_positions(settings.max_length, config)
    require_memory(config, settings.batch_size, settings.max_length)
    train = read_examples(data, task)
    held_out = None if evaluation is None else read_examples(evaluation, train.task)
    if train.task in ("pairs", "qa") and config.type_vocab_size < 2:
        raise ValueError(f"{train.task}: the model knows one kind of segment only (its type_vocab_size is 1)")
    labels = label_numbers(train)
    folder = RunFolder(output, FINETUNING)
    with folder.locked_unless_it_fails():
        folder.to_resume(resume)
        random.manual_seed(settings.seed)
        loaded = from_pretrained(source, MODELS[train.task], labels)
        if loaded.tokenizer is None:
            raise CheckpointError(f"{model} has no vocab.txt, which fine-tuning needs")
        for note in loaded.notes:
            say(f"note: {note}")
        encoded = [
            None if one is None else encode_examples(one, loaded.tokenizer, settings.max_length, labels)
            for one in (train, held_out)
        ]
        assert encoded[0] is not None
        classes = "" if train.task == "qa" else f", {len(labels)} labels"
        to_evaluate = f"; {len(held_out.rows):,} in {evaluation}" if held_out else ""
        say(f"{train.task}: {len(train.rows):,} examples in {data}{classes}{to_evaluate}")
        return Finetuning(loaded.model, loaded.tokenizer, encoded[0], encoded[1], folder, settings, resume)
