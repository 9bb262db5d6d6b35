"""The layers that BERT is made of."""

from __future__ import annotations

from minigrad import ops, random
from minigrad.nn.initial import constant, truncated_normal
from minigrad.nn.module import Module, Parameter
from minigrad.tensor import Array, Tensor


class Linear(Module):
    """x W + b, with weight (in_features, out_features): stored so that the code reads `x @ W`.

    PyTorch and Hugging Face store the transpose. Weights are initialised with truncated normal draws, the
    bias with zeros.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, std: float = 0.02) -> None:
        self.weight = Parameter(truncated_normal((in_features, out_features), std))
        self.bias = Parameter(constant((out_features,), 0.0)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x (…, in_features) -> (…, out_features)."""
        return ops.linear(x, self.weight, self.bias)


class Embedding(Module):
    """A table with one row per id: weight (num_embeddings, embedding_dim), truncated normal draws."""

    def __init__(self, num_embeddings: int, embedding_dim: int, std: float = 0.02) -> None:
        self.weight = Parameter(truncated_normal((num_embeddings, embedding_dim), std))

    def forward(self, ids: Array) -> Tensor:
        """ids (…) of integers -> (…, embedding_dim). Raises IndexError for an id outside the table."""
        return ops.embedding(ids, self.weight)


class LayerNorm(Module):
    """Layer normalisation over the last axis, with gain (ones) and bias (zeros); eps as in BERT's code."""

    def __init__(self, size: int, eps: float = 1e-12) -> None:
        self.weight = Parameter(constant((size,), 1.0))
        self.bias = Parameter(constant((size,), 0.0))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x (…, size) -> (…, size)."""
        return ops.layer_norm(x, self.weight, self.bias, self.eps)


class Dropout(Module):
    """In training, sets entries to 0 with probability p and divides the rest by 1 - p; else does nothing."""

    def __init__(self, p: float = 0.1) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"Dropout: p must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x (…) -> (…)."""
        keep = self.draw(x, x.shape)
        return x if keep is None else ops.dropout(x, keep, self.p)

    def draw(self, like: Tensor, shape: tuple[int, ...]) -> Array | None:
        """What to keep: booleans of `shape` on the backend of `like`, or None where nothing is dropped."""
        return random.keep_mask(like.data, shape, self.p) if self.training and self.p else None
