"""The command line, from text to a filled mask."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest
import tiny
from commands import SIZES, pretrain, write_corpus

from minigrad import backend
from minigrad.bert import __main__ as cli
from minigrad.bert import data, pretraining
from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import from_pretrained
from minigrad.bert.config import PRESETS
from minigrad.bert.options import EXAMPLE
from minigrad.bert.pretraining import Pretraining, prepare
from minigrad.bert.settings import PretrainingArguments
from minigrad.text.corpus import Corpus
from minigrad.training import command_line
from minigrad.training.folders import RunFolder, latest_checkpoint

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
        r"words alone: an MLM loss of \d\.\d{3} nats, .*\(the unigram entropy\)",
        r"a coin:      an NSP loss of 0\.693 nats, and 50 % of the pairs right",
        r"\d,\d{3} parameters; 6 steps of 4 x 24 tokens to .*run",
        r"trained to step 6 in \d+ s",
        r"held out: MLM loss \d\.\d{3} \(.*word frequencies\), accuracy \d+\.\d%; NSP loss \d\.\d{3}, .*",
        r"saved in .*run.checkpoint-000006; the losses of all steps are in .*run.metrics\.csv",
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


LONGER = ("--set", "max_position_embeddings=128")  # for examples in a vocabulary of single letters


def test_at_the_end_masks_are_filled(corpus, tmp_path, monkeypatch, capsys):
    """Those about Python after Python's documentation, otherwise the one that the run was given."""
    monkeypatch.setattr(cli, "DEFAULT_CORPUS", str(corpus))
    assert main(pretrain(corpus, tmp_path / "run", *LONGER)) == 0
    monkeypatch.undo()
    assert main(pretrain(corpus, tmp_path / "other", *LONGER, "--example", "Bal [MASK].")) == 0
    out, other = capsys.readouterr().out.split("saved in ")[1:]
    for examples, text in ((cli.EXAMPLES, out), (["Bal [MASK]."], other)):
        ends = re.split(r"Your turn:|reading", text)[0]
        filled = re.findall(r"^(\S.*\[MASK\].*)\n   \S+ \d+%(?:  \S+ \d+%){4}$", ends, re.MULTILINE)
        assert sorted(filled) == sorted(examples)


def test_at_the_end_stand_commands_that_work(corpus, tmp_path, capsys):
    folder = tmp_path / "a run"
    assert main(pretrain(corpus, folder, *LONGER, "--example", "Bal [MASK] $HOME.")) == 0
    lines = capsys.readouterr().out.partition("Your turn:\n")[2].splitlines()
    commands = [shlex.split(line) for line in lines]
    assert [command[3] for command in commands] == ["fill-mask", "evaluate"]
    for python, *module, _, _ in (command[:5] for command in commands):
        assert module == ["-m", "minigrad.bert"]
        assert shutil.which(python) == sys.executable or (Path.cwd() / python) == Path(sys.executable)
    assert main(commands[0][3:]) == 0
    assert capsys.readouterr().out.startswith("Bal [MASK] $HOME.\n   ")
    assert main(commands[1][3:]) == 0
    out, err = capsys.readouterr()
    assert (out.startswith("4 documents, "), err) == (True, "")


@pytest.mark.no_arrays
def test_arguments_are_typed_as_the_system_wants_them(monkeypatch):
    assert command_line.typed("runs/reduced") == "runs/reduced"
    assert command_line.typed("a $HOME") == "'a $HOME'"
    monkeypatch.setattr(os, "name", "nt")
    assert command_line.typed("runs\\reduced") == "runs\\reduced"
    assert command_line.typed("a [MASK].") == '"a [MASK]."'


@pytest.mark.no_arrays
def test_what_to_type_for_this_python(tmp_path, monkeypatch):
    for path, expected in (
        (tmp_path / ".venv" / "bin" / "python", os.path.join(".venv", "bin", "python")),
        (tmp_path.parent / "other" / "python", str(tmp_path.parent / "other" / "python")),
    ):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "executable", str(path))
        assert command_line.python() == expected
    monkeypatch.setattr(shutil, "which", lambda name: sys.executable if name == "python3" else None)
    assert command_line.python() == "python3"


def test_guesses_on_the_way_change_nothing(corpus, tmp_path, capsys):
    """With each evaluation a line; weights, moments and draws are as without."""
    longer = [*LONGER, "--set", "hidden_dropout_prob=0.1"]
    assert main(pretrain(corpus, tmp_path / "a", *longer)) == 0
    out, err = capsys.readouterr()
    assert f"guesses:     {EXAMPLE}\n" in out
    guesses = re.findall(r"^step (\d+): \[MASK\] = \S+ \d+%(?:  \S+ \d+%){3}$", err, re.MULTILINE)
    assert guesses == ["3", "6"]
    assert main(pretrain(corpus, tmp_path / "b", *longer, "--example", "")) == 0
    out, err = capsys.readouterr()
    assert "[MASK]" not in err + out.partition("Your turn")[0]
    for checkpoint in ("checkpoint-000004", "checkpoint-000006"):
        assert tiny.contents(tmp_path / "a" / checkpoint) == tiny.contents(tmp_path / "b" / checkpoint)


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


