"""Translations: what a chapter says in another language, and which sentences have changed since.

    python -m book._make.translation [--check]

book/locale/LANGUAGE/CHAPTER.po is a gettext catalogue of a chapter's page and exercises. A message is a paragraph of
Markdown as the notebook has it, the page's idea, or an answer to choose from. No catalogue holds code: a translated
notebook takes its cells and their outputs from the English one. What checks say is in minigrad/course/check.

Without --check the catalogues take the messages of today; a translation whose message has changed is kept as `fuzzy`.
With it, as in `make stale`, they are only read, and each message without a translation of today is listed: on a page it
is in English, with a mark.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from book._make.exercise_page import for_readers
from book._make.notebooks import read
from minigrad.course.check.exercise import EXERCISES
from minigrad.course.check.language import catalogue as language_of_checks

FOLDER = Path("book/locale")
NOT_YET = "Not translated yet:"
WORDS = "words"  # the catalogue of what the site and its players say

LINE = re.compile(r'(#.*)?|(msg\w+(\[\d\])?\s*)?"([^"\\]|\\.)*"')  # of a catalogue

Say = Callable[[str], "str | None"]  # a message in another language, or None


# --- Messages --------------------------------------------------------------------------------------------


def paragraphs(text: str) -> list[str]:
    """Markdown in pieces between empty lines; a fenced block is one piece."""
    pieces: list[str] = []
    fenced = False
    for piece in re.split(r"\n{2,}", text.strip("\n")):
        if fenced:
            pieces[-1] += f"\n\n{piece}"
        else:
            pieces.append(piece)
        fenced ^= len(re.findall(r"^(?:```|:::)", piece, re.MULTILINE)) % 2 == 1
    return pieces


def has_words(piece: str) -> bool:
    """Whether there is something to translate: neither a formula alone nor a tag alone."""
    if piece.startswith("$$") and r"\text{" not in piece:
        return False
    return bool(re.search(r"[^\W\d]", re.sub(r"<[^>]*>", "", piece)))


def messages(notebook: Any) -> Iterator[str]:
    """What a notebook says, in order."""
    if idea := notebook.metadata.get("course", {}).get("idea"):
        yield idea
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield from filter(has_words, paragraphs(cell.source))
        yield from cell.metadata.get("predict", {}).get("choices", [])


def sources(root: Path, chapter: str) -> Iterator[Any]:
    """The notebooks that a chapter's catalogue is for: its page, its exercises if there are some, and their page."""
    yield read(root / "book" / f"{chapter}.ipynb")
    if (path := root / "exercises" / f"{chapter}.ipynb").exists():
        yield (exercises := read(path))
        for_readers(shown := copy.deepcopy(exercises))
        yield shown


def said_in(root: Path, chapter: str) -> list[str]:
    """What a chapter says, each message once."""
    return list(dict.fromkeys(message for one in sources(root, chapter) for message in messages(one)))


# --- Notebooks -------------------------------------------------------------------------------------------


def translated(notebook: Any, say: Say, names: Mapping[str, str], mark: str) -> Any:
    """A notebook in another language; code and outputs are the same.

    names: of the pages that it links and that are translated too, such as {"masking": "masking_de"}. mark: what stands
    at a paragraph without a translation.
    """
    made = copy.deepcopy(notebook)
    course = made.metadata.get("course", {})
    if "idea" in course:
        course["idea"] = say(course["idea"]) or course["idea"]
    for cell in made.cells:
        if cell.cell_type == "markdown":
            pieces = (_said(piece, say, mark) for piece in paragraphs(cell.source))
            cell.source = _linked("\n\n".join(pieces), names)
        if predict := cell.metadata.get("predict"):
            predict["choices"] = [say(one) or one for one in predict["choices"]]
    return made


def _said(piece: str, say: Say, mark: str) -> str:
    if not has_words(piece):
        return piece
    if done := say(piece):
        return done
    if piece.startswith("#"):  # a box around a heading would be around all that follows
        return f'{piece}\n\n<p class="course-english">{mark}</p>'
    if piece.startswith("<"):
        return piece.replace("</summary>", f' <span class="course-english">{mark}</span></summary>')
    return f'<div class="course-english" lang="en">\n\n<p>{mark}</p>\n\n{piece}\n\n</div>'


