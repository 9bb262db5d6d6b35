"""Texts to train on: the Python documentation already on this disk, or the text in a reader's folder or file.

A corpus is a list of documents, a document a list of sentences. Next-sentence prediction needs both
boundaries.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from minigrad.text.python_docs import absent_packages, python_docs
from minigrad.text.sentences import CLOSING, CLOSING_WITHOUT_SPACE, RULE, STOPS, iter_sentences

Document = list[str]
Progress = Callable[[int, int], object]  # called with how much is done, and of how much

TEXT_SUFFIXES = (".txt", ".md", ".rst")
# How files begin that are no text, whatever their names say.
BINARY = {
    b"PK\x03\x04": "a zip archive, as .xlsx, .ods and .docx are, too",
    b"PK\x05\x06": "an empty zip archive",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old .xls or .doc",
    b"\x1f\x8b": "compressed with gzip",
    b"BZh9": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"(\xb5/\xfd": "compressed with zstd",
    b"%PDF-": "a PDF",
    b"PAR1": "a Parquet file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
}
CUT_EVERY = 20  # sentences, where running text is cut into documents
REPORT_EVERY = 1000  # sentences


class CorpusError(ValueError):
    """Text that cannot be read, or too little of it."""


@dataclass
class Corpus:
    """Documents of sentences, where they are from, and what was done to get them."""

    documents: list[Document]
    source: str
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.documents) < 2:
            raise CorpusError(
                f"{self.source}: next-sentence prediction needs at least two documents, "
                f"found {len(self.documents)}"
            )

    @property
    def sentences(self) -> Iterator[str]:
        """All sentences, in order."""
        return (sentence for document in self.documents for sentence in document)

    def fingerprint(self) -> str:
        """A hash of the text: a different text has a different hash."""
        digest = hashlib.sha256()
        for document in self.documents:
            for sentence in document:
                digest.update(f"{sentence}\n".encode("utf-8", "surrogatepass"))
            digest.update(b"\n")
        return digest.hexdigest()[:16]

    def split(self, held_out: float, seed: int) -> tuple[Corpus, Corpus]:
        """Two corpora, the second with the share `held_out` of the documents (at least two), drawn by `seed`.

        Raises ValueError for a share outside 0 … 1, CorpusError if fewer than two documents would be left.
        """
        if not 0 <= held_out < 1:
            raise ValueError(f"held_out must be at least 0 and below 1, got {held_out}")
        count = max(2, round(held_out * len(self.documents)))
        if len(self.documents) - count < 2:
            raise CorpusError(
                f"{self.source}: with {count} of {len(self.documents)} documents held out, "
                "fewer than two are left to train on"
            )
        chosen = set(np.random.default_rng([seed, 1]).permutation(len(self.documents))[:count].tolist())
        parts: tuple[list[Document], list[Document]] = ([], [])
        for number, document in enumerate(self.documents):
            parts[number in chosen].append(document)
        return Corpus(parts[0], self.source, self.notes), Corpus(parts[1], self.source)


def read_corpus(source: str | Path, progress: Progress | None = None) -> Corpus:
    """The corpus called `python-docs`, or the text in a folder or a file.

    A folder: each `.txt`, `.md` or `.rst` file in it, at any depth, is a document. A file: blank lines
    separate documents and each line is a sentence, the format of the released BERT; running text, without
    such lines, and paragraphs of one line are cut into sentences and then into documents, and a note says so.
    In a folder, names that begin with a full stop are skipped. `progress` is called with the amount read and
    the total: files of a folder or of `python-docs`, characters of a running text. If a package whose text
    `python-docs` has elsewhere is not installed, a note names it.

    Raises CorpusError for a path that does not exist, a file or a folder that cannot be read, an empty or
    non-UTF-8 file (named, with the offset), a folder without text, text for fewer than two documents, or more
    text than fits in memory.
    """
    if str(source) == "python-docs":
        return Corpus(python_docs(progress), "python-docs", [_smaller(name) for name in absent_packages()])
    path = Path(source)
    mode = _mode(path) if source != "" else 0  # Path("") would be the working directory
    try:
        if stat.S_ISDIR(mode):
            return _read_folder(path, progress)
        if stat.S_ISREG(mode):
            return _read_file(path, progress)
    except MemoryError:
        raise CorpusError(f"{source}: this text does not fit in the memory that is left") from None
    raise CorpusError(
        f"there is no corpus {str(source)!r}: expected python-docs, a folder, or a file of text"
    )


def _smaller(package: str) -> str:
    return (
        f"python-docs has fewer documents here than elsewhere, because {package} is not installed: "
        f"pip install {package}"
    )


# --- The reader's own text -------------------------------------------------------------------------------


def _mode(path: Path) -> int:
    """What kind of thing a path is (see `stat`), 0 if it is not there, or a link to itself."""
    try:
        return path.stat().st_mode
    except ValueError:  # a NUL in the name
        return 0
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return 0
        raise _unreadable(path, error) from None


def _unreadable(path: object, error: OSError) -> CorpusError:
    return CorpusError(f"{path} cannot be read: {error.strerror or error}")


def read_text(path: Path) -> str:
    """What a text file holds, without a byte order mark. Raises CorpusError for what is not UTF-8 or text."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    for beginning, what in BINARY.items():
        if content.startswith(beginning):
            raise CorpusError(f"{path} is {what}, and no text: export its text, in UTF-8")
    utf_16 = _looks_like_utf_16(content)
    advice = "convert it, for example with iconv"
    if utf_16:
        advice = f"it looks like UTF-16: {advice} -f UTF-16 -t UTF-8"
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}; {advice}"
        ) from None
    if utf_16:
        raise CorpusError(f"{path} has a NUL in every other place; {advice}")
    return text.removeprefix("\ufeff")  # a byte order mark


