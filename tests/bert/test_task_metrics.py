"""Scores of predictions, on cases small enough to be counted by hand, and the tally of training."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad.bert.task_metrics import (
    NumberTally,
    TaskTally,
    Yardstick,
    best_threshold,
    confusion_table,
    correlations,
    describe_scores,
    entities,
    macro_f1,
    overlap,
    scores,
    yardstick,
)
from minigrad.bert.tasks import QuestionAnsweringModelOutput, SequenceClassifierOutput
from minigrad.tensor import Tensor


@pytest.mark.no_arrays
def test_classes():
    """a: precision 2/2, recall 2/3; b: 1/2 and 1/1; c: never guessed; d: only guessed."""
    gold, guessed = list("aaabc"), list("aabbd")
    expected = (4 / 5 + 2 / 3 + 0 + 0) / 4
    assert macro_f1(gold, guessed) == pytest.approx(expected)
    found = scores("classify", [{"label": x} for x in gold], [{"label": x} for x in guessed])
    assert found == {"accuracy": 3 / 5, "f1": macro_f1(gold, guessed)}
    assert macro_f1("ab", "ab") == 1


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        ("the attic", "The Attic.", 1),
        ("the attic", "an attic", 1),  # without articles both are `attic`
        ("four books", "four", 2 / 3),
        ("four books", "books and four books", 2 * 2 / 6),
        ("four", "books", 0),
        ("four", "", 0),
    ],
)
def test_the_overlap_of_answers(gold, found, expected):
    assert overlap(gold, found) == pytest.approx(expected)


@pytest.mark.no_arrays
def test_answers():
    rows = [{"answer": "The attic"}, {"answer": "four books"}]
    found = scores("qa", rows, [{"answer": "attic!"}, {"answer": "books"}])
    assert found == {"accuracy": 0.5, "f1": pytest.approx((1 + 2 / 3) / 2)}
    several = [{"answer": "an attic", "answers": ["an attic", "the garden", "the"]}]
    assert scores("qa", several, [{"answer": "garden"}]) == {"accuracy": 1.0, "f1": 1.0}
    assert scores("qa", several, [{"answer": ""}]) == {"accuracy": 0.0, "f1": 0.0}  # an article is no answer


@pytest.mark.no_arrays
def test_questions_without_an_answer():
    rows = [{"answer": "", "answers": []}, {"answer": "an attic", "answers": ["an attic"]}]
    assert scores("qa", rows, [{"answer": ""}, {"answer": "attic"}]) == {"accuracy": 1.0, "f1": 1.0}
    assert scores("qa", rows, [{"answer": "attic"}, {"answer": ""}]) == {"accuracy": 0.0, "f1": 0.0}
    assert yardstick("qa", rows) == Yardstick("F1 of words", "no answer", 0.5)


@pytest.mark.no_arrays
@pytest.mark.parametrize("seed", range(8))
def test_the_best_threshold_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    words = ["one", "two", "one two", ""]
    rows = [{"answer": words[i]} for i in rng.integers(0, 4, 9)]
    predictions = [
        {"answer": words[i], "null_score_diff": float(diff)}
        for i, diff in zip(rng.integers(0, 3, 9), rng.integers(-3, 4, 9) / 2, strict=True)
    ]

    def f1(threshold):
        kept = [
            {"answer": one["answer"] if one["null_score_diff"] <= threshold else ""} for one in predictions
        ]
        return scores("qa", rows, kept)["f1"]

    found = best_threshold(rows, predictions)
    assert f1(found) == pytest.approx(max(map(f1, np.arange(-3, 4, 0.25))))
    assert found not in {one["null_score_diff"] for one in predictions}
    unread = best_threshold([*rows, rows[0]], [*predictions, {"answer": ""}])  # a context without a token
    assert f1(unread) == pytest.approx(f1(found))


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", []),
        ("B-x I-x O B-x", [(0, 1, "x"), (3, 3, "x")]),
        ("B-x B-x I-x", [(0, 0, "x"), (1, 2, "x")]),
        ("I-x I-x I-y", [(0, 1, "x"), (2, 2, "y")]),  # one that does not begin with B- counts too
        ("B-x O I-x", [(0, 0, "x"), (2, 2, "x")]),
        ("B-x-y I-x-y I-x", [(0, 1, "x-y"), (2, 2, "x")]),
    ],
)
def test_entities(tags, expected):
    assert entities(tags.split()) == expected


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-x I-x I-y O I-y B-x O B-x I-x B-y", "x01 y22 y44 x55 x78 y99"),
        ("I-x O I-y I-x I-x O I-y I-x I-x", "x00 y22 x34 y66 x78"),
        ("E-x B-x O S-y E-y I-y B-x B-x E-x", "x00 x11 y33 y44 y55 x66 x78"),
        ("E-x E-y B-x O E-x I-x B-x S-y S-y", "x00 y11 x22 x44 x55 x66 y77 y88"),
    ],
)
def test_entities_are_those_of_seqeval(tags, expected):
    """Drawn tags, and what seqeval 1.2.2 makes of them: kind, first word, last word."""
    assert " ".join(f"{kind}{first}{last}" for first, last, kind in entities(tags.split())) == expected


@pytest.mark.no_arrays
def test_tags():
    rows = [{"tags": ["B-x", "I-x", "O"]}, {"tags": ["O", "B-x", "B-x"]}]
    guesses = [{"tags": ["B-x", "O", "O"]}, {"tags": ["O", "B-x", None]}]  # the last word was cut off
    assert scores("tag", rows, guesses) == {"accuracy": 4 / 6, "f1": 2 * 1 / (3 + 2)}
    words = [{"tags": ["NOUN", "VERB"]}]
    assert scores("tag", words, [{"tags": ["NOUN", "NOUN"]}]) == {
        "accuracy": 0.5,
        "f1": pytest.approx((2 / 3 + 0) / 2),
    }
    assert scores("tag", words, [{"tags": [None, None]}]) == {"accuracy": 0.0, "f1": 0.0}
    assert scores("tag", words, [{"tags": ["NOUN", None]}]) == {"accuracy": 0.5, "f1": 0.5}


@pytest.mark.no_arrays
def test_numbers():
    rows = [{"label": number} for number in (0.0, 1.0, 2.0, 5.0)]
    found = scores("similarity", rows, [{"label": number} for number in (1.0, 1.0, 2.0, 3.0)])
    assert found["error"] == pytest.approx(math.sqrt((1 + 0 + 0 + 4) / 4))
    beside = yardstick("similarity", rows)
    assert describe_scores("similarity", {"loss": 1.25, **found}, beside) == (
        "error 1.118 (root mean square; the mean alone, 2: 1.871), Pearson 0.967, Spearman 0.949"
    )
    assert beside.not_beaten(found) == ""
    assert beside.not_beaten({"error": 1.88}).startswith("This is no better than the label 2 for everything.")


@pytest.mark.no_arrays
@pytest.mark.parametrize("seed", range(5))
def test_correlations(seed):
    """With ties: the rank of a number is how many are below it, and half of those that are equal."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 5, 23) / 4
    b = a * (-1) ** seed + rng.integers(0, 3, 23)
    ranks = [[sum(x < y for x in row) + sum(x == y for x in row) / 2 for y in row] for row in (a, b)]
    assert correlations(a, b) == {
        "pearson": pytest.approx(np.corrcoef(a, b)[0, 1]),
        "spearman": pytest.approx(np.corrcoef(*ranks)[0, 1]),
    }
    assert correlations(a, np.full(23, 0.1)) == {"pearson": 0, "spearman": 0}
    assert correlations(a, a**3)["spearman"] == pytest.approx(1)


