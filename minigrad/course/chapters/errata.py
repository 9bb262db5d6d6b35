"""What chapter 26 runs: the list of the sources' mistakes, layers to wire wrongly, the small model without a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from minigrad import no_grad, ops
from minigrad.course.chapters.start import SENTENCES
from minigrad.course.small_model import hide_each, small_model
from minigrad.tensor import Tensor

__all__ = ["ERRATA", "SOURCES", "Erratum", "Small", "random_layers", "random_tokens"]


# --- The list ---------------------------------------------------------------------------------------------

SOURCES = ("formulas", "article", "walk-through", "notes", "essay", "between them")


class Erratum(NamedTuple):
    """A mistake or a gap in one of the five documents, or a contradiction between them.

    source: one of SOURCES. says: what the document says or leaves out, in a few words; "our copy" where the slip may be
    the transcription's. chapters: the numbers of the chapters that run it, as in their files' names without zeros in
    front; "26" alone if that page does; none if no page does so far.
    """

    number: int
    source: str
    says: str
    chapters: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Where it runs, as a reader of chapter 26 finds it."""
        if not self.chapters:
            return "not yet"
        if self.chapters == ("26",):
            return f"erratum {self.number}"
        return ("chapter " if len(self.chapters) == 1 else "chapters ") + " and ".join(self.chapters)


ERRATA = tuple(
    Erratum(number, source, says, chapters)
    for source, found in zip(
        SOURCES,
        (
            (
                (1, "the keys are made with the values' matrix", ("7", "12")),
                (2, "no output projection after the heads", ("8",)),
                (3, "no residual connection and no LayerNorm after attention", ("26",)),
                (4, "every layer adds the embedding, not its own input", ("11",)),
                (5, "no segment embedding", ("6",)),
                (6, "no LayerNorm and no dropout after the embeddings", ("6",)),
                (7, "ReLU in place of GELU", ("10",)),
                (8, "no biases of Q, K, V and pooler; no gain and bias of LayerNorm", ("26",)),
                (9, "the pooler multiplies from the other side", ("12",)),
                (10, "the classifier's matrix is missing", ("16", "26")),
                (11, "no attention mask", ("9",)),
                (12, "every text has the longest length, 512 tokens", ("26",)),
                (13, "no dropout", ("26",)),
                (14, "slips in names and shapes, some probably of our copy", ("26",)),
                (15, "the shapes add up to 7 million parameters too few", ("12",)),
            ),
            (
                (16, "a matrix of shape (64, 512), the scale from its first size", ("26",)),
                (17, "a token is always relevant to itself", ("26",)),
                (18, "the mask has zeros in its upper triangle, and is applied: how?", ("9",)),
                (19, "masks act when the parameters are updated", ("9",)),
                (20, "of which text cross-attention hides the padding is not said", ("9",)),
                (21, "the decoder's input ends with an end token", ()),
                (22, "decoding starts from an end token in one part, a start token in another", ("19",)),
                (23, "attention in the RNN: the score function is not given", ("19",)),
                (24, "non-linear activations make gradients explode or vanish", ("11", "18")),
                (25, "LayerNorm's statistics: right in one sentence, not in the next", ("11",)),
                (26, "BERT's positions are those of the Transformer paper", ("6b",)),
                (27, "[CLS] goes to a simple layer, without the pooler", ("14",)),
                (28, "the loss is on the masked values: all chosen ones are meant", ("13",)),
                (29, "a masked model converges more slowly: how much, and in what?", ("13", "15")),
                (30, "the masked-language head is not in our copy", ("13",)),
                (31, "half of the pairs are neighbours, as in the paper", ("14",)),
                (32, "how the 15 % are chosen: the code has more rules", ("13",)),
                (33, "a text that is too long keeps its left part", ("6",)),
                (34, "110 and 340 million parameters, rounded as in the paper", ("12",)),
                (35, "parts are lost in our copy: a table, steps, tasks", ()),
                (36, "41.8 BLEU, where the paper has two figures", ("0",)),
                (37, "scaled embeddings, tied softmax, smoothing, beams left out", ()),
                (38, "the recipe of pre-training is left out", ("4", "15")),
            ),
            (
                (39, "heads by reshape alone, without a transpose", ("1",)),
                (40, "scores and weights get the letters of a query's shape", ("26",)),
                (41, "the weights are transposed; perhaps a misread V", ("7",)),
                (42, "the first linear layer's output has Expand for L in its shape", ("10",)),
                (43, "the second residual connection adds the layer's input", ("11",)),
                (44, "the scale in words: the heads' root, for stability", ("7",)),
                (45, "weights are called scores", ("26",)),
                (46, "two heads are joined in words; the shape has eight", ("8",)),
                (47, "seven steps repeat, embeddings among them", ("26",)),
                (48, "biases, gain, dropout and masks are left out", ("26",)),
            ),
            (
                (49, "attention weights without the scale, as in the paper", ("26",)),
                (50, "3.3 billion tokens, as in the paper; they are words", ("0", "15")),
                (51, "a head's output stops before the output projection", ("8", "17")),
                (52, "weights can be viewed as importance", ("17",)),
                (53, "heads have numbers; from 0 or from 1 is not said", ("17",)),
            ),
            (
                (54, "BERT has sinusoids, says one sentence of two", ("6b",)),
                (55, "input of token and position, without segment", ("26",)),
                (56, "positions tell two sentences apart", ("6",)),
                (57, "RoBERTa has relative positions", ("6b",)),
                (58, "BERT is by Vaswani et al.", ("0",)),
                (59, "Hoffmann studied masked language models", ()),
                (60, "a power law of size, data and compute that has size alone", ()),
                (61, "the loss's power law stands for results on tasks", ()),
                (62, "recurrent networks often overlook meaning", ()),
                (63, "the scale stands outside of the softmax, in our copy", ("7",)),
                (64, "each position is ensured a distinct vector", ("6b",)),
            ),
            (
                (65, "sizes of two models: length, width, heads", ("26",)),
                (66, "the output projection: in three of five", ("8",)),
                (67, "segments: in one of five", ("26",)),
                (68, "positions: learned, fixed, or both", ("26",)),
                (69, "the scale: in four of five", ("26",)),
                (70, "residual connections: three versions", ("26",)),
                (71, "one thing under several names", ("26",)),
            ),
        ),
        strict=True,
    )
    for number, says, chapters in found
)


