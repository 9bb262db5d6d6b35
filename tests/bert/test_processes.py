"""One model trained by several processes: it learns what one process would, and goes on with another number of them."""

from __future__ import annotations

import re
from pathlib import Path

import commands
import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny import checkpoints, table, without_speed

import processes

pytestmark = [pytest.mark.oracle, pytest.mark.no_arrays]

# Settings so that no batch can be shared out evenly, that pairs have different numbers of chosen tokens, that dropout
# draws, and that a row of metrics.csv stands across two checkpoints.
RUN = """
import os, signal, sys, time
import numpy as np
import tiny
from minigrad.bert import pretraining
from minigrad.distributed import from_environment
from minigrad.files import SaveError

output, dtype, precision, what, shares = sys.argv[1:]
make = pretraining.BertForPreTraining

def make_in_dtype(config):
    model = make(config)
    for parameter in model.parameters():
        parameter.data = parameter.data.astype(dtype)
    return model

pretraining.BertForPreTraining = make_in_dtype
def reversed_tokenizer():
    *special, a, b = tiny.tokenizer().vocab
    return tiny.WordPieceTokenizer([*special, b, a])

world = from_environment()
last = world.rank == world.size - 1
held_out = tiny.PretrainingData(tiny.documents(6, seed=1), tiny.tokenizer(), 4, 16, seed=1)
with world.ending_together():
    run = tiny.pretraining(
        output,
        tiny.changed(
            learning_rate=0.5 if last and what == "the setting" else tiny.ARGUMENTS.learning_rate,
            batch_size=5, max_length=40, gradient_accumulation_steps=2, log_every=4, save_every=3, eval_every=5,
            precision=precision,
        ),
        config=tiny.CONFIG.replace(num_hidden_layers=2, max_position_embeddings=40),
        held_out=[held_out.next_batch() for _ in range(2 if last and what == "the held-out text" else 3)],
        tokenizer=tiny.tokenizer() if not (last and what == "the vocabulary") else reversed_tokenizer(),
        resume=what == "resume",
        world=world,
        shares=int(shares),
    )
    rows = []
    append = run.folder.metrics.append
    run.folder.metrics.append = lambda row, say: [rows.append(row), append(row, say)]
    if last and what == "stop":
        tiny.before_step(run, 6, lambda: os.kill(os.getpid(), signal.SIGTERM))
    elif last and what == "kill":
        tiny.before_step(run, 6, lambda: os.kill(os.getpid(), signal.SIGKILL))
    elif last and what == "error":
        def fail():
            raise ValueError("the last process has had enough")
        tiny.before_step(run, 6, fail)
    elif last and what == "nan":
        def spoil():
            run.forward = lambda *given: spoiled(*pretraining.Pretraining.forward(run, *given))
        def spoiled(output, loss):
            return output, loss * float("nan")
        tiny.before_step(run, 6, spoil)
    elif last and what == "the weights":
        next(run.model.parameters()).data[0, 0] += 1e-6
    elif what == "the first cannot save" and world.is_first:
        def full(*_):
            raise SaveError("no room")
        run.folder.save = full
    if world.is_first:  # so that the others could be further than what the first has written
        save = run.folder.save
        run.folder.save = lambda step, files: [time.sleep(0.5 if step in (6, 10) else 0), save(step, files)][1]
    run.run()
    assert run.stopped_by or os.path.exists(f"{output}/checkpoint-000010/model.safetensors")
    if what == "whole":
        np.savez(
            f"{output}.{world.rank}.npz",
            weights=np.concatenate([p.data.ravel() for p in run.model.parameters()]),
            rows=[[value for name, value in row.items() if name != "tokens_per_second"] for row in rows],
            evaluation=list(run.evaluation.values()),
            scale=run.scaler.get_scale(),
        )
sys.exit(0 if run.stopped_by is None else 128 + run.stopped_by)
"""
WHOLE = ("weights", "rows", "evaluation", "scale")


def train(count: int, output: Path, dtype="float32", precision="float32", what="whole", shares=1):
    """Run RUN in so many processes; one of them needs no mpirun."""
    processes.mpirun()  # or skip
    arguments = [output, dtype, precision, what, shares]
    if count == 1:
        return processes.run_python(RUN, *arguments)
    return processes.run_pythons(count, "-c", RUN, *arguments)


def found(output: Path, rank: int = 0) -> dict[str, np.ndarray]:
    with np.load(f"{output}.{rank}.npz") as file:
        return {name: file[name] for name in WHOLE}


def weights_of(output: Path) -> np.ndarray:
    arrays = load_file(output / "checkpoint-000010" / "model.safetensors")
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)])


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The run of one process in float32; tests only read it."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    done = train(1, folder)
    assert done.returncode == 0, done.stderr
    return folder


# --- The same as one process -----------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "shares"), [(2, 1), (3, 1), (2, 2)])
def test_several_processes_learn_what_one_does(tmp_path, count, shares):
    """With dropout, micro-batches and shares of different sizes: in float64, nothing but rounding is left."""
    for number, each in ((1, 1), (count, shares)):
        done = train(number, tmp_path / f"of {number}", "float64", shares=each)
        assert done.returncode == 0, done.stderr
    one, several = found(tmp_path / "of 1"), found(tmp_path / f"of {count}")
    assert one["rows"].shape == (3, 8)
    for name in WHOLE:
        np.testing.assert_allclose(several[name], one[name], rtol=1e-12, atol=1e-12)
    for rank in range(1, count):
        np.testing.assert_array_equal(found(tmp_path / f"of {count}", rank)["weights"], several["weights"])
    for name in ("metrics.csv", "evaluation.csv"):
        headers = {(tmp_path / f"of {n}" / name).read_text().split("\n")[0] for n in (1, count)}
        assert len(headers) == 1


