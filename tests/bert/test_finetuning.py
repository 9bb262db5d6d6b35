"""Fine-tuning: that it learns, what its checkpoints hold, and that it goes on bit for bit."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest
import tiny
import tiny_task
from tiny import checkpoints, contents, quietly, table

import processes
from minigrad import backend, random
from minigrad.bert import checkpoint
from minigrad.bert.checkpoint import from_pretrained, read_architecture, read_config, save_pretrained
from minigrad.bert.examples import TASKS, ExampleError
from minigrad.bert.finetuning import Finetuning, default_rate, prepare_finetuning
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.settings import FinetuningArguments
from minigrad.bert.task_predict import MODELS, evaluate_examples, predict_examples
from minigrad.bert.training import FINETUNING
from minigrad.training.folders import RunFolder, latest_checkpoint
from minigrad.training.reading import CheckpointError, ConfigError, read_safetensors
from minigrad.training.state import read_state

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
LAST = "checkpoint-000012"  # 42 examples in batches of 8, twice


# --- Learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "epochs", "accuracy"), [("classify", 4, 0.9), ("tag", 2, 0.95), ("qa", 3, 0.5)]
)
def test_it_learns_from_random_weights(tmp_path, task, epochs, accuracy):
    train = tiny_task.write(tmp_path / "train.jsonl", tiny_task.rows(task, 400))
    dev = tiny_task.write(tmp_path / "dev.jsonl", tiny_task.rows(task, 100, seed=1))
    settings = FinetuningArguments(batch_size=16, max_length=40, epochs=epochs, learning_rate=1e-2)
    model = tiny_task.pretrained(tmp_path / "model")
    run = prepare_finetuning(model, train, settings, tmp_path / "run", evaluation=dev)
    before = evaluate_examples(run.model, run.examples)
    figures = run.run([].append)
    assert figures["accuracy"] > accuracy > before["accuracy"] + 0.15
    assert figures["f1"] > before["f1"] + 0.2
    assert figures["loss"] < before["loss"] - 0.5
    assert [int(row["step"]) for row in table(tmp_path / "run" / "evaluation.csv")] == [
        25 * epoch for epoch in range(1, epochs + 1)
    ]


@pytest.mark.parametrize(("times", "plus"), [(1, 0), (0.01, 0), (1000, 50_000)])
def test_it_learns_a_number(tmp_path, times, plus):
    """In whatever unit: a price, or a probability."""
    train, dev = (
        tiny_task.write(
            tmp_path / f"{name}.jsonl",
            [
                {**row, "label": row["label"] * times + plus}
                for row in tiny_task.rows("regression", count, seed)
            ],
        )
        for name, count, seed in (("train", 400, 0), ("dev", 50, 1))
    )
    settings = FinetuningArguments(batch_size=16, max_length=40, epochs=6, learning_rate=1e-2, keep="best")
    model = tiny_task.pretrained(tmp_path / "model")
    number = {"task": "regression", "evaluation": dev}
    with prepare_finetuning(model, train, settings, tmp_path / "run", **number) as run:
        mean = np.mean([row["label"] for row in run.train.rows])
        assert backend.to_numpy(run.model.classifier.bias.data) == pytest.approx(mean)  # where it begins
        figures = run.run([].append)
    assert figures["error"] == pytest.approx(figures["loss"] ** 0.5)
    assert figures["error"] < run.yardstick.error / 2
    assert min(figures["pearson"], figures["spearman"]) > 0.9
    evaluations = table(tmp_path / "run" / "evaluation.csv")
    assert list(evaluations[0]) == ["step", "loss", "error", "pearson", "spearman"]
    assert run.best["loss"] == pytest.approx(min(float(row["loss"]) for row in evaluations), rel=1e-5)
    assert list(table(tmp_path / "run" / "metrics.csv")[0])[:3] == ["step", "loss", "learning_rate"]
    learned = prepare_finetuning(tmp_path / "run", train, settings, tmp_path / "more", **number)
    assert learned.measure() == pytest.approx(run.best)  # goes on from its numbers
    learned.folder.release()


def test_the_tables_and_what_is_said(tmp_path):
    with tiny_task.run_in(tmp_path) as run:
        lines = quietly(run)
    rows = table(tmp_path / "run" / "metrics.csv")
    assert list(rows[0]) == ["step", "loss", "accuracy", "learning_rate", "grad_norm", "tokens_per_second"]
    assert [int(row["step"]) for row in rows] == [2, 4, 6, 8, 10, 12]
    evaluations = table(tmp_path / "run" / "evaluation.csv")
    assert list(evaluations[0]) == ["step", "loss", "accuracy", "f1"]
    assert [int(row["step"]) for row in evaluations] == [4, 8, 12]
    assert float(evaluations[-1]["loss"]) == pytest.approx(run.evaluation["loss"], rel=1e-5)
    assert [line for line in lines if line.startswith("step 12: held out loss ")]
    # one step of warm-up, a tenth of twelve, from 0; then down
    assert float(rows[0]["learning_rate"]) == pytest.approx(3e-3)


def test_once_an_epoch_is_the_default(tmp_path):
    with tiny_task.run_in(tmp_path, eval_every=0, save_every=0, gradient_accumulation_steps=2) as run:
        assert run.total_steps == 6  # of two batches each
        quietly(run)
    assert [int(row["step"]) for row in table(tmp_path / "run" / "evaluation.csv")] == [3, 6]
    assert checkpoints(tmp_path / "run") == ["checkpoint-000003", "checkpoint-000006"]


@pytest.mark.parametrize("task", TASKS)
def test_frozen_the_new_layer_alone_learns(tmp_path, task):
    with tiny_task.run_in(tmp_path, task, frozen=True, save_every=6) as run:
        quietly(run)
    before = from_pretrained(tmp_path / "model", MODELS[task], run.model.config.id2label).model
    head = [name for name in run.model.state_dict() if not name.startswith("bert.")]
    assert len(head) == 2
    for name, array in run.model.state_dict().items():
        same = (backend.to_numpy(array) == backend.to_numpy(before.state_dict()[name])).all()
        assert same == (name not in head), name
    moments = read_safetensors(latest_checkpoint(tmp_path / "run") / "optimizer.safetensors")
    assert set(moments) == {f"{name}.{i}" for name in head for i in range(2)}
    resumed = tiny_task.run_in(tmp_path, task, resume=True, frozen=True, save_every=6)
    assert resumed.step == 12
    resumed.folder.release()


def test_the_seed_fixes_the_new_layer_and_the_order(tmp_path):
    first = []
    for seed, draws in ((1, 5), (1, 6), (2, 5)):
        if (tmp_path / "model").exists():
            random.manual_seed(draws)  # what was drawn before does not matter
        with tiny_task.run_in(tmp_path, seed=seed) as run:
            first.append(
                (backend.to_numpy(run.model.classifier.weight.data), run.data.next_batch()["labels"])
            )
    for part in range(2):
        assert (first[0][part] == first[1][part]).all()
        assert (first[0][part] != first[2][part]).any()


def test_what_is_cut_is_noted_before_the_run(tmp_path):
    said: list[str] = []
    with tiny_task.run_in(tmp_path, said=said, max_length=20, epochs=1) as run:
        lines = quietly(run)
    for name, count in (("train", 42), ("dev", 10)):
        note = rf"note: (\d+) of {count} rows of .*{name}\.jsonl \(\d+%\) are longer than 20 tokens: their ends are cut"
        assert [line for line in said if re.match(note, line)]
    assert not [line for line in lines if "longer than" in line]  # it was said before anything was trained


@pytest.mark.parametrize(
    ("width", "rate"), [(64, 2e-3), (128, 1.8e-3), (384, 2e-4), (768, 5e-5), (1024, 2.8125e-5)]
)
def test_the_default_rate_is_by_the_width(width, rate):
    assert default_rate(width) == pytest.approx(rate)


def test_the_default_rate_is_that_of_the_run(tmp_path):
    with tiny_task.run_in(tmp_path, learning_rate=0.0, warmup_share=0.0) as run:
        quietly(run)
    rates = [float(row["learning_rate"]) for row in table(tmp_path / "run" / "metrics.csv")]
    assert rates[0] == pytest.approx(default_rate(24) * 11 / 12, rel=1e-5)  # of the second step of twelve


def test_dropout_in_place_of_the_models_own(tmp_path):
    with tiny_task.run_in(tmp_path, dropout=0.25) as run:
        assert run.model.dropout.p == 0.25
        quietly(run)
    config = read_config(latest_checkpoint(tmp_path / "run"))
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.25, 0.25)
    with pytest.raises(CheckpointError, match=r"attention_probs_dropout_prob is 0\.25 there, 0\.1 here"):
        tiny_task.run_in(tmp_path, resume=True)
    with pytest.raises(ConfigError, match=r"hidden_dropout_prob must be below 1, got 1\.5"):
        tiny_task.run_in(tmp_path, resume=True, dropout=1.5)


# --- The best model --------------------------------------------------------------------------------------


def says(monkeypatch, figures: list[tuple[float, float]]) -> None:
    """Let the evaluations of a run give these accuracies and losses, one after the other."""
    told = iter(figures)

    def measure(run):
        accuracy, loss = next(told)
        return {"loss": loss, "accuracy": accuracy, "f1": 0.5}

    monkeypatch.setattr(Finetuning, "measure", measure)


def test_the_best_model_is_kept(tmp_path, monkeypatch):
    says(monkeypatch, [(0.5, 1.0), (0.75, 2.0), (0.75, 1.5), (0.75, 1.5), (0.5, 0.1), (0.5, 0.1)])
    with tiny_task.run_in(tmp_path, keep="best", eval_every=2, save_every=12) as run:
        tiny.before_step(run, 7, lambda: states.append(state_of(run)))
        states: list = []
        quietly(run)
    best = tmp_path / "run" / "checkpoint-best"
    assert latest_checkpoint(tmp_path / "run") == best
    assert read_state(best, FINETUNING).step == 6
    loaded = from_pretrained(best, MODELS["classify"]).model
    for name, array in state_of(type("of", (), {"model": loaded})).items():
        np.testing.assert_array_equal(array, states[0][name])
    assert run.best == {"loss": 1.5, "accuracy": 0.75, "f1": 0.5}
    assert checkpoints(tmp_path / "run") == ["checkpoint-000012", "checkpoint-best"]


def state_of(run) -> dict[str, np.ndarray]:
    return {name: backend.to_numpy(array).copy() for name, array in run.model.state_dict().items()}


def test_a_resumed_run_keeps_the_best_of_all_evaluations(tmp_path, monkeypatch):
    for name, stops in (("whole", False), ("cut", True)):
        (tmp_path / name).mkdir()
        says(monkeypatch, [(0.5, 1.0), (0.9, 1.0), (0.6, 1.0)])
        options = {"keep": "best", "eval_every": 4}
        with tiny_task.run_in(tmp_path / name, **options) as run:
            if stops:
                tiny.before_step(run, 9, lambda: os.kill(os.getpid(), signal.SIGINT))
            quietly(run)
        if stops:
            says(monkeypatch, [(0.6, 1.0)])
            with tiny_task.run_in(tmp_path / name, resume=True, **options) as run:
                quietly(run)
        assert run.best["accuracy"] == 0.9
    best = tmp_path / "whole" / "run" / "checkpoint-best", tmp_path / "cut" / "run" / "checkpoint-best"
    assert contents(best[0]) == contents(best[1])
    assert read_state(best[0], FINETUNING).step == 8


def test_a_best_model_of_a_step_that_comes_again_is_no_yardstick(tmp_path, monkeypatch):
    """The run is killed between the save of a best model and that of the step: its step is made again."""
    says(monkeypatch, [(0.9, 1.0)])
    with tiny_task.run_in(tmp_path, keep="best", eval_every=4, save_every=3) as run:
        tiny.before_step(run, 5, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            quietly(run)
    assert checkpoints(tmp_path / "run") == ["checkpoint-000003", "checkpoint-best"]
    says(monkeypatch, [(0.6, 1.0), (0.5, 1.0), (0.5, 1.0)])
    with tiny_task.run_in(tmp_path, resume=True, keep="best", eval_every=4, save_every=3) as run:
        quietly(run)
    assert run.best["accuracy"] == 0.6


def test_a_kill_between_the_two_names_of_the_best_model(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save_best({"config.json": b"first"})
    os.rename(tmp_path / "checkpoint-best", tmp_path / "checkpoint-best.old")
    (tmp_path / "checkpoint-best.partial").mkdir()
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-best"]
    assert (tmp_path / "checkpoint-best" / "config.json").read_bytes() == b"first"
    folder.save_best({"config.json": b"second"})
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-best"]


def test_the_best_model_needs_an_evaluation(tmp_path):
    model, train = tiny_task.pretrained(tmp_path / "model"), tmp_path / "train.jsonl"
    tiny_task.write(train, tiny_task.rows("classify", 10))
    settings = FinetuningArguments(max_length=40, keep="best")
    with pytest.raises(
        ValueError, match="keep is 'best', but there are no examples to evaluate the model on"
    ):
        prepare_finetuning(model, train, settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- What is cut off -------------------------------------------------------------------------------------


def test_a_score_is_of_all_rows_also_of_those_that_were_cut_off(tmp_path):
    """At 12 tokens most words are beyond reach."""
    with tiny_task.run_in(tmp_path, "tag", epochs=1, max_length=12) as run:
        figures = run.run([].append)
    rows = tiny_task.rows("tag", 10, seed=1)
    assert run.examples.rows == rows
    predictions = list(predict_examples(run.model, run.examples))
    assert len(predictions) == 10
    pairs = [
        pair
        for row, one in zip(rows, predictions, strict=True)
        for pair in zip(row["tags"], one["tags"], strict=True)
    ]
    assert figures["accuracy"] == pytest.approx(np.mean([gold == found for gold, found in pairs]))
    assert None in predictions[0]["tags"]
    assert np.isfinite(figures["loss"])


# --- Checkpoints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_the_checkpoint_is_the_model_and_names_the_classes(tmp_path, task):
    with tiny_task.run_in(tmp_path, task) as run:
        figures = run.run([].append)
    checkpoint = latest_checkpoint(tmp_path / "run")
    assert read_architecture(checkpoint) == type(run.model).__name__
    assert sorted(contents(checkpoint)) == [
        "SHA256SUMS",
        "config.json",
        "model.safetensors",
        "optimizer.safetensors",
        "tokenizer_config.json",
        "training.json",
        "vocab.txt",
    ]
    loaded = from_pretrained(checkpoint, MODELS[task])
    assert loaded.notes == []
    expected = {
        "classify": {f"kind {number}" for number in range(6)},
        "pairs": {"next", "other"},
        "regression": {"LABEL_0"},
        "similarity": {"LABEL_0"},
        "qa": {"LABEL_0", "LABEL_1"},
        "tag": {"B-person", "B-thing", "O"},
    }
    assert set(loaded.model.config.id2label.values()) <= expected[task]
    assert evaluate_examples(loaded.model, run.examples, 8) == figures


# --- Resuming --------------------------------------------------------------------------------------------

RUN = """
import sys
from pathlib import Path
import tiny, tiny_task
folder, what = sys.argv[1:]
run = tiny_task.run_in(Path(folder), "qa", resume=what == "resume", gradient_accumulation_steps=2, epochs=4)

