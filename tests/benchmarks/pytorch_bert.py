"""The BERT of `minigrad.bert` from PyTorch's own layers: what benchmarks compare with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minigrad.bert.config import BertConfig


class TorchLayer(nn.Module):
    """One post-LN encoder layer."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.heads, self.attention_p = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.attention_output = nn.Linear(size, size)
        self.attention_norm = nn.LayerNorm(size, config.layer_norm_eps)
        self.inner = nn.Linear(size, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, size)
        self.output_norm = nn.LayerNorm(size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def split(self, x: Tensor) -> Tensor:
        """(B, T, H) -> (B, A, T, d_k)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x (B, T, H) -> (B, T, H)."""
        p = self.attention_p if self.training else 0.0
        z = F.scaled_dot_product_attention(
            self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)), bias, p
        )
        z = z.transpose(1, 2).flatten(2)
        x = self.attention_norm(x + self.dropout(self.attention_output(z)))
        return self.output_norm(x + self.dropout(self.outer(F.gelu(self.inner(x)))))


class TorchBert(nn.Module):
    """BERT with both pre-training heads; the chosen positions alone go through the vocabulary projection."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, size)
        self.positions = nn.Embedding(config.max_position_embeddings, size)
        self.segments = nn.Embedding(config.type_vocab_size, size)
        self.norm = nn.LayerNorm(size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.layers = nn.ModuleList(TorchLayer(config) for _ in range(config.num_hidden_layers))
        self.pooler = nn.Linear(size, size)
        self.transform = nn.Linear(size, size)
        self.transform_norm = nn.LayerNorm(size, config.layer_norm_eps)
        self.vocabulary_bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.next_sentence = nn.Linear(size, 2)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                nn.init.trunc_normal_(parameter, std=config.initializer_range, a=-0.04, b=0.04)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def parameter_groups(self, weight_decay: float) -> list[dict]:
        """All parameters, biases and LayerNorms without decay."""
        plain = [p for n, p in self.named_parameters() if n.endswith("bias") or "norm" in n]
        decayed = [p for n, p in self.named_parameters() if not (n.endswith("bias") or "norm" in n)]
        return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores over the vocabulary at the chosen positions (n_chosen, V), and over IsNext, NotNext (B, 2)."""
        x = (
            self.words(input_ids)
            + self.segments(token_type_ids)
            + self.positions.weight[: input_ids.shape[1]]
        )
        x = self.dropout(self.norm(x))
        bias = None
        if not attention_mask.all():
            hidden = (attention_mask == 0)[:, None, None, :]
            bias = torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)
        for layer in self.layers:
            x = layer(x, bias)
        chosen = x.flatten(0, 1)[labels.flatten() != -100]
        scores = (
            self.transform_norm(F.gelu(self.transform(chosen))) @ self.words.weight.T + self.vocabulary_bias
        )
        return scores, self.next_sentence(torch.tanh(self.pooler(x[:, 0])))

    def loss(self, labels: Tensor, next_sentence_label: Tensor, **inputs: Tensor) -> Tensor:
        """The sum of both losses."""
        scores, relation = self(labels=labels, **inputs)
        targets = labels.flatten()
        return F.cross_entropy(scores, targets[targets != -100]) + F.cross_entropy(
            relation, next_sentence_label
        )
