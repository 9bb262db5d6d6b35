"""How numbers flow through a component: matrices as grids of boxes, step by step, computed again when one is edited.

    boxes = [
        Box("X", X, "token", rows="tokens", columns="features"),
        Box("W_Q", W_Q, "query"),
        Box("Q", "X @ W_Q", "query", rows="tokens"),
    ]
    names = {"tokens": ["the", "river", "bank"], "features": ["water", "money", "place", "other"]}
    steps = [Step("What bank asks", [[View("X", lit=[2]), "·", "W_Q", "=", View("Q", only=[2])]], "Its row times W_Q.")]
    flow(boxes, steps, "One query", names, edit="X")

A box is an array or a formula over other boxes, which Python computes for the stored page and JavaScript once more in
the reader's browser: `FUNCTIONS` has what a formula may call, in both languages. All lines of all steps are drawn once.
A step fills some of them; those to come are pale, so that the whole is there from the start. Where there is room for
one line alone, those of the step are shown.
"""

from __future__ import annotations

import ast
import html
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from bert_course.common.drawing import words
from bert_course.common.palette import STYLE, colour
from bert_course.common.softmax import softmax
from bert_course.common.widgets import Frame, Player

# what a formula may call: in Python, and as JavaScript on a matrix (a list of rows)
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "softmax": (
        softmax,
        "x => x.map(row => { var top = Math.max(...row), e = row.map(v => Math.exp(v - top)); "
        "var sum = e.reduce((a, b) => a + b); return e.map(v => v / sum); })",
    ),
    "sqrt": (np.sqrt, "x => x.map(row => row.map(Math.sqrt))"),
    "tanh": (np.tanh, "x => x.map(row => row.map(Math.tanh))"),
    "gelu": (  # JavaScript has no erf: e^{-z²} Σ 2ⁿ z^{2n+1} / (1 · 3 · … (2n+1)) adds terms of one sign
        lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
        "x => x.map(row => row.map(v => { var z = Math.min(Math.abs(v) / Math.SQRT2, 7), sum = z, term = z; "
        "for (var n = 1; n < 250; n++) { term *= 2 * z * z / (2 * n + 1); sum += term; } "
        "var erf = 2 / Math.sqrt(Math.PI) * Math.exp(-z * z) * sum; return v * (1 + Math.sign(v) * erf) / 2; }))",
    ),
}
_SIGNS = {ast.MatMult: "@", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_ENTRYWISE = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}

# Of a picture, in pixels: an entry, the space at a sign, between lines; the room for all lines together. Never smaller
# than SMALLEST, at which its smallest words have 11 pixels.
CELL, TALL, GAP, LINE = 42, 27, 9, 22
WIDEST, HIGHEST = 896, 400
SMALLEST = 0.86


@dataclass(frozen=True)
class Box:
    """A matrix by name: an array, or a formula such as "softmax(S)" or "Q @ K.T / sqrt(2)" over boxes before it.

    role: what it is, a name of `palette.COLOURS`, which colours it. rows, columns: the lists of names, as keys of the
    `names` of `flow`. label: what is written below instead of the name; "W_Q" is set as W with an index. digits: after
    the point; zeros at the end are left out.
    """

    name: str
    source: Any
    role: str = "token"
    rows: str = ""
    columns: str = ""
    label: str = ""
    digits: int = 2


@dataclass(frozen=True)
class View:
    """A box within a step. only: the rows whose numbers are shown, others stay empty. lit: the rows with a frame."""

    name: str
    only: Sequence[int] | None = None
    lit: Sequence[int] = ()


@dataclass(frozen=True)
class Step:
    """What is filled at once: lines of boxes (by name or as `View`) and signs, under a title, and a sentence on it.

    A line of one box is that box in the first line that has it.
    """

    title: str
    lines: Sequence[Sequence[str | View]]
    text: str


