"""Examples as ids, held against what transformers' tokenizers give its own programs for the same tasks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from sample_texts import HOSTILE_WORDS, REAL_TEXTS

from minigrad.bert.examples import Examples
from minigrad.bert.features import encode_examples
from minigrad.bert.trained import trained_model
from minigrad.training.pretrained import read_tokenizer

pytestmark = [pytest.mark.no_arrays, pytest.mark.oracle]

TAGS = {0: "O", 1: "B-x", 2: "I-x"}
WORDS = [*" ".join(REAL_TEXTS).split(), *HOSTILE_WORDS, "unchangeable", "ValueError", "(3.5)"]


@pytest.fixture(scope="module")
def theirs():
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(trained_model())


def encoded(task: str, rows: list[dict[str, Any]], length: int):
    examples = Examples(Path("rows.jsonl"), task, rows, [1] * len(rows), True)
    tokenizer = read_tokenizer(trained_model(), 100_000)
    assert tokenizer is not None
    return encode_examples(examples, tokenizer, length, TAGS)


def words(rng: random.Random, at_most: int) -> list[str]:
    drawn = rng.choices(WORDS, k=rng.randrange(1, at_most))
    return [word for word in drawn if word.strip()] or ["mary"]


def their_place(offsets: list[Any], segments: list[int], first: int, end: int) -> tuple[int, int]:
    """The tokens of an answer in one window, as transformers' example of answering looks for them, or twice [CLS]."""
    inside = [i for i, segment in enumerate(segments) if segment == 1]
    if not (inside and offsets[inside[0]][0] <= first and offsets[inside[-1]][1] >= end):
        return 0, 0
    start = max(i for i in inside if offsets[i][0] <= first)
    return start, min(i for i in inside if offsets[i][1] >= end)


@pytest.mark.parametrize("length", [16, 24, 61])
def test_windows_and_answers(theirs, length):
    rng, rows = random.Random(length), []
    for number in range(60):
        parts = words(rng, 90)
        first = rng.randrange(len(parts))
        last = rng.randrange(first, min(len(parts), first + 4))
        start = len(" ".join([*parts[:first], ""]))
        answer = " ".join(parts[first : last + 1])
        if number % 3 == 0:
            answer, start = "", 0  # of these the windows say so, and so do those without the others' answers
        rows.append(
            {
                "question": " ".join(words(rng, 5)),
                "context": " ".join(parts),
                "answer": answer,
                "answer_start": start,
            }
        )
    found = encoded("qa", rows, length)
    compared = 0
    for number, row in enumerate(rows):
        windows = [one for one, owner in zip(found.features, found.owners, strict=True) if owner == number]
        asked = len(theirs(row["question"], add_special_tokens=False)["input_ids"])
        size = length - 3 - asked
        if asked > (length - 3) // 2:
            continue  # here the question is cut, there it is not
        expected = theirs(
            row["question"],
            row["context"],
            truncation="only_second",
            max_length=length,
            stride=size - max(1, size // 2),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        assert [one.input_ids for one in windows] == expected["input_ids"]
        assert [one.token_type_ids for one in windows] == expected["token_type_ids"]
        for window, (one, offsets) in enumerate(zip(windows, expected["offset_mapping"], strict=True)):
            place = (0, 0)
            if row["answer"]:
                end = row["answer_start"] + len(row["answer"])
                place = their_place(offsets, expected.sequence_ids(window), row["answer_start"], end)
            assert (one.targets["start_positions"], one.targets["end_positions"]) == place, (row, window)
            compared += 1
    assert compared > 80


@pytest.mark.parametrize("length", [16, 400])
def test_tags_of_pieces(theirs, length):
    """The first piece of a word has its tag, as in transformers' example; a word that is not whole is left out here."""
    rng = random.Random(3)
    rows = []
    for _ in range(60):
        tokens = words(rng, 12)
        rows.append({"tokens": tokens, "tags": rng.choices(list(TAGS.values()), k=len(tokens))})
    numbers = {name: number for number, name in TAGS.items()}
    for row, one in zip(rows, encoded("tag", rows, length).features, strict=True):
        expected = theirs(row["tokens"], is_split_into_words=True, truncation=True, max_length=length)
        of_words = expected.word_ids()
        labels = [
            -100 if word is None or word == of_words[i - 1] else numbers[row["tags"][word]]
            for i, word in enumerate(of_words)
        ]
        whole = len(one.input_ids) - 1  # without [SEP]
        assert one.input_ids[:whole] == expected["input_ids"][:whole]
        assert one.targets["labels"][:whole] == labels[:whole]
        cut = of_words[whole : len(of_words) - 1]
        assert len(set(cut)) <= 1  # pieces of the one word that is not whole
        assert length == 16 or not cut


@pytest.mark.parametrize("length", [9, 60])
def test_pairs(theirs, length):
    rng = random.Random(4)
    rows = [
        {"text": " ".join(words(rng, 20)), "text_pair": " ".join(words(rng, 20)), "label": "O"}
        for _ in range(60)
    ]
    for row, one in zip(rows, encoded("pairs", rows, length).features, strict=True):
        expected = theirs(row["text"], row["text_pair"], truncation=True, max_length=length)
        assert one.input_ids == expected["input_ids"]
        assert one.token_type_ids == expected["token_type_ids"]
