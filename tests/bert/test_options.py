"""The options of the command line: what --help says, and what is none."""

from __future__ import annotations

import dataclasses
import re
import shlex

import pytest

from minigrad.bert.__main__ import main
from minigrad.bert.options import finetuning_settings_in, parse, settings_in
from minigrad.bert.settings import PretrainingArguments

pytestmark = pytest.mark.no_arrays

COMMANDS = ["pretrain", "evaluate", "fill-mask", "next-sentence", "finetune", "predict", "info"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    usage, empty, *_ = out.splitlines()
    assert usage.startswith(f"usage: python -m minigrad.bert {command}")
    assert (empty, len(usage) <= 100) == ("", True)
    assert "--backend {numpy,cupy}" in out
    assert "%(" not in out


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(re.search(rf"^ +{command}( |$)", out, re.MULTILINE) for command in COMMANDS)


def test_there_is_an_option_for_each_setting(capsys):
    assert settings_in(parse(["pretrain"])) == PretrainingArguments()
    with pytest.raises(SystemExit):
        main(["pretrain", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    for line in dataclasses.fields(PretrainingArguments):
        assert f"--{line.name.replace('_', '-')} " in out
        assert f"{line.metadata['help']} (default: {line.default})" in out


@pytest.mark.parametrize(
    ("words", "warmup"),
    [("", 300), ("--steps 300", 300), ("--steps 10", 10), ("--steps 10 --warmup-steps 2", 2)],
)
def test_a_short_run_warms_up_for_all_its_steps_at_most(words, warmup):
    assert settings_in(parse(["pretrain", *words.split()])).warmup_steps == warmup


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["train"],
        ["pretrain", "--steps", "many"],
        ["pretrain", "--steps", "9" * 400],
        ["pretrain", "--seed", "9" * 5000],
        ["info", "base", "--batch-size", "9" * 400],
        ["info", "base", "--what"],
    ],
)
def test_a_command_that_is_none(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "error: " in error
    assert len(error) < 200


@pytest.mark.parametrize(
    ("typed", "help"),
    [
        ("fillmask", "did you mean fill-mask?"),
        ("train", "did you mean pretrain?"),
        ("next_sentence", "did you mean next-sentence?"),
        (
            "x\x1b[31m",
            "there are pretrain, evaluate, fill-mask, next-sentence, finetune, predict, compare, info",
        ),
    ],
)
def test_a_command_with_a_mistake(capsys, typed, help):
    with pytest.raises(SystemExit) as stop:
        main([typed, "runs/reduced", "The [MASK]."])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.splitlines()[-1].endswith(help)
    assert "\x1b" not in error


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        (["fill-mask", "--model", "x", "text", "more"], "more"),
        (["fill-mask", "runs/mine", "An [MASK]."], "An [MASK].; a model is named by --model"),
        (["fill-mask", "text", "--tap", "3"], "--tap 3; did you mean --top?"),
        (["fill-mask", "text", "--zzz=3"], "--zzz=3"),
        (["pretrain", "--warmup-stepss=3"], "--warmup-stepss=3; did you mean --warmup-steps?"),
        (["next-sentence", "mine", "a", "b"], "b; a model is named by --model"),
        (["info", "base", "large"], "large"),
        (["pretrain", "runs/reduced"], "runs/reduced"),
    ],
)
def test_what_is_too_much_is_named(capsys, command, rest):
    with pytest.raises(SystemExit):
        main(command)
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: unrecognized arguments: {rest}")


@pytest.mark.parametrize("command", ["pretrain", "finetune"])
def test_help_of_training_has_examples_that_are_commands(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert len(examples) >= 2
    for line in examples:
        python, *words = shlex.split(line)
        assert [python, *words[:3]] == ["python", "-m", "minigrad.bert", command]
        options = parse(words[2:])
        settings_in(options) if command == "pretrain" else finetuning_settings_in(options, 512)


@pytest.mark.parametrize("option", ["--steps=--", "--set=--", "--backend=--", "--output=--", "--held-out=--"])
def test_an_option_without_a_value_is_a_clear_error(option, tmp_path, monkeypatch, capsys):
    """argparse makes an empty list of it, until Python 3.12; since then it is the text "--"."""
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["pretrain", "--corpus", "not there", option])
    except SystemExit as stopped:
        status = stopped.code
    assert status in (1, 2)
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("option", ["--held-out", "--learning-rate", "--preset", "--precision"])
def test_a_usage_error_has_an_end(option, capsys):
    with pytest.raises(SystemExit):
        main(["pretrain", option, "[" * 100_000])
    assert len(capsys.readouterr().err) < 4000
