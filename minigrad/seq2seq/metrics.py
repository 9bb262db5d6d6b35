"""How well a model translates: training losses and hits, and whole translations compared with references."""

from __future__ import annotations

from collections.abc import Sequence

from minigrad.bert.config import IGNORED
from minigrad.bert.task_metrics import TaskTally
from minigrad.nn import Module
from minigrad.seq2seq.bleu import bleu
from minigrad.seq2seq.predict import words_of
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.epochs import Batch
from minigrad.training.tally import tallied


class TranslationTally(TaskTally):
    """Loss and hits added up over the target's pieces, where the model is: nothing waits for a GPU before `means`.

    A hit is a piece, or an end token, that is the likeliest one after the right pieces before it. The loss has the
    label smoothing that the model has in training.
    """

    def count_batch(self, batch: Batch) -> None:
        """The targets and tokens of one batch."""
        super().count_batch(batch)
        self.tokens += int((batch["labels"] != IGNORED).sum())  # beside those of the source


def evaluate(model: Module, batches: list[Batch]) -> dict[str, float]:
    """Loss and accuracy over `batches`, without dropout or label smoothing; the mode is put back afterwards."""
    return tallied(model, batches, TranslationTally())


def compare(
    tokenizer: WordPieceTokenizer, translations: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
) -> dict[str, float]:
    """exact_match, the share of translations that are the reference piece for piece, and bleu of words, 0 to 100.

    Raises ValueError unless there are equally many of both, at least one.
    """
    if not references:
        raise ValueError("compare: expected at least one translation, got none")
    exact = [list(one) == list(other) for one, other in zip(translations, references, strict=True)]
    found, right = ([words_of(tokenizer, ids) for ids in side] for side in (translations, references))
    return {"exact_match": sum(exact) / len(exact), "bleu": float(bleu(found, right))}


def describe(figures: dict[str, float]) -> str:
    """What was measured on held-out pairs, as a line for the reader."""
    return (
        f"loss {figures['loss']:.3f}, pieces right {figures['accuracy']:.1%}; "
        f"translations right {figures['exact_match']:.1%}, BLEU {figures['bleu']:.1f}"
    )


def brief(figures: dict[str, float]) -> list[str]:
    """The figures of the last steps as the pieces of a progress bar."""
    return [f"loss {figures['loss']:.3f}", f"pieces right {figures['accuracy']:.0%}"]
