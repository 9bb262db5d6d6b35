"""What `feed_forward` shows: its hand-sized network step by step, GELU as an area, and the stored model's networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bert_course.common.figures import Figure, Picture, figure, tinted
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.palette import colour
from bert_course.common.small_model import as_drawn, hide_each, small_model
from bert_course.common.widgets import Frame, Player, player, svg
from minigrad import no_grad
from minigrad.bert.encoder import BertLayer
from minigrad.tensor import Tensor


def network_flow(X: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray) -> Flow:
    """The page's network step by step: the path of *not bad* (row 3) first, then all rows; X can be edited.

    X (4, 3), W_1 (3, 4), b_1 (4,), W_2 (4, 3), b_2 (3,).
    """
    boxes = [
        Box("X", X, "token", "tokens", "features"),
        Box("W_1", W_1, "key", "features", "units"),
        Box("b_1", b_1, "key", columns="units"),
        Box("W_2", W_2, "value", "units", "features"),
        Box("b_2", b_2, "value"),
        Box("XW", "X @ W_1", "weight", "tokens", "units", label="XW_1"),
        Box("P", "XW + b_1", "weight", "tokens", "units", label="XW_1 + b_1"),
        Box("G", "gelu(P)", "weight", "tokens", "units", label="after GELU"),
        Box("Y", "G @ W_2 + b_2", "value", "tokens", "features", label="output"),
        Box("R", "X + Y", "token", "tokens", "features", label="X + output"),
    ]

    def bad(name: str) -> View:
        return View(name, only=[3], lit=[3])

    steps = [
        Step(
            "What comes in",
            [["X"]],
            "X has a row for each token. Attention has brought each token what it needs to know.",
        ),
        Step(
            "Four dot products",
            [[View("X", lit=[3]), "·", "W_1", "=", bad("XW")]],
            "The row of not bad times W_1 is four numbers, its dot product with each column.",
        ),
        Step(
            "The thresholds",
            [[bad("XW"), "+", "b_1"], [bad("P")]],
            "A bias says how large the dot product must be for its unit to be above 0. Only the last unit is.",
        ),
        Step(
            "Bend",
            [[bad("P")], [bad("G")]],
            "GELU works number by number. It keeps what is well above 0 and nearly nothing of what is below 0.",
        ),
        Step(
            "Write",
            [[bad("G"), "·", "W_2"], [bad("Y")]],
            "Each unit adds its row of W_2 times its number. The last unit writes praise.",
        ),
        Step(
            "All tokens at once",
            [["P", "→", "G"], ["Y", "+ X =", "R"]],
            "Every row goes through the same steps by itself. BERT then adds X to the output.",
        ),
    ]
    names = {
        "tokens": ["good", "bad", "not good", "not bad"],
        "features": ["bad", "neg.", "praise"],
        "units": ["u0", "u1", "u2", "u3"],
    }
    alt = "Four tokens of three features go through a feed-forward network of four units, as matrices with numbers"
    return flow(boxes, steps, alt, names, edit="X")


def plane(praise: Callable[[np.ndarray], np.ndarray] | None, alt: str) -> Picture:
    """Four films in the plane of *bad* and *negated*, on what a network says of every point, or with lines that fail.

    praise: from points (n, 3) to numbers from about -1 (blame) to 1, or None for the lines.
    """
    fine, low, high = 81, -0.5, 1.5
    ticks = [(0.5 + v) / 2 * (fine - 1) for v in (0, 1)]  # where 0 and 1 are, in pixels of the image

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        x = np.linspace(low, high, fine)
        points = np.stack(np.broadcast_arrays(x, x[:, None], 0.0), axis=-1).reshape(-1, 3)  # (fine², 3)
        values = np.zeros(len(points)) if praise is None else np.clip(praise(points), -1, 1)
        axes.imshow(
            tinted(0.6 * np.reshape(values, (fine, fine)), colours["first"], colours["second"]),
            interpolation="nearest",
        )
        if praise is None:
            middle, last = ticks[0] + 20, fine - 1
            for across, up in (([middle] * 2, [0, last]), ([0, last], [middle] * 2), ([0, 60], [60, 0])):
                axes.plot(across, up, color=colours["third"], linestyle="--", linewidth=1.4)
        for bad, negated, name in ((0, 0, "good"), (1, 0, "bad"), (0, 1, "not good"), (1, 1, "not bad")):
            liked = bad == negated
            at = ticks[bad], ticks[negated]
            axes.scatter(
                [at[0]],
                [at[1]],
                s=90,
                color=colours["first" if liked else "second"],
                edgecolors=colours["ink"],
            )
            axes.text(at[0], at[1] + 4, name, ha="center", fontsize=11)
        axes.set(xlim=(0, fine - 1), ylim=(0, fine - 1), xlabel="bad", ylabel="negated")
        axes.set_title(
            "three lines, and what they miss" if praise is None else "what the network says of each point"
        )
        axes.set_xticks(ticks, ["0", "1"])
        axes.set_yticks(ticks, ["0", "1"])
        axes.grid(visible=False)

    return figure(plot, alt, size=(4.2, 3.9))


# --- GELU as an area --------------------------------------------------------------------------------------

_LEFT, _WIDE, _TALL = 30, 240, 150  # of each of the two panels, in the picture's own units
_FAR = 3.5  # the panels go from -_FAR to _FAR


def _phi(x: float) -> float:
    """The share of a standard normal below x."""
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def area_player() -> Player:
    """x moves from -3 to 3: on the left the share of a normal distribution below x, on the right x times that share."""
    frames = []
    for twice in range(-6, 7):
        x = twice / 2
        share = _phi(x)
        words = f"A standard normal number is below {x:g} with probability {share:.4f}."
        words += f" {x:g} · {share:.4f} = {x * share + 0:.3f}."
        frames.append(Frame(f"x = {x:g}", _areas(x), words))
    alt = "Left, a bell curve filled up to x. Right, the curve of GELU with a point at x: x times the filled share"
    return player(frames, "x", alt, first=4)


def _areas(x: float) -> str:
    """Both panels for one x."""
    ink, filled, line, other = "currentColor", colour("weight"), colour("first"), colour("third")
    grid = np.linspace(-_FAR, _FAR, 71)

    def across(v: float, panel: int) -> float:
        return _LEFT + panel * (_WIDE + 40) + (v + _FAR) / (2 * _FAR) * _WIDE

    def bell(v: float) -> float:
        return 20 + _TALL * (1 - math.exp(-v * v / 2))

    def curve(v: float) -> float:
        return 20 + _TALL * (1 - (v + 0.6) / (_FAR + 0.6))

    def path(points: Iterator[tuple[float, float]]) -> str:
        return "M" + " L".join(f"{a:.1f} {b:.1f}" for a, b in points)

    below = [v for v in grid if v <= x + 1e-9]
    ground = 20 + _TALL
    area = (
        path((across(v, 0), bell(v)) for v in below)
        + f" L{across(x, 0):.1f} {ground} L{across(-_FAR, 0):.1f} {ground}Z"
    )
    y = x * _phi(x)
    corner = path((across(v, 1), curve(max(v, 0))) for v in (-_FAR, 0, _FAR))
    bent = path((across(v, 1), curve(v * _phi(v))) for v in grid)
    at, level = f"{across(x, 1):.1f}", f"{curve(0):.1f}"
    parts = [
        f'<path d="{area}" fill="{filled}" fill-opacity="0.45"/>',
        f'<path d="{path((across(v, 0), bell(v)) for v in grid)}" fill="none" stroke="{filled}" stroke-width="2"/>',
        _line(_LEFT, _LEFT + _WIDE, ground),
        _line(across(-_FAR, 1), across(_FAR, 1), curve(0)),
        f'<path d="{corner}" fill="none" stroke="{other}" stroke-width="1.5" stroke-dasharray="5 4"/>',
        f'<path d="{bent}" fill="none" stroke="{line}" stroke-width="2.5"/>',
        f'<line x1="{at}" x2="{at}" y1="{level}" y2="{curve(y):.1f}" stroke="{line}" stroke-width="1.5"/>',
        f'<circle cx="{at}" cy="{curve(y):.1f}" r="5" fill="{line}"/>',
    ]
    for panel in (0, 1):
        for v in (-3, -2, -1, 0, 1, 2, 3):
            place = f'x="{across(v, panel):.0f}" y="{ground + 18}" text-anchor="middle"'
            parts.append(f'<text {place} font-size="13" fill="{ink}">{v}</text>')
    for panel, title in enumerate(("share below x", "x · share (dashed: ReLU)")):
        parts.append(
            f'<text x="{across(-_FAR, panel):.0f}" y="14" font-size="14" fill="{ink}">{title}</text>'
        )
    return svg(_LEFT + 2 * _WIDE + 60, ground + 26, parts)


def _line(left: float, right: float, y: float) -> str:
    """A thin level line."""
    ends = f'x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'<line {ends} stroke="currentColor" stroke-opacity="0.4"/>'


def gelu_figure() -> Picture:
    """GELU and ReLU from -3.5 to 3.5, and their slopes."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        values, slopes = canvas.subplots(1, 2)
        x = np.linspace(-_FAR, _FAR, 141)
        share = np.array([_phi(v) for v in x])
        bell = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        corner = np.array([-_FAR, 0, _FAR])
        values.plot(corner, np.maximum(corner, 0), color=colours["third"], linestyle="--")
        values.plot(x, x * share, color=colours["first"])
        slopes.plot([-_FAR, 0], [0, 0], color=colours["third"], linestyle="--")
        slopes.plot([0, _FAR], [1, 1], color=colours["third"], linestyle="--")
        slopes.plot(x, share + x * bell, color=colours["first"])
        values.annotate("GELU", (1.5, 0.8), color=colours["first"])
        values.annotate("ReLU", (-0.7, 0.75), color=colours["third"])
        for axes, name in ((values, "value"), (slopes, "slope")):
            axes.set(xlabel="x", title=name, xticks=[-3, -2, -1, 0, 1, 2, 3])

    return figure(
        plot,
        "Left, GELU and ReLU: GELU dips to -0.17 below 0 and joins ReLU from 3 on. Right, their slopes: ReLU's jumps "
        "from 0 to 1; GELU's goes from a little below 0 to a little above 1 without a jump.",
        size=(5.4, 2.8),
    )


