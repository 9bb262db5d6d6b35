"""The training loop: that it learns, that it counts right, and that nothing stops it from going on bit for bit."""

from __future__ import annotations

import csv
import dataclasses
import errno
import gc
import io
import json
import math
import os
import re
import shutil
import signal
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import processes
import pytest
import tiny
from safetensors.numpy import load_file, save_file

from minigrad import backend, random
from minigrad.bert import pretraining as module
from minigrad.bert import progress as progress_module
from minigrad.bert import runs
from minigrad.bert.checkpoint import CheckpointError, from_pretrained
from minigrad.bert.corpus import unigram_entropy
from minigrad.bert.data import IGNORED, PretrainingData, SentencePair, make_batch
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.pretraining import (
    DivergenceError,
    PretrainingArguments,
    Tally,
    evaluate,
    latest_checkpoint,
    parameter_groups,
    read_state,
)
from minigrad.bert.progress import Progress
from minigrad.bert.reading import checksums
from minigrad.files import SaveError

METRICS = [
    "step",
    "loss",
    "mlm_loss",
    "mlm_accuracy",
    "nsp_loss",
    "nsp_accuracy",
    "learning_rate",
    "grad_norm",
    "tokens_per_second",
]
posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX")


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def without_speed(path: Path) -> list[dict[str, str]]:
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in table(path)]


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("checkpoint-*"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def before_step(run, number: int, action) -> None:
    """Let a run do something else before it makes this step."""
    train_step = run.train_step

    def step(tally):
        if run.step == number - 1:
            action()
        return train_step(tally)

    run.train_step = step


def quietly(run) -> list[str]:
    """Run, and return what it reported."""
    lines: list[str] = []
    run.run(lines.append)
    return lines


def changed(**changes) -> PretrainingArguments:
    return dataclasses.replace(tiny.ARGUMENTS, **changes)


# --- Settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps must be at least 1"),
        ({"log_every": 0}, "log_every must be at least 1"),
        ({"eval_every": -1}, "eval_every must be at least 1"),
        ({"save_every": 0}, "save_every must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive and finite, got 0.0"),
        ({"learning_rate": math.nan}, "learning_rate must be positive and finite, got nan"),
        ({"max_grad_norm": -1.0}, "max_grad_norm must be positive"),
        ({"learning_rate": math.inf}, "learning_rate must be positive and finite, got inf"),
        ({"max_grad_norm": 10**400}, "max_grad_norm must be positive and finite, got 10000"),
        ({"batch_size": 2**63}, "batch_size must be below 2\\^63, got 9223372036854775808"),
        ({"seed": -1}, "seed must be at least 0 and below 2\\^63, got -1"),
        ({"seed": 2**63}, "seed must be at least 0 and below 2\\^63"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0 and finite, got -0.1"),
        ({"weight_decay": math.nan}, "weight_decay must be at least 0 and finite"),
        ({"weight_decay": math.inf}, "weight_decay must be at least 0 and finite"),
        ({"steps": 5, "warmup_steps": 6}, "warmup_steps must be within 0 … steps = 5, got 6"),
        ({"warmup_steps": -1}, "warmup_steps must be within 0"),
        ({"precision": "half"}, "precision must be one of float32, bfloat16, float16, got 'half'"),
    ],
)
def test_arguments_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        PretrainingArguments(**{"steps": 10, "warmup_steps": 2, **changes})


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (changed(max_length=17), {}, "max_length is 17, but the model has 16 positions"),
        (changed(max_length=4), {}, "max_length must be at least 5"),
        (
            tiny.ARGUMENTS,
            {"config": tiny.CONFIG.replace(vocab_size=68)},
            "the vocabulary has 69 pieces, the model only 68",
        ),
        (
            tiny.ARGUMENTS,
            {"config": tiny.CONFIG.replace(type_vocab_size=1)},
            "type_vocab_size must be at least 2",
        ),
    ],
)
def test_settings_that_do_not_fit_together(tmp_path, arguments, changes, message):
    with pytest.raises(ValueError, match=message):
        tiny.pretraining(tmp_path, arguments, **changes)


def test_adamw_has_the_released_settings(tmp_path):
    """`optimization.py` of the released code: ε is 1e-6, where PyTorch's default is 1e-8."""
    run = tiny.pretraining(tmp_path, changed(learning_rate=3e-3, weight_decay=0.07, warmup_steps=0))
    for group, decay in zip(run.optimizer.groups, (0.07, 0.0), strict=True):
        assert {name: group[name] for name in ("lr", "betas", "eps", "weight_decay")} == {
            "lr": 3e-3,
            "betas": (0.9, 0.999),
            "eps": 1e-6,
            "weight_decay": decay,
        }


