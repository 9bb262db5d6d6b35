"""A book of two chapters with one of each thing that answers to the reader.

It is quick to build, and no chapter's text can change it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from building import ROOT

TOC = """format: jb-book
root: book/index
parts:
  - caption: One
    chapters:
      - file: book/arrays
  - caption: Two
    chapters:
      - file: book/reverse_mode
"""
INDEX = """# A book

The first paragraph.

```{raw} html
<p class="course-doors">
<a class="course-door start" href="arrays.html"><b>Start</b> <span>with chapter 1</span></a>
</p>
<button type="button" class="course-button" data-route="short"
 data-chapters="reverse_mode" hidden>The short way</button>
<button type="button" class="course-button" data-route="all" data-chapters="arrays reverse_mode" hidden>All</button>
```

| | chapter |
|---|---|
| | {doc}`Arrays <arrays>` |
| | {doc}`Reverse mode <reverse_mode>` |
"""
LISTING = """*From `minigrad/ops/composed.py`:*

```python
def f(x):
    return {}  # the end
```""".format(" + ".join("x" * 40))


def write(folder: Path) -> None:
    """Put the book's sources into `folder`, with the settings and the looks of the course."""
    import nbformat

    from bert_course.common.tables import table
    from bert_course.common.widgets import Frame, attention_map, bars, player

    v4 = nbformat.v4
    book = folder / "book"
    shutil.copytree(ROOT / "book" / "site", book / "site", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [ROOT / "_config.yml", *ROOT.glob("book/*.bib")]:
        shutil.copy(path, folder / path.relative_to(ROOT))
    (folder / "_toc.yml").write_text(TOC, encoding="utf-8")
    (book / "index.md").write_text(INDEX, encoding="utf-8")

    def code(source: str, *outputs: Any, tags: tuple[str, ...] = ()) -> Any:
        return v4.new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})

    def printed(text: str) -> Any:
        return v4.new_output("stream", name="stdout", text=text)

    def shown(kind: str, text: str) -> Any:
        return v4.new_output("execute_result", {kind: text, "text/plain": "text"}, execution_count=1)

    def predicted(word: str) -> tuple[Any, ...]:
        """A question, its answer, what tells it and what does not; the last has no answers to choose from."""
        cell = code(f"print({word})", printed(f"The answer is {word}\n"), tags=("predict",))
        if word != "thirteen":
            cell.metadata["predict"] = {
                "choices": ["ten", "twelve", "eleven"],
                "right": 2 if word == "eleven" else 1,
            }
        return (
            v4.new_markdown_cell(f"**Predict:** is it {word}?"),
            cell,
            v4.new_markdown_cell(f"It was {word}."),
            v4.new_markdown_cell(f"After {word} it goes on.", metadata={"tags": ["open"]}),
        )

    frames = [
        Frame("one", bars({"a": [1]}, 1, ("x", "y")), "A short text."),
        Frame("two", bars({"a": [1], "b": [2]}, 2, ("x", "y")), "A long text. " * 30),
        Frame("three", bars({"a": [0.5]}, 1, ("x", "y")), "The last."),
    ]
    words = [f"word{i}" for i in range(5)]
    weights = [[0.2] * 5] * 5
    wide = table(["name", *(f"column {i}" for i in range(20))], [["row", *range(20)]])
    first = [
        v4.new_markdown_cell("# 1. Arrays\n\n" + "A sentence of the text. " * 40),
        v4.new_markdown_cell("## Guess\n\n" + "A sentence of the text. " * 200),
        *(cell for word in ("eleven", "twelve", "thirteen") for cell in predicted(word)),
        v4.new_markdown_cell("## Look"),
        code("show(f)", shown("text/markdown", LISTING)),
        code(
            "figure(plot)",
            shown("text/html", '<div class="course-figure"><img alt="a" src="data:,"></div>'),
            tags=("hide-input",),
        ),
        code("player(frames)", shown("text/html", player(frames, "state", "Bars")._repr_html_())),
        code("attention_map()", shown("text/html", attention_map(words, weights, "A map")._repr_html_())),
        code("#" * 78, printed("=" * 78)),
        code("#" * 200, printed("=" * 200)),
        code("table()", shown("text/html", wide._repr_html_())),
        code("\n".join(f"line_{i} = {i}" for i in range(60))),
    ]
    # Formulas stand on this page alone: their script takes more time than all else in a page.
    second = [
        v4.new_markdown_cell("# 2. Reverse mode\n\n" + "A sentence of the text. " * 600),
        *(
            v4.new_markdown_cell("$$ " + " + ".join(f"x_{{{i}}}" for i in range(terms)) + " $$")
            for terms in (40, 19)
        ),
    ]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for stem, cells in (("arrays", first), ("reverse_mode", second)):
        nbformat.write(v4.new_notebook(cells=cells, metadata=python), book / f"{stem}.ipynb")
