"""A page for each chapter of the table of contents that has no file yet, made when the site is built.

The pages' sources are written below the build's own folder, never into book/. A chapter that gets its notebook
replaces its page by being there: its name and address stay.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from sphinx.project import Project

from minigrad.course.contents import CHAPTERS, Chapter


def text_of(chapter: Chapter, chapters: list[Chapter], planned: set[str]) -> str:
    """The page of a planned chapter, in Markdown.

    chapters: those of this book, in order; planned: the pages among them that have no file.
    """
    listed = []
    for other in (one for one in chapters if one.part == chapter.part):
        if other == chapter:
            listed.append(f"- **{other.heading}** (this page)")
        else:
            mark = " (planned)" if other.page in planned else ""
            listed.append(f"- {{doc}}`{other.heading} </{other.page}>`{mark}")
    lines = [
        f"# {chapter.heading}",
        f":::{{div}} course-planned\n**This chapter is planned.** You will build {chapter.build}.\n:::",
        "## Its place in the course",
        f"Part {chapter.part}" if chapter.part[0] in "IVX" else chapter.part,
        "\n".join(listed),
    ]
    lines[3] += ":"
    if chapter.library:
        paths = " and ".join(f"`{path}`" for path in chapter.library)
        lines += ["## What is there now", f"The library has what this chapter will derive, in {paths}."]
    return "\n\n".join(lines) + "\n"


def chapters_of(app: Any) -> list[Chapter]:
    """The chapters in this book's table of contents, in the order of the list."""
    return [chapter for chapter in CHAPTERS if chapter.page in app.config.external_site_map]


class Translated(NamedTuple):
    """A page in another language: which, and the English page that it is a translation of."""

    language: str
    page: str


def original(app: Any, page: str) -> str:
    """The English page that this one is a translation of (translated.py), or the page itself."""
    return app.course_translated[page].page if page in app.course_translated else page


def ending(app: Any, page: str) -> str:
    """What the name of a page in another language ends in, such as "_de"; "" for an English one."""
    return page.removeprefix(original(app, page))


def translated_file(app: Any, page: str) -> Path:
    """Where the notebook of a page in another language is written."""
    return Path(app.doctreedir).parent / "translated" / f"{page}.ipynb"


def chapter_at(app: Any, page: str) -> Chapter | None:
    """The chapter of a page, in whatever language; None for other pages."""
    return next((one for one in chapters_of(app) if one.page == original(app, page)), None)


def is_planned(app: Any, page: str) -> bool:
    """Whether the page stands for a chapter without a file."""
    return page in app.config.course_planned


def find_planned(app: Any, config: Any) -> None:
    """Note which chapters have no file. It is a setting, so that a change of it reads every page again."""
    files = [
        Path(app.srcdir) / f"{chapter.page}{suffix}" for chapter in chapters_of(app) for suffix in SUFFIXES
    ]
    written = {file.relative_to(app.srcdir).with_suffix("").as_posix() for file in files if file.exists()}
    config.course_planned = sorted(
        chapter.page for chapter in chapters_of(app) if chapter.page not in written
    )


SUFFIXES = (".ipynb", ".md")


class BookProject(Project):
    """The files of the book, and beside them pages that the table of contents does not find, as page: file."""

    beside: dict[str, str]

    def discover(self, *arguments: Any, **options: Any) -> set[str]:
        """All pages, as Sphinx asks for them before each build."""
        found = super().discover(*arguments, **options)
        for page, path in self.beside.items():
            found.add(page)
            self._docname_to_path[page] = path
            self._path_to_docname[path] = page
        return found


def add_to_project(app: Any) -> None:
    """Write the pages of planned chapters and let Sphinx find them."""
    folder = Path(app.doctreedir).parent / "planned"
    chapters, planned = chapters_of(app), set(app.config.course_planned)
    project = BookProject(app.srcdir, app.project.source_suffix)
    project.restore(app.project)
    project.beside, app.course_translated = {}, {}
    for chapter in (one for one in chapters if one.page in planned):
        path = folder / f"{chapter.name}.md"
        write_if_new(path, text_of(chapter, chapters, planned))
        project.beside[chapter.page] = os.path.relpath(path, app.srcdir)
    app.project = app.env.project = project


def write_if_new(path: Path, text: str) -> None:
    """Write a file unless it has this text: its time says when it changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def mark_in_sidebar(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the sidebar's entries of chapters the class `course-chapter`, of planned ones `planned` too, and take from
    their pages the buttons for a file."""
    if "generate_toctree_html" in context:
        generate, pathto = context["generate_toctree_html"], context["pathto"]
        chapter_pages = {one.page for one in chapters_of(app)}
        here = {"#"} if page in chapter_pages else set()
        addresses = here | {pathto(one) for one in chapter_pages}
        planned = {pathto(one) for one in app.config.course_planned}
        # Exercises and pages in another language are where their chapter is.
        english = original(app, page)
        place = english.replace("exercises/", "book/", 1) if english.startswith("exercises/") else english

        def generate_marked(*arguments: Any, **options: Any) -> Any:
            soup = generate(*arguments, **options)
            for summary in soup.select("summary"):  # what unfolds the pages below one
                summary["aria-label"] = f"Pages below {summary.parent.parent.a.get_text().strip()}"
            for link in soup.select("li > a"):
                known = ["course-chapter"] if link["href"] in addresses else []
                if place in chapter_pages - {page} and link["href"] == pathto(place):
                    known += ["current", "active"]
                if link["href"] in planned or (link["href"] == "#" and is_planned(app, page)):
                    known.append("planned")
                link.parent["class"] = list(dict.fromkeys([*link.parent.get("class", []), *known]))
            return soup

        context["generate_toctree_html"] = generate_marked
    if is_planned(app, page):
        for_a_file = ("download-buttons", "source-edit-button", "source-file-button", "launch-buttons")
        buttons = [one for one in context.get("header_buttons", []) if one.get("label") not in for_a_file]
        for group in (one for one in buttons if one["type"] == "group"):
            group["buttons"] = [one for one in group["buttons"] if one.get("label") not in for_a_file]
        context["header_buttons"] = buttons


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_config_value("course_planned", [], "env")
    app.connect("config-inited", find_planned, priority=950)  # after the table of contents was read, at 900
    app.connect("builder-inited", add_to_project)
    app.connect("html-page-context", mark_in_sidebar, priority=900)  # after the theme's
