"""Where a sentence ends: examples, a plain splitter that goes word by word, and no text that takes long."""

from __future__ import annotations

import processes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigrad.text.sentences import _ABBREVIATIONS, split_sentences

pytestmark = pytest.mark.no_arrays


@pytest.mark.parametrize(
    "sentences",
    [
        ["One sentence."],
        ["No end of a sentence"],
        ["First.", "Second."],
        ["Really?", "Yes!", "Good."],
        ["Wait...", "Then go."],
        ["What?!", "Nothing."],
        ["A digit follows.", "3 more."],
        ['"He said so."', "Then he left."],
        ["(All of it.)", "Then more."],
        ["He said so.", '"She did not."'],
        ["See the note.", "(It is short.)"],
        ["See [1].", "Then go."],
        ["“Curly quotes.”", "‘They count too.’", "Here."],
        ["After a lower case letter. no cut here.", "A cut here."],
        ["Version 3.11 is out.", "Take it."],
        ["The file a.txt is read.", "So is B.txt here."],
        ["Several, e.g. Python, i.e. CPython, etc. And so on."],
        ["Dr. Smith met Mrs. Jones.", "Prof. Lee was there."],
        ["J. R. Firth wrote it.", "You shall know a word."],
        ["See fig. 3 and eq. 4 in vol. 2.", "Read pp. 5 to 7."],
        ["Smith et al. 2019 say so.", "It is true."],
        ["Apples vs. Oranges.", "The end."],
        ["(E.g. This one.)", "Then go."],
        ["Это первое предложение.", "Это второе."],
        ["Élan is one.", "Ärger is two."],
    ],
    ids=" | ".join,
)
def test_where_sentences_end(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_white_space_becomes_single():
    assert split_sentences("  One\n  sentence\there.\n\nThe   next.  ") == ["One sentence here.", "The next."]


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_no_text_has_no_sentences(text):
    assert split_sentences(text) == []


def test_nothing_is_lost():
    text = "Mr. A. B. Who? 'Me!' (Yes.) No... 12. X e.g. Y. [Z.] end"
    assert " ".join(split_sentences(text)) == text


def split_plainly(text: str) -> list[str]:
    """`split_sentences` word by word."""
    words = text.split()
    sentences: list[list[str]] = [[]]
    for word, following in zip(words, [*words, ""][1:], strict=True):
        sentences[-1].append(word)
        ends = word.rstrip("\"'”’)]").endswith((".", "!", "?"))
        next_character = following.lstrip("\"'“‘([")[:1]
        begins = next_character.isalnum() and (next_character.isupper() or next_character.isdigit())
        abbreviation = word.lstrip("\"'“‘([").lower() in _ABBREVIATIONS
        initial = word[-1:] == "." and word[-2:-1].isupper() and word[-2:-1].isalnum()
        initial = initial and (len(word) == 2 or word[-3] in ".(")
        if ends and begins and not abbreviation and not initial:
            sentences.append([])
    return [" ".join(sentence) for sentence in sentences if sentence]


PIECES = [*".!?\"'”’)]“‘([ \t\n\u3000aZé3中İⒶ_", " ", ".", *_ABBREVIATIONS, "A.", " B.", "(C."]


@given(st.lists(st.sampled_from(PIECES) | st.sampled_from([" ", ". "]), max_size=40).map("".join))
def test_a_text_is_cut_as_word_by_word(text):
    assert split_sentences(text) == split_plainly(text)


# A text of a million characters, as an expression, and how many sentences it has. A way to cut that looks again at
# what it has read takes minutes for each of these.
LONG_TEXTS = {
    "no capitals": ("'the cat sat on the mat. it slept. ' * 30_000", 1),
    "Korean": ("'나는 학교에 간다. 집에 온다. ' * 50_000", 1),
    "Hindi": ("'यह घर है. वह नहीं. ' * 50_000", 1),
    "initials": ("'A. ' * 300_000", 1),
    "single letters": ("'a. a. a. ' * 100_000", 1),
    "abbreviations": ("'E.g. ' * 200_000", 1),
    "sentences": ("'One is here. Two! ' * 50_000", 100_000),
    "rows of stops": ("'.' * 1_000_000", 1),
    "rows of other stops": ("'!?' * 500_000 + 'x'", 1),
    "a row of stops that ends a sentence": ("'A' + '.' * 1_000_000 + ' B'", 2),
    "stops and spaces": ("'. ' * 500_000", 1),
    "closing brackets": ("'.' + ')' * 1_000_000 + 'x'", 1),
    "stops and closing brackets": ("'.)' * 500_000", 1),
    "quotes of both kinds": ("'. \"' * 300_000", 1),
    "opening brackets": ("'a. ' + '(' * 1_000_000", 1),
    "brackets before a capital": ("('a. ' + '(' * 1000 + 'A') * 1_000", 1001),
    "white space": ("'a.' + ' \\t\\n' * 300_000 + '('", 1),
    "no white space": ("'a.B' * 300_000", 1),
    "one long word before each stop": ("('x' * 100_000 + '. A ') * 10", 11),
}


@pytest.mark.parametrize(("text", "count"), LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_no_text_takes_long_to_cut(text, count):
    program = f"from minigrad.text.sentences import split_sentences; print(len(split_sentences({text})))"
    result = processes.run_python(program, timeout=60)
    assert (result.stdout, result.stderr) == (f"{count}\n", "")
