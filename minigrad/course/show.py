"""The library's source on the page: `show(ops.softmax)` at the end of a cell.

What a chapter quotes is then what runs: in Jupyter, in Colab and in the book, and a stored quotation that no
longer equals the source is found (`stale` in authoring/notebooks.py).
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

__all__ = ["Source", "show"]


class Source:
    """The source of a function, class or module, shown as a listing; `text` stands for it where it is not all shown."""

    def __init__(self, thing: Any, text: str | None = None) -> None:
        thing = inspect.unwrap(thing) if callable(thing) else thing
        self.module = thing.__name__ if inspect.ismodule(thing) else thing.__module__
        self.name = "" if inspect.ismodule(thing) else thing.__qualname__
        self.text = textwrap.dedent(inspect.getsource(thing)).rstrip() if text is None else text

    def _repr_markdown_(self) -> tuple[str, dict[str, Any]]:
        path = self.module.replace(".", "/") + ".py"
        markdown = f"*From `{path}`:*\n\n```python\n{self.text}\n```"
        return markdown, {"source": {"module": self.module, "name": self.name}}

    def __repr__(self) -> str:
        return self.text


def show(thing: Any) -> Source:
    """The source of `thing`, to be the last line of a cell.

    thing: a function, a class, a method or a module. Raises TypeError for what has no source, such as a number.
    """
    try:
        return Source(thing)
    except (TypeError, AttributeError, OSError):
        raise TypeError(
            f"show() takes a function, a class or a module with a source file; got {thing!r}"
        ) from None
