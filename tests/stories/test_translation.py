"""Stories and their translations, and attention against the truth."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest

from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import tell_stories
from minigrad.stories.translation import alignment_score, draw_translations, translation_tokenizer

pytestmark = pytest.mark.no_arrays

HASHES = {
    "light": "4849abeeec757507c7d4088b5244f7d0b7faed25e33fb143d1576b7d3d10c665",
    "varied": "dffe872d2641d745ad65b9f5edac85b04254b63c57e22c299a2b141a35b2985e",
    "long": "e61e22996a7c917f71b5d3004aec01c548c1523440e2ddc889a2c26be612da93",
}
VOCABULARIES = {
    "light": "b635a39605be9f69cc18a35f0bd088c0e8aac964dfad9bb8ab2ce461df382e04",
    "varied": "e3e2362daeeb005cedacf21a130cce3b6d679dbb7e4e8a478ccbdcd1ed1cfef0",
    "long": "811e2df076e60c39f6aa1c52c229aee2001e99292ff80a8f21a1746880a91d92",
}


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


# --- Stories ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_bytes_everywhere(name):
    pairs = draw_translations(SETTINGS[name], 200, seed=0)
    assert digest("\n".join(map(repr, pairs))) == HASHES[name]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_word_has_the_same_id_everywhere(name):
    """A checkpoint knows a word by its id alone."""
    assert digest("\n".join(translation_tokenizer(SETTINGS[name]).vocab)) == VOCABULARIES[name]


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_pairs_are_the_stories_of_the_seed(setting):
    pairs = draw_translations(setting, 50, seed=7)
    assert pairs == draw_translations(setting, 50, seed=7)
    assert [pair.source for pair in pairs] == [" ".join(s.texts()) for s in tell_stories(setting, 50, seed=7)]
    others = {pair.source for pair in draw_translations(setting, 50, seed=8)}
    assert len(others & {pair.source for pair in pairs}) < 5
    for pair in pairs:
        source, target = pair.source.split(), pair.target.split()
        assert len(pair.alignment) == len(pair.agreement) == len(target)
        places = {place for row in pair.alignment + pair.agreement for place in row}
        assert places <= set(range(len(source)))
        assert [target[t] for t, row in enumerate(pair.alignment) if source[row[0] if row else 0] == "."] == [
            "."
        ] * pair.source.count(".")
    with pytest.raises(ValueError, match="at least 0, got 3 and -1"):
        draw_translations(setting, -1, seed=3)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_the_tokenizer_keeps_every_word_of_both_languages_whole(setting):
    tokenizer = translation_tokenizer(setting)
    for pair in draw_translations(setting, 100, seed=3):
        for text in (pair.source, pair.target):
            assert tokenizer.tokenize(text) == text.split()
            assert tokenizer.unk_token_id not in tokenizer.token_ids(text)


def test_agreement_is_all_that_has_a_say():
    """mary has two old books . he borrows them from her ."""
    pairs = [p for p in draw_translations(SETTINGS["long"], 300, seed=1) if " them " in p.source]
    for pair in pairs:
        source = pair.source.split()
        for t, places in enumerate(pair.alignment):
            if [source[place] for place in places] == ["them"]:
                needed = [source[place] for place in pair.agreement[t]]
                assert sum(word in ("two", "three", "four", "five") for word in needed) == 1
                assert len(needed) == 1 + sum(word == needed[-1] for word in source)
                assert pair.agreement[t] == tuple(sorted(pair.agreement[t]))
    assert len(pairs) > 50


# --- Attention against the truth -------------------------------------------------------------------------


def test_the_share_of_words_that_look_at_a_gold_word():
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0], [0.6, 0.4, 0.0]])
    assert alignment_score(weights, ((0,), (1,), (1,), (2,))) == 0.5
    assert alignment_score(weights, ((0,), (1, 2), (), ())) == 1
    assert alignment_score(weights, ((1, 2), (1,), (), ())) == 0


def test_equal_weights_count_in_part():
    assert alignment_score(np.array([[0.4, 0.4, 0.2]]), ((1,),)) == 0.5
    assert alignment_score(np.full((3, 8), 1 / 8), ((0,), (2, 3, 7), ())) == pytest.approx((1 + 3) / 8 / 2)


def test_a_look_at_the_end_token_is_wrong():
    assert alignment_score(np.array([[0.1, 0.0, 0.9], [1.0, 0.0, 0.0]]), ((0,), (0,))) == 0.5


def test_the_truth_scores_1_and_its_yardsticks_far_less():
    scores = {"truth": [], "diagonal": [], "even": []}
    for pair in draw_translations(SETTINGS["varied"], 100, seed=5):
        target, source = len(pair.alignment), len(pair.source.split())
        truth = np.zeros((target, source))
        for t, places in enumerate(pair.alignment):
            truth[t, list(places)] = 1
        scores["truth"].append(alignment_score(truth, pair.alignment))
        diagonal = np.eye(source)[np.arange(target) * source // target]  # through the source at one pace
        scores["diagonal"].append(alignment_score(diagonal, pair.alignment))
        scores["even"].append(alignment_score(np.ones((target, source)), pair.alignment))
    means = {name: np.mean(found) for name, found in scores.items()}
    assert means["truth"] == 1
    assert 0.02 < means["even"] < 0.05 < 0.1 < means["diagonal"] < 0.3


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((1, 4)), "weights must be (2, 4 or more), a row for each word of the target and a column"),
        (np.ones((2, 3)), "for each of the source, got (2, 3)"),
        (np.ones((1, 2, 4)), "got (1, 2, 4)"),
        (np.full((2, 4), np.nan), "weights must be finite"),
    ],
)
def test_weights_of_another_pair_are_refused(weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        alignment_score(weights, ((0,), (3,)))


def test_a_score_of_no_word_is_refused():
    with pytest.raises(ValueError, match="no word of the target has a gold word"):
        alignment_score(np.ones((1, 2)), ((),))
