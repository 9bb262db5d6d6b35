"""The command line, from text to a filled mask; and one line for each mistake, never a traceback."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import processes
import pytest
import tiny

from minigrad import backend
from minigrad.bert import __main__ as cli
from minigrad.bert import data, pretraining
from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import from_pretrained
from minigrad.bert.config import PRESETS
from minigrad.bert.corpus import Corpus
from minigrad.bert.options import parse, settings_in
from minigrad.bert.pretraining import Pretraining, prepare
from minigrad.bert.runs import RunFolder, latest_checkpoint
from minigrad.bert.settings import PretrainingArguments

COMMANDS = ["pretrain", "evaluate", "fill-mask", "next-sentence", "info"]
SIZES = {
    "vocab_size": 90,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 24,
}
SETTINGS = {
    "steps": 6,
    "batch-size": 4,
    "max-length": 24,
    "warmup-steps": 2,
    "log-every": 2,
    "eval-every": 3,
    "save-every": 4,
    "held-out": 0.2,
}


def pretrain(corpus: Path, output: Path, *more: str, **changes: object) -> list[str]:
    """The command line of a tiny run."""
    settings = {**SETTINGS, **{name.replace("_", "-"): value for name, value in changes.items()}}
    command = ["pretrain", "--corpus", str(corpus), "--output", str(output)]
    command += [text for name, value in SIZES.items() for text in ("--set", f"{name}={value}")]
    command += [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    return [*command, *more]


def write_corpus(path: Path, count: int = 20, seed: int = 0) -> Path:
    blocks = ("\n".join(f"{s.capitalize()}." for s in document) for document in tiny.texts(count, seed))
    path.write_text("\n\n".join(blocks))
    return path


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write_corpus(tmp_path / "text.txt")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A folder with a run in `run` and its text in `text.txt`; tests only read it."""
    folder = tmp_path_factory.mktemp("cli")
    assert main(pretrain(write_corpus(folder / "text.txt"), folder / "run")) == 0
    return folder


@pytest.fixture
def failing(capsys):
    """Run a command that fails, and return its one line on stderr."""

    def fail(*command: object) -> str:
        assert main([str(part) for part in command]) == 1
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        *before, last = err.splitlines()
        assert last.startswith("error: ")
        assert all(re.match(r"note: |step \d+", line) for line in before)
        return last.removeprefix("error: ")

    return fail


# --- Training --------------------------------------------------------------------------------------------


def test_pretrain_tells_what_it_does(corpus, tmp_path, capsys):
    assert main(pretrain(corpus, tmp_path / "run")) == 0
    out = capsys.readouterr().out
    for line in (
        r"reading .*text\.txt …",
        r"20 documents, 160 sentences, 800 words; 4 documents held out",
        r"learning a vocabulary of 90 pieces …",
        r"encoding the text …",
        r"WordPiece: \d+ pieces, [\d,]+ training tokens.*",
        r".*unigram entropy \d\.\d{3} nats.*",
        r"\d,\d{3} parameters; 6 steps of 4 x 24 tokens to .*run",
        r"6 steps; the last \d+ s of training are done",
        r"held out: MLM loss \d\.\d{3}, accuracy \d+\.\d%; NSP loss \d\.\d{3}, accuracy \d+\.\d%",
        r"beside:   unigram entropy \d\.\d{3} nats; NSP by chance 50 %",
        r"saved in .*run.checkpoint-000006",
    ):
        assert re.search(f"^{line}$", out, re.MULTILINE), line
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock",
        "checkpoint-000004",
        "checkpoint-000006",
        "evaluation.csv",
        "metrics.csv",
    ]
    loaded = from_pretrained(tmp_path / "run" / "checkpoint-000006")
    assert {name: getattr(loaded.model.config, name) for name in SIZES} == SIZES
    assert loaded.tokenizer.lower_case


def test_at_the_end_masks_are_filled(corpus, tmp_path, capsys):
    assert main([*pretrain(corpus, tmp_path / "run"), "--set", "max_position_embeddings=128"]) == 0
    out = capsys.readouterr().out
    for example in cli.EXAMPLES:
        place = out.index(example)
        assert re.match(r"\n   \S+ \d+%(  \S+ \d+%){4}\n", out[place + len(example) :])


def test_pretrain_says_what_was_done_to_running_text(tmp_path, capsys):
    (tmp_path / "text.txt").write_text(
        " ".join(f"{s.capitalize()}." for document in tiny.texts(20) for s in document)
    )
    assert main(pretrain(tmp_path / "text.txt", tmp_path / "run")) == 0
    assert re.search(
        r"^note: .*text\.txt is running text.*160 sentences", capsys.readouterr().out, re.MULTILINE
    )


