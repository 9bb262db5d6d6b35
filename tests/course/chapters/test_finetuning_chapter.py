"""What the runs of chapter `finetuning` begin with, and the labels of names."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bert_course.chapters import finetuning
from bert_course.chapters.finetuning import STARTS, weights_of
from bert_course.chapters.names import aligned, score_names, tagged_sentences
from bert_course.common.story_tasks import LIGHT, TASKS, TOKENIZER


def words(ids):
    return [TOKENIZER.id_to_token(i) for i in ids]


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
