"""A run that learns to translate: its folder, its optimisers, and that it goes on bit for bit."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import tiny
from tiny import assert_same_run, before_step, checkpoints, contents, quietly, table
from tiny_translation import ARGUMENTS, CONFIGS, SIZE, TOKENIZER, changed, pairs, translating, write_pairs

import processes
from minigrad import backend, optim
from minigrad.seq2seq import training
from minigrad.seq2seq.checkpoint import from_pretrained
from minigrad.seq2seq.corpus import TranslationError
from minigrad.seq2seq.metrics import evaluate
from minigrad.seq2seq.settings import PRESETS, TranslationArguments
from minigrad.seq2seq.training import TRANSLATION, prepare_translation
from minigrad.training.folders import RunFolder, latest_checkpoint
from minigrad.training.reading import CheckpointError
from minigrad.training.run import DivergenceError

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
each_model = pytest.mark.parametrize("name", CONFIGS)


# --- What a run leaves -----------------------------------------------------------------------------------


@each_model
def test_a_run_and_what_it_leaves(tmp_path, name):
    run = translating(tmp_path, name)
    lines = quietly(run)
    assert checkpoints(tmp_path) == ["checkpoint-000008", "checkpoint-000010"]
    assert sorted(contents(tmp_path / "checkpoint-000010")) == [
        "SHA256SUMS",
        "config.json",
        "model.safetensors",
        "optimizer.safetensors",
        "tokenizer_config.json",
        "training.json",
        "vocab.txt",
    ]
    figures = ["step", "loss", "accuracy"]
    rows = table(tmp_path / "metrics.csv")
    assert list(rows[0]) == [*figures, "learning_rate", "grad_norm", "tokens_per_second"]
    assert [row["step"] for row in rows] == ["2", "4", "6", "8", "10"]
    rows = table(tmp_path / "evaluation.csv")
    assert list(rows[0]) == [*figures, "exact_match", "bleu"]
    assert [row["step"] for row in rows] == ["5", "10"]
    evaluations = [line for line in lines if "held out" in line]
    assert [line[: line.index(":")] for line in evaluations] == ["step 5", "step 10"]
    assert evaluations[1].endswith(run.describe(run.evaluation))
    examples = [line for line in lines if "→" in line]
    source, target = run.held_out_pairs[0]
    assert examples[0].startswith(f"step 5: {' '.join(TOKENIZER.id_to_token(i) for i in source)} → ")
    assert examples[0].endswith(f"(expected: {' '.join(TOKENIZER.id_to_token(i) for i in target)})")


def test_the_last_checkpoint_is_the_model(tmp_path):
    run = translating(tmp_path)
    figures = run.run([].append)
    loaded = from_pretrained(tmp_path)
    for name, array in run.model.state_dict().items():
        np.testing.assert_array_equal(
            backend.to_numpy(loaded.model.state_dict()[name]), backend.to_numpy(array)
        )
    assert evaluate(loaded.model, run.held_out).items() <= figures.items()
    assert (loaded.max_length, loaded.tokenizer.vocab) == (64, TOKENIZER.vocab)


@each_model
def test_it_learns(tmp_path, name):
    """The beginnings of four pairs, by heart: all are translated as they should be."""
    config = CONFIGS[name]
    size = {"d_model": 32, "nhead": 4} if name == "transformer" else {"hidden_size": 32}
    few = [(source[:6], target[:6]) for source, target in pairs(4)]
    settings = changed(steps=120, warmup_steps=20, eval_every=1000, save_every=1000, eval_translations=4)
    run = translating(
        tmp_path,
        name,
        config=config.replace(dropout=0.0, **size),
        pairs=few,
        held_out=few,
        arguments=settings,
    )
    lines = quietly(run)
    assert run.evaluation["exact_match"] == 1
    assert run.evaluation["bleu"] == pytest.approx(100)
    assert lines[-1].endswith(" (right)")


def test_a_held_out_loss_has_neither_dropout_nor_smoothing(tmp_path):
    config = CONFIGS["transformer"]
    with (
        translating(tmp_path / "a", config=config) as a,
        translating(tmp_path / "b", config=config.replace(dropout=0.0, label_smoothing=0.0)) as b,
    ):
        assert a.measure() == b.measure()
        assert a.measure() == a.measure()


def test_only_so_many_held_out_pairs_are_translated(tmp_path):
    for count, expected in ((2, 2), (9, 5)):
        with translating(tmp_path / str(count), arguments=changed(eval_translations=count)) as run:
            run.measure()
            assert len(run.translations) == expected
            assert sum(len(batch["input_ids"]) for batch in run.held_out) == 5


def test_a_model_whose_logits_are_not_finite_is_a_divergence(tmp_path):
    with translating(tmp_path) as run:
        for parameter in run.model.parameters():
            parameter.data[...] = np.nan
        with pytest.raises(DivergenceError, match="step 0: the model's logits are not all finite"):
            run.measure()


# --- Optimisers ------------------------------------------------------------------------------------------


def rates(run, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        found.append(run.optimizer.groups[0]["lr"])
        run.optimizer.steps += 1
        run.schedule.step()
    return found


def test_the_transformer_has_adam_and_the_schedule_of_the_paper(tmp_path):
    peak = (12 * 4) ** -0.5  # the paper's
    with translating(tmp_path, arguments=changed(learning_rate=peak, warmup_steps=4)) as run:
        assert type(run.optimizer) is optim.Adam
        (group,) = run.optimizer.groups
        assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0.0)
        expected = [12**-0.5 * min(step**-0.5, step * 4**-1.5) for step in range(1, 11)]
        np.testing.assert_allclose(rates(run, 10), expected)


@pytest.mark.parametrize(
    ("warmup_steps", "peak"), [(1, 0.0015), (4, 0.0015), (10, 0.0015), (400_000, 12**-0.5 / 400_000**0.5)]
)
def test_the_default_peak_does_not_grow_as_a_run_shrinks(tmp_path, warmup_steps, peak):
    steps = max(14, warmup_steps)
    with translating(
        tmp_path, arguments=changed(learning_rate=0.0, warmup_steps=warmup_steps, steps=steps)
    ) as run:
        run.optimizer.steps = warmup_steps - 1
        run.schedule.step()
        assert run.optimizer.groups[0]["lr"] == pytest.approx(peak)


def test_the_rate_of_the_stored_transformer_is_the_papers():
    """book/make/store.py names it, as the default is another one."""
    store = Path(__file__).parents[2] / "book" / "make" / "store.py"
    (rate,) = re.findall(r"transformer --steps \d+ --learning-rate (\S+)", store.read_text())
    assert float(rate) == (128 * 400) ** -0.5


def test_a_rate_that_is_given_is_the_peak_of_the_schedule(tmp_path):
    for name in CONFIGS:
        with translating(tmp_path / name, name, arguments=changed(learning_rate=0.25, warmup_steps=4)) as run:
            assert max(rates(run, 10)) == pytest.approx(0.25)


def test_a_recurrent_model_has_adamw_that_rises_and_falls(tmp_path):
    with translating(tmp_path, "lstm", arguments=changed(learning_rate=0.0)) as run:
        assert type(run.optimizer) is optim.AdamW
        np.testing.assert_allclose(rates(run, 4), [0, 0.005, 0.01, 0.01 * 7 / 8])
        decayed, others = run.optimizer.groups
        assert (decayed["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
        assert {parameter.ndim for parameter in decayed["params"]} == {2}
        assert {parameter.ndim for parameter in others["params"]} == {1}
        assert len(decayed["params"]) + len(others["params"]) == len(list(run.model.parameters()))


# --- Resuming --------------------------------------------------------------------------------------------

RUN = """
import os, sys
import tiny
from tiny_translation import changed, translating
output, name, where = sys.argv[1:]
arguments = changed(steps=14, gradient_accumulation_steps=2, learning_rate=3e-3)
run = translating(output, name, arguments=arguments, resume=where == "resume")

