"""The chapters' numbers where text holds them, made again from the one list, book/bert_course/contents.py.

    python -m book.make.contents

`make map` does so. A chapter's heading gets its number and title, a link such as `[chapter 8](many_heads.ipynb)` the
number of the chapter it leads to, in pages and solutions (from which the exercises are made), and _toc.yml the
chapters in their order.
"""

from __future__ import annotations

import re
from pathlib import Path

from bert_course.contents import CHAPTERS, NUMBERS
from book.make.notebooks import read, write

LINK = re.compile(
    r"\[((?:(?:[Cc]hapters?|[Aa]ppendix)\s+)?)(?:\d+[a-h]?|A)\]\(((?:\.\./book/)?)(\w+)\.ipynb\)"
)
HEADING = re.compile(r"\A# .*")

TOC = """\
# Made by `make map` from book/bert_course/contents.py.
format: jb-book
root: book/index
parts:
"""
FIRST = ("book/ask",)
LAST = ("symbols", "glossary", "references", "library", "api/index", "instructors", "speed", "whats_new")
BELOW = {"api/index": ("engine", "nn", "optim", "text", "training", "bert", "seq2seq", "distributed")}


def numbered(text: str) -> str:
    """A text with each link's number as it is today. A link to no chapter stays: the site's build complains of it."""

    def one(link: re.Match[str]) -> str:
        words, folder, name = link.groups()
        return f"[{words}{NUMBERS[name]}]({folder}{name}.ipynb)" if name in NUMBERS else link[0]

    return LINK.sub(one, text)


def headed(text: str, heading: str) -> str:
    """A chapter's first text under its heading of today."""
    return HEADING.sub(lambda _: f"# {heading}", text)


def toc() -> str:
    """The text of _toc.yml."""
    lines, part = [], ""
    for chapter in CHAPTERS:
        if chapter.part != part:
            part = chapter.part
            lines += [f"  - caption: {part}", "    chapters:"]
            lines += [f"      - file: {page}" for page in FIRST if chapter is CHAPTERS[0]]
        lines.append(f"      - file: {chapter.page}")
    lines += ["  - caption: Reference", "    chapters:"]
    for page in LAST:
        lines.append(f"      - file: book/{page}")
        if page in BELOW:
            folder = Path(page).parent
            lines += [
                "        sections:",
                *(f"          - file: book/{folder}/{name}" for name in BELOW[page]),
            ]
    return TOC + "\n".join(lines) + "\n"


def renew(root: Path, check: bool = False) -> list[str]:
    """Write what has changed, unless this only checks; returns the files' names."""
    headings = {chapter.name: chapter.heading for chapter in CHAPTERS}
    changed = []
    for path in sorted(path for folder in ("book", "solutions") for path in (root / folder).glob("*.ipynb")):
        notebook = read(path)
        before = [cell.source for cell in notebook.cells]
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = numbered(cell.source)
        if path.parent.name == "book" and path.stem in headings and notebook.cells:
            notebook.cells[0].source = headed(notebook.cells[0].source, headings[path.stem])
        if before != [cell.source for cell in notebook.cells]:
            changed.append(path.relative_to(root).as_posix())
            if not check:
                write(path, notebook)
    texts = {
        path: numbered(path.read_text(encoding="utf-8")) for path in sorted((root / "book").glob("*.md"))
    }
    texts[root / "_toc.yml"] = toc()
    for path, text in texts.items():
        if path.read_text(encoding="utf-8") != text:
            changed.append(path.relative_to(root).as_posix())
            if not check:
                path.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    print("\n".join(renew(Path())) or "every number is that of the list")
