"""What the book's site needs beyond jupyter-book's settings: a Sphinx extension that _config.yml names.

chapters.py    which page is which chapter        links.py       links from plain text
chapter_pages.py  what a chapter's page gets      repository.py  what hangs on the repository's address
find.py        the search                         head.py        titles, previews, 404.html
pages_python.py  cells that run in the page       ask_page.py    the page "Ask the model"
policy.py      what a page may load               exercise_pages.py  the exercises as pages
download.py    a zip of the course                bundle.py      one script, one style sheet
offline.py     pages without a network          api.py         docstrings for the reference
epub.py        the course as an EPUB
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[2]), str(HERE.parents[1])]  # for book.make, bert_course
PARTS = (
    "chapters",
    "repository",
    "pages_python",
    "exercise_pages",
    "chapter_pages",
    "links",
    "head",
    "find",
    "ask_page",
    "download",
    "offline",
    "bundle",
    "policy",
    "api",
    "epub",
)

# What the theme and sphinx-thebe put on each page that fails, loudly, on a page opened from disk: the preloading of
# icon fonts, which a browser refuses, and the settings of thebe, which is off (and would ask a CDN). And the second
# <h1>, which repeats the title on paper.
LOUD = re.compile(
    r'<link rel="preload" as="font"[^>]*>'
    r"|<link[^>]*/fontawesome/[^>]*>|<script[^>]*/fontawesome/[^>]*></script>"  # icons.css draws its icons
    r"|<script>(?:const|let|var) THEBE_JS_URL.*?</script>"
    r"|<script[^>]*sphinx-thebe\.js[^>]*></script>"
    r'|<link[^>]*href="[^"]*(?:sphinx-thebe|sphinx-design\.min)\.css[^>]*>'
    r"|<script[^>]*design-tabs\.js[^>]*></script>"  # no page has a card or a tab
    r'|<script type="text/x-thebe-config">.*?</script>'
    r"|<script>kernelName = .*?</script>"
    r'|(?P<kept><div id="jb-print-docs-body" class="onlyprint">)\s*<h1>.*?</h1>',
    re.DOTALL,
)


def quiet(app: Any, error: Exception | None) -> None:
    """Take out of each page what can only fail."""
    if error is None and app.builder.name == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(LOUD.sub(r"\g<kept>", text), encoding="utf-8")


def add_files(app: Any, config: Any) -> None:
    """Let Sphinx find the templates, scripts and styles beside this file."""
    config.templates_path = [*config.templates_path, str(HERE / "templates")]
    config.html_static_path = [*config.html_static_path, str(HERE / "static")]


def notice_static(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """A page to read again, if a style or a script has changed: where no page has, Sphinx copies no files."""
    if added or changed or removed:
        return []
    for folder in app.config.html_static_path:
        for source in (Path(app.confdir) / folder).rglob("*"):
            copy = Path(app.outdir) / "_static" / source.relative_to(Path(app.confdir) / folder)
            if source.is_file() and copy.exists() and source.read_bytes() != copy.read_bytes():
                return [app.config.root_doc]
    return []


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("config-inited", add_files)
    app.connect("env-get-outdated", notice_static)
    app.connect("build-finished", quiet)
    app.add_css_file("course_site.css")
    for part in PARTS:
        app.setup_extension(part)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
