"""A batch in shares: what the whole batch gives, the same bits for the same number, and nothing left after an error."""

from __future__ import annotations

import json
import signal
import threading
from types import SimpleNamespace

import commands
import numpy as np
import pytest
import tiny
import tiny_task
from commands import error_of
from tiny import quietly
from tiny_translation import CONFIGS, translating

from minigrad import Tensor, backend, random
from minigrad.backend import threads
from minigrad.bert import info
from minigrad.bert.__main__ import main as bert_main
from minigrad.distributed import Share, World
from minigrad.seq2seq import training as seq2seq_training
from minigrad.seq2seq.__main__ import main as translating_main
from minigrad.training.folders import latest_checkpoint
from minigrad.training.reading import CheckpointError
from minigrad.training.shares import shares_of

pytestmark = pytest.mark.numpy_only("a GPU's batch is one share")

DROPPING = tiny.CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.1)
TASKS = ("classify", "pairs", "tag", "qa")


def make(folder, kind, shares, resume=False):
    """A tiny run of each kind, with dropout."""
    if kind == "pretraining":
        return tiny.pretraining(folder, config=DROPPING, shares=shares, resume=resume)
    if kind in TASKS:
        return tiny_task.run_in(folder, kind, dropout=0.2, shares=shares, resume=resume)
    return translating(folder, kind, shares=shares, resume=resume)


def compute(run, batch):
    return run.replicas.compute(batch, run.share, run.forward, Tensor.backward, run.world)


def gradients(run, batch):
    """What a batch adds to the gradients, in float64."""
    run.model.astype("float64")
    random.manual_seed(5)
    run.model.train()
    losses = [float(loss.data) for _, _, loss in compute(run, batch)]
    return sum(losses), {name: p.grad for name, p in run.model.named_parameters()}, random.get_state()


# --- The same as the whole -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pretraining", *TASKS, *CONFIGS])
@pytest.mark.parametrize("shares", [2, 3, 4])
def test_shares_add_up_to_the_whole_batch(tmp_path, kind, shares):
    """Weights, and dropout by place: in float64 nothing but rounding is left, and as many draws are made."""
    with make(tmp_path / "1", kind, 1) as whole, make(tmp_path / "n", kind, shares) as run:
        batch = whole.data.next_batch()
        expected, got = gradients(whole, batch), gradients(run, batch)
    assert got[2] == expected[2]
    assert got[0] == pytest.approx(expected[0], rel=1e-12)
    assert got[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        if gradient is None:
            assert got[1][name] is None
        else:
            np.testing.assert_allclose(got[1][name], gradient, rtol=1e-9, atol=1e-12)


def test_rows_and_weights_of_shares():
    whole = {"ids": np.arange(14).reshape(7, 2)}
    counted = np.array([[1, 0], [1, 1], [0, 0], [1, 0], [1, 1], [1, 1], [0, 1]], bool)
    shares = [Share(whole, number, 3) for number in range(3)]
    assert [len(share.rows) for share in shares] == [2, 2, 3]
    np.testing.assert_array_equal(np.concatenate([share.batch["ids"] for share in shares]), whole["ids"])
    assert [share.weight(counted) for share in shares] == [3 / 9, 1 / 9, 5 / 9]


def test_a_batch_of_fewer_rows_is_in_fewer_shares(tmp_path):
    with make(tmp_path, "pretraining", 4) as run:
        batch = {name: array[:3] for name, array in run.data.next_batch().items()}
        assert [len(share.rows) for share, _, _ in compute(run, batch)] == [1, 1, 1]


# --- How many --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "rows", "length", "processes", "expected"),
    [
        (3, 32, 512, 1, 3),
        (8, 5, 2048, 1, 5),
        (4, 7, 1024, 3, 2),
        (4, 47, 64, 1, 2),
        (4, 32, 63, 1, 1),
        (4, 8, 8, 1, 1),
    ],
)
def test_by_default_one_for_each_core_as_far_as_each_has_tokens_enough(
    cores, count, rows, length, processes, expected
):
    cores(count)
    world = World()
    world.size = processes
    assert shares_of(rows, length, world) == expected


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (0, "shares must be at least 1, got 0"),
        (-3, "shares must be at least 1, got -3"),
        (5, "a batch of 4 rows cannot be shared out over 5 shares: use fewer, a larger batch, or more text"),
        (10**9, "a batch of 4 rows cannot be shared out over 1000000000 shares"),
    ],
)
def test_numbers_that_make_no_sense(tmp_path, shares, message):
    with pytest.raises(ValueError, match=message):
        make(tmp_path / "run", "pretraining", shares)
    assert not (tmp_path / "run").exists()


