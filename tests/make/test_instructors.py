"""The page for instructors: its figures are those of the notebooks and of the record, and its plans can be held."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

import minigrad
from bert_course.check.exercise import EXERCISES
from bert_course.grade.verdict import STATES
from book.make import instructors
from book.make.instructors import LONGEST, PLANS, minutes, plan, renewed, taken_as_known

pytestmark = pytest.mark.no_arrays

ROOT = Path(minigrad.__file__).resolve().parent.parent
PAGE = ROOT / instructors.PAGE
EVENINGS = [(count, number) for count, evenings in PLANS.items() for number in range(len(evenings))]


def test_the_page_says_what_the_notebooks_say():
    text = PAGE.read_text(encoding="utf-8")
    assert renewed(text, ROOT) == text, "make map"


def test_a_plan_has_as_many_evenings_as_it_says():
    assert all(len(evenings) == count for count, evenings in PLANS.items())


@pytest.mark.parametrize(("count", "number"), EVENINGS)
def test_an_evening_is_not_too_long(count, number):
    assert 90 <= minutes(PLANS[count][number], ROOT) <= LONGEST


@pytest.mark.parametrize(("count", "number"), EVENINGS)
def test_exercises_are_of_chapters_that_have_been_read(count, number):
    read = [name for evening in PLANS[count][: number + 1] for name in evening.chapters]
    assert all(EXERCISES[name].chapter in read for name in PLANS[count][number].exercises)


@pytest.mark.parametrize("count", PLANS)
def test_nothing_comes_twice(count):
    for part in ("chapters", "exercises"):
        listed = [one for evening in PLANS[count] for one in getattr(evening, part)]
        assert len(listed) == len(set(listed))


def test_ten_evenings_need_nothing_known():
    assert taken_as_known(10, ROOT) == []


def test_a_plan_with_dates(capsys):
    arguments = ["--root", str(ROOT), "--start", "2027-01-25", "--every", "14", "--evenings", "2"]
    assert instructors.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| date |")
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| 2027-01-25", "| 2027-02-08"]
    assert plan(2, ROOT, date(2027, 1, 25), 14).splitlines() == lines


def test_a_plan_without_a_start_is_no_plan(capsys):
    assert instructors.main(["--evenings", "2"]) == 2
    assert capsys.readouterr().err == "a plan needs both: --start 2027-01-11 --evenings 5\n"


def test_the_page_names_each_verdict():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{state}`" in text for state in STATES)


def test_the_record_is_of_two_hundred_in_ten_minutes_with_every_verdict_right():
    record = json.loads((ROOT / instructors.RECORD).read_text())
    assert record["differ_from_the_bank"] == []
    assert (record["students"], record["cores"]) == (200, 2)
    assert record["seconds"] < 600
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
