"""How well a task is done: losses and hits of training, and the scores of predictions."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import backend
from minigrad.bert.config import IGNORED
from minigrad.bert.examples import NUMBERS, labels_of
from minigrad.messages import shown
from minigrad.tensor import Array
from minigrad.training.epochs import Batch
from minigrad.training.tally import BatchTally


class TaskTally(BatchTally):
    """Loss and hits added up over batches.

    A hit is a text, or a word, whose class is right, or an answer whose start and end are right.
    """

    names: tuple[str, ...] = ("loss", "hits")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def sums_of(self, output: Any, batch: Batch) -> list[Array]:
        """Of one batch: the loss times the targets that it is the mean over, and the hits."""
        if "labels" in batch:
            right = _right(output.logits.data, batch["labels"])
        else:
            right = _right(output.start_logits.data, batch["start_positions"])
            right = right & _right(output.end_logits.data, batch["end_positions"])
        return [output.loss.data.astype("float64") * counted(batch).sum(), right.sum()]

    def count_batch(self, batch: Batch) -> None:
        """The targets and tokens of one batch."""
        self.count += int(counted(batch).sum())
        self.tokens += int(batch["attention_mask"].sum())

    def means(self) -> dict[str, float]:
        """The loss in nats, and the share of hits."""
        loss, hits = backend.to_numpy(self.sums).tolist()
        return {"loss": loss / self.count, "accuracy": hits / self.count}


class NumberTally(TaskTally):
    """Squared errors added up over batches, of models that give a text a number."""

    names = ("loss",)

    def sums_of(self, output: Any, batch: Batch) -> list[Array]:
        """Of one batch: the mean squared error times its texts."""
        return [output.loss.data.astype("float64") * len(batch["labels"])]

    def means(self) -> dict[str, float]:
        """The mean squared error."""
        return {"loss": float(backend.to_numpy(self.sums)[0]) / self.count}


def counted(batch: Batch) -> np.ndarray:
    """Which targets of a batch count, as booleans: labels, or the places of answers that were not cut off."""
    if "labels" in batch:
        labels = batch["labels"]
        return labels != IGNORED if labels.dtype.kind == "i" else np.isfinite(labels)
    return batch["start_positions"] < batch["attention_mask"].shape[1]


def _right(logits: Array, labels: np.ndarray) -> Array:
    """Where the largest logit is that of the label; no label of -100 is ever the largest."""
    return logits.argmax(axis=-1) == backend.of(logits).asarray(labels)


# --- Scores of predictions -------------------------------------------------------------------------------


def scores(
    task: str, rows: Sequence[dict[str, Any]], predictions: Sequence[dict[str, Any]]
) -> dict[str, float]:
    """Two shares of 0 to 1, accuracy and f1, of predictions for rows that have the answers; of numbers other figures.

    For texts and pairs: the share that is right, and the mean over the classes of their F1 (macro F1). For
    answers: the share that is the same text, and the mean overlap in words, both as in SQuAD's script, of the best of
    several answers. For words: the share that is right, and the F1 of entities if the tags name some, as in seqeval,
    otherwise macro F1; words that were cut off count as wrong. For numbers: error, the root of the mean squared error,
    and their correlation, pearson and spearman.
    """
    if task in NUMBERS:
        right, given = (np.array([one["label"] for one in side]) for side in (rows, predictions))
        return {"error": float(np.sqrt(((right - given) ** 2).mean())), **correlations(right, given)}
    if task == "qa":
        pairs = [(_answers_of(row), one["answer"]) for row, one in zip(rows, predictions, strict=True)]
        exact = [any(_plain(gold) == _plain(found) for gold in answers) for answers, found in pairs]
        shared = [_best_overlap(row, one["answer"]) for row, one in zip(rows, predictions, strict=True)]
        return {"accuracy": float(np.mean(exact)), "f1": float(np.mean(shared))}
    if task != "tag":
        return _of_classes([row["label"] for row in rows], [one["label"] for one in predictions])
    found = _of_classes(*_by_class(rows, predictions))
    if _name_entities(rows):
        sides = [row["tags"] for row in rows], [[tag or "O" for tag in one["tags"]] for one in predictions]
        gold, guessed = (
            {(i, *entity) for i, tags in enumerate(side) for entity in entities(tags)} for side in sides
        )
        found["f1"] = _f1(len(gold & guessed), len(gold), len(guessed))
    return found


def correlations(gold: np.ndarray, guessed: np.ndarray) -> dict[str, float]:
    """pearson, of two rows of numbers, and spearman, of their ranks: -1 … 1; 0 where all of one are equal.

    Equal numbers share their ranks' mean (Kendall 1945).
    """
    return {"pearson": _pearson(gold, guessed), "spearman": _pearson(_ranks(gold), _ranks(guessed))}


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def _ranks(numbers: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ends: np.ndarray = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[places]


def _by_class(
    rows: Sequence[dict[str, Any]], predictions: Sequence[dict[str, Any]]
) -> tuple[list[str], list[str | None]]:
    """The classes of all texts or words, and the guesses; None for a word that was cut off."""
    gold = [name for row in rows for name in labels_of(row)]
    return gold, [name for one in predictions for name in one.get("tags", [one.get("label")])]


def _name_entities(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the tags are B-, I-, E-, S- and O."""
    return all("tags" in row and all(re.fullmatch("O|[BIES]-.+", tag) for tag in row["tags"]) for row in rows)


