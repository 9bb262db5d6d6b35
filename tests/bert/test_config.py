"""BertConfig: Hugging Face's names and defaults, and sizes that do not fit."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from minigrad.bert.config import PRESETS, BertConfig
from minigrad.training.reading import ConfigError

pytestmark = pytest.mark.no_arrays

FIELDS = [field.name for field in dataclasses.fields(BertConfig)]


@pytest.mark.parametrize(
    ("preset", "layers", "hidden", "heads", "inner", "head_size"),
    [
        ("base", 12, 768, 12, 3072, 64),  # Devlin et al. 2019, section 3
        ("large", 24, 1024, 16, 4096, 64),
        ("reduced", 2, 128, 2, 512, 64),
    ],
)
def test_presets(preset, layers, hidden, heads, inner, head_size):
    config = PRESETS[preset]
    sizes = (config.num_hidden_layers, config.hidden_size, config.num_attention_heads)
    assert sizes == (layers, hidden, heads)
    assert config.intermediate_size == inner == 4 * hidden
    assert config.head_size == head_size


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 10, "num_attention_heads": 3}, "multiple of num_attention_heads, got 10 and 3"),
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"hidden_size": -768}, "hidden_size must be at least 1"),
        ({"num_hidden_layers": -1}, "num_hidden_layers must be at least 0"),
        ({"num_attention_heads": 0}, "num_attention_heads must be at least 1"),
        ({"intermediate_size": 0}, "intermediate_size must be at least 1"),
        ({"max_position_embeddings": 0}, "max_position_embeddings must be at least 1"),
        ({"type_vocab_size": 0}, "type_vocab_size must be at least 1"),
        ({"hidden_size": 768.0}, "hidden_size must be an integer, got 768.0"),
        ({"hidden_size": "768"}, "hidden_size must be an integer, got '768'"),
        ({"vocab_size": True}, "vocab_size must be an integer, got True"),
        ({"vocab_size": None}, "vocab_size must be an integer, got None"),
        ({"layer_norm_eps": "1e-12"}, "layer_norm_eps must be a number, got '1e-12'"),
        ({"layer_norm_eps": -1e-12}, "layer_norm_eps must be at least 0"),
        ({"initializer_range": -0.02}, "initializer_range must be at least 0"),
        ({"initializer_range": math.inf}, "initializer_range must be at least 0 and finite, got inf"),
        ({"hidden_dropout_prob": math.nan}, "hidden_dropout_prob must be at least 0 and finite, got nan"),
        ({"attention_probs_dropout_prob": 1}, "attention_probs_dropout_prob must be below 1, got 1"),
        ({"pad_token_id": 30522}, "pad_token_id must be below vocab_size, got 30522 and 30522"),
        ({"pad_token_id": -1}, "pad_token_id must be at least 0"),
        ({"vocab_size": 2**31}, "vocab_size must be at most 2,147,483,647, got 2147483648"),
        ({"hidden_size": 768 * 10**400}, "hidden_size must be at most 2,147,483,647, got 7680+…$"),
        ({"hidden_size": 10**5000}, "hidden_size must be at most .*, got a value too large to print"),
        ({"num_hidden_layers": 1_001}, "num_hidden_layers must be at most 1,000, got 1001"),
        ({"initializer_range": 10**400}, "initializer_range must be at most 1,000,000, got 10+…$"),
        ({"hidden_size": "7" * 10**6}, "hidden_size must be an integer, got '7{198}…$"),
        ({"hidden_size": "\x1b[31m"}, r"hidden_size must be an integer, got '\\x1b\[31m'$"),
        ({"id2label": {}}, "id2label must map 0, 1, 2, … to names, such as .*, got {}"),
        ({"id2label": ["a", "b"]}, "id2label must map 0, 1, 2, … to names"),
        ({"id2label": {0: "a", 2: "b"}}, "id2label must map 0, 1, 2, … to names"),
        ({"hidden_act": "gelu_new"}, "hidden_act must be one of gelu, gelu_python, relu, got 'gelu_new'"),
        ({"hidden_act": None}, "hidden_act must be one of gelu, gelu_python, relu, got None"),
        ({"id2label": {0: "a", 1: ""}}, "id2label must map 0, 1, 2, … to names"),
        ({"id2label": {0: "a", 1: 5}}, "id2label must map 0, 1, 2, … to names"),
    ],
    ids=itertools.count(),
)
def test_sizes_that_do_not_fit_are_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        BertConfig(**changes)


def test_sizes_at_their_limits():
    config = BertConfig(
        vocab_size=1,
        hidden_size=1,
        num_attention_heads=1,
        num_hidden_layers=0,
        hidden_dropout_prob=0,
        layer_norm_eps=0,
    )
    assert config.head_size == 1


def test_it_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig().hidden_size = 5


# --- Dictionaries ----------------------------------------------------------------------------------------


def test_there_and_back():
    config = PRESETS["reduced"].replace(layer_norm_eps=1e-6, pad_token_id=3, type_vocab_size=4)
    assert BertConfig.from_dict(config.to_dict()) == config


def test_the_dictionary_says_what_is_fixed_here():
    values = BertConfig().to_dict()
    assert set(values) == {*FIELDS, "model_type", "architectures", "hidden_act", "tie_word_embeddings"} - {
        "id2label"
    }
    assert values["model_type"] == "bert"
    assert values["hidden_act"] == "gelu"
    assert values["tie_word_embeddings"] is True


def test_absent_fields_have_defaults_and_unknown_ones_are_left_out():
    values = {"hidden_size": 24, "classifier_dropout": None, "gradient_checkpointing": False}
    assert BertConfig.from_dict(values) == BertConfig(hidden_size=24)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "roberta"),
        ("hidden_act", "gelu_new"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
    ],
)
def test_another_model_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} is {value!r}: this BERT has .* only"):
        BertConfig.from_dict({**BertConfig().to_dict(), name: value})


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"num_labels": 3}, ["LABEL_0", "LABEL_1", "LABEL_2"]),
        ({"num_labels": 1}, ["LABEL_0"]),
        ({"num_labels": 3, "id2label": None}, ["LABEL_0", "LABEL_1", "LABEL_2"]),
        ({"num_labels": None}, ["LABEL_0", "LABEL_1"]),
        ({"num_labels": 2, "id2label": {"0": "no", "1": "yes"}}, ["no", "yes"]),
        ({"num_labels": 3, "id2label": {"0": "no", "1": "yes"}}, ["LABEL_0", "LABEL_1", "LABEL_2"]),
        ({"id2label": {"0": "same", "1": "same"}}, ["same", "same"]),
    ],
)
def test_classes_that_are_counted_or_named_twice(values, names):
    assert BertConfig.from_dict(values).id2label == dict(enumerate(names))


@pytest.mark.parametrize("count", [0, -1, 10**12, "3", 2.5, True])
def test_a_number_of_classes_that_is_none(count):
    with pytest.raises(ConfigError, match="num_labels must be "):
        BertConfig.from_dict({"num_labels": count})


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", ["\x1b[2J", "x" * 10**6, nested(100_000), {"a": "\n"}, 10**5000], ids=range(5)
)
@pytest.mark.parametrize("name", ["model_type", "num_hidden_layers"])
def test_values_are_named_in_a_line(name, value):
    with pytest.raises(ConfigError) as caught:
        BertConfig.from_dict({name: value})
    assert str(caught.value).startswith(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ["absolute", None])
def test_absolute_positions_may_be_spelled_out(value):
    assert BertConfig.from_dict({"position_embedding_type": value}) == BertConfig()


@pytest.mark.oracle
def test_the_defaults_are_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertConfig().to_dict()
    assert {name: theirs[name] for name in FIELDS} == dataclasses.asdict(BertConfig())


@pytest.mark.oracle
def test_dictionaries_of_transformers():
    transformers = pytest.importorskip("transformers")
    config = BertConfig(vocab_size=53, hidden_size=15, num_attention_heads=5, intermediate_size=7)
    theirs = transformers.BertConfig.from_dict(config.to_dict())
    assert {name: getattr(theirs, name) for name in FIELDS} == dataclasses.asdict(config)
    assert BertConfig.from_dict(theirs.to_dict()) == config


@pytest.mark.oracle
def test_names_of_classes_go_there_and_back():
    transformers = pytest.importorskip("transformers")
    assert "id2label" not in BertConfig().to_dict()  # which is what checkpoints of pre-training have
    config = BertConfig(id2label={0: "no", 1: "yes", 2: "who knows"})
    assert config.num_labels == 3
    theirs = transformers.BertConfig.from_dict(config.to_dict())
    assert (theirs.id2label, theirs.label2id) == (config.id2label, {"no": 0, "yes": 1, "who knows": 2})
    assert BertConfig.from_dict(theirs.to_dict()) == config
    assert BertConfig.from_dict({"id2label": None}) == BertConfig()


# --- replace ---------------------------------------------------------------------------------------------


def test_replace_changes_a_copy():
    config = BertConfig()
    assert config.replace(hidden_size=24, vocab_size=7) == BertConfig(hidden_size=24, vocab_size=7)
    assert config == BertConfig()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hiden_size", "there is no field 'hiden_size': did you mean 'hidden_size'\\?"),
        ("num_layers", "did you mean 'num_hidden_layers'\\?"),
        ("xyzzy", "there is no field 'xyzzy'$"),
    ],
)
def test_replace_knows_what_was_meant(name, message):
    with pytest.raises(ConfigError, match=message):
        BertConfig().replace(**{name: 1})


def test_replace_checks_too():
    with pytest.raises(ConfigError, match="multiple of num_attention_heads"):
        BertConfig().replace(hidden_size=100)