def test_examples_that_the_model_is_too_short_for_are_passed_over(corpus, tmp_path, capsys):
    short = ["--set", "max_position_embeddings=12", "--max-length", "12"]
    assert main([*pretrain(corpus, tmp_path / "run"), *short]) == 0
    assert "[MASK]" not in capsys.readouterr().out


@pytest.mark.parametrize(("options", "lower_case"), [([], True), (["--cased"], False)])
def test_cased_or_not(corpus, tmp_path, options, lower_case):
    assert main(pretrain(corpus, tmp_path / "run", *options)) == 0
    tokenizer = from_pretrained(latest_checkpoint(tmp_path / "run")).tokenizer
    assert tokenizer.lower_case is lower_case
    assert any(piece[0].isupper() for piece in tokenizer.vocab[5:]) is not lower_case


def test_the_score_changes_the_vocabulary(corpus, tmp_path):
    vocabularies = []
    for score in ("frequency", "likelihood"):
        assert main(pretrain(corpus, tmp_path / score, "--score", score)) == 0
        vocabularies.append((latest_checkpoint(tmp_path / score) / "vocab.txt").read_text())
    assert vocabularies[0] != vocabularies[1]


def test_the_documentation_on_this_disk_is_the_default(tmp_path, monkeypatch, capsys):
    asked = []

    def read(source, progress):
        asked.append(source)
        return Corpus(tiny.texts(20), str(source))

    monkeypatch.setattr(pretraining, "read_corpus", read)
    command = pretrain(Path("x"), tmp_path / "run")
    del command[1:3]
    assert main(command) == 0
    assert asked == ["python-docs"]
    assert "reading python-docs …" in capsys.readouterr().out


def test_python_prepares_the_same_run(corpus, tmp_path, capsys):
    assert main(pretrain(corpus, tmp_path / "a", "--cased", "--score", "likelihood")) == 0
    said = capsys.readouterr().out.splitlines()
    config = PRESETS["reduced"].replace(**SIZES)
    settings = PretrainingArguments(
        steps=6, batch_size=4, max_length=24, warmup_steps=2, log_every=2, eval_every=3, save_every=4
    )
    lines: list[str] = []
    with prepare(
        corpus, config, settings, tmp_path / "b",
        lower_case=False, score="likelihood", held_out=0.2, say=lines.append,
    ) as run:  # fmt: skip
        run.run(lines.append)
    assert without_seconds(lines[:5]) == without_seconds(said[:5])
    for checkpoint in ("checkpoint-000004", "checkpoint-000006"):
        assert tiny.contents(tmp_path / "a" / checkpoint) == tiny.contents(tmp_path / "b" / checkpoint)


def without_seconds(lines: list[str]) -> list[str]:
    return [re.sub(r"\d+ s so far", "", line) for line in lines]


@pytest.mark.parametrize("stopped_by", ["ctrl-c", "crash"])
def test_the_same_command_with_resume_goes_on(corpus, tmp_path, monkeypatch, capsys, stopped_by):
    assert main(pretrain(corpus, tmp_path / "whole")) == 0
    true = Pretraining.train_step

    def step(self, tally):
        if self.step == 4:
            if stopped_by == "crash":
                raise RuntimeError("a crash")
            os.kill(os.getpid(), signal.SIGINT)
        return true(self, tally)

    monkeypatch.setattr(Pretraining, "train_step", step)
    if stopped_by == "crash":
        with pytest.raises(RuntimeError, match="a crash"):
            main(pretrain(corpus, tmp_path / "run"))
    else:
        assert main(pretrain(corpus, tmp_path / "run")) == 128 + signal.SIGINT
        out, err = capsys.readouterr()
        assert "stopped at step 5 of 6 and saved; go on with --resume" in err
        assert "are done" not in out.split("whole")[-1]
    monkeypatch.undo()
    assert main(pretrain(corpus, tmp_path / "run", "--resume")) == 0
    left = {"ctrl-c": 1, "crash": 2}[stopped_by]
    assert f"parameters; {left} steps of 4 x 24" in capsys.readouterr().out
    for name in ("model.safetensors", "optimizer.safetensors", "training.json"):
        files = [tmp_path / folder / "checkpoint-000006" / name for folder in ("whole", "run")]
        assert files[0].read_bytes() == files[1].read_bytes()


# --- What is known before the text is read ---------------------------------------------------------------


@pytest.fixture
def unread(monkeypatch):
    """Reading a text is a mistake."""

    def read(source, progress):
        raise AssertionError("the text is read")

    monkeypatch.setattr(pretraining, "read_corpus", read)


