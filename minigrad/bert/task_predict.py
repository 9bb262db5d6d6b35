"""What a fine-tuned model says of examples: classes, answers and tags, each as a dictionary that JSON can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.bert.data import Batch
from minigrad.bert.examples import Row
from minigrad.bert.features import EncodedExamples, Features, pad
from minigrad.bert.metrics import quiet_overflow
from minigrad.bert.task_metrics import TaskTally, scores
from minigrad.bert.tasks import (
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from minigrad.tensor import no_grad

__all__ = ["MODELS", "evaluate_examples", "predict_examples"]

MODELS: dict[str, Any] = {
    "classify": BertForSequenceClassification,
    "pairs": BertForSequenceClassification,
    "qa": BertForQuestionAnswering,
    "tag": BertForTokenClassification,
}
LONGEST_ANSWER = 30  # tokens, as in the released `run_squad.py`

Prediction = dict[str, Any]


def predict_examples(model: Any, examples: EncodedExamples, batch_size: int = 32) -> Iterator[Prediction]:
    """A prediction for each example, in order; the model's mode is put back afterwards.

    Of texts and pairs: label, probability, and the probabilities of all labels. Of questions: answer, answer_start (in
    characters; None if the context has no token) and probability. Of words: tags, None for words that were cut off.
    Raises ValueError if the model's scores are not finite.
    """
    features = [Features(one.input_ids, one.token_type_ids, {}, one.places) for one in examples.features]
    yield from _run(model, EncodedExamples(examples.task, examples.rows, features, []), batch_size, None)


def evaluate_examples(model: Any, examples: EncodedExamples, batch_size: int = 32) -> dict[str, float]:
    """The loss in nats, and the `scores` of the model's predictions, for examples that have the answers."""
    tally = TaskTally()
    predictions = list(_run(model, examples, batch_size, tally))
    return {"loss": tally.means()["loss"], **scores(examples.task, examples.rows, predictions)}


def _run(
    model: Any, examples: EncodedExamples, batch_size: int, tally: TaskTally | None
) -> Iterator[Prediction]:
    """The predictions; the tally counts the batches, if there is one."""
    for start in range(0, len(examples.rows), batch_size):
        features = examples.features[start : start + batch_size]
        batch = pad(features, model.config.pad_token_id)
        output = _output(model, batch)
        if tally is not None:
            tally.add(output, batch)
        logits = [
            getattr(output, name).numpy().astype(np.float64)
            for name in ("logits", "start_logits", "end_logits")
            if hasattr(output, name)
        ]
        if not all(np.isfinite(one).all() for one in logits):
            raise ValueError("the model's scores are not finite (nan or inf): its weights are too large")
        for i, (one, row) in enumerate(zip(features, examples.rows[start:], strict=False)):
            yield _prediction(
                examples.task, [of_batch[i] for of_batch in logits], one, row, model.config.id2label
            )


def _output(model: Any, batch: Batch) -> Any:
    training = model.training
    model.eval()
    try:
        with no_grad(), quiet_overflow():
            return model(**batch)
    finally:
        model.train(training)


def _prediction(
    task: str, logits: list[np.ndarray], features: Features, row: Row, names: dict[int, str]
) -> Prediction:
    if task == "qa":
        return _answer(logits[0], logits[1], features, row["context"])
    if task == "tag":
        tags = [names[int(logits[0][place].argmax())] for place in features.places]
        return {"tags": tags + [None] * (len(row["tokens"]) - len(tags))}
    shares = _softmax(logits[0])
    best = int(shares.argmax())
    return {
        "label": names[best],
        "probability": float(shares[best]),
        "probabilities": {names[i]: float(share) for i, share in enumerate(shares)},
    }


def _answer(start: np.ndarray, end: np.ndarray, features: Features, context: str) -> Prediction:
    """The span of the context with the largest sum of start (T,) and end (T,): not backwards, and not too long."""
    inside = [i for i, place in enumerate(features.places) if place is not None]
    if not inside:
        return {"answer": "", "answer_start": None, "probability": 1.0}
    first, size = inside[0], len(inside)
    total = start[first : first + size, None] + end[None, first : first + size]  # (n, n)
    ahead = np.arange(size)[None, :] - np.arange(size)[:, None]
    shares = _softmax(np.where((ahead >= 0) & (ahead < LONGEST_ANSWER), total, -np.inf))
    i, j = np.unravel_index(shares.argmax(), shares.shape)
    begins, ends = features.places[first + int(i)][0], features.places[first + int(j)][1]
    return {
        "answer": context[begins:ends],
        "answer_start": begins,
        "probability": float(shares[i, j]),
    }


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Over all entries."""
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()
