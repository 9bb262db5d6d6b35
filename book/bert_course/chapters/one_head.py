"""What `one_head` shows: its hand-sized head as picture and step by step, a trained head, what the scale is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.palette import colour
from bert_course.common.pencil import box, words
from bert_course.common.small_model import as_drawn, small_model
from bert_course.common.softmax import softmax
from bert_course.common.widgets import svg
from minigrad import Tensor, no_grad

# --- One head by hand -------------------------------------------------------------------------------------

FEATURES = ("water", "money", "place", "other")
BY_THE_RIVER = np.array([[0.0, 0, 0, 1], [2, 0, 0, 0], [0, 0, 2, 0]])  # (3, 4): the, river, bank
WITH_MONEY = np.array([[0.0, 0, 0, 1], [0, 2, 0, 0], [0, 0, 2, 0]])  # (3, 4): the, money, bank
W_Q = np.array([[0.0, 0], [0, 0], [1, 1], [0, 0]])  # (4, 2)
W_K = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])  # (4, 2)
W_V = np.array([[3.0, 0, 0], [0, 3, 0], [0, 0, 1], [0, 0, 0]])  # (4, 3)


def two_banks() -> Picture:
    """What *bank* takes from the other tokens of two sentences, by the head that the page writes by hand."""
    parts: list[str] = []
    for left, middle, X in ((0, "river", BY_THE_RIVER), (250, "money", WITH_MONEY)):
        shares = softmax((X[2] @ W_Q) @ (X @ W_K).T / np.sqrt(2))  # (3,)
        parts += _bank(left, ("the", middle, "bank"), shares, shares @ X @ W_V)
    alt = (
        "Two sentences, the river bank and the money bank. Lines lead from their three words to the word bank below; a "
        "thick one from river in the first, from money in the second. Bars show what bank gets: water in the first, "
        "money in the second."
    )
    return Picture(svg(480, 272, parts), alt, 560)


def _bank(left: float, tokens: Sequence[str], shares: np.ndarray, taken: np.ndarray) -> list[str]:
    """One sentence of the picture: its tokens above, *bank* below them, and what it takes as bars."""
    foot, middle, ink = 132, left + 115, colour("weight")
    parts = []
    for i, (token, share) in enumerate(zip(tokens, shares, strict=True)):
        x = left + 40 + 75 * i
        end = middle + 14 * (i - 1)
        parts.append(
            f'<path d="M{x:.1f} 52C{x:.1f} 98 {end:.1f} 88 {end:.1f} {foot:.1f}" stroke="{ink}" fill="none" '
            f'stroke-width="{1 + 15 * share:.1f}" opacity="0.75"/>'
        )
        parts.append(words(x, 22, token, 17, "token"))
        parts.append(words(x, 44, f"{share:.2f}", 14, "weight"))
    parts.append(box(middle - 34, foot, 68, 30, "token", 0.12))
    parts.append(words(middle, foot + 21, "bank", 17))
    for i, (feature, amount) in enumerate(zip(FEATURES, taken, strict=False)):
        y = foot + 46 + 28 * i
        parts.append(words(left + 62, y + 15, feature, 15, anchor="end"))
        parts.append(box(left + 70, y, max(12 * float(amount), 1.5), 20, "value", 0.8))
        parts.append(words(left + 76 + 12 * float(amount), y + 15, f"{amount:.1f}", 14, anchor="start"))
    return parts


def head_flow(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray) -> Flow:
    """The page's head step by step: the path of *bank* (row 2) first, then all rows; X can be edited.

    X (3, 4), W_Q and W_K (4, 2), W_V (4, 3).
    """
    boxes = [
        Box("X", X, "token", "tokens", "features"),
        Box("W_Q", W_Q, "query"),
        Box("W_K", W_K, "key"),
        Box("W_V", W_V, "value"),
        Box("Q", "X @ W_Q", "query", "tokens"),
        Box("K", "X @ W_K", "key", "tokens"),
        Box("V", "X @ W_V", "value", "tokens"),
        Box("KT", "K.T", "key", columns="tokens", label="Kᵀ"),
        Box("QKT", "Q @ KT", "weight", "tokens", "tokens", label="QKᵀ"),
        Box("S", "QKT / sqrt(2)", "weight", "tokens", "tokens"),
        Box("A", "softmax(S)", "weight", "tokens", "tokens"),
        Box("Z", "A @ V", "value", "tokens"),
    ]

    def bank(name: str) -> View:
        return View(name, only=[2], lit=[2])

    steps = [
        Step("What comes in", [["X"]], "A row for each token, a column for each feature."),
        Step(
            "The query of bank",
            [[View("X", lit=[2]), "·", "W_Q", "=", bank("Q")]],
            "Its row of X, times W_Q: what it asks for.",
        ),
        Step(
            "The keys",
            [["X", "·", "W_K", "=", "K"]],
            "Every row of X, times W_K: what each token is found by.",
        ),
        Step(
            "Compare",
            [[bank("Q"), "·", "KT", "=", bank("QKT")]],
            "One dot product with each key. Bank's row has a column for each token that is asked.",
        ),
        Step(
            "Share",
            [[bank("QKT"), "/ √2 =", bank("S")], [bank("S"), "softmax →", bank("A")]],
            "Divided by √dₖ they are the scores. Softmax makes them weights: positive, and their sum is 1.",
        ),
        Step(
            "Mix",
            [["X", "·", "W_V", "=", "V"], [bank("A"), "·", "V", "=", bank("Z")]],
            "Each token hands over its value; bank gets the mixture.",
        ),
        Step(
            "All tokens at once",
            [["Q", "·", "KT", "=", "QKT"], ["S", "softmax →", "A"], ["A", "·", "V", "=", "Z"]],
            "The same for every row: five matrix products and a softmax are the whole head.",
        ),
    ]
    names = {"tokens": ["the", "river", "bank"], "features": ["water", "money", "place", "other"]}
    choices = {"river": (1, [2, 0, 0, 0]), "money": (1, [0, 2, 0, 0])}
    alt = "Three tokens of four features go through one attention head, as matrices with their numbers"
    return flow(boxes, steps, alt, names, edit="X", choices=choices)


def phone_books(rng: np.random.Generator) -> tuple[Tensor, Tensor, np.ndarray]:
    """X (64, 5, 10), four tokens with a name and a pair of numbers each, and one with the name that it asks for.

    And the pair of that name (64, 2); and which token has it, true or false (64, 1, 5).
    """
    names, numbers = rng.random((64, 4)).argsort(axis=1), rng.standard_normal((64, 4, 2))
    each, place = np.arange(64), rng.integers(0, 4, 64)
    X = np.zeros((64, 5, 10))  # name, asked name, numbers
    X[:, :4, :4], X[:, :4, 8:] = np.eye(4)[names], numbers
    X[each, 4, 4 + names[each, place]] = 1
    return Tensor(X), Tensor(numbers[each, place]), np.arange(5) == place[:, None, None]


# --- Heads that were trained ------------------------------------------------------------------------------


@dataclass
class FirstLayer:
    """Queries and keys in the first layer of the stored model, for one text with [CLS] and [SEP] around it.

    tokens: its L tokens. trained: False for the same model as it was drawn, before its first step.
    """

    text: str
    trained: bool = True
    tokens: list[str] = field(init=False)

    def __post_init__(self) -> None:
        model, self.tokenizer = small_model()
        self._model = (model if self.trained else as_drawn()).bert
        self.ids = np.array(self.tokenizer.encode(self.text).input_ids)  # (L,)
        self.tokens = [self.tokenizer.id_to_token(i) for i in self.ids]

    def random_words(self, rng: np.random.Generator) -> np.ndarray:
        """The ids (L,) with a random token of the vocabulary for every word; [CLS] and [SEP] stay."""
        ids = self.ids.copy()
        ids[1:-1] = rng.integers(5, self.tokenizer.vocab_size, len(ids) - 2)
        return ids

    def queries_and_keys(
        self, ids: np.ndarray | None = None, positions: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Q and K, both (h, L, d_k) in float64, of the layer's heads.

        ids (L,): other tokens in the place of the text's. positions (L,): which row of the position table each gets.
        """
        ids = self.ids if ids is None else ids
        places = np.arange(len(ids)) if positions is None else np.asarray(positions)
        embeddings, heads = self._model.embeddings, self._model.encoder.layer[0].attention.self
        with no_grad():
            words = embeddings.word_embeddings(ids[None])  # (1, L, d_model)
            segments = embeddings.token_type_embeddings(np.zeros_like(ids)[None])  # (1, L, d_model)
            x = embeddings.LayerNorm(words + segments + embeddings.position_embeddings(places[None]))
            q, k = (heads.split_heads(part(x)).numpy()[0] for part in (heads.query, heads.key))  # (h, L, d_k)
        return q.astype(float), k.astype(float)


