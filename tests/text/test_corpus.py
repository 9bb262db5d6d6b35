"""Texts as documents of sentences: from files and folders, held out, fingerprints."""

from __future__ import annotations

import errno
import math
import os
import re
from pathlib import Path

import pytest

import processes
from minigrad.text import corpus as corpus_module
from minigrad.text.corpus import CUT_EVERY, Corpus, CorpusError, read_corpus

pytestmark = pytest.mark.no_arrays

# --- Folders and files -----------------------------------------------------------------------------------


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_each_file_of_a_folder_is_a_document(tmp_path):
    write(tmp_path / "b.txt", "First here. Second here.\n\nThird here.\n")
    write(tmp_path / "a" / "deep" / "x.md", "Only this\nsentence is here.\n")
    write(tmp_path / "c.RST", "One line.\nAnother line.\n")
    write(tmp_path / "empty.txt", " \n\n")
    write(tmp_path / "code.py", "This is not text. Not at all.\n")
    write(tmp_path / ".hidden" / "y.txt", "Not seen. At all.\n")
    write(tmp_path / ".z.txt", "Not seen. At all.\n")
    corpus = read_corpus(tmp_path)
    assert corpus.documents == [
        ["Only this sentence is here."],
        ["First here.", "Second here.", "Third here."],
        ["One line.", "Another line."],
    ]
    assert corpus.source == str(tmp_path)
    assert corpus.notes == []
    assert list(corpus.sentences)[:2] == ["Only this sentence is here.", "First here."]


def test_a_file_in_the_released_format(tmp_path):
    """Blank lines part documents, each line is a sentence, also one that the rule would cut in two."""
    path = write(
        tmp_path / "text.txt", "First one. Still it.\nsecond one\n\n\nThird one.\n \nFourth.\nFifth.\n"
    )
    corpus = read_corpus(path)
    assert corpus.documents == [["First one. Still it.", "second one"], ["Third one."], ["Fourth.", "Fifth."]]
    assert corpus.notes == []


@pytest.mark.parametrize("count", [CUT_EVERY + 1, 2 * CUT_EVERY, 2 * CUT_EVERY + 3])
def test_running_text_is_cut_and_a_note_says_so(tmp_path, count):
    sentences = [f"Sentence number {i} is here." for i in range(count)]
    corpus = read_corpus(write(tmp_path / "text.txt", " ".join(sentences)))
    assert [len(document) for document in corpus.documents[:-1]] == [CUT_EVERY] * (len(corpus.documents) - 1)
    assert list(corpus.sentences) == sentences
    (note,) = corpus.notes
    assert "text.txt is running text" in note
    assert f"{count} sentences" in note
    assert f"into {len(corpus.documents)} documents" in note


def test_lines_without_a_blank_one_are_running_text(tmp_path):
    lines = [f"Sentence {i}. Still it." for i in range(CUT_EVERY + 5)]
    corpus = read_corpus(write(tmp_path / "text.txt", "\n".join(lines)))
    assert list(corpus.sentences) == lines
    assert len(corpus.documents) == 2
    assert "running text" in corpus.notes[0]


def test_wrapped_prose_is_joined_before_it_is_cut(tmp_path):
    paragraph = (
        "The first sentence goes on\nin the next line. The second\nends here, in the third\nline of it.\n"
    )
    corpus = read_corpus(write(tmp_path / "text.txt", "\n".join([paragraph] * CUT_EVERY)))
    assert set(corpus.sentences) == {
        "The first sentence goes on in the next line.",
        "The second ends here, in the third line of it.",
    }
    assert len(list(corpus.sentences)) == 2 * CUT_EVERY
    assert "running text" in corpus.notes[0]


def test_a_line_without_its_stop_takes_no_long_time(tmp_path):
    """The lines of a block are joined and cut by rule, if one of them does not end like a sentence."""
    lines = ["this line ends like a sentence."] * 30_000
    write(tmp_path / "text.txt", "\n".join([*lines, "This one does not", *lines, "\n\nB."]))
    program = (
        "import sys; from minigrad.text.corpus import read_corpus;"
        "print([len(d) for d in read_corpus(sys.argv[1]).documents])"
    )
    write(tmp_path / "other.txt", "One.")
    result = processes.run_python(program, tmp_path, seconds=60)
    assert (result.stdout, result.stderr) == ("[1, 3]\n", "")