@pytest.mark.no_arrays
def test_scores_in_words():
    figures = {"accuracy": 0.875, "f1": 0.5}
    pairs = yardstick("pairs", [{"label": name} for name in ("no", "yes", "no", "no")])
    assert describe_scores("pairs", {"loss": 0.25, **figures}, pairs) == (
        "loss 0.250, accuracy 87.5% (the commonest label alone, no: 75.0%), macro F1 50.0%"
    )
    assert describe_scores("qa", figures, yardstick("qa", [{}])) == "exact match 87.5%, F1 of words 50.0%"
    tags = [{"tags": ["O", "B-x"]}, {"tags": ["O"]}]
    assert yardstick("tag", tags) == Yardstick("F1 of entities", "O", 2 / 3)
    assert yardstick("tag", [{"tags": ["O", "NOUN"]}]).f1 == "macro F1"


@pytest.mark.no_arrays
def test_a_score_that_does_not_beat_the_commonest_label_is_called_so():
    beside = Yardstick("macro F1", "no", 0.75)
    assert beside.not_beaten({"accuracy": 0.75}).startswith(
        "This is no better than the label no for everything."
    )
    assert beside.not_beaten({"accuracy": 0.76}) == ""
    assert Yardstick("F1 of words").not_beaten({"accuracy": 0.0}) == ""


