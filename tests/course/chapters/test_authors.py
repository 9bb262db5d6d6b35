"""Sentences of Doyle and Melville: what is fair about them, and what is counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from bert_course.chapters import authors


@pytest.mark.no_arrays
def test_parts_share_no_sentence_and_writers_have_equal_lengths():
    seen = set()
    for part in ("train", "dev"):
        lengths = Counter((len(text.split()), writer) for text, writer in authors.sentences(part))
        assert all(lengths[length, 0] == lengths[length, 1] for length, _ in lengths), part
        texts = {text for text, _ in authors.sentences(part)}
        assert len(texts) == len(authors.sentences(part))
        assert not texts & seen
        seen |= texts


@pytest.mark.no_arrays
def test_no_mark_of_a_file_gives_a_writer_away():
    marks = set("".join(text for part in ("train", "dev") for text, _ in authors.sentences(part)))
    assert not marks & set('"“”‘’—_*')


@pytest.mark.no_arrays
def test_names_are_hidden_and_other_capitals_are_not():
    text = "Holmes and I saw Ahab's whale in London; It was the White Whale."
    hidden = authors.without_names(text)
    assert hidden.startswith("[MASK] and I saw [MASK] whale in [MASK]; It was the ")
    assert not {"i", "the", "it", "was"} & authors.names()


@pytest.mark.no_arrays
def test_searches_and_compared_runs_are_judged_by_other_sentences():
    search, compared = authors.held_out(authors.SEARCH_SEED), authors.held_out(0)
    assert (len(search), len(compared)) == (400, 1200)
    assert not set(search) & set(compared)
    assert authors.held_out(1) == compared
    assert len(set(authors.labelled(64, 0)) & set(authors.labelled(64, 1))) < 16


@pytest.mark.no_arrays
def test_words_are_counted_with_half_a_count_more():
    train = [("a a b", 0), ("b c", 1)]
    # a: 2.5 of 4.5 + 0.5 against 0.5 of 3.5 + 0.5, and so on: sums of logarithms by hand.
    assert authors.by_words(train, [("a", 0), ("c", 1), ("b c", 1), ("a [MASK]", 0)]) == 1
    assert authors.by_words(train, [("a", 1), ("c", 1)]) == 0.5
    assert authors.words_of("[MASK] don't, you; see?") == ["[mask]", "don't", ",", "you", ";", "see", "?"]


def test_a_model_is_judged_by_its_classes():
    model, tokenizer = authors.begin("from scratch", seed=0)
    again, _ = authors.begin("from scratch", seed=0)
    found = [("One is here.", 0), ("And two of them, which are longer.", 1)]
    examples = authors.features(found, tokenizer)
    assert [one.targets["labels"] for one in examples] == [0, 1]
    model.classifier.bias.data[...] = [100, 0]
    assert authors.accuracy(model, examples) == 0.5
    name = "bert.embeddings.word_embeddings.weight"
    weights = [dict(one.named_parameters())[name].numpy() for one in (model, again)]
    assert np.array_equal(*weights)
    trained = dict(authors.begin("documentation", seed=0)[0].named_parameters())[name].numpy()
    assert not np.array_equal(weights[0], trained)


def test_a_few_labels_teach_the_words():
    train, test = authors.labelled(256, 0), authors.held_out(0)[:300]
    assert 0.7 < authors.by_words(train, test) < 0.85  # a coin: 0.45 to 0.55
