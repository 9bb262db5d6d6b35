"""The kernel of the site's pages: runs the source of a cell as Jupyter does, in the reader's browser.

The value of a cell's last expression is shown, with what it says of itself in HTML or Markdown; what is printed is sent
while the cell runs; an error is told with the lines of the cells that led to it. There is no IPython in the page: the
few things that the course asks of it (`display`, which cell a function comes from, which cells failed) are here.

Outputs are those of a notebook's file, as dictionaries: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import io
import itertools
import json
import linecache
import re
import sys
import time
import traceback
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from minigrad import random

Send = Callable[[dict[str, Any]], object]

LONGEST_LINE = 79  # of what a value says of itself, as in IPython
# A loop that prints for ever must leave the page free to stop it.
MOST_TEXT = 200_000  # characters that a cell prints, or that a value says of itself
MOST_PIECES = 5_000  # lines that it prints, or values that it displays
MOST_CALLS = 20  # of those that led to an error; the first and the last of more
RICH = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "text/latex": "_repr_latex_",
}  # and how a value says it


class Kernel:
    """Runs cells in one namespace.

    send: called with each output as it comes. slices: whether somebody looks on, who asks for the rest of a cell's
    work, if it is in slices (`has_more`, `go_on`); without it the cell does all of it, and what it shows meanwhile is
    not sent.
    """

    def __init__(self, send: Send, slices: bool = False) -> None:
        self._tell, self._watched = send, slices
        self._count = 0
        self._pieces = self._characters = 0
        self._shell = Shell(slices)
        self._displays = itertools.count()
        self._unshown: Exception | None = None  # what the last value raised that could not be shown
        self.forget()

    def forget(self) -> None:
        """Start with an empty namespace; modules stay imported."""
        self._main = types.ModuleType("__main__")

    @property
    def names(self) -> dict[str, Any]:
        """The namespace of the cells."""
        return self._main.__dict__

    def run(self, source: str, draws: Sequence[int] | None = None) -> bool:
        """Run the source of a cell; returns whether it went well.

        draws: seed and count of `minigrad.random` to start from, as in an uninterrupted run of the page; None to go
        on from where it is.
        """
        self._count += 1
        self._pieces = self._characters = 0
        self.drop()
        if draws is not None:
            random.set_state({"seed": draws[0], "draws": draws[1]})
        name = f"<cell {self._count}>"
        linecache.cache[name] = (len(source) + 1, None, f"{source}\n".splitlines(keepends=True), name)
        error = self._guarded(lambda: self._value(source, name))
        self._guarded(lambda: self._shell.note(self._count, source, error))
        return error is None

    @property
    def has_more(self) -> bool:
        """Whether the cell that ran last has left work to be done in slices (`Shell.in_slices`)."""
        return self._shell.work is not None

    def go_on(self, seconds: float) -> bool:
        """Do of that work what can be done in so many seconds, and at least a slice; returns whether it went well."""
        end = time.monotonic() + seconds

        def slices() -> None:
            for _ in self._shell.work or ():
                if time.monotonic() >= end:
                    return
            self._shell.work = None

        error = self._guarded(slices)
        if error is not None:
            self._shell.work = None
        return error is None

    def drop(self) -> None:
        """Leave what there is of that work."""
        work, self._shell.work = self._shell.work, None
        if work is not None:
            self._guarded(work.close)

    def _guarded(self, do: Callable[[], Any]) -> BaseException | None:
        """Do something of a cell in its place, show the value, and tell the error, which is returned.

        What is the learner's own may raise anywhere: while it is shown, and while its error is told.
        """
        streams = Stream("stdout", self._put), Stream("stderr", self._put)
        error: BaseException | None = None
        self._unshown = None
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]), self._in_place():
            try:
                value = do()
                if value is not None:
                    streams[0].end()
                    self._show(value, self._tell, {"output_type": "execute_result"})
            except BaseException as raised:
                error = raised
        for stream in streams:
            stream.end()
        if error is not None:
            self._tell(_told(error))
        return error or self._unshown

    def _show(self, value: Any, send: Send, output: dict[str, Any]) -> None:
        """Send an output with what a value says of itself; an error in that is told, and the cell goes on."""
        data, metadata, errors = _described(value)
        if data:
            send({**output, "data": data, "metadata": metadata})
        for error in errors:
            self._unshown = error
            self._put(_told(error))

    def parsed(self, source: str, name: str) -> ast.Module:
        """The statements of a cell that are run; a kernel that looks at what they do puts its calls between them."""
        return ast.parse(source, name)

    def _value(self, source: str, name: str) -> Any:
        """Run the cell's statements; the value of its last expression, or None."""
        left_out: list[str] = []
        try:
            tree = self.parsed(source, name)
        except SyntaxError as error:
            source, left_out = _without_jupyters(source, name, error)
            tree = self.parsed(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        code = _compiled(tree, name, "exec")
        shown = _compiled(ast.Expression(last.value), name, "eval") if isinstance(last, ast.Expr) else None
        if left_out:
            print("Only Jupyter runs this, so it is left out:", ", ".join(left_out), file=sys.stderr)
        exec(code, self.names)
        value = eval(shown, self.names) if shown else None
        return None if source.rstrip().endswith(";") else value

    @contextlib.contextmanager
    def _in_place(self) -> Iterator[None]:
        """While a cell runs: its module is `__main__`, this file stands for `IPython`, and nobody can be asked."""
        stand_ins = {"__main__": self._main, **_ipython(self._shell, self._display)}
        before = {name: sys.modules.get(name) for name in stand_ins}
        sys.modules.update(stand_ins)
        asks, builtins.input = builtins.input, _no_input
        try:
            yield
        finally:
            builtins.input = asks
            for name, module in before.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module

    def _display(self, *values: Any, display_id: bool = False) -> Handle | None:
        """Show values as IPython does; with `display_id`, what is returned can show others in their place."""
        sys.stdout.flush()
        handle = Handle(self, f"display {next(self._displays)}") if display_id else None
        for value in values:
            self._show(value, self._put, {"output_type": "display_data", **(handle.named if handle else {})})
        return handle

    def _put(self, output: dict[str, Any]) -> None:
        """Send what is printed or displayed, until that is too much; then say so, once, and send no more."""
        room = MOST_TEXT - self._characters
        if room <= 0 or self._pieces >= MOST_PIECES:
            return
        self._pieces += 1
        text = output.get("text", "")
        self._characters += len(text)
        self._tell({**output, "text": text[:room]} if text else output)
        if len(text) >= room or self._pieces == MOST_PIECES:
            rest = (
                f"… a page shows {MOST_PIECES:,} lines of a cell, or {MOST_TEXT:,} characters, and no more.\n"
            )
            self._tell({"output_type": "stream", "name": "stderr", "text": rest})


class Handle:
    """What `display(…, display_id=True)` returns."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel, self.named = kernel, {"transient": {"display_id": name}}

    def update(self, value: Any) -> None:
        """Show this value where the first one stands, if somebody looks on; it counts as none of the cell's pieces."""
        if not self._kernel._watched:
            return
        self._kernel._show(value, self._kernel._tell, {"output_type": "update_display_data", **self.named})


class Stream(io.TextIOBase):
    """Standard output or error: sends whole lines as they come."""

    def __init__(self, name: str, send: Send) -> None:
        self._name, self._send, self._line = name, send, ""

    def write(self, text: str) -> int:
        """Keep what does not end its line. Returns the length of the text."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, got {type(text).__name__}")
        whole, end, rest = text.rpartition("\n")
        if end:
            self._tell(self._line + whole + end)
            self._line = rest
        else:
            self._line += text
        if len(self._line) > MOST_TEXT:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what there is of a line."""
        self._tell(self._line)
        self._line = ""

    end = flush

    def writable(self) -> bool:
        """It takes text."""
        return True

    def _tell(self, text: str) -> None:
        if text:
            self._send({"output_type": "stream", "name": self._name, "text": text})


def _no_input(prompt: object = "") -> str:
    raise RuntimeError("input() cannot ask in a page: write the value into the cell")


# --- What is Jupyter's, and no Python --------------------------------------------------------------------

MEASURES = r"%%(?:time|timeit|prun|capture)\b"  # what stands below it is Python
OTHER_LANGUAGE = re.compile(rf"\s*(?!{MEASURES})(%%[a-zA-Z]\w*)")
TAKES = re.compile(r"[^=]*=\s*(%(?=[a-zA-Z])|!)")  # what comes of a line


def _without_jupyters(source: str, name: str, error: SyntaxError) -> tuple[str, list[str]]:
    """A cell's source without the lines that Jupyter alone knows, in as many lines; and those that are missed.

    error: Python's about it. Raises it if it is about something else, and SyntaxError for what cannot be left out.
    """
    from bert_course.common.jupyter import plain_python  # few cells need it

    if found := OTHER_LANGUAGE.match(source):
        raise SyntaxError(f"Only Jupyter runs {found[1]}: a page runs Python", (name, 1, 1, found[1]))
    if not re.search("[%!?]", source):
        raise error
    plain, left_out = plain_python(source)
    for line in left_out:
        if found := TAKES.match(line):
            why = f"Only Jupyter runs what begins with {found[1]}: a page runs Python"
            place = [one.strip() for one in source.split("\n")].index(line) + 1
            raise SyntaxError(why, (name, place, 1, line))
    return plain, [line for line in left_out if not re.match(MEASURES, line)]


def _compiled(tree: ast.Module | ast.Expression, name: str, mode: str) -> types.CodeType:
    """The code of a part of a cell. Raises SyntaxError, which says so where Jupyter would wait for something."""
    try:
        return compile(tree, name, mode)
    except SyntaxError as error:
        try:
            compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError:
            raise error from None
        error.msg = "Only Jupyter runs await, async for and async with outside of a function"
        raise


# --- Values ----------------------------------------------------------------------------------------------


def _described(value: Any) -> tuple[dict[str, Any], dict[str, Any], list[Exception]]:
    """What a value says of itself, by type of content, the metadata that it adds, and what it raised instead."""
    says: dict[str, Callable[[], Any]] = {"text/plain": lambda: _cut(pretty(value))}
    if not isinstance(value, type):
        says |= {kind: method for kind, name in RICH.items() if (method := _method(value, name))}
    data: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    errors: list[Exception] = []
    for kind, say in says.items():
        try:
            said = say()
            said, more = said if isinstance(said, tuple) else (said, {})
            if said is not None:
                data[kind] = _text(said, RICH.get(kind, "repr"))
            if more:
                json.dumps(more, allow_nan=False)
                metadata[kind] = dict(more)
        except Exception as error:
            errors.append(error)
    return data, metadata, errors


def _method(value: Any, name: str) -> Callable[[], Any] | None:
    """A method that a value has; None of one that answers to any name, or fails to, as in IPython."""
    try:
        if getattr(value, "_ipython_canary_method_should_not_exist_", None) is not None:
            return None
        method = getattr(value, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def _text(said: Any, method: str) -> str:
    """What a method has said, as a notebook's file has it. Raises TypeError if it is no text."""
    if isinstance(said, bytes) and method == "_repr_png_":
        return base64.b64encode(said).decode()
    if not isinstance(said, str):
        raise TypeError(f"{method} returned {type(said).__name__}, expected str")
    return said


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " …"


def pretty(value: Any, indent: int = 0, before: int = 0, after: int = 0, around: tuple[int, ...] = ()) -> str:
    """The `repr` of a value; lists, tuples, sets and dictionaries too long for a line have a line for each item.

    indent: of further lines. before, after: columns that other text takes in the first line and the last. around: the
    ids of the containers that it stands in; one that holds itself is dots there.
    """
    brackets = next((ends for kind, ends in BRACKETS.items() if type(value) is kind), None)
    if brackets and id(value) in around:
        return "...".join(brackets)
    plain = repr(value)
    if not brackets or not value or before + len(plain) + after <= LONGEST_LINE:
        return plain
    begin, end = brackets
    if len(value) == 1 and isinstance(value, tuple):
        end = ",)"
    inner = indent + len(begin)
    items: list[str] = []
    for item in _ordered(value):
        key = f"{item!r}: " if isinstance(value, dict) else ""
        column = inner + len(key) if items else before + len(begin) + len(key)
        behind = len(end) + after if len(items) == len(value) - 1 else 1
        items.append(key + pretty(value[item] if key else item, inner, column, behind, (*around, id(value))))
    return begin + (",\n" + " " * inner).join(items) + end


BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}


def _ordered(value: Any) -> list[Any]:
    """The items of a container, or the keys of a dictionary; those of a set sorted, where they can be."""
    if isinstance(value, set | frozenset):
        with contextlib.suppress(Exception):
            return sorted(value)
    return list(value)


# --- Errors ----------------------------------------------------------------------------------------------


def _told(error: BaseException) -> dict[str, Any]:
    """An error as an output: the lines of cells that led to it, and what it says, if it can."""
    name = type.__dict__["__name__"].__get__(type(error))  # whatever its class says of its name
    says = "<exception str() failed>"
    with contextlib.suppress(BaseException):
        says = str(error)
    try:
        lines = _traceback(error)
    except BaseException:  # from its own attributes
        lines = [f"{name}: {says}"]
    return {"output_type": "error", "ename": name, "evalue": says, "traceback": lines}


def _traceback(error: BaseException) -> list[str]:
    calls = []
    for frame in traceback.extract_tb(error.__traceback__):
        if _is_cell(frame.filename):
            inside = "" if frame.name == "<module>" else f", in {frame.name}"
            calls.append([f"line {frame.lineno}{inside}", f"    {frame.line}"])
    if len(calls) > MOST_CALLS:
        half = MOST_CALLS // 2
        calls[half:-half] = [[f"… {len(calls) - MOST_CALLS} more calls"]]
    lines = [line for call in calls for line in call]
    what = "".join(traceback.format_exception_only(error)).rstrip("\n").split("\n")
    if isinstance(error, SyntaxError) and _is_cell(error.filename or ""):
        what[0] = f"line {error.lineno}"
    lines += what
    if isinstance(error, ModuleNotFoundError):
        lines.append("In a page there are NumPy and the course's own package; others are for Jupyter.")
    return lines


def _is_cell(file: str) -> bool:
    return re.fullmatch(r"<cell \d+>", file) is not None


# --- What the course asks of IPython ---------------------------------------------------------------------


class Shell:
    """What `IPython.get_ipython()` gives: which cell a function comes from, and a call after each cell."""

    def __init__(self, slices: bool) -> None:
        self.config: dict[str, Any] = {}
        self.events = self.compile = self
        self.watched = self._slices = slices
        self.work: Generator[None] | None = None
        self._after_cell: list[Callable[[Any], object]] = []

    def register(self, event: str, function: Callable[[Any], object]) -> None:
        """Call `function` with the result of each cell that has run. Raises ValueError for another event."""
        if event != "post_run_cell":
            raise ValueError(f"the page's kernel knows the event 'post_run_cell', not {event!r}")
        self._after_cell.append(function)

    def in_slices(self, work: Generator[None]) -> None:
        """Do this work from one `yield` to the next, between which the page hears its reader, after the cell."""
        if self._slices:
            self.work = work
        else:
            for _ in work:
                pass

    def format_code_name(self, file: str) -> tuple[str, str] | None:
        """The words for the cell that `file` is; None for a file."""
        return ("Cell", f"In[{re.sub(r'[^0-9]', '', file)}]") if _is_cell(file) else None

    def note(self, count: int, source: str, error: BaseException | None) -> None:
        """A cell has run."""
        before = error if issubclass(type(error), SyntaxError) else None
        result = SimpleNamespace(
            execution_count=count,
            info=SimpleNamespace(raw_cell=source),
            error_before_exec=before,
            error_in_exec=None if before else error,
        )
        for function in self._after_cell:
            function(result)


def _ipython(shell: Shell, display: Callable[..., Any]) -> dict[str, types.ModuleType]:
    """The modules `IPython` and `IPython.display`, with what the course takes from them."""
    package, part = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.version_info = (9, 0, 0, "")  # type: ignore[attr-defined]  # matplotlib asks
    package.get_ipython = lambda: shell  # type: ignore[attr-defined]
    package.display = part  # type: ignore[attr-defined]
    part.display = display  # type: ignore[attr-defined]
    return {"IPython": package, "IPython.display": part}
