"""The whole of BERT on one screen: from the text to one vector, with shapes, parameters, and who builds which part."""

from __future__ import annotations

import math

from bert_course.common.figures import Picture
from bert_course.common.palette import colour
from bert_course.common.pencil import box, upright, words
from bert_course.common.widgets import svg
from minigrad.bert import PRESETS, parameter_shapes

WIDTH, HEIGHT = 420, 562
LEFT, WIDE = 66, 290  # of the boxes
MIDDLE = LEFT + WIDE / 2
TOKENS = ("[CLS]", "the", "river", "bank", "[SEP]")
# which of the reader's eight functions computes it: bert_course.parts.PARTS, in order
PART_OF = {
    "text": (1, 2),
    "embeddings": (3,),
    "attention": (4, 5),
    "feed-forward": (6,),
    "norm": (7,),
    "pooler": (8,),
}


def architecture(preset: str = "base") -> Picture:
    """BERT as a drawing from top to bottom, at the size of a preset, in millions of parameters.

    The numbers in circles are the reader's own eight functions.
    """
    config, million = PRESETS[preset], _millions(preset)
    d, layers = config.hidden_size, config.num_hidden_layers
    parts = _tokens(10, "text")
    parts += _down(46, 66)
    parts += _part(66, 38, "embeddings", "first", "embeddings", f"{million['embeddings']:.1f} M")
    parts += _down(104, 112)
    parts += _part(112, 26, "normalise", "token", "norm")
    parts += _down(138, 208, f"X₀ ({len(TOKENS)}, {d})")
    parts.append(box(LEFT - 36, 172, 384, 238, "token", line=1.4, stroke_dasharray="5 4"))
    parts.append(words(LEFT - 26, 191, f"{layers} ×", 16, "token", "start", font_weight="bold"))
    for name, what, kind, leaves, top, below in (
        ("attention", "attention, masked", "query", 198, 208, 314),
        ("feed-forward", "feed-forward", "value", 302, 314, 444),
    ):
        parts += _part(top, 36, what, kind, name, f"{layers} × {million[name]:.1f} M")
        parts += _down(top + 36, top + 52)
        parts += _part(top + 52, 30, "add the input, normalise", "token", "norm")
        parts += _skip(leaves, top + 67)
        parts += _down(top + 82, below)
    last = str(layers).translate(_SMALL)
    parts.append(words(MIDDLE + 12, 432, f"X{last} ({len(TOKENS)}, {d})", 14, "token", "start"))
    parts += _tokens(444, "", lit=0)
    parts += _down(480, 500, x=LEFT + 29)
    parts += _part(500, 38, "pooler", "second", "pooler", f"{million['pooler']:.1f} M", wide=130)
    parts.append(words(LEFT + 176, 525, f"C ({d}): one vector", 15, anchor="start"))
    parts.append(words(LEFT + 146, 525, "→", 17))
    alt = (
        f"BERT from top to bottom. Five tokens get embeddings, {d} numbers each, which are normalised. {layers} layers "
        "follow, each with attention, add and normalise, feed-forward, add and normalise; a line leads past attention "
        "and past feed-forward. Every token still has its row; the pooler makes one vector from that of [CLS]. Circles "
        "with the numbers 1 to 8 mark the functions that the reader writes."
    )
    return Picture(svg(WIDTH, HEIGHT, parts), alt, 460)


_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def _millions(preset: str) -> dict[str, float]:
    """Parameters, in millions: of the embeddings, of one layer's attention and feed-forward network, of the pooler."""
    pieces = {
        "embeddings": "bert.embeddings.",
        "attention": "bert.encoder.layer.0.attention.",
        "feed-forward": "bert.encoder.layer.0.",
        "pooler": "bert.pooler.",
    }
    sizes = {name: math.prod(shape) for name, shape in parameter_shapes(PRESETS[preset]).items()}
    found = {
        part: sum(size for name, size in sizes.items() if name.startswith(begins)) / 1e6
        for part, begins in pieces.items()
    }
    return {**found, "feed-forward": found["feed-forward"] - found["attention"]}


def _tokens(y: float, part: str, lit: int | None = None) -> list[str]:
    """A row with a box for each token; `lit` is the one that counts."""
    drawn = []
    for i, token in enumerate(TOKENS):
        inside = 0.3 if i == lit else 0.08
        drawn.append(box(LEFT + 58 * i, y, 56, 34, "second" if i == lit else "token", inside))
        drawn.append(words(LEFT + 58 * i + 28, y + 22, token, 14))
    return drawn + _circles(part, y + 17)


def _part(
    y: float, height: float, name: str, tone: str, part: str, size: str = "", wide: float = WIDE
) -> list[str]:
    """A box with its name on the left, its parameters on the right, and the numbers of its functions beside it."""
    end = LEFT + wide
    foot = y + height / 2 + 5
    drawn = [box(LEFT, y, wide, height, tone, 0.16, 1.4), words(LEFT + 12, foot, name, 15, anchor="start")]
    if size:
        drawn.append(words(end - 10, foot, size, 14, "token", "end"))
    return drawn + _circles(part, y + height / 2, LEFT - 22 if part == "pooler" else None)


