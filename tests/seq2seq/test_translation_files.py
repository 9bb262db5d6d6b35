"""A model that translates, saved and read again; what is damaged, or of another kind, is named."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from checkpoints import rewrite, set_config
from safetensors.numpy import load_file
from tiny import contents
from tiny_translation import CONFIGS, TOKENIZER, model, pairs, translating

from book.make import store
from minigrad import backend, no_grad
from minigrad.seq2seq import checkpoint
from minigrad.seq2seq.checkpoint import from_pretrained, make_model, parameter_count, save_pretrained
from minigrad.seq2seq.config import RecurrentConfig, Seq2SeqConfig, TransformerConfig
from minigrad.seq2seq.data import pad_pairs
from minigrad.training.folders import RunFolder
from minigrad.training.reading import CheckpointError, ConfigError

SIZES: list[Seq2SeqConfig] = [
    *CONFIGS.values(),
    *(
        RecurrentConfig(
            11, hidden_size=6, cell=cell, num_layers=layers, bidirectional=both, attention=attention
        )
        for cell, layers, both, attention in (
            ("lstm", 3, True, "additive"),
            ("gru", 2, True, "dot"),
            ("gru", 1, False, "general"),
            ("rnn", 2, True, "none"),
            ("rnn", 1, False, "additive"),
        )
    ),
    TransformerConfig(11, d_model=6, nhead=3, num_encoder_layers=0, num_decoder_layers=3, dim_feedforward=5),
]


@pytest.mark.parametrize("config", SIZES, ids=str)
def test_parameters_are_counted_without_a_model(config):
    assert parameter_count(config) == sum(parameter.size for parameter in make_model(config).parameters())


def logits(of) -> np.ndarray:
    batch = pad_pairs(pairs(3), of.config.end_token_id, of.config.pad_token_id)
    with no_grad():
        return of.eval()(**batch).logits.numpy()


def test_a_checkpoint_that_its_run_removes_on_the_way_is_not_taken_for_one_without_vocabulary(
    tmp_path, monkeypatch
):
    run, files = RunFolder(tmp_path), checkpoint.pretrained_files(model("lstm"), TOKENIZER)
    run.save(1, files)
    steps, true = iter([2, 3]), checkpoint.read_tokenizer

    def beside_the_run(folder, size):
        for step in steps:
            run.save(step, files)  # the third lets the first go
        return true(folder, size)

    monkeypatch.setattr(checkpoint, "read_tokenizer", beside_the_run)
    assert from_pretrained(tmp_path).tokenizer.vocab == TOKENIZER.vocab


@pytest.fixture(params=CONFIGS)
def name(request) -> str:
    return request.param


@pytest.fixture
def saved(tmp_path, name) -> Path:
    """A folder with a model and its tokenizer, without sums: what is damaged is found by what it is."""
    save_pretrained(model(name), tmp_path, TOKENIZER, 40)
    (tmp_path / "SHA256SUMS").unlink()
    return tmp_path


def test_there_and_back(tmp_path, name):
    before = model(name)
    save_pretrained(before, tmp_path, TOKENIZER, 40)
    assert sorted(contents(tmp_path)) == [
        "SHA256SUMS",
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    after = from_pretrained(tmp_path)
    np.testing.assert_array_equal(logits(after.model), logits(before))
    assert after.model.training is False
    assert after.model.config == before.config
    assert (after.notes, after.max_length) == ([], 40)
    assert after.tokenizer.vocab == TOKENIZER.vocab
    values = json.loads((tmp_path / "config.json").read_text())
    assert values["model_type"] == before.config.model_type
    assert values["architectures"] == [type(before).__name__]


def test_without_a_vocabulary_or_a_length(saved):
    for file in ("vocab.txt", "tokenizer_config.json"):
        (saved / file).unlink()
    loaded = from_pretrained(saved)
    assert (loaded.tokenizer, loaded.max_length) == (None, None)


def change_weights(change):
    return lambda folder: rewrite(folder, change)


def change_options(**changes):
    return set_config("tokenizer_config.json", **changes)


def first(state):
    return next(iter(state))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no checkpoint in it; train one with: python -m min"),
        (set_config(model_type="bert"), r"config\.json: model_type is 'bert', expected one of recurrent-seq"),
        (set_config(model_type=["x"]), r"config\.json: model_type is \['x'\], expected one of"),
        (set_config(vocab_size=-3), r"config\.json: vocab_size must be at least 1, got -3"),
        (set_config(start_token_id=0), r"config\.json: pad_token_id, start_token_id and end_token_id must differ"),
        (set_config(end_token_id=9), r"end token are \(0, 2, 3\) in the vocabulary, \(0, 2, 9\) in config"),
        (set_config(vocab_size=2**31 - 1), r"not fit config\.json: .* is \(306, 12\), expected \(2147483647, 12\)"),
        (set_config(vocab_size=400), r"weights do not fit config\.json: .* is \(306, 12\), expected \(400, 12\)"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors is missing"),
        (change_weights(lambda s: {n: a for n, a in s.items() if n != first(s)}), "1 weights are missing: "),
        (change_weights(lambda s: {**s, "more": np.zeros(3)}), "has weights that no such model has: more"),
        (change_weights(lambda s: {**s, first(s): s[first(s)] * np.nan}), "numbers that are not finite"),
        (change_weights(lambda s: {n: a.astype(np.int32) for n, a in s.items()}), "is I32, but weights are one of"),
        (change_options(model_max_length="long"), "model_max_length must be an integer of at least 2, got 'long'"),
        (change_options(model_max_length=True), "model_max_length must be an integer of at least 2, got True"),
        (lambda folder: (folder / "vocab.txt").write_text("a\nb"), "vocab.txt holds no vocabulary of WordPiece"),
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_named(saved, damage, message):
    damage(saved)
    with pytest.raises((CheckpointError, ConfigError), match=message):
        from_pretrained(saved)


def test_sizes_beyond_the_file_take_no_memory(saved, name):
    """A model of these sizes would take terabytes."""
    fields = {"d_model": 2**20, "nhead": 2} if name == "transformer" else {"hidden_size": 2**20}
    set_config(**fields)(saved)
    with pytest.raises(CheckpointError, match=r"is \(306, 12\), expected \(306, 1048576\)"):
        from_pretrained(saved)
    layers = {"num_decoder_layers": 1_000} if name == "transformer" else {"num_layers": 1_000}
    set_config(**layers)(saved)
    with pytest.raises(CheckpointError, match="weights are missing"):
        from_pretrained(saved)


def test_a_file_that_is_not_what_was_saved(tmp_path):
    save_pretrained(model("lstm"), tmp_path, TOKENIZER)
    set_config(dropout=0.0)(tmp_path)
    with pytest.raises(CheckpointError, match=r"config\.json is damaged: it is not what was saved"):
        from_pretrained(tmp_path)


def test_a_stored_model_is_the_run_s_in_half_precision(tmp_path, name):
    run = translating(tmp_path / "run", name)
    run.run([].append)
    store.store(tmp_path / "run", tmp_path / "stored")
    stored = from_pretrained(tmp_path / "stored")
    assert all(a.dtype == np.float16 for a in load_file(tmp_path / "stored" / "model.safetensors").values())
    np.testing.assert_allclose(logits(stored.model), logits(run.model), atol=2e-2)
    assert not np.array_equal(logits(stored.model), logits(run.model))
    assert (tmp_path / "stored" / "evaluation.csv").exists()
    assert stored.max_length == 64
    weights = sum(math.prod(a.shape) for a in map(backend.to_numpy, run.model.state_dict().values()))
    assert (tmp_path / "stored" / "model.safetensors").stat().st_size < 2 * weights + 5000
