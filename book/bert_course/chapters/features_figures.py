"""What chapter `features` draws: its two ways side by side, and what readers reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure, tinted
from bert_course.common.pencil import box, upright, words
from bert_course.common.widgets import svg


def two_ways() -> Picture:
    """Features beside fine-tuning: which boxes are trained (filled), and which stay as they are (dashed)."""
    parts: list[str] = []
    middle = ("text", None), ("a vector for each token", None), ("tags", None)
    ways = {
        "features": (middle[0], ("encoder", False), middle[1], ("BiLSTM", True), middle[2]),
        "fine-tuning": (middle[0], ("encoder", True), middle[1], ("one layer", True), middle[2]),
    }
    for left, (title, rows) in zip((10, 250), ways.items(), strict=True):
        parts.append(words(left + 100, 20, title, 17, font_weight="bold"))
        for i, (name, trained) in enumerate(rows):
            y = 36 + 52 * i
            if i:
                parts.append(upright(left + 100, y - 20, y - 2))
            if trained is None:
                parts.append(words(left + 100, y + 20, name, 15))
            else:
                tone, fill = ("second", 0.25) if trained else ("token", 0)
                look: dict[str, Any] = {} if trained else {"stroke_dasharray": "5 4"}
                parts.append(box(left + 10, y, 180, 30, tone, fill, 1.6, **look))
                parts.append(words(left + 100, y + 20, name if trained else f"{name}, as it is", 15))
    parts.append(box(118, 304, 26, 16, "second", 0.25, 1.6))
    parts.append(words(150, 317, "trained with the labels of the task", 14, anchor="start"))
    alt = (
        "Two columns. Features: the encoder stays as it is, and a BiLSTM that reads its vectors is trained. "
        "Fine-tuning: the encoder is trained together with one layer on top of it."
    )
    return Picture(svg(460, 328, parts), alt, 520)


def reader_bars(found: Mapping[str, Mapping[str, float]], baseline: Mapping[str, float], alt: str) -> Picture:
    """Accuracies by what a reader gets, a panel for each task; baseline: always the most frequent answer."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        panels = canvas.subplots(len(found), 1, sharex=True)
        for axes, (task, bars) in zip(panels, found.items(), strict=True):
            rows = range(len(bars))[::-1]
            inks = [colours["third" if "words" in name else "first"] for name in bars]
            for row, share, ink in zip(rows, bars.values(), inks, strict=True):
                axes.barh([row], [share], 0.62, color=ink)
                axes.text(share + 0.012, row, f"{share:.2f}", va="center", fontsize=11)
            axes.axvline(baseline[task], color=colours["ink"], linestyle="--", linewidth=1.2)
            axes.set_yticks(rows, list(bars))
            axes.set_title(task, fontsize=12)
            axes.set(xlim=(0, 1.1), ylim=(-0.5, len(bars) - 0.5))
            axes.grid(False, axis="y")
        panels[-1].set_xlabel("share right; dashed: most frequent")

    return figure(plot, alt, (5.4, 5.6))


def read_and_used(tokens: Sequence[str], found: np.ndarray, used: np.ndarray | None = None) -> Picture:
    """What a probe reads in each token's vector after each layer, above what exchanging that vector costs.

    found: shares right (layers, tokens). used: nats of the margin (layers, tokens); without it there is one map.
    """
    layers = len(found)
    maps = [("first", found, (found - 0.5) / 0.5, "a probe reads the number (share right)")]
    if used is not None:
        maps.append(("second", used, used / used.max(), "exchanged: nats lost at the verb"))

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        grid = canvas.subplots(len(maps), 1, squeeze=False)[:, 0]
        for axes, (tone, values, shades, title) in zip(grid, maps, strict=True):
            axes.imshow(
                tinted(0.75 * np.clip(shades, 0, 1), colours[tone]), interpolation="nearest", aspect="auto"
            )
            for row in range(layers):
                for column, value in enumerate(values[row]):
                    digits = 2 if tone == "first" else 1
                    axes.text(
                        column,
                        row,
                        f"{round(value, digits) + 0:.{digits}f}",
                        ha="center",
                        va="center",
                        fontsize=11,
                    )
            axes.set(title=title, xlim=(-0.5, len(tokens) - 0.5), ylim=(-0.5, layers - 0.5))
            axes.set_xticks(range(len(tokens)), list(tokens))
            axes.set_yticks(range(layers), [f"layer {k + 1}" for k in range(layers)])
            axes.grid(visible=False)

    rows = []
    for i, token in enumerate(tokens):
        lost = "" if used is None else f", lost {', '.join(f'{a:.1f}' for a in used[:, i] + 0)}"
        rows.append(f"{token}: {', '.join(f'{a:.2f}' for a in found[:, i])}{lost}")
    what = f"By token, what a probe reads after layers 1 to {layers}{'' if used is None else ', and nats lost'}. "
    return figure(plot, what + "; ".join(rows) + ".", (5.8, 2.7 * len(maps)))
