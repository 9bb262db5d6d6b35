"""The exercises as pages of a site whose cells run, and the scripts with which the pages run them.

Only where `course_run` is on (pages_python.py). Each exercises/name.ipynb is then a page of the site, with a way back
to its chapter; the chapter's list of exercises leads there (chapter_pages.py). The page leaves out what is for Jupyter:
how to install the course, how to run a check, what a check says of no answer, and the table of progress, which the
browser keeps by itself.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from chapters import chapters_of
from docutils import nodes
from sphinx import addnodes

from bert_course.contents import Chapter

# In this order: each uses those above it.
SCRIPTS = (
    "highlight",
    "editor",
    "outputs",
    "python",
    "typed",
    "cell",
    "cells",
    "notebook",
    "answers",
    "exercises",
    "menu",
)

# How to work with the check, in the notebook's words and in the page's.
IN_JUPYTER = re.compile(r"^Write your answer where the dots are, .*?shows one way\.", re.MULTILINE)
IN_THE_PAGE = (
    "Write your answer where the dots are, then press **Check** below it. A check says what it tried and what it saw. "
    "Below a wrong answer, its hints unfold one after the other. What you write is kept in this browser."
)
INSTALLING = re.compile(r"^\*To run this page outside .*?\*\n\n", re.MULTILINE)
CHECK = re.compile(r"^check\.(?!progress\b)(\w+)\(", re.MULTILINE)
PROGRESS = re.compile(r"^check\.progress\(", re.MULTILINE)


def page_of(chapter: Chapter) -> str:
    """The name of the page with a chapter's exercises, such as `exercises/one_head`."""
    return f"exercises/{chapter.name}"


def chapter_of(app: Any, page: str) -> Chapter | None:
    """The chapter that a page has the exercises of; None for another page, and where cells do not run."""
    if not app.config.course_run:
        return None
    return next((one for one in chapters_of(app) if page_of(one) == page), None)


def asks_in_page(app: Any, chapter: Chapter) -> bool:
    """Whether the site has a page with the chapter's exercises."""
    return app.config.course_run and (Path(app.srcdir) / f"{page_of(chapter)}.ipynb").exists()


def exercise_address(app: Any, chapter: Chapter, number: int = 0) -> str:
    """Where a chapter's page finds its exercises, or the one with this number, counted from 1."""
    address = app.builder.get_relative_uri(chapter.page, page_of(chapter))
    return f"{address}#exercise-{number}" if number else address


def check_of(notebook: Any) -> list[str]:
    """The name of each exercise's check, in the order of the numbered headings; "" where one has none."""
    names: list[str] = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            names += [""] * len(re.findall(r"^## \d", text, re.MULTILINE))
        elif names and not names[-1] and (found := CHECK.search(text)):
            names[-1] = found[1]
    return names


# --- Pages -----------------------------------------------------------------------------------------------


def add_to_project(app: Any) -> None:
    """Let Sphinx find the exercises, which the table of contents does not name."""
    for chapter in chapters_of(app):
        if asks_in_page(app, chapter):
            app.project.beside[page_of(chapter)] = f"{page_of(chapter)}.ipynb"


def for_the_page(app: Any, page: str, source: list[str]) -> None:
    """Leave out of exercises what is for Jupyter. Cells keep their places and ids."""
    if chapter_of(app, page) is None:
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        text, metadata = "".join(cell["source"]), cell["metadata"]
        if cell["cell_type"] == "markdown":
            cell["source"] = IN_JUPYTER.sub(IN_THE_PAGE, INSTALLING.sub("", text))
            continue
        if CHECK.search(text):
            cell["outputs"] = []
        if PROGRESS.search(text) or "install" in metadata.get("tags", []):
            metadata["tags"] = [*metadata.get("tags", []), "remove-cell"]
    source[0] = json.dumps(notebook)


def complete(app: Any, document: nodes.document) -> None:
    """Give a page of exercises its way back, and each exercise an id that does not hang on its title."""
    chapter = chapter_of(app, app.env.docname)
    section = next(document.findall(nodes.section), None)
    if chapter is None or section is None:
        return
    app.env.metadata[app.env.docname]["orphan"] = True  # no table of contents has it, and that is meant
    below = [one for one in section.children if isinstance(one, nodes.section)]
    for number, one in enumerate(below, 1):
        one["ids"].append(f"exercise-{number}")
        quiet_heading(one)
    section.insert(1, line("course-back", nodes.Text("Back to "), named(chapter)))
    section += way_on(app, chapter)


def quiet_heading(section: nodes.section) -> None:
    """Put difficulty and minutes, "(difficulty 1, 10 minutes)", from the end of a heading into a quiet line below."""
    title = section.next_node(nodes.title)
    last = title.children[-1]
    found = (
        re.search(r"\s*\((\w+ \d, \d+ \w+)\)\s*$", last.astext()) if isinstance(last, nodes.Text) else None
    )
    if found:
        title[-1] = nodes.Text(last.astext()[: found.start()])
        section.insert(1, line("course-effort", nodes.Text(found[1])))


def way_on(app: Any, chapter: Chapter) -> nodes.container:
    """The end of a page of exercises: the chapter that follows, and its exercises."""
    chapters = chapters_of(app)
    following = chapters[chapters.index(chapter) + 1 :]
    words: list[nodes.Node] = [nodes.Text(f"That was the last exercise of chapter {chapter.number}.")]
    if following:
        words += [nodes.Text(" Go on with "), named(following[0])]
        if asks_in_page(app, following[0]):
            address = app.builder.get_relative_uri(page_of(chapter), page_of(following[0]))
            words += [
                nodes.Text(", or with "),
                nodes.reference("", "its exercises", refuri=address, internal=True),
            ]
        words.append(nodes.Text("."))
    return line("course-on", *words)


def named(chapter: Chapter) -> addnodes.pending_xref:
    """ "chapter 7, One attention head", as a link."""
    return page_link(chapter.page, f"chapter {chapter.number}, {chapter.title}")


def page_link(page: str, text: str) -> addnodes.pending_xref:
    """A link to another page of the book, which Sphinx resolves, and complains of where there is none."""
    link = addnodes.pending_xref(
        refdomain="std", reftype="doc", refexplicit=True, reftarget=f"/{page}", refwarn=True
    )
    link += nodes.inline("", text, classes=["doc"])
    return link


def line(kind: str, *words: nodes.Node) -> nodes.container:
    """A quiet line of the page's own."""
    return nodes.container("", nodes.paragraph("", "", *words), classes=["course-facts", kind])


# --- Scripts ---------------------------------------------------------------------------------------------


def add_files(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the pages with cells their scripts and their style."""
    with_cells = {one.page for one in chapters_of(app)} | {page_of(one) for one in chapters_of(app)}
    if app.config.course_run and doctree is not None and page in with_cells:
        app.add_css_file("python/python.css")
        for name in SCRIPTS:
            app.add_js_file(f"python/{name}.js", loading_method="defer")


def clear(app: Any, error: Exception | None) -> None:
    """Where cells do not run, take out these scripts, and what an earlier build with the switch on has left."""
    if error is None and not app.config.course_run and app.builder.name == "html":
        for folder in ("exercises", "_static/python"):
            shutil.rmtree(Path(app.outdir) / folder, ignore_errors=True)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", add_to_project, priority=600)  # after chapters.py made its project
    app.connect("source-read", for_the_page)
    app.connect("doctree-read", complete, priority=400)
    app.connect("html-page-context", add_files)
    app.connect("build-finished", clear)
