"""The sizes of the models, and what is refused."""

from __future__ import annotations

import json

import pytest

from minigrad.seq2seq.config import RECURRENT_PRESETS, TRANSFORMER_PRESETS, RecurrentConfig, TransformerConfig
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS
from minigrad.training.reading import ConfigError

pytestmark = pytest.mark.no_arrays


def test_defaults_are_the_papers_base_model():
    """Vaswani et al. 2017, table 3."""
    base = TransformerConfig(vocab_size=37000)
    assert (base.num_encoder_layers, base.num_decoder_layers, base.d_model) == (6, 6, 512)
    assert (base.dim_feedforward, base.nhead, base.dropout, base.label_smoothing) == (2048, 8, 0.1, 0.1)
    assert TRANSFORMER_PRESETS["base"] == base


def test_the_words_with_a_duty_are_where_a_vocabulary_has_them():
    tokenizer, config = WordPieceTokenizer([*SPECIAL_TOKENS, "a"]), RecurrentConfig(vocab_size=6)
    assert config.pad_token_id == tokenizer.pad_token_id
    assert config.start_token_id == tokenizer.cls_token_id
    assert config.end_token_id == tokenizer.sep_token_id


@pytest.mark.parametrize("config", [*RECURRENT_PRESETS.values(), *TRANSFORMER_PRESETS.values()])
def test_a_config_survives_json(config):
    values = json.loads(json.dumps(config.to_dict()))
    assert values["model_type"] == type(config).model_type
    assert type(config).from_dict({**values, "of_another_version": 1}) == config


def test_a_config_of_another_model_is_refused():
    with pytest.raises(ConfigError, match="model_type is 'bert', expected 'transformer-seq2seq'"):
        TransformerConfig.from_dict({"model_type": "bert", "vocab_size": 9})
    with pytest.raises(ConfigError, match="vocab_size is missing"):
        TransformerConfig.from_dict({})


BAD = [
    (TransformerConfig, {"d_model": 10, "nhead": 3}, "d_model must be a multiple of nhead, got 10 and 3"),
    (TransformerConfig, {"d_model": 9, "nhead": 3}, "d_model must be even, .* got 9"),
    (TransformerConfig, {"dropout": 1.0}, "dropout must be below 1, got 1.0"),
    (TransformerConfig, {"label_smoothing": -0.1}, "label_smoothing must be at least 0 and finite, got -0.1"),
    (TransformerConfig, {"num_decoder_layers": -1}, "num_decoder_layers must be at least 0"),
    (TransformerConfig, {"num_encoder_layers": 20_000}, "num_encoder_layers must be at most 1,000"),
    (TransformerConfig, {"dim_feedforward": 2.5}, "dim_feedforward must be an integer, got 2.5"),
    (TransformerConfig, {"nhead": True}, "nhead must be an integer, got True"),
    (TransformerConfig, {"dropout": float("nan")}, "dropout must be at least 0 and finite, got nan"),
    (TransformerConfig, {"vocab_size": 2**40}, "vocab_size must be at most"),
    (RecurrentConfig, {"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
    (RecurrentConfig, {"num_layers": 0}, "num_layers must be at least 1, got 0"),
    (RecurrentConfig, {"cell": "LSTM"}, "cell must be one of lstm, gru, rnn, got 'LSTM'"),
    (RecurrentConfig, {"attention": "luong"}, "attention must be one of none, dot, general, additive, got"),
    (RecurrentConfig, {"attention": None}, "attention must be one of none, dot, general, additive, got None"),
    (RecurrentConfig, {"bidirectional": 1}, "bidirectional must be true or false, got 1"),
    (RecurrentConfig, {"end_token_id": 2}, "must differ and be below vocab_size 50, got 0, 2 and 2"),
    (RecurrentConfig, {"start_token_id": 50}, "must differ and be below vocab_size 50, got 0, 50 and 3"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), BAD)
def test_what_describes_no_model_is_refused(kind, changes, message):
    with pytest.raises(ConfigError, match=message):
        kind(**{"vocab_size": 50, **changes})


def test_a_changed_copy():
    config = TransformerConfig(vocab_size=50)
    assert config.replace(d_model=64).d_model == 64
    with pytest.raises(ConfigError, match="there is no field 'd_modell': did you mean 'd_model'"):
        config.replace(d_modell=64)
    with pytest.raises(ConfigError, match=r"there is no field 'zzz'$"):
        config.replace(zzz=64)
