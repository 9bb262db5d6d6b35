"""The build of the book: it succeeds, it fails when it should, and its launch buttons are alive or absent."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, build, pages

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")

pytestmark = pytest.mark.no_arrays

ADDRESS = "https://github.com/someone/course"


def test_the_book_builds_without_a_warning(built: tuple[Path, Any]):
    _, done = built
    if done.returncode:
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stderr)
        warnings = [line for line in said.splitlines() if "WARNING" in line or "ERROR" in line]
        pytest.fail("\n".join(warnings) or said[-3000:], pytrace=False)


def test_no_button_is_dead(site: Path):
    for name in pages():
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert "mybinder.org" not in page
        assert "colab.research.google.com" not in page


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A book of two pages with the course's settings."""
    book = tmp_path / "book"
    for name in ("_static", "_ext"):
        shutil.copytree(ROOT / "book" / name, book / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n  - file: book/page\n", encoding="utf-8"
    )
    (book / "index.md").write_text("# Start\n\nSee {doc}`page`.\n", encoding="utf-8")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Page")])
    nbformat.write(notebook, book / "page.ipynb")
    return tmp_path


def test_the_address_in_one_place_brings_the_buttons(small: Path):
    config = (small / "_config.yml").read_text(encoding="utf-8")
    assert config.count('url: ""') == 1, "the repository's address is set: update this test"
    (small / "_config.yml").write_text(config.replace('url: ""', f"url: {ADDRESS}"), encoding="utf-8")
    done = build(small, small)
    assert done.returncode == 0, done.stderr
    page = (small / "_build" / "html" / "book" / "page.html").read_text(encoding="utf-8")
    assert 'href="https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/book/page.ipynb"' in page
    assert 'href="https://colab.research.google.com/github/someone/course/blob/main/book/page.ipynb"' in page
    assert ADDRESS not in (small / "_build" / "html" / "book" / "index.html").read_text(encoding="utf-8")


def test_a_dead_reference_fails(small: Path):
    (small / "book" / "index.md").write_text("# Start\n\nSee {doc}`nowhere`.\n", encoding="utf-8")
    done = build(small, small)
    assert done.returncode != 0
    assert "nowhere" in done.stderr
