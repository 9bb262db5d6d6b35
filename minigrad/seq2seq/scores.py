"""Attention scores: how well a state of the decoder fits each state of the encoder.

Three ways to score h_t with h_s: dot and general of Luong et al. 2015, section 3.1, and additive, v^T tanh(W_a h_t +
U_a h_s), of Bahdanau et al. 2015, appendix A.1.2 (Luong's "concat"). Each has two steps, `keys`, which needs the
encoder's states alone and is done once a sentence, and `compare`, which is done for each word of the target.
"""

from __future__ import annotations

import math

from minigrad import nn
from minigrad.nn import Parameter, truncated_normal
from minigrad.tensor import Tensor


class Score(nn.Module):
    """A score for each pair of a decoder's state and an encoder's state. Made for states of `hidden_size` H."""

    def __init__(self, hidden_size: int) -> None:
        self.hidden_size = hidden_size

    def keys(self, states: Tensor) -> Tensor:
        """What the scores use of the encoder's states: (B, S, H) -> (B, S, H)."""
        return states

    def compare(self, h: Tensor, keys: Tensor) -> Tensor:
        """h (B, T, H) of the decoder, keys (B, S, H) -> scores (B, T, S)."""
        raise NotImplementedError(f"{type(self).__name__} has no compare()")

    def forward(self, h: Tensor, states: Tensor) -> Tensor:
        """h (B, T, H) of the decoder, states (B, S, H) of the encoder -> scores (B, T, S).

        Raises ValueError for other shapes.
        """
        size = self.hidden_size
        fit = h.ndim == states.ndim == 3 and len(h) == len(states)
        if not fit or h.shape[-1] != size or states.shape[-1] != size:
            raise ValueError(
                f"scores: expected h (B, T, {size}) and states (B, S, {size}), got {h.shape} and {states.shape}"
            )
        return self.compare(h, self.keys(states))


class DotScore(Score):
    """h_t · h_s: nothing to learn."""

    def compare(self, h: Tensor, keys: Tensor) -> Tensor:
        """h (B, T, H), keys (B, S, H) -> (B, T, S)."""
        return h @ keys.transpose()


class GeneralScore(Score):
    """h_t^T W_a h_s: a matrix between the two. With rows as states, h_s is multiplied by W_a^T once a sentence."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size)
        self.W_a = Parameter(truncated_normal((hidden_size, hidden_size), 1 / math.sqrt(hidden_size)))

    def keys(self, states: Tensor) -> Tensor:
        """states (B, S, H) -> W_a h_s for each, (B, S, H)."""
        return states @ self.W_a.T

    def compare(self, h: Tensor, keys: Tensor) -> Tensor:
        """h (B, T, H), keys (B, S, H) -> (B, T, S)."""
        return h @ keys.transpose()


class AdditiveScore(Score):
    """v^T tanh(W_a h_t + U_a h_s): a small network. It has T · S vectors of length H at a time."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size)
        std = 1 / math.sqrt(hidden_size)
        self.W_a, self.U_a = (Parameter(truncated_normal((hidden_size, hidden_size), std)) for _ in range(2))
        self.v = Parameter(truncated_normal((hidden_size,), std))

    def keys(self, states: Tensor) -> Tensor:
        """states (B, S, H) -> U_a h_s for each, (B, S, H)."""
        return states @ self.U_a.T

    def compare(self, h: Tensor, keys: Tensor) -> Tensor:
        """h (B, T, H), keys (B, S, H) -> (B, T, S)."""
        asking = (h @ self.W_a.T).unsqueeze(2)  # (B, T, 1, H)
        return (asking + keys.unsqueeze(1)).tanh() @ self.v  # (B, T, S)


SCORES = {"dot": DotScore, "general": GeneralScore, "additive": AdditiveScore}
