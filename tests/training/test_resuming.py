"""Checkpoints of a run, and that nothing stops it from going on bit for bit: no signal, kill or full disk."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import tiny
from tiny import assert_same_run, before_step, changed, checkpoints, contents, quietly, table

import processes
from minigrad import backend
from minigrad.bert.checkpoint import from_pretrained
from minigrad.bert.data import PretrainingData
from minigrad.bert.metrics import evaluate
from minigrad.bert.training import PRETRAINING
from minigrad.files import SaveError
from minigrad.training import folders as runs
from minigrad.training.folders import RunFolder, latest_checkpoint
from minigrad.training.reading import CheckpointError

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX")


# --- Checkpoints -----------------------------------------------------------------------------------------


def test_the_last_checkpoint_is_the_model(tmp_path):
    run = tiny.pretraining(tmp_path)
    quietly(run)
    loaded = from_pretrained(latest_checkpoint(tmp_path))
    assert loaded.notes == []
    for name, array in run.model.state_dict().items():
        np.testing.assert_array_equal(
            backend.to_numpy(loaded.model.state_dict()[name]), backend.to_numpy(array)
        )
    assert evaluate(loaded.model, run.held_out) == run.evaluation


# --- Resuming --------------------------------------------------------------------------------------------


def test_to_resume_where_nothing_is_saved_is_to_begin(tmp_path):
    run = tiny.pretraining(tmp_path, resume=True)
    assert run.step == 0
    quietly(run)
    quietly(tiny.pretraining(tmp_path / "other"))
    assert contents(tmp_path / "checkpoint-000010") == contents(tmp_path / "other" / "checkpoint-000010")


def test_to_resume_a_finished_run_is_to_have_its_figures(tmp_path):
    run = tiny.pretraining(tmp_path)
    quietly(run)
    before = (contents(tmp_path / "checkpoint-000010"), (tmp_path / "metrics.csv").read_text())
    again = tiny.pretraining(tmp_path, resume=True)
    assert again.run([].append) == run.evaluation
    assert (contents(tmp_path / "checkpoint-000010"), (tmp_path / "metrics.csv").read_text()) == before


RUN = """
import dataclasses, os, sys
import tiny
output, where = sys.argv[1:]
arguments = dataclasses.replace(tiny.ARGUMENTS, steps=14, save_every=4, gradient_accumulation_steps=2)
run = tiny.pretraining(output, arguments, documents=tiny.documents(10), resume=where == "resume")

if where == "before the first checkpoint":
    tiny.kill_at(run, 2, run.optimizer, "step")
elif where == "between two gradients":
    tiny.kill_at(run, 6, run.data, "next_batch", 2)
elif where == "between a row and the save":
    tiny.kill_at(run, 8, run, "save")
elif where == "in the middle of saving":
    tiny.kill_at(run, 8, os, "fsync", 3)
elif where == "before the name is there":
    tiny.kill_at(run, 12, os, "rename")
