"""The floor of the loss that is trained: the best guesser against sums over all stories of a miniature lexicon."""

from __future__ import annotations

import math
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from book.records.make import training_floor
from minigrad.bert.config import IGNORED
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs
from tests.stories.test_floors import LIGHT, all_texts

pytestmark = pytest.mark.numpy_only("the records are made on the CPU")

WORDS = LIGHT.words()
MASK, VOCABULARY = len(WORDS), len(WORDS) + 3


@pytest.fixture(scope="module")
def halves():
    return training_floor.Halves(SimpleNamespace(setting=LIGHT, id=WORDS.index))


def ids(text):
    return [WORDS.index(word) for sentence in text for word in sentence.split()]


def of_pair(pair):
    """The ids of both halves, and how long the first is."""
    a, b = (ids([" ".join(sentence) for sentence in half]) for half in (pair.text_a, pair.text_b))
    return np.array([*a, *b]), len(a)


def test_the_halves_are_those_of_the_grammar(halves):
    assert sum(p.sum() for _, p, _ in halves.first.values()) == pytest.approx(1)
    assert halves.known.sum() == pytest.approx(1)
    starts = {tuple(ids(text)): float(p) for text, p in all_texts(LIGHT, slice(0, 2)).items()}
    found = defaultdict(float)
    for words, p, _ in halves.first.values():
        for row, chance in zip(words.tolist(), p, strict=True):
            found[tuple(row)] += chance
    assert found == pytest.approx(starts)


def test_one_hidden_word_has_the_probability_that_the_scorer_gives_it(halves):
    for pair in draw_pairs(LIGHT, 4, seed=1):
        true, cut = of_pair(pair)
        for place, guess in enumerate(Scorer(LIGHT).hidden_words(pair.text_a, pair.text_b)):
            inputs, labels = true.copy(), np.full(len(true), IGNORED)
            inputs[place], labels[place] = MASK, true[place]
            (loss,) = training_floor.best_losses(halves, inputs, labels, cut, MASK, VOCABULARY)
            assert loss == pytest.approx(-math.log(guess[WORDS[true[place]]]))


def test_several_hidden_words_a_random_one_and_one_that_was_kept(halves):
    """By the definition: every pair of halves, as one story and as two, times how likely it is to be seen so."""
    starts, ends, whole = (
        {text: float(p) for text, p in all_texts(LIGHT, places).items()}
        for places in (slice(0, 2), slice(2, 4), slice(None))
    )
    pair = draw_pairs(LIGHT, 2, seed=3)[0]
    true, cut = of_pair(pair)
    inputs, labels = true.copy(), np.full(len(true), IGNORED)
    chosen = [0, 5, cut - 2, cut, len(true) - 2]
    labels[chosen] = true[chosen]
    inputs[[0, 5, len(true) - 2]] = MASK
    inputs[cut - 2] = (true[cut - 2] + 1) % len(WORDS)  # a random word; that at `cut` is kept
    table = training_floor.likelihood(inputs, len(chosen), MASK, VOCABULARY)
    guesses = np.zeros((len(true), VOCABULARY))
    long_enough = [(end, q, ids(end)) for end, q in ends.items() if len(ids(end)) == len(true) - cut]
    second = np.array([words for _, _, words in long_enough])  # (n, length of b)
    for start, p in starts.items():
        words = np.hstack([np.tile(ids(start), (len(second), 1)), second])  # (n, length)
        weights = np.array([whole.get((*start, *end), 0.0) + p * q for end, q, _ in long_enough])  # (n,)
        seen = table[np.arange(len(true)), words]  # (n, length)
        for place in chosen:
            others = np.delete(seen, place, axis=1).prod(axis=1)
            np.add.at(guesses[place], words[:, place], weights * others)
    for place in (cut - 2, cut):
        own = np.full(VOCABULARY, 0.1 / VOCABULARY)
        own[inputs[place]] += 0.1
        guesses[place] *= own
    expected = [-math.log(guesses[i, true[i]] / guesses[i].sum()) for i in chosen]
    found = training_floor.best_losses(halves, inputs, labels, cut, MASK, VOCABULARY)
    assert found == pytest.approx(expected)


def test_whatever_the_true_word_is_something_is_seen():
    """With one of two shown tokens chosen, each is the true word in 0.75 of the cases, or any word at random."""
    chances = [
        training_floor.likelihood(np.array([seen, 0]), 1, MASK, VOCABULARY)[0]
        for seen in range(VOCABULARY)
        if seen != MASK
    ]
    other = 0.5 * 0.5 / VOCABULARY  # half of the chosen ones that are shown are random
    assert np.sum(chances, axis=0)[:MASK] == pytest.approx(1 - other)  # a random [MASK] is seen as hidden
    assert chances[3][3] == pytest.approx(0.75 + other)
    assert chances[3][4] == pytest.approx(other)
