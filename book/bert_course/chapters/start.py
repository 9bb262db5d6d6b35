"""What `start` draws: guesses as bars, words hidden from a model, three ways to read, and a model while it learns."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bert_course.common.figures import Drawing, Figure, Picture, figure
from bert_course.common.palette import colour
from bert_course.common.small_model import EXAMPLES as EXAMPLES
from bert_course.common.small_model import SENTENCES as SENTENCES
from bert_course.common.small_model import SIMILAR as SIMILAR
from bert_course.common.widgets import Frame, svg

# --- Guesses for a gap -----------------------------------------------------------------------------------

_GUESSES = f"""
.course-guesses {{max-width: 34rem; margin: 0.6rem 0 1.1rem}}
.course-guesses p {{margin: 0 0 0.3rem}}
.course-guesses .gap {{color: {colour("first")}; font-weight: bold}}
.course-guesses .guess {{display: grid; grid-template-columns: 7.5em 1fr 3em; gap: 0.6em; align-items: center}}
.course-guesses .guess {{line-height: 1.45}}
.course-guesses .bar {{height: 0.75em; border-radius: 2px; background: {colour("first")}; min-width: 1px}}
.course-guesses .share {{text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums}}
"""


def guesses(by_text: Mapping[str, Sequence[tuple[str, float]]]) -> Drawing:
    """Texts with a [MASK], each with words for the gap and their probabilities as bars, to be a cell's last line."""
    body, lines = [], []
    for text, words in by_text.items():
        shown = html.escape(text).replace("[MASK]", '<span class="gap">[MASK]</span>')
        rows = "".join(
            f'<div class="guess"><span>{html.escape(word)}</span>'
            f'<span><span class="bar" style="display: block; width: calc(100% * {share:.2f})"></span></span>'
            f'<span class="share">{share:.2f}</span></div>'
            for word, share in words
        )
        body.append(f'<div class="course-guesses"><p>{shown}</p>{rows}</div>')
        lines.append(text)
        lines.append("    " + ", ".join(f"{word} {share:.2f}" for word, share in words))
    return Drawing("\n".join(body), _GUESSES, "\n".join(lines))


# --- Words hidden from a model ---------------------------------------------------------------------------

_HIDDEN = f"""
.course-hidden {{display: grid; gap: 0.7rem; margin: 0.6rem 0}}
.course-hidden .way {{font-size: 0.92em}}
.course-hidden .words {{display: flex; flex-wrap: wrap; gap: 0.2rem; font-size: 0.95em}}
.course-hidden .words span {{padding: 0.05rem 0.35rem; border: 1.5px solid {colour("grid")}; border-radius: 4px}}
.course-hidden .words .hidden {{background: {colour("third")}; border-color: {colour("third")}; color: transparent}}
.course-hidden .words .asked {{border-color: {colour("first")}; color: {colour("first")}; font-weight: bold}}
"""


def hidden_words(
    words: Sequence[str], asked: int, ways: Mapping[str, tuple[Collection[int], float]]
) -> Drawing:
    """One sentence as the model sees it in several experiments, to be the last line of a cell.

    asked: the place of the word to guess. ways: by name, the places that are hidden besides, and the probability of
    the true word then.
    """
    body, lines = [], []
    for name, (hidden, share) in ways.items():
        boxes, marks = [], []
        for place, word in enumerate(words):
            if place == asked:
                boxes.append('<span class="asked">?</span>')
                marks.append("?")
            elif place in hidden:
                boxes.append(f'<span class="hidden" aria-label="hidden">{"x" * len(word)}</span>')
                marks.append("█" * len(word))
            else:
                boxes.append(f"<span>{html.escape(word)}</span>")
                marks.append(word)
        title = f"Hidden: {name}. The probability of “{words[asked]}” is {share:.3f}."
        body.append(
            f'<div><div class="way">{html.escape(title)}</div><div class="words">{"".join(boxes)}</div></div>'
        )
        lines += [title, "    " + " ".join(marks)]
    return Drawing(f'<div class="course-hidden">{"".join(body)}</div>', _HIDDEN, "\n".join(lines))


