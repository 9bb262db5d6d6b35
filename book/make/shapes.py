"""Shape comments, executed: a notebook runs, and what a line says of a shape is held against the array on it.

A shape comment stands at the end of an assignment, a `return` or the head of a `for`:

    Q = X @ W_Q            # (3, 4) (4, 2) -> (3, 2)     what comes after the last arrow is Q's shape
    Q, K, V = project(X)   # (L, d_k), (L, d_k), (L, d_v)     one for each target
    A = softmax(S)         # (L, L), each row sums to 1     words may follow

A number must be equal. A name that holds an integer where the line runs (inside a function: one of its own names)
must be equal too; any other name has one value within the line. `...` stands for any axes in front.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterator
from typing import Any

from book.site.python.packages.page_kernel import Kernel, Send

Shape = tuple[str, ...]

_AXIS = r"(?:\.\.\.|[\w√_]+(?:\s*[·*+/-]\s*[\w_]+)*)"
_SHAPE = re.compile(rf"\(\s*(?:{_AXIS}(?:\s*,\s*{_AXIS})*\s*,?)?\s*\)")
_BETWEEN = re.compile(r"\s*(->|→|,|@|and|\+)?\s*")


def shape_comment(text: str) -> list[Shape] | None:
    """The shapes of what a line makes, by its comment: those after the last arrow. None if it is no shape comment.

    text: the comment without its `#`.
    """
    text = text.strip()
    shapes: list[Shape] = []
    position = 0
    while match := _SHAPE.match(text, position):
        inside = match.group()[1:-1]
        axes = tuple(part.strip() for part in inside.split(",") if part.strip())
        if len(axes) == 1 and not inside.rstrip().endswith(",") and not re.fullmatch(r"\d+|\.\.\.", axes[0]):
            return None  # (water) is a remark
        shapes.append(axes)
        between = _BETWEEN.match(text, match.end())
        assert between is not None
        if between.group(1) in ("->", "→"):
            shapes = []
        position = between.end()
    return shapes or None


class ShapeKernel(Kernel):
    """Runs cells as the pages' kernel does, and holds their shape comments against the arrays on their lines.

    complaints: what is wrong with them, each once, in the order in which it came up.
    """

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self.complaints: dict[str, None] = {}
        self.names["__hold_shape__"] = self._hold

    def parsed(self, source: str, name: str) -> ast.Module:
        """The cell with a call beside each shape comment."""
        tree, left = _instrumented(source, name)
        for line, text in left:
            self.complaints[f"{name}, line {line}: no value to hold {text!r} against"] = None
        return tree

    def _hold(self, cell: str, line: int, shapes: list[Shape], value: Any, names: dict[str, Any]) -> Any:
        for complaint in _compare(shapes, value, names):
            self.complaints[f"{cell}, line {line}: {complaint}"] = None
        return value


def _comments(source: str) -> dict[int, tuple[str, list[Shape]]]:
    """The shape comments behind code, by line."""
    found = {}
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        shapes = shape_comment(token.string.lstrip("# "))
        if shapes is not None and lines[line - 1][:column].strip():
            found[line] = (token.string, shapes)
    return found


def _instrumented(source: str, cell: str) -> tuple[ast.Module, list[tuple[int, str]]]:
    """The cell's tree with a call beside each shape comment, and the comments that no line can be held against."""
    tree = ast.parse(source)
    comments = _comments(source)
    held: set[int] = set()

    def call(line: int, shapes: list[Shape], value: ast.expr) -> ast.expr:
        arguments = [ast.Constant(cell), ast.Constant(line), ast.parse(repr(shapes), mode="eval").body, value]
        arguments.append(ast.parse("locals()", mode="eval").body)
        return ast.Call(ast.Name("__hold_shape__", ast.Load()), arguments, [])

    def line_of(node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.For) -> int | None:
        end = node.body[0].lineno - 1 if isinstance(node, ast.For) else node.end_lineno
        return next((n for n in (end, node.lineno) if n in comments and n not in held), None)

    def beside(node: ast.stmt) -> list[ast.stmt]:
        """The statement, and the call that holds what it makes against the comment on its line."""
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.For):
            return [node]
        line = line_of(node)
        if line is None:
            return [node]
        shapes = comments[line][1]
        held.add(line)
        if isinstance(node, ast.Return):
            node.value = call(line, shapes, node.value or ast.Constant(None))
            return [node]
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        # No expression: as the cell's last one its value would be shown.
        held_now = ast.Compare(call(line, shapes, _loaded(target)), [ast.Is()], [ast.Constant(None)])
        extra = ast.If(held_now, [ast.Pass()], [])
        if isinstance(node, ast.For):
            node.body.insert(0, extra)
            return [node]
        return [node, extra]

    class Instrument(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            super().generic_visit(node)
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if not isinstance(block, list):
                    continue
                new: list[ast.stmt] = []
                for one, after in itertools.zip_longest(block, block[1:]):
                    last_on_its_line = after is None or after.lineno != one.end_lineno
                    new += beside(one) if last_on_its_line else [one]
                setattr(node, field, new)
            return node

    tree = ast.fix_missing_locations(Instrument().visit(tree))
    return tree, [(line, text) for line, (text, _) in comments.items() if line not in held]


def _loaded(target: ast.expr) -> ast.expr:
    """The same expression, to be read: what was assigned."""
    return ast.parse(ast.unparse(target).removeprefix("*"), mode="eval").body


def _compare(shapes: list[Shape], value: Any, names: dict[str, Any]) -> Iterator[str]:
    """What is wrong with these shapes of a value, or of the values of a tuple."""
    values = list(value) if isinstance(value, tuple | list) and not hasattr(value, "shape") else [value]
    if len(shapes) == 1:
        shapes = shapes * len(values)
    if len(shapes) != len(values):
        yield f"{len(shapes)} shapes for {len(values)} values"
        return
    bound: dict[str, int] = {}
    for shape, one in zip(shapes, values, strict=True):
        actual = getattr(one, "shape", None)
        if actual is None:
            if not isinstance(one, int | float):
                yield f"it says ({', '.join(shape)}), and the value is a {type(one).__name__}, which has no shape"
                continue
            actual = ()
        if not _fits(shape, tuple(actual), names, bound):
            yield f"it says ({', '.join(shape)}), and the shape is {tuple(actual)}"


def _fits(shape: Shape, actual: tuple[int, ...], names: dict[str, Any], bound: dict[str, int]) -> bool:
    if shape[:1] == ("...",):
        shape = shape[1:]
        actual = actual[max(0, len(actual) - len(shape)) :]
    if len(shape) != len(actual):
        return False
    return all(
        size is None or size == n for size, n in zip(_values(shape, names), actual, strict=True)
    ) and _bind(shape, actual, names, bound)


def _values(shape: Shape, names: dict[str, Any]) -> list[int | None]:
    """The size of each axis where it is known: a number, or an expression of names that hold integers."""
    sizes: list[int | None] = []
    for axis in shape:
        words = set(re.findall(r"[A-Za-z_]\w*", axis))
        known = {word: names[word] for word in words if isinstance(names.get(word), int)}
        try:
            expression = axis.replace("·", "*").replace("/", "//")
            sizes.append(int(eval(expression, {}, known)) if len(known) == len(words) else None)
        except (SyntaxError, NameError, ZeroDivisionError):
            sizes.append(None)
    return sizes


def _bind(shape: Shape, actual: tuple[int, ...], names: dict[str, Any], bound: dict[str, int]) -> bool:
    """A free name has one value within the line."""
    for axis, n in zip(shape, actual, strict=True):
        free = axis.isidentifier() and not isinstance(names.get(axis), int)
        if free and bound.setdefault(axis, n) != n:
            return False
    return True
