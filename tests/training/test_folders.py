"""A run's folder: one run at a time, checkpoints and rows that are whole, and nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

import processes
from minigrad.files import SaveError
from minigrad.training.folders import (
    RunFolder,
    RunFolderError,
    Table,
    environment,
    latest_checkpoint,
    read_latest,
    step_of,
)
from minigrad.training.reading import SUMS, CheckpointError, is_there, read_file

posix = pytest.mark.skipif(os.name != "posix", reason="kills and limits are POSIX")
FILES = {"config.json": b"{}", "model.safetensors": b"weights"}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- One run at a time -----------------------------------------------------------------------------------

HOLD = """
import sys
from minigrad.training.folders import RunFolder
with RunFolder(sys.argv[1]) as folder:
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds tmp_path / "run"."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        env=processes.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.communicate()


def test_the_second_process_is_refused_and_told_which_one_is_there(tmp_path, holder):
    with pytest.raises(RunFolderError) as caught:
        RunFolder(tmp_path / "run").lock()
    assert re.fullmatch(
        re.escape(f"{tmp_path / 'run'} is in use by the run of process {holder.pid} (since ")
        + r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\): wait for its end, or name another folder",
        str(caught.value),
    )
    holder.communicate()
    with RunFolder(tmp_path / "run"):
        pass


@posix
def test_a_kill_releases_the_folder(tmp_path, holder):
    holder.kill()
    holder.wait()
    with RunFolder(tmp_path / "run"), pytest.raises(RunFolderError, match="by a run of this process"):
        RunFolder(tmp_path / "run").lock()


def test_who_holds_a_folder_may_be_unknown(tmp_path, holder):
    (tmp_path / "run" / ".lock-holder").write_text("")  # on a full disk
    with pytest.raises(RunFolderError, match="in use by another run: wait for its end"):
        RunFolder(tmp_path / "run").lock()


def test_two_runs_in_one_process(tmp_path):
    first = tiny.pretraining(tmp_path)
    with pytest.raises(RunFolderError, match="in use by a run of this process"):
        tiny.pretraining(tmp_path)
    first.run([].append)
    with pytest.raises(CheckpointError, match="holds a run already") as kept:  # and with it, its frames
        tiny.pretraining(tmp_path)
    assert kept.value
    again = tiny.pretraining(tmp_path, resume=True)
    assert again.step == 10
    del again
    assert tiny.pretraining(tmp_path, resume=True).step == 10  # one that was never run holds nothing any more


def test_a_run_may_be_run_again_unless_another_has_come_in(tmp_path):
    run = tiny.pretraining(tmp_path)
    tiny.before_step(run, 6, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.run([].append)
    other = tiny.pretraining(tmp_path, resume=True)
    with pytest.raises(RunFolderError, match="in use by a run of this process"):
        run.run([].append)
    other.run([].append)
    with pytest.raises(RunFolderError, match="has been trained on by another run since: resume that one"):
        run.run([].append)


FORK = """
import os, sys
import tiny
from minigrad.training.folders import RunFolder, RunFolderError
folder = RunFolder(sys.argv[1])
folder.lock()
child = os.fork()
if child == 0:
    del folder
    sys.exit(0)
os.waitpid(child, 0)
try:
    RunFolder(sys.argv[1]).lock()
except RunFolderError as error:
    print(error)
"""


@posix
def test_the_end_of_a_forked_child_does_not_release_the_folder(tmp_path):
    done = processes.run_python(FORK, tmp_path)
    assert "in use by a run of this process" in done.stdout, done.stderr


def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path):
    with RunFolder(tmp_path / "deep" / "run") as folder:
        assert names(folder.path) == [".lock", ".lock-holder"]
    assert not folder.path.exists()
    (tmp_path / "mine").mkdir()
    with RunFolder(tmp_path / "mine"):
        pass
    assert names(tmp_path / "mine") == [".lock"]
    with RunFolder(tmp_path / "used") as folder:
        (folder.path / "metrics.csv").write_text("step\n")
    assert names(folder.path) == [".lock", "metrics.csv"]


