"""What chapter `seq2seq` draws: a network step by step, gradients against the distance, shares against the length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.palette import colour
from bert_course.common.pencil import arrow, box, upright, words
from bert_course.common.widgets import Frame, Player, player, svg


def rnn_flow(X: np.ndarray, W_x: np.ndarray, W_h: np.ndarray, b: np.ndarray) -> Flow:
    """The page's network step by step on "two old books": X (3, 4), W_x (4, 2), W_h (2, 2), b (2,); X can be edited."""
    names = {
        "words": ["two", "old", "books"],
        "features": ["few", "many", "thing", "other"],
        "state": ["count", "noun"],
    }
    boxes = [
        Box("X", X, "token", "words", "features"),
        Box("W_x", W_x, "value", columns="state"),
        Box("W_h", W_h, "key", columns="state"),
        Box("b", b[None, :], "value", columns="state"),
        Box("h0", np.zeros((1, 2)), "query", columns="state", label="h_0"),
    ]
    for t, place in enumerate(([1, 0, 0], [0, 1, 0], [0, 0, 1]), 1):
        boxes += [
            Box(f"pick{t}", np.array([place], float), "token"),
            Box(f"x{t}", f"pick{t} @ X", "token", columns="features", label=f"x_{t}"),
            Box(f"z{t}", f"x{t} @ W_x + h{t - 1} @ W_h + b", "weight", columns="state", label=f"z_{t}"),
            Box(f"h{t}", f"tanh(z{t})", "query", columns="state", label=f"h_{t}"),
        ]
    steps = [
        Step("What comes in", [["X"]], "The words come one after the other, each with four features."),
        Step(
            "The weights",
            [["W_x", "W_h", "b"]],
            "The same three arrays at every step. W_x writes into the state, and W_h carries the state on.",
        ),
    ]
    for t, word in enumerate(names["words"], 1):
        steps.append(
            Step(
                f"Step {t}: {word}",
                [
                    ["X", "→", View(f"x{t}")],
                    [f"x{t}", "· W_x  +", f"h{t - 1}", "· W_h  + b  =", f"z{t}"],
                    [f"h{t}"],
                ],
                [
                    "The state was zero. The word two makes the count positive.",
                    "The word old writes nothing. The state before, times W_h, keeps the count.",
                    "The word books writes into the second entry. The count is still there, "
                    "so the noun is partin, and not partis.",
                ][t - 1],
            )
        )
    return flow(
        boxes, steps, "Three words go through a recurrent network, one after the other", names, edit="X"
    )


# --- A gate as a valve -----------------------------------------------------------------------------------

_PIPE = 30  # how wide a pipe is, in the picture's own units


def gates_player(read: Sequence[str], steps: Sequence[Mapping[str, float]]) -> Player:
    """One entry of an LSTM's cell, word by word: gates as valves on a pipe, with the numbers that pass.

    steps: for each word i, f, g, o (after their functions), c_before, c and h.
    """
    frames = []
    for word, of in zip(read, steps, strict=True):
        text = (
            f"c = {of['f']:.2f} · {_signed(of['c_before'])} + {of['i']:.2f} · {_signed(of['g'])} = {_two(of['c'])}, "
            f"and h = {of['o']:.2f} · tanh({_two(of['c'])}) = {_two(of['h'])}."
        )
        frames.append(Frame(word, _valves(of), text))
    alt = (
        "A pipe from left to right, the cell. The forget gate is a valve on it, the input gate one on a pipe that "
        "joins from below, the output gate one on a pipe that leaves upwards; each is as open as its number says"
    )
    return player(frames, "word", alt)


def _two(number: float) -> str:
    """Two digits after the point, and no -0.00."""
    return f"{round(number, 2) + 0:.2f}"


def _signed(number: float) -> str:
    """The same as a factor or a term."""
    return f"({_two(number)})" if round(number, 2) < 0 else _two(number)


def _flow(x: float, y: float, length: float, value: float, upright: bool = False) -> str:
    """A stretch of pipe, filled as far as the value's size says, in the colour of its sign; with the value in it."""
    tone, width = ("first" if value >= 0 else "second"), _PIPE * min(abs(value), 1)
    if upright:
        inside = box(x + (_PIPE - width) / 2, y, width, length, tone, 0.45, 0)
        frame = f'<path d="M{x} {y}v{length}M{x + _PIPE} {y}v{length}"'
    else:
        inside = box(x, y + (_PIPE - width) / 2, length, width, tone, 0.45, 0)
        frame = f'<path d="M{x} {y}h{length}M{x} {y + _PIPE}h{length}"'
    return f'{inside}{frame} fill="none" stroke="currentColor" stroke-opacity="0.55" stroke-width="1.5"/>'


def _valve(x: float, y: float, share: float, upright: bool = False) -> str:
    """Two bars that leave this share of a pipe open; across it, at its left or upper edge."""
    closed = _PIPE * (1 - share) / 2
    if upright:
        return box(x - 5, y, closed + 5, 9, "weight", 1, 0) + box(
            x + _PIPE - closed, y, closed + 5, 9, "weight", 1, 0
        )
    return box(x, y - 5, 9, closed + 5, "weight", 1, 0) + box(
        x, y + _PIPE - closed, 9, closed + 5, "weight", 1, 0
    )