run.run()
print(run.data.epoch)
"""
LAST = "checkpoint-000014"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted")
    done = processes.run_python(RUN, folder, "nowhere")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1  # epochs, so that their change is part of it
    return folder


@posix
@pytest.mark.parametrize(
    ("where", "saved"),
    [
        ("before the first checkpoint", []),
        ("between two gradients", ["checkpoint-000004"]),
        ("between a row and the save", ["checkpoint-000004"]),
        ("in the middle of saving", ["checkpoint-000004", "checkpoint-000008.partial"]),
        ("before the name is there", ["checkpoint-000004", "checkpoint-000008", "checkpoint-000012.partial"]),
    ],
)
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, uninterrupted, where, saved):
    """SIGKILL, no warning and no last words, with dropout on and gradients accumulated."""
    killed = processes.run_python(RUN, tmp_path, where)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert checkpoints(tmp_path) == saved
    resumed = processes.run_python(RUN, tmp_path, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(tmp_path, uninterrupted, LAST)
    assert checkpoints(tmp_path) == ["checkpoint-000012", LAST]


@posix
@pytest.mark.parametrize("at", [5, 8, 10])
def test_ctrl_c_finishes_the_step_saves_and_stops(tmp_path, at):
    """And what was stopped goes on bit for bit."""
    whole = tiny.pretraining(tmp_path / "whole")
    quietly(whole)
    run = tiny.pretraining(tmp_path / "stopped")
    handler = signal.getsignal(signal.SIGINT)
    before_step(run, at, lambda: os.kill(os.getpid(), signal.SIGINT))
    lines = quietly(run)
    assert signal.getsignal(signal.SIGINT) is handler
    assert run.step == at
    assert latest_checkpoint(run.output).name == f"checkpoint-{at:06d}"
    stopped = [line for line in lines if "stopped" in line]
    assert stopped == ([f"stopped at step {at} of 10 and saved; go on with --resume"] if at < 10 else [])
    resumed = tiny.pretraining(tmp_path / "stopped", resume=True)
    assert resumed.step == at
    quietly(resumed)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")  # also when it stopped between two rows


@posix
def test_what_is_already_saved_is_not_written_again(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path)
    written = []
    true = runs.write_folder_atomic

    def write(folder, files):
        written.append(folder.name)
        return true(folder, files)

    monkeypatch.setattr(runs, "write_folder_atomic", write)
    try_to_save = run.try_to_save

    def save_and_stop(save, progress):
        try_to_save(save, progress)
        if run.step == 8:
            os.kill(os.getpid(), signal.SIGINT)

    run.try_to_save = save_and_stop
    quietly(run)
    assert written == ["checkpoint-000004", "checkpoint-000008"]


VOCAB = tiny.tokenizer().vocab
HELD_OUT = [PretrainingData(tiny.documents(6, seed=2), tiny.tokenizer(), 4, 16, seed=1).next_batch()]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"arguments": changed(steps=20)}, ["steps is 10 there, 20 here"]),
        ({"arguments": changed(seed=1, batch_size=8)}, ["batch_size is 4 there, 8 here", "seed is 0 there, 1"]),
        ({"config": tiny.CONFIG.replace(hidden_size=18)}, ["hidden_size is 16 there, 18 here"]),
        ({"corpus": "other"}, ["the text (fingerprint topics there, other here)"]),
        ({"held_out": HELD_OUT}, ["the held-out text (fingerprint "]),
        ({"tokenizer": tiny.WordPieceTokenizer([*VOCAB, "more"])}, ["the vocabulary"]),
        ({"tokenizer": tiny.WordPieceTokenizer(VOCAB, lower_case=False)}, ["whether the text is lower-cased"]),
        ({"tokenizer": tiny.WordPieceTokenizer(VOCAB, strip_accents=False)}, ["what becomes of accents or"]),
        ({"tokenizer": tiny.WordPieceTokenizer(VOCAB, tokenize_chinese_chars=False)}, ["or Chinese characters"]),
    ],
)  # fmt: skip
def test_a_run_is_not_resumed_with_other_settings(tmp_path, changes, named):
    quietly(tiny.pretraining(tmp_path))
    with pytest.raises(CheckpointError) as caught:
        tiny.pretraining(tmp_path, resume=True, **changes)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'checkpoint-000010'} cannot be resumed with other settings")
    assert all(name in message for name in named)
    assert message.count(";") == len(named)


def test_rows_that_the_checkpoint_does_not_know_of_are_dropped(tmp_path):
    run = tiny.pretraining(tmp_path, changed(log_every=1, eval_every=1))
    before_step(run, 8, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        quietly(run)
    for name in ("metrics.csv", "evaluation.csv"):
        with open(tmp_path / name, "a") as file:
            file.write("8,0.1")  # a line that a kill cut short
        assert [row["step"] for row in table(tmp_path / name)] == list("12345678")
    resumed = tiny.pretraining(tmp_path, changed(log_every=1, eval_every=1), resume=True)
    assert resumed.step == 4
    for table_of_run in (resumed.folder.metrics, resumed.folder.evaluations):
        table_of_run.drop_after(resumed.step)
    for name in ("metrics.csv", "evaluation.csv"):
        assert [row["step"] for row in table(tmp_path / name)] == list("1234")
    quietly(resumed)
    for name in ("metrics.csv", "evaluation.csv"):
        assert [row["step"] for row in table(tmp_path / name)] == [str(n) for n in range(1, 11)]
        assert (tmp_path / name).read_text().count("step") == 1


def test_rows_of_a_run_that_saved_nothing_are_dropped(tmp_path):
    header = ",".join(RunFolder(tmp_path, PRETRAINING).metrics.columns)
    (tmp_path / "metrics.csv").write_text(f"{header}\n2{',1' * 8}\n4{',1' * 8}\n")
    (tmp_path / "evaluation.csv").write_text("")
    quietly(tiny.pretraining(tmp_path))
    assert [row["step"] for row in table(tmp_path / "metrics.csv")] == ["2", "4", "6", "8", "10"]
    assert list(table(tmp_path / "metrics.csv")[0]) == header.split(",")
    assert [row["step"] for row in table(tmp_path / "evaluation.csv")] == ["5", "10"]


# --- A disk that is full ---------------------------------------------------------------------------------


def full_disk(monkeypatch, run, steps: set[int]) -> None:
    """Let nothing be forced to the disk while a run is at one of these steps."""
    true = os.fsync

    def fsync(handle):
        if run.step in steps:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        true(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_save_that_fails_on_the_way_is_reported_and_the_run_goes_on(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path / "full")
    full_disk(monkeypatch, run, {8})
    lines = quietly(run)
    (line,) = [line for line in lines if "could not save" in line]
    assert line.startswith(
        f"step 8: could not save {tmp_path / 'full' / 'checkpoint-000008'}: No space left on device ("
    )
    assert line.endswith("training goes on, and saves again at the next chance")
    assert checkpoints(tmp_path / "full") == ["checkpoint-000004", "checkpoint-000010"]
    quietly(tiny.pretraining(tmp_path / "roomy"))
    last = "checkpoint-000010"
    assert contents(tmp_path / "full" / last) == contents(tmp_path / "roomy" / last)


def test_the_last_save_that_fails_is_an_error(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path)
    full_disk(monkeypatch, run, {10})
    with pytest.raises(SaveError, match=r"could not save .*checkpoint-000010: No space left on device"):
        quietly(run)
    assert checkpoints(tmp_path) == ["checkpoint-000008"]  # the older one made room, in vain
    monkeypatch.undo()
    resumed = tiny.pretraining(tmp_path, resume=True)
    assert resumed.step == 8
    quietly(resumed)


@posix
def test_a_save_after_ctrl_c_that_fails_is_an_error(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path)
    full_disk(monkeypatch, run, {6})
    before_step(run, 6, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(SaveError, match="checkpoint-000006"):
        quietly(run)
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


def test_a_row_that_cannot_be_written_is_reported_and_the_run_goes_on(tmp_path):
    run = tiny.pretraining(tmp_path)

    def block():  # root may write anywhere, but not into a folder
        for name in ("metrics.csv", "evaluation.csv"):
            (tmp_path / name).unlink(missing_ok=True)
            (tmp_path / name).mkdir()

    before_step(run, 6, block)
    lines = quietly(run)
    failed = [line for line in lines if "could not write" in line]
    assert failed == [
        f"step 6: could not write to {tmp_path / 'metrics.csv'}: Is a directory; training goes on",
        f"step 10: could not write to {tmp_path / 'evaluation.csv'}: Is a directory; training goes on",
    ]
    assert checkpoints(tmp_path) == ["checkpoint-000008", "checkpoint-000010"]
