"""The feed-forward network, the encoder layer, and the stack of them."""

from __future__ import annotations

from minigrad import nn, ops
from minigrad.bert.attention import BertAttention
from minigrad.bert.config import ACTIVATIONS, BertConfig
from minigrad.tensor import Array, Tensor


class BertIntermediate(nn.Module):
    """The first half of the feed-forward network: H -> 4 H, then GELU in its erf form, or what hidden_act says."""

    def __init__(self, config: BertConfig) -> None:
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size, std=config.initializer_range)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, H) -> (B, T, intermediate_size)."""
        return getattr(ops, self.activation)(self.dense(x))


class BertOutput(nn.Module):
    """The second half, 4 H -> H, dropout, and Add & Norm."""

    def __init__(self, config: BertConfig) -> None:
        self.dense = nn.Linear(config.intermediate_size, config.hidden_size, std=config.initializer_range)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, inner: Tensor, x: Tensor) -> Tensor:
        """inner (B, T, intermediate_size), and x (B, T, H), what went into it -> (B, T, H)."""
        return self.LayerNorm(x + self.dropout(self.dense(inner)))


class BertLayer(nn.Module):
    """Attention, then the feed-forward network, each with Add & Norm (Vaswani et al. 2017, section 3.1)."""

    def __init__(self, config: BertConfig) -> None:
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config)

    def forward(self, x: Tensor, mask: Array | None, rows: Array | None = None) -> Tensor:
        """x (B, T, H), mask (B, 1, 1, T) -> (B, T, H); with rows (n,), which of the B T tokens are wanted, (n, H)."""
        x = self.attention(x, mask, rows)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    """N layers, one after the other."""

    def __init__(self, config: BertConfig) -> None:
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def forward(self, x: Tensor, mask: Array | None, rows: Array | None = None) -> list[Tensor]:
        """x (B, T, H), mask (B, 1, 1, T) -> the input and each layer's output, N + 1 tensors (B, T, H).

        rows (n,): which of the B T tokens are wanted of the last layer; its output is then (n, H).
        """
        if rows is not None and not len(self.layer):
            return [x.reshape(-1, x.shape[-1])[rows]]
        states = [x]
        for number, layer in enumerate(self.layer, start=1):
            last = number == len(self.layer)
            states.append(layer(states[-1], mask, rows if last else None))
        return states