def test_the_score_changes_the_vocabulary(corpus, tmp_path):
    vocabularies = []
    for score in ("frequency", "pmi", "gain"):
        assert main(pretrain(corpus, tmp_path / score, "--score", score)) == 0
        vocabularies.append((latest_checkpoint(tmp_path / score) / "vocab.txt").read_text())
    assert len(set(vocabularies)) == 3


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
    assert main(pretrain(corpus, tmp_path / "a", "--cased", "--score", "pmi")) == 0
    said = capsys.readouterr().out.splitlines()
    config = PRESETS["reduced"].replace(**SIZES)
    settings = PretrainingArguments(
        steps=6, batch_size=4, max_length=24, warmup_steps=2, log_every=2, eval_every=3, save_every=4
    )
    lines: list[str] = []
    with prepare(
        corpus, config, settings, tmp_path / "b",
        lower_case=False, score="pmi", held_out=0.2, say=lines.append,
    ) as run:  # fmt: skip
        run.run(lines.append)
    assert without_seconds(lines[:5]) == without_seconds(said[:5])
    for checkpoint in ("checkpoint-000004", "checkpoint-000006"):
        assert tiny.contents(tmp_path / "a" / checkpoint) == tiny.contents(tmp_path / "b" / checkpoint)


def without_seconds(lines: list[str]) -> list[str]:
    return [re.sub(r"\d+ s so far", "", line) for line in lines]


def test_the_same_command_with_resume_goes_on(corpus, tmp_path, monkeypatch, capsys):
    assert main(pretrain(corpus, tmp_path / "whole")) == 0
    true = Pretraining.train_step

    def step(self, tally):
        if self.step == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return true(self, tally)

    monkeypatch.setattr(Pretraining, "train_step", step)
    assert main(pretrain(corpus, tmp_path / "run")) == 128 + signal.SIGINT
    out, err = capsys.readouterr()
    assert "stopped at step 5 of 6 and saved; go on with --resume" in err
    assert "to step 6 in" not in out.split("whole")[-1]
    monkeypatch.undo()
    assert main(pretrain(corpus, tmp_path / "run", "--resume")) == 0
    out = capsys.readouterr().out
    assert "parameters; 1 steps of 4 x 24" in out
    assert re.search(r"^trained from step 5 to step 6 in \d+ s$", out, re.MULTILINE)
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "hidden_size=2000000"], "GB"),  # no machine holds it
        (["--max-length", "100000000"], "max_length is 100000000, but the model has 512 positions"),
    ],
)
def test_sizes_that_cannot_be_are_refused_before_the_text_is_read(tmp_path, failing, options, message):
    command = ["pretrain", "--corpus", tmp_path / "not there", "--output", tmp_path / "run"]
    assert message in failing(*command, *options)
    assert not (tmp_path / "run").exists()


