"""The encoder-decoder Transformer (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import nn, ops
from minigrad.seq2seq import inputs
from minigrad.seq2seq.config import TransformerConfig
from minigrad.seq2seq.masks import decoder_mask, padding_mask
from minigrad.seq2seq.output import Seq2SeqOutput
from minigrad.tensor import Array, Tensor

KeysValues = tuple[Tensor, Tensor]  # K and V of what is looked at, (B, h, S, d_k) each
EPSILON = 1e-5  # of every LayerNorm, PyTorch's; the paper does not say


def sinusoids(length: int, d_model: int, start: int = 0) -> np.ndarray:
    """The vectors of the positions from `start` on: (T, d_model) in float64 (Vaswani et al. 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).
    """
    pos = np.arange(start, start + length)[:, None]  # (T, 1)
    angles = pos / 10000 ** (np.arange(0, d_model, 2) / d_model)  # (T, d_model / 2)
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def linear(d_in: int, d_out: int) -> nn.Linear:
    """A map whose weights are initialised with variance 2 / (d_in + d_out).

    Outputs, and gradients on their way back, are then about as large as what came in (Glorot & Bengio 2010, eq. 12).
    The paper does not give its initialisation; PyTorch's `nn.Transformer` uses this variance too.
    """
    return nn.Linear(d_in, d_out, std=math.sqrt(2 / (d_in + d_out)))


class Embeddings(nn.Module):
    """Words and positions as vectors, and the same table once more for the logits (section 3.4).

    The table's entries are initialised with standard deviation 1 / √d_model. Times √d_model, a word's vector
    is then about as large as a position's, and a LayerNorm's output times the table gives logits with a
    standard deviation of about 1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        self.scale = math.sqrt(config.d_model)
        self.words = nn.Embedding(config.vocab_size, config.d_model, std=1 / self.scale)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: np.ndarray, start: int = 0) -> Tensor:
        """ids (B, T), of which the first is at position `start` -> (B, T, d_model)."""
        words = self.words(ids) * self.scale  # (B, T, d_model)
        positions = sinusoids(ids.shape[1], words.shape[-1], start)  # (T, d_model)
        return self.dropout(words + Tensor(positions, dtype=words.dtype).to(words.backend))

    def logits(self, x: Tensor) -> Tensor:
        """x (B, T, d_model) -> (B, T, V): each row times each word's vector."""
        return ops.linear(x, self.words.weight.T)


class MultiHeadAttention(nn.Module):
    """h heads side by side: Concat(head_1, …, head_h) W^O (section 3.2.2).

    Queries and keys may come from different texts. The paper writes the four maps without a bias; these have
    one, as PyTorch's and BERT's have.
    """

    def __init__(self, config: TransformerConfig) -> None:
        d_model = config.d_model
        self.heads = config.nhead
        self.query, self.key, self.value, self.out = (linear(d_model, d_model) for _ in range(4))

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, h, T, d_k)."""
        batch, length, d_model = x.shape
        x = x.reshape(batch, length, self.heads, d_model // self.heads)  # (B, T, h, d_k)
        return x.permute(0, 2, 1, 3)  # (B, h, T, d_k)

    def keys_values(self, x: Tensor) -> KeysValues:
        """x (B, S, d_model), what is looked at -> its keys and values, (B, h, S, d_k) each."""
        return self.split_heads(self.key(x)), self.split_heads(self.value(x))

    def forward(
        self, x: Tensor, seen: KeysValues, mask: Array | None, output_attentions: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x (B, T, d_model) queries the keys and values `seen`; mask to (B, 1, T, S) is added to the scores.

        -> (B, T, d_model), and the weights (B, h, T, S) where they are asked for. They are computed again, because
        the fused operation keeps its own for the backward pass.
        """
        keys, values = seen
        q = self.split_heads(self.query(x))  # (B, h, T, d_k)
        z = ops.scaled_dot_product_attention(q, keys, values, mask)  # (B, h, T, d_k)
        weights = None
        if output_attentions:
            scores = q @ keys.transpose() * (1 / math.sqrt(q.shape[-1]))  # (B, h, T, S)
            weights = ops.softmax(scores if mask is None else scores + Tensor.wrap(mask))
        return self.out(z.permute(0, 2, 1, 3).reshape(x.shape)), weights


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, for each position alone (section 3.3)."""

    def __init__(self, config: TransformerConfig) -> None:
        self.linear1 = linear(config.d_model, config.dim_feedforward)
        self.linear2 = linear(config.dim_feedforward, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, d_model) -> (B, T, d_model)."""
        return self.linear2(self.linear1(x).relu())


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network; around each LayerNorm(x + dropout(sub-layer(x)))."""

    def __init__(self, config: TransformerConfig) -> None:
        self.self_attn = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.norm1, self.norm2 = (nn.LayerNorm(config.d_model, EPSILON) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, mask: Array | None, output_attentions: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x (B, S, d_model), mask (B, 1, 1, S) -> (B, S, d_model), and weights (B, h, S, S) where asked for."""
        z, weights = self.self_attn(x, self.self_attn.keys_values(x), mask, output_attentions)
        x = self.norm1(x + self.dropout(z))
        x = self.norm2(x + self.dropout(self.feed_forward(x)))
        return x, weights


