"""The record of a model that learns: made from a run, and gone on with."""

from __future__ import annotations

import json
import math

import pytest

from book.make.learning import learning, longest_run
from minigrad.bert.config import BertConfig
from minigrad.bert.settings import PretrainingArguments
from minigrad.text.corpus import Corpus

pytest.importorskip("filelock")

CORPUS = Corpus(
    [
        [
            f"Raise an error if file {i} does not exist.",
            "The default value is none.",
            f"Return the {i} items.",
        ]
        for i in range(8)
    ],
    "eight documents",
)
CONFIG = BertConfig(
    vocab_size=120, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
SMALL = PretrainingArguments(steps=4, batch_size=2, max_length=24, warmup_steps=1)


def record_of(folder, points):
    """The record after `learning` with these points."""
    target = folder / "learning.json"
    learning(folder / "run", target, CORPUS, CONFIG, SMALL, points, say=lambda line: None)
    return json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.numpy_only("training is the same on each backend, and the record is made on NumPy")
def test_a_record_has_its_points_and_goes_on(tmp_path):
    first = record_of(tmp_path, (0, 2))
    assert [point["step"] for point in first["points"]] == [0, 2]
    assert first["settings"]["steps"] == 4
    assert first["corpus"] == "eight documents"
    assert 0 < first["most_frequent_right"] < 1
    assert 0 < first["frequencies_loss"] < math.log(CONFIG.vocab_size)  # what knowing nothing costs
    assert first["training_words"] < first["training_pieces"]
    assert len(first["points"][0]["guesses"]) == 5
    assert [path.name for path in (tmp_path / "run").glob("checkpoint-*")] == ["checkpoint-000002"]
    second = record_of(tmp_path, (0, 2, 3))
    assert [point["step"] for point in second["points"]] == [0, 2, 3]
    assert second["points"][:2] == first["points"]


@pytest.mark.no_arrays
def test_longest_run_counts_words_in_a_row():
    sentences = ["Raise an error, if the file is closed.", "It does not exist."]
    found = longest_run(
        ["Raise an error if it does not exist.", "An error if the file exists", "nothing here", "err"],
        sentences,
    )
    assert list(found.values()) == [4, 5, 0, 0]
    # not over the border of two sentences, and no half words
    assert longest_run(["closed it"], sentences) == {"closed it": 1}
