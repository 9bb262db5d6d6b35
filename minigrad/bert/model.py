"""BertModel and BertForPreTraining: the parts, assembled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import backend, nn, ops
from minigrad.bert.attention import attention_bias
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.embeddings import BertEmbeddings
from minigrad.bert.encoder import BertEncoder
from minigrad.bert.heads import BertPooler, BertPreTrainingHeads
from minigrad.tensor import Array, Tensor

__all__ = ["BertForPreTraining", "BertModel", "BertModelOutput", "BertPreTrainingOutput", "OutsideError"]


class OutsideError(IndexError, ValueError):
    """An id that is outside its table."""


@dataclass
class BertModelOutput:
    """last_hidden_state (B, T, H), or (n, H) if only n tokens are read; pooler_output (B, H); hidden_states,
    the L + 1 tensors (B, T, H) that went into and came out of each layer (the last as the layer left it)."""

    last_hidden_state: Tensor
    pooler_output: Tensor
    hidden_states: list[Tensor]


@dataclass
class BertPreTrainingOutput:
    """prediction_logits (B, T, V), or (n_chosen, V) with labels; seq_relationship_logits (B, 2).

    loss is the sum of mlm_loss and nsp_loss, of those whose labels were given; each None without.
    """

    prediction_logits: Tensor
    seq_relationship_logits: Tensor
    loss: Tensor | None = None
    mlm_loss: Tensor | None = None
    nsp_loss: Tensor | None = None


def _integers(name: str, values: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """`values` as integers on the host. Raises TypeError or ValueError naming what came."""
    if isinstance(values, Tensor):
        raise TypeError(f"{name}: expected an array of integers, got a Tensor (which holds floats)")
    array = backend.to_numpy(values)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name}: expected integers, got dtype {array.dtype}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def _within(name: str, values: np.ndarray, limit: int, allowed: int | None = None) -> None:
    """Raise OutsideError at the first value that is neither in 0 … limit - 1 nor `allowed`."""
    outside = (values < 0) | (values >= limit)
    if allowed is not None:
        outside &= values != allowed
    if outside.any():
        place = tuple(int(i) for i in np.argwhere(outside)[0])
        raise OutsideError(f"{name}: {values[place]} at {place} is outside 0 … {limit - 1}")


class BertModel(nn.Module):
    """Embeddings, encoder and pooler (Devlin et al. 2019, section 3)."""

    def __init__(self, config: BertConfig) -> None:
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.pooler = BertPooler(config)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        read: Array | None = None,
    ) -> BertModelOutput:
        """input_ids (B, T); attention_mask (B, T), 1 for tokens and 0 for padding, all ones by default;
        token_type_ids (B, T), zeros by default.

        read (n,): which of the B T tokens the caller will read, counted row by row. last_hidden_state is then
        (n, H), and the last layer leaves out the work for all others but [CLS].

        Raises ValueError for other shapes or more than max_position_embeddings tokens, TypeError for ids that
        are not integers, OutsideError (an IndexError and a ValueError) for an id outside its table.
        """
        config = self.config
        input_ids = _integers("input_ids", input_ids)
        if input_ids.ndim != 2 or not input_ids.size:
            raise ValueError(f"input_ids: expected shape (batch, length), got {input_ids.shape}")
        shape = input_ids.shape
        if shape[1] > config.max_position_embeddings:
            raise ValueError(
                f"input_ids: {shape[1]} tokens are more than the {config.max_position_embeddings} "
                "positions of this model; truncate the text"
            )
        _within("input_ids", input_ids, config.vocab_size)
        if token_type_ids is None:
            token_type_ids = np.zeros(shape, np.int64)
        token_type_ids = _integers("token_type_ids", token_type_ids, shape)
        _within("token_type_ids", token_type_ids, config.type_vocab_size)
        weight = self.embeddings.word_embeddings.weight.data
        kernels = backend.of(weight)
        bias = None
        if attention_mask is not None:
            mask = _integers("attention_mask", attention_mask, shape)
            if not mask.all():
                bias = kernels.asarray(attention_bias(mask, weight.dtype))  # moved once, not in each layer
        x = self.embeddings(input_ids, token_type_ids)
        if read is None:
            states = self.encoder(x, bias)
            return BertModelOutput(states[-1], self.pooler(states[-1]), states)
        batch, length = shape
        first = np.arange(batch) * length  # [CLS] of each sequence
        states = self.encoder(x, bias, np.concatenate([first, read]))
        last = states[-1]  # (B + n, H)
        return BertModelOutput(last[batch:], self.pooler(last[:batch].unsqueeze(1)), states)


class BertForPreTraining(nn.Module):
    """BERT with both heads of pre-training (Devlin et al. 2019, section 3.1)."""

    # With labels, whether the last layer leaves out what no loss reads: the same loss and gradients for less
    # work. False is for measuring how much.
    skip_unread = True

    def __init__(self, config: BertConfig) -> None:
        self.config = config
        self.bert = BertModel(config)
        self.cls = BertPreTrainingHeads(config)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        labels: Array | None = None,
        next_sentence_label: Array | None = None,
    ) -> BertPreTrainingOutput:
        """Predict masked tokens and whether B follows A.

        input_ids, attention_mask, token_type_ids: as BertModel takes them. labels (B, T): the true id where
        a position was chosen, -100 elsewhere. next_sentence_label (B,): 0 if B is next, 1 if it is random.

        Without labels, prediction_logits is (B, T, V); with them, only the n_chosen chosen positions are
        projected on the vocabulary, in row-major order. Raises as BertModel does, and ValueError if no label
        counts.
        """
        input_ids = _integers("input_ids", input_ids)
        targets: np.ndarray | None = None
        if labels is not None:
            labels = _integers("labels", labels, input_ids.shape)
            _within("labels", labels, self.config.vocab_size, IGNORED)
            chosen = np.flatnonzero(labels != IGNORED)
            if not chosen.size:
                raise ValueError(f"labels: every label is {IGNORED}, there is nothing to predict")
            targets = labels.reshape(-1)[chosen]
        if next_sentence_label is not None:
            next_sentence_label = _integers("next_sentence_label", next_sentence_label, input_ids.shape[:1])
            _within("next_sentence_label", next_sentence_label, 2)

        read = chosen if targets is not None and self.skip_unread else None
        output = self.bert(input_ids, attention_mask, token_type_ids, read)
        x = output.last_hidden_state  # (B, T, H), or (n_chosen, H) of those read
        if targets is not None and read is None:
            x = x.reshape(-1, self.config.hidden_size)[chosen]  # (n_chosen, H)
        word_embeddings = self.bert.embeddings.word_embeddings.weight
        prediction_logits, seq_relationship_logits = self.cls(x, output.pooler_output, word_embeddings)

        losses = []
        mlm_loss = nsp_loss = None
        if targets is not None:
            losses.append(mlm_loss := ops.cross_entropy(prediction_logits, targets))
        if next_sentence_label is not None:
            losses.append(nsp_loss := ops.cross_entropy(seq_relationship_logits, next_sentence_label))
        loss = losses[0] + losses[1] if len(losses) == 2 else losses[0] if losses else None
        return BertPreTrainingOutput(prediction_logits, seq_relationship_logits, loss, mlm_loss, nsp_loss)
