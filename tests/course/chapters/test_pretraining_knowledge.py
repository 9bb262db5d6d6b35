"""What it asks of models, held against the scores of the library and against a model that knows the grammar."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bert_course.chapters.pretraining import LENGTH, VARIANTS, model_of, stories
from bert_course.chapters.pretraining_knowledge import Left, left_over, words_known
from minigrad.bert.data import make_rows
from minigrad.bert.story_scores import score_stories
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs
from minigrad.tensor import Tensor


@pytest.fixture(scope="module")
def text():
    return stories()


@pytest.fixture(scope="module")
def scorer(text):
    return Scorer(text.setting)


@pytest.fixture(scope="module")
def pairs(text):
    return draw_pairs(text.setting, 6, seed=11)


class Knowing:
    """Gives each hidden word of the pairs its exact probability, in place of a model."""

    def __init__(self, text, pairs, scorer):
        self.text, self.exact = text, {}
        self.config = SimpleNamespace(max_position_embeddings=LENGTH)
        for pair in pairs:
            encoded = text.encode(pair, len(pair.words) + 3)
            ids = make_rows([encoded], text.tokenizer, len(pair.words) + 3)["input_ids"][0]
            self.exact[len(encoded.a), tuple(ids)] = scorer.hidden_words(pair.text_a, pair.text_b)

    def __call__(self, rows, token_type_ids):
        mask, size = self.text.tokenizer.mask_token_id, self.text.tokenizer.vocab_size
        logits = np.full((*rows.shape, size), -60.0)
        (guesses,) = [
            found
            for (_, ids), found in self.exact.items()
            if len(ids) == rows.shape[1] and all(((row == ids) | (row == mask)).all() for row in rows)
        ]
        for number, guess in enumerate(guesses):
            at = np.flatnonzero(rows[number] == mask)
            for word, p in guess.items():
                logits[number, at, self.text.id(word)] = np.log(p)
        return SimpleNamespace(
            prediction_logits=Tensor(logits), seq_relationship_logits=Tensor(logits[:, 0, :2])
        )


def test_what_is_known_of_words_is_what_the_scores_say(text, scorer, pairs):
    model = model_of(VARIANTS["BERT"], 3).eval()
    known = np.concatenate([words_known(model, text, pair) for pair in pairs])
    assert -np.log(known).mean() == pytest.approx(
        score_stories(model, text, pairs, scorer)["all"].nats, rel=1e-5
    )


def test_nothing_is_left_for_a_model_that_knows_the_grammar(text, scorer, pairs):
    left = left_over(Knowing(text, pairs, scorer), text, pairs, scorer)
    assert len(left) == sum(len(pair.words) for pair in pairs)
    assert max(abs(word.nats) for word in left) < 1e-9
    copied = [word for word in left if word.best_copy]
    assert max(abs(word.in_copy) for word in left) < 1e-9
    assert {word.slot for word in copied} <= {"noun", "noun again"}
    assert copied
    for word in left:
        assert word.copy == pytest.approx(word.best_copy, abs=1e-9)


def test_what_is_left_is_the_divergence_and_of_pairs_that_go_on_the_copy_is_the_word_itself(
    text, scorer, pairs
):
    model = model_of(VARIANTS["BERT"], 3).eval()
    left = iter(left_over(model, text, pairs, scorer))
    for pair in pairs:
        p = words_known(model, text, pair)
        for word, guess, mine in zip(
            pair.words, scorer.hidden_words(pair.text_a, pair.text_b), p, strict=True
        ):
            found = next(left)
            assert found.nats > -1e-9
            assert found.slot == word.slot
            if len(guess) == 1:
                assert found.nats == pytest.approx(-np.log(mine))
            if pair.next_sentence_label == 0 and found.best_copy and word.slot == "noun":
                assert found.copy == pytest.approx(mine)
                assert found.best_copy == pytest.approx(guess[word.text])


def test_what_the_choice_of_a_copy_costs():
    """By hand: the exact probability is 1/4, the model's 1/2. The rest of the words cannot lower it."""
    nothing = np.empty(0)

    def costs(copy, best_copy):
        return Left("noun", 1, nothing, nothing, 0.0, copy, best_copy).in_copy

    assert costs(0.5, 0.25) == pytest.approx(0.25 * np.log(0.5) + 0.75 * np.log(1.5))
    assert costs(0.5, 0.0) == pytest.approx(np.log(2))
    assert costs(0.5, 1.0) == pytest.approx(np.log(2))
    assert costs(0.0, 0.0) == 0


def test_whether_b_is_next_is_asked_with_the_word_hidden(text, scorer, pairs):
    model = model_of(VARIANTS["BERT"], 3).eval()
    row = make_rows([text.encode(pairs[0], 32)], text.tokenizer, 32)
    row["input_ids"][0, 2] = text.tokenizer.mask_token_id
    logits = model(**row).seq_relationship_logits.numpy()[0]
    found = left_over(model, text, pairs[:1], scorer)[1].is_next
    assert found == pytest.approx(1 / (1 + np.exp(logits[1] - logits[0])), rel=1e-4)
