"""What chapter `reverse_mode` shows: a graph played backwards, a network's map of the plane, and what the library's graph holds.

And one call of every operation, which the page puts to the check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bert_course.common.graph import nodes_before
from bert_course.common.palette import colour
from bert_course.common.pencil import box, words
from bert_course.common.widgets import Frame, svg
from minigrad import Tensor, backend, no_grad, ops
from minigrad.bert import BertForPreTraining
from minigrad.bert.config import PRESETS

if TYPE_CHECKING:
    from bert_course.common.figures import Picture

# --- The graph of (tanh(w x + b) - t)² as a picture ------------------------------------------------------

# name: how it is computed, its column and its row
LAYOUT = {
    "x": ("given", 0, 0.0),
    "w": ("given", 0, 1.35),
    "p": ("w x", 1, 0.65),
    "b": ("given", 1, 2.0),
    "s": ("p + b", 2, 1.15),
    "y": ("tanh s", 3, 0.65),
    "t": ("given", 3, 2.0),
    "e": ("y - t", 4, 1.15),
    "loss": ("e e", 5, 0.65),
}
EDGES = [
    ("w", "p"),
    ("x", "p"),
    ("p", "s"),
    ("b", "s"),
    ("s", "y"),
    ("y", "e"),
    ("t", "e"),
    ("e", "loss"),
    ("e", "loss"),
]
WIDE, TALL, BOX_WIDTH, BOX_HEIGHT, TOP = 104, 86, 58, 80, 20  # of a column, a row, a box; above the first row


class Value(Protocol):
    """A value of the page's engine."""

    value: np.ndarray
    grad: np.ndarray
    inputs: Sequence[Value]
    rule: Callable[[Any], Sequence[Any]] | None
    number: int


def forward_picture(values: Mapping[str, float]) -> Picture:
    """The example's graph with the value that each step computed, to be the last line of a cell.

    values: by the names of LAYOUT.
    """
    # here: without matplotlib, `figures` says what is missing
    from bert_course.common.figures import Picture

    alt = (
        "Boxes from left to right, joined by arrows: w and x make p, p and b make s, s makes y, y and t make e, and e, "
        "used twice, makes the loss. Each box holds its value: "
        + ", ".join(f"{k} {_short(v)}" for k, v in values.items())
    )
    return Picture(_drawing(values, [(*edge, None) for edge in EDGES], {}, ""), f"{alt}.", 600)


def play_backward(names: Mapping[str, Value]) -> list[Frame]:
    """Frames for `widgets.player`: the forward values with all local slopes, then one visit of `backward` after the other.

    names: the values of the page's engine by the names of LAYOUT, after `backward`. Which inputs a value has, and the
    slopes, are read from what the engine recorded. Raises ValueError for an input that has no name.
    """
    called = {id(value): name for name, value in names.items()}
    values = {name: float(value.value) for name, value in names.items()}
    edges: list[tuple[str, str, float | None]] = []
    for name, value in names.items():
        slopes = value.rule(np.ones(())) if value.rule else ()
        for source, slope in zip(value.inputs, slopes, strict=True):
            if id(source) not in called:
                raise ValueError(f"an input of {name} has no name: give all of {', '.join(LAYOUT)}")
            edges.append((called[id(source)], name, float(slope)))
    text = "Each box holds its value, and each arrow its local slope: how fast the box at its tip moves with the box at its end."
    frames = [Frame("After the forward pass", _drawing(values, edges, {}, ""), text)]
    newest_first = sorted(names, key=lambda name: names[name].number, reverse=True)
    gradients: dict[str, float] = {newest_first[0]: 1.0}
    for visited in newest_first:
        mine = [(source, slope) for source, target, slope in edges if target == visited and slope is not None]
        if not mine:
            continue
        dy, sent = gradients[visited], []
        for inner, slope in mine:
            gradients[inner] = gradients.get(inner, 0.0) + dy * slope
            sent.append(f"{inner} gets {_short(dy)} times {_short(slope)} = {_short(dy * slope)}")
        text = f"{_short(dy)} is complete. {'; '.join(sent)}."
        if len(mine) > len({source for source, _ in mine}):
            text += f" The two are added: {_short(gradients[mine[0][0]])}."
        frames.append(Frame(f"Visit {visited}", _drawing(values, edges, dict(gradients), visited), text))
    return frames


