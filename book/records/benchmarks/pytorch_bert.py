"""The BERT of `minigrad.bert` from PyTorch's own layers: what benchmarks compare with."""

from __future__ import annotations

import numpy as np
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
        chosen = (labels.flatten() != -100).nonzero().flatten()
        return self.scores(input_ids, token_type_ids, attention_bias(attention_mask), chosen)

    def scores(
        self, input_ids: Tensor, token_type_ids: Tensor, bias: Tensor | None, chosen: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same, with nothing in it that hangs on values: what `torch.compile` can take as one graph.

        bias (B, 1, 1, T); chosen (n_chosen,), positions in the flattened batch.
        """
        x = (
            self.words(input_ids)
            + self.segments(token_type_ids)
            + self.positions.weight[: input_ids.shape[1]]
        )
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, bias)
        chosen_x = x.flatten(0, 1)[chosen]
        scores = (
            self.transform_norm(F.gelu(self.transform(chosen_x))) @ self.words.weight.T + self.vocabulary_bias
        )
        return scores, self.next_sentence(torch.tanh(self.pooler(x[:, 0])))

    def loss(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        labels: Tensor,
        next_sentence_label: Tensor,
    ) -> Tensor:
        """The sum of both losses of a batch on the host: what hangs on its values is read there."""
        flat = labels.flatten()
        chosen = (flat != -100).nonzero().flatten()
        bias = attention_bias(attention_mask)
        device = self.words.weight.device
        return self.loss_at(
            input_ids.to(device),
            token_type_ids.to(device),
            None if bias is None else bias.to(device),
            chosen.to(device),
            flat[chosen].to(device),
            next_sentence_label.to(device),
        )

    def loss_at(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        bias: Tensor | None,
        chosen: Tensor,
        targets: Tensor,
        next_sentence_label: Tensor,
    ) -> Tensor:
        """The same from the chosen positions and their true ids: the part for `torch.compile`."""
        scores, relation = self.scores(input_ids, token_type_ids, bias, chosen)
        return F.cross_entropy(scores, targets) + F.cross_entropy(relation, next_sentence_label)


def attention_bias(attention_mask: Tensor) -> Tensor | None:
    """What is added to the scores, (B, 1, 1, T): 0, or the lowest number at padding; None without padding."""
    if attention_mask.all():
        return None
    hidden = (attention_mask == 0)[:, None, None, :]
    lowest = torch.finfo(torch.float32).min
    return torch.zeros(hidden.shape, device=hidden.device).masked_fill(hidden, lowest)


def copy_weights(model: TorchBert, weights: dict[str, np.ndarray]) -> None:
    """Give `model` the weights of a `BertForPreTraining`, its `state_dict` on the host."""
    names = {
        "words": "bert.embeddings.word_embeddings",
        "positions": "bert.embeddings.position_embeddings",
        "segments": "bert.embeddings.token_type_embeddings",
        "norm": "bert.embeddings.LayerNorm",
        "pooler": "bert.pooler.dense",
        "transform": "cls.predictions.transform.dense",
        "transform_norm": "cls.predictions.transform.LayerNorm",
        "next_sentence": "cls.seq_relationship",
    }
    for i in range(len(model.layers)):
        layer = f"bert.encoder.layer.{i}"
        for part in ("query", "key", "value"):
            names[f"layers.{i}.{part}"] = f"{layer}.attention.self.{part}"
        names[f"layers.{i}.attention_output"] = f"{layer}.attention.output.dense"
        names[f"layers.{i}.attention_norm"] = f"{layer}.attention.output.LayerNorm"
        names[f"layers.{i}.inner"] = f"{layer}.intermediate.dense"
        names[f"layers.{i}.outer"] = f"{layer}.output.dense"
        names[f"layers.{i}.output_norm"] = f"{layer}.output.LayerNorm"
    state = {"vocabulary_bias": torch.tensor(weights["cls.predictions.bias"])}
    for name in model.state_dict():
        if name in state:
            continue
        stem, _, kind = name.rpartition(".")
        array = weights[f"{names[stem]}.{kind}"]
        is_table = stem in ("words", "positions", "segments")
        # PyTorch stores a matrix as (out, in)
        state[name] = torch.tensor(array.T.copy() if array.ndim == 2 and not is_table else array)
    model.load_state_dict(state)