def test_what_is_wrong_with_the_output_is_said_before_the_text_is_read(run, tmp_path, failing, unread):
    (tmp_path / "file").write_text("in the way")
    held = RunFolder(tmp_path / "held")
    held.lock()
    for output, message in (
        ("", "the name of the run's folder is empty"),
        (tmp_path / "file", f"{tmp_path / 'file'} cannot hold a run: File exists"),
        (tmp_path / "file" / "run", "cannot hold a run: Not a directory"),
        (run / "run", "holds a run already (checkpoint-000006): resume it, or name another folder"),
        (run / "run" / "checkpoint-000006", "is a checkpoint: name the folder of a run, or a new one"),
        (tmp_path / "held", f"{tmp_path / 'held'} is in use by a run of this process"),
    ):
        assert message in failing(*pretrain(tmp_path / "text.txt", output))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "held"]


def test_pretraining_without_the_package_for_the_lock(tmp_path, failing, unread, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    assert failing(*pretrain(tmp_path / "text.txt", tmp_path / "run")) == (
        "pre-training needs the package filelock: pip install 'minigrad[pretraining]'"
    )


# --- Looking at a model ----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["run", "run/checkpoint-000006"])
def test_evaluate_gives_the_figures_of_the_run(run, capsys, which):
    """By default on the share that the run held out, with its seed and sizes."""
    assert main(["evaluate", str(run / which), "--corpus", str(run / "text.txt")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    state = json.loads((run / "run" / "checkpoint-000006" / "training.json").read_text())
    assert re.match(r"4 documents, \d+ pairs: ", out)
    assert out.strip().endswith(cli.describe(state["evaluation"]))


def test_evaluate_after_a_run_with_another_seed(corpus, tmp_path, capsys):
    assert main(pretrain(corpus, tmp_path / "run", seed=5)) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--corpus", str(corpus)]) == 0
    out, err = capsys.readouterr()
    state = json.loads((tmp_path / "run" / "checkpoint-000006" / "training.json").read_text())
    assert (state["held_out"], state["arguments"]["seed"]) == (0.2, 5)
    assert err == ""
    assert out.strip().endswith(cli.describe(state["evaluation"]))


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (["--seed", "1"], r"the model was trained on \d of these 4 documents"),
        (["--held-out", "0.5"], r"the model was trained on 6 of these 10 documents"),
        (["--held-out", "1"], r"the model was trained on 16 of these 20 documents"),
        (["--held-out", "0.1"], None),  # the first of those that were held out
        (["--batch-size", "2"], None),
    ],
)
def test_evaluate_says_when_training_text_is_scored(run, capsys, options, note):
    assert main(["evaluate", str(run / "run"), "--corpus", str(run / "text.txt"), *options]) == 0
    err = capsys.readouterr().err
    assert re.fullmatch(f"note: {note}\n", err) if note else err == ""


def test_evaluate_says_when_the_text_is_another(run, tmp_path, capsys):
    text = write_corpus(tmp_path / "other.txt", seed=5)
    assert main(["evaluate", str(run / "run"), "--corpus", str(text)]) == 0
    assert capsys.readouterr().err.startswith(
        "note: this is not the text that the run was trained on, or not"
    )


def test_evaluate_a_model_that_no_run_here_made(run, tmp_path, capsys):
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((run / "run" / "checkpoint-000006" / name).read_bytes())
    assert main(["evaluate", str(tmp_path), "--corpus", str(run / "text.txt"), "--max-length", "24"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 documents, ")  # 5 %, at least two
    assert (
        err == f"note: {tmp_path} has no training.json: whether the model has seen this text is not known\n"
    )


def test_evaluate_without_the_state_that_the_sums_list(run, tmp_path, failing):
    """Without it the split would be another one, and training text be scored without a word."""
    shutil.copytree(run / "run" / "checkpoint-000006", tmp_path / "copy")
    (tmp_path / "copy" / "training.json").unlink()
    message = failing("evaluate", tmp_path / "copy", "--corpus", run / "text.txt")
    assert message == f"{tmp_path / 'copy' / 'training.json'} is missing: SHA256SUMS lists it"


@pytest.mark.parametrize("share", ["5", "nan", "inf", "1e400", "-0.1", "1.0001"])
def test_shares_that_are_none(run, failing, share):
    message = failing("evaluate", run / "run", "--corpus", run / "text.txt", f"--held-out={share}")
    assert message.startswith("held_out must be within 0 … 1 (1 is everything), got ")


def test_evaluate_takes_a_part_of_a_long_text(run, capsys, monkeypatch):
    monkeypatch.setattr(data, "HELD_OUT_BATCHES", 3)
    command = ["evaluate", run / "run", "--corpus", run / "text.txt", "--held-out", "1", "--batch-size", "5"]
    assert main([str(part) for part in [*command, "--max-length", 24]]) == 0
    assert capsys.readouterr().out.startswith("20 documents, 15 pairs: ")


def test_evaluate_on_all_of_a_text(run, tmp_path, capsys):
    text = write_corpus(tmp_path / "other.txt", 6, seed=5)
    command = ["evaluate", run / "run", "--corpus", text, "--held-out", "1", "--max-length", "24"]
    assert main([str(part) for part in command]) == 0
    assert capsys.readouterr().out.startswith("6 documents, ")


def test_fill_mask(run, capsys):
    assert main(["fill-mask", str(run / "run"), "Bal [MASK] bam [MASK].", "--top", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    text, *fillings = out.splitlines()
    assert text == "Bal [MASK] bam [MASK]."
    assert len(fillings) == 2
    assert all(re.fullmatch(r"   \S+ \d+%  \S+ \d+%  \S+ \d+%", line) for line in fillings)


def test_next_sentence(run, capsys):
    assert main(["next-sentence", str(run / "run"), "Bal bam.", "Ban bap."]) == 0
    found = re.fullmatch(r"IsNext (\d+\.\d)%, NotNext (\d+\.\d)%\n", capsys.readouterr().out)
    assert sum(map(float, found.groups())) == pytest.approx(100, abs=0.11)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["base"], "110,106,428"),
        (["large"], "336,226,108"),
        (["reduced", "--set", "hidden_size=256", "--set", "vocab_size=1000"], "1000 x 256"),
        (["base", "--batch-size", "7", "--max-length", "99"], "one training step of 7 x 99 tokens"),
    ],
)
def test_info(capsys, options, expected):
    assert main(["info", *options]) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("which", ["run", "run/checkpoint-000004"])
def test_info_of_a_run(run, capsys, which):
    assert main(["info", str(run / which), "--max-length", "24"]) == 0
    assert re.search(r"word_embeddings\.weight +90 x 16 +1,440$", capsys.readouterr().out, re.MULTILINE)


def test_a_backend_by_name(capsys):
    before = backend.default().name
    try:
        assert main(["info", "reduced", "--backend", "numpy"]) == 0
        assert backend.default().name == "numpy"
    finally:
        backend.use(before)


# --- Help ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: python -m minigrad.bert {command}")
    assert "--backend {numpy,cupy}" in out
    assert "%(" not in out


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(re.search(rf"^ +{command}( |$)", out, re.MULTILINE) for command in COMMANDS)


def test_help_says_the_defaults(capsys):
    with pytest.raises(SystemExit):
        main(["pretrain", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "optimiser steps (default: 4000)" in out
    assert "unigram entropy" in out


def test_there_is_an_option_for_each_setting(capsys):
    assert settings_in(parse(["pretrain"])) == PretrainingArguments()
    with pytest.raises(SystemExit):
        main(["pretrain", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    for line in dataclasses.fields(PretrainingArguments):
        assert f"--{line.name.replace('_', '-')} " in out
        assert f"{line.metadata['help']} (default: {line.default})" in out


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


# --- One line for each mistake ---------------------------------------------------------------------------


def bad_corpus(tmp_path, content: bytes) -> Path:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bad.txt is empty"),
        (
            b"Caf\xe9. More.\n",
            "bad.txt is not UTF-8: byte 0xe9 at offset 3; convert it, for example with iconv",
        ),
        (b"One. Two.\n", "at least two documents, found 1"),
        (b"A.\n\nB.\n\nC.\n", "with 2 of 3 documents held out, fewer than two are left to train on"),
        (b"A.\n\nB.\n\nC.\n\nD.\n", "no document has two sentences"),
        (b"A.\n\n\x00\n\n\x01\n\nD.\n", "at least two documents with text are needed, found "),
        (
            "\n\n".join("".join(map(chr, range(i, i + 50))) for i in range(0x400, 0x500, 50)).encode(),
            "vocab_size is 90",
        ),
    ],
)
def test_texts_that_do_not_do(tmp_path, failing, content, message):
    assert message in failing(*pretrain(bad_corpus(tmp_path, content), tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_text_that_is_not_there(tmp_path, failing):
    assert failing(*pretrain(tmp_path / "nowhere", tmp_path / "run")).startswith("there is no corpus '")
    (tmp_path / "empty").mkdir()
    assert "found no text in files ending in" in failing(*pretrain(tmp_path / "empty", tmp_path / "run"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "hiden_size=4"], "there is no field 'hiden_size': did you mean 'hidden_size'?"),
        (["--set", "hidden_size"], "--set takes field=value, such as hidden_size=256; got 'hidden_size'"),
        (["--set", "hidden_size=big"], "--set hidden_size: expected a number, got 'big'"),
        (["--set", "hidden_size=15"], "hidden_size must be a multiple of num_attention_heads, got 15 and 2"),
        (["--set", "hidden_size=16.0"], "hidden_size must be an integer, got 16.0"),
        (["--set", "hidden_size=[16]"], "hidden_size must be an integer, got [16]"),
        (["--set", "vocab_size=" + "[" * 100_000], "--set vocab_size: expected a number, got '[[["),
        (["--set", "vocab_size=" + "9" * 400], "--set vocab_size: expected a number below 2^63, got '999"),
        (["--set", "vocab_size=" + "9" * 5000], "--set vocab_size: expected a number, got '999"),
        (
            ["--set", "initializer_range=" + "9" * 400],
            "--set initializer_range: expected a number below 2^63",
        ),
        (["--learning-rate", "1e400"], "learning_rate must be positive and finite, got inf"),
        (["--weight-decay", "nan"], "weight_decay must be at least 0 and finite, got nan"),
        (["--set", "hidden_dropout_prob=NaN"], "hidden_dropout_prob must be at least 0 and finite, got nan"),
        (["--set", "vocab_size=20"], "vocab_size is 20, but the special tokens and the single characters"),
        (["--set", "type_vocab_size=1"], "type_vocab_size must be at least 2"),
        (["--steps", "0"], "steps must be at least 1, got 0"),
        (["--steps", "1"], "warmup_steps must be within 0 … steps = 1, got 2"),
        (["--batch-size", "0"], "batch_size must be at least 1"),
        (["--max-length", "4"], "max_length must be at least 5"),
        (["--max-length", "25"], "max_length is 25, but the model has 24 positions"),
        (["--learning-rate", "-1"], "learning_rate must be positive and finite, got -1.0"),
        (["--learning-rate", "nan"], "learning_rate must be positive and finite, got nan"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--held-out", "1"], "held_out must be at least 0 and below 1, got 1.0"),
        (["--held-out", "nan"], "held_out must be at least 0 and below 1, got nan"),
        (["--held-out", "0.95"], "with 19 of 20 documents held out"),
    ],
)
def test_settings_that_do_not_do(corpus, tmp_path, failing, options, message):
    assert message in failing(*pretrain(corpus, tmp_path / "run"), *options)
    assert not (tmp_path / "run").exists()


@pytest.mark.numpy_only("where CuPy is there, it is no mistake")
def test_a_backend_that_is_not_there(failing):
    if backend_is_there("cupy"):
        pytest.skip("CuPy is installed and finds a device")
    before = backend.default().name
    assert "the backend 'cupy' " in failing("info", "base", "--backend", "cupy")
    assert backend.default().name == before


def backend_is_there(name: str) -> bool:
    try:
        backend.get(name)
    except backend.BackendError:
        return False
    return True


def test_a_finished_run_without_figures(corpus, tmp_path, capsys):
    """To resume it is to fill its masks; there is nothing to say of held-out text."""
    assert main(pretrain(corpus, tmp_path / "run")) == 0
    checkpoint = tmp_path / "run" / "checkpoint-000006"
    state = json.loads((checkpoint / "training.json").read_text())
    (checkpoint / "training.json").write_text(json.dumps({**state, "evaluation": {}}))
    (checkpoint / "SHA256SUMS").unlink()
    capsys.readouterr()
    assert main(pretrain(corpus, tmp_path / "run", "--resume")) == 0
    out = capsys.readouterr().out
    assert "held out:" not in out
    assert "saved in " in out


def test_a_folder_in_use(run, failing):
    before = (run / "run" / "metrics.csv").read_bytes()
    message = failing(*pretrain(run / "text.txt", run / "run"))
    assert "holds a run already (checkpoint-000006): resume it, or name another folder" in message
    assert (run / "run" / "metrics.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--steps", "8"], "steps is 6 there, 8 here"),
        (["--set", "hidden_size=18"], "hidden_size is 16 there, 18 here"),
        (["--seed", "3"], "seed is 0 there, 3 here"),
        (["--cased"], "the vocabulary"),
        (["--held-out", "0.25"], "the text (fingerprint "),
    ],
)
def test_resuming_with_other_settings(run, failing, options, named):
    message = failing(*pretrain(run / "text.txt", run / "run", "--resume"), *options)
    assert "cannot be resumed with other settings; these differ: " in message
    assert named in message


def test_resuming_with_another_text(run, tmp_path, failing):
    text = write_corpus(tmp_path / "text.txt", seed=1)
    assert "the text (fingerprint " in failing(*pretrain(text, run / "run", "--resume"))


def test_a_file_where_the_folder_should_be(corpus, tmp_path, failing):
    (tmp_path / "run").write_text("in the way")
    assert str(tmp_path / "run") in failing(*pretrain(corpus, tmp_path / "run"))
    assert (tmp_path / "run").read_text() == "in the way"


def test_a_disk_that_is_full(corpus, tmp_path, failing, monkeypatch):
    def fail(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    message = failing(*pretrain(corpus, tmp_path / "run"))
    assert message.startswith(
        f"could not save {tmp_path / 'run' / 'checkpoint-000006'}: No space left on device ("
    )
    assert not list((tmp_path / "run").glob("checkpoint-*"))


def test_a_model_that_does_not_fit_into_memory(corpus, tmp_path, failing, monkeypatch):
    def refuse(*_):
        raise MemoryError("Unable to allocate 37.3 GiB for an array with shape (100000, 100000)")

    monkeypatch.setattr(Pretraining, "__init__", refuse)
    assert failing(*pretrain(corpus, tmp_path / "run")).startswith("Unable to allocate 37.3 GiB")


def test_memory_that_python_itself_lacks(corpus, tmp_path, failing, monkeypatch):
    """It has no words for it."""

    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(pretraining, "read_corpus", refuse)
    assert failing(*pretrain(corpus, tmp_path / "run")).startswith("not enough memory: less text")
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_finite(corpus, tmp_path, failing, monkeypatch):
    true = Pretraining.train_step

    def step(self, tally):
        if self.step == 4:
            self.model.cls.seq_relationship.bias.data[0] = float("nan")
        return true(self, tally)

    monkeypatch.setattr(Pretraining, "train_step", step)
    message = failing(*pretrain(corpus, tmp_path / "run"))
    assert message.startswith("the loss is nan in step 5; the checkpoint of step 4 is kept. Try a lower")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["evaluate", "{}/nowhere"],
            "nowhere has no checkpoint in it; train one with: python -m minigrad.bert",
        ),
        (["fill-mask", "{}/nowhere", "[MASK]"], "nowhere has no checkpoint in it"),
        (["next-sentence", "{}/nowhere", "a", "b"], "nowhere has no checkpoint in it"),
        (["info", "{}/nowhere"], "nowhere has no checkpoint in it"),
        (["info", "huge"], "huge has no checkpoint in it"),
        (["fill-mask", "{}/run", "No mask."], "there is no [MASK] in 'No mask.'"),
        (["fill-mask", "{}/run", ""], "there is no [MASK] in ''"),
        (["fill-mask", "{}/run", "[MASK]" + " a" * 30], "33 tokens are more than the 24 positions"),
        (["fill-mask", "{}/run", "[MASK]", "--top", "0"], "top must be at least 1, got 0"),
        (["next-sentence", "{}/run", "", "b"], "the first sentence has no tokens: ''"),
        (["next-sentence", "{}/run", "a", " "], "the second sentence has no tokens: ' '"),
        (["evaluate", "{}/run", "--corpus", "{}/nowhere"], "there is no corpus '"),
        (
            ["evaluate", "{}/run", "--corpus", "{}/text.txt", "--max-length", "4"],
            "max_length must be at least 5",
        ),
        (
            ["evaluate", "{}/run", "--corpus", "{}/text.txt", "--max-length", "64"],
            "max_length is 64, but the model has 24 positions",
        ),
        (
            ["evaluate", "{}/run", "--corpus", "{}/text.txt", "--batch-size", "0"],
            "batch_size must be at least 1",
        ),
        (
            ["evaluate", "{}/run", "--corpus", "{}/text.txt", "--held-out", "-1"],
            "held_out must be within 0 … 1 (1 is everything), got -1.0",
        ),
        (
            ["evaluate", "{}/run", "--corpus", "{}/text.txt", "--seed", "-1"],
            "seed must be at least 0, got -1",
        ),
        (
            ["info", "base", "--set", "vocab_size=" + "9" * 400],
            "--set vocab_size: expected a number below 2^63",
        ),
        (["info", "base", "--set", "hidden_size=100"], "hidden_size must be a multiple"),
        (["info", "base", "--set", "layers=3"], "there is no field 'layers'"),
        (["info", "base", "--batch-size", "0"], "expected at least 1 sequence of 1 … 512 tokens"),
        (["info", "base", "--max-length", "513"], "max_length is 513, but the model has 512 positions"),
    ],
)
def test_mistakes_with_a_model(run, failing, command, message):
    assert message in failing(*(part.format(run) for part in command))


