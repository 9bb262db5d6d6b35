"""A model's scores on stories: against a model that gives the exact probabilities, and one that knows nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from minigrad import Tensor
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.story_scores import score_stories
from minigrad.stories.floors import Scorer, mlm_floor, nsp_floor
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import Stories, draw_pairs

LIGHT = SETTINGS["light"]


@pytest.fixture(scope="module")
def stories():
    return Stories(LIGHT)


@pytest.fixture(scope="module")
def pairs():
    return draw_pairs(LIGHT, 4, seed=8)


class Knowing:
    """A model that looks each pair up in the grammar; `wrong_by` turns its next-sentence answer round."""

    config = SimpleNamespace(max_position_embeddings=32)
    training = True

    def __init__(self, stories, pairs, wrong_by=1):
        self.stories, self.scorer, self.wrong_by = stories, Scorer(LIGHT), wrong_by
        self.pairs = iter(pairs)

    def eval(self):
        self.training = False

    def train(self, mode):
        self.training = mode

    def __call__(self, rows, token_type_ids):
        assert not self.training
        pair = next(self.pairs)
        vocab = self.stories.tokenizer.vocab
        logits = np.full((*rows.shape, len(vocab)), -50.0)
        guesses = self.scorer.hidden_words(pair.text_a, pair.text_b)
        places = [i for i in range(1, rows.shape[1] - 1) if vocab[rows[-1, i]] != "[SEP]"]
        assert len(places) == len(guesses) == len(rows) - 1
        for row, (place, guess) in enumerate(zip(places, guesses, strict=True)):
            assert vocab[rows[row, place]] == "[MASK]"
            for word, p in guess.items():
                logits[row, place, vocab.index(word)] = np.log(p)
        assert "[MASK]" not in [vocab[i] for i in rows[-1]]
        p = self.scorer.is_next(pair.text_a, pair.text_b)
        of_pairs = np.zeros((len(rows), 2))
        of_pairs[-1] = np.log(np.maximum([p, 1 - p], 1e-30)) * self.wrong_by
        return SimpleNamespace(prediction_logits=Tensor(logits), seq_relationship_logits=Tensor(of_pairs))


def test_the_model_that_knows_the_grammar_scores_the_floor(stories, pairs):
    scorer, model = Scorer(LIGHT), Knowing(stories, pairs)
    scores = score_stories(model, stories, pairs, scorer)
    assert model.training  # put back
    floors = mlm_floor(pairs, scorer)
    assert set(scores) == {*floors, "next"}
    for slot, floor in floors.items():
        assert scores[slot].nats == pytest.approx(floor.nats, abs=1e-6)
        assert (scores[slot].floor, scores[slot].best) == pytest.approx((floor.nats, floor.accuracy))
        assert scores[slot].count == floor.count
        assert scores[slot].forced in (None, 1)
    assert scores["who has it"].choices <= scores["who has it"].count
    assert (
        sum(score.choices for slot, score in scores.items() if slot != "all") == scores["all"].choices >= 20
    )
    floor = nsp_floor(pairs, scorer)
    assert scores["next"].nats == pytest.approx(floor.nats, abs=1e-6)
    assert scores["next"].accuracy == 1


def test_a_model_that_mixes_up_what_follows_is_told_apart(stories, pairs):
    scores = score_stories(Knowing(stories, pairs, wrong_by=-1), stories, pairs, Scorer(LIGHT))
    assert scores["next"].accuracy == 0


def test_a_model_as_drawn_knows_nothing(stories, pairs):
    config = BertConfig(
        vocab_size=stories.tokenizer.vocab_size,
        hidden_size=12,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        max_position_embeddings=32,
    )
    model = BertForPreTraining(config)
    scores = score_stories(model, stories, pairs, Scorer(LIGHT))
    assert model.training
    assert scores["all"].nats == pytest.approx(np.log(stories.tokenizer.vocab_size), abs=0.2)
    assert scores["all"].accuracy < 0.2
    again = score_stories(model, stories, pairs, Scorer(LIGHT))
    assert again == scores  # without dropout, though the model is in training