if where == "between two gradients":
    tiny.kill_at(run, 6, run.data, "next_batch", 2)
elif where == "in the middle of saving":
    tiny.kill_at(run, 8, os, "fsync", 3)
run.run()
print(run.data.epoch)
"""
LAST = "checkpoint-000014"


def process(folder: Path, name: str, where: str):
    return processes.run_python(RUN, folder, name, where)


@posix
@pytest.mark.parametrize(
    ("name", "where", "saved"),
    [
        ("lstm", "between two gradients", ["checkpoint-000004"]),
        ("transformer", "in the middle of saving", ["checkpoint-000004", "checkpoint-000008.partial"]),
    ],
)
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, name, where, saved):
    """SIGKILL, with dropout on, gradients accumulated, and epochs that change on the way."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    done = process(whole, name, "nowhere")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1
    killed = process(cut, name, where)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert checkpoints(cut) == saved
    resumed = process(cut, name, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(cut, whole, LAST)


@posix
def test_fresh_stories_go_on_bit_for_bit_too(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "PAIRS_AN_EPOCH", 12)  # three steps

    def run_in(folder, resume=False):
        return prepare_translation("stories-light", CONFIGS["lstm"], ARGUMENTS, folder, resume=resume)

    with run_in(tmp_path / "whole") as run:
        quietly(run)
        assert run.data.epoch == 3
    with run_in(tmp_path / "cut") as run:
        before_step(run, 5, lambda: os.kill(os.getpid(), signal.SIGINT))
        quietly(run)
    with run_in(tmp_path / "cut", resume=True) as run:
        quietly(run)
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def test_a_run_is_not_resumed_with_other_settings(tmp_path):
    quietly(translating(tmp_path))
    for changes, named in (
        ({"arguments": changed(steps=20, seed=1)}, "seed is 0 there, 1 here; steps is 10 there, 20 here"),
        ({"config": CONFIGS["transformer"].replace(d_model=14)}, "d_model is 12 there, 14 here"),
        ({"config": CONFIGS["lstm"]}, "model_type is transformer-seq2seq there, recurrent-seq2seq here"),
        ({"corpus": "other"}, "the text (fingerprint stories there, other here)"),
        ({"held_out": pairs(5, seed=3)}, "the held-out text (fingerprint "),
    ):
        with pytest.raises(CheckpointError, match="cannot be resumed with other settings") as caught:
            translating(tmp_path, resume=True, **changes)
        assert named in str(caught.value)


def test_runs_of_two_kinds_are_told_apart(tmp_path):
    tiny.pretraining(tmp_path / "bert").run([].append)
    with pytest.raises(
        CheckpointError, match=r"config\.json: model_type is 'bert', expected one of recurrent-seq2seq"
    ):
        translating(tmp_path / "bert", resume=True)
    quietly(translating(tmp_path / "other"))
    with pytest.raises(
        CheckpointError, match=r"config\.json: model_type is 'transformer-seq2seq': this BERT has"
    ):
        tiny.pretraining(tmp_path / "other", resume=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tally": {"loss": 0.0, "hits": -1, "count": 3}}, r"tally\.hits: expected at least 0, got -1"),
        ({"evaluation": {"loss": 1.0}}, r"evaluation\.accuracy: is missing"),
    ],
)
def test_a_damaged_state_is_named(tmp_path, changes, message):
    quietly(translating(tmp_path))
    (tmp_path / "checkpoint-000010" / "SHA256SUMS").unlink()
    path = tmp_path / "checkpoint-000010" / "training.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(
        CheckpointError, match=rf"training\.json: {message}.*checkpoint-000008 is there: to go on"
    ):
        translating(tmp_path, resume=True)


