"""What chapter `modern` shows: BERT's encoder drawn beside ModernBERT's, and the stored runs of each change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.pencil import box, upright, words
from bert_course.common.widgets import svg

SEARCH_SEED = 100

# --- Two encoders ----------------------------------------------------------------------------------------

# From the input to the task, each with whether the other has something else; an empty name leaves the row free.
LOOKS = {
    "BERT, 2018": (
        ("words, positions, segments", True),
        ("normalise", False),
        ("", False),
        ("attention to all tokens", True),
        ("add, normalise", True),
        ("", False),
        ("feed-forward, GELU", True),
        ("add, normalise", True),
        ("", False),
        ("15 % hidden, next sentence", True),
    ),
    "ModernBERT, 2024": (
        ("words", True),
        ("normalise", False),
        ("normalise, from layer 2 on", True),
        ("rotary attention, mostly local", True),
        ("add", True),
        ("normalise", True),
        ("feed-forward, GeGLU", True),
        ("add", True),
        ("normalise", True),
        ("30 % hidden", True),
    ),
}
LAYER = range(2, 8)  # the rows in a layer
TONES, TIMES = ("second", "weight"), ("12 layers", "22 layers")
COLUMN, GAP, ROW, HIGH, AROUND = 218, 22, 41, 28, 18


def two_encoders() -> Picture:
    """A layer of BERT-Base beside one of ModernBERT-base (Warner et al. 2024); what differs is in colour."""
    parts = []
    for column, (title, rows) in enumerate(LOOKS.items()):
        x = 12 + column * (COLUMN + GAP)
        middle = x + COLUMN / 2
        parts.append(words(middle, 20, title, 16, font_weight="bold"))
        top, bottom = _row(LAYER[0]) - 8, _row(LAYER[-1]) + HIGH + 8
        parts.append(box(x - 8, top, COLUMN + 16, bottom - top, "token", line=1.4, stroke_dasharray="5 4"))
        parts.append(words(x + COLUMN + 8, top - 6, TIMES[column], 13, "token", "end"))
        foot = None  # of the box above
        for i, (name, differs) in enumerate(rows):
            if not name:
                continue
            if foot is not None:
                parts.append(upright(middle, foot, _row(i)))
            foot = _row(i) + HIGH
            tone, fill = (TONES[column], 0.2) if differs else ("token", 0.08)
            parts.append(box(x, _row(i), COLUMN, HIGH, tone, fill, 1.4))
            parts.append(words(middle, _row(i) + HIGH / 2 + 5, name, 14))
    alt = (
        "Two encoders side by side, from the input down to the task. BERT of 2018 adds words, positions and segments,"
        " normalises, and has 12 layers of attention to all tokens, add, normalise, feed-forward with GELU, add, "
        "normalise. Its tasks are 15 percent hidden words and the next sentence. ModernBERT of 2024 has words alone, "
        "and 22 layers that normalise before attention, from the second on, and before the feed-forward part, and "
        "once more after the last. Its attention is rotary and mostly local, its feed-forward part a GeGLU, its task "
        "30 percent hidden words. Only the first norm is the same."
    )
    return Picture(svg(2 * COLUMN + GAP + 24, _row(len(rows)) - 6, parts), alt, 560)


def _row(i: int) -> int:
    """The upper edge of a row of boxes; there is room above a layer and below it."""
    return 32 + i * ROW + AROUND * ((i >= LAYER.start) + (i >= LAYER.stop))


# --- The stored runs -------------------------------------------------------------------------------------


class Runs:
    """The runs that a record compares, by change and text; not those that chose a rate."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.floors, self.steps = record["floors"], record["steps"]
        self.runs = [run for run in record["runs"] if run["seed"] != SEARCH_SEED]

    def of(self, change: str, text: str = "light") -> list[dict[str, Any]]:
        """Those of a change, by seed. Raises LookupError if there are none."""
        asked = (change, text, self.steps[text])
        found = [run for run in self.runs if (run["change"], run["text"], run["steps"]) == asked]
        if not found:
            raise LookupError(f"the record has no run of {change!r} on {text} stories")
        return sorted(found, key=lambda run: run["seed"])

    def gaps(self, change: str, text: str = "light", judge: str = "curve") -> np.ndarray:
        """Nats above the floor at the end, a number for each seed; judge: "curve", or "probe" for the new head."""
        ends = [run["curve"][-1][1] if judge == "curve" else run["probe"] for run in self.of(change, text)]
        return np.array(ends) - self.floors[text]

    def longer(self) -> dict[float, np.ndarray]:
        """Nats above the floor of BERT with more steps, on long stories: by learning rate, a number for each seed."""
        more = [run for run in self.runs if run["steps"] > self.steps[run["text"]]]
        return {
            rate: np.array([run["curve"][-1][1] for run in more if run["rate"] == rate]) - self.floors["long"]
            for rate in sorted({run["rate"] for run in more})
        }


# --- A better start ---------------------------------------------------------------------------------------


def starts_figure(
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]], named: Mapping[str, str]
) -> Picture:
    """A dot for each run: its gap to the floor, and how often it is right after fine-tuning.

    points: by recipe, the gaps and the shares of right answers of its runs. named: the recipes that are told apart,
    each with its colour.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for name, (gaps, right) in points.items():
            if name not in named:
                axes.plot(gaps, right, "o", color=colours["ink"], alpha=0.35, markersize=5)
        for name, mark in zip(named, "os^", strict=False):
            gaps, right = points[name]
            axes.plot(gaps, right, mark, color=colours[named[name]], markersize=7, label=name)
        axes.legend(loc="upper right", fontsize=11)
        axes.axhline(0.5, color=colours["ink"], linestyle="--", linewidth=1)
        axes.text(0.99, 0.507, "a coin", fontsize=11, ha="right")
        axes.set(
            xlabel="nats above the floor", ylabel="right after fine-tuning", xlim=(0, 1.02), ylim=(0.45, 1.02)
        )

    told = ", ".join(
        f"{name} {np.mean(points[name][0]):.2f} nats and {np.mean(points[name][1]):.2f} right"
        for name in named
    )
    return figure(
        plot,
        f"A dot for each of {sum(len(g) for g, _ in points.values())} runs; on average {told}.",
        (5.4, 3.8),
    )
