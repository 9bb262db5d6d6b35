"""The words that pages let the small model guess: each hidden once, and scored as the training loss scores it."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.common.small_model import hide_each, small_model
from minigrad import no_grad

TEXTS = ["The file is opened for reading.", "Return a list."]


def test_the_mean_loss_is_that_of_training():
    model, tokenizer = small_model()
    for hidden in hide_each(tokenizer, TEXTS):
        labels = np.where(hidden.inputs == tokenizer.mask_token_id, hidden.ids, -100)
        with no_grad():
            of_training = model(hidden.inputs, labels=labels).mlm_loss.item()
            losses = hidden.losses(model(hidden.inputs).prediction_logits.numpy())
        assert losses.mean() == pytest.approx(of_training, rel=1e-5)


def test_large_scores_do_not_overflow():
    _, tokenizer = small_model()
    (hidden,) = hide_each(tokenizer, TEXTS[:1])
    logits = np.full((*hidden.inputs.shape, tokenizer.vocab_size), 1e4, np.float32)
    assert hidden.losses(logits) == pytest.approx(np.log(tokenizer.vocab_size))