def test_biases_and_layer_norms_are_not_decayed():
    model = BertForPreTraining(tiny.CONFIG)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decayed, plain = parameter_groups(model, 0.03)
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.03, 0.0)
    layer = "bert.encoder.layer.0"
    assert {names[id(p)] for p in decayed["params"]} == {
        "bert.embeddings.word_embeddings.weight",
        "bert.embeddings.position_embeddings.weight",
        "bert.embeddings.token_type_embeddings.weight",
        f"{layer}.attention.self.query.weight",
        f"{layer}.attention.self.key.weight",
        f"{layer}.attention.self.value.weight",
        f"{layer}.attention.output.dense.weight",
        f"{layer}.intermediate.dense.weight",
        f"{layer}.output.dense.weight",
        "bert.pooler.dense.weight",
        "cls.predictions.transform.dense.weight",
        "cls.seq_relationship.weight",
    }
    both = [names[id(p)] for group in (decayed, plain) for p in group["params"]]
    assert sorted(both) == sorted(names.values())
    assert all(name.endswith(".bias") or ".LayerNorm." in name for name in both[len(decayed["params"]) :])


# --- Learning and counting -------------------------------------------------------------------------------


def test_it_learns_more_than_how_frequent_the_words_are(tmp_path):
    """Documents of one topic each: who reads the context knows the topic, whose words are one in eight."""
    arguments = changed(
        steps=400, batch_size=16, warmup_steps=30, log_every=100, eval_every=400, save_every=400
    )
    data = PretrainingData(tiny.documents(40, seed=9), tiny.tokenizer(), 32, 16, seed=9)
    run = tiny.pretraining(tmp_path, arguments, held_out=[data.next_batch() for _ in range(4)])
    knowing_nothing = evaluate(run.model, run.held_out)
    assert knowing_nothing["mlm_loss"] == pytest.approx(math.log(tiny.CONFIG.vocab_size), abs=0.2)
    assert knowing_nothing["nsp_loss"] == pytest.approx(math.log(2), abs=0.1)
    lines = []
    figures = run.run(lines.append)
    entropy = unigram_entropy(t for document in tiny.documents() for s in document for t in s)
    assert figures["mlm_loss"] < entropy - 0.3
    assert figures["nsp_accuracy"] > 0.6
    first, *_, last = table(tmp_path / "metrics.csv")
    assert float(last["loss"]) < float(first["loss"]) - 0.5


def test_the_tables(tmp_path):
    run = tiny.pretraining(tmp_path, changed(steps=9, log_every=2, eval_every=4, warmup_steps=3))
    quietly(run)
    rows = table(tmp_path / "metrics.csv")
    assert list(rows[0]) == METRICS
    assert [int(row["step"]) for row in rows] == [2, 4, 6, 8, 9]
    for row in rows:
        values = {name: float(value) for name, value in row.items()}
        assert values["loss"] == pytest.approx(values["mlm_loss"] + values["nsp_loss"], rel=1e-4)
        assert 0 <= values["mlm_accuracy"] <= 1
        assert 0 <= values["nsp_accuracy"] <= 1
        assert values["grad_norm"] > 0
        assert values["tokens_per_second"] > 0
    # the rate of the step itself: up to the peak in 3 steps from 0, down to 0 in 6
    assert [float(row["learning_rate"]) for row in rows] == pytest.approx(
        [1e-2 / 3, 1e-2, 1e-2 * 4 / 6, 1e-2 * 2 / 6, 1e-2 / 6], rel=1e-5
    )
    held_out = table(tmp_path / "evaluation.csv")
    assert list(held_out[0])[:6] == METRICS[:6]
    assert [int(row["step"]) for row in held_out] == [4, 8, 9]
    assert float(held_out[-1]["mlm_loss"]) == pytest.approx(run.evaluation["mlm_loss"], rel=1e-5)


