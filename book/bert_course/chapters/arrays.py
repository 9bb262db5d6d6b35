"""The pictures of `arrays`: from tokens to heads, a view beside the memory it walks over, and broadcasting there and
back."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_course.common.figures import Picture
from bert_course.common.palette import STYLE, colour
from bert_course.common.pencil import words
from bert_course.common.widgets import Frame, svg

BOX = 28  # the side of a matrix's cell, in the picture's units
INK, GRID, ROWS = colour("ink"), colour("third"), (colour("first"), colour("second"))


def token_to_heads(
    X: np.ndarray, W: np.ndarray, h: int, text: Sequence[str], token: int, column: int
) -> Picture:
    """Tokens times a projection, and the result cut into h heads, as a picture with the numbers in it.

    X (L, d_model): a row for each word of `text`. W (d_model, d_model). token, column: one entry of the product, whose
    row of X and column of W are marked. Raises ValueError if h does not divide d_model.
    """
    d_model = W.shape[1]
    if d_model % h:
        raise ValueError(f"{h} heads do not divide {d_model} columns")
    Q, d_k, side = X @ W, d_model // h, d_model * BOX
    left, top, gap = 58, 26, 34
    places = [left + i * (side + gap) for i in range(3)]
    middle = top + len(X) * BOX / 2 + 6
    parts = [words(places[i] + side / 2, 16, name) for i, name in enumerate(("X", "W_Q", "Q = X W_Q"))]
    parts += [
        words(place - gap / 2, middle, sign) for place, sign in zip(places[1:], ("·", "="), strict=True)
    ]
    parts += [words(left - 8, top + i * BOX + 19, word, anchor="end") for i, word in enumerate(text)]
    heads = [ROWS[j // d_k % 2] for j in range(d_model)]
    parts += _matrix(X, places[0], top, GRID)
    parts += _matrix(W, places[1], top, GRID)
    parts += _matrix(Q, places[2], top, heads)
    parts.append(_frame(places[0], top + token * BOX, side, BOX))
    parts.append(_frame(places[1] + column * BOX, top, BOX, side))
    parts.append(_frame(places[2] + column * BOX, top + token * BOX, BOX, BOX))
    below = top + max(d_model, len(X)) * BOX + 44
    start = places[1] - gap
    for head in range(h):
        x = start + head * (d_k * BOX + 90) + 50
        parts.append(words(x + d_k * BOX / 2, below - 10, f"head {head}"))
        part = Q[:, head * d_k : (head + 1) * d_k]
        parts += _matrix(part, x, below, ROWS[head % 2])
        if head == column // d_k:
            parts.append(_frame(x + column % d_k * BOX, below + token * BOX, BOX, BOX))
        if head == 0:
            parts += [words(x - 8, below + i * BOX + 19, word, anchor="end") for i, word in enumerate(text)]
    entry = f"{Q[token, column]} of Q, in row {text[token]}"
    alt = (
        f"Three matrices, X times W_Q is Q, and below them the {h} heads. The entry {entry}, is marked, and with it "
        f"its whole row of X, all {d_model} features of the token, and a column of W_Q. Head i has the columns "
        f"from {d_k} i to {d_k} i + {d_k - 1} of Q, of all {len(X)} tokens."
    )
    return _picture(places[2] + side + 8, below + len(X) * BOX + 6, parts, alt, 520)


def heads_by_token(text: Sequence[str], names: np.ndarray, heads: np.ndarray) -> Picture:
    """Queries and the heads that they were cut into, in a colour for each token.

    names (L, d_model): names of the entries, each once, a row a word. heads (h, L, d_k): the same names.
    Raises ValueError for more words than colours.
    """
    tones = [colour(role) for role in ("first", "second", "gradient")]
    if len(text) > len(tones):
        raise ValueError(f"there are colours for {len(tones)} words, got {len(text)}")
    rows = zip(text, tones, names, strict=False)
    whose = {name: (word, tone, j) for word, tone, row in rows for j, name in enumerate(row.tolist())}
    left, top, gap = 58, 26, 44
    parts = [words(left - 8, top + i * BOX + 19, word, anchor="end") for i, word in enumerate(text)]
    x, told = left, list[str]()
    for title, block in (("queries", names), *((f"head {i}", head) for i, head in enumerate(heads))):
        of = [[whose[name] for name in row] for row in block.tolist()]
        numbers = np.array([[number for *_, number in row] for row in of])
        parts.append(words(x + block.shape[1] * BOX / 2, 16, title))
        parts += _matrix(numbers, x, top, [[tone for _, tone, _ in row] for row in of])
        x += block.shape[1] * BOX + gap
        owners = [word for row in of for word, *_ in row]
        counts = (f"{owners.count(word)} of {word}" for word in dict.fromkeys(owners))
        told.append(f"{title}: {', '.join(counts)}")
    alt = f"A row for each token, with the places of its numbers, and the heads after the cut. {'; '.join(told)}."
    return _picture(x - gap + 8, top + len(text) * BOX + 6, parts, alt, 420)


def memory_walk(view: np.ndarray, size: int, owners: Sequence[str] = ()) -> str:
    """A view as a grid, and beside it the walk over memory that reads it, as SVG.

    view: for each entry the number of its memory cell; a third axis in front makes one grid below the other. size: how
    many cells there are. owners: names of equal parts of memory. Memory goes from left to right, the view's reading
    order from top to bottom. A row has one colour in the grid and in the walk.
    """
    left, top, tall, width = 236, 46, 19, 560
    step = (width - left) / size
    bottom = top + tall * view.size + 4
    parts = [words(4, 18, "the view", anchor="start")]
    for i, owner in enumerate(owners):
        wide = (width - left) / len(owners)
        parts.append(
            f'<rect x="{left + i * wide:.1f}" y="0" width="{wide:.1f}" height="{bottom}" fill="currentColor" '
            f'fill-opacity="{0.1 if i % 2 == 0 else 0.03:g}"/>'
        )
        parts.append(words(left + (i + 0.5) * wide, 18, owner))
    parts += [words(left + (i + 0.5) * step, top - 8, str(i)) for i in range(size)]
    y = top
    for number, block in enumerate(view.reshape(-1, *view.shape[-2:])):
        rows = [[ROWS[(number * len(block) + i) % 2]] for i in range(len(block))]
        parts += _matrix(block, 4, y, rows)
        y += len(block) * BOX + 12
    for time, place in enumerate(view.ravel().tolist()):
        row = time // view.shape[-1]
        if time % view.shape[-1] == 0:
            index = ", ".join(map(str, np.unravel_index(row, view.shape[:-1])))
            parts.append(words(left - 8, top + tall * time + 14, f"[{index}]", anchor="end"))
        parts.append(
            f'<rect x="{left + place * step + 2:.1f}" y="{top + tall * time + 1}" width="{step - 4:.1f}" '
            f'height="{tall - 3}" fill="{ROWS[row % 2]}"/>'
        )
    return _coloured(width, max(bottom, y), parts)


def broadcast_frames(column: np.ndarray, row: np.ndarray, dy: np.ndarray) -> list[Frame]:
    """How a column (n, 1) and a row (m,) are stretched and added, and how dy (n, m) is folded back, step by step.

    Raises ValueError if the three shapes do not fit.
    """
    n, m = dy.shape
    if column.shape != (n, 1) or row.shape != (m,):
        raise ValueError(
            f"dy of shape {dy.shape} needs ({n}, 1) and ({m},), got {column.shape} and {row.shape}"
        )
    first, second, back = colour("first"), colour("second"), colour("gradient")
    here, there = 52, 52 + (m + 2) * BOX  # where the two grids stand, from the left
    top, width, height = 58, 2 * (m + 2) * BOX + 40, 58 + (n + 2) * BOX

    def picture(names: tuple[str, str], *parts: str) -> str:
        titles = [words(x + m * BOX / 2, 20, name) for x, name in zip((here, there), names, strict=True)]
        return _coloured(width, height, [*titles, *parts])

    full = column + row
    plus = words((here + m * BOX + there) / 2, top + n * BOX / 2 + 6, "+")
    row_sums, column_sums = dy.sum(axis=1, keepdims=True), dy.sum(axis=0)
    edge, foot = here + m * BOX + 8, top + n * BOX + 8
    folded = [
        *_matrix(dy, here, top, back),
        *_matrix(row_sums, edge, top, first),
        *_matrix(column_sums[None, :], here, foot, second),
    ]
    return [
        Frame(
            "Two arrays",
            picture(
                (f"c {column.shape}", f"b {row.shape}"),
                *_matrix(column, here, top, first),
                *_matrix(row[None, :], there, top, second),
            ),
            f"A column c of shape {column.shape} and a row b of shape {row.shape}: {n + m} memory cells together.",
        ),
        Frame(
            "Stretched",
            picture(
                (f"c as {dy.shape}", f"b as {dy.shape}"),
                *_matrix(np.broadcast_to(column, dy.shape), here, top, first, hollow=np.arange(m) > 0),
                plus,
                *_matrix(
                    np.broadcast_to(row, dy.shape), there, top, second, hollow=np.arange(n)[:, None] > 0
                ),
            ),
            "Stride 0 reads each number of c once for every column, and each of b once for every row. The hollow boxes "
            "are read from the cell of the full one: no memory is used for them.",
        ),
        Frame(
            "Added",
            picture((f"y = c + b, {full.shape}", ""), *_matrix(full, here, top, INK)),
            f"Entry by entry. Each number of c now stands in {m} entries of y, each number of b in {n}.",
        ),
        Frame(
            "On the way back",
            picture((f"dy {dy.shape}", ""), *_matrix(dy, here, top, back)),
            "Every entry of y gets a gradient of its own.",
        ),
        Frame(
            "Folded",
            picture(("dy, and its sums", ""), *folded),
            f"Each cell collects what its copies got: dc is the sum of each row, back to {column.shape}; db is the sum "
            f"of each column, back to {row.shape}.",
        ),
    ]


# --- Parts of a picture ----------------------------------------------------------------------------------


def _picture(width: int, height: int, parts: Sequence[str], alt: str, most: int) -> Picture:
    """A drawing with a name, in the course's colours; at most so many pixels wide."""
    named = f'<svg class="course-colours" role="img" aria-label="{html.escape(alt)}" '
    return Picture(svg(width, height, parts).replace("<svg ", named, 1), alt, most)


