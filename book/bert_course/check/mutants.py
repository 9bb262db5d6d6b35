"""Small changes of any code, one by one: of a sign, a border, an axis, a transpose.

Made in a learner's answer one of them may put it right, and then its place is that of the mistake.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bert_course.check.mistakes import Mistake, parts_of


@dataclass(frozen=True)
class Mutant(Mistake):
    """A mistake whose body is the source of a function with one place changed; a mistake's edits can be made in it as well.

    piece: what stood there. line: the line, or lines, that it stood in.
    """

    piece: str = ""
    line: str = ""


Text = Callable[[ast.AST], str]  # of a node: its source

# --- What can be wrong -----------------------------------------------------------------------------------

OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
BORDERS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ROUND = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="}
_PAIRS = "sum mean, max min, argmax argmin, any all, floor ceil, cos sin, var std"
# A function's name, and what may stand there instead.
INSTEAD = {one: other for pair in _PAIRS.split(", ") for one, other in (pair.split(), pair.split()[::-1])}
PLACES = {"0": "-1", "-1": "0", "1:": ":", ":-1": ":", "::-1": ":"}  # in brackets after a value
AXES = {"0": ("1",), "1": ("0",), "-1": ("-2", "0"), "-2": ("-1",)}
LEFT_OUT = ["sqrt", "exp", "log", "tanh", "abs", "sorted", "reversed", "unique", "set", "cumsum", "round"]


def _operation(node: ast.BinOp, text: Text) -> Iterator[str]:
    left, right, sign = text(node.left), text(node.right), OPERATORS.get(type(node.op))
    if sign == "+":
        yield from (f"{left} - {right}", left, right)
    elif sign == "-":
        yield from (f"{left} + {right}", f"{right} - {left}", left)
    elif sign == "*":
        yield from (left, right, f"{left} / {right}")
    elif sign == "/":
        yield from (left, f"{left} * {right}", f"{right} / {left}", f"{left} // {right}")
    elif sign == "//":
        yield f"-(-{left} // {right})"
    elif sign == "**":
        yield left
    elif sign in ("&", "|"):
        yield from _conditions([left, right], sign)
        for whole, parts in ((node.left, "{0} {1} ({2} {3} {4})"), (node.right, "({4} {3} {0}) {1} {2}")):
            if isinstance(whole, ast.BinOp) and type(whole.op) in OPERATORS:  # brackets elsewhere
                inner = text(whole.left), OPERATORS[type(whole.op)], text(whole.right)
                beside = right if whole is node.left else left
                yield parts.format(*inner, sign, beside)
    elif sign == "@":
        yield f"{right} @ {left}"
        yield from (f"{left}.T @ {right}", f"{left} @ {right}.T")


def _conditions(parts: Sequence[str], sign: str) -> Iterator[str]:
    """Of conditions that are joined by `sign`: by the other one, and without one of them."""
    other = {"&": "|", "|": "&", "and": "or", "or": "and"}[sign]
    yield f" {other} ".join(parts)
    for number in range(len(parts)):
        yield f" {sign} ".join(part for place, part in enumerate(parts) if place != number)


def _comparison(node: ast.Compare, text: Text) -> Iterator[str]:
    sign = COMPARISONS.get(type(node.ops[0]))
    if len(node.ops) == 1 and sign is not None:
        left, right = text(node.left), text(node.comparators[0])
        for other in filter(None, (BORDERS.get(sign), ROUND[sign])):
            yield f"{left} {other} {right}"


def _call(node: ast.Call, text: Text) -> Iterator[str]:
    function, arguments = text(node.func), [text(one) for one in (*node.args, *node.keywords)]
    stem, dot, last = function.rpartition(".")
    joined = ", ".join(arguments)
    if last in INSTEAD and not (last in ("max", "min") and len(arguments) == 2 and not dot):
        yield f"{stem}{dot}{INSTEAD[last]}({joined})"
    if last in LEFT_OUT and len(node.args) == 1 and stem in ("", "np", "math"):
        yield text(node.args[0])
    if last == "log" and stem in ("np", "math"):
        yield from (f"{stem}.log2({joined})", f"{stem}.log10({joined})")
    if last in ("max", "min", "maximum", "minimum") and len(node.args) == 2:
        yield from map(text, node.args)
    if last == "where" and len(node.args) == 3:
        condition, yes, no = arguments
        yield from (f"{function}({condition}, {no}, {yes})", yes, no)
    if last in ("var", "std") and "ddof" not in joined:
        yield f"{function}({', '.join([*arguments, 'ddof=1'])})"
    if last == "choice" and "replace" not in joined:
        yield f"{function}({', '.join([*arguments, 'replace=False'])})"
    if last == "range":
        first, end = (arguments[0], arguments[1]) if len(arguments) > 1 else ("0", arguments[0])
        rest = "".join(f", {one}" for one in arguments[2:])
        yield from (f"range({first}, {end} {by} 1{rest})" for by in "-+")
        yield from (f"range({first} {by} 1, {end}{rest})" for by in "+-")


def _subscript(node: ast.Subscript, text: Text) -> Iterator[str]:
    value, index = text(node.value), text(node.slice)
    *before, last = (
        [part.strip() for part in index.split(",")] if "(" not in index and "[" not in index else [index]
    )
    if last in PLACES:
        yield f"{value}[{', '.join([*before, PLACES[last]])}]"


def _changes(node: ast.AST, text: Text, parameters: set[str]) -> Iterator[str]:
    """What may stand in the place of a node."""
    match node:
        case ast.BinOp():
            yield from _operation(node, text)
        case ast.Compare():
            yield from _comparison(node, text)
        case ast.Call():
            yield from _call(node, text)
        case ast.Subscript():
            yield from _subscript(node, text)
        case ast.Attribute(attr="T"):
            yield text(node.value)
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield text(node.operand)
        case ast.UnaryOp(op=ast.Invert() | ast.Not()):
            yield text(node.operand)
        case ast.BoolOp():
            sign = "and" if isinstance(node.op, ast.And) else "or"
            yield from _conditions(list(map(text, node.values)), sign)
        case ast.keyword(arg="axis", value=value):
            yield from (f"axis={other}" for other in AXES.get(text(value), ()))
        case ast.keyword(arg="reverse"):
            yield "reverse=False"
        case ast.Assign(targets=[ast.Name() | ast.Subscript() as target]):
            yield f"{text(target)} += {text(node.value)}"
        case ast.AugAssign(op=ast.Add()):
            yield f"{text(node.target)} = {text(node.value)}"  # not added up
            yield f"{text(node.target)} -= {text(node.value)}"
        case ast.AugAssign(op=ast.Sub()):
            yield f"{text(node.target)} += {text(node.value)}"
        case ast.Attribute(attr="inf"):
            yield from ("10.0", "1e9")
        case ast.Name(ctx=ast.Load()) if node.id in parameters:
            yield from (f"{node.id} - 1", f"{node.id} + 1")


def _loop(over: ast.expr, text: Text) -> Iterator[str]:
    """Changes of what a loop goes over; those of a `range` are its call's."""
    if not text(over).startswith("range("):
        yield from (f"list({text(over)})[:-1]", f"list({text(over)})[1:]")


