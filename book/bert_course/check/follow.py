"""A copy of a function in which each expression passes a recorder, which keeps its value or puts another in its place."""

from __future__ import annotations

import ast
import builtins
import inspect
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from bert_course.check.mistakes import CHANGED, compiled
from minigrad.tensor import Tensor

HOOK = "seen_by_the_check"
NAME = "#: "  # begins the comment in which a line of a solution says what it computes
OFTEN = 100  # evaluations in a case, members of a list: of more, nothing is kept
LARGE = 100_000  # entries of an array: of more, nothing is kept


class OutOfTime(BaseException):
    """Raised within the answer, where no `except Exception` stops it."""


class _Unknown:
    """What is not kept."""


@dataclass(frozen=True)
class Place:
    """An expression in a source.

    piece: of the source; line: the line, or lines, that it is in; inside: the numbers of the places that it is made of.
    name: what a comment says that it is. condition: a branch hangs on it; tested: it is a part of such. variable: it is
    a name, whose value was made elsewhere. closed: it hangs on nothing that came, or was computed before. returned: it is
    returned, or one of the values that are.
    """

    number: int
    piece: str
    line: str
    inside: frozenset[int] = frozenset()
    name: str = ""
    condition: bool = False
    tested: bool = False
    variable: bool = False
    closed: bool = False
    returned: bool = False


class Followed:
    """A function to call, and what its expressions gave: `values`, by the numbers of `places`.

    source: of the function, from its `def` on. scope: the names that it sees. order: the numbers of the places, as they
    were evaluated first. deadline: in processor time, from which on a call ends with OutOfTime. Raises SyntaxError.
    """

    def __init__(self, source: str, scope: dict[str, Any]) -> None:
        tree = ast.parse(source)
        definition = tree.body[0] if len(tree.body) == 1 else None
        if not isinstance(definition, ast.FunctionDef):
            raise SyntaxError(f"not the source of a function: {source}")
        definition.decorator_list = []
        self.places = _Hooks(source, scope, definition).places
        self.values: defaultdict[int, list[Any]] = defaultdict(list)
        self.order: dict[int, None] = {}
        self.deadline = float("inf")
        self._instead: Callable[[int, Any], Any] | None = None
        self._ticks = 0
        scope = {**scope, HOOK: self._seen}
        exec(compiled(ast.unparse(ast.fix_missing_locations(tree)), f"{CHANGED} {definition.name}>"), scope)
        self.call: Callable[..., Any] = scope[definition.name]

    def record(self) -> None:
        """From here on keep values, of a new case."""
        self.values, self._instead = defaultdict(list), None

    def put(self, instead: Callable[[int, Any], Any]) -> None:
        """From here on put `instead(number, value)` in the place of each value, and keep none."""
        self._instead = instead

    def _seen(self, number: int, value: Any) -> Any:
        self._ticks += 1
        if not self._ticks % 64 and time.process_time() > self.deadline:
            raise OutOfTime
        if self._instead is not None:
            return self._instead(number, value)
        values = self.values[number]
        if len(values) <= OFTEN:
            values.append(kept(value))
            self.order.setdefault(number)
        return value


