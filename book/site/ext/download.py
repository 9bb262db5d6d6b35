"""What a reader of the site can take away: the directive `course-zip` links a zip of the course, a PDF and an EPUB.

Only where cells run (pages_python.py). The zip has the files that git tracks, or, where there is no git, all but what
tools make; the other two are linked where `make pdf` and `make epub` have made them.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

NAME = "bert-from-nothing"
# Below the course's folder
MADE = {"_build", "runs", "my-exercises", "__pycache__", "node_modules"}


def files(root: Path) -> list[Path]:
    """What the zip holds, as paths from the course's folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listed.returncode == 0:
        return [
            path
            for name in listed.stdout.decode().split("\0")
            if name and (root / (path := Path(name))).is_file()
        ]
    found = (path.relative_to(root) for path in sorted(root.rglob("*")) if path.is_file())
    return [
        path
        for path in found
        if not (MADE & {path.parts[0], *path.parts[2:]} or path.parts[0].startswith("."))
    ]


def pack(app: Any) -> None:
    """Write the zip before pages are read: they say how large it is."""
    if app.config.course_run and app.builder.name == "html":
        root, to = Path(app.srcdir), Path(app.outdir) / "_static" / f"{NAME}.zip"
        to.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in files(root):
                packed.write(root / path, Path(NAME) / path)
        app.course_zip = to
        made = (root / "_build" / f"{NAME}.{kind}" for kind in ("pdf", "epub"))
        app.course_books = [Path(shutil.copy(book, to.parent)) for book in made if book.exists()]


class CourseZip(SphinxDirective):
    """ "Download the course (12 MB)", and what to do with it."""

    def run(self) -> list[nodes.Node]:
        """A paragraph."""
        packed = getattr(self.env.app, "course_zip", None)
        if packed is None:
            return []
        up = "../" * self.env.docname.count("/")

        def link(words: str, file: Path) -> list[nodes.Node]:
            there = nodes.reference("", words, refuri=f"{up}_static/{file.name}", internal=True)
            return [there, nodes.Text(f" ({round(file.stat().st_size / 1e6)} MB)")]

        says = " to have it on your own computer. Its README says how to open it in Jupyter and how to train the model."
        line = [*link("Download the course", packed), nodes.Text(says)]
        for i, book in enumerate(self.env.app.course_books):
            words = " or as " if i else " To read it elsewhere, take it as "
            line += [nodes.Text(words), *link("PDF" if book.suffix == ".pdf" else "EPUB", book)]
        if self.env.app.course_books:
            line.append(nodes.Text("."))
        return [nodes.paragraph("", "", *line)]


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", pack)
    app.add_directive("course-zip", CourseZip)