# --- From texts to a run ---------------------------------------------------------------------------------


@pytest.mark.no_arrays
def test_settings():
    with pytest.raises(ValueError, match="warmup_steps must be within 1 … steps = 10, got 11"):
        changed(warmup_steps=11)
    with pytest.raises(ValueError, match="max_length must be at least 2, got 1"):
        changed(max_length=1)
    lines = (TranslationArguments.__doc__ or "").splitlines()
    assert "steps: optimiser steps (default: 2000)" in lines
    assert list(PRESETS) == ["lstm", "lstm-attention", "transformer"]
    assert list(RunFolder("x", TRANSLATION).evaluations.columns) == ["step", *TRANSLATION.scores]


def test_a_vocabulary_that_is_larger_than_the_model(tmp_path):
    with pytest.raises(ValueError, match=f"the vocabulary has {SIZE} pieces, the model only {SIZE - 1}"):
        translating(tmp_path, config=CONFIGS["lstm"].replace(vocab_size=SIZE - 1))


def prepared(folder: Path, corpus: str | Path, settings: TranslationArguments = ARGUMENTS, **more: object):
    lines: list[str] = []
    run = prepare_translation(corpus, CONFIGS["lstm"], settings, folder / "run", say=lines.append, **more)
    with run:
        return run, lines


