"""The tokenizer in the page cuts every text as the library's does."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from sample_texts import HOSTILE, HOSTILE_WORDS, SETTINGS

from bert_course.common.live_tokenizer import live_tokenizer
from bert_course.stored import stored
from minigrad.text.normalization import lower, normalize, pre_tokenize, remove_accents, unicode_tables
from minigrad.text.tokenizer import WordPieceTokenizer, pieces_of
from minigrad.text.wordpiece import SPECIAL_TOKENS

pytestmark = pytest.mark.no_arrays

# Every character of the hostile texts is a piece, in each of its spellings: [UNK] would hide a wrong one.
LETTERS = sorted(
    {c for s in (HOSTILE, HOSTILE.lower(), *HOSTILE_WORDS, remove_accents(HOSTILE)) for c in s} - set("\n\r")
)
VOCAB = [*SPECIAL_TOKENS, *LETTERS, *(f"##{c}" for c in LETTERS), "don", "##ve", "αβ", "<b>", "&amp;"]


# All planes with letters or marks, and of those for private use the beginning; the browser gets a part at a time.
ALL_CHARACTERS = [
    (0, 0x8000),
    (0x8000, 0xD800),
    (0xE000, 0x10000),
    *((p, p + 0x8000) for p in range(0x10000, 0x38000, 0x8000)),
]
ALL_CHARACTERS += [(0xE0000, 0xE0200), (0xF0000, 0xF0100), (0x10FF00, 0x110000)]


def tokenizer(lower_case: bool = True, strip_accents: bool | None = None) -> WordPieceTokenizer:
    return WordPieceTokenizer(list(dict.fromkeys(VOCAB)), lower_case, strip_accents)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page in a headless Chromium."""
    opened = browser.new_page()
    yield opened
    opened.close()


def show(page: Any, tokenizer: WordPieceTokenizer, text: str = "") -> None:
    page.set_content(f"<body>{live_tokenizer(tokenizer, text)._repr_html_()}</body>")


def cut(page: Any, texts: list[str]) -> list[list[str]]:
    """The pieces that the page makes of these texts."""
    return page.evaluate(
        "texts => texts.map(text => document.querySelector('.course-tokenizer').tokenize(text).map(p => p.piece))",
        texts,
    )


def hostile_texts(number: int) -> list[str]:
    draw = random.Random(5)
    parts = [*HOSTILE, *HOSTILE_WORDS, *[" "] * 30]
    return ["".join(draw.choices(parts, k=draw.randrange(30))) for _ in range(number)]


def texts_of_any_characters(number: int) -> list[str]:
    draw = random.Random(6)
    planes = [range(0x80), range(0x80, 0xD800), range(0xE000, 0x10000), range(0x10000, sys.maxunicode + 1)]
    return ["".join(chr(draw.choice(draw.choice(planes))) for _ in range(12)) for _ in range(number)]


@pytest.mark.parametrize(("lower_case", "strip_accents"), SETTINGS)
def test_hostile_texts_are_cut_as_in_the_library(page, lower_case, strip_accents):
    of_library = tokenizer(lower_case, strip_accents)
    show(page, of_library)
    texts = ["", " ", *HOSTILE_WORDS, *hostile_texts(400), *texts_of_any_characters(200)]
    for text, pieces in zip(texts, cut(page, texts), strict=True):
        assert pieces == of_library.tokenize(text), ascii(text)


def test_chinese_characters_that_are_no_words_of_their_own(page):
    of_library = WordPieceTokenizer(list(dict.fromkeys(VOCAB)), tokenize_chinese_chars=False)
    show(page, of_library)
    texts = ["中文 a中", *hostile_texts(50)]
    assert cut(page, texts) == [of_library.tokenize(text) for text in texts]
    assert cut(page, ["中文"]) == [["中", "##文"]]


