"""Where a sentence ends, in prose.

After `.`, `!` or `?` and the quotes and brackets that close behind it, where white space and then a capital, a digit
or a letter of a script without capitals follow, maybe behind a quote or an opening bracket; not after one of a few
abbreviations (`e.g.`, `Dr.`, …) nor after a single such letter (the initials in `J. R. Firth`), and not after `...`
where the letter has no capital. After `。`, `！`, `？`, `।`, `؟`, `۔` and their like, whatever follows; but not within
the title of a book, `《走吧！》`, nor where the sentence around a quote goes on in hiragana, `「行こう。」と言った`.
Where this rule is wrong, a sentence is cut in two or two are joined, which training survives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ABBREVIATIONS = frozenset(
    """
    e.g. i.e. etc. cf. vs. al. fig. eq. no. vol. pp. sec. ch. mr. mrs. ms. dr. prof. st. jr. sr. inc. ltd. approx.
    resp. dept. est. min. max. ref. refs. eds. ed.
    """.split()  # noqa: SIM905
)

# The full stops, exclamation and question marks that need no white space behind them: of Chinese and Japanese (full and
# half width), Hindi, Arabic, Urdu, Armenian, Amharic, Khmer and Burmese.
STOPS = "。！？｡‼⁇⁈⁉।॥؟۔։።។။"
_OPENING = "\"'“‘„‚«»([¿¡"
CLOSING = "\"'”’“«»)]"
CLOSING_WITHOUT_SPACE = "\"'”’»)]」』｣）］】〕｝…"  # here “ opens the next sentence
RULE = (
    "A sentence ends at . ! or ? before a capital letter, a digit or a letter of a script without capitals, "
    "and at 。 ！ ？ । ؟ and their like"
)

# Each of these reads a text once: a row of stops is taken whole and from its first one on (no stop before it),
# and what was taken is not given back (`++`, `*+`). Otherwise a long row would be tried from each of its places.
_SPACES = re.compile(r"\s(?:(?<! )|\s)\s*")  # white space that is not one plain space
_OPEN, _CLOSE, _CLOSE_2 = map(re.escape, (_OPENING, CLOSING, CLOSING_WITHOUT_SPACE))
_END = re.compile(
    rf"[.!?](?<![.!?].)[.!?]*+[{_CLOSE}]*+(?= [{_OPEN}]*+(\w))"
    rf"|(?<=[぀-鿿])(?:[!?]++|\.(?![.!?]))[{_CLOSE_2}]*+(?=[「『“（]?[぀-鿿])"  # 中文.中文
    rf"|(?<![{STOPS}．.!?])[.!?]*+(?:[{STOPS}]|(?<!\d)．)[{STOPS}．.!?]*+"
    rf"(?:[{_CLOSE_2}]++(?![ぁ-ゖ》〉])|(?![{_CLOSE_2}》〉]))"
)
_DOTS = re.compile(rf"\.\.[{_CLOSE}]*$")
_INITIAL = re.compile(r"(?:^|[\s.(])(\w)\.$")


def split_sentences(text: str) -> list[str]:
    """The sentences of a running text, with single white space."""
    return list(iter_sentences(text))


def iter_sentences(text: str) -> Iterator[str]:
    """What `split_sentences` gives, one after another: the first ones of a long text come at once."""
    text = _SPACES.sub(" ", text).strip()
    start = 0
    for end in _END.finditer(text):
        if end[1] is None or _ends_here(text, start, end.end(), end[1]):
            yield text[start : end.end()].strip()
            start = end.end()
    if start < len(text):
        yield text[start:].strip()


def _ends_here(text: str, start: int, end: int, next_character: str) -> bool:
    """Whether the sentence that began at `start` ends at `end`, by what stands on both sides of that place.

    Looks at the last word alone: all of the sentence, at every full stop that does not end it, would take a time
    that grows with its square.
    """
    if not (next_character.isdigit() or _is_capital(next_character)):
        return False
    if _has_no_capital(next_character) and _DOTS.search(text[max(start, end - 5) : end]):
        return False
    initial = _INITIAL.search(text[max(start, end - 3) : end])
    if initial and _is_capital(initial[1]):
        return False
    last_word = text[max(start, text.rfind(" ", start, end) + 1) : end]
    return last_word.lstrip(_OPENING).lower() not in _ABBREVIATIONS


def _is_capital(character: str) -> bool:
    """Whether it is a capital letter, or one of a script that has none."""
    return character.isalpha() and not character.islower()


def _has_no_capital(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()


# --- Pairs of them ---------------------------------------------------------------------------------------

IS_NEXT, NOT_NEXT = 0, 1  # as in the released code


@dataclass(frozen=True)
class SentencePair:
    """Two runs of ids, and whether B follows A (0) or is from another document (1)."""

    a: list[int]
    b: list[int]
    next_sentence_label: int
