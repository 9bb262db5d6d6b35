"""The model as a judge of pairs, in chapter `nsp`."""

from __future__ import annotations

import pytest

from bert_course.chapters.nsp import by_model
from bert_course.common.small_model import small_model
from minigrad.bert.predict import next_sentence


def test_the_model_judges_a_pair_as_the_command_does():
    model, tokenizer = small_model()
    texts = ("Open the file.", "It is closed again at the end.")
    pair = tuple([tokenizer.token_ids(text)] for text in texts)
    assert by_model(model, tokenizer, [pair])[0] == pytest.approx(
        next_sentence(model, tokenizer, *texts), abs=1e-5
    )
    long = [tokenizer.token_ids("one file ") * 60]
    assert by_model(model, tokenizer, [(long, long)]).shape == (1,)
