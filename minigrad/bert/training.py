"""What pre-training and fine-tuning share, and translation does not: BERT's files, its optimiser, its positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minigrad import optim
from minigrad.bert.checkpoint import from_pretrained, pretrained_files
from minigrad.bert.config import BertConfig
from minigrad.bert.examples import NUMBERS
from minigrad.bert.metrics import Tally
from minigrad.bert.settings import FinetuningArguments, PretrainingArguments
from minigrad.bert.task_metrics import NumberTally, TaskTally
from minigrad.nn import Module
from minigrad.training.folders import RunKind
from minigrad.training.loop import Training
from minigrad.training.pretrained import Pretrained

_LOSSES = ("loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")
PRETRAINING = RunKind(
    "pre-training", PretrainingArguments, Tally, _LOSSES, _LOSSES, beside=("unigram_entropy",)
)
FINETUNING = RunKind(
    "fine-tuning", FinetuningArguments, TaskTally, ("loss", "accuracy"), ("loss", "accuracy", "f1")
)
TO_A_NUMBER = RunKind(  # the same, where labels are numbers
    "fine-tuning", FinetuningArguments, NumberTally, ("loss",), ("loss", "error", "pearson", "spearman")
)


def finetuning_kind(task: str) -> RunKind:
    """What a run of fine-tuning measures."""
    return TO_A_NUMBER if task in NUMBERS else FINETUNING


def parameter_groups(
    model: Module, weight_decay: float, lr: float | None = None, unit: float = 1.0
) -> list[dict[str, Any]]:
    """The parameters for AdamW: biases and LayerNorms without decay, as in the released `optimization.py`.

    lr, unit: the rate, and the unit of the numbers that a classifier gives: its rate is lr times that, since a step of
    Adam is as large as the rate. Parameters that require no gradient are left out.
    """
    groups: dict[tuple[float, float], list[Any]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decay = 0.0 if name.endswith("bias") or "LayerNorm" in name else weight_decay
            groups.setdefault((decay, unit if name.startswith("classifier.") else 1.0), []).append(parameter)
    return [
        {"params": those, "weight_decay": decay / own, **({} if lr is None else {"lr": lr * own})}
        for (decay, own), those in groups.items()
    ]


def require_positions(max_length: int, config: BertConfig) -> None:
    """Raise ValueError if sequences may be longer than the model has positions."""
    if max_length > config.max_position_embeddings:
        raise ValueError(
            f"max_length is {max_length}, but the model has {config.max_position_embeddings} positions"
        )


class BertTraining(Training):
    """A run that trains a BERT: Pretraining or Finetuning. unit: of the labels, where they are numbers."""

    unit = 1.0

    @property
    def learning_rate(self) -> float:
        """The peak of the schedule."""
        return self.arguments.learning_rate

    def optimizer_and_schedule(self, warmup_steps: int) -> tuple[optim.Optimizer, optim.Schedule]:
        """AdamW, a linear rise and a linear fall (Devlin et al. 2019, appendix A.2)."""
        groups = parameter_groups(self.model, self.arguments.weight_decay, self.learning_rate, self.unit)
        adamw = optim.AdamW(groups, lr=self.learning_rate, eps=1e-6)
        return adamw, optim.LinearWarmupDecay(adamw, warmup_steps, self.total_steps)

    def model_files(self) -> dict[str, bytes]:
        """The files of model and tokenizer in a checkpoint, by name."""
        return pretrained_files(self.model, self.tokenizer)

    def read_model(self, checkpoint: Path) -> Pretrained:
        """What `model_files` has made. Raises CheckpointError or ConfigError."""
        return from_pretrained(checkpoint, type(self.model))
