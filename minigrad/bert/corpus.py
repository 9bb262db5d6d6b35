"""Texts to train on: the Python documentation already on this disk, a folder, or a file.

A corpus is a list of documents, a document a list of sentences. Next-sentence prediction needs both borders.

How text is cut into sentences (`split_sentences`): after `.`, `!` or `?` and the quotes and brackets that
close behind it, where white space and then a capital or a digit follow, maybe behind a quote or an opening
bracket; not after one of a few abbreviations (`e.g.`, `Dr.`, …) nor after a single capital letter (the initials
in `J. R. Firth`). It is a rule for English prose; where it is wrong, a sentence is cut in two or two are joined,
which training survives.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

__all__ = ["Corpus", "CorpusError", "python_docs", "read_corpus", "split_sentences"]

Document = list[str]

TEXT_SUFFIXES = (".txt", ".md", ".rst")
CUT_EVERY = 20  # sentences, where running text is cut into documents


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
        """A hash of the text: another text has another one."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update("\n".join([*document, "", ""]).encode("utf-8", "surrogatepass"))
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


def read_corpus(source: str | Path) -> Corpus:
    """The corpus called `python-docs`, or the text in a folder or a file.

    A folder: each `.txt`, `.md` or `.rst` file in it, at any depth, is a document. A file: blank lines part
    documents and each line is a sentence, the format of the released BERT; running text, without such lines,
    is cut into sentences and then into documents, and a note says so. Raises CorpusError for a path that is
    not there, an empty or non-UTF-8 file (named, with the offset), a folder without text, or text for fewer
    than two documents.
    """
    if str(source) == "python-docs":
        return python_docs()
    path = Path(source)
    if path.is_dir():
        return _read_folder(path)
    if path.is_file():
        return _read_file(path)
    raise CorpusError(
        f"there is no corpus {str(source)!r}: expected python-docs, a folder, or a file of text"
    )


# --- Sentences -------------------------------------------------------------------------------------------

_ABBREVIATIONS = frozenset(
    [
        "e.g.",
        "i.e.",
        "etc.",
        "cf.",
        "vs.",
        "al.",
        "fig.",
        "eq.",
        "no.",
        "vol.",
        "pp.",
        "sec.",
        "ch.",
        "mr.",
        "mrs.",
        "ms.",
        "dr.",
        "prof.",
        "st.",
        "jr.",
        "sr.",
        "inc.",
        "ltd.",
        "approx.",
        "resp.",
        "dept.",
        "est.",
        "min.",
        "max.",
        "ref.",
        "refs.",
        "eds.",
        "ed.",
    ]
)
_END = re.compile(r"""[.!?]+["'”’)\]]*(?=\s+["'“‘(\[]*(\w))""")
_INITIAL = re.compile(r"(?:^|[\s.(])(\w)\.$")


def split_sentences(text: str) -> list[str]:
    """The sentences of a running text, white space made single; the rules are at the head of this file."""
    text = " ".join(text.split())
    sentences, start = [], 0
    for end in _END.finditer(text):
        so_far = text[start : end.end()]
        if _ends_here(so_far, end[1]):
            sentences.append(so_far.strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_here(so_far: str, next_character: str) -> bool:
    """Whether a full stop (or the like) ends the sentence `so_far`, by what stands on both sides of it."""
    last_word = so_far.rsplit(" ", 1)[-1].lstrip("([\"'“‘").lower()
    initial = _INITIAL.search(so_far)
    if last_word in _ABBREVIATIONS or (initial and initial[1].isupper()):
        return False
    return next_character.isupper() or next_character.isdigit()


# --- The reader's own text -------------------------------------------------------------------------------


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return content.decode().removeprefix("\ufeff")  # a byte order mark
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}; "
            "convert it, for example with iconv"
        ) from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}") from None


def _read_folder(folder: Path) -> Corpus:
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in TEXT_SUFFIXES
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    documents = []
    for path in paths:
        document = [sentence for block in _blocks(_read_text(path)) for sentence in _sentences(block)]
        if document:
            documents.append(document)
    if not documents:
        raise CorpusError(f"{folder}: found no text in files ending in {', '.join(TEXT_SUFFIXES)}")
    return Corpus(documents, str(folder))


def _read_file(path: Path) -> Corpus:
    blocks = _blocks(_read_text(path))
    if not blocks:
        raise CorpusError(f"{path} is empty")
    if len(blocks) > 1 and not _is_wrapped(blocks):
        return Corpus(blocks, str(path))
    sentences = [sentence for block in blocks for sentence in _sentences(block)]
    documents = [sentences[i : i + CUT_EVERY] for i in range(0, len(sentences), CUT_EVERY)]
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
    return re.search(r"""[.!?:;]["'”’)\]]*$""", line) is not None


def _is_wrapped(blocks: list[list[str]]) -> bool:
    """Whether lines break inside sentences: blocks end like sentences, and most lines inside them do not."""
    last = [_ends_like_a_sentence(block[-1]) for block in blocks]
    inside = [_ends_like_a_sentence(line) for block in blocks for line in block[:-1]]
    return bool(inside) and 2 * sum(last) >= len(last) and 2 * sum(inside) < len(inside)


def _sentences(block: list[str]) -> list[str]:
    """The sentences of a group of lines: its lines, if each ends like one, else cut by rule."""
    if len(block) > 1 and all(map(_ends_like_a_sentence, block)):
        return block
    return split_sentences(" ".join(block))


# --- The Python documentation on this disk ---------------------------------------------------------------


def python_docs() -> Corpus:
    """The prose in the docstrings of the standard library, NumPy and Matplotlib, and in `help()`'s topics.

    One document for each module and each topic. What is on this disk differs between versions, so no stored
    output may hang on it.
    """
    documents = []
    seen: set[str] = set()
    for path in _python_files():
        document = [s for text in _docstrings(path) for s in _prose(text, seen)]
        if len(document) > 1:
            documents.append(document)
    for _, text in sorted(topics.items()):
        document = list(_prose(text, seen))
        if len(document) > 1:
            documents.append(document)
    return Corpus(documents, "python-docs")


def _python_files() -> Iterator[Path]:
    """Library modules in a fixed order, without tests."""
    roots = [Path(sysconfig.get_path("stdlib"))]
    for package in ("numpy", "matplotlib"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            roots.append(Path(spec.submodule_search_locations[0]))
    skipped = {"test", "tests", "site-packages", "dist-packages", "idle_test", "lib2to3", "__pycache__"}
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if not skipped.intersection(path.relative_to(root).parts):
                yield path


def _docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


_RULE = re.compile(r"\s*(?:[-=~^*#+|]\s*){3,}$")  # an underline, or the border of a table


def _prose(text: str, seen: set[str]) -> Iterator[str]:
    """The sentences of a docstring: no examples, tables or underlined headings, and no paragraph twice."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines: list[str] = []
        rules = 0
        for line in paragraph.splitlines():
            if _RULE.match(line):
                rules += 1
                lines = lines[:-1]  # the heading that it underlines
            else:
                lines.append(line)
        if ">>>" in paragraph or rules > 1:  # an example; two borders make a table
            continue
        joined = " ".join(" ".join(lines).split())
        letters = sum(c.isalpha() or c == " " for c in joined)
        if joined in seen or joined.count(" ") < 2 or letters < 0.6 * len(joined):
            continue
        seen.add(joined)
        yield from split_sentences(joined)


def unigram_entropy(ids: Iterable[int]) -> float:
    """The entropy, in nats, of how often each id occurs: the loss of knowing the frequencies and no more."""
    counts = np.unique(np.fromiter(ids, dtype=np.int64), return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())
