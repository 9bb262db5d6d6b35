"""The settings of pre-training and of fine-tuning: each on a line of its own."""

from __future__ import annotations

from dataclasses import dataclass

from minigrad import backend
from minigrad.training.fields import check, documented, setting


@documented
@dataclass(frozen=True)
class PretrainingArguments:
    """The settings of a run; the defaults suit the `reduced` preset (the paper's: appendix A.2).

    Raises ValueError for values that make no sense.
    """

    steps: int = setting(4000, "optimiser steps", at_least=1)
    batch_size: int = setting(32, "sentence pairs a micro-batch", at_least=1)
    max_length: int = setting(64, "tokens a pair", at_least=5)  # [CLS] A [SEP] B [SEP]
    # For hidden 128: attention forms within the run; at 1e-3 it barely does.
    learning_rate: float = setting(2e-3, "the peak", positive=True)
    warmup_steps: int = setting(300, "steps of linear rise before the linear fall")
    weight_decay: float = setting(0.01, "of AdamW, not on biases and LayerNorms")
    max_grad_norm: float = setting(1.0, "where the gradients' joint norm is clipped", positive=True)
    gradient_accumulation_steps: int = setting(1, "micro-batches a step", at_least=1)
    seed: int = setting(0, "of weights, data, masks and dropout")
    log_every: int = setting(20, "steps between rows of metrics.csv", at_least=1)
    eval_every: int = setting(500, "steps between held-out evaluations", at_least=1)
    save_every: int = setting(500, "steps between checkpoints", at_least=1)
    precision: str = setting(
        "float32",
        "what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
        one_of=backend.PRECISIONS,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps must be within 0 … steps = {self.steps}, got {self.warmup_steps}")


@documented
@dataclass(frozen=True)
class FinetuningArguments:
    """The settings of a run of fine-tuning; the defaults are within the paper's ranges (appendix A.3).

    The rate alone depends on the model: `finetuning.default_rate`.

    Raises ValueError for values that make no sense.
    """

    epochs: int = setting(3, "passes over the examples", at_least=1)
    batch_size: int = setting(32, "examples a micro-batch", at_least=1)
    max_length: int = setting(128, "tokens an example", at_least=3)
    learning_rate: float = setting(
        0.0, "the peak; 0 leaves it to the model's width: 1.8e-3 for 128, 5e-5 for 768"
    )
    warmup_share: float = setting(0.1, "share of the steps in which the rate rises, before it falls")
    weight_decay: float = setting(0.01, "of AdamW, not on biases and LayerNorms")
    max_grad_norm: float = setting(1.0, "where the gradients' joint norm is clipped", positive=True)
    gradient_accumulation_steps: int = setting(1, "micro-batches a step", at_least=1)
    frozen: bool = setting(False, "train the new layer alone, and leave the encoder as it is")
    seed: int = setting(0, "of the new layer, the order of the examples and dropout")
    log_every: int = setting(10, "steps between rows of metrics.csv", at_least=1)
    eval_every: int = setting(0, "steps between evaluations; 0 is once an epoch")
    save_every: int = setting(0, "steps between checkpoints; 0 is once an epoch")
    keep: str = setting(
        "last", "which model to keep: of the last step, or of the best evaluation", one_of=("last", "best")
    )
    precision: str = setting(
        "float32",
        "what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
        one_of=backend.PRECISIONS,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.warmup_share > 1:
            raise ValueError(f"warmup_share must be within 0 … 1, got {self.warmup_share}")