@pytest.mark.parametrize("corpus", training.CORPORA)
def test_stories(tmp_path, monkeypatch, corpus):
    monkeypatch.setattr(training, "PAIRS_AN_EPOCH", 12)
    run, (line,) = prepared(tmp_path, corpus, changed(max_length=200))
    assert line.startswith(f"fresh '{corpus.removeprefix('stories-')}' stories in each epoch, ")
    assert run.notes == []
    first = run.data.pairs
    assert len(first) == 12
    for _ in range(4):
        run.data.next_batch()
    assert not {str(pair) for pair in first} & {str(pair) for pair in run.data.pairs}
    assert run.tokenizer.unk_token_id not in [i for pair in first for side in pair for i in side]
    assert run.model.config.vocab_size == run.tokenizer.vocab_size


def test_stories_that_are_too_long_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "PAIRS_AN_EPOCH", 12)
    run, _ = prepared(tmp_path, "stories-long", changed(max_length=20, eval_translations=50))
    (note,) = run.notes
    left = len(run.held_out_pairs)
    assert note.startswith(
        f"stories of more than 20 pieces are left out, {50 - left} of the 50 held-out ones; "
    )
    assert all(len(side) < 20 for pair in [*run.data.pairs, *run.held_out_pairs] for side in pair)
    with pytest.raises(
        TranslationError, match="every one of 3 'light' stories has more than max_length = 5 pieces"
    ):
        prepared(tmp_path / "none", "stories-light", changed(max_length=5))


def test_a_file(tmp_path):
    file = write_pairs(tmp_path / "mine.tsv", 40)
    run, lines = prepared(tmp_path, file, held_out=0.2, vocab_size=300)
    assert lines == [
        f"reading {file} …",
        "32 pairs to learn from, 8 held out",
        f"WordPiece: {run.tokenizer.vocab_size} pieces, learned from both columns",
    ]
    assert run.notes == []
    assert len(run.data.pairs) == 32
    assert not {tuple(source) for source, _ in run.data.pairs} & {
        tuple(source) for source, _ in run.held_out_pairs
    }
    assert run.held_out_share == 0.2
    assert run.tokenizer.lower_case is False
    again, _ = prepared(tmp_path, file, held_out=0.2, vocab_size=300)
    assert [len(side) for pair in again.held_out_pairs for side in pair] == [
        len(side) for pair in run.held_out_pairs for side in pair
    ]


