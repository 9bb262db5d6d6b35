"""One spelling of text against its oracle, Hugging Face's `tokenizers`, and against stored answers."""

import hashlib
import random

import pytest
from hypothesis import example, given, settings
from sample_texts import HOSTILE, SETTINGS, TEXT

from minigrad.text import normalization as text_module
from minigrad.text.normalization import normalize, pre_tokenize

pytestmark = pytest.mark.no_arrays


def every_code_point():
    """All of Unicode but the surrogates, with a letter between any two, in strings of 2,048 code points."""
    for start in range(0, 0x110000, 2048):
        if start != 0xD800:
            yield "".join(chr(code) + "b" for code in range(start, start + 2048))


@pytest.mark.parametrize(
    ("text", "uncased", "cased"),
    [
        ("Crème Brûlée", "creme brulee", "Crème Brûlée"),
        ("ΟΔΟΣ", "οδοσ", "ΟΔΟΣ"),  # no final sigma
        ("İI", "ii", "İI"),
        ("a\x00b\ufffdc\u200dd\x1ce\x0bf\x85g", "abcdefg", "abcdefg"),
        ("a\tb\nc\rd\u00a0e\u1680f\u2028g\u3000h", "a b c d e f g h", "a b c d e f g h"),
        ("ab中文c", "ab 中  文 c", "ab 中  文 c"),
        ("한", "\u1112\u1161\u11ab", "한"),  # a Korean syllable comes apart into its letters
        ("\ue000x\U0010fffdy\u0378", "xy\u0378", "xy\u0378"),  # private use goes, unassigned stays
        ("a\u08d4", "a\u08d4", "a\u08d4"),  # an accent since Unicode 9
        # Marks that stay are sorted: class 9, then 224 …
        ("a\u302e\u1baab", "a\u1baa\u302eb", "a\u302e\u1baab"),
        # … unless class 0 is between
        ("a\u302e\u0489\u1baab", "a\u302e\u0489\u1baab", "a\u302e\u0489\u1baab"),
        ("\ua7cb\U00016ea0\U00011938", "\u0264\U00016ebb\U00011938", "\ua7cb\U00016ea0\U00011938"),
    ],
)
def test_normalize_stored_answers(text, uncased, cased):
    assert normalize(text) == uncased
    assert normalize(text, lower_case=False) == cased


def test_strip_accents_follows_lower_case_unless_told():
    assert normalize("É", lower_case=True) == "e"
    assert normalize("É", lower_case=True, strip_accents=False) == "é"
    assert normalize("É", lower_case=False) == "É"
    assert normalize("É", lower_case=False, strip_accents=True) == "E"
    assert normalize("İ", strip_accents=False) == "i\u0307"


def test_pre_tokenize_stored_answers():
    assert pre_tokenize(" don't  stop!? ") == ["don", "'", "t", "stop", "!", "?"]
    assert pre_tokenize("a$b^c|d€e") == ["a", "$", "b", "^", "c", "|", "d€e"]  # symbols only of ASCII
    # Unicode 9; no longer punctuation
    assert pre_tokenize("a\u2e43b\U000111c9c") == ["a\u2e43b", "\U000111c9", "c"]
    assert pre_tokenize("a\x85b\x0bc\x1cd") == ["a", "b", "c\x1cd"]
    assert pre_tokenize("") == []


# Made with tokenizers 0.23.3: the sha256 of what it returns for every code point. They pin the tables in the
# source on every version of Python, also where the oracle is not installed.
DIGESTS = {
    "uncased": "41cf5cb4a3537e2b7db0ed109a2ef5e436955126b09a81a184040375d5ed1c6e",
    "uncased, accents kept": "c9e69e7629b26fdcc25a8cfabf4fe1e3b13a4e052123d43ad4407550ede9421c",
    "cased": "35c283f35b7b723e3708f396f4fe2482299ef85be16d90bb5d89832247a0ea6a",
    "words": "40e1f728d39721b10bd62feca38271754e0517e2f6b266742e5e3ff20ca70c38",
}


def digest(function):
    total = hashlib.sha256()
    for text in every_code_point():
        total.update(function(text).encode())
    return total.hexdigest()


def words_joined(text):
    return "\x00".join(pre_tokenize(text))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("uncased", normalize),
        ("uncased, accents kept", lambda text: normalize(text, strip_accents=False)),
        ("cased", lambda text: normalize(text, lower_case=False)),
        ("words", words_joined),
    ],
)
def test_every_code_point_as_stored(name, function):
    assert digest(function) == DIGESTS[name]


@pytest.mark.oracle
@pytest.mark.parametrize(("lower_case", "strip_accents"), SETTINGS)
def test_normalize_equals_oracle(tokenizers, lower_case, strip_accents):
    oracle = tokenizers.normalizers.BertNormalizer(lowercase=lower_case, strip_accents=strip_accents)

    @settings(max_examples=150, derandomize=True, deadline=None)
    @given(TEXT)
    @example(HOSTILE)
    @example(HOSTILE[::-1])
    def check(text):
        ours = normalize(text, lower_case=lower_case, strip_accents=strip_accents)
        assert ours == oracle.normalize_str(text)

    check()


@pytest.mark.oracle
def test_runs_of_marks_equal_oracle(tokenizers):
    oracle = tokenizers.normalizers.BertNormalizer()
    draw = random.Random(1)
    accents = [chr(code) for code in range(0x20000) if text_module._ACCENT.match(chr(code))]
    marks = {chr(code) for code in range(0x20000) if text_module._MARKS.match(chr(code))}
    stay = sorted(marks.difference(accents))
    others = list("ae한\u200d\x85\U0001d160\U00011938\u0484\u1734")
    assert len(stay) > 80
    for _ in range(4000):
        text = "".join(
            draw.choice(draw.choice([stay, stay, accents, others])) for _ in range(draw.randint(2, 9))
        )
        assert normalize(text) == oracle.normalize_str(text), ascii(text)


@pytest.mark.oracle
@settings(max_examples=300, derandomize=True, deadline=None)
@given(TEXT)
@example(HOSTILE)
def test_pre_tokenize_equals_oracle(tokenizers, text):
    oracle = tokenizers.pre_tokenizers.BertPreTokenizer()
    assert pre_tokenize(text) == [word for word, _ in oracle.pre_tokenize_str(text)]
