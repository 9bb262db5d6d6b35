"""A small site whose cells run, with a stand-in for the worker that has Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import small_book
from building import ROOT, build

SENTENCE = "This cell trains a model for minutes, so it keeps its stored output."
SCRIPT = (
    "<div class='alive'><script>document.currentScript.parentElement.textContent = 'alive'</script></div>"
)
MOVES = (
    "<div class='moves'>still<script>document.currentScript.parentElement.onclick = (event) => "
    "{ event.currentTarget.firstChild.textContent = 'moved'; };</script></div>"
)
LISTING = r"*From `minigrad/x.py`:*\n\n```python\ndef f(x):\n    return x\n```"

# id: source, stored output (text, or HTML), tags, needs, whether it runs.
CELLS: dict[str, dict[str, Any]] = {
    "first": {"source": "a = 1"},
    "uses": {"source": "use(a)", "output": "stored: a is 1\n", "needs": ["first"]},
    "plain": {"source": 'print("fresh")', "output": "stored\n"},
    "guess": {"source": 'print("fresh answer")', "output": "stored answer\n", "tags": ["predict"]},
    "hidden": {"source": "kept = 5", "tags": ["remove-cell"]},
    "relies": {"source": "use(kept)", "output": "stored: kept is 5\n", "needs": ["hidden"]},
    "alive": {"source": f'html("{SCRIPT}")', "output": "<b>stored</b>"},
    "listing": {"source": f'markdown("{LISTING}")', "output": "<b>stored</b>"},
    "folded": {"source": 'print("unfolded")', "output": "stored\n", "tags": ["hide-input"]},
    "trains": {"source": "train()", "output": "stored loss\n", "runs": SENTENCE},
    "wide": {"source": f"wide = {list(range(60))}"},
    "between": {"source": "between = 2", "needs": ["first"]},
    "last": {"source": "use(between)", "needs": ["first", "between"]},
    "long": {"source": 'print("computed")\nlong = 1', "seconds": 20},
    "after": {"source": "use(long)", "needs": ["long"], "seconds": 15},
    "below": {"source": "use(long + 1)", "needs": ["long"]},
    "moves": {"source": f'html("{MOVES}")', "output": MOVES, "tags": ["predict"]},
}
# On a page of its own: the script of formulas takes more time than all else in a page.
FORMULA: dict[str, dict[str, Any]] = {
    "formula": {"source": 'markdown("Fresh: $x^2$.")', "output": "<b>stored</b>"}
}
EXERCISES: dict[str, str | dict[str, Any]] = {
    "title": "# Exercises: arrays\n\n*To run this page outside of the folder, `pip install`.*\n\n"
    "Write your answer where the dots are, run the cell, then run the check below it. `check.one.solution()` shows one "
    "way. All arrays are NumPy's.",
    "imports": {"source": "check = 0"},
    "heading1": "## 1. The first one (difficulty 1, 5 minutes)\n\nDo it.",
    "answer1": {"source": "def one(x):\n    ..."},
    "check1": {
        "source": "check.one(one)",
        "output": "stored: not attempted\n",
        "needs": ["imports", "answer1"],
    },
    "heading2": "## 2. The second (difficulty 2, 10 minutes)\n\nDo that.",
    "answer2": {"source": "def two(x):\n    ..."},
    "borrows": {"source": 'own = all_parts(".")'},
    "check2": {
        "source": "check.two(two)",
        "output": "stored: not attempted\n",
        "needs": ["imports", "answer2"],
    },
    "progress": {"source": "check.progress(1)", "output": "stored progress\n"},
}


def _cell(name: str, cell: str | dict[str, Any]) -> Any:
    import nbformat

    v4 = nbformat.v4
    if isinstance(cell, str):
        return v4.new_markdown_cell(cell, id=name)
    text, outputs = cell.get("output", ""), []
    if text.startswith("<"):
        outputs = [v4.new_output("execute_result", {"text/html": text, "text/plain": "x"}, execution_count=1)]
    elif text:
        outputs = [v4.new_output("stream", name="stdout", text=text)]
    return v4.new_code_cell(cell["source"], id=name, outputs=outputs, metadata={"tags": cell.get("tags", [])})


def _described(cells: dict[str, Any]) -> list[dict[str, Any]]:
    """What the runtime's JSON says of the code cells."""
    return [
        {
            "id": name,
            "source": cell["source"],
            "needs": cell.get("needs", []),
            "random": None,
            "runs": cell.get("runs", True),
            "seconds": cell.get("seconds", 0),
        }
        for name, cell in cells.items()
        if isinstance(cell, dict)
    ]


def write(folder: Path) -> Path:
    """Build the site in `folder`, and return the folder of its pages."""
    import nbformat

    v4 = nbformat.v4
    small_book.write(folder)
    (folder / "_build").mkdir()
    (folder / "_build" / "bert-from-nothing.pdf").write_bytes(b"%PDF" + bytes(2_000_000))
    index = folder / "book" / "index.md"
    index.write_text(index.read_text("utf-8") + "\n```{course-zip}\n```\n", encoding="utf-8")
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    title = v4.new_markdown_cell("# 1. Arrays\n\n" + "A sentence with y. " * 40, id="title")
    chapter = [title, *(_cell(name, cell) for name, cell in CELLS.items())]
    after = [cell.id for cell in chapter].index(
        "guess"
    ) + 1  # a prediction hides what follows up to a heading
    chapter.insert(after, v4.new_markdown_cell("## More", id="more"))
    formulas = [v4.new_markdown_cell("# 2. Reverse mode\n\nA sentence with $y$.", id="title")]
    formulas += [_cell(name, cell) for name, cell in FORMULA.items()]
    exercises = [_cell(name, cell) for name, cell in EXERCISES.items()]
    pages = {"book/arrays": chapter, "book/reverse_mode": formulas}
    for path, cells in (pages | dict.fromkeys(("exercises/arrays", "solutions/arrays"), exercises)).items():
        (folder / path).parent.mkdir(exist_ok=True)
        nbformat.write(v4.new_notebook(cells=cells, metadata=python), folder / f"{path}.ipynb")
    done = build(folder, folder, COURSE_RUN="1")
    site = folder / "_build" / "html"
    if done.returncode or not (site / "exercises" / "arrays.html").exists():
        raise RuntimeError(done.stderr)
    runtime = site / "_static" / "python"
    shutil.copy(ROOT / "tests" / "book" / "fake_worker.js", runtime / "worker.js")
    about = {"version": "1", "bytes": 10_600_000, "core": {}, "archives": {}, "data": {}}
    (runtime / "site.json").write_text(json.dumps(about), encoding="utf-8")
    for page, described in (("arrays", CELLS), ("reverse_mode", FORMULA), ("exercises/arrays", EXERCISES)):
        path = runtime / "cells" / f"{page}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"page": page, "cells": _described(described)}), encoding="utf-8")
    return site
