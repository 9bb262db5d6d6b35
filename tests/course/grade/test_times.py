"""How long exercises took: counted beside the notebook, and put together for a class without names."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from doubling import double, make

from bert_course.check import record
from bert_course.grade import times

pytestmark = pytest.mark.no_arrays


@pytest.fixture
def clock(monkeypatch):
    """Let minutes pass."""
    now = [1000.0]
    monkeypatch.setattr(record.time, "monotonic", lambda: now[0])
    monkeypatch.setitem(record._attempt, "at", now[0])

    def passes(minutes: float) -> None:
        now[0] += 60 * minutes

    return passes


def seconds() -> dict[str, int]:
    return {name: entry["seconds"] for name, entry in json.loads(Path(".progress.json").read_text()).items()}


@pytest.mark.usefixtures("folder")
def test_time_is_counted_up_to_the_first_right_answer(told, clock):
    one, two = make(name="one"), make(name="two")
    clock(4)
    told(one, abs)
    clock(2.5)
    told(one, double)
    assert seconds() == {"one": 390}
    clock(3)
    told(one, double)  # solved before: nobody works on it
    clock(1)
    told(two, double)
    assert seconds() == {"one": 390, "two": 60}


@pytest.mark.usefixtures("folder")
def test_a_break_is_not_counted(told, clock):
    one = make(name="one")
    clock(4)
    told(one, abs)
    clock(46)
    told(one, abs)
    clock(1)
    told(one, double)
    assert seconds() == {"one": 300}


def student(folder: Path, **entries: tuple[int, bool, int]) -> None:
    folder.mkdir(parents=True)
    keys = ("attempts", "solved", "seconds")
    text = json.dumps({name: dict(zip(keys, entry, strict=True)) for name, entry in entries.items()})
    (folder / ".progress.json").write_text(text)


def test_the_table_of_a_class_has_no_names(tmp_path, capsys):
    student(tmp_path / "class" / "anna", attend=(1, True, 600), softmax=(2, False, 900))
    student(tmp_path / "class" / "ben" / "my-exercises", attend=(3, True, 1200), foreign=(1, True, 60))
    student(tmp_path / "class" / "eve", attend=(2, True, 1800), heads_of_batch=(1, True, 300))
    student(tmp_path / "class" / "old", attend=(9, True, 0))  # of a course that did not count
    (tmp_path / "class" / "zoe").mkdir()
    (tmp_path / "class" / "zoe" / ".progress.json").write_text("{")
    out = tmp_path / "times.csv"
    assert times.main([str(tmp_path / "class"), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{out}: 2 exercises, 4 students\n"
    assert "zoe" in said.err
    assert list(csv.reader(out.read_text().splitlines())) == [
        list(times.COLUMNS),
        ["heads_of_batch", "arrays", "10", "1", "5.0", "5.0", "5.0", "1"],
        ["attend", "one_head", "10", "3", "15.0", "20.0", "25.0", "2"],
    ]


@pytest.mark.parametrize("content", ["{}", '{"attend": {"attempts": 3, "solved": false, "seconds": 9}}'])
def test_a_class_without_times_is_said(content, tmp_path, capsys):
    (tmp_path / ".progress.json").write_text(content)
    out = tmp_path / "times.csv"
    assert times.main([str(tmp_path), "--out", str(out)]) == 1
    assert "no .progress.json" in capsys.readouterr().err
    assert not out.exists()
