"""Where a sentence ends: examples, a plain splitter that goes word by word, and no text that takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import processes
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
        ["기다려...", "3 시다."],
        ["그래!", "정말??", "응응."],
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
        ["¿Qué tal?", "¡Bien!", "¿Y tú?"],
        ["Il dit «Oui.»", "«Non.»", "„Ja.“", "„Nein.“"],
        ["هذا بيت.", "هل هذه مدرسة؟", "نعم!", "هي مدرسة."],
        ["د. محمد هنا.", "وصل أمس."],  # Dr.
        ["یہ گھر ہے۔", "کیا یہ اسکول ہے؟", "جی ہاں۔"],
        ["यह घर है।", "क्या यह स्कूल है?", "हाँ, यह ३.५ मीटर है॥", "वह नहीं।"],
        ["나는 학교에 간다.", "집에 온다!", "정말?", "응."],
        ["זה בית.", "האם זה בית ספר?", "כן."],
        ["Սա տուն է։", "Սա դպրոց է։"],
        ["ይህ ቤት ነው።", "ይህ ትምህርት ቤት ነው።"],
    ],
    ids=" | ".join,
)
def test_where_sentences_end(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["我来了。", "我看见了！", "我赢了吗？", "没有"],
        ["你好！！", "真的吗？！", "真的吗?！", "是……真的。", "是吗？……", "是。"],
        ["他说：“我走了。”", "她哭了。", "「真的？」", "『是。』", "（他笑了。）", "完。"],
        ["圆周率是3.14。", "１．５倍です．", "二つ目．", "版本 3.11。"],
        ["《你好吗？》是一本书。", "我读了。"],
        ["私は学校へ行く。", "「行こう！」と彼は言った。", "『けいおん！』が好きだ。", "そう？", "はい。"],
        ["｢はい｡｣", "東京です｡", "大阪です。"],
        ["He came. then left。", "我来了。", "OK."],
        ["我来了.", "真的吗?", "“是!”", "我用Python3.11和a.txt。"],
        ["यह घर है।", "वह नहीं।"],
        ["これはペンです．", "それは本です．"],
    ],
    ids=" | ".join,
)
def test_where_sentences_end_without_white_space(sentences):
    assert split_sentences("".join(sentences)) == sentences
    assert split_sentences(" ".join(sentences)) == sentences
    assert split_sentences("\u3000".join(sentences)) == sentences


@pytest.mark.parametrize(
    "text",
    [
        "the cat sat. it slept! did it? yes.",  # nothing says where one begins
        "3.14 and 1,000.5 are numbers",
        "人口は1．5億人です",
        "等等……然后呢",
        "等等...然后呢",
        "음... 그래",
        "انتظر... ثم اذهب",
        "《走吧！》",
        "क्या वह ३.५ है",
    ],
)
def test_what_ends_no_sentence(text):
    assert split_sentences(text) == [text]


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
        begins = next_character.isdigit() or (next_character.isalpha() and not next_character.islower())
        # No capitals
        if begins and not next_character.isdigit() and next_character.lower() == next_character:
            begins = not word.rstrip("\"'”’)]").endswith("..")
        abbreviation = word.lstrip("\"'“‘([").lower() in _ABBREVIATIONS
        initial = word[-1:] == "." and word[-2:-1].isalpha() and not word[-2:-1].islower()
        initial = initial and (len(word) == 2 or word[-3] in ".(")
        if ends and begins and not abbreviation and not initial:
            sentences.append([])
    return [" ".join(sentence) for sentence in sentences if sentence]


PIECES = [*".!?\"'”’)]“‘([ \t\n\u3000aZé3가İⒶ_", " ", ".", *_ABBREVIATIONS, "A.", " B.", "(C."]


@given(st.lists(st.sampled_from(PIECES) | st.sampled_from([" ", ". "]), max_size=40).map("".join))
def test_a_text_is_cut_as_word_by_word(text):
    assert split_sentences(text) == split_plainly(text)


# A text of some 300,000 characters, as an expression, and how many sentences it has. A way to cut that looks again at
# what it has read takes far longer than all of these are given.
LONG_TEXTS = {
    "no capitals": ("'the cat sat on the mat. it slept. ' * 10_000", 1),
    "Korean": ("'나는 학교에 간다. 집에 온다. ' * 15_000", 30_000),
    "Hindi": ("'यह घर है। वह नहीं। ' * 15_000", 30_000),
    "Chinese": ("'我来了。' * 30_000", 30_000),
    "rows of stops of Chinese": ("'。' * 300_000", 1),
    "full stops of Chinese and brackets": ("'。」' * 100_000 + 'の'", 100_000),
    "closing brackets before a letter of Japanese": ("'。' + '」' * 300_000 + 'の'", 1),
    "ASCII in Chinese": ("'中' + '.!?' * 100_000 + 'a'", 1),
    "ASCII in Chinese, again and again": ("'中.' * 100_000", 100_000),
    "stops and dots of Chinese": ("'。…' * 100_000 + '》'", 100_000),
    "stops of both kinds": ("'?！' * 150_000 + '》'", 1),
    "full stops before digits": ("'１．' * 100_000 + '１'", 1),
    "initials": ("'A. ' * 100_000", 1),
    "single letters": ("'a. a. a. ' * 30_000", 1),
    "abbreviations": ("'E.g. ' * 60_000", 1),
    "sentences": ("'One is here. Two! ' * 15_000", 30_000),
    "rows of stops": ("'.' * 300_000", 1),
    "rows of other stops": ("'!?' * 150_000 + 'x'", 1),
    "a row of stops that ends a sentence": ("'A' + '.' * 300_000 + ' B'", 2),
    "stops and spaces": ("'. ' * 150_000", 1),
    "closing brackets": ("'.' + ')' * 300_000 + 'x'", 1),
    "stops and closing brackets": ("'.)' * 150_000", 1),
    "quotes of both kinds": ("'. \"' * 100_000", 1),
    "opening brackets": ("'a. ' + '(' * 300_000", 1),
    "brackets before a capital": ("('a. ' + '(' * 1000 + 'A') * 1_000", 1001),
    "white space": ("'a.' + ' \\t\\n' * 100_000 + '('", 1),
    "no white space": ("'a.B' * 100_000", 1),
    "one long word before each stop": ("('x' * 30_000 + '. A ') * 10", 11),
}


def test_no_text_takes_long_to_cut():
    program = (
        "from minigrad.text.sentences import split_sentences\n"
        f"for name, (text, count) in {LONG_TEXTS}.items():\n"
        "    print(name, flush=True)\n"
        "    assert len(split_sentences(eval(text))) == count, name\n"
    )
    assert processes.run_python(program, seconds=20).stderr == ""