def _short(number: float) -> str:
    """At most two digits after the point."""
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # + 0.0: no -0


def _drawing(
    values: Mapping[str, float],
    edges: Sequence[tuple[str, str, float | None]],
    gradients: Mapping[str, float],
    visited: str,
) -> str:
    """The graph as SVG. visited: the value whose rule has just run; its arrows point backwards."""
    places = {name: (column * WIDE + 8, row * TALL + TOP) for name, (_, column, row) in LAYOUT.items()}
    parts = []
    for number, (source, target, slope) in enumerate(edges):
        uses = [i for i, edge in enumerate(edges) if edge[:2] == (source, target)]
        bend = 0.0 if len(uses) == 1 else (-30 if number == uses[0] else 30)
        x0, y0 = places[source][0] + BOX_WIDTH, places[source][1] + BOX_HEIGHT / 2 + bend / 3
        x1, y1 = places[target][0], places[target][1] + BOX_HEIGHT / 2 + bend / 3
        parts.append(_arrow((x0, y0), (x1, y1), bend, target == visited, slope))
    for name, value in values.items():
        formula, _, _ = LAYOUT[name]
        x, y = places[name]
        active = name == visited
        tone, line = ("gradient", 2.5) if active else ("", 1)
        parts.append(box(x, y, BOX_WIDTH, BOX_HEIGHT, tone, line=line))
        middle = x + BOX_WIDTH / 2
        parts.append(words(middle, y + 17, name, 16, font_weight="bold"))
        parts.append(words(middle, y + 33, formula, 13, fill_opacity=0.8))
        parts.append(words(middle, y + 52, _short(value), 17, "first"))
        if name in gradients:
            parts.append(words(middle, y + 72, _short(gradients[name]), 17, "gradient", font_weight="bold"))
    width, height = 5 * WIDE + BOX_WIDTH + 16, round(2 * TALL + TOP + BOX_HEIGHT + 30)
    legend = [("value", "first")]
    if edges[0][2] is not None:
        legend += [("local slope, on the arrow", ""), ("gradient", "gradient")]
    left = 8
    for label, tone in legend:
        parts.append(words(left, height - 6, label, tone=tone, anchor="start"))
        left += 8 * len(label) + 24
    return _svg(width, height, parts)


def _arrow(
    start: tuple[float, float], end: tuple[float, float], bend: float, back: bool, slope: float | None
) -> str:
    """An arrow from start to end, bent by `bend` in the middle; back: whether a gradient goes along it, to its start."""
    (x0, y0), (x1, y1) = start, end
    stroke, width, opacity = (colour("gradient"), 2.5, 1) if back else ("currentColor", 1.2, 0.55)
    middle = ((x0 + x1) / 2, (y0 + y1) / 2 + bend)
    tip = start if back else end
    angle = math.atan2(tip[1] - middle[1], tip[0] - middle[0])
    wings = [
        (tip[0] - 9 * math.cos(angle + turn), tip[1] - 9 * math.sin(angle + turn)) for turn in (0.42, -0.42)
    ]
    head = " ".join(f"{x:.0f},{y:.0f}" for x, y in (tip, *wings))
    parts = [
        f'<path d="M{x0:.0f} {y0:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {x1:.0f} {y1:.0f}" fill="none" '
        f'stroke="{stroke}" stroke-width="{width}" stroke-opacity="{opacity}"/>',
        f'<polygon points="{head}" fill="{stroke}" fill-opacity="{opacity}"/>',
    ]
    if slope is not None:
        # above the arrow; of two that bend apart, the lower one has it below
        lift = bend / 2 + 15 if bend > 0 else bend / 2 - 5 - abs(y1 - y0) / 4
        x, tone = middle[0] + (6 if bend > 0 else 0), "gradient" if back else ""
        parts.append(words(x, (y0 + y1) / 2 + lift, _short(slope), tone=tone))
    return "".join(parts)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    """A picture in the course's colours, wherever it is put."""
    return svg(width, height, ['<g class="course-colours">', *parts, "</g>"])


# --- The spirals, and what a network makes of them -------------------------------------------------------


