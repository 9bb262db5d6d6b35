"""Stories with their translations, as `attention_decoder` and `decoding` give them to the models that translate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from minigrad.bert.config import IGNORED
from minigrad.seq2seq import pad_pairs
from minigrad.stories.grammar import Story
from minigrad.stories.language import SovianWord, translate
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import tell_stories
from minigrad.tensor import no_grad
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.epochs import Batch

LONG = SETTINGS["long"]  # stories of 1 to 7 sentences
SHORT = replace(LONG, sentences=(1, 2))


@dataclass(frozen=True)
class Text:
    """A story and its translation, as words."""

    story: Story
    source: tuple[str, ...]
    words: tuple[SovianWord, ...]

    @property
    def target(self) -> tuple[str, ...]:
        """The translation's words."""
        return tuple(word.text for word in self.words)

    @property
    def sentences(self) -> int:
        """How many the story has."""
        return len(self.story.sentences)

    def needs(self, t: int) -> tuple[int, ...]:
        """The places of all words of the source that have a say in the ending of word t."""
        return tuple(sorted({*chain(*self.words[t].needs)}))


def read(count: int, seed: int, short: bool = False) -> list[Text]:
    """Fresh stories of 1 to 7 sentences for each seed; with short, of 1 or 2."""
    found = []
    for story in tell_stories(SHORT if short else LONG, count, seed):
        source = tuple(" ".join(story.texts()).split())
        found.append(Text(story, source, tuple(translate(story).words)))
    return found


def words_right(model: Any, batches: Iterable[Batch]) -> list[np.ndarray]:
    """Which words of each translation, and its end token, the model says after the right words before."""
    found: list[np.ndarray] = []
    with no_grad():
        for batch in batches:
            best = model(**batch).logits.numpy().argmax(axis=-1)  # (B, T)
            rows = zip(best, batch["labels"], strict=True)
            found += [row[true != IGNORED] == true[true != IGNORED] for row, true in rows]
    return found


def tokens_of(text: Text, tokenizer: WordPieceTokenizer) -> tuple[list[int], list[int]]:
    """The ids of source and target, a piece a word."""
    return tokenizer.token_ids(" ".join(text.source)), tokenizer.token_ids(" ".join(text.target))


def of_texts(texts: Sequence[Text], tokenizer: WordPieceTokenizer) -> Batch:
    """A batch: input_ids (B, S), attention_mask (B, S), labels (B, T), each text with an end token."""
    pairs = [tokens_of(text, tokenizer) for text in texts]
    return pad_pairs(pairs, tokenizer.sep_token_id, tokenizer.pad_token_id)
