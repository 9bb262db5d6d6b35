"""The settings of a run that learns to translate, and the models to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from minigrad import backend
from minigrad.seq2seq.config import RECURRENT_PRESETS, TRANSFORMER_PRESETS, Seq2SeqConfig
from minigrad.training.fields import check, documented, setting

MOST_PIECES = 10_000  # a Transformer's weights of one text of so many are 0.4 GB for each head and layer

# Small ones, by the name that `--architecture` has for them.
PRESETS: dict[str, Seq2SeqConfig] = {**RECURRENT_PRESETS, "transformer": TRANSFORMER_PRESETS["reduced"]}


@documented
@dataclass(frozen=True)
class TranslationArguments:
    """The settings of a run; the defaults suit the presets and the stories of the grammar.

    A Transformer is trained by Adam and the schedule of Vaswani et al. 2017 (section 5.3), a recurrent model by AdamW
    and a linear rise and fall. Raises ValueError for values that make no sense.
    """

    steps: int = setting(2000, "optimiser steps", at_least=1)
    batch_size: int = setting(32, "pairs a micro-batch", at_least=1)
    max_length: int = setting(
        64, "pieces of a text, and of its translation, with the end token", at_least=2, at_most=MOST_PIECES
    )
    learning_rate: float = setting(
        0.0,
        "the peak; 0: 0.01 for a recurrent model, 0.0015 for a Transformer, or 1 / √(d_model · warm-up steps) where "
        "that is less",
    )
    warmup_steps: int = setting(400, "steps of linear rise before the fall", at_least=1)
    weight_decay: float = setting(0.01, "of AdamW, on matrices; a Transformer has none")
    max_grad_norm: float = setting(1.0, "where the gradients' joint norm is clipped", positive=True)
    gradient_accumulation_steps: int = setting(1, "micro-batches a step", at_least=1)
    seed: int = setting(0, "of weights, data and dropout")
    log_every: int = setting(20, "steps between rows of metrics.csv", at_least=1)
    eval_every: int = setting(500, "steps between held-out evaluations", at_least=1)
    eval_translations: int = setting(200, "held-out pairs that are translated in an evaluation", at_least=1)
    save_every: int = setting(500, "steps between checkpoints", at_least=1)
    precision: str = setting(
        "float32",
        "what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
        one_of=backend.PRECISIONS,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.warmup_steps > self.steps:
            raise ValueError(f"warmup_steps must be within 1 … steps = {self.steps}, got {self.warmup_steps}")
