"""The grammar's stories: the same everywhere, with labels that fit the words."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

import pytest

from minigrad.stories.grammar import Facts, Sentence, plan, tell_story
from minigrad.stories.lexicon import FULL, OBJECT, POSSESSIVE, SETTINGS, SUBJECT, Kind
from minigrad.stories.stories import tell_stories

pytestmark = pytest.mark.no_arrays

MEN = {SUBJECT[True], OBJECT[True], POSSESSIVE[True], *FULL.men}
WOMEN = {SUBJECT[False], OBJECT[False], *FULL.women}
HASHES = {
    "light": "851df974b5dd261c74d611cb4dda5220ed7a689470550f6ffe3f0757a69ec653",
    "varied": "699bb7ef2db8f27bb05fee243f432ae08ce957613f9c21b277d3c9f911f965c9",
    "long": "5c78df28d05e749997f950bff9018533fcc39a11d15d8f26684e4e98ce0827ef",
}


@pytest.fixture(scope="module", params=SETTINGS)
def stories(request):
    return list(tell_stories(SETTINGS[request.param], 300, seed=1))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_bytes_everywhere(name):
    lines = [line for number in range(200) for line in [*tell_story(SETTINGS[name], number).texts(), ""]]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == HASHES[name]


def test_words_are_those_of_the_vocabulary(stories, request):
    setting = next(s for n, s in SETTINGS.items() if n in request.node.name)
    vocabulary = setting.words()
    assert vocabulary == sorted(set(vocabulary))
    said = {word.text for story in stories for sentence in story.sentences for word in sentence}
    assert said <= set(vocabulary)
    assert len(said) > 0.85 * len(vocabulary)


def test_each_sentence_is_a_tree_whose_root_is_its_verb(stories):
    for story in stories:
        for words, tree in zip(story.sentences, story.trees, strict=True):
            heads = tree.heads(len(words))
            roots = [place for place, head in enumerate(heads) if head == place]
            assert roots == [tree.at]
            assert words[tree.at].tag == "VERB"
            for place in range(len(words)):
                steps = 0
                while heads[place] != place:
                    place, steps = heads[place], steps + 1
                    assert steps <= len(words)


def test_each_branch_of_a_tree_is_a_row_of_words_without_a_gap(stories):
    """No crossing arcs but for adverbs and stops, which hang on a verb from anywhere."""
    for story in stories:
        for words, tree in zip(story.sentences, story.trees, strict=True):
            heads = tree.heads(len(words))
            for top, word in enumerate(words):
                if word.tag not in ("NOUN", "NAME"):
                    continue
                below = {top}
                for _ in words:
                    below |= {place for place, head in enumerate(heads) if head in below}
                assert below == set(range(min(below), max(below) + 1)), (words, top)


def test_who_is_meant_fits_the_gender_and_the_name(stories):
    for story in stories:
        named = dict(zip(("first", "second"), story.facts.names, strict=True))
        for word in (word for sentence in story.sentences for word in sentence):
            if word.entity in named and word.text != "who":
                man = named[word.entity] in FULL.men
                assert word.text in (MEN if man else WOMEN)
                if word.tag == "NAME":
                    assert word.text == named[word.entity]
            if word.tag == "NOUN" and word.entity == "thing":
                assert word.text == story.facts.noun + "s" * story.facts.many


def test_who_has_the_thing_is_what_the_verbs_say(stories):
    moves = {*FULL.gives, *FULL.takes}
    for story in stories:
        before = None
        for words, tree, holder in zip(story.sentences, story.trees, story.holders, strict=True):
            verb = words[tree.at].text
            person = {"first": 0, "second": 1}.get(tree.subject.entity)
            if verb == "has":
                assert person == holder
            elif verb in FULL.takes:
                assert (person, 1 - before) == (holder, holder)
            elif verb in moves:
                assert (person, 1 - before) == (before, holder)
            elif verb in (*FULL.keeps, *FULL.shows, *FULL.hides) or any(
                verb in kind.verbs for kind in FULL.kinds.values()
            ):
                assert person == before == holder
            elif tree.subject.possessor is not None:
                assert tree.subject.possessor.entity == ("first", "second")[holder]
            before = holder


def test_pronouns_come_after_what_they_stand_for(stories):
    for story in stories:
        met = set()
        for word in (word for sentence in story.sentences for word in sentence):
            if word.tag == "PRON":
                assert word.entity in met
            elif word.entity:
                met.add(word.entity)


def test_rivals_are_the_other_way(stories):
    pairs = Counter(
        (word.text, word.rival)
        for story in stories
        for sentence in story.sentences
        for word in sentence
        if word.rival and word.tag != "NAME"
    )
    for pair in [("he", "she"), ("her", "him"), ("them", "it"), ("is", "are"), ("books", "book")]:
        assert pairs[pair]
    assert not any(word == rival for word, rival in pairs)


class Silent:
    """A teller who says nothing of its own: it takes the heaviest option."""

    def choose(self, weights):
        return max(weights, key=weights.get)

    def say(self, weights, tag, slot, entity, rival):
        return self.choose(weights)


def test_a_teller_needs_two_methods_alone():
    sentence = Sentence(Silent(), Facts(), SETTINGS["light"])
    tree = plan(SETTINGS["light"], 4)[1](sentence)
    assert (tree.verb, tree.object.lemma, tree.object.count) == ("has", "book", "one")


def test_a_lexicon_whose_priors_would_not_hold_is_refused():
    with pytest.raises(ValueError, match="as many men as women, got 7 and 8"):
        replace(FULL, men=FULL.men[1:])
    with pytest.raises(ValueError, match="nouns, verbs and adjectives in each kind"):
        replace(FULL, kinds={**FULL.kinds, "odd": Kind(("ball",), ("throws",), ("round",))})
    with pytest.raises(ValueError, match="on 'one'"):
        replace(FULL, counts={"one": 1, "two": 1, "three": 1})
