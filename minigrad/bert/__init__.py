"""BERT, one file per part; what most users need is here."""

from minigrad.bert.checkpoint import from_pretrained, save_pretrained
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.model import BertForPreTraining, BertModel, parameter_shapes
from minigrad.bert.predict import fill_mask, next_sentence
from minigrad.bert.sentence_vectors import embed, mean_pool
from minigrad.bert.tasks import (
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import train_wordpiece

__all__ = [
    "PRESETS",
    "BertConfig",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertModel",
    "WordPieceTokenizer",
    "embed",
    "fill_mask",
    "from_pretrained",
    "mean_pool",
    "next_sentence",
    "parameter_shapes",
    "save_pretrained",
    "train_wordpiece",
]
