"""The build of the book: it succeeds, and copies what has changed. test_site_links.py has what fails it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, build, small_book

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")

pytestmark = pytest.mark.no_arrays


def test_the_book_builds_without_a_warning(built: tuple[Path, Any]):
    _, done = built
    if done.returncode:
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stderr)
        warnings = [line for line in said.splitlines() if "WARNING" in line or "ERROR" in line]
        pytest.fail("\n".join(warnings) or said[-3000:], pytrace=False)


def test_every_entry_of_the_bibliography_is_cited_on_some_page(site: Path):
    entries = re.findall(
        r"^@\w+\{(\w+),", (ROOT / "book" / "references.bib").read_text("utf-8"), re.MULTILINE
    )
    text = "".join(page.read_text("utf-8") for page in site.rglob("*.html"))
    cited = set(re.findall(r'references\.html#(\w+)"', text))
    assert len(entries) > 100
    assert set(entries) - cited == {"dai2019"}  # cited in a cell's output, which has no links


def test_a_style_that_has_changed_is_copied_though_no_page_has(tmp_path: Path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Page")])
    small = small_book(tmp_path, {"index": "# Start\n\nSee {doc}`page`.\n", "page": notebook})
    assert build(small, small).returncode == 0
    style, copy = (
        small / "book" / "site" / "static" / "print.css",
        small / "_build" / "html" / "_static" / "print.css",
    )
    assert copy.read_text(encoding="utf-8") == style.read_text(encoding="utf-8")
    style.write_text("/* changed */\n", encoding="utf-8")
    assert build(small, small).returncode == 0
    assert copy.read_text(encoding="utf-8") == "/* changed */\n"