def test_a_damaged_checkpoint(run, tmp_path, failing):
    source = run / "run" / "checkpoint-000006"
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes()[:1000])
    assert "model.safetensors is damaged" in failing("fill-mask", tmp_path, "[MASK]")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert "config.json: model_type is 'gpt2'" in failing("info", tmp_path)


def test_a_checkpoint_without_vocabulary(run, tmp_path, failing):
    source = run / "run" / "checkpoint-000006"
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    assert f"{tmp_path} has no vocab.txt, which this command needs" in failing(
        "fill-mask", tmp_path, "[MASK]"
    )


def test_notes_on_a_checkpoint_are_shown(run, tmp_path, capsys):
    from minigrad.bert.checkpoint import save_pretrained
    from minigrad.bert.model import BertModel

    loaded = from_pretrained(run / "run" / "checkpoint-000006", BertModel)
    save_pretrained(loaded.model, tmp_path, loaded.tokenizer)
    assert main(["fill-mask", str(tmp_path), "[MASK]"]) == 0
    assert capsys.readouterr().err.startswith("note: not in the checkpoint, left as initialised: cls.")


def test_what_a_terminal_would_obey_is_spelled_out(run, tmp_path, capsys, failing):
    """Vocabulary pieces, and file names in errors."""
    source = run / "run" / "checkpoint-000006"
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    pieces = (tmp_path / "vocab.txt").read_text().splitlines()
    pieces[20] = "\x1b]0;title\x07"
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    assert main(["fill-mask", str(tmp_path), "[MASK]", "--top", "90"]) == 0
    out, err = capsys.readouterr()
    assert r"\x1b]0;title\x07" in out
    assert "\x1b" not in out + err
    assert r"there is no corpus '\x1b[31m" in failing(*pretrain(Path("\x1b[31m"), tmp_path / "run")).replace(
        "\\\\", "\\"
    )


