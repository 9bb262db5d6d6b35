"""Checkpoints in Hugging Face's format: written here and read there, written there and read here, damaged."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tiny import SMALL

import minigrad
from minigrad import backend
from minigrad.bert.checkpoint import (
    CheckpointError,
    from_pretrained,
    pretrained_files,
    save_pretrained,
)
from minigrad.bert.config import BertConfig, ConfigError
from minigrad.bert.files import SaveError
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.bert.tokenizer import SPECIAL_TOKENS, WordPieceTokenizer
from minigrad.tensor import no_grad

CONFIGS = {
    "small": SMALL,
    "odd sizes": SMALL.replace(vocab_size=53, hidden_size=15, num_attention_heads=5, intermediate_size=7),
    "one head, one layer": SMALL.replace(num_hidden_layers=1, num_attention_heads=1, hidden_size=9),
    "square": SMALL.replace(intermediate_size=12, vocab_size=12, max_position_embeddings=12),
    "three segments, large eps": SMALL.replace(type_vocab_size=3, layer_norm_eps=1e-3, pad_token_id=2),
}


@pytest.fixture(params=CONFIGS)
def config(request) -> BertConfig:
    return CONFIGS[request.param]


def make_model(config: BertConfig = SMALL, kind: type = BertForPreTraining):
    """A model whose weights are large enough that every part matters, LayerNorms and biases too."""
    model = kind(config)
    rng = np.random.default_rng(7)
    state = {name: 0.3 * rng.standard_normal(array.shape) for name, array in model.state_dict().items()}
    model.load_state_dict({n: a + 1 if n.endswith("LayerNorm.weight") else a for n, a in state.items()})
    return model.eval()


def inputs(config: BertConfig) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    mask = np.arange(9) < np.array([9, 4, 7])[:, None]
    ids = rng.integers(3, config.vocab_size, (3, 9))
    return {
        "input_ids": np.where(mask, ids, config.pad_token_id),
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": rng.integers(0, config.type_vocab_size, (3, 9)),
    }


def logits(model) -> list[np.ndarray]:
    with no_grad():
        output = model(**inputs(model.config))
    if isinstance(model, BertModel):
        return [output.last_hidden_state.numpy(), output.pooler_output.numpy()]
    return [output.prediction_logits.numpy(), output.seq_relationship_logits.numpy()]


def assert_same_logits(mine, theirs, tolerance: float = 1e-5) -> None:
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def tokenizer(lower_case: bool = True, strip_accents: bool | None = None) -> WordPieceTokenizer:
    vocab = [*SPECIAL_TOKENS, "a", "b", "A", "é", "e", "##b", "É", "##é", "##e", "!", "中"]
    return WordPieceTokenizer(vocab, lower_case, strip_accents)


# --- There and back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [BertForPreTraining, BertModel])
def test_what_is_saved_is_loaded(tmp_path, config, kind):
    model = make_model(config, kind)
    save_pretrained(model, tmp_path / "deep" / "model")
    loaded = from_pretrained(tmp_path / "deep" / "model", kind)
    assert type(loaded.model) is kind
    assert loaded.model.config == config
    assert loaded.tokenizer is None
    assert loaded.notes == []
    state = loaded.model.state_dict()
    for name, array in model.state_dict().items():
        assert str(state[name].dtype) == "float32"
        np.testing.assert_array_equal(backend.to_numpy(state[name]), backend.to_numpy(array), err_msg=name)
    assert not any(part.training for part in loaded.model.modules())


def test_a_linear_layer_is_stored_the_other_way_round(tmp_path):
    model = make_model()
    save_pretrained(model, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    mine = model.state_dict()
    assert set(stored) == set(mine)
    for name in ("bert.encoder.layer.0.attention.self.query.weight", "bert.pooler.dense.weight"):
        np.testing.assert_array_equal(stored[name], backend.to_numpy(mine[name]).T)
    assert stored["bert.encoder.layer.1.intermediate.dense.weight"].shape == (20, 12)
    assert stored["cls.seq_relationship.weight"].shape == (2, 12)
    assert stored["bert.embeddings.word_embeddings.weight"].shape == (41, 12)


def test_the_weights_say_that_they_are_pytorch_s(tmp_path):
    """Versions of transformers before 5 refuse a file that does not."""
    save_pretrained(make_model(), tmp_path)
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}


def test_saving_again_replaces_each_file(tmp_path):
    save_pretrained(make_model(CONFIGS["odd sizes"]), tmp_path, tokenizer())
    model = make_model(SMALL)
    save_pretrained(model, tmp_path, tokenizer(lower_case=False))
    assert from_pretrained(tmp_path).model.config == SMALL
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(pretrained_files(model, tokenizer()))


def test_equal_models_make_equal_files():
    assert pretrained_files(make_model(), tokenizer()) == pretrained_files(make_model(), tokenizer())


@pytest.mark.parametrize(
    ("lower_case", "strip_accents"), [(True, None), (False, None), (True, False), (False, True)]
)
def test_the_tokenizer_comes_along(tmp_path, lower_case, strip_accents):
    mine = tokenizer(lower_case, strip_accents)
    save_pretrained(make_model(), tmp_path, mine)
    loaded = from_pretrained(tmp_path).tokenizer
    assert (loaded.vocab, loaded.lower_case, loaded.strip_accents) == (mine.vocab, lower_case, strip_accents)
    text = "Ab É é [MASK] 中!"
    assert loaded.encode(text) == mine.encode(text)


def test_without_options_a_vocabulary_is_uncased(tmp_path):
    save_pretrained(make_model(), tmp_path, tokenizer(lower_case=False))
    (tmp_path / "tokenizer_config.json").unlink()
    loaded = from_pretrained(tmp_path).tokenizer
    assert loaded.lower_case
    assert loaded.strip_accents is None


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    save_pretrained(make_model(), tmp_path, tokenizer())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(SaveError, match=r"could not save .*config\.json: No space left on device"):
        save_pretrained(make_model(CONFIGS["odd sizes"]), tmp_path, tokenizer())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- Other names, more and fewer weights -----------------------------------------------------------------


def rewrite(folder: Path, change) -> None:
    """Replace the weights in a folder by what `change` makes of them."""
    path = folder / "model.safetensors"
    save_file({name: np.ascontiguousarray(a) for name, a in change(load_file(path)).items()}, path)


@pytest.fixture
def saved(tmp_path) -> Path:
    """A folder with a model and its tokenizer."""
    save_pretrained(make_model(), tmp_path, tokenizer())
    return tmp_path


def old_layer_norm_names(state):
    return {
        re.sub("LayerNorm.bias", "LayerNorm.beta", re.sub("LayerNorm.weight", "LayerNorm.gamma", name)): array
        for name, array in state.items()
    }


def with_buffers(state):
    ids = np.arange(16)[None]
    return {
        **state,
        "bert.embeddings.position_ids": ids,
        "bert.embeddings.token_type_ids": np.zeros_like(ids),
    }


def with_decoder(state):
    return {
        **state,
        "cls.predictions.decoder.weight": state["bert.embeddings.word_embeddings.weight"],
        "cls.predictions.decoder.bias": state["cls.predictions.bias"],
    }


def with_the_bias_under_the_decoder_only(state):
    state = with_decoder(state)
    del state["cls.predictions.bias"]
    return state


def without_prefix(state):
    return {name.removeprefix("bert."): array for name, array in state.items()}


@pytest.mark.parametrize(
    ("change", "left_out"),
    [
        (lambda state: state, []),
        (old_layer_norm_names, []),
        (without_prefix, []),
        (with_buffers, ["bert.embeddings.position_ids", "bert.embeddings.token_type_ids"]),
        (with_decoder, ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"]),
        (with_the_bias_under_the_decoder_only, ["cls.predictions.decoder.weight"]),
        (
            lambda state: old_layer_norm_names(with_buffers(with_decoder(state))),
            ["bert.embeddings.position_ids"],
        ),
        (lambda state: dict(reversed(state.items())), []),
        (lambda state: {name: array.astype(np.float64) for name, array in state.items()}, []),
    ],
    ids=[
        "as saved",
        "gamma and beta",
        "no prefix",
        "buffers",
        "decoder",
        "the decoder's bias alone",
        "all of it",
        "another order",
        "float64",
    ],
)
def test_the_same_model_under_other_names(saved, change, left_out):
    rewrite(saved, change)
    loaded = from_pretrained(saved)
    assert_same_logits(logits(loaded.model), logits(make_model()), 1e-6)
    assert len(loaded.notes) == bool(left_out)
    for name in left_out:
        assert loaded.notes[0].startswith("left out, held elsewhere or no weights: ")
        assert name in loaded.notes[0]


def test_half_precision_becomes_float32(saved):
    rewrite(saved, lambda state: {name: array.astype(np.float16) for name, array in state.items()})
    loaded = from_pretrained(saved)
    assert {str(array.dtype) for array in loaded.model.state_dict().values()} == {"float32"}
    assert_same_logits(logits(loaded.model), logits(make_model()), 0.05)


def keep(pattern: str):
    return lambda state: {name: array for name, array in state.items() if re.match(pattern, name)}


@pytest.mark.parametrize(
    ("change", "absent"),
    [
        (keep(r"bert\."), ["cls.predictions.bias", "cls.predictions.transform.dense.weight", "and 2 more"]),
        (keep(r"bert\.|cls\.predictions"), ["cls.seq_relationship.weight", "cls.seq_relationship.bias"]),
        (
            keep(r"bert\.(?!pooler)|cls\.predictions"),
            ["bert.pooler.dense.weight", "cls.seq_relationship.bias"],
        ),
    ],
    ids=["no heads", "no head for the next sentence", "masked language model"],
)
def test_parts_that_a_checkpoint_may_lack_stay_as_initialised(saved, change, absent):
    rewrite(saved, change)
    minigrad.manual_seed(5)
    loaded = from_pretrained(saved)
    (note,) = loaded.notes
    assert note.startswith("not in the checkpoint, left as initialised: ")
    assert all(name in note for name in absent)
    minigrad.manual_seed(5)
    fresh = BertForPreTraining(SMALL).state_dict()
    name = "cls.seq_relationship.weight"
    np.testing.assert_array_equal(
        backend.to_numpy(loaded.model.state_dict()[name]), backend.to_numpy(fresh[name])
    )


def test_the_encoder_alone_of_a_model_with_heads(saved):
    loaded = from_pretrained(saved, BertModel)
    assert_same_logits(logits(loaded.model), logits(make_model().bert))
    (note,) = loaded.notes
    assert note.startswith("in the checkpoint, not used: cls.predictions.bias")
    assert note.endswith("and 2 more")


def test_a_model_without_heads_in_one_that_has_them(tmp_path):
    model = make_model(SMALL, BertModel)
    save_pretrained(model, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["BertModel"]
    assert "embeddings.word_embeddings.weight" in load_file(tmp_path / "model.safetensors")
    loaded = from_pretrained(tmp_path)
    assert_same_logits(logits(loaded.model.bert), logits(model))
    assert "left as initialised: cls.predictions.bias" in loaded.notes[0]


def test_weights_that_nothing_here_has_are_noted(saved):
    rewrite(saved, lambda state: {**state, "classifier.weight": np.zeros((2, 12), np.float32)})
    assert from_pretrained(saved).notes == ["in the checkpoint, not used: classifier.weight"]


def test_weights_in_several_files(saved):
    state = load_file(saved / "model.safetensors")
    (saved / "model.safetensors").unlink()
    shard(saved, state)
    loaded = from_pretrained(saved)
    assert loaded.notes == []
    assert_same_logits(logits(loaded.model), logits(make_model()), 1e-6)


def shard(folder: Path, state) -> dict[str, str]:
    """Write weights into two files and the index of them."""
    where = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(state)}
    for file in set(where.values()):
        save_file({name: array for name, array in state.items() if where[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return where


# --- Errors ----------------------------------------------------------------------------------------------


def cut(name: str, size: int):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def write(name: str, text: str):
    return lambda folder: (folder / name).write_text(text)


def remove(name: str):
    return lambda folder: (folder / name).unlink()


def set_config(**values):
    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change


def weights(change):
    return lambda folder: rewrite(folder, change)


def bfloat16(folder):
    header = json.dumps({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def a_shard_is_missing(folder):
    shard(folder, load_file(folder / "model.safetensors"))
    (folder / "model-00002-of-00002.safetensors").unlink()


def a_shard_lacks_a_weight(folder):
    where = shard(folder, load_file(folder / "model.safetensors"))
    where["bert.more"] = "model-00001-of-00002.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


def fast_tokenizer(text: str):
    def change(folder):
        (folder / "vocab.txt").unlink()
        (folder / "tokenizer.json").write_text(text)

    return change


QUERY = "bert.encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (
            lambda folder: shutil.rmtree(folder),
            CheckpointError,
            "is no checkpoint: there is no file config.json",
        ),
        (remove("config.json"), CheckpointError, "is no checkpoint: there is no file config.json in it"),
        (cut("config.json", 50), CheckpointError, "config.json is damaged: "),
        (write("config.json", ""), CheckpointError, "config.json is damaged: "),
        (
            write("config.json", "[1]"),
            CheckpointError,
            "config.json is damaged: expected an object, got list",
        ),
        (
            lambda f: (f / "config.json").write_bytes(b"\xff\xfe\xfd"),
            CheckpointError,
            "config.json is damaged",
        ),
        (set_config(model_type="roberta"), ConfigError, "config.json: model_type is 'roberta'"),
        (set_config(hidden_act="relu"), ConfigError, "config.json: hidden_act is 'relu'"),
        (set_config(hidden_size=13), ConfigError, "config.json: hidden_size must be a multiple"),
        (remove("model.safetensors"), CheckpointError, "model.safetensors is missing"),
        (cut("model.safetensors", 5), CheckpointError, "model.safetensors is damaged"),
        (cut("model.safetensors", 3000), CheckpointError, "model.safetensors is damaged"),
        (cut("model.safetensors", -1), CheckpointError, "model.safetensors is damaged"),
        (write("model.safetensors", ""), CheckpointError, "model.safetensors is damaged"),
        (write("model.safetensors", "x" * 5000), CheckpointError, "model.safetensors is damaged"),
        (bfloat16, CheckpointError, "model.safetensors is damaged or holds no arrays that NumPy knows"),
        (
            pickled,
            CheckpointError,
            "has a pytorch_model.bin, which can run code; convert it to model.safetensors",
        ),
        (
            weights(lambda s: {n: a for n, a in s.items() if n != QUERY}),
            CheckpointError,
            f"1 weights are missing: {QUERY}",
        ),
        (
            weights(keep("cls")),
            CheckpointError,
            "37 weights are missing: bert.embeddings.word_embeddings.weight",
        ),
        (
            weights(lambda s: {**s, QUERY: s[QUERY][:, :5]}),
            CheckpointError,
            f"the weights do not fit config.json: load_state_dict: {QUERY} is (5, 12), expected (12, 12)",
        ),
        (
            set_config(intermediate_size=24),
            CheckpointError,
            "bert.encoder.layer.0.intermediate.dense.weight is (12, 20), expected (12, 24)",
        ),
        (set_config(num_hidden_layers=3), CheckpointError, "16 weights are missing: bert.encoder.layer.2."),
        (a_shard_is_missing, CheckpointError, "model-00002-of-00002.safetensors is missing"),
        (a_shard_lacks_a_weight, CheckpointError, "index.json names weights that no file has: bert.more"),
        (write("model.safetensors.index.json", "{"), CheckpointError, "index.json is damaged"),
        (
            write("model.safetensors.index.json", '{"weight_map": [1]}'),
            CheckpointError,
            "index.json is damaged: expected weight_map to map weights to files",
        ),
        (
            write("model.safetensors.index.json", "{}"),
            CheckpointError,
            "index.json is damaged: expected weight_map",
        ),
        (fast_tokenizer("{}"), CheckpointError, "tokenizer.json holds no vocabulary of WordPiece: 'model'"),
        (
            fast_tokenizer('{"model": {"vocab": [["a", 0.5]]}}'),
            CheckpointError,
            "tokenizer.json holds no vocabulary",
        ),
        (
            fast_tokenizer('{"model": {"vocab": {"a": 1}}}'),
            CheckpointError,
            "tokenizer.json holds no vocabulary",
        ),
        (write("tokenizer_config.json", "{"), CheckpointError, "tokenizer_config.json is damaged"),
        (write("vocab.txt", "[PAD]\na\na\n"), ValueError, "vocab.txt: "),
        (
            write("vocab.txt", "".join(f"{t}\n" for t in [*SPECIAL_TOKENS, *range(50)])),
            CheckpointError,
            "vocab.txt has 55 pieces, the model only 41",
        ),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_named(saved, damage, error, message):
    damage(saved)
    with pytest.raises(error) as caught:
        from_pretrained(saved)
    assert message in str(caught.value)
    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_folder_may_be_a_string(saved):
    assert from_pretrained(str(saved)).notes == []


# --- transformers ----------------------------------------------------------------------------------------


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
def test_transformers_opens_what_is_saved_here(tmp_path, config, transformers):
    model = make_model(config)
    save_pretrained(model, tmp_path)
    theirs, report = transformers.BertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    assert set(report["missing_keys"]) <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert_same_logits(logits(model), their_logits(theirs.eval(), config))


@pytest.mark.oracle
def test_transformers_opens_a_model_without_heads(tmp_path, transformers):
    model = make_model(SMALL, BertModel)
    save_pretrained(model, tmp_path)
    theirs, report = transformers.BertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["unexpected_keys"]
    assert not report["missing_keys"]
    assert_same_logits(logits(model), their_logits(theirs.eval(), SMALL))


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
def test_there_and_back_through_transformers(tmp_path, config, transformers):
    model = make_model(config)
    save_pretrained(model, tmp_path / "mine")
    transformers.BertForPreTraining.from_pretrained(tmp_path / "mine").save_pretrained(tmp_path / "theirs")
    loaded = from_pretrained(tmp_path / "theirs")
    assert loaded.model.config == config
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(
            backend.to_numpy(loaded.model.state_dict()[name]), backend.to_numpy(array), err_msg=name
        )


@pytest.mark.oracle
def test_half_precision_of_transformers_opens_here(tmp_path, transformers):
    theirs = their_model(transformers, SMALL)
    theirs.half().save_pretrained(tmp_path)
    loaded = from_pretrained(tmp_path)
    assert_same_logits(logits(loaded.model), their_logits(theirs.float(), SMALL))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("lower_case", "strip_accents"), [(True, None), (False, None), (True, False), (False, True)]
)
def test_transformers_opens_the_tokenizer(tmp_path, transformers, lower_case, strip_accents):
    mine = tokenizer(lower_case, strip_accents)
    save_pretrained(make_model(), tmp_path, mine)
    for theirs in (
        transformers.BertTokenizer.from_pretrained(tmp_path),
        transformers.AutoTokenizer.from_pretrained(tmp_path),
    ):
        assert theirs.model_max_length == 16
        for text in ("Ab É é [MASK] 中!", "ab aé ABÉ xyz", ""):
            expected = mine.encode(text, "b É")
            found = theirs(text, "b É")
            assert found["input_ids"] == expected.input_ids
            assert found["token_type_ids"] == expected.token_type_ids


@pytest.mark.oracle
@pytest.mark.parametrize("lower_case", [True, False])
def test_the_tokenizer_of_transformers_opens_here(tmp_path, transformers, lower_case):
    mine = tokenizer(lower_case)
    save_pretrained(make_model(), tmp_path / "mine", mine)
    transformers.BertTokenizer.from_pretrained(tmp_path / "mine").save_pretrained(tmp_path / "theirs")
    save_pretrained(make_model(), tmp_path / "theirs")
    assert not (tmp_path / "theirs" / "vocab.txt").exists()  # transformers 5 writes a tokenizer.json
    loaded = from_pretrained(tmp_path / "theirs").tokenizer
    assert (loaded.vocab, loaded.lower_case, loaded.strip_accents) == (mine.vocab, lower_case, None)


def test_tiny_has_more_rows_than_pieces(tmp_path):
    """As in published models, whose tables are padded to a round number."""
    save_pretrained(make_model(tiny.CONFIG), tmp_path, tiny.tokenizer())
    loaded = from_pretrained(tmp_path)
    assert loaded.tokenizer.vocab_size < loaded.model.config.vocab_size
