"""Small changes of any code, one by one: of a sign, a border, an axis, a transpose.

Made in the right answer they are mistakes that anybody makes; they come after the exercise's own, which know what it
is about. Made in a learner's answer one of them may put it right, and then its place is that of the mistake.
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


Text = Callable[[ast.AST], str]  # of a node: its source, or its name
Change = tuple[str, str]  # what stands in the place of a node, and what that is, in words

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
# A function's name, and what may stand there instead.
INSTEAD = {
    "sum": ("mean", "a mean stands in the place of a sum"),
    "mean": ("sum", "a sum stands in the place of a mean"),
    "max": ("min", "the smallest is taken in the place of the largest"),
    "min": ("max", "the largest is taken in the place of the smallest"),
    "argmax": ("argmin", "the smallest is looked for in the place of the largest"),
    "argmin": ("argmax", "the largest is looked for in the place of the smallest"),
    "any": ("all", "all are asked for where one is enough"),
    "all": ("any", "one is enough where all are asked for"),
    "floor": ("ceil", "a number is rounded up, not down"),
    "ceil": ("floor", "a number is rounded down, not up"),
    "cos": ("sin", "a sine stands in the place of a cosine"),
    "sin": ("cos", "a cosine stands in the place of a sine"),
    "var": ("std", "a standard deviation stands in the place of a variance"),
    "std": ("var", "a variance stands in the place of a standard deviation"),
}
PLACES = {  # in brackets after a value
    "0": ("-1", "the last is taken, not the first"),
    "-1": ("0", "the first is taken, not the last"),
    "1:": (":", "the first is not left out"),
    ":-1": (":", "the last is not left out"),
    "::-1": (":", "the order is not turned round"),
}
AXES = {"0": ("1",), "1": ("0",), "-1": ("-2", "0"), "-2": ("-1",)}
LEFT_OUT = {
    "sqrt": "a square root",
    "exp": "an exponential",
    "log": "a logarithm",
    "tanh": "a tanh",
    "abs": "an absolute value",
    "sorted": "putting things in order",
    "reversed": "turning the order round",
    "unique": "taking each thing once",
    "set": "taking each thing once",
    "cumsum": "a running sum",
    "round": "rounding",
}


def _operation(node: ast.BinOp, text: Text, name: Text) -> Iterator[Change]:
    left, right, sign = text(node.left), text(node.right), OPERATORS.get(type(node.op))
    first, second = name(node.left), name(node.right)

    def missing(kind: str, which: str) -> str:
        return f"{kind} {which} is missing" if which else f"{kind} is missing"

    if sign == "+":
        yield f"{left} - {right}", f"{second or 'a term'} is subtracted that has to be added"
        yield left, missing("the term" if second else "a term of a sum", second)
        yield right, missing("the term" if first else "a term of a sum", first)
    elif sign == "-":
        yield f"{left} + {right}", f"{second or 'a term'} is added that has to be subtracted"
        yield f"{right} - {left}", "a difference is taken the wrong way round"
        yield left, f"nothing is subtracted where {second or 'something'} has to be"
    elif sign == "*":
        yield left, missing("the factor" if second else "a factor", second)
        yield right, missing("the factor" if first else "a factor", first)
        yield f"{left} / {right}", "something is divided that has to be multiplied"
    elif sign == "/":
        yield left, missing("a division by" if second else "a division", second)
        yield f"{left} * {right}", "something is multiplied that has to be divided"
        yield f"{right} / {left}", "a fraction is upside down"
        yield f"{left} // {right}", "a division rounds down"
    elif sign == "//":
        yield f"-(-{left} // {right})", "a division rounds up, not down"
    elif sign == "**":
        yield left, "a power is missing"
    elif sign in ("&", "|"):
        yield from _conditions([left, right], sign)
        for whole, parts in ((node.left, "{0} {1} ({2} {3} {4})"), (node.right, "({4} {3} {0}) {1} {2}")):
            if isinstance(whole, ast.BinOp) and type(whole.op) in OPERATORS:
                inner = text(whole.left), OPERATORS[type(whole.op)], text(whole.right)
                beside = right if whole is node.left else left
                yield parts.format(*inner, sign, beside), "brackets stand in the wrong place"
    elif sign == "@":
        yield f"{right} @ {left}", "the factors of a matrix product have changed places"
        for factor, which, new in (
            (node.left, first, f"{left}.T @ {right}"),
            (node.right, second, f"{left} @ {right}.T"),
        ):
            if not text(factor).endswith(".T"):
                yield new, f"{which or 'a matrix'} is transposed, and should stay as it is"


def _conditions(parts: Sequence[str], sign: str) -> Iterator[Change]:
    """Of conditions that are joined by `sign`: by the other one, and without one of them."""
    other = {"&": "|", "|": "&", "and": "or", "or": "and"}[sign]
    words = (
        "one condition is enough where all must hold"
        if sign in ("&", "and")
        else "all conditions must hold where one is enough"
    )
    yield f" {other} ".join(parts), words
    for number in range(len(parts)):
        others = [part for place, part in enumerate(parts) if place != number]
        yield f" {sign} ".join(others), "one of several conditions is missing"


def _comparison(node: ast.Compare, text: Text) -> Iterator[Change]:
    sign = COMPARISONS.get(type(node.ops[0]))
    if len(node.ops) > 1 or sign is None:
        return
    left, right = text(node.left), text(node.comparators[0])
    if sign in BORDERS:
        border = (
            "counts its border in, which does not belong there"
            if "=" not in sign
            else "leaves its border out"
        )
        yield f"{left} {BORDERS[sign]} {right}", f"a comparison {border}"
    yield f"{left} {ROUND[sign]} {right}", "a comparison is the wrong way round"


def _call(node: ast.Call, text: Text) -> Iterator[Change]:
    function, arguments = text(node.func), [text(one) for one in (*node.args, *node.keywords)]
    stem, dot, last = function.rpartition(".")
    if last in INSTEAD and not (last in ("max", "min") and len(arguments) == 2 and not dot):
        other, words = INSTEAD[last]
        yield f"{stem}{dot}{other}({', '.join(arguments)})", words
    if last in LEFT_OUT and len(node.args) == 1 and stem in ("", "np", "math"):
        yield text(node.args[0]), f"{LEFT_OUT[last]} is missing"
    if last == "log" and stem in ("np", "math"):
        yield f"{stem}.log2({', '.join(arguments)})", "a logarithm has the base 2"
        yield f"{stem}.log10({', '.join(arguments)})", "a logarithm has the base 10"
    if last in ("max", "min", "maximum", "minimum") and len(node.args) == 2:
        for one in node.args:
            yield text(one), "a limit is missing"
    if last == "where" and len(node.args) == 3:
        condition, yes, no = arguments
        yield f"{function}({condition}, {no}, {yes})", "the two sides of a choice have changed places"
        yield yes, "a choice is missing: one side is always taken"
        yield no, "a choice is missing: one side is always taken"
    if last in ("var", "std") and "ddof" not in "".join(arguments):
        yield f"{function}({', '.join([*arguments, 'ddof=1'])})", "n - 1 stands in the place of n"
    if last == "choice" and "replace" not in "".join(arguments):
        yield f"{function}({', '.join([*arguments, 'replace=False'])})", "what was drawn is not put back"
    if last == "range":
        first, end = (arguments[0], arguments[1]) if len(arguments) > 1 else ("0", arguments[0])
        rest = "".join(f", {one}" for one in arguments[2:])
        yield f"range({first}, {end} - 1{rest})", "a loop leaves out its last turn"
        yield f"range({first}, {end} + 1{rest})", "a loop has a turn too many at its end"
        yield f"range({first} + 1, {end}{rest})", "a loop leaves out its first turn"
        if first == "1":
            yield f"range(0, {end}{rest})", "a loop has a turn too many at its beginning"


def _subscript(node: ast.Subscript, text: Text) -> Iterator[Change]:
    value, index = text(node.value), text(node.slice)
    *before, last = (
        [part.strip() for part in index.split(",")] if "(" not in index and "[" not in index else [index]
    )
    if last in PLACES:
        other, words = PLACES[last]
        yield f"{value}[{', '.join([*before, other])}]", words


def _other(node: ast.AST, text: Text, name: Text) -> Iterator[Change]:
    match node:
        case ast.Attribute(attr="T"):
            whose = name(node.value)
            yield text(node.value), f"{whose} is not transposed" if whose else "a transpose is missing"
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield text(node.operand), "a minus is missing"
        case ast.UnaryOp(op=ast.Invert() | ast.Not()):
            yield text(node.operand), "a condition is the wrong way round"
        case ast.BoolOp():
            yield from _conditions(
                list(map(text, node.values)), "and" if isinstance(node.op, ast.And) else "or"
            )
        case ast.keyword(arg="axis", value=value):
            for other in AXES.get(text(value), ()):
                yield f"axis={other}", "something is done along another axis"
        case ast.keyword(arg="reverse"):
            yield "reverse=False", "things are in order the wrong way round"
        case ast.AugAssign(op=ast.Add()):
            yield (
                f"{text(node.target)} = {text(node.value)}",
                "only the last is kept where all have to be added up",
            )
            yield f"{text(node.target)} -= {text(node.value)}", "something is subtracted that has to be added"
        case ast.AugAssign(op=ast.Sub()):
            yield f"{text(node.target)} += {text(node.value)}", "something is added that has to be subtracted"
        case ast.Attribute(attr="inf"):
            yield "10.0", "a number stands in the place of infinity"
            yield "1e9", "a number stands in the place of infinity"
        case ast.Name(ctx=ast.Load()) if name(node):
            yield f"{node.id} - 1", f"{name(node)} is one too small"
            yield f"{node.id} + 1", f"{name(node)} is one too large"


def _loop(over: ast.expr, text: Text) -> Iterator[Change]:
    """Changes of what a loop goes over; those of a `range` are its call's."""
    if not text(over).startswith("range("):
        yield f"list({text(over)})[:-1]", "a loop leaves out its last turn"
        yield f"list({text(over)})[1:]", "a loop leaves out its first turn"