def test_every_character_is_spelled_as_in_the_library(page):
    """Between letters and alone: what becomes of it, and whether it parts words."""
    show(page, tokenizer())
    spell = "text => document.querySelector('.course-tokenizer').words(text).join(' ')"

    def wrong(first: int, last: int) -> list[str]:
        """Those from first to last: all in one text, and one by one only where that differs."""
        text = " ".join(f"a{chr(code)}b {chr(code)}" for code in range(first, last))
        if page.evaluate(spell, text) == " ".join(pre_tokenize(normalize(text))):
            return []
        middle = (first + last) // 2
        return [f"U+{first:04X}"] if last - first == 1 else [*wrong(first, middle), *wrong(middle, last)]

    blocks = [(at, min(at + 4096, last)) for first, last in ALL_CHARACTERS for at in range(first, last, 4096)]
    assert [one for block in blocks for one in wrong(*block)] == []


def test_new_capitals_have_small_letters_in_an_old_browser(page):
    show(page, tokenizer())
    page.evaluate("String.prototype.toLowerCase = function () { return String(this); }")
    text = "\ua7cb\ua7dc\U00010d50\U00016ea0"
    assert page.evaluate("t => document.querySelector('.course-tokenizer').words(t)", text) == [lower(text)]


def test_marks_are_sorted_as_in_the_library(page):
    """Marks that stay, between accents of class 0 and others."""
    show(page, tokenizer())
    marks = [chr(code) for code in (*range(0x8D4, 0x8E2), 0x1B44, 0x302E, 0x1D165, 0x1D16D, 0x1D172, 0x1E94A)]
    marks += ["\u0300", "\u0488", "\u0489", "\u034f", "a", "\u05b0"]
    draw = random.Random(7)
    texts = ["a" + "".join(draw.choices(marks, k=8)) for _ in range(500)]
    found = page.evaluate(
        "texts => texts.map(t => document.querySelector('.course-tokenizer').words(t))", texts
    )
    for text, words in zip(texts, found, strict=True):
        assert words == pre_tokenize(lower(remove_accents(text))), ascii(text)


def test_typing_shows_the_pieces(page):
    of_library = tokenizer()
    show(page, of_library, "don't <b>")
    chips = "all => all.map(chip => [chip.firstChild.textContent, chip.querySelector('small').textContent])"
    before = page.eval_on_selector_all(".pieces > span", chips)
    assert before == [[p, str(of_library.token_to_id(p))] for p in of_library.tokenize("don't <b>")]
    stored_counts = page.inner_text(".counts")
    page.fill("input", "x")
    page.fill("input", "don't <b>")  # the script writes what was stored
    assert page.eval_on_selector_all(".pieces > span", chips) == before
    assert page.inner_text(".counts") == stored_counts
    page.fill("input", "don\u4e02 [MASK]")
    assert page.inner_text(".counts") == "3 words and marks, 3 pieces, 1 unknown"
    assert page.eval_on_selector_all(".unknown", "all => all.length") == 1


def test_without_a_script_the_pieces_of_the_text_are_there(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    show(page, tokenizer(), "don't")
    assert page.inner_text(".pieces").split() == [
        w for p in ("don", "'", "t") for w in (p, str(tokenizer().token_to_id(p)))
    ]
    assert not page.is_visible("input")
    context.close()


def test_the_output_is_small():
    of_library = WordPieceTokenizer(pieces_of((stored("start") / "vocab.txt").read_bytes()))
    assert len(live_tokenizer(of_library, "a")._repr_html_().encode()) < 100_000


def test_the_tables_name_each_mark_once():
    tables = unicode_tables()
    classes = [table for name, table in tables.items() if name.startswith("class ")]
    assert sum(map(points, classes)) == points(tables["marks that stay"])
    assert points(tables["separating"]) == sum(
        not unicodedata.combining(chr(code)) for code in code_points(tables["accents"])
    )


def code_points(table: str) -> list[int]:
    ends = [[int(end, 16) for end in part.split("-")] for part in table.split()]
    return [code for pair in ends for code in range(pair[0], pair[-1] + 1)]


def points(table: str) -> int:
    return len(code_points(table))