# --- What the scale is worth ------------------------------------------------------------------------------


def scale_bars(steps: Mapping[str, Mapping[str, Sequence[float]]], rates: Sequence[str], alt: str) -> Picture:
    """Steps until a head has learned, by the learning rate: a panel for each start, in it bars for each way to train.

    steps: from the start to the way to a number for each rate; infinity is drawn as *never*.
    """

    top = 150  # steps

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        panels = canvas.subplots(len(steps), 1, sharex=True)
        for axes, (start, ways) in zip(panels, steps.items(), strict=True):
            for i, counts in enumerate(ways.values()):
                at = np.arange(len(rates)) + 0.4 * i - 0.2
                ends = np.isfinite(counts)
                ink = colours[("first", "second")[i]]
                axes.bar(at[ends], np.asarray(counts)[ends], 0.36, color=ink)
                axes.bar(at[~ends], [top] * (~ends).sum(), 0.36, color=colours["grid"])  # beyond the frame
                for x, count in zip(at, counts, strict=True):
                    if np.isfinite(count):
                        axes.text(x, count + 2, f"{count:.0f}", ha="center", fontsize=11)
                    else:
                        axes.text(x, 0.4 * top, "never", ha="center", rotation=90, fontsize=11)
            axes.set_xticks(range(len(rates)), rates)
            axes.set_title(start, fontsize=11)
            axes.set(ylabel="steps", ylim=(0, top))
            axes.grid(False, axis="x")
        panels[-1].set_xlabel("learning rate")
        for i, way in enumerate(next(iter(steps.values()))):
            ink = colours[("first", "second")[i]]
            panels[0].text(1.6, (0.86 - 0.16 * i) * top, way, color=ink, fontsize=12, fontweight="bold")

    return figure(plot, alt, (5.4, 4.6))
