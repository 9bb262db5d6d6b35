"""Texts to ids and back, against the oracle, Hugging Face's `tokenizers`, and against stored answers."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_texts import FEW_TEXTS, HOSTILE, HOSTILE_WORDS, REAL_TEXTS, SETTINGS, TEXT

import processes
from minigrad.text import tokenizer as tokenizer_module
from minigrad.text.tokenizer import WordPieceTokenizer, pieces_of
from minigrad.text.wordpiece import SPECIAL_TOKENS, train_wordpiece

pytestmark = pytest.mark.no_arrays

GOOD = "".join(token + "\n" for token in SPECIAL_TOKENS).encode()  # a vocab.txt


@pytest.fixture(scope="module")
def vocab():
    return train_wordpiece([*FEW_TEXTS, HOSTILE * 2], 1500, lower_case=False)


@pytest.fixture(scope="module")
def oracles(tokenizers, vocab):
    """For each setting, our tokenizer and the oracle's with the same vocabulary; then without Chinese words."""
    ids = {piece: i for i, piece in enumerate(vocab)}
    return [
        (
            WordPieceTokenizer(vocab, lower, strip, tokenize_chinese_chars=chinese),
            tokenizers.BertWordPieceTokenizer(
                ids, lowercase=lower, strip_accents=strip, handle_chinese_chars=chinese
            ),
        )
        for chinese in (True, False)
        for lower, strip in SETTINGS
    ]


def small_tokenizer(*pieces, **options):
    return WordPieceTokenizer([*SPECIAL_TOKENS, *pieces], **options)


# --- Text to ids -----------------------------------------------------------------------------------------


def test_longest_match_comes_first():
    tokenizer = small_tokenizer("un", "unaff", "##aff", "##able", "##a", "##b", "a", "want", "##ed", ",")
    assert tokenizer.tokenize("UNaffable, wanted") == ["unaff", "##able", ",", "want", "##ed"]
    # One hopeless letter, the whole word is unknown
    assert tokenizer.tokenize("unaffably a") == ["[UNK]", "a"]
    assert tokenizer.tokenize("able") == ["[UNK]"]  # ##able does not begin a word


def test_another_tokenizer_has_another_fingerprint():
    vocab = [*SPECIAL_TOKENS, "a", "b"]
    tokenizers = [
        WordPieceTokenizer(vocab),
        WordPieceTokenizer([*SPECIAL_TOKENS, "b", "a"]),
        WordPieceTokenizer(vocab, lower_case=False),
        WordPieceTokenizer(vocab, strip_accents=False),
        WordPieceTokenizer(vocab, tokenize_chinese_chars=False),
    ]
    assert len({tokenizer.fingerprint() for tokenizer in tokenizers}) == 5
    assert tokenizers[0].fingerprint() == WordPieceTokenizer(vocab).fingerprint()


def test_long_words_are_unknown():
    tokenizer = small_tokenizer("a", "##a", ".")
    assert tokenizer.tokenize("a" * 100 + ".") == ["a", *["##a"] * 99, "."]
    assert tokenizer.tokenize("a" * 101 + ".") == ["[UNK]", "."]
    assert tokenizer.tokenize("a" * 200 + " a") == ["[UNK]", "a"]
    assert tokenizer.tokenize("a\u0301" * 100) == ["a", *["##a"] * 99]  # measured after normalising
    assert small_tokenizer("a", "##a", max_input_chars_per_word=2).tokenize("aa aaa") == ["a", "##a", "[UNK]"]


def test_special_tokens_in_the_text():
    tokenizer = small_tokenizer("un", "able", "##able", "[", "]", "mask", "a")
    assert tokenizer.tokenize("a [MASK] a") == ["a", "[MASK]", "a"]
    assert tokenizer.tokenize("un[MASK]able") == ["un", "[MASK]", "able"]  # able begins a word
    assert tokenizer.tokenize("[MASK][MASK][SEP]") == ["[MASK]", "[MASK]", "[SEP]"]
    assert tokenizer.tokenize("[mask]") == ["[", "mask", "]"]
    assert tokenizer.tokenize("[MA\u200dSK]") == ["[", "mask", "]"]  # looked for before anything is cleaned


