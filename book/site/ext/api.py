"""The reference of the library, made by autodoc: this turns the project's docstrings into what autodoc reads.

A docstring is a sentence and then, for what needs it, "name: what it is". Names of the code are in single backticks.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PLAIN = re.compile(r"[*_|\\]")  # marks of reStructuredText which a docstring means as they are
ITEM = re.compile(r"^\w[.)](?= |$)")  # would begin a list
NAMED = re.compile(r"(?:^|(?<=[.;] ))(\w+(?:, \w+)*)( \([^()]*\))?: ")  # a shape may follow the name


def as_rst(docstring: str, parameters: set[str]) -> str:
    """A docstring as reStructuredText; a sentence that begins with a parameter's name and a colon becomes a field."""
    return "\n\n".join(_paragraph(one, parameters) for one in docstring.strip("\n").split("\n\n"))


def _paragraph(text: str, parameters: set[str]) -> str:
    if text.lstrip().startswith(">>> "):
        return text
    words = " ".join(text.split())
    begins = [found for found in NAMED.finditer(words) if set(found[1].split(", ")) <= parameters]
    if not begins or begins[0].start():
        return "\n".join(map(_marked, text.split("\n")))
    ends = [found.start() for found in begins[1:]] + [len(words)]
    fields = []
    for found, end in zip(begins, ends, strict=True):
        names, shape = found[1].replace(", ", ","), (found[2] or "").strip()
        fields.append(f":param {names}: {_marked(f'{shape} {words[found.end() : end]}'.strip())}")
    return "\n".join(fields)


def _marked(line: str) -> str:
    """Code in double backticks, and everything else without marks."""
    parts = CODE.split(line)
    marked = "".join(f"``{part}``" if i % 2 else PLAIN.sub(r"\\\g<0>", part) for i, part in enumerate(parts))
    return ITEM.sub(r"\\\g<0>", marked)


def read_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """What autodoc calls for each docstring; `lines` is changed in place."""
    if what == "data":  # autodoc has found the docstring of its type
        lines.clear()
        return
    try:
        parameters = set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # a module, a number
        parameters = set()
    lines[:] = [*as_rst("\n".join(lines), parameters).split("\n"), ""]


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", read_docstring)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
