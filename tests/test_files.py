"""Files that are there whole or not at all: also on a full disk, also after a kill."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

import processes
from minigrad import files
from minigrad.files import SaveError, write_atomic, write_folder_atomic

pytestmark = pytest.mark.no_arrays


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, and empty folders, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"(folder)"
        for path in sorted(folder.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.txt"
    for content in (b"first", b"", b"second\n" * 1000):
        write_atomic(path, content)
        assert contents(tmp_path) == {"a.txt": content}
    write_atomic(str(path), b"by a string")
    assert path.read_bytes() == b"by a string"


def test_a_folder_is_written_and_replaced(tmp_path):
    for folder in ({"a": b"1", "b": b"2"}, {"b": b"3", "c": b""}):
        write_folder_atomic(tmp_path / "deep" / "folder", folder)
        assert contents(tmp_path / "deep") == {f"folder/{name}": text for name, text in folder.items()}


@pytest.mark.parametrize(
    ("system", "refused", "whole"), [("win32", 3, True), ("win32", 4, False), ("linux", 1, False)]
)
def test_on_windows_what_a_scanner_holds_is_renamed_later(tmp_path, monkeypatch, system, refused, whole):
    true, path, waits, left = os.replace, tmp_path / "a.txt", [], [refused]

    def held(source, target):
        if left[0]:
            left[0] -= 1
            raise PermissionError(errno.EACCES, "in use")
        true(source, target)

    monkeypatch.setattr(os, "replace", held)
    monkeypatch.setattr(files.sys, "platform", system)
    monkeypatch.setattr(files.time, "sleep", waits.append)
    path.write_bytes(b"old")
    if whole:
        write_atomic(path, b"new")
    else:
        with pytest.raises(SaveError, match="in use"):
            write_atomic(path, b"new")
    assert contents(tmp_path) == {"a.txt": b"new" if whole else b"old"}
    assert waits == ([0.05, 0.2, 1.0] if system == "win32" else [])


def test_what_a_killed_writer_left_does_not_matter(tmp_path):
    (tmp_path / "folder.partial").mkdir()
    (tmp_path / "folder.partial" / "old").write_bytes(b"half")
    write_folder_atomic(tmp_path / "folder", {"new": b"whole"})
    assert contents(tmp_path) == {"folder/new": b"whole"}


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("how", ["a thread", "a process"])
def test_two_who_write_one_file_at_once_are_in_nobodys_way(tmp_path, monkeypatch, moment, how):
    true, path = getattr(os, moment), tmp_path / "a.txt"

    def another(*arguments):
        monkeypatch.setattr(os, moment, true)
        if how == "a thread":
            (other := threading.Thread(target=write_atomic, args=(path, b"the other's, and longer"))).start()
            other.join()
        else:
            done = processes.run_python(
                "import sys; from minigrad.files import write_atomic; write_atomic(sys.argv[1], b'the other')",
                path,
            )
            assert done.returncode == 0, done.stderr
        assert path.exists()
        return true(*arguments)

    monkeypatch.setattr(os, moment, another)
    write_atomic(path, b"one")
    assert contents(tmp_path) == {"a.txt": b"one"}


# --- Errors ----------------------------------------------------------------------------------------------

WRITERS = {
    "file": lambda path, content: write_atomic(path, content),
    "folder": lambda path, content: write_folder_atomic(path, {"first": content, "second": content}),
}


@pytest.fixture(params=WRITERS)
def writer(request):
    return WRITERS[request.param]


def failing(monkeypatch, name, call=0, number=errno.ENOSPC):
    """Let one call of a function in `os` raise this OSError."""
    true, calls = getattr(os, name), []

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) == call + 1:
            raise OSError(number, os.strerror(number))
        return true(*args, **kwargs)

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize(
    ("kind", "replacing", "name", "call"),
    [
        ("file", False, "fsync", 0),
        ("file", True, "fsync", 0),
        ("file", False, "replace", 0),
        ("file", True, "replace", 0),
        ("folder", False, "fsync", 0),
        ("folder", True, "fsync", 1),
        ("folder", False, "rename", 0),
        ("folder", True, "rename", 0),
        ("folder", True, "rename", 1),
    ],
)
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, kind, replacing, name, call):
    path = tmp_path / "thing"
    if replacing:
        WRITERS[kind](path, b"before")
    before = contents(tmp_path)
    failing(monkeypatch, name, call)
    with pytest.raises(SaveError) as caught:
        WRITERS[kind](path, b"x" * 1_234_567)
    assert contents(tmp_path) == before
    message = str(caught.value)
    needed = {"file": "1.2 MB", "folder": "2.5 MB"}[kind]
    assert message.startswith(f"could not save {path}: No space left on device ({needed} needed, ")
    assert message.endswith("MB free); what was saved before is untouched")
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize(("kind", "calls"), [("file", 2), ("folder", 4)])
def test_file_systems_that_cannot_force_a_folder_to_the_disk(tmp_path, monkeypatch, kind, calls):
    failing(monkeypatch, "fsync", calls - 1, errno.EINVAL)  # the last call is for the folder
    WRITERS[kind](tmp_path / "thing", b"content")
    assert set(contents(tmp_path).values()) == {b"content"}


def test_everything_is_forced_to_the_disk_before_it_gets_its_name(tmp_path, monkeypatch, writer):
    events = []
    for name in ("fsync", "replace", "rename"):
        true = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, true=true: (events.append(name), true(*args)))
    writer(tmp_path / "thing", b"content")
    naming = next(i for i, name in enumerate(events) if name != "fsync")
    assert events[:naming] == ["fsync"] * (1 if writer is WRITERS["file"] else 3)
    assert events[naming + 1 :] == ["fsync"]


def test_the_message_names_what_is_free(tmp_path, monkeypatch):
    failing(monkeypatch, "fsync")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9e9, 9e9, 56_700))
    with pytest.raises(SaveError, match=r"\(2\.0 MB needed, 0\.1 MB free\)"):
        write_folder_atomic(tmp_path / "not" / "there" / "yet", {"a": bytes(2_000_000)})


def test_a_file_stands_where_a_folder_is_needed(tmp_path, writer):
    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(SaveError, match=r"could not save .*file/thing: Not a directory"):
        writer(tmp_path / "file" / "thing", b"content")
    assert contents(tmp_path) == {"file": b"in the way"}


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SaveError, match="No such file or directory"):
        write_atomic(tmp_path / "nowhere" / "a.txt", b"content")
    assert contents(tmp_path) == {}


# --- A limit of the system, in a process of its own ------------------------------------------------------

pytest_posix = pytest.mark.skipif(os.name != "posix", reason="limits of the file size are POSIX")

LIMITED = """
import resource, signal, sys
from minigrad.files import SaveError, write_atomic, write_folder_atomic
path = sys.argv[1]
writers = {
    "file": lambda content: write_atomic(path, content),
    "folder": lambda content: write_folder_atomic(path, {"small": b"1", "large": content}),
}
write = writers[sys.argv[2]]
write(b"before")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    write(bytes(300_000))
except SaveError as error:
    print(error)