def test_nothing_to_tokenize():
    tokenizer = small_tokenizer("a")
    for text in ["", " ", "\n\t", "\x00", "\u0301", "\u200b \u200b"]:
        assert tokenizer.token_ids(text) == []
        assert tokenizer.encode(text).tokens == ["[CLS]", "[SEP]"]


def test_a_lone_surrogate_is_an_unknown_word():
    assert small_tokenizer("a").tokenize("a \ud800 a") == ["a", "[UNK]", "a"]


@pytest.mark.oracle
def test_real_text_equals_oracle(oracles):
    for ours, oracle in oracles:
        for text in REAL_TEXTS[::6]:
            assert ours.token_ids(text) == oracle.encode(text, add_special_tokens=False).ids


@pytest.mark.oracle
@settings(max_examples=400, derandomize=True, deadline=None)
@given(TEXT, st.integers(0, 2 * len(SETTINGS) - 1))
@example(HOSTILE, 0)
@example(HOSTILE, 3)
@example(HOSTILE, 6)
@example(HOSTILE, 9)
@example(" ".join(HOSTILE), 0)
@example(" ".join(HOSTILE_WORDS), 0)
@example("".join(HOSTILE_WORDS), 3)
def test_hostile_text_equals_oracle(oracles, text, setting):
    ours, oracle = oracles[setting]
    expected = oracle.encode(text)
    encoding = ours.encode(text)
    assert encoding.tokens == expected.tokens
    assert encoding.input_ids == expected.ids


@pytest.mark.oracle
@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text("abc", max_size=9), st.sets(st.text("abc#", min_size=1, max_size=4)))
def test_longest_match_equals_oracle_for_any_vocabulary(tokenizers, word, pieces):
    vocab = [
        *SPECIAL_TOKENS,
        *sorted(pieces),
        *sorted(f"##{piece}" for piece in pieces if f"##{piece}" not in pieces),
    ]
    ours = WordPieceTokenizer(vocab)
    oracle = tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(vocab)})
    assert ours.tokenize(word) == oracle.encode(word, add_special_tokens=False).tokens


def test_caches_are_bounded_and_change_nothing(monkeypatch, vocab):
    expected = WordPieceTokenizer(vocab).token_ids(FEW_TEXTS[0])
    monkeypatch.setattr(tokenizer_module, "CHUNKS_REMEMBERED", 3)
    tokenizer = WordPieceTokenizer(vocab)
    assert tokenizer.token_ids(FEW_TEXTS[0]) == expected
    assert tokenizer.token_ids(FEW_TEXTS[0]) == expected
    assert len(tokenizer._chunk_ids) <= 3
    assert len(tokenizer._word_ids) <= 3
    tokenizer.token_ids("a" * 1000)
    assert "a" * 1000 not in tokenizer._chunk_ids


# A text of 300,000 characters, as an expression. A normaliser or a splitter that looks again at what it has
# read takes minutes for half a million, and more than the limit for each of these.
LONG_TEXTS = {
    "one word": "'x' * 100_000",
    "one word of Korean": "'한' * 100_000",
    "Chinese": "'中' * 100_000",
    "marks to sort": "'a' + '\\u302e\\u1baa' * 50_000",
    "accents": "'e' + '\\u0301' * 100_000",
    "controls": "'\\x0b' * 100_000",
    "punctuation": "'.' * 100_000",
    "half of special tokens": "'[MAS' * 25_000",
    "special tokens": "'[SEP]' * 20_000",
    "white space": "' \\u3000' * 50_000",
    "words of 100": "('x' * 99 + 'y ') * 1_000",
}


def test_no_text_takes_long_to_encode():
    program = (
        "from minigrad.text.tokenizer import SPECIAL_TOKENS, WordPieceTokenizer\n"
        "from minigrad.text.wordpiece import train_wordpiece\n"
        f"for name, expression in {LONG_TEXTS}.items():\n"
        "    print(name, flush=True)\n"
        "    text = eval(expression)\n"
        "    vocab = train_wordpiece([text], 200)\n"
        "    WordPieceTokenizer(vocab).token_ids(text)\n"
        "    WordPieceTokenizer([*SPECIAL_TOKENS, 'x', '##x', 'z' * 100]).token_ids(text)\n"
    )
    assert processes.run_python(program, seconds=20).stderr == ""


# --- Pairs, truncation, batches --------------------------------------------------------------------------


