"""What chapter `seq2seq` trains, scores and draws."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.chapters import seq2seq
from minigrad import Tensor, ops

pytestmark = pytest.mark.numpy_only("the chapter's runs are made on the CPU")


def tiny():
    """A model of a few numbers after two steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seq2seq, "STORIES_AN_EPOCH", 64)
        ((_, model, _),) = seq2seq.train(
            seq2seq.VARIANTS["LSTM"], 0, 1e-3, 2, (2,), seq2seq.SHORT, hidden_size=8
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
    assert kinds["tum"] == "person"
    assert {kinds.get("li"), kinds.get("lis")} & {"it, them"}


def test_a_cut_text_is_the_beginning_of_the_whole(few):
    text = next(text for text in few if text.sentences == 6)
    for sentences in range(1, 7):
        cut = text.cut(sentences)
        assert cut.sentences == sentences
        assert text.source.startswith(cut.source)
        assert text.target.startswith(cut.target)
        assert cut.target.count(".") == sentences


def test_every_variant_trains(monkeypatch):
    monkeypatch.setattr(seq2seq, "STORIES_AN_EPOCH", 320)
    for name, variant in seq2seq.VARIANTS.items():
        runs = seq2seq.train(variant, 0, 1e-2, 20, (1, 20), seq2seq.SHORT, hidden_size=8)
        first, last = (loss for _, _, loss in runs)
        assert last < first - 0.1, name


def test_a_run_is_the_same_for_the_same_seed():
    one, again = tiny(), tiny()
    for name, value in one.state_dict().items():
        assert np.array_equal(value, again.state_dict()[name]), name


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
        assert of["exact"] == of["texts"]
        assert of["right"] == of["words"]
        assert of["first_right"] == of["first"]


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
    assert (found["own words"][0] < len(few) / 4).all()
    assert (found["own words"][1] == len(few)).all()


def test_what_comes_after_the_first_mistake(few, monkeypatch):
    class Model:
        config = seq2seq.model_of(seq2seq.VARIANTS["LSTM"], 0, 4).config

    def forced(model, chosen, variant=None):
        hits = [np.ones(len(text.words) + 1, bool) for text in chosen]
        for hit in hits[1:]:
            hit[[2, 4]] = False
        return hits

    monkeypatch.setattr(seq2seq, "forced", forced)
    monkeypatch.setattr(seq2seq, "written", lambda model, chosen: [[*t.ids[1][:2], 1, 9] for t in chosen])
    found = seq2seq.after_first_mistake(Model, few)
    assert len(found) == len(few) - 1  # the first text has none
    for text, (wanted, got, hit) in zip(few[1:], found, strict=True):
        assert wanted == [*text.ids[1][3:], Model.config.end_token_id]
        assert got == [9, Model.config.end_token_id]
        assert list(np.flatnonzero(~hit)) == [1]


def test_the_end_token_counts_after_a_mistake_in_the_last_word(few, monkeypatch, model):
    def forced(model, chosen, variant=None):
        return [np.arange(len(text.words) + 1) != len(text.words) - 1 for text in chosen]

    monkeypatch.setattr(seq2seq, "forced", forced)
    monkeypatch.setattr(seq2seq, "written", lambda model, chosen: [list(text.ids[1]) for text in chosen])
    (right, words), _ = seq2seq.after_first_error(model, few, most=2).values()
    assert list(right) == list(words) == [len(few), 0]


def test_the_gradient_of_a_cell_has_all_its_paths():
    """Against differences: what is added to a cell also reaches the state that the same step shows."""
    size, steps = 3, 6

    def last_cell(place: int, bump: np.ndarray) -> np.ndarray:
        count, seen = 0, []

        def step(x_part, h, c, W_h, b):
            nonlocal count
            i, f, g, o = ops.split(x_part + h @ W_h + b, size, axis=-1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            if count == place:
                c = c + Tensor(bump)
            count += 1
            seen.append(c.numpy())
            return o.sigmoid() * c.tanh(), c

        whole.append(seq2seq.cell_norms(step, 0.0, 0, size=size, steps=steps, most=4)[0])
        return seen[-1]

    for back in (1, 2, 4):
        whole: list[list[float]] = []
        slopes = []
        for unit in np.eye(size, dtype=np.float32)[:, None] * np.float32(0.02):
            apart = last_cell(steps - 1 - back, unit) - last_cell(steps - 1 - back, -unit)
            slopes.append(apart.sum() * size**-0.5 / 0.04)
        last_cell(0, np.zeros((1, size), np.float32))
        assert np.linalg.norm(slopes) == pytest.approx(whole[-1][back], rel=5e-3)