# --- Looking at a model ----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["run", "run/checkpoint-000006"])
def test_evaluate_gives_the_figures_of_the_run(run, capsys, which):
    """By default on the share that the run held out, with its seed and sizes."""
    assert main(["evaluate", "--model", str(run / which), "--corpus", str(run / "text.txt")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    state = json.loads((run / "run" / "checkpoint-000006" / "training.json").read_text())
    assert (state["held_out"], state["arguments"]["seed"]) == (0.2, 5)  # not the defaults
    assert re.match(r"4 documents, \d+ pairs: ", out)
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
    assert main(["evaluate", "--model", str(run / "run"), "--corpus", str(run / "text.txt"), *options]) == 0
    err = capsys.readouterr().err
    assert re.fullmatch(f"note: {note}\n", err) if note else err == ""


def test_evaluate_says_when_the_text_is_another(run, tmp_path, capsys):
    text = write_corpus(tmp_path / "other.txt", seed=5)
    assert main(["evaluate", "--model", str(run / "run"), "--corpus", str(text)]) == 0
    assert capsys.readouterr().err.startswith(
        "note: this is not the text that the run was trained on, or not"
    )


def test_evaluate_a_model_that_no_run_here_made(run, tmp_path, capsys):
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((run / "run" / "checkpoint-000006" / name).read_bytes())
    assert (
        main(["evaluate", "--model", str(tmp_path), "--corpus", str(run / "text.txt"), "--max-length", "24"])
        == 0
    )
    out, err = capsys.readouterr()
    assert out.startswith("2 documents, ")  # 5 %, at least two
    assert (
        err == f"note: {tmp_path} has no training.json: whether the model has seen this text is not known\n"
    )


def test_evaluate_without_the_state_that_the_sums_list(run, tmp_path, failing):
    """Without it the split would be another one, and training text be scored without a word."""
    shutil.copytree(run / "run" / "checkpoint-000006", tmp_path / "copy")
    (tmp_path / "copy" / "training.json").unlink()
    message = failing("evaluate", "--model", tmp_path / "copy", "--corpus", run / "text.txt")
    assert message == f"{tmp_path / 'copy' / 'training.json'} is missing: SHA256SUMS lists it"


@pytest.mark.parametrize("share", ["5", "nan", "inf", "1e400", "-0.1", "1.0001"])
def test_shares_that_are_none(run, failing, share):
    message = failing("evaluate", "--model", run / "run", "--corpus", run / "text.txt", f"--held-out={share}")
    assert message.startswith("held_out must be within 0 … 1 (1 is everything), got ")


def test_evaluate_takes_a_part_of_a_long_text(run, capsys, monkeypatch):
    monkeypatch.setattr(data, "HELD_OUT_BATCHES", 3)
    command = ["evaluate", "--model", str(run / "run"), "--corpus", str(run / "text.txt"), "--held-out", "1"]
    assert main([*command, "--batch-size", "5", "--max-length", "24"]) == 0
    assert capsys.readouterr().out.startswith("20 documents, 15 pairs: ")


def test_fill_mask(run, capsys):
    assert main(["fill-mask", "--model", str(run / "run"), "Bal [MASK] bam [MASK].", "--top", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    text, *fillings = out.splitlines()
    assert text == "Bal [MASK] bam [MASK]."
    assert len(fillings) == 2
    assert all(re.fullmatch(r"   \S+ \d+%  \S+ \d+%  \S+ \d+%", line) for line in fillings)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["fill-mask", EXAMPLE, "--top", "1"], re.escape(EXAMPLE) + r"\n   exception \d\d%\n"),
        (["next-sentence", "Open the file.", "Read all lines."], r"IsNext \d+\.\d%, .*\n"),
        (["evaluate", "--corpus", "{}", "--held-out", "1"], r"20 documents, .*\n"),
    ],
)
def test_without_a_model_it_is_the_one_that_came_with_the_course(corpus, capsys, command, expected):
    assert main([part.format(corpus) for part in command]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(expected, out)
    note, *others = err.splitlines()
    assert re.fullmatch(r"note: no model is named: this is the one that came with minigrad, .*trained", note)
    unseen = "whether the model has seen this text is not known"
    assert [line.endswith(unseen) for line in others] == [True] * (command[0] == "evaluate")


@pytest.mark.parametrize("model", [True, False])
@pytest.mark.parametrize("command", [["fill-mask", "Bal [MASK]."], ["next-sentence", "Bal.", "Bam."]])
def test_options_may_stand_anywhere(run, capsys, command, model):
    name, *texts = command
    options = ["--backend", backend.default().name, *(["--model", str(run / "run")] if model else [])]
    outputs = set()
    for given in ([*options, *texts], [*texts, *options], [*options[:2], *texts, *options[2:]]):
        assert main([name, *given]) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 1


def test_next_sentence(run, capsys):
    assert main(["next-sentence", "--model", str(run / "run"), "Bal bam.", "Ban bap."]) == 0
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
    out = capsys.readouterr().out
    assert re.search(r"word_embeddings\.weight +90 x 16 +1,440$", out, re.MULTILINE)
    assert re.match(
        r".*checkpoint-\d+: a BertForPreTraining\nweights: [\d,]+ numbers of F32\nvocabulary: 90 pieces", out
    )


def test_info_of_a_model_with_few_positions(capsys):
    assert main(["info", "reduced", "--set", "max_position_embeddings=32"]) == 0
    assert "32 x 32 tokens" in capsys.readouterr().out
    assert main(["info", "reduced", "--set", "max_position_embeddings=32", "--max-length", "64"]) == 1
    assert capsys.readouterr().err == "error: max_length is 64, but the model has 32 positions\n"


def test_a_backend_by_name(capsys):
    before = backend.default().name
    try:
        assert main(["info", "reduced", "--backend", "numpy"]) == 0
        assert backend.default().name == "numpy"
    finally:
        backend.use(before)


def test_a_model_of_stories_is_trained_and_held_against_the_grammar(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("minigrad.bert.__main__.STORY_PAIRS", 2)
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 20)
    sizes = [f"--set={name}={value}" for name, value in SIZES.items() if name != "max_position_embeddings"]
    run = ["--output", str(tmp_path / "run"), "--steps", "2", "--warmup-steps", "1", "--batch-size", "4"]
    command = ["pretrain", "--corpus", "stories", "--max-length", "32", *sizes, *run]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "fresh 'light' stories in each epoch, 138 pieces" in said
    assert "mary is in the attic with john . [MASK] has four books ." in said
    assert "--corpus stories" in said
    assert main(["evaluate", "--model", str(tmp_path / "run"), "--corpus", "stories"]) == 0
    said = capsys.readouterr().out
    assert "2 pairs of 'light' stories" in said
    rows = {line[:22].strip(): line[22:].split() for line in said.splitlines()}
    assert rows["place"][1] == "2.079"  # log 8, the floor
    assert main(["evaluate", "--corpus", "stories"]) == 1
    assert "was trained on another text" in capsys.readouterr().err