def test_an_error_is_one_line_that_ends(tmp_path, failing):
    assert len(failing("fill-mask", tmp_path / ("a\n" * 10_000), "[MASK]")) <= cli.LONGEST_LINE


# --- As a process ----------------------------------------------------------------------------------------

MODULE = "import runpy, sys; sys.argv[0] = 'minigrad'; runpy.run_module('minigrad.bert', run_name='__main__')"
BERT = f"{shlex.quote(sys.executable)} -m minigrad.bert"
TRAIN = shlex.join([*pretrain(Path("text.txt"), Path("run")), "--set", "max_position_embeddings=128"])
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell, signals, terminals")


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash; `$B` is the command line, `$T` a run of `text.txt`, all but the output."""
    return subprocess.run(
        ["bash", "-c", command.replace("$T", f"$B {TRAIN}").replace("$B", BERT)],
        cwd=folder,
        env={**processes.environment(), **environment},
        capture_output=True,
        timeout=60,
    )


def test_as_a_process(run):
    done = processes.run_python(MODULE, "next-sentence", run / "run", "Bal.", "Bam.")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("IsNext ")


def test_as_a_process_that_fails(tmp_path):
    done = processes.run_python(MODULE, "fill-mask", tmp_path / "nowhere", "[MASK]")
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"error: .*nowhere has no checkpoint in it; train one with: .*\n", done.stderr)


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@posix
@pytest.mark.parametrize(
    "streams",
    [
        "| head -2",
        "| true",
        "2>&1 >/dev/null | head -1",
        "2>&1 >/dev/null | true",
        pytest.param("2>/dev/full", marks=needs_full),
        pytest.param(">/dev/full", marks=needs_full),
        pytest.param(">/dev/full 2>&1", marks=needs_full),
        "2>&-",
        ">&-",
        ">&- 2>&-",
        "<&- >&- 2>&-",
    ],
)
def test_training_does_not_hang_on_its_messages(corpus, tmp_path, streams):
    done = shell(f"$T {streams}; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"Exception ignored" not in done.stdout + done.stderr
    assert latest_checkpoint(tmp_path / "run").name == "checkpoint-000006"
    assert (tmp_path / "run" / "metrics.csv").read_text().count("\n") == 4
    assert (tmp_path / "run" / "metrics.csv").read_text().startswith("step,")


@posix
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp437"])
def test_streams_that_are_not_utf_8(corpus, tmp_path, encoding):
    done = shell("$T", tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert b"reading text.txt \\u2026\n" in done.stdout


@posix
@pytest.mark.parametrize("reader", ["head -1", "true"])
@pytest.mark.parametrize("command", ["info base", "--help"])
def test_a_reader_that_has_seen_enough(tmp_path, command, reader):
    done = shell(f"set -o pipefail; $B {command} | {reader}", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


@posix
@needs_full
def test_output_that_cannot_be_written_is_an_error(tmp_path):
    done = shell("$B info base >/dev/full", tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(rb"error: .*No space left on device\n", done.stderr)


@posix
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_stopped_run_does_not_let_the_next_command_go_on(corpus, tmp_path, name):
    script = f"""
    $T --steps 1000000 --log-every 100000 --eval-every 100000 --save-every 100000 >out 2>err &
    pid=$!
    until [ -s out ] && grep -q 'unigram entropy' out; do sleep 0.05; done
    sleep 0.3
    kill -{name} $pid
    wait $pid
    """
    done = shell(f"set -m\n{script}", tmp_path)  # -m: a job of its own, which does not ignore SIGINT
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")
    (line,) = (tmp_path / "err").read_text().splitlines()
    step = re.fullmatch(r"stopped at step (\d+) of 1000000 and saved; go on with --resume", line)[1]
    assert latest_checkpoint(tmp_path / "run").name == f"checkpoint-{int(step):06d}"
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock",
        latest_checkpoint(tmp_path / "run").name,
    ]


@posix
def test_a_run_in_the_background_of_a_script_is_not_stopped_by_ctrl_c(corpus, tmp_path):
    """Shells start it with SIGINT ignored, and so it stays."""
    done = shell(
        """
        $T --steps 300 >out &
        pid=$!
        until ls -d run/checkpoint-* >/dev/null 2>&1; do sleep 0.05; done
        kill -INT $pid
        wait $pid
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert latest_checkpoint(tmp_path / "run").name == "checkpoint-000300"