def _valves(of: Mapping[str, float]) -> str:
    """The picture of one step."""
    y, joins, leaves = 112, 236, 398
    parts = [
        _flow(10, y, 110, of["c_before"]),
        _flow(120, y, joins - 120, of["f"] * of["c_before"]),
        _valve(118, y, of["f"]),
        _flow(joins, y + _PIPE, 40, of["i"] * of["g"], upright=True),
        _flow(joins, y + _PIPE + 40, 44, of["g"], upright=True),
        _valve(joins, y + _PIPE + 36, of["i"], upright=True),
        _flow(joins, y, 510 - joins, of["c"]),
        _flow(leaves, y - 44, 44, math.tanh(of["c"]), upright=True),
        _flow(leaves, y - 82, 38, of["h"], upright=True),
        _valve(leaves, y - 48, of["o"], upright=True),
        words(62, y - 14, f"c before {_two(of['c_before'])}", 15),
        words(128, y + _PIPE + 26, f"forget gate {of['f']:.2f}", 15, "weight"),
        words(joins + _PIPE + 12, y + _PIPE + 46, f"input gate {of['i']:.2f}", 15, "weight", "start"),
        words(joins + _PIPE + 12, y + _PIPE + 80, f"candidate {_two(of['g'])}", 15, anchor="start"),
        words(leaves - 10, y - 40, f"output gate {of['o']:.2f}", 15, "weight", "end"),
        words(leaves - 10, y - 68, f"h {_two(of['h'])}", 15, anchor="end"),
        words(470, y + _PIPE + 26, f"c {_two(of['c'])}", 15, font_weight="bold"),
    ]
    return svg(520, 232, parts)


def norm_figure(curves: Mapping[str, tuple[Sequence[float], str, str]], label: str) -> Picture:
    """Norms (from distance 0 on) against the distance in time, on a logarithmic axis.

    curves: by name the norms, a colour of the palette and a line style.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for name, (norms, tone, style) in curves.items():
            axes.plot(range(len(norms)), norms, style, color=colours[tone], label=name)
        axes.set(yscale="log", xlabel="distance (steps back in time)", ylabel=label)
        canvas.legend(loc="outside upper center", ncols=2, fontsize=9)

    ends = "; ".join(f"{name}: {norms[-1]:.1g}" for name, (norms, *_) in curves.items())
    return figure(
        plot,
        f"Norms against the distance in time, on a logarithmic axis. At the last one, {ends}",
        (5.4, 4.2),
    )


def length_figure(curves: Mapping[str, tuple[Sequence[Sequence[float]], str]], label: str) -> Picture:
    """A share against the number of sentences, 1, 2, …: the middle of the seeds, and a band from lowest to highest.

    curves: by name, for each number of sentences the values of all seeds; and a colour of the palette.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for name, (values, tone) in curves.items():
            places = np.arange(1, len(values) + 1)
            axes.plot(
                places, [np.median(of) for of in values], "o-", color=colours[tone], label=name, markersize=4
            )
            axes.fill_between(
                places,
                [min(of) for of in values],
                [max(of) for of in values],
                color=colours[tone],
                alpha=0.2,
                linewidth=0,
            )
        axes.set(ylim=(-0.03, 1.03), xlabel="sentences of the text", ylabel=label)
        canvas.legend(loc="outside upper center", ncols=2, fontsize=9)

    said = "; ".join(
        f"{name}: {', '.join(f'{np.median(of):.2f}' for of in values)}"
        for name, (values, _) in curves.items()
    )
    return figure(plot, f"{label} for texts of 1, 2, … sentences. {said}", (5.4, 3.8))


# --- Two networks and one vector --------------------------------------------------------------------------


def unrolled(source: Sequence[str], target: Sequence[tuple[str, str]]) -> Picture:
    """An encoder and a decoder, unrolled over the words of one sentence, with the one vector between them.

    target: the words of the translation, each with its gloss.
    """
    parts: list[str] = []
    step, left = 66, 12
    for i, word in enumerate(source):
        x = left + step * i
        parts += [box(x, 84, 58, 28, "token", 0.08), words(x + 29, 103, word, 14)]
        parts += [
            upright(x + 29, 84, 62),
            box(x, 30, 58, 30, "query", 0.2, 1.4),
            words(x + 29, 50, f"h{_small(i + 1)}", 15),
        ]
        parts.append(arrow(x + 58, x + step, 45, "token"))
    end = left + step * len(source)
    parts += [
        box(end, 24, 104, 42, "weight", 0.35, 2),
        words(end + 52, 50, "one vector", 15, font_weight="bold"),
    ]
    parts.append(words(left, 20, "encoder", 14, "query", "start", font_weight="bold"))
    parts.append(
        f'<path d="M{end + 52} 66V136H{left + 29}V151" stroke="{colour("weight")}" stroke-width="3" fill="none"/>'
        f'<path d="M{left + 29} 156l-6 -9h12z" fill="{colour("weight")}"/>'
    )
    parts.append(words(left + 74, 151, "decoder", 14, "value", "start", font_weight="bold"))
    for i, (word, gloss) in enumerate(target):
        x = left + step * i
        parts += [box(x, 158, 58, 30, "value", 0.2, 1.4), upright(x + 29, 190, 210)]
        parts += [box(x, 210, 58, 28, "token", 0.08), words(x + 29, 229, word, 14)]
        parts.append(words(x + 29, 254, gloss, 13, "token", font_style="italic"))
        if i + 1 < len(target):
            parts.append(arrow(x + 58, x + step, 173, "token"))
    alt = (
        f"The encoder reads {' '.join(source)} word by word; each state comes from the word and the state before. The "
        f"last state is the one vector from which the decoder writes {' '.join(word for word, _ in target)}, "
        f"word by word. Word for word it means: {', '.join(gloss for _, gloss in target)}."
    )
    return Picture(svg(left + step * max(len(target), len(source) + 2), 262, parts), alt, 560)


def _small(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
