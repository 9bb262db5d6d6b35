"""The Python documentation on this disk, as text to train on.

It is the prose in the docstrings of the standard library, NumPy and Matplotlib, and in the topics of `help()`. It
differs between versions, so no stored output may depend on it.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from minigrad.text.sentences import split_sentences

PACKAGES = ("numpy", "matplotlib")  # whose docstrings are read beside those of the standard library


def python_docs(progress: Callable[[int, int], object] | None = None) -> list[list[str]]:
    """The documents, each a list of sentences: one for each module and one for each topic.

    `progress` is called with (modules read, modules).
    """
    from pydoc_data.topics import topics  # here: not every Python has them, such as the one in WebAssembly

    documents = []
    seen: set[str] = set()
    paths = list(_python_files())
    for number, path in enumerate(paths, start=1):
        document = [s for text in _docstrings(path) for s in _prose(text, seen)]
        if len(document) > 1:
            documents.append(document)
        if progress is not None:
            progress(number, len(paths))
    for _, text in sorted(topics.items()):
        document = list(_prose(text, seen))
        if len(document) > 1:
            documents.append(document)
    return documents


def absent_packages() -> list[str]:
    """The packages that are not installed, so that there are fewer documents."""
    return [package for package in PACKAGES if importlib.util.find_spec(package) is None]


def _python_files() -> Iterator[Path]:
    """Library modules in a fixed order, without tests."""
    roots = [Path(sysconfig.get_path("stdlib"))]
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            roots.append(Path(spec.submodule_search_locations[0]))
    skipped = {"test", "tests", "site-packages", "dist-packages", "idle_test", "lib2to3", "__pycache__"}
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if not skipped.intersection(path.relative_to(root).parts):
                yield path


def _docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


_RULE = re.compile(r"\s*(?:[-=~^*#+|]\s*){3,}$")  # an underline, or the border of a table


def _prose(text: str, seen: set[str]) -> Iterator[str]:
    """The sentences of a docstring: no examples, tables or underlined headings, and no paragraph twice."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines: list[str] = []
        rules = 0
        for line in paragraph.splitlines():
            if _RULE.match(line):
                rules += 1
                lines = lines[:-1]  # the heading that it underlines
            else:
                lines.append(line)
        if ">>>" in paragraph or rules > 1:  # an example; two borders make a table
            continue
        joined = " ".join(" ".join(lines).split())
        letters = sum(c.isalpha() or c == " " for c in joined)
        if joined in seen or joined.count(" ") < 2 or letters < 0.6 * len(joined):
            continue
        seen.add(joined)
        yield from split_sentences(joined)
