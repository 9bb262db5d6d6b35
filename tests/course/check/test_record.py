"""Which exercises were tried and solved, in a file beside the notebook."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from doubling import double, make, recorded

from bert_course.check import exercise as module
from bert_course.check.exercise import progress

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.no_arrays]

# --- Progress --------------------------------------------------------------------------------------------


def test_attempts_are_counted_and_what_is_solved_stays_solved(told):
    exercise = make()
    told(exercise, lambda x: x)
    assert recorded() == {"double": {"attempts": 1, "solved": False}}
    told(exercise, double)
    assert recorded() == {"double": {"attempts": 2, "solved": True}}
    told(exercise, lambda x: x)
    assert recorded() == {"double": {"attempts": 3, "solved": True}}


def test_progress_is_kept_over_runs(told, folder, monkeypatch):
    told(make(), double)
    monkeypatch.setattr(module, "EXERCISES", {})  # a new kernel
    told(make(), lambda x: x)
    told(make(name="other"), lambda x: x)
    assert recorded() == {
        "double": {"attempts": 2, "solved": True},
        "other": {"attempts": 1, "solved": False},
    }
    assert [path.name for path in folder.iterdir()] == [".progress.json"]


def test_progress_is_in_the_working_directory(told, folder, monkeypatch):
    """Where no notebook is known."""
    exercise = make()
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    told(exercise, double)
    assert (folder / "below" / ".progress.json").exists()
    assert not (folder / ".progress.json").exists()


def test_progress_is_beside_the_notebook_wherever_one_works(told, folder, monkeypatch, capsys):
    """Jupyter tells its kernels the notebook's path; `%cd` in a cell, or a server elsewhere, changes nothing."""
    exercise = make()
    (folder / "course").mkdir()
    (folder / "course" / "one_head.ipynb").touch()
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "course" / "one_head.ipynb"))
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    told(exercise, double)
    assert [path.name for path in (folder / "course").glob(".*")] == [".progress.json"]
    assert not (folder / "elsewhere" / ".progress.json").exists()
    monkeypatch.chdir(folder)
    progress()
    assert "solved, 1 attempt" in capsys.readouterr().out


@pytest.mark.parametrize("named", ["", "one_head.ipynb", "/no/such/folder/one_head.ipynb", "console-1"])
def test_a_name_that_is_no_notebook_says_nothing(named, told, folder, monkeypatch):
    """A session of another kind, a path on another machine, a name without its folder."""
    exercise = make()
    monkeypatch.setenv("JPY_SESSION_NAME", named)
    told(exercise, double)
    assert (folder / ".progress.json").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"[1]", b"3", b"null", b"\xff\xfe", b'{"double": 3}', b'{"double": {}}',
     b'{"double": {"attempts": null, "solved": true}}', b'{"double": {"attempts": "many", "solved": true}}'],
)  # fmt: skip
def test_a_damaged_record_is_begun_anew(content, told, capsys):
    Path(".progress.json").write_bytes(content)
    exercise = make()
    progress()
    assert "0 of 1 solved" in capsys.readouterr().out
    lines = told(exercise, double)
    assert lines[3:] == [
        "(.progress.json could not be read: it is now .progress.json.damaged, and counting starts anew.)"
    ]
    assert Path(".progress.json.damaged").read_bytes() == content
    assert recorded() == {"double": {"attempts": 1, "solved": True}}


def test_a_record_that_cannot_be_written_is_said_and_nothing_more(told, folder):
    (folder / ".progress.json").mkdir()
    lines = told(make(), double)
    assert lines[0].startswith("double: right.")
    assert lines[3:] == ["(Your progress could not be kept in .progress.json: Is a directory.)"]


@pytest.mark.skipif(os.name != "posix", reason="only POSIX removes a folder that is in use")
def test_a_folder_that_is_gone(told, folder, monkeypatch):
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    lines = told(make(), double)
    monkeypatch.chdir(folder)
    assert lines[3:] == ["(Your progress could not be kept in .progress.json: No such file or directory.)"]


def test_progress_can_be_switched_off(told, folder, monkeypatch, capsys):
    """The file is neither read nor written: a stored notebook's table is the same for all, and of its own cells."""
    exercise = make()
    told(exercise, double)
    before = recorded()
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    progress()
    assert "0 of 1 solved" in capsys.readouterr().out
    told(exercise, lambda x: x)
    told(exercise, double)
    assert recorded() == before
    progress()
    assert "solved, 2 attempts" in capsys.readouterr().out
    monkeypatch.delenv("MINIGRAD_PROGRESS")
    progress()
    assert "solved, 1 attempt" in capsys.readouterr().out


def test_the_table_of_progress(told, capsys):
    exercises = [make(name=name) for name in ("first", "second", "third", "fourth")]
    for exercise, answer in zip(exercises, (double, abs, lambda x: x), strict=False):
        told(exercise, answer)
    told(exercises[2], lambda x: 3 * x)
    Path(".progress.json").write_text(
        json.dumps({**recorded(), "of another course": {"attempts": 1, "solved": True}})
    )
    progress()
    assert capsys.readouterr().out.splitlines() == [
        "1 of 4 solved",
        "exercise  chapter  difficulty  minutes  state",
        "first           3           1        5  solved, 1 attempt",
        "second          3           1        5  1 attempt",
        "third           3           1        5  2 attempts",
        "fourth          3           1        5  -",
    ]


@pytest.mark.parametrize(
    ("asked", "known"), [(3, True), ("3", True), ("modules", True), (99, False), ("x", False), (True, False)]
)
def test_progress_of_a_chapter(asked, known, capsys):
    make()
    progress(asked)
    words = capsys.readouterr().out
    if known:
        assert words.startswith("0 of 1 solved")
    else:
        assert words == f"There are no exercises for chapter {asked}; there are some for 3.\n"


def test_progress_of_two_chapters(monkeypatch, capsys):
    monkeypatch.setattr(make(), "chapter", "embeddings")
    monkeypatch.setattr(make(name="other"), "chapter", "positions")
    progress("positions")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 of 1 solved"
    assert lines[2].split() == ["other", "29", "1", "5", "-"]
    progress("7")
    assert capsys.readouterr().out == "There are no exercises for chapter 7; there are some for 6, 29.\n"
