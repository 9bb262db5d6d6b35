"""The list of the sources' mistakes, errata.toml: what chapter `errata` shows.

An entry says what the document has, what is right and who says so, what sort of mistake it is and whose, on what
evidence this course says so, where it is run, and which exercise's check turns it down. What its formula computes
beside the right one is in `errata_runs.py`. Numbers that are missing belonged to charges that did not hold.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from bert_course.check.exercise import EXERCISES, Exercise
from bert_course.check.mistakes import Mistake
from bert_course.contents import NUMBERS

# Each document and the number of its first erratum.
SOURCES = {"formulas": 1, "article": 16, "walk-through": 39, "notes": 49, "essay": 54, "between them": 65}

KINDS = {
    "parameters": "parameters are missing, or nothing uses them",
    "silent": "the shapes agree, and the result is another",
    "shape": "a shape or a size that is not this model's",
    "gap": "something is left out that you need",
    "claim": "a statement that a measurement denies or limits",
    "naming": "a name, a letter or an index",
    "unclear": "words that can be read in more than one way",
    "citation": "a paper, a figure or a unit: misquoted, or not the same in all versions",
    "history": "a part that another model has",
}

EVIDENCE = {
    "run": "a cell computes what it does",
    "count": "a cell counts parameters, entries, operations or words",
    "quote": "no cell can tell: the page quotes a source",
}

WHOSE = {
    "copy": "our copy of the document, probably",
    "text": "the document",
    "paper": "a paper, which the document follows",
}


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A mistake or a gap in one of the five documents, or a contradiction between them.

    says: what the document says or leaves out, in this course's letters; "our copy" where the mistake may be the
    transcription's. computes: what that comes to, in words. right: what holds instead. primary: where that is written.
    unseen: what of `primary` this course knows from copies of copies only. kind: a key of KINDS. evidence: a key of
    EVIDENCE. whose: a key of WHOSE. chapters: the names of the chapters that show it, "errata" if that page does.
    caught_by: the name of an exercise's check, and the id there of this mistake.
    """

    number: int
    says: str
    chapters: list[str]
    right: str
    primary: str
    kind: str
    evidence: str
    whose: str
    computes: str = ""
    unseen: str = ""
    caught_by: tuple[str, str] | None = None

    @property
    def source(self) -> str:
        """The document, a key of SOURCES."""
        return max((first, source) for source, first in SOURCES.items() if first <= self.number)[1]

    @property
    def where(self) -> str:
        """Where it runs, as a reader of chapter `errata` finds it."""
        others = [NUMBERS[name] for name in NUMBERS if name in self.chapters and name != "errata"]
        there = [("chapter " if len(others) == 1 else "chapters ") + " and ".join(others)] if others else []
        here = [f"erratum {self.number}"] if "errata" in self.chapters else []
        return ", ".join(there + here)

    def check(self) -> tuple[Exercise, Mistake] | None:
        """The exercise whose check turns it down, and the wrong answer with this mistake that the check knows.

        Raises LookupError if there is no such exercise, or if it knows no such wrong answer.
        """
        if self.caught_by is None:
            return None
        name, mistake = self.caught_by
        if name not in EXERCISES:
            raise LookupError(f"erratum {self.number}: there is no check.{name}")
        try:
            return EXERCISES[name], EXERCISES[name].mistake(mistake)
        except LookupError as error:
            raise LookupError(f"erratum {self.number}: {error}") from None


def read(text: str) -> tuple[Erratum, ...]:
    """The entries of a list like errata.toml.

    Raises ValueError for an entry that lacks a key or has one too many.
    """
    return tuple(entry(found) for found in tomllib.loads(text)["erratum"])


def entry(found: dict[str, Any]) -> Erratum:
    """One entry of the list. Raises ValueError as `read` does."""
    try:
        erratum = Erratum(**found)
    except TypeError as error:
        raise ValueError(f"erratum {found.get('number', 'without a number')}: {error}") from error
    if empty := [key for key, value in found.items() if value in ("", [])]:
        raise ValueError(f"erratum {erratum.number}: {', '.join(empty)} must not be empty")
    if unknown := set(erratum.chapters) - set(NUMBERS):
        raise ValueError(f"erratum {erratum.number}: there is no chapter {min(unknown)!r}")
    for key, known in (("kind", KINDS), ("evidence", EVIDENCE), ("whose", WHOSE)):
        if found[key] not in known:
            raise ValueError(
                f"erratum {erratum.number}: {key} must be one of {', '.join(known)}, got {found[key]!r}"
            )
    return erratum


ERRATA = read((files("bert_course.chapters") / "errata.toml").read_text(encoding="utf-8"))
