"""Chapter `decoding`'s helpers: the tree, a flatter model, the count of FLOPs, translations with one thing changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bert_course.chapters import decoding as chapter
from minigrad import no_grad, ops
from minigrad.seq2seq import Transformer, TransformerConfig


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": {"b": 1.0}}, 'first words under ""'),
        ({"": {"a": 0.5, "b": 0.4}}, "after '' should sum to 1, got 0.900"),
        ({"": {"a": 1.5, "b": -0.5}}, "should sum to 1"),
        ({"": {"a": 0.6, "b": 0.4}, "a": {"c": 1.0}}, r"got lengths \[1, 2\]"),
        ({"": {"a": 0.5, "b": 0.5}}, "two texts are the most probable"),
    ],
)
def test_what_is_no_tree_is_refused(tree: Any, message: str):
    with pytest.raises(ValueError, match=message):
        chapter.widths_that_find_it(tree, (1,))


def counted(run: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """FLOPs of the matrix products that `run` computes, from their shapes."""
    total = 0
    linear, attention = ops.linear, ops.scaled_dot_product_attention

    def count_linear(x: Any, weight: Any, *others: Any) -> Any:
        nonlocal total
        total += 2 * int(np.prod(x.shape)) * weight.shape[-1]
        return linear(x, weight, *others)

    def count_attention(q: Any, k: Any, v: Any, *others: Any) -> Any:
        nonlocal total
        total += 4 * int(np.prod(q.shape)) * k.shape[-2]
        return attention(q, k, v, *others)

    with monkeypatch.context() as patch, no_grad():
        patch.setattr(ops, "linear", count_linear)
        patch.setattr(ops, "scaled_dot_product_attention", count_attention)
        run()
    return total


def test_the_flops_are_those_of_the_products_that_are_computed(monkeypatch: pytest.MonkeyPatch):
    config = TransformerConfig(
        vocab_size=50, d_model=12, nhead=3, num_encoder_layers=1, num_decoder_layers=2, dim_feedforward=20
    )
    model = Transformer(config).eval()
    S, T = 5, 7
    source, target = np.arange(4, 4 + S)[None], np.arange(10, 10 + T)[None]
    with no_grad():
        memory = model.encode(source)

    def with_cache() -> None:
        state = model.start(memory)
        for place in range(T):
            _, state = model.step(state, target[:, place])

    assert counted(with_cache, monkeypatch) == chapter.decoder_flops(config, S, T, cache=True)

    def whole(length: int) -> int:
        encoder = counted(lambda: model.encode(source), monkeypatch)
        run = counted(lambda: model(source, decoder_input_ids=target[:, :length]), monkeypatch)
        return run - encoder

    once = 2 * 2 * S * 2 * config.d_model**2  # the source's keys and values
    logits = 2 * config.d_model * config.vocab_size  # of one position
    without = sum(whole(t) - once - (t - 1) * logits for t in range(1, T + 1)) + once
    assert without == chapter.decoder_flops(config, S, T, cache=False)
