"""Pairs of texts, one the translation of the other: of stories, whose truth is known, or from a user's file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from minigrad.bert.corpus import read_text
from minigrad.bert.grammar import Story
from minigrad.bert.lexicon import Setting
from minigrad.bert.reading import quoted
from minigrad.bert.stories import tell_stories
from minigrad.bert.tokenizer import WordPieceTokenizer
from minigrad.bert.wordpiece import SPECIAL_TOKENS
from minigrad.seq2seq.language import english_words, sovian_words, translate

__all__ = [
    "Places",
    "TranslationError",
    "TranslationPair",
    "alignment_score",
    "diagonal",
    "draw_translations",
    "even_rows",
    "oddities",
    "pair_of",
    "read_pairs",
    "translation_tokenizer",
]

HEADER = {  # what columns are called
    *("source", "target", "src", "tgt", "trg", "input", "output", "text", "translation"),
    *("english", "german", "french", "spanish", "italian", "dutch", "portuguese"),
    *("en", "de", "fr", "es", "it", "nl", "pt"),
}
Places = tuple[tuple[int, ...], ...]  # for each word of the target, places of words of the source


class TranslationError(ValueError):
    """A file of translations from which nothing can be learned."""


@dataclass(frozen=True)
class TranslationPair:
    """A text and its translation, words parted by spaces; of a story with what is true of it.

    alignment: for each word of the target the place of the source's word that it translates, or none. agreement: the
    places of other words of the source that have a say in its ending. See `language.SovianWord`.
    """

    source: str
    target: str
    alignment: Places | None = None
    agreement: Places | None = None


# --- Stories ---------------------------------------------------------------------------------------------


def draw_translations(setting: Setting, count: int, seed: int) -> list[TranslationPair]:
    """Whole stories and their translations, none told before by another seed; the same for the same seed everywhere.

    Raises ValueError for a seed or a count below 0.
    """
    return [pair_of(story) for story in tell_stories(setting, count, seed)]


def pair_of(story: Story) -> TranslationPair:
    """A story and its translation. Raises ValueError for an end of a story, as `translate` does."""
    translation = translate(story)
    return TranslationPair(
        source=" ".join(story.texts()),
        target=" ".join(translation.texts()),
        alignment=tuple(word.aligned for word in translation.words),
        agreement=tuple(tuple(sorted({*chain(*word.needs)})) for word in translation.words),
    )


def translation_tokenizer(setting: Setting) -> WordPieceTokenizer:
    """A tokenizer whose pieces are the special tokens and each word of both languages, whole.

    Names and the full stop are words of both.
    """
    return WordPieceTokenizer([*SPECIAL_TOKENS, *english_words(setting), *sovian_words(setting)])


# --- A user's file ---------------------------------------------------------------------------------------


def read_pairs(path: str | Path) -> list[TranslationPair]:
    """The pairs in a file of two columns, source TAB target, a pair a line, in UTF-8 and without a header.

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


# --- Attention against the truth -------------------------------------------------------------------------


def alignment_score(weights: np.ndarray, gold: Places) -> float:
    """The share of target words whose highest-weighted source word is a gold one.

    weights: (T, S), a row for each word of the target; more columns than the source has words (an end token) are
    allowed, and are wrong. gold: an alignment or an agreement; words without a gold one are left out. Of equal
    weights each counts in part, so an even row gets what a draw would get. Raises ValueError for another number of
    rows, for too few columns, for weights that are not finite, and if no word has a gold one.
    """
    weights = np.asarray(weights)
    columns = 1 + max((place for places in gold for place in places), default=0)
    if weights.ndim != 2 or weights.shape[0] != len(gold) or weights.shape[1] < columns:
        raise ValueError(
            f"weights must be ({len(gold)}, {columns} or more), a row for each word of the target and a column for "
            f"each of the source, got {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise ValueError("weights must be finite numbers")
    found = []
    for row, places in zip(weights, gold, strict=True):
        if places:
            highest = row == row.max()
            found.append(highest[list(places)].sum() / highest.sum())
    if not found:
        raise ValueError("no word of the target has a gold word in the source")
    return float(np.mean(found))


def even_rows(target: int, source: int) -> np.ndarray:
    """The weights of attention that looks nowhere: (T, S), each 1/S."""
    return np.full((target, source), 1 / source)


def diagonal(target: int, source: int) -> np.ndarray:
    """The weights of attention that goes through the source at one pace: (T, S), a 1 in each row."""
    weights = np.zeros((target, source))
    rows = np.arange(target)
    weights[rows, rows * source // target] = 1
    return weights
