"""Sentence pairs, masking and batches (Devlin et al. 2019, sections 3.1 and A.1).

Shares are held to five standard deviations of as many draws as it takes to tell 80/10/10 from 81/10/9; that a
wrong share is caught is a test too.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import processes
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st

from minigrad.bert import data as data_module
from minigrad.bert.config import IGNORED
from minigrad.bert.corpus import CorpusError
from minigrad.bert.data import (
    IS_NEXT,
    NOT_NEXT,
    PretrainingData,
    SentencePair,
    create_pairs,
    encode_documents,
    fingerprint,
    held_out_batches,
    make_batch,
    mask_tokens,
    truncate,
)

pytestmark = pytest.mark.no_arrays

TOKENIZER = tiny.tokenizer()
PAD, CLS, SEP, MASK = (
    TOKENIZER.pad_token_id,
    TOKENIZER.cls_token_id,
    TOKENIZER.sep_token_id,
    TOKENIZER.mask_token_id,
)
V = TOKENIZER.vocab_size
FIRST_WORD = 5  # the first id that is no special token
SIGMAS = 5


def within(count: float, draws: int, share: float) -> bool:
    """Whether a count of independent draws is within five standard deviations of its expectation."""
    return abs(count - share * draws) <= SIGMAS * math.sqrt(draws * share * (1 - share))


def even(counts: np.ndarray) -> bool:
    """Whether counts may come from equally likely classes: chi-square, within five standard deviations."""
    expected = counts.sum() / counts.size
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    freedom = counts.size - 1
    return abs(chi_square - freedom) <= SIGMAS * math.sqrt(2 * freedom)


# --- Documents -------------------------------------------------------------------------------------------


def test_documents_as_ids_without_what_is_empty():
    a, b = tiny.word(0, 0), tiny.word(1, 3)
    encoded = encode_documents([[a, "", f"{b} {a}"], [" ", ""], [b]], TOKENIZER)
    ids = {word: TOKENIZER.token_to_id(word) for word in (a, b)}
    assert encoded == [[[ids[a]], [ids[b], ids[a]]], [[ids[b]]]]


@pytest.mark.parametrize("documents", [[], [["a"]], [["a"], [""]]])
def test_two_documents_with_text_are_needed(documents):
    with pytest.raises(CorpusError, match="at least two documents with text are needed, found"):
        encode_documents(documents, TOKENIZER)


def test_a_sentence_without_an_end_is_cut(monkeypatch):
    monkeypatch.setattr(data_module, "LONGEST_SENTENCE", 3)
    words = [tiny.word(0, number) for number in range(7)]
    ids = [TOKENIZER.token_to_id(word) for word in words]
    encoded = encode_documents([[" ".join(words)], [words[0], " ".join(words[:3])]], TOKENIZER)
    assert encoded == [[ids[:3], ids[3:6], ids[6:]], [ids[:1], ids[:3]]]


def test_progress_of_encoding():
    calls = []
    encode_documents(
        (d for d in [["bal"], [""], ["bil"]]), TOKENIZER, lambda done, total: calls.append((done, total))
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]


# --- Pairs -----------------------------------------------------------------------------------------------


def numbered(shape: list[list[int]]) -> list[list[list[int]]]:
    """Documents with sentences of these lengths, in which every token is another number."""
    ids = iter(range(10**6))
    return [[[next(ids) for _ in range(length)] for length in document] for document in shape]


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


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_corpus_has_both_classes(seed):
    pairs = create_pairs(numbered([[3, 4], [5, 2]]), 64, np.random.default_rng(seed))
    assert sorted(pair.next_sentence_label for pair in pairs) == [IS_NEXT, NOT_NEXT]


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
    with pytest.raises(CorpusError, match="no document has two sentences"):
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
    result = processes.run_python(program, timeout=60)
    assert (result.stdout, result.stderr) == ("(32, 64)\n", "")


# --- Truncation ------------------------------------------------------------------------------------------


def lengths_of_the_released_code(a: int, b: int, room: int) -> tuple[int, int]:
    """`truncate_seq_pair` of the released `create_pretraining_data.py`, lengths only."""
    while a + b > room:
        if a > b:
            a -= 1
        else:
            b -= 1
    return a, b


@given(st.integers(1, 30), st.integers(1, 30), st.integers(2, 60), st.integers(0, 1000))
def test_the_longer_one_is_cut(a, b, room, seed):
    first, second = list(range(a)), list(range(100, 100 + b))
    kept = truncate(first, second, room, np.random.default_rng(seed))
    assert (len(kept[0]), len(kept[1])) == lengths_of_the_released_code(a, b, room)
    for whole, part in zip((first, second), kept, strict=True):
        assert part == whole[part[0] - whole[0] :][: len(part)]


def truncate_plainly(a, b, room, rng):
    """`truncate`, one token after another."""
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


def test_it_is_cut_at_either_end_by_the_toss_of_a_coin():
    rng = np.random.default_rng(0)
    cut, count, front_a, front_b = 40, 500, 0, 0
    for _ in range(count):
        a, b = truncate(list(range(60)), list(range(60)), 80, rng)
        assert len(a) == len(b) == 40
        front_a, front_b = front_a + a[0], front_b + b[0]
    for front in (front_a, front_b):
        assert within(front, count * cut // 2, 0.5)


# --- Masking ---------------------------------------------------------------------------------------------


def rows(lengths, length: int, rng: np.random.Generator, ids=None) -> np.ndarray:
    """Inputs [CLS] A [SEP] B [SEP] of these lengths, padded, their words drawn evenly or all `ids`."""
    lengths = np.asarray(lengths)
    place = np.arange(length)
    words = rng.integers(FIRST_WORD, V, (len(lengths), length)) if ids is None else ids
    words = np.where(place == 0, CLS, words)
    words = np.where((place == lengths[:, None] - 1) | (place == lengths[:, None] // 2), SEP, words)
    return np.where(place < lengths[:, None], words, PAD)


def draw(split: tuple[float, float, float]):
    """A function like mask_tokens, with these shares of [MASK], random and kept: right or wrong."""

    def mask(input_ids, tokenizer, rng):
        free = ~np.isin(input_ids, [CLS, SEP, PAD])
        chosen = free & (rng.random(input_ids.shape) < 0.15)
        fate = rng.choice(3, size=input_ids.shape, p=split)
        random_ids = rng.integers(0, tokenizer.vocab_size, input_ids.shape)
        masked = np.choose(fate, [np.full_like(input_ids, MASK), random_ids, input_ids])
        return np.where(chosen, masked, input_ids), np.where(chosen, input_ids, IGNORED)

    return mask


# To tell 80 % from 81 % with five standard deviations on either side, 0.01 ≥ 2 · 5 · √(0.8 · 0.2 / n): n is
# at least 160,000 chosen tokens, 15 % of 1.07 million; 10 % and 9 % then lie further apart still.
CHOSEN = 165_000


def fates(mask) -> tuple[int, int, int, int]:
    """Of at least CHOSEN chosen tokens: how many became [MASK], stayed, or became something else; and all."""
    rng = np.random.default_rng(0)
    input_ids = rows(np.full(9_000, 128), 128, rng)
    masked, labels = mask(input_ids, TOKENIZER, rng)
    chosen = labels != IGNORED
    to_mask, stayed = masked[chosen] == MASK, masked[chosen] == input_ids[chosen]
    count = int(chosen.sum())
    assert count > CHOSEN
    return int(to_mask.sum()), int(stayed.sum()), int((~to_mask & ~stayed).sum()), count


def are_80_10_10(to_mask: int, stayed: int, other: int, count: int) -> bool:
    """A random token is [MASK] or the true one with probability 1 / V each."""
    return (
        within(to_mask, count, 0.8 + 0.1 / V)
        and within(stayed, count, 0.1 + 0.1 / V)
        and within(other, count, 0.1 - 0.2 / V)
    )


def test_80_10_10():
    assert are_80_10_10(*fates(mask_tokens))


@pytest.mark.parametrize(
    "split", [(0.81, 0.1, 0.09), (0.81, 0.09, 0.1), (0.8, 0.11, 0.09), (0.79, 0.1, 0.11), (0.85, 0.1, 0.05)]
)
def test_a_split_that_is_off_by_one_per_cent_is_told_from_80_10_10(split):
    assert not are_80_10_10(*fates(draw(split)))


def test_the_right_split_passes_with_any_draw():
    assert are_80_10_10(*fates(draw((0.8, 0.1, 0.1))))


@pytest.mark.parametrize("length", [5, 10, 16, 23, 64, 128])
def test_fifteen_per_cent_of_each_row_and_at_least_one(length):
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, length + 1, 300)
    input_ids = rows(lengths, length, rng)
    _, labels = mask_tokens(input_ids, TOKENIZER, rng)
    expected = [
        max(1, round(0.15 * n)) for n in lengths.tolist()
    ]  # [CLS] and [SEP] count, as in the released code
    assert (labels != IGNORED).sum(axis=1).tolist() == expected


def test_a_row_without_words_has_nothing_to_choose():
    input_ids = np.array([[CLS, SEP, SEP, PAD], [CLS, 7, SEP, PAD]])
    masked, labels = mask_tokens(input_ids, TOKENIZER, np.random.default_rng(0))
    assert (labels[0] == IGNORED).all()
    assert (masked[0] == input_ids[0]).all()
    assert labels[1].tolist() == [IGNORED, 7, IGNORED, IGNORED]


def test_special_tokens_are_never_chosen():
    rng = np.random.default_rng(0)
    input_ids = rows(rng.integers(5, 33, 3000), 32, rng)
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    special = np.isin(input_ids, [CLS, SEP, PAD])
    assert (labels[special] == IGNORED).all()
    assert (masked[special] == input_ids[special]).all()
    assert not np.isin(labels, [CLS, SEP, PAD]).any()


def test_labels_are_the_true_ids_and_the_rest_stays():
    rng = np.random.default_rng(0)
    input_ids = rows(rng.integers(5, 33, 300), 32, rng)
    before = input_ids.copy()
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    chosen = labels != IGNORED
    assert (labels[chosen] == input_ids[chosen]).all()
    assert (masked[~chosen] == input_ids[~chosen]).all()
    assert (input_ids == before).all()
    assert masked.shape == labels.shape == input_ids.shape


def test_random_tokens_are_any_of_the_vocabulary():
    rng = np.random.default_rng(0)
    word = 11
    input_ids = rows(np.full(6000, 64), 64, rng, ids=word)
    masked, labels = mask_tokens(input_ids, TOKENIZER, rng)
    came = np.bincount(masked[labels != IGNORED], minlength=V)
    seen = [i for i in range(V) if i not in (word, MASK)]
    assert came.size == V
    assert came[seen].min() > 0  # special tokens among them, as in the released code
    assert even(came[seen])
    assert not even(np.append(came[seen], 0))  # one token that never comes is noticed


def test_every_place_is_as_likely():
    rng = np.random.default_rng(0)
    input_ids = rows(np.full(6000, 64), 64, rng)
    chosen = mask_tokens(input_ids, TOKENIZER, rng)[1] != IGNORED
    places = chosen.sum(axis=0)[~np.isin(input_ids[0], [CLS, SEP])]
    assert all(within(count, len(chosen), chosen.sum() / chosen.shape[0] / len(places)) for count in places)


def test_another_share_of_tokens():
    rng = np.random.default_rng(0)
    _, labels = mask_tokens(rows([20] * 10, 24, rng), TOKENIZER, rng, share=0.5)
    assert ((labels != IGNORED).sum(axis=1) == 10).all()


# --- Batches ---------------------------------------------------------------------------------------------


def test_a_batch_written_out():
    pairs = [SentencePair([7, 8, 9], [10], IS_NEXT), SentencePair([11], [12], NOT_NEXT)]
    batch = make_batch(pairs, TOKENIZER, 9, np.random.default_rng(0))
    true = np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])
    assert true.tolist() == [
        [CLS, 7, 8, 9, SEP, 10, SEP, PAD, PAD],
        [CLS, 11, SEP, 12, SEP, PAD, PAD, PAD, PAD],
    ]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 7 + [0] * 2, [1] * 5 + [0] * 4]
    assert batch["next_sentence_label"].tolist() == [IS_NEXT, NOT_NEXT]
    assert ((batch["labels"] != IGNORED).sum(axis=1) == 1).all()
    assert all(values.dtype.kind == "i" for values in batch.values())


def data(seed: int = 0, batch_size: int = 4, count: int = 30) -> PretrainingData:
    return PretrainingData(tiny.documents(count), TOKENIZER, batch_size, 16, seed)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


def true_rows(batch) -> list[tuple[int, ...]]:
    """The rows of a batch before masking."""
    return [tuple(row) for row in np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])]


def test_the_seed_fixes_every_batch():
    a, b, other = data(), data(), data(seed=1)
    batches = [next(batches) for batches in (iter(a), iter(b), iter(other)) for _ in range(100)]
    assert all(map(same, batches[:100], batches[100:200]))
    assert not any(map(same, batches[:100], batches[200:]))
    assert a.epoch > 1  # so several epochs were seen


def test_no_other_random_numbers_are_used():
    np.random.seed(1)
    first = data().next_batch()
    np.random.seed(2)
    assert same(first, data().next_batch())


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("index", [1, 5, "last"])
def test_the_position_is_all_there_is_to_keep(epoch, index):
    whole = data()
    assert whole.state_dict() == {"epoch": 0, "index": 0}
    whole.next_batch()
    while whole.epoch < epoch:
        whole.next_batch()
    last = whole.batches_per_epoch
    while whole.index < (last if index == "last" else index):
        whole.next_batch()
    state = whole.state_dict()
    assert state == {"epoch": epoch, "index": last if index == "last" else index}
    resumed = data()
    resumed.load_state_dict(state)
    for _ in range(2 * last):
        assert same(whole.next_batch(), resumed.next_batch())
    assert whole.state_dict() == resumed.state_dict()


def test_every_epoch_pairs_anew_and_uses_each_pair_once():
    whole = data()
    epochs = []
    for epoch in range(3):
        pairs = Counter((*p.a, *p.b) for p in whole._pairs)
        size = whole.batches_per_epoch
        batches = [whole.next_batch() for _ in range(size)]
        assert whole.state_dict() == {"epoch": epoch, "index": size}
        assert size == sum(pairs.values()) // 4
        assert {batch["input_ids"].shape for batch in batches} == {(4, 16)}
        rows = [tuple(t for t in row if t not in (CLS, SEP, PAD)) for b in batches for row in true_rows(b)]
        assert len(rows) == 4 * size
        assert Counter(rows) <= pairs
        epochs.append(Counter(rows))
        batch = whole.next_batch()  # the first of the next epoch: pairs are made there
        assert whole.epoch == epoch + 1
        assert batch["input_ids"].shape == (4, 16)
        whole.index = 0
    assert epochs[0] != epochs[1] != epochs[2]
    assert len(set(epochs[0]) & set(epochs[1])) < 0.5 * len(epochs[0])


def test_pairs_are_shuffled_across_documents():
    whole = PretrainingData(numbered_words([[1] * 200] * 10), TOKENIZER, 4, 16, seed=0)
    starts = [pair.a[0] for pair in whole._pairs]
    assert sorted(starts) != starts
    in_order = sum(a < b for a, b in pairwise(starts))
    assert within(in_order, len(starts) - 1, 0.5)


def test_masks_are_drawn_anew_for_a_pair_that_comes_again():
    whole = PretrainingData(numbered_words([[5, 5], [5, 5]]), TOKENIZER, 2, 16, seed=0)
    masks = {}
    for _ in range(50):
        batch = whole.next_batch()
        for labels, row in zip(batch["labels"], true_rows(batch), strict=True):
            masks.setdefault(row, set()).add(tuple(np.flatnonzero(labels != IGNORED)))
    assert max(len(different) for different in masks.values()) > 5


def test_fewer_pairs_than_a_batch_make_a_smaller_one():
    whole = PretrainingData(numbered_words([[2, 3], [4, 2]]), TOKENIZER, 8, 16, seed=0)
    assert whole.batches_per_epoch == 1
    for epoch in range(3):
        batch = whole.next_batch()
        assert len(batch["input_ids"]) == 2
        assert sorted(batch["next_sentence_label"]) == [IS_NEXT, NOT_NEXT]
        assert whole.epoch == epoch


@pytest.mark.parametrize("special", ["[SEP]", "[CLS] [SEP]", "[PAD] [PAD] [CLS]"])
def test_no_batch_without_a_label(special):
    """Where a text is of special tokens alone, nothing can be chosen: such pairs are passed over."""
    texts = [[special] * 20, [special] * 20, [tiny.word(0, 0), tiny.word(0, 1), special, special]]
    whole = PretrainingData(encode_documents(texts, TOKENIZER), TOKENIZER, 1, 8, seed=0)
    for _ in range(100):
        assert (whole.next_batch()["labels"] != IGNORED).any()
    assert whole.epoch > 5


def test_nothing_but_special_tokens():
    documents = encode_documents([["[SEP]"] * 9, ["[CLS]", "[PAD] [SEP]"]], TOKENIZER)
    with pytest.raises(CorpusError, match=r"every sentence pair is of \[CLS\], \[SEP\] and \[PAD\] alone"):
        PretrainingData(documents, TOKENIZER, 4, 16, seed=0)


def test_of_ordinary_text_every_pair_is_used():
    documents = tiny.documents()
    for epoch in range(3):
        whole = PretrainingData(documents, TOKENIZER, 4, 16, seed=5)
        whole.load_state_dict({"epoch": epoch, "index": 0})
        rng = np.random.default_rng([5, 2, epoch])
        pairs = create_pairs(documents, 16, rng)
        assert whole._pairs == [pairs[i] for i in rng.permutation(len(pairs))]


def numbered_words(shape):
    """`numbered` documents in ids of words."""
    return [[[FIRST_WORD + t for t in sentence] for sentence in document] for document in numbered(shape)]


@pytest.mark.parametrize("max_length", [5, 6, 16, 128])
def test_any_length_from_five_on(max_length):
    whole = PretrainingData(tiny.documents(), TOKENIZER, 4, max_length, seed=0)
    for _ in range(20):
        batch = whole.next_batch()
        assert batch["input_ids"].shape == (4, max_length)
        assert ((batch["input_ids"] == SEP) | (batch["labels"] == SEP)).sum() >= 8
        assert ((batch["labels"] != IGNORED).sum(axis=1) >= 1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_length": 4}, r"max_length must be at least 5, \[CLS\] A \[SEP\] B \[SEP\]; got 4"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        PretrainingData(tiny.documents(), TOKENIZER, **{"batch_size": 4, "max_length": 16, **changes}, seed=0)


# --- Held out --------------------------------------------------------------------------------------------


def test_what_is_held_out_is_paired_and_masked_by_other_draws_than_training():
    documents = tiny.documents()
    held_out = held_out_batches(documents, TOKENIZER, 4, 16, seed=0)
    again = held_out_batches(documents, TOKENIZER, 4, 16, seed=0)
    training = PretrainingData(documents, TOKENIZER, 4, 16, seed=0)
    assert len(held_out) == len(again) == training.batches_per_epoch
    for batch, same in zip(held_out, again, strict=True):
        assert (batch["input_ids"] == same["input_ids"]).all()
        assert (batch["input_ids"] != training.next_batch()["input_ids"]).any()


def test_a_fingerprint_is_of_the_text_and_of_the_masks():
    batches = held_out_batches(tiny.documents(), TOKENIZER, 4, 16, seed=0)
    assert fingerprint(batches) == fingerprint(held_out_batches(tiny.documents(), TOKENIZER, 4, 16, seed=0))
    other_text = held_out_batches(tiny.documents(seed=1), TOKENIZER, 4, 16, seed=0)
    other_masks = held_out_batches(tiny.documents(), TOKENIZER, 4, 16, seed=1)
    other_labels = [{**batch, "labels": batch["labels"] + 1} for batch in batches]
    several = (batches, batches[1:], other_text, other_masks, other_labels)
    assert len({fingerprint(each) for each in several}) == len(several)
