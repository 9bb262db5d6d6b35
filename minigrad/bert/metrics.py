"""Losses and hits of both tasks: added up over batches, their baselines, and as a line of text."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from minigrad import backend
from minigrad.bert.config import IGNORED
from minigrad.bert.model import BertForPreTraining, BertPreTrainingOutput
from minigrad.distributed import World
from minigrad.tensor import Array
from minigrad.training.epochs import Batch
from minigrad.training.tally import BatchTally, tallied


class Tally(BatchTally):
    """Losses and hits of both tasks added up over batches."""

    names = ("mlm_loss", "nsp_loss", "mlm_hits", "nsp_hits")

    def __init__(self) -> None:
        super().__init__()
        self.masked = self.pairs = 0

    def sums_of(self, output: BertPreTrainingOutput, batch: Batch) -> list[Array]:
        """Of one batch: both losses times what they are means over, and both tasks' hits."""
        assert output.mlm_loss is not None
        assert output.nsp_loss is not None
        labels, next_labels = batch["labels"], batch["next_sentence_label"]
        chosen = labels != IGNORED
        if labels.ndim == 2:  # of all positions; else they are packed
            labels = labels[chosen]
        return [
            output.mlm_loss.data.astype("float64") * chosen.sum(),
            output.nsp_loss.data.astype("float64") * len(next_labels),
            _hits(output.prediction_logits.data, labels),  # IGNORED is never the largest
            _hits(output.seq_relationship_logits.data, next_labels),
        ]

    def count_batch(self, batch: Batch) -> None:
        """The chosen tokens, pairs and tokens of one batch."""
        self.masked += int((batch["labels"] != IGNORED).sum())
        self.pairs += len(batch["next_sentence_label"])
        self.tokens += int(batch["attention_mask"].sum())

    def means(self) -> dict[str, float]:
        """mlm_loss and nsp_loss in nats, mlm_accuracy and nsp_accuracy as shares, and loss, their sum."""
        mlm_loss, nsp_loss, mlm_hits, nsp_hits = backend.to_numpy(self.sums).tolist()
        return {
            "loss": mlm_loss / self.masked + nsp_loss / self.pairs,
            "mlm_loss": mlm_loss / self.masked,
            "mlm_accuracy": mlm_hits / self.masked,
            "nsp_loss": nsp_loss / self.pairs,
            "nsp_accuracy": nsp_hits / self.pairs,
        }


def _hits(logits: Array, labels: Array) -> Array:
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
