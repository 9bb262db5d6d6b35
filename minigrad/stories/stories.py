"""The grammar's stories as something to train on: vocabulary, gold labels, and pairs of their halves.

The first two sentences of a story are A. B is its other half, or, as often, the other half of another story: cut in
the same place, so that nothing but the words tells the two cases apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from minigrad.stories.grammar import Story, Word, tell_story
from minigrad.stories.lexicon import FULL, SETTINGS, Setting
from minigrad.text.sentences import IS_NEXT, NOT_NEXT, SentencePair
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

STORIES = {"stories": SETTINGS["light"], "varied-stories": SETTINGS["varied"]}  # by the name of the corpus
HALF = 2  # sentences in A
STORIES_AN_EPOCH = 3200


def tell_stories(setting: Setting, count: int, seed: int) -> Iterator[Story]:
    """Stories, none told before by another seed. Raises ValueError for a seed or a count below 0."""
    return (tell_story(setting, number) for number in _numbers(count, seed))


def _numbers(count: int, seed: int) -> range:
    if seed < 0 or count < 0:
        raise ValueError(f"seed and count must be at least 0, got {seed} and {count}")
    return range(seed * 2**40, seed * 2**40 + count)


def story_tokenizer(setting: Setting) -> WordPieceTokenizer:
    """A tokenizer whose pieces are the special tokens and each word of the setting, whole."""
    return WordPieceTokenizer([*SPECIAL_TOKENS, *setting.words()])


# --- Gold labels -----------------------------------------------------------------------------------------
# Places count the words of the whole story from 0.


def heads(story: Story) -> list[int]:
    """For each word the place of its head; a sentence's verb is its own head."""
    found: list[int] = []
    for sentence, tree in zip(story.sentences, story.trees, strict=True):
        found += [len(found) + head for head in tree.heads(len(sentence))]
    return found


def antecedents(story: Story) -> dict[int, int]:
    """For each pronoun (also who and which) the last place before it where a name or noun means the same."""
    found, last = {}, {}
    for place, word in enumerate(_words(story)):
        if word.tag in ("NAME", "NOUN"):
            last[word.entity] = place
        elif word.tag == "PRON" and word.entity in last:
            found[place] = last[word.entity]
    return found


@dataclass(frozen=True)
class Question:
    """A question about a story; its answer is in the story from place `start` up to, not including, `end`."""

    text: str
    start: int
    end: int


def questions(story: Story) -> list[Question]:
    """Where the two are, how many things there are, and who has them at the end, as far as the story says it."""
    words = _words(story)
    facts, found = story.facts, []
    thing = f"{facts.noun}s" if facts.many else facts.noun
    for place, word in enumerate(words):
        if word.entity == "place":
            found.append(Question(f"where is {facts.names[0]} ?", place - 1, place + 1))
        if word.tag == "NUM":
            found.append(Question(f"how many {facts.noun}s ?", place, place + 1))
    assert facts.holder is not None  # since the first sentence with a verb of having
    holder = facts.names[facts.holder]
    places = [place for place, word in enumerate(words) if word.text == holder]
    found.append(Question(f"who has the {thing} ?", places[-1], places[-1] + 1))
    return found


def labels(story: Story) -> dict[str, int]:
    """What a sentence classifier can learn: kind (0 to 5) of the thing, whether a man has it last, whether it moved."""
    facts = story.facts
    assert facts.kind is not None
    return {
        "kind": sorted(FULL.kinds).index(facts.kind),
        "man_has_it": int(facts.holder == facts.man),
        "moved": int(len({holder for holder in story.holders if holder is not None}) > 1),
    }


def _words(story: Story) -> list[Word]:
    return [word for sentence in story.sentences for word in sentence]


# --- Pairs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two halves of stories, and whether they are of one story (0) or of two (1)."""

    a: tuple[tuple[Word, ...], ...]
    b: tuple[tuple[Word, ...], ...]
    next_sentence_label: int

    @property
    def words(self) -> list[Word]:
        """The words of both."""
        return [word for half in (self.a, self.b) for sentence in half for word in sentence]

    @property
    def text_a(self) -> list[list[str]]:
        """A as lists of words."""
        return [[word.text for word in sentence] for sentence in self.a]

    @property
    def text_b(self) -> list[list[str]]:
        """B as lists of words."""
        return [[word.text for word in sentence] for sentence in self.b]


def draw_pairs(setting: Setting, count: int, seed: int) -> list[Pair]:
    """Pairs, IsNext and NotNext in turn; the B of each NotNext is the end of a story of its own.

    Raises ValueError for a setting whose stories are not all longer than A.
    """
    if min(setting.sentences) <= HALF:
        raise ValueError(
            f"a pair needs stories of more than {HALF} sentences; those of {setting.name!r} have {setting.sentences}"
        )
    pairs = []
    for number in _numbers(count, seed):
        story = tell_story(setting, number)
        if number % 2:
            end = tell_story(setting, number + 2**39, first=HALF).sentences
            pairs.append(Pair(story.sentences[:HALF], end, NOT_NEXT))
        else:
            pairs.append(Pair(story.sentences[:HALF], story.sentences[HALF:], IS_NEXT))
    return pairs


class Stories:
    """Where `PretrainingData` gets its pairs from: fresh stories in each epoch, which has STORIES_AN_EPOCH pairs."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.tokenizer = setting, story_tokenizer(setting)
        self._id = {word: number for number, word in enumerate(self.tokenizer.vocab)}

    def pairs(self, max_length: int, rng: np.random.Generator) -> list[SentencePair]:
        """The pairs of an epoch. Raises ValueError if one has more than `max_length` tokens."""
        seed = int(rng.integers(1, 2**40))
        return [self.encode(pair, max_length) for pair in draw_pairs(self.setting, STORIES_AN_EPOCH, seed)]

    def encode(self, pair: Pair, max_length: int) -> SentencePair:
        """A pair as ids."""
        a, b = self._ids(pair.a), self._ids(pair.b)
        if len(a) + len(b) + 3 > max_length:
            raise ValueError(
                f"a pair of {self.setting.name!r} stories has {len(a) + len(b) + 3} tokens, max_length is {max_length}"
            )
        return SentencePair(a, b, pair.next_sentence_label)

    def fingerprint(self) -> str:
        """A hash of some stories: another setting, or other words, have another hash."""
        texts = [text for story in tell_stories(self.setting, 50, seed=0) for text in story.texts()]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

    def id(self, word: str) -> int:
        """The id of a word."""
        return self._id[word]

    def tokens(self) -> Iterator[int]:
        """Ids of many words, to count how often each occurs."""
        for story in tell_stories(self.setting, STORIES_AN_EPOCH, seed=0):
            yield from self._ids(story.sentences)

    def _ids(self, sentences: Sequence[Sequence[Word]]) -> list[int]:
        return [self._id[word.text] for sentence in sentences for word in sentence]
