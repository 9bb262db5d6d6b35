"""What the tests in this folder share: the pages that there should be, the build, what a machine lacks."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_course.contents import PLACES
from browsers import skip

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"  # where `make site` builds the pages with Python in them
TITLE = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# A chapter"}
EMPTY = json.dumps({"cells": [TITLE], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
JUPYTER_BOOK = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]


def pages() -> list[str]:
    """The pages that the table of contents promises, without ".html"; none where PyYAML is missing."""
    if importlib.util.find_spec("yaml") is None:
        return []
    import yaml

    def files(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (node[key] for key in ("root", "file") if key in node)
            for child in node.values():
                yield from files(child)
        elif isinstance(node, list):
            for child in node:
                yield from files(child)

    return list(files(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))))


# The first page, one that asks the model, one with a picture that learns, one with predictions and a player, one with a
# training that takes minutes, and one with hundreds of rows: what can go wrong on a page goes wrong on one of these.
# `make test` opens these, the slow tests the others.
QUICK_PAGES = ("book/index", "book/ask", "book/start", "book/one_head", "book/pretraining", "book/errata")


def build(source: Path, output: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build the book in `source` as `make book` does, into `output`/_build/html; skips without jupyter-book.

    variables: more of the environment.
    """
    if importlib.util.find_spec("jupyter_book") is None:
        skip("jupyter-book is not installed")
    command = [*JUPYTER_BOOK, "build", "-W", "-n", "--keep-going", "-q"]
    return subprocess.run(
        [*command, "--path-output", str(output), str(source)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "NO_COLOR": "1", **variables},
    )


def small_book(folder: Path, pages: dict[str, str | dict[str, Any]], repository: str = "") -> Path:
    """A book of these pages with the course's settings, in `folder`; returns the folder.

    pages: name: Markdown, a notebook as a dictionary, or "" for a heading alone, which of a chapter is a notebook. The
    first page is book/index.
    """
    book = folder / "book"
    shutil.copytree(ROOT / "book" / "site", book / "site", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("book/references.bib", "book/references.md", "book/glossary.md"):
        shutil.copy(ROOT / name, folder / name)
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    text, count = re.subn(r'^  url: ".*"$', f'  url: "{repository}"', config, flags=re.MULTILINE)
    assert count == 1
    (folder / "_config.yml").write_text(text, encoding="utf-8")
    lines = ["format: jb-book", "root: book/index", "chapters:"]
    for name, text in pages.items():
        if name != "index":
            lines.append(f"  - file: book/{name}")
        if isinstance(text, dict):
            (book / f"{name}.ipynb").write_text(json.dumps(text), encoding="utf-8")
        else:
            file = book / (f"{name}.ipynb" if not text and name in PLACES else f"{name}.md")
            if not text and file.exists():  # the course's own, as copied above
                continue
            file.write_text(text or (EMPTY if file.suffix == ".ipynb" else f"# {name}\n"), encoding="utf-8")
    (folder / "_toc.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
