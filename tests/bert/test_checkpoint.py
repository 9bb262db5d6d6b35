"""Checkpoints in Hugging Face's format: written here and read there, written there and read here, damaged."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
import tracemalloc
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
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.bert.predict import fill_mask, next_sentence
from minigrad.bert.reading import checksums
from minigrad.bert.tokenizer import SPECIAL_TOKENS, WordPieceTokenizer
from minigrad.files import SaveError
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
    others = [f"q{number}" for number in range(SMALL.vocab_size - len(vocab))]
    return WordPieceTokenizer([*vocab, *others], lower_case, strip_accents)


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
    names = [*pretrained_files(model, tokenizer()), "SHA256SUMS"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)


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
    (tmp_path / "SHA256SUMS").unlink()
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


def test_what_was_saved_is_checked(tmp_path):
    save_pretrained(make_model(), tmp_path, tokenizer())
    files = pretrained_files(make_model(), tokenizer())
    assert (tmp_path / "SHA256SUMS").read_bytes() == checksums(files)
    for name, content in files.items():
        middle = len(content) // 2
        damaged = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(
            CheckpointError, match=rf"{name} is damaged: it is not what was saved \(SHA256SUMS\)"
        ):
            from_pretrained(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(CheckpointError, match=f"{name} is missing: SHA256SUMS lists it"):
            from_pretrained(tmp_path)
        (tmp_path / name).write_bytes(content)
    assert from_pretrained(tmp_path).notes == []


def test_what_was_not_saved_here_is_not_checked(tmp_path):
    save_pretrained(make_model(), tmp_path)
    (tmp_path / "vocab.txt").write_bytes(tokenizer().vocab_txt())
    assert from_pretrained(tmp_path).tokenizer.vocab == tokenizer().vocab


def test_files_of_two_models_are_not_taken_for_one(tmp_path, monkeypatch):
    """A save that was cut short: the new vocabulary has as many pieces as the old one."""
    save_pretrained(make_model(), tmp_path, tokenizer())
    replace = os.replace

    def die_before_the_vocabulary(source, target):
        if Path(target).name == "vocab.txt":
            raise KeyboardInterrupt
        replace(source, target)

    other = make_model(SMALL.replace(hidden_size=24))
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", die_before_the_vocabulary)
        with pytest.raises(KeyboardInterrupt):
            save_pretrained(other, tmp_path, tokenizer())
    with pytest.raises(CheckpointError, match="is damaged: it is not what was saved"):
        from_pretrained(tmp_path)
    save_pretrained(other, tmp_path, tokenizer())
    assert from_pretrained(tmp_path).notes == []


def test_saving_over_weights_in_several_files(saved):
    """The index would name the old weights, and it is looked at first."""
    shard(saved, load_file(saved / "model.safetensors"))
    model = make_model()
    model.load_state_dict({name: array + 1 for name, array in model.state_dict().items()})
    save_pretrained(model, saved, tokenizer())
    assert_same_logits(logits(from_pretrained(saved).model), logits(model), 0)


def test_sharded_files_are_checked(saved):
    where = shard(saved, load_file(saved / "model.safetensors"))
    sums = checksums({path.name: path.read_bytes() for path in saved.iterdir()})
    (saved / "SHA256SUMS").write_bytes(sums)
    assert from_pretrained(saved).notes == []
    path = saved / max(where.values())
    path.write_bytes(path.read_bytes()[:-1] + b"\x3f")
    with pytest.raises(CheckpointError, match=r"model-00002-of-00002\.safetensors is damaged: it is not"):
        from_pretrained(saved)


# --- Other names, more and fewer weights -----------------------------------------------------------------


def rewrite(folder: Path, change) -> None:
    """Replace the weights in a folder by what `change` makes of them."""
    path = folder / "model.safetensors"
    save_file({name: np.ascontiguousarray(a) for name, a in change(load_file(path)).items()}, path)


@pytest.fixture
def saved(tmp_path) -> Path:
    """A folder with a model and its tokenizer, as it comes from elsewhere: nothing says what was saved."""
    save_pretrained(make_model(), tmp_path, tokenizer())
    (tmp_path / "SHA256SUMS").unlink()
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


@pytest.mark.oracle
def test_bfloat16_becomes_float32(saved):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as torch_save_file

    state = {name: torch.tensor(array) for name, array in load_file(saved / "model.safetensors").items()}
    torch_save_file({name: array.bfloat16() for name, array in state.items()}, saved / "model.safetensors")
    loaded = from_pretrained(saved)
    save_pretrained(loaded.model, saved / "again")
    for name, array in load_file(saved / "again" / "model.safetensors").items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, state[name].bfloat16().float().numpy(), err_msg=name)
    assert_same_logits(logits(loaded.model), logits(make_model()), 0.3)


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


def deep(name: str):
    return lambda folder: (folder / name).write_text('{"a":' * 100_000)


def fifo(name: str):
    def change(folder):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def a_folder(name: str):
    def change(folder):
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return change


def index(*files: object):
    """Weights in files of these names, none of which shall be opened."""
    text = json.dumps({"weight_map": {f"bert.{number}": file for number, file in enumerate(files)}})
    return write("model.safetensors.index.json", text)


def sharded_pickle(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin.index.json").write_text("{}")


def tokenizer_options(**values):
    return write("tokenizer_config.json", json.dumps(values))


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


INDEX = "model.safetensors.index.json"
HALF_A_PAIR = [*SPECIAL_TOKENS, "\ud800"]
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
            f"model.safetensors: {QUERY} is (12, 5), expected (12, 12)",
        ),
        (
            set_config(intermediate_size=24),
            CheckpointError,
            "bert.encoder.layer.0.intermediate.dense.weight is (20, 12), expected (24, 12) (and 5 more)",
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
        *[
            (deep(name), CheckpointError, f"{name} is damaged: it is nested too deeply")
            for name in ("config.json", "tokenizer_config.json", "model.safetensors.index.json")
        ],
        (
            fast_tokenizer("[" * 100_000),
            CheckpointError,
            "tokenizer.json is damaged: it is nested too deeply",
        ),
        *[
            (what(name), CheckpointError, f"{name} is no file (but a folder, a pipe or a device)")
            for what in (fifo, a_folder)
            for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json", INDEX)
        ],
        *[
            (index(name), CheckpointError, f"such as model-00001-of-00002.safetensors, got {shown}")
            for name, shown in [
                ("../outside/secret.safetensors", "'../outside/secret.safetensors'"),
                ("/etc/secret.safetensors", "'/etc/secret.safetensors'"),
                ("..\\secret.safetensors", r"'..\\secret.safetensors'"),
                ("C:secret.safetensors", "'C:secret.safetensors'"),
                ("/dev/stdin", "'/dev/stdin'"),
                ("..", "'..'"),
                ("", "''"),
                (".safetensors", "'.safetensors'"),
                ("model.bin", "'model.bin'"),
                ("\ud800.safetensors", r"'\ud800.safetensors'"),
                ("a\x00.safetensors", r"'a\x00.safetensors'"),
                ("a\n.safetensors", r"'a\n.safetensors'"),
                (5, "5"),
                (None, "None"),
                (["a"], "['a']"),
            ]
        ],
        (
            index("x" * 300 + ".safetensors"),
            CheckpointError,
            "such as model-00001-of-00002.safetensors, got 'xxx",
        ),
        (
            sharded_pickle,
            CheckpointError,
            "has a pytorch_model.bin.index.json, which can run code; convert it",
        ),
        (
            tokenizer_options(do_lower_case="false"),
            CheckpointError,
            "tokenizer_config.json: do_lower_case must be true or false, got 'false'",
        ),
        (
            tokenizer_options(do_lower_case=None),
            CheckpointError,
            "do_lower_case must be true or false, got None",
        ),
        (
            tokenizer_options(strip_accents=0),
            CheckpointError,
            "tokenizer_config.json: strip_accents must be true, false or null, got 0",
        ),
        (
            tokenizer_options(tokenizer_class="GPT2Tokenizer"),
            CheckpointError,
            "tokenizer_config.json: tokenizer_class is 'GPT2Tokenizer', expected BertTokenizer",
        ),
        (
            tokenizer_options(tokenizer_class=[1]),
            CheckpointError,
            "tokenizer_class is [1], expected BertTokenizer",
        ),
        (
            fast_tokenizer('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}'),
            CheckpointError,
            "tokenizer.json holds no vocabulary of WordPiece: its model is 'BPE'",
        ),
        (
            fast_tokenizer('{"model": {"vocab": {"a": 0}, "merges": []}}'),
            CheckpointError,
            "its model is 'BPE'",
        ),
        (
            fast_tokenizer('{"model": {"vocab": {"a": 0, "b": "1"}}}'),
            CheckpointError,
            "tokenizer.json holds no vocabulary of WordPiece: ids must be integers",
        ),
        (
            fast_tokenizer(json.dumps({"model": {"vocab": dict(zip(HALF_A_PAIR, range(6), strict=True))}})),
            CheckpointError,
            "tokenizer.json holds no vocabulary of WordPiece: 'utf-8' codec can't encode",
        ),
        (
            fast_tokenizer("{}"),
            CheckpointError,
            "tokenizer.json holds no vocabulary of WordPiece: it has no model",
        ),
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
        (write("vocab.txt", "[PAD]\na\na\n"), CheckpointError, "vocab.txt holds no vocabulary"),
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 10**7}, "config.json: num_hidden_layers must be at most 10,000, got 10000000"),
        ({"num_hidden_layers": 10**4}, "159968 weights are missing: bert.encoder.layer.2."),
        (
            {"vocab_size": 30_000_000},
            "word_embeddings.weight is (41, 12), expected (30000000, 12) (and 1 more)",
        ),
        (
            {"max_position_embeddings": 10**8},
            "position_embeddings.weight is (16, 12), expected (100000000, 12)",
        ),
        ({"type_vocab_size": 10**8}, "token_type_embeddings.weight is (2, 12), expected (100000000, 12)"),
        ({"intermediate_size": 10**8}, "intermediate.dense.weight is (20, 12), expected (100000000, 12)"),
        ({"hidden_size": 30_000}, "word_embeddings.weight is (41, 12), expected (41, 30000)"),
        ({"vocab_size": 10**400}, "config.json: vocab_size must be at most 2,147,483,647, got 1000"),
        (
            {"initializer_range": 10**400},
            "config.json: initializer_range must be at most 1,000,000, got 1000",
        ),
    ],
)
def test_a_config_beyond_all_reason_takes_no_memory(saved, changes, message):
    set_config(**changes)(saved)
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises((CheckpointError, ConfigError)) as caught:
        from_pretrained(saved)
    seconds = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message in str(caught.value)
    assert str(saved) in str(caught.value)
    assert peak < 100e6
    assert seconds < 5  # a quarter of it without tracemalloc


def test_heads_that_a_checkpoint_lacks_are_not_made_of_nothing(tmp_path):
    """Without a layer, no weight of the checkpoint has as many numbers as a head."""
    config = SMALL.replace(num_hidden_layers=0, hidden_size=3000, num_attention_heads=1)
    set_config_of = {**config.to_dict(), "architectures": ["BertModel"]}
    (tmp_path / "config.json").write_text(json.dumps(set_config_of))
    shapes = {"word": (41, 3000), "position": (16, 3000), "token_type": (2, 3000)}
    state = {
        f"embeddings.{name}_embeddings.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()
    }
    state |= {f"embeddings.LayerNorm.{name}": np.zeros(3000, np.float32) for name in ("weight", "bias")}
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match="the checkpoint has 183000 numbers and lacks 18018043 of pooler and"
    ):
        from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.complex64])
def test_weights_that_are_no_numbers(saved, dtype):
    rewrite(saved, lambda state: {**state, QUERY: state[QUERY].astype(dtype)})
    with pytest.raises(
        CheckpointError, match=f"model.safetensors: {QUERY} is .*, but weights are one of F16, BF16"
    ):
        from_pretrained(saved)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite(saved, value):
    def change(state):
        state[QUERY][3, 4] = value
        return state

    rewrite(saved, change)
    with pytest.raises(CheckpointError, match=f"model.safetensors: {QUERY} has numbers that are not finite"):
        from_pretrained(saved)


def test_what_is_not_used_may_be_anything(saved):
    rewrite(saved, lambda state: {**state, "other": np.full(3, np.nan), "ids": np.arange(3)})
    assert from_pretrained(saved).notes == ["in the checkpoint, not used: ids, other"]


def test_a_vocabulary_that_was_cut_short_is_noted(saved):
    pieces = tokenizer().vocab[:30]
    (saved / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")
    (note,) = from_pretrained(saved).notes
    assert note.startswith("the vocabulary has 30 pieces, the model 41: ")


def test_a_vocabulary_with_a_byte_order_mark(saved):
    path = saved / "vocab.txt"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert from_pretrained(saved).tokenizer.vocab == tokenizer().vocab
    assert WordPieceTokenizer.from_file(path).vocab == tokenizer().vocab


def test_a_vocabulary_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match=f"^{path} is no file"):
            WordPieceTokenizer.from_file(path)


@pytest.mark.parametrize(
    "name", [None, "BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"]
)
def test_tokenizers_whose_vocabulary_may_be_bert_s(saved, name):
    tokenizer_options(tokenizer_class=name)(saved)
    assert from_pretrained(saved).tokenizer.vocab == tokenizer().vocab


def test_names_from_a_checkpoint_are_shown_in_a_line(saved):
    names = ["\x1b[2J\n", "\u202e", "x" * 10**6]
    rewrite(saved, lambda state: {**state, **{name: np.zeros(1) for name in names}})
    (note,) = from_pretrained(saved).notes
    assert note.isprintable()
    assert len(note) < 300
    assert "\\x1b[2J\\n" in note


@pytest.mark.parametrize(
    "damage",
    [
        index("x" * 10**6),
        index("\x1b.safetensors/"),
        set_config(model_type="\x1b" * 10**6),
        set_config(hidden_size="\n" * 10**6),
        tokenizer_options(do_lower_case="\x1b" * 10**6),
        tokenizer_options(tokenizer_class="\x1b" * 10**6),
        write("vocab.txt", ("\x1b" * 10**6 + "\n") * 2),
        fast_tokenizer(json.dumps({"model": {"vocab": {"\x1b" * 10**6: 7}}})),
        fast_tokenizer(json.dumps({"model": {"type": "\x1b" * 10**6}})),
        write("model.safetensors.index.json", '{"weight_map": {"' + "x" * 10**6 + '": "a.safetensors"}}'),
    ],
    ids=range(10),
)
def test_errors_about_a_checkpoint_are_a_short_line(saved, damage):
    damage(saved)
    with pytest.raises((CheckpointError, ConfigError)) as caught:
        from_pretrained(saved)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < len(str(saved)) + 400


# --- Random damage ---------------------------------------------------------------------------------------

# Of each type, one value that is about right and some that are not.
VALUES = [
    None,
    True,
    0,
    1,
    2,
    -1,
    1.5,
    1e300,
    10**30,
    float("nan"),
    "",
    "a",
    "\x1b" * 500,
    [],
    [[1]],
    {},
    {"a": None},
]


def damaged_json(content: bytes, rng: np.random.Generator) -> bytes:
    """A value of another type in the place of one, or one key less."""
    values = json.loads(content)
    name = str(rng.choice(list(values)))
    choice = int(rng.integers(len(VALUES) + 1))
    if choice < len(VALUES):
        values[name] = VALUES[choice]
    else:
        del values[name]
    return json.dumps(values).encode()


def damaged_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """A flipped bit, a run of zeros, a part that is gone, or one that is there twice."""
    start = int(rng.integers(len(content)))
    if rng.random() < 0.5:
        start = min(start, int(rng.integers(400)))  # where headers are
    length = int(rng.integers(1, 100))
    kind = rng.integers(4)
    if kind == 0:
        return content[:start] + bytes([content[start] ^ (1 << int(rng.integers(8)))]) + content[start + 1 :]
    if kind == 1:
        return content[:start] + bytes(len(content[start : start + length])) + content[start + length :]
    if kind == 2:
        return content[:start]
    return content[: start + length] + content[start:]


@pytest.mark.parametrize("sums", [False, True], ids=["no sums", "sums"])
def test_random_damage_is_refused_or_harmless(tmp_path, sums):
    save_pretrained(make_model(), tmp_path, tokenizer())
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if not sums:
        del files["SHA256SUMS"]
        (tmp_path / "SHA256SUMS").unlink()
    rng = np.random.default_rng(0)
    refused = []
    for _ in range(300):
        name = str(rng.choice(list(files)))
        damage = damaged_json if name.endswith(".json") and rng.random() < 0.7 else damaged_bytes
        damaged = damage(files[name], rng)
        (tmp_path / name).write_bytes(damaged)
        try:
            loaded = from_pretrained(tmp_path)
        except (CheckpointError, ConfigError) as error:
            refused.append(str(error))
        else:
            assert not sums or damaged == files[name] or name == "SHA256SUMS"
            with contextlib.suppress(ValueError):  # weights so large that the scores are not finite
                fill_mask(loaded.model, loaded.tokenizer, "a [MASK]")
                next_sentence(loaded.model, loaded.tokenizer, "a", "b")
        (tmp_path / name).write_bytes(files[name])
    assert len(refused) > 100
    assert all(str(tmp_path) in message and message.isprintable() for message in refused)


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
