"""Texts in, texts out: what a model says, in batches and alone, and where its attention is."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_translation import CONFIGS, SETTING, TOKENIZER, model, pairs

from minigrad import no_grad
from minigrad.seq2seq.checkpoint import make_model
from minigrad.seq2seq.config import RecurrentConfig
from minigrad.seq2seq.data import pad_pairs
from minigrad.seq2seq.decoding import beam_search, greedy_search
from minigrad.seq2seq.predict import align, translate, translate_ids, words_of
from minigrad.stories.translation import draw_translations
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

TEXTS = [pair.source for pair in draw_translations(SETTING, 5, seed=9)]
each_model = pytest.mark.parametrize("name", CONFIGS)


@each_model
@pytest.mark.parametrize("num_beams", [1, 3])
def test_texts_are_translated_as_a_search_says(name, num_beams):
    of = model(name)
    found = translate(of, TOKENIZER, TEXTS, num_beams, max_length=40, batch_size=2)
    for text, one in zip(TEXTS, found, strict=True):
        batch = pad_pairs([(TOKENIZER.token_ids(text), [])], 3, 0)
        if num_beams == 1:
            (expected,) = greedy_search(of, batch["input_ids"], max_length=40)
        else:
            expected = beam_search(of, batch["input_ids"], num_beams=3, max_length=40)[0][0]
        assert one.ids == expected.ids
        assert one.finished == expected.finished
        assert one.log_probability == pytest.approx(expected.log_probability, rel=1e-4)
        assert one.text == TOKENIZER.decode(expected.ids)
        assert one.source == text.split()
        assert one.unknown == []


def test_the_order_of_the_sources_is_kept():
    of = model("transformer")
    sources = [source for source, _ in pairs(7)]
    forwards = translate_ids(of, sources, 1, 20, 3)
    backwards = translate_ids(of, sources[::-1], 1, 20, 3)
    assert [one.ids for one in forwards] == [one.ids for one in backwards[::-1]]
    assert len({tuple(one.ids) for one in forwards}) > 1
    assert translate_ids(of, [], 1, 20, 3) == []


def test_a_text_without_words_has_an_empty_translation():
    of = model("lstm")
    first, empty, second = translate(of, TOKENIZER, ["mary has", "  ", "books ."])
    assert (empty.text, empty.ids, empty.finished) == ("", [], True)
    assert [first, second] == translate(of, TOKENIZER, ["mary has", "books ."])
    assert [one.text for one in translate(of, TOKENIZER, ["", ""])] == ["", ""]


def test_texts_that_cannot_be_translated():
    of = model("lstm")
    with pytest.raises(
        ValueError, match=r"text 1 has 6 pieces with the end token, max_length is 5 .*begins 'mary"
    ):
        translate(of, TOKENIZER, ["mary has two books ."], max_length=5)
    assert len(translate(of, TOKENIZER, ["mary has two books ."], max_length=6)) == 1
    with pytest.raises(TypeError, match="texts is one string"):
        translate(of, TOKENIZER, "mary")
    with pytest.raises(ValueError, match="num_beams: expected at least 1, got 0"):
        translate(of, TOKENIZER, ["mary"], num_beams=0)


def test_words_without_pieces_are_named():
    (found,) = translate(model("lstm"), TOKENIZER, ["mary has ☃ zzz, two ☃ books"], max_length=20)
    assert found.unknown == ["☃", "zzz,"]
    assert "[UNK]" in found.source


# --- Words and alignments --------------------------------------------------------------------------------

PIECES = WordPieceTokenizer(
    [*SPECIAL_TOKENS, "un", "##believ", "##able", "cat", "##s", "!", "a"], lower_case=False
)


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("text", "words"),
    [("unbelievable cats!", ["unbelievable", "cats", "!"]), ("a cat", ["a", "cat"]), ("", [])],
)
def test_words_of_pieces(text, words):
    assert words_of(PIECES, PIECES.token_ids(text)) == words


@pytest.mark.no_arrays
def test_a_text_of_a_model_may_begin_within_a_word():
    assert words_of(PIECES, PIECES.token_ids("unbelievable cats")[1:]) == ["##believable", "cats"]


@pytest.mark.parametrize("name", ["lstm-attention", "transformer"])
def test_weights_of_words_are_those_of_the_pieces(name):
    config = CONFIGS[name].replace(vocab_size=PIECES.vocab_size)
    of = make_model(config).train()
    found = align(of, PIECES, "unbelievable cats!", "a cats")
    assert of.training is True
    assert found.source == ["unbelievable", "cats", "!", "[SEP]"]
    assert found.target == ["a", "cats", "[SEP]"]
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-6)
    batch = pad_pairs([(PIECES.token_ids("unbelievable cats!"), PIECES.token_ids("a cats"))], 3, 0)
    with no_grad():
        (given,) = of.eval()(**batch, output_attentions=True).cross_attentions
    weights = given.numpy()[0] if name == "lstm-attention" else given.numpy()[0].mean(axis=0)  # (4, 7)
    assert weights.shape == (4, 7)
    np.testing.assert_allclose(found.weights[0, 0], weights[0, :3].sum(), rtol=1e-5)
    np.testing.assert_allclose(found.weights[1, 1], weights[1:3, 3:5].sum() / 2, rtol=1e-5)
    assert found.highest() == [int(row.argmax()) for row in found.weights]
    same = align(of, PIECES, "unbelievable cats!", PIECES.token_ids("a cats"))
    np.testing.assert_array_equal(same.weights, found.weights)


def test_the_layers_of_a_transformer_count_alike():
    of = make_model(CONFIGS["transformer"].replace(num_decoder_layers=3)).eval()
    found = align(of, TOKENIZER, TEXTS[0], [])
    batch = pad_pairs([(TOKENIZER.token_ids(TEXTS[0]), [])], 3, 0)
    with no_grad():
        layers = of(**batch, output_attentions=True).cross_attentions
    expected = np.mean([layer.numpy()[0, :, 0] for layer in layers], axis=(0, 1))
    np.testing.assert_allclose(found.weights[0], expected, rtol=1e-5)


def test_what_has_no_alignment():
    for config in (CONFIGS["lstm"], RecurrentConfig(TOKENIZER.vocab_size, hidden_size=4, cell="gru")):
        with pytest.raises(ValueError, match="this model has no attention over the source"):
            align(make_model(config), TOKENIZER, "mary has", "mary")
    with pytest.raises(ValueError, match="text 2 has no words"):
        align(model("transformer"), TOKENIZER, "mary has", " ")
