"""How long a notebook takes to read, and how much of it there is: counts, from the stored notebook alone.

Each takes a notebook as nbformat reads it, or the plain dictionary of its JSON with sources as one string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

WORDS_A_MINUTE = 150  # slow: what is read here is to be understood
MINUTES_A_CODE_CELL = 1.5
MINUTES_A_PREDICTION = 2
HIDDEN = {
    "remove-cell",
    "remove-input",
    "hide-input",
    "hide-cell",
}  # tags of code that the page folds or leaves out

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


def words(notebook: Any) -> int:
    """The words of the prose: Markdown without blocks of code, displayed formulas, HTML and addresses."""
    return sum(len(WORD.findall(_prose(source))) for source in _sources(notebook, "markdown"))


def code_cells(notebook: Any) -> int:
    """The code cells that the page shows unfolded."""
    return sum(1 for _ in _visible(notebook))


def own_lines(notebook: Any) -> int:
    """The lines of code in those cells, without the empty ones."""
    return sum(_filled(cell["source"]) for cell in _visible(notebook))


def library_lines(notebook: Any) -> int:
    """The lines of the library's code that `show` lists, without the empty ones."""
    return sum(
        _filled(_joined(output["data"]["text/plain"]))
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output.get("metadata", {}).get("text/markdown", {}).get("source")
    )


def predictions(notebook: Any) -> int:
    """The Markdown cells that ask the reader to predict."""
    return sum("**Predict" in source for source in _sources(notebook, "markdown"))


def minutes(notebook: Any) -> int:
    """The minutes that the page takes, rounded to 5 and never below: words, code to read, predictions to think of."""
    exact = (
        words(notebook) / WORDS_A_MINUTE
        + MINUTES_A_CODE_CELL * code_cells(notebook)
        + MINUTES_A_PREDICTION * predictions(notebook)
    )
    return max(5, 5 * int(exact / 5 + 0.5))


class Exercise(NamedTuple):
    """One exercise of a notebook: its title, its difficulty as it is written ("2", "1, then 2") and its minutes."""

    title: str
    difficulty: str
    minutes: int


HEADING = re.compile(
    r"^##\s+(?:\d+\.\s+)?(?P<title>.+?)\s+"
    r"\(difficulty\s+(?P<difficulty>[1-3][^;)]*?)[,;]\s+(?P<minutes>\d+)\s+minutes?\)\s*$",
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


def _sources(notebook: Any, kind: str) -> Iterator[str]:
    for cell in notebook["cells"]:
        if cell["cell_type"] == kind and "remove-cell" not in cell["metadata"].get("tags", []):
            yield _joined(cell["source"])


def _prose(source: str) -> str:
    return IN_LINE.sub("x", NOT_WORDS.sub(" ", LINK.sub(r"\1", source)))


def _visible(notebook: Any) -> Iterator[Any]:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and not HIDDEN & set(cell["metadata"].get("tags", [])):
            yield cell


def _filled(text: str) -> int:
    return sum(bool(line.strip()) for line in _joined(text).split("\n"))
