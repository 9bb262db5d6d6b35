"""Recurrent encoder and decoder, without or with attention over the encoder's states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import nn, ops
from minigrad.seq2seq import inputs
from minigrad.seq2seq.config import RecurrentConfig
from minigrad.seq2seq.masks import padding_mask
from minigrad.seq2seq.output import Seq2SeqOutput
from minigrad.seq2seq.scores import SCORES
from minigrad.tensor import Array, Tensor

Hidden = tuple[Tensor, ...]  # a network's state, (num_layers, B, H) each: h, of an LSTM h and c

NETWORKS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def run(
    network: nn.Module, x: Tensor, hidden: Hidden | None, lengths: np.ndarray | None = None
) -> tuple[Tensor, Hidden]:
    """x (B, T, H) through a network -> its outputs, and its state as a tuple, whichever cell it has."""
    first = hidden[0] if hidden is not None and len(hidden) == 1 else hidden
    outputs, last = network(x, first, lengths)
    return outputs, last if isinstance(last, tuple) else (last,)


def linear(d_in: int, d_out: int, bias: bool = True) -> nn.Linear:
    """A map whose outputs start about as large as its inputs: a standard deviation of 1 / √d_in."""
    return nn.Linear(d_in, d_out, bias, std=1 / math.sqrt(d_in))


def embedding(config: RecurrentConfig) -> nn.Embedding:
    """A vector for each word; a standard deviation of 1, as PyTorch's, so that words reach the gates at first."""
    return nn.Embedding(config.vocab_size, config.hidden_size, std=1.0)


def network(config: RecurrentConfig, bidirectional: bool = False) -> Any:
    """The layers of encoder or decoder, with dropout between them."""
    size, layers = config.hidden_size, config.num_layers
    dropout = config.dropout if layers > 1 else 0.0
    return NETWORKS[config.cell](size, size, layers, bidirectional, dropout)


class RecurrentEncoder(nn.Module):
    """Reads the source: a state for each word, and the last state, in which all of it has to fit.

    With both directions there are two states of length H for each word, and two last ones. A linear map makes
    one state of two; an LSTM's cells have a map of their own.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        size = config.hidden_size
        self.words, self.dropout = embedding(config), nn.Dropout(config.dropout)
        self.network = network(config, config.bidirectional)
        parts = (2 if config.cell == "lstm" else 1) if config.bidirectional else 0
        self.joins = nn.ModuleList(linear(2 * size, size) for _ in range(parts))  # of h, and of c

    def forward(self, input_ids: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, Hidden]:
        """input_ids (B, S), lengths (B,) -> states (B, S, H), and the last ones, (num_layers, B, H) each."""
        states, last = run(self.network, self.dropout(self.words(input_ids)), None, lengths)
        if len(self.joins):
            states = self.joins[0](states)  # (B, S, 2 H) -> (B, S, H)
            last = tuple(
                join(ops.concat([part[0::2], part[1::2]], axis=-1))  # (num_layers, B, H)
                for join, part in zip(self.joins, last, strict=True)
            )
        return states, last


class Attention(nn.Module):
    """The decoder's look at the source (Luong et al. 2015, section 3.1 and equation 5), without input feeding.

    a_t = softmax(score(h_t, h_s)) over all words s of the source, c_t = Σ_s a_t(s) h_s, h̃_t = tanh(W_c [c_t; h_t]).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        size = config.hidden_size
        self.score = SCORES[config.attention](size)
        self.W_c = linear(2 * size, size, bias=False)

    def forward(self, h: Tensor, keys: Tensor, states: Tensor, mask: Array | None) -> tuple[Tensor, Tensor]:
        """h (B, T, H) of the decoder; keys, states (B, S, H) of the encoder; mask (B, 1, S), added to the scores.

        -> h̃ (B, T, H) and the weights (B, T, S).
        """
        scores = self.score.compare(h, keys)  # (B, T, S)
        weights = ops.softmax(scores if mask is None else scores + Tensor.wrap(mask))
        context = weights @ states  # (B, T, H)
        return self.W_c(ops.concat([context, h], axis=-1)).tanh(), weights


