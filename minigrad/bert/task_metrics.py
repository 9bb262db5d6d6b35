"""How well a task is done: losses and hits of training, and the scores of predictions."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minigrad import backend
from minigrad.bert.config import IGNORED
from minigrad.bert.data import Batch

__all__ = ["TaskTally", "describe_scores", "entities", "macro_f1", "overlap", "scores"]


class TaskTally:
    """Loss and hits added up over batches, where the model is: nothing waits for a GPU before `means`.

    A hit is a text, or a word, of which the class is right, or an answer of which start and end are right.
    """

    def __init__(self) -> None:
        self.loss: Any = 0.0
        self.hits: Any = 0
        self.count = self.tokens = 0

    def add(self, output: Any, batch: Batch) -> None:
        """Count one batch with its targets, and what the model said of it."""
        if "labels" in batch:
            counted = batch["labels"] != IGNORED
            right = _right(output.logits.data, batch["labels"])
        else:
            counted = np.ones(len(batch["start_positions"]), bool)
            right = _right(output.start_logits.data, batch["start_positions"])
            right = right & _right(output.end_logits.data, batch["end_positions"])
        count = int(counted.sum())
        self.loss = self.loss + output.loss.data.astype("float64") * count
        self.hits = self.hits + right.sum()
        self.count += count
        self.tokens += int(batch["attention_mask"].sum())

    def state_dict(self) -> dict[str, float]:
        """The sums so far, without the tokens: their speed is measured afresh."""
        return {"loss": float(self.loss), "hits": int(self.hits), "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        for name, value in state.items():
            setattr(self, name, value)

    def means(self) -> dict[str, float]:
        """The loss in nats, and the share of hits."""
        return {"loss": float(self.loss) / self.count, "accuracy": int(self.hits) / self.count}


def _right(logits: Any, labels: np.ndarray) -> Any:
    """Where the largest logit is that of the label; no label of -100 is ever the largest."""
    return logits.argmax(axis=-1) == backend.of(logits).asarray(labels)


# --- Scores of predictions -------------------------------------------------------------------------------


def scores(
    task: str, rows: Sequence[dict[str, Any]], predictions: Sequence[dict[str, Any]]
) -> dict[str, float]:
    """Two shares of 0 to 1, accuracy and f1, of predictions for rows that have the answers.

    Of texts and pairs: the share that is right, and the mean over the classes of their F1 (macro F1). Of answers: the
    share that is the same text, and the mean overlap in words, both as in SQuAD's script. Of words: the share that is
    right, and the F1 of entities if the tags are B-, I- and O, otherwise macro F1; words that were cut off do not
    count.
    """
    if task == "qa":
        pairs = [(row["answer"], one["answer"]) for row, one in zip(rows, predictions, strict=True)]
        exact = [_plain(gold) == _plain(found) for gold, found in pairs]
        return {"accuracy": float(np.mean(exact)), "f1": float(np.mean([overlap(*pair) for pair in pairs]))}
    if task != "tag":
        return _of_classes([row["label"] for row in rows], [one["label"] for one in predictions])
    kept = [
        [(tag, guess) for tag, guess in zip(row["tags"], one["tags"], strict=True) if guess is not None]
        for row, one in zip(rows, predictions, strict=True)
    ]
    found = _of_classes(*([pair[side] for words in kept for pair in words] for side in (0, 1)))
    if all(re.fullmatch("O|[BI]-.+", tag) for row in rows for tag in row["tags"]):
        gold, guessed = (
            {
                (i, *entity)
                for i, words in enumerate(kept)
                for entity in entities([pair[side] for pair in words])
            }
            for side in (0, 1)
        )
        found["f1"] = _f1(len(gold & guessed), len(gold), len(guessed))
    return found


def describe_scores(task: str, figures: dict[str, float]) -> str:
    """Figures of an evaluation as one line for the reader; the loss if it is known."""
    loss = f"loss {figures['loss']:.3f}, " if "loss" in figures else ""
    name = "exact match" if task == "qa" else "accuracy"
    return f"{loss}{name} {figures['accuracy']:.1%}, F1 {figures['f1']:.1%}"


def _of_classes(gold: Sequence[str], guessed: Sequence[str]) -> dict[str, float]:
    hits = [a == b for a, b in zip(gold, guessed, strict=True)]
    return {"accuracy": float(np.mean(hits)) if hits else 0.0, "f1": macro_f1(gold, guessed)}


def macro_f1(gold: Sequence[str], guessed: Sequence[str]) -> float:
    """The mean F1 of the classes that occur among the labels or the guesses."""
    right = Counter(a for a, b in zip(gold, guessed, strict=True) if a == b)
    of_gold, of_guessed = Counter(gold), Counter(guessed)
    return float(
        np.mean([_f1(right[name], of_gold[name], of_guessed[name]) for name in of_gold | of_guessed] or [0.0])
    )


def _f1(right: int, gold: int, guessed: int) -> float:
    """2 P R / (P + R), the harmonic mean of precision and recall; 0 where nothing is right."""
    return 2 * right / (gold + guessed) if right else 0.0


def overlap(gold: str, found: str) -> float:
    """The F1 of the words that two answers share, as in SQuAD's script."""
    words, guessed = _plain(gold).split(), _plain(found).split()
    return _f1((Counter(words) & Counter(guessed)).total(), len(words), len(guessed))


def _plain(answer: str) -> str:
    """An answer as SQuAD's script compares it: in small letters, without punctuation and articles."""
    letters = "".join(one for one in answer.lower() if one not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())


def entities(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """First word, last word and kind of each entity: B-x begins one, and so does I-x where none of kind x goes on."""
    found: list[tuple[int, int, str]] = []
    before = "O"
    for i, tag in enumerate(tags):
        kind = tag[2:]
        if tag.startswith("I-") and before[2:] == kind:
            found[-1] = (found[-1][0], i, kind)
        elif tag != "O":
            found.append((i, i, kind))
        before = tag
    return found
