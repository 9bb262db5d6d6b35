"""What a fine-tuned model predicts for examples: classes, answers and tags, each as a dictionary for JSON."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minigrad import nn
from minigrad.bert.examples import NUMBERS, Row, have_none
from minigrad.bert.features import EncodedExamples, Features, pad
from minigrad.bert.task_metrics import TaskTally, scores
from minigrad.bert.tasks import (
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    TaskModel,
)
from minigrad.training.epochs import Batch
from minigrad.training.tally import quiet_overflow

MODELS: dict[str, type[TaskModel]] = {
    "classify": BertForSequenceClassification,
    "pairs": BertForSequenceClassification,
    **dict.fromkeys(NUMBERS, BertForSequenceClassification),
    "qa": BertForQuestionAnswering,
    "tag": BertForTokenClassification,
}
LONGEST_ANSWER = 30  # tokens, as in the released `run_squad.py`

Prediction = dict[str, Any]
Window = tuple[Features, list[np.ndarray]]  # what the model has read at once, and its scores


def predict_examples(
    model: TaskModel, examples: EncodedExamples, batch_size: int = 32, threshold: float | None = None
) -> Iterator[Prediction]:
    """A prediction for each row, in order; the model's mode is put back afterwards.

    threshold: of questions that may have no answer, from which difference on between the score of none and that of the
    best answer there is none; None: each has one.

    For texts and pairs: label, probability, and the probabilities of all labels; or label alone, a number. For
    questions: answer, answer_start (in characters; None if there is none), probability, and with a threshold
    null_score_diff. For words: tags, None for words that were cut off. Raises ValueError if the model's scores are not
    finite.
    """
    features = [dataclasses.replace(one, targets={}) for one in examples.features]
    yield from _run(model, dataclasses.replace(examples, features=features), batch_size, None, threshold)


def evaluate_examples(model: TaskModel, examples: EncodedExamples, batch_size: int = 32) -> dict[str, float]:
    """The loss in nats, and the `scores` of the model's predictions, for examples that have the answers.

    The scores cover all rows, the loss only what was not cut off.
    """
    tally = TaskTally()
    threshold = 0.0 if have_none(examples.rows) else None
    predictions = list(_run(model, examples, batch_size, tally, threshold))
    return {"loss": tally.means()["loss"], **scores(examples.task, examples.rows, predictions)}


def _run(
    model: TaskModel,
    examples: EncodedExamples,
    batch_size: int,
    tally: TaskTally | None,
    threshold: float | None = None,
) -> Iterator[Prediction]:
    """The predictions; the tally counts the batches, if there is one."""
    windows = zip(examples.owners, _windows(model, examples.features, batch_size, tally), strict=True)
    for owner, own in itertools.groupby(windows, lambda pair: pair[0]):
        row, names = examples.rows[owner], model.config.id2label
        yield _prediction(examples.task, [window for _, window in own], row, names, threshold)


def _windows(
    model: TaskModel, features: list[Features], batch_size: int, tally: TaskTally | None
) -> Iterator[Window]:
    """Each of the features with the model's scores for it, batch by batch."""
    for start in range(0, len(features), batch_size):
        chosen = features[start : start + batch_size]
        if not any(one.teaches for one in chosen):  # of these there is no loss
            chosen = [dataclasses.replace(one, targets={}) for one in chosen]
        batch = pad(chosen, model.config.pad_token_id)
        output = _output(model, batch)
        if tally is not None and chosen[0].targets:
            tally.add(output, batch)
        logits = [
            getattr(output, name).numpy().astype(np.float64)
            for name in ("logits", "start_logits", "end_logits")
            if hasattr(output, name)
        ]
        if not all(np.isfinite(one).all() for one in logits):
            raise ValueError("the model's scores are not finite (nan or inf): its weights are too large")
        for one, *scores_of_one in zip(chosen, *logits, strict=True):
            yield one, scores_of_one


def _output(model: TaskModel, batch: Batch) -> Any:
    with nn.evaluating(model), quiet_overflow():
        return model(**batch)


def _prediction(
    task: str, windows: Sequence[Window], row: Row, names: dict[int, str], threshold: float | None
) -> Prediction:
    if task == "qa":
        return _answer(windows, row["context"], threshold)
    ((features, logits),) = windows
    if task == "tag":
        tags = [names[int(logits[0][place].argmax())] for place in features.places]
        return {"tags": tags + [None] * (len(row["tokens"]) - len(tags))}
    if task in NUMBERS:
        return {"label": float(logits[0][0])}
    shares = dict.fromkeys(names.values(), 0.0)
    for number, share in enumerate(_softmax(logits[0])):
        shares[names[number]] += float(share)  # of two classes with one name, both
    label = max(shares, key=shares.__getitem__)
    return {"label": label, "probability": shares[label], "probabilities": shares}


def _answer(windows: Sequence[Window], context: str, threshold: float | None) -> Prediction:
    """The span of the context with the largest sum of its scores as start and as end: not backwards, not too long.

    The score of none is that of [CLS], in the window where it is least (`run_squad.py`).
    """
    totals: list[float] = []
    spans: list[tuple[int, int]] = []
    for features, (start, end) in windows:  # (T,) each
        last = len(features.places) - 1  # the place of [SEP]
        for i in features.starts:
            stop = min(i + LONGEST_ANSWER, last)
            totals += (start[i] + end[i:stop]).tolist()
            spans += [(features.places[i][0], place[1]) for place in features.places[i:stop]]
    if not spans:
        return {"answer": "", "answer_start": None, "probability": 1.0}
    best = int(np.argmax(totals))
    beside: Prediction = {}
    if threshold is not None:
        none = min(start[0] + end[0] for _, (start, end) in windows)
        beside = {"null_score_diff": float(none - totals[best])}
        totals.append(none)
        if beside["null_score_diff"] > threshold:
            best = len(spans)
    share = float(_softmax(np.array(totals))[best])
    if best == len(spans):
        return {"answer": "", "answer_start": None, "probability": share, **beside}
    begins, ends = spans[best]
    return {"answer": context[begins:ends], "answer_start": begins, "probability": share, **beside}


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Over all entries."""
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()