"""


@pytest_posix
@pytest.mark.parametrize("kind", WRITERS)
def test_a_write_that_the_system_cuts_short(tmp_path, kind):
    path = tmp_path / "thing"
    done = processes.run_python(LIMITED, path, kind)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"could not save {path}: File too large (0.3 MB needed, ")
    expected = {"thing": b"before"} if kind == "file" else {"thing/small": b"1", "thing/large": b"before"}
    assert contents(tmp_path) == expected


KILLED = """
import os, signal, sys
from minigrad.files import write_atomic, write_folder_atomic
path, kind, name, after = sys.argv[1:]
def write(content):
    if kind == "file":
        write_atomic(path, content)
    else:
        write_folder_atomic(path, {"first": content, "second": content})
write(b"before")
true, calls = getattr(os, name), []
def kill(*args, **kwargs):
    calls.append(args)
    if len(calls) > int(after):
        os.kill(os.getpid(), signal.SIGKILL)
    return true(*args, **kwargs)
setattr(os, name, kill)
write(b"after")
"""


@pytest_posix
@pytest.mark.parametrize(
    ("kind", "name", "after", "content"),
    [
        ("file", "fsync", 0, b"before"),
        ("file", "replace", 0, b"before"),
        ("file", "fsync", 1, b"after"),
        ("folder", "fsync", 1, b"before"),
        ("folder", "rename", 0, b"before"),
        ("folder", "fsync", 3, b"after"),
    ],
)
def test_a_kill_leaves_the_old_or_the_new(tmp_path, kind, name, after, content):
    path = tmp_path / "thing"
    done = processes.run_python(KILLED, path, kind, name, after)
    assert done.returncode == -9, done.stderr
    files = [path] if kind == "file" else [path / "first", path / "second"]
    assert [file.read_bytes() for file in files] == [content] * len(files)


@pytest_posix
def test_a_kill_between_two_names_leaves_the_old_one_beside(tmp_path):
    done = processes.run_python(KILLED, tmp_path / "thing", "folder", "rename", 1)
    assert done.returncode == -9, done.stderr
    assert (tmp_path / "thing.old" / "second").read_bytes() == b"before"
    write_folder_atomic(tmp_path / "thing", {"first": b"later"})
    write_folder_atomic(tmp_path / "thing", {"first": b"latest"})
    assert contents(tmp_path) == {"thing/first": b"latest"}
