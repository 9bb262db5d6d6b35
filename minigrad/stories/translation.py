"""Stories and their translations, of which it is known which word translates which."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from minigrad.stories.grammar import Story
from minigrad.stories.language import english_words, sovian_words, translate
from minigrad.stories.lexicon import Setting
from minigrad.stories.stories import tell_stories
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

Places = tuple[tuple[int, ...], ...]  # for each word of the target, places of words of the source


@dataclass(frozen=True)
class TranslationPair:
    """A text and its translation, words separated by spaces; for a story, with what is true of it.

    alignment: for each word of the target the place of the source's word that it translates, or none. agreement: the
    places of other words of the source that help to decide its ending. See `language.SovianWord`.
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


# --- Attention against the truth -------------------------------------------------------------------------


def alignment_score(weights: np.ndarray, gold: Places) -> float:
    """The share of target words whose highest-weighted source word is a gold one.

    weights: (T, S), a row for each word of the target; more columns than the source has words (an end token) are
    allowed, and are wrong. gold: an alignment or an agreement; words without a gold one are left out. Of
    equal weights each counts in part, so a uniform row gets what a random choice would get. Raises ValueError
    for another number of rows, for too few columns, for weights that are not finite, and if no word has a
    gold one.
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
