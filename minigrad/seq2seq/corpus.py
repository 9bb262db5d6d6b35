"""Pairs of texts, one the translation of the other, from a user's file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from minigrad.messages import quoted
from minigrad.stories.translation import TranslationPair
from minigrad.text.corpus import read_text

HEADER = {  # what columns are called
    *("source", "target", "src", "tgt", "trg", "input", "output", "text", "translation"),
    *("english", "german", "french", "spanish", "italian", "dutch", "portuguese"),
    *("en", "de", "fr", "es", "it", "nl", "pt"),
}


class TranslationError(ValueError):
    """A file of translations from which nothing can be learned."""


def read_pairs(path: str | Path) -> list[TranslationPair]:
    """The pairs in a file of two columns, source TAB target, a pair per line, in UTF-8 and without a header.

    Empty lines are left out. Raises TranslationError naming file, row and column; CorpusError for a file that is not
    UTF-8.
    """
    path = Path(path)
    if not path.is_file():
        problem = "is no file (but a folder, a pipe or a device)" if path.exists() else "is not there"
        raise TranslationError(f"{path} {problem}")
    pairs: list[TranslationPair] = []
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if text.strip(" \r"):
            pairs.append(_pair_in(text.removesuffix("\r"), f"{path}, row {len(pairs) + 1} (line {line})"))
    if not pairs:
        raise TranslationError(f"{path} has no rows: expected source TAB target in each line")
    return pairs


def _pair_in(text: str, where: str) -> TranslationPair:
    """The pair in a line. Raises TranslationError."""
    cells = [cell.strip() for cell in text.split("\t")]
    if len(cells) != 2:
        got = "one, without a TAB" if len(cells) == 1 else str(len(cells))
        hint = "; to keep the first two columns of a file: cut -f1,2 FILE" if len(cells) > 2 else ""
        raise TranslationError(
            f"{where}: expected two columns, source TAB target, got {got}: {quoted(text, 60)}{hint}"
        )
    for name, cell in zip(("source", "target"), cells, strict=True):
        if not cell:
            raise TranslationError(f"{where}, column {name!r}: expected a text, got an empty cell")
    source, target = cells
    return TranslationPair(source, target)


def oddities(path: Path, pairs: Sequence[TranslationPair]) -> list[str]:
    """A line for each thing in a file's pairs that was perhaps not meant to be text."""
    notes = []
    first = pairs[0]
    if all(side.strip('"').casefold() in HEADER for side in (first.source, first.target)):
        notes.append(
            f"row 1 of {path}, {quoted(first.source)} and {quoted(first.target)}, looks like a header: it is read as "
            "a pair"
        )
    in_quotes = sum(all(re.fullmatch('".*"', side) for side in (one.source, one.target)) for one in pairs)
    if 2 * in_quotes > len(pairs):
        notes.append(
            f'{in_quotes:,} rows of {path} have their texts in "quotes", which are read as a part of them'
        )
    return notes