@dataclass
class DecoderLayerOutput:
    """x (B, T, d_model); the keys and values of all positions up to now; weights (B, h, T, …) where asked for."""

    x: Tensor
    seen: KeysValues
    self_weights: Any  # a Tensor, or None
    cross_weights: Any


class DecoderLayer(nn.Module):
    """Self-attention over the target, attention over the source, the feed-forward network, each with Add & Norm."""

    def __init__(self, config: TransformerConfig) -> None:
        self.self_attn, self.cross_attn = MultiHeadAttention(config), MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(config.d_model, EPSILON) for _ in range(3))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        mask: Array | None,
        source: KeysValues,
        source_mask: Array | None,
        output_attentions: bool = False,
    ) -> DecoderLayerOutput:
        """x (B, T, d_model): T positions of the target, the newest of all that there are.

        past: keys and values (B, h, P, d_k) of the P positions before them, or None if there are none.
        mask: to (B, 1, T, P + T). source, source_mask: keys and values of the encoder's output, and (B, 1, 1, S).
        """
        seen = _append(past, self.self_attn.keys_values(x))  # (B, h, P + T, d_k)
        z, self_weights = self.self_attn(x, seen, mask, output_attentions)
        x = self.norm1(x + self.dropout(z))
        z, cross_weights = self.cross_attn(x, source, source_mask, output_attentions)
        x = self.norm2(x + self.dropout(z))
        x = self.norm3(x + self.dropout(self.feed_forward(x)))
        return DecoderLayerOutput(x, seen, self_weights, cross_weights)


def _append(past: KeysValues | None, newest: KeysValues) -> KeysValues:
    """The keys and values of earlier positions, (B, h, P, d_k), and those of the newest behind them."""
    if past is None:
        return newest
    return ops.concat([past[0], newest[0]], axis=2), ops.concat([past[1], newest[1]], axis=2)


@dataclass
class TransformerMemory:
    """What the decoder needs of the source: states (B, S, d_model), and the mask (B, 1, 1, S) or None."""

    states: Tensor
    mask: Array | None
    attentions: list[Tensor] | None = None  # the encoder's weights, one (B, h, S, S) for each layer


@dataclass
class TransformerState:
    """How far the decoder is: the cache of N rows.

    source: for each layer, keys and values of the source, (N, h, S, d_k). past: for each layer, those of the `length`
    positions that the decoder has read, or None before the first.
    """

    source: list[KeysValues]
    source_mask: Array | None
    past: list[KeysValues | None]
    length: int
    rows: int

    def select(self, rows: np.ndarray) -> TransformerState:
        """The rows that go on, in this order; a row may come more than once. rows (n,) of integers."""
        if np.array_equal(rows, np.arange(self.rows)):
            return self
        return TransformerState(
            [(keys[rows], values[rows]) for keys, values in self.source],
            None if self.source_mask is None else Tensor.wrap(self.source_mask)[rows].data,
            [None if past is None else (past[0][rows], past[1][rows]) for past in self.past],
            self.length,
            len(rows),
        )


