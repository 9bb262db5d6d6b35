"""What a checkpoint says of its training: checked before anything is touched, and each error named."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file, save_file
from tiny import before_step, changed, checkpoints, contents, quietly

from minigrad import backend
from minigrad.bert.training import PRETRAINING
from minigrad.training import folders as runs
from minigrad.training.reading import CheckpointError, checksums
from minigrad.training.state import read_state


def sum_again(folder: Path) -> None:
    """Let SHA256SUMS agree with the files, so that only what is in them can be found wrong."""
    path = folder / "SHA256SUMS"
    path.unlink()
    path.write_bytes(checksums(contents(folder)))


def damage_json(change):
    def damage(folder: Path) -> None:
        path = folder / "training.json"
        state = json.loads(path.read_text())
        change(state)
        path.write_text(json.dumps(state))
        sum_again(folder)

    return damage


def change_bytes(name: str, change):
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return damage


def damage_moments(change):
    def damage(folder: Path) -> None:
        path = folder / "optimizer.safetensors"
        moments = load_file(path)
        change(moments)
        save_file(moments, path)
        sum_again(folder)

    return damage


def without_sums(damage):
    """A checkpoint of an older version has none."""

    def both(folder: Path) -> None:
        (folder / "SHA256SUMS").unlink()
        damage(folder)

    return both


def zeros_inside(content: bytes) -> bytes:
    return content[:-400] + bytes(200) + content[-200:]


BIAS = "cls.predictions.bias.1"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    quietly(tiny.pretraining(folder))
    return folder


def refused(tmp_path, finished, damage) -> str:
    """The error of resuming a damaged copy of a run, of which nothing is touched."""
    shutil.copytree(finished, tmp_path / "run")
    damage(tmp_path / "run" / "checkpoint-000010")
    before = everything(tmp_path / "run")
    with pytest.raises(CheckpointError) as caught:
        tiny.pretraining(tmp_path / "run", resume=True)
    assert everything(tmp_path / "run") == before
    return str(caught.value)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "training.json").unlink(), "training.json is missing"),
        (change_bytes("training.json", lambda b: b[:-20]), "training.json is damaged"),
        (without_sums(change_bytes("training.json", lambda b: b"[]")), "training.json is damaged: expected an"),
        (lambda folder: (folder / "optimizer.safetensors").unlink(), "optimizer.safetensors is missing"),
        (change_bytes("optimizer.safetensors", zeros_inside), "optimizer.safetensors is damaged"),
        (without_sums(change_bytes("optimizer.safetensors", lambda b: b[:-20])), "safetensors is damaged"),
        (change_bytes("model.safetensors", zeros_inside), "model.safetensors is damaged"),
        (change_bytes("vocab.txt", lambda b: b.replace(b"ba", b"bo", 1)), "vocab.txt is damaged"),
        (damage_moments(lambda m: m.pop(BIAS)), f"optimizer.safetensors has no moments for '{BIAS}'"),
        (damage_moments(lambda m: m.update({BIAS: m[BIAS][:3]})), "optimizer.safetensors has moments of other shapes"),
        (damage_moments(lambda m: m.update({BIAS: m[BIAS] * np.nan})), BIAS),
        (damage_moments(lambda m: m.update({BIAS: -1 - m[BIAS]})), BIAS),
        (damage_moments(lambda m: m.update({BIAS: m[BIAS].astype(np.int64)})), BIAS),
        (damage_moments(lambda m: m.update({"more.0": m[BIAS]})), "has moments for what the model has not: 'more.0'"),
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_not_resumed(tmp_path, finished, damage, message):
    """And the one before it is named, from which the run can go on."""
    said = refused(tmp_path, finished, damage)
    before = tmp_path / "run" / "checkpoint-000008"
    assert message in said
    assert said.endswith(
        f"; {before} is there: to go on from it, remove {before.parent / 'checkpoint-000010'}"
    )
    shutil.rmtree(tmp_path / "run" / "checkpoint-000010")
    assert tiny.pretraining(tmp_path / "run", resume=True).step == 8


def test_a_checkpoint_without_vocabulary_is_not_resumed(tmp_path, finished):
    said = refused(tmp_path, finished, lambda folder: (folder / "vocab.txt").unlink())
    assert "vocab" in said


def test_the_only_checkpoint_is_damaged(tmp_path):
    quietly(tiny.pretraining(tmp_path, changed(save_every=100)))
    change_bytes("optimizer.safetensors", zeros_inside)(tmp_path / "checkpoint-000010")
    with pytest.raises(CheckpointError, match=r"optimizer\.safetensors is damaged: ") as caught:
        tiny.pretraining(tmp_path, changed(save_every=100), resume=True)
    assert "to go on from it" not in str(caught.value)


def test_a_checkpoint_of_another_kind_of_model_is_not_damaged(tmp_path, finished):
    """Those before it are of the same kind: to remove it would not help."""

    def another_kind(folder):
        path = folder / "config.json"
        path.write_text(path.read_text().replace('"bert"', '"transformer-seq2seq"'))
        sum_again(folder)

    said = refused(tmp_path, finished, another_kind)
    assert said.endswith("config.json: model_type is 'transformer-seq2seq': this BERT has 'bert' only")


WRONG_VALUES = [None, "text", [], {"a": 1}, -1, 1.5, math.inf, math.nan, True, 10**400]


def inner_keys(state: dict, within: tuple = ()) -> list[tuple]:
    found = []
    for name, value in state.items():
        found.append((*within, name))
        if isinstance(value, dict):
            found += inner_keys(value, (*within, name))
    return found


@pytest.mark.parametrize(
    "values", [WRONG_VALUES[:2], pytest.param(WRONG_VALUES, marks=pytest.mark.slow)], ids=["two", "all"]
)
def test_each_value_of_the_state_is_checked_before_anything_is_touched(tmp_path, finished, values):
    """Each key absent, and with ten values of which most are wrong: one clear error, or a value that is right."""
    state = json.loads((finished / "checkpoint-000010" / "training.json").read_text())
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    (folder / "checkpoint-000010" / "SHA256SUMS").unlink()
    path = folder / "checkpoint-000010" / "training.json"
    before = {name: content for name, content in everything(folder).items() if "000010/training" not in name}
    taken = []
    for key in inner_keys({**state, "environment": {}}):  # what it says of another machine is for the reader
        for value in ["(absent)", *values]:
            changed_state = json.loads(json.dumps(state))
            inner = changed_state
            for name in key[:-1]:
                inner = inner[name]
            if value == "(absent)":
                del inner[key[-1]]
            else:
                inner[key[-1]] = value
            path.write_text(json.dumps(changed_state))
            try:
                run = tiny.pretraining(folder, resume=True)
            except CheckpointError as error:
                said = str(error)
                assert "\n" not in said
                assert len(said) < 1000
                assert f"training.json: {key[0]}" in said or "these differ: " in said
            else:
                taken.append((*key, value))
                run.folder.release()
            assert not (folder / ".lock-holder").exists()
            left = everything(folder)
            assert {name: left[name] for name in before} == before
    right = [
        ("scaler", "scale", 1.5),  # read by float16 alone
        ("held_out", None),
        ("environment", {"a": 1}),
        *(("tally", name, value) for name in ("mlm_loss", "nsp_loss") for value in (-1, 1.5)),
        *(("evaluation", name, value) for name in state["evaluation"] for value in (-1, 1.5)),
    ]
    assert [one for one in taken if one not in right] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.update(step=5), "step: expected 10, as its folder says, got 5"),
        (lambda state: state.update(optimizer_steps=9), "optimizer_steps: expected 10 … 10, got 9"),
        (lambda state: state["arguments"].update(steps=9), "step: expected at most 9, got 10"),
        (lambda state: state["data"].update(index=10**6), "data.index: expected at most "),
        (lambda state: state["arguments"].update(batch_size=0), "arguments: batch_size must be at least 1"),
        (lambda state: state["scaler"].update(scale=None), "scaler.scale: expected a number, got null"),
        (lambda state: state["arguments"].update(learning_rate="x"), "arguments.learning_rate: expected"),
        (lambda state: state.pop("environment"), "environment: is missing; was it saved by another version?"),
        (lambda state: state["random"].pop("draws"), "random.draws: is missing; was it saved by another"),
        (lambda state: state.update(step="x" * 10**6), f'step: expected an integer, got "{"x" * 39} …'),
    ],
)
def test_the_state_agrees_with_itself_and_with_its_folder(tmp_path, finished, change, message):
    assert f"training.json: {message}" in refused(tmp_path, finished, damage_json(change))


def test_another_machine_is_said_and_the_run_goes_on(tmp_path):
    run = tiny.pretraining(tmp_path)
    before_step(run, 6, lambda: os.kill(os.getpid(), signal.SIGINT))
    quietly(run)
    damage_json(lambda state: state["environment"].update({"NumPy": "1.0"}))(tmp_path / "checkpoint-000006")
    lines = quietly(tiny.pretraining(tmp_path, resume=True))
    assert lines[0] == (
        "note: the run goes on, but not bit for bit as it would have there: "
        f"NumPy is 1.0 there, {np.__version__} here"
    )
    assert checkpoints(tmp_path)[-1] == "checkpoint-000010"


def test_what_a_checkpoint_says_of_its_machine_is_shown_without_what_a_terminal_would_obey(tmp_path):
    quietly(tiny.pretraining(tmp_path))
    change = damage_json(lambda state: state["environment"].update({"NumPy": "\x1b[31m" + "1" * 10**6}))
    change(tmp_path / "checkpoint-000010")
    (line,) = quietly(tiny.pretraining(tmp_path, resume=True))
    assert r"NumPy is \x1b[31m111" in line
    assert len(line) < 1100


def test_the_environment_is_recorded(finished):
    state = read_state(finished / "checkpoint-000010", PRETRAINING)
    assert state.environment == runs.environment()
    assert set(state.environment) == {"Python", "NumPy", "the processor", "the BLAS", "the backend"}
    assert state.environment["the backend"] == backend.default().name
    assert all(state.environment.values())
