"""BertModel and BertForPreTraining: the parts, assembled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from minigrad import backend, nn, ops
from minigrad.bert.attention import additive_mask
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.embeddings import BertEmbeddings
from minigrad.bert.encoder import BertEncoder
from minigrad.bert.heads import BertPooler, BertPreTrainingHeads
from minigrad.tensor import Array, Tensor


class OutsideError(IndexError, ValueError):
    """An id that is outside its table."""


@dataclass
class BertModelOutput:
    """What BertModel computes.

    last_hidden_state: (B, T, H), or (n, H) where n rows were asked for. pooler_output: (B, H), or None from a model
    without a pooler. hidden_states: the N + 1 tensors (B, T, H) that went into and came out of each layer, the last
    one as that layer left it.
    attentions: the weights of each layer's heads, N tensors (B, A, T, T), or None where they were not asked for.
    """

    last_hidden_state: Tensor
    pooler_output: Tensor | None
    hidden_states: list[Tensor]
    attentions: list[Tensor] | None = None


@dataclass
class BertPreTrainingOutput:
    """What BertForPreTraining computes.

    prediction_logits: (B, T, V), or (n_chosen, V) with labels. seq_relationship_logits: (B, 2). mlm_loss, nsp_loss:
    None without their labels. loss: the sum of those that are there.
    """

    prediction_logits: Tensor
    seq_relationship_logits: Tensor
    loss: Tensor | None = None
    mlm_loss: Tensor | None = None
    nsp_loss: Tensor | None = None


def integers(
    name: str,
    values: ArrayLike,
    shape: tuple[int, ...] | None = None,
    limit: int | None = None,
    ignored: int | None = None,
    unread: bool = False,
) -> np.ndarray:
    """`values` as integers on the host, of `shape`, each in 0 … limit - 1 or `ignored`.

    unread: those that are on a GPU stay there, and are not looked at, because that would wait for it.

    Raises TypeError, ValueError or OutsideError naming what came, and the first value that is outside.
    """
    if isinstance(values, Tensor):
        raise TypeError(f"{name}: expected an array of integers, got a Tensor (which holds floats)")
    array: Any = values if unread and backend.is_array(values) else backend.to_numpy(values)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name}: expected integers, got dtype {array.dtype}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    if limit is not None and backend.on_host(array):
        outside = (array < 0) | (array >= limit)
        if ignored is not None:
            outside &= array != ignored
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            raise OutsideError(f"{name}: {array[place]} at {place} is outside 0 … {limit - 1}")
    return array


def checked_mask(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """`values`, of `shape`, with nothing but 1 (or True) and 0 in it: -10,000 would count as a token.

    Raises TypeError or ValueError naming what came and what is expected.
    """
    expected = "attention_mask: expected 1 for a token and 0 for padding, as integers or booleans"
    dtype = getattr(values, "dtype", None)
    if not isinstance(values, Tensor) and getattr(dtype, "kind", "") == "f":
        raise TypeError(f"{expected}, got {dtype}; the model itself makes what is added to the scores")
    array = integers("attention_mask", values, shape, unread=True)
    if backend.on_host(array) and (other := (array != 0) & (array != 1)).any():
        place = tuple(int(i) for i in np.argwhere(other)[0])
        raise ValueError(f"{expected}, got {array[place]} at {place}")
    return array


class BertModel(nn.Module):
    """Embeddings, encoder and pooler (Devlin et al. 2019, section 3).

    add_pooling_layer: whether there is a pooler; models that look at each token have none.
    """

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.pooler: Any = BertPooler(config) if add_pooling_layer else None

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        rows: Array | None = None,
        output_attentions: bool = False,
    ) -> BertModelOutput:
        """The vectors of the tokens, and one for each sequence.

        input_ids (B, T); attention_mask (B, T), 1 for tokens and 0 for padding, all ones by default;
        token_type_ids (B, T), zeros by default.
        rows (n,): which of the B T tokens are wanted, counted sequence by sequence. last_hidden_state is then
        (n, H), and the last layer leaves out the work for all others but [CLS].
        output_attentions: whether to give the attention weights too, before dropout.

        Raises ValueError for other shapes, more than max_position_embeddings tokens, or a mask of other numbers than
        0 and 1; TypeError for ids that are not integers; OutsideError (an IndexError and a ValueError) for an id
        outside its table. Numbers that lie on a GPU already are not looked at.
        """
        input_ids = integers("input_ids", input_ids, limit=self.config.vocab_size, unread=True)
        if input_ids.ndim != 2 or not input_ids.size:
            raise ValueError(f"input_ids: expected shape (batch, length), got {input_ids.shape}")
        batch, length = shape = input_ids.shape
        if length > self.config.max_position_embeddings:
            raise ValueError(
                f"input_ids: {length} tokens are more than the {self.config.max_position_embeddings} "
                "positions of this model; truncate the text"
            )
        if token_type_ids is None:
            token_type_ids = np.zeros(shape, np.int64)
        types = self.config.type_vocab_size
        token_type_ids = integers("token_type_ids", token_type_ids, shape, types, unread=True)
        if attention_mask is not None:
            attention_mask = checked_mask(attention_mask, shape)

        x = self.embeddings(input_ids, token_type_ids)  # (B, T, H)
        mask = None if attention_mask is None else additive_mask(attention_mask, x)
        if rows is None:
            hidden_states = self.encoder(x, mask)
            last = hidden_states[-1]  # (B, T, H)
            first = last[:, 0]  # (B, H): [CLS] of each sequence
        else:
            xp = backend.of(rows).xp
            hidden_states = self.encoder(x, mask, xp.concatenate([xp.arange(batch) * length, rows]))
            first, last = hidden_states[-1][:batch], hidden_states[-1][batch:]  # (B, H), (n, H)
        attentions = None
        if output_attentions:
            layers: Any = self.encoder.layer
            inputs = hidden_states[:-1]
            attentions = [
                layer.attention.self.weights(states, mask)
                for layer, states in zip(layers, inputs, strict=True)
            ]
        pooled = None if self.pooler is None else self.pooler(first)
        return BertModelOutput(last, pooled, hidden_states, attentions)


class BertForPreTraining(nn.Module):
    """BERT with both heads of pre-training (Devlin et al. 2019, section 3.1)."""

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
        masked_lm_positions: Array | None = None,
    ) -> BertPreTrainingOutput:
        """Predict masked tokens and whether B follows A.

        input_ids, attention_mask, token_type_ids: as BertModel takes them. labels (B, T): the true id where a
        position was chosen, -100 elsewhere. next_sentence_label (B,): 0 if B is next, 1 if it is random.
        masked_lm_positions (n_chosen,): where labels is (n_chosen,) too, which of the B T tokens these are
        (`data.pack_chosen`).

        Without labels, prediction_logits is (B, T, V). With them, the last layer goes on with the n_chosen chosen
        positions and [CLS] alone, all that the losses read, and prediction_logits is (n_chosen, V), in row-major
        order. Raises as BertModel does, and ValueError if no label counts; with masked_lm_positions nobody looks.
        """
        # BertModel checks the ids themselves
        shape = input_ids.shape if backend.is_array(input_ids) else np.shape(input_ids)
        rows, targets = masked_lm_positions, labels
        if labels is not None and rows is None:
            labels = integers("labels", labels, shape, self.config.vocab_size, IGNORED)
            rows = np.flatnonzero(labels != IGNORED)  # (n_chosen,)
            if not rows.size:
                raise ValueError(f"labels: every label is {IGNORED}, there is nothing to predict")
            targets = labels.reshape(-1)[rows]
        if next_sentence_label is not None:
            next_sentence_label = integers(
                "next_sentence_label", next_sentence_label, shape[:1], limit=2, unread=True
            )

        output = self.bert(input_ids, attention_mask, token_type_ids, rows)
        prediction_logits, seq_relationship_logits = self.cls(
            output.last_hidden_state, output.pooler_output, self.bert.embeddings.word_embeddings.weight
        )
        losses = []
        mlm_loss = nsp_loss = None
        if targets is not None:
            losses.append(mlm_loss := ops.cross_entropy(prediction_logits, targets))
        if next_sentence_label is not None:
            losses.append(nsp_loss := ops.cross_entropy(seq_relationship_logits, next_sentence_label))
        loss = losses[0] + losses[1] if len(losses) == 2 else losses[0] if losses else None
        return BertPreTrainingOutput(prediction_logits, seq_relationship_logits, loss, mlm_loss, nsp_loss)


def parameter_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of BertForPreTraining by its name, without the memory for them."""
    return nn.parameter_shapes(lambda: BertForPreTraining(config))