class RecurrentDecoder(nn.Module):
    """Writes the target: its network goes from word to word, and each state gives the logits of the next word."""

    def __init__(self, config: RecurrentConfig) -> None:
        size = config.hidden_size
        self.words, self.dropout = embedding(config), nn.Dropout(config.dropout)
        self.network = network(config)
        self.attention = None if config.attention == "none" else Attention(config)
        self.out = linear(size, config.vocab_size)

    def forward(self, ids: np.ndarray, state: RecurrentState) -> tuple[Tensor, RecurrentState, Tensor | None]:
        """ids (B, T) of the target after what the state has read -> logits (B, T, V), the state after them, and the
        weights (B, T, S) of a decoder with attention."""
        memory, weights = state.memory, None
        h, hidden = run(self.network, self.dropout(self.words(ids)), state.hidden)  # (B, T, H)
        if self.attention is not None:
            h, weights = self.attention(h, memory.keys, memory.states, memory.mask)  # (B, T, H)
        return self.out(self.dropout(h)), RecurrentState(hidden, memory), weights


@dataclass
class RecurrentMemory:
    """What the decoder needs of the source: the encoder's last state, with which it begins; and for attention alone
    all states (B, S, H), their keys (B, S, H) for the scores, and the mask (B, 1, S) or None."""

    last: Hidden
    states: Tensor | None = None
    keys: Tensor | None = None
    mask: Array | None = None

    def select(self, rows: np.ndarray) -> RecurrentMemory:
        """The rows that go on, in this order."""
        return RecurrentMemory(
            tuple(part[:, rows] for part in self.last),
            None if self.states is None else self.states[rows],
            None if self.keys is None else self.keys[rows],
            None if self.mask is None else Tensor.wrap(self.mask)[rows].data,
        )


@dataclass
class RecurrentState:
    """How far the decoder is with N rows: its network's state, (num_layers, N, H) each, and the source's memory."""

    hidden: Hidden
    memory: RecurrentMemory

    def select(self, rows: np.ndarray) -> RecurrentState:
        """The rows that go on, in this order; a row may come more than once. rows (n,) of integers."""
        if np.array_equal(rows, np.arange(self.hidden[0].shape[1])):
            return self
        return RecurrentState(tuple(part[:, rows] for part in self.hidden), self.memory.select(rows))


class RecurrentSeq2Seq(nn.Module):
    """Recurrent encoder and decoder (Sutskever et al. 2014); with config.attention, as in Luong et al. (2015).

    The encoder's last state is the decoder's first. That is all that a decoder without attention knows of the source.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        self.config = config
        self.encoder = RecurrentEncoder(config)
        self.decoder = RecurrentDecoder(config)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        decoder_input_ids: Array | None = None,
        labels: Array | None = None,
        output_attentions: bool = False,
    ) -> Seq2SeqOutput:
        """The scores of each next word of the target, given the true words before it (teacher forcing).

        input_ids (B, S), attention_mask (B, S) with 1 for words and 0 for padding on the right, ones by default.
        labels (B, T) with -100 where there is nothing to predict. decoder_input_ids (B, T): the start token and the
        words before each label, by default made of the labels. output_attentions: whether to give the weights too.

        Raises TypeError for what are not integers, ValueError for other shapes or another mask, OutsideError (an
        IndexError and a ValueError) for an id outside the vocabulary.
        """
        memory = self.encode(input_ids, attention_mask)
        batch = memory.last[0].shape[1]
        decoder_input_ids, labels = inputs.target(self.config, decoder_input_ids, labels, batch)
        logits, _, weights = self.decoder(decoder_input_ids, self.start(memory))
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = ops.cross_entropy(logits, labels, label_smoothing=smoothing)
        shown = [weights] if output_attentions and weights is not None else None
        return Seq2SeqOutput(logits, loss, cross_attentions=shown)

    def encode(self, input_ids: Array, attention_mask: Array | None = None) -> RecurrentMemory:
        """What the decoder needs of a source, input_ids (B, S) and attention_mask (B, S). Raises as `forward` does."""
        input_ids, attention_mask = inputs.source(self.config, input_ids, attention_mask)
        states, last = self.encoder(input_ids, inputs.lengths(attention_mask))
        attention = self.decoder.attention
        if attention is None:
            return RecurrentMemory(last)
        mask = padding_mask(attention_mask, states)  # (B, 1, 1, S)
        return RecurrentMemory(
            last, states, attention.score.keys(states), None if mask is None else mask[:, 0]
        )

    def start(self, memory: RecurrentMemory) -> RecurrentState:
        """The decoder before its first word."""
        return RecurrentState(memory.last, memory)

    def step(self, state: RecurrentState, last_ids: Array) -> tuple[Tensor, RecurrentState]:
        """One word further: last_ids (N,), the start token at first -> the next word's logits (N, V), and the state."""
        ids = inputs.last_words(self.config, last_ids, state.hidden[0].shape[1])[:, None]  # (N, 1)
        logits, state, _ = self.decoder(ids, state)
        return logits[:, 0], state
