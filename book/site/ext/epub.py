"""The course as an EPUB: what Sphinx's own builder needs to make one of pages that were written for a browser.

Only where the environment says COURSE_EPUB=1, as `make epub` does. Chromium reads the body of each page, with MathJax
as on the site, and writes it as XML (xhtml.js).
"""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import yaml
from sphinx.builders.epub3 import Epub3Builder

from book.make import chromium

HERE = Path(__file__).resolve().parent
LIVE = (
    "script, style, button, input, select, .headerlink, .course-ask, .course-doors, .course-zip, .course-python,"
    " .controls, .room, .course-facts, .cell > details, noscript"
)
ITEM = re.compile(r'<item id="[^"]+" href="(book/[^"]+\.xhtml)"')
STYLES = ("_static/pygments.css", "_static/epub.css")
MATHJAX = "static/mathjax/tex-chtml.js"  # of the package sphinx-mathjax-offline


def configure(app: Any, config: Any) -> None:
    """Sphinx's settings for an EPUB."""
    if os.environ.get("COURSE_EPUB") != "1":
        return
    cited = yaml.safe_load((Path(app.srcdir) / "CITATION.cff").read_text(encoding="utf-8"))
    config.html_static_path, config.html_css_files, config.html_js_files = [str(HERE / "epub")], [], []
    config.epub_css_files = ["epub.css"]
    config.pygments_style = "a11y-high-contrast-light"
    config.epub_basename, config.epub_title = "bert-from-nothing", config.html_title
    config.epub_author = config.epub_publisher = cited["authors"][0]["name"]
    config.epub_description = " ".join(cited["abstract"].split())
    config.epub_uid = config.epub_identifier = f"minigrad-bert-{cited['version']}"
    config.epub_scheme = "version"
    config.epub_exclude_files = ["search.xhtml"]
    config.epub_tocscope = "includehidden"
    config.epub_show_urls = "no"  # a link is a link
    config.epub_tocdepth, config.epub_tocdup = 2, False
    config.version = config.release = cited["version"]
    app.connect("html-page-context", as_xml, priority=950)
    app.connect("build-finished", close)


def as_xml(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The body of a page as XML."""
    context["css_files"] = [one for one in context["css_files"] if one.filename in STYLES]
    if context.get("body"):
        context["body"] = reader(app).read(context["body"])


class Builder(Epub3Builder):
    """Sphinx's builder, and which pages have formulas and drawings in them, which it does not say."""

    def build_content(self) -> None:
        """Write the list of files."""
        super().build_content()
        path = Path(self.outdir) / "content.opf"
        path.write_text(ITEM.sub(self._with_properties, path.read_text("utf-8")), encoding="utf-8")

    def _with_properties(self, item: re.Match[str]) -> str:
        page = (Path(self.outdir) / item[1]).read_text("utf-8")
        found = [name for tag, name in (("<math", "mathml"), ("<svg", "svg")) if tag in page]
        return f'{item[0]} properties="{" ".join(found)}"' if found else item[0]


class Reader:
    """A Chromium that reads the bodies of pages."""

    def __init__(self) -> None:
        self._opened = chromium.opened()
        self._browser = self._opened.__enter__()
        found = importlib.util.find_spec("sphinx-mathjax-offline")
        assert found is not None
        assert found.origin is not None
        self._mathjax = Path(found.origin).parent / MATHJAX
        self._run = (HERE / "xhtml.js").read_text(encoding="utf-8")

    def read(self, body: str) -> str:
        """The body of a page as XML."""
        page = self._browser.new_page()
        page.set_content(f'<!DOCTYPE html><html lang="en"><head></head><body>{body}</body></html>')
        page.add_style_tag(path=HERE.parent / "static" / "course.css")
        page.add_script_tag(path=self._mathjax)
        written = str(page.evaluate(self._run, LIVE))
        page.close()
        return written

    def close(self) -> None:
        """Close it."""
        self._opened.__exit__(None, None, None)


def reader(app: Any) -> Reader:
    """The one of a build."""
    if not hasattr(app, "course_reader"):
        app.course_reader = Reader()
    return app.course_reader


def close(app: Any, error: Exception | None) -> None:
    """Close the browser after the last page."""
    if hasattr(app, "course_reader"):
        app.course_reader.close()


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_builder(Builder, override=True)
    # After this site's static files, before Sphinx looks at them
    app.connect("config-inited", configure, priority=600)