class Flow:
    """The flow of numbers through a component, step by step, to be the last line of a cell.

    boxes: each after those that its formula uses. alt: what there is to see. names: of rows and columns, by axis.
    edit: the box whose entries the reader may change; all that hangs on it is then computed again. choices: buttons,
    from a name to a row of that box and its new values; the row takes the name. Raises ValueError for a formula,
    a box or names that do not fit, and says which.
    """

    def __init__(
        self,
        boxes: Sequence[Box],
        steps: Sequence[Step],
        alt: str,
        names: Mapping[str, Sequence[str]] | None = None,
        edit: str = "",
        choices: Mapping[str, tuple[int, Sequence[float]]] | None = None,
    ) -> None:
        self.boxes = {box.name: box for box in boxes}
        self.steps, self.alt, self.edit = list(steps), alt, edit
        self.names, self.choices = names or {}, choices or {}
        self.edited_at = ""  # where the entries are fields, once it is drawn
        self.formulas: dict[str, Any] = {}
        self.values: dict[str, np.ndarray] = {}
        for box in boxes:
            if isinstance(box.source, str):
                self.formulas[box.name] = _parsed(box.source, self.values)
                self.values[box.name] = _computed(self.formulas[box.name], self.values)
            else:
                self.values[box.name] = np.atleast_2d(np.asarray(box.source, float))
            self._require_names(box)
        if edit and (edit not in self.values or edit in self.formulas):
            raise ValueError(f"edit must name a box that is an array, got {edit!r}")

    def _require_names(self, box: Box) -> None:
        for axis, length in zip((box.rows, box.columns), self.values[box.name].shape, strict=True):
            if axis and len(self.names.get(axis, ())) != length:
                raise ValueError(
                    f"box {box.name!r} has {length} entries along {axis!r}: give names of that many"
                )

    def _repr_html_(self) -> str:
        lines, states = _arranged(self)
        self.edited_at = _place(lines, self.edit)
        drawn = [_line(self, place, names) for place, names in enumerate(lines)]
        scale = _scale([(width, tall) for width, tall, _ in drawn])
        whole = "\n".join(
            f'<svg class="line" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {tall:.0f}" '
            f'style="--wide: {width:.0f}px; --scaled: {width * scale:.0f}px">{parts}</svg>'
            for width, tall, parts in drawn
        )
        shown = Player(
            [Frame(step.title, "", step.text) for step in self.steps], "step", self.alt, whole=whole
        )
        state: dict[str, Any] = {"steps": states}
        if self.edit:
            state |= {
                "inputs": {n: v.tolist() for n, v in self.values.items() if n not in self.formulas},
                "formulas": self.formulas,
                "digits": {name: box.digits for name, box in self.boxes.items()},
                "names": {axis: list(names) for axis, names in self.names.items()},
                "edit": self.edit,
                "rows": self.boxes[self.edit].rows,
                "choices": {name: [row, list(values)] for name, (row, values) in self.choices.items()},
            }
        functions = ", ".join(f"{name}: {script}" for name, (_, script) in FUNCTIONS.items())
        script = _read("flow.js").replace("FUNCTIONS", functions)
        script = script.replace("STATE", json.dumps(state).replace("<", "\\u003c"))
        return (
            f'<div class="course-flow course-colours">{STYLE}<style>{_read("flow.css")}</style>{shown._repr_html_()}'
            f"{self._fields() if self.edit else ''}<script>{script}</script></div>"
        )

    def _fields(self) -> str:
        """What the reader may change, in words, and the buttons."""
        names = [html.escape(name) for name in self.choices]
        buttons = "".join(f'<button type="button" data-choice="{name}">{name}</button>' for name in names)
        box = _indexed_html(self.boxes[self.edit].label or self.edit)
        more = ", or put in a word:" if names else "."
        return f'<div class="fields" hidden>Change a number of <b>{box}</b>{more} {buttons}</div>'

    def __repr__(self) -> str:
        lines = [f"{self.alt} (step)", *(f"{step.title}: {step.text}" for step in self.steps)]
        for name, values in self.values.items():
            box = self.boxes[name]
            rows = [" ".join(_number(value, box.digits) for value in row) for row in values]
            lines.append(f"{box.label or name} {values.shape}: {'; '.join(rows)}")
        return "\n".join(lines)


flow = Flow  # in a page


# --- Formulas ---------------------------------------------------------------------------------------------


def _parsed(formula: str, known: Mapping[str, Any]) -> Any:
    """A formula as nested lists, [sign or function, *operands], for both languages."""

    def tree(node: ast.AST) -> Any:
        match node:
            case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
                return [_SIGNS[type(sign)], tree(left), tree(right)]
            case ast.Attribute(value, "T"):
                return ["T", tree(value)]
            case ast.Call(ast.Name(function), [argument]) if function in FUNCTIONS:
                return [function, tree(argument)]
            case ast.Name(name) if name in known:
                return name
            case ast.Constant(int() | float() as number):
                return number
        raise ValueError(
            f"the formula {formula!r} has {ast.unparse(node)!r}: it may have the boxes {', '.join(known)}, "
            f"numbers, + - * / @ .T and {', '.join(FUNCTIONS)}"
        )

    return tree(ast.parse(formula, mode="eval").body)


