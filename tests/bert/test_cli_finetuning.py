"""The command line of fine-tuning: from a file of examples to predictions, and one line for each mistake."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
import tiny
import tiny_task
from tiny import checkpoints, contents

from minigrad.bert import __main__ as cli
from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import from_pretrained
from minigrad.bert.finetuning import Finetuning
from minigrad.bert.options import finetuning_settings_in, parse
from minigrad.bert.runs import latest_checkpoint
from minigrad.bert.settings import FinetuningArguments
from minigrad.bert.tasks import BertForSequenceClassification

ENDING = {"classify": "csv", "pairs": "csv", "qa": "csv", "tag": "jsonl"}
OPTIONS = ["--epochs", "2", "--batch-size", "8", "--learning-rate", "3e-3", "--log-every", "2"]


def finetune(folder: Path, task: str = "classify", *more: str) -> list[str]:
    """The command line of a tiny run in `folder/run`, whose files are made if need be."""
    train, dev = (folder / f"{name}.{ENDING[task]}" for name in ("train", "dev"))
    if not train.exists():
        tiny_task.pretrained(folder / "model")
        tiny_task.write(train, tiny_task.rows(task, 42))
        tiny_task.write(dev, tiny_task.rows(task, 10, seed=1))
    files = ["--data", str(train), "--eval", str(dev), "--output", str(folder / "run")]
    return ["finetune", str(folder / "model"), *files, *OPTIONS, *more]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, Path]:
    """A folder for each task, with a run in `run`; tests only read it."""
    folders = {task: tmp_path_factory.mktemp(task) for task in ENDING}
    for task, folder in folders.items():
        assert main(finetune(folder, task)) == 0
    return folders


# --- finetune --------------------------------------------------------------------------------------------


def test_finetune_tells_what_it_does(tmp_path, capsys):
    assert main(finetune(tmp_path)) == 0
    out = capsys.readouterr().out
    for line in (
        r"note: not in the checkpoint, left as initialised: classifier\.weight, classifier\.bias",
        r"note: in the checkpoint, not used: cls\..* and 2 more",
        r"classify: 42 examples in .*train\.csv, \d labels; 10 in .*dev\.csv",
        r"([\d,]+) parameters, \1 of them trained; 12 steps of 8 examples to .*run",
        r"trained to step 12 in \d+ s",
        r".*dev\.csv: loss \d\.\d{3}, accuracy \d+\.\d%, F1 \d+\.\d%",
        r"saved in .*run.checkpoint-000012; all losses are in .*run.metrics\.csv",
    ):
        assert re.search(f"^{line}$", out, re.MULTILINE), line
    command = shlex.split(out.partition("Your turn:\n")[2])
    assert command[1:4] == ["-m", "minigrad.bert", "predict"]
    assert main(command[3:]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 10
    assert re.fullmatch(r"scores: accuracy \d+\.\d%, F1 \d+\.\d%\n", err)


def test_finetune_resumes(tmp_path, monkeypatch, capsys):
    assert main(finetune(tmp_path)) == 0
    true, calls = Finetuning.train_step, []

    def step(run, tally):
        calls.append(run.step)
        if run.step == 4 and len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return true(run, tally)

    monkeypatch.setattr(Finetuning, "train_step", step)
    other = [*finetune(tmp_path), "--output", str(tmp_path / "cut")]
    assert main(other) == 128 + signal.SIGINT
    assert checkpoints(tmp_path / "cut") == ["checkpoint-000005"]
    assert main([*other, "--resume"]) == 0
    assert calls == [*range(5), *range(5, 12)]
    for name in ("checkpoint-000012",):
        assert contents(tmp_path / "cut" / name) == contents(tmp_path / "run" / name)


def test_finetune_without_an_evaluation_and_with_frozen_encoder(tmp_path, capsys):
    command = finetune(tmp_path)
    at = command.index("--eval")
    assert main([*command[:at], *command[at + 2 :], "--frozen"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"[\d,]+ parameters, \d\d\d of them trained", out)
    assert not (tmp_path / "run" / "evaluation.csv").exists()


def test_without_a_model_that_of_the_course_is_taken(tmp_path, monkeypatch, capsys):
    command = finetune(tmp_path)
    monkeypatch.setattr(cli, "stored", lambda name: tmp_path / "model")
    assert main(["finetune", *command[2:]]) == 0
    assert "no model is named: this is the one that came with the course" in capsys.readouterr().err


def test_a_fine_tuned_model_can_learn_other_classes(tmp_path, capsys):
    assert main(finetune(tmp_path)) == 0
    moved = [{**row, "label": str(number % 2)} for number, row in enumerate(tiny_task.rows("classify", 20))]
    data = tiny_task.write(tmp_path / "moved.csv", moved)
    capsys.readouterr()
    command = [
        "finetune",
        str(tmp_path / "run"),
        "--data",
        str(data),
        "--output",
        str(tmp_path / "second"),
        *OPTIONS,
    ]
    assert main(command) == 0
    assert (
        "note: left out: the checkpoint's classifier, whose classes are others\n" in capsys.readouterr().out
    )
    loaded = from_pretrained(latest_checkpoint(tmp_path / "second"), BertForSequenceClassification)
    assert loaded.model.config.id2label == {0: "0", 1: "1"}


def test_there_is_an_option_for_each_setting(capsys):
    settings = finetuning_settings_in(parse(["finetune", "--data", "x"]), 512)
    assert settings == FinetuningArguments()
    assert finetuning_settings_in(parse(["finetune", "--data", "x"]), 64).max_length == 64
    given = parse(["finetune", "--data", "x", "--max-length", "99", "--frozen", "--warmup-share", "0"])
    assert finetuning_settings_in(given, 64) == FinetuningArguments(
        max_length=99, frozen=True, warmup_share=0
    )


# --- predict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ENDING)
def test_predictions_for_a_file(trained, task, capsys):
    dev = trained[task] / f"dev.{ENDING[task]}"
    capsys.readouterr()
    assert main(["predict", str(trained[task] / "run"), "--data", str(dev)]) == 0
    out, err = capsys.readouterr()
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["row"] for one in found] == list(range(1, 11))
    rows = tiny_task.rows(task, 10, seed=1)
    if task in ("classify", "pairs"):
        assert all(one["probability"] == max(one["probabilities"].values()) for one in found)
        assert all(sum(one["probabilities"].values()) == pytest.approx(1) for one in found)
        right = sum(one["label"] == row["label"] for one, row in zip(found, rows, strict=True))
        assert f"accuracy {right / 10:.1%}, " in err
    elif task == "qa":
        for one, row in zip(found, rows, strict=True):
            start = one["answer_start"]
            assert row["context"][start : start + len(one["answer"])] == one["answer"] != ""
            assert 0 < one["probability"] <= 1
        assert err.startswith("scores: exact match ")
    else:
        assert [len(one["tags"]) for one in found] == [len(row["tokens"]) for row in rows]
        assert {tag for one in found for tag in one["tags"]} <= {"B-person", "B-thing", "O"}


@pytest.mark.parametrize(
    ("task", "texts", "expected"),
    [
        ("classify", ["mary has a book ."], r"kind \d \d+%(  kind \d \d+%){1,4}\n"),
        ("pairs", ["mary has a book .", "it is old ."], r"(next|other) \d+%  (next|other) \d+%\n"),
        ("qa", ["who has the book ?", "mary has it ."], r"(mary|has|it|\.)( (has|it|\.))*  \d+%\n"),
        ("tag", ["mary has\x1b[31m it"], r"mary [\w-]+  has\\x1b\[31m [\w-]+  it [\w-]+\n"),
    ],
)
def test_predictions_for_texts(trained, task, texts, expected, capsys):
    capsys.readouterr()
    model = str(trained[task] / "run")
    assert main(["predict", model, *texts]) == 0
    first, err = capsys.readouterr()
    assert re.fullmatch(expected, first)
    assert err == ""
    assert (
        main(["predict", model, "--batch-size", "1", *texts]) == 0
    )  # an option between the model and the texts
    assert capsys.readouterr().out == first


def test_answers_and_labels_may_be_absent_from_a_file(trained, tmp_path, capsys):
    data = tiny_task.write(tmp_path / "new.csv", [{"text": "mary has a book ."}])
    capsys.readouterr()
    assert main(["predict", str(trained["classify"] / "run"), "--data", str(data)]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["row"], err) == (1, "")


def test_what_is_cut_is_noted(trained, tmp_path, capsys):
    run = str(trained["tag"] / "run")
    data = tiny_task.write(tmp_path / "new.jsonl", [{"tokens": ["mary", "has", "four", "books", "."]}])
    capsys.readouterr()
    assert main(["predict", run, "--data", str(data), "--max-length", "5"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["tags"][3:] == [None, None]
    assert err == f"note: 1 of 1 rows of {data} are cut to 5 tokens\n"
    assert main(["predict", run, "--max-length", "5", "mary has four books ."]) == 0
    assert capsys.readouterr().err == "note: 1 of 1 rows of your text are cut to 5 tokens\n"


# --- Mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "0"], "epochs must be at least 1, got 0"),
        (["--max-length", "41"], "max_length is 41, but the model has 40 positions"),
        (["--learning-rate", "nan"], "learning_rate must be positive and finite, got nan"),
        (["--data", "nowhere.csv"], "nowhere.csv is not there"),
        (["--task", "pairs"], "train.csv, row 1 (line 2), column 'text_pair': it is missing; there are text, label"),
        (["--task", "tag"], "tokens and tags are lists, which a CSV file has not"),
        (["--output", ""], "the name of the run's folder is empty"),
    ],
)  # fmt: skip
def test_mistakes_of_finetune(tmp_path, failing, options, message):
    assert message in failing(*finetune(tmp_path), *options)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, failing):
    message = failing(*finetune(tmp_path), "--learning-rate", "1e30")
    assert re.match(
        r"the (loss|norm of the gradients) is (nan|inf) in step \d+; no checkpoint was saved", message
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "predict takes either texts or --data FILE"),
        (["a", "--data", "b"], "predict takes either texts or --data FILE"),
        (["a", "b", "c"], "expected one text, or a pair, got 3"),
        ([" "], "text: expected a text, got ' '"),
        (["a", "--batch-size", "0"], "batch_size must be at least 1, got 0"),
        (["a", "--max-length", "41"], "max_length is 41, but the model has 40 positions"),
        (["a", "--max-length", "2"], "max_length must be at least 3, got 2"),
    ],
)
def test_mistakes_of_predict(trained, failing, words, message, capsys):
    capsys.readouterr()
    assert message in failing("predict", trained["classify"] / "run", *words)


def test_models_and_files_that_are_of_another_task(trained, tmp_path, failing, capsys):
    capsys.readouterr()
    message = failing("predict", trained["classify"] / "model", "a")
    assert re.search(
        r"model is a BertForPreTraining, no fine-tuned model; make one with: .* finetune$", message
    )
    message = failing("predict", trained["classify"] / "run", "--data", trained["qa"] / "dev.csv")
    assert message.endswith("is a BertForSequenceClassification")
    message = failing("predict", trained["tag"] / "run", "--data", trained["qa"] / "dev.csv")
    assert "tokens and tags are lists" in message
    assert "expected two texts, a question and a context, got 1" in failing(
        "predict", trained["qa"] / "run", "a"
    )
    assert "expected one text, got 2" in failing("predict", trained["tag"] / "run", "a", "b")
    data = tiny_task.write(tmp_path / "new.csv", [{"text": "mary", "label": "no kind"}])
    message = failing("predict", trained["classify"] / "run", "--data", data)
    assert "new.csv, row 1 (line 2), column 'label': expected one of kind " in message
    message = failing("evaluate", trained["classify"] / "run")
    assert "is of a run of fine-tuning, not of pre-training" in message


def test_a_run_of_pre_training_goes_on_as_such(trained, tmp_path, failing, capsys):
    capsys.readouterr()
    tiny.pretraining(tmp_path / "run").run([].append)
    data = trained["classify"] / "train.csv"
    message = failing(
        "finetune", trained["classify"] / "model", "--data", data, "--output", tmp_path / "run", "--resume"
    )
    assert "is of a run of pre-training, not of fine-tuning" in message
