"""What the best possible model would know: exact probabilities of the grammar's stories, and the loss they leave.

A text is checked against the grammar: the functions that tell a story run again with a teller that tries
every decision, and gives up a way as soon as it says another word than the text. The probabilities of the
ways that are left add up to the probability of the text. A hidden word is one more decision.

After each sentence, ways that know the same facts are added up, so a story costs little more than its sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from minigrad.stories.grammar import Choice, Clause, Facts, Sentence, plan
from minigrad.stories.lexicon import Setting
from minigrad.stories.stories import Pair
from minigrad.text.sentences import IS_NEXT

HIDDEN = None  # in a text, in place of the word
SENTENCES_REMEMBERED = 200_000
Text = Sequence[str | None]  # of one sentence
Tell = Callable[[Sentence], Clause]
Ways = dict[tuple[Facts, str | None], Any]  # what is known then, the word that was hidden -> probability


class GrammarError(ValueError):
    """A text that the grammar cannot have written."""


class _OtherWord(Exception):
    """This way of telling does not give the text."""


class OneWay:
    """A teller that goes one way through all decisions; a subclass has `say`.

    path: which option to take at each decision, so far; a decision that is not in it takes the first, and is
    added. number: what probabilities are made of.
    """

    def __init__(self, path: list[int], number: Callable[[int], Any] = float) -> None:
        self.path, self.number = path, number
        self.options: list[int] = []  # how many there were, at each decision
        self.probability = number(1)

    def choose(self, weights: Mapping[Choice, int]) -> Choice:
        """The option that the path gives."""
        items = [(item, weight) for item, weight in weights.items() if weight]
        if len(items) == 1:
            return items[0][0]
        step = len(self.options)
        if step == len(self.path):
            self.path.append(0)
        self.options.append(len(items))
        item, weight = items[self.path[step]]
        self.probability *= self.number(weight) / sum(weights.values())
        return item


def each_way(tell: Callable[[list[int]], OneWay]) -> Iterator[OneWay]:
    """Every way through all decisions. tell: tells with a path to follow, and returns its teller."""
    path: list[int] = []
    while True:
        teller = tell(path)
        yield teller
        del path[len(teller.options) :]
        while path and path[-1] + 1 == teller.options[len(path) - 1]:
            path.pop()
        if not path:
            return
        path[-1] += 1


class _Try(OneWay):
    """A teller that holds its words against a text."""

    def __init__(self, text: Text, path: list[int], number: Callable[[int], Any]) -> None:
        super().__init__(path, number)
        self.text, self.words = text, 0
        self.filler: str | None = None
        self.facts: Facts | None = None  # after the sentence, if it is the text

    def say(
        self, weights: Mapping[str, int], tag: str, slot: str, entity: str | None, rival: str | None
    ) -> str:
        """The text's next word, if it is one of these."""
        if self.words == len(self.text):
            raise _OtherWord
        word = self.text[self.words]
        self.words += 1
        if word is HIDDEN:
            self.filler = self.choose(weights)
            return self.filler
        if not weights.get(word):
            raise _OtherWord
        self.probability *= self.number(weights[word]) / sum(weights.values())
        return word


def _ways(
    tell: Tell, facts: Facts, text: Text, setting: Setting, number: Callable[[int], Any]
) -> Iterator[tuple[Facts, str | None, Any]]:
    """All ways to tell this sentence from these facts on: the facts then, the hidden word, the probability."""

    def attempt(path: list[int]) -> _Try:
        teller = _Try(text, path, number)
        sentence = Sentence(teller, facts, setting)
        try:
            tell(sentence)
        except _OtherWord:
            return teller
        if teller.words == len(text):
            teller.facts = sentence.facts
        return teller

    for teller in each_way(attempt):
        assert isinstance(teller, _Try)
        if teller.facts is not None:
            yield teller.facts, teller.filler, teller.probability


