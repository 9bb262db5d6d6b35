"""The models and curves that came with the course."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import bert_course.stored as module
import minigrad
from bert_course.stored import stored
from book.make import store
from minigrad.bert import BertForPreTraining, from_pretrained, save_pretrained
from minigrad.bert.config import BertConfig
from minigrad.text.tokenizer import WordPieceTokenizer

ROOT = Path(minigrad.__file__).resolve().parent.parent
CONFIG = BertConfig(
    vocab_size=12,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=20,
)
SIZES = {  # of a config.json: layers, heads, d_model, with None where an architecture has none
    "bert": ("num_hidden_layers", "num_attention_heads", "hidden_size"),
    "transformer-seq2seq": ("num_encoder_layers", "nhead", "d_model"),
    "recurrent-seq2seq": ("num_layers", None, "hidden_size"),
}


def test_what_is_not_there_is_named_with_what_is():
    with pytest.raises(FileNotFoundError, match=r"no stored 'nothing'; it has .*start"):
        stored("nothing")


def test_a_page_brings_what_a_file_lies_in(monkeypatch):
    brought = []
    monkeypatch.setattr(module, "bring", brought.append)
    assert stored("authors/dev.csv").is_file()
    assert stored("start").is_dir()
    assert brought == ["authors", "start"]


def test_the_stored_model_opens_and_has_a_tokenizer():
    loaded = from_pretrained(stored("start"))
    assert loaded.notes == []
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.vocab_size == loaded.model.config.vocab_size


def test_no_stored_file_is_larger_than_two_megabytes():
    for path in (ROOT / "book" / "records").rglob("*"):
        assert path.stat().st_size <= 2_000_000, path


def test_storing_keeps_the_model_in_half_precision_and_cuts_positions(tmp_path):
    run, target = tmp_path / "run", tmp_path / "stored"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
    model = BertForPreTraining(CONFIG)
    save_pretrained(model, run / "checkpoint-000003", WordPieceTokenizer(words))
    (run / "evaluation.csv").write_text("step,mlm_loss\n3,2.5\n")
    store.store(run, target)  # 64 positions asked for, 20 there

    weights = load_file(target / "model.safetensors")
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float16)}
    store.store(run, target, max_length=6)
    assert json.loads((target / "config.json").read_text())["max_position_embeddings"] == 6
    assert (target / "evaluation.csv").read_text() == "step,mlm_loss\n3,2.5\n"

    loaded = from_pretrained(target)
    ids = np.array([[2, 5, 9, 3]])
    expected, got = (each.eval()(ids).prediction_logits.numpy() for each in (model, loaded.model))
    np.testing.assert_allclose(got, expected, atol=2e-2)
    assert loaded.tokenizer.encode("a b").input_ids == [2, 5, 6, 3]


def test_the_wheel_of_the_course_carries_every_package():
    """The list in pyproject.toml is by hand, because the stored runs are mapped into the package."""
    pyproject = tomllib.loads((ROOT / "book" / "pyproject.toml").read_text())
    listed = set(pyproject["tool"]["setuptools"]["packages"])
    found = {
        ".".join(path.parent.relative_to(ROOT / "book").parts)
        for path in (ROOT / "book" / "bert_course").rglob("__init__.py")
    }
    assert listed == found | {"bert_course.records", "bert_course.solutions"}  # the authors' tools stay here


def test_a_wheel_finds_its_own_runs(tmp_path, monkeypatch):
    package = tmp_path / "bert_course"
    shutil.copytree(ROOT / "book" / "records" / "tiny", package / "records" / "tiny")
    monkeypatch.setattr(module, "files", lambda name: package)
    assert stored("tiny") == package / "records" / "tiny"


def test_the_symbols_page_lists_each_stored_model_with_its_sizes():
    text = (ROOT / "book" / "symbols.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (table,) = (part for part in section if part.startswith("The stored models"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "| `" in line]
    listed = {name.strip("`"): (sizes, int(count.replace(",", ""))) for name, _, sizes, count in rows}

    there = {path.parent.name for path in (ROOT / "book" / "records").glob("*/model.safetensors")} | {"start"}
    assert set(listed) == there
    for name, (sizes, count) in listed.items():
        assert count == sum(
            weights.size for weights in load_file(stored(name) / "model.safetensors").values()
        )
        config = json.loads((stored(name) / "config.json").read_text(encoding="utf-8"))
        layers, heads, d_model = (config[key] if key else "none" for key in SIZES[config["model_type"]])
        if config["model_type"] == "transformer-seq2seq":
            layers = f"{layers} and {config['num_decoder_layers']}"
        assert sizes == f"{layers}, {heads}, {d_model}"
