"""What a check says, in the reader's language.

MINIGRAD_LANGUAGE, such as "de", names a catalogue beside this file, de.json: English sentences and what they are there.
Another value is refused.
A {} of a sentence is what a check puts in, which is looked up too. What the catalogue lacks is said in English.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

Pattern = tuple[re.Pattern[str], str]


class UnknownLanguage(ValueError):
    """The environment asks for a language that nothing is said in. Jupyter shows the one line alone."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def asked() -> str:
    """The language that the environment asks for, "en" without one. Raises UnknownLanguage without a catalogue of it."""
    language = os.environ.get("MINIGRAD_LANGUAGE") or "en"
    if language not in (there := languages()):
        raise UnknownLanguage(f"MINIGRAD_LANGUAGE is {language!r}, and there are: {', '.join(there)}")
    return language


@functools.cache
def languages() -> list[str]:
    """The languages that checks speak, in the order of the alphabet."""
    return sorted(["en", *(path.stem for path in Path(__file__).parent.glob("*.json"))])


def catalogue(language: str) -> dict[str, str]:
    """The sentences of a language by those in English; none if there is no catalogue."""
    path = Path(__file__).parent / f"{language}.json"
    return json.loads(path.read_text(encoding="utf-8")) if language.isalpha() and path.exists() else {}


def said(text: str) -> str:
    """A sentence of a check in the language that is asked for."""
    return _sayer(asked())(text)


@functools.cache
def _sayer(language: str) -> Callable[[str], str]:
    return sayer(catalogue(language))


def sayer(sentences: Mapping[str, str]) -> Callable[[str], str]:
    """What gives a sentence of a catalogue for one in English, or the English one."""
    # What begins with more of its own comes first, then what says more: "On all {} cases: {}" before "On {}: {}".
    with_places = sorted(
        (one for one in sentences if "{}" in one), key=lambda one: (-one.index("{}"), -len(one))
    )
    patterns = [_pattern(english, sentences[english]) for english in with_places]

    def say(text: str) -> str:
        if text in sentences:
            return sentences[text]
        for pattern, other in patterns:
            if found := pattern.fullmatch(text):
                parts = iter(found.groups())
                return re.sub(r"\{\}", lambda _: say(next(parts)), other)  # noqa: B023  # used up at once
        return text

    return say


def _pattern(english: str, other: str) -> Pattern:
    if english.count("{}") != other.count("{}"):
        raise ValueError(
            f"{english!r} has {english.count('{}')} places to fill, and {other!r} has another number"
        )
    return re.compile("(.+?)".join(map(re.escape, english.split("{}"))), re.DOTALL), other