def _of_classes(gold: Sequence[str], guessed: Sequence[str | None]) -> dict[str, float]:
    hits = [a == b for a, b in zip(gold, guessed, strict=True)]
    return {"accuracy": float(np.mean(hits)) if hits else 0.0, "f1": macro_f1(gold, guessed)}


def macro_f1(gold: Sequence[str], guessed: Sequence[str | None]) -> float:
    """The mean F1 of the classes that occur among the labels or the guesses; None is not a class."""
    return float(np.mean(list(_f1_of_classes(gold, guessed).values()) or [0.0]))


def _f1_of_classes(gold: Sequence[str], guessed: Sequence[str | None]) -> dict[str, float]:
    right = Counter(a for a, b in zip(gold, guessed, strict=True) if a == b)
    of_gold, of_guessed = Counter(gold), Counter(name for name in guessed if name is not None)
    return {name: _f1(right[name], of_gold[name], of_guessed[name]) for name in of_gold | of_guessed}


def _f1(right: int, gold: int, guessed: int) -> float:
    """2 P R / (P + R), the harmonic mean of precision and recall; 0 where nothing is right."""
    return 2 * right / (gold + guessed) if right else 0.0


def overlap(gold: str, found: str) -> float:
    """The F1 of the words that two answers share, as in SQuAD's script."""
    words, guessed = _plain(gold).split(), _plain(found).split()
    if not words or not guessed:  # no answer
        return float(words == guessed)
    return _f1((Counter(words) & Counter(guessed)).total(), len(words), len(guessed))


def _plain(answer: str) -> str:
    """An answer as SQuAD's script compares it: in small letters, without punctuation and articles."""
    letters = "".join(one for one in answer.lower() if one not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())