if what == "kill":  # between two gradients
    tiny.kill_at(run, 7, run.data, "next_batch", 2)
run.run()
"""


@posix
def test_a_killed_run_goes_on_bit_for_bit(tmp_path):
    """Dropout is on, gradients are accumulated, and the epoch changes on the way."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    done = processes.run_python(RUN, whole, "whole")
    assert done.returncode == 0, done.stderr
    assert processes.run_python(RUN, cut, "kill").returncode == -signal.SIGKILL
    assert checkpoints(cut / "run") == ["checkpoint-000003", "checkpoint-000006"]
    done = processes.run_python(RUN, cut, "resume")
    assert done.returncode == 0, done.stderr
    assert checkpoints(cut / "run") == checkpoints(whole / "run")
    tiny.assert_same_run(cut / "run", whole / "run", checkpoints(whole / "run")[-1])


def test_another_run_is_not_resumed(tmp_path):
    with tiny_task.run_in(tmp_path) as run:
        quietly(run)
    with pytest.raises(CheckpointError, match=r"holds a run already \(checkpoint-000012\)"):
        tiny_task.run_in(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"these differ: batch_size is 8 there, 9 here; .*epochs is 2 there, 3 here"
    ):
        tiny_task.run_in(tmp_path, resume=True, batch_size=9, epochs=3)
    tiny_task.write(tmp_path / "dev.jsonl", tiny_task.rows("classify", 10, seed=2))
    with pytest.raises(CheckpointError, match="these differ: the held-out text"):
        tiny_task.run_in(tmp_path, resume=True)
    tiny_task.write(tmp_path / "train.jsonl", tiny_task.rows("classify", 41))
    with pytest.raises(CheckpointError, match="these differ: the text"):
        tiny_task.run_in(tmp_path, resume=True)
    renamed = [{**row, "label": row["label"].upper()} for row in tiny_task.rows("classify", 42)]
    tiny_task.write(tmp_path / "train.jsonl", renamed)
    tiny_task.write(tmp_path / "dev.jsonl", renamed[:10])
    with pytest.raises(
        CheckpointError, match=r"these differ: id2label is {.*'kind 0'.*} there, {.*'KIND 0'.*} here"
    ):
        tiny_task.run_in(tmp_path, resume=True)
    other = BertForPreTraining(tiny_task.CONFIG.replace(intermediate_size=32))
    save_pretrained(other, tmp_path / "model", run.tokenizer)
    with pytest.raises(CheckpointError, match="intermediate_size is 48 there, 32 here"):
        tiny_task.run_in(tmp_path, resume=True)
    assert checkpoints(tmp_path / "run")[-1] == LAST