def spirals(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Points (3n, 2) on three spiral arms, and the number of each one's arm, (3n,)."""
    rng = np.random.default_rng(seed)
    radius = np.tile(np.linspace(0.1, 1, n), 3)
    arm = np.repeat([0, 1, 2], n)
    angle = 2 * np.pi * arm / 3 + 4 * radius + 0.15 * rng.standard_normal(3 * n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), arm


SIDE, CELLS, REACH = 300, 75, 1.25  # of the map in units of the picture; cells along it; from -REACH to REACH
MARKS = {
    "first": "M{} {}m-3 0h6m-3-3v6",
    "second": "M{} {}l-3-3m3 3l3 3m0-6l-6 6",
    "third": "M{} {}m0-3l3 5h-6z",
}


def regions(
    guess: Callable[[np.ndarray], np.ndarray], points: np.ndarray, arms: np.ndarray, step: int, text: str
) -> Frame:
    """A frame for `widgets.player`: the plane in the colours of the arms that a network guesses, and points of known arms.

    guess: from points (n, 2) to arm numbers (n,), each 0, 1 or 2. points (m, 2), arms (m,): drawn as +, × and △.
    step: of training, for the title. text: the sentence below.
    """
    middles = (np.arange(CELLS) + 0.5) / CELLS * 2 * REACH - REACH
    across, up = np.meshgrid(middles, -middles)
    guessed = np.asarray(guess(np.stack([across.ravel(), up.ravel()], axis=1))).reshape(CELLS, CELLS)
    cell, parts = SIDE // CELLS, []
    for arm, shade in enumerate(MARKS):
        strips = []  # of one row each, from the first cell of a run to its last
        for row in range(CELLS):
            ends = np.flatnonzero(np.diff(np.r_[0, guessed[row] == arm, 0]))
            strips += [
                f"M{a * cell} {row * cell}h{(b - a) * cell}v{cell}H{a * cell}z"
                for a, b in ends.reshape(-1, 2)
            ]
        parts.append(f'<path d="{"".join(strips)}" fill="{colour(shade)}" fill-opacity="0.28"/>')
    places = np.rint((points * (1, -1) / REACH + 1) * SIDE / 2).astype(int)
    for arm, (shade, mark) in enumerate(MARKS.items()):
        marks = "".join(mark.format(x, y) for x, y in places[arms == arm])
        parts.append(f'<path d="{marks}" fill="none" stroke="{colour(shade)}" stroke-width="1.4"/>')
        sample = mark.format(SIDE + 18, 20 + 26 * arm)
        parts.append(f'<path d="{sample}" stroke="{colour(shade)}" fill="none" stroke-width="2"/>')
        parts.append(words(SIDE + 30, 25 + 26 * arm, f"arm {arm}", tone=shade, anchor="start"))
    return Frame(f"Step {step}", _svg(SIDE + 84, SIDE, parts), text)


# --- What the library's graph holds ----------------------------------------------------------------------


def saved_by(output: Tensor) -> list[tuple[str, str, np.ndarray]]:
    """The arrays that the rules behind `output` hold on to: operation, variable, array; each array once.

    A Python function keeps the variables of the function around it that it mentions, in its closure.
    """
    found: dict[int, tuple[str, str, np.ndarray]] = {}
    for node in nodes_before(output):
        names = node.backward.__code__.co_freevars  # type: ignore[union-attr]
        for name, cell in zip(names, node.backward.__closure__ or (), strict=True):  # type: ignore[union-attr]
            if backend.is_array(cell.cell_contents):
                found.setdefault(id(cell.cell_contents), (node.op, name, cell.cell_contents))
    return list(found.values())


def nodes_of_bert(layers: int) -> int:
    """How many nodes the losses of a BERT with dropout record; they do not depend on its width, so it is a narrow one."""
    config = PRESETS["reduced"].replace(
        num_hidden_layers=layers, hidden_size=8, intermediate_size=16, vocab_size=64, hidden_dropout_prob=0.1
    )
    ids, labels = np.arange(12).reshape(2, 6), np.full((2, 6), -100)
    labels[:, 2] = 7
    output = BertForPreTraining(config)(ids, labels=labels, next_sentence_label=np.array([0, 1]))
    return len(nodes_before(output.loss))


# --- Slopes by trying ------------------------------------------------------------------------------------


def jacobian(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The Jacobian of `function` at x by central differences: (entries of the output, entries of x), in reading order."""
    columns = []
    for index in np.ndindex(x.shape):
        move = np.zeros_like(x)
        move[index] = step
        columns.append((function(x + move) - function(x - move)).ravel() / (2 * step))
    return np.stack(columns, axis=1)


def by_trying(
    loss: Callable[[], Tensor], parameter: Tensor, index: tuple[int, ...], step: float = 1e-5
) -> float:
    """The slope of a loss for one entry of a parameter, by two forward passes; the entry is put back."""
    before, losses = parameter.data[index].copy(), []
    for moved in (before + step, before - step):
        parameter.data[index] = moved
        with no_grad():
            losses.append(loss().item())
    parameter.data[index] = before
    return (losses[0] - losses[1]) / (2 * step)


# --- One call of every operation -------------------------------------------------------------------------

Call = tuple[Callable[..., Tensor], tuple[Tensor, ...]]


def every_operation(rng: np.random.Generator) -> dict[str, Call]:
    """For each name in `minigrad.ops`, a function of tensors and float64 tensors to call it with.

    Entries are away from kinks and ties: where an operation has one, they are apart by more than a step.
    """

    def normal(*shape: int) -> Tensor:
        return Tensor(rng.standard_normal(shape), requires_grad=True, dtype=np.float64)

    def positive(*shape: int) -> Tensor:
        return Tensor(rng.uniform(0.5, 2, shape), requires_grad=True, dtype=np.float64)

    def apart(*shape: int) -> Tensor:
        size = int(np.prod(shape))
        return Tensor(
            (rng.permutation(size).reshape(shape) - size / 2 + 0.3) / 4, requires_grad=True, dtype=np.float64
        )

    mask, keep = rng.random((3, 5)) < 0.4, rng.random((3, 5)) < 0.8
    ids, labels = rng.integers(0, 7, (2, 3)), np.array([2, -100, 0])
    return {
        "abs": (ops.abs, (apart(3, 5),)),
        "add": (ops.add, (normal(3, 1, 5), normal(4, 1))),
        "argmax": (lambda x: x[ops.argmax(x, axis=0), np.arange(5)], (apart(3, 5),)),
        "argmin": (lambda x: x[ops.argmin(x, axis=0), np.arange(5)], (apart(3, 5),)),
        "astype": (lambda x: ops.astype(x, np.float64) * 2.0, (normal(3, 5),)),
        "clip": (lambda x: ops.clip(x, -0.9, 0.4), (apart(3, 5),)),
        "concat": (lambda *x: ops.concat(x, axis=1), (normal(3, 2), normal(3, 5))),
        "concatenate": (lambda *x: ops.concatenate(x, axis=1), (normal(3, 2), normal(3, 5))),
        "cos": (ops.cos, (normal(3, 5),)),
        "cross_entropy": (lambda x: ops.cross_entropy(x, labels), (normal(3, 5),)),
        "cumsum": (lambda x: ops.cumsum(x, axis=1), (normal(3, 5),)),
        "div": (ops.div, (normal(3, 5), positive(5))),
        "dropout": (lambda x: ops.dropout(x, keep, 0.2), (normal(3, 5),)),
        "einsum": (lambda a, b: ops.einsum("bid,bjd->bij", a, b), (normal(2, 3, 5), normal(2, 4, 5))),
        "embedding": (lambda table: ops.embedding(ids, table), (normal(7, 4),)),
        "erf": (ops.erf, (normal(3, 5),)),
        "exp": (ops.exp, (normal(3, 5),)),
        "expand": (lambda x: ops.expand(x, 4, 3, 5), (normal(3, 1),)),
        "flip": (lambda x: ops.flip(x, 1), (normal(3, 5),)),
        "gelu": (ops.gelu, (normal(3, 5),)),
        "getitem": (lambda x: x[np.array([0, 2, 2]), 1:4], (normal(3, 5),)),
        "gru": (ops.gru, (normal(2, 3, 6), normal(3, 2), normal(2, 6), normal(6))),
        "gru_step": (ops.gru_step, (normal(3, 6), normal(3, 2), normal(2, 6), normal(6))),
        "layer_norm": (ops.layer_norm, (normal(3, 5), normal(5), normal(5))),
        "linear": (ops.linear, (normal(2, 3, 5), normal(5, 4), normal(4))),
        "log": (ops.log, (positive(3, 5),)),
        "log_softmax": (ops.log_softmax, (normal(3, 5),)),
        "logsumexp": (lambda x: ops.logsumexp(x, axis=1), (normal(3, 5),)),
        "lstm": (
            lambda *x: ops.concat(ops.lstm(*x)),
            (normal(2, 3, 8), normal(3, 2), normal(3, 2), normal(2, 8), normal(8)),
        ),
        "lstm_step": (
            lambda *x: ops.concat(ops.lstm_step(*x)),
            (normal(3, 8), normal(3, 2), normal(3, 2), normal(2, 8), normal(8)),
        ),
        "masked_fill": (lambda x: ops.masked_fill(x, mask, -9.0), (normal(3, 5),)),
        "matmul": (ops.matmul, (normal(2, 1, 3, 5), normal(4, 5, 2))),
        "max": (lambda x: ops.max(x, axis=1), (apart(3, 5),)),
        "maximum": (lambda x: ops.maximum(x, 0.1), (apart(3, 5),)),
        "mean": (lambda x: ops.mean(x, axis=(0, 2)), (normal(3, 4, 5),)),
        "min": (lambda x: ops.min(x, axis=1), (apart(3, 5),)),
        "mul": (ops.mul, (normal(3, 1, 5), normal(4, 1))),
        "neg": (ops.neg, (normal(3, 5),)),
        "pad": (lambda x: ops.pad(x, [(1, 0), (2, 3)]), (normal(3, 5),)),
        "permute": (lambda x: ops.permute(x, 2, 0, 1), (normal(3, 4, 5),)),
        "pow": (ops.pow, (positive(3, 5), normal(5))),
        "prod": (lambda x: ops.prod(x, axis=1), (normal(3, 5),)),
        "relu": (ops.relu, (apart(3, 5),)),
        "reshape": (lambda x: ops.reshape(x, 5, 3), (normal(3, 5),)),
        "rnn": (ops.rnn, (normal(2, 3, 4), normal(3, 4), normal(4, 4), normal(4))),
        "rnn_step": (ops.rnn_step, (normal(3, 4), normal(3, 4), normal(4, 4), normal(4))),
        "scaled_dot_product_attention": (
            ops.scaled_dot_product_attention,
            (normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)),
        ),
        "sigmoid": (ops.sigmoid, (normal(3, 5),)),
        "sin": (ops.sin, (normal(3, 5),)),
        "softmax": (ops.softmax, (normal(3, 5),)),
        "split": (lambda x: ops.concat([2.0 * part for part in ops.split(x, 2)]), (normal(5, 3),)),
        "sqrt": (ops.sqrt, (positive(3, 5),)),
        "squeeze": (lambda x: ops.squeeze(x, 1), (normal(3, 1, 5),)),
        "stack": (lambda *x: ops.stack(x, axis=1), (normal(3, 5), normal(3, 5))),
        "std": (lambda x: ops.std(x, axis=1), (normal(3, 5),)),
        "sub": (ops.sub, (normal(3, 1, 5), normal(4, 1))),
        "sum": (lambda x: ops.sum(x, axis=0), (normal(3, 5),)),
        "swapaxes": (lambda x: ops.swapaxes(x, 0, 1), (normal(3, 5),)),
        "tanh": (ops.tanh, (normal(3, 5),)),
        "transpose": (lambda x: ops.transpose(x, 0, 1), (normal(3, 5),)),
        "tril": (lambda x: ops.tril(x, 1), (normal(3, 5),)),
        "triu": (lambda x: ops.triu(x, 1), (normal(3, 5),)),
        "unsqueeze": (lambda x: ops.unsqueeze(x, 1), (normal(3, 5),)),
        "var": (lambda x: ops.var(x, axis=1), (normal(3, 5),)),
        "where": (lambda a, b: ops.where(mask, a, b), (normal(3, 5), normal(5))),
    }
