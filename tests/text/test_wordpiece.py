"""Learning a vocabulary, held against a plain trainer that counts everything anew for each merge, and the oracle's.

The oracle, Hugging Face's `tokenizers`, numbers the `##` characters in an order that changes from run to run, and its
ties follow it. So its own numbering is given to our trainer. The oracle also learns from words of more than 100
characters, which ours leaves out; none is in the texts compared.
"""

import math
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_texts import FEW_TEXTS, HOSTILE, REAL_TEXTS

import processes
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import (
    SPECIAL_TOKENS,
    PairCounts,
    count_words,
    first_pieces,
    gain,
    learn_pieces,
    train_wordpiece,
)

pytestmark = pytest.mark.no_arrays


def plain_training(words, vocab, vocab_size, min_frequency, score="frequency"):
    """Train by counting everything anew for each merge."""
    vocab = list(vocab)
    spelled = {word: [word[0], *("##" + letter for letter in word[1:])] for word in words}
    while len(vocab) < vocab_size:
        pieces, pairs = Counter(), Counter()
        for word, spelling in spelled.items():
            for piece in spelling:
                pieces[piece] += words[word]
            for pair in pairwise(spelling):
                pairs[pair] += words[word]
        scores = {}
        for (a, b), count in pairs.items():
            if count < min_frequency or (score == "gain" and a == b):
                continue
            scores[a, b] = count
            if score == "pmi":
                scores[a, b] = count / (pieces[a] * pieces[b])
            elif score == "gain":
                scores[a, b] = gain(pieces.total(), pieces[a], pieces[b], count)
        if not scores:
            break
        best = max(scores.values())
        candidates = [pair for pair in scores if scores[pair] == best]
        a, b = min(candidates, key=lambda pair: (vocab.index(pair[0]), vocab.index(pair[1])))
        merged = a + b[2:]
        if merged not in vocab:
            vocab.append(merged)
        for word, spelling in spelled.items():
            shorter, i = [], 0
            while i < len(spelling):
                here = spelling[i : i + 2] == [a, b]
                shorter.append(merged if here else spelling[i])
                i += 2 if here else 1
            spelled[word] = shorter
    return vocab


def in_order_of_ids(oracle):
    ids = oracle.get_vocab()
    return sorted(ids, key=ids.get)


def characters_of(vocab):
    """The pieces that training begins with: special tokens and single characters."""
    return [piece for piece in vocab if piece in SPECIAL_TOKENS or len(piece.removeprefix("##")) == 1]


def test_training_stored_answers():
    """The counts of the example in the Hugging Face course: hug 10, pug 5, pun 12, bun 4, hugs 5."""
    texts = ["hug " * 10 + "pug " * 5 + "pun " * 12 + "bun " * 4 + "hugs " * 5]
    characters = [*SPECIAL_TOKENS, *"bghnpsu", "##g", "##n", "##s", "##u"]
    # ##ug 20, ##un 16, hug 15, pun 12, pug 5 and hugs 5
    frequency = train_wordpiece(texts, 22)
    assert frequency == [*characters, "##ug", "##un", "hug", "pun", "pug", "hugs"]
    # ##gs 1/20, bu 1/36 (with others), bun 1/16, hu 1/32 (with pu), hugs 1/15, hug 1/15
    pmi = train_wordpiece(texts, 22, score="pmi")
    assert pmi == [*characters, "##gs", "bu", "bun", "hu", "hugs", "hug"]
    # ##ug 28.0 nats, then ##un
    assert train_wordpiece(texts, 18, score="gain") == [*characters, "##ug", "##un"]


def log_likelihood(words, counts):
    """Of the pieces of all words, each drawn with its share."""
    pieces = Counter()
    for word, parts in words.items():
        for piece in parts:
            pieces[piece] += counts[word]
    return sum(c * math.log(c / pieces.total()) for c in pieces.values())