def test_in_16_bits(tmp_path):
    for number in (1, 2):
        done = train(number, tmp_path / f"of {number}", "float32", "float16")
        assert done.returncode == 0, done.stderr
    one, two = found(tmp_path / "of 1"), found(tmp_path / "of 2")
    np.testing.assert_allclose(two["rows"], one["rows"], rtol=1e-3, atol=1e-4)
    assert two["scale"] == one["scale"]


# --- Stopping and going on -------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (1, 2)])
def test_a_stopped_run_goes_on_with_another_number_of_processes(tmp_path, alone, before, after):
    """The signal reaches one process, and all of them stop after the same step, in the middle of a row of figures."""
    folder = tmp_path / "run"
    stopped = train(before, folder, what="stop")
    assert stopped.returncode == 143, stopped.stderr
    assert stopped.stderr.count("stopped at step 6 of 10 and saved; go on with --resume") == 1
    assert checkpoints(folder)[-1] == "checkpoint-000006"
    done = train(after, folder, what="resume")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(weights_of(folder), weights_of(alone), rtol=1e-3, atol=1e-5)
    ours, theirs = without_speed(folder / "metrics.csv"), without_speed(alone / "metrics.csv")
    assert [row["step"] for row in ours] == [row["step"] for row in theirs]
    for one, other in zip(ours, theirs, strict=True):
        for name, value in one.items():
            assert float(value) == pytest.approx(float(other[name]), rel=1e-4, abs=1e-6), name


def test_a_killed_process_ends_all_and_what_was_saved_goes_on(tmp_path, alone):
    folder = tmp_path / "run"
    killed = train(2, folder, what="kill")
    assert killed.returncode not in (0, None)
    assert re.search("(?i)killed|signal 9", killed.stdout + killed.stderr)
    assert checkpoints(folder) == ["checkpoint-000003"]
    done = train(3, folder, what="resume")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(weights_of(folder), weights_of(alone), rtol=1e-3, atol=1e-5)


# --- Errors ----------------------------------------------------------------------------------------------


def errors(done) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


def test_an_error_in_one_process_ends_all(tmp_path):
    done = train(3, tmp_path / "run", what="error")
    assert done.returncode == 1
    assert errors(done) == ["error: process 2 of 3: the last process has had enough"]
    assert checkpoints(tmp_path / "run") == ["checkpoint-000003"]


def test_a_last_checkpoint_that_cannot_be_written_ends_all(tmp_path):
    done = train(2, tmp_path / "run", what="the first cannot save")
    assert done.returncode == 1
    assert errors(done) == ["error: process 0 of 2: no room"]


def test_all_processes_see_a_loss_that_is_not_finite_in_one(tmp_path):
    """It is raised in all, so the first alone speaks: here by Python, as nothing catches it."""
    done = train(2, tmp_path / "run", what="nan")
    assert done.returncode == 1
    said = "DivergenceError: the loss is nan in step 6; the checkpoint of step 3 is kept"
    assert done.stderr.count(said) == 1
    assert errors(done) == []


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("the weights", r"the checksum of the weights is \d+ in process 0, \d+ in process 2"),
        ("the vocabulary", r"the fingerprint of the vocabulary is \w{16} in process 0, \w{16} in process 2"),
        (
            "the held-out text",
            r"the fingerprint of the held-out text is \w{16} in process 0, \w{16} in process 2",
        ),
        ("the setting", r"learning_rate is [\d.]+ in process 0, 0.5 in process 2"),
    ],
)
def test_processes_that_do_not_start_alike(tmp_path, what, named):
    """Nothing is trained, and the one message names the process and both values."""
    done = train(3, tmp_path / "run", what=what)
    assert done.returncode == 1
    (said,) = re.findall("DistributedError: the processes do not start alike: (.*)", done.stderr)
    assert re.fullmatch(named, said)
    assert not checkpoints(tmp_path / "run")


# --- The command line ------------------------------------------------------------------------------------


def test_the_command_trains_and_one_process_speaks(tmp_path):
    corpus, folder = commands.write_corpus(tmp_path / "text.txt"), tmp_path / "run"
    done = processes.run_pythons(2, "-m", "minigrad.bert", *commands.pretrain(corpus, folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained to step 6 in") == 1
    assert done.stderr.count("step 6: held out") == 1
    assert [row["step"] for row in table(folder / "metrics.csv")] == ["2", "4", "6"]
    assert checkpoints(folder) == ["checkpoint-000004", "checkpoint-000006"]
    again = processes.run_pythons(2, "-m", "minigrad.bert", *commands.pretrain(corpus, folder))
    assert again.returncode == 1
    assert errors(again) == [
        f"error: {folder} holds a run already (checkpoint-000006): resume it, or name another folder"
    ]


def test_more_processes_than_rows(tmp_path):
    corpus, folder = commands.write_corpus(tmp_path / "text.txt"), tmp_path / "run"
    done = processes.run_pythons(3, "-m", "minigrad.bert", *commands.pretrain(corpus, folder, batch_size=2))
    assert done.returncode == 1
    assert len(errors(done)) == 1
    assert errors(done)[0].startswith("error: a batch of 2 rows cannot be shared out over 3 processes: ")
    assert not folder.exists()
