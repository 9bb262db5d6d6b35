"""Losses and hits over batches: counted right, and without a trace."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tiny

from minigrad import backend, random
from minigrad.bert.config import IGNORED
from minigrad.bert.data import PretrainingData
from minigrad.bert.metrics import brief, describe, evaluate, unigram_entropy


def test_figures_are_means_over_what_was_predicted(tmp_path):
    """A batch with more chosen tokens counts more; losses and hits as NumPy has them from the logits."""
    model = tiny.pretraining(tmp_path).model.eval()
    data = PretrainingData(tiny.documents(), tiny.tokenizer(), 5, 16, seed=3)
    batches = [data.next_batch() for _ in range(3)]
    batches[1] = {name: values[:1] for name, values in batches[1].items()}
    losses, hits = {"mlm": [], "nsp": []}, {"mlm": [], "nsp": []}
    for batch in batches:
        output = model(**batch)
        labels = batch["labels"][batch["labels"] != IGNORED]
        for task, logits, targets in (
            ("mlm", output.prediction_logits, labels),
            ("nsp", output.seq_relationship_logits, batch["next_sentence_label"]),
        ):
            scores = logits.numpy().astype(np.float64)
            log_shares = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
            losses[task] += (-log_shares[np.arange(len(targets)), targets]).tolist()
            hits[task] += (scores.argmax(axis=1) == targets).tolist()
    expected = {
        "mlm_loss": np.mean(losses["mlm"]),
        "mlm_accuracy": np.mean(hits["mlm"]),
        "nsp_loss": np.mean(losses["nsp"]),
        "nsp_accuracy": np.mean(hits["nsp"]),
    }
    expected["loss"] = expected["mlm_loss"] + expected["nsp_loss"]
    assert evaluate(model, batches) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_no_trace(tmp_path, training):
    run = tiny.pretraining(tmp_path)
    model = run.model.train(training)
    before = random.get_state()
    weights = {name: backend.to_numpy(array).copy() for name, array in model.state_dict().items()}
    first = evaluate(model, run.held_out)
    assert evaluate(model, run.held_out) == first  # no dropout
    assert random.get_state() == before
    assert all(part.training is training for part in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert all((backend.to_numpy(array) == weights[name]).all() for name, array in model.state_dict().items())


def test_evaluation_that_fails_leaves_the_mode(tmp_path):
    run = tiny.pretraining(tmp_path)
    run.model.train()
    with pytest.raises(IndexError, match="input_ids"):
        evaluate(run.model, [{**run.held_out[0], "input_ids": run.held_out[0]["input_ids"] + 1000}])
    assert run.model.training


@pytest.mark.parametrize(
    ("ids", "entropy"),
    [
        ([7, 7, 7], 0.0),
        ([0, 1] * 5, math.log(2)),
        (list(range(50)), math.log(50)),
        ([3, 3, 3, 9], -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))),
    ],
)
def test_unigram_entropy(ids, entropy):
    assert unigram_entropy(iter(ids)) == pytest.approx(entropy, abs=1e-12)


FIGURES = {"loss": 6.5, "mlm_loss": 5.895, "mlm_accuracy": 0.137, "nsp_loss": 0.6749, "nsp_accuracy": 0.597}


@pytest.mark.parametrize(
    ("entropy", "beside"),
    [(None, ""), (6.153, " (0.26 below word frequencies)"), (5.193, " (0.70 above word frequencies)")],
)
def test_figures_as_a_line(entropy, beside):
    line = describe(FIGURES, entropy)
    assert line == f"MLM loss 5.895{beside}, accuracy 13.7%; NSP loss 0.675, accuracy 59.7%"


def test_figures_beside_what_knows_nothing_of_context():
    """Not the sum of both losses, which has nothing to be compared with."""
    assert brief(FIGURES, 6.153) == ["MLM 5.89 (words alone 6.15)", "NSP 0.67 (a coin 0.69)"]