def test_a_folder_stays_locked_for_the_run_that_is_made_unless_that_fails(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with contextlib.suppress(KeyboardInterrupt), folder.locked_unless_it_fails():
        assert folder.path.exists()
        raise KeyboardInterrupt
    assert not folder.path.exists()
    with folder.locked_unless_it_fails():
        pass
    with pytest.raises(RunFolderError, match="in use by a run of this process"):
        RunFolder(folder.path).lock()


def test_a_run_that_is_left_before_it_is_run_holds_nothing(tmp_path):
    with tiny.pretraining(tmp_path / "run") as run, pytest.raises(RunFolderError, match="in use by a run of"):
        RunFolder(run.output).lock()
    assert not run.output.exists()


def test_folders_that_no_run_can_use(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file", tmp_path / "file" / "run", "/dev/null", tmp_path / ("x" * 300)):
        with pytest.raises(RunFolderError, match="cannot hold a run: "):
            RunFolder(path).lock()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is a checkpoint: name the folder of a run"):
        RunFolder(tmp_path).lock()
    assert names(tmp_path) == ["config.json", "file"]
    with pytest.raises(ValueError, match="the name of the run's folder is empty"):
        RunFolder("")


def test_without_the_package_for_the_lock(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(RunFolderError) as caught:
        RunFolder(tmp_path / "run").lock()
    assert str(caught.value) == "training needs the package filelock: pip install filelock"
    with pytest.raises(CheckpointError, match="there is no folder"):
        latest_checkpoint(tmp_path / "run")  # to read, no lock is needed


# --- Checkpoints -----------------------------------------------------------------------------------------


def test_the_newest_two_are_kept_with_their_sums(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (5, 10, 15):
        assert folder.save(step, FILES) == tmp_path / f"checkpoint-{step:06d}"
    assert names(tmp_path) == ["checkpoint-000010", "checkpoint-000015"]
    assert names(tmp_path / "checkpoint-000015") == [SUMS, *FILES]
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "-c", "--strict", SUMS], cwd=tmp_path / "checkpoint-000015", check=True)


KILLED = """
import os, shutil, signal, sys
from minigrad.training.folders import RunFolder
folder = RunFolder(sys.argv[1])
files = {"config.json": b"{}", "model.safetensors": b"weights"}
for step in (5, 10):
    folder.save(step, files)
true = os.unlink
def unlink(path, *args, **kwargs):
    true(path, *args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
os.unlink = unlink
folder.save(15, files)
"""


@posix
def test_a_kill_while_an_old_checkpoint_goes_leaves_none_that_is_not_whole(tmp_path):
    done = processes.run_python(KILLED, tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for checkpoint in RunFolder(tmp_path).checkpoints():
        assert names(checkpoint) == [SUMS, *FILES]
    assert "checkpoint-000005.old" in names(tmp_path)
    RunFolder(tmp_path).save(20, FILES)
    assert names(tmp_path) == ["checkpoint-000015", "checkpoint-000020"]


@pytest.mark.parametrize("by", ["start", "save"])
def test_what_killed_saves_left_is_removed(tmp_path, by):
    for name in ("checkpoint-000007.partial", "checkpoint-000003.old", "checkpoint-x.old", "mine.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("left")
    (tmp_path / "metrics.csv.4711-140.partial").write_text("step,lo")
    if by == "save":
        RunFolder(tmp_path).save(10, FILES)
    else:
        tiny.pretraining(tmp_path).run([].append)
    left = [name for name in names(tmp_path) if name.endswith((".partial", ".old"))]
    assert left == ["checkpoint-x.old", "mine.partial"]


def full_beyond(monkeypatch, folder: RunFolder, checkpoints: int, number: int = errno.ENOSPC) -> None:
    """Let the disk have room for so many checkpoints."""
    true = os.fsync

    def fsync(handle):
        if len(folder.checkpoints()) >= checkpoints:
            raise OSError(number, os.strerror(number))
        true(handle)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_room_for_two_checkpoints_is_enough(tmp_path, monkeypatch, number):
    folder = RunFolder(tmp_path)
    full_beyond(monkeypatch, folder, 2, number)
    for step in (5, 10, 15, 20):
        folder.save(step, FILES)
    assert names(tmp_path) == ["checkpoint-000015", "checkpoint-000020"]


def test_the_newest_checkpoint_never_makes_room(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    for step in (5, 10):
        folder.save(step, FILES)
    full_beyond(monkeypatch, folder, 0)
    with pytest.raises(SaveError, match="No space left on device"):
        folder.save(15, FILES)
    assert names(tmp_path) == ["checkpoint-000010"]


def test_other_errors_cost_no_checkpoint(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    for step in (5, 10):
        folder.save(step, FILES)
    full_beyond(monkeypatch, folder, 0, errno.EIO)
    with pytest.raises(SaveError, match="Input/output error"):
        folder.save(15, FILES)
    assert names(tmp_path) == ["checkpoint-000005", "checkpoint-000010"]


def test_only_folders_with_a_number_are_checkpoints(tmp_path):
    for name in ("checkpoint-000005.old", "checkpoint-x", "checkpoint-٣", "checkpoint-"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-000099").write_text("a file")
    with pytest.raises(CheckpointError, match="has no checkpoint in it"):
        latest_checkpoint(tmp_path)
    assert RunFolder(tmp_path).newest_step() == 0


def test_checkpoints_count_by_number(tmp_path):
    for name in ("checkpoint-000900", "checkpoint-1000000", "checkpoint-999999"):
        (tmp_path / name).mkdir()
    assert latest_checkpoint(tmp_path).name == "checkpoint-1000000"


def test_a_checkpoint_may_be_named_itself(tmp_path):
    tiny.quietly(tiny.pretraining(tmp_path))
    assert latest_checkpoint(tmp_path / "checkpoint-000008") == tmp_path / "checkpoint-000008"
    assert latest_checkpoint(str(tmp_path)) == tmp_path / "checkpoint-000010"


@pytest.mark.parametrize(
    ("name", "what"), [("", r"^/.* has no checkpoint in it"), ("nowhere", "^there is no folder /.*/nowhere")]
)
def test_a_folder_without_checkpoint(tmp_path, name, what):
    with pytest.raises(CheckpointError, match=rf"{what}; train one with: python -m minigrad\.bert pretrain$"):
        latest_checkpoint(tmp_path / name)


def read_named(checkpoint):
    """A reader of a file that must be there."""
    return checkpoint.name, read_file(checkpoint / "model.safetensors")


def read_if_there(checkpoint):
    """A reader of a file that may be absent."""
    return checkpoint.name, read_file(path) if is_there(path := checkpoint / "model.safetensors") else None


@pytest.mark.parametrize("read", [read_named, read_if_there])
def test_where_a_run_removes_what_is_read_the_newest_is_looked_for_again(tmp_path, read):
    folder = RunFolder(tmp_path)
    folder.save(1, FILES)
    steps = iter([2, 3])

    def beside_a_run(checkpoint):
        for step in steps:
            folder.save(step, FILES)  # the third lets the first go
        return read(checkpoint)

    assert read_latest(tmp_path, beside_a_run) == ("checkpoint-000003", b"weights")


def test_what_is_wrong_with_a_checkpoint_that_stays_is_said_at_once(tmp_path):
    RunFolder(tmp_path).save(1, FILES)
    seen = []

    def read(checkpoint):
        seen.append(checkpoint)
        return read_file(checkpoint / "vocab.txt")

    with pytest.raises(CheckpointError, match=r"checkpoint-000001/vocab\.txt is missing"):
        read_latest(tmp_path, read)
    assert len(seen) == 1


def test_a_run_that_saves_faster_than_a_checkpoint_is_read_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save(1, FILES)

    def read(checkpoint):
        for more in (1, 2):
            folder.save(step_of(checkpoint) + more, FILES)

    with pytest.raises(CheckpointError, match=r"a run removes the checkpoints in .* before they are read"):
        read_latest(tmp_path, read)


def test_a_checkpoint_that_was_named_itself_is_not_replaced_by_another(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save(1, FILES)

    def read(checkpoint):
        for step in (2, 3):
            folder.save(step, FILES)

    with pytest.raises(CheckpointError, match=r"^there is no folder .*checkpoint-000001"):
        read_latest(tmp_path / "checkpoint-000001", read)


# --- Tables ----------------------------------------------------------------------------------------------


def test_rows_are_added_and_later_ones_dropped(tmp_path):
    table = Table(tmp_path / "metrics.csv", ("step", "loss"))
    table.drop_after(0)
    for step in (1, 2, 3):
        table.append({"step": step, "loss": 1 / 3}, print)
    assert table.path.read_text() == "step,loss\n1,0.333333\n2,0.333333\n3,0.333333\n"
    table.drop_after(2)
    assert table.path.read_text() == "step,loss\n1,0.333333\n2,0.333333\n"
    table.drop_after(0)
    assert not table.path.exists()


@pytest.mark.parametrize(
    "row",
    [
        b"2,0.5,0.25,0.5,0.25\n",  # half a row, then another
        b"2,0.5\n",
        b"2,0.5,0.2",  # the last one, cut short: 0.2 of 0.25
        b"\n",
        b"\xfb\xff,0.5,0.25\n",
        "²,0.5,0.25\n".encode(),
        b"2.5,0.5,0.25\n",
        b"2,0.5,half\n",
        b"9" * 5000 + b",0.5,0.25\n",
    ],
)
def test_what_is_no_whole_row_is_dropped(tmp_path, row):
    table = Table(tmp_path / "metrics.csv", ("step", "loss", "accuracy"))
    table.path.write_bytes(b"step,loss,accuracy\n1,0.5,0.25\n" + row)
    table.drop_after(5)
    assert table.path.read_bytes() == b"step,loss,accuracy\n1,0.5,0.25\n"


@pytest.mark.parametrize(
    "content", [b"\xfb\xff", b"step,a\n1,0.5\n", b"step-loss\n1,0.5\n", b"step,loss,a\n", b"\n1,0.5\n", None]
)
def test_what_is_no_table_is_named_and_left(tmp_path, content):
    """Also one whose first line is damaged: its rows must not go."""
    table = Table(tmp_path / "metrics.csv", ("step", "loss"))
    if content is None:
        table.path.mkdir()
    else:
        table.path.write_bytes(content)
    wanted = r"metrics\.csv is no table of a run's steps, which begins with step,loss: move it out of the way"
    with pytest.raises(CheckpointError, match=wanted):
        table.drop_after(5)
    assert content is None or table.path.read_bytes() == content


@posix
@pytest.mark.parametrize("target", ["a pipe", "nowhere", "metrics.csv"])
def test_what_is_no_file_in_the_place_of_a_table_is_named_and_left(tmp_path, target):
    """Also a link to nothing or to itself."""
    path = tmp_path / "metrics.csv"
    if target == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    with pytest.raises(CheckpointError, match=r"metrics\.csv is no table of a run's steps"):
        Table(path, ("step", "loss")).drop_after(5)
    assert names(tmp_path) == ["metrics.csv"]
    assert target == "a pipe" or os.readlink(path) == target


LIMITED = """
import resource, signal, sys
from pathlib import Path
from minigrad.training.folders import Table
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = Table(Path(sys.argv[1]), ("step", "loss"))
for step in range(1, 9):
    limit = 40 if 3 <= step <= 5 else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    table.append({"step": step, "loss": 1 / 3}, print)
"""


@posix
def test_a_row_is_there_whole_or_not_at_all_and_its_loss_is_said_once(tmp_path):
    """The third row would end at byte 43, of which the system takes 40."""
    path = tmp_path / "metrics.csv"
    done = processes.run_python(LIMITED, path)
    assert done.returncode == 0, done.stderr
    rows = [f"{step},0.333333" for step in (1, 2, 6, 7, 8)]
    assert path.read_text().splitlines() == ["step,loss", *rows]
    assert re.fullmatch(
        rf"step 3: could not write to {path}: .+; training goes on\n"
        rf"step 6: {path} is written again, without the rows from 3 on\n",
        done.stdout,
    )


# --- The machine -----------------------------------------------------------------------------------------


def test_another_kernel_of_the_blas_is_another_environment():
    script = "from minigrad.training.folders import environment; print(environment())"
    done = processes.run_python(script, OPENBLAS_CORETYPE="Nehalem")
    mine = environment()
    if "openblas" not in mine["the BLAS"] or "Nehalem" in mine["the BLAS"]:
        pytest.skip("NumPy has another BLAS here")
    assert "Nehalem" in done.stdout
    assert mine["NumPy"] in done.stdout


# --- What lies in the way --------------------------------------------------------------------------------


@posix
def test_a_pipe_in_the_place_of_the_holder_hangs_nobody(tmp_path):
    os.mkfifo(tmp_path / ".lock-holder")
    with RunFolder(tmp_path), pytest.raises(RunFolderError, match=r"a run of this process|another run"):
        RunFolder(tmp_path).lock()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_is_no_reason_not_to_save(tmp_path, kind):
    for name in ("checkpoint-000005.partial", "checkpoint-000005.old"):
        if kind == "file":
            (tmp_path / name).write_text("in the way")
        else:
            (tmp_path / name).symlink_to(tmp_path)
    with RunFolder(tmp_path) as folder:
        folder.save(5, {"a": b"1"})
    assert [path.name for path in folder.checkpoints()] == ["checkpoint-000005"]


def test_a_lock_that_is_a_folder_is_named(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(RunFolderError, match=r"cannot hold a run: .* \(.*\.lock\)"):
        RunFolder(tmp_path).lock()
