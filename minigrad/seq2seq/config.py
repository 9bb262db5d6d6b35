"""The sizes of the models that translate, and what a config of either must be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from minigrad.bert.config import layers, replaced, share, size
from minigrad.messages import quoted
from minigrad.training.fields import check, setting
from minigrad.training.reading import ConfigError

CELLS = ("lstm", "gru", "rnn")
ATTENTION = ("none", "dot", "general", "additive")


@dataclass(frozen=True)
class Seq2SeqConfig:
    """What both models have: a vocabulary for source and target, and three special tokens.

    vocab_size: V, pieces of source and target together. pad_token_id fills rows up, start_token_id is the first
    input of the decoder, end_token_id the last word of a source and of a target. The defaults are the ids of
    [PAD], [CLS] and [SEP] in a vocabulary that `train_wordpiece` has learned.
    label_smoothing: ε of Szegedy et al. 2016, section 7, in training alone.

    Raises ConfigError for a value of another type, sizes that do not fit or are beyond all reason, and
    special tokens that are the same or outside the vocabulary.
    """

    model_type: ClassVar[str] = ""

    vocab_size: int = size()
    dropout: float = share(0.1)
    label_smoothing: float = share(0.0)
    pad_token_id: int = size(0, at_least=0)
    start_token_id: int = size(2, at_least=0)
    end_token_id: int = size(3, at_least=0)

    def __post_init__(self) -> None:
        check(self, ConfigError)
        duties = [getattr(self, name) for name in ("pad_token_id", "start_token_id", "end_token_id")]
        if max(duties) >= self.vocab_size or len(set(duties)) < 3:
            raise ConfigError(
                "pad_token_id, start_token_id and end_token_id must differ and be below vocab_size "
                f"{self.vocab_size}, got {duties[0]}, {duties[1]} and {duties[2]}"
            )

    def to_dict(self) -> dict[str, Any]:
        """The fields, with the kind of model as "model_type": what a `config.json` holds."""
        return {"model_type": self.model_type, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The config in a `config.json`; fields that it does not know are left out.

        Raises ConfigError for another kind of model, or without vocab_size.
        """
        kind = values.get("model_type", cls.model_type)
        if kind != cls.model_type:
            raise ConfigError(f"model_type is {quoted(kind)}, expected {cls.model_type!r}")
        if "vocab_size" not in values:
            raise ConfigError("vocab_size is missing")
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    def replace(self, **changes: object) -> Self:
        """A copy with some fields changed. Raises ConfigError for a field that does not exist."""
        return replaced(self, changes)


@dataclass(frozen=True)
class RecurrentConfig(Seq2SeqConfig):
    """The sizes of a `RecurrentSeq2Seq`.

    hidden_size: H, the length of a word's vector and of a state. num_layers: of the encoder and of the decoder.
    cell: "lstm", "gru" or "rnn". bidirectional: whether the encoder reads the source from its end too.
    attention: how the decoder scores the encoder's states, "dot", "general" or "additive", or "none" without them.
    dropout: on the words' vectors, between layers, and before the logits.
    """

    model_type: ClassVar[str] = "recurrent-seq2seq"

    hidden_size: int = size(256)
    num_layers: int = layers(1, at_least=1)
    cell: str = setting("lstm", one_of=CELLS)
    bidirectional: bool = False
    attention: str = setting("none", one_of=ATTENTION)


@dataclass(frozen=True)
class TransformerConfig(Seq2SeqConfig):
    """The sizes of a `Transformer`, with PyTorch's names; the defaults are the paper's base model.

    d_model: the length of a word's vector. nhead: heads h, so that each has d_k = d_model / h.
    num_encoder_layers, num_decoder_layers: N. dim_feedforward: d_ff, the width inside the feed-forward network.
    dropout: P_drop, on the sums of words and positions and on what each sub-layer adds.

    Source: Vaswani et al. 2017, table 3.
    """

    model_type: ClassVar[str] = "transformer-seq2seq"

    d_model: int = size(512)
    nhead: int = size(8)
    num_encoder_layers: int = layers(6)
    num_decoder_layers: int = layers(6)
    dim_feedforward: int = size(2048)
    label_smoothing: float = share(0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.nhead:
            raise ConfigError(f"d_model must be a multiple of nhead, got {self.d_model} and {self.nhead}")
        if self.d_model % 2:
            raise ConfigError(
                f"d_model must be even, a sine and a cosine for each frequency, got {self.d_model}"
            )


# For minutes on a CPU; a run sets the vocabulary's size.
RECURRENT_PRESETS = {
    "lstm": RecurrentConfig(vocab_size=4096, hidden_size=128),
    "lstm-attention": RecurrentConfig(vocab_size=4096, hidden_size=128, attention="general"),
}
TRANSFORMER_PRESETS = {
    "reduced": TransformerConfig(
        vocab_size=4096, d_model=128, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=512
    ),
    "base": TransformerConfig(vocab_size=37000),  # section 5.1: about 37,000 pieces for English and German
}
