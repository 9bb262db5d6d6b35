"""The search: sections with an excerpt, also from a page that was opened from disk.

Sphinx's own search asks for the pages that it found, and a browser refuses that on `file://`. This one has the text of
every section in one script, `_static/search_text.js`, written when the site is built; `static/find.js` looks in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

HERE = Path(__file__).parent


def collect(app: Any, document: nodes.document) -> None:
    """Keep the sections of a page that was read."""
    if not hasattr(app.env, "course_sections"):
        app.env.course_sections = {}
    app.env.course_sections[app.env.docname] = sections_of(document)


def forget(app: Any, env: Any, page: str) -> None:
    """Drop the sections of a page that is read again or gone."""
    getattr(env, "course_sections", {}).pop(page, None)


def sections_of(document: nodes.document) -> list[dict[str, str]]:
    """The sections of a page in their order: id (none for the page itself), title, prose, code, and terms in bold.

    What cells put out is not searched: nobody looks for a number.
    """
    found = []
    for section in document.findall(nodes.section):
        title = section.next_node(nodes.title)
        prose, code, terms = [], [], []
        for child in section.children[1:]:
            if not isinstance(child, nodes.section):
                pieces(child, prose, code)
                terms += [text_of(strong) for strong in child.findall(nodes.strong)]
        found.append(
            {
                "id": section["ids"][0] if isinstance(section.parent, nodes.section) else "",
                "title": one_line(text_of(title)),
                "text": one_line(" ".join(prose)),
                "code": one_line(" ".join(code)),
                "terms": one_line(" ".join(terms)),
            }
        )
    return found


LEFT_OUT = (nodes.comment, nodes.raw, nodes.image, addnodes.toctree)


def pieces(node: nodes.Node, prose: list[str], code: list[str]) -> None:
    """Sort the text below a node into prose and code."""
    classes = node.get("classes", []) if isinstance(node, nodes.Element) else []
    if isinstance(node, LEFT_OUT) or {"cell_output", "course-facts"} & set(classes):
        return
    if isinstance(node, nodes.literal_block):
        code.append(node.astext())
    elif isinstance(node, nodes.TextElement):
        prose.append(text_of(node))
    elif isinstance(node, nodes.Element):
        for child in node.children:
            pieces(child, prose, code)


def text_of(node: nodes.Node) -> str:
    """A node's text, formulas as they would be typed."""
    if isinstance(node, nodes.math | nodes.math_block):
        return plain_formula(node.astext())
    if isinstance(node, nodes.Text):
        return node.astext()
    return "".join(text_of(child) for child in node.children)


def plain_formula(latex: str) -> str:
    r"""A formula in a line of text: `\sqrt{d_k}` is √d_k, `\mathrm{softmax}(S)` is softmax(S)."""
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"√\1", latex)
    text = re.sub(r"\\(?:mathrm|mathbb|mathcal|text|operatorname)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(?:left|right|begin\{\w+\*?\}|end\{\w+\*?\}|[,;!])|\\\\|&", " ", text)
    text = text.replace(r"\top", "ᵀ").replace(r"\cdot", "·").replace(r"\times", "×")
    return re.sub(r"[{}\\]", "", text)


def one_line(text: str) -> str:
    """Without line breaks and doubled blanks."""
    return " ".join(text.split())


def write(app: Any, error: Exception | None) -> None:
    """Write the script with the text, in the order of the table of contents."""
    if error is not None or app.builder.name != "html":
        return
    sections = app.env.course_sections
    order = [page for page in app.config.external_site_map if page in sections]
    text = [
        {"page": page, "title": one_line(app.env.titles[page].astext()), "sections": sections[page]}
        for page in order
    ]
    script = json.dumps(text, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    static = Path(app.outdir) / "_static"
    (static / "search_text.js").write_text(f"window.COURSE_TEXT = {script};\n", encoding="utf-8")
    titles = json.dumps(list(titles_of(text)), ensure_ascii=False, separators=(",", ":")).replace(
        "</", "<\\/"
    )
    (static / "search_titles.js").write_text(f"window.COURSE_TITLES = {titles};\n", encoding="utf-8")


def titles_of(text: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """For each heading its address from the site's root, its words, and the page's title where it is not the page's."""
    for page in text:
        for section in page["sections"]:
            anchor = f"#{section['id']}" if section["id"] else ""
            yield f"{page['page']}.html{anchor}", section["title"], page["title"] if anchor else ""


def add_page(app: Any) -> Any:
    """The page that the search field leads to."""
    yield "search", {"title": "Search"}, "search.html"


def no_index(app: Any) -> None:
    """Leave out the index of Sphinx's own search."""
    app.builder.search = False


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", no_index)
    app.connect("doctree-read", collect, priority=300)  # before what chapter_pages.py adds
    app.connect("env-purge-doc", forget)
    app.connect("html-collect-pages", add_page)
    app.connect("build-finished", write)
