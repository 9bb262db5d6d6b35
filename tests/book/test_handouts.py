"""Handouts: one sheet for a chapter, with its idea, first picture, formulas and the texts of all its exercises."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from building import ROOT

bs4 = pytest.importorskip("bs4", reason="BeautifulSoup is not installed (it comes with jupyter-book)")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pypdf = pytest.importorskip("pypdf")
from bert_course.contents import CHAPTERS  # noqa: E402
from book.make import handouts  # noqa: E402

pytestmark = pytest.mark.no_arrays

ARRAYS = next(one for one in CHAPTERS if one.name == "arrays")
PAGE = """<html><head><script src="other.js"></script></head><body><article><section><h1>1. Arrays</h1>
<p class="course-idea">The idea.</p><p>Words.</p><section><h2>Two</h2><div class="math">x = 1</div>
<div class="cell"><div class="cell_output"><svg viewBox="0 0 9 9"><text>drawn</text></svg></div></div></section>
</section></article></body></html>"""


def exercises(*texts: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text) for text in texts])


def test_what_is_on_it():
    made = handouts.sheet(
        PAGE,
        ARRAYS,
        exercises(
            "# Exercises\n\nHow.",
            "## 1. One (difficulty 1, 8 minutes)\n\nWrite $a < b$, see [chapter 2](x).",
            "Text.",
        ),
    )
    words = " ".join(bs4.BeautifulSoup(made, "lxml").body.main.get_text(" ").split())
    asked = r"1. One (difficulty 1, 8 minutes) Write \(a < b\) , see chapter 2."
    assert words == f"1. Arrays The idea. drawn x = 1 {asked}"
    assert "other.js" not in made
    assert "href" not in made


def test_every_exercise_has_its_text():
    for path in sorted((ROOT / "exercises").glob("*.ipynb")):
        notebook = nbformat.read(path, 4)
        answers = {
            cell.metadata["course"]["exercise"]
            for cell in notebook.cells
            if "answer" in cell.metadata.get("tags", [])
        }
        found = handouts.tasks(notebook)
        assert len(found) == len(answers)
        assert all(text.strip() for _, text in found)


def test_a_sheet_is_one_page_and_a_text_that_is_too_long_is_named(
    small_site: Path, browser: Any, tmp_path: Path
):
    site = Path(shutil.copytree(small_site, tmp_path / "site"))
    (tmp_path / "exercises").mkdir()

    def put(count: int) -> None:
        texts = (
            f"## {i}. Task (difficulty 1, 5 minutes)\n\n" + "Words for a task. " * 25 for i in range(1, count)
        )
        nbformat.write(exercises(*texts), tmp_path / "exercises" / "arrays.ipynb")

    for count in (2, 10):  # at the largest size, and at a smaller one
        put(count)
        (file,) = handouts.make(site, tmp_path, ["arrays"], browser)
        (page,) = pypdf.PdfReader(file).pages
        assert f"{count - 1}. Task" in page.extract_text()
    put(40)
    with pytest.raises(ValueError, match="handout of arrays does not fit"):
        handouts.make(site, tmp_path, ["arrays"], browser)
    assert [one.name for one in (site / "handouts").iterdir()] == ["arrays.pdf"]


@pytest.mark.slow
def test_every_chapter_fits_on_a_sheet(site: Path, browser: Any, tmp_path: Path):
    made = handouts.make(
        Path(shutil.copytree(site, tmp_path / "site")), ROOT, [one.name for one in CHAPTERS], browser
    )
    assert len(made) == len(CHAPTERS)
    assert all(len(pypdf.PdfReader(file).pages) == 1 for file in made)
