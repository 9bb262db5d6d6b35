"""A handout for each chapter, one sheet of A4 as PDF: its idea, first picture, formulas and the texts of its exercises.

    python -m book.make.handouts [SITE [NAME …]]

It comes from the built page and from exercises/, so nothing in it is written twice. Files are in SITE/handouts. Needs
Chromium, which prints them.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from bert_course.contents import CHAPTERS, Chapter
from book.make import chromium
from book.make.slides import read, run, slides

TASK = re.compile(r"## (\d+\. .*)\n+([\s\S]*)")
LARGEST, SMALLEST = 10.5, 7.0  # points; the largest at which a sheet holds it all is taken
STYLE = """
@page { size: A4; margin: 12mm; }
html { font-size: 10pt; }
.sheet { box-sizing: border-box; width: 186mm; height: 272mm; overflow: hidden; }
.sheet { font-size: var(--size); line-height: 1.32; }
.sheet * { max-width: 100% !important; }
.sheet h1 { margin: 0; font-size: 1.8em; } .sheet h2 { margin: 0.5em 0 0.2em; font-size: 1.1em; break-after: avoid; }
.sheet .course-idea { margin: 0.3em 0 0.6em; font-size: 1.15em; }
.sheet .top { display: grid; grid-template-columns: 3fr 2fr; gap: 1em; align-items: center; }
.sheet .top svg { width: 100% !important; height: auto; max-height: 62mm; }
.sheet .top :is(.controls, .words, .fields, .course-embed, input) { display: none !important; }
.sheet .formulas { font-size: 0.95em; } .sheet .formulas .math { margin: 0.3em 0; }
.sheet .tasks { columns: 2; column-gap: 1.5em; border-top: 1px solid #999; margin-top: 0.6em; }
.sheet :is(p, ul, ol) { margin: 0 0 0.35em; }
.sheet pre { margin: 0.2em 0; padding: 0.3em; font-size: 0.85em; white-space: pre-wrap; }
.sheet .top .course-flow .line { width: 100%; }
"""
FIT = f"""async () => {{
    await window.MathJax?.startup.promise;
    await document.fonts.ready;
    const sheet = document.querySelector(".sheet");
    for (let size = {LARGEST}; size >= {SMALLEST}; size -= 0.25) {{
        sheet.style.setProperty("--size", `${{size}}pt`);
        if (sheet.scrollHeight <= sheet.clientHeight + 1) return size;
    }}
    return 0;
}}"""


def tasks(notebook: Any) -> list[tuple[str, str]]:
    """The title and the text, in Markdown, of each exercise."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return [(found[1], found[2]) for text in texts if (found := TASK.fullmatch(text))]


def sheet(page: str, chapter: Chapter, notebook: Any) -> str:
    """A handout as HTML. page: the chapter's built page. notebook: its exercises, or None."""
    article, head = read(page)
    found = slides(article)
    pictures = [one.shown for one in found if one.kind == "picture" and "<svg" in one.shown]
    formulas = "".join(one.shown for one in found if one.kind == "formula")
    markdown = MarkdownIt("commonmark").use(
        dollarmath_plugin, renderer=lambda text, options: f"\\({text}\\)", allow_digits=False
    )
    asked = tasks(notebook) if notebook is not None else []
    listed = "".join(f"<h2>{escape(title)}</h2>{markdown.render(text)}" for title, text in asked)
    listed = re.sub(r"</?a\b[^>]*>", "", listed)  # a link leads nowhere on paper
    return (
        f'<!DOCTYPE html><html lang="en" data-content_root="../" data-theme="light" data-mode="light">{head}'
        f"<body><style>{STYLE}</style><main class='bd-article sheet'>{found[0].shown}"
        f"<div class='top'><div>{''.join(pictures[:1])}</div><div class='formulas'>{formulas}</div></div>"
        f"<div class='tasks mathjax_process'>{listed}</div></main></body></html>"
    )


def make(site: Path, root: Path, names: list[str], browser: Any) -> list[Path]:
    """Print the handouts of these chapters; returns the files.

    Raises ValueError where none of the chapters has a page, or one does not fit on a sheet.
    """
    chapters = [one for one in CHAPTERS if one.name in names and (site / f"{one.page}.html").exists()]
    if not chapters:
        raise ValueError(f"{site} has no page of {', '.join(names)}")
    folder = site / "handouts"
    folder.mkdir(exist_ok=True)
    made = []
    for chapter in chapters:
        page = (site / f"{chapter.page}.html").read_text(encoding="utf-8")
        path = root / "exercises" / f"{chapter.name}.ipynb"
        notebook = nbformat.read(path, as_version=4) if path.exists() else None
        source = folder / f"{chapter.name}.html"
        source.write_text(sheet(page, chapter, notebook), encoding="utf-8")
        try:
            opened = browser.new_page()
            opened.goto(source.as_uri())
            if not opened.evaluate(FIT):
                raise ValueError(f"the handout of {chapter.name} does not fit on a sheet")
            made.append(source.with_suffix(".pdf"))
            opened.pdf(path=made[-1], prefer_css_page_size=True, print_background=True)
            opened.close()
        finally:
            source.unlink()
    return made


def main(arguments: list[str]) -> int:
    """Make the handouts; returns the exit status."""

    def work(site: Path, names: list[str]) -> str:
        with chromium.opened() as browser:
            made = make(site, Path.cwd(), names, browser)
        return f"{len(made)} handouts: {made[0].parent.as_uri()}"

    return run(arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