def test_a_pair_has_two_segments():
    tokenizer = small_tokenizer("a", "b")
    encoding = tokenizer.encode("a a", "b")
    assert encoding.tokens == ["[CLS]", "a", "a", "[SEP]", "b", "[SEP]"]
    assert encoding.input_ids == [2, 5, 5, 3, 6, 3]
    assert encoding.token_type_ids == [0, 0, 0, 0, 1, 1]
    assert encoding.attention_mask == [1, 1, 1, 1, 1, 1]
    assert len(encoding) == 6
    assert tokenizer.encode("a", "").tokens == ["[CLS]", "a", "[SEP]", "[SEP]"]  # an empty pair is a pair


@pytest.mark.oracle
def test_truncation_of_a_pair_equals_oracle(tokenizers):
    vocab = [*SPECIAL_TOKENS, "a", "b"]
    ours = WordPieceTokenizer(vocab)
    oracle = tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(vocab)})
    for max_length in range(3, 18):
        oracle.enable_truncation(max_length, strategy="longest_first")
        for first in range(9):
            for second in range(9):
                text, pair = "a " * first, "b " * second
                encoding, expected = ours.encode(text, pair, max_length), oracle.encode(text, pair)
                name = f"{first} and {second} tokens, max_length {max_length}"
                assert encoding.tokens == expected.tokens, name
                assert encoding.token_type_ids == expected.type_ids, name
            assert ours.encode(text, None, max_length).tokens == oracle.encode(text).tokens, max_length


def test_max_length_must_hold_the_special_tokens():
    tokenizer = small_tokenizer("a")
    with pytest.raises(ValueError, match=r"max_length is 1: \[CLS\] and \[SEP\] alone need 2"):
        tokenizer.encode("a", max_length=1)
    with pytest.raises(ValueError, match=r"max_length is 2: .* need 3"):
        tokenizer.encode("a", "a", max_length=2)


def test_batch_is_padded():
    tokenizer = small_tokenizer("a", "b")
    assert tokenizer(["a b", "a"]) == {
        "input_ids": [[2, 5, 6, 3], [2, 5, 3, 0]],
        "token_type_ids": [[0, 0, 0, 0], [0, 0, 0, 0]],
        "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 0]],
    }
    assert tokenizer(["a"], ["b"], pad_to=7)["token_type_ids"] == [[0, 0, 0, 1, 1, 0, 0]]
    assert tokenizer.encode_batch(["a", "a b"])[0].tokens == ["[CLS]", "a", "[SEP]", "[PAD]"]
    assert tokenizer([]) == {"input_ids": [], "token_type_ids": [], "attention_mask": []}


def test_batch_errors():
    tokenizer = small_tokenizer("a")
    with pytest.raises(TypeError, match=r"for one text use encode\(text\)"):
        tokenizer("a a")
    with pytest.raises(TypeError, match="list of strings"):
        tokenizer(["a"], "a")
    with pytest.raises(ValueError, match="2 texts, but 1 pairs"):
        tokenizer(["a", "a"], ["a"])
    with pytest.raises(ValueError, match="5 tokens, more than pad_to=4: give max_length=4 too"):
        tokenizer(["a", "a a a"], pad_to=4)
    for wrong in (None, 3, b"a", ["a"]):
        with pytest.raises(TypeError, match="text must be a string"):
            tokenizer.token_ids(wrong)
    with pytest.raises(TypeError, match="must be a string, got NoneType"):
        tokenizer(["a", None])


# --- Ids to text -----------------------------------------------------------------------------------------


PUNCTUATION_PIECES = [*".?!,'-a", "n't", "'m", "'s", "'ve", "'re", "do", "not", "do not", "' "]
PUNCTUATION_PIECES += ["##.", "##'s", "####", "##", "##b", "##n't", " .", "a .b ,c", "n't n't", "##x 's"]


def test_decode_stored_answers():
    tokenizer = small_tokenizer("hello", "##s", ",", "world", "'", "s", "##", "!", "##'s")
    ids = tokenizer.encode("Hellos, world's!").input_ids
    assert tokenizer.decode(ids) == "hellos, world ' s!"  # piece by piece: " ' s" is not joined
    assert tokenizer.decode(ids, skip_special_tokens=False) == "[CLS] hellos, world ' s! [SEP]"
    assert tokenizer.decode([tokenizer.token_to_id("##s")]) == "##s"  # nothing to continue
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode(iter([5, 6])) == "hellos"


