"""Exact probabilities of stories, against all stories of a miniature lexicon, told one after another."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from minigrad.stories.floors import HIDDEN, GrammarError, Scorer, mlm_floor
from minigrad.stories.grammar import Facts, Sentence, plan, tell_story
from minigrad.stories.lexicon import SETTINGS, Kind, Lexicon
from minigrad.stories.stories import draw_pairs

pytestmark = pytest.mark.no_arrays

TINY = Lexicon(
    men=("adam",),
    women=("eve",),
    places=("park",),
    kinds={"text": Kind(("book",), ("reads",), ("famous",)), "food": Kind(("plum",), ("eats",), ("ripe",))},
    counts={"one": 2, "two": 2},
    keeps=("keeps",),
    gives=("gives",),
    shows=("shows",),
    takes=("takes",),
    hides=("hides",),
    ages=("old",),
    moods=("calm",),
    times=("now",),
    manners=("slowly",),
)
LIGHT = replace(SETTINGS["light"], lexicon=TINY)
VARIED = replace(SETTINGS["varied"], lexicon=TINY)
VARIED_END = replace(VARIED, adverbs=0)
LONG = replace(SETTINGS["long"], sentences=(2,), lexicon=TINY)


class Follow:
    """A teller that takes the options it is told, and the first one after those; it does not know of any text."""

    def __init__(self, path):
        self.path, self.options = path, []
        self.words, self.probability = [], Fraction(1)

    def choose(self, weights):
        items = [item for item in weights.items() if item[1]]
        place = self.path[len(self.options)] if len(self.options) < len(self.path) else 0
        self.options.append(len(items))
        item, weight = items[place]
        self.probability *= Fraction(weight, sum(weights.values()))
        return item

    def say(self, weights, tag, slot, entity, rival):
        self.words.append(self.choose(weights))
        return self.words[-1]


def all_ways(setting, places, path=()) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    """Each way to tell the sentences at these places of a story, and its probability."""
    teller, facts, sentences = Follow(path), Facts(), []
    for tell in plan(setting, max(setting.sentences))[places]:
        teller.words = []
        sentence = Sentence(teller, facts, setting)
        tell(sentence)
        facts = sentence.facts
        sentences.append(" ".join(teller.words))
    yield tuple(sentences), teller.probability
    for at in range(len(path), len(teller.options)):
        for option in range(1, teller.options[at]):
            yield from all_ways(setting, places, (*path, *[0] * (at - len(path)), option))


def all_texts(setting, places=slice(None)) -> dict[tuple[str, ...], Fraction]:
    """The probability of each text."""
    found = defaultdict(Fraction)
    for text, probability in all_ways(setting, places):
        found[text] += probability
    return dict(found)


def words(text):
    return [sentence.split() for sentence in text]


@pytest.fixture(scope="module")
def light():
    return all_texts(LIGHT)


def hold(texts, setting):
    """All texts have the probability one together, and the scorer gives each (of 50) the same."""
    assert sum(texts.values()) == 1
    scorer = Scorer(setting, Fraction)
    for text in [*texts][:: len(texts) // 50]:
        assert scorer.probability(words(text)) == texts[text]


def test_light_stories_are_scored_as_they_are_told(light):
    hold(light, LIGHT)


def test_long_stories_are_scored_as_they_are_told():
    hold(all_texts(LONG), LONG)


def test_relative_clauses_are_scored_as_they_are_told():
    hold(all_texts(VARIED, slice(0, 2)), VARIED)
    ends = all_texts(VARIED_END, slice(3, 4))
    assert any(" which " in text[0] for text in ends)
    assert sum(ends.values()) == 1
    scorer = Scorer(VARIED_END, Fraction)
    for text in [*ends][:: len(ends) // 50]:
        assert scorer.probability(words(text), first=3) == ends[text]


def test_the_end_of_a_story_alone_has_the_sum_over_all_beginnings(light):
    ends = all_texts(LIGHT, slice(2, 4))
    summed = defaultdict(Fraction)
    for text, probability in light.items():
        summed[text[2:]] += probability
    assert dict(summed) == ends
    scorer = Scorer(LIGHT, Fraction)
    for text in [*ends][::7]:
        assert scorer.probability(words(text), first=2) == ends[text]


def fits(text, hidden):
    """Whether a text is what the one with a hidden word may have been."""
    return [len(s) for s in text] == [len(s) for s in hidden] and all(
        shown is HIDDEN or word == shown
        for sentence, hidden_sentence in zip(text, hidden, strict=True)
        for word, shown in zip(sentence, hidden_sentence, strict=True)
    )


def test_a_hidden_word_has_the_probabilities_that_all_texts_give_it(light):
    scorer = Scorer(LIGHT, Fraction)
    all_words = {text: words(text) for text in light}
    sentences = words([*light][len(light) // 3])
    for i, sentence in enumerate(sentences):
        for j in range(len(sentence)):
            hidden = [*sentences[:i], [*sentence[:j], HIDDEN, *sentence[j + 1 :]], *sentences[i + 1 :]]
            expected = defaultdict(Fraction)
            for text, probability in light.items():
                if fits(all_words[text], hidden):
                    expected[all_words[text][i][j]] += probability
            assert scorer.fillings(hidden) == dict(expected)


def test_a_hidden_word_of_a_pair_is_that_of_both_cases_mixed(light):
    ends = all_texts(LIGHT, slice(2, 4))
    starts = all_texts(LIGHT, slice(0, 2))
    pair = draw_pairs(LIGHT, 2, seed=3)[1]
    assert pair.next_sentence_label == 1
    a, b = (tuple(" ".join(s) for s in half) for half in (pair.text_a, pair.text_b))
    guesses = Scorer(LIGHT, Fraction).hidden_words(pair.text_a, pair.text_b)
    place = 0
    for part in (a, b):
        for i, sentence in enumerate(words(part)):
            for j in range(len(sentence)):
                expected = {}
                for word in LIGHT.words():
                    changed = [*sentence[:j], word, *sentence[j + 1 :]]
                    other = (*part[:i], " ".join(changed), *part[i + 1 :])
                    one, two = (other, b) if part is a else (a, other)
                    p = light.get((*one, *two), 0) + starts.get(one, 0) * ends.get(two, 0)
                    if p:
                        expected[word] = p
                total = sum(expected.values())
                assert guesses[place] == {word: p / total for word, p in expected.items()}
                place += 1
    assert place == len(guesses) == len(pair.words)


def test_is_next_by_its_definition(light):
    ends, starts = all_texts(LIGHT, slice(2, 4)), all_texts(LIGHT, slice(0, 2))
    scorer = Scorer(LIGHT, Fraction)
    for pair in draw_pairs(LIGHT, 10, seed=1):
        a, b = (tuple(" ".join(s) for s in half) for half in (pair.text_a, pair.text_b))
        together, apart = light.get((*a, *b), Fraction(0)), starts[a] * ends[b]
        assert scorer.is_next(pair.text_a, pair.text_b) == together / (together + apart)


@pytest.mark.parametrize("name", SETTINGS)
def test_at_full_size_a_hidden_word_is_each_word_tried(name):
    setting = SETTINGS[name]
    scorer, vocabulary = Scorer(setting), setting.words()
    story = tell_story(setting, 5)
    sentences = words(story.texts())
    i = len(sentences) - 1
    for j in range(len(sentences[i])):
        tried = {}
        for word in vocabulary:
            changed = [*sentences[i][:j], word, *sentences[i][j + 1 :]]
            p = scorer.probability([*sentences[:i], changed])
            if p:
                tried[word] = p
        hidden = [*sentences[:i], [*sentences[i][:j], HIDDEN, *sentences[i][j + 1 :]]]
        assert scorer.fillings(hidden) == pytest.approx(tried, rel=1e-12)


def test_floors_are_means_over_words():
    pairs = draw_pairs(SETTINGS["light"], 6, seed=2)
    scorer = Scorer(SETTINGS["light"])
    floors = mlm_floor(pairs, scorer)
    guesses = [
        (word, guess)
        for pair in pairs
        for word, guess in zip(pair.words, scorer.hidden_words(pair.text_a, pair.text_b), strict=True)
    ]
    assert all(sum(guess.values()) == pytest.approx(1, rel=1e-13) for _, guess in guesses)
    assert floors["all"].count == sum(f.count for slot, f in floors.items() if slot != "all") == len(guesses)
    assert floors["all"].nats == pytest.approx(-sum(math.log(g[w.text]) for w, g in guesses) / len(guesses))
    places = [max(g.values()) for w, g in guesses if w.slot == "place"]
    assert places == pytest.approx([1 / 8] * len(pairs))
    assert floors["place"].accuracy == pytest.approx(1 / 8)
    assert floors["place"].nats == pytest.approx(math.log(8))
    assert floors["number of the verb"].nats == pytest.approx(0, abs=1e-12)


def test_in_each_slot_the_best_guesser_is_right_as_often_as_it_is_sure():
    """So it is as long as slots are named before their words are drawn, and not after what came out."""
    scorer, luck = Scorer(SETTINGS["light"]), defaultdict(list)
    for pair in draw_pairs(SETTINGS["light"], 80, seed=9):
        for word, guess in zip(pair.words, scorer.hidden_words(pair.text_a, pair.text_b), strict=True):
            best = max(guess, key=guess.__getitem__)
            luck[word.slot].append(((word.text == best) - guess[best], guess[best] * (1 - guess[best])))
    for slot, found in luck.items():
        surplus, variance = (sum(column) for column in zip(*found, strict=True))
        assert abs(surplus) < 4 * variance**0.5 + 1e-6, slot


def test_what_the_grammar_cannot_write():
    scorer = Scorer(SETTINGS["light"])
    assert scorer.probability([["adam", "eats", "."]]) == 0
    pair = draw_pairs(SETTINGS["light"], 1, seed=0)[0]
    with pytest.raises(GrammarError, match=r"writes no such pair: adam eats \. \|"):
        scorer.is_next([["adam", "eats", "."]], pair.text_b)
    with pytest.raises(GrammarError, match=r"writes no such pair: \[MASK\] eats \. \|"):
        scorer.hidden_word([["adam", "eats", "."]], pair.text_b, 0)
    for place in (-1, len(pair.words)):
        with pytest.raises(IndexError, match=f"place must be within 0 … {len(pair.words) - 1}, got {place}"):
            scorer.hidden_word(pair.text_a, pair.text_b, place)
    with pytest.raises(GrammarError, match="at most 4 sentences"):
        scorer.probability([*pair.text_a, *pair.text_b, ["adam", "."]])
