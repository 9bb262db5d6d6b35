"""The command line of fine-tuning: from a file of examples to predictions, and one line for each mistake."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
import tiny_task
from tiny import checkpoints, contents

from minigrad.bert.__main__ import main
from minigrad.bert.finetuning import Finetuning
from minigrad.bert.options import finetuning_settings_in, parse
from minigrad.bert.settings import FinetuningArguments
from minigrad.distributed import World
from minigrad.training.folders import latest_checkpoint

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
    return ["finetune", "--model", str(folder / "model"), *files, *OPTIONS, *more]


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
    out, err = capsys.readouterr()
    for line in (
        r"note: not in the checkpoint, left as initialised: classifier\.weight, classifier\.bias",
        r"note: in the checkpoint, not used: cls\..* and 2 more",
        r"classify \(text, label\): 42 examples in .*train\.csv; 10 in .*dev\.csv",
        r"\d labels: kind \d \d+(, kind \d \d+)+",
        r"([\d,]+) parameters, \1 of them trained; 12 steps of 8 examples, at a learning rate of up to 3\.0e-03, to ",
        r"trained to step 12 in \d+ s",
        r".*dev\.csv: loss \d\.\d{3}, accuracy \d+\.\d% \(the commonest label alone, kind \d: \d+\.\d%\), macro F1 .*%",
        r"label, given as( +kind \d)+ +F1",
        r"saved in .*run.checkpoint-000012; all losses are in .*run.metrics\.csv",
    ):
        assert re.search(f"^{line}", out, re.MULTILINE), line
    each = r"^step 6: held out loss .*, accuracy .*% \(the commonest label alone, kind \d: \d+\.\d%\), macro F1 .*%$"
    assert re.search(each, err, re.MULTILINE)
    command = shlex.split(out.partition("Your turn:\n")[2])
    assert command[1:4] == ["-m", "minigrad.bert", "predict"]
    assert main(command[3:]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 10
    assert re.match(
        r"scores: accuracy \d+\.\d% \(the commonest .*\), macro F1 \d+\.\d%\nlabel, given as .* F1\n", err
    )


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
    last = "checkpoint-000012"
    assert contents(tmp_path / "cut" / last) == contents(tmp_path / "run" / last)


def test_finetune_without_an_evaluation_and_with_frozen_encoder(tmp_path, capsys):
    command = finetune(tmp_path)
    at = command.index("--eval")
    assert main([*command[:at], *command[at + 2 :], "--frozen"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"[\d,]+ parameters, \d\d\d of them trained", out)
    assert not (tmp_path / "run" / "evaluation.csv").exists()


def test_without_a_model_that_of_the_course_is_taken(tmp_path, monkeypatch, capsys):
    command = finetune(tmp_path)
    monkeypatch.setattr("minigrad.bert.loading.trained_model", lambda: tmp_path / "model")
    assert main(["finetune", *command[3:]]) == 0
    assert "no model is named: this is the one that came with minigrad" in capsys.readouterr().err


def test_there_is_an_option_for_each_setting(capsys):
    settings = finetuning_settings_in(parse(["finetune", "--data", "x"]), 512)
    assert settings == FinetuningArguments()
    assert finetuning_settings_in(parse(["finetune", "--data", "x"]), 64).max_length == 64
    given = parse(["finetune", "--data", "x", "--max-length", "99", "--frozen", "--warmup-share", "0"])
    assert finetuning_settings_in(given, 64) == FinetuningArguments(
        max_length=99, frozen=True, warmup_share=0
    )


# --- predict ---------------------------------------------------------------------------------------------


def test_the_best_model_is_the_one_that_predicts(tmp_path, capsys):
    assert main([*finetune(tmp_path), "--keep", "best", "--eval-every", "3", "--dropout", "0.2"]) == 0
    out, err = capsys.readouterr()
    best = max(float(share) for share in re.findall(r"held out loss .*accuracy (\d+\.\d)%", err))
    assert re.search(rf"dev\.csv: loss .*accuracy {best}% ", out.partition("trained to step")[2])
    assert f"saved in {tmp_path / 'run' / 'checkpoint-best'};" in out
    assert main(["predict", "--model", str(tmp_path / "run"), "--data", str(tmp_path / "dev.csv")]) == 0
    assert f"scores: accuracy {best}% " in capsys.readouterr().err


def test_a_model_that_has_learned_nothing_is_called_so(tmp_path, capsys):
    assert main([*finetune(tmp_path), "--learning-rate", "1e-9"]) == 0
    out = capsys.readouterr().out
    accuracy, commonest = re.findall(
        r"accuracy (\d+\.\d)% \(the commonest label alone, kind \d: (\d+\.\d)%", out
    )[-1]
    assert float(accuracy) <= float(commonest)
    assert "\nThis is no better than the label kind " in out


def test_what_stands_out_in_the_files_is_said_before_the_training(trained, tmp_path, capsys):
    command = [*finetune(tmp_path), "--model", str(trained["classify"] / "run")]
    assert main([*command, "--eval", str(tmp_path / "train.csv")]) == 0
    before, _, _ = capsys.readouterr().out.partition("parameters, ")
    assert "note: 42 of the 42 rows of " in before


@pytest.mark.parametrize("command", ["evaluate", "fill-mask", "predict", "finetune", "info"])
def test_one_process_alone_does_what_none_can_share(monkeypatch, failing, command):
    monkeypatch.setattr("minigrad.training.command_line.from_environment", lambda: TwoProcesses())
    rest = {"evaluate": [], "info": ["base"], "finetune": ["--data", "x.csv"]}.get(command, ["a text"])
    rest += ["--model", "x"] if command == "predict" else []
    message = f"{command} runs in one process, not in 2: only pretrain shares its work"
    assert failing(command, *rest) == message


class TwoProcesses(World):
    size = 2


@pytest.mark.parametrize("task", ENDING)
def test_predictions_for_a_file(trained, task, capsys):
    dev = trained[task] / f"dev.{ENDING[task]}"
    capsys.readouterr()
    assert main(["predict", "--model", str(trained[task] / "run"), "--data", str(dev)]) == 0
    out, err = capsys.readouterr()
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["row"] for one in found] == list(range(1, 11))
    rows = tiny_task.rows(task, 10, seed=1)
    if task in ("classify", "pairs"):
        assert all(one["probability"] == max(one["probabilities"].values()) for one in found)
        assert all(sum(one["probabilities"].values()) == pytest.approx(1) for one in found)
        right = sum(one["label"] == row["label"] for one, row in zip(found, rows, strict=True))
        assert f"accuracy {right / 10:.1%} (the commonest label alone, " in err
    elif task == "qa":
        for one, row in zip(found, rows, strict=True):
            start = one["answer_start"]
            assert row["context"][start : start + len(one["answer"])] == one["answer"] != ""
            assert 0 < one["probability"] <= 1
        assert err.startswith("scores: exact match ")
    else:
        assert [len(one["tags"]) for one in found] == [len(row["tokens"]) for row in rows]
        assert {tag for one in found for tag in one["tags"]} <= {"B-person", "B-thing", "O"}


def test_questions_of_which_some_have_no_answer(tmp_path, capsys):
    rows = tiny_task.rows("qa", 20)
    for number, row in enumerate(rows):
        found = [] if number % 3 == 0 else [row["answer"]]
        row["answers"] = {"text": found, "answer_start": [row["answer_start"]] * len(found)}
        del row["answer"], row["answer_start"]
    data, model = tiny_task.write(tmp_path / "squad.jsonl", rows), tiny_task.pretrained(tmp_path / "model")
    files = [
        "--model",
        str(model),
        "--data",
        str(data),
        "--eval",
        str(data),
        "--output",
        str(tmp_path / "run"),
    ]
    assert main(["finetune", *files, *OPTIONS]) == 0
    out = capsys.readouterr().out
    assert "exact match" in out
    assert "(the commonest label alone, no answer: 35.0%)" in out
    assert re.search(r"the best F1 there is with predict's --null-threshold -?[\d.]+$", out, re.MULTILINE)

    def answers(*options):
        assert main(["predict", "--model", str(tmp_path / "run"), "--data", str(data), *options]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    learned, never = answers(), answers("--null-threshold", "inf")
    assert [one["answer"] == "" for one in learned] == [one["null_score_diff"] > 0 for one in learned]
    assert all(one["answer"] and one["answer_start"] is not None for one in never)
    assert [one["null_score_diff"] for one in never] == [one["null_score_diff"] for one in learned]
    assert {one["answer"] for one in answers("--null-threshold=-1e9")} == {""}
    assert (
        main(["predict", "--model", str(tmp_path / "run"), "--data", str(data), "--null-threshold", "nan"])
        == 1
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--null-threshold", "1"],
            "--null-threshold is for questions, and the model has learned 'classify'",
        ),
        (["--text", "review"], "--text, --pair and --label name columns of a file, and there is none"),
    ],
)
def test_options_of_a_file_or_of_questions_alone(trained, failing, options, message):
    assert failing("predict", "--model", str(trained["classify"] / "run"), "a text", *options) == message


@pytest.mark.parametrize("task", ENDING)
def test_info_of_a_fine_tuned_model(trained, task, capsys):
    capsys.readouterr()
    assert main(["info", str(trained[task] / "run"), "--max-length", "24"]) == 0
    out = capsys.readouterr().out
    assert (f"classes of the task {task}: " in out) == (task != "qa")
    assert "note: " not in out


def test_a_table_with_names_of_its_own(trained, tmp_path, capsys):
    rows = [f"{row['text']};{row['label']}" for row in tiny_task.rows("classify", 10, seed=1)]
    own = tmp_path / "reviews.csv"
    own.write_text("\n".join(["review;stars", *rows]), encoding="utf-8")
    model = ["--model", str(trained["classify"] / "run")]
    said = []
    for data in ([str(trained["classify"] / "dev.csv")], [str(own), "--text", "review", "--label", "stars"]):
        capsys.readouterr()
        assert main(["predict", *model, "--data", *data]) == 0
        said.append(capsys.readouterr())
    assert said[0] == said[1]
    assert "accuracy" in said[0].err


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_a_line_of_json_is_json_wherever_it_goes(trained, encoding, tmp_path, monkeypatch):
    """A file of Windows is in cp1252, which has no sign for a smile."""
    (tmp_path / "data.csv").write_text("id,text\n😀é,mary has a book .\n", encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr("sys.stdout", out)
    run = str(trained["classify"] / "run")
    assert main(["predict", "--model", run, "--data", str(tmp_path / "data.csv")]) == 0
    out.flush()
    (line,) = out.buffer.getvalue().decode(encoding).splitlines()
    assert json.loads(line)["id"] == "😀é"
    assert ("\\u" in line) == (encoding != "utf-8")


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
    assert main(["predict", "--model", model, *texts]) == 0
    first, err = capsys.readouterr()
    assert re.fullmatch(expected, first)
    assert err == ""
    # An option between the model and the texts
    assert main(["predict", "--model", model, "--batch-size", "1", *texts]) == 0
    assert capsys.readouterr().out == first


def test_what_is_cut_is_noted(trained, tmp_path, capsys):
    run = str(trained["tag"] / "run")
    data = tiny_task.write(tmp_path / "new.jsonl", [{"tokens": ["mary", "has", "four", "books", "."]}])
    capsys.readouterr()
    assert main(["predict", "--model", run, "--data", str(data), "--max-length", "5"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["tags"][3:] == [None, None]
    cut = "(100%) are longer than 5 tokens: their ends are cut off\n"
    assert err == f"note: 1 of 1 rows of {data} {cut}"
    assert main(["predict", "--model", run, "--max-length", "5", "mary has four books ."]) == 0
    assert capsys.readouterr().err == f"note: 1 of 1 rows of your text {cut}"


def test_several_texts_are_several_texts(trained, capsys):
    """A model that has learned single texts never takes two of them for a pair."""
    texts = ["mary has a book .", "john has four cups .", "it is old ."]
    for task in ("classify", "tag"):
        run = str(trained[task] / "run")
        capsys.readouterr()
        assert main(["predict", "--model", run, *texts]) == 0
        together = capsys.readouterr().out
        assert main(["predict", "--model", run, *texts[:2]]) == 0
        assert together.startswith(capsys.readouterr().out)
        for text in texts:
            assert main(["predict", "--model", run, text]) == 0
        assert capsys.readouterr().out == together


def test_a_model_of_single_texts_reads_single_texts_of_a_file(trained, tmp_path, capsys):
    rows = tiny_task.rows("classify", 4)
    data = tiny_task.write(
        tmp_path / "new.csv", [{"text": row["text"], "text_pair": "it is old ."} for row in rows]
    )
    single = tiny_task.write(tmp_path / "single.csv", [{"text": row["text"]} for row in rows])
    run = str(trained["classify"] / "run")
    capsys.readouterr()
    assert main(["predict", "--model", run, "--data", str(data)]) == 0
    out, err = capsys.readouterr()
    assert err == f"note: the model has learned single texts: the column text_pair of {data} is not read\n"
    assert main(["predict", "--model", run, "--data", str(single)]) == 0
    assert capsys.readouterr() == (out, "")


def copied(run: Path, folder: Path) -> Path:
    """The checkpoint of a run, without sums, to be changed."""
    shutil.copytree(latest_checkpoint(run), folder)
    (folder / "SHA256SUMS").unlink()
    return folder


def test_a_model_from_elsewhere_that_does_not_say_its_task(trained, tmp_path, failing, capsys):
    model = copied(trained["pairs"] / "run", tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    assert config.pop("finetuning_task") == "pairs"
    (model / "config.json").write_text(json.dumps(config))
    capsys.readouterr()
    assert failing("predict", "--model", model, "a", "b") == (
        f"{model} does not say what it has learned: with --task classify these are 2 texts, with --task pairs a pair"
    )
    for task, lines in (("classify", 2), ("pairs", 1)):
        assert main(["predict", "--model", str(model), "a", "b", "--task", task]) == 0
        assert len(capsys.readouterr().out.splitlines()) == lines
    assert main(["predict", "--model", str(model), "a"]) == 0
    dev = trained["pairs"] / "dev.csv"
    capsys.readouterr()
    assert main(["predict", "--model", str(model), "--data", str(dev)]) == 0
    read_as_pairs = capsys.readouterr().out
    assert main(["predict", "--model", str(trained["pairs"] / "run"), "--data", str(dev)]) == 0
    assert capsys.readouterr().out == read_as_pairs


@pytest.mark.parametrize(
    ("task", "weights"),
    [
        ("classify", ["classifier.weight", "classifier.bias"]),
        ("pairs", ["classifier.bias"]),
        ("pairs", ["bert.pooler.dense.weight"]),
        ("tag", ["classifier.weight"]),
        ("qa", ["qa_outputs.weight", "qa_outputs.bias"]),
    ],
)
def test_a_model_without_its_layer_predicts_nothing(trained, tmp_path, failing, task, weights):
    model = copied(trained[task] / "run", tmp_path / "model")
    tiny_task.remove_weights(model, *weights)
    texts = ["a", "b"] if task in ("pairs", "qa") else ["a"]
    assert failing("predict", "--model", model, *texts).endswith(
        f"{len(weights)} weights are missing: {', '.join(weights)}"
    )


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_scores_that_mean_something_else_are_not_read_as_labels(trained, tmp_path, failing, problem):
    model = copied(trained["classify"] / "run", tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "problem_type": problem}))
    expected = "expected a model that gives a text one label, or one number"
    assert f"problem_type is '{problem}', and num_labels {len(config['id2label'])}; {expected}" in failing(
        "predict", "--model", model, "a"
    )


@pytest.mark.parametrize("task", ["qa", "tag"])
def test_predictions_are_the_same_with_and_without_the_answers(trained, tmp_path, task, capsys):
    """Also at a length that cuts them off: row n of what is printed is row n of the file."""
    rows = [
        {"id": f"row {number}", **row} for number, row in enumerate(tiny_task.rows(task, 10, seed=1), start=1)
    ]
    given = ("id", "question", "context", "tokens")
    bare = [{name: value for name, value in row.items() if name in given} for row in rows]
    files = [
        tiny_task.write(tmp_path / f"{name}.jsonl", these) for name, these in (("gold", rows), ("bare", bare))
    ]
    printed = []
    for file in files:
        capsys.readouterr()
        assert (
            main(["predict", "--model", str(trained[task] / "run"), "--data", str(file), "--max-length", "9"])
            == 0
        )
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out
    found = [json.loads(line) for line in printed[0].out.splitlines()]
    assert [(one["row"], one["id"]) for one in found] == [
        (number, f"row {number}") for number in range(1, 11)
    ]
    text = "tokens" if task == "tag" else "question"
    assert [one[text] for one in found] == [row[text] for row in rows]
    assert not any("context" in one for one in found)  # it is long, and in the file
    assert "scores: " in printed[0].err
    assert "scores" not in printed[1].err


@pytest.mark.parametrize("task", ["qa", "tag"])
def test_a_file_of_which_every_answer_is_cut_off_gets_predictions_too(trained, tmp_path, task, capsys):
    """There would be nothing to learn from it, but much to be wrong in."""
    context = "mary has it . " * 20
    question = {"question": "who ?", "context": context, "answer": context.strip(), "answer_start": 0}
    tagged = {"tokens": ["." * 20], "tags": ["O"]}
    data = tiny_task.write(tmp_path / "new.jsonl", [question if task == "qa" else tagged] * 3)
    capsys.readouterr()
    assert (
        main(["predict", "--model", str(trained[task] / "run"), "--data", str(data), "--max-length", "9"])
        == 0
    )
    out, err = capsys.readouterr()
    assert [json.loads(line)["row"] for line in out.splitlines()] == [1, 2, 3]
    assert re.search(r"^scores: (exact match|accuracy) 0\.0%", err, re.MULTILINE)


# --- Mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-length", "41"], "max_length is 41, but the model has 40 positions"),
        (["--data", "nowhere.csv"], "nowhere.csv is not there"),
        (["--task", "pairs"], "train.csv, row 1 (line 2), column 'text_pair': it is missing; there are text, label"),
        (["--task", "tag"], "tokens and tags are lists, which a table has not"),
        (["--output", ""], "the name of the run's folder is empty"),
    ],
)  # fmt: skip
def test_mistakes_of_finetune(tmp_path, failing, options, message):
    assert message in failing(*finetune(tmp_path), *options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "predict takes either texts or --data FILE"),
        (["a", "--data", "b"], "predict takes either texts or --data FILE"),
        (["a", "--task", "pairs"], "checkpoint-000012 has learned 'classify'"),
        (["a\udcff"], r"text: expected a text, got 'a\udcff'"),
        ([" "], "text: expected a text, got ' '"),
        (["a", "--batch-size", "0"], "batch_size must be at least 1, got 0"),
        (["a", "--max-length", "41"], "max_length is 41, but the model has 40 positions"),
        (["a", "--max-length", "2"], "max_length must be at least 3, got 2"),
    ],
)
def test_mistakes_of_predict(trained, failing, words, message, capsys):
    capsys.readouterr()
    assert message in failing("predict", "--model", trained["classify"] / "run", *words)


def test_models_and_files_that_are_of_another_task(trained, tmp_path, failing, capsys):
    capsys.readouterr()
    message = failing("predict", "--model", trained["classify"] / "model", "a")
    assert re.search(
        r"model is a BertForPreTraining, no fine-tuned model; make one with: .* finetune$", message
    )
    message = failing("predict", "--model", trained["classify"] / "run", "--data", trained["qa"] / "dev.csv")
    assert "column 'text': it is missing; there are question, context" in message
    message = failing("predict", "--model", trained["tag"] / "run", "--data", trained["qa"] / "dev.csv")
    assert "tokens and tags are lists" in message
    assert "qa reads two texts, question and context; got 1" in failing(
        "predict", "--model", trained["qa"] / "run", "a"
    )
    assert "pairs reads two texts, text and text_pair; got 3" in failing(
        "predict", "--model", trained["pairs"] / "run", *"abc"
    )
    data = tiny_task.write(tmp_path / "new.csv", [{"text": "mary", "label": "no kind"}])
    message = failing("predict", "--model", trained["classify"] / "run", "--data", data)
    assert "new.csv, row 1 (line 2), column 'label': expected one of kind " in message
    message = failing("predict", "--model", trained["pairs"] / "run", "--data", data)
    assert "row 1 (line 2), column 'text_pair': it is missing; there are text" in message
    message = failing("evaluate", "--model", trained["classify"] / "run")
    assert message.endswith(
        "is of a run of fine-tuning, not of pre-training; a fine-tuned model is scored on a file: --data FILE"
    )
