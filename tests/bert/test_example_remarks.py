"""What stands out in files of examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minigrad.bert.example_remarks import describe_labels, remarks
from minigrad.bert.examples import Examples

pytestmark = pytest.mark.no_arrays


def examples(task: str, *rows: dict[str, Any], name: str = "train.csv") -> Examples:
    return Examples(Path(name), task, list(rows), list(range(1, len(rows) + 1)), True)


def texts(*pairs: str, name: str = "train.csv") -> Examples:
    """Rows from "text: label"."""
    return examples(
        "classify",
        *(dict(zip(("text", "label"), pair.split(": "), strict=True)) for pair in pairs),
        name=name,
    )


def test_labels_are_counted_the_commonest_first():
    assert describe_labels(texts("a: yes", "b: no", "c: no")) == "2 labels: no 2, yes 1"
    tagged = examples("tag", {"tokens": ["a", "b"], "tags": ["O", "O"]}, {"tokens": ["c"], "tags": ["B\x1b"]})
    assert describe_labels(tagged) == "2 labels: O 2, B\\x1b 1"
    many = texts(*(f"a: {number}" for number in range(13)))
    assert describe_labels(many).endswith(", and 3 more")
    rated = examples("regression", *({"text": "a", "label": number} for number in (0.5, 3.0, 4.0)))
    assert describe_labels(rated) == (
        "labels from 0.5 to 4, their mean 2.5 and their standard deviation 1.472"
    )
    assert list(remarks(rated, None)) == [
        "1 texts of train.csv have more than one of the labels, such as 'a'"
    ]  # and none that look alike


@pytest.mark.parametrize(
    ("labels", "why"),
    [(["4.0", "5.0", "3.0"], "all are whole"), (["4.0", "5.0", "n/a"], None), (["4", "5", "3"], None)],
)
def test_numbers_that_are_learned_as_classes(labels, why):
    notes = list(remarks(texts(*(f"{label}: {label}" for label in labels)), None))
    said = (
        f"labels such as {labels[0]} are learned as classes, because {why}; --task regression learns numbers"
    )
    assert notes == ([said] if why else [])


def test_a_file_without_surprises():
    assert list(remarks(texts("a: yes", "b: no", "c: no", "c: no"), texts("d: no", name="dev.csv"))) == []


def test_labels_that_differ_in_capitals_alone():
    assert list(remarks(texts("a: BUG", "b: bug", "c: bug", "d: docs"), None)) == [
        "BUG and bug are labels of their own, and differ in capitals alone"
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caf\u00e9", "cafe\u0301"),  # composed, taken apart
        ("New York", "New  York"),
        ("New York", "New\u00a0York"),
        ("New York", "New\tYork"),
        ("bug", "bu\u200bg"),
        ("bug", "\ufeffbug"),
        ("bug", "bug\u00ad"),
        ("bug", "bug\u200e"),
        ("\u2764", "\u2764\ufe0f"),
        ("A1", "\uff21\uff11"),  # full width
        ("file", "\ufb01le"),  # a ligature
        ("Stra\u00dfe", "STRASSE"),
        ("\u01c4", "\u01c6"),
        ("\uac00", "\u1100\u1161"),
        ("\u212bngstrom", "\u00c5ngstrom"),
        ("a \u200b b", "a b"),
    ],
    ids=ascii,
)
def test_labels_that_look_alike(one, other):
    (remark,) = remarks(texts(f"a: {one}", f"b: {other}", "c: docs", "d: docs"), None)
    assert "are labels of their own, and " in remark
    assert remark.isprintable()
    if one.casefold() != other.casefold():
        assert ascii(one) in remark
        assert ascii(other) in remark
    assert describe_labels(texts(f"a: {one}", f"b: {other}")).endswith(" 1")  # not one label of 2


def test_labels_that_do_not_look_alike():
    names = ["café", "cafe", "New York", "NewYork", "a-b", "a b", "1", "2", "\u200d", "no", "nö", "क", "ख"]
    rows = [f"{name} {i}: {name}" for name in names for i in range(2)]
    assert list(remarks(texts(*rows), None)) == []


def test_a_label_for_each_row():
    (remark,) = remarks(texts(*(f"{x}: ${x}.50" for x in range(9)), "b: $1.50"), None)
    assert remark == (
        "there are 9 labels in 10 rows of train.csv: are they classes, or numbers that are not written as 3.5 is, or "
        "did the columns text and label change places?"
    )
    assert list(remarks(texts(*(f"{x}: ${x % 5}.50" for x in range(10))), None)) == []
    assert list(remarks(examples("tag", *({"tokens": [x], "tags": [x]} for x in "abc")), None)) == []


def test_texts_with_two_labels():
    assert list(remarks(texts("a: yes", "a: no", "b: no", "b: no", "c: yes", "c: no"), None)) == [
        "2 texts of train.csv have more than one of the labels, such as 'a'"
    ]
    asked = {"question": "who ?", "context": "a b a", "answer": "a"}
    twice = examples("qa", {**asked, "answer_start": 0}, {**asked, "answer_start": 4})
    (remark,) = remarks(twice, None)
    assert remark == "1 texts of train.csv have more than one of the answers, such as 'who ?'"


def test_rows_that_are_in_both_files():
    train, dev = texts("a: yes", "b: no", "c: no"), texts("a: no", "b: no", "d: no", name="dev.csv")
    assert list(remarks(train, dev)) == [
        "2 of the 3 rows of dev.csv are in train.csv too: of new texts the scores say that much less"
    ]
    pairs = [examples("pairs", {"text": "a", "text_pair": second, "label": "x"}) for second in "bc"]
    assert list(remarks(*pairs)) == []


def test_a_second_text_that_is_not_read():
    pairs = Examples(Path("x.csv"), "regression", [{"text": "a", "label": 0.5}], [1], True, ("text_pair",))
    assert list(remarks(pairs, None)) == [
        "the column text_pair of x.csv is not read, because regression is of single texts"
    ]
