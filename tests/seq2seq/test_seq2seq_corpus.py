"""Pairs of texts from a user's file."""

from __future__ import annotations

import re

import pytest

from minigrad.seq2seq.corpus import TranslationError, read_pairs
from minigrad.stories.translation import TranslationPair
from minigrad.text.corpus import CorpusError

pytestmark = pytest.mark.no_arrays


def in_file(folder, content):
    path = folder / "pairs.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "good day\tguten Tag\nthe end\tdas Ende\n",
        "good day\tguten Tag\nthe end\tdas Ende",
        "good day\tguten Tag\r\nthe end\tdas Ende\r\n",
        "\ufeffgood day\tguten Tag\n\n \n  the end \tdas Ende\n\n",
    ],
    ids=["plain", "no line feed at the end", "CRLF", "byte order mark, empty lines, blanks"],
)
def test_a_users_file_is_read(tmp_path, content):
    assert read_pairs(in_file(tmp_path, content)) == [
        TranslationPair("good day", "guten Tag"),
        TranslationPair("the end", "das Ende"),
    ]


def test_quotes_and_other_line_ends_are_part_of_the_text(tmp_path):
    path = in_file(tmp_path, 'he said "yes\tel dijo "sí\u2028ya"\n')
    assert read_pairs(str(path)) == [TranslationPair('he said "yes', 'el dijo "sí\u2028ya"')]


WRONG = {
    "no TAB": ("a\tb\nan apple\n", "row 2 (line 2): expected two columns, source TAB target, got one, without a TAB: "),
    "three columns": ("\na\tb\tc\n", "row 1 (line 2): expected two columns, source TAB target, got 3: 'a\\tb\\tc'"),
    "no target": ("a\tb\n\nc\t \n", "row 2 (line 3), column 'target': expected a text, got an empty cell"),
    "no source": ("a\tb\n\tc\n", "row 2 (line 2), column 'source': expected a text, got an empty cell"),
    "a TAB alone": ("a\tb\n\t\nc\td\n", "row 2 (line 2), column 'source': expected a text, got an empty cell"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_a_bad_row_is_named(tmp_path, content, message):
    path = in_file(tmp_path, content)
    with pytest.raises(TranslationError, match=re.escape(f"{path}, {message}")):
        read_pairs(path)


def test_of_three_columns_it_says_how_to_keep_two(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("go\tgeh\tCC-BY 2.0\n", encoding="utf-8")
    with pytest.raises(TranslationError, match=r"; to keep the first two columns of a file: cut -f1,2 FILE$"):
        read_pairs(file)


def test_what_came_is_spelled_out_and_short(tmp_path):
    with pytest.raises(TranslationError) as caught:
        read_pairs(in_file(tmp_path, "\x1b[2Jred " * 500))
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < len(str(tmp_path)) + 200


@pytest.mark.parametrize("content", ["", "\n\r\n \n", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path, content):
    with pytest.raises(TranslationError, match=r"pairs.tsv has no rows: expected source TAB target"):
        read_pairs(in_file(tmp_path, content))


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(TranslationError, match="is not there"):
        read_pairs(tmp_path / "none.tsv")
    with pytest.raises(TranslationError, match="is no file"):
        read_pairs(tmp_path)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"pairs.tsv is not UTF-8: byte 0xfc at offset 3"):
        read_pairs(in_file(tmp_path, "a\tb\xfc\n".encode("latin-1")))
    with pytest.raises(CorpusError, match="UTF-16"):
        read_pairs(in_file(tmp_path, "good day\tguten Tag\n".encode("utf-16")))
