"""The words that pages let the small model guess: each hidden once, and scored as the training loss scores it."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import no_grad, ops
from minigrad.course.furniture.small_model import as_drawn, hide_each, small_model

TEXTS = ["The file is opened for reading.", "Return a list."]


def test_each_token_is_hidden_once():
    _, tokenizer = small_model()
    for text, hidden in zip(TEXTS, hide_each(tokenizer, TEXTS), strict=True):
        ids = tokenizer.encode(text).input_ids
        assert hidden.inputs.shape == (len(ids) - 2, len(ids))
        for i, row in enumerate(hidden.inputs):
            expected = [*ids]
            expected[i + 1] = tokenizer.mask_token_id
            assert row.tolist() == expected


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


def test_as_drawn_knows_nothing_yet():
    _, tokenizer = small_model()
    (hidden,) = hide_each(tokenizer, TEXTS[:1])
    first, again, other = (as_drawn(seed) for seed in (0, 0, 1))
    with no_grad():
        found = [
            ops.softmax(model(hidden.inputs).prediction_logits).numpy() for model in (first, again, other)
        ]
        trained = hidden.losses(small_model()[0](hidden.inputs).prediction_logits.numpy()).mean()
        drawn = hidden.losses(first(hidden.inputs).prediction_logits.numpy()).mean()
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])
    assert trained < 4 < drawn
