"""The shapes of a module's parameters, without the parameters."""

from __future__ import annotations

import tracemalloc

import pytest

from minigrad import nn, random
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.model import BertForPreTraining, BertModel
from minigrad.seq2seq.checkpoint import make_model
from minigrad.seq2seq.config import RECURRENT_PRESETS, RecurrentConfig, TransformerConfig

SMALL = BertConfig(
    vocab_size=53,
    hidden_size=15,
    num_hidden_layers=3,
    num_attention_heads=5,
    intermediate_size=7,
    max_position_embeddings=9,
    type_vocab_size=5,
)
MAKES = {
    "Linear": lambda: nn.Linear(3, 5),
    "Linear without bias": lambda: nn.Linear(3, 5, bias=False),
    "Sequential": lambda: nn.Sequential(nn.Embedding(7, 3), nn.LayerNorm(3), nn.Dropout(0.1)),
    "LSTM": lambda: nn.LSTM(3, 5, num_layers=2, bidirectional=True),
    "BERT": lambda: BertForPreTraining(SMALL),
    "BERT without layers or heads": lambda: BertModel(SMALL.replace(num_hidden_layers=0)),
    "additive attention": lambda: make_model(RecurrentConfig(11, hidden_size=6, attention="additive")),
    "general attention": lambda: make_model(RECURRENT_PRESETS["lstm-attention"]),
    "Transformer": lambda: make_model(TransformerConfig(11, d_model=6, nhead=2, dim_feedforward=5)),
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_names_and_shapes_are_the_module_s(make):
    expected = {name: tuple(array.shape) for name, array in make().state_dict().items()}
    before = random.get_state()
    assert nn.parameter_shapes(make) == expected
    assert random.get_state() == before


def test_no_memory_is_taken_for_weights():
    tracemalloc.start()
    try:
        shapes = nn.parameter_shapes(lambda: BertForPreTraining(PRESETS["large"]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shapes["bert.embeddings.word_embeddings.weight"] == (30522, 1024)
    assert peak < 5e6


def test_sizes_beyond_all_memory_are_only_numbers():
    hidden = 2**31 - 1
    shapes = nn.parameter_shapes(lambda: nn.Sequential(nn.Linear(hidden, hidden), nn.LayerNorm(hidden)))
    assert shapes["0.weight"] == (hidden, hidden)


def test_after_an_error_weights_are_weights_again():
    def fail():
        raise ValueError("no such module")

    with pytest.raises(ValueError, match="no such module"):
        nn.parameter_shapes(fail)
    assert nn.Linear(3, 5).weight.numpy().std() > 0
