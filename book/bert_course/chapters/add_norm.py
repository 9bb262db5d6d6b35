"""What `add_norm` shows: sub-layers to stack, the hand-sized Add & Norm, the stream, whose mean it is, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common import pencil
from bert_course.common.figures import Figure, Picture, Rectangle, figure
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.small_model import small_model, word_losses
from bert_course.common.widgets import svg
from minigrad import nn, ops, random
from minigrad.bert.attention import BertSelfAttention
from minigrad.bert.config import PRESETS
from minigrad.tensor import Tensor

# --- Sub-layers without what is around them ---------------------------------------------------------------


class Attention(nn.Module):
    """The heads of the reduced model and their output projection, without Add & Norm."""

    def __init__(self) -> None:
        config = PRESETS["reduced"]
        self.heads = BertSelfAttention(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, std=config.initializer_range)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, d_model) -> (B, L, d_model)."""
        return self.dense(self.heads(x, None))


class FeedForward(nn.Module):
    """The two linear layers of the reduced model with GELU between them, without Add & Norm."""

    def __init__(self) -> None:
        config = PRESETS["reduced"]
        std = config.initializer_range
        self.expand = nn.Linear(config.hidden_size, config.intermediate_size, std=std)
        self.contract = nn.Linear(config.intermediate_size, config.hidden_size, std=std)

    def forward(self, x: Tensor) -> Tensor:
        """x (…, d_model) -> (…, d_model)."""
        return self.contract(ops.gelu(self.expand(x)))


def sublayers(layers: int, seed: int, start: str = "bert") -> list[nn.Module]:
    """Attention and feed-forward networks in turn, 2 · `layers` of them, in float64 and with the reduced model's sizes.

    start: "bert" draws all weights with the reduced model's σ = 0.05, which does at its width what 0.02 does at
    BERT-Base's; "unit" with σ = 1/√n_in, so that a matrix keeps the size of what goes through it. Raises ValueError for
    another one.
    """
    if start not in ("bert", "unit"):
        raise ValueError(f"start must be 'bert' or 'unit', got {start!r}")
    random.manual_seed(seed)
    stack: list[nn.Module] = []
    for _ in range(layers):
        stack += [Attention(), FeedForward()]
    for module in (module for part in stack for module in part.modules()):
        if start == "unit" and isinstance(module, nn.Linear):
            spread = float(np.std(module.weight.numpy()))
            module.weight.data *= 1 / (math.sqrt(module.weight.shape[0]) * spread)
    for part in stack:
        part.astype("float64")
    return stack


# --- What becomes of the tokens ---------------------------------------------------------------------------


def token_colours(states: Sequence[np.ndarray], notes: Mapping[int, str], alt: str) -> Picture:
    """Each token of each layer as a square, whose colour is the direction of its row: like rows have like colours.

    states: (L, d) before the first layer and after each. notes: what is written beside some of them.
    """
    directions = np.stack([x / np.linalg.norm(x, axis=-1, keepdims=True) for x in states])  # (n, L, d)
    axes_of = np.linalg.svd(directions[0] - directions[0].mean(axis=0), full_matrices=False)[2][:3]  # (3, d)
    spread = (directions[0] @ axes_of.T).std(axis=0)
    image = 0.5 + 0.25 * directions @ axes_of.T / spread  # (n, L, 3), each token's red, green and blue
    image = np.concatenate([image.clip(0.08, 0.92), np.ones((*image.shape[:2], 1))], axis=-1)
    tall = 6  # pixels of a layer, one of them clear
    image = np.repeat(image, tall, axis=0)
    image[tall - 1 :: tall, :, 3] = 0
    middles = [tall * row + (tall - 2) / 2 for row in range(len(states))]

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.imshow(image, interpolation="nearest", aspect="auto")
        for row, note in notes.items():
            axes.text(image.shape[1], middles[row], note, va="center", fontsize=10)
        axes.set(xlim=(-0.5, image.shape[1] + 5.5), xticks=[])
        names = ["input", *(f"layer {row}" for row in range(3, len(states), 3))]
        axes.set_yticks(middles[::3], names)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)

    return figure(plot, alt, size=(5.6, 3.6))


# --- The hand-sized example -------------------------------------------------------------------------------


