"""A stored model is the run's, in half precision, with the positions that training used."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_course.stored import stored
from book.make import store
from minigrad import no_grad
from minigrad.bert import from_pretrained
from minigrad.bert.__main__ import main
from minigrad.training.folders import latest_checkpoint
from minigrad.training.pretrained import WEIGHTS

SIZES = ["num_hidden_layers=1", "hidden_size=16", "intermediate_size=16"]


def test_a_stored_model_computes_what_the_run_did(tmp_path, monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 32)
    run, target = tmp_path / "run", tmp_path / "stored"
    settings = ["--steps", "2", "--batch-size", "4", "--max-length", "32", "--output", str(run)]
    sizes = [part for size in SIZES for part in ("--set", size)]
    assert main(["pretrain", "--corpus", "stories", *settings, *sizes]) == 0
    store.store(run, target, 32)

    before, after = from_pretrained(latest_checkpoint(run)), from_pretrained(target)
    assert (before.model.config.max_position_embeddings, after.model.config.max_position_embeddings) == (
        512,
        32,
    )
    ids = np.random.default_rng(0).integers(5, before.model.config.vocab_size, (3, 32))
    with no_grad():
        logits = [loaded.model.eval()(ids).prediction_logits.numpy() for loaded in (before, after)]
    np.testing.assert_allclose(*logits, atol=2e-3)
    assert not np.array_equal(*logits)  # half precision rounds
    assert all(array.dtype == np.float16 for array in load_file(target / WEIGHTS).values())
    assert (target / "evaluation.csv").read_bytes() == (run / "evaluation.csv").read_bytes()
    assert after.tokenizer is not None
    assert after.tokenizer.vocab == before.tokenizer.vocab


@pytest.mark.parametrize("name", store.MODELS)
def test_a_model_is_trained_as_its_options_say(name, tmp_path, monkeypatch):
    """The options are options of the command, and name the model that is stored."""
    module, options, _ = store.MODELS[name]
    parse = importlib.import_module(
        f"{module}.{'options' if module == 'minigrad.bert' else '__main__'}"
    ).parse
    asked = parse([*options.split(), "--output", str(tmp_path)])
    steps = int(stored(f"{name}/evaluation.csv").read_text().split()[-1].split(",")[0])
    assert asked.steps == steps
