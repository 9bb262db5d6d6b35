"""What chapter `embeddings` shows, and its exercises' answers against the library's tokenizer and embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course import check
from bert_course.stored import stored
from minigrad import Tensor
from minigrad.bert import from_pretrained

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def loaded():
    return from_pretrained(stored("start"))


@pytest.fixture(scope="module")
def tables(loaded):
    parts = loaded.model.bert.embeddings
    modules = (parts.word_embeddings, parts.token_type_embeddings, parts.position_embeddings)
    return [module.weight.numpy() for module in modules]


@pytest.mark.parametrize("length", [3, 4, 7, 16])
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
