"""What chapter 14 shows: how a document is cut into pairs, how many are IsNext, and what two judges call IsNext."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from minigrad.course.figures import Picture, figure
from minigrad.course.palette import colour
from minigrad.course.widgets import Frame, Player, player, svg

__all__ = ["chunk_player", "judged", "share_curves"]

Chunk = tuple[int, int, int, int]  # start, middle and end of a chunk, in sentences, and the label of its pair

_LEFT, _UNIT, _TOP, _HEIGHT, _GAP, _WIDTH = 8, 10.0, 34, 36, 4, 560


def chunk_player(lengths: Sequence[int], chunks: Sequence[Chunk], target: int) -> Player:
    """A frame for each pair that was cut from one document.

    lengths: tokens of its sentences. chunks: as the page's `walk` gives them. target: the tokens that it gathers.
    """
    frames = []
    for number, (start, middle, end, label) in enumerate(chunks, 1):
        a, b = _sentences(start, middle), _sentences(middle, end) if middle < end else ""
        held = f"{sum(lengths[start:end])} tokens of at least {target}"
        if sum(lengths[start:end]) < target:
            held = f"{sum(lengths[start:end])} tokens, because the document ends"
        if label == 0:
            words = f"A is {a}, and B is {b}. The next chunk starts after B."
        elif middle == end:
            words = f"The chunk is {a} only, so nothing is left for B, and no coin is tossed: B is random."
        else:
            words = f"A is {a}, and B is random. The next chunk starts at sentence {middle + 1}, which was not used."
        title = f"Pair {number}, {('IsNext', 'NotNext')[label]}:"
        frames.append(Frame(title, _drawn(lengths, (start, middle, end, label)), f"{held}. {words}"))
    alt = "A document's sentences as boxes as long as their tokens; each chunk of them is cut into A and B"
    return player(frames, "pair", alt)


def _sentences(start: int, end: int) -> str:
    numbers = [str(n + 1) for n in range(start, end)]
    if len(numbers) == 1:
        return f"sentence {numbers[0]}"
    return f"sentences {', '.join(numbers[:-1])} and {numbers[-1]}"


def _drawn(lengths: Sequence[int], chunk: Chunk) -> str:
    start, middle, end, label = chunk
    unit = (_WIDTH - 2 * _LEFT - _GAP * (len(lengths) - 1)) / sum(lengths)
    parts, x, places = [], float(_LEFT), []
    for n, tokens in enumerate(lengths):
        width = tokens * unit
        role = "first" if start <= n < middle else "second" if middle <= n < end and label == 0 else "token"
        unused = middle <= n < end and label == 1
        parts.append(_box(x, _TOP, width, role, f"{n + 1}", filled=role != "token", dashed=unused))
        places.append((x, x + width))
        x += width + _GAP
    parts.append(_words(_LEFT, 22, "the document", "ink"))
    parts.append(_words((places[start][0] + places[middle - 1][1]) / 2, _TOP + _HEIGHT + 20, "A", "first", True))
    below = _TOP + _HEIGHT + 34
    if label == 0:
        at = (places[middle][0] + places[end - 1][1]) / 2
        parts.append(_words(at, _TOP + _HEIGHT + 20, "B", "second", True))
    parts.append(_words(_LEFT, below + 16, "another document", "ink"))
    for n in range(5):
        role = "second" if label == 1 and n in (2, 3) else "token"
        parts.append(_box(_LEFT + n * 66, below + 28, 62, role, "?", filled=role != "token"))
    if label == 1:
        parts.append(_words(_LEFT + 2 * 66 + 64, below + 28 + _HEIGHT + 20, "B", "second", True))
    return svg(_WIDTH, below + 28 + _HEIGHT + 30, parts)


def _box(
    x: float, y: float, width: float, role: str, text: str, filled: bool = False, dashed: bool = False
) -> str:
    fill = f'fill="{colour(role)}" fill-opacity="0.22"' if filled else 'fill="none"'
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_HEIGHT}" rx="4" {fill} '
        f'stroke="{colour(role)}" stroke-width="{2 if filled else 1}"{dash}/>'
        + _words(x + width / 2, y + 24, text, "ink", True)
    )


def _words(x: float, y: float, text: str, role: str, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:.1f}" y="{y}" font-size="18" fill="{colour(role)}"{anchor}>{html.escape(text)}</text>'


def share_curves(means: Sequence[int], shares: Mapping[int, Sequence[float]]) -> Picture:
    """The share of IsNext (%) against the mean sentence in tokens, a curve for each number of sentences."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.axhline(50, color=colours["ink"], linewidth=1, linestyle="--")
        for (sentences, values), name in zip(shares.items(), ("first", "second", "third"), strict=True):
            per_cent = [100 * value for value in values]
            axes.plot(means, per_cent, "o-", color=colours[name], label=f"{sentences} sentences")
        axes.legend(title="in a document", loc="lower left")
        axes.set(xlabel="mean length of a sentence (tokens)", ylabel="IsNext (% of the pairs)", ylim=(0, 55))

    return figure(
        plot,
        "Share of IsNext against the length of sentences: below one half everywhere, lower for short documents, and "
        "falling to almost nothing where a sentence fills the sequence.",
    )


def judged(kinds: Sequence[str], shares: Mapping[str, Sequence[tuple[float, float]]]) -> Picture:
    """For each kind of pair the share (%) that each judge calls IsNext, with its range.

    shares: by judge, the share and half the width of its range for each kind.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.axvline(50, color=colours["grid"], linewidth=1)
        rows = np.arange(len(kinds))[::-1].astype(float)
        for (judge, found), name, up in zip(shares.items(), ("first", "second"), (0.13, -0.13), strict=True):
            middle, half = (100 * np.array(found)).T
            axes.errorbar(middle, rows + up, xerr=half, fmt="o", color=colours[name], label=judge, capsize=3)
        axes.set_yticks(rows, kinds)
        axes.legend(loc="lower right")
        axes.set(xlabel="called IsNext (% of the pairs)", xlim=(0, 100), ylim=(-0.9, len(kinds) - 0.5))

    return figure(
        plot,
        "Share of pairs that the model and the count call IsNext, by kind of pair. For both judges neighbours and "
        "swapped neighbours lie close together and high, two places of one document lie lower, and two documents "
        "lowest.",
    )
