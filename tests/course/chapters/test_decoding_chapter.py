"""Chapter `decoding`'s helpers: the tree, a flatter model, the count of FLOPs, translations with one thing changed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minigrad
from minigrad import no_grad, ops
from minigrad.course.chapters import attention_decoder as stories
from minigrad.course.chapters import decoding as chapter
from minigrad.seq2seq import (
    RecurrentConfig,
    RecurrentSeq2Seq,
    Transformer,
    TransformerConfig,
    beam_search,
    greedy_search,
    translation_tokenizer,
)


def test_the_tree_has_probabilities_and_a_best_text_that_greedy_search_misses():
    for words in chapter.TREE.values():
        assert sum(words.values()) == pytest.approx(1)
    assert chapter.widths_that_find_it(chapter.TREE, (1, 2, 3, 100)) == [False, True, True, True]


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


def test_a_frame_for_each_word_and_one_for_all():
    frames = chapter.tree_frames(chapter.TREE, (1, 2))
    assert [frame.title for frame in frames][::3] == ["Width 1, word 1", "Width 2, word 1", "All texts"]
    assert "keeps tem lis milem (0.324) and tum lin milum (0.18)" in frames[5].text
    assert frames[0].svg.count("<rect") == 3
    assert frames[6].svg.count("<rect") == 3 + 6 + 12
    assert "0.324" in frames[6].svg


def small_model() -> RecurrentSeq2Seq:
    tokenizer = translation_tokenizer(stories.LONG)
    minigrad.manual_seed(3)
    config = RecurrentConfig(vocab_size=tokenizer.vocab_size, hidden_size=12, attention="general")
    return RecurrentSeq2Seq(config).eval()


def test_a_flatter_model_chooses_the_same_words_with_less_certainty():
    model, texts = small_model(), stories.read(5, seed=1, short=True)
    batch = stories.of_texts(texts, translation_tokenizer(stories.LONG))
    ids, mask = batch["input_ids"], batch["attention_mask"]
    same, flat, sharp = (
        greedy_search(chapter.Flatter(model, tau), ids, mask, max_length=9) for tau in (1, 3, 0.5)
    )
    for one, two, three in zip(same, flat, sharp, strict=True):
        assert one.ids == two.ids == three.ids
        assert two.log_probability < one.log_probability < three.log_probability
    plain = beam_search(model, ids, mask, num_beams=3, max_length=9)
    wrapped = beam_search(chapter.Flatter(model, 1), ids, mask, num_beams=3, max_length=9)
    assert [[one.ids for one in of] for of in plain] == [[one.ids for one in of] for of in wrapped]


def test_log_p_of_right_and_of_empty_are_those_of_steps():
    model, tokenizer = small_model(), translation_tokenizer(stories.LONG)
    texts = stories.read(4, seed=2, short=True)
    right, empty = (of(model, texts, tokenizer) for of in (chapter.log_p_of_right, chapter.log_p_of_empty))
    config = model.config
    for text, expected, nothing in zip(texts, right, empty, strict=True):
        source, target = stories.tokens_of(text, tokenizer)
        with no_grad():
            state = model.start(model.encode(np.array([[*source, config.end_token_id]])))
            total, last = 0.0, config.start_token_id
            for place, word in enumerate([*target, config.end_token_id]):
                logits, state = model.step(state, np.array([last]))
                log_p = ops.log_softmax(logits).numpy()[0]
                if place == 0:
                    assert nothing == pytest.approx(log_p[config.end_token_id], rel=1e-5)
                total, last = total + log_p[word], word
        assert expected == pytest.approx(total, rel=1e-5)


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


def test_each_change_changes_what_it_says():
    texts = [text for text in stories.read(200, seed=4) if chapter.pronoun_of(text) is not None]
    sayings = list(chapter.EDITS)
    assert chapter.edited(texts, "nothing") == [list(text.target) for text in texts]
    for name, text in itertools.product(sayings[1:5], texts):
        (words,), t = chapter.edited([text], name), chapter.pronoun_of(text)
        assert [i for i, word in enumerate(words) if word != text.target[i]] == [t]
    for text in texts:
        (first,), (less,) = (chapter.edited([text], name) for name in sayings[5:])
        stop = len(text.target) - 1 - text.target[:-1][::-1].index(".") if "." in text.target[:-1] else 0
        assert first == [*text.target[stop:], *text.target[:stop]]
        assert less == list(text.target[:stop])


def test_the_noun_in_place_of_them_has_the_right_ending():
    for text in stories.read(200, seed=5):
        t = chapter.pronoun_of(text)
        if t is not None:
            (words,) = chapter.edited([text], "them → the noun itself")
            assert words[t] in text.target  # the story has said it before
