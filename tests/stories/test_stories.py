"""Stories as training data: pairs of halves, ids, and the gold labels of whole stories."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from minigrad.bert.data import PretrainingData, held_out_batches
from minigrad.stories import stories as module
from minigrad.stories.lexicon import FULL, SETTINGS
from minigrad.stories.stories import (
    Stories,
    antecedents,
    draw_pairs,
    heads,
    labels,
    questions,
    story_tokenizer,
    tell_stories,
)

pytestmark = pytest.mark.no_arrays

LIGHT = SETTINGS["light"]


def words(story):
    return [word for sentence in story.sentences for word in sentence]


@pytest.fixture(scope="module", params=SETTINGS)
def stories(request):
    return list(tell_stories(SETTINGS[request.param], 200, seed=5))


def test_the_tokenizer_keeps_every_word_whole(stories):
    for setting in SETTINGS.values():
        tokenizer = story_tokenizer(setting)
        for story in tell_stories(setting, 20, seed=2):
            text = " ".join(story.texts())
            assert tokenizer.tokenize(text) == text.split()


def test_seeds_tell_other_stories():
    first, second = ({" ".join(story.texts()) for story in tell_stories(LIGHT, 300, seed)} for seed in (1, 2))
    assert len(first) == len(second) == 300
    assert len(first & second) < 3
    with pytest.raises(ValueError, match="at least 0, got -1 and 3"):
        tell_stories(LIGHT, 3, seed=-1)


def test_half_of_the_pairs_are_of_one_story():
    pairs = draw_pairs(LIGHT, 200, seed=3)
    assert Counter(pair.next_sentence_label for pair in pairs) == {0: 100, 1: 100}
    same_thing = Counter()
    for pair in pairs:
        assert (len(pair.a), len(pair.b)) == (2, 2)
        things = [
            {word.text.removesuffix("s") for word in words if word.tag == "NOUN" and word.entity == "thing"}
            for words in ([w for s in pair.a for w in s], [w for s in pair.b for w in s])
        ]
        same_thing[pair.next_sentence_label, things[0] == things[1]] += 1
    assert same_thing[0, True] == 100
    assert same_thing[1, True] < 15  # 100/24 are expected


def test_stories_too_short_for_pairs_are_refused():
    with pytest.raises(ValueError, match="more than 2 sentences; those of 'long' have"):
        draw_pairs(SETTINGS["long"], 3, seed=0)


def test_every_epoch_has_fresh_stories_and_comes_again(monkeypatch):
    monkeypatch.setattr(module, "STORIES_AN_EPOCH", 40)
    source = Stories(LIGHT)
    data = PretrainingData(source, source.tokenizer, batch_size=4, max_length=32, seed=1)
    first = data.next_batch()
    data.load_state_dict({"epoch": 1, "index": 0})
    second = data.next_batch()
    data.load_state_dict({"epoch": 0, "index": 0})
    again = data.next_batch()
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    assert not np.array_equal(first["labels"], second["labels"])
    assert data.batches_per_epoch == 40 // 4
    (held, *_) = held_out_batches(source, source.tokenizer, 4, 32, seed=1)
    assert not np.array_equal(first["input_ids"], held["input_ids"])


def test_a_pair_as_ids_is_what_the_tokenizer_makes_of_its_text():
    source = Stories(LIGHT)
    for pair in draw_pairs(LIGHT, 10, seed=9):
        encoded = source.encode(pair, 32)
        a, b = (
            " ".join(word for sentence in half for word in sentence) for half in (pair.text_a, pair.text_b)
        )
        assert encoded.a == source.tokenizer.token_ids(a)
        assert encoded.b == source.tokenizer.token_ids(b)
    with pytest.raises(ValueError, match=r"a pair of 'light' stories has \d\d tokens, max_length is 20"):
        source.encode(pair, 20)


def test_a_sentences_words_hang_on_words_of_it(stories):
    for story in stories:
        found = heads(story)
        start = 0
        for sentence, tree in zip(story.sentences, story.trees, strict=True):
            own = range(start, start + len(sentence))
            assert all(head in own for head in found[start : own.stop])
            assert found[start + tree.at] == start + tree.at
            start = own.stop


def test_antecedents_name_whom_the_pronoun_means(stories):
    for story in stories:
        said, found = words(story), antecedents(story)
        assert sorted(found) == [place for place, word in enumerate(said) if word.tag == "PRON"]
        for place, antecedent in found.items():
            assert antecedent < place
            assert said[antecedent].tag in ("NAME", "NOUN")
            assert said[antecedent].entity == said[place].entity
            between = said[antecedent + 1 : place]
            assert all(w.tag == "PRON" or w.entity != said[place].entity for w in between)


def test_answers_stand_where_questions_say(stories):
    for story in stories:
        said, facts = [word.text for word in words(story)], story.facts
        asked = {question.text: said[question.start : question.end] for question in questions(story)}
        things = facts.noun + "s" * facts.many
        assert asked[f"who has the {things} ?"] == [facts.names[facts.holder]]
        (count,) = asked[f"how many {facts.noun}s ?"]
        assert (count == "one") != facts.many
        assert count in FULL.counts
        where = asked.get(f"where is {facts.names[0]} ?")
        assert where is None or (where[0] == "the" and where[1] in FULL.places)


def test_labels_say_what_the_story_says(stories):
    seen = {name: set() for name in ("kind", "man_has_it", "moved")}
    for story in stories:
        found = labels(story)
        for name, value in found.items():
            seen[name].add(value)
        assert found["man_has_it"] == (story.facts.names[story.facts.holder] in FULL.men)
        verbs = {sentence[tree.at].text for sentence, tree in zip(story.sentences, story.trees, strict=True)}
        if found["moved"]:
            assert verbs & {*FULL.gives, *FULL.takes}
        elif len(story.sentences) <= 4:  # longer ones may move it there and back
            assert not verbs & {*FULL.gives, *FULL.takes}
        assert story.facts.noun in FULL.kinds[sorted(FULL.kinds)[found["kind"]]].nouns
    assert seen == {"kind": set(range(6)), "man_has_it": {0, 1}, "moved": {0, 1}}
