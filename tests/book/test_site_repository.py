"""The repository's address in one place: with it buttons and links, without it none of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from building import ROOT, build, small_book

from book.make import publish, reading_time

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
notebooks = pytest.importorskip("book.make.notebooks", reason="nbclient is not installed (as nbformat)")

pytestmark = pytest.mark.no_arrays

ADDRESS = "https://github.com/Someone/course"


def page(folder: Path, address: str) -> str:
    """A page of the small book with chapter 7, its exercises and chapter 8 planned, built with this address."""
    about = {"difficulty": 2, "needs": ["reverse_mode", "arrays"]}
    chapter = nbformat.v4.new_notebook(metadata={"course": about, "kernelspec": notebooks.KERNEL})
    output = nbformat.v4.new_output("display_data", data={"text/markdown": LISTING, "text/plain": "x"})
    chapter.cells = [
        nbformat.v4.new_markdown_cell(
            "# 7. One attention head\n\nSee `minigrad/ops/fused.py` and `minigrad/none.py`."
        ),
        nbformat.v4.new_code_cell("show(f)", execution_count=1, outputs=[output]),
        nbformat.v4.new_markdown_cell("**Predict** it."),
    ]
    names = ("index", "arrays", "reverse_mode", "one_head", "many_heads", "glossary", "references")
    texts = {"index": "# Start\n\nText.\n", "one_head": chapter}
    small_book(folder, {name: texts.get(name, "") for name in names}, address)
    config = folder / "_config.yml"
    config.write_text(config.read_text("utf-8").replace("branch: main", "branch: next"), "utf-8")
    (folder / "book" / "references.md").write_text(
        "# References\n\n```{bibliography}\n:all:\n:list: bullet\n```\n", encoding="utf-8"
    )
    (folder / "book" / "glossary.md").write_text("# Glossary\n\nNone.\n", encoding="utf-8")
    for name in ("solutions", "exercises"):
        (folder / name).mkdir()
        shutil.copy(ROOT / name / "one_head.ipynb", folder / name)
    source = folder / "minigrad" / "ops" / "fused.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "import numpy\n\n\nclass C:\n    def f(x):\n        y = x\n        return y\n", encoding="utf-8"
    )
    done = build(folder, folder)
    assert done.returncode == 0, done.stderr
    return (folder / "_build" / "html" / "book" / "one_head.html").read_text(encoding="utf-8")


LISTING = "*From `minigrad/ops/fused.py`:*\n\n```python\ndef f(x):\n    y = x\n...\n```"


def test_with_the_address(tmp_path: Path):
    text = page(tmp_path, ADDRESS)
    binder = 'href="https://mybinder.org/v2/gh/Someone/course/next?urlpath=lab/tree/'
    colab = 'href="https://colab.research.google.com/github/Someone/course/blob/next/'
    assert f'{binder}book/one_head.ipynb"' in text
    assert f'{colab}book/one_head.ipynb"' in text
    assert f'{binder}exercises/one_head.ipynb"' in text
    assert f'{colab}exercises/one_head.ipynb"' in text
    assert f'href="{ADDRESS}/blob/next/minigrad/ops/fused.py"' in text
    assert f'href="{ADDRESS}/blob/next/minigrad/ops/fused.py#L5-L6"' in text
    assert "minigrad/none.py</" in re.sub(r"</?span[^>]*>", "", text)
    assert "next/minigrad/none.py" not in text
    assert f'href="{ADDRESS}/edit/next/book/one_head.ipynb"' in text
    assert f'href="{ADDRESS}/issues/new' in text
    assert f'href="{ADDRESS}/issues/new?title=7.+One+attention+head%3A+"' in text
    assert f'href="{ADDRESS}/discussions"' in text
    site = "https://someone.github.io/course/"
    assert f'<meta property="og:image" content="{site}_static/preview.png">' in text
    assert f'<meta property="og:url" content="{site}book/one_head.html">' in text
    html = tmp_path / "_build" / "html"
    assert '<a id="home" href="/course/">' in (html / "404.html").read_text(encoding="utf-8")


def test_without_the_address(site: Path):
    """As the course is built, which has none, unless it has been published."""
    if publish.repository_url(ROOT / "_config.yml"):
        pytest.skip("this copy of the course has an address")
    text = (site / "book" / "one_head.html").read_text(encoding="utf-8")
    article = text[text.index("<article") : text.index("</article>")]
    assert re.findall(r'href="https?://[^"]*', article) == []
    for name in ("mybinder", "colab", "github", "og:image", "og:url", "issues/new", "discussions"):
        assert name not in text
    home = (site / "404.html").read_text(encoding="utf-8")
    assert '<a id="home" href="/">' in home
    facts = re.search(r'<div class="course-facts[^>]*>\s*<p>(.*?)</p>', text, re.DOTALL)
    solution = json.loads((ROOT / "solutions" / "one_head.ipynb").read_text(encoding="utf-8"))
    tasks = reading_time.exercises(solution)
    assert len(tasks) > 2
    minutes = reading_time.minutes(reading_time.read(ROOT / "book" / "one_head.ipynb"))
    assert re.sub(r"<[^>]*>", "", facts[1]) == (
        f"{minutes} min · needs chapters 1, 2 · {len(tasks)} exercises · Jupyter · PDF"
    )
    assert 'href="arrays.html"' in facts[1]
    assert re.search(r'download="" href="\.\./_downloads/\w+/one_head\.ipynb"', facts[1])
