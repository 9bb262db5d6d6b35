"""Checkpoints written here and read by transformers, written there and read here."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from checkpoints import assert_same_logits, inputs, logits, make_model
from safetensors.numpy import save_file
from tiny import SMALL

from minigrad.bert.checkpoint import from_pretrained, save_pretrained
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.model import BertForPreTraining, BertModel, parameter_shapes


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch").set_num_threads(1)
    module = pytest.importorskip("transformers")
    module.logging.set_verbosity_error()
    module.logging.disable_progress_bar()
    return module


def their_logits(model, config):
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        output = model(**{name: torch.tensor(values) for name, values in inputs(config).items()})
    names = ("prediction_logits", "seq_relationship_logits")
    if not hasattr(output, names[0]):
        names = ("last_hidden_state", "pooler_output")
    return [getattr(output, name).numpy() for name in names]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [BertForPreTraining, BertModel])
def test_transformers_opens_what_is_saved_here(tmp_path, config, transformers, kind):
    model = make_model(config, kind)
    save_pretrained(model, tmp_path)
    there = getattr(transformers, kind.__name__)
    theirs, report = there.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    assert set(report["missing_keys"]) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert_same_logits(logits(model), their_logits(theirs.eval(), config))


def their_model(transformers, config: BertConfig, kind: str = "BertForPreTraining"):
    """A model of transformers with random weights large enough that every part matters."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = getattr(transformers, kind)(transformers.BertConfig.from_dict(config.to_dict()))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return model.eval()


@pytest.mark.oracle
@pytest.mark.parametrize("shard_size", ["1GB", "5KB"], ids=["one file", "several files"])
def test_what_transformers_saves_opens_here(tmp_path, config, transformers, shard_size):
    theirs = their_model(transformers, config)
    theirs.save_pretrained(tmp_path, max_shard_size=shard_size)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard_size == "5KB")
    loaded = from_pretrained(tmp_path)
    assert loaded.notes == []
    assert_same_logits(logits(loaded.model), their_logits(theirs, config))


@pytest.mark.oracle
def test_a_model_of_transformers_without_heads_opens_here(tmp_path, transformers):
    theirs = their_model(transformers, SMALL, "BertModel")
    theirs.save_pretrained(tmp_path)
    loaded = from_pretrained(tmp_path, BertModel)
    assert loaded.notes == []
    assert_same_logits(logits(loaded.model), their_logits(theirs, SMALL))
    with_heads = from_pretrained(tmp_path)
    assert_same_logits(logits(with_heads.model.bert), their_logits(theirs, SMALL))
    assert "left as initialised: cls." in with_heads.notes[0]


@pytest.mark.oracle
def test_a_masked_language_model_of_transformers_opens_here(tmp_path, transformers):
    torch = pytest.importorskip("torch")
    theirs = their_model(transformers, SMALL, "BertForMaskedLM")
    theirs.save_pretrained(tmp_path)
    loaded = from_pretrained(tmp_path)
    assert [note.split(":")[0] for note in loaded.notes] == ["not in the checkpoint, left as initialised"]
    with torch.no_grad():
        expected = theirs(**{name: torch.tensor(values) for name, values in inputs(SMALL).items()}).logits
    assert_same_logits(logits(loaded.model)[:1], [expected.numpy()])


@pytest.mark.oracle
@pytest.mark.parametrize("activation", ["relu", "gelu_python"])
def test_other_activations(tmp_path, transformers, activation):
    theirs = their_model(transformers, SMALL.replace(hidden_act=activation))
    theirs.save_pretrained(tmp_path)
    loaded = from_pretrained(tmp_path)
    assert loaded.notes == []
    expected = their_logits(theirs, SMALL)
    assert_same_logits(logits(loaded.model), expected)
    save_pretrained(loaded.model, tmp_path / "again")
    again = transformers.BertForPreTraining.from_pretrained(tmp_path / "again").eval()
    assert again.config.hidden_act == activation
    assert_same_logits(their_logits(again, SMALL), expected)


def bert_base_uncased(folder):
    """A folder with the names, shapes and dtypes of bert-base-uncased's files, of a million numbers over and over."""
    shapes = parameter_shapes(PRESETS["base"])
    state, numbers = {}, np.random.default_rng(0).standard_normal(1_000_003, np.float32)
    for name, shape in shapes.items():
        other = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        turned = len(shape) == 2 and not name.endswith("embeddings.weight")
        state[other] = np.resize(0.02 * numbers, shape[::-1] if turned else shape)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    pieces = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [f"w{i}" for i in range(30_522 - len(pieces))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    sizes = {"architectures": ["BertForMaskedLM"], "model_type": "bert", "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps({**PRESETS["base"].to_dict(), **sizes}), "utf-8")
    return state


@pytest.mark.oracle
def test_a_folder_like_that_of_bert_base_opens_with_little_memory(tmp_path):
    """110 million parameters in at most 2 GB, opened by what chapter `published` calls, in a process of its own."""
    pytest.importorskip("transformers")  # it takes too long for the tests without oracles
    state = bert_base_uncased(tmp_path)
    code = (
        "import resource, numpy as np\n"
        "from bert_course.chapters.published import vectors\n"
        "from bert_course.common.published_model import published\n"
        "loaded = published()\n"
        "X, mask = vectors(loaded, ['w1 w2', 'w3'])\n"
        "names = sorted(loaded.model.state_dict())\n"
        "W = loaded.model.state_dict()['encoder.layer.11.attention.self.query.weight']\n"
        "print(X.shape, len(names), float(W[0, 1]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    environment = {**os.environ, "COURSE_PUBLISHED": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    *shape, arrays, entry, kilobytes = ran.stdout.replace("(", "").replace(")", "").replace(",", "").split()
    assert shape == ["2", "4", "768"]
    assert int(arrays) == sum(name.startswith("bert.") for name in state)
    stored = state["bert.encoder.layer.11.attention.self.query.weight"]  # (out, in)
    assert float(entry) == pytest.approx(float(stored[1, 0]))
    assert int(kilobytes) < 2_000_000
