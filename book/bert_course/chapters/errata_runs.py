"""The sources' formulas beside the right ones, on random inputs and weights: what chapter `errata` computes with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from bert_course.common.small_model import SENTENCES, small_model, word_losses
from bert_course.common.softmax import softmax
from minigrad import no_grad, ops
from minigrad.bert.config import BertConfig
from minigrad.bert.model import parameter_shapes
from minigrad.tensor import Tensor

SubLayer = Callable[[np.ndarray], np.ndarray]  # (L, d_model) -> (L, d_model)
Wiring = Callable[[np.ndarray, np.ndarray, SubLayer, SubLayer], np.ndarray]  # of X_0, x, attention, ffn

# --- Layers with random weights ---------------------------------------------------------------------------


def random_tokens(seed: int) -> np.ndarray:
    """Rows (24, 128) of mean 0 and variance 1, as LayerNorm leaves them, in float64."""
    return norm(np.random.default_rng([seed, 1]).standard_normal((24, 128)))


def drawn(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Weights (rows, columns) of spread 1/√rows, with which a matrix keeps the size of what goes through it."""
    return rng.standard_normal((rows, columns)) / math.sqrt(rows)


def random_layers(seed: int, number: int, d_model: int = 128) -> list[tuple[SubLayer, SubLayer]]:
    """For each of `number` layers its attention and its feed-forward network, (L, d_model) -> (L, d_model), in float64.

    Without LayerNorm, residual connections and biases: those are what a page wires. Attention has two heads; the
    feed-forward network is 4 · d_model wide.
    """
    rng = np.random.default_rng([seed, 2])

    def layer() -> Iterator[Callable[[np.ndarray], np.ndarray]]:
        W_Q, W_K, W_V, W_O = (drawn(rng, d_model, d_model) for _ in range(4))
        W_1, W_2 = drawn(rng, d_model, 4 * d_model), drawn(rng, 4 * d_model, d_model)

        def attention(x: np.ndarray) -> np.ndarray:
            q, k, v = (Tensor((x @ W).reshape(len(x), 2, -1).swapaxes(0, 1).copy()) for W in (W_Q, W_K, W_V))
            z = ops.scaled_dot_product_attention(q, k, v).numpy()  # (h, L, d_k)
            return z.swapaxes(0, 1).reshape(x.shape) @ W_O

        yield attention
        yield lambda x: ops.gelu(Tensor(x @ W_1)).numpy() @ W_2

    return [(attention, feed_forward) for attention, feed_forward in (layer() for _ in range(number))]


# --- Chapter `start`'s BERT ----------------------------------------------------------------------------------


class Small:
    """The stored model, in float64, some of whose parameters can be put back to what a layer without them has."""

    def __init__(self, without: Callable[[str], bool] = lambda name: False) -> None:
        """without: for which names of parameters a gain is to be 1, and any other parameter 0."""
        self.model, self.tokenizer = small_model()
        self.model.astype("float64")
        self.changed = 0  # numbers put back
        for name, parameter in self.model.named_parameters():
            if without(name):
                parameter.data[...] = 1.0 if name.endswith("LayerNorm.weight") else 0.0
                self.changed += parameter.size

    def pooled(self) -> np.ndarray:
        """The pooler's output C for each of chapter `start`'s sentences, (12, d_model)."""
        with no_grad():
            return np.concatenate(
                [
                    self.model.bert(np.array([self.tokenizer.encode(text).input_ids])).pooler_output.numpy()
                    for text in SENTENCES
                ]
            )

    def loss(self) -> float:
        """Mean -log p of each word of those sentences, in nats, when it alone is masked."""
        return float(word_losses(self.model, self.tokenizer).mean())


# --- Each formula beside the right one --------------------------------------------------------------------