def test_runs_of_two_kinds_are_told_apart(tmp_path):
    """Nothing is said of an older checkpoint, which is of the same kind."""
    tiny.pretraining(tmp_path / "run").run([].append)
    assert len(checkpoints(tmp_path / "run")) == 2
    with pytest.raises(
        CheckpointError, match=r"training\.json is of a run of pre-training, not of fine-tuning$"
    ):
        tiny_task.run_in(tmp_path, resume=True)
    (tmp_path / "other").mkdir()
    with tiny_task.run_in(tmp_path / "other") as run:
        quietly(run)
    with pytest.raises(
        CheckpointError, match=r"training\.json is of a run of fine-tuning, not of pre-training$"
    ):
        tiny.pretraining(tmp_path / "other" / "run", resume=True)
    assert read_state(tmp_path / "other" / "run" / LAST, FINETUNING).step == 12


# --- What does not do ------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_before_anything_is_trained(tmp_path):
    bad = [*tiny_task.rows("classify", 5), {"text": "mary", "label": ""}]
    tiny_task.pretrained(tmp_path / "model")
    tiny_task.write(tmp_path / "train.jsonl", bad)
    tiny_task.write(tmp_path / "dev.jsonl", bad[:5])
    with pytest.raises(
        ExampleError, match=r"train\.jsonl, row 6 \(line 6\), column 'label': expected a text or an int"
    ):
        tiny_task.run_in(tmp_path)
    tiny_task.write(tmp_path / "train.jsonl", bad[:5])
    tiny_task.write(tmp_path / "dev.jsonl", [bad[0], {"text": "mary", "label": "new"}])
    with pytest.raises(
        ExampleError, match=r"dev\.jsonl, row 2 \(line 2\), column 'label': expected one of kind"
    ):
        tiny_task.run_in(tmp_path)
    assert not (tmp_path / "run").exists()


