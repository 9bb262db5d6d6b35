"""Paths of optimisers over the contours of a valley, losses of trainings, and PyTorch's steps done again."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.palette import colour
from bert_course.common.widgets import svg
from bert_course.stored import stored
from minigrad import Tensor, nn, ops, optim

LEVELS = (0.02, 0.1, 0.3, 0.7, 1.3, 2.1)  # of the loss


def valley(
    paths: Mapping[str, np.ndarray], curvature: tuple[float, float], reach: float, labels: tuple[str, str]
) -> str:
    """Paths over the contours of ½ (a x² + b y²) as SVG, both axes on one scale, x from -reach to reach.

    paths: at most two, each (n, 2), whose start is marked with a ring and whose end with a dot. curvature: a and b.
    labels: of the horizontal and the vertical axis.
    """
    width, height, foot = 480, 220, 66
    scale, middle = width / (2 * reach), np.array([width / 2, height / 2])
    parts = []
    for level in LEVELS:
        rx, ry = (scale * math.sqrt(2 * level / c) for c in curvature)
        parts.append(
            f'<ellipse cx="{middle[0]:g}" cy="{middle[1]:g}" rx="{rx:.1f}" ry="{ry:.1f}" fill="none" '
            'stroke="currentColor" stroke-opacity="0.3"/>'
        )
    legend = []
    for number, (name, path) in enumerate(paths.items()):
        line_colour, dashes = colour(("first", "second")[number]), ' stroke-dasharray="7 4"' if number else ""
        # A path that runs away leaves the picture.
        points = np.clip(path * (scale, -scale) + middle, -9999, 9999)
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke-width="2" style="stroke: {line_colour}"{dashes}/>'
        )
        for (x, y), fill in ((points[0], "none"), (points[-1], line_colour)):
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke-width="2" '
                f'style="fill: {fill}; stroke: {line_colour}"/>'
            )
        x, y = 8 + 240 * number, height + 38
        legend.append(
            f'<line x1="{x}" x2="{x + 30}" y1="{y - 5}" y2="{y - 5}" stroke-width="3" '
            f'style="stroke: {line_colour}"{dashes}/>'
            f'<text x="{x + 38}" y="{y}" fill="currentColor" font-size="14">{html.escape(name)}</text>'
        )
    legend += _axis_numbers(reach, height / (2 * scale), scale, middle, height)
    legend.append(
        f'<text x="{width / 2:g}" y="{height + foot - 8}" text-anchor="middle" fill="currentColor" font-size="13">'
        f"across: {html.escape(labels[0])}; up: {html.escape(labels[1])}</text>"
    )
    field = f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'  # cut at its edges
    return svg(width, height + foot, [field, *legend])


def _axis_numbers(reach: float, climb: float, scale: float, middle: np.ndarray, height: int) -> list[str]:
    """The even numbers under the picture and at its left edge."""

    def number(x: float, y: float, value: int, anchor: str) -> str:
        text = str(value).replace("-", "−")
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" font-size="12">{text}</text>'

    def even(limit: float) -> range:
        most = 2 * math.floor(limit / 2)
        return range(-most, most + 1, 2)

    across = [number(middle[0] + scale * value, height + 14, value, "middle") for value in even(reach)]
    return across + [number(2, middle[1] - scale * value + 4, value, "start") for value in even(climb)]


def loss_curves(
    series: Mapping[str, Sequence[float]], guess: float, alt: str, most: float | None = None
) -> Picture:
    """The loss of each step on a logarithmic axis, a line for each of up to four; and that of a guess.

    most: the end of a linear axis instead; a line that leaves it stays at the edge, and its largest loss is named.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        for (name, losses), ink in zip(series.items(), ("third", "first", "second", "ink"), strict=False):
            axes.plot(np.minimum(losses, most or np.inf), color=colours[ink], linewidth=1.2, label=name)
            if most and max(losses) > most:
                step = int(np.argmax(np.asarray(losses) > most))
                axes.text(step + 4, 0.93 * most, f"up to {max(losses):.0f}", color=colours[ink], fontsize=11)
        axes.axhline(guess, color=colours["ink"], linewidth=0.8, linestyle="--")
        axes.text(0, guess / 1.25, "a guess", va="top", fontsize=11)
        lowest, highest = (float(of([of(losses) for losses in series.values()])) for of in (min, max))
        axes.set(xlabel="step", ylabel="loss (nats)")
        if most:
            axes.set(ylim=(0, most))
        else:
            axes.set(yscale="log", ylim=(lowest / 2, 20 * highest))
        axes.legend(loc="upper left" if most else "upper right", ncols=1 if most else 2)

    return figure(plot, alt, (5.4, 3.2))


# --- PyTorch's steps -------------------------------------------------------------------------------------


def pytorch_reference() -> dict[str, Any]:
    """What benchmarks/optimiser_trajectories.py stored: start, settings, and where PyTorch's optimisers end."""
    return json.loads(stored("pytorch_trajectories.json").read_text())


def replay(case: Mapping[str, Any], kind: type[optim.Optimizer] | None = None) -> dict[str, np.ndarray]:
    """The parameters of the stored network after as many steps of our own, on the same batches.

    case: one of the reference's. kind: an optimiser in place of the case's.
    """
    reference = pytorch_reference()
    rng = np.random.default_rng(reference["data_seed"])
    batches = [rng.standard_normal((reference["batch"], 2)) for _ in range(reference["steps"])]
    p = {name: nn.Parameter(np.array(value)) for name, value in reference["start"].items()}
    kind, recipe = kind or getattr(optim, case["optimiser"]), case.get("recipe", {})
    groups: Any = list(p.values())
    if recipe:
        groups = [{"params": [p["W1"], p["W2"]]}, {"params": [p["b1"], p["b2"]], "weight_decay": 0.0}]
    optimiser = kind(groups, **case["settings"])
    schedule = (
        optim.LinearWarmupDecay(optimiser, recipe["warmup_steps"], recipe["total_steps"]) if recipe else None
    )
    for x in batches:
        third = (np.arctan2(x[:, 1], x[:, 0]) * 3 / (2 * np.pi) + 1.5).astype(int) % 3  # the class
        optimiser.zero_grad()
        hidden = (Tensor(x) @ p["W1"] + p["b1"]).tanh()
        ops.cross_entropy(hidden @ p["W2"] + p["b2"], third).backward()
        if schedule:
            optim.clip_grad_norm(p.values(), recipe["max_norm"])
        optimiser.step()
        if schedule:
            schedule.step()
    return {name: parameter.numpy() for name, parameter in p.items()}


def distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The largest difference of an entry between arrays of the same names."""
    return max(float(np.abs(np.asarray(one[name]) - np.asarray(other[name])).max()) for name in one)