def _circles(part: str, y: float, x: float | None = None) -> list[str]:
    """The numbers of the reader's functions for a part, in circles on the right."""
    drawn = []
    for i, number in enumerate(PART_OF.get(part, ())):
        middle = (LEFT + WIDE + 14 if x is None else x) + 26 * i
        drawn.append(f'<circle cx="{middle:.0f}" cy="{y:.1f}" r="11" fill="{colour("weight")}"/>')
        drawn.append(
            f'<text x="{middle:.0f}" y="{y + 5:.1f}" font-size="14" font-weight="bold" text-anchor="middle" '
            f'fill="light-dark(#fff, #000)">{number}</text>'
        )
    return drawn


def _down(y0: float, y1: float, label: str = "", x: float = MIDDLE) -> list[str]:
    """An arrow down, with a label at its side."""
    return [upright(x, y0, y1), *([words(x + 12, y0 + 20, label, 14, "token", "start")] if label else [])]


def _skip(y0: float, y1: float) -> list[str]:
    """The line that leads past a part, from the arrow above it to the box below."""
    ink = colour("token")
    return [
        f'<path d="M{MIDDLE:.1f} {y0:.1f}H{LEFT - 16}V{y1:.1f}H{LEFT - 6}" stroke="{ink}" stroke-width="1.8" '
        'fill="none"/>',
        f'<path d="M{LEFT:.1f} {y1:.1f}l-8 -5v10z" fill="{ink}"/>',
    ]


# --- The Transformer of 2017 ------------------------------------------------------------------------------


def transformer() -> Picture:
    """The Transformer of Vaswani et al. (2017), figure 1: its two stacks, and which of them BERT keeps."""
    left, right, wide = 14, 250, 186
    parts = _words_row(left, ["the", "dog", "sleeps"], 12)
    parts += _words_row(right, ["start", "der", "Hund"], 12)
    for x in (left, right):
        parts += _down(42, 58, x=x + wide / 2)
        parts += _named(x, 58, wide, "words + positions", "first")
        parts += _down(86, 122, x=x + wide / 2)
    parts += _stack(left, wide, [("self-attention", "query"), ("feed-forward", "value")])
    parts += _stack(
        right,
        wide,
        [("self-attention, masked", "query"), ("cross-attention", "key"), ("feed-forward", "value")],
    )
    ink = colour("token")
    parts.append(  # from the encoder's last layer to the decoder's second look
        f'<path d="M{left + wide / 2:.0f} 258V318H{right - 24}V218H{right - 7}" stroke="{ink}" stroke-width="1.8" '
        f'fill="none"/><path d="M{right} 218l-8 -5v10z" fill="{ink}"/>'
    )
    parts.append(words(left, 336, "a row for each word", 13, "token", "start"))
    parts += _down(332, 374, x=right + wide / 2)
    parts += _named(right, 374, wide, "the word table, softmax", "first")
    parts += _down(402, 418, x=right + wide / 2)
    parts += _words_row(right, ["der", "Hund", "schläft"], 418)
    parts.append(words(left, 360, "BERT keeps this half.", 15, "weight", "start", font_weight="bold"))
    alt = (
        "Two stacks side by side. On the left the encoder reads the source: words and positions, then six layers of "
        "self-attention and feed-forward, each with add and normalise. On the right the decoder reads the translation "
        "so far: six layers of masked self-attention, cross-attention that asks the encoder's rows, and feed-forward; "
        "then the word table and softmax give the next word at each place. BERT keeps the left half."
    )
    return Picture(svg(450, 456, parts), alt, 520)


def _words_row(x: float, row: list[str], y: float) -> list[str]:
    """Three words in boxes."""
    drawn = []
    for i, word in enumerate(row):
        drawn.append(box(x + 63 * i, y, 60, 30, "token", 0.08))
        drawn.append(words(x + 63 * i + 30, y + 20, word, 14))
    return drawn


def _named(x: float, y: float, wide: float, name: str, tone: str, height: float = 28) -> list[str]:
    """A box with its name in the middle."""
    return [box(x, y, wide, height, tone, 0.16, 1.4), words(x + wide / 2, y + height / 2 + 5, name, 14)]


def _stack(x: float, wide: float, looks: list[tuple[str, str]]) -> list[str]:
    """Six layers in a dashed frame: each part in its tone, with add and normalise behind it."""
    middle = x + wide / 2
    drawn = [
        box(x - 10, 98, wide + 20, 24 + 76 * len(looks), "token", line=1.4, stroke_dasharray="5 4"),
        words(x - 2, 115, "6 ×", 14, "token", "start", font_weight="bold"),
    ]
    for i, (name, tone) in enumerate(looks):
        top = 122 + 74 * i
        drawn += _named(x, top, wide, name, tone)
        drawn += _down(top + 28, top + 38, x=middle)
        drawn += _named(x, top + 38, wide, "add, normalise", "token", 24)
        if i + 1 < len(looks):
            drawn += _down(top + 62, top + 74, x=middle)
    return drawn
