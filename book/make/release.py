"""Is this a release? One version in all places that name it, and its notes.

    python -m book.make.release TAG

Prints the section of CHANGELOG.md that is about the version of the tag, such as v0.2.0. If a pyproject.toml,
CITATION.cff or the newest section of CHANGELOG.md names another version, or two name different days, it says so, and
the exit status is 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SECTION = re.compile(r"^## \[(\d\S*)\] - (\S+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class ReleaseError(Exception):
    """The places that name a version do not agree."""


def notes(root: Path, tag: str) -> str:
    """What is new in the version of a tag. Raises ReleaseError if a place names another version or day."""
    version = tag.removeprefix("v")
    found = SECTION.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if not found:
        raise ReleaseError("CHANGELOG.md has no section of a version, such as ## [0.1.0] - 2026-11-21")
    named, day, text = found.groups()
    cited = (root / "CITATION.cff").read_text(encoding="utf-8")
    places = {"CHANGELOG.md": named, "CITATION.cff": _one(r"^version: (\S+)", cited)}
    for place in ("pyproject.toml", "book/pyproject.toml"):
        places[place] = _one(r'^version = "(.+)"', (root / place).read_text(encoding="utf-8"))
    for place, other in places.items():
        if other != version:
            raise ReleaseError(f"the tag is {tag}, and {place} has version {other}")
    cited_day = _one(r'^date-released: "(.+)"', cited)
    if cited_day != day:
        raise ReleaseError(f"CHANGELOG.md says {day}, and CITATION.cff {cited_day}")
    return text.strip()


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else "none"


def main(arguments: list[str]) -> int:
    """Print the notes; returns the exit status."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    try:
        print(notes(Path(), arguments[0]))
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
