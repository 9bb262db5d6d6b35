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
the reader's browser: `FUNCTIONS` has what a formula may call, in both languages. The steps are frames of a player.
"""

from __future__ import annotations

import ast
import html
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minigrad.course.furniture.palette import STYLE, colour
from minigrad.course.furniture.widgets import Frame, Player, player, svg

# what a formula may call: in Python, and as JavaScript on a matrix (a list of rows)
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "softmax": (
        lambda x: (
            np.exp(x - x.max(axis=-1, keepdims=True))
            / np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True)
        ),
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

CELL, TALL, GAP, LINE = (
    38,
    27,
    9,
    22,
)  # of a picture, in its own units: an entry, the space at a sign, between lines


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
    """A picture of the flow: lines of boxes (by name or as `View`) and signs, under a title, and a sentence on it."""

    title: str
    lines: Sequence[Sequence[str | View]]
    text: str


class Flow:
    """Steps that the reader goes through, with the numbers of `values`, and fields to change those of one box."""

    def __init__(
        self,
        boxes: Sequence[Box],
        steps: Sequence[Step],
        alt: str,
        names: Mapping[str, Sequence[str]],
        edit: str,
        choices: Mapping[str, tuple[int, Sequence[float]]],
    ) -> None:
        self.boxes = {box.name: box for box in boxes}
        self.steps, self.alt, self.names, self.edit, self.choices = list(steps), alt, names, edit, choices
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

    def _player(self) -> Player:
        frames = [Frame(step.title, _picture(self, step), step.text) for step in self.steps]
        return player(frames, "step", self.alt)

    def _repr_html_(self) -> str:
        if not self.edit:
            return f'<div class="course-flow course-colours">{STYLE}{self._player()._repr_html_()}</div>'
        box = self.boxes[self.edit]
        state = {
            "inputs": {n: v.tolist() for n, v in self.values.items() if n not in self.formulas},
            "formulas": self.formulas,
            "digits": {name: box.digits for name, box in self.boxes.items()},
            "names": {axis: list(names) for axis, names in self.names.items()},
            "edit": self.edit,
            "rows": box.rows,
            "choices": {name: [row, list(values)] for name, (row, values) in self.choices.items()},
        }
        functions = ", ".join(f"{name}: {script}" for name, (_, script) in FUNCTIONS.items())
        script = _SCRIPT.replace("STATE", json.dumps(state).replace("<", "\\u003c")).replace(
            "FUNCTIONS", functions
        )
        return (
            f'<div class="course-flow course-colours">{STYLE}{_FIELDS_STYLE}{self._player()._repr_html_()}'
            f'<div class="fields" hidden>{self._buttons()}{self._fields()}</div><script>{script}</script></div>'
        )

    def _buttons(self) -> str:
        names = [html.escape(name) for name in self.choices]
        return "".join(f'<button type="button" data-choice="{name}">{name}</button>' for name in names)

    def _fields(self) -> str:
        box, values = self.boxes[self.edit], self.values[self.edit]
        rows = self.names.get(box.rows, range(len(values)))
        columns = self.names.get(box.columns, range(values.shape[1]))
        head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in columns)
        body = ""
        for i, row in enumerate(rows):
            cells = "".join(
                f'<td><input type="number" step="0.5" value="{values[i, j]:g}" data-entry="{i},{j}" '
                f'aria-label="{html.escape(f"{self.edit}, row {i}, {column}")}"></td>'
                for j, column in enumerate(columns)
            )
            body += f'<tr><th scope="row" data-name="{box.rows},{i}">{html.escape(str(row))}</th>{cells}</tr>'
        return f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        lines = [f"{self.alt} (step)", *(f"{step.title}: {step.text}" for step in self.steps)]
        for name, values in self.values.items():
            box = self.boxes[name]
            rows = [" ".join(_number(value, box.digits) for value in row) for row in values]
            lines.append(f"{box.label or name} {values.shape}: {'; '.join(rows)}")
        return "\n".join(lines)


def flow(
    boxes: Sequence[Box],
    steps: Sequence[Step],
    alt: str,
    names: Mapping[str, Sequence[str]] | None = None,
    edit: str = "",
    choices: Mapping[str, tuple[int, Sequence[float]]] | None = None,
) -> Flow:
    """The flow of numbers through a component, to be the last line of a cell.

    boxes: each after those that its formula uses. alt: what there is to see. names: of rows and columns, by axis.
    edit: the box whose entries the reader may change; all that hangs on it is then computed again. choices: buttons,
    from a name to a row of that box and its new values; the row takes the name. Raises ValueError for a formula,
    a box or names that do not fit, and says which.
    """
    return Flow(boxes, steps, alt, names or {}, edit, choices or {})


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
    """Parts of an SVG, and how far they reach."""

    parts: list[str] = field(default_factory=list)
    width: float = 0

    def text(self, x: float, y: float, content: str, more: str = "", size: int = 14) -> None:
        self.parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="currentColor" {more}>{content}</text>'
        )


def _picture(flow: Flow, step: Step) -> str:
    """The step as SVG: its lines one below the other, the boxes of a line side by side, their middles level."""
    drawing, y = _Drawing(), 4.0
    for line in step.lines:
        views = [item if isinstance(item, View) else View(item) for item in line]
        boxes = [view.name for view in views if view.name in flow.values]
        if not boxes:
            raise ValueError(f"a line of {step.title!r} has no box: {line}")
        head = LINE - 6 if any(flow.boxes[name].columns for name in boxes) else 0
        tall = max(len(flow.values[name]) for name in boxes) * TALL
        x, middle = 4.0, y + head + tall / 2
        for i, view in enumerate(views):
            if view.name not in flow.values:
                width = 8 * len(view.name)
                drawing.text(
                    x + GAP + width / 2, middle + 5, html.escape(view.name), 'text-anchor="middle"', 15
                )
                x += width + 2 * GAP
                continue
            x = _grid(drawing, flow, view, x, middle, named=i == 0)
        drawing.width = max(drawing.width, x + 4)
        y = middle + tall / 2 + LINE + 10
    return svg(round(max(drawing.width, 400)), round(y), drawing.parts)


def _grid(drawing: _Drawing, flow: Flow, view: View, x: float, middle: float, named: bool) -> float:
    """Draw a box from `x` on, around the height `middle`; returns where it ends."""
    box, values = flow.boxes[view.name], flow.values[view.name]
    n, m = values.shape
    top = middle - n * TALL / 2
    if named and box.rows:
        x += max(50, 8 * max(map(len, flow.names[box.rows])) + 8)
        for i, name in enumerate(flow.names[box.rows]):
            place = f'text-anchor="end" data-name="{box.rows},{i}"'
            drawing.text(x - 6, top + (i + 0.5) * TALL + 5, html.escape(name), place)
    if box.columns:
        for j, name in enumerate(flow.names[box.columns]):
            place = f'text-anchor="middle" data-name="{box.columns},{j}"'
            drawing.text(x + (j + 0.5) * CELL, top - 5, html.escape(name), place, 11)
    ink, largest = colour(box.role), float(np.abs(values).max()) or 1.0
    for i in range(n):
        shown = view.only is None or i in view.only
        for j in range(m):
            here = f'x="{x + j * CELL:.0f}" y="{top + i * TALL:.0f}" width="{CELL}" height="{TALL}"'
            strength = _strength(values[i, j], largest) if shown else 0
            entry = f'data-box="{box.name}" data-entry="{i},{j}"' if shown else ""
            drawing.parts.append(
                f'<rect {here} fill="{ink}" fill-opacity="{strength:.2f}" stroke="{ink}" stroke-opacity="0.5" {entry}/>'
            )
            if shown:
                number = _number(values[i, j], box.digits)
                place = f'text-anchor="middle" {entry}'
                drawing.text(x + (j + 0.5) * CELL, top + (i + 0.5) * TALL + 5, number, place)
        if i in view.lit:
            drawing.parts.append(
                f'<rect x="{x:.0f}" y="{top + i * TALL:.0f}" width="{m * CELL}" height="{TALL}" fill="none" '
                f'stroke="{ink}" stroke-width="3"/>'
            )
    label = f"{_indexed(box.label or box.name)} ({n}, {m})"
    drawing.text(x + m * CELL / 2, top + n * TALL + 17, label, 'text-anchor="middle" font-weight="bold"')
    return x + m * CELL


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
        r"_(\w+)", r'<tspan dy="3" font-size="10">\1</tspan><tspan dy="-3"> </tspan>', html.escape(label)
    )


# --- In the browser ---------------------------------------------------------------------------------------

_FIELDS_STYLE = """<style>
.course-flow .fields {max-width: 36rem; margin: 0.3rem auto; font-size: 0.9rem}
.course-flow .fields[hidden] {display: none}
.course-flow .fields :is(button, input) {
  font: inherit; color: inherit; background: none; border: 1px solid rgba(128, 128, 128, 0.8); border-radius: 4px}
