"""Checkpoints: what is saved is loaded, and the same model under other names."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from checkpoints import CONFIGS, assert_same_logits, keep, logits, make_model, rewrite, shard, tokenizer
from safetensors import safe_open
from safetensors.numpy import load_file
from tiny import SMALL

import minigrad
from minigrad import backend
from minigrad.bert.checkpoint import describe_checkpoint, from_pretrained, pretrained_files, save_pretrained
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.files import SaveError
from minigrad.training.reading import CheckpointError, checksums

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


def test_weights_in_several_files_are_read_and_checked(saved):
    where = shard(saved, load_file(saved / "model.safetensors"))
    (saved / "model.safetensors").unlink()
    sums = checksums({path.name: path.read_bytes() for path in saved.iterdir()})
    (saved / "SHA256SUMS").write_bytes(sums)
    loaded = from_pretrained(str(saved))
    assert loaded.notes == []
    assert_same_logits(logits(loaded.model), logits(make_model()), 1e-6)
    path = saved / max(where.values())
    path.write_bytes(path.read_bytes()[:-1] + b"\x3f")
    with pytest.raises(CheckpointError, match=r"model-00002-of-00002\.safetensors is damaged: it is not"):
        from_pretrained(saved)


# --- Other names, more and fewer weights -----------------------------------------------------------------


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


OTHER_NAMES = {
    "as saved": (lambda state: state, []),
    "gamma and beta": (old_layer_norm_names, []),
    "no prefix": (without_prefix, []),
    "buffers": (with_buffers, ["bert.embeddings.position_ids", "bert.embeddings.token_type_ids"]),
    "decoder": (with_decoder, ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"]),
    "the decoder's bias alone": (with_the_bias_under_the_decoder_only, ["cls.predictions.decoder.weight"]),
    "another order": (lambda state: dict(reversed(state.items())), []),
    "float64": (lambda state: {name: array.astype(np.float64) for name, array in state.items()}, []),
}


@pytest.mark.parametrize(("change", "left_out"), OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_the_same_model_under_other_names(saved, change, left_out):
    rewrite(saved, change)
    loaded = from_pretrained(saved)
    assert_same_logits(logits(loaded.model), logits(make_model()), 1e-6)
    assert len(loaded.notes) == bool(left_out)
    for name in left_out:
        assert loaded.notes[0].startswith("left out, held elsewhere or no weights: ")
        assert name in loaded.notes[0]


@pytest.mark.parametrize(
    "prefix", ["module.", "model.", "_orig_mod.", "module._orig_mod.", "0.auto_model.", "bert.", "roberta."]
)
@pytest.mark.parametrize("change", [lambda state: state, without_prefix, old_layer_norm_names])
def test_a_wrapper_s_prefix_is_left_out(saved, prefix, change):
    rewrite(saved, lambda state: {prefix + name: array for name, array in change(state).items()})
    loaded = from_pretrained(saved)
    assert_same_logits(logits(loaded.model), logits(make_model()), 1e-6)
    if not (prefix == "bert." and change is without_prefix):  # where some names have it, and some two of it
        assert loaded.notes == [f"the model's weights have {prefix} before their names"]


def test_a_wrapper_s_own_weights_are_not_the_model_s(saved):
    def change(state):
        wrapped = {f"0.auto_model.{name}": array for name, array in without_prefix(state).items()}
        return {
            **wrapped,
            "2.linear.weight": state["bert.pooler.dense.weight"],
            "cls.predictions.bias": np.zeros(41),
        }

    rewrite(saved, change)
    loaded = from_pretrained(saved)
    assert_same_logits(logits(loaded.model), logits(make_model()), 1e-6)
    (note,) = loaded.notes
    assert note.startswith(
        "the model's weights have 0.auto_model. before their names; left out, because they have not: "
    )
    assert "2.linear.weight" in note
    assert "cls.predictions.bias" in note


def test_two_models_behind_two_prefixes_are_none(saved):
    rewrite(
        saved, lambda state: {f"{of}.{name}": a for of in ("first", "second") for name, a in state.items()}
    )
    with pytest.raises(CheckpointError, match=r"weights are missing: bert\.embeddings"):
        from_pretrained(saved)


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


@pytest.mark.parametrize(
    "change",
    [
        *(change for change, _ in OTHER_NAMES.values()),
        keep(r"bert\."),
        lambda state: {f"module.{name}": array for name, array in state.items()},
        lambda state: {**state, "lora.weight": np.zeros(3)},
    ],
)
def test_what_would_be_left_out_is_said_before_anything_is_loaded(saved, change, monkeypatch):
    rewrite(saved, change)
    loaded = from_pretrained(saved)

    def nothing(where):
        raise AssertionError(f"{where.name} was read")

    monkeypatch.setattr("minigrad.bert.checkpoint.read_array", nothing)
    first, weights, vocabulary, *notes = describe_checkpoint(saved)
    assert first == f"{saved}: a BertForPreTraining"
    assert re.fullmatch(r"weights: [\d,]+ numbers of F(32|64)", weights)
    assert vocabulary == f"vocabulary: {loaded.tokenizer.vocab_size:,} pieces, in lower case"
    assert notes == [f"note: {note}" for note in loaded.notes]


@pytest.mark.parametrize(
    ("name", "opened"), [("BertForMaskedLM", ", opened as BertForPreTraining"), ("BertModel", "")]
)
def test_what_a_folder_of_another_class_is_opened_as(saved, name, opened):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "architectures": [name]}))
    for file in ("vocab.txt", "tokenizer.json"):
        (saved / file).unlink(missing_ok=True)
    lines = describe_checkpoint(saved)
    assert lines[0] == f"{saved}: a {name}{opened}"
    assert lines[2] == "no vocabulary: without a vocab.txt or tokenizer.json it reads no text"


def test_a_model_without_heads_in_one_that_has_them(tmp_path):
    model = make_model(SMALL, BertModel)
    save_pretrained(model, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["BertModel"]
    assert "embeddings.word_embeddings.weight" in load_file(tmp_path / "model.safetensors")
    loaded = from_pretrained(tmp_path)
    assert_same_logits(logits(loaded.model.bert), logits(model))
    assert "left as initialised: cls.predictions.bias" in loaded.notes[0]
