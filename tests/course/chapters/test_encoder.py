"""Chapter `encoder`'s checkpoint, its picture of the whole model, and a learner's BERT beside the reference."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_course.chapters.encoder import against_reference, read_texts
from bert_course.exercises.encoder_assembly import bert, right_parts
from bert_course.stored import stored
from minigrad import no_grad
from minigrad.bert import from_pretrained

ROOT = Path(__file__).parents[3]
REFERENCE = ("hidden_states", "pooler_output", "prediction_logits", "seq_relationship_logits")
assemble = bert.answer


@pytest.fixture
def reference():
    return load_file(stored("tiny") / "reference.safetensors")


def test_the_checkpoint_computes_here_what_it_computed_in_transformers(reference):
    model = from_pretrained(stored("tiny")).model
    batch = [reference[name] for name in ("input_ids", "attention_mask", "token_type_ids")]
    with no_grad():
        output, body = model(*batch), model.bert(*batch)
    found = {
        "hidden_states": np.stack([states.numpy() for states in body.hidden_states]),
        "pooler_output": body.pooler_output.numpy(),
        "prediction_logits": output.prediction_logits.numpy(),
        "seq_relationship_logits": output.seq_relationship_logits.numpy(),
    }
    for name in REFERENCE:
        np.testing.assert_allclose(found[name], reference[name], rtol=1e-4, atol=3e-5, err_msg=name)


def test_the_ids_are_those_of_the_tokenizer_here(reference):
    facts = json.loads((stored("tiny") / "reference.json").read_text("utf-8"))
    tokenizer = from_pretrained(stored("tiny")).tokenizer
    for pair, pieces, ids, mask in zip(
        facts["pairs"], facts["pieces"], reference["input_ids"], reference["attention_mask"], strict=True
    ):
        encoding = tokenizer.encode(*pair)
        assert encoding.input_ids == ids[mask == 1].tolist()
        assert encoding.tokens == pieces[: mask.sum()]
    assert (reference["attention_mask"] == 0).any()
    assert "[UNK]" in facts["pieces"][1]


@pytest.mark.oracle
def test_it_can_be_made_again(tmp_path):
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("transformers")
    path = ROOT / "book" / "records" / "benchmarks" / "tiny_checkpoint.py"
    spec = importlib.util.spec_from_file_location("tiny_checkpoint", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.make(tmp_path)
    for name in ("model.safetensors", "reference.safetensors"):
        again, before = load_file(tmp_path / name), load_file(stored("tiny") / name)
        assert set(again) == set(before)
        for key, array in before.items():
            np.testing.assert_allclose(again[key], array, rtol=1e-4, atol=3e-5, err_msg=key)
    assert (tmp_path / "vocab.txt").read_text() == (stored("tiny") / "vocab.txt").read_text()
    for facts in ("pairs", "pieces"):
        again, before = (
            json.loads((folder / "reference.json").read_text("utf-8"))[facts]
            for folder in (tmp_path, stored("tiny"))
        )
        assert again == before


# --- A learner's BERT -------------------------------------------------------------------------------------


def test_a_wrong_bert_is_told_how_far_it_is_off(capsys):
    def first_layer_only(batch, parts, model):
        return assemble(batch, parts, {**model, "layers": model["layers"][:1]})

    against_reference(first_layer_only, right_parts())
    assert "less than" not in capsys.readouterr().out


def unwritten(batch, parts, model):
    return ...


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (unwritten, "bert is not written yet"),
        (lambda batch, parts, model: parts.nothing(), "it fails on the pair 'we sat"),
    ],
)
def test_what_stands_in_the_way_is_said_in_a_line(capsys, answer, words):
    against_reference(answer, right_parts())
    assert capsys.readouterr().out.startswith(words)


def test_a_missing_part_is_named(capsys):
    parts = right_parts()

    def missing(*_):
        raise NotImplementedError("multi_head is missing: not written yet")

    parts.multi_head = missing
    against_reference(assemble, parts)
    assert capsys.readouterr().out == "not yet: multi_head is missing: not written yet\n"


TEXTS = "Open the file and read all lines.", "If the file does not exist, an error is raised."


def test_a_wrong_bert_reads_otherwise(capsys):
    def last_layer_lost(batch, parts, model):
        return assemble(batch, parts, {**model, "layers": model["layers"][:-1]})

    read_texts(last_layer_lost, right_parts(), *TEXTS)
    *_pieces, far, answers = capsys.readouterr().out.splitlines()
    assert "less than" not in far
    assert len(set(re.findall(r"\d\.\d\d", answers))) == 2


def test_what_keeps_a_bert_from_reading_is_said_in_a_line(capsys):
    def fails(batch, parts, model):
        raise KeyError("W_X")

    def waits(batch, parts, model):
        raise NotImplementedError("embed is missing")

    for wrong in (fails, waits):
        read_texts(wrong, right_parts(), "One.", "Two.")
    assert capsys.readouterr().out.splitlines() == [
        "it fails on the pair 'one .', 'two .': KeyError: 'W_X'",
        "not yet: embed is missing",
    ]
