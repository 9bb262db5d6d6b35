"""A small computational graph as a picture that is played forward and backward."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minigrad.course.widgets import BLUE, RED, Frame, svg

__all__ = ["Step", "play"]


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
