"""What the page "Ask the model" asks first: texts with a gap for each stored model, and what is known of the gap.

The model of stories can be checked: its texts come from a grammar, which gives the exact probability of every word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minigrad.stories.floors import Scorer
from minigrad.stories.lexicon import SETTINGS
from minigrad.text.wordpiece import MASK, SEP


@dataclass(frozen=True)
class Example:
    """A text with one gap, a word that may stand in it, and a name: by default the text with a line for the gap.

    cover: whether what is right of the gap is covered.
    """

    text: str
    word: str
    name: str = ""
    cover: bool = False

    @property
    def says(self) -> str:
        """Its name."""
        return self.name or self.text.replace(MASK, "_")


@dataclass(frozen=True)
class Pair:
    """Two examples that show something beside each other."""

    title: str
    one: Example
    other: Example


@dataclass(frozen=True)
class Shown:
    """A stored model as the page shows it.

    title: in the choice of models. text: what it was trained on. checked: whether the examples are stories of the
    grammar, which knows the best possible answers.
    """

    title: str
    text: str
    pairs: Sequence[Pair]
    checked: bool = False

    @property
    def examples(self) -> list[Example]:
        """Those of all pairs."""
        return [example for pair in self.pairs for example in (pair.one, pair.other)]


_SOCKET = "Open the [MASK] and wait for a message."
DOCUMENTATION = (
    Pair(
        "One letter changes everything",
        Example("Raise an [MASK] if the file does not exist.", "exception", "Raise an _"),
        Example("Raise a [MASK] if the file does not exist.", "valueerror", "Raise a _"),
    ),
    Pair(
        "It reads both sides",
        Example(_SOCKET, "socket", "Open the _ and wait"),
        Example(_SOCKET, "file", "its right side covered", cover=True),
    ),
    Pair(
        "It knows grammar, not the world",
        Example("Boil the [MASK] for ten minutes.", "egg"),
        Example("The capital of France is [MASK].", "paris"),
    ),
)

_A = "mary is in the attic with john ."
_ABOUT_BOOKS = f"{_A} he has four books . [SEP]"

# Two halves of a story, or the first one alone.
STORIES = (
    Pair(
        "What follows settles it",
        Example(f"{_A} [MASK] has four books .", "he", "he or she?"),
        Example(
            f"{_A} [MASK] has four books . [SEP] john gives them to mary . she reads the books .",
            "he",
            "he or she, with what follows",
        ),
    ),
    Pair(
        "It follows who has the books",
        Example(
            f"{_ABOUT_BOOKS} john gives them to mary . the books of [MASK] are secret .", "mary", "given away"
        ),
        Example(f"{_ABOUT_BOOKS} john keeps them . the books of [MASK] are secret .", "john", "kept"),
    ),
    Pair(
        "It knows its words",
        Example(f"{_ABOUT_BOOKS} john gives [MASK] to mary . she reads the books .", "them", "it or them?"),
        Example(
            f"{_ABOUT_BOOKS} john gives them to mary . she [MASK] the books .",
            "reads",
            "what one does with books",
        ),
    ),
)

MODELS = {
    "start": Shown("Documentation", "the documentation that comes with Python", DOCUMENTATION),
    "stories": Shown(
        "Stories", "stories that a grammar draws, new ones for each epoch", STORIES, checked=True
    ),
}


def best_possible(example: Example) -> dict[str, float]:
    """For each word that may stand in the gap of a story its exact probability, the likeliest first.

    The text is a half of a story, or two with [SEP] between them. All other words are given, but not whether the
    halves are of one story. Raises GrammarError for a text that is no story, ValueError if it has not one gap.
    """
    if example.text.count(MASK) != 1:
        raise ValueError(f"expected a text with one {MASK}, got {example.text!r}")
    halves = example.text.split(SEP)
    place = " ".join(halves).split().index(MASK)
    a, b = (
        sentences_of(half.replace(MASK, example.word))
        for half in (halves if len(halves) == 2 else (*halves, ""))
    )
    found = Scorer(SETTINGS["light"]).hidden_word(a, b, place)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def sentences_of(text: str) -> list[list[str]]:
    """The sentences of a text, as lists of words that end with the full stop."""
    sentences: list[list[str]] = [[]]
    for word in text.split():
        sentences[-1].append(word)
        if word == ".":
            sentences.append([])
    return [sentence for sentence in sentences if sentence]