def add_norm_flow(X: np.ndarray, Y: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> Flow:
    """The page's Add & Norm step by step: the path of *bank* (row 2) first, then all rows; Y can be edited.

    X, Y (3, 4): what goes into attention and what comes out; gain, bias (4,).
    """
    boxes = [
        Box("X", X, "token", "tokens", "features"),
        Box("Y", Y, "value", "tokens", "features"),
        Box("R", "X + Y", "token", "tokens", "features", label="X + Y"),
        Box("quarter", np.full((4, 1), 0.25)),
        Box("mu", "R @ quarter", "weight", "tokens", label="μ"),
        Box("C", "R - mu", "token", "tokens", label="X + Y - μ"),
        Box("variance", "(C * C) @ quarter", "weight", "tokens", label="σ²"),
        Box("sigma", "sqrt(variance + 0.000000000001)", "weight", "tokens", label="σ"),
        Box("N", "C / sigma", "query", "tokens", "features", label="normalised"),
        Box("gain", gain[None], "key", columns="features", label="γ"),
        Box("bias", bias[None], "key", columns="features", label="β"),
        Box("Z", "N * gain + bias", "query", "tokens", "features", label="output"),
    ]

    def bank(name: str) -> View:
        return View(name, only=[2], lit=[2])

    steps = [
        Step(
            "What comes in",
            [["X", "and", "Y"]],
            "X has a row for each token, and Y has what attention hands that token.",
        ),
        Step(
            "Add",
            [[bank("X"), "+", bank("Y"), "=", bank("R")]],
            "Bank keeps what it was and gets something on top.",
        ),
        Step(
            "Its mean",
            [[bank("R"), "mean →", bank("mu")], [bank("R"), "-", bank("mu"), "=", bank("C")]],
            "Bank's four numbers have one mean, which no other token shares. It is subtracted.",
        ),
        Step(
            "Its size",
            [
                [bank("C"), "mean of squares →", bank("variance")],
                [bank("C"), "/", bank("sigma"), "=", bank("N")],
            ],
            "What is left is divided by its standard deviation, so the row has mean 0 and variance 1.",
        ),
        Step(
            "Gain and bias",
            [["N", "×", "gain", "+", "bias"], ["Z"]],
            "Each feature has one gain and one bias, the same for all tokens.",
        ),
    ]
    names = {"tokens": ["the", "river", "bank"], "features": ["water", "money", "place", "other"]}
    alt = "Three tokens of four features go through Add & Norm, as matrices with their numbers"
    return flow(boxes, steps, alt, names, edit="Y")


# --- Whose mean? ------------------------------------------------------------------------------------------


def stream_picture() -> Picture:
    """One layer of BERT along the line that a token takes: each sub-layer reads from it and adds to it."""
    line, under = 52, 104  # of the stream, and of the sub-layers
    parts = [
        pencil.words(8, line - 22, "a token", 14, anchor="start"),
        pencil.arrow(8, 512, line, "first"),
        pencil.words(512, line - 22, "the next layer", 14, anchor="end"),
    ]
    for x, name, tone in ((74, "attention", "query"), (288, "feed-forward", "value")):
        plus, norm = x + 112, x + 140
        parts += [
            pencil.upright(x, line, under, tone),
            pencil.box(x - 14, under, 140, 32, tone, 0.16, 1.4),
            pencil.words(x + 56, under + 21, name, 15),
            pencil.upright(plus, under, line + 11, tone),
            pencil.box(plus - 10, line - 10, 20, 20, tone, 0.95),
            f'<text x="{plus}" y="{line + 6}" font-size="18" font-weight="bold" text-anchor="middle" '
            'fill="light-dark(#fff, #000)">+</text>',
            f'<rect x="{norm}" y="{line - 13}" width="44" height="26" rx="3" fill="light-dark(#fff, #111)"/>',
            pencil.box(norm, line - 13, 44, 26, "token", 0.2, 1.4),
            pencil.words(norm + 22, line + 5, "Norm", 13),
        ]
    parts.append(pencil.words(74 + 56, under + 50, "reads all tokens", 13, "query"))
    parts.append(pencil.words(288 + 56, under + 50, "reads this token", 13, "value"))
    alt = (
        "A token as one line from left to right through a layer. Attention reads from the line and adds to it, then a "
        "norm lies on the line; then the feed-forward network reads from it and adds to it, and another norm follows."
    )
    return Picture(svg(520, 162, parts), alt, 560)


def who_shares(texts: int, tokens: int, features: int) -> Picture:
    """For one number of a mini-batch, which numbers share its mean: under LayerNorm and under BatchNorm."""
    ways = [
        ("LayerNorm", lambda text, token, feature: text == 1 and token == 1),
        ("BatchNorm", lambda text, token, feature: feature == 1),
    ]

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        for axes, (name, shares) in zip(canvas.subplots(1, 2), ways, strict=True):
            for text in range(texts):
                for token in range(tokens):
                    for feature in range(features):
                        x, y = feature, -text * (tokens + 0.9) - token
                        lit = shares(text, token, feature)
                        face = colours["second" if (text, token, feature) == (1, 1, 1) else "first"]
                        axes.add_patch(
                            Rectangle((x, y), 1, -1, fc=face if lit else "none", ec=colours["third"], lw=0.8)
                        )
                label = f"text {text + 1}"
                middle = -text * (tokens + 0.9) - tokens / 2
                axes.text(-0.25, middle, label, ha="right", va="center", fontsize=9)
            axes.set(
                title=name, xlim=(-1.9, features), ylim=(-texts * (tokens + 0.9), 0.3), xlabel="features"
            )
            axes.set_aspect("equal")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
            axes.spines[:].set_visible(False)

    alt = (
        f"Two pictures of {texts} texts, each a grid of {tokens} tokens by {features} features. One number is marked. "
        "Under LayerNorm its row shares its mean; under BatchNorm, its column in every text does."
    )
    return figure(plot, alt, size=(5.4, 3.9))


# --- Gradients by depth -----------------------------------------------------------------------------------


def depth_curves(stacks: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Picture:
    """The gradient that reaches each layer, on logarithmic axes, one picture below the other.

    stacks: from the name of a start to the wirings by name, each with a list of draws, which have a number per layer.
    The mean is a line, the range a band.
    """
    looks = {
        "neither": ("third", ":"),
        "norm": ("wrong", "--"),
        "add": ("second", "-."),
        "post-LN": ("first", "-"),
    }

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        for axes, (start, wirings) in zip(
            canvas.subplots(len(stacks), 1, sharex=True, squeeze=False)[:, 0], stacks.items(), strict=True
        ):
            ends = []
            for name, draws in wirings.items():
                colour, line = looks.get(name, ("value", "-"))
                layers, mean = range(1, len(draws[0]) + 1), np.mean(draws, axis=0)
                axes.plot(layers, mean, line, color=colours[colour])
                low, high = np.min(draws, axis=0), np.max(draws, axis=0)
                axes.fill_between(layers, low, high, color=colours[colour], alpha=0.25, linewidth=0)
                ends.append((mean[-1], name, colours[colour]))
            axes.set_yscale("log")
            axes.set(title=start, ylabel="gradient of $W_1$ (RMS)", xlim=(0.5, 1.28 * len(layers)))
            axes.set_xticks([1, *range(3, len(layers) + 1, 3)])
            low, high = (math.log(end) for end in axes.get_ylim())
            heights = _apart([(math.log(end) - low) / (high - low) for end, _, _ in sorted(ends)])
            for height, (_, name, ink) in zip(heights, sorted(ends), strict=True):
                place = (len(layers) + 0.3, math.exp(low + height * (high - low)))
                axes.annotate(name, place, color=ink, va="center")
        axes.set_xlabel("layer")

    return figure(
        plot,
        "Size of the gradient by layer, on logarithmic axes, in two pictures. From BERT's initialisation four wirings "
        "lie flat between 1 and 10, and the one without Add and Norm lies fifteen orders of magnitude below. From the "
        "unit one that with Add alone climbs to tens of thousands in the first layers; both with Add and Norm stay "
        "between 0.4 and 3.",
        size=(5.4, 6.2),
    )


def through_layers(
    act: Callable[[Tensor], Tensor], factor: float, seed: int, layers: int = 24, width: int = 64
) -> float:
    """By which factor a random gradient's size changes on its way back through x -> act(x W), `layers` times.

    W: normal draws with σ = factor / √width.
    """
    rng = np.random.default_rng(seed)
    x = first = Tensor(rng.standard_normal((1, width)), requires_grad=True)
    for _ in range(layers):
        x = act(x @ Tensor(rng.standard_normal((width, width)) * factor / math.sqrt(width)))
    dy = rng.standard_normal((1, width))
    x.backward(dy)
    assert first.grad is not None
    return float(np.linalg.norm(Tensor(first.grad).numpy()) / np.linalg.norm(dy))


def _apart(heights: Sequence[float], room: float = 0.095) -> list[float]:
    """Heights in rising order, from 0 to 1, moved so that a line of text has room between any two."""
    placed: list[float] = []
    for height in heights:
        placed.append(max([height, *(below + room for below in placed[-1:])]))
    top = 1.0
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], top)
        top = placed[i] - room
    return placed


# --- A trained model, changed -----------------------------------------------------------------------------


class Trained:
    """The stored model, its parameters as arrays by name, and its loss on words that it has to guess."""

    def __init__(self) -> None:
        self.model, self.tokenizer = small_model()
        self.start = {name: np.array(parameter.numpy()) for name, parameter in self.model.named_parameters()}

    def numbers(self, names: Collection[str]) -> int:
        """How many numbers the parameters of these names have."""
        return sum(self.start[name].size for name in names)

    def loss(
        self, names: Collection[str] = (), change: Callable[[str, np.ndarray], Any] | None = None
    ) -> float:
        """Mean -log p of each word of chapter `start`'s sentences, in nats, when it alone is masked.

        names: the parameters to change for this time. change: from a name and its array to what to put in its place.
        """
        for name, parameter in self.model.named_parameters():
            start = self.start[name]
            new = change(name, start) if change and name in names else start
            parameter.data[...] = Tensor(np.broadcast_to(new, start.shape), dtype=start.dtype).data
        return float(word_losses(self.model, self.tokenizer).mean())
