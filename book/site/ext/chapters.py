"""The book's chapters: which there are, which page is which, and their entries in the sidebar."""

from __future__ import annotations

from typing import Any

from sphinx.project import Project

from bert_course.contents import CHAPTERS, Chapter


def chapters_of(app: Any) -> list[Chapter]:
    """The chapters in this book's table of contents, in the order of the list."""
    return [chapter for chapter in CHAPTERS if chapter.page in app.config.external_site_map]


def chapter_at(app: Any, page: str) -> Chapter | None:
    """The chapter of a page; None for other pages."""
    return next((one for one in chapters_of(app) if one.page == page), None)


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


def use_project(app: Any) -> None:
    """Let pages be added that the table of contents does not find."""
    project = BookProject(app.srcdir, app.project.source_suffix)
    project.restore(app.project)
    project.beside = {}
    app.project = app.env.project = project


def mark_in_sidebar(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the sidebar's entries of chapters the class `course-chapter`."""
    if "generate_toctree_html" not in context:
        return
    generate, pathto = context["generate_toctree_html"], context["pathto"]
    chapter_pages = {one.page for one in chapters_of(app)}
    here = {"#"} if page in chapter_pages else set()
    addresses = here | {pathto(one) for one in chapter_pages}
    # Exercises are where their chapter is.
    place = page.replace("exercises/", "book/", 1) if page.startswith("exercises/") else page

    def generate_marked(*arguments: Any, **options: Any) -> Any:
        soup = generate(*arguments, **options)
        for summary in soup.select("summary"):  # what unfolds the pages below one
            summary["aria-label"] = f"Pages below {summary.parent.parent.a.get_text().strip()}"
        for link in soup.select("li > a"):
            known = ["course-chapter"] if link["href"] in addresses else []
            if place in chapter_pages - {page} and link["href"] == pathto(place):
                known += ["current", "active"]
            link.parent["class"] = list(dict.fromkeys([*link.parent.get("class", []), *known]))
        return soup

    context["generate_toctree_html"] = generate_marked


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", use_project)
    app.connect("html-page-context", mark_in_sidebar, priority=900)  # after the theme's