@pytest.mark.no_arrays
def test_a_confusion_table():
    rows = [{"label": name} for name in "aaabbb"]
    guesses = [{"label": name} for name in "aabbbb"]
    assert confusion_table(rows, guesses) == [
        "label, given as        a       b      F1",
        "a                      2       1   80.0%",
        "b                      0       3   85.7%",
    ]
    cut = confusion_table([{"tags": ["O", "x"]}], [{"tags": ["O", None]}])
    assert cut == [
        "label, given as           O          x  (cut off)      F1",
        "O                         1          0          0  100.0%",
        "x                         0          0          1    0.0%",
    ]
    many = [{"label": f"kind {number}"} for number in range(12)]
    swapped = [{"label": "kind 3"}, *many[1:5], {"label": "kind 3"}, *many[6:]]
    assert confusion_table(many, swapped) == [
        "the most frequent mistakes:",
        "       1  kind 0 taken for kind 3",
        "       1  kind 5 taken for kind 3",
    ]
    assert confusion_table(many, many) == []


def tensor(*rows) -> Tensor:
    return Tensor(np.array(rows, np.float32))


def test_the_tally_weighs_batches_by_what_counts_in_them():
    tally = TaskTally()
    mask = np.ones((2, 3), np.int64)
    logits = tensor([[1, 0], [0, 1], [1, 0]], [[0, 1], [1, 0], [1, 0]])
    labels = np.array([[0, 0, -100], [1, -100, -100]])
    tally.add(
        SequenceClassifierOutput(logits, Tensor(np.float32(6))), {"labels": labels, "attention_mask": mask}
    )
    one = {"labels": np.array([1]), "attention_mask": mask[:1]}
    tally.add(SequenceClassifierOutput(tensor([0, 1]), Tensor(np.float32(2))), one)
    assert tally.means() == {"loss": (3 * 6 + 2) / 4, "accuracy": 3 / 4}
    assert tally.tokens == 9
    twin = TaskTally()
    twin.load_state_dict(tally.state_dict())
    assert twin.means() == tally.means()


def test_the_tally_of_numbers_weighs_batches_by_their_texts():
    tally = NumberTally()
    for loss, labels in ((6, [-100.0, 1.0, 2.0]), (2, [0.0])):
        batch = {"labels": np.array(labels, np.float32), "attention_mask": np.ones((len(labels), 2))}
        tally.add(SequenceClassifierOutput(tensor(*[[0]] * len(labels)), Tensor(np.float32(loss))), batch)
    assert tally.means() == {"loss": (3 * 6 + 2) / 4}
    assert tally.tokens == 8


def test_of_an_answer_both_ends_have_to_be_right():
    tally = TaskTally()
    output = QuestionAnsweringModelOutput(
        tensor([1, 0], [1, 0], [0, 1]), tensor([0, 1], [1, 0], [0, 1]), Tensor(np.float32(1))
    )
    batch = {
        "start_positions": np.array([0, 0, 0]),
        "end_positions": np.array([1, 1, 1]),
        "attention_mask": np.ones((3, 2)),
    }
    tally.add(output, batch)
    assert tally.means() == {"loss": 1.0, "accuracy": pytest.approx(1 / 3)}
    cut = {**batch, "start_positions": np.array([0, 3, 3]), "end_positions": np.array([1, 3, 3])}
    tally.add(output, cut)  # of which one answer is left
    assert tally.state_dict()["count"] == 4
    tally = TaskTally()
    tally.add(output, batch)
    assert math.isclose(tally.state_dict()["hits"], 1)
