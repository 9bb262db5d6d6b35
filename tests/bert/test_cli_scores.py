"""The command line where labels are numbers, and `evaluate` of fine-tuned models."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import tiny_task

from minigrad.bert.__main__ import main
from minigrad.bert.examples import NUMBERS, TASKS
from minigrad.training.folders import latest_checkpoint

OPTIONS = ["--epochs", "1", "--batch-size", "8", "--learning-rate", "3e-3", "--max-length", "40"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, Path]:
    """A folder for each task, with examples and a run; tests only read it."""
    folders = {task: tmp_path_factory.mktemp(task) for task in TASKS}
    for task, folder in folders.items():
        tiny_task.pretrained(folder / "model")
        tiny_task.write(folder / "train.jsonl", tiny_task.rows(task, 24))
        tiny_task.write(folder / "dev.jsonl", tiny_task.rows(task, 10, seed=1))
        files = ["--data", str(folder / "train.jsonl"), "--eval", str(folder / "dev.jsonl")]
        command = ["finetune", "--model", str(folder / "model"), *files, "--output", str(folder / "run")]
        with open(folder / "said", "w") as said, contextlib.redirect_stdout(said):
            assert main([*command, *OPTIONS]) == 0
    return folders


@pytest.mark.parametrize("task", NUMBERS)
def test_predictions_of_numbers(trained, task, capsys):
    run, rows = str(trained[task] / "run"), tiny_task.rows(task, 10, seed=1)
    capsys.readouterr()
    assert main(["predict", "--model", run, "--data", str(trained[task] / "dev.jsonl")]) == 0
    out, err = capsys.readouterr()
    found = [json.loads(line) for line in out.splitlines()]
    error = np.sqrt(
        np.mean([(one["label"] - row["label"]) ** 2 for one, row in zip(found, rows, strict=True)])
    )
    assert f"scores: error {error:.4g} (root mean square; the mean alone, " in err
    assert re.search(r"\), Pearson -?[01]\.\d{3}, Spearman -?[01]\.\d{3}\n$", err)
    texts = [rows[0][name] for name in ("text", "text_pair") if name in rows[0]]
    assert main(["predict", "--model", run, *texts]) == 0
    assert capsys.readouterr().out == f"{found[0]['label']:.6g}\n"
    assert main(["info", run]) == 0
    assert f"one number of the task {task}\n" in capsys.readouterr().out


def test_rows_that_are_still_to_be_labelled(trained, tmp_path, capsys):
    data = tmp_path / "new.csv"
    data.write_text("text,label\nmary has a book .,kind 1\nit is old .,\n")
    capsys.readouterr()
    assert main(["predict", "--model", str(trained["classify"] / "run"), "--data", str(data)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err == f"note: some rows of {data} have no label, so there are no scores\n"


def test_that_numbers_are_learned_is_said_unless_it_was_asked_for(trained, tmp_path, capsys):
    folder = trained["regression"]
    command = ["finetune", "--model", str(folder / "model"), "--data", str(folder / "train.jsonl"), *OPTIONS]
    for number, asked in enumerate(([], ["--task", "regression"])):
        assert main([*command, *asked, "--output", str(tmp_path / str(number))]) == 0
        assert ("note: the labels are numbers, and learned as such" in capsys.readouterr().out) == (not asked)


@pytest.mark.parametrize("task", TASKS)
def test_evaluate_says_what_the_run_said(trained, task, capsys):
    """By the same words as at the end of `finetune`, and without a line for each row."""
    data = str(trained[task] / "dev.jsonl")
    capsys.readouterr()
    assert main(["evaluate", "--model", str(trained[task] / "run"), "--data", data]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{data}: ")
    assert out in (trained[task] / "said").read_text()
    assert err == ""


def test_of_questions_without_an_answer_evaluate_says_the_threshold(tmp_path, capsys):
    rows = tiny_task.rows("qa", 12)
    for number, row in enumerate(rows):
        found = [] if number % 3 == 0 else [row.pop("answer")]
        row["answers"] = {"text": found, "answer_start": [row.pop("answer_start")] * len(found)}
        row.pop("answer", None)
    data = str(tiny_task.write(tmp_path / "squad.jsonl", rows))
    model = ["--model", str(tiny_task.pretrained(tmp_path / "model")), "--data", data]
    assert main(["finetune", *model, "--output", str(tmp_path / "run"), *OPTIONS]) == 0
    capsys.readouterr()
    assert main(["evaluate", "--model", str(tmp_path / "run"), "--data", data]) == 0
    out = capsys.readouterr().out
    assert "(the commonest label alone, no answer: 33.3%)" in out
    assert re.search(r"the best F1 there is with predict's --null-threshold -?[\d.]+\n", out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "x.csv", "--corpus", "stories"], "are of running text, and --data of examples"),
        (["--data", "x.csv", "--seed", "1"], "are of running text, and --data of examples"),
        (["--text", "review"], "--task, --text, --pair and --label are of examples, and there is no --data"),
        (["--data", "x.csv"], "x.csv is not there"),
        (["--data", "bare.jsonl"], "row 1 (line 1), column 'label': it is missing; there are text"),
    ],
)
def test_mistakes_of_evaluate(trained, tmp_path, monkeypatch, failing, options, message):
    monkeypatch.chdir(tmp_path)
    tiny_task.write(Path("bare.jsonl"), [{"text": "mary has a book ."}])
    assert message in failing("evaluate", "--model", str(trained["classify"] / "run"), *options)


def test_a_model_of_one_score_that_does_not_say_its_task(trained, tmp_path, failing, capsys):
    model = tmp_path / "model"
    model.mkdir()
    for path in latest_checkpoint(trained["similarity"] / "run").iterdir():
        if path.name not in ("SHA256SUMS", "training.json"):
            (model / path.name).write_bytes(path.read_bytes())
    config = json.loads((model / "config.json").read_text())
    assert (config.pop("finetuning_task"), config["problem_type"]) == ("similarity", "regression")
    (model / "config.json").write_text(json.dumps(config))
    capsys.readouterr()
    assert "with --task regression these are 2 texts, with --task similarity a pair" in failing(
        "predict", "--model", model, "a", "b"
    )
    rows = tiny_task.rows("similarity", 3)
    bare = [{name: row[name] for name in ("text", "text_pair")} for row in rows]
    whole = [{**row, "label": 3} for row in rows]
    for these in (rows, bare, whole):
        data = tiny_task.write(tmp_path / "new.csv", these)
        assert main(["predict", "--model", str(model), "--data", str(data)]) == 0
        out, err = capsys.readouterr()
        assert len(out.splitlines()) == 3
        assert ("scores: error " in err) == ("label" in these[0])
    assert failing("predict", "--model", model, "a", "--task", "classify").endswith(
        f"{model} has learned 'regression' or 'similarity'"
    )
    for problem, labels in (("single_label_classification", 1), ("regression", 2)):
        names = {str(number): f"LABEL_{number}" for number in range(labels)}
        changed = {**config, "problem_type": problem, "id2label": names}
        (model / "config.json").write_text(json.dumps(changed))
        assert f"problem_type is '{problem}', and num_labels {labels}; expected a model that" in failing(
            "predict", "--model", model, "a"
        )


# --- Against transformers --------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("task", NUMBERS)
def test_numbers_are_those_of_transformers(trained, task, tmp_path, capsys):
    """What is trained here opens there with the same answers, and what is saved there opens here."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    checkpoint = latest_checkpoint(trained[task] / "run")
    theirs, report = transformers.BertForSequenceClassification.from_pretrained(
        checkpoint, output_loading_info=True
    )
    assert not any(report.values())
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    texts = [
        [row[name] for row in tiny_task.rows(task, 10, seed=1)]
        for name in ("text", "text_pair")[: 1 + (task == "similarity")]
    ]
    with torch.no_grad():
        batch = tokenizer(*texts, return_tensors="pt", padding=True, truncation=True, max_length=40)
        labels = torch.tensor([row["label"] for row in tiny_task.rows(task, 10, seed=1)])
        expected = theirs.eval()(**batch, labels=labels)
    assert theirs.config.problem_type == "regression"

    def said(folder, *options):
        capsys.readouterr()
        command = ["--model", str(folder), "--data", str(trained[task] / "dev.jsonl"), *options]
        assert main(["predict", *command]) == 0
        out, err = capsys.readouterr()
        return [json.loads(line)["label"] for line in out.splitlines()], err

    numbers, scored = said(checkpoint)
    np.testing.assert_allclose(numbers, expected.logits[:, 0].numpy(), rtol=1e-4, atol=1e-5)
    assert f"scores: error {expected.loss.item() ** 0.5:.4g} " in scored
    del theirs.config.finetuning_task
    theirs.config.problem_type = None  # as it is where nobody has set it
    theirs.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    np.testing.assert_allclose(said(tmp_path, "--max-length", "40")[0], numbers, rtol=1e-6)
