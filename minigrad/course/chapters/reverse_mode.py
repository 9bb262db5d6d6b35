"""What chapter 2 shows: one call of every operation, and a small graph as a picture that is played both ways."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minigrad import Tensor, ops
from minigrad.course.widgets import BLUE, RED, Frame, svg

__all__ = ["Step", "every_operation", "play"]

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
        "astype": (lambda x: ops.astype(x, np.float64) * 2.0, (normal(3, 5),)),
        "concat": (lambda *x: ops.concat(x, axis=1), (normal(3, 2), normal(3, 5))),
        "cross_entropy": (lambda x: ops.cross_entropy(x, labels), (normal(3, 5),)),
        "div": (ops.div, (normal(3, 5), positive(5))),
        "dropout": (lambda x: ops.dropout(x, keep, 0.2), (normal(3, 5),)),
        "embedding": (lambda table: ops.embedding(ids, table), (normal(7, 4),)),
        "erf": (ops.erf, (normal(3, 5),)),
        "exp": (ops.exp, (normal(3, 5),)),
        "expand": (lambda x: ops.expand(x, 4, 3, 5), (normal(3, 1),)),
        "flip": (lambda x: ops.flip(x, 1), (normal(3, 5),)),
        "gelu": (ops.gelu, (normal(3, 5),)),
        "getitem": (lambda x: x[np.array([0, 2, 2]), 1:4], (normal(3, 5),)),
        "layer_norm": (ops.layer_norm, (normal(3, 5), normal(5), normal(5))),
        "linear": (ops.linear, (normal(2, 3, 5), normal(5, 4), normal(4))),
        "log": (ops.log, (positive(3, 5),)),
        "log_softmax": (ops.log_softmax, (normal(3, 5),)),
        "logsumexp": (lambda x: ops.logsumexp(x, axis=1), (normal(3, 5),)),
        "masked_fill": (lambda x: ops.masked_fill(x, mask, -9.0), (normal(3, 5),)),
        "matmul": (ops.matmul, (normal(2, 1, 3, 5), normal(4, 5, 2))),
        "max": (lambda x: ops.max(x, axis=1), (apart(3, 5),)),
        "maximum": (lambda x: ops.maximum(x, 0.1), (apart(3, 5),)),
        "mean": (lambda x: ops.mean(x, axis=(0, 2)), (normal(3, 4, 5),)),
        "mul": (ops.mul, (normal(3, 1, 5), normal(4, 1))),
        "neg": (ops.neg, (normal(3, 5),)),
        "pad": (lambda x: ops.pad(x, [(1, 0), (2, 3)]), (normal(3, 5),)),
        "permute": (lambda x: ops.permute(x, 2, 0, 1), (normal(3, 4, 5),)),
        "pow": (ops.pow, (positive(3, 5), normal(5))),
        "relu": (ops.relu, (apart(3, 5),)),
        "reshape": (lambda x: ops.reshape(x, 5, 3), (normal(3, 5),)),
        "scaled_dot_product_attention": (
            ops.scaled_dot_product_attention,
            (normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)),
        ),
        "sigmoid": (ops.sigmoid, (normal(3, 5),)),
        "softmax": (ops.softmax, (normal(3, 5),)),
        "split": (lambda x: ops.concat([2.0 * part for part in ops.split(x, 2)]), (normal(5, 3),)),
        "sqrt": (ops.sqrt, (positive(3, 5),)),
        "squeeze": (lambda x: ops.squeeze(x, 1), (normal(3, 1, 5),)),
        "stack": (lambda *x: ops.stack(x, axis=1), (normal(3, 5), normal(3, 5))),
        "sub": (ops.sub, (normal(3, 1, 5), normal(4, 1))),
        "sum": (lambda x: ops.sum(x, axis=0), (normal(3, 5),)),
        "tanh": (ops.tanh, (normal(3, 5),)),
        "transpose": (lambda x: ops.transpose(x, 0, 1), (normal(3, 5),)),
        "unsqueeze": (lambda x: ops.unsqueeze(x, 1), (normal(3, 5),)),
        "var": (lambda x: ops.var(x, axis=1), (normal(3, 5),)),
        "where": (lambda a, b: ops.where(mask, a, b), (normal(3, 5), normal(5))),
    }


# --- A graph as a picture --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A node of the drawing: its name, what it computes from which nodes, and its place (column, row)."""

    name: str
    formula: str
    inputs: Sequence[str]
    place: tuple[float, float]


def play(
    steps: Sequence[Step],
    values: Mapping[str, float],
    gradients: Sequence[tuple[str, Mapping[str, float], str]],
) -> list[Frame]:
    """Frames for `widgets.player`: values appear in the order of `steps`, then gradients from the last node back.

    values: of each node. gradients: for each backward step the node that is visited, the gradients known after
    it, and a sentence on it.
    """
    frames = []
    for i, step in enumerate(steps):
        known = {earlier.name: values[earlier.name] for earlier in steps[: i + 1]}
        text = (
            f"{step.name} = {step.formula} = {values[step.name]:.4g}"
            if step.inputs
            else f"given: {values[step.name]:.4g}"
        )
        frames.append(Frame(f"Forward, {step.name}", _drawing(steps, known, {}, step.name), text))
    for visited, known_gradients, text in gradients:
        frames.append(Frame(f"Backward, {visited}", _drawing(steps, values, known_gradients, visited), text))
    return frames


def _drawing(
    steps: Sequence[Step], values: Mapping[str, float], gradients: Mapping[str, float], active: str
) -> str:
    wide, tall, box_width, box_height = 116, 88, 104, 62  # narrow: it must be read on a phone
    places = {step.name: (step.place[0] * wide + 6, step.place[1] * tall + 6) for step in steps}
    parts = []
    for step in steps:
        x, y = places[step.name]
        for name in step.inputs:
            from_x, from_y = places[name]
            used = step.name == active
            parts.append(
                f'<line x1="{from_x + box_width / 2:g}" y1="{from_y + box_height:g}" x2="{x + box_width / 2:g}" y2="{y:g}" '
                f'stroke="{(RED if gradients else BLUE) if used else "currentColor"}" stroke-opacity="{1 if used else 0.4}" '
                f'stroke-width="{2.5 if used else 1.2}"/>'
            )
    for step in steps:
        x, y = places[step.name]
        stroke = (RED if gradients else BLUE) if step.name == active else "currentColor"
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{box_width}" height="{box_height}" rx="6" fill="none" stroke="{stroke}" '
            f'stroke-width="{2.5 if step.name == active else 1}"/>'
        )
        label = step.name if not step.inputs else f"{step.name} = {step.formula}"
        parts.append(_text(x + box_width / 2, y + 17, label, "currentColor", 13))
        if step.name in values:
            parts.append(_text(x + box_width / 2, y + 34, f"{values[step.name]:.4g}", BLUE, 13))
        if step.name in gradients:
            parts.append(_text(x + box_width / 2, y + 51, f"grad {gradients[step.name]:.4g}", RED, 13))
    width = max(x for x, _ in places.values()) + box_width + 6
    height = max(y for _, y in places.values()) + box_height + 6
    return svg(round(width), round(height), parts)


def _text(x: float, y: float, text: str, colour: str, size: int) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{colour}" font-size="{size}">{html.escape(text)}</text>'