class Transformer(nn.Module):
    """The encoder-decoder Transformer: post-LN, sinusoids, one table for source, target and logits."""

    def __init__(self, config: TransformerConfig) -> None:
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        decoder_input_ids: Array | None = None,
        labels: Array | None = None,
        output_attentions: bool = False,
    ) -> Seq2SeqOutput:
        """The scores of each next word of the target, all positions at once (teacher forcing).

        input_ids (B, S), attention_mask (B, S) with 1 for words and 0 for padding, ones by default. labels (B, T)
        with -100 where there is nothing to predict. decoder_input_ids (B, T): the start token and the words before
        each label, by default made of the labels; pad_token_id in it is padding.
        output_attentions: whether to give the attention weights too.

        Raises TypeError for what are not integers, ValueError for other shapes or a mask of other numbers than 1 and
        0, OutsideError (an IndexError and a ValueError) for an id outside the vocabulary.
        """
        memory = self.encode(input_ids, attention_mask, output_attentions)
        batch = len(memory.states)
        decoder_input_ids, labels = inputs.target(self.config, decoder_input_ids, labels, batch)
        mask = decoder_mask(decoder_input_ids != self.config.pad_token_id, memory.states)
        logits, _, layers = self._decode(self.start(memory), decoder_input_ids, mask, output_attentions)
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = ops.cross_entropy(logits, labels, label_smoothing=smoothing)
        if not output_attentions:
            return Seq2SeqOutput(logits, loss)
        return Seq2SeqOutput(
            logits,
            loss,
            cross_attentions=[layer.cross_weights for layer in layers],
            encoder_attentions=memory.attentions,
            decoder_attentions=[layer.self_weights for layer in layers],
        )

    def encode(
        self, input_ids: Array, attention_mask: Array | None = None, output_attentions: bool = False
    ) -> TransformerMemory:
        """The encoder's output for a source, input_ids (B, S) and attention_mask (B, S). Raises as `forward` does."""
        input_ids, attention_mask = inputs.source(self.config, input_ids, attention_mask)
        x = self.embeddings(input_ids)  # (B, S, d_model)
        mask = padding_mask(attention_mask, x)  # (B, 1, 1, S)
        attentions = []
        for layer in self.encoder:
            x, weights = layer(x, mask, output_attentions)
            attentions.append(weights)
        return TransformerMemory(x, mask, attentions if output_attentions else None)

    def start(self, memory: TransformerMemory) -> TransformerState:
        """The decoder before its first word: the source's keys and values of each layer, computed once."""
        layers: Any = self.decoder
        source = [layer.cross_attn.keys_values(memory.states) for layer in layers]
        return TransformerState(source, memory.mask, [None] * len(source), 0, len(memory.states))

    def step(self, state: TransformerState, last_ids: Array) -> tuple[Tensor, TransformerState]:
        """One word further: last_ids (N,), the start token at first -> logits of the next word (N, V), and the state.

        Only the newest position is computed. It sees all before it, so it needs no mask.
        """
        ids = inputs.last_words(self.config, last_ids, state.rows)[:, None]  # (N, 1)
        logits, state, _ = self._decode(state, ids, None, False)
        return logits[:, 0], state

    def _decode(
        self, state: TransformerState, ids: np.ndarray, mask: Array | None, output_attentions: bool
    ) -> tuple[Tensor, TransformerState, list[DecoderLayerOutput]]:
        """ids (B, T) of the target after what the state has read -> logits (B, T, V), and the state behind them."""
        x = self.embeddings(ids, state.length)  # (B, T, d_model)
        layers: list[DecoderLayerOutput] = []
        for layer, past, source in zip(self.decoder, state.past, state.source, strict=True):
            layers.append(layer(x, past, mask, source, state.source_mask, output_attentions))
            x = layers[-1].x
        after = TransformerState(
            state.source,
            state.source_mask,
            [layer.seen for layer in layers],
            state.length + ids.shape[1],
            state.rows,
        )
        return self.embeddings.logits(x), after, layers
