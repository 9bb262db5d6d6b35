"""What a page of exercises shows of their notebook: all but what is for Jupyter."""

from __future__ import annotations

import re
from typing import Any

# How to work with the check, in the notebook's words and in the page's.
IN_JUPYTER = re.compile(r"^Write your answer where the dots are, .*?shows one way\.", re.MULTILINE)
IN_THE_PAGE = (
    "Write your answer where the dots are, then press **Check** below it. A check says what it tried and what it saw. "
    "Below a wrong answer, its hints unfold one after the other. What you write is kept in this browser."
)
INSTALLING = re.compile(r"^\*To run this page outside .*?\*\n\n", re.MULTILINE)

CHECK = re.compile(r"^check\.(?!progress\b)(\w+)\(", re.MULTILINE)
PROGRESS = re.compile(r"^check\.progress\(", re.MULTILINE)


def for_readers(notebook: Any) -> None:
    """Change a notebook of exercises into what the page shows. Cells keep their places and ids."""
    for cell in notebook["cells"]:
        text, metadata = "".join(cell["source"]), cell["metadata"]
        if cell["cell_type"] == "markdown":
            cell["source"] = IN_JUPYTER.sub(IN_THE_PAGE, INSTALLING.sub("", text))
            continue
        if CHECK.search(text):
            cell["outputs"] = []
        if PROGRESS.search(text) or "install" in metadata.get("tags", []):
            metadata["tags"] = [*metadata.get("tags", []), "remove-cell"]