@pytest.mark.oracle
@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, len(SPECIAL_TOKENS) + len(PUNCTUATION_PIECES) - 1)), st.booleans())
def test_decode_equals_oracle(tokenizers, ids, skip):
    vocab = [*SPECIAL_TOKENS, *PUNCTUATION_PIECES]
    oracle = tokenizers.BertWordPieceTokenizer({piece: i for i, piece in enumerate(vocab)})
    assert WordPieceTokenizer(vocab).decode(ids, skip) == oracle.decode(ids, skip_special_tokens=skip)


def test_ids_outside_the_vocabulary():
    tokenizer = small_tokenizer("a")
    for wrong in (-1, 6):
        with pytest.raises(ValueError, match=f"id {wrong} is not in the vocabulary: ids go from 0 to 5"):
            tokenizer.decode([5, wrong])
        with pytest.raises(ValueError, match=f"id {wrong} is not"):
            tokenizer.id_to_token(wrong)


# --- The vocabulary and its file -------------------------------------------------------------------------


def test_ids_and_tokens():
    tokenizer = WordPieceTokenizer(["a", "[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]", "b"])
    assert (tokenizer.mask_token_id, tokenizer.sep_token_id, tokenizer.cls_token_id) == (1, 2, 3)
    assert (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.vocab_size) == (4, 5, 7)
    assert tokenizer.token_to_id("b") == 6
    assert tokenizer.token_to_id("c") is None
    assert tokenizer.id_to_token(6) == "b"
    assert tokenizer.encode("a c").tokens == ["[CLS]", "a", "[UNK]", "[SEP]"]
    assert tokenizer(["a", "a b"])["input_ids"][0] == [3, 0, 2, 5]


def test_vocabulary_as_a_mapping():
    pieces = [*SPECIAL_TOKENS, "a", "##b"]
    mapping = {piece: i for i, piece in reversed(list(enumerate(pieces)))}
    assert WordPieceTokenizer(mapping).vocab == pieces
    with pytest.raises(ValueError, match="without gaps: 'c' has 9, not 7"):
        WordPieceTokenizer({**mapping, "c": 9})
    with pytest.raises(ValueError, match="without gaps"):
        WordPieceTokenizer({**mapping, "c": 6})


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        ([*SPECIAL_TOKENS, "a\nb"], "piece 5, .* has a line break"),
        ([*SPECIAL_TOKENS, "a\r"], "piece 5, .* has a line break"),
        (["[PAD]", "[UNK]", "[CLS]", "a"], r"lacks \[SEP\], \[MASK\]"),
        ([], r"lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\]"),
    ],
)
def test_bad_vocabularies(vocab, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(vocab)


def test_the_content_of_vocab_txt():
    pieces = [*SPECIAL_TOKENS, "a", "##é", "x\u0085y", "\u2028x", "##\u2029.", "\x1c", "中", "😀"]
    content = WordPieceTokenizer(pieces, lower_case=False).vocab_txt()
    assert content == "".join(piece + "\n" for piece in pieces).encode()
    assert pieces_of(content) == pieces
    with pytest.raises(UnicodeEncodeError):
        small_tokenizer("\ud800").vocab_txt()


def test_windows_line_ends_and_no_last_line_end():
    assert pieces_of("\r\n".join([*SPECIAL_TOKENS, "a"]).encode()) == [*SPECIAL_TOKENS, "a"]


def test_an_empty_line_and_a_piece_that_is_there_twice():
    content = "\n".join([*SPECIAL_TOKENS, "a", "", "##b", "a", "", "a \u3000", "c"]).encode()
    tokenizer = WordPieceTokenizer(pieces_of(content))
    # The last id of "a", white space at its end or not
    assert tokenizer.token_ids("ab a c") == [10, 7, 10, 11]
    assert tokenizer.decode([5, 7, 8, 11]) == "ab a c"
    assert pieces_of(tokenizer.vocab_txt()) == tokenizer.vocab


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + b"caf\xe9\n", f"is not UTF-8: .* at byte {len(GOOD) + 3}"),
        (GOOD + b"a\rb\n", "has a line break"),
        (GOOD[6:], r"lacks \[PAD\]"),
        (b"", "lacks"),
    ],
)
def test_what_is_no_vocabulary(content, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(pieces_of(content))