def test_figures_are_means_over_what_was_predicted(tmp_path):
    """A batch with more chosen tokens counts more; losses and hits as NumPy has them from the logits."""
    model = tiny.pretraining(tmp_path).model.eval()
    data = PretrainingData(tiny.documents(), tiny.tokenizer(), 5, 16, seed=3)
    batches = [data.next_batch() for _ in range(3)]
    batches[1] = {name: values[:1] for name, values in batches[1].items()}
    losses, hits = {"mlm": [], "nsp": []}, {"mlm": [], "nsp": []}
    for batch in batches:
        output = model(**batch)
        labels = batch["labels"][batch["labels"] != IGNORED]
        for task, logits, targets in (
            ("mlm", output.prediction_logits, labels),
            ("nsp", output.seq_relationship_logits, batch["next_sentence_label"]),
        ):
            scores = logits.numpy().astype(np.float64)
            log_shares = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
            losses[task] += (-log_shares[np.arange(len(targets)), targets]).tolist()
            hits[task] += (scores.argmax(axis=1) == targets).tolist()
    expected = {
        "mlm_loss": np.mean(losses["mlm"]),
        "mlm_accuracy": np.mean(hits["mlm"]),
        "nsp_loss": np.mean(losses["nsp"]),
        "nsp_accuracy": np.mean(hits["nsp"]),
    }
    expected["loss"] = expected["mlm_loss"] + expected["nsp_loss"]
    assert evaluate(model, batches) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_no_trace(tmp_path, training):
    run = tiny.pretraining(tmp_path)
    model = run.model.train(training)
    before = random.get_state()
    weights = {name: backend.to_numpy(array).copy() for name, array in model.state_dict().items()}
    first = evaluate(model, run.held_out)
    assert evaluate(model, run.held_out) == first  # no dropout
    assert random.get_state() == before
    assert all(part.training is training for part in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert all((backend.to_numpy(array) == weights[name]).all() for name, array in model.state_dict().items())


def test_evaluation_that_fails_leaves_the_mode(tmp_path):
    run = tiny.pretraining(tmp_path)
    run.model.train()
    with pytest.raises(IndexError, match="input_ids"):
        evaluate(run.model, [{**run.held_out[0], "input_ids": run.held_out[0]["input_ids"] + 1000}])
    assert run.model.training


def test_training_does_not_hang_on_how_often_one_looks(tmp_path):
    often = tiny.pretraining(tmp_path / "often", changed(eval_every=1, log_every=1))
    seldom = tiny.pretraining(tmp_path / "seldom", changed(eval_every=10, log_every=10), held_out=[])
    for run in (often, seldom):
        random.manual_seed(run.arguments.seed)
        quietly(run)
    names = [tmp_path / name / "checkpoint-000010" / "model.safetensors" for name in ("often", "seldom")]
    assert names[0].read_bytes() == names[1].read_bytes()


def whole_batch(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Pairs of one length, so that each row has as many chosen tokens as any other."""
    rng = np.random.default_rng(seed)
    words = rng.integers(5, 69, (rows, 13)).tolist()
    pairs = [SentencePair(row[:6], row[6:], number % 2) for number, row in enumerate(words)]
    return make_batch(pairs, tiny.tokenizer(), 16, rng)


def part(batch: dict[str, np.ndarray], start: int, end: int) -> dict[str, np.ndarray]:
    return {name: values[start:end] for name, values in batch.items()}


def test_gradient_accumulation_is_one_larger_batch(tmp_path):
    """Exactly so where each micro-batch has as many chosen tokens, for a loss is the mean over these."""
    config = tiny.CONFIG.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    weights, norms = [], []
    for micro_batches in (1, 4):
        arguments = changed(
            steps=3, warmup_steps=0, batch_size=8 // micro_batches, gradient_accumulation_steps=micro_batches
        )
        run = tiny.pretraining(tmp_path / str(micro_batches), arguments, config=config, held_out=[])
        size = arguments.batch_size
        queue = [part(whole_batch(8, step), i, i + size) for step in range(3) for i in range(0, 8, size)]
        run.data.next_batch = lambda queue=queue: queue.pop(0)
        tally = Tally()
        norms.append([float(run.train_step(tally)[0]) for _ in range(3)])
        weights.append({name: backend.to_numpy(array) for name, array in run.model.state_dict().items()})
        assert not queue
        assert tally.pairs == 24
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    for name, expected in weights[0].items():
        # Adam divides by the gradient's size, so where that is rounding noise alone a weight may differ by a step
        near = np.abs(weights[1][name] - expected) < 1e-4
        assert near.mean() > 0.99 or name.endswith("key.bias"), name


def test_gradients_are_clipped_together(tmp_path):
    run = tiny.pretraining(tmp_path, changed(max_grad_norm=1e-3))
    norm, _ = run.train_step(Tally())
    after = math.sqrt(sum(float((backend.to_numpy(p.grad) ** 2).sum()) for p in run.model.parameters()))
    assert norm > 1e-2
    assert after == pytest.approx(1e-3, rel=1e-2)


def test_the_seed_fixes_the_run(tmp_path):
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        random.manual_seed(99)
        quietly(tiny.pretraining(tmp_path / name, changed(seed=seed, steps=4)))
        weights.append((tmp_path / name / "checkpoint-000004" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def test_training_changes_every_weight(tmp_path):
    run = tiny.pretraining(tmp_path, changed(steps=3, warmup_steps=0))
    before = {name: backend.to_numpy(array).copy() for name, array in run.model.state_dict().items()}
    quietly(run)
    for name, array in run.model.state_dict().items():
        assert (backend.to_numpy(array) != before[name]).any(), name


# --- Checkpoints -----------------------------------------------------------------------------------------


def test_the_two_newest_checkpoints_are_kept(tmp_path):
    quietly(tiny.pretraining(tmp_path, changed(save_every=3)))
    assert checkpoints(tmp_path) == ["checkpoint-000009", "checkpoint-000010"]
    assert sorted(contents(tmp_path / "checkpoint-000010")) == [
        "SHA256SUMS",
        "config.json",
        "model.safetensors",
        "optimizer.safetensors",
        "tokenizer_config.json",
        "training.json",
        "vocab.txt",
    ]


def test_what_a_kill_left_is_not_counted_among_them(tmp_path):
    run = tiny.pretraining(tmp_path, changed(save_every=3))
    for name in (
        "checkpoint-000007.partial",
        "checkpoint-000099.partial",
        "checkpoint-000099.old",
        "checkpoint-x",
    ):
        (tmp_path / name).mkdir()
    quietly(run)
    complete = [name for name in checkpoints(tmp_path) if re.fullmatch(r"checkpoint-\d{6}", name)]
    assert complete == ["checkpoint-000009", "checkpoint-000010"]
    assert latest_checkpoint(tmp_path).name == "checkpoint-000010"


def test_checkpoints_count_by_number(tmp_path):
    for name in ("checkpoint-000900", "checkpoint-1000000", "checkpoint-999999"):
        (tmp_path / name).mkdir()
    assert latest_checkpoint(tmp_path).name == "checkpoint-1000000"


def test_a_checkpoint_may_be_named_itself(tmp_path):
    quietly(tiny.pretraining(tmp_path))
    assert latest_checkpoint(tmp_path / "checkpoint-000008") == tmp_path / "checkpoint-000008"
    assert latest_checkpoint(str(tmp_path)) == tmp_path / "checkpoint-000010"


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_a_folder_without_checkpoint(tmp_path, name):
    with pytest.raises(
        CheckpointError, match=r"has no checkpoint in it; train one with: python -m minigrad\.bert"
    ):
        latest_checkpoint(tmp_path / name)


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


def test_a_folder_in_use_is_not_overwritten(tmp_path):
    quietly(tiny.pretraining(tmp_path))
    before = contents(tmp_path / "checkpoint-000010")
    with pytest.raises(
        CheckpointError, match=r"holds a run already \(checkpoint-000010\): resume it, or name"
    ):
        tiny.pretraining(tmp_path)
    assert contents(tmp_path / "checkpoint-000010") == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_checkpoint_is_no_folder_for_a_run(tmp_path, resume):
    quietly(tiny.pretraining(tmp_path))
    with pytest.raises(CheckpointError, match="checkpoint-000010 is a checkpoint: name the folder of a run"):
        tiny.pretraining(tmp_path / "checkpoint-000010", resume=resume)


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
import dataclasses, os, signal, sys
import tiny
output, where = sys.argv[1:]
arguments = dataclasses.replace(tiny.ARGUMENTS, steps=14, save_every=4, gradient_accumulation_steps=2)
run = tiny.pretraining(output, arguments, documents=tiny.documents(10), resume=where == "resume")

def kill_at(step, of, name, call=1):
    true, calls = getattr(of, name), []
    def function(*args, **kwargs):
        if run.step == step:
            calls.append(args)
            if len(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
        return true(*args, **kwargs)
    setattr(of, name, function)

if where == "before the first checkpoint":
    kill_at(2, run.optimizer, "step")
elif where == "between two gradients":
    kill_at(6, run.data, "next_batch", 2)
elif where == "between a row and the save":
    kill_at(8, run, "save")
elif where == "in the middle of saving":
    kill_at(8, os, "fsync", 3)
elif where == "before the name is there":
    kill_at(12, os, "rename")
elif where == "while old checkpoints go":
    import shutil
    kill_at(12, shutil, "rmtree", 3)
elif where == "before the last save":
    kill_at(14, run, "save")
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
        ("before the last save", ["checkpoint-000008", "checkpoint-000012"]),
    ],
)
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, uninterrupted, where, saved):
    """SIGKILL, no warning and no last words, with dropout on and gradients accumulated."""
    killed = processes.run_python(RUN, tmp_path, where)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert checkpoints(tmp_path) == saved
    resumed = processes.run_python(RUN, tmp_path, "resume")
    assert resumed.returncode == 0, resumed.stderr
    mine, expected = contents(tmp_path / LAST), contents(uninterrupted / LAST)
    assert sorted(mine) == sorted(expected)
    assert [name for name in expected if mine[name] != expected[name]] == []
    assert without_speed(tmp_path / "metrics.csv") == without_speed(uninterrupted / "metrics.csv")
    assert table(tmp_path / "evaluation.csv") == table(uninterrupted / "evaluation.csv")
    assert checkpoints(tmp_path) == ["checkpoint-000012", LAST]


@posix
@pytest.mark.parametrize("at", [1, 5, 8, 10])
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
    last = "checkpoint-000010"
    assert contents(tmp_path / "stopped" / last) == contents(tmp_path / "whole" / last)
    evaluations = [tmp_path / name / "evaluation.csv" for name in ("stopped", "whole")]
    assert table(evaluations[0]) == table(evaluations[1])
    metrics = [tmp_path / name / "metrics.csv" for name in ("stopped", "whole")]
    assert without_speed(metrics[0]) == without_speed(metrics[1])  # also when it stopped between two rows


SIGNALLED = """
import os, signal, sys, time
import tiny
output, first, second, where = sys.argv[1:]
if first in ("ignored", "own"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN if first == "ignored" else lambda *_: None)
run = tiny.pretraining(output)
before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
train_step, save = run.train_step, run.save

def send(*names):
    if where == "at once":  # between two instructions of Python
        numbers = {getattr(signal, name) for name in names}
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        for number in numbers:
            os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        return
    for name in names:
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(0.05)  # a handler runs between two instructions of Python

def step(tally):
    if run.step == 5:
        if first in ("ignored", "own"):
            send("SIGTERM")
        elif where != "save" and second != "none":
            send(first, second)
        else:
            send(first)
    return train_step(tally)

def slow_save():
    if run.step == 6 and where == "save":
        send(second)
    return save()

run.train_step, run.save = step, slow_save
run.run(print)
assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
print(run.stopped_by)
"""


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_end_finishes_the_step_saves_and_stops(tmp_path, name):
    done = processes.run_python(SIGNALLED, tmp_path, name, "none", "step")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == [
        "stopped at step 6 of 10 and saved; go on with --resume",
        str(int(getattr(signal, name))),
    ]
    assert checkpoints(tmp_path) == ["checkpoint-000004", "checkpoint-000006"]


@posix
@pytest.mark.parametrize("where", ["step", "save"])
def test_a_second_ctrl_c_ends_the_process_at_once(tmp_path, where):
    done = processes.run_python(SIGNALLED, tmp_path, "SIGINT", "SIGINT", where)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


@posix
@pytest.mark.parametrize("where", ["step", "save", "at once"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SIGTERM", "SIGTERM"),
        ("SIGHUP", "SIGHUP"),
        ("SIGTERM", "SIGHUP"),
        ("SIGTERM", "SIGINT"),
        ("SIGINT", "SIGTERM"),
    ],
)
def test_two_other_signals_are_as_one(tmp_path, first, second, where):
    """A closing terminal hangs up twice, a service manager terminates and hangs up: what was trained is saved."""
    done = processes.run_python(SIGNALLED, tmp_path, first, second, where)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert int(done.stdout.splitlines()[-1]) in {getattr(signal, first), getattr(signal, second)}
    assert checkpoints(tmp_path) == ["checkpoint-000004", "checkpoint-000006"]


@posix
@pytest.mark.parametrize(("first", "stopped_by"), [("ignored", "None"), ("own", str(int(signal.SIGTERM)))])
def test_a_signal_that_was_ignored_stays_ignored(tmp_path, first, stopped_by):
    done = processes.run_python(SIGNALLED, tmp_path, first, "none", "step")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == stopped_by


@posix
def test_in_a_notebook_a_second_ctrl_c_is_an_exception(tmp_path, monkeypatch):
    """The kernel must live."""
    monkeypatch.setattr(progress_module, "_in_notebook", lambda: True)
    run = tiny.pretraining(tmp_path)

    def twice():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(1000))

    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    before_step(run, 6, twice)
    with pytest.raises(KeyboardInterrupt):
        quietly(run)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


@posix
def test_a_stop_before_the_first_step_says_that_nothing_is_saved(tmp_path):
    run = tiny.pretraining(tmp_path)
    clear = run.folder.clear
    true = signal.signal
    sent = []

    def install(number, handler):
        before = true(number, handler)
        if number == signal.SIGTERM and not sent:  # when all handlers but one are there
            sent.append(number)
            os.kill(os.getpid(), signal.SIGTERM)
        return before

    run.folder.clear = lambda: (clear(), setattr(signal, "signal", install))
    try:
        lines = quietly(run)
    finally:
        signal.signal = true
    assert lines == ["stopped before the first step: there is nothing to save"]
    assert checkpoints(tmp_path) == []
    assert run.stopped_by == signal.SIGTERM


def test_a_run_in_another_thread(tmp_path):
    """Signals reach the main thread only; elsewhere, as in some notebooks, a run goes through."""
    run = tiny.pretraining(tmp_path)
    thread = threading.Thread(target=quietly, args=(run,))
    thread.start()
    thread.join()
    assert latest_checkpoint(tmp_path).name == "checkpoint-000010"


@posix
def test_what_is_already_saved_is_not_written_again(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path)
    written = []
    true = runs.write_folder_atomic
    monkeypatch.setattr(
        runs,
        "write_folder_atomic",
        lambda folder, files: (written.append(folder.name), true(folder, files)),
    )
    evaluate_at_eight = run._save_on_the_way

    def save(progress):
        evaluate_at_eight(progress)
        if run.step == 8:
            os.kill(os.getpid(), signal.SIGINT)

    run._save_on_the_way = save
    quietly(run)
    assert written == ["checkpoint-000004", "checkpoint-000008"]


@pytest.mark.parametrize(
    ("arguments", "changes", "named"),
    [
        (changed(learning_rate=2e-3), {}, ["learning_rate is 0.01 there, 0.002 here"]),
        (changed(steps=20), {}, ["steps is 10 there, 20 here"]),
        (
            changed(seed=1, batch_size=8),
            {},
            ["batch_size is 4 there, 8 here", "seed is 0 there, 1 here"],
        ),
        (
            tiny.ARGUMENTS,
            {"config": tiny.CONFIG.replace(hidden_size=18)},
            ["hidden_size is 16 there, 18 here"],
        ),
        (
            tiny.ARGUMENTS,
            {"config": tiny.CONFIG.replace(hidden_dropout_prob=0.2)},
            ["hidden_dropout_prob is 0.1 there, 0.2 here"],
        ),
        (tiny.ARGUMENTS, {"corpus": "other"}, ["the text (fingerprint topics there, other here)"]),
        (
            tiny.ARGUMENTS,
            {"tokenizer": tiny.WordPieceTokenizer(tiny.tokenizer().vocab + ["more"])},
            ["the vocabulary"],
        ),
        (
            tiny.ARGUMENTS,
            {"tokenizer": tiny.WordPieceTokenizer(tiny.tokenizer().vocab, lower_case=False)},
            ["whether the text is lower-cased"],
        ),
        (
            changed(max_grad_norm=2.0),
            {"corpus": "other", "config": tiny.CONFIG.replace(vocab_size=81)},
            ["vocab_size is 80 there, 81 here", "max_grad_norm is 1.0 there, 2.0 here", "the text ("],
        ),
    ],
)
def test_a_run_is_not_resumed_with_other_settings(tmp_path, arguments, changes, named):
    quietly(tiny.pretraining(tmp_path))
    with pytest.raises(CheckpointError) as caught:
        tiny.pretraining(tmp_path, arguments, resume=True, **changes)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'checkpoint-000010'} cannot be resumed with other settings")
    assert all(name in message for name in named)
    assert message.count(";") == len(named)


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
        (without_sums(change_bytes("training.json", lambda b: b[:-20])), "training.json is damaged"),
        (without_sums(change_bytes("training.json", lambda b: b"[]")), "training.json is damaged: expected an"),
        (without_sums(change_bytes("training.json", lambda b: b"\xff")), "training.json is damaged"),
        (without_sums(change_bytes("training.json", lambda b: b"[" * 10**5)), "training.json is damaged"),
        (lambda folder: (folder / "optimizer.safetensors").unlink(), "optimizer.safetensors is missing"),
        (change_bytes("optimizer.safetensors", lambda b: b[:-20]), "optimizer.safetensors is damaged"),
        (change_bytes("optimizer.safetensors", zeros_inside), "optimizer.safetensors is damaged"),
        (without_sums(change_bytes("optimizer.safetensors", lambda b: b[:-20])), "safetensors is damaged"),
        (change_bytes("model.safetensors", lambda b: b[:-20]), "model.safetensors is damaged"),
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


WRONG_VALUES = [None, "text", [], {"a": 1}, -1, 1.5, math.inf, math.nan, True, 10**400]


def inner_keys(state: dict, within: tuple = ()) -> list[tuple]:
    found = []
    for name, value in state.items():
        found.append((*within, name))
        if isinstance(value, dict):
            found += inner_keys(value, (*within, name))
    return found


def test_each_value_of_the_state_is_checked_before_anything_is_touched(tmp_path, finished):
    """Each key absent, and with ten values of which most are wrong: one clear error, or a value that is right."""
    state = json.loads((finished / "checkpoint-000010" / "training.json").read_text())
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    (folder / "checkpoint-000010" / "SHA256SUMS").unlink()
    path = folder / "checkpoint-000010" / "training.json"
    before = {name: content for name, content in everything(folder).items() if "000010/training" not in name}
    taken = []
    for key in inner_keys({**state, "environment": {}}):  # what it says of another machine is for the reader
        for value in ["(absent)", *WRONG_VALUES]:
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
    ("name", "message"),
    [
        ("step", "step: expected an integer of at least 0, got null"),
        ("scaler.scale", "scaler.scale: expected a positive number, got null"),
        ("data.index", "data.index: expected an integer of at least 0, got null"),
        ("arguments.learning_rate", "arguments.learning_rate: expected a finite number, got null"),
        ("evaluation.mlm_loss", "evaluation.mlm_loss: expected a finite number, got null"),
    ],
)
def test_what_is_wrong_in_the_state_is_named(tmp_path, finished, name, message):
    def change(state):
        *within, last = name.split(".")
        for part_of_name in within:
            state = state[part_of_name]
        state[last] = None

    said = refused(tmp_path, finished, damage_json(change))
    assert f"checkpoint-000010/training.json: {message}; " in said


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.update(step=5), "step: expected 10, as its folder says, got 5"),
        (lambda state: state.update(optimizer_steps=9), "optimizer_steps: expected 10 … 10, got 9"),
        (lambda state: state["arguments"].update(steps=9), "step: expected at most 9, got 10"),
        (lambda state: state["data"].update(index=10**6), "data.index: expected at most "),
        (lambda state: state["arguments"].update(batch_size=0), "arguments: batch_size must be at least 1"),
        (lambda state: state.pop("environment"), "environment: is missing; was it saved by another version?"),
        (
            lambda state: state["random"].pop("draws"),
            "random.draws: is missing; was it saved by another version?",
        ),
        (
            lambda state: state.update(step="x" * 10**6),
            f'step: expected an integer of at least 0, got "{"x" * 39} …',
        ),
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
    state = read_state(finished / "checkpoint-000010")
    assert state.environment == runs.environment()
    assert set(state.environment) == {"Python", "NumPy", "the processor", "the BLAS", "the backend"}
    assert state.environment["the backend"] == backend.default().name
    assert all(state.environment.values())


def test_a_run_is_not_resumed_with_another_held_out_text(tmp_path, finished):
    other = [PretrainingData(tiny.documents(6, seed=2), tiny.tokenizer(), 4, 16, seed=1).next_batch()]
    with pytest.raises(
        CheckpointError, match=r"these differ: the held-out text \(fingerprint [0-9a-f]{16} there"
    ):
        tiny.pretraining(finished, held_out=other, resume=True)


def test_rows_that_the_checkpoint_does_not_know_of_are_dropped(tmp_path):
    run = tiny.pretraining(tmp_path, changed(log_every=1, eval_every=1))

    def stop():
        raise RuntimeError("a crash")

    before_step(run, 8, stop)
    with pytest.raises(RuntimeError, match="a crash"):
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
    header = ",".join(METRICS)
    (tmp_path / "metrics.csv").write_text(f"{header}\n2{',1' * 8}\n4{',1' * 8}\n")
    (tmp_path / "evaluation.csv").write_text("")
    quietly(tiny.pretraining(tmp_path))
    assert [row["step"] for row in table(tmp_path / "metrics.csv")] == ["2", "4", "6", "8", "10"]
    assert list(table(tmp_path / "metrics.csv")[0]) == METRICS
    assert [row["step"] for row in table(tmp_path / "evaluation.csv")] == ["5", "10"]


# --- A loss that is not finite, a disk that is full ------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "kept"),
    [(3, "no checkpoint was saved before it"), (7, "the checkpoint of step 4 is kept")],
)
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, at, kept):
    run = tiny.pretraining(tmp_path)

    def poison():
        run.model.cls.seq_relationship.bias.data[0] = math.nan

    before_step(run, at, poison)
    with pytest.raises(
        DivergenceError, match=f"the loss is nan in step {at}; {kept}. Try a lower learning rate"
    ):
        quietly(run)
    assert checkpoints(tmp_path) == (["checkpoint-000004"] if at > 4 else [])
    resumed = tiny.pretraining(tmp_path, resume=True)
    assert resumed.step == (4 if at > 4 else 0)
    quietly(resumed)
    assert math.isfinite(resumed.evaluation["loss"])


@pytest.mark.parametrize(
    ("every", "stops_at"), [({"log_every": 2}, 4), ({"save_every": 5}, 5), ({"eval_every": 6}, 6)]
)
def test_whether_a_run_is_finite_is_looked_at_before_it_matters(tmp_path, every, stops_at):
    """Before a row is written, a checkpoint saved, or the model evaluated, whichever comes first."""
    rarely = {"log_every": 100, "save_every": 100, "eval_every": 100}
    run = tiny.pretraining(tmp_path, changed(**{**rarely, **every}))

    def poison():
        run.model.cls.seq_relationship.bias.data[0] = math.nan

    before_step(run, 3, poison)
    with pytest.raises(DivergenceError, match="the loss is nan in step 3; no checkpoint was saved before it"):
        quietly(run)
    assert run.step == stops_at
    assert checkpoints(tmp_path) == []
    assert not (tmp_path / "evaluation.csv").exists()


def test_a_step_keeps_nothing_that_grows(tmp_path):
    if backend.default().name != "numpy":
        pytest.skip("tracemalloc sees NumPy's arrays only")
    run = tiny.pretraining(tmp_path, dataclasses.replace(tiny.ARGUMENTS, batch_size=32))
    kept = []
    tracemalloc.start()
    for _ in range(8):
        run.train_step(Tally())
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    activation = 32 * 16 * 16 * 4  # bytes of (B, T, H) in float32; small objects come and go
    assert (kept[-1] - kept[3]) / 4 < activation / 4


def test_gradients_that_are_not_finite_stop_the_run_before_the_next_checkpoint(tmp_path, monkeypatch):
    run = tiny.pretraining(tmp_path)
    true = module.optim.clip_grad_norm

    def clip(parameters, max_norm):
        parameters = list(parameters)
        if run.step == 6:
            parameters[0].grad[0, 0] = math.inf
        return true(parameters, max_norm)

    monkeypatch.setattr(module.optim, "clip_grad_norm", clip)
    with pytest.raises(
        DivergenceError, match=r"the norm of the gradients is inf in step 7; the checkpoint of step 4"
    ):
        quietly(run)
    assert run.step == 8  # the step at which it was logged, and would have been saved
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


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


LIMITED = """
import resource, signal, sys
import tiny
from minigrad.files import SaveError
run = tiny.pretraining(sys.argv[1])
train_step = run.train_step
def step(tally):
    if run.step == 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    return train_step(tally)
run.train_step = step
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    run.run(print)
except SaveError as error:
    print("the end:", error)
"""


@posix
def test_files_that_the_system_cuts_short(tmp_path):
    done = processes.run_python(LIMITED, tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("step 8: could not save") and "File too large" in line for line in lines)
    assert lines[-1].startswith(f"the end: could not save {tmp_path / 'checkpoint-000010'}: File too large")
    assert checkpoints(tmp_path) == ["checkpoint-000004"]
    assert tiny.pretraining(tmp_path, resume=True).step == 4


# --- What the reader sees --------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


FIGURES = {"loss": 2.5, "mlm_accuracy": 0.25, "nsp_accuracy": 0.75}


def test_in_a_log_file_lines_and_no_bar():
    file = io.StringIO()
    with Progress(0, 3, None, file) as progress:
        for _ in range(3):
            progress.show(FIGURES, 12_345)
            progress.advance()
        progress.say("a line")
    lines = file.getvalue().splitlines()
    assert lines == [
        "step 3/3  loss 2.500  MLM 25.0%  NSP 75.0%  12.3k tokens/s  0.0 min left",
        "a line",
    ]
    assert "\r" not in file.getvalue()


def test_in_a_log_file_a_line_every_ten_seconds(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    file = io.StringIO()
    with Progress(100, 200, None, file) as progress:
        for _ in range(100):
            clock[0] += 1.5
            progress.show(FIGURES, 1000)
            progress.advance()
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("step 107/200 ")
    assert lines[0].endswith("2.3 min left")  # 93 steps of 1.5 s
    assert len(lines) == 15
    assert lines[-1].startswith("step 200/200 ")


def test_in_a_terminal_a_bar():
    file = Terminal()
    with Progress(2, 5, None, file) as progress:
        for _ in range(3):
            progress.show(FIGURES, 12_345)
            progress.advance()
        progress.bar.refresh()
        progress.say("a line above")
    text = file.getvalue()
    assert "\r" in text
    assert "2/5" in text
    assert "5/5" in text
    assert "loss 2.500  MLM 25.0%  NSP 75.0%  12.3k tokens/s" in text
    assert "a line above\n" in text
    assert "min left" not in text


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_report_takes_each_line(stream):
    file, lines = stream(), []
    with Progress(0, 1, lines.append, file) as progress:
        progress.say("a line")
    assert lines == ["a line"]
    assert "a line" not in file.getvalue()


def test_a_run_prints_its_lines_on_stderr(tmp_path, capsys):
    tiny.pretraining(tmp_path).run()
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.split(":")[0].split("/")[0] for line in lines] == ["step 5", "step 10", "step 10"]
    assert re.match(
        r"step 5: held out MLM loss \d\.\d{3}, accuracy \d+\.\d%; NSP loss \d\.\d{3}, accuracy \d+\.\d%",
        lines[0],
    )


def test_the_speed_leaves_out_what_is_not_training(tmp_path, monkeypatch):
    """Each step takes a second, each evaluation and save an hour."""
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    run = tiny.pretraining(tmp_path, changed(log_every=3, eval_every=2, save_every=2))

    def wait(name, seconds):
        true = getattr(run, name)

        def function(*args):
            clock[0] += seconds
            return true(*args)

        return function

    run.train_step = wait("train_step", 1)
    run.save = wait("save", 3600)
    figures = evaluate(run.model, run.held_out)

    def slow_evaluate(*_):
        clock[0] += 3600
        return figures

    monkeypatch.setattr(module, "evaluate", slow_evaluate)
    quietly(run)
    for row in table(tmp_path / "metrics.csv"):
        assert 20 < float(row["tokens_per_second"]) <= 4 * 16


# --- Precision -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_run_with_16_bit_products_learns_about_as_much(tmp_path, precision):
    losses = {}
    for each in ("float32", precision):
        run = tiny.pretraining(tmp_path / each, changed(steps=40, precision=each))
        quietly(run)
        losses[each] = run.evaluation["mlm_loss"]
        assert all(p.data.dtype == np.float32 for p in run.model.parameters())
        assert backend.matmul_precision() == "float32"
    assert losses[precision] != losses["float32"]
    assert losses[precision] == pytest.approx(losses["float32"], rel=0.02)
    first = float(table(tmp_path / precision / "evaluation.csv")[0]["mlm_loss"])
    assert losses[precision] < 0.97 * first


def test_the_evaluation_of_a_run_with_16_bit_products_is_in_float32(tmp_path):
    run = tiny.pretraining(tmp_path, changed(precision="bfloat16"))
    quietly(run)
    assert run.evaluation == module.evaluate(run.model, run.held_out)


def overflowing(run, steps: set[int]) -> None:
    """Let the scaled loss of these steps be too large for a float."""
    true = run.scaler.scale

    def scale(loss):
        return true(loss) * (1e38 if run.step + 1 in steps else 1)

    run.scaler.scale = scale


def test_steps_left_out_by_loss_scaling_are_resumed_bit_for_bit(tmp_path):
    arguments = changed(precision="float16", gradient_accumulation_steps=2)
    whole = tiny.pretraining(tmp_path / "whole", arguments)
    overflowing(whole, {1, 3})
    quietly(whole)
    assert whole.optimizer.steps == 8
    assert whole.scaler.get_scale() == 2.0**14

    part = tiny.pretraining(tmp_path / "part", arguments)
    overflowing(part, {1, 3})
    before_step(part, 6, lambda: (_ for _ in ()).throw(ZeroDivisionError))  # after the checkpoint of step 4
    with pytest.raises(ZeroDivisionError):
        quietly(part)
    resumed = tiny.pretraining(tmp_path / "part", arguments, resume=True)
    assert (resumed.step, resumed.optimizer.steps) == (4, 2)
    quietly(resumed)
    last = "checkpoint-000010"
    assert contents(tmp_path / "part" / last) == contents(tmp_path / "whole" / last)
    rows = [table(tmp_path / name / "metrics.csv") for name in ("part", "whole")]
    assert [row["learning_rate"] for row in rows[0]] == [row["learning_rate"] for row in rows[1]]


def test_a_step_left_out_changes_nothing(tmp_path):
    run = tiny.pretraining(tmp_path, changed(precision="float16", warmup_steps=0))
    overflowing(run, {1})
    before = run.model.state_dict()
    before = {name: backend.to_numpy(array).copy() for name, array in before.items()}
    norm, _ = run.train_step(Tally())
    assert not math.isfinite(norm)
    for name, array in run.model.state_dict().items():
        np.testing.assert_array_equal(backend.to_numpy(array), before[name])
    norm, _ = run.train_step(Tally())
    assert math.isfinite(norm)


def test_gradients_that_no_scale_saves_stop_the_run(tmp_path):
    run = tiny.pretraining(tmp_path, changed(steps=40, precision="float16"))
    overflowing(run, set(range(6, 41)))
    with pytest.raises(
        DivergenceError, match=r"the norm of the gradients is (inf|nan) in step 22; the checkpoint"
    ):
        quietly(run)
