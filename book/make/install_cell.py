"""What hangs on the repository's address in `_config.yml`, and is there only if that has one.

The cell that installs the course where a notebook is opened without it, in Colab or on Binder: those open the file
itself, so the cell is in the committed notebooks. The package's address in pyproject.toml. And whole addresses of the
README's pictures, as a registry shows the README without the repository around it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ID = "install"
# Not on the page, not compared, not run by the tools: it needs the network.
TAGS = ["install", "remove-cell", "nbval-skip", "skip-execution"]
SOURCE = """# Where the course is not installed, as in Colab, this installs it.
from importlib.util import find_spec

if find_spec("bert_course") is None:
    minigrad, course = "minigrad-bert @ git+{address}", "bert-from-nothing @ git+{address}#subdirectory=book"
    get_ipython().run_line_magic("pip", f"install -q '{{minigrad}}' '{{course}}'")"""


def repository_url(config: Path) -> str:
    """`repository.url` of a `_config.yml`, empty if it is not set.

    Raises ValueError where the file has no such line.
    """
    text = config.read_text(encoding="utf-8")
    found = re.search(
        r"^repository:\n(?:[ \t]+.*\n|[ \t]*#.*\n|\n)*?[ \t]+url:[ \t]*(.*)$", text, re.MULTILINE
    )
    if not found:
        raise ValueError(f"{config} has no repository.url")
    return re.sub(r"\s+#.*", "", found[1]).strip().strip("\"'").rstrip("/")


def put_install_cell(notebook: Any, address: str) -> bool:
    """Let the first cell install the course from a repository; without an address, take such a cell out.

    Returns whether the notebook had to be changed.
    """
    from nbformat.v4 import new_code_cell

    def is_install(cell: Any) -> bool:
        return "install" in cell.metadata.get("tags", [])

    wanted = []
    if address:
        cell = new_code_cell(SOURCE.format(address=address), id=ID, metadata={"tags": list(TAGS)})
        wanted.append(cell)
    there = [cell for cell in notebook.cells if is_install(cell)]
    first = notebook.cells[:1] if there else []
    same = [(cell.source, cell.metadata.tags) for cell in there] == [(cell.source, TAGS) for cell in wanted]
    if same and first == there:
        return False
    notebook.cells = [*wanted, *(cell for cell in notebook.cells if not is_install(cell))]
    return True


def with_address(pyproject: str, address: str) -> str:
    """The text of pyproject.toml with the repository's address, or without one if that is empty."""
    text = re.sub(r'\[project\.urls\]\nRepository = ".*"\n\n', "", pyproject)
    urls = f'[project.urls]\nRepository = "{address}"\n\n' if address else ""
    return text.replace("[tool.setuptools.packages.find]\n", f"{urls}[tool.setuptools.packages.find]\n", 1)


def with_pictures(readme: str, address: str) -> str:
    """The README's text with whole addresses of its pictures, of the branch main; with paths if `address` is empty."""
    where = f"{address}/raw/main/" if address else ""
    return re.sub(r'(<img src=")(?:[^"]*/raw/main/)?(?=book/)', rf"\g<1>{where}", readme)