def _coloured(width: float, height: float, parts: Sequence[str]) -> str:
    """A picture from its parts, in the course's colours wherever it is put."""
    return svg(round(width), round(height), [STYLE, *parts]).replace(
        "<svg ", '<svg class="course-colours" ', 1
    )


def _frame(x: float, y: float, width: float, height: float) -> str:
    """A thick line around something."""
    size = f'width="{width}" height="{height}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="none" stroke="{INK}" stroke-width="3"/>'


def _matrix(values: np.ndarray, x: float, y: float, colours: Any, hollow: Any = False) -> list[str]:
    """A box for each entry of `values` (n, m), with the entry in it.

    colours: one for all boxes, or what broadcasts to (n, m). hollow: whether a box has only a dashed outline, likewise.
    """
    colours = np.broadcast_to(np.array(colours, dtype=object), values.shape)
    hollow = np.broadcast_to(hollow, values.shape)
    parts = []
    for (i, j), value in np.ndenumerate(values):
        shade = colours[i, j]
        inside = (
            'fill="none" stroke-dasharray="3 3"' if hollow[i, j] else f'fill="{shade}" fill-opacity="0.2"'
        )
        parts.append(
            f'<rect x="{x + j * BOX + 1:.1f}" y="{y + i * BOX + 1:.1f}" width="{BOX - 2}" height="{BOX - 2}" '
            f'stroke="{shade}" {inside}/>'
        )
        parts.append(words(x + (j + 0.5) * BOX, y + (i + 0.68) * BOX, str(value)))
    return parts
