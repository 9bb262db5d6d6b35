"""Cells that run in the page: the switch, and the id of each code cell in its HTML.

The site has the runtime where the environment says COURSE_RUN=1, as `make site` does.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes

MARK = "course-cell-id-"


def read_switch(app: Any, config: Any) -> None:
    """With the switch off, no page gets anything of this. Pages may ask for it: `{only} run`, `{only} not run`."""
    config.course_run = os.environ.get("COURSE_RUN") == "1"
    if config.course_run:
        app.tags.add("run")


def mark_cells(app: Any, document: nodes.document) -> None:
    """Note on each code cell of a notebook which one it is."""
    path = Path(app.env.doc2path(app.env.docname))
    if not app.config.course_run or path.suffix != ".ipynb":
        return
    cells = nbformat.read(path, as_version=4).cells
    for node in document.findall(nodes.container):
        if node.get("nb_element") == "cell_code":
            node["classes"].append(MARK + cells[node["cell_index"]].id)


def write_ids(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Make attributes of the marks."""
    if app.config.course_run and context.get("body"):
        mark = re.compile(rf'<div class="([^"]*?) ?{MARK}([\w-]+)([^"]*)"')
        context["body"] = mark.sub(r'<div data-cell="\2" class="\1\3"', context["body"])


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_config_value("course_run", False, "env")
    app.connect("config-inited", read_switch)
    app.connect("doctree-read", mark_cells)
    app.connect("html-page-context", write_ids)