def test_the_gain_is_the_difference_of_two_log_likelihoods():
    counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    before = {word: [word[0], *("##" + letter for letter in word[1:])] for word in counts}
    after = {**before, "hugs": ["h", "##u", "##gs"]}
    difference = log_likelihood(after, counts) - log_likelihood(before, counts)
    assert gain(113, 20, 5, 5) == pytest.approx(difference, rel=1e-12)
    assert difference > 9


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=8), st.integers(1, 9), min_size=1, max_size=25),
    st.integers(0, 40),
    st.integers(1, 4),
    st.sampled_from(["frequency", "pmi", "gain"]),
)
def test_training_equals_counting_anew(words, merges, min_frequency, score):
    texts = [f"{word} " * count for word, count in words.items()]
    characters = characters_of(train_wordpiece(texts, 1000, min_frequency=10**9))
    size = len(characters) + merges
    expected = plain_training(words, characters, size, min_frequency, score)
    assert train_wordpiece(texts, size, min_frequency=min_frequency, score=score) == expected


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=12), st.integers(1, 9), min_size=1, max_size=25),
    st.lists(st.integers(0, 10**6), max_size=30),
)
def test_counts_stay_right_whatever_is_merged(words, choices):
    ids = {piece: i for i, piece in enumerate([*"abc", "##a", "##b", "##c"])}
    pairs = PairCounts(words, ids)
    for number, choice in enumerate(choices, start=len(ids)):
        alive = sorted(+pairs.counts)
        if not alive:
            break
        before = Counter(pairs.counts)
        pair = alive[choice % len(alive)]
        changed = pairs.merge(*pair, number)
        assert {p for p in before | pairs.counts if before[p] != pairs.counts[p]} <= changed
        expected, pieces = Counter(), Counter()
        for word, count in zip(pairs.words, words.values(), strict=True):
            pieces.update({piece: count * word.count(piece) for piece in word})
            for neighbours in pairwise(word):
                expected[neighbours] += count
        assert +pairs.counts == expected
        assert +pairs.piece_counts == pieces
        assert pairs.total == pieces.total()
        assert pair not in expected


def test_a_merge_counts_only_its_neighbours_anew():
    """Also in a long word; counting all of it anew for each merge takes a time that grows with its square."""
    letters = [chr(ord("a") + i) for i in range(99)]
    ids = {piece: i for i, piece in enumerate([letters[0], *("##" + letter for letter in letters[1:])])}
    pairs = PairCounts({"".join(letters): 3}, ids)
    assert pairs.merge(50, 51, 99) == {(49, 50), (49, 99), (50, 51), (51, 52), (99, 52)}
    assert pairs.merge(0, 1, 100) == {(0, 1), (1, 2), (100, 2)}
    assert pairs.merge(97, 98, 101) == {(96, 97), (96, 101), (97, 98)}


def test_words_too_long_for_the_tokenizer_are_left_out():
    assert WordPieceTokenizer(SPECIAL_TOKENS).max_input_chars_per_word == 100
    texts = ["ab " + "x" * 100, "ab " + "y" * 101 + " ab.", "e\u0301" * 100]  # measured after normalising
    assert count_words(texts) == {"ab": 3, "x" * 100: 1, ".": 1, "e" * 100: 1}
    assert count_words(texts, max_input_chars_per_word=2) == {"ab": 3, ".": 1}
    assert train_wordpiece(["ab ab abc abc"], 99, max_input_chars_per_word=2)[5:] == ["a", "b", "##b", "ab"]
    vocab = train_wordpiece(["ab ab " + "xyz" * 50], 99)
    assert vocab[5:] == ["a", "b", "##b", "ab"]
    assert WordPieceTokenizer(vocab).tokenize("ab " + "xyz" * 50) == ["ab", "[UNK]"]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("texts", "lower_case", "vocab_size", "min_frequency", "limit_alphabet"),
    [
        (REAL_TEXTS, True, 3000, 2, 1000),
        (REAL_TEXTS, False, 2500, 2, 1000),
        (REAL_TEXTS, True, 2500, 2, 30),
        (FEW_TEXTS, True, 30_000, 7, 1000),
        (FEW_TEXTS, True, 30_000, 1, 1000),
        ([HOSTILE * 3, *FEW_TEXTS], True, 1200, 2, 1000),
    ],
)
def test_training_equals_oracle_ties_included(
    tokenizers, texts, lower_case, vocab_size, min_frequency, limit_alphabet
):
    """Ties are settled by ids: with the oracle's ids of the ## characters, every merge is the oracle's."""
    oracle = tokenizers.BertWordPieceTokenizer(lowercase=lower_case)
    oracle.train_from_iterator(
        texts,
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        limit_alphabet=limit_alphabet,
        show_progress=False,
    )
    theirs = in_order_of_ids(oracle)
    words = count_words(texts, lower_case=lower_case)
    start = characters_of(theirs)
    assert {*SPECIAL_TOKENS, *first_pieces(words, limit_alphabet)} == set(start)
    assert len(theirs) > len(start) + 200
    assert learn_pieces(words, start, vocab_size, min_frequency) == theirs


def test_a_tie_goes_to_the_earlier_pieces():
    characters = [*SPECIAL_TOKENS, "a", "b", "c", "##b", "##c"]
    vocab = train_wordpiece(["cb cb ac ac ab ab bc bc"], 14)
    assert vocab == [*characters, "ab", "ac", "bc", "cb"]


def test_training_hangs_on_the_texts_alone():
    expected = train_wordpiece(FEW_TEXTS, 600)
    assert train_wordpiece(reversed(FEW_TEXTS), 600) == expected
    assert train_wordpiece(["\n".join(FEW_TEXTS)], 600) == expected
    assert train_wordpiece((text for text in FEW_TEXTS), 600) == expected
    program = (
        "import sys; from pydoc_data.topics import topics;"
        "from minigrad.text.wordpiece import train_wordpiece;"
        "texts = [text for _, text in sorted(topics.items())][:12];"
        "sys.stdout.buffer.write('\\n'.join(train_wordpiece(texts, 600)).encode())"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        output = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        )
        assert output.stdout.decode().split("\n") == expected


