"""The library's source on the page: `show(ops.softmax)` at the end of a cell.

What a chapter quotes is then what runs: in Jupyter, in Colab and in the book. A stored quotation that no longer equals
the source is an output that differs.
"""

from __future__ import annotations

import html
import inspect
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Source:
    """The source of a function, class or module, shown as a listing; with `lines`, only these of it.

    text: what stands for the source where it is shown in other words.
    """

    def __init__(self, thing: Any, lines: tuple[int, int] | None = None, text: str | None = None) -> None:
        thing = inspect.unwrap(thing) if callable(thing) else thing
        self.module = thing.__name__ if inspect.ismodule(thing) else thing.__module__
        self.name = "" if inspect.ismodule(thing) else thing.__qualname__
        self.path = _path(thing)
        self.lines = lines
        self.text = textwrap.dedent(inspect.getsource(thing)).rstrip() if text is None else text
        if lines:
            self.text = _excerpt(self.text.split("\n"), *lines)

    def _repr_markdown_(self) -> tuple[str, dict[str, Any]]:
        markdown = f"*From `{self.path}`:*\n\n```python\n{self.text}\n```"
        quoted: dict[str, Any] = {"module": self.module, "name": self.name}
        if self.lines:
            quoted["lines"] = list(self.lines)
        return markdown, {"source": quoted}

    def __repr__(self) -> str:
        return self.text


def show(thing: Any, lines: tuple[int, int] | None = None) -> Source:
    """The source of `thing`, to be the last line of a cell.

    thing: a function, a class, a method or a module. lines: the first and the last line that carry the idea, counted
    from 1 in the source of `thing`; the others are left out, and `...` says where. Raises TypeError for what has no
    source, such as a number, and ValueError for lines that it does not have.
    """
    try:
        return Source(thing, lines)
    except (TypeError, AttributeError, OSError):
        raise TypeError(
            f"show() takes a function, a class or a module with a source file; got {thing!r}"
        ) from None


_BESIDE = """<style>
.course-beside {display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 23rem), 1fr)); gap: 0 0.5rem}
.course-beside p {margin: 0; font-weight: bold}
.course-beside pre {margin: 0.2rem 0 0.8rem; padding: 0.5rem; overflow-x: auto; font-size: 0.7rem; line-height: 1.5}
.course-beside pre span {display: block; min-height: 1.5em}
.course-beside pre span.other {background: rgba(128, 128, 128, 0.18)}
</style>"""


class Beside:
    """Two listings, line beside line, to be the last line of a cell; the lines that differ are shaded.

    listings: by the name that stands above each. Raises ValueError unless there are two, of equally many lines.
    """

    def __init__(self, listings: Mapping[str, str]) -> None:
        self.names = list(listings)
        lines = [text.removesuffix("\n").split("\n") for text in listings.values()]
        if len(lines) != 2 or len(lines[0]) != len(lines[1]):
            raise ValueError(
                f"two listings of one length stand beside each other, got {list(map(len, lines))} lines"
            )
        self.lines = list(zip(*lines, strict=True))

    def _repr_html_(self) -> str:
        listings = []
        for name, lines in zip(self.names, zip(*self.lines, strict=True), strict=True):
            spans = []
            for line, (one, other) in zip(lines, self.lines, strict=True):
                classes = ' class="other"' if one != other else ""
                spans.append(f"<span{classes}>{html.escape(line)}</span>")
            listings.append(f"<div><p>{html.escape(name)}</p><pre>{''.join(spans)}</pre></div>")
        return f'<div class="course-beside">{_BESIDE}{"".join(listings)}</div>'

    def __repr__(self) -> str:
        width = max(len(one) for one, _ in self.lines) + 2
        rows = [tuple(self.names), *self.lines]
        return "\n".join(f"{one:{width}}{other}".rstrip() for one, other in rows)


beside = Beside  # in a page


def _path(thing: Any) -> str:
    """The file of `thing`, as the repository has it."""
    file = Path(inspect.getsourcefile(thing) or "")
    package = (inspect.getmodule(thing) or thing).__name__.split(".")[0]
    parts = file.parts
    if parts[-2:] == ("solutions", "bert.py"):  # which a wheel has inside of the course
        return "solutions/bert.py"
    if package not in parts:
        return file.name
    folders = ("book",) if package == "bert_course" else ()
    return "/".join((*folders, *parts[len(parts) - 1 - parts[::-1].index(package) :]))


def _excerpt(source: list[str], first: int, last: int) -> str:
    """Lines `first` to `last`, with `...` for what is left out above and below."""
    if not 1 <= first <= last <= len(source):
        raise ValueError(f"lines must lie within 1 … {len(source)}, got {first} to {last}")
    kept = source[first - 1 : last]
    blanks = [len(line) - len(line.lstrip()) for line in kept if line.strip()]
    dots = " " * min(blanks, default=0) + "..."
    return "\n".join([*([dots] * (first > 1)), *kept, *([dots] * (last < len(source)))])