def entities(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """First word, last word and kind of each entity, in IOB1, IOB2 or BIOES: I-x and E-x go on with what B-x or I-x is
    before them, and begin one elsewhere; B-x and S-x always begin one."""
    found: list[tuple[int, int, str]] = []
    before = "O"
    for i, tag in enumerate(tags):
        kind = tag[2:]
        if tag[0] in "IE" and before[0] in "BI" and before[2:] == kind:
            found[-1] = (found[-1][0], i, kind)
        elif tag != "O":
            found.append((i, i, kind))
        before = tag
    return found


def best_threshold(rows: Sequence[dict[str, Any]], predictions: Sequence[dict[str, Any]]) -> float:
    """Above which null_score_diff a question has no answer, for the largest F1 over all rows.

    predictions: with an answer each. Source: Devlin et al. 2019, section 4.3; SQuAD 2.0's script.
    """
    # Infinite where there is nothing to answer with
    diffs = np.array([one.get("null_score_diff", np.inf) for one in predictions])
    order = np.argsort(diffs, kind="stable")
    answered = [
        _best_overlap(row, one["answer"]) - _best_overlap(row, "")
        for row, one in zip(rows, predictions, strict=True)
    ]
    gains = np.concatenate([[0.0], np.cumsum(np.array(answered)[order])])  # with the k lowest answered
    ends = np.concatenate([[diffs[order[0]] - 1], diffs[order], [diffs[order[-1]] + 1]])
    gains[ends[1:] == ends[:-1]] = -np.inf  # equal ones are answered together
    k = int(gains.argmax())
    return float((ends[k] + ends[k + 1]) / 2)


def _best_overlap(row: dict[str, Any], found: str) -> float:
    return max(overlap(gold, found) for gold in _answers_of(row))


def _answers_of(row: dict[str, Any]) -> list[str]:
    """All that count as right, but for those that `_plain` leaves nothing of; "" alone for a question without one."""
    return [answer for answer in row.get("answers") or [row["answer"]] if _plain(answer)] or [""]


# --- For the reader --------------------------------------------------------------------------------------

MOST_CLASSES = 10  # of a table, which has to fit into a terminal


@dataclass(frozen=True)
class Yardstick:
    """What to read scores beside. f1: what the F1 is of. label, share: the commonest label, and what it gets alone.

    Questions have no commonest label, and the share is 0, unless some have no answer. Numbers have their mean, and
    error is what that gets alone.
    """

    f1: str
    label: str = ""
    share: float = 0.0
    error: float = 0.0

    def not_beaten(self, figures: dict[str, float]) -> str:
        """A sentence if the scores are no better than that of the commonest label; otherwise nothing."""
        beaten = figures["error"] < self.error if "error" in figures else figures["accuracy"] > self.share
        if not self.label or beaten:
            return ""
        return (
            f"This is no better than the label {shown(self.label, 40)} for everything. Try a higher --learning-rate, "
            "more --epochs, or more examples."
        )


def yardstick(task: str, rows: Sequence[dict[str, Any]]) -> Yardstick:
    """The yardstick for rows that have the answers."""
    if task == "qa":
        none = sum(row.get("answer") == "" for row in rows)
        return Yardstick("F1 of words", *(["no answer", none / len(rows)] if none else []))
    if task in NUMBERS:
        numbers = np.array([row["label"] for row in rows])
        return Yardstick("", f"{numbers.mean():.6g}", error=float(numbers.std()))
    names = Counter(name for row in rows for name in labels_of(row))
    ((label, count),) = names.most_common(1)
    return Yardstick("F1 of entities" if _name_entities(rows) else "macro F1", label, count / names.total())


def describe_scores(task: str, figures: dict[str, float], beside: Yardstick) -> str:
    """Figures of an evaluation as one line for the reader, with the yardstick; the loss if it is known."""
    if task in NUMBERS:
        return (
            f"error {figures['error']:.4g} (root mean square; the mean alone, {beside.label}: {beside.error:.4g}), "
            f"Pearson {figures['pearson']:.3f}, Spearman {figures['spearman']:.3f}"
        )
    loss = f"loss {figures['loss']:.3f}, " if "loss" in figures else ""
    name = "exact match" if task == "qa" else "accuracy"
    alone = (
        f" (the commonest label alone, {shown(beside.label, 40)}: {beside.share:.1%})" if beside.label else ""
    )
    return f"{loss}{name} {figures['accuracy']:.1%}{alone}, {beside.f1} {figures['f1']:.1%}"


def confusion_table(rows: Sequence[dict[str, Any]], predictions: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of a table: how often each label was given which, with its F1; of many, the most frequent mistakes.

    For rows of classes. A word that was cut off counts as given none.
    """
    gold, guessed = _by_class(rows, predictions)
    f1 = _f1_of_classes(gold, guessed)
    pairs = Counter(zip(gold, guessed, strict=True))
    if len(f1) > MOST_CLASSES:
        wrong = Counter({pair: count for pair, count in pairs.items() if pair[0] != pair[1]})
        lines = [
            f"{count:8,}  {shown(right, 30)} taken for {shown(given or '(cut off)', 30)}"
            for (right, given), count in wrong.most_common(MOST_CLASSES)
        ]
        return ["the most frequent mistakes:", *lines] if lines else []
    names = sorted(f1)
    columns: list[str | None] = [*names, *([None] if None in guessed else [])]
    heads = [shown(name, 12) if name else "(cut off)" for name in columns]
    width = max(8, *(len(head) + 2 for head in heads))
    lines = [f"{'label, given as':16}" + "".join(f"{head:>{width}}" for head in heads) + f"{'F1':>8}"]
    for name in names:
        counts = "".join(f"{pairs[name, column]:>{width},}" for column in columns)
        lines.append(f"{shown(name, 14):16}{counts}{f1[name]:>8.1%}")
    return lines