# --- Layers with random weights ---------------------------------------------------------------------------


def random_tokens(seed: int, length: int = 24, d_model: int = 128) -> np.ndarray:
    """Rows (length, d_model) of mean 0 and variance 1, as LayerNorm leaves them, in float64."""
    x = np.random.default_rng([seed, 1]).standard_normal((length, d_model))
    return (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)


def drawn(rng: np.random.Generator, rows: int, columns: int, sigma: float | None) -> np.ndarray:
    """Weights (rows, columns) of spread sigma, cut at two of it; of spread 1/√rows, uncut, if sigma is None."""
    weights = rng.standard_normal((rows, columns))
    if sigma is None:
        return weights / math.sqrt(rows)
    while (far := np.abs(weights) > 2).any():
        weights[far] = rng.standard_normal(far.sum())
    return sigma * weights


def random_layers(
    seed: int, number: int = 12, sigma: float | None = 0.05, d_model: int = 128, heads: int = 2
) -> list[tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]]:
    """For each of `number` layers its attention and its feed-forward network, (L, d_model) -> (L, d_model), in float64.

    Without LayerNorm, residual connections and biases: those are what a page wires. sigma: the weights are normal with
    this spread, cut at two of it, 0.05 as the reduced model starts; None for uncut ones of spread 1/√n_in, with which a
    matrix keeps the size of what goes through it. The feed-forward network is 4 · d_model wide. Raises ValueError for
    heads that do not divide d_model.
    """
    if d_model % heads:
        raise ValueError(
            f"d_model must be a multiple of the heads, got d_model = {d_model} and heads = {heads}"
        )
    rng = np.random.default_rng([seed, 2])

    def draw(rows: int, columns: int) -> np.ndarray:
        return drawn(rng, rows, columns, sigma)

    def layer() -> Iterator[Callable[[np.ndarray], np.ndarray]]:
        W_Q, W_K, W_V, W_O = (draw(d_model, d_model) for _ in range(4))
        W_1, W_2 = draw(d_model, 4 * d_model), draw(4 * d_model, d_model)

        def attention(x: np.ndarray) -> np.ndarray:
            q, k, v = (
                Tensor((x @ W).reshape(len(x), heads, -1).swapaxes(0, 1).copy()) for W in (W_Q, W_K, W_V)
            )
            z = ops.scaled_dot_product_attention(q, k, v).numpy()  # (h, L, d_k)
            return z.swapaxes(0, 1).reshape(x.shape) @ W_O

        yield attention
        yield lambda x: ops.gelu(Tensor(x @ W_1)).numpy() @ W_2

    return [(attention, feed_forward) for attention, feed_forward in (layer() for _ in range(number))]


# --- The small trained model ------------------------------------------------------------------------------


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
        """The pooler's output C for each of chapter 0's sentences, (12, d_model)."""
        with no_grad():
            return np.concatenate(
                [
                    self.model.bert(np.array([self.tokenizer.encode(text).input_ids])).pooler_output.numpy()
                    for text in SENTENCES
                ]
            )

    def loss(self) -> float:
        """Mean -log p of each word of those sentences, in nats, when it alone is masked."""
        with no_grad():
            losses = [
                hidden.losses(self.model(hidden.inputs).prediction_logits.numpy())
                for hidden in hide_each(self.tokenizer)
            ]
        return float(np.concatenate(losses).mean())
