"""What chapter 18 trains, scores and draws."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.course.chapters import seq2seq

pytestmark = pytest.mark.numpy_only("the chapter's runs are made on the CPU")


def tiny(name: str = "LSTM", steps: int = 2):
    """A model of a few numbers after a few steps."""
    ((_, model, _),) = seq2seq.train(
        seq2seq.VARIANTS[name], 0, 1e-3, steps, (steps,), seq2seq.SHORT, hidden_size=8
    )
    return model


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def few():
    return seq2seq.held_out()[:30]


def test_every_word_is_of_a_kind(few):
    for text in few:
        for word in text.words:
            assert seq2seq.kind_of(text, word) in seq2seq.KINDS
    kinds = {word.text: seq2seq.kind_of(text, word) for text in few for word in text.words}
    assert (kinds["ga"], kinds["zi"], kinds["osk"], kinds["."]) == ("mark", "mark", "count", "full stop")
    assert kinds["tum"] == "person" and {kinds.get("li"), kinds.get("lis")} & {"it, them"}


def test_a_cut_text_is_the_beginning_of_the_whole(few):
    text = next(text for text in few if text.sentences == 6)
    for sentences in range(1, 7):
        cut = text.cut(sentences)
        assert cut.sentences == sentences and text.source.startswith(cut.source)
        assert text.target.startswith(cut.target) and cut.target.count(".") == sentences


def test_every_variant_trains():
    for name, variant in seq2seq.VARIANTS.items():
        runs = seq2seq.train(variant, 0, 1e-2, 30, (1, 30), seq2seq.SHORT, hidden_size=8)
        first, last = (loss for _, _, loss in runs)
        assert last < first, name


def test_a_run_is_the_same_for_the_same_seed():
    one, again = tiny(), tiny()
    for name, value in one.state_dict().items():
        assert np.array_equal(value, again.state_dict()[name]), name


def test_even_weights_are_even():
    model = tiny("even weights")
    batch = {"input_ids": np.array([[5, 6, 7, 3]]), "labels": np.array([[8, 3]])}
    (weights,) = model(**batch, output_attentions=True).cross_attentions
    assert np.allclose(weights.numpy(), 0.25)


def test_a_reversed_source_is_read_backwards(few):
    source, target = few[0].ids
    assert seq2seq._read((source, target), seq2seq.VARIANTS["source reversed"]) == (source[::-1], target)


def test_scores_add_up(model, few):
    scores = seq2seq.score(model, seq2seq.VARIANTS["LSTM"], few)
    assert sum(of["texts"] for of in scores.values()) == len(few)
    for sentences, of in scores.items():
        here = [text for text in few if str(text.sentences) == sentences]
        assert of["words"] == sum(len(text.words) + 1 for text in here)
        assert sum(words for words, _ in of["kinds"].values()) == of["words"] - of["texts"]
        assert of["first_right"] <= of["right"] <= of["words"]


def test_a_perfect_model_scores_one(few, monkeypatch):
    monkeypatch.setattr(
        seq2seq,
        "forced",
        lambda model, chosen, variant=None: [np.ones(len(t.words) + 1, bool) for t in chosen],
    )
    monkeypatch.setattr(
        seq2seq, "written", lambda model, chosen, variant=None: [list(t.ids[1]) for t in chosen]
    )
    for of in seq2seq.score(None, seq2seq.VARIANTS["LSTM"], few).values():
        assert of["exact"] == of["texts"] and of["right"] == of["words"] and of["first_right"] == of["first"]


def test_after_the_first_error_both_ways_are_counted_at_the_same_places(few, monkeypatch, model):
    def forced(model, chosen, variant=None):
        hits = [np.ones(len(text.words) + 1, bool) for text in chosen]
        for hit in hits:
            hit[2] = False
        return hits

    def written(model, chosen, variant=None):
        return [[*text.ids[1][:2], 1, *text.ids[1][2:]] for text in chosen]  # a word too many

    monkeypatch.setattr(seq2seq, "forced", forced)
    monkeypatch.setattr(seq2seq, "written", written)
    found = seq2seq.after_first_error(model, few, most=3)
    assert (found["right words"][0] == len(few)).all()
    assert (found["own words"][0] < len(few) / 4).all() and (found["own words"][1] == len(few)).all()


def test_first_sentences_are_of_the_same_texts(model):
    chosen = [text for text in seq2seq.held_out() if text.sentences == 3][:4]
    found = seq2seq.first_sentences(model, chosen, 3)
    assert list(found) == [1, 2, 3]
    assert all(len(right) == 4 and 0 <= whole <= 1 for whole, _, right in found.values())


def test_longer_texts_take_more_bits():
    bits = seq2seq.bits_of_texts(seq2seq.LONG, 200)
    assert list(bits) == list(range(1, 8)) and sorted(bits.values()) == list(bits.values())
    only = seq2seq.bits_of_texts(seq2seq.SHORT, 50)[1]
    assert abs(only - bits[1]) < 4 and 10 < only < 25  # a name, a count, a noun, perhaps a time


def test_the_flow_shows_the_states_that_the_page_computes():
    X = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0]])
    W_x = np.array([[3.0, 0], [-3.0, 0], [0, 3.0], [0, 0]])
    shown = repr(seq2seq.rnn_flow(X, W_x, np.diag([2.0, 0]), np.zeros(2)))
    h = np.zeros(2)
    for x in X:
        h = np.tanh(x @ W_x + h @ np.diag([2.0, 0]))
    assert f"h_3 (1, 2): {h[0]:.2f} 1" in shown


def test_figures_say_their_numbers():
    picture = seq2seq.norm_figure({"one": ([1.0, 0.1], "first", "-")}, "norm")
    assert "one: 0.1" in repr(picture)
    picture = seq2seq.length_figure({"right": ([[0.5, 0.7, 0.6], [0.2]], "first")}, "share")
    assert "right: 0.60, 0.20" in repr(picture)
