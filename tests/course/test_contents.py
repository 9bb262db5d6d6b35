"""The list of chapters, and texts that name chapters by it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bert_course.check.exercise import EXERCISES
from bert_course.contents import NUMBERS, numbered

pytestmark = pytest.mark.no_arrays

COURSE = Path(__file__).resolve().parents[2] / "book" / "bert_course"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chapter `one_head`", "chapter 7"),
        ("Chapter `positions`'s waves, `positions`", "Chapter 29's waves, `positions`"),
        ("chapters `mlm`, `nsp` and `encoder` to `masking`", "chapters 13, 14 and 12 to 9"),
        ("the chapter of `masking`", "the chapter of `masking`"),
    ],
)
def test_a_chapter_by_its_name_gets_its_number(text, expected):
    assert numbered(text) == expected


def test_a_chapter_that_there_is_not_is_refused():
    with pytest.raises(KeyError, match="07_one_head"):
        numbered("chapter `07_one_head`")


def test_learners_read_numbers_of_today(monkeypatch):
    hint = next(one for one in EXERCISES["masked_gradient"]._hints if "chapter 7" in one)
    monkeypatch.setitem(NUMBERS, "one_head", "8")
    assert hint.replace("chapter 7", "chapter 8") in EXERCISES["masked_gradient"]._hints


def test_no_sentence_of_a_check_has_a_number_of_its_own():
    """It would stay behind when the order changes."""
    for path in sorted(COURSE.rglob("*.py")):
        if path.name != "contents.py":
            assert not re.findall(r"(?i)\bchapters? \d+[a-h]?\b", path.read_text(encoding="utf-8")), path.name