def test_a_source_with_two_translations_is_on_one_side(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text("".join(f"a word {i % 5}\tein wort {i}\n" for i in range(20)))
    run, lines = prepared(tmp_path, file, held_out=0.2)
    assert lines[1] == "16 pairs to learn from, 4 held out"
    assert len({tuple(source) for source, _ in run.held_out_pairs}) == 1


def test_a_file_to_score_the_model_on(tmp_path):
    train, dev = write_pairs(tmp_path / "train.tsv", 30), write_pairs(tmp_path / "dev.tsv", 6, seed=1)
    with open(dev, "a", encoding="utf-8") as file:
        file.write(train.read_text(encoding="utf-8").splitlines()[0] + "\nthe moon ☃\tmoon\n")
    run, lines = prepared(tmp_path, train, evaluation=dev)
    assert lines[1] == "30 pairs to learn from, 8 held out"
    assert run.notes == [
        "1 of 8 held-out pairs have characters that no pair to learn from has",
        f"1 of the 8 sources in {dev} are in {train} too",
    ]


def test_rows_that_are_too_long_are_counted_and_named(tmp_path):
    file = write_pairs(tmp_path / "mine.tsv", 20)
    rows = file.read_text(encoding="utf-8").splitlines()
    for number in (3, 5, 8, 9, 10, 11, 12):
        rows[number - 1] = "a " * 70 + f"{number}\tb"
    file.write_text("\n".join(rows), encoding="utf-8")
    run, _ = prepared(tmp_path, file, evaluation=write_pairs(tmp_path / "dev.tsv", 5, seed=1), vocab_size=400)
    (note,) = run.notes
    assert note == (
        f"{file}: 7 of 20 rows have more than max_length = 64 pieces with the end token, or none: "
        "rows 3, 5, 8, 9, 10 and 2 more; left out"
    )
    assert len(run.data.pairs) == 13
    with pytest.raises(
        TranslationError, match=r"10 of 10 rows have more than max_length = 3 .*; nothing is left"
    ):
        prepared(tmp_path, file, changed(max_length=3), held_out=0.5)


def test_the_end_token_counts(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text("".join(f"{'a ' * words}\tb\n" for words in (3, 4, 5)))
    (tmp_path / "dev.tsv").write_text("a b\tb a\n")
    run, _ = prepared(tmp_path, file, changed(max_length=5), evaluation=tmp_path / "dev.tsv")
    assert sorted(len(source) for source, _ in run.data.pairs) == [3, 4]
    assert run.notes[0].endswith("or none: row 3; left out")


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5])
def test_a_share_that_makes_no_sense(tmp_path, share):
    with pytest.raises(ValueError, match=f"held_out must be above 0 and below 1, got {share}"):
        prepared(tmp_path, write_pairs(tmp_path / "mine.tsv", 5), held_out=share)


def test_too_little_to_hold_something_out(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text("a word\tein wort\na word\tdas wort\n")
    with pytest.raises(
        TranslationError, match=r"mine\.tsv has too few different sources, 1, to hold a share of 0.05"
    ):
        prepared(tmp_path, file)
    assert not (tmp_path / "run").exists()


def test_a_model_that_does_not_fit_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "machine_memory", lambda: 10**6)
    with pytest.raises(ValueError, match=r"moments need 0\.\d GB, this machine has 0\.0"):
        prepare_translation("stories-light", PRESETS["transformer"], ARGUMENTS, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_of_a_file_is_resumed_with_the_same_file_only(tmp_path):
    file = write_pairs(tmp_path / "mine.tsv", 30)
    run, _ = prepared(tmp_path, file, vocab_size=250)
    quietly(run)
    again, _ = prepared(tmp_path, file, vocab_size=250, resume=True)
    assert again.step == 10
    for changes, named in (
        ({"vocab_size": 240}, "vocab_size is 250 there, 240 here"),
        ({"lower_case": True}, "whether the text is lower-cased"),
        ({"held_out": 0.5}, "the text (fingerprint"),
    ):
        with pytest.raises(CheckpointError) as caught:
            prepared(tmp_path, file, resume=True, **{"vocab_size": 250, **changes})
        assert named in str(caught.value)
    assert latest_checkpoint(tmp_path / "run").name == "checkpoint-000010"
