"""Multi-head self-attention, its output projection, and the Add & Norm around it."""

from __future__ import annotations

import math

import numpy as np

from minigrad import backend, nn, ops
from minigrad.bert.config import BertConfig
from minigrad.tensor import Array, Tensor


def additive_mask(attention_mask: Array, like: Tensor) -> Array | None:
    """What is added to the scores: 0 where a token may be seen, the lowest finite number where not.

    attention_mask (B, T), 0 for padding -> (B, 1, 1, T), the same for every head and query, on the backend and in
    the dtype of `like`; None if all may be seen, as far as that is known without waiting for a GPU. A row that may see
    nothing attends uniformly to everything: finite, where -∞ would give NaN.
    """
    hidden = attention_mask == 0
    if backend.on_host(hidden) and not hidden.any():
        return None
    mask = backend.of(hidden).xp.where(hidden, np.finfo(like.dtype).min, 0)[:, None, None, :]
    return backend.of(like.data).asarray(mask, dtype=like.dtype)


class BertSelfAttention(nn.Module):
    """A heads side by side: softmax(Q Kᵀ / √d_k + mask) V in each (Vaswani et al. 2017, section 3.2.2)."""

    def __init__(self, config: BertConfig) -> None:
        size, std = config.hidden_size, config.initializer_range
        self.heads = config.num_attention_heads
        self.query = nn.Linear(size, size, std=std)
        self.key = nn.Linear(size, size, std=std)
        self.value = nn.Linear(size, size, std=std)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, H) -> (B, A, T, d_k): a reshape alone would mix tokens and heads."""
        batch, length, size = x.shape
        x = x.reshape(batch, length, self.heads, size // self.heads)  # (B, T, A, d_k)
        return x.permute(0, 2, 1, 3)  # (B, A, T, d_k)

    def forward(self, x: Tensor, mask: Array | None) -> Tensor:
        """x (B, T, H), mask (B, 1, 1, T) added to the scores -> (B, T, H), the heads concatenated.

        Raises ValueError unless x has three axes.
        """
        if x.ndim != 3:
            size = len(self.query.weight)
            raise ValueError(f"attention: expected x of shape (B, T, {size}), got {x.shape}")
        batch, length, size = x.shape
        q, k, v = (self.split_heads(part(x)) for part in (self.query, self.key, self.value))
        keep = self.dropout.draw(x, (batch, self.heads, length, length))
        z = ops.scaled_dot_product_attention(q, k, v, mask, keep, self.dropout.p)  # (B, A, T, d_k)
        return z.permute(0, 2, 1, 3).reshape(batch, length, size)  # (B, T, H)

    def weights(self, x: Tensor, mask: Array | None) -> Tensor:
        """The attention weights softmax(Q Kᵀ / √d_k + mask) that `forward` uses for x, before dropout.

        x (B, T, H), mask (B, 1, 1, T) added to the scores -> (B, A, T, T), a row for each query. They are
        computed again, because the fused operation in `forward` keeps its own for the backward pass.
        """
        q, k = (self.split_heads(part(x)) for part in (self.query, self.key))
        scores = q @ k.transpose() * (1 / math.sqrt(q.shape[-1]))  # (B, A, T, T)
        return ops.softmax(scores if mask is None else scores + Tensor.wrap(mask))


class BertSelfOutput(nn.Module):
    """W^O, dropout, and Add & Norm: LN(x + sublayer(x)), the post-LN of the paper."""

    def __init__(self, config: BertConfig) -> None:
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, std=config.initializer_range)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        """z (B, T, H), the heads' output, and x (B, T, H), what went into them -> (B, T, H)."""
        return self.LayerNorm(x + self.dropout(self.dense(z)))


class BertAttention(nn.Module):
    """The first half of an encoder layer."""

    def __init__(self, config: BertConfig) -> None:
        self.self = BertSelfAttention(config)  # Hugging Face's name for it
        self.output = BertSelfOutput(config)

    def forward(self, x: Tensor, mask: Array | None, rows: Array | None = None) -> Tensor:
        """x (B, T, H), mask (B, 1, 1, T) -> (B, T, H); with rows (n,), which of the B T tokens are wanted, (n, H).

        Each token may be looked at by all others, so the heads are computed for all.
        """
        z = self.self(x, mask)  # (B, T, H)
        if rows is not None:
            z, x = (states.reshape(-1, states.shape[-1])[rows] for states in (z, x))  # (n, H)
        return self.output(z, x)