def factor_bars(falls: Mapping[str, float]) -> Picture:
    """How many times less likely a word becomes, a bar for each way to hide others; 1 is no change."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        rows = range(len(falls))[::-1]
        for row, (name, factor) in zip(rows, falls.items(), strict=True):
            ink = colours["second" if name.endswith("anywhere") else "first"]
            axes.barh([row], [factor - 1], 0.6, left=1, color=ink)
            axes.text(factor + 0.06, row, f"{factor:.1f}", va="center", fontsize=11)
        axes.set_yticks(rows, list(falls))
        axes.set(xlim=(1, 5), xlabel="times less likely with these hidden")
        axes.grid(False, axis="y")

    alt = "How many times less likely the true word becomes: " + ", ".join(
        f"{name} hidden, {factor:.1f}" for name, factor in falls.items()
    )
    return figure(plot, f"{alt}.", (5.4, 3.0))


# --- Three ways to read ----------------------------------------------------------------------------------

_WAYS = f"""
.course-ways {{max-width: 36rem; margin: 0.6rem 0}}
.course-ways svg {{width: 100%; height: auto; display: block; overflow: visible}}
.course-ways text {{font: 17px sans-serif; fill: {colour("ink")}; text-anchor: middle}}
.course-ways p {{margin: 0.6rem 0 0}}
.course-ways .word {{cursor: default; outline: none}}
.course-ways .word rect {{fill: {colour("token")}; fill-opacity: 0.07; stroke: {colour("token")}; stroke-opacity: 0.4}}
.course-ways .arcs {{visibility: hidden; fill: none; stroke-width: 2}}
.course-ways .left {{stroke: {colour("first")}}}
.course-ways .right {{stroke: {colour("second")}}}
.course-ways .word:hover .arcs, .course-ways .word:focus .arcs {{visibility: visible}}
.course-ways .word:hover rect, .course-ways .word:focus rect {{stroke-opacity: 1; stroke-width: 2}}
.course-ways svg:not(:hover):not(:focus-within) .word.shown .arcs {{visibility: visible}}
.course-ways svg:not(:hover):not(:focus-within) .word.shown rect {{stroke-opacity: 1; stroke-width: 2}}
"""

# What a word's state is made from besides the word: for each network of the model, whether it sees that side.
READERS: dict[str, tuple[str, Sequence[str]]] = {
    "ELMo": ("one network reads from the left (blue), a second from the right (orange)", ("left", "right")),
    "GPT": ("one network reads from the left", ("left",)),
    "BERT": ("one network sees both sides, in every layer", ("both",)),
}


def three_ways(words: Sequence[str], shown: int) -> Drawing:
    """Which other words a word sees in ELMo, GPT and BERT, as arcs, to be the last line of a cell.

    words: of a sentence. shown: the place whose arcs are there before the reader points at another.
    """
    body, lines = [], []
    wide, tall, top = 480, 100, 66
    centres = [wide * (i + 0.5) / len(words) for i in range(len(words))]
    for name, (how, sides) in READERS.items():
        groups = []
        for i, word in enumerate(words):
            arcs, seen = [], []
            for j in range(len(words)):
                side = "left" if j < i else "right"
                if i == j or (side not in sides and "both" not in sides):
                    continue
                kind = "left" if "both" in sides else side
                peak = top - 14 - 46 * abs(i - j) / (len(words) - 1)
                arcs.append(
                    f'<path class="{kind}" d="M{centres[j]:.0f} {top}C{centres[j]:.0f} {peak:.0f} '
                    f'{centres[i]:.0f} {peak:.0f} {centres[i]:.0f} {top}"/>'
                )
                seen.append(words[j])
            text = f"{word} sees {', '.join(seen)}" if seen else f"{word} sees no other word"
            half = wide / len(words) / 2 - 3
            groups.append(
                f'<g class="word{" shown" if i == shown else ""}" tabindex="0" role="img" '
                f'aria-label="{name}: {html.escape(text)}">'
                f'<rect x="{centres[i] - half:.0f}" y="{top}" width="{2 * half:.0f}" height="30" rx="4"/>'
                f'<text x="{centres[i]:.0f}" y="{top + 21}">{html.escape(word)}</text>'
                f'<g class="arcs">{"".join(arcs)}</g></g>'
            )
            if i == shown:
                lines.append(f"{name}, {how}: {text}")
        body.append(
            f'<p><strong>{name}</strong>: {html.escape(how)}</p><svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {wide} {tall}" role="group" aria-label="{name}">{"".join(groups)}</svg>'
        )
    return Drawing(f'<div class="course-ways">{"".join(body)}</div>', _WAYS, "\n".join(lines))


# --- A model while it learns -----------------------------------------------------------------------------


def learning_frames(points: Sequence[Mapping[str, Any]], prompt: str, frequencies: float) -> list[Frame]:
    """Frames for `widgets.player`: the loss over the steps, and the guesses for a prompt at the frame's step.

    points: of the record that `book/make/learning.py` makes. frequencies: the loss in nats of knowing how frequent
    each piece is, a dashed line. The steps stand on a logarithmic axis that begins at 0.
    """
    last = points[-1]["step"]
    left, right, top, bottom = 44, 470, 16, 172

    def x(step: float) -> float:
        return left + (right - left) * math.log1p(step / 20) / math.log1p(last / 20)

    def y(loss: float) -> float:
        return bottom - (bottom - top) * (loss - 3) / (9 - 3)

    axes = _axes(((s, x(s)) for s in (0, 100, 1000, last)), ((loss, y(loss)) for loss in (3, 5, 7, 9)), right)
    curve = " ".join(f"{x(p['step']):.1f},{y(p['mlm_loss']):.1f}" for p in points)
    ink, first, third = colour("ink"), colour("first"), colour("third")
    still = (
        f"{axes}"
        f'<line x1="{left}" x2="{right}" y1="{y(frequencies):.1f}" y2="{y(frequencies):.1f}" stroke="{third}" '
        f'stroke-dasharray="6 4"/><text x="{right}" y="{y(frequencies) - 6:.1f}" text-anchor="end" fill="{third}" '
        f'font-size="14">word frequencies alone</text>'
        f'<polyline points="{curve}" fill="none" stroke="{first}" stroke-width="2"/>'
    )
    frames = []
    for point in points:
        at_x, at_y = x(point["step"]), y(point["mlm_loss"])
        marker = f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="6" fill="{colour("second")}"/>'
        words = point["guesses"]
        title = f'<text x="2" y="238" fill="{ink}" font-size="16">{html.escape(prompt)}</text>'
        rows = "".join(
            f'<text x="118" y="{262 + 23 * i}" text-anchor="end" fill="{ink}" font-size="15">{html.escape(word)}</text>'
            f'<rect x="126" y="{250 + 23 * i}" width="{1 + 290 * share:.1f}" height="14" rx="2" fill="{first}"/>'
            f'<text x="{133 + 290 * share:.1f}" y="{262 + 23 * i}" fill="{ink}" font-size="14">{share:.2f}</text>'
            for i, (word, share) in enumerate(words)
        )
        best = ", ".join(f"{word} {share:.2f}" for word, share in words[:3])
        text = f"Loss {point['mlm_loss']:.2f}; right {100 * point['mlm_accuracy']:.1f} % of the time. Guesses: {best}."
        frames.append(Frame(f"Step {point['step']:,}", svg(480, 366, [still, marker, title, rows]), text))
    return frames


def _axes(steps: Iterable[tuple[int, float]], losses: Iterable[tuple[int, float]], right: float) -> str:
    """Lines and labels of the loss curve: (value, place) of the marks on both axes."""
    grid, ink = colour("grid"), colour("ink")
    parts = []
    for loss, y in losses:
        parts.append(
            f'<line x1="44" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{grid}"/>'
            f'<text x="36" y="{y + 5:.1f}" text-anchor="end" fill="{ink}" font-size="14">{loss}</text>'
        )
    for step, x in steps:
        anchor = "end" if x > 440 else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="190" text-anchor="{anchor}" fill="{ink}" font-size="14">{step:,}</text>'
        )
    parts.append(
        f'<text x="257" y="208" text-anchor="middle" fill="{ink}" font-size="14">training step (logarithmic)</text>'
        f'<text x="50" y="12" fill="{ink}" font-size="14">loss (nats)</text>'
    )
    return "".join(parts)