def test_a_gpu_has_one(monkeypatch, cores):
    cores(4)
    monkeypatch.setattr(backend, "default", lambda: SimpleNamespace(name="cupy"))
    assert shares_of(32, 64, World()) == shares_of(32, 64, World(), 1) == 1
    with pytest.raises(ValueError, match="shares must be 1 on a GPU, got 2"):
        shares_of(32, 64, World(), 2)


def test_a_page_has_one_core(monkeypatch):
    monkeypatch.setattr(threads.sys, "platform", "emscripten")
    assert threads.cores() == 1


# --- The same bits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pretraining", "classify", "lstm"])
def test_the_same_number_gives_the_same_bits_on_any_number_of_cores(tmp_path, cores, kind):
    weights = []
    for count in (1, 2, 5):
        cores(count)
        with make(tmp_path / str(count), kind, 3) as run:
            quietly(run)
            weights.append({name: p.data.copy() for name, p in run.model.named_parameters()})
    for other in weights[1:]:
        for name, array in weights[0].items():
            np.testing.assert_array_equal(other[name], array)


@pytest.fixture
def stopped(tmp_path, cores):
    """The folder of a run in two shares, stopped at step 6 of 10, and the weights of one that was not stopped."""
    cores(2)
    with make(tmp_path / "whole", "pretraining", 2) as run:
        quietly(run)
        weights = {name: p.data.copy() for name, p in run.model.named_parameters()}
    with make(tmp_path / "run", "pretraining", 2) as run:
        tiny.before_step(run, 6, lambda: signal.raise_signal(signal.SIGTERM))
        quietly(run)
    assert latest_checkpoint(tmp_path / "run").name == "checkpoint-000006"
    return tmp_path / "run", weights


def go_on(folder, shares):
    with make(folder, "pretraining", shares, resume=True) as run:
        lines = quietly(run)
    state = json.loads((latest_checkpoint(folder) / "training.json").read_text())
    return state["shares"], [line for line in lines if "shares" in line], run.model


def test_a_resumed_run_has_as_many_shares_as_before(stopped, cores):
    folder, weights = stopped
    cores(4)
    shares, notes, model = go_on(folder, None)
    assert (shares, notes) == (2, [])
    for name, parameter in model.named_parameters():
        np.testing.assert_array_equal(parameter.data, weights[name])


def test_a_run_can_go_on_in_another_number_and_says_so(stopped):
    folder, weights = stopped
    shares, notes, model = go_on(folder, 3)
    assert shares == 3
    assert notes == ["note: the run goes on in 3 shares, but was in 2: not bit for bit as it would have"]
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.data, weights[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["pretraining", "classify", "transformer"])
@pytest.mark.parametrize("damage", ["too many", "too little memory"])
def test_shares_in_a_checkpoint_that_cannot_be_are_refused_at_once(
    tmp_path, kind, damage, cores, monkeypatch
):
    """Twins of the model would be built for each; a machine with more memory may have written the number."""
    cores(1)
    with make(tmp_path / "run", kind, 3) as run:
        tiny.before_step(run, 2, lambda: signal.raise_signal(signal.SIGTERM))
        quietly(run)
    if kind == "transformer":
        # Weights, moments, two gradients
        enough_for_two = 4 * 5 * sum(p.size for p in run.model.parameters())
    else:
        cost = info.step_cost(run.model.config, run.arguments.batch_size, run.arguments.max_length)
        enough_for_two = cost.training_bytes + cost.weight_bytes + cost.activation_bytes
    path = latest_checkpoint(run.output) / "training.json"
    if damage == "too many":
        path.write_text(path.read_text().replace('"shares": 3', '"shares": 100000000'))
        (path.parent / "SHA256SUMS").unlink()
        expected = "has 100000000 shares: a batch of .* cannot be shared out over 100000000 shares"
    else:
        for module in (info, seq2seq_training):
            monkeypatch.setattr(module, "machine_memory", lambda: enough_for_two)
        expected = "has 3 shares: .* GB.*, this machine has"
    with pytest.raises(CheckpointError, match=f"training.json {expected}.*; --shares asks for another"):
        make(tmp_path / "run", kind, None, resume=True)


