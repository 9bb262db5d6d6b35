"""How long a notebook takes to read: the counts, and what they leave out."""

from __future__ import annotations

from typing import Any

import pytest

from book.make import reading_time

pytestmark = pytest.mark.no_arrays


def text(source: str, *tags: str) -> dict[str, Any]:
    """A Markdown cell."""
    return {"cell_type": "markdown", "source": source, "metadata": {"tags": list(tags)} if tags else {}}


def code(source: str, *tags: str, outputs: tuple[Any, ...] = ()) -> dict[str, Any]:
    """A code cell."""
    return {**text(source, *tags), "cell_type": "code", "outputs": list(outputs)}


def of(*cells: dict[str, Any]) -> dict[str, Any]:
    """A notebook."""
    return {"cells": list(cells)}


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("It has 109,482,240 parameters", 4),
        ("A well-known reader's word", 4),
        ("Code `x = y + z` is one", 4),
        ("Formula $x = y + z$ is one", 4),
        ("Before\n\n$$\na + b + c\n$$\n\nafter", 2),
        ("Before\n\n```python\nx = 1\n```\n\nafter", 2),
        ("A [link here](https://example.org/a/b/c) counts", 4),
        ("See https://example.org/a/b/c there", 2),
        ("<b>Bold</b> text <!-- not this -->", 2),
    ],
)
def test_words(source: str, number: int):
    assert reading_time.words(of(text(source), code("not these"))) == number


def test_hidden_cells_do_not_count():
    shown = code("a = 1\n\nb = 2\n")
    hidden = [
        code("c = 3", tag) for tag in ("hide-input", "remove-cell", "remove-input", "hide-cell", "setup")
    ]
    assert reading_time.code_cells(of(shown, *hidden)) == 1
    assert reading_time.words(of(text("one two"), text("three", "remove-cell"))) == 2


def test_minutes():
    prose = text(" ".join(["word"] * 1500))  # 10 minutes
    assert reading_time.minutes(of(prose)) == 10
    assert reading_time.minutes(of(prose, *[code("x")] * 10)) == 25
    # 32 and 10 words
    assert reading_time.minutes(of(prose, *[code("x")] * 8, *[text("**Predict** it.")] * 5)) == 30
    assert reading_time.predictions(of(prose, text("**Predict:** which?"), text("Predict"))) == 1
    assert reading_time.minutes(of(text("word"))) == 5


def html(text: str) -> dict[str, Any]:
    """An output in HTML."""
    return {"output_type": "execute_result", "data": {"text/html": text, "text/plain": "x"}, "metadata": {}}


TABLE = (
    '<div class="course-table"><style>.course-table {color: red}</style><table><caption>three words here</caption>'
    "<thead><tr><th>name</th><th>loss</th></tr></thead>"
    "<tbody><tr><th>BERT &amp; more</th><td>0.77 (0.75 to 0.79)</td></tr>"
    "<tr><th>none</th><td>1</td></tr></tbody></table></div>"
)


BOXED = "<details>\n<summary>How</summary>\n\n{}\n\n</details>"


def test_what_is_in_a_box_is_below_the_line():
    page = of(text(f"Above it.\n\n{BOXED.format('Four words below it.')}\n\nAbove."))
    assert reading_time.words(page) == 3
    assert reading_time.words_below(page) == 5


def test_what_cells_put_out_is_read():
    """Words in tables, captions and printed lines; numbers, styles and hidden cells are none."""
    printed = {"output_type": "stream", "name": "stdout", "text": "loss of 3.5 nats\n"}
    page = of(code("x", outputs=(html(TABLE), printed)), code("x", "remove-cell", outputs=(printed,)))
    assert reading_time.printed_words(page) == 3 + 2 + 2 + 1 + 1 + 3  # "to" in the range is a word, too


def test_tables_made_and_typed():
    typed = text("Before.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nAfter | it.")
    below = text(BOXED.format("| a |\n|---|\n| 1 |"))
    assert reading_time.tables(of(code("x", outputs=(html(TABLE),)), typed, below)) == [2, 1]
    folded = html(f"<details><summary>All</summary>{TABLE}</details>")
    assert reading_time.tables(of(code("x", outputs=(folded,)))) == []
    assert reading_time.tables(of(code("x", outputs=(html('<table role="grid"><tr></tr></table>'),)))) == []


def test_setup_takes_no_time_and_folded_code_little():
    prose = text(" ".join(["word"] * 1500))  # 10 minutes
    assert reading_time.minutes(of(prose, *[code("x", "setup")] * 20)) == 10
    assert reading_time.minutes(of(prose, *[code("x", "hide-input")] * 20)) == 20
    assert reading_time.cells(of(prose, code("x", "setup"), code("x", "remove-cell"), code("x"))) == 2


@pytest.mark.parametrize(
    ("cells", "over"),
    [
        ([text("word " * 1800), *[text("")] * 43, text(BOXED.format("word " * 999))], ""),
        ([text("word " * 1801)], "words: 1801; the budget is 1800"),
        ([text("")] * 46, "cells: 46; the budget is 45"),
        ([code("x")] * 32, "minutes: 50; the budget is 45"),
        ([text(BOXED.format("word " * 1000))], "words below the line: 1001; the budget is 1000"),
        ([text("| a |\n|---|\n| 1 |")] * 6, "tables: 6; the budget is 5"),
        ([text("| a |\n|---|\n" + "| 1 |\n" * 7)], "rows of the longest table: 7; the budget is 6"),
    ],
)
def test_what_is_over_the_budget_is_named(cells: list[dict[str, Any]], over: str):
    assert list(reading_time.over_budget(of(*cells))) == [over] * bool(over)


def test_exercises():
    notebook = of(
        text("# Exercises: one attention head"),
        text("## 1. Softmax (difficulty 1, 8 minutes)\n\nText."),
        text("## 2. What will it wait for? (difficulty 1, then 2; 22 minutes)"),
        text("## A note (of 3 minutes)"),
    )
    assert reading_time.exercises(notebook) == [
        ("Softmax", "1", 8),
        ("What will it wait for?", "1, then 2", 22),
    ]
