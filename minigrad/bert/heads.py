"""What is on top of the encoder: the pooler, and the two heads of pre-training."""

from __future__ import annotations

from minigrad import nn, ops
from minigrad.bert.config import ACTIVATIONS, BertConfig
from minigrad.nn import Parameter
from minigrad.nn.initial import constant
from minigrad.tensor import Tensor


class BertPooler(nn.Module):
    """The vector of the whole input: tanh(W x + b) of the first token, [CLS] (in the released code only)."""

    def __init__(self, config: BertConfig) -> None:
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, std=config.initializer_range)

    def forward(self, first: Tensor) -> Tensor:
        """first (B, H), the encoder's output for [CLS] -> (B, H). Raises ValueError if it has not two axes."""
        if first.ndim != 2:
            size = len(self.dense.weight)
            raise ValueError(f"pooler: expected the rows of [CLS], (B, {size}), got {first.shape}")
        return self.dense(first).tanh()


class BertPredictionHeadTransform(nn.Module):
    """Dense, GELU and LayerNorm before the vocabulary projection (released code, `get_masked_lm_output`)."""

    def __init__(self, config: BertConfig) -> None:
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, std=config.initializer_range)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """x (…, H) -> (…, H)."""
        return self.LayerNorm(getattr(ops, self.activation)(self.dense(x)))


class BertLMPredictionHead(nn.Module):
    """Scores over the vocabulary: the decoder's weight is the token table (tied), with a bias of its own."""

    def __init__(self, config: BertConfig) -> None:
        self.transform = BertPredictionHeadTransform(config)
        self.bias = Parameter(constant((config.vocab_size,), 0.0))

    def forward(self, x: Tensor, word_embeddings: Tensor) -> Tensor:
        """x (…, H), word_embeddings (V, H) -> (…, V)."""
        return ops.linear(self.transform(x), word_embeddings.T, self.bias)


class BertPreTrainingHeads(nn.Module):
    """The masked language model's head and next-sentence prediction's (Devlin et al. 2019, section 3.1)."""

    def __init__(self, config: BertConfig) -> None:
        self.predictions = BertLMPredictionHead(config)
        self.seq_relationship = nn.Linear(config.hidden_size, 2, std=config.initializer_range)

    def forward(self, x: Tensor, pooled: Tensor, word_embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """x (…, H), pooled (B, H), word_embeddings (V, H) -> (…, V) and (B, 2); class 0 is IsNext."""
        return self.predictions(x, word_embeddings), self.seq_relationship(pooled)
