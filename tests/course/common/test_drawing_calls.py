"""The course's own drawing has every method of matplotlib, and every setting, that a figure of the course asks for."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bert_course.common.drawing import Axes, Figure
from bert_course.common.drawing.frame import Spines

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[3]
# In book/bert_course: they draw with matplotlib alone, or are what is tested here.
NATIVE = tuple(("common", name) for name in ("drawing", "figures.py"))
PARAMETERS = {"canvas": Figure, "axes": Axes}  # how figures call what they are given
PARTS = {"spines": Spines, "axes": Axes}  # attributes of the two that have methods themselves


class Lacking:
    """Stands for an attribute that ours does not have: it has no methods."""


def cells(path):
    """The code of a notebook, cell by cell, without lines that are no Python."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            yield "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)


def sources() -> Iterator[tuple[str, str]]:
    """The code that may draw in a page, with the name of its file; that of exercises is in the solutions."""
    for folder in ("book", "solutions"):
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            yield from ((f"{folder}/{path.name}", code) for code in cells(path))
    course = ROOT / "book" / "bert_course"
    for path in sorted(course.rglob("*.py")):
        if path.relative_to(course).parts[:2] not in NATIVE:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


@cache
def trees() -> list[tuple[str, ast.Module]]:
    """The same, parsed, where it speaks of what figures are made of."""
    words = re.compile("canvas|axes|figure")
    return [(place, ast.parse(code)) for place, code in sources() if words.search(code)]


def kind(node, names):
    """The class of ours that stands for what an expression is: Figure, Axes, Spines, or None."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Subscript(value=value):
            return kind(value, names)
        case ast.Call(func=ast.Attribute(attr="subplots" | "add_subplot", value=value)):
            return Axes if kind(value, names) is Figure else None
        case ast.Call(func=ast.Attribute(attr="ravel", value=value)):
            return kind(value, names)
        case ast.Attribute(attr=attr, value=value) if kind(value, names):
            return PARTS.get(attr, Lacking)
    return None


def bound(target, value, names):
    """The names in a target of an assignment or a loop that hold what is drawn in, with their classes."""
    found = {}
    match target, value:
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=rows):
            for part, row in zip(parts, rows, strict=False):
                found |= bound(part, row, names)
            return found
        # For axes, name in ((above, "a"), …)
        case ast.Tuple(elts=parts), ast.Tuple(elts=[ast.Tuple(elts=row), *_]):
            for part, one in zip(parts, row, strict=False):
                found |= bound(part, one, names)
            return found
    what = kind(value, names)
    return {name.id: what for name in ast.walk(target) if what and isinstance(name, ast.Name)}


def drawn_in(tree):
    """The names that hold a figure or axes."""
    names = dict(PARAMETERS)
    for _ in range(2):  # what is bound further below may be gone through above
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                names |= bound(node.targets[0], node.value, names)
            elif isinstance(node, ast.For | ast.comprehension):
                names |= bound(node.target, node.iter, names)
    return names


def calls(tree):
    """Each call of a method of a figure, of axes or of their parts, with the class that must have it."""
    names = drawn_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            what = kind(node.func.value, names)
            if what and (what, node.func.attr) != (Axes, "ravel"):
                yield node, what


def lacking(node, what):
    """What a call asks for that ours does not have; empty if it has all."""
    name, keywords = node.func.attr, {keyword.arg: None for keyword in node.keywords if keyword.arg}
    if what is Lacking:
        return f"no {ast.unparse(node.func.value)}"
    if not hasattr(what, name):
        return f"no {what.__name__}.{name}"
    method = getattr(what, name)
    if (what, name) == (Axes, "set"):  # what it hands on to others
        return ", ".join(f"no Axes.set_{word}" for word in keywords if not hasattr(Axes, f"set_{word}"))
    if (what, name) == (Axes, "loglog"):
        method, keywords = Axes.plot, {word: None for word in keywords if word != "base"}
    rest = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    try:
        inspect.signature(method).bind_partial(None, *rest, **keywords)
    except TypeError as error:
        return f"{what.__name__}.{name}: {error}"
    return ""


def test_no_figure_asks_for_what_the_drawing_lacks():
    found = []
    seen = set()
    for place, tree in trees():
        for node, what in calls(tree):
            seen.add((place, node.func.attr))
            why = lacking(node, what)
            found += [f"{place}: {ast.unparse(node)[:100]}: {why}"] if why else []
    assert not found, "\n".join(found)
    assert len({place for place, _ in seen}) > 25  # it has looked into figures
    assert {
        ("book/arrays.ipynb", "barh"),
        ("book/optimisers.ipynb", "contour"),
        # Of a helper, on what it is given
        ("book/bert_course/chapters/scaling_figures.py", "minorticks_off"),
        ("book/bert_course/chapters/add_norm.py", "set_visible"),
    } <= seen


def test_figures_take_what_the_test_above_looks_for():
    """A function that draws has `canvas` as its first parameter, or what it draws on would not be seen."""
    others = []
    for place, tree in trees():
        drawing = {
            node.args[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] == "figure"
            and node.args
            and isinstance(node.args[0], ast.Name)
        }
        others += [
            f"{place}: {node.name}({node.args.args[0].arg}, …)"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.name in drawing
            and node.args.args[0].arg != "canvas"
        ]
    assert not others


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("canvas.subplots(2, sharez=True)", "'sharez'"),
        ("axes.pie([1])", "no Axes.pie"),
        ("for one, name in zip(canvas.subplots(2), 'ab'):\n  one.plot([1], dashes=(1, 1), color='k')", "'dashes'"),
        ("above, below = canvas.subplots(2)\nbelow.set(title='a', xbound=(0, 1))", "no Axes.set_xbound"),
        ("axes.loglog([1], base=2, dashes=(1, 1))", "'dashes'"),
        ("axes.xaxis.set_visible(False)", "no axes.xaxis"),
        ("canvas.axes[0].spines['left'].set_color('k')", "no Spines.set_color"),
    ],
)  # fmt: skip
def test_what_is_lacking_is_found(code, why):
    assert [why in lacking(*call) for call in calls(ast.parse(code))].count(True) == 1