# --- Making them -----------------------------------------------------------------------------------------


class _Source:
    """A function's source, and where its nodes stand in it; in bytes, as the columns of nodes count."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        _, head, body = parts_of(answer)
        self.lines = f"{head}\n{body}".encode().split(b"\n")
        self.all = b"\n".join(self.lines)
        self.starts = [0, *itertools.accumulate(len(line) + 1 for line in self.lines)]
        self.body = len(head.encode()) + 1
        (definition,) = ast.parse(self.all).body
        assert isinstance(definition, ast.FunctionDef)
        self.definition = definition
        self.nodes = [node for statement in definition.body for node in _walk(statement)]
        self.parameters = set(inspect.signature(answer).parameters)

    def span(self, node: ast.AST) -> tuple[int, int]:
        at = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.starts[at[0] - 1] + at[1], self.starts[at[2] - 1] + at[3]

    def text(self, node: ast.AST) -> str:
        """As an operand: in brackets where it is more than one."""
        start, end = self.span(node)
        found = self.all[start:end].decode()
        return f"({found})" if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.IfExp) else found

    def mutant(self, start: int, end: int, new: str) -> Mutant:
        changed = (self.all[self.body : start] + new.encode() + self.all[end:]).decode()
        piece, row = self.all[start:end].decode(), self.all[:start].count(b"\n")
        line = b" ".join(self.lines[row : row + piece.count("\n") + 1]).decode()
        return Mutant("", body=textwrap.dedent(changed), piece=piece, line=" ".join(line.split()))


@functools.cache
def mutants(answer: Callable[..., Any]) -> tuple[Mutant, ...]:
    """A function with one change each; none where there is no source."""
    try:
        source = _Source(answer)
    except (OSError, TypeError, SyntaxError):
        return ()
    made: dict[str, Mutant] = {}
    for mutant in _all_changes(source):
        made.setdefault(mutant.body, mutant)
    return tuple(made.values())


def _all_changes(source: _Source) -> Iterator[Mutant]:
    plain = [node for node in source.nodes if not isinstance(node, ast.Name)]
    names = [node for node in source.nodes if isinstance(node, ast.Name)]
    for node in plain + names:
        for new in _changes(node, source.text, source.parameters):
            yield source.mutant(*source.span(node), f"({new})" if isinstance(node, ast.expr) else new)
        if isinstance(node, ast.For | ast.comprehension):
            for new in _loop(node.iter, source.text):
                yield source.mutant(*source.span(node.iter), new)
    known = source.parameters | {node.id for node in names if isinstance(node.ctx, ast.Store)}
    # Not in a loop: a list that is added to itself in each turn has no end.
    loops = (node for node in plain if isinstance(node, ast.For | ast.While))
    in_loops = {id(node) for loop in loops for node in ast.walk(loop)}
    for node in names:
        if isinstance(node.ctx, ast.Load) and node.id in known and id(node) not in in_loops:
            for other in sorted(known - {node.id}):
                yield source.mutant(*source.span(node), other)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within it; not those in an f-string, whose places Python 3.11 does not know."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)