def scope_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The names that a function sees."""
    return {**function.__globals__, **inspect.getclosurevars(function).nonlocals}


def kept(value: Any) -> Any:
    """A value as it is now, of which nobody changes the numbers later; an _Unknown for what is not of numbers or words."""
    if isinstance(value, np.ndarray):
        return value.copy() if value.size <= LARGE and value.dtype.kind in "fiub" else _Unknown()
    if isinstance(value, bool | int | float | np.number | np.bool_ | Tensor | str | None):
        return value
    several = isinstance(value, range | dict) or type(value) in (list, tuple)
    if not several or len(value) > OFTEN:
        return _Unknown()
    parts = [kept(one) for one in (value.values() if isinstance(value, dict) else value)]
    if not all(map(is_known, parts)):
        return _Unknown()
    if isinstance(value, dict):
        return dict(zip(value, parts, strict=True))
    return tuple(parts) if isinstance(value, tuple) else parts


def is_known(value: Any) -> bool:
    """Whether a value was kept."""
    return not isinstance(value, _Unknown)


class _Hooks(ast.NodeTransformer):
    """Puts the hook around the expressions of a function that may be numbers, words or conditions."""

    def __init__(self, source: str, scope: dict[str, Any], definition: ast.FunctionDef) -> None:
        self.lines, self.scope = source.encode().split(b"\n"), scope
        self.places: list[Place] = []
        self.names: dict[int, str] = {}  # by the ids of nodes
        self.conditions: set[int] = set()
        self.returned: set[int] = set()
        self.closed: set[int] = set()
        self.testing = 0
        for node in _own(definition):
            if isinstance(node, ast.If | ast.While):
                self.conditions |= set(map(id, _parts(node.test, ast.BoolOp)))
            elif isinstance(node, ast.Return) and node.value is not None:
                self.returned |= set(map(id, _parts(node.value, (ast.Tuple, ast.List))))
        for node in ast.walk(definition):
            if value := _value_of(node):
                assert value.end_lineno
                _, _, name = self.lines[value.end_lineno - 1].decode().partition(NAME)
                self.names[id(value)] = name.strip()
        definition.body = [self.visit(statement) for statement in definition.body]

    def visit(self, node: ast.AST) -> Any:
        """The node with hooks around the expressions in it, and around itself."""
        if isinstance(node, ast.expr) and self._is_closed(node):
            self.closed.add(id(node))
        before, tested = len(self.places), id(node) in self.conditions
        self.testing += tested
        self._visit_parts(node)
        self.testing -= tested
        return self._hooked(node, before) if isinstance(node, ast.expr) and self._counts(node) else node

    def _visit_parts(self, node: ast.AST) -> None:
        match node:
            case ast.JoinedStr() | ast.pattern() | ast.arguments():
                return
            case ast.Call(func=function):
                if isinstance(function, ast.Attribute):
                    function.value = self.visit(function.value)
                node.args = [self.visit(one) for one in node.args]
                for keyword in node.keywords:
                    keyword.value = self.visit(keyword.value)
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                node.slice = self.visit(node.slice)
            case ast.AnnAssign(value=ast.expr() as value):
                node.value = self.visit(value)
            case ast.FunctionDef():
                node.body = [self.visit(statement) for statement in node.body]
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.AnnAssign():
                return
            case _:
                self.generic_visit(node)

    def _is_closed(self, node: ast.expr) -> bool:
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return "range" not in names and all(name in self.scope or hasattr(builtins, name) for name in names)

    def _counts(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(ctx=ast.Load()):
                found = self.scope.get(node.id)
                return not callable(found) and not isinstance(found, ModuleType)
            case ast.Constant():
                return type(node.value) in (int, float)
            case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()):
                return not any(isinstance(one, ast.Slice | ast.Starred) for one in node.elts)
            case ast.Attribute(ctx=ast.Load()) | ast.Subscript(ctx=ast.Load()):
                return True
        plain = ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.Call | ast.IfExp | ast.ListComp
        return isinstance(node, plain)

    def _hooked(self, node: ast.expr, before: int) -> ast.expr:
        assert node.end_lineno
        rows = self.lines[node.lineno - 1 : node.end_lineno]
        first, last = node.col_offset, len(rows[-1]) - (node.end_col_offset or 0)
        piece = b"\n".join(rows)[first:]
        place = Place(
            number=len(self.places),
            piece=" ".join(piece[: len(piece) - last].decode().split()),
            line=" ".join(b" ".join(rows).decode().partition(NAME)[0].split()),
            inside=frozenset(range(before, len(self.places))),
            name=self.names.get(id(node), ""),
            condition=id(node) in self.conditions,
            tested=self.testing > 0,
            variable=isinstance(node, ast.Name),
            closed=id(node) in self.closed,
            returned=id(node) in self.returned,
        )
        self.places.append(place)
        return ast.copy_location(
            ast.Call(ast.Name(HOOK, ast.Load()), [ast.Constant(place.number), node], []), node
        )


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function and in no function within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from _own(child)


def _parts(node: ast.expr, kinds: Any) -> Iterator[ast.expr]:
    """An expression, and of one of these kinds what it is made of."""
    yield node
    for part in getattr(node, "values", getattr(node, "elts", ())) if isinstance(node, kinds) else ():
        yield from _parts(part, kinds)


def _value_of(node: ast.AST) -> ast.expr | None:
    """What a statement computes."""
    match node:
        case ast.For(iter=value) | ast.Expr(value=ast.Call(args=[value])):
            return value
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.Return(value=ast.expr() as value):
            return value
    return None
