"""What a model that translates computes."""

from __future__ import annotations

from dataclasses import dataclass

from minigrad.tensor import Tensor


@dataclass
class Seq2SeqOutput:
    """Scores for each next word of the target, and what was asked for beside them.

    logits: (B, T, V). loss: the mean cross-entropy over all labels that are not -100, or None without labels.
    cross_attentions: the weights over the source's S words. Of a recurrent model with attention, one tensor
    (B, T, S); of a Transformer, one (B, h, T, S) for each decoder layer. None where a model has none, or where they
    were not asked for.
    encoder_attentions, decoder_attentions: of a Transformer, the weights of self-attention, one (B, h, S, S) for each
    encoder layer and one (B, h, T, T) for each decoder layer.
    """

    logits: Tensor
    loss: Tensor | None = None
    cross_attentions: list[Tensor] | None = None
    encoder_attentions: list[Tensor] | None = None
    decoder_attentions: list[Tensor] | None = None