class Scorer:
    """Exact probabilities of texts of one setting.

    A text is a list of sentences, a sentence a list of words, in which one may be HIDDEN. number: what probabilities
    are made of, `fractions.Fraction` for exact sums.
    """

    def __init__(self, setting: Setting, number: Callable[[int], Any] = float) -> None:
        self.setting, self.number = setting, number
        self._plan = plan(setting, max(setting.sentences))
        self._remembered: dict[
            tuple[int, Facts, tuple[str | None, ...]], list[tuple[Facts, str | None, Any]]
        ] = {}

    def probability(self, text: Sequence[Text], first: int = 0) -> Any:
        """The probability of sentences from place `first` of a story on, when those before are unknown.

        A hidden word may be any, so its probabilities are added up. That a story has that many sentences is
        taken as given. A text that the grammar cannot write has 0.
        """
        return sum(self.fillings(text, first).values(), start=self.number(0))

    def fillings(self, text: Sequence[Text], first: int = 0) -> dict[str | None, Any]:
        """For each word that may be the hidden one, the probability of the text with it."""
        return self._by_word(self._go_on({(Facts(), None): self.number(1)}, text, first))

    def is_next(self, a: Sequence[Text], b: Sequence[Text]) -> float:
        """The probability that b goes on from a, if b is as often the end of another story."""
        together = self.probability([*a, *b])
        apart = self.probability(a) * self.probability(b, len(a))
        if not together + apart:
            raise GrammarError(f"the grammar writes no such pair: {_shown(a)} | {_shown(b)}")
        return together / (together + apart)

    def hidden_words(self, a: Sequence[Text], b: Sequence[Text]) -> list[dict[str, float]]:
        """For each word of a pair the probabilities of all words in its place, given all others.

        Whether b goes on from a is not given: it is as often the end of another story.
        """
        return [self.hidden_word(a, b, place) for place in range(sum(map(len, (*a, *b))))]

    def hidden_word(self, a: Sequence[Text], b: Sequence[Text], place: int) -> dict[str, float]:
        """The same for one word alone. place: of the word, counted from 0 through both texts.

        Raises IndexError for a place with no word, GrammarError for a pair that the grammar cannot write.
        """
        in_a, text = place < sum(map(len, a)), [list(sentence) for sentence in (*a, *b)]
        if place not in range(count := sum(map(len, text))):
            raise IndexError(f"place must be within 0 … {count - 1}, got {place}")
        for sentence in text:
            if 0 <= place < len(sentence):
                sentence[place] = HIDDEN
            place -= len(sentence)
        if in_a:
            alone, other = self.fillings(text[: len(a)]), self.probability(b, len(a))
        else:
            alone, other = self.fillings(text[len(a) :], len(a)), self.probability(a)
        weights = {word: p * other for word, p in alone.items()}
        for word, p in self.fillings(text).items():
            weights[word] = weights.get(word, self.number(0)) + p
        total = sum(weights.values(), start=self.number(0))
        if not total:
            halves = " | ".join(map(_shown, (text[: len(a)], text[len(a) :])))
            raise GrammarError(f"the grammar writes no such pair: {halves}")
        return {str(word): p / total for word, p in weights.items() if p}

    # --- Sentence by sentence ---

    def _go_on(self, ways: Ways, text: Sequence[Text], first: int) -> Ways:
        for place, sentence in enumerate(text, start=first):
            if place >= len(self._plan):
                raise GrammarError(
                    f"a story has at most {len(self._plan)} sentences, got one more: {_shown([sentence])}"
                )
            found: Ways = defaultdict(lambda: self.number(0))
            for (facts, filler), p in ways.items():
                for then, filled, q in self._sentence(place, facts, tuple(sentence)):
                    found[then, filler if filled is None else filled] += p * q
            ways = found
        return ways

    def _sentence(
        self, place: int, facts: Facts, text: tuple[str | None, ...]
    ) -> list[tuple[Facts, str | None, Any]]:
        """The ways of the sentence at this place of a story, those with one end added up."""
        key = (place, facts, text)
        if key not in self._remembered:
            found: Ways = defaultdict(lambda: self.number(0))
            for then, filler, p in _ways(self._plan[place], facts, text, self.setting, self.number):
                found[then, filler] += p
            if len(self._remembered) >= SENTENCES_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = [(then, filler, p) for (then, filler), p in found.items()]
        return self._remembered[key]

    def _by_word(self, ways: Ways) -> dict[str | None, Any]:
        found: dict[str | None, Any] = defaultdict(lambda: self.number(0))
        for (_, filler), p in ways.items():
            found[filler] += p
        return dict(found)


def _shown(text: Sequence[Text]) -> str:
    return " ".join(word or "[MASK]" for sentence in text for word in sentence)


# --- The floors ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floor:
    """What no model can beat, on average over `count` guesses: nats of loss, share of right best guesses."""

    nats: float
    accuracy: float
    count: int


def _mean(found: Sequence[tuple[float, float]]) -> Floor:
    count = len(found)
    return Floor(sum(nats for nats, _ in found) / count, sum(best for _, best in found) / count, count)


def mlm_floor(pairs: Sequence[Pair], scorer: Scorer) -> dict[str, Floor]:
    """The floors of guessing one hidden word of a pair, all others seen: by slot, and of `all`.

    nats: the mean of -log p of the word that was there, so a model's loss on the same words compares with it word by
    word. accuracy: the mean probability of the likeliest word.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for pair in pairs:
        guesses = scorer.hidden_words(pair.text_a, pair.text_b)
        for word, guess in zip(pair.words, guesses, strict=True):
            value = (-log(guess[word.text]), max(guess.values()))
            found["all"].append(value)
            found[word.slot].append(value)
    return {slot: _mean(values) for slot, values in sorted(found.items())}


def nsp_floor(pairs: Sequence[Pair], scorer: Scorer) -> Floor:
    """The floor of next-sentence prediction on these pairs."""
    found = []
    for pair in pairs:
        p = scorer.is_next(pair.text_a, pair.text_b)
        found.append((-log(p if pair.next_sentence_label == IS_NEXT else 1 - p), max(p, 1 - p)))
    return _mean(found)
