"""What `one_head` shows: its hand-sized head step by step, trained heads, and training with and without the scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from minigrad import no_grad
from minigrad.course.furniture.figures import Figure, Picture, figure
from minigrad.course.furniture.flow import Box, Flow, Step, View, flow
from minigrad.course.furniture.small_model import as_drawn, small_model


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


# --- Training with and without the scale ------------------------------------------------------------------


def scale_curves(steps: Sequence[int], losses: Mapping[str, Sequence[float]]) -> Picture:
    """The losses on fresh sequences, in nats, by step: a line for each of four ways to train, in the order of a key."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        inks = (colours[name] for name in ("second", "first", "third", "third"))
        for (name, curve), ink, style in zip(losses.items(), inks, ("-", "-", "--", ":"), strict=True):
            axes.plot(steps, curve, style, color=ink, label=name)
        axes.set(xlabel="step", ylabel="loss (nats)", ylim=(0, None))
        axes.legend()

    return figure(
        plot,
        "The loss by training step, from q and k of variance 1. With the scale it falls soon; without it, later. "
        "Without the scale, a smaller start makes it fall sooner still, and smaller steps make it fall last of all.",
    )
