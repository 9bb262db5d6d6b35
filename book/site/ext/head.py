"""What stands in the head of each page, and the pages that no source makes: index.html, 404.html."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from chapters import chapters_of
from docutils import nodes

PREVIEW = "_static/preview.png"  # 1200 x 630: what a message shows beside a link to the course


def add_head(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the page's template its title, its description and what previews of links show (templates/layout.html)."""
    course = app.config.html_title
    title = re.sub(r"<[^>]*>", "", context.get("title") or "")
    context["page_title"] = course if title in ("", course) else f"{title} · {course}"
    says = description(app, page, doctree) if doctree is not None else ""
    address = app.config.html_baseurl
    context["page_head"] = {
        "description": says,
        "title": html.unescape(title) or course,
        "site": course,
        "image": urljoin(address, PREVIEW) if address else "",
        "url": urljoin(address, f"{page}.html") if address and doctree is not None else "",
    }


def description(app: Any, page: str, doctree: nodes.document) -> str:
    """One sentence on what the page is about: a chapter's from the list, another page's first one."""
    for chapter in chapters_of(app):
        if chapter.page == page:
            return f"You will build {chapter.build}."
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if "course-facts" in paragraph.parent.get("classes", []):
            continue
        return re.split(r"(?<=[.?!]) ", text)[0]
    return ""


LEADS_ON = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{title}</title>
<script>location.replace("{to}" + location.search + location.hash)</script>
<meta http-equiv="refresh" content="0; url={to}">
{canonical}</head>
<body><p><a href="{to}">{title}</a></p></body>
</html>
"""

# GitHub Pages serves this one for any address that does not exist, at whatever depth: nothing in it is relative.
NOT_FOUND = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Page not found · {title}</title>
<style>
body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem; }}
body {{ color: #24292f; background: #fff; }}
a {{ color: #1f6fa8; }}
@media (prefers-color-scheme: dark) {{ body {{ color: #e6edf3; background: #14181e; }} a {{ color: #6fb7ea; }} }}
</style>
</head>
<body>
<main>
<h1>This page does not exist</h1>
<p><a id="home" href="{home}">Go to the start of {title}</a>.</p>
</main>
</body>
</html>
"""


def add_pages(app: Any, error: Exception | None) -> None:
    """Write index.html, which leads to the first page, and 404.html."""
    if error is not None or app.builder.name != "html":
        return
    address = app.config.html_baseurl
    words = {
        "language": app.config.language,
        "title": html.escape(app.config.html_title),
        "home": html.escape(urlsplit(address).path or "/"),
        "canonical": f'<link rel="canonical" href="{html.escape(address)}">\n' if address else "",
    }
    out = Path(app.outdir)
    if app.config.root_doc != "index":
        front = LEADS_ON.format(**words, to=f"{app.config.root_doc}.html")
        (out / "index.html").write_text(front, encoding="utf-8")
    (out / "404.html").write_text(NOT_FOUND.format(**words), encoding="utf-8")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("html-page-context", add_head)
    app.connect("build-finished", add_pages, priority=900)  # after the index.html of sphinx-external-toc
