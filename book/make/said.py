"""What a reader can say at the end of each chapter, as plain text: the sentences that chapter `published` searches.

    python -m book.make.said

writes book/records/said.json from the lists under "What you can now say". Works in the repository's root.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from bert_course.contents import CHAPTERS
from book.make.notebooks import read
from minigrad.files import write_atomic

TITLE = "## What you can now say"
TARGET = Path("book/records/said.json")
LEFT_OUT = "published"  # it asks the others
_SYMBOLS = {
    r"^\top": "ᵀ",
    r"\top": "ᵀ",
    r"\sigma": "σ",
    r"\Phi": "Φ",
    r"\times": "×",
    r"\hat x": "x̂",
    r"\,": " ",
}


def plain(text: str) -> str:
    """A sentence of Markdown without marks, and its formulas as far as letters go: √d_k for $\\sqrt{d_k}$."""
    for symbol, letter in _SYMBOLS.items():
        text = text.replace(symbol, letter)
    text = re.sub(r"\\mathrm\{(\w+)\}", r"\1", text)
    text = re.sub(r"\\sqrt\{?(\w+(?:\{\w+\})?)\}?", r"√\1", text)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)  # links
    return re.sub(r"[$*`{}]", "", text)


def sentences(path: Path) -> list[str]:
    """The points of a chapter's last list."""
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    _, title, end = "\n".join(texts).partition(TITLE)
    points = re.findall(r"^- (.*)$", end.partition("<details>")[0], re.MULTILINE)
    return [plain(point) for point in points] if title else []


def main() -> None:
    """Write the file."""
    found = {}
    for chapter in CHAPTERS:
        path = Path("book") / f"{chapter.name}.ipynb"
        if chapter.name != LEFT_OUT and path.exists() and (points := sentences(path)):
            found[chapter.name] = points
    write_atomic(TARGET, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()
