"""The repository's address in one place: with it buttons and links, without it none of them."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from building import ROOT, build, small_book

from book.make import reading_time

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
    site = "https://someone.github.io/course/"
    assert f'<meta property="og:image" content="{site}_static/preview.png">' in text
    assert f'<meta property="og:url" content="{site}book/one_head.html">' in text
    html = tmp_path / "_build" / "html"
    assert '<a id="home" href="/course/">' in (html / "404.html").read_text(encoding="utf-8")


def test_without_the_address(tmp_path: Path):
    text = page(tmp_path, "")
    article = text[text.index("<article") : text.index("</article>")]
    assert re.findall(r'href="https?://[^"]*', article) == []
    for name in ("mybinder", "colab", "github", "og:image", "og:url", "issues/new"):
        assert name not in text
    home = (tmp_path / "_build" / "html" / "404.html").read_text(encoding="utf-8")
    assert '<a id="home" href="/">' in home
    facts = re.search(r'<div class="course-facts[^>]*>\s*<p>(.*?)</p>', text, re.DOTALL)
    solution = json.loads((ROOT / "solutions" / "one_head.ipynb").read_text(encoding="utf-8"))
    tasks = reading_time.exercises(solution)
    assert len(tasks) > 2
    assert re.sub(r"<[^>]*>", "", facts[1]) == (
        f"5 min · needs chapters 1, 2 · {len(tasks)} exercises · Jupyter · PDF"
    )
    assert 'href="arrays.html"' in facts[1]
    assert re.search(r'download="" href="\.\./_downloads/\w+/one_head\.ipynb"', facts[1])


# --- The cell that installs the course ---------------------------------------------------------------------


def test_notebooks_are_as_the_settings_say(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert notebooks.main(["address", "--check"]) == 0, capsys.readouterr().out


def test_the_cell_comes_and_goes(tmp_path: Path, monkeypatch, capsys):
    for folder in ("book", "solutions", "exercises"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / folder / "one_head.ipynb", tmp_path / folder)
    metadata = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "README.md")}
    for name, text in metadata.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = notebooks.read(tmp_path / "book" / "one_head.ipynb")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def put(address: str, *options: str) -> int:
        Path("_config.yml").write_text(
            re.sub(r"  url: .*", f'  url: "{address}"  # here', config), encoding="utf-8"
        )
        return notebooks.main(["address", *options])

    assert put("", "--check") == 0
    assert put(ADDRESS, "--check") == 1
    assert put(ADDRESS) == 0
    assert put(ADDRESS, "--check") == 0
    for folder in ("book", "solutions", "exercises"):
        first = notebooks.read(tmp_path / folder / "one_head.ipynb").cells[0]
        assert f"bert-from-nothing @ git+{ADDRESS}#subdirectory=book" in first.source
        assert {"remove-cell", "nbval-skip"} <= set(first.metadata.tags)
        compile(first.source, "cell", "exec")
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["urls"] == {
        "Repository": ADDRESS
    }
    pictures = re.findall(r'<img src="(.*?)"', (tmp_path / "README.md").read_text(encoding="utf-8"))
    assert pictures
    for one in pictures:
        assert one.startswith(f"{ADDRESS}/raw/main/book/")
        assert (ROOT / one.removeprefix(f"{ADDRESS}/raw/main/")).is_file()
    assert notebooks.main(["exercises", "--check"]) == 0
    assert put(f"{ADDRESS}2", "--check") == 1, "another address"
    assert put("") == 0
    assert notebooks.read(tmp_path / "book" / "one_head.ipynb") == before
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in metadata} == metadata


def test_the_cell_is_not_run_by_the_tools(tmp_path: Path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(1 + 1)")])
    from book.make.install_cell import put_install_cell

    assert put_install_cell(notebook, ADDRESS)
    notebook.cells[0].source = "raise ValueError"
    notebooks.run(notebook, tmp_path)
    assert notebook.cells[0].execution_count is None
    assert (notebook.cells[1].execution_count, notebook.cells[1].outputs[0].text) == (1, "2\n")


def test_settings_without_the_line_are_refused(tmp_path: Path):
    from book.make.install_cell import repository_url

    (tmp_path / "_config.yml").write_text('title: x\nother:\n  url: "no"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"repository\.url"):
        repository_url(tmp_path / "_config.yml")