def _changes(node: ast.AST, text: Text, name: Text) -> Iterator[Change]:
    match node:
        case ast.BinOp():
            yield from _operation(node, text, name)
        case ast.Compare():
            yield from _comparison(node, text)
        case ast.Call():
            yield from _call(node, text)
        case ast.Subscript():
            yield from _subscript(node, text)
        case _:
            yield from _other(node, text, name)


# --- Making them -----------------------------------------------------------------------------------------

EXCHANGED = "two steps have changed places"
SIMPLE = ast.Assign | ast.AugAssign | ast.Expr  # statements that can change places


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

    def name(self, node: ast.AST) -> str:
        """Of a parameter, or a number; empty for all else, which only this source knows."""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return self.text(node)
        return f"`{node.id}`" if isinstance(node, ast.Name) and node.id in self.parameters else ""

    def mutant(self, start: int, end: int, new: str, what: str) -> Mutant:
        changed = (self.all[self.body : start] + new.encode() + self.all[end:]).decode()
        piece, row = self.all[start:end].decode(), self.all[:start].count(b"\n")
        line = b" ".join(self.lines[row : row + piece.count("\n") + 1]).decode()
        return Mutant(
            f"Somewhere, {what}.", body=textwrap.dedent(changed), piece=piece, line=" ".join(line.split())
        )