def norm(x: np.ndarray) -> np.ndarray:
    """LayerNorm without its gain and bias: mean 0 and variance 1 in each row."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / x.std(axis=-1, keepdims=True)


class Draw:
    """Inputs and weights of one draw, in float64: L = 24 tokens, d_model = 128, h = 4 heads, d_ff = 512.

    The last 8 tokens are padding, for the errata that speak of it. A weight has spread 1/√n_in, so that a product keeps
    the size of what goes in.
    """

    L, d_model, h, words = 24, 128, 4, 16

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.X = random_tokens(seed)  # (L, d_model)
        rng = np.random.default_rng([seed, 3])
        self.W_Q, self.W_K, self.W_V, self.W_O = (drawn(rng, self.d_model, self.d_model) for _ in range(4))
        self.W_1 = drawn(rng, self.d_model, 4 * self.d_model)
        self.W_2 = drawn(rng, 4 * self.d_model, self.d_model)
        # Rows of the three tables, one for each of the L tokens; the second text begins in the middle.
        self.tokens, self.positions, segments = (
            rng.standard_normal((self.L, self.d_model)) for _ in range(3)
        )
        self.segments = segments[(np.arange(self.L) >= self.L // 2).astype(int)]

    @property
    def d_k(self) -> int:
        """The size of a head."""
        return self.d_model // self.h

    def heads(self, x: np.ndarray) -> np.ndarray:
        """(L, d_model) -> (h, L, d_k)"""
        return x.reshape(self.L, self.h, self.d_k).swapaxes(0, 1)

    def joined(self, z: np.ndarray) -> np.ndarray:
        """(h, L, d_k) -> (L, d_model)"""
        return z.swapaxes(0, 1).reshape(self.L, self.d_model)

    @cached_property
    def Q(self) -> np.ndarray:
        """The queries (h, L, d_k)."""
        return self.heads(self.X @ self.W_Q)

    @cached_property
    def K(self) -> np.ndarray:
        """The keys (h, L, d_k)."""
        return self.heads(self.X @ self.W_K)

    @cached_property
    def V(self) -> np.ndarray:
        """The values (h, L, d_k)."""
        return self.heads(self.X @ self.W_V)

    @cached_property
    def S(self) -> np.ndarray:
        """The scores (h, L, L), scaled."""
        return self.Q @ self.K.swapaxes(1, 2) / math.sqrt(self.d_k)

    def from_scores(self, scores: np.ndarray) -> np.ndarray:
        """What attention gives for scores (h, L, L): (L, d_model)."""
        return self.joined(softmax(scores) @ self.V) @ self.W_O

    def divided_by(self, divisor: float) -> np.ndarray:
        """What attention gives if the products of queries and keys are divided by this."""
        return self.from_scores(self.S * math.sqrt(self.d_k) / divisor)

    @cached_property
    def attention(self) -> np.ndarray:
        """What attention gives: (L, d_model)."""
        return self.from_scores(self.S)

    def hidden_after(self, words: int) -> np.ndarray:
        """The padding mask (L,) of a text with so many words."""
        return np.where(np.arange(self.L) < words, 0.0, -np.inf)

    @cached_property
    def layers(self) -> list[tuple[SubLayer, SubLayer]]:
        """Attention and feed-forward network of twelve layers."""
        return random_layers(self.seed, 12)

    def stacked(self, layer: Wiring) -> np.ndarray:
        """What twelve layers give, each wired by layer(X_0, x, attention, ffn)."""
        x = self.X
        for attention, ffn in self.layers:
            x = layer(self.X, x, attention, ffn)
        return x

    @cached_property
    def encoded(self) -> np.ndarray:
        """What twelve layers give as they should be."""
        return self.stacked(add_norm)


def add_norm(X_0: np.ndarray, x: np.ndarray, attention: SubLayer, ffn: SubLayer) -> np.ndarray:
    """A layer as it should be: each sub-layer is added to its own input, and the sum is normed."""
    z = norm(x + attention(x))
    return norm(z + ffn(z))


Run = Callable[[Draw], tuple[np.ndarray, np.ndarray]]
RUNS: dict[int, Run] = {}  # by the erratum's number: what the source's formula gives, and what is right


def erratum(*numbers: int) -> Callable[[Run], Run]:
    """The function runs these errata: one that two documents share, or that is found again between them."""

    def register(run: Run) -> Run:
        RUNS.update(dict.fromkeys(numbers, run))
        return run

    return register


@erratum(1)
def keys_from_values(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.from_scores(d.Q @ d.V.swapaxes(1, 2) / math.sqrt(d.d_k)), d.attention


@erratum(2)
def no_output_projection(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.joined(softmax(d.S) @ d.V), d.attention


@erratum(3)
def no_first_add_and_norm(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.stacked(lambda X_0, x, attention, ffn: norm(x + ffn(attention(x)))), d.encoded


@erratum(4)
def embeddings_for_input(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.stacked(lambda X_0, x, attention, ffn: norm(X_0 + ffn(norm(x + attention(x))))), d.encoded


@erratum(5, 55, 67)
def no_segments(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return norm(d.tokens + d.positions), norm(d.tokens + d.segments + d.positions)


@erratum(6)
def no_norm_of_the_embeddings(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    total = 0.02 * (d.tokens + d.segments + d.positions)  # BERT's spread at the start
    return total, norm(total)


@erratum(7)
def relu_for_gelu(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    h = d.X @ d.W_1  # (L, d_ff)
    return np.maximum(h, 0) @ d.W_2, ops.gelu(Tensor(h)).numpy() @ d.W_2


@erratum(11)
def no_padding_mask(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.attention[: d.words], d.from_scores(d.S + d.hidden_after(d.words))[: d.words]


@erratum(20)
def mask_of_the_other_text(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    """The decoder's text has four words less than the encoder's, whose keys these are."""
    return d.from_scores(d.S + d.hidden_after(d.words - 4)), d.from_scores(d.S + d.hidden_after(d.words))


@erratum(39)
def heads_by_reshape(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = ((d.X @ W).reshape(d.h, d.L, d.d_k) for W in (d.W_Q, d.W_K, d.W_V))
    z = softmax(q @ k.swapaxes(1, 2) / math.sqrt(d.d_k)) @ v  # (h, L, d_k)
    return z.reshape(d.L, d.d_model) @ d.W_O, d.attention


@erratum(41)
def weights_transposed(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.joined(softmax(d.S).swapaxes(1, 2) @ d.V) @ d.W_O, d.attention


@erratum(43)
def second_residual_from_input(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.stacked(lambda X_0, x, attention, ffn: norm(x + ffn(norm(x + attention(x))))), d.encoded


@erratum(44)
def root_of_h_for_d_k(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.divided_by(math.sqrt(d.h)), d.attention


@erratum(47)
def embeddings_in_every_layer(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    def layer(X_0: np.ndarray, x: np.ndarray, attention: SubLayer, ffn: SubLayer) -> np.ndarray:
        return add_norm(X_0, x if x is X_0 else x + X_0, attention, ffn)

    return d.stacked(layer), d.encoded


@erratum(49)
def no_scale(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.divided_by(1.0), d.attention


@erratum(63)
def scale_after_the_softmax(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    z = softmax(d.S * math.sqrt(d.d_k)) / math.sqrt(d.d_k) @ d.V  # (h, L, d_k)
    return d.joined(z) @ d.W_O, d.attention


@erratum(70)
def errata_3_and_4_together(d: Draw) -> tuple[np.ndarray, np.ndarray]:
    return d.stacked(lambda X_0, x, attention, ffn: norm(X_0 + ffn(attention(x)))), d.encoded


# --- What there is to count -------------------------------------------------------------------------------


def parameters(*pieces: str) -> int:
    """How many BERT-Base has: embeddings, layers and pooler.

    pieces: if there are any, only of arrays that have one of these in their names.
    """
    return sum(
        math.prod(shape)
        for name, shape in parameter_shapes(BertConfig()).items()
        if name.startswith("bert.") and any(piece in name for piece in pieces or [""])
    )


def flops(L: int) -> int:
    """Of the matrix products of a layer of BERT-Base: projections, then scores and A V."""
    return 2 * L * (4 * 768**2 + 2 * 768 * 3072) + 4 * L**2 * 768


COUNTS: dict[int, Callable[[], str]] = {
    8: lambda: (
        f"{parameters('query.bias', 'key.bias', 'value.bias', 'pooler.dense.bias', 'LayerNorm'):,} parameters"
    ),
    12: lambda: f"at 14 tokens, {flops(512) / flops(14):.0f} times the FLOPs",
    15: lambda: f"{parameters() - 102_326_784:,} parameters missing",
    40: lambda: f"{8 * 1024 * 64:,} entries for {8 * 1024**2:,}",
    42: lambda: f"{2048 * 2048:,} entries for {1024 * 2048:,}",
}
