"""BERT with a head for a task: a class for a text, a class for each token, an answer in a text.

One linear layer follows the encoder, and both are trained (Devlin et al. 2019, sections 4 and 5). Names,
arguments and outputs are those of Hugging Face's classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minigrad import backend, nn, ops
from minigrad.bert.config import IGNORED, BertConfig, label_names
from minigrad.bert.model import BertModel, integers
from minigrad.tensor import Array, Tensor


@dataclass
class SequenceClassifierOutput:
    """What BertForSequenceClassification computes: logits (B, num_labels), and the loss if there were labels."""

    logits: Tensor
    loss: Tensor | None = None


@dataclass
class TokenClassifierOutput:
    """What BertForTokenClassification computes: logits (B, T, num_labels), and the loss if there were labels."""

    logits: Tensor
    loss: Tensor | None = None


@dataclass
class QuestionAnsweringModelOutput:
    """What BertForQuestionAnswering computes: start_logits, end_logits (B, T), and the loss if there were positions."""

    start_logits: Tensor
    end_logits: Tensor
    loss: Tensor | None = None


def _with_labels(config: BertConfig, num_labels: int | None, at_least: int) -> BertConfig:
    """The config with as many classes. Raises ValueError for fewer than there must be."""
    count = config.num_labels if num_labels is None else num_labels
    if count < at_least:
        raise ValueError(f"num_labels must be at least {at_least}, got {count}")
    return config if count == config.num_labels else config.replace(id2label=label_names(count))


def _numbers(labels: Array, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers to learn. Raises ValueError naming what came, and the first that is not finite."""
    numbers = backend.to_numpy(labels)
    if numbers.dtype.kind not in "iuf" or numbers.shape != shape:
        raise ValueError(f"labels: expected numbers of shape {shape}, got {numbers.dtype} of {numbers.shape}")
    if not (finite := np.isfinite(numbers)).all():
        place = int(finite.argmin())
        raise ValueError(f"labels: {numbers[place]} at {place} is not finite")
    return numbers


class BertForSequenceClassification(nn.Module):
    """BERT and a classifier on the pooler's vector: a class of a text, or of a pair of texts, or a number for it.

    num_labels: how many classes; by default those that `config.id2label` names. One means that the one score is the
    number. Raises ValueError for none.
    """

    def __init__(self, config: BertConfig, num_labels: int | None = None) -> None:
        self.config = config = _with_labels(config, num_labels, at_least=1)
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels, std=config.initializer_range)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        labels: Array | None = None,
    ) -> SequenceClassifierOutput:
        """Scores of the classes, and their cross-entropy in nats, the mean over the batch.

        input_ids, attention_mask, token_type_ids: as BertModel takes them. labels (B,): the class of each sequence, or
        -100 where it does not count. With num_labels = 1 a number for each, and the loss is the mean squared error.
        Raises as BertModel does, and ValueError if no label counts, or a number is not finite.
        """
        is_number = self.config.num_labels == 1
        if labels is not None and is_number:
            labels = _numbers(labels, np.shape(input_ids)[:1])
        elif labels is not None:
            labels = integers("labels", labels, np.shape(input_ids)[:1], self.config.num_labels, IGNORED)
        output = self.bert(input_ids, attention_mask, token_type_ids, rows=np.zeros(0, np.int64))
        logits = self.classifier(self.dropout(output.pooler_output))  # (B, num_labels)
        if labels is None:
            loss = None
        elif is_number:
            scores = logits[:, 0]  # (B,)
            targets = backend.of(scores.data).asarray(labels, dtype=scores.dtype)
            loss = ((scores - Tensor.wrap(targets)) ** 2).mean()
        else:
            loss = ops.cross_entropy(logits, labels)
        return SequenceClassifierOutput(logits, loss)


class BertForTokenClassification(nn.Module):
    """BERT and a classifier on the vector of each token: tags of words.

    num_labels: how many classes; by default those that `config.id2label` names. Raises ValueError for fewer than two.
    """

    def __init__(self, config: BertConfig, num_labels: int | None = None) -> None:
        self.config = config = _with_labels(config, num_labels, at_least=2)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels, std=config.initializer_range)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        labels: Array | None = None,
    ) -> TokenClassifierOutput:
        """Scores of the classes for each token, and their cross-entropy in nats, the mean over the labels that count.

        input_ids, attention_mask, token_type_ids: as BertModel takes them. labels (B, T): the class of each token, or
        -100 where it does not count. Raises as BertModel does, and ValueError if no label counts.
        """
        if labels is not None:
            labels = integers("labels", labels, np.shape(input_ids), self.config.num_labels, IGNORED)
        output = self.bert(input_ids, attention_mask, token_type_ids)
        logits = self.classifier(self.dropout(output.last_hidden_state))  # (B, T, num_labels)
        loss = None if labels is None else ops.cross_entropy(logits, labels)
        return TokenClassifierOutput(logits, loss)


class BertForQuestionAnswering(nn.Module):
    """BERT and two scores for each token: how well the answer starts there, and how well it ends there."""

    def __init__(self, config: BertConfig) -> None:
        self.config = config
        self.bert = BertModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2, std=config.initializer_range)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        token_type_ids: Array | None = None,
        start_positions: Array | None = None,
        end_positions: Array | None = None,
    ) -> QuestionAnsweringModelOutput:
        """Scores of each token as start and as end; with both positions, the mean of the two cross-entropies in nats.

        input_ids, attention_mask, token_type_ids: as BertModel takes them. start_positions, end_positions (B,): the
        answer's first and last token. A position of T or more is outside of the input, and does not count;
        one below 0 is taken as 0, as in Hugging Face's class. Raises as BertModel does, and ValueError if no
        position counts.
        """
        shape = np.shape(input_ids)
        if start_positions is not None:
            start_positions = integers("start_positions", start_positions, shape[:1])
        if end_positions is not None:
            end_positions = integers("end_positions", end_positions, shape[:1])
        output = self.bert(input_ids, attention_mask, token_type_ids)
        logits = self.qa_outputs(output.last_hidden_state)  # (B, T, 2)
        start_logits, end_logits = logits[:, :, 0], logits[:, :, 1]  # (B, T)
        loss = None
        if start_positions is not None and end_positions is not None:
            outside = shape[1]
            losses = [
                ops.cross_entropy(scores, np.clip(positions, 0, outside), ignore_index=outside)
                for scores, positions in ((start_logits, start_positions), (end_logits, end_positions))
            ]
            loss = (losses[0] + losses[1]) * 0.5
        return QuestionAnsweringModelOutput(start_logits, end_logits, loss)


TaskModel = BertForSequenceClassification | BertForTokenClassification | BertForQuestionAnswering
