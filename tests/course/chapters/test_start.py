"""What chapter `start` draws: words of a text are no HTML there."""

from __future__ import annotations

import json

import pytest

from bert_course.chapters.start import (
    EXAMPLES,
    SENTENCES,
    SIMILAR,
    guesses,
    hidden_words,
    learning_frames,
    three_ways,
)
from bert_course.stored import stored

pytestmark = pytest.mark.no_arrays


def test_words_are_no_html():
    point = {"step": 0, "mlm_loss": 8.4, "mlm_accuracy": 0.0, "guesses": [["<b>", 0.1]]}
    frame, _ = learning_frames([point, {**point, "step": 100}], "x", 6.15)
    for drawn in (
        guesses({"An [MASK] <b>": [("x", 0.25)]})._repr_html_(),
        guesses({"An [MASK]": [("<b>", 0.25)]})._repr_html_(),
        hidden_words(["<b>", "e"], 1, {"nothing": ([], 0.5)})._repr_html_(),
        three_ways(["a", "<b>"], shown=1)._repr_html_(),
        frame.svg,
    ):
        assert "&lt;b&gt;" in drawn
        assert "<b>" not in drawn


def test_the_record_is_of_the_sentences_on_the_page():
    record = json.loads(stored("start/learning.json").read_text(encoding="utf-8"))
    examples = [text.replace("[MASK]", word) for text, word in EXAMPLES.items()]
    assert list(record["longest_run"]) == [*examples, SIMILAR, *SENTENCES]
    assert max(record["longest_run"][text] for text in SENTENCES) <= 5
