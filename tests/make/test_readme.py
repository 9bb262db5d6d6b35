"""What the README says of the chapters, made from notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from book._make import readme

pytestmark = pytest.mark.no_arrays

CHAPTERS = [
    SimpleNamespace(number=n, name=s, page=f"book/{s}", heading=h, part=p, build=f"what {n} builds")
    for n, s, h, p in [
        ("0", "start", "Start here", "Start"),
        ("1", "arrays", "1. Arrays", "I. The engine"),
        ("2", "reverse", "2. Reverse", "I. The engine"),
    ]
]
END = "<!-- end, by make map -->"
README = f"Before.\n\n<!-- contents -->\nold\n{END}\nAfter.\n"


def notebook(path: Path, *texts: str) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)} for text in texts
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells}))


@pytest.fixture
def course(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(readme, "CHAPTERS", CHAPTERS)
    (tmp_path / "README.md").write_text(README)
    notebook(tmp_path / "book" / "start.ipynb", "word " * 1500)
    notebook(tmp_path / "book" / "reverse.ipynb", "word")
    notebook(
        tmp_path / "solutions" / "reverse.ipynb",
        "## 1. One (difficulty 1, 8 minutes)",
        "## 2. Two (difficulty 2, 12 minutes)",
    )
    return tmp_path


def test_the_chapters_and_which_are_planned(course):
    readme.main([str(course)])
    assert (course / "README.md").read_text() == (
        "Before.\n\n<!-- contents -->\n"
        "| chapter | what you build | minutes | exercises |\n"
        "|---|---|---|---|\n"
        "| **Start** | | | |\n"
        "| [Start here](book/start.ipynb) | what 0 builds | 10 |  |\n"
        "| **I. The engine** | | | |\n"
        "| 1. Arrays | what 1 builds | *planned* | |\n"
        "| [2. Reverse](book/reverse.ipynb) | what 2 builds | 5 | 2, 20 minutes |\n"
        "<!-- end, by make map -->\nAfter.\n"
    )


def test_twice_is_as_once(course):
    readme.main([str(course)])
    once = (course / "README.md").read_text()
    readme.main([str(course)])
    assert (course / "README.md").read_text() == once


def test_a_readme_without_a_place_is_named(course):
    with pytest.raises(ValueError, match="no place for the contents: <!-- contents -->"):
        readme.renewed(README.replace("<!-- contents -->", ""), course)