@functools.cache
def mutants(answer: Callable[..., Any], own: bool = False) -> tuple[Mutant, ...]:
    """A function with one change each; none where there is no source.

    own: it is the learner's, whose local names may be confused as well as its parameters. Of a right answer with a
    `while` or a call of itself, which might not come to an end, there are none.
    """
    try:
        source = _Source(answer)
    except (OSError, TypeError, SyntaxError):
        return ()
    name = source.definition.name
    if not own and any(
        isinstance(node, ast.While) or getattr(node, "id", "") == name for node in source.nodes
    ):
        return ()
    made: dict[str, Mutant] = {}
    for place, new, what in _all_changes(source, own):
        mutant = source.mutant(*place, new, what)
        made.setdefault(mutant.body, mutant)
    return tuple(made.values())


def _all_changes(source: _Source, own: bool) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Where something is changed, into what, and what that is; the last ones say least."""
    plain = [node for node in source.nodes if not isinstance(node, ast.Name)]
    names = [node for node in source.nodes if isinstance(node, ast.Name)]
    for node in plain + names:
        for new, what in _changes(node, source.text, source.name):
            yield source.span(node), f"({new})" if isinstance(node, ast.expr) else new, what
        if isinstance(node, ast.For | ast.comprehension):
            for new, what in _loop(node.iter, source.text):
                yield source.span(node.iter), new, what
    blocks = [source.definition.body, *(node.body for node in plain if isinstance(node, ast.For | ast.If))]
    for step, after in itertools.chain.from_iterable(map(itertools.pairwise, blocks)):
        if isinstance(step, SIMPLE) and isinstance(after, SIMPLE):
            swapped = f"{source.text(after)}\n{' ' * step.col_offset}{source.text(step)}"
            yield (source.span(step)[0], source.span(after)[1]), swapped, EXCHANGED
    known = source.parameters | (
        {node.id for node in names if isinstance(node.ctx, ast.Store)} if own else set()
    )
    # Not in a loop: a list that is added to itself in each turn has no end.
    loops = (node for node in plain if isinstance(node, ast.For | ast.While))
    in_loops = {id(node) for loop in loops for node in ast.walk(loop)}
    for node in names:
        if isinstance(node.ctx, ast.Load) and node.id in known and id(node) not in in_loops:
            for other in sorted(known - {node.id}):
                yield source.span(node), other, f"`{other}` stands in the place of `{node.id}`"


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within it; not those in an f-string, whose places Python 3.11 does not know."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)
