"""Small changes of any code, one by one: of a sign, a border, an axis, a transpose.

Made in the right answer they are mistakes that anybody makes; they stand behind the slips of an exercise, which know
what it is about. Made in a learner's answer one of them may put it right, and then its place is that of the mistake.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from minigrad.course.check.slips import Slip, parts_of


@dataclass(frozen=True)
class Mutant(Slip):
    """A slip whose body is the source of a function with one place changed; a slip's edits can be made in it as well.

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
        words = (
            "one condition is enough where both must hold"
            if sign == "&"
            else "both must hold where one is enough"
        )
        yield f"{left} {'|' if sign == '&' else '&'} {right}", words
        yield left, "one of several conditions is missing"
        yield right, "one of several conditions is missing"
        if isinstance(node.left, ast.BinOp):
            one, inner, other = text(node.left.left), OPERATORS[type(node.left.op)], text(node.left.right)
            yield f"{one} {inner} ({other} {sign} {right})", "brackets stand in the wrong place"
        if isinstance(node.right, ast.BinOp):
            one, inner, other = text(node.right.left), OPERATORS[type(node.right.op)], text(node.right.right)
            yield f"({left} {sign} {one}) {inner} {other}", "brackets stand in the wrong place"
    elif sign == "@":
        yield f"{right} @ {left}", "the factors of a matrix product have changed places"
        for factor, which, new in (
            (node.left, first, f"{left}.T @ {right}"),
            (node.right, second, f"{left} @ {right}.T"),
        ):
            if not text(factor).endswith(".T"):
                yield new, f"{which or 'a matrix'} is transposed, and should stay as it is"


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
    swapped = {
        "0": ("-1", "the last is taken, not the first"),
        "-1": ("0", "the first is taken, not the last"),
    }
    swapped |= {
        "1:": (":", "the first is not left out"),
        ":-1": (":", "the last is not left out"),
        "::-1": (":", "the order is not turned round"),
    }
    if last in swapped:
        other, words = swapped[last]
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
        case ast.BoolOp(op=ast.And()):
            yield f"({' or '.join(map(text, node.values))})", "one condition is enough where all must hold"
            for one in node.values:
                others = [other for other in node.values if other is not one]
                yield f"({' and '.join(map(text, others))})", "one of several conditions is missing"
        case ast.BoolOp(op=ast.Or()):
            yield f"({' and '.join(map(text, node.values))})", "all conditions must hold where one is enough"
            for one in node.values:
                others = [other for other in node.values if other is not one]
                yield f"({' or '.join(map(text, others))})", "one of several conditions is missing"
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


SIMPLE = ast.Assign | ast.AugAssign | ast.Expr  # statements that can change places

# --- Making them -----------------------------------------------------------------------------------------


@functools.cache
def mutants(answer: Callable[..., Any], own: bool = False) -> tuple[Mutant, ...]:
    """A function with one change each.

    own: it is the learner's, whose local names may be confused as well as its parameters. None of one with a `while` or a call of itself, which might not come to an end, and where there is no source.
    """
    try:
        _, head, body = parts_of(answer)
    except (OSError, TypeError, SyntaxError):
        return ()
    source = f"{head}\n{body}"
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    nodes = [node for statement in definition.body for node in _walk(statement)]
    nodes.sort(key=lambda node: isinstance(node, ast.Name))  # a name by one more or less says least
    if any(isinstance(node, ast.While) or getattr(node, "id", "") == definition.name for node in nodes):
        return ()
    parameters = set(inspect.signature(answer).parameters)
    lines = source.encode().split(b"\n")  # the columns of a node count bytes
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    encoded, first = source.encode(), len(head.encode()) + 1

    def span(node: ast.AST) -> tuple[int, int]:
        at = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return starts[at[0] - 1] + at[1], starts[at[2] - 1] + at[3]

    def text(node: ast.AST) -> str:
        start, end = span(node)
        found = encoded[start:end].decode()
        return f"({found})" if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.IfExp) else found

    def name(node: ast.AST) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return text(node)
        return f"`{node.id}`" if isinstance(node, ast.Name) and node.id in parameters else ""

    made: dict[str, Mutant] = {}

    def make(start: int, end: int, new: str, what: str) -> None:
        changed = (encoded[first:start] + new.encode() + encoded[end:]).decode()
        piece = encoded[start:end].decode()
        row = encoded[:start].count(b"\n")
        line = b" ".join(b" ".join(lines[row : row + piece.count("\n") + 1]).split()).decode()
        sentence = f"Somewhere, {what}."
        made.setdefault(changed, Mutant(sentence, body=textwrap.dedent(changed), piece=piece, line=line))

    for node in nodes:
        for new, what in _changes(node, text, name):
            make(*span(node), f"({new})" if isinstance(node, ast.expr) else new, what)
        if isinstance(node, ast.For | ast.comprehension):
            for new, what in _loop(node.iter, text):
                make(*span(node.iter), new, what)
    names = set(parameters)
    if own:
        names |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    # Not in a loop: a list that is added to itself in each turn has no end.
    in_loops = {id(node) for loop in nodes if isinstance(loop, ast.For) for node in ast.walk(loop)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            for other in sorted(names - {node.id} if id(node) not in in_loops else ()):
                make(*span(node), other, f"`{other}` stands in the place of `{node.id}`")
    for block in [definition.body, *(node.body for node in nodes if isinstance(node, ast.For | ast.If))]:
        for step, next_step in itertools.pairwise(block):
            if isinstance(step, SIMPLE) and isinstance(next_step, SIMPLE):
                swapped = f"{text(next_step)}\n{' ' * step.col_offset}{text(step)}"
                make(span(step)[0], span(next_step)[1], swapped, "two steps have changed places")
    return tuple(made.values())


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within it; not those in an f-string, whose places Python 3.11 does not know."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)