def test_training_stops_early_when_pairs_are_rare():
    vocab = train_wordpiece(["ab ab ab cd cd ef"], 1000)
    assert vocab == [*SPECIAL_TOKENS, *"abcdef", "##b", "##d", "##f", "ab", "cd"]
    assert train_wordpiece(["ab ab ab cd cd ef"], 1000, min_frequency=3)[-1] == "ab"
    assert train_wordpiece(["ab cd"], 1000, min_frequency=1)[-2:] == ["ab", "cd"]
    assert train_wordpiece([], 1000) == list(SPECIAL_TOKENS)
    assert train_wordpiece(["", " "], 5) == list(SPECIAL_TOKENS)


def test_training_limits_the_alphabet():
    texts = ["aaxb aaxb ab", "yab"]  # a 6, b 4, x 2, y 1
    assert train_wordpiece(texts, 9, limit_alphabet=2) == [*SPECIAL_TOKENS, "a", "b", "##a", "##b"]
    # where x was, its two sides become neighbours; where y was, ##a stays a continuation
    assert train_wordpiece(texts, 99, limit_alphabet=2)[9:] == ["##ab", "aab"]
    # Equally frequent: a before b
    assert train_wordpiece(["ba ab"], 99, limit_alphabet=1)[5:] == ["a", "##a"]


def test_training_normalises_as_told():
    assert train_wordpiece(["É"], 99)[5:] == ["e"]
    assert train_wordpiece(["É"], 99, strip_accents=False)[5:] == ["é"]
    assert train_wordpiece(["É"], 99, lower_case=False)[5:] == ["É"]
    assert train_wordpiece(["É"], 99, lower_case=False, strip_accents=True)[5:] == ["E"]
    assert train_wordpiece(["a\x1cb a\x1cb"], 99)[5:] == ["a", "b", "##b", "ab"]
    assert train_wordpiece(["[MASK]"], 99, min_frequency=99)[5:10] == ["[", "]", "a", "k", "m"]


@pytest.mark.oracle
def test_training_with_other_special_tokens(tokenizers):
    special = ["<a>", "ab", "x"]  # one of them is a word, one a character
    texts = ["abab abab abba x xx xab axb"] * 2
    oracle = tokenizers.BertWordPieceTokenizer()
    oracle.train_from_iterator(texts, vocab_size=30, special_tokens=special, show_progress=False)
    theirs = in_order_of_ids(oracle)
    assert train_wordpiece(texts, 8, special_tokens=special)[:3] == special
    start = theirs[: len(train_wordpiece(texts, 30, special_tokens=special, min_frequency=99))]
    assert learn_pieces(count_words(texts), start, 30) == theirs


def test_training_reports_progress():
    calls = []
    vocab = train_wordpiece(["abc abc"], 50, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(len(vocab) - 1, 50), (len(vocab), 50)]


def test_training_errors():
    with pytest.raises(TypeError, match="list of strings"):
        train_wordpiece("one text", 100)
    with pytest.raises(ValueError, match="score is 'best'"):
        train_wordpiece(["a"], 100, score="best")
    with pytest.raises(ValueError, match="limit_alphabet is 0"):
        train_wordpiece(["a"], 100, limit_alphabet=0)
    with pytest.raises(ValueError, match="special_tokens repeats"):
        train_wordpiece(["a"], 100, special_tokens=["[PAD]", "[PAD]"])
    with pytest.raises(ValueError, match=r"vocab_size is 7, .* make 8: make it at least that"):
        train_wordpiece(["ab"], 7)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("vocab_size", math.nan),
        ("vocab_size", "100"),
        ("min_frequency", -1),
        ("min_frequency", 1.5),
        ("limit_alphabet", None),
        ("max_input_chars_per_word", 0),
    ],
)
def test_training_with_numbers_that_count_nothing(name, wrong):
    with pytest.raises(ValueError, match=f"{name} is .*: give a whole number"):
        train_wordpiece(["ab ab"], **{"vocab_size": 100, name: wrong})
    assert "ab" in train_wordpiece(["ab ab"], np.int64(100), min_frequency=np.int32(1))


@pytest.mark.parametrize("score", ["frequency", "pmi", "gain"])
def test_a_pair_that_is_nowhere_is_never_merged(score):
    """In a process of its own, because it might never end."""
    program = (
        "import sys; from minigrad.text.wordpiece import train_wordpiece;"
        "print(train_wordpiece(['abc'], 60, min_frequency=0, score=sys.argv[1])[10:])"
    )
    result = processes.run_python(program, score, seconds=20)
    assert result.stderr == ""
    assert result.stdout in ("['ab', 'abc']\n", "['##bc', 'abc']\n")
