"""The nodes of a graph come in order, and the products that are counted are those of the library's table."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.common.graph import nodes_before, product_flops
from minigrad import random
from minigrad.bert.config import BertConfig
from minigrad.bert.info import step_cost
from minigrad.bert.model import BertForPreTraining
from minigrad.tensor import Tensor


def test_a_leaf_has_no_nodes():
    with pytest.raises(ValueError, match="leaf"):
        nodes_before(Tensor(np.ones(2)))


def test_products_are_those_of_the_table():
    config = BertConfig(
        vocab_size=31,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=7,
    )
    random.manual_seed(0)
    ids = np.random.default_rng(0).integers(5, 31, (4, 7))
    labels = np.full((4, 7), -100)
    labels[:, [1, 4]] = ids[:, [1, 4]]
    output = BertForPreTraining(config)(ids, labels=labels, next_sentence_label=np.zeros(4, dtype=np.int64))
    assert product_flops(output.loss) == step_cost(config, 4, 7, chosen=8).forward_flops
