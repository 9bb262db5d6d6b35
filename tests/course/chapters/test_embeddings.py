"""What chapter `embeddings` shows, and its exercises' answers against the library's tokenizer and embeddings."""

from __future__ import annotations

import re

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.bert import from_pretrained
from minigrad.bert.stored import stored
from minigrad.course import check

pytest.importorskip("matplotlib")
from minigrad.course.chapters.embeddings import (
    drawn_tables,
    embedding_flow,
    plurals,
    rank_curves,
    similarity_maps,
    table_picture,
)


@pytest.fixture(scope="module")
def loaded():
    return from_pretrained(stored("start"))


@pytest.fixture(scope="module")
def tables(loaded):
    parts = loaded.model.bert.embeddings
    modules = (parts.word_embeddings, parts.token_type_embeddings, parts.position_embeddings)
    return [module.weight.numpy() for module in modules]


@pytest.mark.parametrize("length", range(3, 17))
def test_pack_agrees_with_the_tokenizer(loaded, length):
    for first in range(9):
        for second in range(9):
            texts = "file " * first, "list " * second
            (theirs,) = loaded.tokenizer.encode_batch([texts[0]], [texts[1]], length, pad_to=length)
            pieces, types, mask = check.pack.answer(["file"] * first, ["list"] * second, length)
            assert pieces == theirs.tokens
            assert (types, mask) == (theirs.token_type_ids, theirs.attention_mask)
            assert check.packing_fault.answer(pieces, types, mask) == "none"


def test_embed_agrees_with_the_library_up_to_layer_norm(loaded, tables):
    rng, parts = np.random.default_rng(0), loaded.model.bert.embeddings
    ids, types = rng.integers(0, 4096, (3, 20)), rng.integers(0, 2, (3, 20))
    X = parts.LayerNorm(Tensor(check.embed.answer(ids, types, *tables)))
    np.testing.assert_allclose(X.numpy(), parts(ids, types).numpy(), rtol=1e-5, atol=1e-5)


def test_even_width_halves_the_model_that_is_there():
    """At BERT-Base's V and N the embeddings have at most half of the parameters, and one less is too narrow."""
    from minigrad.bert.config import BertConfig
    from minigrad.bert.model import parameter_shapes

    def share(width: int) -> float:
        config = BertConfig(hidden_size=width, num_attention_heads=1, intermediate_size=4 * width)
        counts = {n: np.prod(s) for n, s in parameter_shapes(config).items() if n.startswith("bert.")}
        return sum(count for name, count in counts.items() if "embeddings" in name) / sum(counts.values())

    width = check.even_width.answer(30522, 12)
    assert share(width) <= 0.5 < share(width - 1)


def test_the_flow_computes_the_sum():
    rng = np.random.default_rng(0)
    ids, segments = [0, 2, 3, 1, 3, 1], [0, 0, 0, 0, 1, 1]
    W_T, W_S, W_P = (rng.integers(-2, 3, (rows, 5)).astype(float) for rows in (5, 2, 6))
    one_hot = np.eye(5)[ids], np.eye(2)[segments], np.eye(6)
    vocabulary = ["[CLS]", "[SEP]", "river", "bank", "money"]
    flow = embedding_flow([vocabulary[i] for i in ids], vocabulary, one_hot, (W_T, W_S, W_P))
    np.testing.assert_array_equal(flow.values["X"], W_T[ids] + W_S[segments] + W_P)
    row, values = flow.choices["money"]
    assert (row, list(values)) == (4, [0, 0, 0, 0, 1])
    assert 'data-choice="money"' in flow._repr_html_()


def test_plurals_are_pieces_with_an_s(loaded):
    vocabulary = loaded.tokenizer.vocab
    one, several = plurals(loaded.tokenizer)
    assert len(one) == len(several) > 200
    for i, more in zip(one, several, strict=True):
        assert vocabulary[more] == vocabulary[i] + "s"
        assert len(vocabulary[i]) > 2


def test_drawn_tables_are_not_the_trained_ones(tables):
    for drawn, trained in zip(drawn_tables(), tables, strict=True):
        assert drawn.shape == trained.shape
        assert 0.04 < drawn.std() < 0.05 < trained.std()


def test_rank_curves_name_each_case():
    ranks = {name: np.arange(1, 50) * (i + 1) for i, name in enumerate(("own", "other", "drawn"))}
    picture = rank_curves(ranks, 200)
    for name in ranks:
        assert name in picture.svg


def test_tables_of_positions_are_images():
    pattern = r'<image [^>]*href="data:image/png'
    assert len(re.findall(pattern, table_picture(np.eye(6)).svg)) == 1
    assert len(re.findall(pattern, similarity_maps({"a": np.eye(5), "b": -np.eye(5)}, "Two").svg)) == 2