def test_a_model_that_no_machine_holds_is_refused_before_the_text_is_read(tmp_path, capsys):
    command = ["pretrain", "--corpus", str(tmp_path / "not there"), "--output", str(tmp_path / "run")]
    assert main([*command, "--set", "hidden_size=2000000"]) == 1
    assert "GB" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


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


def test_a_length_beyond_the_models_positions_is_refused_before_the_text_is_read(tmp_path, capsys):
    command = ["pretrain", "--corpus", str(tmp_path / "not there"), "--output", str(tmp_path / "run")]
    assert main([*command, "--max-length", "100000000"]) == 1
    assert capsys.readouterr().err == "error: max_length is 100000000, but the model has 512 positions\n"
    assert not (tmp_path / "run").exists()


def test_info_of_a_model_with_few_positions(capsys):
    assert main(["info", "reduced", "--set", "max_position_embeddings=32"]) == 0
    assert "32 x 32 tokens" in capsys.readouterr().out
    assert main(["info", "reduced", "--set", "max_position_embeddings=32", "--max-length", "64"]) == 1
    assert capsys.readouterr().err == "error: max_length is 64, but the model has 32 positions\n"


@posix
def test_ctrl_c_before_training_is_no_traceback(tmp_path):
    """While the text is read, here from a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "never")
    script = f"""
