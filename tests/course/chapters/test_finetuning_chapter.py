"""What chapter `finetuning` fine-tunes on, and what its runs begin with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from minigrad.course.chapters import finetuning
from minigrad.course.chapters.finetuning import (
    LENGTH,
    LIGHT,
    STARTS,
    TASKS,
    TOKENIZER,
    best_spans,
    weights_of,
)
from minigrad.course.chapters.names import aligned, score_names, tagged_sentences
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
                assert tag == (finetuning.HAS_IT if word == holder else finetuning.HAS_IT_NOT)
            if word[0] == "[":
                assert tag == -100


def test_a_text_beyond_the_trained_positions_is_refused():
    with pytest.raises(ValueError, match="32 positions"):
        finetuning._encoded("john " * 20, "mary " * 20)


def test_shuffled_weights_are_the_trained_ones_in_another_order():
    rng = np.random.default_rng(0)
    trained = {name: rng.standard_normal((5, 4)) for name in ("bert.embeddings.w", "bert.encoder.w")}
    fresh = {name: np.zeros((5, 4)) for name in trained}
    shuffled = weights_of("shuffled", trained, fresh, 0)
    for name, array in trained.items():
        assert not np.array_equal(shuffled[name], array)
        np.testing.assert_array_equal(np.sort(shuffled[name], axis=None), np.sort(array, axis=None))
    kept = weights_of("embeddings only", trained, fresh, 0)
    assert kept["bert.embeddings.w"] is trained["bert.embeddings.w"]
    assert kept["bert.encoder.w"] is fresh["bert.encoder.w"]
    with pytest.raises(ValueError, match="one of pre-trained"):
        weights_of("cold", trained, fresh, 0)


def test_mixed_names_have_the_trained_vectors_of_names_and_all_else_is_as_in_embeddings_only():
    rng = np.random.default_rng(0)
    trained = {finetuning.WORDS: rng.standard_normal((len(TOKENIZER.vocab), 4)), "bert.encoder.w": np.ones(3)}
    fresh = {name: np.zeros_like(array) for name, array in trained.items()}
    mixed = weights_of("names mixed", trained, fresh, 0)
    moved = np.flatnonzero((mixed[finetuning.WORDS] != trained[finetuning.WORDS]).any(axis=1))
    names = {*LIGHT.lexicon.men, *LIGHT.lexicon.women}
    assert len(moved) > len(names) / 2
    assert set(words(moved)) <= names
    np.testing.assert_array_equal(
        np.sort(mixed[finetuning.WORDS], axis=0), np.sort(trained[finetuning.WORDS], axis=0)
    )
    assert mixed["bert.encoder.w"] is fresh["bert.encoder.w"]
    for start in finetuning.NAMED:
        assert (weights_of(start, trained, fresh, 0)[finetuning.WORDS] != trained[finetuning.WORDS]).any()
    by_gender = weights_of("names mixed by gender", trained, fresh, 0)[finetuning.WORDS]
    for people in (finetuning.MEN, finetuning.WOMEN):
        np.testing.assert_array_equal(
            np.sort(by_gender[people], axis=0), np.sort(trained[finetuning.WORDS][people], axis=0)
        )
    new = weights_of("names new", trained, fresh, 0)[finetuning.WORDS]
    assert set(words(np.flatnonzero((new == 0).all(axis=1)))) == names


@pytest.mark.parametrize("start", STARTS)
def test_only_the_head_of_a_frozen_model_moves(start):
    task = TASKS["holder"]
    model = finetuning.begin(task, start, 0)
    before = {name: p.numpy().copy() for name, p in model.named_parameters()}
    finetuning.fine_tune(model, task.examples(8, 0), 1e-2, 3, 0)
    moved = {name for name, p in model.named_parameters() if not np.array_equal(p.numpy(), before[name])}
    assert {"classifier.weight", "classifier.bias"} <= moved
    assert any(name.startswith("bert.") for name in moved) == (start != "frozen")


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
            logits[..., finetuning.OTHER_WORD] = 1
            return SimpleNamespace(logits=SimpleNamespace(numpy=lambda: logits))

    assert finetuning.accuracy(Says(), examples) == 0


def test_runs_that_looked_for_a_rate_are_not_compared():
    run = {"task": "holder", "start": "frozen", "labels": 16, "rate": 0.1, "accuracy": 0.5}
    record = {
        "runs": [
            {**run, "seed": 100},
            {**run, "seed": 0, "accuracy": 0.7},
            {**run, "seed": 100, "labels": 64},
        ]
    }
    assert finetuning.scores_of(record, "holder", "frozen", 16) == [0.7]
    assert finetuning.sizes_of(record, "holder", "frozen") == [16]


# --- Names -----------------------------------------------------------------------------------------------


class Letters:
    """A tokenizer whose pieces are letters."""

    cls_token_id, sep_token_id = 1, 2

    def token_ids(self, word):
        return [ord(letter) for letter in word]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("first piece", [-100, 0, 1, -100, -100, -100]),
        ("all pieces", [-100, 0, 1, 1, 1, -100]),
        ("one piece late", [-100, -100, 0, 1, -100, -100]),
    ],
)
def test_labels_of_pieces(how, wanted):
    one = aligned(["a", "Bob"], [0, 1], Letters(), how)
    assert one.input_ids == [1, *map(ord, "aBob"), 2]
    assert one.targets["labels"] == wanted
    assert one.places == [1, 2]


def test_names_are_capitalised_words_within_a_sentence():
    for part in tagged_sentences():
        assert len(part) > 200
        for sentence, tags in part:
            assert tags[0] == -100
            assert 1 in tags
            assert all(
                tag == (word[0].isupper() and word != "I")
                for word, tag in zip(sentence[1:], tags[1:], strict=True)
            )


def test_f1_is_between_what_is_found_and_what_is_right():
    one = aligned(["a", "Bob", "c", "D"], [-100, 1, 0, 1], Letters(), "first piece")

    class Says:
        config = SimpleNamespace(pad_token_id=0)

        def eval(self):
            return self

        def __call__(self, input_ids, **_):
            logits = np.zeros((*input_ids.shape, 2))
            logits[:, [2, 5], 1] = 1  # B of Bob, and c
            return SimpleNamespace(logits=SimpleNamespace(numpy=lambda: logits))

    found = score_names(Says(), [one])
    assert found == {"f1": 0.5, "accuracy": 1 / 3}
