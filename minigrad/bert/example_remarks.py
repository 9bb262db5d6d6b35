"""What stands out in files of examples, and is worth knowing before anything is learned from them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from minigrad.bert.examples import INPUTS, NUMBERS, ON_A_SCALE, Examples, Row, appearance, labels_of
from minigrad.messages import shown

MOST_SHOWN = 10  # labels of a list, the most frequent first


def describe_labels(examples: Examples) -> str:
    """How often each label occurs, as one line for the reader; of words, not of rows, where words have labels.

    Of numbers, where they lie.
    """
    if examples.task in NUMBERS:
        numbers = np.array([row["label"] for row in examples.rows])
        return (
            f"labels from {numbers.min():.6g} to {numbers.max():.6g}, their mean {numbers.mean():.6g} and their "
            f"standard deviation {numbers.std():.4g}"
        )
    counts = _counts(examples)
    listed = [f"{shown(name, 40)} {count:,}" for name, count in counts.most_common(MOST_SHOWN)]
    more = [f"and {len(counts) - MOST_SHOWN:,} more"] if len(counts) > MOST_SHOWN else []
    return f"{len(counts):,} labels: {', '.join([*listed, *more])}"


def remarks(train: Examples, held_out: Examples | None) -> Iterator[str]:
    """A line for each thing that makes what is learned, or the score, worth less than it seems."""
    if train.task not in NUMBERS:
        yield from _numbers_as_classes(train)
        yield from _labels_that_look_alike(train)
    if len(INPUTS[train.task]) == 1 and "text_pair" in train.ignored:
        yield f"the column text_pair of {train.path} is not read, because {train.task} is of single texts"
    yield from _contradictions(train)
    if held_out is not None:
        known = {_inputs(train, row) for row in train.rows}
        seen = sum(_inputs(held_out, row) in known for row in held_out.rows)
        if seen:
            yield (
                f"{seen:,} of the {len(held_out.rows):,} rows of {held_out.path} are in {train.path} too: of new texts "
                "the scores say that much less"
            )


def _counts(examples: Examples) -> Counter[str]:
    return Counter(name for row in examples.rows for name in labels_of(row))


def _labels_that_look_alike(examples: Examples) -> Iterator[str]:
    counts = _counts(examples)
    alike = defaultdict(list)
    for name in sorted(counts):
        alike[appearance(name)].append(name)
    for names in alike.values():
        if len(names) == 1:
            continue
        plain = all(unicodedata.is_normalized("NFKC", name) for name in names)
        if plain and len({name.lower() for name in names}) == 1:
            listed, how = [shown(name, 40) for name in names], "differ in capitals alone"
        else:
            listed, how = [shown(ascii(name), 80) for name in names], "look alike"
        yield f"{' and '.join(listed)} are labels of their own, and {how}"
    if 2 * len(counts) > len(examples.rows) >= 10 and "label" in examples.rows[0]:
        yield (
            f"there are {len(counts):,} labels in {len(examples.rows):,} rows of {examples.path}: are they classes, or "
            "numbers that are not written as 3.5 is, or did the columns text and label change places?"
        )


def _numbers_as_classes(examples: Examples) -> Iterator[str]:
    """Labels such as 4.0, which are classes as long as nobody says otherwise."""
    names = [str(row.get("label")) for row in examples.rows]
    if examples.task in ON_A_SCALE and all(re.fullmatch(r"[0-9]+[.,]0*", name) for name in names):
        meant = ON_A_SCALE[examples.task]
        yield f"labels such as {names[0]} are learned as classes, because all are whole; --task {meant} learns numbers"


def _contradictions(examples: Examples) -> Iterator[str]:
    """Texts that are there with several answers: of these, a model can learn one at most."""
    answers: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in examples.rows:
        answers[_inputs(examples, row)].add(repr([row.get("answer_start"), labels_of(row)]))
    count = sum(len(different) > 1 for different in answers.values())
    if count:
        first = next(inputs for inputs, different in answers.items() if len(different) > 1)
        what = "answers" if examples.task == "qa" else "labels"
        yield f"{count:,} texts of {examples.path} have more than one of the {what}, such as {shown(first[0], 60)!r}"


def _inputs(examples: Examples, row: Row) -> tuple[str, ...]:
    """What the model sees of a row, as something that can be looked up."""
    return tuple(
        " ".join(row[column]) if column == "tokens" else row[column] for column in INPUTS[examples.task]
    )
