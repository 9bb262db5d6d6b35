"""What each chapter's page gets beside its text: its idea and facts under the title, and its exercises.

All of it comes from the notebook, from its solutions and from the list of chapters, when the page is read.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import nbformat
from chapters import chapter_at
from docutils import nodes
from exercise_pages import asks_in_page, check_of, exercise_address, page_link
from repository import launch_addresses
from sphinx import addnodes
from sphinx.util import logging

from bert_course.contents import CHAPTERS, Chapter
from book.make import reading_time

logger = logging.getLogger(__name__)


def complete(app: Any, document: nodes.document) -> None:
    """Add what a chapter's page gets; other pages stay as they are."""
    docname = app.env.docname
    chapter = chapter_at(app, docname)
    section = next(document.findall(nodes.section), None)
    if chapter is None or section is None:
        return
    exercises = exercises_of(app, chapter)
    notebook = read_notebook(app, Path(app.env.doc2path(docname)))
    if notebook is not None:
        section[1:1] = [*idea(notebook), facts(app, chapter, notebook, exercises)]
    if exercises:
        section += exercises_section(app, chapter, exercises)
    if app.config.course_repository:
        section += reports(app.config.course_repository, chapter)


def read_notebook(app: Any, path: Path) -> Any:
    """The notebook in a file, or None; a change of the file reads the page again."""
    if path.suffix != ".ipynb" or not path.exists():
        return None
    app.env.note_dependency(str(path))
    return nbformat.read(path, as_version=4)


def exercises_of(app: Any, chapter: Chapter) -> list[reading_time.Exercise]:
    """The chapter's exercises, if they are there for learners."""
    solution = read_notebook(app, Path(app.srcdir) / "solutions" / f"{chapter.name}.ipynb")
    there = (Path(app.srcdir) / exercise_path(chapter)).exists()
    return reading_time.exercises(solution) if solution is not None and there else []


def exercise_path(chapter: Chapter) -> str:
    """Where learners find a chapter's exercises, in the repository and in the site."""
    return f"exercises/{chapter.name}.ipynb"


# --- The line under the title ----------------------------------------------------------------------------


def idea(notebook: Any) -> list[nodes.Node]:
    """The page's one idea, in a sentence."""
    words = notebook.metadata.get("course", {}).get("idea", "").replace("'", "’")
    return [nodes.paragraph("", words, classes=["course-idea"])] if words else []


def facts(
    app: Any, chapter: Chapter, notebook: Any, exercises: list[reading_time.Exercise]
) -> nodes.container:
    """How long, what first, how many exercises, and the ways to have the page: here, in Jupyter, on paper."""
    course = notebook.metadata.get("course", {})
    items: list[list[nodes.Node]] = [[nodes.Text(f"{reading_time.minutes(notebook)} min")]]
    if needs := needed(chapter, course.get("needs", [])):
        items.append(chapter_links(needs))
    if exercises:
        noun = "exercise" if len(exercises) == 1 else "exercises"
        items.append([exercises_link(app, chapter, f"{len(exercises)} {noun}")])
    if app.config.course_run:
        items.append([nodes.Text("runs here")])
    source = "../" * chapter.page.count("/") + f"_sources/{app.env.docname}.ipynb"
    items.append([nodes.raw("", f'<a href="{source}" download>Jupyter</a>', format="html")])
    items.append([nodes.raw("", PRINT, format="html")])
    line = nodes.paragraph()
    for i, item in enumerate(items):
        line += ([nodes.Text(" · ")] if i else []) + item
    return nodes.container("", line, classes=["course-facts"])


PRINT = '<button type="button" class="course-print" hidden>PDF</button>'  # print.js shows it


def needed(chapter: Chapter, names: list[str]) -> list[Chapter]:
    """The chapters that a chapter's metadata name by their stems, in the course's order."""
    for name in names:
        if name not in {one.name for one in CHAPTERS}:
            logger.warning("course.needs: there is no chapter %r", name, location=chapter.page)
    return [one for one in CHAPTERS if one.name in names]


def chapter_links(chapters: list[Chapter]) -> list[nodes.Node]:
    """ "needs chapters 1, 2", each number with its link."""
    line: list[nodes.Node] = [nodes.Text("needs chapter " if len(chapters) == 1 else "needs chapters ")]
    for i, one in enumerate(chapters):
        line += ([nodes.Text(", ")] if i else []) + [page_link(one.page, one.number)]
    return line


def exercises_link(app: Any, chapter: Chapter, text: str) -> nodes.Element:
    """A link to the page with the chapter's exercises, or to their notebook where the site has no such page."""
    if not asks_in_page(app, chapter):
        return download(app, chapter, text)
    return nodes.reference("", text, refuri=exercise_address(app, chapter), internal=True)


