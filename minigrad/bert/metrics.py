"""Losses and hits of both tasks: added up over batches, their baselines, and as a line of text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from minigrad import backend
from minigrad.bert.config import IGNORED
from minigrad.bert.model import BertForPreTraining, BertPreTrainingOutput
from minigrad.distributed import World
from minigrad.tensor import Array
from minigrad.training.epochs import Batch
from minigrad.training.tally import tallied


class Tally:
    """Losses and hits added up over batches, where the model is: nothing waits for a GPU before `means`."""

    def __init__(self) -> None:
        self.mlm_loss: float | Array = 0.0
        self.nsp_loss: float | Array = 0.0
        self.mlm_hits: int | Array = 0
        self.nsp_hits: int | Array = 0
        self.masked = self.pairs = self.tokens = 0

    def add(self, output: BertPreTrainingOutput, batch: Batch) -> None:
        """Count one batch and what the model predicted for it."""
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


def _hits(logits: Array, labels: np.ndarray) -> Array:
    return (logits.argmax(axis=-1) == backend.of(logits).asarray(labels)).sum()


def evaluate(model: BertForPreTraining, batches: list[Batch], world: World | None = None) -> dict[str, float]:
    """Losses and accuracies over `batches`, without dropout; the model's mode is put back afterwards.

    world: the processes that share out whole batches, by default this one alone; all get all figures.
    """
    world = world or World()
    return tallied(model, batches[world.rank :: world.size], Tally(), world)


def describe(figures: dict[str, float], unigram_entropy: float | None = None) -> str:
    """Losses and accuracies as one line for the reader.

    unigram_entropy: of the training text in nats; the line then says how far the MLM loss is from it.
    """
    beside = ""
    if unigram_entropy is not None:
        below = unigram_entropy - figures["mlm_loss"]
        beside = f" ({abs(below):.2f} {'below' if below > 0 else 'above'} word frequencies)"
    return (
        f"MLM loss {figures['mlm_loss']:.3f}{beside}, accuracy {figures['mlm_accuracy']:.1%}; "
        f"NSP loss {figures['nsp_loss']:.3f}, accuracy {figures['nsp_accuracy']:.1%}"
    )


def brief(figures: dict[str, float], unigram_entropy: float) -> list[str]:
    """Each loss beside the loss of a model that has learned nothing from context: the pieces of a progress bar.

    unigram_entropy: of the training text, in nats. For sentence pairs, a coin has a loss of log 2.
    """
    return [
        f"MLM {figures['mlm_loss']:.2f} (words alone {unigram_entropy:.2f})",
        f"NSP {figures['nsp_loss']:.2f} (a coin {math.log(2):.2f})",
    ]


def unigram_entropy(ids: Iterable[int]) -> float:
    """The entropy, in nats, of how often each id occurs: the loss of knowing the frequencies and no more."""
    counts = np.unique(np.fromiter(ids, dtype=np.int64), return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())