import os, signal, sys, threading, runpy
import minigrad.bert.corpus as corpus
def read(source, progress):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
corpus.read_corpus = read
sys.argv = ["minigrad", *{pretrain(Path("text.txt"), tmp_path / "run")!r}]
runpy.run_module("minigrad.bert", run_name="__main__")
"""
    done = processes.run_python(script)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"
    assert not (tmp_path / "run").exists()


@posix
def test_two_starts_at_once(corpus, tmp_path):
    """One trains; the other is told which process does."""
    done = shell(
        "$T --steps 200 >a 2>&1 & first=$!; $T --steps 200 >b 2>&1 & second=$!; "
        "echo $first $second; wait $first; echo $?; wait $second; echo $?",
        tmp_path,
    )
    pids, *statuses = done.stdout.decode().splitlines()
    assert sorted(statuses) == ["0", "1"]
    winner, loser = ("a", "b") if statuses[0] == "0" else ("b", "a")
    pid = pids.split()["ab".index(winner)]
    (line,) = (tmp_path / loser).read_text().splitlines()
    assert re.match(rf"error: run is in use by the run of process {pid} \(since .*\): wait for its end", line)
    steps = [row.split(",")[0] for row in (tmp_path / "run" / "metrics.csv").read_text().splitlines()[1:]]
    assert steps == [str(step) for step in range(2, 201, 2)]


@posix
@pytest.mark.parametrize("options", ["--learning-rate 1e30 --warmup-steps 0", "--weight-decay 1e29"])
def test_numbers_that_overflow_are_one_clear_line(corpus, tmp_path, options):
    done = shell(f"$T --steps 40 {options}", tmp_path, PYTHONWARNINGS="default")
    assert done.returncode == 1
    *before, last = done.stderr.decode().splitlines()
    assert re.match(r"error: the (loss|norm of the gradients) is (nan|inf) in step \d+; ", last)
    assert all(re.match(r"step \d+", line) for line in before)


TERMINAL = """
import os, pty, struct, sys, fcntl, termios
rows, columns = 24, int(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-m", "minigrad.bert", *sys.argv[2:]])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
try:
    while text := os.read(terminal, 4096):
        sys.stdout.buffer.write(text)
except OSError:
    pass  # how a terminal ends
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@posix
@pytest.mark.parametrize(("columns", "bar"), [(0, False), (100, True)])
def test_terminals_with_and_without_columns(corpus, tmp_path, columns, bar):
    done = processes.run_python(TERMINAL, columns, *pretrain(corpus, tmp_path / "run"))
    assert done.returncode == 0, done.stdout
    assert "step 3: held out MLM loss" in done.stdout
    assert ("%|" in done.stdout) is bar
    assert ("step 6/6  loss " in done.stdout) is not bar
