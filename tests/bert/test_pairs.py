"""Sentence pairs, and what is cut off those that are too long (Devlin et al. 2019, section 3.1 and A.2)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from draws import FIRST_WORD, numbered, within
from hypothesis import given
from hypothesis import strategies as st

import processes
from minigrad.bert.data import create_pairs, truncate
from minigrad.text.corpus import CorpusError
from minigrad.text.sentences import IS_NEXT, NOT_NEXT

pytestmark = pytest.mark.no_arrays


# --- Pairs -----------------------------------------------------------------------------------------------


def owners(documents) -> dict[int, int]:
    """The document of each token."""
    return {
        token: number
        for number, document in enumerate(documents)
        for sentence in document
        for token in sentence
    }


SHAPES = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=9), min_size=2, max_size=6).filter(
    lambda shape: any(len(document) > 1 for document in shape)
)


def consecutive(ids: list[int]) -> bool:
    return all(b == a + 1 for a, b in pairwise(ids))


@given(SHAPES, st.integers(5, 40), st.integers(0, 10**6))
def test_every_pair_is_what_its_label_says(shape, max_length, seed):
    documents = numbered(shape)
    owner = owners(documents)
    pairs = create_pairs(documents, max_length, np.random.default_rng(seed))
    for pair in pairs:
        assert pair.a
        assert pair.b
        assert len(pair.a) + len(pair.b) + 3 <= max_length
        assert consecutive(pair.a)
        assert consecutive(pair.b)
        documents_of_a, documents_of_b = {owner[t] for t in pair.a}, {owner[t] for t in pair.b}
        assert len(documents_of_a) == len(documents_of_b) == 1
        if pair.next_sentence_label == IS_NEXT:
            assert documents_of_a == documents_of_b
            assert pair.a[-1] < pair.b[0]
        else:
            assert pair.next_sentence_label == NOT_NEXT
            assert documents_of_a != documents_of_b
    labels = Counter(pair.next_sentence_label for pair in pairs)
    assert abs(labels[IS_NEXT] - labels[NOT_NEXT]) <= 1  # dealt, one of each
    assert len(pairs) < 2 or len(labels) == 2


@given(SHAPES, st.integers(0, 10**6))
def test_where_nothing_is_cut_off_b_begins_where_a_ends(shape, seed):
    documents = numbered(shape)
    beginnings = {sentence[0] for document in documents for sentence in document}
    endings = {sentence[-1] for document in documents for sentence in document}
    pairs = create_pairs(documents, 10_000, np.random.default_rng(seed))
    for pair in pairs:
        assert pair.a[0] in beginnings
        assert pair.b[0] in beginnings
        assert pair.a[-1] in endings
        assert pair.b[-1] in endings
        if pair.next_sentence_label == IS_NEXT:
            assert pair.b[0] == pair.a[-1] + 1


@given(SHAPES, st.integers(0, 10**6))
def test_what_a_random_b_displaced_is_used_again(shape, seed):
    documents = numbered(shape)
    pairs = create_pairs(documents, 10_000, np.random.default_rng(seed))
    used = [
        token for pair in pairs for token in pair.a + (pair.b if pair.next_sentence_label == IS_NEXT else [])
    ]
    assert len(used) == len(set(used))
    left = set(owners(documents)) - set(used)
    alone = {token for document in documents for token in document[-1]}  # a last sentence with no next one
    assert left <= alone


def test_the_classes_come_in_random_order():
    pairs = create_pairs(numbered([[1] * 2000] * 2), 8, np.random.default_rng(0))
    labels = np.array([pair.next_sentence_label for pair in pairs])
    assert len(labels) > 500
    firsts = labels[::2]  # each deal is of two: the first of them is drawn
    assert within(firsts.sum(), len(firsts), 0.5)


def test_a_and_the_random_b_begin_and_end_anywhere():
    """Every split of a chunk, every other document and every sentence in it comes up."""
    documents = numbered([[1] * 6, [1] * 4, [1] * 5])
    rng = np.random.default_rng(0)
    pairs = [pair for _ in range(400) for pair in create_pairs(documents, 100, rng, short_sequence_prob=0)]
    of_first = [pair for pair in pairs if pair.a[0] == 0]
    assert {len(pair.a) for pair in of_first} == {1, 2, 3, 4, 5}
    random_starts = {pair.b[0] for pair in of_first if pair.next_sentence_label == NOT_NEXT}
    assert random_starts == set(range(6, 15))


def test_one_pair_in_ten_aims_at_a_random_length():
    """With sentences of one token a pair is as long as its target, unless its document ends before."""
    length, count = 203, 40
    documents = numbered([[1] * 5000] * count)
    pairs = create_pairs(documents, length, np.random.default_rng(0))
    ends = {document[-1][0] for document in documents}
    sizes = [len(p.a) + len(p.b) for p in pairs if p.b[-1] not in ends]
    assert len(sizes) > 800
    assert max(sizes) == length - 3
    short = sum(size < length - 3 for size in sizes)
    assert within(short, len(sizes), 0.1 * (1 - 1 / (length - 4)))
    assert all(
        len(p.a) + len(p.b) == length - 3
        for p in create_pairs(documents[:4], length, np.random.default_rng(0), short_sequence_prob=0)
        if p.b[-1] not in ends
    )


@pytest.mark.parametrize("shape", [[[1], [1]], [[5], [7], [3]]])
def test_no_document_with_two_sentences(shape):
    with pytest.raises(CorpusError, match=r"no document has two sentences, .* give one sentence a line"):
        create_pairs(numbered(shape), 64, np.random.default_rng(0))


class Watched(list):
    """A list that counts how many of its items are handed out."""

    handed_out = 0

    def __getitem__(self, place):
        items = super().__getitem__(place)
        self.handed_out += len(items) if isinstance(place, slice) else 1
        return items


def test_a_long_document_is_not_copied_for_each_pair():
    documents = [Watched([[FIRST_WORD]] * 20_000) for _ in range(2)]
    pairs = create_pairs(documents, 64, np.random.default_rng(0))
    assert len(pairs) > 500
    assert sum(document.handed_out for document in documents) < 10 * 40_000


def test_a_huge_sentence_is_not_copied_for_each_pair():
    """Such as a file in which no sentence ends; half of all pairs could begin there."""
    program = (
        "import tiny; from minigrad.bert.data import PretrainingData, encode_documents;"
        "word = tiny.word(0, 0);"
        "documents = [[' '.join([word] * 2_000_000)], [' '.join([word] * 5)] * 50_000];"
        "tokenizer = tiny.tokenizer();"
        "data = PretrainingData(encode_documents(documents, tokenizer), tokenizer, 32, 64, 0);"
        "print(data.next_batch()['input_ids'].shape)"
    )
    result = processes.run_python(program, seconds=60)
    assert (result.stdout, result.stderr) == ("(32, 64)\n", "")


# --- Truncation ------------------------------------------------------------------------------------------


def truncate_plainly(a, b, room, rng):
    """`truncate`, one token after another, as `truncate_seq_pair` of the released `create_pretraining_data.py`."""
    a, b = list(a), list(b)
    for from_front in rng.random(max(0, len(a) + len(b) - room)) < 0.5:
        (a if len(a) > len(b) else b).pop(0 if from_front else -1)
    return a, b


@given(st.integers(1, 30), st.integers(1, 30), st.integers(2, 60), st.integers(0, 1000))
def test_it_is_cut_as_token_by_token(a, b, room, seed):
    first, second = list(range(a)), list(range(100, 100 + b))
    rng, plain = np.random.default_rng(seed), np.random.default_rng(seed)
    assert truncate(first, second, room, rng) == truncate_plainly(first, second, room, plain)
    assert rng.random() == plain.random()  # and no other numbers were drawn