def reach_figure(reaches: Mapping[str, np.ndarray]) -> Picture:
    """A square (L, L) for each name: the darker cell (i, j), the more output i depends on input j; 0 is empty."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        for axes, (name, found) in zip(canvas.subplots(1, len(reaches)), reaches.items(), strict=True):
            axes.imshow(tinted(found / found.max(), colours["gradient"]), interpolation="nearest")
            axes.set(title=name, xlabel="input token", ylabel="output token")
            axes.set_xticks(range(len(found)))
            axes.set_yticks(range(len(found)))
            axes.grid(visible=False)

    shapes = " ".join(f"{name}: {int((found > 0).sum())} of {found.size}." for name, found in reaches.items())
    return figure(
        plot,
        f"Each network has a square. A cell is filled where an output depends on an input. {shapes}",
        (5.0, 2.7),
    )


# --- The stored model -------------------------------------------------------------------------------------

Network = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass
class Inner:
    """What reaches the feed-forward network of one layer, for all words of the sentences; all in float64.

    tokens: the n words, without [CLS] and [SEP]. X (n, d_model); W_1, b_1, W_2, b_2: the layer's.
    """

    tokens: list[str]
    X: np.ndarray
    W_1: np.ndarray
    b_1: np.ndarray
    W_2: np.ndarray
    b_2: np.ndarray


@dataclass
class HiddenWords:
    """The stored model, and twelve sentences that are not in its training text.

    drawn: the seed of a model of the same size as it is drawn, before its first step, in place of the stored one.
    """

    drawn: int | None = None
    sentences: list[np.ndarray] = field(init=False)  # the ids of each, (L,)

    def __post_init__(self) -> None:
        self._model, self.tokenizer = small_model()
        if self.drawn is not None:
            self._model = as_drawn(self.drawn)
        self._hidden = hide_each(self.tokenizer)
        self.sentences = [hidden.ids for hidden in self._hidden]

    def losses(self, network: Network | None = None) -> list[np.ndarray]:
        """The loss, in nats, of each word when [MASK] stands in its place: (L - 2,) for each sentence.

        network: stands in for the feed-forward network of both layers; it is called with X (L, d_model) of one
        sentence, W_1, b_1, W_2, b_2, all float64, and returns (L, d_model). The dropout, the residual sum and the
        LayerNorm around it stay. None: the model's own.
        """
        result = []
        for hidden in self._hidden:
            with no_grad():
                x = self._states(hidden.inputs, network)[-1]
                words = self._model.bert.embeddings.word_embeddings.weight
                result.append(hidden.losses(self._model.cls.predictions(x, words).numpy()))
        return result

    def inner(self, layer: int) -> Inner:
        """What reaches the feed-forward network of a layer, 0 or 1, with nothing hidden."""
        rows, tokens = [], []
        part = self._model.bert.encoder.layer[layer]
        for ids in self.sentences:
            with no_grad():
                x = part.attention(self._states(ids[None], None)[layer], None)
            rows.append(x.numpy()[0, 1:-1].astype(float))
            tokens += [self.tokenizer.id_to_token(i) for i in ids[1:-1]]
        return Inner(tokens, np.concatenate(rows), *_weights(part))

    def _states(self, ids: np.ndarray, network: Network | None) -> list[Tensor]:
        """The embeddings of ids (B, L) and each layer's output, (B, L, d_model)."""
        bert = self._model.bert
        states = [bert.embeddings(ids, np.zeros_like(ids))]
        for part in bert.encoder.layer:
            x = part.attention(states[-1], None)
            if network is None:
                states.append(part.output(part.intermediate(x), x))
                continue
            rows = [network(row, *_weights(part)) for row in x.numpy().astype(float)]
            y = Tensor(np.stack(rows).astype(np.float32))
            states.append(part.output.LayerNorm(x + part.output.dropout(y)))
        return states


def _weights(part: BertLayer) -> tuple[np.ndarray, ...]:
    """W_1, b_1, W_2, b_2 of a layer, in float64."""
    inner, outer = part.intermediate.dense, part.output.dense
    assert inner.bias is not None
    assert outer.bias is not None
    return tuple(p.numpy().astype(float) for p in (inner.weight, inner.bias, outer.weight, outer.bias))
