"""Tasks on light stories: what is asked, what is right, and how answers are counted."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bert_course.common import story_tasks
from bert_course.common.light_stories import LENGTH
from bert_course.common.story_tasks import LIGHT, TASKS, TOKENIZER, best_spans
from minigrad.stories.stories import labels, tell_stories


def words(ids):
    return [TOKENIZER.id_to_token(i) for i in ids]


@pytest.mark.parametrize("name", TASKS)
def test_examples_fit_into_the_trained_positions_and_are_others_for_each_seed(name):
    first, second = (TASKS[name].examples(60, seed) for seed in (0, 1))
    assert len(first) == 60
    assert max(len(one.input_ids) for one in first) <= LENGTH
    assert first == TASKS[name].examples(60, 0)
    assert [one.input_ids for one in first] != [one.input_ids for one in second]


def test_the_classes_are_those_of_the_grammar():
    stories = list(tell_stories(LIGHT, 50, 3))
    assert [one.targets["labels"] for one in TASKS["holder"].examples(50, 3)] == [
        labels(story)["man_has_it"] for story in stories
    ]
    assert [one.targets["labels"] for one in TASKS["moved"].examples(50, 3)] == [
        labels(story)["moved"] for story in stories
    ]


def test_one_verb_says_whether_the_thing_has_moved():
    for one in TASKS["moved"].examples(100, 0):
        moved = bool({"gives", "sends"} & set(words(one.input_ids)))
        assert moved == one.targets["labels"]


def test_half_of_the_pairs_are_wrong_and_neither_half_tells():
    pairs = TASKS["pairs"].examples(400, 0)
    wrong = np.array([one.targets["labels"] for one in pairs])
    assert wrong.mean() == 0.5
    men = {"he", "his", *LIGHT.lexicon.men}
    is_man = [
        bool(men & {w for w, segment in zip(words(p.input_ids), p.token_type_ids, strict=True) if segment})
        for p in pairs
    ]
    assert abs(np.corrcoef(is_man, wrong)[0, 1]) < 0.15


def test_a_wrong_pair_is_a_story_with_one_other_word(monkeypatch):
    right = {" ".join(" ".join(story.texts()).split()) for story in tell_stories(LIGHT, 500, 0)}
    for one in TASKS["pairs"].examples(100, 0):
        text = " ".join(word for word in words(one.input_ids) if word[0] != "[")
        assert (text in right) != bool(one.targets["labels"])


def test_answers_stand_where_the_targets_say():
    for one in TASKS["questions"].examples(90, 0):
        read = words(one.input_ids)
        start, end = one.targets["start_positions"], one.targets["end_positions"]
        answer, question = read[start : end + 1], read[1]
        assert one.token_type_ids[start] == one.token_type_ids[end] == 1
        if question == "where":
            assert answer[0] == "the"
            assert answer[1] in LIGHT.lexicon.places
        elif question == "how":
            assert answer[0] in LIGHT.lexicon.counts
        else:
            assert answer[0] in (*LIGHT.lexicon.men, *LIGHT.lexicon.women)


def test_tags_name_the_one_who_has_the_thing():
    for one, story in zip(TASKS["tags"].examples(50, 0), tell_stories(LIGHT, 50, 0), strict=True):
        holder = story.facts.names[story.facts.holder]
        tags = one.targets["labels"]
        assert len(tags) == len(one.input_ids)
        for word, tag in zip(words(one.input_ids), tags, strict=True):
            if word in story.facts.names:
                assert tag == (story_tasks.HAS_IT if word == holder else story_tasks.HAS_IT_NOT)
            if word[0] == "[":
                assert tag == -100


def test_a_text_beyond_the_trained_positions_is_refused():
    with pytest.raises(ValueError, match="32 positions"):
        story_tasks._encoded("john " * 20, "mary " * 20)


def test_the_best_span_does_not_run_backwards_nor_leave_the_text():
    start = np.array([[9.0, 0, 2, 0, 3]])
    end = np.array([[9.0, 0, 1, 4, 0]])
    inside = np.array([[False, True, True, True, True]])
    assert [int(one[0]) for one in best_spans(start, end, inside)] == [2, 3]


def test_accuracy_of_tags_counts_the_words_for_people():
    examples = TASKS["tags"].examples(5, 0)

    class Says:
        config = SimpleNamespace(pad_token_id=0)

        def eval(self):
            return self

        def __call__(self, input_ids, **_):
            logits = np.zeros((*input_ids.shape, 3))
            logits[..., story_tasks.OTHER_WORD] = 1
            return SimpleNamespace(logits=SimpleNamespace(numpy=lambda: logits))

    assert story_tasks.accuracy(Says(), examples) == 0
