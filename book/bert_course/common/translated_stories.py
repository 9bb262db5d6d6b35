"""Stories with their translations, as `attention_decoder` and `decoding` give them to the models that translate."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

import numpy as np

from bert_course.common.figures import Drawing
from bert_course.common.palette import colour
from minigrad.bert.config import IGNORED
from minigrad.seq2seq import pad_pairs
from minigrad.stories.grammar import Story
from minigrad.stories.language import MARKS, SovianWord, translate
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


# --- Words with what they mean ----------------------------------------------------------------------------

_MARKS = {MARKS[role]: f"({role})" for role in ("subject", "object")}  # they translate no word
_GLOSSED = f"""
.course-glossed {{margin: 0.5rem 0 0.9rem; line-height: 1.25}}
.course-glossed p {{margin: 0 0 0.15rem}}
.course-glossed .word {{display: inline-block; margin: 0 0.55em 0.35em 0; text-align: center; vertical-align: top}}
.course-glossed .word i {{display: block; font-size: 0.78em; color: {colour("token")}}}
.course-glossed .wrong b {{color: {colour("wrong")}; text-decoration: underline wavy; text-underline-offset: 0.2em}}
.course-glossed .word b {{font-weight: normal}}
"""


def dictionary(texts: Iterable[Text]) -> dict[str, str]:
    """For each word of Sovian in these texts the English word that it translates, or two of them, or what it marks."""
    found: dict[str, Counter[str]] = {}
    for text in texts:
        for word in text.words:
            english = text.source[word.aligned[0]] if word.aligned else _MARKS[word.text]
            found.setdefault(word.text, Counter())[english] += 1
    often = {word: [one for one, n in of.most_common(2) if n > of.total() / 4] for word, of in found.items()}
    return {word: "/".join(english) for word, english in often.items()}


def wrong_words(written: Sequence[str], right: Sequence[str]) -> list[tuple[str, bool]]:
    """The words that were written, each with whether it is wrong; for a word that is missing there is a wrong `…`."""
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, right, written, autojunk=False).get_opcodes():
        found += [(word, kind != "equal") for word in written[c:d]] or [("…", True)] * (b - a)
    return found


def glossed(texts: Mapping[str, Sequence[str]], right: Sequence[str], meaning: Mapping[str, str]) -> Drawing:
    """Translations under their names, each word over its meaning, and marked where it differs from the right one."""
    body, lines = [], []
    for name, written in texts.items():
        words = wrong_words(written, right)
        count = sum(wrong for _, wrong in words)
        title = f"{name}: {count} wrong" if count else name
        boxes = " ".join(
            f'<span class="word{" wrong" * wrong}"><b>{word}</b><i>{meaning.get(word, "")}</i></span>'
            for word, wrong in words
        )
        body.append(f'<div class="course-glossed"><p><strong>{title}</strong></p>{boxes}</div>')
        plain = " ".join(f"[{word}]" if wrong else word for word, wrong in words)
        lines.append(textwrap.fill(f"{title}. {plain}", 78, subsequent_indent="    "))
    return Drawing("\n".join(body), _GLOSSED, "\n".join(lines))