def test_progress_of_a_folder_and_of_running_text(tmp_path, monkeypatch):
    calls = []
    text = "One is here. Two is here. Three is here. " * CUT_EVERY
    paths = [write(tmp_path / name, text) for name in ("a.txt", "b.md", "c.rst")]
    read_corpus(tmp_path, lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    calls.clear()
    monkeypatch.setattr(corpus_module, "REPORT_EVERY", 25)
    read_corpus(paths[0], lambda done, total: calls.append((done, total)))
    assert calls == [(341, 820), (682, 820), (820, 820)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_and_a_byte_order_mark_do_not_count(tmp_path, newline):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbf" + newline.join(["Äpfel.", "B.", "", "C.", "D.", ""]).encode())
    assert read_corpus(path).documents == [["Äpfel.", "B."], ["C.", "D."]]


@pytest.mark.parametrize("name", ["", "a\0b", "nowhere"])
def test_a_name_that_is_none(tmp_path, monkeypatch, name):
    write(tmp_path / "text.txt", "A.\n\nB.\n")
    monkeypatch.chdir(tmp_path)
    message = f"there is no corpus {name!r}: expected python-docs, a folder, or a file of text"
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_corpus(name)
    assert len(read_corpus("text.txt").documents) == 2


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file(tmp_path, text):
    with pytest.raises(CorpusError, match=r"text\.txt is empty"):
        read_corpus(write(tmp_path / "text.txt", text))


def test_a_folder_without_text(tmp_path):
    write(tmp_path / "a.py", "Not text.")
    write(tmp_path / "b.txt", "")
    with pytest.raises(CorpusError, match=re.escape(f"{tmp_path}: found no text in files ending in .txt")):
        read_corpus(tmp_path)


def test_running_text_in_which_no_sentence_ends(tmp_path):
    """The message says where sentences end, and what to do where there are no capitals."""
    path = write(tmp_path / "text.txt", "the cat sat on the mat. it slept. " * 100)
    message = (
        r"two documents, found 1, of running text with 1 sentence\. A sentence ends at .* English without capitals, "
        "give one sentence a line"
    )
    with pytest.raises(CorpusError, match=message):
        read_corpus(path)


@pytest.mark.parametrize(
    ("sentences", "between"),
    [
        (["我来了。", "我看见了！", "你呢？"], ""),
        (["私は行く。", "「はい。」", "そう？"], "\u3000"),
        (["यह घर है।", "वह नहीं।"], " "),
        (["هل هذا بيت؟", "نعم هو بيت."], " "),
        (["یہ گھر ہے۔", "کیا یہ گھر ہے؟"], " "),
        (["나는 학교에 간다.", "집에 온다."], " "),
        (["One is here.", "Two is there!"], " "),
    ],
)
def test_running_text_in_any_script(tmp_path, sentences, between):
    corpus = read_corpus(write(tmp_path / "text.txt", between.join(sentences * 40)))
    assert list(corpus.sentences) == sentences * 40
    paragraphs = "\n\n".join(between.join(sentences) for _ in range(3))
    (tmp_path / "folder").mkdir()
    for name in ("a.txt", "b.txt"):
        write(tmp_path / "folder" / name, paragraphs)
    assert read_corpus(tmp_path / "folder").documents == [sentences * 3] * 2
    corpus = read_corpus(write(tmp_path / "paragraphs.txt", paragraphs))
    assert corpus.documents == [sentences] * 3
    assert "each paragraph is one line" in corpus.notes[0]
    lines = "\n\n".join("\n".join(sentences) for _ in range(3))  # one sentence a line: documents as they are
    assert read_corpus(write(tmp_path / "lines.txt", lines)).documents == [sentences] * 3


@pytest.mark.parametrize("text", ["One. Two. Three.", "One.\nTwo.\n"])
def test_one_document_is_too_few(tmp_path, text):
    with pytest.raises(CorpusError, match=r"text\.txt: .* at least two documents, found 1"):
        read_corpus(write(tmp_path / "text.txt", text))
    with pytest.raises(CorpusError, match="at least two documents, found 1"):
        read_corpus(tmp_path)


@pytest.mark.parametrize(
    ("content", "byte", "offset"),
    [
        (b"caf\xe9 au lait", "0xe9", 3),
        ("Äöü".encode("utf-16"), "0xff", 0),
        ("é. A".encode("utf-16-le"), "0xe9", 0),
        (b"\xef\xbb\xbfcaf\xe9 au lait", "0xe9", 6),  # after a byte order mark
    ],
)
def test_a_file_that_is_not_utf_8(tmp_path, content, byte, offset):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    for source in (path, tmp_path):
        message = f"{path} is not UTF-8: byte {byte} at offset {offset};"
        with pytest.raises(CorpusError, match=re.escape(message)):
            read_corpus(source)


@pytest.mark.parametrize(
    "content",
    [
        "Äöü".encode("utf-16"),
        b"\xfe\xff" + "Äöü".encode("utf-16-be"),
        "A sentence. Another one.".encode("utf-16-le"),  # without a byte order mark these are UTF-8 too
        "A sentence. Another one.".encode("utf-16-be"),
        ("Это первое предложение. Это второе. " * 9).encode("utf-16-le"),
        "é. A".encode("utf-16-le"),
    ],
)
def test_utf_16_is_named(tmp_path, content):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    message = r"text\.txt .*; it looks like UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8"
    for source in (path, tmp_path):
        with pytest.raises(CorpusError, match=message):
            read_corpus(source)


def test_a_few_nuls_are_no_utf_16(tmp_path):
    path = write(tmp_path / "text.txt", "The first one\0 is here.\n\nThe second\0 one is here.\n")
    assert read_corpus(path).documents == [["The first one\0 is here."], ["The second\0 one is here."]]
    assert read_corpus(write(path, "A.\n\n\0\n\nD.\n")).documents == [["A."], ["\0"], ["D."]]


def refuse(*broken: Path):
    """A function like one of `os`, or a method of a path, that has no permission for these paths."""

    def instead_of(function):
        def check(path, *arguments, **options):
            if Path(path) in broken:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *arguments, **options)

        return check

    return instead_of


@pytest.fixture
def some_files(tmp_path):
    """A folder with a file, a folder with another, and what is hidden."""
    write(tmp_path / "a.txt", "A. B. C.")
    write(tmp_path / "deep" / "b.txt", "A. B. C.")
    write(tmp_path / "deep" / "deeper" / "c.txt", "A. B. C.")
    write(tmp_path / ".hidden" / "d.txt", "A. B. C.")
    return tmp_path


@pytest.mark.parametrize(
    ("owner", "function", "name"),
    [
        (Path, "read_bytes", "deep/b.txt"),
        (os, "scandir", "."),
        (os, "scandir", "deep/deeper"),
        (Path, "stat", "."),
        (Path, "stat", "deep/b.txt"),
    ],
)
def test_what_cannot_be_read_listed_or_looked_at_is_named(some_files, monkeypatch, owner, function, name):
    """Nothing is left out in silence."""
    broken = some_files / name
    monkeypatch.setattr(owner, function, refuse(broken)(getattr(owner, function)))
    with pytest.raises(CorpusError, match=re.escape(f"{broken} cannot be read: Permission denied")):
        read_corpus(some_files)


def test_hidden_folders_are_not_even_opened(some_files, monkeypatch):
    monkeypatch.setattr(os, "scandir", refuse(some_files / ".hidden")(os.scandir))
    assert len(read_corpus(some_files).documents) == 3


def test_links(some_files):
    """A link to a file is that file; one to a folder, to nothing or to itself is passed over."""
    (some_files / "to_file.txt").symlink_to(some_files / "a.txt")
    (some_files / "to_folder").symlink_to(some_files / "deep")
    (some_files / "to_nothing.txt").symlink_to(some_files / "nothing.txt")
    (some_files / "to_itself.txt").symlink_to(some_files / "to_itself.txt")
    assert len(read_corpus(some_files).documents) == 4


def test_more_text_than_memory(some_files, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Path, "read_bytes", full)
    message = f"{some_files}: this text does not fit in the memory that is left"
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_corpus(some_files)


# --- Holding out -----------------------------------------------------------------------------------------


def numbered(count: int) -> Corpus:
    return Corpus([[f"Document {i}."] for i in range(count)], "here", ["a note"])


@pytest.mark.parametrize(
    ("count", "share", "held_out"), [(100, 0.05, 5), (100, 0.5, 50), (10, 0.05, 2), (4, 0.0, 2)]
)
def test_whole_documents_are_held_out(count, share, held_out):
    corpus = numbered(count)
    train, held = corpus.split(share, seed=0)
    assert len(held.documents) == held_out
    assert sorted(train.documents + held.documents) == sorted(corpus.documents)  # so no document is in both
    assert train.documents == [d for d in corpus.documents if d not in held.documents]  # the order stays
    assert train.source == held.source == "here"


def test_the_seed_draws_what_is_held_out():
    def held(seed):
        return [d[0] for d in numbered(100).split(0.1, seed)[1].documents]

    assert held(0) == held(0)
    assert len({tuple(held(seed)) for seed in range(5)}) == 5


@pytest.mark.parametrize(("count", "share", "held"), [(2, 0.05, 2), (3, 0.05, 2), (10, 0.9, 9)])
def test_too_few_documents_to_hold_some_out(count, share, held):
    message = f"here: with {held} of {count} documents held out, fewer than two are left to train on"
    with pytest.raises(CorpusError, match=message):
        numbered(count).split(share, 0)


@pytest.mark.parametrize("share", [-0.1, 1.0, 20.0, math.nan])
def test_a_share_that_is_none(share):
    with pytest.raises(ValueError, match=r"held_out must be at least 0 and below 1, got"):
        numbered(10).split(share, 0)


# --- Fingerprints and entropy ----------------------------------------------------------------------------


def test_fingerprints():
    texts = [
        [["a", "b"], ["c"]],
        [["a"], ["b", "c"]],
        [["a", "b"], ["d"]],
        [["c"], ["a", "b"]],
        [["a b"], ["c"]],
        [["a", "b"], ["c"], ["c"]],
    ]
    prints = [Corpus(documents, "one").fingerprint() for documents in texts]
    assert len(set(prints)) == len(texts)
    assert Corpus(texts[0], "two", ["note"]).fingerprint() == prints[0]  # the text alone counts


def test_a_fingerprint_is_the_same_tomorrow():
    assert Corpus([["Ä."], ["B.", "C."]], "x").fingerprint() == "57b8460fa9259121"