def _linked(text: str, names: Mapping[str, str]) -> str:
    return re.sub(
        r"(\]\((?:\.\./\w+/)?)(\w+)(?=\.ipynb)", lambda found: found[1] + names.get(found[2], found[2]), text
    )


# --- Catalogues ------------------------------------------------------------------------------------------


def languages(root: Path) -> list[str]:
    """The languages that there are catalogues for, such as "de". ValueError for a folder with another kind of name."""
    found = sorted(path.name for path in (root / FOLDER).glob("*") if path.is_dir())
    for name in found:
        if not re.fullmatch("[a-z]{2,3}", name):
            raise ValueError(f"{FOLDER}/{name}: expected the code of a language, such as de")
    return found


def chapters(root: Path, language: str) -> list[str]:
    """The chapters with a catalogue in a language."""
    return sorted(path.stem for path in (root / FOLDER / language).glob("*.po") if path.stem != WORDS)


def catalogue(root: Path, language: str, name: str) -> Catalog:
    """A chapter's catalogue, or WORDS; empty where there is none. Raises ValueError, in one line, if it is damaged."""
    path = root / FOLDER / language / f"{name}.po"
    if not path.exists():
        return Catalog(locale=language)
    try:
        with path.open("rb") as file:
            found = read_po(file, locale=language, abort_invalid=True)
        for number, line in enumerate(path.read_text(found.charset).splitlines(), 1):
            if not LINE.fullmatch(line.strip()):  # babel takes off a text's first and last sign, quote or not
                raise ValueError(f"line {number}, {line.strip()!r}")
    except Exception as error:  # babel has one of its own, and lets others through
        raise ValueError(f"{path} is no catalogue: {' '.join(str(error).split())}") from None
    return found


def sayer(found: Catalog) -> Say:
    """What a catalogue says of a message: None where it has no translation, or that of a former message."""

    def say(message: str) -> str | None:
        entry = found.get(message)
        return str(entry.string) if entry and entry.string and not entry.fuzzy else None

    return say


def spoken(
    root: Path, language: str, chapter: str, notebook: Any, names: Mapping[str, str] | None = None
) -> Any:
    """A chapter's notebook in a language, or as it is where there is no catalogue. names: as in `translated`."""
    if chapter not in chapters(root, language):
        return notebook
    mark = sayer(catalogue(root, language, WORDS))(NOT_YET) or NOT_YET
    return translated(notebook, sayer(catalogue(root, language, chapter)), names or {}, mark)


def renewed(old: Catalog, said: list[str]) -> Catalog:
    """A catalogue of these messages; a translation of one that is much like it stays, marked as fuzzy."""
    template = Catalog()
    for message in said:
        template.add(message)
    new = copy.deepcopy(old)
    new.update(template)
    new.creation_date, new.header_comment = old.creation_date, old.header_comment
    return new


def renew(root: Path, language: str, chapter: str) -> None:
    """Let a chapter's catalogue have the messages of today, in their order."""
    old = catalogue(root, language, chapter)
    new = renewed(old, said_in(root, chapter))
    with (root / FOLDER / language / f"{chapter}.po").open("wb") as file:
        write_po(file, new, width=0, ignore_obsolete=True)


def stale(root: Path) -> list[str]:
    """A line for each message that has no translation of today."""
    found = []
    for language in languages(root):
        for chapter in chapters(root, language):
            say = sayer(catalogue(root, language, chapter))
            found += [
                f"{FOLDER}/{language}/{chapter}.po: {' '.join(message.split())[:70]}"
                for message in said_in(root, chapter)
                if say(message) is None
            ]
        known = language_of_checks(language)
        found += [
            f"minigrad/course/check/{language}.json: {exercise.name}: {sentence[:70]}"
            for exercise in EXERCISES.values()
            if exercise.chapter in chapters(root, language)
            for sentence in exercise.sentences()
            if sentence not in known
        ]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Renew the catalogues, or list what is stale; the exit status is 1 if something is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only list what is stale")
    root, only_list = Path(), parser.parse_args(arguments).check
    try:
        if not only_list:
            for language in languages(root):
                for chapter in chapters(root, language):
                    renew(root, language, chapter)
        lines = stale(root)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines) or "every message has its translation")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