def _looks_like_utf_16(content: bytes) -> bool:
    """Whether there is its byte order mark, or NULs that stand at even offsets alone, or at odd ones alone.

    Half of each space and of each ASCII letter is a NUL there. In other alphabets, spaces and punctuation are
    still about one character in six. Such bytes may be UTF-8 as well, and a few NULs in UTF-8 do no harm.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    beginning = content[:100_000]
    fewer, more = sorted([beginning[::2].count(0), beginning[1::2].count(0)])
    return more > max(1, 0.05 * len(beginning)) and more > 10 * fewer


def _read_folder(folder: Path, progress: Progress | None) -> Corpus:
    paths = _text_files(folder)
    documents = []
    for number, path in enumerate(paths, start=1):
        document = [sentence for block in _blocks(read_text(path)) for sentence in _sentences(block)]
        if document:
            documents.append(document)
        if progress is not None:
            progress(number, len(paths))
    if not documents:
        raise CorpusError(f"{folder}: found no text in files ending in {', '.join(TEXT_SUFFIXES)}")
    return Corpus(documents, str(folder))


def _text_files(folder: Path) -> list[Path]:
    """The files of text at any depth, in order, without hidden ones; `Path.rglob` leaves out what it cannot open."""

    def refuse(error: OSError) -> None:
        raise _unreadable(error.filename, error) from None

    paths = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [
            Path(parent, name)
            for name in names
            if not name.startswith(".") and Path(name).suffix.lower() in TEXT_SUFFIXES
        ]
    # By their parts: paths of Windows compare without case, which would be another order and another fingerprint.
    return sorted((path for path in paths if stat.S_ISREG(_mode(path))), key=lambda path: path.parts)


def _read_file(path: Path, progress: Progress | None) -> Corpus:
    blocks = _blocks(read_text(path))
    if not blocks:
        raise CorpusError(f"{path} is empty")
    if len(blocks) > 1 and not _is_wrapped(blocks):
        paragraphs = [list(_sentences(block)) for block in blocks if len(block) == 1]
        if len(paragraphs) < len(blocks) or all(len(sentences) == 1 for sentences in paragraphs):
            return Corpus(blocks, str(path))
        note = f"in {path} each paragraph is one line: each is a document, cut into sentences"
        return Corpus(paragraphs, str(path), [note])
    total = sum(len(line) + 1 for block in blocks for line in block)
    sentences, done = [], 0
    for block in blocks:
        for sentence in _sentences(block):
            sentences.append(sentence)
            done += len(sentence) + 1
            if progress is not None and len(sentences) % REPORT_EVERY == 0:
                progress(min(done, total), total)
    if progress is not None:
        progress(total, total)
    documents = [sentences[i : i + CUT_EVERY] for i in range(0, len(sentences), CUT_EVERY)]
    if len(documents) < 2:
        raise CorpusError(
            f"{path}: next-sentence prediction needs at least two documents, found 1, of running text with "
            f"{len(sentences)} sentence{'s' if len(sentences) > 1 else ''}. {RULE}, and after {CUT_EVERY} of them a "
            "document. For other text, such as English without capitals, give one sentence a line and a blank line "
            "between documents, or a folder of files"
        )
    note = (
        f"{path} is running text, without blank lines between documents of one sentence a line: "
        f"cut into {len(sentences)} sentences, and after every {CUT_EVERY} into {len(documents)} documents"
    )
    return Corpus(documents, str(path), [note])


def _blocks(text: str) -> list[list[str]]:
    """The lines of a text, in groups parted by blank lines."""
    groups: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            groups[-1].append(line.strip())
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]


def _ends_like_a_sentence(line: str) -> bool:
    return line.rstrip(CLOSING + CLOSING_WITHOUT_SPACE).endswith(tuple(".!?:;：；．" + STOPS))


def _is_wrapped(blocks: list[list[str]]) -> bool:
    """Whether lines break inside sentences: blocks end like sentences, and most lines inside them do not."""
    last = [_ends_like_a_sentence(block[-1]) for block in blocks]
    inside = [_ends_like_a_sentence(line) for block in blocks for line in block[:-1]]
    return bool(inside) and 2 * sum(last) >= len(last) and 2 * sum(inside) < len(inside)


def _sentences(block: list[str]) -> Iterable[str]:
    """The sentences of a group of lines: its lines, if each ends like one, else cut by rule."""
    if len(block) > 1 and all(map(_ends_like_a_sentence, block)):
        return block
    return iter_sentences(" ".join(block))
