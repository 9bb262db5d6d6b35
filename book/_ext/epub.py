"""The course as an EPUB: what Sphinx's own builder needs to make one of pages that were written for a browser.

Only where the environment says COURSE_EPUB=1, as `make epub` does. Chromium reads the body of each page, with MathJax
as on the site, and writes it as XML (xhtml.js).
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import yaml

from book._make import chromium

HERE = Path(__file__).resolve().parent
LIVE = (
    "script, style, button, input, select, .headerlink, .course-ask, .course-doors, .course-zip, .course-python,"
    " .controls, .cell > details > summary, .course-facts"
)
MATHJAX = "static/mathjax/tex-chtml.js"  # of the package sphinx-mathjax-offline


def configure(app: Any, config: Any) -> None:
    """Sphinx's settings for an EPUB."""
    if os.environ.get("COURSE_EPUB") != "1":
        return
    cited = yaml.safe_load((Path(app.srcdir) / "CITATION.cff").read_text(encoding="utf-8"))
    config.html_static_path, config.html_css_files, config.html_js_files = [str(HERE / "epub")], [], []
    config.epub_css_files = ["epub.css"]
    config.epub_basename, config.epub_title = "bert-from-nothing", config.html_title
    config.epub_author = config.epub_publisher = cited["authors"][0]["name"]
    config.epub_description = " ".join(cited["abstract"].split())
    config.epub_uid = "course"
    config.epub_identifier = f"minigrad-bert {cited['version']}"
    config.epub_scheme = "version"
    config.epub_show_urls = "no"  # a link is a link
    config.epub_tocdepth, config.epub_tocdup = 2, False
    config.version = config.release = cited["version"]
    app.connect("html-page-context", as_xml, priority=950)
    app.connect("build-finished", close)


def as_xml(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The body of a page as XML."""
    if context.get("body"):
        context["body"] = sheet(app).read(context["body"])


class Sheet:
    """A tab of Chromium with MathJax in it."""

    def __init__(self) -> None:
        self._opened = chromium.opened()
        self._page = self._opened.__enter__().new_page()
        found = importlib.util.find_spec("sphinx-mathjax-offline")
        assert found is not None
        assert found.origin is not None
        self._mathjax = Path(found.origin).parent / MATHJAX
        self._run = (HERE / "xhtml.js").read_text(encoding="utf-8")

    def read(self, body: str) -> str:
        """The body of a page as XML."""
        self._page.set_content(f'<!DOCTYPE html><html lang="en"><head></head><body>{body}</body></html>')
        self._page.add_script_tag(path=self._mathjax)
        return str(self._page.evaluate(self._run, LIVE))

    def close(self) -> None:
        """Close it."""
        self._opened.__exit__(None, None, None)


def sheet(app: Any) -> Sheet:
    """The one tab of a build."""
    if not hasattr(app, "course_sheet"):
        app.course_sheet = Sheet()
    return app.course_sheet


def close(app: Any, error: Exception | None) -> None:
    """Close the tab after the last page."""
    if hasattr(app, "course_sheet"):
        app.course_sheet.close()


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("config-inited", configure, priority=960)
