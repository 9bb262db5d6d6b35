"""How long a notebook takes to read, how much of it there is above the line and below, and the budget that it keeps.

The line divides the lesson from how it was measured: below it is what stands in a box, <details>. Each
function takes a notebook as nbformat reads it, or the plain dictionary of its JSON.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

WORDS_A_MINUTE = 150  # slow: what is read here is to be understood
MINUTES_A_CODE_CELL = 1.5
MINUTES_A_FOLDED_CELL = 0.5
MINUTES_A_PREDICTION = 2
# Tags of code that the page does not show
HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell", "setup"}
FOLDED = {"hide-input", "hide-cell"}  # and of what a reader can unfold

BOX = re.compile(r"<details>.*?</details>", re.DOTALL)
# A map of attention, a grid, is a picture
TABLE = re.compile(r'<table\b(?! role="grid").*?</table>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
TYPED_TABLE = re.compile(r"(?:^\|.*\|[ ]*\n?){3,}", re.MULTILINE)
NOT_WORDS = re.compile(
    r"```.*?```|~~~.*?~~~"  # blocks of code
    r"|\$\$.*?\$\$|\\begin\{(\w+\*?)\}.*?\\end\{\1\}"  # formulas on lines of their own
    r"|<!--.*?-->|<[^>]*>"  # HTML
    r"|https?://\S+",
    re.DOTALL,
)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")  # its words are read, and not where it goes
IN_LINE = re.compile(r"`[^`]+`|\$[^$]+\$")  # code or a formula in a sentence is read as one word
WORD = re.compile(r"[^\W_][\w’'-]*(?:[.,]\d+)*")
LETTERS = re.compile(r"[^\W\d_][\w’'-]*")  # a word that begins with a letter


def read(path: Path) -> Any:
    """A notebook in its file, not checked: nbformat takes ten times as long."""
    return json.loads(path.read_text(encoding="utf-8"))


def words(notebook: Any) -> int:
    """The words of the prose above the line: Markdown without blocks of code, displayed formulas, HTML, addresses."""
    return sum(_count(BOX.sub(" ", source)) for source in _sources(notebook, "markdown"))


def words_below(notebook: Any) -> int:
    """The words of the prose in boxes."""
    return sum(_count(box) for source in _sources(notebook, "markdown") for box in BOX.findall(source))


def printed_words(notebook: Any) -> int:
    """The words that cells put out: in printed lines, in tables and their captions. Numbers are not words."""
    return sum(len(LETTERS.findall(text)) for text in _printed(notebook))


def tables(notebook: Any) -> list[int]:
    """The rows of each table above the line, its head not counted: those that cells make, then those that are typed."""
    made = [len(ROW.findall(found)) - 1 for text in _rich(notebook) for found in TABLE.findall(text)]
    typed = [
        found[0].rstrip().count("\n") - 1
        for source in _sources(notebook, "markdown")
        for found in TYPED_TABLE.finditer(BOX.sub(" ", source))
    ]
    return made + typed


def code_cells(notebook: Any) -> int:
    """The code cells that the page shows unfolded."""
    return sum(1 for _ in _visible(notebook))


def folded_cells(notebook: Any) -> int:
    """The code cells that the page folds, without those that only import or load."""
    return sum(
        cell["cell_type"] == "code" and bool(FOLDED & _tags(cell)) and "setup" not in _tags(cell)
        for cell in notebook["cells"]
    )


def cells(notebook: Any) -> int:
    """The cells that a reader meets: all but those that are hidden or only import or load."""
    return sum(not {"remove-cell", "setup"} & _tags(cell) for cell in notebook["cells"])


def predictions(notebook: Any) -> int:
    """The Markdown cells that ask the reader to predict."""
    return sum("**Predict" in source for source in _sources(notebook, "markdown"))


def minutes(notebook: Any) -> int:
    """The minutes that the page takes, rounded to 5 and never below.

    They are for the words above the line, typed and printed, for the code, and for predictions to think of. A cell
    that only imports or loads takes none.
    """
    exact = (
        (words(notebook) + printed_words(notebook)) / WORDS_A_MINUTE
        + MINUTES_A_CODE_CELL * code_cells(notebook)
        + MINUTES_A_FOLDED_CELL * folded_cells(notebook)
        + MINUTES_A_PREDICTION * predictions(notebook)
    )
    return max(5, 5 * int(exact / 5 + 0.5))


def over_budget(notebook: Any) -> Iterator[str]:
    """What of a chapter is over its budget, a sentence each; all but the last count is of what is above the line."""
    rows = tables(notebook)
    for name, found, most in (
        ("words", words(notebook), 1800),
        ("cells", cells(notebook), 45),
        ("minutes", minutes(notebook), 45),
        ("tables", len(rows), 5),
        ("rows of the longest table", max(rows, default=0), 6),
        ("words below the line", words_below(notebook), 1000),
    ):
        if found > most:
            yield f"{name}: {found}; the budget is {most}"


class Exercise(NamedTuple):
    """One exercise of a notebook: its title, its difficulty as it is written ("2", "1, then 2") and its minutes."""

    title: str
    difficulty: str
    minutes: int


HEADING = re.compile(
    r"^##\s+(?:\d+\.\s+)?(?P<title>.+?)\s+"
    r"\(\w+\s+(?P<difficulty>[1-3][^;)]*?)[,;]\s+(?P<minutes>\d+)\s+\w+\)\s*$",  # in any language
    re.MULTILINE,
)


def exercises(notebook: Any) -> list[Exercise]:
    """The exercises of a solution's notebook, by its headings: "## 2. Clipping (difficulty 2, 12 minutes)"."""
    return [
        Exercise(found["title"], found["difficulty"], int(found["minutes"]))
        for source in _sources(notebook, "markdown")
        for found in HEADING.finditer(source)
    ]


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _tags(cell: Any) -> set[str]:
    return set(cell["metadata"].get("tags", []))


def _sources(notebook: Any, kind: str) -> Iterator[str]:
    for cell in notebook["cells"]:
        if cell["cell_type"] == kind and "remove-cell" not in _tags(cell):
            yield _joined(cell["source"])


def _count(source: str) -> int:
    return len(WORD.findall(IN_LINE.sub("x", NOT_WORDS.sub(" ", LINK.sub(r"\1", source)))))


def _rich(notebook: Any) -> Iterator[str]:
    """The HTML that cells put out, without what a reader must unfold."""
    for cell in notebook["cells"]:
        if "remove-cell" not in _tags(cell):
            for output in cell.get("outputs", []):
                yield BOX.sub(" ", _joined(output.get("data", {}).get("text/html", "")))


def _printed(notebook: Any) -> Iterator[str]:
    """What cells print, and the text of the tables that they make."""
    for text in _rich(notebook):
        for table in TABLE.findall(text):
            yield html.unescape(re.sub(r"<[^>]*>", " ", table))
    for cell in notebook["cells"]:
        if not {"remove-cell", "double"} & _tags(cell):
            for output in cell.get("outputs", []):
                yield _joined(output.get("text", ""))


def _visible(notebook: Any) -> Iterator[Any]:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and not HIDDEN & _tags(cell):
            yield cell