# --- When something goes wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_in_a_share_is_raised_and_leaves_nothing_behind(tmp_path, cores, failing):
    """Again and again: no thread hangs or is added, and the next step is that of a run without the errors."""
    cores(3)
    with make(tmp_path / "run", "pretraining", 3) as run, make(tmp_path / "right", "pretraining", 3) as right:
        state, before = random.get_state(), threading.active_count()
        forward = run.forward

        def fail(model, share):
            if model is run.replicas.models[failing]:
                raise ZeroDivisionError
            return forward(model, share)

        run.forward = fail
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                run.train_step(run.tally)
            run.data.load_state_dict({"epoch": 0, "index": 0})
            random.set_state(state)
        del run.forward
        assert threading.active_count() == before
        run.train_step(run.tally)
        random.set_state(state)
        right.train_step(right.tally)
        for ours, theirs in zip(run.model.parameters(), right.model.parameters(), strict=True):
            np.testing.assert_array_equal(ours.data, theirs.data)


def test_all_shares_have_the_same_weights_also_when_others_are_assigned(tmp_path):
    with make(tmp_path, "pretraining", 2) as run:
        model, twin = run.replicas.models
        assert all(a.data is b.data for a, b in zip(model.parameters(), twin.parameters(), strict=True))
        run.train_step(run.tally)
        run.model.load_state_dict({name: 0 * array for name, array in run.model.state_dict().items()})
        compute(run, run.data.next_batch())
        assert all(a.data is b.data for a, b in zip(model.parameters(), twin.parameters(), strict=True))
        assert not any(p.data.any() for p in twin.parameters())


# --- The command lines -----------------------------------------------------------------------------------


def commands_in(folder):
    """A tiny run by each command line that trains: which it is, and its options."""
    corpus = commands.write_corpus(folder / "text.txt")
    for split in ("train", "dev"):
        tiny_task.write(folder / f"{split}.csv", tiny_task.rows("classify", 12))
    tiny_task.pretrained(folder / "model")
    learning = ["finetune", "--model", folder / "model", "--data", folder / "train.csv", "--batch-size", "4"]
    sizes = [part for one in ("d_model=12", "nhead=2", "dim_feedforward=16") for part in ("--set", one)]
    short = ["--steps", "2", "--batch-size", "4", "--eval-translations", "2"]
    return {
        "pretrain": (bert_main, commands.pretrain(corpus, folder / "pretrain")),
        "finetune": (bert_main, [*learning, "--epochs", "1", "--output", folder / "finetune"]),
        "translating": (translating_main, ["train", "--output", folder / "translating", *sizes, *short]),
    }


@pytest.mark.parametrize("name", ["pretrain", "finetune", "translating"])
def test_the_option(tmp_path, name, capsys):
    main, options = commands_in(tmp_path)[name]
    assert error_of(main, capsys, [*options, "--shares", "0"]) == "shares must be at least 1, got 0"
    assert "cannot be shared out over 9 shares" in error_of(main, capsys, [*options, "--shares", "9"])
    assert not (tmp_path / name).exists()
    assert main([str(part) for part in [*options, "--shares", "3"]]) == 0
    assert json.loads((latest_checkpoint(tmp_path / name) / "training.json").read_text())["shares"] == 3