def _computed(tree: Any, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The value of a formula as nested lists."""
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int | float):
        return np.array([[float(tree)]])
    sign, *operands = tree
    arrays = [_computed(operand, values) for operand in operands]
    if sign == "@":
        return arrays[0] @ arrays[1]
    if sign == "T":
        return arrays[0].T
    function = _ENTRYWISE[sign] if sign in _ENTRYWISE else FUNCTIONS[sign][0]
    return function(*arrays)


# --- Pictures ---------------------------------------------------------------------------------------------


@dataclass
class _Drawing:
    """Parts of an SVG."""

    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, content: str, more: str = "", size: int = 14) -> None:
        self.parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="currentColor" {more}>{content}</text>'
        )


def _arranged(flow: Flow) -> tuple[list[tuple[str, ...]], list[dict[str, Any]]]:
    """The different lines of all steps, as names, and what each step shows of them.

    now: the lines that the step is about; rows, lit: for each box by its place, "line.place", the rows that are filled
    up to here and those that get a frame now.
    """
    lines: list[tuple[str, ...]] = []
    for step in flow.steps:
        for line in step.lines:
            names = tuple(item.name if isinstance(item, View) else item for item in line)
            if not any(name in flow.values for name in names):
                raise ValueError(f"a line of {step.title!r} has no box: {list(line)}")
            if names not in lines:
                lines.append(names)
    alone = [
        names
        for names in lines
        if len(names) == 1 and any(names[0] in other for other in lines if other != names)
    ]
    lines = [names for names in lines if names not in alone]
    known: dict[str, set[int]] = {}  # of each box, the rows that a step has filled
    seen: dict[str, str] = {}  # the places that a step has reached, and the box there
    states = []
    for step in flow.steps:
        now, lit = [], {}
        for line in step.lines:
            views = [item if isinstance(item, View) else View(item) for item in line]
            names = tuple(view.name for view in views)
            if names in lines:
                number = lines.index(names)
            else:
                number = next(i for i, other in enumerate(lines) if names[0] in other)
            now.append(number)
            for place, view in enumerate(views):
                if view.name in flow.values:
                    at = f"{number}.{place if names in lines else lines[number].index(view.name)}"
                    seen[at] = view.name
                    every = range(len(flow.values[view.name]))
                    known.setdefault(view.name, set()).update(
                        every if view.only is None else map(int, view.only)
                    )
                    if view.lit:
                        lit[at] = [int(row) for row in view.lit]
        states.append(
            {"now": now, "rows": {at: sorted(known[name]) for at, name in seen.items()}, "lit": lit}
        )
    return lines, states


def _place(lines: Sequence[Sequence[str]], box: str) -> str:
    """Where a box is first drawn, as "line.place"."""
    return next((f"{i}.{names.index(box)}" for i, names in enumerate(lines) if box in names), "")


def _scale(sizes: Sequence[tuple[float, float]]) -> float:
    """How large lines of these sizes are drawn, so that all have room, one beside the other as far as they go."""

    def tall(scale: float) -> float:
        total = width = tallest = 0.0
        for wide, high in sizes:
            if width and width + wide * scale > WIDEST:
                total, width, tallest = total + tallest, 0.0, 0.0
            width, tallest = width + wide * scale + 16, max(tallest, high * scale)
        return total + tallest

    return next((scale for scale in (1.0, 0.95, 0.9) if tall(scale) <= HIGHEST), SMALLEST)


def _line(flow: Flow, number: int, names: Sequence[str]) -> tuple[float, float, str]:
    """A line's width, height and SVG: its boxes side by side, their middles level."""
    drawing = _Drawing()
    boxes = [name for name in names if name in flow.values]
    head = max(_head(flow, name) for name in boxes)
    tall = max(len(flow.values[name]) for name in boxes) * TALL
    x, middle = 4.0, 2 + head + tall / 2
    for place, name in enumerate(names):
        if name in flow.values:
            x = _grid(drawing, flow, name, f"{number}.{place}", x, middle, named=place == 0)
        else:
            width = 8 * len(name)
            drawing.text(x + GAP + width / 2, middle + 5, html.escape(name), 'text-anchor="middle"', 15)
            x += width + 2 * GAP
    return x + 4, middle + tall / 2 + LINE + 2, "".join(drawing.parts)


def _turned(names: Sequence[str]) -> bool:
    """Whether names of columns would meet if they were level."""
    widths = [0.88 * words.width(name, 13) for name in names]  # in the pages' narrow face
    return any((a + b) / 2 > CELL - 2 for a, b in itertools.pairwise(widths))


def _head(flow: Flow, name: str) -> float:
    """The room above a box for the names of its columns."""
    names = flow.names[flow.boxes[name].columns] if flow.boxes[name].columns else []
    level = LINE - 6 if names else 2
    return 12 + 0.77 * max(words.width(one, 13) for one in names) if _turned(names) else level


def _grid(drawing: _Drawing, flow: Flow, name: str, at: str, x: float, middle: float, named: bool) -> float:
    """Draw a box from `x` on, around the height `middle`; returns where it ends. at: its place, "line.place"."""
    box, values = flow.boxes[name], flow.values[name]
    n, m = values.shape
    top = middle - n * TALL / 2
    drawing.parts.append(f'<g data-at="{at}">')
    if named and box.rows:
        x += max(50, 8 * max(map(len, flow.names[box.rows])) + 8)
        for i, row in enumerate(flow.names[box.rows]):
            where = f'text-anchor="end" data-name="{box.rows},{i}"'
            drawing.text(x - 6, top + (i + 0.5) * TALL + 5, html.escape(row), where)
    if box.columns:
        turned = _turned(flow.names[box.columns])
        for j, column in enumerate(flow.names[box.columns]):
            across, where = x + (j + 0.5) * CELL, 'text-anchor="middle"'
            if turned:
                across += 4
                where = f'transform="rotate(-50 {across:.0f} {top - 5:.0f})"'
            drawing.text(across, top - 5, html.escape(column), f'{where} data-name="{box.columns},{j}"', 13)
    ink, largest = colour(box.role), float(np.abs(values).max()) or 1.0
    for i in range(n):
        drawing.parts.append(f'<g data-row="{i}">')
        for j in range(m):
            entry = f'data-box="{name}" data-entry="{i},{j}"'
            left, up = x + j * CELL, top + i * TALL
            size = f'x="{left:.0f}" y="{up:.0f}" width="{CELL}" height="{TALL}"'
            strength = _strength(values[i, j], largest)
            drawing.parts.append(
                f'<rect {size} fill="{ink}" fill-opacity="{strength:.2f}" stroke="{ink}" stroke-opacity="0.5" {entry}/>'
            )
            number = _number(values[i, j], box.digits)
            if at == flow.edited_at:
                drawing.parts.append(_field(flow, size, i, j, number))
            else:
                drawing.text(left + CELL / 2, up + TALL / 2 + 5, number, f'text-anchor="middle" {entry}')
        drawing.parts.append(
            f'<rect class="lit" x="{x:.0f}" y="{top + i * TALL:.0f}" width="{m * CELL}" height="{TALL}" fill="none" '
            f'stroke="{ink}" stroke-width="3"/></g>'
        )
    label = f"{_indexed(box.label or box.name)} ({n}, {m})"
    drawing.text(x + m * CELL / 2, top + n * TALL + 17, label, 'text-anchor="middle" font-weight="bold"')
    drawing.parts.append("</g>")
    below = 8 * (len(box.label or box.name) + 7)  # the label and its shape
    beside = max(0.0, _head(flow, name) - LINE) * 0.7  # the last turned name leans to the right
    return x + m * CELL / 2 + max(m * CELL + beside, below) / 2


def _field(flow: Flow, size: str, i: int, j: int, number: str) -> str:
    """An entry that the reader may change."""
    columns = flow.names.get(flow.boxes[flow.edit].columns, range(flow.values[flow.edit].shape[1]))
    says = html.escape(f"{flow.edit}, row {i}, {columns[j]}")
    return (
        f'<foreignObject {size}><input xmlns="http://www.w3.org/1999/xhtml" type="number" step="0.5" value="{number}" '
        f'data-entry="{i},{j}" aria-label="{says}"/></foreignObject>'
    )


def _strength(value: float, largest: float) -> float:
    """How strongly an entry is coloured: its size beside the largest, and never so much that the number drowns."""
    return 0.3 * abs(value) / largest


def _number(value: float, digits: int) -> str:
    """With so many digits after the point, without zeros at the end."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _indexed(label: str) -> str:
    """W_Q with its index set lower."""
    return re.sub(
        r"_(\w+)", r'<tspan dy="3" font-size="13">\1</tspan><tspan dy="-3"> </tspan>', html.escape(label)
    )


def _indexed_html(label: str) -> str:
    """The same in HTML."""
    return re.sub(r"_(\w+)", r"<sub>\1</sub>", html.escape(label))


@cache
def _read(name: str) -> str:
    """A script or a style beside this file, without the comment at its head."""
    text = (files("bert_course.common") / name).read_text(encoding="utf-8")
    return re.sub(r"\A(?:(?://.*\n)+|/\*.*?\*/\n)", "", text)