def download(app: Any, chapter: Chapter, text: str) -> addnodes.download_reference:
    """A link that downloads the chapter's exercises, which thereby are part of the site."""
    return addnodes.download_reference(
        "", "", nodes.Text(text), refdoc=app.env.docname, reftarget=f"/{exercise_path(chapter)}"
    )


# --- The page's end --------------------------------------------------------------------------------------


def exercises_section(app: Any, chapter: Chapter, exercises: list[reading_time.Exercise]) -> nodes.section:
    """Each exercise with its difficulty and its minutes, and how to open them."""
    section = nodes.section(
        ids=["course-exercises"], names=["course-exercises"], classes=["course-exercises"]
    )
    section += nodes.title("", "Exercises")
    in_page = asks_in_page(app, chapter)
    notebook = read_notebook(app, Path(app.srcdir) / exercise_path(chapter))
    checks = check_of(notebook) if in_page else []
    listed = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".")
    for number, one in enumerate(exercises, 1):
        title: nodes.Node = nodes.Text(one.title)
        if in_page:
            address = exercise_address(app, chapter, number)
            title = nodes.reference("", one.title, refuri=address, internal=True)
        note = nodes.inline("", f"(difficulty {one.difficulty}, {one.minutes} min)", classes=["course-note"])
        # progress.js finds by its class which exercise this is.
        classes = [f"course-check-{name}" for name in checks[number - 1 : number] if name]
        listed += nodes.list_item("", nodes.paragraph("", "", title, nodes.Text(" "), note), classes=classes)
    section += listed
    how = nodes.paragraph()
    if in_page:
        how += [exercises_link(app, chapter, "Solve them on this site"), nodes.Text(", ")]
    how += download(app, chapter, "download the exercises" if in_page else "Download the exercises")
    for name, address in launch_addresses(app.config, exercise_path(chapter)):
        how += [nodes.Text(", "), nodes.reference("", f"open them in {name}", refuri=address, internal=False)]
    how += [nodes.Text(", or run "), nodes.literal("", "make lab"), nodes.Text(" in the course’s folder.")]
    section += how
    return section


def reports(repository: str, chapter: Chapter) -> nodes.paragraph:
    """Where to tell of an error, and where to ask."""
    issue = f"{repository}/issues/new?{urlencode({'title': f'{chapter.heading}: '})}"
    links = [("Report an error", issue), ("ask", f"{repository}/discussions")]
    report, ask = (nodes.reference("", words, refuri=url, internal=False) for words, url in links)
    words = nodes.Text("Is something wrong or unclear? "), report, nodes.Text(", or "), ask, nodes.Text(".")
    return nodes.paragraph("", "", *words, classes=["course-note"])


# --- Predictions -----------------------------------------------------------------------------------------


def ask(app: Any, document: nodes.document) -> None:
    """Put the answers to choose from above the output of a cell tagged `predict`: buttons, which predict.js shows."""
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb" or not chapter_at(app, app.env.docname):
        return
    cells = read_notebook(app, path).cells
    for node in list(document.findall(nodes.container)):
        if node.get("nb_element") == "cell_code" and (
            asked := cells[node["cell_index"]].metadata.get("predict")
        ):
            output = next((one for one in node.children if one.get("nb_element") == "cell_code_output"), None)
            if output is not None:
                node.insert(node.index(output), nodes.raw("", choices(**asked), format="html"))


def choices(choices: list[str], right: int) -> str:
    """The answers as HTML; `right` counts from 0."""
    buttons = "".join(
        f'<button type="button" class="course-button">{html.escape(one)}</button>' for one in choices
    )
    return f'<div class="course-prediction" data-right="{right}" hidden>{buttons}</div>'


# --- What tags do ----------------------------------------------------------------------------------------

OPEN = '<div class="course-open" hidden></div>\n\n'  # predict.js finds it


def read_tags(app: Any, page: str, source: list[str]) -> None:
    """Fold the cells tagged `setup`, and mark the text tagged `open`, from which on nothing waits for a prediction."""
    if chapter_at(app, page):
        path = Path(app.env.doc2path(page))
        if path.suffix == ".ipynb":
            notebook = json.loads(source[0])
            for cell in notebook["cells"]:
                tags = cell["metadata"].get("tags", [])
                if "setup" in tags:
                    cell["metadata"]["tags"] = [*tags, "hide-input"]
                if "open" in tags:
                    cell["source"] = [OPEN, *cell["source"]]
            source[0] = json.dumps(notebook)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", read_tags)
    app.connect("doctree-read", ask)
    app.connect("doctree-read", complete, priority=400)  # before the page's contents are collected