def test_models_that_do_not_do(tmp_path):
    with pytest.raises(ValueError, match="max_length is 41, but the model has 40 positions"):
        tiny_task.run_in(tmp_path, max_length=41)
    (tmp_path / "model" / "SHA256SUMS").unlink()
    config = tmp_path / "model" / "config.json"
    text = config.read_text()
    config.write_text(text.replace('"type_vocab_size": 2', '"type_vocab_size": 1'))
    tiny_task.write(tmp_path / "train.jsonl", tiny_task.rows("pairs", 5))
    tiny_task.write(tmp_path / "dev.jsonl", tiny_task.rows("pairs", 5))
    with pytest.raises(ValueError, match="pairs: the model knows one kind of segment only"):
        tiny_task.run_in(tmp_path)
    config.write_text(text)
    (tmp_path / "model" / "vocab.txt").unlink()
    with pytest.raises(CheckpointError, match=r"has no vocab\.txt, which fine-tuning needs"):
        tiny_task.run_in(tmp_path)
    assert not (tmp_path / "run").exists()


def test_labels_that_no_checkpoint_could_hold_are_refused_before_the_training(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGEST_FILE", 2000)
    rows = [{"text": "mary", "label": f"a long label with the number {number}"} for number in range(42)]
    tiny_task.pretrained(tmp_path / "model")
    for name in ("train", "dev"):
        tiny_task.write(tmp_path / f"{name}.jsonl", rows)
    message = r"its 42 labels make a config\.json of 0 MB, and one of more than 0 MB is not read again"
    with pytest.raises(ConfigError, match=message):
        tiny_task.run_in(tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_resumed_with_a_layer_that_was_never_trained(tmp_path):
    with tiny_task.run_in(tmp_path) as run:
        quietly(run)
    tiny_task.remove_weights(tmp_path / "run" / LAST, "classifier.weight")
    with pytest.raises(CheckpointError, match=r"weights are missing: classifier\.weight"):
        tiny_task.run_in(tmp_path, resume=True)


def test_settings():
    with pytest.raises(ValueError, match=r"warmup_share must be within 0 … 1, got 1\.5"):
        FinetuningArguments(warmup_share=1.5)
    with pytest.raises(ValueError, match="frozen must be true or false, got 1"):
        FinetuningArguments(frozen=1)
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        FinetuningArguments(epochs=0)