.course-flow .fields button {padding: 0.2rem 0.8rem; margin-right: 0.5rem; cursor: pointer}
.course-flow .fields button[aria-pressed="true"] {font-weight: bold; outline: 2px solid currentColor}
.course-flow .fields input {width: 3.6rem}
@media (max-width: 480px) {.course-flow .fields input {width: 2.6rem}}
.course-flow .fields table {border-collapse: collapse; margin: 0.4rem 0; width: auto}
.course-flow .fields :is(th, td) {
  padding: 0.1rem 0.3rem; border: 0; background: none; font-weight: normal; text-align: center}
@media print {.course-flow .fields {display: none}}
</style>"""

# The player draws each frame as stored; whenever it has, the numbers of `values` are written into it.
_SCRIPT = """
(function () {
  var root = document.currentScript.parentElement, state = STATE, functions = {FUNCTIONS};
  var stage = root.querySelector(".stage"), fields = root.querySelector(".fields"), values = {};
  function entrywise(a, b, f) {
    var n = Math.max(a.length, b.length), m = Math.max(a[0].length, b[0].length);
    return Array.from({length: n}, (_, i) => Array.from({length: m}, (_, j) =>
      f(a[i % a.length][j % a[0].length], b[i % b.length][j % b[0].length])));
  }
  var signs = {
    "@": (a, b) => a.map(row => b[0].map((_, j) => row.reduce((sum, v, i) => sum + v * b[i][j], 0))),
    "T": a => a[0].map((_, j) => a.map(row => row[j])),
    "+": (a, b) => entrywise(a, b, (x, y) => x + y), "-": (a, b) => entrywise(a, b, (x, y) => x - y),
    "*": (a, b) => entrywise(a, b, (x, y) => x * y), "/": (a, b) => entrywise(a, b, (x, y) => x / y)
  };
  function value(tree) {
    if (typeof tree === "string") return values[tree];
    if (typeof tree === "number") return [[tree]];
    return (signs[tree[0]] || functions[tree[0]])(...tree.slice(1).map(value));
  }
  function write() {
    stage.querySelectorAll("[data-box]").forEach(function (part) {
      var box = values[part.dataset.box], at = part.dataset.entry.split(","), v = box[+at[0]][+at[1]];
      if (part.tagName === "text") {
        part.textContent = String(Number(v.toFixed(state.digits[part.dataset.box])) + 0);
      } else {
        var largest = Math.max(...box.flat().map(Math.abs)) || 1;
        part.setAttribute("fill-opacity", (0.3 * Math.abs(v) / largest).toFixed(2));
      }
    });
    root.querySelectorAll("[data-name]").forEach(function (part) {
      var at = part.dataset.name.split(",");
      if (state.names[at[0]]) part.textContent = state.names[at[0]][+at[1]];
    });
  }
  function compute() {
    values = Object.assign({}, state.inputs);
    for (var name in state.formulas) values[name] = value(state.formulas[name]);
    var rows = state.inputs[state.edit];
    fields.querySelectorAll("[data-choice]").forEach(function (button) {
      var choice = state.choices[button.dataset.choice];
      var now = choice[1].every((v, j) => v === rows[choice[0]][j]);
      button.setAttribute("aria-pressed", String(now));
    });
    write();
  }
  fields.addEventListener("click", function (event) {
    var choice = state.choices[event.target.dataset.choice];
    if (!choice) return;
    state.inputs[state.edit][choice[0]] = choice[1].slice();
    if (state.names[state.rows]) state.names[state.rows][choice[0]] = event.target.dataset.choice;
    fields.querySelectorAll("input").forEach(function (input) {
      var at = input.dataset.entry.split(",");
      if (+at[0] === choice[0]) input.value = choice[1][+at[1]];
    });
    compute();
  });
  fields.addEventListener("input", function (event) {
    var at = (event.target.dataset.entry || "").split(","), v = event.target.valueAsNumber;
    if (at.length < 2 || !isFinite(v)) return;
    state.inputs[state.edit][+at[0]][+at[1]] = v;
    compute();
  });
  new MutationObserver(write).observe(stage, {childList: true});
  fields.hidden = false;
  compute();
})();
"""
